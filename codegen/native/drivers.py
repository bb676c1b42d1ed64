"""Drivers: native code that walks the work items of one step and calls its micro-kernels.

One driver a kernel family, compiled once; layer shapes, strides and block tables are data. A driver is
called as `driver(params, bufs, lo, hi, who)` and does the work items lo..hi; `who` is the thread's number in
the call. `params` are int64 words; a reference to memory is two of them (buffer number, byte offset).
"""

from __future__ import annotations

from .language import inline
from .layout import (
    BLOCK_WORDS,
    LOOP_BUFFERS,
    LOOP_ROW,
    MAX_OPERANDS,
    MAX_RANK,
    NEST_VIEW,
    OPERAND_ROWS,
    OPERAND_WORDS,
    REDUCTION_WORDS,
    ROWS,
    STEP_WORDS,
    STRIP_BUFFERS,
    WALK_WORDS,
    Block,
    Gemm,
    Loop,
    LoopRow,
    Nest,
    Reduction,
    Step,
    Strip,
    StripRow,
    View,
    Walk,
)
from .words import call3, call5, call13, ld, native, scratch, st


@inline
def par(params, word):
    """Word number `word` of a step's parameters."""
    return ld(params + 8 * word)


@inline
def address(params, bufs, word):
    """The address that two words name: a buffer's number and an offset in bytes."""
    return ld(bufs + 8 * par(params, word)) + par(params, word + 1)


@inline
def place(params, base, word, w, h, d, n):
    """Address of the pixel (n, d, h, w) of the view at `word`, whose strides are bytes; `base`: of its first pixel."""
    return (
        base
        + n * par(params, word + View.N)
        + d * par(params, word + View.D)
        + h * par(params, word + View.H)
        + w * par(params, word + View.W)
    )


@inline
def pixel_rows(params, bufs, word, at, count, extra, out):
    """Addresses of `count` pixels from the one at the indices `at` (w, h, d, n) on, of the view at `word`, shifted by
    `extra` bytes.
    """
    base = address(params, bufs, word) + extra
    w, h, d, n = ld(at), ld(at + 8), ld(at + 16), ld(at + 24)
    ow, sw = par(params, Gemm.OW), par(params, word + View.W)
    a = place(params, base, word, w, h, d, n)
    if w + count <= ow:  # within one row of the image: no index has to be looked at again
        for r in range(count):
            st(out + 8 * r, a)
            a += sw
        return
    for r in range(count):
        st(out + 8 * r, a)
        w += 1
        a += sw
        if w == ow:
            w = 0
            h += 1
            if h == par(params, Gemm.OH):
                h = 0
                d += 1
                if d == par(params, Gemm.OD):
                    d = 0
                    n += 1
            a = place(params, base, word, w, h, d, n)


@inline
def pixel_index(params, first, at):
    """Writes the indices (w, h, d, n) of pixel number `first`."""
    ow, oh, od = par(params, Gemm.OW), par(params, Gemm.OH), par(params, Gemm.OD)
    rest = first // ow
    st(at, first - rest * ow)
    lines = rest // oh
    st(at + 8, rest - lines * oh)
    planes = lines // od
    st(at + 16, lines - planes * od)
    st(at + 24, planes)


@inline
def tile_steps(params, word, rows, steps):
    """Writes the bytes from a row of the image to the next, and from a tile of `rows` pixels, of the view at `word`."""
    st(steps, par(params, word + View.H))
    st(steps + 8, rows * par(params, word + View.W))


@inline
def epilogue_rows(params, bufs, at, rows, group, channel, operands, es, steps):
    """Writes the addresses of `rows` pixels from the indices `at` on, of each operand of the epilogue, to `es` (one
    alone where all pixels have the same), and its steps to `steps`.
    """
    for k in range(operands):
        view = Gemm.VIEWS + OPERAND_WORDS * k
        shift = group * par(params, view + View.GROUP) + channel * par(params, view + View.CHANNEL)
        moves = par(params, view + View.N) | par(params, view + View.D)
        moves |= par(params, view + View.H) | par(params, view + View.W)
        if moves == 0:
            st(es + 8 * ROWS * k, address(params, bufs, view) + shift)
        else:
            pixel_rows(params, bufs, view, at, rows, shift, es + 8 * ROWS * k)
        tile_steps(params, view, rows, steps + 16 * k)


