"""What a first segment is built by, before anything of its layers or of this machine is measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ..kernels import block_shapes
from ..kernels.winograd import eligible, guess
from ..segment.assembly import Groups
from ..segment.choice import likely
from ..target import Target, target


def at_once(groups: Groups, names: tuple[str, ...], threads: int) -> tuple[str, bool]:
    """The algorithm of operations whose segment is needed at once, without a measurement; whether it is guessed."""
    asked: list[str] = []

    def guessed(*about: object) -> str:
        asked.append(_guess(groups, threads, target()))
        return asked[0]

    return likely(groups, names, threads, guessed), bool(asked)


def _guess(groups: Groups, threads: int, chosen: Target) -> str:
    ops = [op for group, _ in groups for op in group.ops]
    return guess(ops[0], threads, chosen) if len(ops) == 1 and eligible(ops[0]) else ""


def learn(alone: Callable[[], contextlib.AbstractContextManager[object]]) -> bool:
    """Measures what kernels' shapes are chosen by, once a machine (about a second), each in `alone`; whether segments
    to come have others than those before.
    """
    return block_shapes.learn(target(), alone)


__all__ = ["at_once", "learn"]
