"""Kernels of depthwise convolutions, which the nest driver calls: one vector of channels at a time. Groups of which a
vector holds several are convolved in the same way.

The forward pass, its transpose (the gradient by the image where the stride is not 1), and the sums that are the
gradient by the weights. Every kernel gets (operand addresses, loop indices, own words); steps are bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..rules.expressions import Expr
from ..target import Target
from .epilogue import Written, in_common, results_of, store_forms, stores_result
from .expressions import emit_nodes
from .nests import LAST, in_blocks, minimum
from .simd import Builder
from .vectors import STORED_BYTES, i64

#: of each phase along one dimension: its first tap, every how many-th, how many; their first pixel, how far apart
Phases = tuple[tuple[int, int, int, int, int], ...]
MOVED = 4  # lanes in which one instruction moves others
KEPT = 49  # taps, most, that a kernel reads before the first pixel; of larger windows it reads them in turn
IN_TURN = 12  # taps of a row, most, that are in registers at once
#: (window, tap) -> the vector that it reads
Load = Callable[[int, int], ir.Value]


@family("depthwise")
def depthwise(name: str, key: Spec, target: Target) -> str:
    """("depthwise", kd, kh, kw, stride, dilation, pixels, group, stored, expr, kinds, streamed, tail): some channel
    vectors of some rows. `group` channels side by side are convolved with each other (1: each channel on its own);
    `stored`: the type of the image's elements.

    Operands: x, weights, y, the epilogue's. Loops end in (row chunk, chunk of vectors). Words: OH, rows a chunk, OW,
    lanes of the last vector (with `tail`), x: row step, tap plane, tap row, pixel, tap; weights: tap plane, tap row,
    tap, channel of a group, vector; vectors, those of a chunk; y: row, pixel; each epilogue operand: row, pixel.
    Neighbouring output pixels share the columns that they read. Of groups, and of windows of more than `KEPT` taps,
    rows of a window come in turn, and in each of them blocks of `taps_in_turn(kw)` taps.
    """
    _, kd, kh, kw, stride, dilation, pixels, group, stored, expr, kinds, streamed, tail = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    if tail:
        v.set_mask(v.ld64(words, 3))
    count, ow = chunk_here(v, v.ld64(index, LAST - 1), words, 0), v.ld64(words, 2)
    xrow, xplane, xtaprow, xpix, xtap = (v.ld64(words, 4 + i) for i in range(5))
    plane, taprow, tap, channel, further = (v.ld64(words, 9 + i) for i in range(5))
    columns, read = _Windows(stride, dilation, xpix, xtap), lambda at: v.load_stored(at, stored)
    reads = [read] if group == 1 else [functools.partial(_of_groups, v, group, c, tail) for c in range(group)]
    sums = _Sums(v, (kd, kh, kw), columns, (xplane, xtaprow, xtap), (plane, taprow, tap), channel, reads)

    with v.loop(chunk_here(v, v.ld64(index, LAST), words, 14)) as vector:
        x = v.add(v.ld64(where, 0), v.mul(vector, STORED_BYTES.get(stored, 4) * v.vl))
        w = v.add(v.ld64(where, 1), v.b.mul(vector, further))
        result = Result.of(v, where, words, 16, expr, kinds, streamed, vector)
        summed = functools.partial(sums.in_turn, w)
        if group == 1 and kd * kh * kw <= KEPT:
            kept = [t for d in range(kd) for t in _taps(v, v.add(w, v.mul(plane, d)), kh, kw, taprow, tap)]
            summed = functools.partial(sums.at_once, kept)

        def written(row: ir.Value, p: ir.Value, n: int) -> None:
            for q, total in enumerate(summed(v.add(x, v.b.mul(row, xrow), v.b.mul(p, xpix)), n)):
                result.write(v, [total], [row], v.add(p, q))

        with v.loop(count) as row:
            in_blocks(v, ow, pixels, functools.partial(written, row))
    return v.finish()


@family("depthwise_transposed")
def depthwise_transposed(name: str, key: Spec, target: Target) -> str:
    """("depthwise_transposed", kh, kw, spread, rows, columns, left, pixels, expr, kinds, streamed, tail): one channel
    vector of the result around some rows of the image x. A pixel of x stands for a block of `spread` results (rows,
    columns), one for each of the phases `rows` by `columns`; behind the whole blocks come the first `left` phases
    (along rows, along columns) of one more.

    Operands: x (the pixel of the first block), weights, y, the epilogue's. Loops end in (row chunk, channel vector).
    Words: whole blocks along rows, those of a chunk, whole blocks in a row, lanes of the last vector (with `tail`), x:
    row, pixel; weights: tap row, tap; y: row, pixel; each epilogue operand: row, pixel.
    """
    _, kh, kw, (dh, dw), by_row, by_column, left, pixels, *epilogue, tail = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    if tail:
        v.set_mask(v.ld64(words, 3))
    x, w, (xrow, xpix) = v.ld64(where, 0), v.ld64(where, 1), (v.ld64(words, 4), v.ld64(words, 5))
    weights = _taps(v, w, kh, kw, v.ld64(words, 6), v.ld64(words, 7))
    result = Result.of(v, where, words, 8, *epilogue)
    chunk, wide = v.ld64(index, LAST - 1), v.ld64(words, 2)

    def block(phases: tuple[Phases, Phases], row: ir.Value, p: ir.Value, n: int) -> None:
        at = v.add(x, v.b.mul(row, xrow), v.b.mul(p, xpix))
        acc: dict[tuple[int, int, int], ir.Value | None] = {}
        meeting = _meeting(phases[0], 1).items(), _meeting(phases[1], n).items()
        for (a, rows), (c, columns) in itertools.product(*meeting):
            pixel = v.load(v.add(at, v.mul(xrow, a), v.mul(xpix, c)))
            for (fh, th, _), (fw, tw, q) in itertools.product(rows, columns):
                acc[fh, q, fw] = _added(v, pixel, weights[th * kw + tw], acc.get((fh, q, fw)))
        first = v.mul(row, dh)
        for fh in range(len(phases[0])):
            for q in range(n):
                for fw in range(len(phases[1])):
                    total = acc.get((fh, q, fw), v.const(0.0))
                    result.write(v, [total], [v.add(first, fh)], v.add(v.mul(v.add(p, q), dw), fw))

    def line(phases: Phases, row: ir.Value) -> None:
        in_blocks(v, wide, pixels, functools.partial(block, (phases, by_column), row))
        if left[1]:
            block((phases, by_column[: left[1]]), row, wide, 1)

    whole, each = v.ld64(words, 0), v.ld64(words, 1)
    rest = v.b.sub(whole, v.b.mul(chunk, each))
    with v.loop(minimum(v, each, rest)) as row:
        line(by_row, row)
    if left[0]:
        with v.b.if_then(v.b.icmp_signed("<", rest, each)):
            line(by_row[: left[0]], rest)
    return v.finish()


@family("depthwise_sums")
def depthwise_sums(name: str, key: Spec, target: Target) -> str:
    """("depthwise_sums", kh, kw, stride, dilation, pixels, tail): for one channel vector and each tap of a window, the
    sum of x times g over all pixels of g, of which every one has a window of x.

    Operands: x, g, y. Loops end in (image chunk, row chunk, channel vector). Words: images, those of a chunk, rows,
    those of a chunk, pixels of a row, lanes of the last vector (with `tail`), x: image step, row, tap row, pixel, tap;
    g: image, row, pixel; y: tap row, tap. Neighbouring pixels share the columns of x that they read.
    """
    _, kh, kw, stride, dilation, pixels, tail = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    if tail:
        v.set_mask(v.ld64(words, 5))
    images, rows = (chunk_here(v, v.ld64(index, LAST - 2 + i), words, 2 * i) for i in range(2))
    width = v.ld64(words, 4)
    ximage, xrow, xtaprow, xpix, xtap, gimage, grow, gpix, yrow, ypix = (v.ld64(words, 6 + i) for i in range(10))
    x, g, y = (v.ld64(where, i) for i in range(3))
    columns = _Windows(stride, dilation, xpix, xtap)

    def block(xline: ir.Value, gline: ir.Value, p: ir.Value, n: int, acc: list[ir.Value]) -> list[ir.Value]:
        xat, gat, out = v.add(xline, v.b.mul(p, xpix)), v.add(gline, v.b.mul(p, gpix)), list(acc)
        by = [v.load(v.add(gat, v.mul(gpix, q))) for q in range(n)]
        if stride == 1:  # too few vectors are waited for at once without; of a wider stride the hardware asks in time
            for q in range(n):
                v.prefetch(v.add(xat, v.mul(xtaprow, kh), v.mul(xpix, q)))
                v.prefetch(v.add(gat, grow, v.mul(gpix, q)))
        for i in range(kh):
            load = columns.reader(v, v.add(xat, v.mul(xtaprow, i)), v.load)
            for q in range(n):
                for j in range(kw):
                    out[i * kw + j] = v.fma(load(q, j), by[q], out[i * kw + j])
        return out

    full, rest = v.b.sdiv(width, i64(pixels)), v.b.srem(width, i64(pixels))
    done = v.mul(full, pixels)
    with v.carry(images, [v.const(0.0)] * (kh * kw)) as (image, acc, next_image):
        xs, gs = v.add(x, v.b.mul(image, ximage)), v.add(g, v.b.mul(image, gimage))
        with v.carry(rows, acc) as (row, acc, next_row):
            xline, gline = v.add(xs, v.b.mul(row, xrow)), v.add(gs, v.b.mul(row, grow))
            with v.carry(full, acc) as (p, acc, next_block):
                next_block(block(xline, gline, v.mul(p, pixels), pixels, acc))
            with v.carry(rest, v.carried) as (p, acc, next_pixel):
                next_pixel(block(xline, gline, v.add(done, p), 1, acc))
            next_row(v.carried)
        next_image(v.carried)
    for t, total in enumerate(v.carried):
        v.store(total, v.add(y, v.mul(yrow, t // kw), v.mul(ypix, t % kw)))
    return v.finish()


# -- what they share -----------------------------------------------------------------------------------


def chunk_here(v: Builder, chunk: ir.Value, words: ir.Value, at: int) -> ir.Value:
    """How many things chunk number `chunk` has; word `at` is how many there are, the next one how many a chunk has."""
    total, each = v.ld64(words, at), v.ld64(words, at + 1)
    return minimum(v, each, v.b.sub(total, v.b.mul(chunk, each)))


def taps_in_turn(width: int) -> int:
    """Taps of a row of `width` that a kernel has in registers at once: of blocks that are about equal."""
    return -(-width // -(-width // IN_TURN))


def _taps(v: Builder, w: ir.Value, kh: int, kw: int, row: ir.Value, column: ir.Value) -> list[ir.Value]:
    """The vectors of weights of a window, row by row."""
    return [v.load(v.add(w, v.mul(row, i), v.mul(column, j))) for i in range(kh) for j in range(kw)]


def _of_groups(v: Builder, group: int, c: int, tail: bool, at: ir.Value) -> ir.Value:
    """Channel `c` of its group of `group` channels in every lane, of the vector of channels at an address. `tail`: the
    vector is masked.
    """
    if group <= MOVED:
        whole = v.load(at)
        return v.shuffle(whole, whole, [lane - lane % group + c for lane in range(v.vl)])
    found = v.broadcast(v.add(at, 4 * c))
    assert v.vl == 2 * group, "a vector holds two groups, and a masked one has one of them"
    return found if tail else v.upper_half(v.broadcast(v.add(at, 4 * (group + c))), found)


def _added(v: Builder, a: ir.Value, b: ir.Value, total: ir.Value | None) -> ir.Value:
    """The total and a * b; None: there is no total so far."""
    return v.b.fmul(a, b) if total is None else v.fma(a, b, total)


@dataclasses.dataclass(frozen=True)
class _Windows:
    """The columns of an image that windows read which lie `stride` columns apart, with taps `dilation` columns apart;
    `pixel`, `tap`: bytes from a window to the next, from a tap to the next.
    """

    stride: int
    dilation: int
    pixel: ir.Value
    tap: ir.Value

    def reader(self, v: Builder, line: ir.Value, read: Callable[[ir.Value], ir.Value]) -> Load:
        """(window, tap) -> what that tap of the window reads in the row at address `line`, read once a column."""
        step = v.b.sdiv(self.pixel, i64(self.stride)) if self.dilation == 1 else v.b.sdiv(self.tap, i64(self.dilation))
        loaded: dict[int, ir.Value] = {}

        def load(window: int, tap: int) -> ir.Value:
            c = window * self.stride + tap * self.dilation
            if c not in loaded:
                loaded[c] = read(v.add(line, v.mul(step, c)))
            return loaded[c]

        return load


@dataclasses.dataclass(frozen=True)
class _Sums:
    """Sums over a `window` (planes, rows, columns). `image`, `weights`: bytes from a plane of taps, a row of these and
    a tap to the next; `channel`: from the weights of a channel of a group to those of the next. `reads`: of each such
    channel, what a pixel at an address has of it.
    """

    v: Builder
    window: tuple[int, int, int]
    columns: _Windows
    image: tuple[ir.Value, ir.Value, ir.Value]
    weights: tuple[ir.Value, ir.Value, ir.Value]
    channel: ir.Value
    reads: Sequence[Callable[[ir.Value], ir.Value]]

    def at_once(self, taps: list[ir.Value], at: ir.Value, n: int) -> list[ir.Value | None]:
        """Those of `n` pixels from the address `at` on, with all taps in registers."""
        v, (kd, kh, kw), (plane, row, _), (read,) = self.v, self.window, self.image, self.reads
        acc: list[ir.Value | None] = [None] * n
        for i, (d, h) in enumerate(itertools.product(range(kd), range(kh))):
            load = self.columns.reader(v, v.add(at, v.mul(plane, d), v.mul(row, h)), read)
            acc = self._multiplied(load, taps[i * kw : (i + 1) * kw], acc)
        return acc

    def in_turn(self, w: ir.Value, at: ir.Value, n: int) -> list[ir.Value]:
        """As `at_once`, with weights at the address `w`: of one row after the other."""
        v, (kd, kh, _) = self.v, self.window
        (xplane, xrow, _), (plane, row, _) = self.image, self.weights
        with v.carry(i64(kd), [v.const(0.0)] * n) as (d, acc, next_plane):
            pixels, taps = v.add(at, v.b.mul(xplane, d)), v.add(w, v.b.mul(plane, d))
            with v.carry(i64(kh), acc) as (h, acc, next_row):
                next_row(self._row(v.add(pixels, v.b.mul(xrow, h)), v.add(taps, v.b.mul(row, h)), acc))
            next_plane(v.carried)
        return v.carried

    def _row(self, line: ir.Value, taps: ir.Value, acc: Sequence[ir.Value]) -> list[ir.Value]:
        v, xtap, tap, kw = self.v, self.image[2], self.weights[2], self.window[2]
        wide = taps_in_turn(kw)
        whole, left = divmod(kw, wide)
        with v.carry(i64(whole), list(acc)) as (j, acc, next_block):
            first = v.mul(j, wide)
            next_block(self._block(v.add(line, v.b.mul(xtap, first)), v.add(taps, v.b.mul(tap, first)), wide, acc))
        return self._block(v.add(line, v.mul(xtap, kw - left)), v.add(taps, v.mul(tap, kw - left)), left, v.carried)

    def _block(self, line: ir.Value, taps: ir.Value, count: int, acc: Sequence[ir.Value | None]) -> list[ir.Value]:
        v, (_, row, tap) = self.v, self.weights
        for c, read in enumerate(self.reads):
            load = self.columns.reader(v, line, read)
            acc = self._multiplied(load, _taps(v, v.add(taps, v.mul(self.channel, c)), 1, count, row, tap), acc)
        return [a for a in acc if a is not None]

    def _multiplied(self, load: Load, taps: list[ir.Value], acc: Sequence[ir.Value | None]) -> list[ir.Value | None]:
        acc = list(acc)
        for q, j in itertools.product(range(len(acc)), range(len(taps))):
            acc[q] = _added(self.v, load(q, j), taps[j], acc[q])
        return acc


@dataclasses.dataclass(frozen=True)
class Result:
    """Where a kernel writes pixels, and the epilogue: its expression, and its operands by address and steps; `shared`
    are those that do not change with the pixel, of each vector; `streamed`: pixels are stored past the caches.
    """

    expr: Expr
    kinds: tuple[str | Written, ...]
    streamed: bool
    y: tuple[ir.Value, ir.Value, ir.Value]
    operands: tuple[tuple[ir.Value, ir.Value, ir.Value], ...]
    shared: dict[tuple[int, int], ir.Value]

    @classmethod
    def of(
        cls,
        v: Builder,
        where: ir.Value,
        words: ir.Value,
        at: int,
        expr: Expr,
        kinds: Sequence[str | Written],
        streamed: bool,
        first: ir.Value | None = None,
        vectors: int = 1,
    ) -> Result:
        """The result whose address is number 2 in `where`, whose steps begin at word `at`; `vectors` of channels, from
        number `first` on (None: the first one).
        """
        each = [4, *(STORED_BYTES[k[0]] if isinstance(k, tuple) else 4 * (k in ("c", "v")) for k in kinds)]
        along = [v.mul(first, n * v.vl) if first is not None else i64(0) for n in each]
        found = [
            (v.add(v.ld64(where, 2 + k), along[k]), v.ld64(words, at + 2 * k), v.ld64(words, at + 2 * k + 1))
            for k in range(len(kinds) + 1)
        ]
        shared = {
            (k, u): v.load(v.add(found[1 + k][0], 4 * v.vl * u)) if kind == "c" else v.broadcast(found[1 + k][0])
            for k, kind in enumerate(kinds)
            for u in range(vectors)
            if kind in ("c", "p")
        }
        return cls(expr, tuple(kinds), streamed, found[0], tuple(found[1:]), shared)

    def write(self, v: Builder, totals: Sequence[ir.Value], rows: Sequence[ir.Value], pixel: ir.Value) -> None:
        """Stores the expression of each sum at the first vectors of a pixel, as many of each of some rows."""
        each = len(totals) // len(rows)

        def place(at: tuple[ir.Value, ir.Value, ir.Value], row: ir.Value, further: int = 0) -> ir.Value:
            base, by_row, by_pixel = at
            return v.add(base, v.b.mul(row, by_row), v.b.mul(pixel, by_pixel), further)

        def operand(number: int, k: int) -> ir.Value:
            line, u = divmod(number, each)
            if k == 0 or (k - 1, u) in self.shared:
                return self.shared[k - 1, u] if k else totals[number]
            if self.kinds[k - 1] == "v":
                return v.load(place(self.operands[k - 1], rows[line], 4 * v.vl * u))
            return v.broadcast(place(self.operands[k - 1], rows[line]))

        made = results_of(self.expr, self.kinds)
        same = in_common(self.kinds)
        nodes = [emit_nodes(v, self.expr, functools.partial(operand, n), made, same) for n in range(len(totals))]
        store_forms(v, self.kinds, nodes, lambda k, _: [place(self.operands[k], row) for row in rows])
        for n in range(len(totals) if stores_result(self.kinds) else 0):
            v.store(nodes[n][-1], place(self.y, rows[n // each], 4 * v.vl * (n % each)), self.streamed)


def _meeting(phases: Phases, n: int) -> dict[int, list[tuple[int, int, int]]]:
    """Pixel of the image, in order -> (phase, its tap, number of the block) of all taps of `n` neighbouring blocks that
    meet it.
    """
    found: dict[int, list[tuple[int, int, int]]] = {}
    for f, (tap, every, taps, first, reach) in enumerate(phases):
        for q, i in itertools.product(range(n), range(taps)):
            found.setdefault(q + first + i * reach, []).append((f, tap + i * every, q))
    return dict(sorted(found.items()))
