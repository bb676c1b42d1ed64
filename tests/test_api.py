"""The public functions: calls, binding, composition, concurrency, bad input."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from flax.errors import ScopeParamShapeError

import xcoexec
from xcoexec import BindError, CoexecWarning, Plan, PlanError
from xcoexec.compat import as_array

from .support import array, assert_on_host, co, error, oracle, until

pytestmark = pytest.mark.usefixtures("quick_xla")


class Net(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(24, (3, 3))(x)))
        x = nn.max_pool(x, (2, 2), (2, 2))
        y = nn.swish(nn.Conv(24, (3, 3))(x))
        return nn.Dense(10)((x + y).mean((1, 2)))


X = array(2, 12, 12, 3)
WEIGHTS = Net().init(jax.random.key(0), X)
APPLY = Net().apply
WANT = oracle(APPLY, WEIGHTS, X)


def test_linen_decorator_and_call() -> None:
    @xcoexec.jit(strategy="host", strict=True)
    def predict(params: Any, x: Any) -> Any:
        return APPLY(params, x)

    assert predict.__name__ == "predict"
    assert error(predict(WEIGHTS, X), WANT) < 1e-5
    assert predict.report(WEIGHTS, X).segments == 1
    assert error(xcoexec.jit(APPLY, strategy="host")(WEIGHTS, X), WANT) < 1e-5
    assert predict.plan(WEIGHTS, X).placements[0].layer == "Net/Conv_0"


def test_nnx_module() -> None:
    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.conv = nnx.Conv(3, 16, (3, 3), rngs=rngs)
            self.out = nnx.Linear(16, 4, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.out(nnx.relu(self.conv(x)).mean((1, 2)))

    model = Model(nnx.Rngs(0))

    @xcoexec.jit(strategy="host", strict=True)
    def f(model: Model, x: jax.Array) -> jax.Array:
        return model(x)

    want = np.asarray(jax.jit(lambda m, x: m(x))(model, X))
    np.testing.assert_allclose(np.asarray(f(model, X)), want, rtol=1e-5, atol=1e-6)
    assert f.report(model, X).segments == 1
    assert next(p.layer for p in f.plan(model, X).placements) == "conv"
    np.testing.assert_allclose(np.asarray(f.bind(model)(X)), want, rtol=1e-5, atol=1e-6)


def test_plain_functions_and_pytrees() -> None:
    w, b = array(12, 20, seed=1), array(20, seed=2)

    @xcoexec.jit(strategy="host", strict=True)
    def f(x: dict[str, Any], scale: float = 1.0) -> dict[str, Any]:
        return {"y": jax.nn.relu(x["a"] @ w + b) * scale, "same": x["a"], "n": 3}

    out = f({"a": array(5, 12)}, scale=2.0)
    want = jax.jit(lambda x: jax.nn.relu(x @ w + b) * 2.0)(array(5, 12))
    np.testing.assert_allclose(np.asarray(out["y"]), np.asarray(want), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(out["same"]), np.asarray(array(5, 12)))
    assert int(out["n"]) == 3


def test_constants_only_and_passthrough() -> None:
    f = xcoexec.jit(lambda x: (jnp.arange(4.0), x, x + 1), strict=True)
    a, b, c = f(array(3))
    np.testing.assert_array_equal(np.asarray(a), np.arange(4.0))
    np.testing.assert_array_equal(np.asarray(b), np.asarray(array(3)))
    np.testing.assert_array_equal(np.asarray(c), np.asarray(array(3)) + 1)


def test_new_weights_are_seen() -> None:
    f = xcoexec.jit(APPLY, strategy="host", strict=True)
    f(WEIGHTS, X)
    other = jax.tree_util.tree_map(lambda a: a * 1.5, WEIGHTS)
    assert error(f(other, X), oracle(APPLY, other, X)) < 1e-5
    assert error(f(WEIGHTS, X), WANT) < 1e-5


def test_weights_that_change_at_every_call_become_inputs() -> None:
    f = xcoexec.jit(lambda w, x: x @ w, strategy="host", strict=True)
    x = array(4, 8)
    for i in range(6):
        w = array(8, 16, seed=i)
        np.testing.assert_allclose(np.asarray(f(w, x)), np.asarray(x) @ np.asarray(w), rtol=1e-5, atol=1e-6)
    assert f.report(array(8, 16), x).ran == "xco"
    (entry,) = f._entries.values()
    assert entry.current is not None and not entry.current.problem.weights


def test_static_and_keyword_arguments() -> None:
    def f(w: Any, x: Any, power: int, *, mode: str = "relu") -> Any:
        y = (x @ w) ** power
        return jax.nn.relu(y) if mode == "relu" else jnp.tanh(y)

    w, x = array(8, 16), array(4, 8)
    g = xcoexec.jit(f, strategy="host", strict=True, static_argnums=2, static_argnames="mode")
    for power in (1, 3):
        for mode in ("relu", "tanh"):
            np.testing.assert_allclose(
                np.asarray(g(w, x, power, mode=mode)), np.asarray(f(w, x, power, mode=mode)), rtol=1e-5, atol=1e-6
            )
    np.testing.assert_allclose(np.asarray(g(w, x, power=3)), np.asarray(f(w, x, 3)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{"strategy": "host"}, {"plan": xcoexec.Plan.uniform(1.0)}, {"wait": True}], ids=str
)
def test_a_keyword_argument_is_one_argument(options: Any) -> None:
    """Weights and a state that comes back are one tree, given by its name: none of its leaves is a weight, or all."""

    def f(v: Any, x: Any) -> Any:
        y = x @ v["params"]["w"]
        old, mean = v["state"], y.mean(0)
        return y - mean, {"mean": 0.9 * old["mean"] + 0.1 * mean, "var": 0.9 * old["var"] + 0.1 * (y * y).mean(0)}

    v = {"params": {"w": array(8, 16)}, "state": {"mean": jnp.zeros(16), "var": jnp.ones(16)}}
    x, g = array(4, 8), xcoexec.jit(f, strict=True, **options)
    for _ in range(3):
        got, want = g(v=v, x=x), f(v=v, x=x)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)
    assert g.report(v=v, x=x).ran == "xco" or "wait" in options


def test_donation() -> None:
    w = array(8, 8)
    f = xcoexec.jit(lambda w, x: x @ w + 1, strategy="host", strict=True, donate_argnums=1)
    x = array(8, 8, seed=3)
    want = np.asarray(x) @ np.asarray(w) + 1
    got = f(w, x)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)
    assert x.is_deleted()
    y = array(8, 8, seed=4)
    want = np.asarray(y) @ np.asarray(w) + 1
    np.testing.assert_allclose(np.asarray(f.bind(w)(y)), want, rtol=1e-5, atol=1e-6)


# -- composition -------------------------------------------------------------------------------------


def test_inside_other_transformations() -> None:
    f = xcoexec.jit(APPLY, strategy="host", strict=True)
    bound = f.bind(WEIGHTS)
    plain = jax.jit(APPLY)
    want = np.asarray(plain(WEIGHTS, X))
    for call in (lambda x: f(WEIGHTS, x), bound):
        np.testing.assert_allclose(np.asarray(jax.jit(call)(X)), want, rtol=1e-4, atol=1e-5)
        stacked = jnp.stack([X, X * 0.5])
        np.testing.assert_allclose(
            np.asarray(jax.vmap(call)(stacked)[1]), np.asarray(plain(WEIGHTS, X * 0.5)), rtol=1e-4, atol=1e-5
        )
        g = jax.grad(lambda x, call=call: call(x).sum())(X)
        np.testing.assert_allclose(
            np.asarray(g), np.asarray(jax.grad(lambda x: plain(WEIGHTS, x).sum())(X)), rtol=1e-3, atol=1e-5
        )
        _, ys = jax.lax.scan(lambda c, x, call=call: (c + 1, call(x)), 0, stacked)
        np.testing.assert_allclose(np.asarray(ys[0]), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(bound(X)), want, rtol=1e-4, atol=1e-5)


def test_control_flow_stays_whole() -> None:
    w = array(8, 8)

    def f(w: Any, x: Any) -> Any:
        y = jax.nn.relu(x @ w)
        y = jax.lax.fori_loop(0, 3, lambda i, y: jnp.tanh(y @ w), y)
        y = jax.lax.cond(y.sum() > 0, lambda y: y * 2, lambda y: y - 1, y)
        z, _ = jax.lax.scan(lambda c, _: (c * 0.5 + 1, None), y, None, length=4)
        z = jax.lax.while_loop(lambda z: z.max() > 1.2, lambda z: z * 0.9, z)
        return jax.nn.relu(z @ w)

    x = array(4, 8)
    fast = co(f, w, strategy="host")
    np.testing.assert_allclose(np.asarray(fast(x)), np.asarray(jax.jit(f)(w, x)), rtol=1e-4, atol=1e-5)
    assert_on_host(fast)
    kinds = {layer.kind for layer in fast.graph().layers}
    assert {"scan", "cond", "while"} & kinds


def test_inlined_calls() -> None:
    w = array(8, 8)

    @jax.custom_vjp
    def act(x: Any) -> Any:
        return jax.nn.relu(x)

    act.defvjp(lambda x: (act(x), x), lambda x, g: (g * (x > 0),))
    f = lambda w, x: jax.checkpoint(lambda x: act(jax.jit(lambda x: x @ w)(x)))(x) @ w
    fast = co(f, w, strategy="host")
    np.testing.assert_allclose(
        np.asarray(fast(array(4, 8))), np.asarray(jax.jit(f)(w, array(4, 8))), rtol=1e-5, atol=1e-6
    )
    assert all(p.half == "host" for p in fast.plan().placements)


def test_unknown_primitives_run_on_the_device_half() -> None:
    w = array(8, 8)
    f = lambda w, x: jax.nn.relu(jnp.sort(jax.nn.relu(x @ w), -1) @ w)
    fast = co(f, w, strategy="host")
    np.testing.assert_allclose(
        np.asarray(fast(array(4, 8))), np.asarray(jax.jit(f)(w, array(4, 8))), rtol=1e-5, atol=1e-6
    )
    assert [p.half for p in fast.plan().placements] == ["host", "device", "host"]
    assert "sort" in fast.plan().placements[1].note


def test_random_numbers_and_integers_pass_through() -> None:
    w = array(8, 8)
    f = lambda w, x, key: (x @ w) * jax.random.bernoulli(key, 0.5, (4, 8)) + jnp.arange(8)
    key = jax.random.key(3)
    np.testing.assert_allclose(
        np.asarray(co(f, w, strategy="host")(array(4, 8), key)),
        np.asarray(jax.jit(f)(w, array(4, 8), key)),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_eight_threads_call_two_hundred_times(threads: int) -> None:
    bound = co(APPLY, WEIGHTS, strategy="host", threads=threads)
    xs = [array(2, 12, 12, 3, seed=i) for i in range(8)]
    want = [np.asarray(bound(x)) for x in xs]

    def work(i: int) -> bool:
        return all(np.array_equal(np.asarray(bound(xs[i])), want[i]) for _ in range(200))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert_on_host(bound)


def test_many_calls_in_flight() -> None:
    bound = co(APPLY, WEIGHTS, strategy="host")
    want = np.asarray(bound(X))
    for y in [bound(X) for _ in range(100)]:
        np.testing.assert_array_equal(np.asarray(y), want)


def test_functions_come_and_go() -> None:
    """Executables and segments are freed in any order, also with calls in flight."""
    for i in range(12):
        fn, w, x = lambda w, x: jax.nn.relu(x @ w), array(16, 32, seed=i), array(4, 16)
        fast = co(fn, w, strategy="host")
        y = fast(x)
        del fast
        assert error(y, oracle(fn, w, x)) < 1e-5


def test_fork_and_exit() -> None:
    """A forked child runs kernels on a team of its own; leaving the interpreter is quiet."""
    code = """
