"""The micro-kernel of products with few output channels: vectors hold what is summed, not channels.

    lanes of `gemm`:      1 pixel x 3 channels  -> 3 of 16 lanes work
    lanes of `across`:    16 elements of the run of 1 pixel x each of 3 channels, added up across lanes at the end

Interface and words are those of `kernels.gemm`, for `walk` NEAR and f32 alone: in the spec `NV` is the number of
channels, which are one vector of the result. Weights of a tap: for each vector of its run, and for what is left of the
run, those of one channel after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import llvmlite.ir as ir
import numpy as np

from ..native.build import Spec, family
from ..target import MatrixUnit, Target
from . import gemm
from .epilogue import Block, Epilogue, finish, partial_sums
from .gemm import ARGUMENTS, NEAR, over_tiles
from .simd import Builder
from .vectors import i64

ACROSS = MatrixUnit("across", "float32", "across")
TALLEST = 16  # rows of a block
SUM_CYCLES = 10.0  # of adding up the lanes of one vector, in the time of an FMA
ROW_CYCLES = 8.0  # of a row besides: its addresses and its result
WORTH = 0.75  # of the cycles of a product whose vectors hold channels


def rows(target: Target, channels: int) -> int:
    """Rows of a block whose sums fit the registers, beside weights and one vector of the input (0: none)."""
    return min(TALLEST, (target.registers - 1 - channels) // channels)


def cycles(target: Target, channels: int, depth: int) -> float:
    """Of one pixel, in FMA of a vector."""
    return channels * (depth / target.vl + SUM_CYCLES) + ROW_CYCLES


def pays(target: Target, channels: int, run: int, taps: int) -> bool:
    """Whether a product of so many channels and runs is faster so."""
    few = channels <= target.vl // 2 and run >= target.vl and rows(target, channels) > 0
    return few and cycles(target, channels, taps * run) < WORTH * taps * run


def pack(weights: np.ndarray, vl: int) -> np.ndarray:
    """[groups, taps, run, channels] -> f32 [groups, taps * run * channels], as the kernel reads them."""
    groups, taps, run, channels = weights.shape
    whole = run - run % vl
    vectors = weights[:, :, :whole].reshape(groups, taps, whole // vl, vl, channels).swapaxes(-1, -2)
    left = weights[:, :, whole:].swapaxes(-1, -2)
    parts = [x.reshape(groups, taps, -1) for x in (vectors, left)]
    return np.ascontiguousarray(np.concatenate(parts, -1), np.float32).reshape(groups, -1)


@family("across")
def across(name: str, key: Spec, target: Target) -> str:
    """Arguments as of `gemm`."""
    _, mr, channels, tail, expr, kinds, known, dtype, walk, _ = key
    v = Builder(name, ARGUMENTS, target.vl)
    assert walk == NEAR and tail and not known and dtype == "float32" and channels < v.vl
    xs, w, ys, es, taps, ntaps, run, first, last, lanes, walked, *_ = v.args
    pixels = [v.ld64(xs, r) for r in range(mr)]
    blocks, left = v.b.sdiv(run, i64(v.vl)), v.b.srem(run, i64(v.vl))
    there = v.b.select(v.b.icmp_signed(">", left, i64(0)), i64(1), i64(0))
    step, size = functools.partial(_step, v, pixels, channels), 4 * v.vl
    with over_tiles(v, walked) as (_, on):
        x_on = on(gemm.X)
        with v.carry(ntaps, [v.const(0.0)] * (mr * channels)) as (t, a, done):
            at, wt = v.add(v.ld64(v.add(taps, v.mul(t, 8))), x_on), v.add(w, v.mul(v.mul(t, run), 4 * channels))
            with v.carry(blocks, a) as (k, sums, inner):
                inner(step(sums, v.add(at, v.mul(k, size)), v.add(wt, v.mul(k, size * channels)), i64(size)))
            passed = v.mul(blocks, size)
            with v.carry(there, v.carried) as (_, sums, inner):
                v.set_mask(left)
                inner(step(sums, v.add(at, passed), v.add(wt, v.mul(passed, channels)), v.mul(left, 4)))
                v.set_mask(None)
            done(v.carried)
        block = Block(mr, 1, lanes, ys, on(gemm.Y))
        found = [_added_up(v, v.carried[r * channels : (r + 1) * channels]) for r in range(mr)]
        whole = [v.b.fadd(a, p) for a, p in zip(found, partial_sums(v, block, first), strict=True)]
        e_on = [on(gemm.OPERANDS + k) for k in range(len(kinds))]
        finish(v, block, whole, Epilogue(expr, kinds, es, e_on), last)
    return v.finish()


def _step(
    v: Builder,
    pixels: Sequence[ir.Value],
    channels: int,
    sums: Sequence[ir.Value],
    x: ir.Value,
    w: ir.Value,
    row: ir.Value,
) -> list[ir.Value]:
    """Adds the products of one vector of each pixel; `row`: bytes from a channel's weights to those of the next."""
    weights = [v.load(v.add(w, v.mul(row, n))) for n in range(channels)]
    out = []
    for r, pixel in enumerate(pixels):
        value = v.load(v.add(pixel, x))
        out += [v.fma(value, b, sums[r * channels + n]) for n, b in enumerate(weights)]
    return out


def _added_up(v: Builder, sums: Sequence[ir.Value]) -> ir.Value:
    """A vector whose first lanes are what the lanes of each vector come to."""
    out = v.const(0.0)
    for n, x in enumerate(sums):
        size = v.vl
        while size > 1:
            size //= 2
            x = v.b.fadd(v.shuffle(x, x, range(size)), v.shuffle(x, x, range(size, 2 * size)))
        total = v.b.extract_element(x, ir.Constant(ir.IntType(32), 0))
        out = v.b.insert_element(out, total, ir.Constant(ir.IntType(32), n))
    return out


__all__ = ["ACROSS", "cycles", "pack", "pays", "rows"]
