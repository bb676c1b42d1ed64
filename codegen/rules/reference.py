"""Runs operations by the NumPy meaning of their primitives: the oracle of the tests, and how weights are prepared at
bind.

Given f64 operands the results are f64.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence

import numpy as np
import numpy.typing as npt

from ..program import Literal, Op, Program, Value
from .numpy_rules import Array
from .primitives import primitive

Wide = Callable[[npt.ArrayLike], Array]  # an array in the type that is computed in


def known(op: Op) -> bool:
    """Whether the primitive of an operation has a rule."""
    return primitive(op).reference is not None


def apply(op: Op, *operands: Array) -> Array | list[Array]:
    """The result of one operation, of its shape, for operands of theirs (a loop's results, and behind the operands its
    body's constants).

    Raises `NotImplementedError` for a primitive without a rule (see `known`).
    """
    rule = primitive(op).reference
    if rule is None:
        raise NotImplementedError(f"{op.prim} has no NumPy reference.")
    with np.errstate(all="ignore"):
        return rule(op, *operands)


def run(
    program: Program, inputs: Sequence[Array], consts: Sequence[Array], dtype: npt.DTypeLike = np.float64
) -> list[Array]:
    """The program's outputs for arrays of its shapes, with every array of floating-point numbers in `dtype`.

    Raises `NotImplementedError` for a primitive without a rule.
    """

    def wide(a: npt.ArrayLike) -> Array:
        return np.asarray(a, dtype) if np.issubdtype(np.asarray(a).dtype, np.floating) else np.asarray(a)

    env: dict[Value, Array] = dict(zip((*program.inputs, *program.consts), map(wide, (*inputs, *consts)), strict=True))
    run_ops(program.ops, env, wide)
    return [env[v] for v in program.outputs]


def run_ops(ops: Sequence[Op], env: MutableMapping[Value, Array], wide: Wide = np.asarray) -> None:
    """Evaluates `ops` in `env`, adding their results; literals go through `wide` first.

    Raises `NotImplementedError` for a primitive without a rule, `KeyError` for an operand that `env` lacks.
    """
    for op in ops:
        args = [wide(v.val) if isinstance(v, Literal) else env[v] for v in op.operands]
        got = apply(op, *args)
        env.update(zip(op.outs, got if isinstance(got, list) else [got], strict=True))