import os, sys, warnings; warnings.simplefilter("ignore")
import jax, numpy as np
sys.path.insert(0, ".")
from tests.support import array, stages_of
from xcoexec.codegen.runtime import host
_, graph = stages_of(lambda x: jax.numpy.tanh(x) * 2, array(300, 300))
x = np.asarray(array(300, 300))
call = host.Call(host.build(graph.program, 2), [x], [])
want = call()[0].copy()
pid = os.fork()
if pid == 0:
    os._exit(0 if np.array_equal(call()[0], want) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=pathlib.Path(__file__).parent.parent,
    )
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr
    assert "terminate" not in done.stderr


# -- bad input ---------------------------------------------------------------------------------------


def test_compile_refuses_other_shapes_and_types() -> None:
    fixed = xcoexec.compile(APPLY, WEIGHTS, X, strategy="host", strict=True)
    assert error(fixed(WEIGHTS, X), WANT) < 1e-5
    with pytest.raises(BindError, match=r"got an argument .*\(3, 12, 12, 3\).* where .*\(2, 12, 12, 3\)"):
        fixed(WEIGHTS, array(3, 12, 12, 3))
    with pytest.raises(BindError, match="float16"):
        fixed(WEIGHTS, X.astype("float16"))
    with pytest.raises(BindError):
        fixed(WEIGHTS)
    assert error(fixed(WEIGHTS, X), WANT) < 1e-5


