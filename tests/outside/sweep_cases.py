"""The parts of the sweep: each yields cases in a fixed order, and a case is made only when it runs.

A case is (its name, a function without arguments that makes `(function, arguments, options of jit)`, or None where no
arguments are known).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import sweep_args
from .sweep_args import Given

NARROW = ("bfloat16", "float16", "int32", "int8", "uint8", "uint32", "bool", "complex64")
WIDE = ("float64", "int64", "complex128")
SHAPES = ((), (5,), (2, 3, 4), (2, 1, 3, 4), (2, 3, 1, 2, 3), (0,), (0, 3), (3, 0), (2, 0, 3), (1, 1), (17, 33), (300,))


class Made(NamedTuple):
    """What a case calls."""

    fn: Callable[..., Any]
    args: list[Any]
    options: dict[str, Any]
    wide: Callable[..., Any] | None = None  # `fn` for arguments in float64, where that is another function


class Case(NamedTuple):
    name: str
    make: Callable[[], Made | None]


def gradient(fn: Callable[..., Any], args: list[Any]) -> Callable[..., Any]:
    """Value and gradient of a weighted sum of all floating results, by every floating argument."""
    wrt = _floating(args)

    def loss(*xs: Any) -> Any:
        leaves = [v for v in jax.tree.leaves(fn(*xs)) if _inexact(v)]
        return sum((jnp.sum(jnp.real(v) * weights(v)) for v in leaves), start=jnp.zeros(()))

    return jax.value_and_grad(loss, wrt)


def pullback(fn: Callable[..., Any], args: list[Any]) -> Callable[..., Any]:
    """The results, and what `jax.vjp` makes of cotangents that are arguments' own (data, not constants)."""
    floats = _floating(args)

    def run(*xs: Any) -> Any:
        def inner(*fs: Any) -> Any:
            full = list(xs)
            for i, v in zip(floats, fs, strict=True):
                full[i] = v
            return fn(*full)

        out, pull = jax.vjp(inner, *(xs[i] for i in floats))
        return out, pull(jax.tree.map(cotangent, out))

    return run


def _floating(args: list[Any]) -> tuple[int, ...]:
    """Positions of the arguments whose leaves are all floating."""
    found = tuple(i for i, a in enumerate(args) if jax.tree.leaves(a) and all(map(_inexact, jax.tree.leaves(a))))
    if not found:
        raise ValueError("no floating argument")
    return found


def weights(v: Any) -> Any:
    """Different for every element, and of order one."""
    real = jnp.real(v).dtype
    return jnp.cos(jnp.arange(v.size, dtype=jnp.promote_types(real, jnp.float32))).reshape(v.shape).astype(real)


def cotangent(v: Any) -> Any:
    if not _inexact(v):
        return np.zeros(np.shape(v), jax.dtypes.float0)
    return weights(v).astype(v.dtype)


def _inexact(x: Any) -> bool:
    return hasattr(x, "dtype") and bool(jnp.issubdtype(x.dtype, jnp.inexact))


MODES: dict[str, Callable[[Any, list[Any]], Callable[..., Any]]] = {
    "fwd": lambda fn, args: fn,
    "grad": gradient,
    "vjp": pullback,
}


def case(
    name: str,
    f: Any,
    mode: str = "fwd",
    dtype: str = "float32",
    shape: tuple[int, ...] | None = None,
    change: Any = None,
    named: Mapping[str, Any] = MappingProxyType({}),
) -> Case:
    """A public function with arguments by table or rule; with `shape`, or with `named` ones of its own, by the rule
    alone.

    `change`: of (function, arguments).
    """

    def make() -> Made | None:
        g = sweep_args.given(name, dtype, (3, 4) if shape is None else shape)
        called = functools.partial(f, **named) if named else f
        by_rule = shape is not None or bool(named)
        found = sweep_args.by_rule(called, g) if by_rule else sweep_args.arguments(name, f, g)
        if found is None:
            return None
        fn, args = change(*found) if change is not None else found
        return Made(MODES[mode](fn, args), args, {})

    text = [
        name,
        dtype,
        "x".join(map(str, shape)) + "d" if shape is not None else "",
        change.__name__ if change else "",
        _named(named),
        mode,
    ]
    return Case("/".join(t for t in text if t), make)


def _named(named: Mapping[str, Any]) -> str:
    return ",".join(f"{k}={getattr(v, '__name__', v)}" for k, v in named.items()).replace("\n", "")


def ruled(name: str) -> bool:
    return name not in sweep_args.TABLE


# -- parts -------------------------------------------------------------------------------------------


def forward() -> Iterator[Case]:
    for name, f in sweep_args.functions():
        yield case(name, f)


def gradients() -> Iterator[Case]:
    for name, f in sweep_args.functions():
        yield case(name, f, "grad")


def pullbacks() -> Iterator[Case]:
    for name, f in sweep_args.functions():
        yield case(name, f, "vjp")


def options() -> Iterator[Case]:
    for name, f in sweep_args.functions():
        if ruled(name):
            for named in sweep_args.options(f):
                yield case(name, f, named=named)


def types() -> Iterator[Case]:
    for name, f in sweep_args.functions():
        for dtype in NARROW:
            yield case(name, f, dtype=dtype)
        for dtype in ("bfloat16", "float16", "complex64"):
            yield case(name, f, "grad", dtype)


def wide() -> Iterator[Case]:
    """Run with jax_enable_x64."""
    for name, f in sweep_args.functions():
        for dtype in (*WIDE, "float32"):
            yield case(name, f, dtype=dtype)
        yield case(name, f, "grad", "float64")


def shapes() -> Iterator[Case]:
    for shape in SHAPES:
        for name, f in sweep_args.functions():
            if ruled(name):
                yield case(name, f, shape=shape)


