"""Gathers and scatters of whole rows: what the parameters of JAX's general ones amount to, and what they mean."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..program import Op
from .numpy_rules import Array

#: what happens to a row that lies outside: "fill" (scatters: it is left out), or it is the nearest one
MODES = {"FILL_OR_DROP": "fill", "CLIP": "clip", "PROMISE_IN_BOUNDS": "clip", "ONE_HOT": ""}


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of `width` elements that follow each other in a table; each is named by an index on each of some axes, whose
    lengths are `limits`. With `tables` larger than 1 the table is so many of them, one behind the other, and the
    indices are too: `each` of them are one table's.
    """

    limits: tuple[int, ...]
    width: int
    mode: str
    tables: int
    each: int

    @property
    def places(self) -> int:
        """How many indices name a row."""
        return len(self.limits)

    def words(self, element: int = 4) -> tuple[int, ...]:
        """Elements of a row; rows of a table that are named, bytes from a table to the next; for each index its limit
        and the bytes from one to the next (elements of so many bytes).
        """
        steps = [element * self.width * math.prod(self.limits[j:]) for j in range(self.places + 1)]
        pairs = zip(self.limits, steps[1:], strict=True)
        return (self.width, max(self.each, 1), steps[0], *(x for pair in pairs for x in pair))


@dataclasses.dataclass(frozen=True)
class _Numbers:
    """What a gather and a scatter have in common: which axes of the table are named, which go along with the leading
    ones of the indices, and which of the rows' elements have axes of their own.
    """

    named: tuple[int, ...]
    indexed: tuple[int, ...]
    table_batch: tuple[int, ...]
    index_batch: tuple[int, ...]
    window: tuple[int, ...]


def _rows(table: tuple[int, ...], index: tuple[int, ...], numbers: _Numbers, mode: str) -> Rows | None:
    """The rows of a table by indices of these shapes; None where they are no whole rows."""
    k, b = index[-1] if index else 0, len(numbers.table_batch)
    batch = len(index) - 1
    axes = tuple(range(b, b + k))
    fits = (
        k > 0
        and tuple(numbers.named) == tuple(numbers.indexed) == axes
        and tuple(numbers.table_batch) == tuple(numbers.index_batch) == tuple(range(b))
        and tuple(numbers.window) == tuple(range(batch, batch + len(table) - b - k))
    )
    if not fits or not mode:
        return None
    limits, width = table[b : b + k], math.prod(table[b + k :])
    return Rows(limits, width, mode, math.prod(table[:b]), math.prod(index[b:-1]))


def outside(prim: str, mode: object) -> str:
    """What happens to rows outside, as in `MODES`, of a gather or a scatter in this mode of JAX's ("" for another one):
    a promise that is broken must not write elsewhere, such a row is left out.
    """
    name = str(mode).rpartition(".")[2].upper()
    promised = name == "PROMISE_IN_BOUNDS" and prim != "gather"
    return "fill" if promised else MODES.get(name, "")


def gathered(op: Op) -> Rows | None:
    """The rows that a gather reads; None for a gather of something else."""
    table, index = op.ins[0].shape, op.ins[1].shape
    dn = op.params["dimension_numbers"]
    numbers = _Numbers(
        dn.collapsed_slice_dims,
        dn.start_index_map,
        dn.operand_batching_dims,
        dn.start_indices_batching_dims,
        dn.offset_dims,
    )
    rows = _rows(table, index, numbers, outside(op.prim, op.params["mode"]))
    if rows is None or not np.isnan(op.params.get("fill_value") or np.nan):
        return None
    taken = len(dn.operand_batching_dims) + rows.places
    return rows if tuple(op.params["slice_sizes"]) == (1,) * taken + table[taken:] else None


def scattered(op: Op) -> Rows | None:
    """The rows that a scatter joins its updates into; None for a scatter of something else."""
    table, index, updates = (v.shape for v in op.ins)
    dn = op.params["dimension_numbers"]
    numbers = _Numbers(
        dn.inserted_window_dims,
        dn.scatter_dims_to_operand_dims,
        dn.operand_batching_dims,
        dn.scatter_indices_batching_dims,
        dn.update_window_dims,
    )
    rows = _rows(table, index, numbers, outside(op.prim, op.params["mode"]))
    if rows is None or (op.prim == "scatter" and not _takes_update(op.params.get("update_jaxpr"))):
        return None
    return rows if updates == index[:-1] + table[len(dn.operand_batching_dims) + rows.places :] else None


def scattered_rows(op: Op) -> bool:
    """Whether an operation is a scatter of whole rows."""
    return op.prim.startswith("scatter") and scattered(op) is not None


def _takes_update(jaxpr: Any) -> bool:
    """Whether a scatter's function of what is there and the update is the update."""
    return jaxpr is None or (not jaxpr.eqns and jaxpr.outvars[0] is jaxpr.invars[1])


# -- meaning, by NumPy -------------------------------------------------------------------------------


def gather(op: Op, table: Array, index: Array) -> Array:
    """Rows of a table by an index [..., k]; one outside is the nearest row, or NaN in the mode that fills.

    Raises `NotImplementedError` for another gather.
    """
    rows = gathered(op)
    if rows is None:
        raise NotImplementedError("A gather other than of whole rows has no NumPy reference.")
    at, inside = _named(index, rows)
    found = table.reshape(-1, rows.width)[at]
    if rows.mode == "fill":
        found = np.where(inside[:, None], found, np.nan)
    return found.reshape(op.out.shape)


def _named(index: Array, rows: Rows) -> tuple[Array, Array]:
    """The numbers of the rows, all tables counted, that indices name, moved inside; and which were inside."""
    flat = np.asarray(index, np.int64).reshape(-1, rows.places)
    limits = np.asarray(rows.limits)
    inside = np.all((flat >= 0) & (flat < limits), axis=-1)
    at = np.ravel_multi_index(tuple(np.clip(flat, 0, limits - 1).T), rows.limits)
    return at + np.arange(len(flat)) // max(rows.each, 1) * math.prod(rows.limits), inside


def scatter(join: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """The rule of a scatter: the updates join the operand's rows one after the other by `join`."""

    def rule(op: Op, operand: Array, index: Array, updates: Array) -> Array:
        rows = scattered(op)
        if rows is None:
            raise NotImplementedError("A scatter other than of whole rows has no NumPy reference.")
        at, inside = _named(index, rows)
        out, added = operand.copy().reshape(-1, rows.width), updates.reshape(-1, rows.width)
        for i, row in enumerate(at):
            if inside[i] or rows.mode == "clip":
                out[row] = join(out[row], added[i])
        return out.reshape(operand.shape)

    return rule


def joined(op: Op) -> int:
    """FLOP of a scatter: one for every element of the updates."""
    return math.prod(op.ins[2].shape)


__all__ = ["Rows", "gather", "gathered", "joined", "scatter", "scattered", "scattered_rows"]