def test_wrong_shapes_and_types_at_a_bound_function() -> None:
    bound = co(APPLY, WEIGHTS, strategy="host")
    bound(X)
    half = bound(X.astype("bfloat16"))
    np.testing.assert_allclose(
        np.asarray(half, np.float32),
        np.asarray(jax.jit(APPLY)(WEIGHTS, X.astype("bfloat16")), np.float32),
        rtol=1e-2,
        atol=1e-2,
    )
    with pytest.raises(ScopeParamShapeError, match="kernel"):
        bound(array(2, 12, 12, 4))
    with pytest.raises(TypeError, match="type <class 'str'>"):
        bound("image")
    assert error(bound(X), WANT) < 1e-5


def test_numpy_weights_written_after_bind() -> None:
    weights = jax.tree_util.tree_map(lambda a: np.array(a), WEIGHTS)
    bound = co(APPLY, weights, strategy="host")
    bound(X)
    for leaf in jax.tree_util.tree_leaves(weights):
        leaf[...] = 7
    assert error(bound(X), WANT) < 1e-5
    late = co(APPLY, jax.tree_util.tree_map(lambda a: np.array(a), WEIGHTS), strategy="host")
    assert error(late(np.asarray(X)), WANT) < 1e-5


def test_numpy_weights_in_a_call_go_to_jit_with_a_warning() -> None:
    weights = jax.tree_util.tree_map(lambda a: np.array(a), WEIGHTS)
    f = xcoexec.jit(APPLY, strategy="host")
    with pytest.warns(CoexecWarning, match="NumPy arrays"):
        assert error(f(weights, X), WANT) < 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(weights, X)
        assert f.report(weights, X).ran == "jit" and "NumPy arrays" in f.plan(weights, X).chosen
        with pytest.raises(BindError, match="no layers for these arguments"):
            f.graph(weights, X)
    strict = xcoexec.jit(APPLY, strategy="host", strict=True)
    for _ in range(2):
        with pytest.raises(BindError, match="NumPy arrays"):
            strict(weights, X)


