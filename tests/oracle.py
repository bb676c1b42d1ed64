"""What a function means, in float64: JAX's own jaxpr of it, evaluated operation by operation with NumPy.

Nothing of the library is used: neither its trace nor its reference. A rule is the definition of the operation, written
as plainly as NumPy allows; what has no rule here is computed by JAX, eagerly and in float64. Floats are held as float64
whatever their type in the function, and rounded where the function converts them to a narrower type; integers and
bools are held as they are.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal
from numpy.lib.stride_tricks import sliding_window_view
from scipy import special

Array = np.ndarray
HALVES = ("float16", "bfloat16")  # a conversion to these rounds
INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}
INLINED |= {"checkpoint": "jaxpr", "remat2": "jaxpr", "closed_call": "call_jaxpr"}


def oracle(fn: Callable[..., Any], *args: Any) -> Array:
    """The first leaf of `oracles`."""
    return oracles(fn, *args)[0]


def oracles(fn: Callable[..., Any], *args: Any) -> list[Array]:
    """The leaves of `fn(*args)` in float64 (integers and bools in their own type)."""
    closed = jax.make_jaxpr(fn)(*args)
    with np.errstate(all="ignore"):
        return [np.asarray(x) for x in _evaluated(closed.jaxpr, closed.consts, jax.tree_util.tree_leaves(args))]


def error(got: Any, want: Array) -> float:
    """Largest difference, relative to the output's scale (its largest absolute value); the shapes must be the same."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, f"got the shape {got.shape}, want {want.shape}"
    if not want.size:
        return 0.0
    return float(np.max(np.abs(got - want)) / max(float(np.max(np.abs(want))), 1e-30))


def worst(got: Any, want: Sequence[Array]) -> float:
    """The largest `error` of all leaves; there must be as many as in `want`, and one at least."""
    return max(error(a, b) for a, b in zip(jax.tree_util.tree_leaves(got), want, strict=True))


def _wide(x: Any) -> Array:
    """An array as it is held here."""
    x = np.asarray(x)
    return x.astype(np.float64) if jax.numpy.issubdtype(x.dtype, np.floating) else x


def _evaluated(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Array]:
    env = {v: _wide(x) for v, x in zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True)}
    read = lambda atom: _wide(atom.val) if isinstance(atom, Literal) else env[atom]
    for eqn in jaxpr.eqns:
        outs = _applied(eqn, [read(x) for x in eqn.invars])
        for var, out in zip(eqn.outvars, outs, strict=True):
            assert np.shape(out) == var.aval.shape, f"the rule of {eqn.primitive} gives {np.shape(out)}: {eqn}"
            env[var] = _wide(out)
    return [read(x) for x in jaxpr.outvars]


def _applied(eqn: Any, operands: list[Array]) -> Sequence[Any]:
    name = eqn.primitive.name
    if name in INLINED:
        inner = eqn.params[INLINED[name]]
        return _evaluated(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)
    if name in RULES:
        out = RULES[name](*operands, **eqn.params)
        return out if eqn.primitive.multiple_results else [out]
    return eager(eqn, operands)


def eager(eqn: Any, operands: Sequence[Any]) -> list[Array]:
    """The results of an equation as JAX computes this one operation in float64, compiled with no other one."""
    if any(hasattr(p, "jaxpr") for p in eqn.params.values()):
        raise NotImplementedError(f"the oracle has no rule for {eqn.primitive}, which has a body of its own")
    wide = lambda p: np.dtype("float64") if isinstance(p, np.dtype) and p == np.float32 else p
    with jax.enable_x64(True), jax.disable_jit():
        arrays = [jax.numpy.asarray(x) for x in operands]
        out = eqn.primitive.bind(*arrays, **{k: wide(p) for k, p in eqn.params.items()})
    return [np.asarray(x) for x in (out if eqn.primitive.multiple_results else [out])]


# -- the rules: operands, then the primitive's parameters by name ----------------------------------------------------


