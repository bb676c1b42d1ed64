"""Keeps the garbage collector from looking through everything that was there before a scheduler began.

In a process with JAX that takes 100 ms and more, in which no thread of Python runs and every deadline is missed.
"""

from __future__ import annotations

import gc
import threading

INTERPRETERS_OWN = 1000  # objects at most that Python sets aside by itself (3.12: 375)
_lock = threading.RLock()  # a scheduler that nobody refers to may be ended within an allocation here
_users: set[int] = set()
_frozen = False  # by us: what somebody else has frozen stays so


def freeze(user: object) -> None:
    """Collects what is garbage now and sets aside what is not, until every user has asked for `unfreeze`."""
    global _frozen
    if not _users and gc.get_freeze_count() <= INTERPRETERS_OWN:
        gc.collect()  # runs others' finalizers: not with the lock held
    with _lock:
        _users.add(id(user))
        if len(_users) == 1 and gc.get_freeze_count() <= INTERPRETERS_OWN:
            gc.freeze()
            _frozen = True


def unfreeze(user: object) -> None:
    """A user has ended; the second time nothing happens."""
    global _frozen
    with _lock:
        _users.discard(id(user))
        if not _users and _frozen:
            gc.unfreeze()
            _frozen = False


def forked() -> None:
    """In a process forked from one with users none of them runs."""
    global _lock, _frozen
    _lock = threading.RLock()
    _users.clear()
    if _frozen:
        gc.unfreeze()
        _frozen = False


__all__ = ["forked", "freeze", "unfreeze"]
