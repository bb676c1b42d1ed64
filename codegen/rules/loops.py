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
    """The parts of a loop's operands."""
    return Parts(op.params["num_consts"], op.params["num_carry"])


def each_turn(op: Op, count: Callable[[Op], int]) -> int:
    """What all turns of a loop come to, given what one operation does."""
    return int(op.params["length"]) * sum(map(count, op.body.ops)) if op.body is not None else 0


def repeat(apply: Apply, op: Op, *operands: Array) -> list[Array]:
    """A loop's results, turn by turn, for its operands and then its body's constants, of their shapes.

    Raises `NotImplementedError` for a loop whose body only JAX knows, and what `apply` raises.
    """
    body, p = op.body, parts(op)
    if body is None:
        raise NotImplementedError(f"{op.prim} has no NumPy reference for this body.")
    given, consts = operands[: len(op.ins)], operands[len(op.ins) :]
    known = {v: x for v, x in zip(op.ins, given, strict=True) if isinstance(v, Value)}
    known.update(zip(body.consts, consts, strict=True))
    same, carried, arrays = p.of(given)
    made: list[list[Array]] = []
    turns = range(op.params["length"])
    for t in reversed(turns) if op.params["reverse"] else turns:
        env = known | dict(zip(body.inputs, (*same, *carried, *(x[t] for x in arrays)), strict=True))
        for o in body.ops:
            got = apply(o, *(np.asarray(v.val) if isinstance(v, Literal) else env[v] for v in o.operands))
            env.update(zip(o.outs, got if isinstance(got, list) else [got], strict=True))
        outs = [np.asarray(v.val) if isinstance(v, Literal) else env[v] for v in body.outputs]
        carried, last = p.made(outs)
        made.append(list(last))
    made = made[::-1] if op.params["reverse"] else made
    return [*carried, *(np.stack(xs) for xs in zip(*made, strict=True))]


__all__ = ["Parts", "each_turn", "parts", "repeat"]
