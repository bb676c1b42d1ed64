"""Drivers: native code that walks the work items of one step and calls its micro-kernels.

One driver a kernel family, compiled once; layer shapes, strides and block tables are data. A driver is
called as `driver(params, bufs, lo, hi, who)` and does the work items lo..hi; `who` is the thread's number in
the call. `params` are int64 words; a reference to memory is two of them (buffer number, byte offset).
"""

from __future__ import annotations

from numba import njit

from .layout import (
    B_WORDS,
    DRIVER,
    G_BLOCKS,
    G_BTABLE,
    G_CHUNK,
    G_EXTRA,
    G_GROUPS,
    G_OD,
    G_OH,
    G_OPERANDS,
    G_OW,
    G_RBLOCKS,
    G_ROWS,
    G_RTABLE,
    G_TILES,
    G_VIEW,
    G_VIEWS,
    G_W,
    G_WG,
    G_X,
    G_XG,
    G_Y,
    G_YG,
    ITEMS,
    MAX_OPERANDS,
    MAX_RANK,
    N_CHUNK,
    N_DIMS,
    N_EXTRA,
    N_KERNEL,
    N_OPERANDS,
    N_TOTAL,
    N_VIEWS,
    NEST_VIEW,
    OPERAND_ROWS,
    PARAMS,
    R_WORDS,
    ROWS,
    S_BUFFERS,
    S_ROWS,
    S_SCRATCH,
    S_SOURCES,
    S_STRIDE,
    STEP_WORDS,
    STRIP_BUFFERS,
)
from .words import call3, call5, call14, ld, native, scratch, st


@njit(inline="always")
def par(params, word):
    return ld(params + 8 * word)


@njit(inline="always")
def address(params, bufs, word):
    return ld(bufs + 8 * par(params, word)) + par(params, word + 1)


@njit(inline="always")
def place(params, base, word, w, h, d, n):
    """Address of the pixel (n, d, h, w) of the view at `word`."""
    return (
        base
        + n * par(params, word + 2)
        + d * par(params, word + 3)
        + h * par(params, word + 4)
        + w * par(params, word + 5)
    )


@njit(inline="always")
def pixel_rows(params, bufs, word, at, count, extra, out):
    """Addresses of `count` pixels from the one at the indices `at` (w, h, d, n) on, of the view at `word`, shifted by
    `extra` bytes.
    """
    base = address(params, bufs, word) + extra
    w, h, d, n = ld(at), ld(at + 8), ld(at + 16), ld(at + 24)
    ow, sw = par(params, G_OW), par(params, word + 5)
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
            if h == par(params, G_OH):
                h = 0
                d += 1
                if d == par(params, G_OD):
                    d = 0
                    n += 1
            a = place(params, base, word, w, h, d, n)


@njit(inline="always")
def pixel_index(params, first, at):
    """Writes the indices (w, h, d, n) of pixel number `first`."""
    ow, oh, od = par(params, G_OW), par(params, G_OH), par(params, G_OD)
    rest = first // ow
    st(at, first - rest * ow)
    lines = rest // oh
    st(at + 8, rest - lines * oh)
    planes = lines // od
    st(at + 16, lines - planes * od)
    st(at + 24, planes)


