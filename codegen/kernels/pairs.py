"""Operands in bf16, as pairs that one instruction multiplies and adds to a sum of f32.

Kernels hold bf16 in the upper halves of f32. Where a product reads each element many times, the image or the rows are
narrowed once, and the weights are packed as pairs:

    f32 [.., c]  ->  pairs [.., c / 2]          taps [c, n]  ->  panels [c / 2, n] of pairs

Products of bf16 are exact in f32; each pair adds with two roundings. Denormal operands count as 0, and so do denormal
sums.
"""

from __future__ import annotations

import math

import numpy as np

from ..program import Value
from ..segment.assembly import Context
from ..segment.steps import Kernel
from ..segment.storage import Storage, temporary
from .elementwise import nest
from .product import pack_panels

BF16 = "bfloat16"
ITEM = 1 << 14  # elements worth a work item


def in_pairs(ctx: Context, x: Value, w: Value) -> bool:
    """Whether a product of these is asked for in bf16, and instructions for pairs are there."""
    return x.dtype == w.dtype == BF16 and ctx.target.unit(BF16) is not None


def half(n: int) -> int:
    """Pairs that so many elements fill."""
    return -(-n // 2)


def narrow(ctx: Context, x: Storage) -> Storage:
    """Appends the step that writes f32 [..., c], whose last axis lies side by side, as pairs [..., c / 2] with the same
    halo; what an odd c leaves is zero.
    """
    *outer, n = x.shape
    pairs = temporary(Value((*outer, half(n)), "float32"), (*x.halo[:-1], (0, 0)))
    walked, run = list(zip(outer, x.strides[:-1], pairs.strides[:-1], strict=True)), n
    while walked and run % 2 == 0 and run * walked[-1][0] <= ITEM and walked[-1][1:] == (4 * run, 2 * run):
        run *= walked.pop()[0]
    loops = [length for length, _, _ in walked] or [1]
    views = [(s, tuple(step[i] for step in walked) or (0,), 0) for i, s in ((1, x), (2, pairs))]
    nest(ctx, Kernel(("narrow",)), [run], loops, views, 1, max(1, ITEM // max(run, 1)), -(-run // ctx.target.vl))
    return pairs


def pack_pairs(weights: np.ndarray, vl: int, vectors: int) -> np.ndarray:
    """Panels, as `pack_panels` makes them, of pairs: weights [groups, taps, c, channels] of bf16 (exactly; of any type)
    as [groups, taps * pairs of c, channels].
    """
    groups, taps, c, n = weights.shape
    wide = np.zeros((groups, taps, 2 * half(c), n), np.float32)
    wide[:, :, :c] = weights
    high = wide.view(np.uint32) >> 16
    pairs = (high[:, :, 0::2] | high[:, :, 1::2] << 16).view(np.float32)
    return pack_panels(pairs.reshape(groups, math.prod(pairs.shape[1:3]), n), vl, vectors)


__all__ = ["BF16", "half", "in_pairs", "narrow", "pack_pairs"]
