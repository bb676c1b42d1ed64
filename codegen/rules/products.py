"""The matrix product that a contraction amounts to: what its time is predicted from, and where its channels are."""

from __future__ import annotations

import dataclasses
import math

from ..program import Op, Value
from .convolution import geometry

FEW_ROWS = 8  # that are multiplied together: as many sums as registers hold
MATRIX_BYTES, ALL_BYTES = 1 << 16, 1 << 18  # of a matrix, of all groups', that are better read where they lie
FAR_BYTES = 1 << 23  # of all groups', from which on matrices of one channel beside the other come from far caches


@dataclasses.dataclass(frozen=True)
class Matrix:
    """`groups` products of [rows, inner] with [inner, columns]; `kind` names the class of kernels that compute it.

    `window`, `stride`: elements of a convolution's window and stride (1 for a product).
    """

    kind: str
    rows: int
    inner: int
    columns: int
    groups: int
    window: int = 1
    stride: int = 1


def convolution(op: Op) -> Matrix:
    """The product of a convolution: pixels [rows, inner] by weights [inner, columns] in each group."""
    conv = geometry(op)
    alone = conv.depthwise or conv.window_sums
    kind = "depthwise" if alone else "pointwise" if conv.pointwise else "conv"
    rows, columns = op.out.size // conv.channels, conv.channels // conv.all_groups
    window, strides = (conv.sizes, conv.dilation) if conv.window_sums else (conv.window, conv.strides)
    return Matrix(kind, rows, conv.inner, columns, conv.all_groups, math.prod(window), math.prod(strides))


def product(op: Op) -> Matrix:
    """The product of a dot_general: free dimensions of one side [rows, inner] by the other's [inner, columns]."""
    (ac, _), (ab, _) = op.params["dimension_numbers"]
    a, b = op.ins[0].shape, op.ins[1].shape
    groups, inner = math.prod(a[d] for d in ab), math.prod(a[d] for d in ac)
    rows, columns = math.prod(a) // (groups * inner), math.prod(b) // (groups * inner)
    return Matrix("vector" if min(rows, columns) == 1 else "dense", rows, inner, columns, groups)


def few_rows(rows: int, inner: int, columns: int, groups: int) -> bool:
    """Whether a product of computed sides does little more than read the matrices [inner, columns] of one of them."""
    nbytes = 4 * inner * columns
    return rows <= FEW_ROWS and nbytes >= MATRIX_BYTES and groups * nbytes >= ALL_BYTES


def convolution_channels(op: Op) -> tuple[int, int]:
    """The axis of output channels: (of the weights, of the result)."""
    conv = geometry(op)
    return conv.weights[0], conv.result[1]


def product_channels(op: Op) -> tuple[int, int] | None:
    """The axis of output channels, (of the weights, of the result), of a plain x @ W; None for any other product."""
    w = op.ins[1]
    (_, contract), (_, batch) = op.params["dimension_numbers"]
    if not isinstance(w, Value) or batch or len(contract) != len(w.shape) - 1:
        return None
    return next(d for d in range(len(w.shape)) if d not in contract), len(op.out.shape) - 1
