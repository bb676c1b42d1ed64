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


# -- forms that gradients have ------------------------------------------------------------------------------------


def _kinds(fn: Any, *args: Any) -> list[str]:
    return [op.prim for x in stages_of(fn, *args)[1].layers for op in x.ops]


def test_parts_that_do_not_meet_are_put_side_by_side() -> None:
    """The gradient of a split into queries, keys and values."""

    def fn(x: Any, a: Any, b: Any, c: Any) -> Any:
        return jax.grad(lambda x: (x[:, 4:9] * b).sum() + (x[:, :4] * a).sum() + (x[:, 9:] * c).sum())(x)

    args = (array(3, 12), array(3, 4), array(3, 5, seed=1), array(3, 3, seed=2))
    assert "concatenate" in _kinds(fn, *args) and "pad" not in _kinds(fn, *args)
    check_host(fn, *args, tolerance=1e-6)


@pytest.mark.parametrize("parts", [((0, 5), (4, 12)), ((0, 4), (5, 12)), ((0, 4), (4, 11))])
def test_parts_that_meet_or_leave_gaps_are_added(parts: tuple[tuple[int, int], ...]) -> None:
    fn = lambda x, y: jax.grad(lambda x: sum((x[:, a:b] * y[:, a:b]).sum() for a, b in parts))(x)
    assert "concatenate" not in _kinds(fn, array(3, 12), array(3, 12))
    check_host(fn, array(3, 12), array(3, 12, seed=1), tolerance=1e-6)


LABELS = np.array([3, 0, 6, 2, 2], np.int32)


def test_long_sums_are_looked_through_once() -> None:
    x = array(3, 8)

    def doubled(x: Any) -> Any:
        for _ in range(60):
            x = (x + x) * 0.5
        for _ in range(40):  # each sum is both summands of the next one
            x = x + x
        return x

    def long(x: Any) -> Any:
        y = x
        for i in range(1200):  # more than calls may be nested
            y = y + x * (i % 3)
        return y

    (got,) = run_host(doubled, x)
    assert error(got, np.asarray(x, np.float64) * 2.0**40) < 1e-6
    assert _kinds(long, x).count("add") == 1200


def test_labels_gradient_adds_to_what_is_there() -> None:
    """Cross-entropy with integer labels: nothing is filled with zeroes for the scatter, which adds in place."""
    loss = lambda x: (jax.nn.logsumexp(x, -1) - jnp.take_along_axis(x, LABELS[:, None], -1)[:, 0]).mean()
    fn = lambda x: jax.grad(lambda x: loss(x * 2))(x)
    x = array(5, 7, low=-5, high=5)
    assert error(run_host(fn, x)[0], np.asarray(fn(x))) < 1e-6
    steps = host.build(stages_of(fn, array(5, 7))[1].program, 1).steps
    assert [s.kernel for s in steps if s.writes[0] is steps[-2].writes[0]] == ["rowwise", "scatter"]


def test_what_others_read_is_not_written_over() -> None:
    """Rows are added to a copy where the array is read again, under its own shape or another."""
    i, u = np.array([1, 3, 1], np.int32), array(3, 6, seed=1)
    for again in (lambda y: y * 3, lambda y: y.reshape(30) * 3, lambda y: y):
        fn = lambda x, again=again: ((x + 1).at[i].add(u) * 1.0, again(x + 1))
        got, want = run_host(fn, array(5, 6)), fn(array(5, 6))
        assert all(error(a, np.asarray(b)) < 1e-6 for a, b in zip(got, want, strict=True))


def test_products_take_transposed_matrices_as_they_lie() -> None:
    w, x = array(5, 7), array(2, 3, 7, seed=1)
    fn = lambda w, x: (x @ w.T, jax.grad(lambda w: jnp.sin(x @ w.T).sum())(w))
    assert _kinds(fn, w, x).count("transpose") <= 1
    for got, want in zip(run_host(fn, w, x), fn(w, x), strict=True):
        assert error(got, np.asarray(want)) < 1e-5


def test_a_known_place_is_a_slice() -> None:
    x = array(4, 6)
    fn = lambda x: jax.value_and_grad(lambda x: (x.take(2, 1) ** 3).sum())(x)
    kinds = _kinds(fn, x)
    assert "gather" not in kinds and "scatter-add" not in kinds
    for got, want in zip(run_host(fn, x), fn(x), strict=True):
        assert error(got, np.asarray(want)) < 1e-6


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_gradient_of_an_embedding_of_a_short_type(dtype: Any) -> None:
    """Each addition is rounded, as XLA does."""
    ids = np.random.default_rng(0).integers(0, 9, (4, 8)).astype(np.int32)
    fn = lambda t, g: jax.vjp(lambda t: t[ids], t)[1](g)[0]
    table, g = array(9, 12).astype(dtype), array(4, 8, 12, seed=1).astype(dtype)
    got, want = run_host(fn, table, g)[0], np.asarray(jax.jit(fn)(table, g), np.float32)
    np.testing.assert_array_equal(got, want)


def test_loops_are_simplified_too() -> None:
    """Micro-batches: the loss of each is in the body of a loop."""

    def loss(w: Any, x: Any, labels: Any) -> Any:
        logits = x @ w
        return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], -1).take(0, -1)).mean()

    def fn(w: Any, xs: Any, labels: Any) -> Any:
        turn = lambda g, batch: (g + jax.grad(loss)(w, *batch), loss(w, *batch))
        return lax.scan(turn, jnp.zeros_like(w), (xs, labels))

    args = (array(4, 7), array(3, 5, 4, seed=1), np.stack([LABELS, LABELS[::-1], 6 - LABELS]))
    for got, want in zip(run_host(fn, *args), jax.tree_util.tree_leaves(fn(*args)), strict=True):
        assert error(got, np.asarray(want)) < 1e-5


def test_random_bits_do_not_cut_the_rest() -> None:
    def fn(w: Any, key: Any, x: Any) -> Any:
        for k in range(3):
            keep = jax.random.bernoulli(jax.random.fold_in(key, k), 0.9, x.shape)
            x = jnp.where(keep, jnp.tanh(x @ w), 0) / 0.9
        return x

    layers = stages_of(fn, array(8, 8), jax.random.key(0), array(4, 8))[1].layers
    runs = [bool(x.host_error) for x in layers]
    assert any(runs) and runs == sorted(runs, reverse=True)
