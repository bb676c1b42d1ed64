"""Operations that only training steps contain, each on kernels against float64 NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.runtime import host

from .support import array, check_host, error, run_host, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

#: image, window, strides, padding
POOLS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], Any]] = {
    "apart": ((2, 8, 6, 5), (2, 2), (2, 2), "VALID"),
    "apart with a rest": ((3, 9, 7, 8), (2, 3), (2, 3), "VALID"),
    "gaps": ((2, 11, 10, 3), (2, 2), (3, 4), "VALID"),
    "overlapping": ((2, 13, 11, 19), (3, 3), (2, 2), "SAME"),
    "every place": ((1, 7, 9, 33), (3, 2), (1, 1), "SAME"),
    "much padding": ((2, 6, 5, 4), (4, 3), (1, 2), ((3, 2), (1, 2))),
    "one axis": ((2, 17, 6), (3,), (2,), "SAME"),
    "three axes": ((2, 5, 6, 7, 4), (2, 3, 2), (1, 2, 2), "SAME"),
    "many rows": ((1, 70, 40, 16), (3, 3), (2, 2), "SAME"),
}


def _pool(name: str, reduce: Any, start: float) -> Any:
    _, window, strides, padding = POOLS[name]
    wide = lambda q: q if isinstance(q, str) else ((0, 0), *q, (0, 0))
    return lambda x: lax.reduce_window(x, np.float32(start), reduce, (1, *window, 1), (1, *strides, 1), wide(padding))


def _chosen(name: str, x: np.ndarray, g: np.ndarray, least: bool = False) -> np.ndarray:
    """Each window's number at the place of its first largest (or least) element, in float64."""
    _, window, strides, padding = POOLS[name]
    spatial = x.shape[1:-1]
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(spatial, window, strides, padding)
    out, x = np.zeros(x.shape), -x if least else x
    for n, c in np.ndindex(x.shape[0], x.shape[-1]):
        for at in np.ndindex(*g.shape[1:-1]):
            places = [
                tuple(a * s - lo + t for a, s, (lo, _), t in zip(at, strides, padding, tap, strict=True))
                for tap in np.ndindex(*window)
            ]
            places = [p for p in places if all(0 <= i < m for i, m in zip(p, spatial, strict=True))]
            best = max(places, key=lambda p: x[(n, *p, c)])  # of equal ones the first
            out[(n, *best, c)] += g[(n, *at, c)]
    return out


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", POOLS)
def test_gradient_of_max_pooling(name: str, threads: int) -> None:
    pool = _pool(name, lax.max, -np.inf)
    x = np.round(np.asarray(array(*POOLS[name][0], low=-3, high=3)))  # many are equal
    g = np.asarray(array(*jax.eval_shape(pool, x).shape, seed=1))
    back = lambda x, g: jax.vjp(pool, x)[1](g)[0]
    got = run_host(back, x, g, threads=threads)[0]
    assert error(got, _chosen(name, x, g)) < 1e-6
    assert "unpool" in host.build(stages_of(back, x, g)[1].program, 1).algorithms


def test_gradient_of_min_pooling() -> None:
    pool = _pool("overlapping", lax.min, np.inf)
    x = np.asarray(array(*POOLS["overlapping"][0]))
    g = np.asarray(array(*jax.eval_shape(pool, x).shape, seed=1))
    got = run_host(lambda x, g: jax.vjp(pool, x)[1](g)[0], x, g)[0]
    assert error(got, _chosen("overlapping", x, g, least=True)) < 1e-6


def test_gradient_of_max_pooling_takes_what_xla_takes() -> None:
    """Behind a NaN the next element is taken, whatever it is: the comparison with NaN fails."""
    pool = _pool("overlapping", lax.max, -np.inf)
    x = np.array(array(*POOLS["overlapping"][0]))
    x.ravel()[np.random.default_rng(0).permutation(x.size)[: x.size // 5]] = np.nan
    x.ravel()[np.random.default_rng(1).permutation(x.size)[: x.size // 5]] = -np.inf
    g = np.asarray(array(*jax.eval_shape(pool, x).shape, seed=1))
    back = lambda x, g: jax.vjp(pool, x)[1](g)[0]
    assert error(run_host(back, x, g)[0], np.asarray(jax.jit(back)(x, g))) < 1e-6


def test_the_bits_of_an_unpooled_image_do_not_depend_on_order() -> None:
    pool = _pool("many rows", lax.max, -np.inf)
    x = np.round(np.asarray(array(*POOLS["many rows"][0], low=-3, high=3)))
    g = np.asarray(array(*jax.eval_shape(pool, x).shape, seed=1))
    back = lambda x, g: jax.vjp(pool, x)[1](g)[0]
    one = run_host(back, x, g, threads=1)[0]
    assert all(np.array_equal(run_host(back, x, g, threads=t)[0], one) for t in (2, 3, 4))


@pytest.mark.parametrize("name", POOLS)
def test_gradient_of_mean_pooling(name: str) -> None:
    """It is one sum over windows of elements that lie apart, without zeroes in between."""
    pool = _pool(name, lax.add, 0.0)
    x = array(*POOLS[name][0])
    g = array(*jax.eval_shape(pool, x).shape, seed=1)
    back = lambda g: jax.linear_transpose(pool, x)(g)[0]
    check_host(back, g, tolerance=1e-6)
    assert host.build(stages_of(back, g)[1].program, 1).algorithms == ("pool",)


# -- elementwise --------------------------------------------------------------------------------------------------

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1e-40, 1e38, -1e38, np.inf, -np.inf, np.nan, 2.5, -1e-3],
    np.float32,
)


def test_power_is_rounded_once() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-80, 80, 5000)).astype(np.float32)
    y = rng.uniform(-8, 8, 5000).astype(np.float32)
    got = run_host(lax.pow, x, y)[0]
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
        ulp = np.spacing(np.abs(want.astype(np.float32)))
        fits = np.isfinite(want.astype(np.float32))
    assert np.all(np.abs(got[fits] - want[fits]) <= 0.51 * ulp[fits])
    np.testing.assert_array_equal(got[~fits], np.inf)


