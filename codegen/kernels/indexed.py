"""Rows that s32 indices name: read from a table (gather), joined into one (scatter), or both at once (a sum).

Kernels get (operand addresses, loop indices, own words) of the nest driver; `rules/indexing.py` says which gathers and
scatters these are.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..native.layout import MAX_RANK
from ..program import Literal, Op, Unsupported, Value, itemsize, kind
from ..rules.expressions import Expr
from ..rules.indexing import gathered, scattered
from ..rules.sums import Sum
from ..segment.context import RAW_BYTES, Context
from ..segment.steps import Kernel
from ..segment.storage import Storage, dense
from ..target import Target
from . import elementwise, moves
from .expressions import emit
from .kept_weights import as_cast
from .nests import maximum, minimum, vectors
from .simd import Builder
from .vectors import I32, I64, i64

ITEM = 1 << 13  # floats that are worth a work item
LAST = MAX_RANK - 1  # the innermost loop of a nest
AHEAD = 12  # pairs of indices by which a sum asks for rows in advance
LISTED = 256  # of which those of a part are listed at a time


def gather(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Rows of a table by s32 index [..., k] (an embedding, a node's neighbours).

    Raises `Unsupported` for other types, for another gather than of whole rows, for one that fills with another number
    than NaN, and for a result whose elements do not lie side by side.
    """
    table, index = op.ins
    rows = gathered(op)
    if rows is None:
        raise Unsupported("a gather other than of whole rows")
    fills = rows.mode == "fill"
    if kind(op.out.dtype) not in ("f" if fills else "fib") or index.dtype != "int32":
        raise Unsupported(f"a gather from {table} by {index}")
    s, dtype = _table(ctx, table)
    i, y = _dense(ctx, index), ctx.output(op.out)
    if not y.dense:
        raise Unsupported("a gather into a strided result")
    n = index.size // rows.places if isinstance(index, Value) else 0
    block = elementwise.even(n, max(1, ITEM // max(rows.width, 1)), ctx.threads)
    operands = [(i, (4 * rows.places * block,), 0), (s, (0,), 0), (y, (4 * rows.width * block,), 0)]
    kernel = Kernel(("gather", rows.mode, rows.places, rows.tables > 1, rows.width == 1, dtype))
    words = [n, block, *rows.words(itemsize(dtype) if dtype else 4)]
    elementwise.nest(ctx, kernel, words, (-(-n // block),), operands, 2, 1, block * max(1, rows.width // ctx.target.vl))
    return rest


def _table(ctx: Context, table: Value | Literal) -> tuple[Storage, str]:
    """Where the rows of a table lie side by side, and as which narrow type ("": in 4 bytes): a large constant is read
    as it is stored. Raises `Unsupported` as `_dense`.
    """
    if isinstance(table, Value) and table in ctx.consts:
        kept = as_cast(table)
        if kind(kept.dtype) == "f" and itemsize(kept.dtype) < 4 and kept.nbytes >= RAW_BYTES:
            return dense(ctx.raw_const(kept), table.shape), kept.dtype
    return _dense(ctx, table), ""


def scatter(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """A copy of the operand (itself, where nobody else needs it), into whose rows, named by s32 index [..., k], those
    of the updates are joined in order (`segment_sum`, the gradient of an embedding). Each thread has rows of its own
    and looks through all indices.

    Raises `Unsupported` for other types, for another scatter than of whole rows, and for a result whose elements do
    not lie side by side.
    """
    operand, index, updates = op.ins
    rows = scattered(op)
    if rows is None:
        raise Unsupported("a scatter other than of whole rows")
    if (op.out.dtype, index.dtype) not in JOINS.get(op.prim, {}):
        raise Unsupported(f"a {op.prim} into {operand} by {index}")
    if not isinstance(operand, Value) or not isinstance(index, Value):
        raise Unsupported("a scatter of a literal")
    s, i, before = _dense(ctx, updates), _dense(ctx, index), ctx.storage(operand)
    if ctx.yields(operand, op) and before.dense and updates is not operand:
        ctx.place(op.out, before)
    y = ctx.output(op.out)
    if not y.dense:
        raise Unsupported("a scatter into a strided result")
    if (before.buffer, before.offset) != (y.buffer, y.offset):
        elementwise.copy(ctx, before, y)
    many = rows.tables if rows.tables > 1 else rows.limits[0]
    share = -(-many // (ctx.threads if index.size // rows.places * rows.width > ITEM else 1))
    kernel = Kernel(("scatter", op.prim, op.out.dtype, rows.mode, rows.places, rows.tables > 1, rows.width == 1))
    words = [index.size // rows.places, share, *rows.words()]
    parts = -(-many // share)
    operands = [(i, (0,), 0), (s, (0,), 0), (y, (0,), 0)]
    work = index.size // rows.places * (1 + rows.width // ctx.target.vl // parts)
    elementwise.nest(ctx, kernel, words, (parts,), operands, 2, 1, work)
    return rest


def sum_rows(ctx: Context, total: Sum) -> None:
    """Rows of a table by s32 index, changed element by element and joined in order into the rows that other indices
    name; what is in between is never stored. Wide rows are divided by columns, others as `scatter` divides them.

    Raises `Unsupported` for a join or a type that there is none of, and for a result whose elements do not lie side by
    side.
    """
    op, rows = total.scatter, total.target
    operand = op.ins[0]
    if (op.out.dtype, op.ins[1].dtype) not in JOINS.get(op.prim, {}) or not isinstance(operand, Value):
        raise Unsupported(f"a {op.prim} into {operand} by {op.ins[1]}")
    for o in total.before:
        if o.prim == "reshape":
            moves.reshape(ctx, o, ())
        else:
            elementwise.tail(ctx, (o,), o.out)
    table, source, target = (_dense(ctx, v) for v in (*total.gather.ins, op.ins[1]))
    y = ctx.output(op.out)
    if not y.dense:
        raise Unsupported("a sum of rows into a strided result")
    elementwise.copy(ctx, ctx.storage(operand), y)
    n, vl = math.prod(total.gather.out.shape[:1]), ctx.target.vl
    threads = ctx.threads if n * rows.width > ITEM else 1
    by_columns = rows.width >= vl * threads
    columns = -(-rows.width // (vl * threads)) * vl if by_columns else rows.width
    share = rows.limits[0] if by_columns else -(-rows.limits[0] // threads)
    loops = (-(-rows.limits[0] // share), -(-rows.width // columns))
    views = [elementwise.read(ctx, v, len(total.gather.out.shape)) for v in total.views]
    if any(kind == "v" and x[1][1:] != y.strides[1:] for kind, x in zip(total.kinds, views, strict=True)):
        raise Unsupported("a sum of rows whose operands lie across each other")
    here = [(x[0], (0, 4 * columns if kind == "v" else 0), x[2]) for kind, x in zip(total.kinds, views, strict=True)]
    moving = (0, 4 * columns)
    operands = [(source, (0, 0), 0), (target, (0, 0), 0), (table, moving, 0), (y, moving, 0), *here]
    kernel = Kernel(("sum", op.prim, rows.mode, rows.width == 1, by_columns, total.expr, total.kinds))
    words = [n, share, columns, rows.width, total.source.limits[0], rows.limits[0], *(x[1][0] for x in views)]
    elementwise.nest(ctx, kernel, words, loops, operands, 3, 1, n * max(1, columns // vl) / loops[0])


def _dense(ctx: Context, v: object) -> Storage:
    """Where an operand's elements lie side by side. Raises `Unsupported` for a literal and for an unknown type."""
    if not isinstance(v, Value) or not kind(v.dtype):
        raise Unsupported(f"rows of {v}")
    return elementwise.dense(ctx, ctx.storage(v))


# -- kernels -----------------------------------------------------------------------------------------

Join = Callable[[Builder, ir.Value, ir.Value], ir.Value]  # (what is there, the update) -> what is there then


def _minimum(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    return v.maximum(a, b, "<")


def _integers(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    return v.floats(v.b.add(v.bits(a), v.bits(b)))


#: primitive -> (type of the result, of the index) -> how an update joins what is there
JOINS: dict[str, dict[tuple[str, str], Join]] = {
    "scatter-add": {
        ("float32", "int32"): lambda v, a, b: v.b.fadd(a, b),
        ("int32", "int32"): _integers,
        ("bfloat16", "int32"): lambda v, a, b: v.floats(v.bfloat(v.b.fadd(a, b))),
        ("float16", "int32"): lambda v, a, b: v.half(v.b.fadd(a, b)),
    },
    "scatter-sub": {("float32", "int32"): lambda v, a, b: v.b.fsub(a, b)},
    "scatter-mul": {("float32", "int32"): lambda v, a, b: v.b.fmul(a, b)},
    "scatter-max": {("float32", "int32"): lambda v, a, b: v.maximum(a, b)},
    "scatter-min": {("float32", "int32"): _minimum},
    "scatter": {(t, "int32"): lambda v, a, b: b for t in ("float32", "int32", "bool", "bfloat16", "float16")},
}


def _place(v: Builder, at: ir.Value, words: ir.Value, places: int, clamp: bool) -> tuple[list[ir.Value], ir.Value]:
    """The indices at an address, clamped if wished, and whether all of them lie inside."""
    found, inside = [], ir.Constant(ir.IntType(1), 1)
    for j in range(places):
        limit = v.ld64(words, 5 + 2 * j)
        i = v.b.sext(v.b.load(v.ptr(v.add(at, 4 * j), I32)), limit.type)
        inside = v.b.and_(inside, v.b.icmp_unsigned("<", i, limit))
        found.append(minimum(v, maximum(v, i, i64(0)), v.b.sub(limit, i64(1))) if clamp else i)
    return found, inside


def _offset(v: Builder, table: ir.Value, indices: list[ir.Value], words: ir.Value) -> ir.Value:
    """Bytes from the first table's begin to the row that indices name in table number `table`."""
    total = v.b.mul(table, v.ld64(words, 4))
    for j, i in enumerate(indices):
        total = v.add(total, v.b.mul(i, v.ld64(words, 6 + 2 * j)))
    return total


def _row(v: Builder, single: bool, width: ir.Value, body: Callable[[Builder, ir.Value], None]) -> None:
    """`body(builder, offset in bytes)` for the vectors of a row."""
    if single:
        body(v.scalar_view(), i64(0))
    else:
        vectors(v, width, lambda o: body(v, o))


@family("gather")
def _gather(name: str, key: Spec, target: Target) -> str:
    """("gather", mode, indices, batched, single, dtype): rows one behind the other, of a table as it is stored ("": in
    4 bytes). Operands: index, table, out; the innermost loop counts blocks of rows.

    Words: rows, rows of a block, then those of `Rows`. The mode "fill" writes NaN for a row outside, the others take
    the nearest; `batched`: there are several tables; `single`: a row is one float.
    """
    _, mode, places, batched, single, dtype = key
    v = Builder(name, 3, target.vl)
    where, loops, words = v.args
    at, table, out = (v.ld64(where, i) for i in range(3))
    n, block, width, each = (v.ld64(words, i) for i in range(4))
    first = v.b.mul(v.ld64(loops, LAST), block)
    count = minimum(v, block, v.b.sub(n, first))
    with v.loop(count) as r:
        indices, inside = _place(v, v.add(at, v.mul(r, 4 * places)), words, places, True)
        number = v.b.sdiv(v.add(first, r), each) if batched else i64(0)
        source = v.add(table, _offset(v, number, indices, words))
        to = v.add(out, v.b.mul(v.mul(r, 4), width))

        copy = functools.partial(_copied, source, to, inside if mode == "fill" else None, dtype)
        _row(v, single, width, copy)
    return v.finish()


def _copied(source: ir.Value, to: ir.Value, inside: ir.Value | None, dtype: str, v: Builder, o: ir.Value) -> None:
    """Copies a vector at an offset; NaN where the row is not inside (None: it always is)."""
    if dtype:
        value = v.load_stored(v.add(source, v.b.sdiv(o, i64(4 // itemsize(dtype)))), dtype)
    else:
        value = v.load(v.add(source, o))
    if inside is not None:
        value = v.b.select(inside, value, v.const(float("nan")))
    v.store(value, v.add(to, o))


@family("scatter")
def _scatter(name: str, key: Spec, target: Target) -> str:
    """("scatter", primitive, type, mode, indices, batched, single): joins the rows of the updates that belong to a
    part of the result. Operands: index, updates, result; the innermost loop counts parts.

    Words: rows of the updates, the range of a part on the first index (`batched`: of tables), then those of `Rows`. In
    the mode "clip" a row outside is the nearest, in others it is left out.
    """
    _, prim, dtype, mode, places, batched, single = key
    join = JOINS[prim][dtype, "int32"]
    v = Builder(name, 3, target.vl)
    where, loops, words = v.args
    at, updates, out = (v.ld64(where, i) for i in range(3))
    n, share, width, each = (v.ld64(words, i) for i in range(4))
    low = v.b.mul(v.ld64(loops, LAST), share)
    high = v.add(low, share)
    number = lambda r: v.b.sdiv(r, each) if batched else i64(0)
    place = lambda r: _place(v, v.add(at, v.mul(r, 4 * places)), words, places, mode == "clip")

    def mine(r: ir.Value) -> ir.Value:
        indices, inside = place(r)
        lead = number(r) if batched else indices[0]
        here = v.b.and_(v.b.icmp_signed(">=", lead, low), v.b.icmp_signed("<", lead, high))
        return here if mode == "clip" else v.b.and_(here, inside)

    def joins(r: ir.Value, _later: ir.Value) -> None:
        to = v.add(out, _offset(v, number(r), place(r)[0], words))
        source = v.add(updates, v.b.mul(v.mul(r, 4), width))
        _row(v, single, width, functools.partial(_joined, join, source, to))

    _listed(v, n, mine, joins)
    return v.finish()


def _listed(
    v: Builder, n: ir.Value, mine: Callable[[ir.Value], ir.Value], body: Callable[[ir.Value, ir.Value], None]
) -> None:
    """`body(r, a later one)` for those r in range(n) that are `mine`, in order. They are listed first, `LISTED` at a
    time: a jump that depends on each index is guessed wrong as often as not.
    """
    with v.b.goto_entry_block():
        table = v.b.ptrtoint(v.b.alloca(ir.ArrayType(I64, LISTED)), I64)
    at = lambda k: v.ptr(v.add(table, v.mul(k, 8)), I64)
    with v.loop(v.b.sdiv(v.add(n, LISTED - 1), i64(LISTED))) as block:
        first = v.mul(block, LISTED)
        with v.carry(minimum(v, i64(LISTED), v.b.sub(n, first)), [i64(0)]) as (i, (many,), done):
            r = v.add(first, i)
            v.b.store(r, at(many))
            done([v.add(many, v.b.zext(mine(r), I64))])
        (many,) = v.carried
        last = v.b.sub(many, i64(1))
        with v.loop(many) as k:
            body(v.b.load(at(k)), v.b.load(at(minimum(v, v.add(k, AHEAD), last))))


def _joined(join: Join, source: ir.Value, to: ir.Value, v: Builder, o: ir.Value) -> None:
    """Joins a vector of an update at an offset with what is there."""
    v.store(join(v, v.load(v.add(to, o)), v.load(v.add(source, o))), v.add(to, o))


@family("sum")
def _sum(name: str, key: Spec, target: Target) -> str:
    """("sum", primitive, mode, single, by columns, expr, kinds): joins rows of a table, changed by `expr`, into the
    result. Operands: source index, target index, table, result, then those of the expression behind the row. The
    innermost loops count parts of the result's rows and of its columns.

    Words: pairs of indices, rows of a part, columns of a part, floats of a row, rows of the table, rows of the result,
    then the bytes from one row to the next of each operand of the expression. In the mode "clip" a target outside is
    the nearest row, in others it is left out.
    """
    _, prim, mode, single, by_columns, expr, kinds = key
    join = JOINS[prim]["float32", "int32"]
    v = Builder(name, 3, target.vl)
    where, loops, words = v.args
    froms, tos, table, out, *views = (v.ld64(where, i) for i in range(4 + len(kinds)))
    n, share, columns, width, rows, limit = (v.ld64(words, i) for i in range(6))
    steps = [v.ld64(words, 6 + i) for i in range(len(kinds))]
    count = minimum(v, columns, v.b.sub(width, v.b.mul(v.ld64(loops, LAST), columns)))
    low = v.b.mul(v.ld64(loops, LAST - 1), share)
    high = minimum(v, limit, v.add(low, share))
    stride = v.mul(width, 4)
    index = lambda base, r: v.b.sext(v.b.load(v.ptr(v.add(base, v.mul(r, 4)), I32)), n.type)
    within = lambda i, m: minimum(v, maximum(v, i, i64(0)), v.b.sub(m, i64(1)))
    target_of = lambda r: within(index(tos, r), limit) if mode == "clip" else index(tos, r)

    def mine(r: ir.Value) -> ir.Value:
        i = target_of(r)
        return v.b.and_(v.b.icmp_signed(">=", i, low), v.b.icmp_signed("<", i, high))

    def sums(r: ir.Value, later: ir.Value) -> None:
        for base, at, m in ((table, froms, rows), (out, tos, limit)):  # the hardware cannot guess the next rows
            place = v.add(base, v.b.mul(within(index(at, later), m), stride))
            for line in range(1 if single else 2):
                v.prefetch(v.add(place, 64 * line))
        to = v.add(out, v.b.mul(target_of(r), stride))
        row = v.add(table, v.b.mul(within(index(froms, r), rows), stride))
        places = [v.add(x, v.b.mul(r, s)) for x, s in zip(views, steps, strict=True)]
        _row(v, single, count, functools.partial(_summed, join, expr, kinds, row, to, places))

    if not by_columns:
        _listed(v, n, mine, sums)
        return v.finish()
    last = v.b.sub(n, i64(1))
    with v.loop(n) as r, contextlib.nullcontext() if mode == "clip" else v.b.if_then(mine(r)):
        sums(r, minimum(v, v.add(r, AHEAD), last))
    return v.finish()


def _summed(
    join: Join,
    expr: Expr,
    kinds: tuple[str, ...],
    row: ir.Value,
    to: ir.Value,
    places: list[ir.Value],
    v: Builder,
    o: ir.Value,
) -> None:
    """Joins a vector of a row, at an offset, with what is there."""

    def operand(k: int) -> ir.Value:
        if k == 0:
            return v.load(v.add(row, o))
        return v.broadcast(places[k - 1]) if kinds[k - 1] == "s" else v.load(v.add(places[k - 1], o))

    v.store(join(v, v.load(v.add(to, o)), emit(v, expr, operand)), v.add(to, o))


__all__ = ["JOINS", "gather", "scatter", "sum_rows"]
