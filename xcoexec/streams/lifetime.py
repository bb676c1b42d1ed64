"""What has threads (schedulers, streams) ends with its owner: when the owner's last reference goes, and at the exit of
the process.

The threads know what they share, never the owner. In a forked process, which has no such threads, it is over, and
says so.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from typing import Protocol

from . import gc_freeze


class Shared(Protocol):
    """What an owner's threads share."""

    def stop(self) -> None:
        """Ends the threads and waits for them a short while."""

    def abandon(self) -> None:
        """Makes the threads end by themselves. Called within garbage collection: takes no lock and waits for
        nothing.
        """

    def forked(self) -> None:
        """In a forked process: answers who waits, without the locks that may have been held."""


_living: weakref.WeakSet[Shared] = weakref.WeakSet()


def keep(owner: object, shared: Shared) -> None:
    """From now on what the threads share ends with its owner."""
    _living.add(shared)
    weakref.finalize(owner, shared.abandon).atexit = False  # at the exit all of them are stopped


def _exit() -> None:
    with contextlib.ExitStack() as stack:  # all of them, whatever one raises
        for shared in list(_living):
            stack.callback(shared.stop)


def _forked() -> None:
    gc_freeze.forked()
    for shared in list(_living):
        shared.forked()


atexit.register(_exit)  # behind JAX's own, so it runs before: blocks and stages still have their devices
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

__all__ = ["Shared", "keep"]
