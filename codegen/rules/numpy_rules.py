"""The slow, obvious NumPy meaning of primitives, one function each (see `reference`, which runs them).

A rule takes the operation and its operands as NumPy arrays and returns the result. Given f64 operands
the result is f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..program import Op

Array = np.ndarray
Rule = Callable[..., "Array | list[Array]"]  # (operation, operands) -> result, or all of several

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def each(rule: Callable[..., Array]) -> Rule:
    """The rule of a primitive that has no parameters: a function of its operands."""
    return lambda op, *operands: rule(*operands)


def logistic(x: Array) -> Array:
    """1 / (1 + e**-x) of an array of any shape."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def divide(a: Array, b: Array) -> Array:
    """XLA's quotient: of integers it is cut towards zero, and -1 for a divisor of 0."""
    if np.result_type(a, b).kind not in "iu":
        return np.divide(a, b)
    safe = np.where(np.equal(b, 0), np.ones_like(b), b)
    q = a // safe
    q = q + ((a % safe != 0) & (np.less(a, 0) != np.less(b, 0))).astype(q.dtype)
    return np.where(np.equal(b, 0), np.array(-1).astype(q.dtype), q)


def select_n(which: Array, *cases: Array) -> Array:
    """The case, each an array of one shape, that a bool or an integer names; one outside takes the nearest."""
    out = cases[0]
    for k, case in enumerate(cases[1:], 1):
        out = np.where(np.asarray(which) >= k, case, out)
    return out


def integer_pow(op: Op, x: Array) -> Array:
    """x**y for a whole number y, the parameter, of an array of any shape."""
    y = op.params["y"]
    return x**y if y >= 0 else 1 / x ** (-y)


def convolution(op: Op, x: Array, w: Array) -> Array:
    """Image and weights in the layout of the operation -> its result, of its shape: a sum over the window's taps."""
    p = op.params
    dn = p["dimension_numbers"]
    x = np.transpose(x, dn.lhs_spec)
    w = np.transpose(w, dn.rhs_spec)
    rank = x.ndim - 2
    groups, split = (p["batch_group_count"], 0) if p["batch_group_count"] > 1 else (p["feature_group_count"], 1)
    grown = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], p["lhs_dilation"], strict=True)]
    up = np.zeros((*x.shape[:2], *grown), x.dtype)
    up[(slice(None), slice(None), *(slice(None, None, d) for d in p["lhs_dilation"]))] = x
    up = np.pad(up, [(0, 0), (0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in p["padding"])])
    cut = tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(p["padding"], up.shape[2:], strict=True))
    up = up[(slice(None), slice(None), *cut)]
    out_shape = tuple(op.out.shape[d] for d in dn.out_spec)
    out = np.zeros(out_shape, np.result_type(x, w))
    per_out = w.shape[0] // groups
    for tap in np.ndindex(*w.shape[2:]):
        window = tuple(
            slice(t * d, t * d + s * (n - 1) + 1, s)
            for t, d, s, n in zip(tap, p["rhs_dilation"], p["window_strides"], out_shape[2:], strict=True)
        )
        patches = np.split(up[(slice(None), slice(None), *window)], groups, split)
        for g, a in enumerate(patches):
            b = w[(slice(g * per_out, (g + 1) * per_out), slice(None), *tap)]
            out[:, g * per_out : (g + 1) * per_out] += np.moveaxis(np.tensordot(a, b, ((1,), (1,))), -1, 1)
    assert rank == len(tap) if w.size else True
    return np.transpose(out, np.argsort(dn.out_spec))


def product(op: Op, a: Array, b: Array) -> Array:
    """The contraction of two arrays as [batch..., free of a..., free of b...]: the operation's shape."""
    (ac, bc), (ab, bb) = op.params["dimension_numbers"]
    afree = [d for d in range(a.ndim) if d not in (*ac, *ab)]
    bfree = [d for d in range(b.ndim) if d not in (*bc, *bb)]
    batch = [a.shape[d] for d in ab]
    k = math.prod(a.shape[d] for d in ac)
    left = np.transpose(a, (*ab, *afree, *ac)).reshape(*batch, math.prod(a.shape[d] for d in afree), k)
    right = np.transpose(b, (*bb, *bc, *bfree)).reshape(*batch, k, math.prod(b.shape[d] for d in bfree))
    return np.matmul(left, right).reshape(op.out.shape)


def window(combine: Callable[..., Array], start: float) -> Rule:
    """The rule of a reduction over windows: `combine` joins two arrays of one shape, `start` changes nothing."""

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


def select_and_scatter_add(op: Op, source: Array, image: Array) -> Array:
    """Zeroes of the image's shape, to which each element of the source is added where its window of the image selects:
    an element gives way to a later one unless the selection, of both, holds. Around the image lies what gives way to
    everything but its like.
    """
    p = op.params
    holds, around = {"ge": (np.greater_equal, -np.inf), "le": (np.less_equal, np.inf)}[p["select_prim"].name]
    image = np.pad(image, p["padding"], constant_values=around)
    out = np.zeros(image.shape, source.dtype)
    for window in np.ndindex(*source.shape):
        first = [w * s for w, s in zip(window, p["window_strides"], strict=True)]
        places = [tuple(np.add(first, tap)) for tap in np.ndindex(*p["window_dimensions"])]
        chosen = places[0]
        for at in places[1:]:
            chosen = chosen if holds(image[chosen], image[at]) else at
        out[chosen] += source[window]
    return out[tuple(slice(lo, n - hi) for (lo, hi), n in zip(p["padding"], out.shape, strict=True))]


