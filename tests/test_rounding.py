"""Results of bf16 and f16 that leave the kernels in 4 bytes an element are numbers that their types have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.program import Program
from xcoexec.codegen.rules.primitives import ROUNDS
from xcoexec.codegen.rules.rounding import rounded, unrounded
from xcoexec.codegen.runtime import host
from xcoexec.partition.split import split

from .oracle import error, oracles
from .support import array, run_host, stages_of

X, W = array(2, 9, 16), array(16, 24, seed=1)
FILTERS = array(3, 3, 16, 24, seed=2)


def _narrow(fn: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    """A function of f32 arguments that computes in another type."""
    return lambda *args: fn(*(a.astype(dtype) for a in args))


def _conv(w: Any, x: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


#: name -> the function, its weights and its input, and how many of its results take a pass of their own
CASES: dict[str, tuple[Callable[..., Any], Any, Any, int]] = {
    "product": (lambda w, x: x @ w, W, X, 0),
    "product with a tail": (lambda w, x: jax.nn.gelu(x @ w + 1), W, X, 0),
    "convolution": (_conv, FILTERS, array(1, 7, 5, 16), 0),
    "elementwise": (lambda w, x: jnp.tanh(x * w[:, 0]), W, X, 0),
    "softmax": (lambda w, x: jax.nn.softmax(x * w[:, 0]), W, X, 0),
    "several": (lambda w, x: (jnp.exp(x), x @ w, jnp.tanh(x @ w).max(-1)), W, X, 1),
    "sums": (lambda w, x: lax.reduce_sum(x @ w, (2,)), W, X, 1),
    "sums of columns": (lambda w, x: lax.reduce_sum(x * w[:, 0], (0, 1)), W, X, 1),
    "pool": (lambda w, x: lax.reduce_window(x * w[0], 0.0, lax.add, (1, 3, 1), (1, 1, 1), "SAME"), W[:, :16], X, 1),
    "moved": (lambda w, x: (x @ w).transpose(2, 0, 1)[::2], W, X, 1),
    "scan": (lambda w, x: lax.scan(lambda c, y: (c * w[:, 0] + y, c * y), x[0], x)[1], W, X, 1),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ROUNDS)
@pytest.mark.parametrize("name", CASES)
def test_results_are_numbers_of_their_type(name: str, dtype: str, threads: int) -> None:
    fn, w, x, _ = CASES[name]
    for out in run_host(_narrow(fn, dtype), w, x, weights=1, threads=threads):
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, out.astype(dtype).astype(np.float32))


@pytest.mark.parametrize("dtype", ROUNDS)
@pytest.mark.parametrize("name", CASES)
def test_results_are_right(name: str, dtype: str) -> None:
    fn, w, x, _ = CASES[name]
    got = run_host(_narrow(fn, dtype), w, x, weights=1)
    for out, want in zip(got, oracles(_narrow(fn, dtype), w, x), strict=True):
        assert error(out, want) < (3e-2 if dtype == "bfloat16" else 4e-3)


def _program(name: str, dtype: str) -> Program:
    fn, w, x, _ = CASES[name]
    return stages_of(_narrow(fn, dtype), w, x, weights=1)[1].program


@pytest.mark.parametrize("dtype", ROUNDS)
@pytest.mark.parametrize("name", CASES)
def test_groups_round_in_passing(name: str, dtype: str) -> None:
    """Their count stays, for a layer is a group; what is left are passes of their own."""
    program = _program(name, dtype)
    assert unrounded(program) or dtype == "float16"
    new = rounded(program, program.outputs)
    assert (new.inputs, new.outputs, len(new.groups)) == (program.inputs, program.outputs, len(program.groups))
    by_all = name == "several" and dtype == "float16"  # elementwise operations on f16 round
    assert len(unrounded(new)) == CASES[name][3] - by_all


def test_what_is_rounded_stays_as_it_is() -> None:
    """Numbers that were of bf16 before, and are only moved or picked."""
    fn = lambda w, x: (jnp.maximum(x, 0), x.max(-1), x[:, ::2].transpose(0, 2, 1), (x @ w > 0), x * 1)
    program = stages_of(_narrow(fn, "bfloat16"), W, X, weights=1)[1].program
    assert not unrounded(Program(program.inputs, program.consts, program.groups, program.outputs[:-1]))
    assert rounded(program, program.outputs[:-1]).ops == program.ops


def test_results_in_their_own_type_are_rounded_once() -> None:
    """A result in 2 bytes is rounded as it is stored: its group computes what it did; one number goes in 4 bytes."""
    fn = _narrow(lambda w, x: (jnp.tanh(x @ w), jnp.tanh(x[0, 0] @ w[:, 0])), "bfloat16")
    program = stages_of(fn, W, X, weights=1)[1].program
    segment = host.build(program, 1, cut=split, as_stored=True)
    rounds = [any(op.prim == "bfloat" for op in g.ops) for g in segment.program.groups]
    alone = [any(v.size == 1 for v in g.outs) for g in segment.program.groups]
    assert rounds == alone and True in rounds and False in rounds
