"""Reductions over leading axes (or over all) fused with what makes their operands: one pass, several results.

Rows [.., C] are cut into runs that do not depend on the number of threads. Each run leaves a partial result of every
reduction; these are joined in their order, so that the same call gives the same bits again.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..program import Value
from ..rules.columns import Columns, span
from ..segment.context import Context
from ..segment.steps import Kernel
from ..segment.storage import Operand, Storage, dense_strides
from ..target import Target
from .elementwise import coalesce, copy, nest, read
from .expressions import emit_nodes
from .nests import LAST, REDUCE, minimum, vectors
from .simd import Builder
from .vectors import F32, i64, vector

ITEM = 1 << 14  # elements of one operand in a kernel call: what a core has done before its neighbour would wait
WIDTH = 512  # columns of a call at most
UNROLL = 4  # rows (or vectors) whose sums do not wait for each other
JOINED = 64  # columns of a call that joins partial results
WORDS = 7  # before the strides of the operands


@dataclasses.dataclass(frozen=True)
class _Loops:
    """The loops of a pass, and the steps in bytes of each operand along them: `around` (first those over `kept` arrays
    with results of their own, then all but the last two of rows), `rows` (outer, inner), `width` columns. `whole`:
    columns are joined too.
    """

    kept: int
    around: tuple[int, ...]
    rows: tuple[int, int]
    width: int
    steps: tuple[tuple[tuple[int, ...], tuple[int, int], int], ...]  # of each operand: around, rows, columns
    whole: bool

    @property
    def runs(self) -> tuple[int, int, int]:
        """Rows (outer, inner) and columns of a kernel call."""
        outer, inner = self.rows
        columns = min(self.width, ITEM if self.whole else WIDTH)
        run = max(1, ITEM // max(columns, 1 if self.whole else 64))
        within = min(inner, run)
        return (min(outer, max(1, run // inner)) if within == inner else 1), within, columns

    @property
    def counts(self) -> tuple[int, ...]:
        """How many calls along each loop."""
        ends = zip((*self.rows, self.width), self.runs, strict=True)
        return (*self.around, *(-(-n // run) for n, run in ends))


def _loops(found: Columns, operands: Sequence[Operand], made: int) -> _Loops | None:
    """None where columns do not lie side by side in an operand that has any; the first `made` have."""
    shape, strides = found.shape, [o[1] for o in operands]
    first, last = span(shape, found.axes)
    whole = math.prod(shape[last:]) == 1
    before, ways = coalesce(shape[:first], [s[:first] for s in strides])
    if before == [1]:
        before, ways = [], [[] for _ in ways]
    dims, walks = coalesce(shape[first:last], [s[first:last] for s in strides])
    if whole:
        width, lanes = dims[-1], [w[-1] for w in walks]
        dims, walks = dims[:-1], [w[:-1] for w in walks]
    else:
        columns, across = coalesce(shape[last:], [s[last:] for s in strides])
        if len(columns) != 1:
            return None
        width, lanes = columns[0], [w[0] for w in across]
    if any(lane not in (0, 4) for lane in lanes) or (width > 1 and 0 in lanes[:made]):
        return None
    fill = [1] * (2 - len(dims))
    dims, walks = [*before, *fill, *dims], [[*b, *(0 for _ in fill), *w] for b, w in zip(ways, walks, strict=True)]
    steps = tuple((tuple(w[:-2]), (w[-2], w[-1]), lane) for w, lane in zip(walks, lanes, strict=True))
    return _Loops(math.prod(before), tuple(dims[:-2]), (dims[-2], dims[-1]), width, steps, whole)


def sweep(ctx: Context, found: Columns, results: Sequence[Value], stored: Sequence[Value]) -> None:
    """Appends the steps of a pass: `results` of its reductions, `stored` elementwise values.

    Raises `Unsupported` for more operands or loops than a nest has.
    """
    rank, outs = len(found.shape), [ctx.output(v) for v in stored]
    operands: list[Operand] = [*((s, s.strides, 0) for s in outs), *(read(ctx, view, rank) for view in found.views)]
    loops = _loops(found, operands, len(outs))
    if loops is None:
        operands = _side_by_side(ctx, found.shape, operands, len(outs))
        loops = _loops(found, operands, len(outs))
    assert loops is not None, "dense arrays have columns side by side"
    made = [s for s, _, _ in operands[: len(outs)]]
    k, counts, runs = len(results), loops.counts, loops.runs
    parts = math.prod(counts if loops.whole else counts[:-1]) // loops.kept
    places = [_place(ctx, v) for v in results]
    width = 1 if loops.whole else loops.width
    partial = places[0] if parts == k == 1 else ctx.scratch((loops.kept, parts, k, width))
    views: list[Operand] = [(partial, _partial_steps(loops, 4 * k * width), 0)]
    for (s, _, offset), (around, rows, lane) in zip(operands, loops.steps, strict=True):
        jumps = (run * step for run, step in zip(runs, (*rows, lane), strict=True))
        views.append((s, (*around, *jumps), offset))
    kinds = tuple("v" if lane == 4 else "s" for _, _, lane in loops.steps)
    spec = ("columns", found.nodes, found.sums, found.stored, kinds, _block(ctx, found, loops), loops.whole)
    sizes = (w for pair in zip((loops.width, *loops.rows[::-1]), runs[::-1], strict=True) for w in pair)
    extra = [*sizes, 4 * width, *(w for _, (outer, inner), _ in loops.steps for w in (inner, outer))]
    units = runs[0] * runs[1] * -(-runs[2] // ctx.target.vl) * len(found.nodes)
    nest(ctx, Kernel(spec), extra, counts, views, 0, 1, units, 1 + len(made))
    if not parts == k == 1:
        _join(ctx, tuple(how for how, _ in found.sums), partial, places)
    for y, out in zip((*places, *made), (*(ctx.output(v) for v in results), *outs), strict=True):
        if y is not out:
            copy(ctx, y, out)


def _side_by_side(ctx: Context, shape: tuple[int, ...], operands: Sequence[Operand], made: int) -> list[Operand]:
    """The operands of a pass in copies where they are not dense arrays of its shape, or one number."""
    found: list[Operand] = []
    for k, (s, strides, offset) in enumerate(operands):
        fits = strides == dense_strides(shape) or not any(strides)
        target = s if fits else ctx.scratch(shape)
        if k >= made and not fits:
            copy(ctx, s, target, strides, offset)
        found.append((target, strides if fits else target.strides, offset if fits else 0))
    return found


def _place(ctx: Context, v: Value) -> Storage:
    """Where a reduction's result is made: side by side."""
    y = ctx.output(v)
    return y if y.dense else ctx.scratch(v.shape)


