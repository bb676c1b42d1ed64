"""What an editor knows of a function's result: read by the type checker (`make lint`), never run."""

from __future__ import annotations

from typing import assert_type

import jax

import xcoexec
from xcoexec.api.functions import FixedFunction
from xcoexec.api.resident import ResidentFunction


def predict(weights: list[jax.Array], x: jax.Array) -> tuple[jax.Array, int]:
    return x @ weights[0], 1


@xcoexec.jit
def decorated(x: jax.Array) -> jax.Array:
    return x


@xcoexec.jit(strategy="host", strict=True)
def with_options(x: jax.Array, n: int = 1) -> str:
    return str(n)


def checks(weights: list[jax.Array], x: jax.Array) -> None:
    fast = xcoexec.jit(predict)
    assert_type(fast(weights, x), tuple[jax.Array, int])
    assert_type(fast.bind(weights), ResidentFunction[tuple[jax.Array, int]])
    assert_type(fast.bind(weights)(x), tuple[jax.Array, int])
    assert_type(decorated(x), jax.Array)
    assert_type(with_options(x, 2), str)
    assert_type(xcoexec.compile(predict, weights, x), FixedFunction[tuple[jax.Array, int]])
