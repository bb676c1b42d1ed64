"""Gradients with no `jax.jit` around: both passes are co-executed, and equal to those of `jax.jit`."""

from __future__ import annotations

import functools
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.api import gradients as module
from xcoexec.api.gradients import Gradient
from xcoexec.session.plain_session import PlainSession

from .support import array
from .test_training import same

pytestmark = pytest.mark.usefixtures("quick_xla")

PARAMS = {"w": array(24, 40, seed=1), "b": array(40, seed=2), "out": array(40, 10, seed=3)}
X, Y = array(8, 24, seed=4), array(8, 10, seed=5)


@pytest.fixture(autouse=True)
def nothing_is_said() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", xcoexec.CoexecWarning)
        yield


def model(p: Any, x: Any) -> Any:
    return jax.nn.relu(x @ p["w"] + p["b"]) @ p["out"]


def loss(p: Any, x: Any, y: Any) -> Any:
    return jnp.mean((model(p, x) - y) ** 2)


def with_aux(p: Any, x: Any, y: Any) -> Any:
    o = model(p, x)
    return jnp.mean((o - y) ** 2), {"logits": o, "best": jnp.argmax(o, -1), "norm": jnp.sum(x * x), "n": 3}


def quick(fn: Callable[..., Any], **given: Any) -> Any:
    return xcoexec.jit(fn, strategy="host", threads=2, wait=True, **given)


def gradients(fast: Any) -> list[Gradient]:
    return [g for g in fast._gradients._known.values() if g is not None]


def ran_on_host(fast: Any, backward: int = 1) -> None:
    """Both passes ran on kernels, for one signature, the backward one in so many variants."""
    (found,) = gradients(fast)
    assert len(found.backward) == backward
    for program in (found.forward, *found.backward.values()):
        plan = program.plan()
        assert plan.engine != "jit" and "host" in str(program.report()), plan


def check(fn: Callable[..., Any], asked: Callable[[Any], Any], **given: Any) -> Any:
    """What is asked of a function is the same with both; returns ours."""
    fast = quick(fn, **given)
    want = asked(jax.jit(fn, **given))
    for _ in range(2):
        same(asked(fast), want)
    return fast


def test_grad_and_value() -> None:
    ran_on_host(check(loss, lambda f: jax.grad(f)(PARAMS, X, Y)))
    ran_on_host(check(loss, lambda f: jax.value_and_grad(f)(PARAMS, X, Y)))
    ran_on_host(check(loss, lambda f: jax.grad(lambda p: 2 * f(p, X, Y) + f(p, X, Y))(PARAMS)))
    ran_on_host(check(loss, lambda f: jax.value_and_grad(f, argnums=(0, 1))(PARAMS, X, Y)))
    ran_on_host(check(loss, lambda f: jax.grad(f, argnums=2)(PARAMS, X, y := Y) + y))


def test_what_is_not_asked_is_not_made() -> None:
    fast = check(loss, lambda f: jax.grad(f, argnums=2)(PARAMS, X, Y))
    (found,) = gradients(fast)
    (program,) = found.backward.values()
    assert len(found._wanted) == 1 and "dot_general" not in str(program.graph())


def test_aux() -> None:
    fast = check(with_aux, lambda f: jax.value_and_grad(f, has_aux=True)(PARAMS, X, Y))
    ran_on_host(fast)
    (found,) = gradients(fast)
    assert list(found.backward) == [(0,)]  # nothing flows back from the aux results


def test_results_that_do_not_depend_stay_arrays() -> None:
    seen = []

    def outer(f: Any, p: Any) -> Any:
        value, aux = f(p, X, Y)
        seen.append([isinstance(aux[k], jax.core.Tracer) for k in ("logits", "best", "norm", "n")])
        return value + 0 * float(np.asarray(aux["norm"]))

    for f in (jax.jit(with_aux), fast := quick(with_aux)):
        jax.grad(functools.partial(outer, f))(PARAMS)
    assert seen[0] == seen[1]
    ran_on_host(fast)


def test_vjp_of_trees() -> None:
    def fn(p: Any, x: Any) -> Any:
        return {"a": model(p, x), "b": (p["w"] * 2, jnp.sum(p["b"])), "x": x}

    def asked(f: Any) -> Any:
        out, back = jax.vjp(f, PARAMS, X)
        return out, back(out), back(jax.tree.map(jnp.ones_like, out))

    ran_on_host(check(fn, asked))

    def many(f: Any) -> Any:
        out, back = jax.vjp(lambda p: f(p, X)["a"], PARAMS)
        basis = jnp.stack([out, out * 2])
        return (
            jax.vmap(back)(basis),
            jax.jit(back)(out),
            jax.jvp(back, (out,), (out,)),
            jax.grad(lambda o: jnp.sum(back(o)[0]["w"] ** 2))(out),
        )

    check(fn, many)
    check(lambda x: model(PARAMS, x), lambda f: jax.jacrev(f)(X))


