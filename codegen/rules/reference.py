"""Runs operations by the NumPy meaning of their primitives: the oracle of the tests, and how weights are prepared at
bind.

Given f64 operands the results are f64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..program import Literal, Op, Program, Value
from .primitives import primitive

Array = np.ndarray


def known(op: Op) -> bool:
    return primitive(op).reference is not None


def apply(op: Op, *operands: Any) -> Array:
    """The result of one operation. Raises `NotImplementedError` for a primitive without a rule (see `known`)."""
    rule = primitive(op).reference
    if rule is None:
        raise NotImplementedError(f"{op.prim} has no NumPy reference.")
    with np.errstate(all="ignore"):
        return rule(op, *operands)


def run(program: Program, inputs: Sequence[Array], consts: Sequence[Array], dtype: Any = np.float64) -> list[Array]:
    """The program's outputs, computed in `dtype`."""

    def wide(a: Any) -> Any:
        return np.asarray(a, dtype) if np.issubdtype(np.asarray(a).dtype, np.floating) else np.asarray(a)

    env: dict[Value, Any] = dict(zip((*program.inputs, *program.consts), map(wide, (*inputs, *consts)), strict=True))
    run_ops(program.ops, env, wide)
    return [env[v] for v in program.outputs]


def run_ops(
    ops: Sequence[Op], env: dict[Value, Any] | Mapping[Value, Any], wide: Callable[[Any], Any] = np.asarray
) -> None:
    """Evaluates `ops` in `env`, adding their results."""
    for op in ops:
        args = [wide(v.val) if isinstance(v, Literal) else env[v] for v in op.ins]
        env[op.out] = apply(op, *args)  # type: ignore[index]
