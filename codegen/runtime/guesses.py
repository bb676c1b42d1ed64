"""What a first segment is built by, before anything of its layers or of this machine is measured."""

from __future__ import annotations

from ..kernels import block_shapes
from ..kernels.winograd import eligible, guess
from ..segment.choice import kept
from ..segment.context import Groups
from ..target import target


def at_once(groups: Groups, names: tuple[str, ...], threads: int) -> tuple[str, bool]:
    """The algorithm of operations whose segment is needed at once, without a measurement; whether it is guessed."""
    found = kept(groups, names, threads)
    return (found, False) if found else (_guess(groups, threads) or names[0], True)


def _guess(groups: Groups, threads: int) -> str:
    """What operations are likely to take the fewest seconds with; "" where nobody knows."""
    ops = [op for group, _ in groups for op in group.ops]
    return guess(ops[0], threads, target()) if len(ops) == 1 and eligible(ops[0]) else ""


def learn(alone: block_shapes.Alone) -> bool:
    """Measures what kernels' shapes are chosen by, once a machine (about a second), each in `alone`; whether segments
    to come have others than those before.
    """
    return block_shapes.learn(target(), alone)


__all__ = ["at_once", "learn"]
