"""The kernel of pooling, which the nest driver calls: one row of the result at a time. Every kernel gets (operand
addresses, loop indices, own words).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..target import Target
from .epilogue import results_of, store_forms, stores_result
from .expressions import emit_nodes
from .nests import LAST, REDUCE, along, in_blocks, maximum, minimum, vectors
from .simd import Builder
from .vectors import i64

FORMS = 21  # the first word behind those of every pool


@family("pool")
def pool(name: str, key: Spec, target: Target) -> str:
    """("pool", reduction, (window, stride, pixels), stored, expr, forms) or ("pool", reduction, "spread", stored, expr,
    forms): one output row [w, c]; windows are clipped at the border, so no halo is read. Those that are whole along W,
    of so many columns and so far apart, are taken `pixels` at a time and share the columns that they read (0 pixels:
    none is). `stored`: the type of the image's elements; `expr`: of a result, of which `forms` are written.

    Operands: x (image [d, h, w, c]), y (row), the forms (row). Loops end in (D, H of the output). Words: OW, C, y pixel
    step, then (window, stride, padding, input size, step) of D, H and W; then the first whole window along W and the
    end of them, or with "spread" the distance of two elements of the image in each dimension, between which there is
    nothing; from word `FORMS` on the pixel step of each form. Steps are bytes.
    """
    _, kind, how, stored, expr, forms = key
    start, combine = REDUCE[kind]
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x = v.ld64(where, 0)
    spread = how == "spread"
    dims = [[v.ld64(words, i) for i in (*range(3 + 5 * d, 8 + 5 * d), *([18 + d] if spread else []))] for d in range(3)]
    d0, dn = _clipped(v, dims[0], v.ld64(index, LAST - 1))
    h0, hn = _clipped(v, dims[1], v.ld64(index, LAST))
    plane = v.add(x, v.b.mul(d0, dims[0][4]), v.b.mul(h0, dims[1][4]))
    ow, channels = v.ld64(words, 0), v.ld64(words, 1)
    places = [(v.ld64(where, 1 + k), v.ld64(words, FORMS - 1 + k if k else 2)) for k in range(1 + len(forms))]
    made = results_of(expr, forms)

    def read(line: ir.Value, columns: ir.Value | int) -> ir.Value:
        return v.load_stored(v.add(line, v.mul(dims[2][4], columns)), stored)

    def write(total: ir.Value, pixel: ir.Value, offset: ir.Value) -> None:
        nodes = emit_nodes(v, expr, lambda _: total, made)
        to = [v.add(base, v.b.mul(pixel, step)) for base, step in places]
        store_forms(v, forms, [nodes], lambda k, _: [v.add(to[1 + k], along(v, forms[k][0], offset))])
        if stores_result(forms):
            v.store(nodes[-1], v.add(to[0], offset))

    def rows(
        at: ir.Value, columns: int, across: Callable[[ir.Value, list[ir.Value]], list[ir.Value]]
    ) -> list[ir.Value]:
        """Combines the rows of a window from `at` on; `across(line, so far)` what is combined in one."""
        with v.carry(dn, [v.const(start)] * columns) as (i, a, done):
            with v.carry(hn, a) as (j, a, mid):
                mid(across(v.add(at, v.b.mul(i, dims[0][4]), v.b.mul(j, dims[1][4])), a))
            done(v.carried)
        return v.carried

    def clipped(p: ir.Value) -> None:
        w0, wn = _clipped(v, dims[2], p)
        corner = v.add(plane, v.b.mul(w0, dims[2][4]))

        def across(line: ir.Value, a: list[ir.Value]) -> list[ir.Value]:
            with v.carry(wn, a) as (k, a, inner):
                inner([combine(v, a[0], read(line, k))])
            return v.carried

        def body(offset: ir.Value) -> None:
            write(rows(v.add(corner, along(v, stored, offset)), 1, across)[0], p, offset)

        vectors(v, channels, body)

    def whole(window: int, stride: int, p: ir.Value, n: int) -> None:
        column = v.b.sub(v.mul(p, stride), dims[2][2])
        corner = v.add(plane, v.b.mul(column, dims[2][4]))

        def across(line: ir.Value, a: list[ir.Value]) -> list[ir.Value]:
            return [combine(v, so_far, read(line, c)) for c, so_far in enumerate(a)]

        def body(offset: ir.Value) -> None:
            columns = rows(v.add(corner, along(v, stored, offset)), (n - 1) * stride + window, across)
            with v.stored_together():
                for q in range(n):
                    total = functools.reduce(functools.partial(combine, v), columns[q * stride : q * stride + window])
                    write(total, v.add(p, q), offset)

        vectors(v, channels, body)

    if spread or not how[2]:
        with v.loop(ow) as p:
            clipped(p)
        return v.finish()
    window, stride, pixels = how
    first, end = v.ld64(words, 18), v.ld64(words, 19)
    with v.loop(first) as p:
        clipped(p)
    in_blocks(v, v.b.sub(end, first), pixels, lambda p, n: whole(window, stride, v.add(first, p), n))
    with v.loop(v.b.sub(ow, end)) as p:
        clipped(v.add(end, p))
    return v.finish()


def _clipped(v: Builder, dim: list[ir.Value], position: ir.Value) -> tuple[ir.Value, ir.Value]:
    """First index and count of the inputs that a window covers; `dim`: (window, stride, padding, input size, step[,
    distance]).
    """
    window, stride, padding, size, _, *distance = dim
    begin = v.b.sub(v.b.mul(position, stride), padding)
    lo, end = maximum(v, begin, i64(0)), v.add(begin, window)
    for d in distance:  # rounded up
        lo, end = (v.b.sdiv(v.b.sub(v.add(n, d), i64(1)), d) for n in (lo, maximum(v, end, i64(0))))
    return lo, maximum(v, v.b.sub(minimum(v, end, size), lo), i64(0))
