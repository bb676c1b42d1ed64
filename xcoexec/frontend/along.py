"""Gathers and scatters along an inner axis as ones of whole rows, for which there are kernels.

x[:, i], x [a, k, c]   -->   rows of x as [a * k, c], those of the numbers k * range(a)[:, None] + i
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..codegen.rules.indexing import outside
from ..compat import ClosedJaxpr, JaxprEqn, bind, shape_of

MOST_ROWS = (1 << 31) - 1  # that s32 numbers name
NARROW, FEW = 8, 1 << 14  # elements of a row for which its number costs too much, unless there are so few
Shape = tuple[int, ...]


def by_rows(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The same with whole rows; None for what is none along one inner axis, by s32 numbers."""
    if not eqn.primitive.name.startswith(("gather", "scatter")):
        return None
    table, index = (shape_of(v) for v in eqn.invars[:2])
    if index.dtype != jnp.int32 or index.shape[-1:] != (1,) or 0 in (*table.shape, *index.shape):
        return None
    axis = _axis(eqn, table.shape, index.shape)
    mode = outside(eqn.primitive.name, eqn.params["mode"])
    reads = eqn.primitive.name == "gather"
    if not axis or not mode or math.prod(table.shape[: axis + 1]) > MOST_ROWS:
        return None
    taken = (*table.shape[:axis], *index.shape[:-1], *table.shape[axis + 1 :])
    if not reads and shape_of(eqn.invars[2]).shape != taken:
        return None
    count, width = math.prod(taken[: axis + len(index.shape) - 1]), math.prod(table.shape[axis + 1 :])
    if width < NARROW and count > FEW:
        return None
    before, length = math.prod(table.shape[:axis]), table.shape[axis]

    def rows(operand: jax.Array, at: jax.Array, *updates: jax.Array) -> list[jax.Array]:
        flat = jnp.reshape(operand, (before * length, -1))
        where = _numbers(jnp.reshape(at, (1, -1)), before, length, mode == "fill")
        if reads:
            found = bind(eqn.primitive, [flat, where], _reading(eqn.params, flat.shape[1]))[0]
            return [jnp.reshape(found, taken)]
        joined = [jnp.reshape(u, (where.shape[0], -1)) for u in updates]
        return [jnp.reshape(bind(eqn.primitive, [flat, where, *joined], _writing(eqn.params))[0], table.shape)]

    return jax.make_jaxpr(rows)(*map(shape_of, eqn.invars))


def _axis(eqn: JaxprEqn, table: Shape, index: Shape) -> int:
    """The inner axis along which all of an operand is read or written, with the axes of the indices in its place in
    order; 0 where there is none.
    """
    dn, many = eqn.params["dimension_numbers"], len(index) - 1
    if eqn.primitive.name == "gather":
        named, along, window = dn.collapsed_slice_dims, dn.start_index_map, dn.offset_dims
    else:
        named, along, window = dn.inserted_window_dims, dn.scatter_dims_to_operand_dims, dn.update_window_dims
    if len(named) != 1 or tuple(named) != tuple(along) or dn.operand_batching_dims or not many:
        return 0
    axis = int(named[0])
    sizes = tuple(eqn.params.get("slice_sizes", (*table[:axis], 1, *table[axis + 1 :])))
    there = (*range(axis), *range(axis + many, len(table) - 1 + many))
    return axis if tuple(window) == there and sizes == (*table[:axis], 1, *table[axis + 1 :]) else 0


def _numbers(at: jax.Array, before: int, length: int, fills: bool) -> jax.Array:
    """The numbers of rows of all tables, `before` of so many rows each: of those outside of a table the nearest, or -1
    where nothing is there.
    """
    first = lax.mul(lax.iota(jnp.int32, before), jnp.int32(length))[:, None]
    inside = lax.clamp(jnp.int32(0), at, jnp.int32(length - 1))
    numbers = first + inside
    numbers = jnp.where(inside == at, numbers, jnp.int32(-1)) if fills else numbers
    return jnp.reshape(numbers, (-1, 1))


def _reading(params: Mapping[str, Any], width: int) -> dict[str, object]:
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return {**params, "dimension_numbers": numbers, "slice_sizes": (1, width), "indices_are_sorted": False}


def _writing(params: Mapping[str, Any]) -> dict[str, object]:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    return {**params, "dimension_numbers": numbers, "indices_are_sorted": False}


__all__ = ["by_rows"]
