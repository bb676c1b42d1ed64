"""Results in float64 by NumPy, operation by operation of a function's trace: what benchmarks report errors against."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from numpy.typing import ArrayLike

from ..codegen.program import Literal, Value
from ..codegen.rules import reference
from ..frontend.trace import paths, trace


def oracle(fn: Callable[..., object], *args: object) -> np.ndarray:
    """The first leaf of `fn(*args)`; see `oracles`."""
    return oracles(fn, *args)[0]


def oracles(fn: Callable[..., object], *args: object) -> list[np.ndarray]:
    """The leaves of `fn(*args)`, of which those that `fn` makes in f32 are f64, by the NumPy meaning of every
    primitive; their shapes are the same.
    """
    values, tree = jax.tree_util.tree_flatten((args, {}))
    traced = trace(fn, values, tree, paths(tree))
    inputs = zip(traced.inputs, values, strict=True)
    env: dict[Value, np.ndarray] = {v: _wide(x) for v, x in (*inputs, *traced.consts)}
    reference.run_ops(traced.ops, env, _wide)
    return [np.asarray(out.val if isinstance(out, Literal) else env[out]) for out in traced.outputs]


def _wide(x: ArrayLike) -> np.ndarray:
    """An array with f64 in the place of f32."""
    array = np.asarray(x)
    return array.astype(np.float64) if array.dtype == np.float32 else array


def error(got: ArrayLike, want: np.ndarray) -> float:
    """The largest difference of two arrays of one shape, relative to the largest absolute value that there should
    be.
    """
    scale = max(float(np.max(np.abs(want))), 1e-30)
    return float(np.max(np.abs(np.asarray(got, np.float64) - want))) / scale


def worst(got: object, want: Sequence[np.ndarray]) -> float:
    """The largest `error` of all leaves of a pytree. Raises `ValueError` where their numbers differ."""
    return max(error(a, b) for a, b in zip(jax.tree_util.tree_leaves(got), want, strict=True))


__all__ = ["error", "oracle", "oracles", "worst"]