def test_zero_size_batch() -> None:
    got = co(APPLY, WEIGHTS, strategy="host")(X[:0])
    assert got.shape == (0, 10) and got.dtype == jnp.float32


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-42, 3e38])
def test_extreme_inputs(value: float) -> None:
    """As NumPy has it for NaN (XLA:CPU may lose one in a maximum), as jax.jit has it for the rest of f32's range."""
    x = np.array(X)
    x[0, 3, 3, 0] = value
    got = np.asarray(co(APPLY, WEIGHTS, strategy="host")(x))
    want = oracle(APPLY, WEIGHTS, x) if np.isnan(value) else np.asarray(jax.jit(APPLY)(WEIGHTS, x))
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    finite = np.isfinite(want)
    np.testing.assert_allclose(
        got[finite], want[finite], rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(want[finite]).max(initial=0.0)))
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            dict(strategy="fast"),
            "got strategy='fast'; valid are device, host, edgenn, codl, codl_measured, layer_switch, items, capacity, "
            "auto",
        ),
        (dict(threads=0), "got threads=0; valid is a whole number from 1 to 256"),
        (dict(threads=1.5), "threads=1.5"),
        (dict(threads="many"), "threads='many'"),
        (dict(strict="yes"), "valid is True or False"),
        (dict(plan={"p": 1}), "valid is a Plan"),
        (dict(static_argnums="x"), "valid is an int or several"),
    ],
)
def test_bad_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text.replace("(", r"\(")):
        xcoexec.jit(APPLY, **options)


def numbers(x: Any) -> Any:
    yield x


