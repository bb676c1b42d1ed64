"""How many FLOP an operation is, one function a kind of primitive; a multiply-add counts 2."""

from __future__ import annotations

import math

from ..program import Op
from .convolution import geometry


def none(op: Op) -> int:
    """0 FLOP: movement, conversion and choice count nothing."""
    return 0


def each(op: Op) -> int:
    """FLOP: one for every element of the results."""
    return sum(v.size for v in op.outs)


def operands(op: Op) -> int:
    """FLOP: one for every element of the operands."""
    return sum(math.prod(v.shape) for v in op.ins)


def window(op: Op) -> int:
    """FLOP: one for every element of every window."""
    return op.out.size * math.prod(op.params["window_dimensions"])


def chosen(op: Op) -> int:
    """FLOP: one for every element of every window that chooses one, and one for what it adds."""
    return math.prod(op.ins[0].shape) * (math.prod(op.params["window_dimensions"]) + 1)


def convolution(op: Op) -> int:
    """FLOP: 2 for every tap of every result; taps of a transposed one that meet an inserted zero do not count."""
    conv = geometry(op)
    return 2 * op.out.size * conv.inner // math.prod(conv.spread)


def product(op: Op) -> int:
    """FLOP: 2 for every element of the result and of the contraction."""
    (contract, _), _ = op.params["dimension_numbers"]
    return 2 * op.out.size * math.prod(op.ins[0].shape[d] for d in contract)
