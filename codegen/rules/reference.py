"""The slow, obvious NumPy meaning of each primitive: the oracle of the tests, and how weights are prepared at bind.

A rule takes the operation and its operands as NumPy arrays and returns the result. Given f64 operands
the result is f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..program import Literal, Op, Program, Value

Array = np.ndarray
Rule = Callable[..., Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _logistic(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _div(a: Array, b: Array) -> Array:
    """XLA's quotient: of integers it is cut towards zero, and -1 for a divisor of 0."""
    if np.result_type(a, b).kind not in "iu":
        return np.divide(a, b)
    safe = np.where(np.equal(b, 0), np.ones_like(b), b)
    q = a // safe
    q = q + ((a % safe != 0) & (np.less(a, 0) != np.less(b, 0))).astype(q.dtype)
    return np.where(np.equal(b, 0), np.array(-1).astype(q.dtype), q)


def _select_n(which: Array, *cases: Array) -> Array:
    """The case that a bool or an integer names; one outside takes the nearest."""
    out = cases[0]
    for k, case in enumerate(cases[1:], 1):
        out = np.where(np.asarray(which) >= k, case, out)
    return out


def _integer_pow(x: Array, y: int) -> Array:
    return x**y if y >= 0 else 1 / x ** (-y)


#: elementwise primitives, also used to evaluate epilogue expressions.
ELEMENTWISE: dict[str, Rule] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _div,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "pow": np.power,
    "cos": np.cos,
    "sin": np.sin,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square,
    "integer_pow": _integer_pow,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "logistic": _logistic,
    "erf": lambda x: _erf(x),
    "erfc": lambda x: _erfc(x),
    "log1p": np.log1p,
    "expm1": np.expm1,
    "floor": np.floor,
    "ceil": np.ceil,
    "sign": np.sign,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
    "select_n": _select_n,
    "clamp": lambda lo, x, hi: np.minimum(np.maximum(x, lo), hi),
    "stop_gradient": lambda x: x,
    "copy": lambda x: x,
}


def _conv(op: Op, x: Array, w: Array) -> Array:
    p = op.params
    dn = p["dimension_numbers"]
    x = np.transpose(x, dn.lhs_spec)
    w = np.transpose(w, dn.rhs_spec)
    groups, rank = p["feature_group_count"], x.ndim - 2
    grown = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], p["lhs_dilation"], strict=True)]
    up = np.zeros((*x.shape[:2], *grown), x.dtype)
    up[(slice(None), slice(None), *(slice(None, None, d) for d in p["lhs_dilation"]))] = x
    up = np.pad(up, [(0, 0), (0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in p["padding"])])
    cut = tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(p["padding"], up.shape[2:], strict=True))
    up = up[(slice(None), slice(None), *cut)]
    out_shape = tuple(op.out.shape[d] for d in dn.out_spec)
    out = np.zeros(out_shape, np.result_type(x, w))
    per_in, per_out = x.shape[1] // groups, w.shape[0] // groups
    for tap in np.ndindex(*w.shape[2:]):
        window = tuple(
            slice(t * d, t * d + s * (n - 1) + 1, s)
            for t, d, s, n in zip(tap, p["rhs_dilation"], p["window_strides"], out_shape[2:], strict=True)
        )
        patch = up[(slice(None), slice(None), *window)]
        for g in range(groups):
            a = patch[:, g * per_in : (g + 1) * per_in]
            b = w[(slice(g * per_out, (g + 1) * per_out), slice(None), *tap)]
            out[:, g * per_out : (g + 1) * per_out] += np.moveaxis(np.tensordot(a, b, ((1,), (1,))), -1, 1)
    assert rank == len(tap) if w.size else True
    return np.transpose(out, np.argsort(dn.out_spec))


def _dot(op: Op, a: Array, b: Array) -> Array:
    (ac, bc), (ab, bb) = op.params["dimension_numbers"]
    afree = [d for d in range(a.ndim) if d not in (*ac, *ab)]
    bfree = [d for d in range(b.ndim) if d not in (*bc, *bb)]
    batch = [a.shape[d] for d in ab]
    k = math.prod(a.shape[d] for d in ac)
    left = np.transpose(a, (*ab, *afree, *ac)).reshape(*batch, math.prod(a.shape[d] for d in afree), k)
    right = np.transpose(b, (*bb, *bc, *bfree)).reshape(*batch, k, math.prod(b.shape[d] for d in bfree))
    return np.matmul(left, right).reshape(op.out.shape)


def _window(combine: Callable[..., Array], start: float) -> Rule:
    def rule(op: Op, x: Array) -> Array:
        p = op.params
        grown = [(n - 1) * d + 1 for n, d in zip(x.shape, p["base_dilation"], strict=True)]
        up = np.full(grown, start, x.dtype)
        up[tuple(slice(None, None, d) for d in p["base_dilation"])] = x
        up = np.pad(up, p["padding"], constant_values=start)
        out = np.full(op.out.shape, start, x.dtype)
        for tap in np.ndindex(*p["window_dimensions"]):
            cut = tuple(
                slice(t * d, t * d + s * (n - 1) + 1, s)
                for t, d, s, n in zip(tap, p["window_dilation"], p["window_strides"], op.out.shape, strict=True)
            )
            out = combine(out, up[cut])
        return out

    return rule


def _broadcast(op: Op, x: Array) -> Array:
    shape = [1] * len(op.params["shape"])
    for d, n in zip(op.params["broadcast_dimensions"], np.shape(x), strict=True):
        shape[d] = n
    return np.broadcast_to(np.reshape(x, shape), op.params["shape"])