def test_bad_functions_and_uses() -> None:
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        xcoexec.jit(lambda x, n: x, static_argnums=1)(array(3), [1])
    for no_function in (3, None):
        with pytest.raises(TypeError, match=f"got {no_function}; valid is a callable"):
            xcoexec.jit(no_function)
    for odd in (numbers, staticmethod(jnp.tanh)):
        with pytest.raises(TypeError) as theirs:
            jax.jit(odd)
        with pytest.raises(TypeError) as ours:
            xcoexec.jit(odd)
        assert str(ours.value) == str(theirs.value)
    assert xcoexec.jit()(jnp.tanh)(0.0) == 0 and xcoexec.jit(strategy="host")(jnp.tanh)(0.0) == 0
    with pytest.raises(ValueError, match="valid is JAX's default backend, here 'cpu'"):
        xcoexec.compile(APPLY, WEIGHTS, X, device="tpu")
    with pytest.raises(BindError, match="has not been called yet"):
        xcoexec.jit(APPLY).bind(WEIGHTS).report()
    with pytest.raises(PlanError, match="valid is 0 to 1"):
        Plan.uniform(1.5)
    with pytest.raises(PlanError, match="dim='depth'"):
        Plan.uniform(0.5, "depth")
    with pytest.raises(BindError, match="traced arrays"):
        jax.jit(lambda w: xcoexec.jit(APPLY).bind(w)(X))(WEIGHTS)


def test_side_effects_fall_back_with_one_warning() -> None:
    def f(x: Any) -> Any:
        jax.debug.print("{}", x.sum())
        return x + 1

    with pytest.warns(CoexecWarning, match="side effects"):
        g = xcoexec.jit(f)
        np.testing.assert_array_equal(np.asarray(g(array(3))), np.asarray(array(3) + 1))
    with pytest.raises(BindError, match="side effects"):
        xcoexec.jit(f, strict=True)(array(3))


def test_failed_kernel_build_falls_back_or_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    from xcoexec.codegen.segment import assembly

    def broken(*_: Any) -> int:
        raise RuntimeError("no code today")

    monkeypatch.setattr(assembly, "kernel_address", broken)
    with pytest.warns(CoexecWarning, match="no code today"):
        f = xcoexec.jit(APPLY, strategy="host")
        bound = f.bind(WEIGHTS)
        assert error(bound(X), WANT) < 1e-4
    assert bound.report().ran == "jit" and "no code today" in bound.report().why
    with pytest.raises(BindError, match="no code today"):
        co(APPLY, WEIGHTS, strategy="host")(X)


# -- plans -------------------------------------------------------------------------------------------


def _plan() -> tuple[Any, dict[str, Any]]:
    bound = co(APPLY, WEIGHTS, strategy="host")
    bound(X)
    return bound, json.loads(bound.plan().to_json())


def test_plan_round_trip() -> None:
    bound, data = _plan()
    again = Plan.from_json(json.dumps(data))
    assert again == bound.plan()
    assert error(co(APPLY, WEIGHTS, plan=again)(X), WANT) < 1e-5


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda d: d.update(version=99), "got version 99"),
        (lambda d: d.pop("strategy"), "missing or unknown"),
        (lambda d: d.update(extra=1), "missing or unknown"),
        (lambda d: d["placements"][0].update(half="gpu"), "half='gpu' in placement 0"),
        (lambda d: d["placements"][0].update(p_cpu=2), "p_cpu=2"),
        (lambda d: d["placements"][0].update(p_cpu="x"), "p_cpu='x'"),
        (lambda d: d["placements"][0].update(dim="depth"), "dim='depth'"),
        (lambda d: d["placements"][0].pop("note"), "placement 0 with other entries"),
        (lambda d: d.update(placements=3), "no list"),
    ],
)
def test_edited_plan_files_are_refused(edit: Any, text: str) -> None:
    _, data = _plan()
    edit(data)
    with pytest.raises(PlanError, match=text):
        Plan.from_json(json.dumps(data))