def _of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that needs no parameter."""
    return lambda *operands, **_: fn(*operands)


def _quotient(a: Array, b: Array) -> Array:
    """Of integers: cut towards zero; -1 where the divisor is 0, as XLA has it; the least by -1 wraps around."""
    if a.dtype.kind not in "iu":
        return np.true_divide(a, b)
    divisor = np.where(b == 0, 1, b)
    exact = np.abs(a.astype(object)) // np.abs(divisor.astype(object)) * np.sign(a.astype(object) * divisor)
    return np.where(b == 0, -1, (exact + 2**31) % 2**32 - 2**31).astype(a.dtype)


def _power(x: Array, y: int, **_: Any) -> Array:
    """By repeated multiplication; integers wrap around."""
    out = np.ones_like(x)
    for _ in range(abs(y)):
        out = out * x
    return out if y >= 0 else 1 / out


def _select(which: Array, *cases: Array) -> Array:
    index = np.broadcast_to(np.clip(np.asarray(which, np.int64), 0, len(cases) - 1), np.shape(cases[0]))
    return np.take_along_axis(np.stack(cases), index[None], 0)[0]


def _convert(x: Array, new_dtype: Any, **_: Any) -> Array:
    """To integers: the nearest inside of the range, cut towards zero; NaN is 0. To halves: rounded."""
    if new_dtype.name in HALVES:
        return np.asarray(x, np.float32).astype(new_dtype)
    if jax.numpy.issubdtype(new_dtype, np.floating) or new_dtype.kind in "c":
        return np.asarray(x, np.result_type(new_dtype, np.float64))
    if new_dtype.kind == "b" or x.dtype.kind != "f":
        return x.astype(new_dtype)
    ends = np.iinfo(new_dtype)
    return np.array([0 if v != v else int(min(max(v, ends.min), ends.max)) for v in x.flat], new_dtype).reshape(x.shape)


def _spread(x: Array, gaps: Sequence[int], fill: Any) -> Array:
    """`x` with so many elements `fill` between any two neighbours of each axis."""
    for axis, gap in enumerate(gaps):
        if gap and x.shape[axis]:
            x = np.insert(x, np.repeat(np.arange(1, x.shape[axis]), gap), fill, axis)
    return x


def _padded(x: Array, config: Sequence[tuple[int, int, int]], fill: Any) -> Array:
    """Spread by the gaps, then padded; what is padded by less than zero is cut off."""
    x = _spread(x, [gap for _, _, gap in config], fill)
    x = np.pad(x, [(max(lo, 0), max(hi, 0)) for lo, hi, _ in config], constant_values=fill)
    ends = [(max(-lo, 0), n - max(-hi, 0)) for (lo, hi, _), n in zip(config, x.shape, strict=True)]
    return x[tuple(slice(a, max(a, b)) for a, b in ends)]


def _windows(x: Array, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """[places ..., elements of a window ...] over all axes of `x`."""
    reach = [(n - 1) * d + 1 for n, d in zip(sizes, dilation, strict=True)]
    if any(n < r for n, r in zip(x.shape, reach, strict=True)):
        places = [max((n - r) // s + 1, 0) for n, r, s in zip(x.shape, reach, strides, strict=True)]
        return np.zeros((*places, *sizes), x.dtype)
    every = sliding_window_view(x, reach)
    return every[tuple(slice(None, None, k) for k in (*strides, *dilation))]


def _convolution(
    x: Array,
    w: Array,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    preferred_element_type: Any,
    **_: Any,
) -> Array:
    """Every place's window times every filter of its group; a group of the batch has its own filters, and its results
    are channels.
    """
    x, w = (_summed_as(preferred_element_type, y) for y in (x, w))
    x, w = x.transpose(dimension_numbers.lhs_spec), w.transpose(dimension_numbers.rhs_spec)
    config = [(0, 0, 0)] * 2 + [(lo, hi, d - 1) for (lo, hi), d in zip(padding, lhs_dilation, strict=True)]
    sizes, ones = (1, 1, *w.shape[2:]), (1, 1)
    seen = _windows(_padded(x, config, 0.0), sizes, (*ones, *window_strides), (*ones, *rhs_dilation))
    axis, count = (0, batch_group_count) if batch_group_count > 1 else (1, feature_group_count)
    total: Any = 0  # [groups, batch, features of a group, places]
    for tap in np.ndindex(*w.shape[2:]):
        inputs = np.stack(np.split(seen[(..., 0, 0, *tap)], count, axis))
        filters = w[(..., *tap)].reshape(count, 1, w.shape[0] // count, w.shape[1])
        total = total + filters @ inputs.reshape(*inputs.shape[:3], -1 if inputs.size else 0)
    out = np.moveaxis(total, 0, 1).reshape(inputs.shape[1], w.shape[0], *inputs.shape[3:])
    return np.moveaxis(out, range(out.ndim), dimension_numbers.out_spec)


def _summed_as(dtype: Any, x: Array) -> Array:
    """An operand of a product in the type in which whole numbers are summed."""
    return x if dtype is None or x.dtype.kind == "f" else x.astype(dtype)


def _product(a: Array, b: Array, dimension_numbers: Any, preferred_element_type: Any, **_: Any) -> Array:
    a, b = (_summed_as(preferred_element_type, y) for y in (a, b))
    (a_sum, b_sum), (a_batch, b_batch) = dimension_numbers
    names = iter(string.ascii_letters)
    left, right = [next(names) for _ in a.shape], [next(names) for _ in b.shape]
    for i, j in zip((*a_sum, *a_batch), (*b_sum, *b_batch), strict=True):
        right[j] = left[i]
    batch = [left[i] for i in a_batch]
    free = [n for i, n in enumerate(left) if i not in (*a_sum, *a_batch)]
    free += [n for j, n in enumerate(right) if j not in (*b_sum, *b_batch)]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(batch + free)}", a, b, optimize=True)


def _pooled(reduce: Callable[..., Any], start: float) -> Callable[..., Any]:
    def rule(x: Array, **p: Any) -> Array:
        config = [(lo, hi, d - 1) for (lo, hi), d in zip(p["padding"], p["base_dilation"], strict=True)]
        seen = _windows(_padded(x, config, start), p["window_dimensions"], p["window_strides"], p["window_dilation"])
        return reduce(seen, axis=tuple(range(x.ndim, 2 * x.ndim)))

    return rule


def _chosen(
    source: Array, x: Array, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any, **_: Any
) -> Array:
    """Each window's gradient goes to its first element that the comparison prefers to all before it."""
    grown = np.pad(x, padding, constant_values=-np.inf if "ge" in str(select_prim) else np.inf)
    out = np.zeros_like(grown)
    for place in np.ndindex(*source.shape):
        starts = [i * s for i, s in zip(place, window_strides, strict=True)]
        block = grown[tuple(slice(a, a + n) for a, n in zip(starts, window_dimensions, strict=True))]
        best = (np.argmax if "ge" in str(select_prim) else np.argmin)(block)
        inside = np.unravel_index(best, block.shape)
        out[tuple(a + b for a, b in zip(starts, inside, strict=True))] += source[place]
    return out[tuple(slice(lo, lo + n) for (lo, _), n in zip(padding, x.shape, strict=True))]


