"""Products with matrices that indices choose from a table, as layers of experts have them: only the chosen ones need
to be read.

    take(table [E, K, N], index [batch.., more..]) -> [batch.., more.., K, N], times x [batch.., M.., K]
    or, summed over the matrices of each row, times x [batch.., M.., more.., K]

The gather and the product are one group then, so that nothing is copied.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from ..program import Op, Value
from .indexing import Rows, gathered
from .products import MATRIX_BYTES


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The operand number `side` of a product is what `gather` takes from its table, cast by `casts`.

    `batch` of the index's axes are batch axes of the product; the others behind them belong to the result alone, or
    are summed too (`summed`). A matrix has `rows` that are summed and `columns`.
    """

    gather: Op
    casts: tuple[Op, ...]
    side: int
    batch: int
    summed: bool
    rows: int
    columns: int

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operations that are not run on their own."""
        return (self.gather, *self.casts)

    @property
    def table(self) -> Value:
        found = self.gather.ins[0]
        assert isinstance(found, Value)
        return found

    @property
    def index(self) -> Value:
        """Its last axis, of length 1, holds the place that names a matrix."""
        found = self.gather.ins[1]
        assert isinstance(found, Value)
        return found

    @property
    def named(self) -> Rows:
        """The table's matrices as rows that indices name."""
        found = gathered(self.gather)
        assert found is not None
        return found


def chosen(product: Op, makers: Mapping[Value, Op]) -> Chosen | None:
    """What a product reads of a table by indices; None where it is no such product. `makers`: value -> the operation
    that makes it, of those that may belong to the product's group.
    """
    if product.prim != "dot_general" or product.ins[0] is product.ins[1]:
        return None
    return next((found for side in (1, 0) if (found := _side(product, side, makers)) is not None), None)


def _side(product: Op, side: int, makers: Mapping[Value, Op]) -> Chosen | None:
    v, casts = product.ins[side], []
    while isinstance(v, Value) and v in makers and makers[v].prim == "convert_element_type":
        casts.append(makers[v])
        v = makers[v].ins[0]
    gather = makers.get(v) if isinstance(v, Value) else None
    if gather is None or gather.prim != "gather":
        return None
    (table, index), rows = gather.ins, gathered(gather)
    if not isinstance(table, Value) or not isinstance(index, Value) or index.dtype != "int32":
        return None
    if rows is None or rows.tables > 1 or rows.places != 1 or len(table.shape) < 3:
        return None
    contract, batch = (tuple(axes[side]) for axes in product.params["dimension_numbers"])
    contract = tuple(sorted(contract))
    lead, first = len(index.shape) - 1, len(batch)
    last = contract[-1] if contract else -1  # columns follow it
    if batch != tuple(range(first)) or first > lead or last not in range(lead, len(v.shape) - 1):
        return None
    summed = contract[0] < lead
    if contract != tuple(range(first if summed else lead, last + 1)):
        return None
    summands = math.prod(v.shape[lead : last + 1])
    columns = rows.width // summands if summands else 0
    return Chosen(gather, tuple(reversed(casts)), side, first, summed, summands, columns) if columns else None


def floating(
    ops: Sequence[Op], readers: Mapping[Value, Sequence[Op]], data: set[Value], outputs: Sequence[Value]
) -> dict[Value, Op]:
    """Value -> the gather or cast that makes it, where products read the table in its place."""
    makers = {op.out: op for op in ops if op.prim in ("gather", "convert_element_type")}
    found: dict[Value, Op] = {}
    for op in ops:
        mine = chosen(op, makers) if any(v in makers for v in op.value_ins) else None
        if mine is None or mine.table in data or mine.named.width * 4 < MATRIX_BYTES:
            continue
        made = [o.out for o in mine.ops]
        if all(len(readers.get(v, [])) == 1 and v not in outputs for v in made):
            found.update({o.out: o for o in mine.ops})
    return found


__all__ = ["Chosen", "chosen", "floating"]