def shape_gradients() -> Iterator[Case]:
    for shape in ((), (5,), (2, 3, 4), (0, 3), (17, 33)):
        for name, f in sweep_args.functions():
            if ruled(name):
                yield case(name, f, "grad", shape=shape)


def transposed(fn: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Operands that are transposes, inside the function."""
    turn = lambda a: jax.tree.map(lambda x: jnp.swapaxes(x, -1, -2) if np.ndim(x) >= 2 else x, a)
    return lambda *xs: fn(*map(turn, xs)), [turn(a) for a in args]


def columns(fn: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Arguments that lie column by column on the device."""
    from jax.experimental.layout import Format, Layout

    def place(a: Any) -> Any:
        if not isinstance(a, jax.Array) or a.ndim < 2 or jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return a
        return jax.device_put(a, Format(Layout(tuple(reversed(range(a.ndim)))), a.sharding))

    return fn, [place(a) for a in args]


def plain_numpy(fn: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """NumPy arrays, of Fortran order where they have two dimensions or more."""
    key = lambda a: jnp.issubdtype(a.dtype, jax.dtypes.prng_key)
    return fn, [np.asfortranarray(np.asarray(a)) if isinstance(a, jax.Array) and not key(a) else a for a in args]


def weak(fn: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Python numbers in place of all arguments but the first."""
    return fn, [
        a if i == 0 or not isinstance(a, jax.Array) or a.dtype.kind not in "if" else 2 - 0.5 * (i > 1)
        for i, a in enumerate(args)
    ]


def strange(fn: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """NaN, infinities, both zeros, the largest and small numbers among the elements."""
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-30, 88.8, -104.0, 1.0, -1.0], np.float32)

    def place(i: int, a: Any) -> Any:
        if not isinstance(a, jax.Array) or a.dtype != jnp.float32:
            return a
        return jnp.asarray(np.resize(np.roll(values, i), a.shape)) if a.size else a

    return fn, [place(i, a) for i, a in enumerate(args)]


def layouts() -> Iterator[Case]:
    for change in (transposed, columns, plain_numpy):
        for name, f in sweep_args.functions():
            yield case(name, f, change=change)
    for change in (weak, strange):
        for name, f in sweep_args.functions():
            if change is strange or (ruled(name) and name.startswith(("jax.numpy.", "jax.scipy.special", "jax.nn"))):
                yield case(name, f, change=change)
    yield from convolutions()


def convolutions() -> Iterator[Case]:
    """`conv_general_dilated` over dimension numbers, strides, dilations and groups, forward and gradient."""
    orders = [
        ("NHWC", "HWIO", "NHWC"),
        ("NCHW", "OIHW", "NCHW"),
        ("NHWC", "OIHW", "NCHW"),
        ("NCHW", "HWIO", "NHWC"),
        ("HWNC", "HWIO", "HWNC"),
        ("CHWN", "IHWO", "NHWC"),
    ]
    shapes = [
        dict(),
        dict(window_strides=(2, 1)),
        dict(padding=((0, 3), (2, 0))),
        dict(padding=((-1, 1), (0, -1))),
        dict(rhs_dilation=(2, 1)),
        dict(lhs_dilation=(1, 2)),
        dict(feature_group_count=2),
        dict(feature_group_count=4),
        dict(batch_group_count=2),
    ]
    for spec in orders:
        for more in shapes:
            for mode in ("fwd", "grad"):
                yield Case(
                    f"conv/{'-'.join(spec)}/{_named(more)}/{mode}", functools.partial(_convolution, spec, more, mode)
                )
    for dims, spec in (
        (1, ("NWC", "WIO", "NWC")),
        (1, ("NCW", "OIW", "NCW")),
        (3, ("NDHWC", "DHWIO", "NDHWC")),
        (3, ("NCDHW", "OIDHW", "NCDHW")),
    ):
        for mode in ("fwd", "grad"):
            yield Case(f"conv/{dims}d/{'-'.join(spec)}/{mode}", functools.partial(_convolution, spec, {}, mode))


def _convolution(spec: tuple[str, str, str], more: dict[str, Any], mode: str) -> Made:
    g = Given(seed=11)
    groups = more.get("feature_group_count", 1)
    sizes = {"N": 2, "C": 4, "I": 4 // groups, "O": 8, "D": 5, "H": 7, "W": 9}
    kernel = {**sizes, "D": 2, "H": 3, "W": 2}
    x, w = g(*(sizes[c] for c in spec[0])), g(*(kernel[c] for c in spec[1]))
    params = {"window_strides": (1,) * (len(spec[0]) - 2), "padding": "SAME", **more}
    if "lhs_dilation" in more:
        params["padding"] = ((1, 1), (0, 2))
    fn = lambda w, x: jax.lax.conv_general_dilated(x, w, dimension_numbers=spec, **params)
    return Made(MODES[mode](fn, [w, x]), [w, x], {})


def _layers(kind: str) -> Iterator[Case]:
    from . import sweep_layers

    yield from sweep_layers.cases(kind)


#: name -> (cases, environment of the process)
PARTS: dict[str, tuple[Callable[[], Iterator[Case]], dict[str, str]]] = {
    "forward": (forward, {}),
    "grad": (gradients, {}),
    "vjp": (pullbacks, {}),
    "linen": (lambda: _layers("linen"), {}),
    "nnx": (lambda: _layers("nnx"), {}),
    "options": (options, {}),
    "layouts": (layouts, {}),
    "shapes": (shapes, {}),
    "shapes-grad": (shape_gradients, {}),
    "types": (types, {}),
    "x64": (wide, {"JAX_ENABLE_X64": "1"}),
}