def test_plans_that_do_not_fit_are_refused() -> None:
    bound, data = _plan()
    with pytest.raises(PlanError, match="not JSON"):
        Plan.from_json("{")
    short = dataclasses.replace(bound.plan(), placements=bound.plan().placements[:-1])
    with pytest.raises(PlanError, match="the function has"):
        co(APPLY, WEIGHTS, plan=short)(X)
    data["placements"][0]["layer"] = "Other"
    with pytest.raises(PlanError, match="'Other' where the function has 'Net/Conv_0'"):
        co(APPLY, WEIGHTS, plan=Plan.from_json(json.dumps(data)))(X)
    with pytest.raises(PlanError, match="made for the graph"):
        co(APPLY, WEIGHTS, plan=bound.plan())(array(1, 16, 16, 3))


def test_timeline(tmp_path: pathlib.Path) -> None:
    bound, _ = _plan()
    bound.timeline(tmp_path / "deep" / "trace.json")
    events = json.loads((tmp_path / "deep" / "trace.json").read_text())["traceEvents"]
    names = {e["name"] for e in events if e["ph"] == "X"}
    assert "Net/Conv_0" in names and all(e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_a_timeline_has_a_row_for_each_thread(tmp_path: pathlib.Path) -> None:
    fn = lambda w, x: jax.nn.relu(x @ w) @ w
    fast = co(fn, array(512, 512), strategy="host", threads=2)
    events: list[dict[str, Any]] = []
    rows: dict[int, str] = {}

    def both_worked() -> bool:
        """A loaded machine may let the calling thread do all of a call."""
        fast(array(256, 512))
        fast.timeline(tmp_path / "t.json")
        events[:] = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
        rows.clear()
        rows.update({e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"})
        return {"thread 0 (calls)", "thread 1"} <= set(rows.values())

    until(both_worked)
    steps = {e["name"]: e for e in events if e["ph"] == "X" and e["tid"] == 0}
    first, last = min(e["ts"] for e in steps.values()), max(e["ts"] + e["dur"] for e in steps.values())
    for tid in (t for t, n in rows.items() if n.startswith("thread")):
        mine = sorted((e for e in events if e["ph"] == "X" and e["tid"] == tid), key=lambda e: e["ts"])
        assert mine and all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in itertools.pairwise(mine))
        assert {e["name"] for e in mine} <= set(steps)
        assert all(e["ts"] >= first - 1e-3 and e["ts"] + e["dur"] <= last + 101 for e in mine)


def test_report_text() -> None:
    bound, _ = _plan()
    assert "Net/Conv_0" in str(bound.plan()) and "predicted ms" in str(bound.plan())
    text = str(bound.report())
    assert "Conv_0" in text and "in a call: 1." in text and "% of roofline" in text


def test_threads_of_one_function_do_not_disturb_another() -> None:
    one, two = co(APPLY, WEIGHTS, strategy="host", threads=1), co(APPLY, WEIGHTS, strategy="host", threads=2)
    out: list[bool] = []

    def loop(f: Any) -> None:
        out.append(all(error(f(X), WANT) < 1e-5 for _ in range(50)))

    workers = [threading.Thread(target=loop, args=(f,)) for f in (one, two, two)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert out == [True] * 3


@pytest.mark.parametrize("strategy", ["device", "host"])
@pytest.mark.parametrize("committed", [False, True])
def test_what_a_function_closes_over_does_not_commit_its_results(strategy: str, committed: bool) -> None:
    held = jax.device_put(np.eye(64, dtype=np.float32), jax.devices()[0] if committed else None)
    fn = lambda x: jnp.tanh(x @ held) @ held
    x, there = jnp.ones((8, 64)), jax.device_put(jnp.ones((8, 64)), jax.devices()[0])
    plain, fast = jax.jit(fn), xcoexec.jit(fn, strategy=strategy, strict=True)
    assert fast.report(x).ran == "xco" and held.committed is committed
    np.testing.assert_allclose(fast(x), plain(x), rtol=1e-6)
    assert fast(x).committed is plain(x).committed is False
    assert fast(there).committed is plain(there).committed is True


def test_a_numpy_array_is_copied_and_any_other_is_what_asarray_makes_of_it() -> None:
    x = np.full((3, 5), 1.5)
    got = as_array(x)
    x[:] = 2.0
    want = jnp.asarray(np.full((3, 5), 1.5))
    assert (got.dtype, got.weak_type, got.committed) == (want.dtype, want.weak_type, want.committed)
    np.testing.assert_array_equal(got, want)
    assert as_array(got) is got and as_array(2.0).weak_type and as_array(x[::2, 1]).shape == (2,)
