"""What convolutions and matrix products share: pixels x channels, tiles and blocks, one step of the gemm driver."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..native import layout
from ..program import Op, Unsupported, Value
from ..rules.expressions import COPY, Expr, expression
from ..segment.assembly import Context, Kernel, Ref, Word
from . import gemm
from .block_shapes import cycles, slowdown
from .elementwise import Operand, read

PANEL_BYTES = 1 << 18  # packed weights that a channel block keeps in L2 while it walks its pixels
IMAGE_BYTES = 1 << 18  # input that a work item walks again for every channel block


@dataclasses.dataclass(frozen=True)
class Epilogue:
    """The fused tail: its expression and operands (without the accumulator), all over the output's index."""

    expr: Expr
    operands: tuple[Operand, ...]
    result: Value


def epilogue(ctx: Context, anchor: Op, rest: tuple[Op, ...]) -> Epilogue | None:
    """The group's tail as an epilogue, or None when it has to be a step of its own."""
    if not rest:
        return Epilogue(COPY, (), anchor.out)
    result = rest[-1].out
    if result.shape != anchor.out.shape:
        return None
    try:
        expr, views = expression(rest, result, anchor.out)
    except Unsupported:
        return None
    operands = tuple(read(ctx, view, len(result.shape)) for view in views[1:])
    if any(strides[-1:] not in ((), (0,), (4,)) for _, strides, _ in operands) or len(operands) > 6:
        return None
    return Epilogue(expr, operands, result)


def operand_kind(pixels: Sequence[int], channel: int) -> str:
    """As gemm's operand kinds: does it change with the pixel, does it change with the channel?"""
    return {(True, 4): "v", (True, 0): "s", (False, 4): "c", (False, 0): "p"}[any(pixels), channel]


@dataclasses.dataclass(frozen=True)
class Lane:
    """How a tensor is walked: byte strides of the pixel dimensions (N, D, H, W), of a channel and of a group."""

    ref: Ref
    pixels: tuple[int, int, int, int]
    channel: int
    group: int

    @property
    def kind(self) -> str:
        return operand_kind(self.pixels, self.channel)


@dataclasses.dataclass(frozen=True)
class Product:
    """`pixels` (N, D, H, W) x `channels` outputs in each of `groups`; `run` inputs at each tap (byte offset)."""

    pixels: tuple[int, int, int, int]
    taps: tuple[int, ...]
    run: int
    channels: int
    groups: int

    @property
    def depth(self) -> int:
        return len(self.taps) * self.run


