"""What a first segment is built by, before anything of its layers or of this machine is measured."""

from __future__ import annotations

from ..kernels import block_shapes
from ..kernels.winograd import eligible, guess
from ..segment.assembly import Groups
from ..segment.choice import likely
from ..target import Target, target


def at_once(groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """The algorithm of operations whose segment is needed at once, without a measurement."""
    return likely(groups, names, threads, _guess)


def _guess(groups: Groups, threads: int, chosen: Target) -> str:
    ops = [op for group, _ in groups for op in group.ops]
    return guess(ops[0], threads, chosen) if len(ops) == 1 and eligible(ops[0]) else ""


def learn() -> None:
    """Measures for processes to come what kernels' shapes are chosen by, once a machine (about a second)."""
    block_shapes.learn(target())


__all__ = ["at_once", "learn"]
