"""FLOP and bytes of an operation, one rule a primitive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..codegen.program import Op, external


def _conv(op: Op) -> int:
    w = op.ins[1].shape
    dn = op.params["dimension_numbers"]
    zeros = math.prod(op.params["lhs_dilation"])  # of a transposed convolution: taps that meet an inserted zero
    return 2 * op.out.size * math.prod(w[d] for d in dn.rhs_spec[1:]) // zeros


def _dot(op: Op) -> int:
    (contract, _), _ = op.params["dimension_numbers"]
    return 2 * op.out.size * math.prod(op.ins[0].shape[d] for d in contract)


def _window(op: Op) -> int:
    return op.out.size * math.prod(op.params["window_dimensions"])


def _inputs(op: Op) -> int:
    return sum(math.prod(v.shape) for v in op.ins)


#: primitives that do more (or less) than one operation for each output element.
FLOPS: dict[str, Callable[[Op], int]] = {
    "conv_general_dilated": _conv,
    "dot_general": _dot,
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _window),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin", "cumsum"), _inputs),
    **dict.fromkeys(
        (
            "reshape",
            "broadcast_in_dim",
            "transpose",
            "squeeze",
            "concatenate",
            "slice",
            "pad",
            "rev",
            "gather",
            "copy",
            "convert_element_type",
            "iota",
            "stop_gradient",
            "dynamic_slice",
            "dynamic_update_slice",
            "select_n",
        ),
        lambda op: 0,
    ),
}


def flops(op: Op) -> int:
    """FLOP of one operation; a multiply-add counts 2."""
    return FLOPS.get(op.prim, lambda o: sum(v.size for v in o.outs))(op)


def nbytes(ops: Sequence[Op]) -> int:
    """Bytes that operations in program order must read and write: what comes from outside, and the last results."""
    read = sum(v.nbytes for v in external(ops))
    return read + sum(v.nbytes for v in ops[-1].outs)
