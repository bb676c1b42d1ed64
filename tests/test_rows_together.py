"""Two rows go through a reduction's passes together: any number of rows, results of all kinds, NaN and infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.program import Program
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.steps import Kernel
from xcoexec.codegen.target import Target
from xcoexec.partition.split import split

from .support import stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")


def softmax(x: Any, xp: Any) -> tuple[Any, ...]:
    e = xp.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True),)


def norm(x: Any, xp: Any) -> tuple[Any, ...]:
    mean = x.mean(-1, keepdims=True)
    return ((x - mean) / xp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5),)


def numbers(x: Any, xp: Any) -> tuple[Any, ...]:
    most = x.max(-1, keepdims=True)
    return x / (xp.abs(most) + 1), most[..., 0] * 2


FUNCTIONS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {"softmax": softmax, "norm": norm, "numbers": numbers}


def run(program: Program, isa: Target, threads: int, x: np.ndarray) -> tuple[list[np.ndarray], set[int]]:
    """Results, and how many rows the kernels take together."""
    segment = host.build(program, threads, isa, cut=split)
    kernels = [w.spec for s in segment.steps for w in s.words if isinstance(w, Kernel) and w.spec[0] == "rowwise"]
    return [np.array(y) for y in host.Call(segment, [x], [])()], {spec[4] for spec in kernels}


@pytest.mark.parametrize("isa", targets(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("rows", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("columns", [3, 16, 33, 100])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_number_of_rows(isa: Target, rows: int, columns: int, name: str) -> None:
    x = np.random.default_rng(rows).normal(size=(rows, columns)).astype(np.float32)
    _, graph = stages_of(lambda x: FUNCTIONS[name](x, jnp), x)
    want = FUNCTIONS[name](x.astype(np.float64), np)
    for threads in (1, 2):
        got, together = run(graph.program, isa, threads, x)
        assert together == {min(rows, 2)}
        for y, z in zip(got, want, strict=True):
            np.testing.assert_allclose(y.reshape(z.shape), z, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("isa", targets(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("columns", [3, 16, 70])
@pytest.mark.parametrize("most", [True, False])
def test_nan_and_infinities_stay_in_their_row(isa: Target, columns: int, most: bool) -> None:
    """Wherever a NaN is, its row's largest and smallest are NaN, and no other's."""
    x = np.random.default_rng(0).normal(size=(columns + 2, columns)).astype(np.float32)
    x[np.arange(columns), np.arange(columns)] = np.nan
    x[-2, 1], x[-1, 0] = np.inf, -np.inf
    pick = jnp.max if most else jnp.min
    _, graph = stages_of(lambda x: pick(x * 1.5, -1), x)
    got, _ = run(graph.program, isa, 2, x)
    np.testing.assert_array_equal(got[0].reshape(-1), (x.max if most else x.min)(-1) * np.float32(1.5))


@pytest.mark.parametrize("rows", [5, 6])
def test_rows_as_narrower_elements(rows: int) -> None:
    """A step writes bf16 and int8 of rows of any length for the product that reads them."""
    x = np.random.default_rng(0).normal(size=(rows, 19, 33)).astype(np.float32)
    v = np.random.default_rng(1).integers(-9, 9, (rows, 33, 40)).astype(np.float32)

    def fn(x: Any, v: Any) -> Any:
        y = jnp.round(jax.nn.softmax(x) * 127).astype(jnp.int8)
        dims = (((2,), (1,)), ((0,), (0,)))
        return jax.lax.dot_general(y, (v + 0.0).astype(jnp.int8), dims, preferred_element_type=jnp.int32)

    _, graph = stages_of(fn, x, v)
    segment = host.build(graph.program, 2, cut=split, pick=lambda groups, names, t: names[0])
    got = np.array(host.Call(segment, [x, v], [])()[0])
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    levels = e / e.sum(-1, keepdims=True) * 127
    clear = np.abs(levels - np.floor(levels) - 0.5) > 1e-4  # which way it is rounded
    want = np.round(levels).astype(np.int64) @ v.astype(np.int64)
    assert clear.all(-1).mean() > 0.9
    np.testing.assert_array_equal(got.reshape(want.shape)[clear.all(-1)], want[clear.all(-1)])