def _gather(op: Op, table: Array, index: Array) -> Array:
    i = index[..., 0]
    rows = table[np.clip(i, 0, table.shape[0] - 1)]
    if "fill" in str(op.params["mode"]).lower():
        rows = np.where(((i >= 0) & (i < table.shape[0])).reshape(i.shape + (1,) * (rows.ndim - i.ndim)), rows, np.nan)
    return rows


def _pad(op: Op, x: Array, value: Any) -> Array:
    """Spread by the gaps and padded; what padding below zero cuts off is cut off last."""
    config = op.params["padding_config"]
    spread = [n + max(n - 1, 0) * gap for (_, _, gap), n in zip(config, x.shape, strict=True)]
    out = np.full([max(lo, 0) + n + max(hi, 0) for (lo, hi, _), n in zip(config, spread, strict=True)], value, x.dtype)
    out[tuple(slice(max(lo, 0), max(lo, 0) + n, gap + 1) for (lo, _, gap), n in zip(config, spread, strict=True))] = x
    return out[tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi, _), n in zip(config, out.shape, strict=True))]


def _place(block: tuple[int, ...], shape: tuple[int, ...], starts: Sequence[Any]) -> tuple[slice, ...]:
    """Where a block lies whose start is clamped so that it is inside."""
    clamped = [min(max(int(i), 0), m - n) for i, n, m in zip(starts, block, shape, strict=True)]
    return tuple(slice(i, i + n) for i, n in zip(clamped, block, strict=True))


def _dynamic_slice(op: Op, x: Array, *starts: Any) -> Array:
    return x[_place(op.params["slice_sizes"], x.shape, starts)]


def _dynamic_update_slice(op: Op, x: Array, update: Array, *starts: Any) -> Array:
    out = x.copy()
    out[_place(update.shape, x.shape, starts)] = update
    return out


def converted(x: Any, dtype: Any) -> Array:
    """XLA's conversion: a number outside of an integer's range becomes the nearest inside, NaN becomes 0."""
    x, to = np.asarray(x), np.dtype(dtype)
    if to.kind not in "iu" or x.dtype.kind in "biuc":
        return x.astype(to)
    x, limits = x.astype(np.float64), np.iinfo(to)
    inside = np.where((x > limits.min) & (x < limits.max), x, 0).astype(to)
    return np.where(x >= limits.max, to.type(limits.max), np.where(x <= limits.min, to.type(limits.min), inside))


def _convert(op: Op, x: Array) -> Array:
    return converted(x, op.params["new_dtype"])


def _slice(op: Op, x: Array) -> Array:
    p = op.params
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(slice(a, b, s) for a, b, s in zip(p["start_indices"], p["limit_indices"], steps, strict=True))]


def _axes(op: Op) -> tuple[int, ...]:
    return tuple(op.params["axes"])


STRUCTURED: dict[str, Rule] = {
    "conv_general_dilated": _conv,
    "dot_general": _dot,
    "reduce_window_sum": _window(np.add, 0.0),
    "reduce_window_max": _window(np.maximum, -np.inf),
    "reduce_window_min": _window(np.minimum, np.inf),
    "reduce_sum": lambda op, x: np.sum(x, _axes(op)),
    "reduce_max": lambda op, x: np.max(x, _axes(op), initial=-np.inf),
    "reduce_min": lambda op, x: np.min(x, _axes(op), initial=np.inf),
    "reduce_prod": lambda op, x: np.prod(x, _axes(op)),
    "broadcast_in_dim": _broadcast,
    "reshape": lambda op, x: np.reshape(x, op.params["new_sizes"]),
    "squeeze": lambda op, x: np.squeeze(x, tuple(op.params["dimensions"])),
    "transpose": lambda op, x: np.transpose(x, op.params["permutation"]),
    "concatenate": lambda op, *xs: np.concatenate(xs, op.params["dimension"]),
    "slice": _slice,
    "rev": lambda op, x: np.flip(x, op.params["dimensions"]),
    "pad": _pad,
    "gather": _gather,
    "convert_element_type": _convert,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "iota": lambda op: np.broadcast_to(
        np.arange(op.params["shape"][op.params["dimension"]], dtype=op.params["dtype"]).reshape(
            [-1 if d == op.params["dimension"] else 1 for d in range(len(op.params["shape"]))]
        ),
        op.params["shape"],
    ),
}


def known(op: Op) -> bool:
    return op.prim in ELEMENTWISE or op.prim in STRUCTURED


def apply(op: Op, *operands: Any) -> Array:
    """The result of one operation. Raises `KeyError` for a primitive without a rule (see `known`)."""
    with np.errstate(all="ignore"):
        if op.prim == "integer_pow":
            return _integer_pow(operands[0], op.params["y"])
        if op.prim in ELEMENTWISE:
            return ELEMENTWISE[op.prim](*operands)
        return STRUCTURED[op.prim](op, *operands)


def run(program: Program, inputs: Sequence[Array], consts: Sequence[Array], dtype: Any = np.float64) -> list[Array]:
    """The program's outputs, computed in `dtype`."""

    def wide(a: Any) -> Any:
        return np.asarray(a, dtype) if np.issubdtype(np.asarray(a).dtype, np.floating) else np.asarray(a)

    env: dict[Value, Any] = dict(zip((*program.inputs, *program.consts), map(wide, (*inputs, *consts)), strict=True))
    run_ops(program.ops, env, wide)
    return [env[v] for v in program.outputs]


def run_ops(
    ops: Sequence[Op], env: dict[Value, Any] | Mapping[Value, Any], wide: Callable[[Any], Any] = np.asarray
) -> None:
    """Evaluates `ops` in `env`, adding their results."""
    for op in ops:
        args = [wide(v.val) if isinstance(v, Literal) else env[v] for v in op.ins]
        env[op.out] = apply(op, *args)  # type: ignore[index]
