"""Keeps the garbage collector from looking through everything that was there before a scheduler began.

In a process with JAX that takes 100 ms and more, in which no thread of Python runs and every deadline is missed.
"""

from __future__ import annotations

import gc
import threading

INTERPRETERS_OWN = 1000  # objects at most that Python sets aside by itself (3.12: 375)
_lock = threading.Lock()
_users = 0
_frozen = False  # by us: what somebody else has frozen stays so


def freeze() -> None:
    """Collects what is garbage now and sets aside what is not, until as many `unfreeze` have come as `freeze`."""
    global _users, _frozen
    with _lock:
        _users += 1
        if _users == 1 and gc.get_freeze_count() <= INTERPRETERS_OWN:
            gc.collect()
            gc.freeze()
            _frozen = True


def unfreeze() -> None:
    global _users, _frozen
    with _lock:
        _users -= 1
        if _users == 0 and _frozen:
            gc.unfreeze()
            _frozen = False


__all__ = ["freeze", "unfreeze"]
