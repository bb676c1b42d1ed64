"""What the partitioner gives for a range of a result, as this room sees it: `xcoexec.partition` has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..program import Group, Op, Value


class Excerpt(Protocol):
    """`value` is `source` from `start` on along `axis`."""

    @property
    def value(self) -> Value: ...

    @property
    def source(self) -> Value: ...

    @property
    def axis(self) -> int: ...

    @property
    def start(self) -> int: ...


class Portion(Protocol):
    """The operations of one range, and the slices of outside values that they read."""

    @property
    def slices(self) -> Sequence[Excerpt]: ...

    def groups(self, layers: Sequence[Group]) -> Sequence[Sequence[Group]]:
        """For each layer the groups that compute its part."""
        ...


Cut = Callable[[Sequence[Op], int, int, int], Portion]  # (operations, axis, start, stop of the result) -> their portion

__all__ = ["Cut", "Excerpt", "Portion"]
