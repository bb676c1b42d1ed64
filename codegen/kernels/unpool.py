"""The gradient of max-pooling: each window hands its number on to the element that it took.

An item is some rows of one image, which no other item writes: windows that reach beyond them are looked at by both
neighbours, and each adds to rows of its own. So threads need no order, and the sum of an element has one.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..native.layout import MAX_RANK
from ..program import Op, Unsupported, Value, kind
from ..segment.context import Context
from ..segment.steps import Kernel
from ..segment.storage import Storage
from ..target import Target
from . import elementwise
from .nests import maximum, minimum, vectors
from .simd import Builder
from .vectors import i64

MOST_TAPS = 64  # elements of a window: each is code of its own
ITEM = 1 << 14  # elements of the image that are worth a work item
LAST = MAX_RANK - 1  # the innermost loop of a nest
AXIS = 6  # words of an axis
HEAD = 2  # words before those of the axes
#: what selects -> the comparison (true for NaN) by which a later element is taken, and what lies around the image
SELECTS = {"ge": ("<", -math.inf), "le": (">", math.inf)}


def select_and_scatter_add(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Adds each element of the source to the element of the image that its window selects, the first of equal ones.

    Raises `Unsupported` for other types than floating point, for windows that are not over 1 to 3 axes between batch
    and channels, and for windows of more than `MOST_TAPS` elements.
    """
    source, image = op.ins
    p = op.params
    window, strides, padding = p["window_dimensions"], p["window_strides"], p["padding"]
    if (
        not isinstance(image, Value)
        or not isinstance(source, Value)
        or {kind(image.dtype), kind(source.dtype)} != {"f"}
    ):
        raise Unsupported("pooling's gradient for another type than f32")
    flat = all((window[i], strides[i], tuple(padding[i])) == (1, 1, (0, 0)) for i in (0, -1))
    if not 3 <= len(window) <= 5 or not flat or math.prod(window) > MOST_TAPS:
        raise Unsupported(f"the gradient of a pooling window {window}, over more than 3 axes or too large")
    x, g, y = _by_channels(ctx, image), _by_channels(ctx, source), ctx.output(op.out)
    if y.strides[-1] != 4:
        raise Unsupported("pooling's gradient into channels that do not lie side by side")
    axes = range(1, len(window) - 1)
    size, many = x.shape[1], g.shape[1]
    line = math.prod(x.shape[2:])
    parts = -(-2 * ctx.threads // x.shape[0])
    rows = strides[1] * max(1, min(-(-many // parts), ITEM // max(1, line * strides[1])))
    words = [rows, x.shape[-1]]
    for d in axes:
        words += [padding[d][0], x.shape[d], g.shape[d], x.strides[d], g.strides[d], y.strides[d]]
    words += [0, 1, 1, 0, 0, 0] * (3 - len(axes))
    fill = (1,) * (3 - len(axes))
    apart = "apart" if all(s >= n for s, n in zip(strides, window, strict=True)) else ""
    if apart and window == strides and all(n == m * s for n, m, s in zip(x.shape, g.shape, strides, strict=True)):
        apart = "all" if not any(map(any, padding)) else apart
    kernel = Kernel(("unpool", p["select_prim"].name, (*window[1:-1], *fill), (*strides[1:-1], *fill), apart))
    operands = [(s, (s.strides[0], 0), 0) for s in (x, g)] + [(y, (y.strides[0], 0), 0)]
    units = 2 * math.prod(window) * math.prod(g.shape[1:-1]) * -(-x.shape[-1] // ctx.target.vl) / -(-size // rows)
    elementwise.nest(ctx, kernel, words, (x.shape[0], -(-size // rows)), operands, 2, 1, units)
    return rest


def _by_channels(ctx: Context, v: Value) -> Storage:
    """Where an operand lies whose channels are side by side."""
    s = ctx.storage(v)
    return s if s.strides[-1] == 4 else elementwise.dense(ctx, s)


@dataclasses.dataclass(frozen=True)
class _Axis:
    """One axis between batch and channels: its window's numbers, and words as they are read."""

    window: int
    stride: int
    padding: ir.Value
    size: ir.Value
    many: ir.Value  # windows
    x: ir.Value  # bytes from one index to the next: of the image, of the source, of the result
    g: ir.Value
    y: ir.Value

    def begin(self, v: Builder, at: ir.Value) -> ir.Value:
        """The first index that window number `at` covers; it may lie outside."""
        return v.b.sub(v.mul(at, self.stride), self.padding)

    def touching(self, v: Builder, first: ir.Value, stop: ir.Value) -> tuple[ir.Value, ir.Value]:
        """(the first window that covers one of the indices first:stop, how many there are)."""
        low = v.b.add(v.b.sub(first, i64(self.window - self.stride)), self.padding)  # rounded up by stride - 1
        lo = v.b.sdiv(maximum(v, low, i64(0)), i64(self.stride))
        hi = minimum(
            v, v.b.sdiv(v.b.add(v.b.sub(stop, i64(1)), self.padding), i64(self.stride)), v.b.sub(self.many, i64(1))
        )
        return lo, maximum(v, v.add(v.b.sub(hi, lo), 1), i64(0))


@family("unpool")
def _unpool(name: str, key: Spec, target: Target) -> str:
    """("unpool", what selects, window, strides, apart): the rows of an image [d, h, w, c] that are one item's. "apart":
    no two windows share an element; "all": and each element has a window.

    Operands: image, source, result. The innermost loop counts items of an image. Words: rows of an item, channels, then
    of each axis: padding, size, windows, and the steps in bytes of image, source and result.
    """
    _, select, window, strides, apart = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x, g, y = (v.ld64(where, i) for i in range(3))
    rows, channels = v.ld64(words, 0), v.ld64(words, 1)
    axes = [_Axis(window[d], strides[d], *(v.ld64(words, HEAD + AXIS * d + i) for i in range(AXIS))) for d in range(3)]
    first = v.b.mul(v.ld64(index, LAST), rows)
    stop = minimum(v, v.add(first, rows), axes[0].size)
    if apart != "all":
        _clear(v, y, axes, first, stop, channels)
    scatter = _Windows(v, *SELECTS[select], axes, first, stop, channels, bool(apart))
    low, count = axes[0].touching(v, first, stop)
    with v.loop(count) as i, v.loop(axes[1].many) as j, v.loop(axes[2].many) as k:
        at = [v.add(low, i), j, k]
        begin = [a.begin(v, n) for a, n in zip(axes, at, strict=True)]
        scatter.one(x, v.add(g, *(v.b.mul(n, a.g) for a, n in zip(axes, at, strict=True))), y, begin)
    return v.finish()


def _clear(v: Builder, y: ir.Value, axes: list[_Axis], first: ir.Value, stop: ir.Value, channels: ir.Value) -> None:
    """Writes zeroes to the rows first:stop of the result."""
    with v.loop(v.b.sub(stop, first)) as i, v.loop(axes[1].size) as j, v.loop(axes[2].size) as k:
        at = v.add(y, *(v.b.mul(n, a.y) for a, n in zip(axes, (v.add(first, i), j, k), strict=True)))
        vectors(v, channels, lambda o: v.store(v.const(0.0), v.add(at, o)))


@dataclasses.dataclass(frozen=True)
class _Windows:
    """What the code of a window has to know; `first` and `stop`: the rows that may be written."""

    v: Builder
    later: str
    around: float
    axes: list[_Axis]
    first: ir.Value
    stop: ir.Value
    channels: ir.Value
    apart: bool

    def one(self, x: ir.Value, g: ir.Value, y: ir.Value, begin: list[ir.Value]) -> None:
        """The window that begins at the indices `begin`; `g` is the address of its number."""
        v, inside = self.v, self._inside(begin)
        with v.b.if_else(inside) as (whole, border):
            with whole:
                vectors(v, self.channels, lambda o: self._whole(x, v.add(g, o), y, begin, o))
            with border:
                vectors(v, self.channels, lambda o: self._border(x, v.add(g, o), y, begin, o))

    def _inside(self, begin: list[ir.Value]) -> ir.Value:
        """Whether all elements of a window may be read and written."""
        v, found = self.v, ir.Constant(ir.IntType(1), 1)
        ends = [(self.first, self.stop), *((i64(0), a.size) for a in self.axes[1:])]
        for a, b, (low, high) in zip(self.axes, begin, ends, strict=True):
            found = v.b.and_(found, v.b.icmp_signed(">=", b, low))
            found = v.b.and_(found, v.b.icmp_signed("<=", v.add(b, a.window), high))
        return found

    def _taps(self) -> list[tuple[int, ...]]:
        """The elements of a window, in the order in which they are compared."""
        return list(itertools.product(*(range(a.window) for a in self.axes)))

    def _whole(self, x: ir.Value, g: ir.Value, y: ir.Value, begin: list[ir.Value], offset: ir.Value) -> None:
        """A window of which nothing lies outside."""
        v = self.v
        place = lambda base, step, tap: v.add(
            base, offset, *(v.b.mul(v.add(b, t), step(a)) for a, b, t in zip(self.axes, begin, tap, strict=True))
        )
        taps = self._taps()
        best, chosen = v.load(place(x, lambda a: a.x, taps[0])), v.iconst(0)
        for number, tap in enumerate(taps[1:], 1):
            value = v.load(place(x, lambda a: a.x, tap))
            taken = v.b.fcmp_unordered(self.later, best, value)
            best, chosen = v.b.select(taken, value, best), v.b.select(taken, v.iconst(number), chosen)
        value = v.load(g)
        for number, tap in enumerate(taps):
            self._add(place(y, lambda a: a.y, tap), v.b.icmp_signed("==", chosen, v.iconst(number)), value)

    def _border(self, x: ir.Value, g: ir.Value, y: ir.Value, begin: list[ir.Value], offset: ir.Value) -> None:
        """A window of which a part lies outside of the image, or in rows that are another item's. What is chosen
        outside is lost.
        """
        v, best, chosen, there = self.v, self.v.const(self.around), self.v.iconst(0), []
        for number, tap in enumerate(self._taps()):
            at = [v.add(b, t) for b, t in zip(begin, tap, strict=True)]
            exists = ir.Constant(ir.IntType(1), 1)
            for a, n in zip(self.axes, at, strict=True):
                exists = v.b.and_(exists, v.b.icmp_unsigned("<", n, a.size))
            near = [
                minimum(v, maximum(v, n, i64(0)), v.b.sub(a.size, i64(1))) for a, n in zip(self.axes, at, strict=True)
            ]
            value = v.load(v.add(x, offset, *(v.b.mul(n, a.x) for a, n in zip(self.axes, near, strict=True))))
            value = v.b.select(exists, value, v.const(self.around))
            taken = v.b.fcmp_unordered(self.later, best, value) if number else v.bconst(True)
            best, chosen = v.b.select(taken, value, best), v.b.select(taken, v.iconst(number), chosen)
            mine = v.b.and_(v.b.icmp_signed(">=", at[0], self.first), v.b.icmp_signed("<", at[0], self.stop))
            there.append(
                (
                    v.b.and_(exists, mine),
                    v.add(y, offset, *(v.b.mul(n, a.y) for a, n in zip(self.axes, at, strict=True))),
                )
            )
        value = v.load(g)
        for number, (exists, place) in enumerate(there):
            with v.b.if_then(exists):
                self._add(place, v.b.icmp_signed("==", chosen, v.iconst(number)), value)

    def _add(self, at: ir.Value, here: ir.Value, value: ir.Value) -> None:
        """Adds the lanes of a number that belong to the element at an address."""
        v = self.v
        mine = v.b.select(here, value, v.const(0.0))
        v.store(mine if self.apart else v.b.fadd(v.load(at), mine), at)


__all__ = ["select_and_scatter_add"]
