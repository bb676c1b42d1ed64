"""Mixtures by one-hot vectors: each matrix of a table is multiplied with rows of which most are 0.

    y[e] = x[e] @ w[e]            x[e] = sum over tokens of one_hot(choice of t)[e] x[t]: 0 where nobody has chosen e

So the product is one with chosen matrices: e chooses itself where something of x[e] is not 0 or something of w[e] not
finite (0 times that is no 0), else none, and its result is 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..codegen.program import Op, Value
from ..codegen.rules.chosen import chosen
from ..ir.streaming import STREAMED_BYTES
from .trace import traced_ops

FEW_ROWS = 16  # of a matrix: more of them are worth panels of all matrices
FAR = 12  # operations between one-hot vectors and the product

Define = Callable[[Value, tuple[Value, ...], Callable[..., Any]], None]


def by_choice(ops: Sequence[Op], known: set[Value], define: Define) -> list[Op]:
    """The operations with such products as those with chosen matrices. `known`: constants; `define`: makes one of
    others.
    """
    makers = {v: op for op in ops for v in op.outs}
    out: list[Op] = []
    for op in ops:
        out += _chosen(op, define) if _fits(op, known, makers) else [op]
    return out


def _fits(op: Op, known: set[Value], makers: Mapping[Value, Op]) -> bool:
    if op.prim != "dot_general" or not all(isinstance(v, Value) for v in op.ins):
        return False
    x, w = op.value_ins
    (_, contract), batch = op.params["dimension_numbers"]
    if (
        tuple(map(tuple, batch)) != ((0,), (0,))
        or w.scale is not None
        or len(w.shape) != 3
        or w not in known
        or x in known
    ):
        return False
    if tuple(contract) != (1,) or len(op.out.shape) < 2 or w.nbytes < w.shape[0] * STREAMED_BYTES:
        return False
    return x.size <= FEW_ROWS * w.shape[0] * w.shape[1] and _one_hot(x, w.shape[0], makers)


def _one_hot(v: Value, length: int, makers: Mapping[Value, Op]) -> bool:
    """Whether a value is made from comparisons with so many numbers in a row, a few operations before."""
    near, found = [v], {v}
    for _ in range(FAR):
        near = [a for v in near if v in makers for a in makers[v].value_ins if a not in found]
        found.update(near)
    return any(op.prim == "eq" and length in op.out.shape for op in (makers[v] for v in found if v in makers))


def _chosen(op: Op, define: Define) -> list[Op]:
    x, w = op.value_ins
    finite, numbers = Value((w.shape[0],), "bool"), Value((w.shape[0],), "int32")
    (index, needed), first = traced_ops(_choices, [x, finite, numbers], op.name)
    (taken,), second = traced_ops(_taken, [w, index], op.name)
    makers = {o.out: o for o in second}
    mid = Value(op.out.shape, op.out.dtype)
    product = dataclasses.replace(op, ins=(x, taken), outs=(mid,))
    if chosen(product, makers) is None:
        return [op]
    define(finite, (w.source or w,), _finite)
    define(numbers, (), lambda: np.arange(w.shape[0], dtype=np.int32))
    return [*first, *second, product, *traced_ops(_result, [needed, mid], op.name, op.outs)[1]]


def _choices(values: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Of x [E, ..], whether w [E, ..] is finite, and the numbers of all matrices: the index [E], and which are
    needed.
    """
    x, finite, numbers = values
    needed = jnp.any(x != 0, axis=tuple(range(1, x.ndim))) | ~finite
    return jnp.where(needed, numbers, jnp.full_like(numbers, len(x))), needed


def _taken(values: Sequence[jax.Array]) -> jax.Array:
    table, index = values
    return jnp.take(table, index, axis=0, mode="fill")


def _result(values: Sequence[jax.Array]) -> jax.Array:
    needed, y = values
    return jnp.where(needed.reshape(-1, *(1,) * (y.ndim - 1)), y, jnp.zeros_like(y))


def _finite(w: np.ndarray) -> np.ndarray:
    """Of each matrix whether all its elements are finite."""
    exponent = _EXPONENTS.get(str(w.dtype))
    if exponent is None:
        return np.array([np.isfinite(m).all() for m in w])
    return np.array([(m.view(np.uint16) & 0x7FFF).max(initial=0) < exponent for m in w])


_EXPONENTS = {"bfloat16": 0x7F80, "float16": 0x7C00}  # from here on bits are no finite number; NumPy takes longer

__all__ = ["by_choice"]