def _reduced(reduce: Callable[..., Any], **given: Any) -> Callable[..., Any]:
    return lambda x, axes, **_: reduce(x, axis=tuple(axes), **given)


def _broadcast(x: Array, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any) -> Array:
    others = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    return np.broadcast_to(np.expand_dims(x, others), shape)


def _slice(x: Array, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Any, **_: Any) -> Array:
    steps = strides or [1] * x.ndim
    return x[tuple(slice(*ends) for ends in zip(start_indices, limit_indices, steps, strict=True))]


def _inside(starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """A block that is moved so far that it lies inside."""
    moved = [int(np.clip(i, 0, n - size)) for i, size, n in zip(starts, sizes, shape, strict=True)]
    return tuple(slice(i, i + size) for i, size in zip(moved, sizes, strict=True))


def _updated(x: Array, block: Array, *starts: Any, **_: Any) -> Array:
    out = x.copy()
    out[_inside(starts, block.shape, x.shape)] = block
    return out


def _gathered(x: Array, indices: Array, **p: Any) -> Array:
    """Block by block, each moved inside; with the mode of filling a block that is not inside is NaN."""
    d, sizes = p["dimension_numbers"], p["slice_sizes"]
    assert not (d.operand_batching_dims or d.start_indices_batching_dims)
    blocks = []
    for place in np.ndindex(*indices.shape[:-1]):
        starts = np.zeros(x.ndim, np.int64)
        starts[list(d.start_index_map)] = indices[place]
        block = np.squeeze(x[_inside(starts, sizes, x.shape)], tuple(d.collapsed_slice_dims))
        fits = all(0 <= i <= n - size for i, size, n in zip(starts, sizes, x.shape, strict=True))
        blocks.append(block if fits or "FILL" not in str(p["mode"]) else np.full_like(block, np.nan))
    out = np.reshape(blocks, (*indices.shape[:-1], *np.shape(blocks[0])))
    batch = [axis for axis in range(out.ndim) if axis not in d.offset_dims]
    return np.moveaxis(out, range(out.ndim), [*batch, *d.offset_dims])


def _scattered(join: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Block by block, in order; one that is not inside is left out, or moved inside with the mode of clipping."""

    def rule(x: Array, indices: Array, updates: Array, **p: Any) -> Array:
        d, out = p["dimension_numbers"], x.copy()
        assert not (d.operand_batching_dims or d.scatter_indices_batching_dims)
        window = [axis for axis in range(x.ndim) if axis not in d.inserted_window_dims]
        sizes = [1] * x.ndim
        for axis, dim in zip(window, d.update_window_dims, strict=True):
            sizes[axis] = updates.shape[dim]
        batch = [axis for axis in range(updates.ndim) if axis not in d.update_window_dims]
        blocks = updates.transpose(*batch, *d.update_window_dims)
        for place in np.ndindex(*indices.shape[:-1]):
            starts = np.zeros(x.ndim, np.int64)
            starts[list(d.scatter_dims_to_operand_dims)] = indices[place]
            fits = all(0 <= i <= n - size for i, size, n in zip(starts, sizes, x.shape, strict=True))
            if fits or "CLIP" in str(p["mode"]):
                at = _inside(starts, sizes, x.shape)
                out[at] = join(out[at], blocks[place].reshape(sizes))
        return out

    return rule


def _turned(*xs: Any, **p: Any) -> list[Array]:
    """A loop, turn by turn."""
    if "num_consts" in p:
        a, b = p["num_consts"], p["num_consts"] + p["num_carry"]
    else:
        a, carried, _ = map(len, p["ft_in"].unpack())
        b = a + carried
    carry, made = list(xs[a:b]), []
    order = range(p["length"])[:: -1 if p["reverse"] else 1]
    for t in order:
        out = _evaluated(p["jaxpr"].jaxpr, p["jaxpr"].consts, [*xs[:a], *carry, *(x[t] for x in xs[b:])])
        carry = out[: b - a]
        made.append((t, out[b - a :]))
    parts = [ys for _, ys in sorted(made, key=lambda x: x[0])]
    return [*carry, *(np.stack(column) for column in zip(*parts, strict=True))]


def _turned_while(*xs: Any, **p: Any) -> list[Array]:
    """A loop, until its condition does not hold; an item with a condition of its own stays as it is then."""
    a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    asked, body, carry = p["cond_jaxpr"], p["body_jaxpr"], list(xs[b:])
    on = lambda: _evaluated(asked.jaxpr, asked.consts, [*xs[:a], *carry])[0]
    while (goes := np.asarray(on())).any():
        made = _evaluated(body.jaxpr, body.consts, [*xs[a:b], *carry])
        of = lambda x, goes=goes: goes.reshape(goes.shape + (1,) * (np.ndim(x) - goes.ndim))
        carry = [np.where(of(x), x, old) for x, old in zip(made, carry, strict=True)]
    return carry


def _counted(dtype: Any, shape: Sequence[int], dimension: int, **_: Any) -> Array:
    return np.indices(shape)[dimension].astype(dtype)


RULES: dict[str, Callable[..., Any]] = {
    "add": _of(np.add),
    "add_any": _of(np.add),
    "sub": _of(np.subtract),
    "mul": _of(np.multiply),
    "div": _of(_quotient),
    "max": _of(np.maximum),
    "min": _of(np.minimum),
    "neg": _of(np.negative),
    "abs": _of(np.abs),
    "sign": _of(np.sign),
    "floor": _of(np.floor),
    "ceil": _of(np.ceil),
    "round": lambda x, rounding_method, **_: np.rint(x) if int(rounding_method) else np.trunc(x + np.copysign(0.5, x)),
    "is_finite": _of(np.isfinite),
    "rem": _of(np.fmod),
    "sqrt": _of(np.sqrt),
    "rsqrt": _of(lambda x: np.divide(1, np.sqrt(x))),
    "square": _of(lambda x: x * x),
    "integer_pow": _power,
    "pow": _of(np.power),
    "exp": _of(np.exp),
    "exp2": _of(np.exp2),
    "log": _of(np.log),
    "log1p": _of(np.log1p),
    "expm1": _of(np.expm1),
    "sin": _of(np.sin),
    "cos": _of(np.cos),
    "tanh": _of(np.tanh),
    "logistic": _of(special.expit),
    "erf": _of(special.erf),
    "erfc": _of(special.erfc),
    "eq": _of(np.equal),
    "ne": _of(np.not_equal),
    "lt": _of(np.less),
    "le": _of(np.less_equal),
    "gt": _of(np.greater),
    "ge": _of(np.greater_equal),
    "and": _of(np.bitwise_and),
    "or": _of(np.bitwise_or),
    "xor": _of(np.bitwise_xor),
    "not": _of(np.invert),
    "select_n": _of(_select),
    "clamp": _of(lambda lo, x, hi: np.minimum(np.maximum(x, lo), hi)),
    "stop_gradient": _of(lambda x: x),
    "copy": _of(lambda x: x),
    "convert_element_type": _convert,
    "conv_general_dilated": _convolution,
    "dot_general": _product,
    "reduce_window_sum": _pooled(np.sum, 0.0),
    "reduce_window_max": _pooled(np.max, -np.inf),
    "reduce_window_min": _pooled(np.min, np.inf),
    "select_and_scatter_add": _chosen,
    "reduce_and": _reduced(np.all),
    "reduce_or": _reduced(np.any),
    "reduce_sum": _reduced(np.sum),
    "reduce_prod": _reduced(np.prod),
    "reduce_max": _reduced(np.max),
    "reduce_min": _reduced(np.min),
    "broadcast_in_dim": _broadcast,
    "argmax": lambda x, axes, index_dtype, **_: np.argmax(x, axes[0]).astype(index_dtype),
    "argmin": lambda x, axes, index_dtype, **_: np.argmin(x, axes[0]).astype(index_dtype),
    "reshape": lambda x, new_sizes, dimensions, **_: x.transpose(dimensions or range(x.ndim)).reshape(new_sizes),
    "squeeze": lambda x, dimensions, **_: np.squeeze(x, tuple(dimensions)),
    "transpose": lambda x, permutation, **_: x.transpose(permutation),
    "concatenate": lambda *xs, dimension, **_: np.concatenate(xs, dimension),
    "split": lambda x, sizes, axis, **_: np.split(x, np.cumsum(sizes)[:-1], axis),
    "slice": _slice,
    "rev": lambda x, dimensions, **_: np.flip(x, dimensions),
    "pad": lambda x, value, padding_config, **_: _padded(x, padding_config, value),
    "gather": _gathered,
    "dynamic_slice": lambda x, *starts, slice_sizes, **_: x[_inside(starts, slice_sizes, x.shape)],
    "dynamic_update_slice": _updated,
    "iota": _counted,
    "scatter": _scattered(lambda x, y: y),
    "scatter-add": _scattered(np.add),
    "scatter-sub": _scattered(np.subtract),
    "scatter-mul": _scattered(np.multiply),
    "scatter-max": _scattered(np.maximum),
    "scatter-min": _scattered(np.minimum),
    "scan": _turned,
    "while": _turned_while,
}