def test_power_of_what_is_special() -> None:
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(run_host(lax.pow, x, y)[0], want)
    normal = ~(np.abs(x) < 1e-38) & ~(np.abs(want) < 2e-38)  # XLA takes others for 0
    np.testing.assert_allclose(np.asarray(jax.jit(lax.pow)(x, y))[normal], want[normal], rtol=1e-6)


def test_bias_correction() -> None:
    """A number to the power of a counter."""
    steps = np.arange(1, 40, dtype=np.int32)
    got = run_host(lambda n: 1 - np.float32(0.999) ** n, steps)[0]
    np.testing.assert_allclose(got, 1 - np.float64(np.float32(0.999)) ** steps, rtol=6e-5)


def test_exp2() -> None:
    x = np.concatenate([np.linspace(-160, 140, 4001), SPECIAL]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.exp2(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(run_host(lax.exp2, x)[0], want, rtol=3e-7, atol=1.5e-45)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_turns(name: str) -> None:
    """Near numbers, large ones, those near to multiples of pi/2, and all exponents."""
    rng = np.random.default_rng(0)
    near = np.arange(1, 2000) * np.pi / 2
    parts = [
        rng.uniform(-20, 20, 3000),
        near,
        near * 4096,
        rng.uniform(1, 2, 2000) * 2.0 ** rng.integers(-140, 128, 2000),
    ]
    x = np.concatenate([*parts, SPECIAL]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64))
    got = run_host(getattr(lax, name), x)[0]
    finite = np.isfinite(want)
    error = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(want[finite]).astype(np.float32))
    assert error.max() < 0.6
    assert np.isnan(got[~finite]).all()
    np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(want[finite]))


@pytest.mark.parametrize("method", list(lax.RoundingMethod))
def test_round(method: lax.RoundingMethod) -> None:
    halves = np.arange(-9, 9, dtype=np.float32) / 2
    near = np.nextafter(halves, np.float32(np.inf))
    x = np.concatenate([halves, near, -near, SPECIAL, np.float32(2.0) ** np.arange(20, 26) + np.float32(0.5)])
    fn = lambda x: lax.round(x, method)
    got, want = run_host(fn, x)[0], np.asarray(fn(x))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_is_finite() -> None:
    np.testing.assert_array_equal(run_host(lambda x: jnp.isfinite(x) * 1.0, SPECIAL)[0], np.isfinite(SPECIAL))


INTEGERS = np.array([0, 1, -1, 2, -7, 5, 9, -(2**31), 2**31 - 1, 100], np.int32)


@pytest.mark.parametrize("fn", [lax.div, lax.rem], ids=["div", "rem"])
def test_whole_quotients(fn: Any) -> None:
    a, b = (x.ravel() for x in np.meshgrid(INTEGERS, INTEGERS))
    np.testing.assert_array_equal(run_host(fn, a, b)[0], np.asarray(fn(a, b)))


@pytest.mark.parametrize("shape", [(7,), (3, 21), (2, 5, 40)], ids=str)
@pytest.mark.parametrize("axes", [None, 0, -1])
def test_all_any_and_counts(shape: tuple[int, ...], axes: int | None) -> None:
    x = np.asarray(array(*shape))
    for few in (x > -2, x > 2, x > 0.9, x < 0.9):
        for fn in (jnp.all, jnp.any):
            got = run_host(lambda p, fn=fn: fn(p, axes), few)[0]
            np.testing.assert_array_equal(got, np.asarray(fn(few, axes)))
        np.testing.assert_array_equal(run_host(lambda p: p.sum(axes), few)[0], few.sum(axes))
