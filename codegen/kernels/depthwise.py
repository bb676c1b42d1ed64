"""Steps for depthwise convolutions in two dimensions: a vector of channels at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..program import Value
from ..segment.assembly import Context
from ..segment.steps import Kernel
from ..segment.storage import Storage
from .elementwise import Operand, nest
from .product import IMAGE_BYTES, Epilogue, operand_kind

LARGEST_WINDOW = 49  # elements of a window, which the kernel unrolls


@dataclasses.dataclass(frozen=True)
class Walk:
    """A padded channels-last image and the window that walks it (one entry a spatial dimension)."""

    image: Storage
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    def origin(self) -> int:
        """Byte offset of the first window's first element from the image's first."""
        return -sum(lo * s for (lo, _), s in zip(self.padding, self.image.strides[1:-1], strict=True))


def depthwise(ctx: Context, geo: Walk, w: Value, axes: tuple[int, ...], y: Storage, tail: Epilogue) -> None:
    """Appends the steps that write a depthwise convolution and its tail to `y` [n, h, w, c].

    `axes` bring the weights `w` to the shape [kh, kw, 1, c].
    """
    vl, (kh, kw) = ctx.target.vl, geo.window
    n, oh, ow, channels = y.shape
    vecs = -(-channels // vl)
    image = geo.image
    pixels = _pixels(ow, ctx.target.registers)
    row = image.strides[1] * geo.strides[0]
    weights = _weights(ctx, w, axes, kh * kw, channels)
    share = -(-oh * n // (4 * ctx.threads)) if ctx.threads > 1 else 8
    rows = max(1, min(oh, share, max(1, IMAGE_BYTES // max(1, row)) + 1))
    chunks = -(-oh // rows)
    kinds = tuple(operand_kind(strides[:-1], strides[-1]) for _, strides, _ in tail.operands)
    across, down = image.strides[2], image.strides[1]
    extra = [oh, rows, ow, channels - (vecs - 1) * vl]
    extra += [row, down * geo.dilation[0], across * geo.strides[1], across * geo.dilation[1], *y.strides[1:3]]
    extra += [s for _, strides, _ in tail.operands for s in strides[1:3]]

    def part(first: int, count: int, masked: bool) -> None:
        def shifted(o: Operand, outer: int, by_rows: int, per_vec: int) -> Operand:
            return o[0], (outer, by_rows * rows, per_vec), o[2] + first * per_vec

        operands = [
            shifted((image, (), geo.origin()), image.strides[0], row, 4 * vl),
            shifted((weights, (), 0), 0, 0, kh * kw * vl * 4),
            shifted((y, (), 0), y.strides[0], y.strides[1], 4 * vl),
            *(shifted(o, o[1][0], o[1][1], o[1][3] * vl) for o in tail.operands),
        ]
        kernel = Kernel(("depthwise", kh, kw, geo.strides[1], geo.dilation[1], pixels, tail.expr, kinds, masked))
        nest(ctx, kernel, extra, (n, chunks, count), operands, 2, count, rows * ow * kh * kw)

    ragged = channels % vl != 0
    if vecs - ragged:
        part(0, vecs - ragged, False)
    if ragged:
        part(vecs - 1, 1, True)


def _pixels(ow: int, registers: int) -> int:
    """Neighbouring pixels that the kernel computes together: few enough for the registers, and a row of `ow` pixels
    leaves at most one over.
    """
    if ow < 4:
        return 1
    return max(p for p in (1, 2, 3, 4, 5, 6) if p <= max(1, registers // 5) and (ow % p <= 1 or p == 4))


def _weights(ctx: Context, w: Value, axes: tuple[int, ...], taps: int, channels: int) -> Storage:
    """The weights as the kernel reads them, [vectors of channels, taps, vl]; `axes` bring `w` to [kh, kw, 1, C]."""
    vl = ctx.target.vl
    vecs = -(-channels // vl)

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        flat = np.transpose(consts[w], axes).reshape(taps, channels)
        out = np.zeros((vecs, taps, vl), np.float32)
        for v in range(vecs):
            part = flat[:, v * vl : (v + 1) * vl]
            out[v, :, : part.shape[1]] = part
        return out

    ref = ctx.pack(vecs * taps * vl * 4, packer, ("depthwise", w, axes))
    return Storage(ref.buffer, ref.offset, (), (), ())
