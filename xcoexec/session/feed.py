"""The inputs of measured calls: arrays of the example, which go from call to call as a loop of steps hands them on."""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax.typing import ArrayLike

from ..codegen.program import Value
from ..compat import as_weak
from ..frontend.fold import Folded
from ..lowering.executable import Flat
from ..measure.part_seconds import example


class Feed:
    """`given`: leaves like the inputs; arrays are made in the place of shapes, when they are first needed. `donated`:
    positions of those that a call gives away and in whose places results come, which the next call gets.
    """

    def __init__(self, given: Sequence[ArrayLike | jax.ShapeDtypeStruct], donated: Sequence[int], folded: Folded):
        self._given, self._donated = given, donated
        self._handed = folded.handed(donated)
        self._made: dict[int, ArrayLike] = {}

    def leaves(self) -> list[ArrayLike]:
        """The inputs of the next call."""
        for i, x in enumerate(self._given):
            if i not in self._made:
                own = i in self._donated and not isinstance(x, jax.ShapeDtypeStruct)
                self._made[i] = jax.numpy.array(x, copy=True) if own else _array(x)
        return [self._made[i] for i in range(len(self._given))]

    def begin(self, call: Flat) -> Sequence[jax.Array]:
        """Calls with these inputs; the next call gets this one's results in the place of what it has taken."""
        out = call(self.leaves())
        self._made.update((i, out[o]) for i, o in self._handed.items())
        return out

    def drop(self) -> None:
        """Holds no array of its own any more, until the next call."""
        self._made.clear()


def _array(x: ArrayLike | jax.ShapeDtypeStruct) -> ArrayLike:
    """An array of a shape and type that are all that is known; any other leaf as it is."""
    if not isinstance(x, jax.ShapeDtypeStruct):
        return x
    made = example(Value(tuple(x.shape), str(x.dtype)))
    placed = made if x.sharding is None else jax.device_put(made, x.sharding)
    return as_weak(placed) if x.weak_type else placed


__all__ = ["Feed"]
