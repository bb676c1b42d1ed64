"""The contract of `jax.jit`, held by `xcoexec.jit`: parameters, methods, transformations, configuration, errors."""

from __future__ import annotations

import copy
import functools
import gc
import importlib.metadata
import inspect
import os
import pickle
import subprocess
import sys
import traceback
import types
import warnings
import weakref
from typing import Any

import cloudpickle
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.training.train_state import TrainState
from jax.experimental import io_callback
from jax.interpreters import mlir
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

import xcoexec
from xcoexec import BindError, CoexecWarning, guard
from xcoexec.api.signature import Keys, leaf_key

from .support import array

pytestmark = pytest.mark.usefixtures("quick_xla")

X = np.ones((4, 8), np.float32)
W = array(8, 8, seed=3)
KEY = jax.random.key(0)


def same(got: Any, want: Any, rtol: float = 2e-5, atol: float = 1e-6) -> None:
    """Equal structure, types (weak ones too), shapes and values."""
    assert jax.tree_util.tree_structure(got) == jax.tree_util.tree_structure(want)
    for a, b in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(want), strict=True):
        a, b = jnp.asarray(a), jnp.asarray(b)
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        if jnp.issubdtype(a.dtype, jax.dtypes.extended):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)


def on_kernels(fn: Any, *args: Any, **options: Any) -> Any:
    """The result of `fn` where a fallback is an error, and kernels ran."""
    fast = xcoexec.jit(fn, strategy="host", strict=True, **options)
    out = fast(*args)
    assert fast.report(*args).ran == "xco" and fast.report(*args).segments
    return out