def _partial_steps(loops: _Loops, part: int) -> tuple[int, ...]:
    """The steps in bytes from one call's partial results to the next one's; `part`: bytes of those of all columns."""
    *rows, columns = loops.counts
    strides, step = ([part], part * columns) if loops.whole else ([4 * loops.runs[2]], part)
    for n in reversed(rows):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def _block(ctx: Context, found: Columns, loops: _Loops) -> int:
    """Vectors of columns whose sums stay in registers together, as long as a row is read in one run."""
    room = max(1, (ctx.target.registers - 8) // max(1, len(found.sums)))
    return max(1, min(-(-loops.runs[2] // ctx.target.vl), room, 8)) if not loops.whole else 1


def _join(ctx: Context, hows: tuple[str, ...], partial: Storage, places: Sequence[Storage]) -> None:
    """Appends the step that joins partial results [kept, parts, reductions, columns]."""
    kept, parts, k, width = partial.shape
    run = min(width, JOINED)
    operands: list[Operand] = [(y, (4 * width, 4 * run), 0) for y in places]
    operands.append((partial, (4 * width * k * parts, 4 * run), 0))
    units = parts * k * -(-run // ctx.target.vl)
    extra = [width, run, parts, 4 * k * width, 4 * width]
    nest(ctx, Kernel(("joined", hows)), extra, (kept, -(-width // run)), operands, 0, 1, units, k)


@family("joined")
def joined(name: str, key: Spec, target: Target) -> str:
    """("joined", reductions): partial results [parts, reductions, columns] in their order, sums in f64.

    Operands: the results, the partial ones. The last loop counts chunks of columns. Words: columns, columns a chunk,
    parts, bytes of a part, bytes of a reduction's columns in it.
    """
    _, hows = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    columns = _run(v, index, words, 0)
    parts, step, gap = (v.ld64(words, i) for i in (2, 3, 4))
    results = [v.ld64(where, j) for j in range(len(hows))]
    partial = v.ld64(where, len(hows))
    wide = vector(ir.DoubleType(), v.vl)

    def body(offset: ir.Value) -> None:
        for j, how in enumerate(hows):
            start, combine = REDUCE[how]
            summed = how == "sum"
            first = v.b.fpext(v.const(start), wide) if summed else v.const(start)
            with v.carry(parts, [first]) as (i, acc, done):
                x = v.load(v.add(partial, v.b.mul(i, step), v.mul(gap, j), offset))
                done([v.b.fadd(acc[0], v.b.fpext(x, wide)) if summed else combine(v, acc[0], x)])
            total = v.b.fptrunc(v.carried[0], v.vec) if summed else v.carried[0]
            v.store(total, v.add(results[j], offset))

    vectors(v, columns, body)
    return v.finish()


@family("columns")
def kernel(name: str, key: Spec, target: Target) -> str:
    """("columns", nodes, sums (how, node), stored nodes, kinds, block, whole): a run of rows [outer, inner, columns].

    Operands: partial results, then the stored values, then those read; kinds of these two: "v" by column,
    "s" one number a row. Loops end in (outer, inner, columns), counted in runs. Words: columns, columns a run, inner
    rows, inner rows a run, outer rows, outer rows a run, bytes between the partial results of two reductions, then of
    each operand the bytes to the next inner and the next outer row.
    """
    _, nodes, sums, stored, kinds, block, whole = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    columns, inner, outer = (_run(v, index, words, d) for d in range(3))
    bases = [v.ld64(where, 1 + k) for k in range(len(kinds))]
    steps = [(v.ld64(words, i), v.ld64(words, i + 1)) for i in range(WORDS, WORDS + 2 * len(kinds), 2)]
    run = _Run(v, nodes, sums, stored, kinds, bases, steps, v.ld64(where, 0), v.ld64(words, WORDS - 1))
    if whole:
        run.whole(columns, inner, outer)
        return v.finish()
    vecs = v.b.sdiv(columns, i64(v.vl))
    blocks = v.b.sdiv(vecs, i64(block))
    with v.loop(blocks) as b:
        run.block(v.mul(b, block * 4 * v.vl), block, inner, outer)
    done = v.mul(blocks, block)
    if block > 1:
        with v.loop(v.b.sub(vecs, done)) as b:
            run.block(v.mul(v.add(done, b), 4 * v.vl), 1, inner, outer)
    rest = v.b.srem(columns, i64(v.vl))
    with v.b.if_then(v.b.icmp_signed(">", rest, i64(0))):
        v.set_mask(rest)
        run.block(v.mul(vecs, 4 * v.vl), 1, inner, outer)
        v.set_mask(None)
    return v.finish()


def _run(v: Builder, index: ir.Value, words: ir.Value, d: int) -> ir.Value:
    """How much of dimension `d` (columns, inner, outer rows) this call does."""
    total, chunk = v.ld64(words, 2 * d), v.ld64(words, 2 * d + 1)
    return minimum(v, chunk, v.b.sub(total, v.b.mul(v.ld64(index, LAST - d), chunk)))


@dataclasses.dataclass(frozen=True)
class _Run:
    """A call's operands and what it computes of them. `bases`: addresses of the operands, `steps`: bytes to the next
    inner and the next outer row of each, `partial`: address of the partial results, `gap`: bytes between those of two.
    """

    v: Builder
    nodes: tuple[tuple[object, ...], ...]
    sums: tuple[tuple[str, int], ...]
    stored: tuple[int, ...]
    kinds: tuple[str, ...]
    bases: list[ir.Value]
    steps: list[tuple[ir.Value, ir.Value]]
    partial: ir.Value
    gap: ir.Value

    def row(self, o: ir.Value, i: ir.Value) -> list[ir.Value]:
        """The address of a row in each operand."""
        v = self.v
        pairs = zip(self.bases, self.steps, strict=True)
        return [v.add(base, v.b.mul(o, far), v.b.mul(i, near)) for base, (near, far) in pairs]

    def values(self, row: list[ir.Value], offset: ir.Value) -> list[ir.Value]:
        """The operands of the reductions in a vector of columns; what is stored is stored."""
        v, first = self.v, len(self.stored)
        loaded: dict[int, ir.Value] = {}

        def operand(k: int) -> ir.Value:
            if k not in loaded:
                at = row[first + k]
                loaded[k] = v.load(v.add(at, offset)) if self.kinds[first + k] == "v" else v.broadcast(at)
            return loaded[k]

        env = emit_nodes(v, self.nodes, operand)
        for at, n in zip(row, self.stored, strict=False):
            v.store(env[n], v.add(at, offset))
        return [env[n] for _, n in self.sums]

    def start(self) -> list[ir.Value]:
        return [self.v.const(REDUCE[how][0]) for how, _ in self.sums]

    def joined(self, a: list[ir.Value], b: list[ir.Value]) -> list[ir.Value]:
        """Two sets of sums as one (several vectors of columns lie one behind the other)."""
        k = len(self.sums)
        return [REDUCE[self.sums[j % k][0]][1](self.v, x, y) for j, (x, y) in enumerate(zip(a, b, strict=True))]

    def block(self, offset: ir.Value, vectors: int, inner: ir.Value, outer: ir.Value) -> None:
        """The sums of some vectors of columns over all rows of the run."""
        v, k = self.v, len(self.sums)
        size, unroll = k * vectors, UNROLL if vectors == 1 else 1
        places = [v.add(offset, b * 4 * v.vl) for b in range(vectors)]

        def step(acc: list[ir.Value], row: list[ir.Value]) -> list[ir.Value]:
            return self.joined(acc, [x for place in places for x in self.values(row, place)])

        rounds = v.b.sdiv(inner, i64(unroll))
        with v.carry(outer, self.start() * vectors * unroll) as (o, acc, after):
            with v.carry(rounds, acc) as (i, now, done):
                rows = [self.row(o, v.add(v.mul(i, unroll), u)) for u in range(unroll)]
                done([x for u in range(unroll) for x in step(now[u * size : (u + 1) * size], rows[u])])
            acc = v.carried
            if unroll > 1:
                with v.carry(v.b.srem(inner, i64(unroll)), acc[:size]) as (i, now, done):
                    done(step(now, self.row(o, v.add(v.mul(rounds, unroll), i))))
                acc = [*v.carried, *acc[size:]]
            after(acc)
        total = functools.reduce(self.joined, [v.carried[u * size : (u + 1) * size] for u in range(unroll)])
        for n, x in enumerate(total):
            v.store(x, v.add(self.partial, v.mul(self.gap, n % k), places[n // k]))

    def whole(self, columns: ir.Value, inner: ir.Value, outer: ir.Value) -> None:
        """The sums over all rows and columns of the run."""
        v, k = self.v, len(self.sums)
        vecs = v.b.sdiv(columns, i64(v.vl))
        rounds, rest = v.b.sdiv(vecs, i64(UNROLL)), v.b.srem(columns, i64(v.vl))
        with v.carry(outer, self.start() * UNROLL) as (o, acc, after):
            with v.carry(inner, acc) as (i, acc, end):
                row = self.row(o, i)
                with v.carry(rounds, acc) as (r, now, done):
                    at = v.mul(r, UNROLL * 4 * v.vl)
                    sets = ((now[u * k : (u + 1) * k], v.add(at, u * 4 * v.vl)) for u in range(UNROLL))
                    done([x for part, place in sets for x in self.joined(part, self.values(row, place))])
                acc = v.carried
                before = v.mul(rounds, UNROLL)
                with v.carry(v.b.sub(vecs, before), acc[:k]) as (r, now, done):
                    done(self.joined(now, self.values(row, v.mul(v.add(before, r), 4 * v.vl))))
                first = v.carried
                v.set_mask(rest)  # of no lanes where nothing is left
                last = zip(self.values(row, v.mul(vecs, 4 * v.vl)), self.start(), strict=True)
                first = self.joined(first, [v.b.select(v.mask, x, none) for x, none in last])
                v.set_mask(None)
                end([*first, *acc[k:]])
            after(v.carried)
        total = functools.reduce(self.joined, [v.carried[u * k : (u + 1) * k] for u in range(UNROLL)])
        for j, x in enumerate(total):
            lanes = v.across(x, functools.partial(REDUCE[self.sums[j][0]][1], v))
            place = v.add(self.partial, v.mul(self.gap, j))
            v.b.store(v.b.extract_element(lanes, i64(0)), v.ptr(place, F32))


__all__ = ["kernel", "sweep"]
