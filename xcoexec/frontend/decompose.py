"""Primitives with several results, or new names for old movements, as operations that every later stage knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jax import lax

from ..codegen.program import Literal, Op, Value

Ins = tuple[Value | Literal, ...]
Outs = tuple[Value, ...]
Params = Mapping[str, Any]  # an equation's parameters: each primitive's are of other types


def sliced(x: Value | Literal, out: Value, start: tuple[int, ...], name: str) -> Op:
    limit = tuple(a + n for a, n in zip(start, out.shape, strict=True))
    return Op(
        "slice", (x,), (out,), {"start_indices": start, "limit_indices": limit, "strides": None}, name, lax.slice_p
    )


def reshaped(x: Value | Literal, out: Value, name: str) -> Op:
    return Op(
        "reshape", (x,), (out,), {"new_sizes": out.shape, "dimensions": None, "sharding": None}, name, lax.reshape_p
    )


def _split(ins: Ins, outs: Outs, params: Params, name: str) -> list[Op]:
    axis, at, ops = params["axis"], 0, []
    for out, size in zip(outs, params["sizes"], strict=True):
        ops.append(sliced(ins[0], out, tuple(at if d == axis else 0 for d in range(len(out.shape))), name))
        at += int(size)
    return ops


def _stack(ins: Ins, outs: Outs, params: Params, name: str) -> list[Op]:
    axis, shape = params["axis"], outs[0].shape
    layers = [Value((*shape[:axis], 1, *shape[axis + 1 :]), outs[0].dtype) for _ in ins]
    join = Op("concatenate", tuple(layers), outs, {"dimension": axis}, name, lax.concatenate_p)
    return [*(reshaped(x, v, name) for x, v in zip(ins, layers, strict=True)), join]


def _unstack(ins: Ins, outs: Outs, params: Params, name: str) -> list[Op]:
    axis, ops = params["axis"], []
    for i, out in enumerate(outs):
        layer = Value((*out.shape[:axis], 1, *out.shape[axis:]), out.dtype)
        ops += [
            sliced(ins[0], layer, tuple(i if d == axis else 0 for d in range(len(layer.shape))), name),
            reshaped(layer, out, name),
        ]
    return ops


def _moved(ins: Ins, outs: Outs, params: Params, name: str) -> list[Op]:
    """A reshape that first puts the dimensions in another order is that, and a reshape."""
    x, order = ins[0], params["dimensions"]
    if order is None or not isinstance(x, Value):
        return [Op("reshape", ins, outs, dict(params), name, lax.reshape_p)]
    turned = Value(tuple(x.shape[d] for d in order), x.dtype)
    return [
        Op("transpose", (x,), (turned,), {"permutation": tuple(order)}, name, lax.transpose_p),
        reshaped(turned, outs[0], name),
    ]


def _pow(ins: Ins, outs: Outs, params: Params, name: str) -> list[Op]:
    """Its exponent may be a whole number, of a type of its own."""
    x, y = ins
    if y.dtype == x.dtype:
        return [Op("pow", ins, outs, dict(params), name, lax.pow_p)]
    if not isinstance(y, Value):
        return [Op("pow", (x, Literal(float(y.val), x.dtype)), outs, dict(params), name, lax.pow_p)]
    wide = Value(y.shape, x.dtype)
    convert = {"new_dtype": np.dtype(x.dtype), "weak_type": False, "sharding": None}
    return [
        Op("convert_element_type", (y,), (wide,), convert, name, lax.convert_element_type_p),
        Op("pow", (x, wide), outs, dict(params), name, lax.pow_p),
    ]


def _pad(ins: Ins, outs: Outs, params: Params, name: str) -> list[Op]:
    """A negative padding, as gradients have it, takes elements away: a slice, and what is padded of it."""
    x, value = ins
    config = params["padding_config"]
    away = [(max(-lo, 0), max(-hi, 0)) for lo, hi, _ in config]
    shape = tuple(n - before - behind for n, (before, behind) in zip(x.shape, away, strict=True))
    spread = any(gap and any(ends) for ends, (_, _, gap) in zip(away, config, strict=True))
    if not any(map(any, away)) or spread or min(shape) < 1:
        return [Op("pad", ins, outs, dict(params), name, lax.pad_p)]
    rest, start = tuple((max(lo, 0), max(hi, 0), gap) for lo, hi, gap in config), tuple(before for before, _ in away)
    if not any(map(any, rest)):
        return [sliced(x, outs[0], start, name)]
    part = Value(shape, outs[0].dtype)
    return [
        sliced(x, part, start, name),
        Op("pad", (part, value), outs, {"padding_config": rest}, name, lax.pad_p),
    ]


def _one_minus_square(ins: Ins, outs: Outs, params: Params, name: str) -> list[Op]:
    square, one = Value(outs[0].shape, outs[0].dtype), Literal(1.0, outs[0].dtype)
    return [
        Op("mul", (ins[0], ins[0]), (square,), {}, name, lax.mul_p),
        Op("sub", (one, square), outs, {}, name, lax.sub_p),
    ]


#: primitive -> the operations that mean the same
EXPAND: dict[str, Callable[[Ins, Outs, Params, str], list[Op]]] = {
    "split": _split,
    "stack": _stack,
    "unstack": _unstack,
    "reshape": _moved,
    "one_minus_square": _one_minus_square,
    "pad": _pad,
    "pow": _pow,
}