@native(5)
def gemm_driver(params, bufs, lo, hi, who):
    """Items: pixel chunk (outer), group, channel block. Each walks reduction blocks, then tiles of pixels."""
    xs, ys, es, at, steps = scratch(ROWS), scratch(ROWS), scratch(OPERAND_ROWS), scratch(4), scratch(MAX_OPERANDS)
    groups, blocks, rblocks, operands = (
        par(params, G_GROUPS),
        par(params, G_BLOCKS),
        par(params, G_RBLOCKS),
        par(params, G_OPERANDS),
    )
    q, extra, tiles, chunk = par(params, G_ROWS), par(params, G_EXTRA), par(params, G_TILES), par(params, G_CHUNK)
    for item in range(lo, hi):
        b = params + 8 * (par(params, G_BTABLE) + B_WORDS * (item % blocks))
        group = (item // blocks) % groups
        t0 = (item // (blocks * groups)) * chunk
        channel, lanes, woff, big, small = ld(b), ld(b + 8), ld(b + 16), ld(b + 24), ld(b + 32)
        vectors = ld(b + 40)
        w = address(params, bufs, G_W) + group * par(params, G_WG) + woff
        for rb in range(rblocks):
            red = params + 8 * (par(params, G_RTABLE) + R_WORDS * rb)
            taps, ntaps, run, rw = params + 8 * ld(red), ld(red + 8), ld(red + 16), ld(red + 24)
            final = rb == rblocks - 1
            t, stop = t0, min(t0 + chunk, tiles)
            while t < stop:
                rows = q + 1 if t < extra else q
                pixel_index(params, t * q + min(t, extra), at)
                same = min(stop, extra) - t if t < extra else stop - t  # tiles of this height
                count = max(1, min(same, (par(params, G_OW) - ld(at)) // rows))  # that lie in one row of the image
                pixel_rows(params, bufs, G_X, at, rows, group * par(params, G_XG), xs)
                pixel_rows(params, bufs, G_Y, at, rows, group * par(params, G_YG) + channel * 4, ys)
                if final:
                    for k in range(operands):
                        view = G_VIEWS + G_VIEW * k
                        shift = group * par(params, view + 6) + channel * par(params, view + 7)
                        pixel_rows(params, bufs, view, at, rows, shift, es + 8 * ROWS * k)
                        st(steps + 8 * k, rows * par(params, view + 5))
                kernel = big if t < extra else small
                xstep, ystep = rows * par(params, G_X + 5), rows * par(params, G_Y + 5)
                call14(
                    kernel,
                    xs,
                    w + rw * vectors,
                    ys,
                    es,
                    taps,
                    ntaps,
                    run,
                    rb == 0,
                    final,
                    lanes,
                    count,
                    xstep,
                    ystep,
                    steps,
                )
                t += count
    return 0


@native(5)
def nest_driver(params, bufs, lo, hi, who):
    """A loop nest around one kernel: `kernel(operand addresses, loop indices, its own words)`.

    Items are runs of `chunk` iterations of the flattened nest (outermost loop first).
    """
    index, where = scratch(MAX_RANK), scratch(MAX_OPERANDS)
    kernel, operands = par(params, N_KERNEL), par(params, N_OPERANDS)
    extra = params + 8 * par(params, N_EXTRA)
    chunk = par(params, N_CHUNK)
    first, stop = lo * chunk, min(hi * chunk, par(params, N_TOTAL))
    rest = first
    for i in range(MAX_RANK - 1, -1, -1):
        n = par(params, N_DIMS + i)
        st(index + 8 * i, rest % n)
        rest //= n
    for _ in range(first, stop):
        for k in range(operands):
            view = N_VIEWS + NEST_VIEW * k
            a = address(params, bufs, view)
            for i in range(MAX_RANK):
                a += ld(index + 8 * i) * par(params, view + 2 + i)
            st(where + 8 * k, a)
        call3(kernel, where, index, extra)
        i = MAX_RANK - 1
        while i >= 0:
            n = ld(index + 8 * i) + 1
            if n < par(params, N_DIMS + i):
                st(index + 8 * i, n)
                break
            st(index + 8 * i, 0)
            i -= 1
    return 0


@native(5)
def strips_driver(params, bufs, lo, hi, who):
    """Items: strips of a group of layers. All steps of a strip run on this thread, whose scratch memory holds what is
    between them.
    """
    table = scratch(STRIP_BUFFERS)
    n = par(params, S_BUFFERS)
    for item in range(lo, hi):
        row = params + 8 * (par(params, S_ROWS) + item * (2 + n))  # steps, their number, then the shift of each buffer
        for j in range(n):
            source = params + 8 * (par(params, S_SOURCES) + 2 * j)
            st(table + 8 * j, ld(bufs + 8 * ld(source)) + ld(source + 8) + ld(row + 16 + 8 * j))
        st(table + 8 * n, address(params, bufs, S_SCRATCH) + who * par(params, S_STRIDE))
        for s in range(ld(row + 8)):
            step = ld(row) + s * 8 * STEP_WORDS
            call5(ld(step + DRIVER), ld(step + PARAMS), table, 0, ld(step + ITEMS), who)
    return 0
