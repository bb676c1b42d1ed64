"""What the operands and results of a loop of known length (`scan`) are to its body."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ..program import Literal, Op, Value
from .numpy_rules import Array

T = TypeVar("T")
Apply = Callable[..., "Array | list[Array]"]  # (operation, operands) -> its result, or all of several


@dataclasses.dataclass(frozen=True)
class Parts:
    """How many operands are the same in every turn, and how many a turn hands on to the next; the others are arrays of
    which each turn has its part.
    """

    same: int
    carried: int

    def of(self, operands: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """Operands of the loop, or inputs of its body: (the same, carried, parts of arrays)."""
        a, b = self.same, self.same + self.carried
        return operands[:a], operands[a:b], operands[b:]

    def made(self, results: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
        """Results of the loop, or outputs of its body: (carried, parts of arrays)."""
        return results[: self.carried], results[self.carried :]


def parts(op: Op) -> Parts:
    """The parts of a loop's operands. Raises `ValueError` for an operation without a body."""
    if op.body is None:
        raise ValueError(f"parts: {op.prim} has no body.")
    return Parts(op.body.same, op.body.carried)


def each_turn(op: Op, count: Callable[[Op], int]) -> int:
    """What all turns of a loop of known length come to, given what one operation does."""
    return int(op.params["length"]) * sum(map(count, op.body.ops)) if op.body is not None else 0


class _Turns:
    """A loop, turn by turn, with what is known around it; `apply` gives an operation's results."""

    def __init__(self, apply: Apply, op: Op, operands: Sequence[Array]):
        if op.body is None:
            raise NotImplementedError(f"{op.prim} has no NumPy reference for this body.")
        self.apply, self.body = apply, op.body
        given = operands[: len(op.ins)]
        self.known = {v: x for v, x in zip(op.ins, given, strict=True) if isinstance(v, Value)}
        self.known.update(zip(self.body.consts, operands[len(op.ins) :], strict=True))
        self.same, self.carried, self.arrays = parts(op).of(given)

    def _env(self, ops: Sequence[Op], index: int | None) -> dict[Value, Array]:
        slices = [x[index] for x in self.arrays]
        env = self.known | dict(zip(self.body.inputs, (*self.same, *self.carried, *slices), strict=True))
        for o in ops:
            got = self.apply(o, *(np.asarray(v.val) if isinstance(v, Literal) else env[v] for v in o.operands))
            env.update(zip(o.outs, got if isinstance(got, list) else [got], strict=True))
        return env

    def goes_on(self) -> bool:
        """Whether the condition holds."""
        condition = self.body.condition
        assert condition is not None
        return bool(self._env(condition.ops, None)[condition.value])

    def turn(self, index: int | None = None) -> list[Array]:
        """One turn, on number `index` of each array; returns what it hands on and its part of each result."""
        env = self._env(self.body.ops, index)
        return [np.asarray(v.val) if isinstance(v, Literal) else env[v] for v in self.body.outputs]


def repeat(apply: Apply, op: Op, *operands: Array) -> list[Array]:
    """The results of a loop of known length, turn by turn, for its operands and then its body's constants, of their
    shapes.

    Raises `NotImplementedError` for a loop whose body only JAX knows, and what `apply` raises.
    """
    loop = _Turns(apply, op, operands)
    p = parts(op)
    order = range(op.params["length"])[:: -1 if op.params["reverse"] else 1]
    made: list[Sequence[Array]] = []
    for t in order:
        loop.carried, last = p.made(loop.turn(t))
        made.append(last)
    made = made[::-1] if op.params["reverse"] else made
    return [*loop.carried, *(np.stack(xs) for xs in zip(*made, strict=True))]


def repeat_while(apply: Apply, op: Op, *operands: Array) -> list[Array]:
    """As `repeat`, of a loop that a condition ends."""
    loop = _Turns(apply, op, operands)
    while loop.goes_on():
        loop.carried = loop.turn()
    return list(loop.carried)


__all__ = ["Parts", "each_turn", "parts", "repeat", "repeat_while"]
