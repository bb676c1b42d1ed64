"""A traced model as PyTorch: its layer list, operation by operation, with convolutions in channels-last memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import torch
import torch.nn.functional as F

from xcoexec.codegen.program import Literal, Op, Value
from xcoexec.frontend.fold import fold
from xcoexec.frontend.trace import paths, trace

Tensor = torch.Tensor


def _conv(op: Op, x: Tensor, w: Tensor) -> Tensor:
    """`x` is NHWC in the program; seen as NCHW its memory is channels-last."""
    p = op.params
    x = x.permute(0, 3, 1, 2)
    (top, bottom), (left, right) = p["padding"]
    if any(d != 1 for d in p["lhs_dilation"]):
        full = F.conv_transpose2d(x, w.flip(2, 3).transpose(0, 1), stride=p["lhs_dilation"])
        kh, kw = w.shape[2:]
        return full[
            :, :, kh - 1 - top : full.shape[2] - (kh - 1 - bottom), kw - 1 - left : full.shape[3] - (kw - 1 - right)
        ].permute(0, 2, 3, 1)
    padding: Any = (top, left)
    if top != bottom or left != right:
        x, padding = F.pad(x, (left, right, top, bottom)), 0
    return F.conv2d(x, w, None, p["window_strides"], padding, p["rhs_dilation"], p["feature_group_count"]).permute(
        0, 2, 3, 1
    )


def _dot(op: Op, a: Tensor, b: Tensor) -> Tensor:
    (ac, bc), (ab, bb) = op.params["dimension_numbers"]
    free_a = [d for d in range(a.ndim) if d not in (*ac, *ab)]
    free_b = [d for d in range(b.ndim) if d not in (*bc, *bb)]
    k = math.prod(a.shape[d] for d in ac)
    batch = [a.shape[d] for d in ab]
    left = a.permute(*ab, *free_a, *ac).reshape(*batch, -1, k)
    right = b.permute(*bb, *bc, *free_b).reshape(*batch, k, -1)
    return torch.matmul(left, right).reshape(op.out.shape)


def _pool(reduce: Callable[..., Tensor], start: float) -> Callable[..., Tensor]:
    def rule(op: Op, x: Tensor) -> Tensor:
        p = op.params
        x = x.permute(0, 3, 1, 2)
        (top, bottom), (left, right) = p["padding"][1:3]
        if top or bottom or left or right:
            x = F.pad(x, (left, right, top, bottom), value=start)
        return reduce(x, p["window_dimensions"][1:3], p["window_strides"][1:3]).permute(0, 2, 3, 1)

    return rule


def _broadcast(op: Op, x: Any) -> Tensor:
    x = torch.as_tensor(x)
    shape = [1] * len(op.params["shape"])
    for d, n in zip(op.params["broadcast_dimensions"], x.shape, strict=True):
        shape[d] = n
    return x.reshape(shape).expand(op.params["shape"])


def _pad(op: Op, x: Tensor, value: Tensor) -> Tensor:
    return F.pad(x, [n for lo, hi, _ in reversed(op.params["padding_config"]) for n in (lo, hi)], value=float(value))


def _slice(op: Op, x: Tensor) -> Tensor:
    p = op.params
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(slice(a, b, s) for a, b, s in zip(p["start_indices"], p["limit_indices"], steps, strict=True))]


def _max(x: Any, y: Any) -> Tensor:
    if isinstance(y, float):
        return F.relu(x) if y == 0.0 else torch.clamp_min(x, y)
    return _max(y, x) if isinstance(x, float) else torch.maximum(x, y)


def _min(x: Any, y: Any) -> Tensor:
    if isinstance(y, float):
        return torch.clamp_max(x, y)
    return _min(y, x) if isinstance(x, float) else torch.minimum(x, y)


def _gather(op: Op, table: Tensor, index: Tensor) -> Tensor:
    return F.embedding(index[..., 0].long(), table)


def _window(sizes: Any, x: Tensor, at: Any) -> Tensor:
    for d, (n, i) in enumerate(zip(sizes, at, strict=True)):
        if n != x.shape[d]:
            x = x.index_select(d, torch.arange(n) + i)
    return x


def _updated(x: Tensor, update: Tensor, at: Any) -> Tensor:
    for d, i in enumerate(at):
        if update.shape[d] != x.shape[d]:
            return x.index_copy(d, torch.arange(update.shape[d]) + i, update)
    return update


#: operands that are literals arrive as Python numbers
LAYERS: dict[str, Callable[..., Any]] = {
    "conv_general_dilated": _conv,
    "dot_general": _dot,
    "reduce_window_max": _pool(lambda x, k, s: F.max_pool2d(x, k, s), -math.inf),
    "reduce_window_sum": _pool(lambda x, k, s: F.avg_pool2d(x, k, s, divisor_override=1), 0.0),
    "reduce_sum": lambda op, x: x.sum(op.params["axes"]),
    "reduce_max": lambda op, x: x.amax(op.params["axes"]),
    "broadcast_in_dim": _broadcast,
    "reshape": lambda op, x: x.reshape(op.params["new_sizes"]),
    "squeeze": lambda op, x: x.reshape(op.out.shape),
    "transpose": lambda op, x: x.permute(op.params["permutation"]),
    "concatenate": lambda op, *xs: torch.cat(xs, op.params["dimension"]),
    "slice": _slice,
    "pad": _pad,
    "rev": lambda op, x: x.flip(op.params["dimensions"]),
    "gather": _gather,
    "convert_element_type": lambda op, x: x.to(torch.float32 if op.out.dtype == "float32" else torch.int32),
    "stop_gradient": lambda op, x: x,
    "copy": lambda op, x: x,
    "dynamic_slice": lambda op, x, *at: _window(op.params["slice_sizes"], x, at),
    "dynamic_update_slice": lambda op, x, update, *at: _updated(x, update, at),
    "iota": lambda op: torch.arange(op.out.shape[op.params["dimension"]], dtype=torch.int32),
    "and": lambda op, x, y: x & y,
    "le": lambda op, x, y: x <= y,
    "max": lambda op, x, y: _max(x, y),
    "min": lambda op, x, y: _min(x, y),
    "add": lambda op, x, y: x + y,
    "sub": lambda op, x, y: x - y,
    "mul": lambda op, x, y: x * y,
    "div": lambda op, x, y: x / y,
    "neg": lambda op, x: -x,
    "exp": lambda op, x: torch.exp(x),
    "tanh": lambda op, x: torch.tanh(x),
    "logistic": lambda op, x: torch.sigmoid(x),
    "sqrt": lambda op, x: torch.sqrt(x),
    "rsqrt": lambda op, x: torch.rsqrt(x),
    "square": lambda op, x: x * x,
    "integer_pow": lambda op, x: x ** op.params["y"],
    "erf": lambda op, x: torch.erf(x),
    "erfc": lambda op, x: torch.erfc(x),
    "ge": lambda op, x, y: x >= y,
    "lt": lambda op, x, y: x < y,
    "select_n": lambda op, p, no, yes: torch.where(p, yes, no),
}


class Layers(torch.nn.Module):
    """The folded program (batch norm inside the weights), as `torch.jit.trace` records it."""

    def __init__(self, apply: Callable[..., Any], weights: Any, x: Any):
        super().__init__()
        leaves, tree = jax.tree_util.tree_flatten(((weights, x), {}))
        n = len(jax.tree_util.tree_leaves(weights))
        self.program = fold(trace(apply, leaves, tree, paths(tree)), range(n))
        known = self.program.constants(leaves[:n])
        self.constants = {}
        for op in self.program.ops:
            for v in op.value_ins:
                if v in known and v not in self.constants:
                    self.constants[v] = torch.from_numpy(np.array(known[v]))
            if op.prim == "conv_general_dilated" and op.ins[1] in self.constants:
                w, spec = op.ins[1], op.params["dimension_numbers"].rhs_spec
                self.constants[w] = self.constants[w].permute(spec).contiguous(memory_format=torch.channels_last)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        env: dict[Value, Any] = dict(self.constants)
        env.update(zip(self.program.inputs, inputs, strict=True))
        for op in self.program.ops:
            args = [
                (float if v.dtype == "float32" else int)(v.val) if isinstance(v, Literal) else env[v] for v in op.ins
            ]
            env[op.out] = LAYERS[op.prim](op, *args)
        return tuple(env[v] for v in self.program.outputs)


def compiled(
    apply: Callable[..., Any], weights: Any, x: Any, threads: int
) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """(call, results of a call) of the traced and frozen module."""
    torch.set_num_threads(threads)
    inputs = [torch.from_numpy(np.array(v)) for v in jax.tree_util.tree_leaves(x)]
    with torch.inference_mode():
        module = torch.jit.freeze(torch.jit.trace(Layers(apply, weights, x).eval(), tuple(inputs), check_trace=False))

    def call() -> Any:
        with torch.inference_mode():
            return module(*inputs)

    return call, lambda out: [o.numpy() for o in (out if isinstance(out, tuple) else (out,))]
