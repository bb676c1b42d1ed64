"""Products of rows in groups with a matrix each (`jax.lax.ragged_dot`), as products with chosen matrices: only those of
groups that have rows are read.

    y[r] = x[r] @ w[group of r]          rows of a group follow each other; those behind the last group are 0

A few rows choose a matrix each. More of them are put into blocks of one group each, which choose one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from ..compat import ClosedJaxpr, JaxprEqn, shape_of

MOST_ROWS = 16  # of a block
MOST_BYTES = 1 << 30  # of chosen matrices, which XLA has to gather
EXACT = 1 << 24  # rows that f32 counts

Product = Callable[[jax.Array, jax.Array], jax.Array]


def grouped(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What an equation computes, with chosen matrices; None for one that is no such product, or chooses too many."""
    if eqn.primitive.name != "ragged_dot_general":
        return None
    shapes = [shape_of(v) for v in eqn.invars[:3]]
    x, w = shapes[:2]
    p = eqn.params["ragged_dot_dimension_numbers"]
    plain = tuple(map(tuple, p.dot_dimension_numbers[0])) == ((1,), (1,)) and not any(p.dot_dimension_numbers[1])
    rows_in_groups = tuple(p.lhs_ragged_dimensions) == (0,) and tuple(p.rhs_group_dimensions) == (0,)
    fits = plain and rows_in_groups and len(eqn.invars) == 3 and (len(x.shape), len(w.shape)) == (2, 3)
    if not fits or eqn.params.get("group_offset") is not None or not 0 < x.shape[0] < EXACT:
        return None
    rows, groups = x.shape[0], w.shape[0]
    block = min(MOST_ROWS, 1 << max(0, (rows - 1) // groups).bit_length())
    count = rows if block == 1 else rows // block + groups
    if 4 * count * w.shape[1] * w.shape[2] > MOST_BYTES:
        return None
    product = functools.partial(
        lax.dot_general,
        dimension_numbers=(((2,), (1,)), ((0,), (0,))),
        precision=eqn.params["precision"],
        preferred_element_type=eqn.params["preferred_element_type"],
    )
    fn = functools.partial(_one_by_one, product) if block == 1 else functools.partial(_in_blocks, product, block, count)
    return jax.make_jaxpr(fn)(*shapes)


def _one_by_one(product: Product, x: jax.Array, w: jax.Array, sizes: jax.Array) -> jax.Array:
    """Each row chooses a matrix."""
    group = _below(_sums(sizes), len(x))
    y = product(x[:, None], _taken(w, group))[:, 0]
    return jnp.where((group < len(w))[:, None], y, 0)


def _in_blocks(product: Product, block: int, count: int, x: jax.Array, w: jax.Array, sizes: jax.Array) -> jax.Array:
    """Each of `count` blocks of `block` rows chooses a matrix; some rows of a group's last block are not its own."""
    ends = _sums(sizes)
    begins, group = ends - sizes, _below(ends, len(x))
    blocks = (sizes + block - 1) // block
    last = _sums(blocks)
    first, owner = last - blocks, _below(last, count)
    number = jnp.arange(count, dtype=jnp.int32)
    source = (_taken(begins, owner) + (number - _taken(first, owner)) * block)[:, None] + jnp.arange(block)
    y = product(_taken(x, source), _taken(w, owner)).reshape(count * block, -1)
    inside = jnp.arange(len(x), dtype=jnp.int32) - _taken(begins, group)
    y = _taken(y, _taken(first, group) * block + inside)
    return jnp.where((group < len(w))[:, None], y, 0)


def _taken(x: jax.Array, index: jax.Array) -> jax.Array:
    """Rows by an index; one outside is the nearest."""
    return jnp.take(x, index, axis=0, mode="clip")


def _sums(sizes: jax.Array) -> jax.Array:
    """Of each group the sum of the sizes up to it, s32 [groups]."""
    n = len(sizes)
    upto = jnp.arange(n)[None, :] <= jnp.arange(n)[:, None]
    return jnp.sum(jnp.where(upto, sizes.astype(jnp.float32)[None, :], 0.0), axis=1).astype(jnp.int32)


def _below(ends: jax.Array, count: int) -> jax.Array:
    """For each number below `count` how many ends are not above it, s32 [count]: whose it is."""
    passed = ends[None, :] <= jnp.arange(count, dtype=jnp.int32)[:, None]
    return jnp.sum(passed.astype(jnp.float32), axis=1).astype(jnp.int32)


__all__ = ["grouped"]