def test_residuals_under_transformations() -> None:
    """What `vjp` returns is a tree, whose arrays may be traced."""

    def asked(f: Any) -> Any:
        out, back = jax.vjp(f, X)
        return jax.jit(lambda b, o: b(o))(back, out)

    check(lambda x: jnp.tanh(x @ PARAMS["w"]), asked)


def test_integers_keys_numbers_and_names() -> None:
    table, ids = array(12, 6, seed=6), jnp.asarray([1, 5, 5, 0])

    def embed(t: Any, i: Any, *, scale: Any, key: Any) -> Any:
        keep = jax.random.bernoulli(key, 0.5, (4, 6))
        return jnp.sum(jnp.where(keep, jnp.tanh(t[i] * scale), 0.0))

    for key in (jax.random.key(0), jax.random.PRNGKey(0)):
        check(embed, lambda f, key=key: jax.grad(f)(table, ids, scale=1.5, key=key))
        check(embed, lambda f, key=key: jax.grad(lambda s: f(table, ids, scale=s, key=key))(1.5))
    look_up = lambda t, i: jnp.sum(jnp.tanh(t[i]))
    fast = quick(look_up)
    got, want = (jax.grad(f, argnums=(0, 1), allow_int=True)(table, ids) for f in (fast, jax.jit(look_up)))
    same(got[0], want[0])
    assert got[1].dtype == want[1].dtype == jax.dtypes.float0 and gradients(fast)[0]._wanted == (0,)


def test_static_arguments() -> None:
    def fn(p: Any, x: Any, power: int, *, kind: str = "sum") -> Any:
        return getattr(jnp, kind)(jnp.tanh(model(p, x)) ** power)

    ask = lambda f: (jax.grad(f)(PARAMS, X, 2, kind="mean"), jax.grad(f)(PARAMS, X, 3, kind="sum"))
    fast = check(fn, ask, static_argnums=2, static_argnames="kind")
    assert len(gradients(fast)) == 2


def test_custom_rules_loops_and_checkpoints_inside() -> None:
    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 2

    clipped.defvjp(lambda x: (x * 2, x), lambda x, g: (jnp.clip(g, -0.01, 0.01) + 0 * x,))

    def fn(p: Any, x: Any) -> Any:
        h = jax.checkpoint(lambda x: jnp.tanh(x @ p["w"] + p["b"]))(clipped(x))
        h, _ = jax.lax.scan(lambda c, _: (jnp.sin(c) + h, None), h, None, length=3)
        return jnp.sum(jax.jit(lambda h: h @ p["out"])(h) ** 2)

    ran_on_host(check(fn, lambda f: jax.value_and_grad(f, argnums=(0, 1))(PARAMS, X)))


def test_convolutions_against_double_precision() -> None:
    def fn(w: Any, x: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.sum(jnp.tanh(y) ** 2)

    w, x = array(3, 3, 5, 7, seed=8), array(2, 9, 11, 5, seed=9)
    fast = quick(fn)
    got = jax.grad(fast, argnums=(0, 1))(w, x)
    ran_on_host(fast)
    with jax.enable_x64(True):
        want = jax.grad(fn, argnums=(0, 1))(np.asarray(w, np.float64), np.asarray(x, np.float64))
    for a, b in zip(got, want, strict=True):
        assert np.abs(np.asarray(a) - np.asarray(b)).max() <= 1e-5 * np.abs(np.asarray(b)).max()


def test_new_shapes_and_new_parameters() -> None:
    fast, plain = quick(loss), jax.jit(loss)
    p = PARAMS
    for i in range(6):
        n = (8, 3)[i % 2]
        got, want = (jax.grad(f)(p, X[:n], Y[:n]) for f in (fast, plain))
        same(got, want)
        p = jax.tree.map(lambda p, g: p - 0.1 * g, p, got)
    assert len(gradients(fast)) == 2
    assert all(len(g.forward._entries) == 1 for g in gradients(fast))  # nothing is planned anew


def test_other_transformations_take_the_plain_function() -> None:
    flat = lambda x: jnp.sum(jnp.tanh(x @ PARAMS["w"]) ** 2)
    x = X[0]
    for asked in (
        lambda f: jax.hessian(f)(x),
        lambda f: jax.jacfwd(jax.jacrev(f))(x),
        lambda f: jax.jacrev(jax.jacrev(f))(x),
        lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2))(x),
        lambda f: jax.jvp(f, (x,), (x,)),
        lambda f: jax.jvp(jax.grad(f), (x,), (x,)),
        lambda f: jax.linearize(f, x)[1](x),
        lambda f: jax.vmap(jax.grad(f))(X),
        lambda f: jax.grad(lambda X: jnp.sum(jax.vmap(f)(X)))(X),
        lambda f: jax.jit(jax.grad(f))(x),
        lambda f: jax.grad(jax.jit(f))(x),
        lambda f: jax.jit(lambda: jax.grad(f)(x))(),
        lambda f: jax.grad(jax.checkpoint(f))(x),
        lambda f: jax.lax.scan(lambda c, x: (c, jax.grad(f)(x)), 0, X)[1],
        lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, x: (c + f(x), None), 0.0, x)[0])(X),
        lambda f: jax.grad(lambda x: f(x) + jax.lax.stop_gradient(f(x * 2)))(x),
    ):
        check(flat, asked)


