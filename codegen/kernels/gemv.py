"""One row times a large matrix that is read once, where it lies and as it is stored: as fast as memory, no packed copy.

Memory is fast where a thread reads what lies side by side, in a few streams. So threads divide the matrix by rows, and
each sums up whole rows of it; what several of them have summed is added by a second step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..program import Value, itemsize
from ..rules.expressions import COPY, Expr
from ..segment.assembly import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Storage
from ..target import Target
from .elementwise import Operand, nest
from .expressions import emit
from .nests import LAST, chunk_of, maximum, vectors
from .product import Lane
from .simd import Builder, i64

STREAMS = 8  # rows that are read at a time
AHEAD = 1024  # bytes by which each of them is asked for in advance
ITEM_BYTES = 1 << 16  # of weights that are worth a work item
ITEMS = 2  # for each thread: who is put aside meanwhile leaves some to the others
WIDE = 1 << 15  # columns whose sums stay in the caches
LINE = 64  # bytes of a cache line


def add_gemv(ctx: Context, x: Ref, w: Value, sizes: tuple[int, int], lanes: Sequence[Lane], expr: Expr) -> None:
    """Appends lanes[0] = `expr` of x @ w and of the other lanes; x f32 [K] side by side, `w` a constant that lies as
    [K, N], which are the `sizes`.
    """
    k, n = sizes
    parts = _parts(ctx.threads, k, n * itemsize(w.dtype))
    kinds = tuple({4: "v", 0: "s"}[lane.channel] for lane in lanes[1:])
    if parts == 1:
        return _sums(ctx, x, w, (k, n, k), [_walked(lane.ref, 0, lane.channel * WIDE) for lane in lanes], expr, kinds)
    rows = -(-k // parts // STREAMS) * STREAMS
    parts = -(-k // rows)
    y = ctx.scratch((parts, n))
    _sums(ctx, x, w, (k, n, rows), [_walked(Ref(y.buffer, y.offset), 4 * n, 4 * WIDE)], COPY, ())
    chunk = max(LINE, -(-n // ctx.threads // LINE) * LINE)
    operands = [_walked(Ref(y.buffer, y.offset), 4 * chunk), *(_walked(z.ref, z.channel * chunk) for z in lanes)]
    units = -(-chunk // ctx.target.vl) * (parts + len(expr))
    nest(ctx, Kernel(("parts", expr, kinds)), [n, chunk, parts, 4 * n], (-(-n // chunk),), operands, 1, 1, units)


def _parts(threads: int, k: int, row: int) -> int:
    """How many parts of the rows are summed apart, for K rows of so many bytes."""
    return 1 if threads == 1 else max(1, min(ITEMS * threads, k * row // ITEM_BYTES, k // STREAMS))


def _walked(ref: Ref, *steps: int) -> Operand:
    """An operand of a nest by the bytes from one iteration of each loop to the next."""
    return Storage(ref.buffer, ref.offset, (), (), ()), steps, 0


def _sums(
    ctx: Context,
    x: Ref,
    w: Value,
    sizes: tuple[int, int, int],
    lanes: Sequence[Operand],
    expr: Expr,
    kinds: tuple[str, ...],
) -> None:
    """The step that sums up rows to lanes[0], by parts and runs of columns. `sizes`: K, N, rows of a part."""
    (k, n, rows), size = sizes, itemsize(w.dtype)
    raw = _walked(Ref(ctx.raw_const(w), 0), size * n * rows, size * WIDE)
    kernel, words = Kernel(("gemv", expr, kinds, w.dtype)), [k, rows, size * n, n, WIDE]
    operands = [_walked(x, 4 * rows, 0), raw, *lanes]
    units = rows * -(-min(n, WIDE) // ctx.target.vl)
    nest(ctx, kernel, words, (-(-k // rows), -(-n // WIDE)), operands, 2, 1, units)


@family("gemv")
def gemv(name: str, key: Spec, target: Target) -> str:
    """("gemv", expr, kinds, dtype): y = epilogue(x @ W) for some rows and a range of columns; x [K], y [N] of f32, W
    [K, N] of `dtype` as the user stores it.

    Loops end in (parts of the rows, runs of columns). Operands: x, W, y, the epilogue's ("v" or "s"). Words: K, rows of
    a part, bytes of a row, N, columns of a run.
    """
    _, expr, kinds, dtype = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x, w, y = (v.ld64(where, i) for i in range(3))
    k = chunk_of(v, v.ld64(index, LAST - 1), v.ld64(words, 0), v.ld64(words, 1))
    n = chunk_of(v, v.ld64(index, LAST), v.ld64(words, 3), v.ld64(words, 4))
    columns = _Columns(v, x, w, y, v.ld64(words, 2), n, dtype)
    vectors(v, n, lambda o: v.store(v.const(0.0), v.add(y, o)))
    groups = v.b.sdiv(k, i64(STREAMS))
    with v.loop(groups) as g:
        columns.add_rows(v.mul(g, STREAMS), STREAMS)
    with v.loop(v.b.srem(k, i64(STREAMS))) as r:
        columns.add_rows(v.add(v.mul(groups, STREAMS), r), 1)
    if expr != COPY:
        _finished(
            v, n, expr, kinds, [v.ld64(where, 2 + i) for i in range(1 + len(kinds))], lambda o: v.load(v.add(y, o))
        )
    return v.finish()


@family("parts")
def parts(name: str, key: Spec, target: Target) -> str:
    """("parts", expr, kinds): y = epilogue(the sum of some rows of f32), for a range of columns.

    Operands: the rows, y, the epilogue's ("v" or "s"). Words: N, columns of a run, rows, bytes from one to the next.
    """
    _, expr, kinds = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    rows, step, n = (
        v.ld64(words, 2),
        v.ld64(words, 3),
        chunk_of(v, v.ld64(index, LAST), v.ld64(words, 0), v.ld64(words, 1)),
    )
    x, bases = v.ld64(where, 0), [v.ld64(where, 1 + i) for i in range(1 + len(kinds))]

    def total(o: ir.Value) -> ir.Value:
        with v.carry(rows, [v.const(0.0)]) as (r, acc, done):
            done([v.b.fadd(acc[0], v.load(v.add(x, v.b.mul(r, step), o)))])
        return v.carried[0]

    _finished(v, n, expr, kinds, bases, total)
    return v.finish()


def _finished(
    v: Builder,
    n: ir.Value,
    expr: Expr,
    kinds: tuple[str, ...],
    bases: Sequence[ir.Value],
    total: Callable[[ir.Value], ir.Value],
) -> None:
    """Writes the epilogue of the sums that `total(offset)` gives to n columns at bases[0]; the other bases are of what
    it reads.
    """

    def body(o: ir.Value) -> None:
        def operand(i: int) -> ir.Value:
            if i == 0:
                return acc
            return v.load(v.add(bases[i], o)) if kinds[i - 1] == "v" else v.broadcast(bases[i])

        acc = total(o)
        v.store(emit(v, expr, operand), v.add(bases[0], o))

    vectors(v, n, body)


@dataclasses.dataclass(frozen=True)
class _Columns:
    """`n` columns of y += x @ W, by addresses; a row of W has `step` bytes of elements of `dtype`."""

    v: Builder
    x: ir.Value
    w: ir.Value
    y: ir.Value
    step: ir.Value
    n: ir.Value
    dtype: str

    def add_rows(self, first: ir.Value, count: int) -> None:
        """Adds to y what `count` rows from number `first` on contribute.

        What is asked for in advance comes in the order of reading: behind these rows' ends the beginnings of the next.
        """
        v, size = self.v, itemsize(self.dtype)
        xs = [v.broadcast(v.add(self.x, v.mul(v.add(first, r), 4))) for r in range(count)]
        ws = [v.add(self.w, v.b.mul(v.add(first, r), self.step)) for r in range(count)]
        each = max(1, LINE // (size * v.vl))  # vectors of a line
        ahead = AHEAD // (each * v.vl * size)  # turns of the loop
        turns = v.b.sdiv(self.n, i64(each * v.vl))
        near = maximum(v, v.b.sub(turns, i64(ahead)), i64(0))
        last = v.b.sub(v.mul(self.step, count), v.mul(self.n, size))

        def vector(o: ir.Value) -> None:
            acc = v.load(v.add(self.y, v.mul(o, 4)))
            for r in range(count):
                acc = v.fma(xs[r], v.load_stored(v.add(ws[r], v.mul(o, size)), self.dtype), acc)
            v.store(acc, v.add(self.y, v.mul(o, 4)))

        for begin, end, shift in ((i64(0), near, i64(0)), (near, turns, last)):
            with v.loop(v.b.sub(end, begin)) as i:
                at = v.mul(v.add(begin, i), each * v.vl)
                for r in range(count):
                    v.prefetch(v.add(ws[r], v.mul(at, size), shift, AHEAD))
                for u in range(each):
                    vector(v.add(at, u * v.vl))
        done = v.mul(turns, each * v.vl)
        vectors(v, v.b.sub(self.n, done), lambda o: vector(v.add(done, v.b.sdiv(o, i64(4)))))