def rounded(op: Op, x: Array) -> Array:
    """To the nearest whole number, ties to even or away from zero, as a parameter says."""
    if int(op.params["rounding_method"]) == 1:
        return np.round(x)
    return np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x)


def remainder(a: Array, b: Array) -> Array:
    """With the sign of the dividend; of integers the dividend itself where the divisor is 0."""
    if np.result_type(a, b).kind not in "iu":
        return np.fmod(a, b)
    return np.where(np.equal(b, 0), a, np.fmod(a, np.where(np.equal(b, 0), 1, b)).astype(np.result_type(a, b)))


def position(rule: Callable[..., Array]) -> Rule:
    """The rule of argmax or argmin: NumPy's along one axis, in the type of the result."""
    return lambda op, x: np.asarray(rule(x, axis=op.params["axes"][0])).astype(op.out.dtype)


def broadcast(op: Op, x: Array) -> Array:
    """The operand spread over the shape that is a parameter."""
    shape = [1] * len(op.params["shape"])
    for d, n in zip(op.params["broadcast_dimensions"], np.shape(x), strict=True):
        shape[d] = n
    return np.broadcast_to(np.reshape(x, shape), op.params["shape"])


def pad(op: Op, x: Array, value: Array) -> Array:
    """Spread by the gaps and padded along each axis; what padding below zero cuts off is cut off last."""
    config = op.params["padding_config"]
    spread = [n + max(n - 1, 0) * gap for (_, _, gap), n in zip(config, x.shape, strict=True)]
    out = np.full([max(lo, 0) + n + max(hi, 0) for (lo, hi, _), n in zip(config, spread, strict=True)], value, x.dtype)
    out[tuple(slice(max(lo, 0), max(lo, 0) + n, gap + 1) for (lo, _, gap), n in zip(config, spread, strict=True))] = x
    return out[tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi, _), n in zip(config, out.shape, strict=True))]


def _place(block: tuple[int, ...], shape: tuple[int, ...], starts: Sequence[Array]) -> tuple[slice, ...]:
    """Where a block lies whose start is clamped so that it is inside."""
    clamped = [min(max(int(i), 0), m - n) for i, n, m in zip(starts, block, shape, strict=True)]
    return tuple(slice(i, i + n) for i, n in zip(clamped, block, strict=True))


def dynamic_slice(op: Op, x: Array, *starts: Array) -> Array:
    """The block of the shape `slice_sizes` at scalar starts, which are clamped so that it lies inside."""
    return x[_place(op.params["slice_sizes"], x.shape, starts)]


def dynamic_update_slice(op: Op, x: Array, update: Array, *starts: Array) -> Array:
    """A copy of x with `update` at scalar starts, which are clamped so that it lies inside."""
    out = x.copy()
    out[_place(update.shape, x.shape, starts)] = update
    return out


def converted(x: npt.ArrayLike, dtype: npt.DTypeLike) -> Array:
    """XLA's conversion: a number outside of an integer's range becomes the nearest inside, NaN becomes 0."""
    x, to = np.asarray(x), np.dtype(dtype)
    if to.kind not in "iu" or x.dtype.kind in "biuc":
        return x.astype(to)
    x, limits = x.astype(np.float64), np.iinfo(to)
    inside = np.where((x > limits.min) & (x < limits.max), x, 0).astype(to)
    return np.where(x >= limits.max, to.type(limits.max), np.where(x <= limits.min, to.type(limits.min), inside))


def convert(op: Op, x: Array) -> Array:
    """`converted` to the type that is a parameter; the shape stays."""
    return converted(x, op.params["new_dtype"])


def nearest(dtype: str) -> Rule:
    """The nearest numbers of a type, in that of the operand."""
    return lambda op, x: np.asarray(x).astype(dtype).astype(np.asarray(x).dtype)


def slice_(op: Op, x: Array) -> Array:
    """From start to limit in steps, along each axis."""
    p = op.params
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(slice(a, b, s) for a, b, s in zip(p["start_indices"], p["limit_indices"], steps, strict=True))]


def reduce(combine: Callable[..., Array], **start: float) -> Rule:
    """The rule of a reduction over the axes that are a parameter; `combine(x, axes, ...)` is NumPy's."""
    return lambda op, x: combine(x, tuple(op.params["axes"]), **start)


def reshape(op: Op, x: Array) -> Array:
    """The same elements in the shape that is a parameter."""
    return np.reshape(x, op.params["new_sizes"])


def squeeze(op: Op, x: Array) -> Array:
    """The operand without the axes that are a parameter, each of size 1."""
    return np.squeeze(x, tuple(op.params["dimensions"]))


def transpose(op: Op, x: Array) -> Array:
    """The operand with its axes in the order that is a parameter."""
    return np.transpose(x, op.params["permutation"])


def concatenate(op: Op, *xs: Array) -> Array:
    """The operands one after the other along an axis."""
    return np.concatenate(xs, op.params["dimension"])


def rev(op: Op, x: Array) -> Array:
    """The operand from its end along the axes that are a parameter."""
    return np.flip(x, op.params["dimensions"])


def iota(op: Op) -> Array:
    """0, 1, 2, ... along one axis of an array of a shape that is a parameter."""
    shape, axis = op.params["shape"], op.params["dimension"]
    counted = np.arange(shape[axis], dtype=op.params["dtype"])
    return np.broadcast_to(counted.reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape)
