"""How many FLOP an operation is, one function a kind of primitive; a multiply-add counts 2."""

from __future__ import annotations

import math

from ..program import Op
from .convolution import geometry


def none(op: Op) -> int:
    """Movement, conversion and choice count nothing."""
    return 0


def each(op: Op) -> int:
    """One for every element of the results."""
    return sum(v.size for v in op.outs)


def operands(op: Op) -> int:
    """One for every element of the operands."""
    return sum(math.prod(v.shape) for v in op.ins)


def window(op: Op) -> int:
    """One for every element of every window."""
    return op.out.size * math.prod(op.params["window_dimensions"])


def convolution(op: Op) -> int:
    """Of a transposed convolution the taps that meet an inserted zero count nothing."""
    conv = geometry(op)
    return 2 * op.out.size * conv.inner // math.prod(conv.spread)


def product(op: Op) -> int:
    (contract, _), _ = op.params["dimension_numbers"]
    return 2 * op.out.size * math.prod(op.ins[0].shape[d] for d in contract)
