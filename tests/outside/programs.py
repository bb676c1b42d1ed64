"""Random programs: many primitives, shapes of rank 0 to 5, mixed types, nested calls; through `jax.jit` and
`xcoexec.jit`.

A `Program` is data: its `repr` is a reproducer, `run(program, *arrays)` its meaning. Discontinuous operations (floor,
comparisons, argmax, casts to integers) are only put behind values that both must compute exactly, so that a rounding
can not make two right results differ. Where floats differ by more than the sweep's tolerance, the program in float64
decides, with an allowance for the largest magnitude on the way to the results.

    python -m tests.outside.programs --examples 5000 --seconds 3600 --out out/programs.jsonl
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

import xcoexec

from .sweep_compare import Verdict, compare

FLOATS = ("float32", "bfloat16", "float16")
INTS = ("int32", "int8", "uint8", "uint32")
TYPES = ("float32",) * 6 + ("int32", "int32", "bool", "bfloat16", "float16", "int8", "uint8", "uint32")
DIMS = (0, 1, 1, 2, 3, 3, 4, 5, 8, 16, 17, 33)
LARGEST = 6000  # elements of a value
EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
ALLOWED = 24  # roundings of the largest magnitude, for each step
NARROW_ALLOWED = 6  # with types of 16 bits, for all steps together


@dataclasses.dataclass(frozen=True)
class Kind:
    """Shape and type of a value, and whether every implementation must compute the very same bits."""

    shape: tuple[int, ...]
    dtype: str
    exact: bool = True

    @property
    def floating(self) -> bool:
        return self.dtype in FLOATS

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclasses.dataclass(frozen=True)
class Step:
    """`op(*values[ins], *params)`; its result is the next value."""

    op: str
    ins: tuple[int, ...]
    params: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class Program:
    """`inputs`: (shape, type, "jax" | "numpy" | "python"); `outputs`: positions of values, or ("literal", number), or
    None.

    `grad`: the gradient of the floating outputs' sum by all floating inputs, instead of the outputs. `items`: all of
    this for so many items at once (`vmap`), of which each has its own arrays (0: not so).
    """

    inputs: tuple[tuple[tuple[int, ...], str, str], ...]
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]
    grad: bool = False
    items: int = 0


@dataclasses.dataclass(frozen=True)
class How:
    """How a program is called: leading arguments bound, which are donated, a static argument; share and dimension of
    the plan.
    """

    strategy: str = "kernels"
    p_cpu: float = 1.0
    dim: str = "channel"
    bound: int = 0
    donate: tuple[int, ...] = ()
    static: bool = False


# -- operations --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Op:
    """`accepts(kinds)`; `params(draw, kinds)`; `apply(params, *arrays)`; `exact`: of exact operands the result is exact
    too.

    `needs_exact`: a rounding of the operands may change the result by any amount.
    """

    arity: int
    accepts: Callable[[Sequence[Kind]], bool]
    apply: Callable[..., Any]
    params: Callable[[Any, Sequence[Kind]], tuple[Any, ...]] = lambda draw, ks: ()
    exact: bool = False
    needs_exact: bool = False


def _floating(ks: Sequence[Kind]) -> bool:
    return all(k.floating for k in ks)


def _number(ks: Sequence[Kind]) -> bool:
    return all(k.dtype != "bool" for k in ks)


def _signed(ks: Sequence[Kind]) -> bool:
    return all(k.floating or k.dtype in ("int32", "int8") for k in ks)


def _whole(ks: Sequence[Kind]) -> bool:
    return all(not k.floating for k in ks)


def _broadcasts(ks: Sequence[Kind]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(*(k.shape for k in ks)))) <= LARGEST
    except ValueError:
        return False


def _ranked(ks: Sequence[Kind]) -> bool:
    return len(ks[0].shape) >= 1


def _axis(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    return (draw(st.integers(0, len(ks[0].shape) - 1)),)


def _axes(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    rank = len(ks[0].shape)
    axes = draw(st.sets(st.integers(0, rank - 1))) if rank else set()
    return tuple(sorted(axes)), draw(st.booleans())


def _seed(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    return (draw(st.integers(0, 3)),)


UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tanh": jnp.tanh,
    "logistic": jax.nn.sigmoid,
    "exp": lambda x: jnp.exp(jnp.clip(x, -3, 3)),
    "expm1": lambda x: jnp.expm1(-jnp.abs(x)),
    "log1p": lambda x: jnp.log1p(jnp.abs(x)),
    "sqrt": lambda x: jnp.sqrt(jnp.abs(x) + 0.5),
    "rsqrt": lambda x: jax.lax.rsqrt(jnp.abs(x) + jnp.asarray(1, x.dtype)),
    "erf": jax.scipy.special.erf,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "atan": jnp.arctan,
    "reciprocal": lambda x: 1 / (1 + jnp.abs(x)),
    "cbrt": jnp.cbrt,
    "exp2": lambda x: jnp.exp2(jnp.clip(x, -3, 3)),
    "clip": lambda x: jnp.clip(x, -0.7, 1.1),
    "half": lambda x: x * 0.5,
    "third": lambda x: x / 3 + 1,
    "cube": lambda x: jnp.clip(x, -2, 2) ** 3,
    "power": lambda x: (jnp.abs(x) + 1) ** 0.3,
}
EXACT_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": jnp.negative,
    "abs": jnp.abs,
    "relu": jax.nn.relu,
    "square_clip": lambda x: jnp.clip(x, -1, 1),
}
ROUGH_UNARY: dict[str, Callable[[Any], Any]] = {
    "floor": jnp.floor,
    "round": jnp.round,
    "sign": jnp.sign,
    "ceil": jnp.ceil,
    "heaviside": lambda x: jnp.where(x > 0, 1.0, 0.5),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {"add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply}
EXACT_BINARY: dict[str, Callable[[Any, Any], Any]] = {"max": jnp.maximum, "min": jnp.minimum}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": jnp.less,
    "ge": jnp.greater_equal,
    "eq": jnp.equal,
    "ne": jnp.not_equal,
}


def constant(seed: int, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> np.ndarray:
    """A closed-over array, the same for the same arguments."""
    rng = np.random.default_rng([seed, *shape, len(shape)])
    x = rng.uniform(-2, 2, shape) * scale
    x = (
        np.abs(np.round(x * 3))
        if dtype.startswith("uint")
        else np.round(x * 3)
        if dtype.startswith("int")
        else x > 0
        if dtype == "bool"
        else x
    )
    return np.asarray(x).astype(jnp.dtype(dtype))


def _wide(x: Any, dtype: str) -> str:
    """In float64 all constants are of that type too."""
    return "float64" if dtype in FLOATS and jax.config.jax_enable_x64 else dtype


def _const(x: Any, seed: int, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> Any:
    return jnp.asarray(constant(seed, shape, dtype, scale).astype(jnp.dtype(_wide(x, dtype))))


def _cast(x: Any, dtype: str) -> Any:
    return x.astype(_wide(x, dtype)) if dtype in FLOATS else x.astype(dtype)


def _reductions() -> dict[str, Op]:
    full = lambda ks: ks[0].size > 0
    out = {
        "sum": Op(1, _number, lambda x, axes, keep: jnp.sum(x, axes, keepdims=keep), _axes),
        "mean": Op(
            1, lambda ks: _floating(ks) and full(ks), lambda x, axes, keep: jnp.mean(x, axes, keepdims=keep), _axes
        ),
        "prod": Op(1, _floating, lambda x, axes, keep: jnp.prod(jnp.clip(x, -1, 1), axes, keepdims=keep), _axes),
        "reduce_max": Op(
            1,
            lambda ks: _number(ks) and full(ks),
            lambda x, axes, keep: jnp.max(x, axes, keepdims=keep),
            _axes,
            exact=True,
        ),
        "reduce_min": Op(
            1,
            lambda ks: _number(ks) and full(ks),
            lambda x, axes, keep: jnp.min(x, axes, keepdims=keep),
            _axes,
            exact=True,
        ),
        "any": Op(
            1,
            lambda ks: ks[0].dtype == "bool",
            lambda x, axes, keep: jnp.any(x, axes, keepdims=keep),
            _axes,
            exact=True,
        ),
        "all": Op(
            1,
            lambda ks: ks[0].dtype == "bool",
            lambda x, axes, keep: jnp.all(x, axes, keepdims=keep),
            _axes,
            exact=True,
        ),
        "logsumexp": Op(
            1,
            lambda ks: _floating(ks) and full(ks),
            lambda x, axes, keep: jax.nn.logsumexp(x, axes, keepdims=keep),
            _axes,
        ),
    }
    inner = lambda ks: _ranked(ks) and full(ks)
    out["argmax"] = Op(1, lambda ks: inner(ks) and _number(ks), lambda x, a: jnp.argmax(x, a), _axis, True, True)
    out["argmin"] = Op(1, lambda ks: inner(ks) and _number(ks), lambda x, a: jnp.argmin(x, a), _axis, True, True)
    out["cumsum"] = Op(1, lambda ks: _ranked(ks) and _number(ks), lambda x, a: jnp.cumsum(x, a, dtype=x.dtype), _axis)
    out["cummax"] = Op(1, lambda ks: _ranked(ks) and _number(ks), lambda x, a: jax.lax.cummax(x, a), _axis, True)
    out["sort"] = Op(1, lambda ks: _ranked(ks) and _number(ks), lambda x, a: jnp.sort(x, a), _axis, True)
    out["argsort"] = Op(1, lambda ks: inner(ks) and _number(ks), lambda x, a: jnp.argsort(x, a), _axis, True, True)
    out["softmax"] = Op(1, lambda ks: inner(ks) and _floating(ks), lambda x, a: jax.nn.softmax(x, a), _axis)
    out["norm"] = Op(1, lambda ks: inner(ks) and _floating(ks), _layer_norm, _axis)
    return out


def _layer_norm(x: Any, a: int) -> Any:
    centred = x - x.mean(a, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(a, keepdims=True) + 0.1)


def _permutation(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    return (tuple(draw(st.permutations(range(len(ks[0].shape))))),)


def _new_shape(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    """The same elements with dimensions merged, and ones put in or left out."""
    shape = list(ks[0].shape)
    for _ in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(("merge", "one", "flat", "drop")))
        if what == "merge" and len(shape) >= 2:
            i = draw(st.integers(0, len(shape) - 2))
            shape[i : i + 2] = [shape[i] * shape[i + 1]]
        elif what == "one" and len(shape) < 5:
            shape.insert(draw(st.integers(0, len(shape))), 1)
        elif what == "flat":
            shape = [int(np.prod(shape))]
        elif what == "drop" and 1 in shape:
            shape.remove(1)
    return (tuple(shape),)


def _slices(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    out = []
    for n in ks[0].shape:
        a = draw(st.integers(0, n))
        b = draw(st.integers(a, n))
        out.append((a, b, draw(st.integers(1, 3))))
    return (tuple(out),)


def _pads(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    return (
        tuple(
            (draw(st.integers(-1 if n > 2 else 0, 2)), draw(st.integers(0, 2)), draw(st.integers(0, 1)))
            for n in ks[0].shape
        ),
    )


def _movement() -> dict[str, Op]:
    small = lambda ks: ks[0].size * 27 < LARGEST and 1 <= len(ks[0].shape) <= 4
    grows = lambda ks: ks[0].size * 2 < LARGEST and len(ks[0].shape) < 5
    joins = lambda ks: _ranked(ks) and ks[0].shape[1:] == ks[1].shape[1:] and len(ks[1].shape) == len(ks[0].shape)
    return {
        "transpose": Op(1, _ranked, lambda x, perm: jnp.transpose(x, perm), _permutation, True),
        "reshape": Op(1, lambda ks: True, lambda x, shape: jnp.reshape(x, shape), _new_shape, True),
        "slice": Op(1, _ranked, lambda x, s: x[tuple(slice(*t) for t in s)], _slices, True),
        "flip": Op(1, _ranked, lambda x, a: jnp.flip(x, a), _axis, True),
        "roll": Op(1, _ranked, lambda x, a: jnp.roll(x, 1, a), _axis, True),
        "repeat": Op(1, lambda ks: _ranked(ks) and grows(ks), lambda x, a: jnp.repeat(x, 2, a), _axis, True),
        "broadcast": Op(
            1, grows, lambda x, n: jnp.broadcast_to(x, (n, *x.shape)), lambda draw, ks: (draw(st.integers(0, 2)),), True
        ),
        "pad": Op(1, small, lambda x, c: jax.lax.pad(x, jnp.zeros((), x.dtype), c), _pads, True),
        "concatenate": Op(
            2, lambda ks: joins(ks) and ks[0].dtype == ks[1].dtype, lambda x, y: jnp.concatenate([x, y]), exact=True
        ),
        "concatenate mixed": Op(2, joins, lambda x, y: jnp.concatenate([x, y]), exact=False),
        "stack": Op(2, lambda ks: grows(ks) and ks[0].shape == ks[1].shape, lambda x, y: jnp.stack([x, y], -1)),
        "cast": Op(1, lambda ks: True, _cast, lambda draw, ks: (draw(st.sampled_from(FLOATS)),)),
        "cast whole": Op(
            1,
            lambda ks: True,
            lambda x, d: jnp.clip(x, 0, 100).astype(d),
            lambda draw, ks: (draw(st.sampled_from((*INTS, "bool"))),),
            True,
            True,
        ),
        "where": Op(3, lambda ks: ks[0].dtype == "bool" and _broadcasts(ks), jnp.where),
        "where number": Op(2, lambda ks: ks[0].dtype == "bool" and _broadcasts(ks), lambda c, x: jnp.where(c, x, 0)),
    }


def _take(x: Any, i: Any) -> Any:
    return jnp.take(x, i % max(x.shape[0], 1), axis=0)


def _indexed() -> dict[str, Op]:
    table = lambda ks: _ranked(ks) and ks[0].shape[0] > 0
    index = lambda ks: table(ks) and ks[1].dtype == "int32"
    small = lambda ks: (
        index(ks) and ks[0].size * max(ks[1].size, 1) < LARGEST and len(ks[0].shape) + len(ks[1].shape) <= 5
    )
    return {
        "take": Op(2, small, _take, exact=True),
        "dynamic_slice": Op(
            2,
            lambda ks: index(ks) and ks[1].shape == (),
            lambda x, i: jax.lax.dynamic_slice_in_dim(x, i, max(x.shape[0] // 2, 1)),
            exact=True,
        ),
        "dynamic_update": Op(
            2,
            lambda ks: index(ks) and ks[1].shape == (),
            lambda x, i: jax.lax.dynamic_update_index_in_dim(x, x[0], i, 0),
            exact=True,
        ),
        "scatter_add": Op(1, lambda ks: table(ks) and _number(ks), lambda x: x.at[np.array([0, -1, 0])].add(x[0])),
        "set": Op(1, table, lambda x: x.at[0].set(x[-1]), exact=True),
    }


def _matrix(ks: Sequence[Kind]) -> bool:
    return _ranked(ks) and _floating(ks) and 0 < ks[0].shape[-1] <= 64 and ks[0].size // ks[0].shape[-1] * 24 <= LARGEST


def _dense(x: Any, seed: int, n: int) -> Any:
    return x @ _const(x, seed, (x.shape[-1], n), str(x.dtype), 0.5 / x.shape[-1] ** 0.5)


def _image(ks: Sequence[Kind]) -> bool:
    k = ks[0]
    return k.floating and len(k.shape) == 4 and all(1 <= n <= 33 for n in k.shape) and k.size * 6 < 8 * LARGEST


def _conv(x: Any, seed: int, stride: int, groups: bool) -> Any:
    c = x.shape[-1]
    w = _const(x, seed, (3, 2, 1 if groups else c, c if groups else 5), str(x.dtype), 0.3 / c**0.5)
    return jax.lax.conv_general_dilated(
        x, w, (stride, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=c if groups else 1
    )


def _pool(x: Any, how: str) -> Any:
    start, op = (-jnp.inf, jax.lax.max) if how == "max" else (0.0, jax.lax.add)
    return jax.lax.reduce_window(x, jnp.asarray(start, x.dtype), op, (1, 2, 2, 1), (1, 2, 1, 1), "SAME")


def _heavy() -> dict[str, Op]:
    pair = lambda ks: (
        _floating(ks)
        and ks[0].dtype == ks[1].dtype
        and ks[0].shape == ks[1].shape
        and 2 <= len(ks[0].shape) <= 4
        and ks[0].size <= 1000
    )
    product = lambda x, y: jnp.einsum("...ij,...kj->...ik", x, y) * (0.3 / max(x.shape[-1], 1) ** 0.5)
    return {
        "dense": Op(
            1, _matrix, _dense, lambda draw, ks: (draw(st.integers(0, 3)), draw(st.sampled_from((1, 3, 16, 24))))
        ),
        "dense relu": Op(
            1,
            _matrix,
            lambda x, s, n: jax.nn.relu(_dense(x, s, n) + 0.1),
            lambda draw, ks: (draw(st.integers(0, 3)), draw(st.sampled_from((1, 17)))),
        ),
        "product": Op(2, pair, product),
        "conv": Op(
            1, _image, _conv, lambda draw, ks: (draw(st.integers(0, 3)), draw(st.integers(1, 2)), draw(st.booleans()))
        ),
        "max_pool": Op(1, _image, lambda x: _pool(x, "max"), exact=True),
        "sum_pool": Op(1, _image, lambda x: _pool(x, "sum") * 0.25),
        "random": Op(
            1,
            _floating,
            lambda x, s: x + jax.random.normal(jax.random.key(s), x.shape, jnp.float32).astype(x.dtype),
            _seed,
        ),
        "dropout": Op(
            1,
            _floating,
            lambda x, s: jnp.where(jax.random.uniform(jax.random.key(s), x.shape, jnp.float32) < 0.7, x / 0.7, 0),
            _seed,
        ),
        "constant": Op(1, lambda ks: True, lambda x, s: _const(x, s, x.shape, str(x.dtype)), _seed, True),
        "full": Op(1, lambda ks: True, lambda x: jnp.ones_like(x), exact=True),
        "iota": Op(1, _ranked, lambda x: jax.lax.broadcasted_iota(jnp.int32, x.shape, len(x.shape) - 1), exact=True),
        "add constant": Op(1, lambda ks: True, lambda x, s: x + _const(x, s, x.shape[-1:], str(x.dtype)), _seed),
    }


# -- nested calls ------------------------------------------------------------------------------------


def _body(names: tuple[str, ...]) -> Callable[[Any], Any]:
    def body(x: Any) -> Any:
        for n in names:
            x = UNARY[n](x).astype(x.dtype)
        return x

    return body


def _names(draw: Any, ks: Sequence[Kind]) -> tuple[Any, ...]:
    return (tuple(draw(st.lists(st.sampled_from(sorted(UNARY)), min_size=1, max_size=3))),)


def _custom(x: Any, names: tuple[str, ...]) -> Any:
    f = jax.custom_jvp(_body(names))
    f.defjvp(lambda p, t: (_body(names)(*p), t[0] * 0.5))
    return f(x)


def _custom_vjp(x: Any, names: tuple[str, ...]) -> Any:
    f = jax.custom_vjp(_body(names))
    f.defvjp(lambda x: (_body(names)(x), x), lambda r, t: (t * jnp.cos(r),))
    return f(x)


def _scan(x: Any, names: tuple[str, ...]) -> Any:
    def step(c: Any, v: Any) -> Any:
        c = (_body(names)(c) * 0.5 + v).astype(v.dtype)
        return c, jnp.tanh(c)

    last, ys = jax.lax.scan(step, jnp.zeros(x.shape[1:], x.dtype), x)
    return ys + last


def _while(x: Any, names: tuple[str, ...]) -> Any:
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, _body(names)(s[1])), (0, x))[1]


def _turns(x: Any, n: Any, names: tuple[str, ...]) -> Any:
    return jax.lax.fori_loop(0, jnp.clip(n, 0, 5), lambda i, v: (_body(names)(v) * 0.7).astype(v.dtype), x)


def _cond(c: Any, x: Any, names: tuple[str, ...]) -> Any:
    return jax.lax.cond(c, _body(names), lambda v: v * 0.5, x)


def _nested() -> dict[str, Op]:
    rows = lambda ks: _floating(ks) and _ranked(ks)
    return {
        "jit": Op(1, _floating, lambda x, n: jax.jit(_body(n))(x), _names),
        "checkpoint": Op(1, _floating, lambda x, n: jax.checkpoint(_body(n))(x), _names),
        "custom_jvp": Op(1, _floating, _custom, _names),
        "custom_vjp": Op(1, _floating, _custom_vjp, _names),
        "vmap": Op(
            1,
            lambda ks: rows(ks) and ks[0].shape[0] > 0,
            lambda x, n: jax.vmap(lambda v: _body(n)(v).sum() + v)(x),
            _names,
        ),
        "scan": Op(1, rows, _scan, _names),
        "map": Op(1, rows, lambda x, n: jax.lax.map(_body(n), x), _names),
        "fori": Op(
            1,
            _floating,
            lambda x, n: jax.lax.fori_loop(0, 2, lambda i, v: (_body(n)(v) + i * 0.1).astype(v.dtype), x),
            _names,
        ),
        "while": Op(1, _floating, _while, _names),
        "turns": Op(
            2, lambda ks: ks[0].floating and ks[1].dtype == "int32" and not ks[1].shape and ks[1].exact, _turns, _names
        ),
        "cond": Op(2, lambda ks: ks[0].dtype == "bool" and ks[0].shape == () and ks[1].floating, _cond, _names),
        "barrier": Op(1, lambda ks: True, lambda x: jax.lax.optimization_barrier(x), exact=True),
        "stop_gradient": Op(1, lambda ks: True, jax.lax.stop_gradient, exact=True),
    }


def _table() -> dict[str, Op]:
    out: dict[str, Op] = {n: Op(1, _floating, f) for n, f in UNARY.items()}
    out |= {n: Op(1, _signed, f, exact=True) for n, f in EXACT_UNARY.items()}
    out |= {n: Op(1, _floating, f, exact=True, needs_exact=True) for n, f in ROUGH_UNARY.items()}
    out |= {n: Op(2, lambda ks: _number(ks) and _broadcasts(ks), f) for n, f in BINARY.items()}
    out |= {
        n: Op(2, lambda ks: _number(ks) and _broadcasts(ks) and ks[0].dtype == ks[1].dtype, f, exact=True)
        for n, f in EXACT_BINARY.items()
    }
    out |= {n: Op(2, _broadcasts, f, exact=True, needs_exact=True) for n, f in COMPARE.items()}
    out["div"] = Op(2, lambda ks: _number(ks) and _broadcasts(ks), lambda x, y: x / (jnp.abs(y) + 1))
    out["floor_divide"] = Op(
        2, lambda ks: _whole(ks) and _number(ks) and _broadcasts(ks), lambda x, y: x // (jnp.clip(y, 1, 7)), exact=True
    )
    out["mod"] = Op(
        2, lambda ks: _whole(ks) and _number(ks) and _broadcasts(ks), lambda x, y: x % (jnp.clip(y, 1, 7)), exact=True
    )
    out["and"] = Op(2, lambda ks: _whole(ks) and _broadcasts(ks), jnp.bitwise_and, exact=True)
    out["xor"] = Op(2, lambda ks: _whole(ks) and _broadcasts(ks), jnp.bitwise_xor, exact=True)
    out["not"] = Op(1, _whole, jnp.invert, exact=True)
    out["scalar"] = Op(
        1, lambda ks: True, lambda x, c: x * c, lambda draw, ks: (draw(st.sampled_from((0.5, 2, -1.5, 3, 0, True))),)
    )
    out["plus"] = Op(1, lambda ks: True, lambda x, c: c + x, lambda draw, ks: (draw(st.sampled_from((0.5, 2, 1, 0))),))
    return out | _reductions() | _movement() | _indexed() | _heavy() | _nested()


OPS = _table()


# -- drawing -----------------------------------------------------------------------------------------


@st.composite
def programs(draw: Any) -> Program:
    """Programs of 1 to 14 operations over 1 to 4 inputs."""
    inputs: list[tuple[tuple[int, ...], str, str]] = []
    for _ in range(draw(st.integers(1, 4))):
        shape = _input_shape(draw, [i[0] for i in inputs])
        dtype = draw(st.sampled_from(TYPES))
        python = shape == () and dtype in ("float32", "int32")
        inputs.append(
            (shape, dtype, draw(st.sampled_from(("jax", "jax", "jax", "numpy", "python" if python else "jax"))))
        )
    kinds = [Kind(shape, dtype) for shape, dtype, _ in inputs]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 14))):
        step = _step(draw, kinds)
        made = step and _result(step, kinds)
        if made:
            steps.append(step)
            kinds.append(made)
    outputs = _outputs(draw, len(kinds))
    grad = bool(draw(st.integers(0, 3)) == 0 and any(k.floating for k in kinds[: len(inputs)]))
    return Program(tuple(inputs), tuple(steps), outputs, grad, draw(st.sampled_from((0, 0, 2, 3))))


def _input_shape(draw: Any, before: list[tuple[int, ...]]) -> tuple[int, ...]:
    how = draw(st.sampled_from(("new", "same", "thinner", "suffix"))) if before else "new"
    if how == "new":
        shape = tuple(draw(st.lists(st.sampled_from(DIMS), max_size=5)))
        while np.prod(shape) > LARGEST / 2:
            shape = shape[1:]
        return shape
    shape = draw(st.sampled_from(before))
    if how == "thinner":
        return tuple(1 if draw(st.booleans()) else n for n in shape)
    return shape[draw(st.integers(0, len(shape))) :] if how == "suffix" else shape


def _step(draw: Any, kinds: list[Kind]) -> Step | None:
    """An operation that takes some of the values, the newest ones more often."""
    last = len(kinds) - 1
    for _ in range(4):  # most operations take only some values
        name = draw(st.sampled_from(sorted(OPS)))
        op = OPS[name]
        ins = tuple(last - min(draw(st.integers(0, last)), draw(st.integers(0, last))) for _ in range(op.arity))
        ks = [kinds[i] for i in ins]
        if op.accepts(ks) and (not op.needs_exact or all(k.exact for k in ks)):
            return Step(name, ins, op.params(draw, ks))
    return None


def _result(step: Step, kinds: list[Kind]) -> Kind | None:
    op, ks = OPS[step.op], [kinds[i] for i in step.ins]
    try:
        out = jax.eval_shape(
            lambda *xs: op.apply(*xs, *step.params), *(jax.ShapeDtypeStruct(k.shape, jnp.dtype(k.dtype)) for k in ks)
        )
    except (TypeError, ValueError):
        return None
    if str(out.dtype) not in (*FLOATS, *INTS, "bool") or int(np.prod(out.shape)) > LARGEST or len(out.shape) > 5:
        return None
    whole = str(out.dtype) not in FLOATS
    exact = all(k.exact for k in ks) and (op.exact or whole)
    return Kind(tuple(out.shape), str(out.dtype), exact)


def _outputs(draw: Any, n: int) -> tuple[Any, ...]:
    """The last value, and others: inputs, values twice, literals, None."""
    some = draw(st.lists(st.integers(0, n - 1), max_size=3))
    extra = draw(st.sampled_from(((), (), (), (("literal", 2.0),), (("literal", 3),), (None,), (("literal", True),))))
    return (n - 1, *some, *extra)


@st.composite
def ways(draw: Any, program: Program, auto: bool = False) -> How:
    strategy = draw(st.sampled_from(("forced",) * 8 + ("host", "host") + (("auto",) if auto else ())))
    p = draw(st.sampled_from((1.0, 1.0, 0.5, 0.3, 0.0))) if strategy == "forced" else 1.0
    n = len(program.inputs)
    bound = draw(st.integers(0, n)) if draw(st.integers(0, 2)) == 0 else 0
    static = not bound and draw(st.integers(0, 4)) == 0
    donate = (
        tuple(sorted(draw(st.sets(st.integers(0, n - 1), max_size=2))))
        if not bound and not static and draw(st.integers(0, 3)) == 0
        else ()
    )
    return How(strategy, p, draw(st.sampled_from(("channel", "channel", "rows"))), bound, donate, static)


# -- meaning -----------------------------------------------------------------------------------------


def arguments(program: Program) -> list[Any]:
    out: list[Any] = []
    for i, (shape, dtype, kind) in enumerate(program.inputs):
        many = (program.items,) if program.items and kind != "python" else ()
        x = constant(100 + i, (*many, *shape), dtype)
        out.append(jax.device_put(x) if kind == "jax" else x.item() if kind == "python" else x)
    return out


def run(program: Program, *inputs: Any) -> Any:
    """The outputs of a program; with `grad` the value and gradients."""
    if program.items:
        return _of_items(program, run)(*inputs)
    if not program.grad:
        return _values(program, inputs)[1]
    floats = [i for i, x in enumerate(inputs) if jnp.issubdtype(jnp.result_type(x), jnp.floating)]

    def loss(*xs: Any) -> Any:
        full = list(inputs)
        for i, x in zip(floats, xs, strict=True):
            full[i] = x
        outs = [
            v
            for v in jax.tree.leaves(_values(program, full)[1])
            if hasattr(v, "dtype") and jnp.issubdtype(v.dtype, jnp.floating)
        ]
        return sum((jnp.sum(v * 0.25) for v in outs), start=jnp.float32(0)).astype(_wide(None, "float32"))

    return jax.value_and_grad(loss, tuple(range(len(floats))))(*(inputs[i] for i in floats))


def _of_items(program: Program, meaning: Callable[..., Any]) -> Callable[..., Any]:
    """A meaning of a program for all items at once."""
    one, axes = dataclasses.replace(program, items=0), [None if k == "python" else 0 for _, _, k in program.inputs]
    fn = functools.partial(meaning, one)
    return jax.vmap(fn, axes) if any(a == 0 for a in axes) else fn


def _values(program: Program, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
    values = list(inputs)
    for step in program.steps:
        xs = [jnp.asarray(values[i]) if not isinstance(values[i], (int, float)) else values[i] for i in step.ins]
        xs = [jnp.asarray(x) if isinstance(x, (bool, int, float)) and step.op not in BINARY else x for x in xs]
        values.append(OPS[step.op].apply(*xs, *step.params))
    return values, tuple(o if o is None else o[1] if isinstance(o, tuple) else values[o] for o in program.outputs)


def _truth(program: Program, args: Sequence[Any]) -> tuple[list[np.ndarray], float] | None:
    """The leaves in float64, and the largest magnitude of any float on the way there."""
    with jax.enable_x64(True):
        wide = [_widened(a) for a in args]
        try:
            leaves = [np.asarray(v) for v in jax.tree.leaves(jax.jit(lambda *xs: run(program, *xs))(*wide))]
            some = lambda one, *xs: _values(one, xs)[0]
            values = jax.jit(_of_items(program, some) if program.items else functools.partial(some, program))(*wide)
        except Exception:
            return None
    floats = [np.abs(np.asarray(v)) for v in [*values, *leaves] if np.size(v) and np.asarray(v).dtype.kind == "f"]
    return leaves, max([1.0, *(float(f[np.isfinite(f)].max(initial=0.0)) for f in floats)])


def _widened(x: Any) -> Any:
    if isinstance(x, (bool, int, float)):
        return x
    return jnp.asarray(np.asarray(x).astype(np.float64)) if jnp.issubdtype(x.dtype, jnp.floating) else x


def check(program: Program, how: How) -> Verdict:
    """A program through `jax.jit` and through `xcoexec.jit`."""
    args = arguments(program)
    if how.static:
        fn: Callable[..., Any] = lambda n, *xs: (run(program, *xs), n)
        args, options = [3, *args], {"static_argnums": 0}
    else:
        fn = lambda *xs: run(program, *xs)
        options = {"donate_argnums": how.donate} if how.donate else {}
    chosen = (
        {"plan": xcoexec.Plan.uniform(how.p_cpu, how.dim)} if how.strategy == "forced" else {"strategy": how.strategy}
    )
    return compare(
        fn, args, chosen, how.bound, truth=lambda at: _judged(program, at[how.static :], how.static), **options
    )


def _judged(program: Program, args: Sequence[Any], static: bool) -> tuple[list[np.ndarray], float] | None:
    truth = _truth(program, args)
    if truth is None:
        return None
    leaves, largest = truth
    types = {d for _, d, _ in program.inputs} | {p for s in program.steps for p in s.params if isinstance(p, str)}
    eps = max(EPS.get(d, 0.0) for d in {*types, "float32"} if isinstance(d, str))
    return [*leaves, *([np.asarray(3)] if static else [])], (
        NARROW_ALLOWED if eps > 1e-4 else ALLOWED * (len(program.steps) + 4)
    ) * eps * largest


# -- the long run ------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    from .sweep import environment

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--examples", type=int, default=5000)
    p.add_argument("--seconds", type=float, default=float("inf"))
    p.add_argument("--seed", type=int, default=0, help="another seed, other programs")
    p.add_argument("--out", default="out/programs.jsonl")
    args = p.parse_args(argv)
    out, end, where = pathlib.Path(args.out), time.monotonic() + args.seconds, environment()
    out.parent.mkdir(parents=True, exist_ok=True)
    count = {"examples": 0, "bad": 0}

    @hypothesis.seed(args.seed)
    @hypothesis.settings(
        max_examples=args.examples,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def one(data: Any) -> None:
        if time.monotonic() > end:
            return
        program = data.draw(programs())
        how = data.draw(ways(program, auto=True))
        verdict = check(program, how)
        count["examples"] += 1
        count["bad"] += not verdict.good
        with out.open("a") as f:
            f.write(
                json.dumps(
                    {
                        **dataclasses.asdict(verdict),
                        "program": repr(program),
                        "how": repr(how),
                        "seed": args.seed,
                        **where,
                    }
                )
                + "\n"
            )
        if count["examples"] % 50 == 0:
            jax.clear_caches()
            print(count, flush=True)

    one()
    print(count)
    return int(count["bad"] > 0)


if __name__ == "__main__":
    sys.exit(main())