def test_values_of_a_transformation_around_it() -> None:
    def asked(jit: Any) -> Any:
        return jax.grad(lambda p: jnp.sum(jit(lambda x: model(p, x))(X) ** 2))(PARAMS), jax.grad(
            lambda p: jnp.sum(jit(lambda x: model(p, x))(p["w"].T[:8, :] * 1.0) ** 2)
        )(PARAMS)

    same(asked(quick), asked(jax.jit))


def test_what_stays_plain() -> None:
    step = lambda p, x: (jnp.sum(x @ p), jax.debug.callback(lambda: None))[0]
    for fn, given in ((step, {}), (lambda p, x: jnp.sum(x @ p), {"donate_argnums": 1})):
        fast = quick(fn, **given)
        x = array(8, 24, seed=4)
        same(jax.grad(fast)(PARAMS["w"], x), jax.grad(jax.jit(fn))(PARAMS["w"], x))
        assert not gradients(fast)
    fast = xcoexec.jit(lambda x: jnp.sum(jnp.sin(x)), wait=False)  # over within microseconds
    same(jax.grad(fast)(X), jnp.cos(X))
    assert not gradients(fast)


def test_nans_are_found() -> None:
    roots = lambda p, x: jnp.sum(jnp.sqrt(x @ p - 1e3))
    with jax.debug_nans(True):
        for f in (jax.jit(roots), quick(roots)):
            with pytest.raises(FloatingPointError):
                jax.grad(f)(PARAMS["w"], X)


def test_threads_at_once() -> None:
    fast, found = quick(loss), []
    call = lambda: found.append(jax.grad(fast)(PARAMS, X, Y))
    several = [threading.Thread(target=call) for _ in range(4)]
    for t in several:
        t.start()
    for t in several:
        t.join()
    same(found, [jax.grad(jax.jit(loss))(PARAMS, X, Y)] * 4)
    ran_on_host(fast)


def test_complex_and_half_numbers() -> None:
    fn = lambda w, x: jnp.sum(jnp.abs(x @ w) ** 2)
    w = PARAMS["w"] * (1 + 0.5j)
    check(fn, lambda f: jax.grad(f)(w, X))
    check(lambda w, x: jnp.sum((x @ w) ** 2), lambda f: jax.grad(f, holomorphic=True)(w, X + 0j))
    half = lambda x: x.astype(jnp.bfloat16)
    got, want = (jax.grad(f)(half(PARAMS["w"]), half(X)) for f in (quick(fn), jax.jit(fn)))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got, np.float32), np.asarray(want, np.float32), rtol=0.05, atol=0.2)


def test_errors_are_those_of_the_function() -> None:
    for f in (jax.jit(model), quick(model)):
        with pytest.raises(TypeError, match="dot_general requires contracting dimensions"):
            jax.vjp(f, PARAMS, array(3, 5))
        with pytest.raises(TypeError, match="Gradient only defined for scalar-output"):
            jax.grad(f)(PARAMS, X)


def test_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Stale", type("Never", (Exception,), {}))  # each pass runs as it was planned
    p = {"w": array(256, 512, seed=1), "b": array(512, seed=2), "out": array(512, 64, seed=3)}
    x, y = array(64, 256, seed=4), array(64, 64, seed=5)
    fast, want = xcoexec.jit(loss, wait=False, threads=2), jax.value_and_grad(jax.jit(loss))(p, x, y)
    for _ in range(3):
        same(jax.value_and_grad(fast)(p, x, y), want)
    assert fast.ready(200)
    for _ in range(30):
        same(jax.value_and_grad(fast)(p, x, y), want)
    (found,) = gradients(fast)
    assert len(found.entries) == 2
    assert all(not isinstance(e.current, PlainSession) for e in found.entries), [e.current for e in found.entries]
    fast.clear_cache()
    same(jax.value_and_grad(fast)(p, x, y), want)


def test_nothing_is_kept() -> None:
    fast = quick(loss)
    step = jax.grad(lambda p: fast(p, X, Y))
    counts = []
    for _ in range(4):
        step(PARAMS)
        gc.collect()
        counts.append(len(jax.live_arrays()))
    assert counts[1] == counts[3]


def test_with_a_mesh_set() -> None:
    mesh = jax.make_mesh((1,), ("a",))
    fast, plain = quick(loss), jax.jit(loss)
    with jax.set_mesh(mesh):
        want = jax.grad(plain)(PARAMS, X, Y)
        got = jax.grad(fast)(PARAMS, X, Y)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert a.sharding == b.sharding
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)
    ran_on_host(fast)