def run(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# -- no internal error reaches the caller ------------------------------------------------------------

INTERNAL = {
    "a constant leads": (lambda x: jnp.ones((4, 8)) * x, (X,)),
    "a constant follows": (lambda x: x + jnp.zeros((4, 8)), (X,)),
    "the least of ones": (lambda x: jnp.minimum(jnp.ones((4, 8)), x), (X,)),
    "tril": (jnp.tril, (X,)),
    "triu": (jnp.triu, (X,)),
    "trace": (jnp.trace, (X,)),
    "nanargmin": (jnp.nanargmin, (X,)),
    "select": (lambda x: jnp.select([x > 2, x > 0], [x, x * 2], -1.0), (X,)),
    "gamma": (jax.scipy.special.gamma, (X + 0.5,)),
    "beta": (jax.scipy.special.beta, (X, X + 1)),
    "gradient of a sum of sines": (jax.value_and_grad(lambda x: jnp.sin(x).sum()), (X,)),
    "gradient of a product": (jax.value_and_grad(jnp.prod), (np.full((3, 5), 1.1, np.float32),)),
    "gradient through a pool": (
        jax.grad(lambda x: nn.max_pool(nn.relu(x), (2, 2), (2, 2)).sum()),
        (np.asarray(array(2, 6, 6, 3)),),
    ),
    "gradient through dropout": (
        jax.grad(lambda x: (jnp.where(jax.random.bernoulli(jax.random.key(1), 0.5, x.shape), x / 0.5, 0) ** 2).sum()),
        (X,),
    ),
    "a learning rate's schedule": (
        lambda w, g, step: w - g * (0.1 / (1 + 0.5 * (step + 1))),
        (X, X * 0.5, np.int32(3)),
    ),
    "an integer between floats": (lambda x, p: x * 2 + p * 2 + 1.0, (X, 4)),
    "spence": (jax.scipy.special.spence, (X * 0.25,)),
}


@pytest.mark.parametrize("name", INTERNAL)
def test_what_raised_inside_now_runs_on_kernels(name: str) -> None:
    fn, args = INTERNAL[name]
    same(on_kernels(fn, *args), jax.jit(fn)(*args))


@pytest.mark.parametrize("name", ["gradient of a product", "tril", "an integer between floats"])
def test_the_same_by_measurement(name: str) -> None:
    fn, args = INTERNAL[name]
    same(xcoexec.jit(fn, strict=True)(*args), jax.jit(fn)(*args))


def test_operations_without_results_go_to_jit() -> None:
    seen: list[float] = []
    with pytest.warns(CoexecWarning, match="side effects"):
        xcoexec.jit(lambda x: io_callback(lambda v: seen.append(float(v.sum())), None, x))(X)
        xcoexec.jit(lambda x: jax.debug.callback(lambda: seen.append(-1.0)))(X)
        jax.effects_barrier()
    assert sorted(seen) == [-1.0, 32.0]


def test_callbacks_to_python_are_called_by_jit_alone() -> None:
    calls = []

    def back(x: Any) -> Any:
        calls.append(1)
        return np.asarray(x) * 3

    def f(x: Any) -> Any:
        inner = lambda c, _: (jax.pure_callback(back, jax.ShapeDtypeStruct(c.shape, c.dtype), c), None)
        return jax.lax.scan(inner, x, None, length=2)[0]

    with pytest.warns(CoexecWarning, match="calls back to Python"):
        same(xcoexec.jit(f)(X), jnp.asarray(X * 9))
    assert len(calls) == 2


def test_callbacks_inside_of_another_librarys_operation_are_seen() -> None:
    """Its jaxpr has a name alone; what it does stands in the lowered program."""
    calls = []

    def back(x: Any) -> Any:
        calls.append(1)
        return np.asarray(x) * 3

    solve = jax.extend.core.Primitive("solve")
    solve.def_abstract_eval(lambda x: x)
    solve.def_impl(lambda x: back(x))
    made = lambda x: jax.pure_callback(back, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    mlir.register_lowering(solve, mlir.lower_fun(made, multiple_results=False))
    with pytest.warns(CoexecWarning, match="calls back to Python"):
        same(xcoexec.jit(lambda x: solve.bind(x) + 1)(X), jnp.asarray(X * 3 + 1))
    assert len(calls) == 1


def test_derivatives_by_integers_are_plain_jits() -> None:
    by = np.full((4, 8), 2)

    def results(x: Any) -> Any:
        return jax.vjp(lambda x, n: jnp.tanh(x * n), x, by)[1](x)

    def loop(x: Any) -> Any:
        turn = lambda c, _: ((jnp.tanh(c[0] * c[1]), c[1] + 1), None)
        none = np.zeros(by.shape, jax.dtypes.float0)
        return jax.jvp(lambda x, n: jax.lax.scan(turn, (x, n), None, length=2)[0], (x, by), (x, none))[1][0]

    with pytest.warns(CoexecWarning, match="without numbers"):
        got, want = xcoexec.jit(results)(X), jax.jit(results)(X)
    assert got[1].dtype == want[1].dtype == jax.dtypes.float0
    same(got[0], want[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(xcoexec.jit(lambda x: results(x)[0], strategy="host", wait=True, strict=True)(X), want[0])
        same(xcoexec.jit(loop, strategy="host", wait=True, strict=True)(X), jax.jit(loop)(X))


def test_keys_of_random_numbers_as_constants_and_weights() -> None:
    noise = lambda key, x: x + jax.random.normal(key, x.shape)
    same(xcoexec.jit(lambda x: noise(KEY, x), strategy="host", strict=True)(X), jax.jit(lambda x: noise(KEY, x))(X))
    same(xcoexec.jit(noise, strategy="host", strict=True).bind(KEY)(X), jax.jit(noise)(KEY, X))
    rbg = jax.random.key(1, impl="rbg")
    same(xcoexec.jit(noise, strict=True)(rbg, X), jax.jit(noise)(rbg, X))


def test_nnx_state_with_dropout_is_bound() -> None:
    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.out, self.drop = nnx.Linear(8, 8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.drop(self.out(x), deterministic=True)

    graphdef, state = nnx.split(Net(nnx.Rngs(0)))
    apply = lambda state, x: nnx.merge(graphdef, state)(x)
    same(xcoexec.jit(apply, strategy="host", strict=True).bind(state)(X), jax.jit(apply)(state, X))


def _planted(stage: str) -> tuple[str, str]:
    return {
        "reading the jaxpr": ("xcoexec.api.entry", "flattened"),
        "building the graph": ("xcoexec.session.problem", "build_graph"),
        "connecting the device": ("xcoexec.session.prepare", "device_relay"),
        "the first call": ("xcoexec.session.problem.Problem", "run"),
    }[stage]


@pytest.mark.parametrize(
    "error",
    [
        StopIteration(),
        IndexError("x"),
        AssertionError("y"),
        TypeError("z"),
        ValueError("v"),
        KeyError("k"),
        RecursionError(),
    ],
)
@pytest.mark.parametrize(
    "stage", ["reading the jaxpr", "building the graph", "connecting the device", "the first call"]
)
def test_one_guard_holds_every_stage(stage: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise error

    owner, name = _planted(stage)
    monkeypatch.setattr(f"{owner}.{name}", broken)
    fast = xcoexec.jit(lambda x: jnp.tanh(x) * 2, plan=xcoexec.Plan.uniform(1.0))
    with pytest.warns(
        CoexecWarning, match=rf"{stage}: {type(error).__name__}.*please report.*xcoexec .*, jax .*, Python"
    ) as seen:
        same(fast(X), jnp.tanh(X) * 2)
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(fast(X), jnp.tanh(X) * 2)
        assert fast.report(X).ran == "jit" and stage in fast.report(X).why
    strict = xcoexec.jit(lambda x: jnp.tanh(x) * 2, plan=xcoexec.Plan.uniform(1.0), strict=True)
    for _ in range(2):
        with pytest.raises(BindError, match=stage):
            strict(X)


def test_errors_of_the_users_planner_are_theirs() -> None:
    def planner(graph: Any, costs: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        xcoexec.jit(jnp.tanh, strategy=planner)(X)


def _raises(x: Any) -> Any:
    raise KeyError("mine")


@pytest.mark.parametrize(
    "call", [lambda f: f(X), lambda f: f.bind()(X), lambda f: f.lower(X), lambda f: jax.vmap(f)(X)]
)
def test_the_users_own_errors_look_as_under_jit(call: Any) -> None:
    def frames(f: Any) -> list[str]:
        with pytest.raises(KeyError) as e:
            call(f)
        return [
            x.name
            for x in traceback.extract_tb(e.value.__traceback__)
            if not x.filename.startswith(os.path.dirname(jax.__file__))
        ]

    plain = jax.jit(_raises)
    plain_frames = frames(plain) if call.__code__.co_names[:1] != ("bind",) else ["frames", "<lambda>", "_raises"]
    assert frames(xcoexec.jit(_raises)) == plain_frames


UNCOMPILED = {
    "integers without infinity": (lambda x: jax.lax.cumlogsumexp(x, axis=0), np.arange(12).reshape(3, 4)),
    "no order of complex numbers": (jnp.argmax, np.ones((3, 4), np.complex64)),
    "no decomposition in f16": (lambda x: jnp.linalg.inv(x + 1), np.ones((3, 3), np.float16)),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", UNCOMPILED)
def test_what_plain_jit_cannot_compile_raises_its_error_without_a_warning(name: str, strict: bool) -> None:
    fn, x = UNCOMPILED[name]
    errors = []
    for jitted in (jax.jit(fn), xcoexec.jit(fn, strategy="host", strict=strict)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", CoexecWarning)
            with pytest.raises(Exception) as e:
                jitted(x)
        errors.append((type(e.value), str(e.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("whole", [False, True])
def test_whole_tracebacks_on_demand(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_TRACEBACK", str(int(whole)))
    with pytest.raises(KeyError) as e:
        xcoexec.jit(_raises)(X)
    ours = os.path.dirname(xcoexec.__file__)
    assert any(x.filename.startswith(ours) for x in traceback.extract_tb(e.value.__traceback__)) == whole


@pytest.mark.parametrize("bad", [("x",), (object(),), ()])
def test_wrong_arguments_raise_as_jit_does(bad: Any) -> None:
    def raised(f: Any) -> Exception:
        with pytest.raises(Exception) as e:
            f(*bad)
        return e.value

    got, want = raised(xcoexec.jit(lambda x: x)), raised(jax.jit(lambda x: x))
    assert type(got) is type(want)


# -- static arguments, configuration, weak types -----------------------------------------------------


def test_static_arguments_differ_by_type_and_sign() -> None:
    g = xcoexec.jit(lambda x, n: x / n, static_argnums=1)
    assert [float(g(1.0, n)) for n in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]
    names = {int: 1.0, float: 2.0, bool: 3.0}
    kinds = xcoexec.jit(lambda x, n: x * names[type(n)], static_argnums=1)
    assert [float(kinds(1.0, n)) for n in (1, 1.0, True)] == [1.0, 2.0, 3.0]
    inside = xcoexec.jit(lambda x, t: x * names[type(t[0])], static_argnums=1)
    assert [float(inside(1.0, (n,))) for n in (1, 1.0, True)] == [1.0, 2.0, 3.0]


def test_literals_of_either_sign_have_kernels_of_their_own() -> None:
    for zero in (0.0, -0.0):
        same(on_kernels(lambda x, z=zero: x / z, X), jax.jit(lambda x, z=zero: x / z)(X))


def _by_keyword(x: Any, n: int, mode: str = "up") -> Any:
    return x * n if mode == "up" else x / n


@pytest.mark.parametrize(
    "given",
    [
        dict(static_argnums=(1, 2)),
        dict(static_argnames=("n", "mode")),
        dict(static_argnums=(-1, -2)),
        dict(static_argnums=2, static_argnames="mode"),
    ],
)
def test_static_arguments_by_position_and_name(given: dict[str, Any]) -> None:
    fast, plain = xcoexec.jit(_by_keyword, **given), jax.jit(_by_keyword, **given)
    same(fast(X, 3, "down"), plain(X, 3, "down"))
    if given.get("static_argnums") != (-1, -2):
        same(fast(X, 3, mode="down"), plain(X, 3, mode="down"))
        same(fast(x=X, n=3, mode="up"), plain(x=X, n=3, mode="up"))


def test_no_static_arguments_by_none_and_lists_are_refused_as_jit_does() -> None:
    same(
        xcoexec.jit(lambda x: x * 2, static_argnums=None, static_argnames=None, donate_argnums=None)(X),
        jnp.asarray(X * 2),
    )
    for jit in (xcoexec.jit, jax.jit):
        with pytest.raises(ValueError, match="Non-hashable static arguments"):
            jit(lambda x, n: x, static_argnums=1)(X, [1])


SETTINGS = {
    "jax_enable_x64": (lambda x: (x * 2, jnp.arange(3), jnp.ones(2) * 1.5), True),
    "jax_numpy_dtype_promotion": (lambda x: x * np.int32(3), "strict"),
    "jax_default_matmul_precision": (lambda x: x @ W, "highest"),
    "jax_numpy_rank_promotion": (lambda x: x + jnp.ones(8), "raise"),
    "jax_default_prng_impl": (lambda x: jax.random.key_data(jax.random.key(3)).sum(), "rbg"),
    "jax_threefry_partitionable": (lambda x: jax.random.normal(jax.random.key(3), (4, 4)), False),
    "jax_debug_nans": (lambda x: jnp.log(-x), True),
    "jax_disable_jit": (lambda x: x * 2, True),
}


def _outcome(fn: Any, *args: Any) -> Any:
    try:
        return jax.tree_util.tree_map(lambda a: (a.dtype, a.shape, a.weak_type), fn(*args))
    except Exception as e:
        return type(e)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_configuration_is_part_of_the_key(name: str) -> None:
    """The same order of calls with `jax.jit` gives the same types or errors, in a call and bound."""
    fn, other = SETTINGS[name]
    x = jnp.asarray(X)
    before = getattr(jax.config, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, fast, bound = (
            jax.jit(lambda x: fn(x)),
            xcoexec.jit(lambda x: fn(x), strategy="host"),
            xcoexec.jit(lambda x: fn(x)).bind(),
        )
        for value in (before, other, before):
            jax.config.update(name, value)
            try:
                want = _outcome(plain, x)
                assert _outcome(fast, x) == want and _outcome(bound, x) == want
            finally:
                jax.config.update(name, before)


def test_weak_types_are_part_of_the_key_and_of_results() -> None:
    w = jnp.ones(3)
    fn = lambda w, s: s + jnp.bfloat16(1)
    bound, plain = xcoexec.jit(fn).bind(w), jax.jit(fn)
    for s in (jnp.asarray(2.0), jnp.float32(2), 2.0, jnp.asarray(2.0), np.float32(2)):
        same(bound(s), plain(w, s))
    fixed = xcoexec.compile(lambda s: s * jnp.bfloat16(2), jnp.asarray(2.0))
    with pytest.raises(BindError, match="weak"):
        fixed(jnp.float32(2))
    for fn in (lambda x: x * 2, lambda x: (3, 2.5, x, True), lambda x: jnp.float32(1) * x):
        same(xcoexec.jit(fn, strategy="host", strict=True)(1.5), jax.jit(fn)(1.5))


# -- jax.jit's parameters and methods ----------------------------------------------------------------


class Model:
    def __init__(self, scale: float):
        self.scale = scale

    @functools.partial(xcoexec.jit, static_argnums=0)
    def scaled(self, x: Any) -> Any:
        return x * self.scale

    @classmethod
    @xcoexec.jit
    def kind(cls: Any, x: Any) -> Any:
        return x


def test_methods() -> None:
    a, b = Model(2.0), Model(3.0)
    same(a.scaled(X), jnp.asarray(X * 2))
    same(b.scaled(X), jnp.asarray(X * 3))
    assert isinstance(a.scaled, types.MethodType) and isinstance(Model.scaled, type(xcoexec.jit(lambda: 0)))

    class Layer(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.inner = nnx.Linear(8, 3, rngs=rngs)

        @xcoexec.jit
        def __call__(self, x: jax.Array) -> jax.Array:
            return nnx.relu(self.inner(x))

    layer = Layer(nnx.Rngs(0))
    same(layer(X), nnx.relu(layer.inner(X)))


def test_donation_of_weights_states_and_names() -> None:
    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * x.T @ (x @ w)

    for given in (
        dict(donate_argnums=0),
        dict(donate_argnums=(0,)),
        dict(donate_argnames="w"),
        dict(donate_argnames=("w",)),
    ):
        for strategy in ("host", "auto"):
            fast, plain = xcoexec.jit(step, strategy=strategy, strict=True, **given), jax.jit(step)
            mine, theirs = W + 0, W + 0
            for _ in range(4):
                before = mine
                mine, theirs = fast(mine, X), plain(theirs, X)
                same(mine, theirs)
            jax.jit(step, **given)(probe := W + 0, X)
            assert before.is_deleted() == probe.is_deleted()
    bound = xcoexec.jit(step, strategy="host", donate_argnums=0).bind(W)
    same(bound(X), jax.jit(step)(W, X))
    same(bound(X), jax.jit(step)(W, X))
    with pytest.raises(ValueError, match="donate_argnums=-1"):
        xcoexec.jit(step, donate_argnums=-1)


@pytest.mark.parametrize(
    "given",
    [
        dict(keep_unused=True),
        dict(inline=True),
        dict(in_shardings=None, out_shardings=None),
        dict(device=None, backend=None),
        dict(backend=jax.default_backend()),
        dict(compiler_options={"xla_cpu_enable_fast_min_max": False}),
    ],
    ids=str,
)
def test_parameters_that_leave_co_execution_possible(given: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        same(on_kernels(lambda x, y: jnp.tanh(x) * 2, X, X, **given), jax.jit(lambda x, y: jnp.tanh(x) * 2)(X, X))


def test_shardings_go_to_jit() -> None:
    mesh = jax.make_mesh((1,), ("d",))
    sharding = NamedSharding(mesh, PartitionSpec("d"))
    fn = lambda x: x * 2
    far = NamedSharding(mesh, PartitionSpec(), memory_kind="unpinned_host")
    for given in (dict(in_shardings=far), dict(out_shardings=far)):
        with pytest.warns(CoexecWarning, match="shardings, which plain jax.jit keeps"):
            got = xcoexec.jit(fn, **given)(X)
        assert got.sharding == jax.jit(fn, **given)(X).sharding
    x = jax.device_put(X, sharding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a mesh of one device is co-executed
        assert xcoexec.jit(fn)(x).sharding == xcoexec.jit(fn, wait=True)(x).sharding == jax.jit(fn)(x).sharding
    assert isinstance(xcoexec.jit(fn)(X).sharding, SingleDeviceSharding)


def test_several_devices() -> None:
    out = run(
        """
import warnings
import jax, jax.numpy as jnp, numpy as np, xcoexec
from jax.sharding import NamedSharding, PartitionSpec as P
warnings.simplefilter("ignore", xcoexec.CoexecWarning)
a, b = jax.devices()[:2]
x = jax.device_put(np.ones((4, 8), np.float32), NamedSharding(jax.make_mesh((2,), ("d",)), P("d")))
f, j = xcoexec.jit(lambda x: jnp.tanh(x) * 2), jax.jit(lambda x: jnp.tanh(x) * 2)
f(np.ones((4, 8), np.float32))
assert f(x).sharding == j(x).sharding and f(x).sharding.num_devices == 2
y = jax.device_put(np.ones((4, 8), np.float32), b)
assert f(y).devices() == {b} == xcoexec.jit(lambda x: jnp.tanh(x)).bind()(y).devices()
with jax.default_device(b):
    assert f(np.ones((4, 8), np.float32)).devices() == j(np.ones((4, 8), np.float32)).devices() == {b}
errors = []
for jit in (jax.jit, xcoexec.jit):
    try:
        jit(lambda a, b: a + b)(jax.device_put(1.0, a), jax.device_put(1.0, b))
    except ValueError as e:
        errors.append(str(e))
assert errors[0] == errors[1] and "incompatible devices" in errors[0]
for kw in (dict(device=b), dict(backend="cpu")):
    assert xcoexec.jit(lambda x: x * 2, **kw)(1.0).devices() == jax.jit(lambda x: x * 2, **kw)(1.0).devices()
shard = lambda f: jax.shard_map(f, mesh=jax.make_mesh((2,), ("d",)), in_specs=P("d"), out_specs=P("d"))
assert (np.asarray(shard(f)(x)) == np.asarray(shard(j)(x))).all()
inside = xcoexec.jit(lambda x: shard(lambda x: jnp.tanh(x) * 2)(x))
assert np.allclose(np.asarray(inside(x)), np.tanh(1) * 2)
print("fine")
""",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
        PYTHONWARNINGS="ignore",
    )
    assert "fine" in out


def test_lower_trace_eval_shape_clear_cache_and_names() -> None:
    def named(x: Any, n: int = 2) -> Any:
        """Says what it does."""
        return x * n

    fast, plain = xcoexec.jit(named, static_argnames="n"), jax.jit(named, static_argnames="n")
    same(fast.lower(X, n=3).compile()(X), plain(X, n=3))
    assert str(fast.trace(X, n=3).jaxpr) == str(plain.trace(X, n=3).jaxpr)
    assert fast.eval_shape(X, n=3) == plain.eval_shape(X, n=3)
    assert (fast.__name__, fast.__doc__, fast.__wrapped__, fast.__module__) == ("named", named.__doc__, named, __name__)
    same(fast(X), plain(X))
    fast.clear_cache()
    assert not fast._entries
    same(fast(X), plain(X))
    assert (
        isinstance(fast, jax.stages.Wrapped)
        and "PjitFunction" in str(type(fast))
        and "PjitFunction" in str(type(plain))
        and isinstance(fast, type(plain))
    )
    for follow in (True, False):
        assert inspect.signature(fast, follow_wrapped=follow) == inspect.signature(plain, follow_wrapped=follow)


def test_a_function_is_traced_once() -> None:
    traces = []

    @xcoexec.jit
    def f(x: Any, n: int = 1) -> Any:
        traces.append(n)
        return jnp.tanh(x) * n

    for _ in range(3):
        f(X)
    f.lower(X)
    f.plan(X)
    assert len(traces) == 1
    f(X[:2])
    assert len(traces) == 2


def test_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @xcoexec.jit
    def f(x: Any) -> Any:
        seen.append(isinstance(x, jax.core.Tracer))
        return x * 2

    f(X)
    with jax.disable_jit():
        same(f(X), jnp.asarray(X * 2))
    assert seen == [True, False]
    monkeypatch.setenv("XCOEXEC_DISABLE", "1")
    off = xcoexec.jit(lambda w, x: x @ w, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(off(W, X), jnp.asarray(X) @ W)
        same(off.bind(W)(X), jnp.asarray(X) @ W)
        assert off.report(W, X).ran == "jit" and "XCOEXEC_DISABLE" in off.report(W, X).why
    monkeypatch.setenv("XCOEXEC_DISABLE", "yes")
    with pytest.raises(ValueError, match="XCOEXEC_DISABLE='yes'; valid is 0 or 1"):
        xcoexec.jit(lambda x: x)
    monkeypatch.delenv("XCOEXEC_DISABLE")
    assert "fine" in run(
        "import xcoexec; assert xcoexec.jit(lambda x: type(x) is float)(1.0); print('fine')", JAX_DISABLE_JIT="1"
    )


@xcoexec.jit
def module_level(x: Any) -> Any:
    return x * 2


def test_copies() -> None:
    f = xcoexec.jit(lambda x, n: x * n, strategy="host", static_argnums=1)
    f(X, 2)
    for again in (copy.deepcopy(f), copy.copy(f), cloudpickle.loads(cloudpickle.dumps(f))):
        same(again(X, 3), jnp.asarray(X * 3))
        assert again._function.options.strategy == "host"
    assert copy.deepcopy({"f": f})["f"](X, 2).shape == X.shape
    same(pickle.loads(cloudpickle.dumps(module_level))(X), jnp.asarray(X * 2))


def test_a_deleted_weight_raises_as_in_jit() -> None:
    fn = lambda w, x: x @ w
    fast, plain = xcoexec.jit(fn, strategy="host", strict=True), jax.jit(fn)
    w = W + 0
    fast(w, X)
    w.delete()
    for f in (fast, plain):
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            f(w, X)


def test_messages_never_print_arrays() -> None:
    big = np.arange(100_000.0)
    for option in (
        "strategy",
        "strict",
        "plan",
        "memory",
        "costs",
        "progress",
        "static_argnums",
        "donate_argnames",
        "threads",
        "affinity",
    ):
        with pytest.raises((TypeError, ValueError)) as e:
            xcoexec.jit(lambda x: x, **{option: big})
        assert len(str(e.value)) < 400
    with pytest.raises((TypeError, ValueError)) as e:
        xcoexec.jit(big)
    assert len(str(e.value)) < 200
    with pytest.raises(TypeError, match="got progress=3"):
        xcoexec.jit(lambda x: x, progress=3)
    with pytest.raises(TypeError, match=r"got the parameters donate; valid are"):
        xcoexec.jit(lambda x: x, donate=0)


# -- transformations ---------------------------------------------------------------------------------


def _loss(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w).sum()


TRANSFORMS = {
    "grad": lambda jit: jax.grad(jit(_loss))(W, X),
    "value_and_grad": lambda jit: jax.value_and_grad(jit(_loss))(W, X),
    "vmap": lambda jit: jax.vmap(jit(_loss), (None, 0))(W, X),
    "jvp": lambda jit: jax.jvp(jit(_loss), (W, jnp.asarray(X)), (W, jnp.asarray(X))),
    "vjp": lambda jit: jax.vjp(jit(_loss), W, jnp.asarray(X))[1](1.0),
    "jacfwd": lambda jit: jax.jacfwd(jit(_loss))(W, X),
    "hessian": lambda jit: jax.hessian(jit(lambda x: (x**3).sum()))(jnp.arange(3.0)),
    "linearize": lambda jit: jax.linearize(jit(lambda x: jnp.sin(x)), jnp.ones(3))[1](jnp.ones(3)),
    "scan": lambda jit: jax.lax.scan(lambda c, x: (c + 1, jit(_loss)(W, x[None])), 0, jnp.asarray(X)),
    "while": lambda jit: jax.lax.while_loop(lambda c: c < 5, jit(lambda c: c + 1), 0),
    "cond": lambda jit: jax.lax.cond(True, jit(lambda x: x * 2), jit(lambda x: x), X),
    "map": lambda jit: jax.lax.map(jit(jnp.tanh), jnp.asarray(X)),
    "checkpoint": lambda jit: jax.grad(jax.checkpoint(jit(_loss)))(W, X),
    "eval_shape": lambda jit: jax.tree_util.tree_map(
        lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(jit(_loss), W, X)
    ),
    "make_jaxpr": lambda jit: jnp.zeros(len(jax.make_jaxpr(jit(_loss))(W, X).jaxpr.eqns)),
    "jit": lambda jit: jax.jit(lambda w: jit(_loss)(w, X))(W),
    "grad inside": lambda jit: jit(jax.grad(_loss))(W, X),
    "hessian inside": lambda jit: jit(jax.hessian(lambda x: (x**3).sum()))(jnp.arange(3.0)),
    "vmap inside": lambda jit: jit(jax.vmap(_loss, (None, 0)))(W, X),
    "jvp inside": lambda jit: jit(lambda w: jax.jvp(_loss, (w, X), (w, X)))(W),
    "scan inside": lambda jit: jit(lambda w, x: jax.lax.scan(lambda c, x: (jnp.tanh(c @ w), x.sum()), x, x))(W, X),
    "checkpoint inside": lambda jit: jit(jax.grad(jax.checkpoint(_loss)))(W, X),
    "jit inside": lambda jit: jit(lambda w: jax.jit(_loss)(w, X) + jit(_loss)(w, X))(W),
    "closed over in grad": lambda jit: jax.grad(lambda w: jit(lambda x: jnp.tanh(x @ w))(X).sum())(W),
    "closed over in jit": lambda jit: jax.jit(lambda w: jit(lambda x: jnp.tanh(x @ w))(X))(W),
    "closed over in vmap": lambda jit: jax.vmap(lambda w: jit(lambda x: x * w)(X))(W[0]),
    "closed over in scan": lambda jit: jax.lax.scan(lambda c, w: (c, jit(lambda x: x * w)(X)), 0, W[0]),
    "bound in grad": lambda jit: jax.grad(
        lambda x: (jit(_loss).bind(W) if jit is xcoexec.jit else functools.partial(jit(_loss), W))(x)
    )(jnp.asarray(X)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformations(name: str) -> None:
    same(TRANSFORMS[name](xcoexec.jit), TRANSFORMS[name](jax.jit))


def test_custom_derivatives_around_and_inside() -> None:
    def build(jit: Any) -> Any:
        @jax.custom_vjp
        def act(x: Any) -> Any:
            return jit(jnp.tanh)(x)

        act.defvjp(lambda x: (act(x), x), jit(lambda x, g: (g * 3 * x,)))

        @jax.custom_jvp
        def other(x: Any) -> Any:
            return jit(jnp.sin)(x)

        other.defjvp(jit(lambda p, t: (jnp.sin(p[0]), 5 * t[0])))
        fn = lambda x: (act(x) + other(x)).sum()
        return jit(jax.value_and_grad(fn))(jnp.asarray(X)), jax.grad(jit(fn))(jnp.asarray(X))

    same(build(xcoexec.jit), build(jax.jit))


def test_a_concrete_call_between_traced_ones_keeps_its_program() -> None:
    f = xcoexec.jit(_loss, strategy="host", strict=True)
    f(W, X)
    jax.grad(f)(W, X)
    jax.vmap(f, (None, 0))(W, X)
    same(f(W, X), jax.jit(_loss)(W, X))
    assert f.report(W, X).segments


def test_debug_nans_raises() -> None:
    f = xcoexec.jit(lambda x: jnp.log(x), strategy="host")
    f(X)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        f(-X)


@pytest.mark.parametrize("bound", [False, True])
def test_debug_nans_names_the_operation(bound: bool) -> None:
    """As `jax.jit` does, with a plan in use; and a first call under it is planned behind it, without a warning."""
    fn = lambda w, x: jnp.log(jnp.tanh(x @ w) + 1.5 + x)
    jitted = xcoexec.jit(fn, strategy="host", wait=True)
    f = jitted.bind(W) if bound else (lambda x: jitted(W, x))
    below = X - 100.0
    assert jnp.isfinite(fn(W, X)).all() and jnp.isnan(fn(W, below)).any()
    report = jitted.bind(W).report if bound else (lambda: jitted.report(W, X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(40):  # some are answered without a look
            f(X)
        with jax.debug_nans(True):
            for _ in range(2):
                f(X)
                with pytest.raises(FloatingPointError, match="encountered in log"):
                    f(below)
            other = xcoexec.jit(lambda w, x: x @ w + 1, strategy="host", wait=True)
            other(W, X)
            assert "jax_debug_nans" in other.report(W, X).why
        other(W, X)
        assert other.report(W, X).ran == "xco" and report is not None


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
@pytest.mark.parametrize("strategy", ["auto", "host"])
def test_planning_moves_what_it_wants(strategy: str, level: str) -> None:
    """A guard on transfers is about the caller's arrays: planning has arrays of its own."""
    fn = lambda w, x: jax.nn.softmax(jnp.tanh(x @ w))
    f, x = xcoexec.jit(fn, strategy=strategy, wait=True), jnp.asarray(X)
    w = jnp.asarray(W)
    want = jax.jit(fn)(w, x)
    with warnings.catch_warnings(), jax.transfer_guard(level):
        warnings.simplefilter("error")
        got = f(w, x)
    same(got, want)
    assert (
        f.report(w, x).ran in (("xco",) if strategy == "host" else ("xco", "jit"))
        and "fallback" not in f.report(w, x).why
    )


def test_arrays_that_are_gone_or_given_twice() -> None:
    """Said as `jax.jit` says it, with a plan in use."""
    fn = lambda a, b, w: (jnp.tanh(a @ w) + b, b @ w)
    made = lambda: jnp.ones((32, 8))
    f, plain = xcoexec.jit(fn, donate_argnums=(0, 1), strategy="host", wait=True), jax.jit(fn, donate_argnums=(0, 1))
    for g in (f, plain):
        for _ in range(3):
            g(made(), made(), W)
    assert f.report(made(), made(), W).ran == "xco"

    def said(g: Any, a: Any, b: Any) -> str:
        with pytest.raises((RuntimeError, ValueError)) as e:  # jax.jit's own type differs from call to call
            g(a, b, W)
        return str(e.value).splitlines()[0]

    a, gone = made(), made()
    gone.delete()
    fresh = lambda: jax.jit(lambda *xs: fn(*xs), donate_argnums=(0, 1))
    assert said(f, a, a) in {said(plain, a, a), said(fresh(), a, a)}
    assert said(f, gone, made()) in {said(plain, gone, made()), said(fresh(), gone, made())}


# -- jit in the place of jax.jit ---------------------------------------------------------------------


def test_in_the_place_of_jax_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = jax.jit
    monkeypatch.setattr(jax, "jit", xcoexec.jit)
    same(jax.jit(lambda x: jnp.tanh(x) * 2, strategy="host")(X), plain(lambda x: jnp.tanh(x) * 2)(X))
    same(jax.jit(lambda x: jnp.tanh(x) * 2)(X), plain(lambda x: jnp.tanh(x) * 2)(X))
    decorated = jax.jit(static_argnums=1)(lambda x, n: x * n)
    same(decorated(X, 2), jnp.asarray(X * 2))


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        x = nn.max_pool(nn.relu(nn.Conv(6, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.BatchNorm(use_running_average=not train)(nn.Conv(8, (3, 3))(x))
        return nn.Dense(10)(nn.relu(x).reshape(x.shape[0], -1))


@pytest.mark.parametrize("donate", [(), (0,)])
def test_training_steps(donate: tuple[int, ...]) -> None:
    """A TrainState with batch statistics, passed from step to step, as in Flax's guides."""
    model, x = CNN(), array(4, 12, 12, 3)
    labels = jnp.arange(4)
    shapes = jax.eval_shape(model.init, jax.random.key(0), x)
    drawn = lambda s: array(*s.shape, seed=s.size, low=0.25 if s.ndim == 1 else -0.25, high=0.5)  # variances: positive
    variables = jax.tree_util.tree_map(drawn, shapes)

    def step(state: Any, stats: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            out, new = model.apply({"params": params, "batch_stats": stats}, x, mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(out, labels).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), new["batch_stats"], value

    def train(jit: Any) -> Any:
        params = jax.tree_util.tree_map(lambda a: a + 0, variables["params"])
        state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(1e-2, 0.9))
        stats, losses, run = variables["batch_stats"], [], jit(step, donate_argnums=donate)
        for _ in range(5):
            state, stats, value = run(state, stats, x)
            losses.append(value)
        return losses, stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoexecWarning)
        same(train(functools.partial(xcoexec.jit, strategy="host")), train(jax.jit), rtol=5e-3, atol=1e-4)


def test_nothing_is_kept_of_arguments_that_are_no_weights() -> None:
    f = xcoexec.jit(lambda w, x: jnp.tanh(x @ w), strategy="host", strict=True)
    f(W, X)
    x = array(4, 8, seed=9)
    gone = weakref.ref(x)
    f(W, x)
    del x
    gc.collect()
    assert gone() is None


@jax.tree_util.register_pytree_node_class
class ByLeafType:
    """A structure that keeps numbers beside its leaves: it has other leaves where it is made of numbers."""

    def __init__(self, loc: Any, scale: Any):
        self.given = (loc, scale)

    def tree_flatten(self) -> tuple[list[Any], Any]:
        number = lambda x: isinstance(x, (bool, int, float))
        return [x for x in self.given if not number(x)], tuple(x if number(x) else None for x in self.given)

    @classmethod
    def tree_unflatten(cls, numbers: Any, leaves: Any) -> ByLeafType:
        rest = iter(leaves)
        return cls(*(next(rest) if x is None else x for x in numbers))


@pytest.mark.parametrize("strategy", ["host", "auto"])
def test_a_structure_that_depends_on_its_leaves(strategy: str) -> None:
    fn = lambda x, d: jnp.tanh((x @ W - d.given[0]) / d.given[1])
    f, d, x = xcoexec.jit(fn, strategy=strategy, wait=True), ByLeafType(jnp.zeros(8), jnp.full(8, 2.0)), jnp.asarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(f(x, d), jax.jit(fn)(x, d))
    assert "fallback" not in f.report(x, d).why


def test_keys_of_leaves() -> None:
    """Those of calls before are compared as they are; others one by one."""
    a, b = jnp.ones((3, 2)), jnp.ones(3, jnp.bfloat16)
    keys = Keys([leaf_key(a), leaf_key(b), leaf_key(1.5)])
    assert keys.fit([a, b, 1.5]) and keys.fit([a + 1, b, 2.5]) and keys.fit([np.ones((3, 2), np.float32), b, 2.5])
    arrays = Keys([leaf_key(a), leaf_key(b)])
    for _ in range(2):
        assert arrays.fit([a, b]) and arrays.fit([a * 2, b * 2])
        assert not arrays.fit([a.T, b]) and not arrays.fit([a, b.astype(jnp.float16)]) and not arrays.fit([a])
        assert not arrays.fit([a, b, b]) and not arrays.fit([a, jnp.asarray(1.0)]) and not arrays.fit([a, None])
        assert arrays.fit([np.ones((3, 2), np.float32), b])
    weak = jnp.asarray(1.0)
    assert weak.weak_type and not Keys([leaf_key(jnp.float32(1.0))]).fit([weak])


@pytest.mark.parametrize("strategy", ["host", "auto"])
def test_values_of_a_trace_that_has_ended(strategy: str) -> None:
    """JAX's own error, no warning, and the function is planned as before."""
    seen: list[Any] = []
    jax.jit(lambda x: seen.append(x) or x)(jnp.asarray(X))
    f = xcoexec.jit(lambda p, x: (jnp.tanh(p[0] @ x), p[1] + 1), strategy=strategy, wait=True)
    state, x = (jnp.ones((8, 4)), jnp.ones(3)), jnp.asarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(jax.errors.UnexpectedTracerError):
            f(state, seen[0])
        f(state, x)
        with pytest.raises(jax.errors.UnexpectedTracerError):
            f(state, seen[0])
    assert "fallback" not in f.report(state, x).why


def test_a_failure_is_reported_by_a_copy_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert "planning: TypeError: got x (this is an error of xcoexec" in guard.Failed("planning", TypeError("got x")).why


def test_what_is_refused_says_why_by_itself() -> None:
    """Without a stage and an exception's name, which the docs call signs of an error."""
    assert guard.Failed("planning", guard.Unsupported("a loop without an end")).why == "a loop without an end"
    assert guard.Failed("planning", NotImplementedError("no rule")).why == "planning: NotImplementedError: no rule"
    assert "please report" in guard.Failed("planning", ValueError()).why


@pytest.mark.parametrize("options", [{"strategy": "host"}, {"plan": xcoexec.Plan.uniform(1.0)}], ids=str)
def test_an_array_that_is_gone_ends_its_call_alone(options: Any) -> None:
    """The call raises what `jax.jit` raises, without a warning, and the next one is planned for."""
    fast, x, w, gone = xcoexec.jit(lambda w, x: x @ w + 1, **options), array(4, 8), array(8, 16), array(8, 16, seed=1)
    gone.delete()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(RuntimeError, match="deleted"):
                fast(gone, x)
            np.testing.assert_allclose(np.asarray(fast(w, x)), np.asarray(x) @ np.asarray(w) + 1, rtol=1e-5, atol=1e-5)
            assert fast.report(w, x).ran == "xco"
