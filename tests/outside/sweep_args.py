"""Arguments for the public functions of JAX: a table for those that need special ones, a rule for the rest.

The rule reads the signature: every required parameter gets what NAMES has for its name, or an array. `Given` makes
arrays of the type under test. A function that neither knows is listed as not swept.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .sweep_table import TABLE

MODULES = (
    "jax.numpy",
    "jax.numpy.linalg",
    "jax.numpy.fft",
    "jax.lax",
    "jax.lax.linalg",
    "jax.nn",
    "jax.nn.initializers",
    "jax.random",
    "jax.scipy.cluster.vq",
    "jax.scipy.fft",
    "jax.scipy.integrate",
    "jax.scipy.linalg",
    "jax.scipy.ndimage",
    "jax.scipy.optimize",
    "jax.scipy.signal",
    "jax.scipy.sparse.linalg",
    "jax.scipy.special",
    "jax.scipy.stats",
)
#: what computes nothing on arrays: types, files, printing, set-up
NOT_OPERATIONS = frozenset(
    [
        "array_repr",
        "array_str",
        "printoptions",
        "get_printoptions",
        "set_printoptions",
        "save",
        "savez",
        "load",
        "fromfile",
        "finfo",
        "iinfo",
        "dtype",
        "ConvGeneralDilatedDimensionNumbers",
        "DotDimensionNumbers",
        "PrecisionLike",
        "Array",
        "ArrayLike",
    ]
)
POSITIVE = ("jax.scipy.special", "jax.scipy.stats")  # most of these are defined on (0, 1)


class Given:
    """Makes arguments of one type, from a seed of their own."""

    def __init__(
        self,
        dtype: str = "float32",
        seed: int = 0,
        low: float = -2.0,
        high: float = 2.0,
        shape: tuple[int, ...] = (3, 4),
    ):
        self.dtype, self.low, self.high, self.shape = dtype, low, high, shape
        self._rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float | None = None, high: float | None = None) -> jax.Array:
        """An array of the type under test."""
        x = self._rng.uniform(self.low if low is None else low, self.high if high is None else high, shape)
        kind = jnp.dtype(self.dtype)
        if jnp.issubdtype(kind, jnp.complexfloating):
            x = x + 1j * self._rng.uniform(-1, 1, shape)
        elif jnp.issubdtype(kind, jnp.integer):
            x = np.abs(np.round(x * 3)) if jnp.issubdtype(kind, jnp.unsignedinteger) else np.round(x * 3)
        elif kind == np.bool_:
            x = x > 0
        return jnp.asarray(np.asarray(x).astype(kind))

    def any(self) -> jax.Array:
        return self(*self.shape)

    def near(self, *shape: int) -> jax.Array:
        """Between 0.1 and 0.9."""
        return self(*shape, low=0.1, high=0.9)

    def ints(self, *shape: int, high: int = 3, dtype: str = "int32") -> jax.Array:
        return jnp.asarray(self._rng.integers(0, high, shape).astype(dtype))

    def bools(self, *shape: int) -> jax.Array:
        return jnp.asarray(self._rng.uniform(size=shape) < 0.5)

    def spd(self, n: int) -> jax.Array:
        """A symmetric, positive definite matrix."""
        x = self(n, n, low=-1.0, high=1.0)
        return (x @ jnp.conj(x.T) + jnp.asarray(n * np.eye(n), x.dtype)).astype(x.dtype)

    def key(self) -> jax.Array:
        return jax.random.key(7)


#: parameter -> a value that is part of the function (not an argument of the jitted call)
STATIC: dict[str, Any] = {
    "axis": 0, "axes": (0,), "dimension": 0, "dimensions": (0,), "dims": (0,), "permutation": (1, 0), "shape": (3, 4),
    "newshape": (4, 3), "new_sizes": (4, 3), "sizes": (4, 3), "num": 5, "k": 1, "n": 3, "N": 4, "M": 4,
    "num_classes": 5,
    "repeats": 2, "reps": 2, "shift": 1, "source": 0, "destination": 1, "axis1": 0, "axis2": 1, "deg": 2, "d": 2,
    "indices_or_sections": 1, "sections": 1, "order": 1, "decimals": 1, "window": 3, "nbits": 8, "size": 4, "kth": 1,
    "fill_value": 2.0,
    "pad_width": ((1, 1), (0, 2)), "length": 3, "start_index": 0, "limit_index": 2, "slice_size": 2, "index": 1,
    "operand_shape": (3, 4), "rank": 3, "exponent_bits": 5, "mantissa_bits": 4, "count": 2, "minval": 0, "maxval": 9,
    "obj": 1, "q": 0.3,
}  # fmt: skip
#: parameter -> an argument of the jitted call
DYNAMIC: dict[str, Callable[[Given], Any]] = {
    "key": Given.key,
    "rng": Given.key,
    "seed": lambda g: 3,
    "indices": lambda g: g.ints(5),
    "condition": lambda g: g.bools(*g.shape),
    "cond": lambda g: g.bools(*g.shape),
    "mask": lambda g: g.bools(*g.shape),
    "p": lambda g: g.near(*g.shape),
    "alpha": lambda g: g.near(*g.shape),
    "arrays": lambda g: [g.any(), g.any()],
    "operands": lambda g: [g.any(), g.any()],
    "tup": lambda g: [g.any(), g.any()],
}
TYPES = ("dtype", "new_dtype", "element_type")


def functions() -> Iterator[tuple[str, Any]]:
    """Every public callable of the modules that is no type, as (full name, function); the distributions of scipy.stats
    too.
    """
    for module in MODULES:
        mod = importlib.import_module(module)
        for name in sorted(dir(mod)):
            f = getattr(mod, name)
            if not name.startswith("_") and callable(f) and not isinstance(f, type) and name not in NOT_OPERATIONS:
                yield f"{module}.{name}", f
    stats = importlib.import_module("jax.scipy.stats")
    for name in sorted(dir(stats)):
        sub = getattr(stats, name)
        if inspect.ismodule(sub) and not name.startswith("_"):
            for inner in sorted(dir(sub)):
                f = getattr(sub, inner)
                if not inner.startswith("_") and inspect.isfunction(f) and f.__module__.startswith("jax._src.scipy"):
                    yield f"jax.scipy.stats.{name}.{inner}", f


def given(name: str, dtype: str = "float32", shape: tuple[int, ...] = (3, 4)) -> Given:
    positive = name.startswith(POSITIVE)
    seed = zlib.crc32(name.encode())
    return Given(dtype, seed, 0.05, 0.95, shape) if positive else Given(dtype, seed, shape=shape)


def arguments(name: str, f: Any, g: Given) -> tuple[Callable[..., Any], list[Any]] | None:
    """(a function of arrays alone, its arguments) for a public function; None where no argument is known."""
    if name in TABLE:
        return TABLE[name](f, g)
    return by_rule(f, g)


def by_rule(f: Any, g: Given) -> tuple[Callable[..., Any], list[Any]] | None:
    required = _required(f)
    if required is None or not required:
        return None
    static: dict[int, Any] = {}
    named: dict[str, Any] = {}
    args: list[Any] = []
    for i, p in enumerate(required):
        value: Any
        if p.name in DYNAMIC:
            args.append(DYNAMIC[p.name](g))
            continue
        if p.name in STATIC or p.name in TYPES:
            value = jnp.dtype(g.dtype) if p.name in TYPES else STATIC[p.name]
            if p.kind is p.KEYWORD_ONLY:
                named[p.name] = value
            else:
                static[i] = value
        elif p.kind is p.KEYWORD_ONLY:
            return None
        else:
            args.append(g.any())
    if not args and not static:
        return None
    return functools.partial(_call, f, tuple(sorted(static.items())), named, len(args) + len(static)), args


def _call(f: Any, static: tuple[tuple[int, Any], ...], named: dict[str, Any], n: int, *args: Any) -> Any:
    fixed, rest = dict(static), iter(args)
    return f(*[fixed[i] if i in fixed else next(rest) for i in range(n)], **named)


def _required(f: Any) -> list[inspect.Parameter] | None:
    """The parameters without defaults (of `*args` two)."""
    if isinstance(f, jnp.ufunc):
        return [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(f.nin)]
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    out = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            out += [inspect.Parameter(f"{p.name}{i}", p.POSITIONAL_ONLY) for i in range(2)]
        elif p.kind is not p.VAR_KEYWORD and p.default is p.empty:
            out.append(p)
    return out


def options(f: Any) -> list[dict[str, Any]]:
    """Other values of common optional parameters, one set a variant."""
    try:
        names = {p.name for p in inspect.signature(f).parameters.values() if p.default is not p.empty}
    except (TypeError, ValueError):
        return []
    out: list[dict[str, Any]] = []
    if "axis" in names:
        out.append({"axis": -1})
    if {"axis", "keepdims"} <= names:
        out.append({"axis": 0, "keepdims": True})
    if {"axis", "where", "initial"} <= names:
        out.append({"where": np.arange(4) < 3, "initial": 1})
    if "dtype" in names:
        out.append({"dtype": jnp.float16})
    return out