def split_evenly(n: int, most: int) -> list[int]:
    """n as the fewest parts of at most `most`, differing by at most one, larger parts first."""
    parts = -(-n // most)
    return [n // parts + (i < n % parts) for i in range(parts)]


def channel_blocks(channels: int, vl: int, vectors: int) -> list[tuple[int, int, int]]:
    """(first channel, vectors, lanes of the last vector) of each block."""
    blocks, at = [], 0
    for nv in split_evenly(-(-channels // vl), vectors):
        stop = min(at + nv * vl, channels)
        blocks.append((at, nv, stop - at - (nv - 1) * vl))
        at = stop
    return blocks


def reduction_blocks(taps: Sequence[int], run: int, most: int) -> list[tuple[list[int], int, int]]:
    """(tap offsets, run, first element) of each block of at most about `most` elements, in weight order."""
    if len(taps) * run <= most:
        return [(list(taps), run, 0)]
    if run <= most:
        per = max(1, most // run)
        return [(list(taps[i : i + per]), run, i * run) for i in range(0, len(taps), per)]
    out = []
    for t, tap in enumerate(taps):
        at = 0
        for size in split_evenly(run, most):
            out.append(([tap + 4 * at], size, t * run + at))
            at += size
    return out


def pack_panels(weights: np.ndarray, vl: int, vectors: int) -> np.ndarray:
    """[groups, K, channels] -> for each group and channel block [K, vectors * vl], zero-padded, one after the other."""
    groups, k, channels = weights.shape
    parts = []
    for first, nv, _ in channel_blocks(channels, vl, vectors):
        part = np.zeros((groups, k, nv * vl), np.float32)
        piece = weights[:, :, first : first + nv * vl]
        part[:, :, : piece.shape[2]] = piece
        parts.append(part.reshape(groups, -1))
    return np.concatenate(parts, 1)


def panel_bytes(g: Product, vl: int, nv: int) -> int:
    """Bytes of one group's packed weights."""
    return sum(vectors for _, vectors, _ in channel_blocks(g.channels, vl, nv)) * vl * 4 * g.depth


def add_gemm(
    ctx: Context,
    g: Product,
    x: Lane,
    weights: Ref,
    y: Lane,
    expr: Expr,
    operands: Sequence[Lane],
    shape: tuple[int, int],
    dtype: str = "float32",
) -> None:
    """Appends the step; `weights` are panels as `pack_panels` makes them for the block `shape` (rows, vectors).

    With `dtype` "bfloat16" runs and panels are of pairs.
    """
    vl, (mr, nv), unit = ctx.target.vl, shape, ctx.target.unit(dtype)
    assert unit is not None, f"no matrix unit for {dtype}"
    pixels = math.prod(g.pixels)
    dims, (x, y, *operands) = _in_a_row(g.pixels, (x, y, *operands))
    g = dataclasses.replace(g, pixels=dims)
    tiles = len(split_evenly(pixels, mr))
    rows, extra = divmod(pixels, tiles)
    blocks = channel_blocks(g.channels, vl, nv)
    chunk = _tiles_per_item(ctx, g, x, tiles, rows, len(blocks))
    red = reduction_blocks(g.taps, g.run, g.depth if chunk <= 2 else max(64, PANEL_BYTES // (nv * vl * 4)))
    kinds = tuple(o.kind for o in operands)

    views = [w for o in operands for w in (o.ref, *o.pixels, o.group, o.channel)]
    rtable = layout.Gemm.VIEWS + layout.OPERAND_WORDS * len(operands)
    taps_at = rtable + layout.REDUCTION_WORDS * len(red)
    taps = [t for offsets, _, _ in red for t in offsets]
    starts = np.cumsum([0, *(len(offsets) for offsets, _, _ in red)]).tolist()
    rrows = [
        w
        for (offsets, run, first), at in zip(red, starts, strict=False)
        for w in (taps_at + at, len(offsets), run, first * vl * 4)
    ]
    brows: list[Word] = []
    at, run = 0, g.run if len(red) == 1 else 0
    for first, vectors, lanes in blocks:
        small, big = (
            Kernel(gemm.spec(max(r, 1), vectors, lanes != vl, expr, kinds, run, dtype, unit.kernel))
            for r in (rows, rows + (extra > 0))
        )
        brows += [first, lanes, at, big, small, vectors]
        at += vectors * vl * 4 * g.depth
    words: list[Word] = [
        pixels,
        *g.pixels[1:],
        tiles,
        extra,
        rows,
        chunk,
        g.groups,
        len(blocks),
        len(red),
        len(operands),
        rtable,
        taps_at + len(taps),
        x.ref,
        *x.pixels,
        x.group,
        y.group,
        weights,
        at,
        y.ref,
        *y.pixels,
        *views,
        *rrows,
        *taps,
        *brows,
    ]
    reads = [x.ref.buffer, weights.buffer, *(o.ref.buffer for o in operands)]
    slower = slowdown(ctx.target, unit)
    units = sum(
        n * cycles((r, v)) * slower.get((r, v), 1.0)
        for r, n in ((rows + 1, extra), (rows, tiles - extra))
        if n
        for _, v, _ in blocks
    )
    items, calls = -(-tiles // chunk) * g.groups * len(blocks), tiles * g.groups * len(blocks) * len(red)
    ctx.add("gemm", words, items, reads, [y.ref.buffer], calls=calls, units=units * g.groups * g.depth)


def _in_a_row(pixels: tuple[int, int, int, int], lanes: Sequence[Lane]) -> tuple[tuple[int, int, int, int], list[Lane]]:
    """Pixel dimensions that every tensor walks without a jump, as one: long rows of tiles for one kernel call."""
    n, d, h, w = pixels
    walks = [lane.pixels for lane in lanes]
    while (n, d, h) != (1, 1, 1):
        if h > 1 and not all(p[2] == p[3] * w for p in walks):
            break
        walks = [(0, p[0], p[1], p[3]) for p in walks]
        n, d, h, w = 1, n, d, w * h
    return (n, d, h, w), [dataclasses.replace(lane, pixels=p) for lane, p in zip(lanes, walks, strict=True)]


def _tiles_per_item(ctx: Context, g: Product, x: Lane, tiles: int, rows: int, blocks: int) -> int:
    """Enough work items to balance the team, as few as that allows, each within `IMAGE_BYTES` of input."""
    cached = max(1, IMAGE_BYTES // max(1, rows * max(x.pixels[3], 4)))
    wanted = 1 if ctx.threads == 1 else 6 * ctx.threads
    chunks = max(-(-tiles // cached), -(-wanted // (g.groups * blocks)))
    return max(1, -(-tiles // min(chunks, tiles)))


def collapse(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride that walks all these dimensions (0 for none), or None when they do not lie in a row."""
    dims = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if any(s != s2 * n2 for (_, s), (n2, s2) in itertools.pairwise(dims)):
        return None
    return dims[-1][1] if dims else 0


def pixel_strides(strides: Sequence[int]) -> tuple[int, int, int, int]:
    """Strides of the pixel dimensions as (N, D, H, W); missing ones are D, then H, then N."""
    n, *rest = strides if len(strides) > 1 else (0, *strides)
    d, h, w = (0,) * (3 - len(rest)) + tuple(rest)
    return n, d, h, w