@native(5)
def gemm_driver(params, bufs, lo, hi, who):
    """Items: pixel chunk, group, channel block, `PARTS` of the chunks. Each walks reduction blocks, then tiles."""
    xs, ys, es, at, walk = scratch(ROWS), scratch(ROWS), scratch(OPERAND_ROWS), scratch(4), scratch(WALK_WORDS)
    steps = walk + 8 * Walk.STEPS
    groups, blocks = par(params, Gemm.GROUPS), par(params, Gemm.BLOCKS)
    rblocks, operands = par(params, Gemm.REDUCTIONS), par(params, Gemm.OPERANDS)
    q, extra = par(params, Gemm.ROWS), par(params, Gemm.EXTRA)
    tiles, chunk, element = par(params, Gemm.TILES), par(params, Gemm.CHUNK), par(params, Gemm.ELEMENT)
    parts = par(params, Gemm.PARTS)
    for item in range(lo, hi):
        along = item // parts
        b = params + 8 * (par(params, Gemm.BLOCK_TABLE) + BLOCK_WORDS * (along % blocks))
        group = (along // blocks) % groups
        t0 = (along // (blocks * groups) * parts + item % parts) * chunk
        channel, lanes, woff = ld(b + Block.CHANNEL), ld(b + Block.LANES), ld(b + Block.WEIGHTS)
        big, small, row = ld(b + Block.BIG), ld(b + Block.SMALL), ld(b + Block.ROW)
        w = address(params, bufs, Gemm.WEIGHTS) + group * par(params, Gemm.WEIGHT_GROUP) + woff
        for rb in range(rblocks):
            red = params + 8 * (par(params, Gemm.REDUCTION_TABLE) + REDUCTION_WORDS * rb)
            taps, ntaps = params + 8 * ld(red + Reduction.TAPS), ld(red + Reduction.TAP_COUNT)
            run, wr = ld(red + Reduction.RUN), w + ld(red + Reduction.FIRST) * row
            first, final = rb == 0, rb == rblocks - 1
            t, stop = t0, min(t0 + chunk, tiles)
            while t < stop:
                rows = q + 1 if t < extra else q
                pixel_index(params, t * q + min(t, extra), at)
                same = min(stop, extra) - t if t < extra else stop - t  # tiles of this height
                count = max(1, min(same, (par(params, Gemm.OW) - ld(at)) // rows))  # that lie in one row of the image
                lines = 1
                if count * rows == par(params, Gemm.OW):  # which is whole, and others of its plane follow
                    lines = min(same // count, par(params, Gemm.OH) - ld(at + 8))
                st(walk + 8 * Walk.LINES, lines)
                st(walk + 8 * Walk.TILES, count)
                st(walk + 8 * Walk.BEFORE, t % (parts * chunk))
                pixel_rows(params, bufs, Gemm.X, at, rows, group * par(params, Gemm.X_GROUP), xs)
                pixel_rows(params, bufs, Gemm.Y, at, rows, group * par(params, Gemm.Y_GROUP) + channel * 4, ys)
                if first or final:  # sums may begin with an operand
                    epilogue_rows(params, bufs, at, rows, group, channel, operands, es, steps + 32)
                tile_steps(params, Gemm.X, rows, steps)
                tile_steps(params, Gemm.Y, rows, steps + 16)
                kernel = big if t < extra else small
                call13(kernel, xs, wr, ys, es, taps, ntaps, run, first, final, lanes, walk, element, row)
                t += count * lines
    return 0


@native(5)
def nest_driver(params, bufs, lo, hi, who):
    """A loop nest around one kernel: `kernel(operand addresses, loop indices, its own words)`.

    Items are runs of `chunk` iterations of the flattened nest (outermost loop first).
    """
    index, where = scratch(MAX_RANK), scratch(MAX_OPERANDS)
    kernel, operands = par(params, Nest.KERNEL), par(params, Nest.OPERANDS)
    extra = params + 8 * par(params, Nest.EXTRA)
    chunk = par(params, Nest.CHUNK)
    first, stop = lo * chunk, min(hi * chunk, par(params, Nest.TOTAL))
    rest = first
    for i in range(MAX_RANK - 1, -1, -1):
        n = par(params, Nest.DIMS + i)
        st(index + 8 * i, rest % n)
        rest //= n
    for _ in range(first, stop):
        for k in range(operands):
            view = Nest.VIEWS + NEST_VIEW * k
            a = address(params, bufs, view)
            for i in range(MAX_RANK):
                a += ld(index + 8 * i) * par(params, view + 2 + i)
            st(where + 8 * k, a)
        call3(kernel, where, index, extra)
        i = MAX_RANK - 1
        while i >= 0:
            n = ld(index + 8 * i) + 1
            if n < par(params, Nest.DIMS + i):
                st(index + 8 * i, n)
                break
            st(index + 8 * i, 0)
            i -= 1
    return 0


@native(5)
def strips_driver(params, bufs, lo, hi, who):
    """Items: strips of a group of layers. All steps of a strip run on this thread, whose scratch memory holds what is
    between them; that of strips inside of one is its own.
    """
    table = scratch(STRIP_BUFFERS)
    n = par(params, Strip.BUFFERS)
    for item in range(lo, hi):
        row = params + 8 * (
            par(params, Strip.ROWS) + item * (2 + n)
        )  # steps, their number, then the shift of each buffer
        for j in range(n):
            source = params + 8 * (par(params, Strip.SOURCES) + 2 * j)
            st(table + 8 * j, ld(bufs + 8 * ld(source)) + ld(source + 8) + ld(row + StripRow.SHIFTS + 8 * j))
        st(table + 8 * n, address(params, bufs, Strip.SCRATCH) + who * par(params, Strip.STRIDE))
        for s in range(ld(row + StripRow.STEP_COUNT)):
            step = ld(row + StripRow.STEPS) + s * 8 * STEP_WORDS
            call5(ld(step + Step.DRIVER), ld(step + Step.PARAMS), table, 0, ld(step + Step.ITEMS), 0)
    return 0


def enter_loop(params, bufs, table):
    """Writes the addresses of the buffers around a loop to the table of its turns."""
    for j in range(par(params, Loop.OUTSIDE)):
        st(table + 8 * j, ld(bufs + 8 * j))


def turn_loop(params, table, turn):
    """Writes the addresses of a turn's own buffers to its table, behind those around the loop."""
    outside = par(params, Loop.OUTSIDE)
    for k in range(par(params, Loop.BUFFERS)):
        row = Loop.ROWS + LOOP_ROW * k
        place = row + LoopRow.FIRST if turn == 0 else row + LoopRow.EVEN + 2 * (turn % 2)
        st(table + 8 * (outside + k), address(params, table, place) + turn * par(params, row + LoopRow.STRIDE))


def ends_loop(params, table, step):
    """Whether the condition of a loop's turn is known after step number `step`, and does not hold."""
    return step == par(params, Loop.CHECK) - 1 and ld(address(params, table, Loop.FLAG)) & 0xFFFFFFFF == 0


@native(5)
def loop_driver(params, bufs, lo, hi, who):
    """One item: all turns of a loop on this thread (`team.run_loop` has those that a team shares)."""
    table = scratch(LOOP_BUFFERS)
    enter_loop(params, bufs, table)
    steps = par(params, Loop.STEPS)
    for turn in range(par(params, Loop.LENGTH)):
        turn_loop(params, table, turn)
        for s in range(par(params, Loop.STEP_COUNT)):
            step = steps + s * 8 * STEP_WORDS
            call5(ld(step + Step.DRIVER), ld(step + Step.PARAMS), table, 0, ld(step + Step.ITEMS), who)
            if ends_loop(params, table, s):
                return 0
    return 0
