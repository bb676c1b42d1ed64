"""Training steps: states are inputs, planned once, in place where they are given away; results are those of jax.jit."""

from __future__ import annotations

import dataclasses
import gc
import re
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.training.train_state import TrainState

import xcoexec
from xcoexec.codegen.kernels import columns
from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.codegen.segment.choice import default
from xcoexec.codegen.segment.sharing import AHEAD, shareable
from xcoexec.frontend.state import returned, whole
from xcoexec.lowering.executable import Executable
from xcoexec.session import prepare, race
from xcoexec.session.adaptive import PATIENCE, PAUSE_SECONDS, Monitor
from xcoexec.session.race import GOES_ON, MOST_TOGETHER, Race
from xcoexec.session.session import Session

from .standin import StandIn
from .support import array, stages_of, until

pytestmark = pytest.mark.usefixtures("quick_xla")

LABELS = jnp.arange(4) % 3
BATCH = (array(4, 16, seed=7), LABELS)
Step = Callable[..., Any]


@pytest.fixture(autouse=True)
def nothing_is_said() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", xcoexec.CoexecWarning)
        yield


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No plan is remembered, and nobody else sees which one has won."""
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))


def same(got: Any, want: Any, rtol: float = 1e-4, atol: float = 2e-5) -> None:
    """The same structure, types (weak ones too) and, nearly, numbers."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype, getattr(a, "weak_type", 0)) == (b.shape, b.dtype, getattr(b, "weak_type", 0))
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)


def sessions(step: Any) -> list[Session]:
    """What runs the calls of a function, one for each signature."""
    found = [e.current for e in step._entries.values()]
    assert all(isinstance(s, Session) for s in found), found
    return found


def trained(jit: Any, step: Step, state: Any, steps: int = 4, **given: Any) -> tuple[Any, Any, Any]:
    """(the last state, all that the steps gave, the jitted step)."""
    run, out, state = (
        jit(step, **given),
        [],
        jax.tree.map(lambda x: jnp.array(x, copy=True) if hasattr(x, "shape") else x, state),
    )
    for _ in range(steps):
        state, value = run(state, BATCH)
        out.append(value)
    return state, out, run


def check(step: Step, state: Any, **given: Any) -> Any:
    """Steps with kernels give what `jax.jit` gives; they are planned once, with the whole state as inputs."""
    want = trained(jax.jit, step, state, **given)
    fast = lambda f, **kw: xcoexec.jit(f, strategy="host", strict=True, **kw)
    got = trained(fast, step, state, **given)
    same(got[:2], want[:2])
    (session,) = sessions(got[2])
    assert session.problem.step and not session.problem.weights and session.history == []
    report = got[2].report(got[0], BATCH)
    assert report.ran == "xco" and report.segments > 0
    return session


def init(*sizes: int) -> dict[str, dict[str, jax.Array]]:
    pairs = list(zip(sizes, sizes[1:], strict=False))
    return {f"l{i}": {"w": array(a, b, seed=i) / 3, "b": array(b, seed=i) / 9} for i, (a, b) in enumerate(pairs)}


def dense(params: Any, x: jax.Array) -> jax.Array:
    for i in range(len(params)):
        x = x @ params[f"l{i}"]["w"] + params[f"l{i}"]["b"]
        x = jnp.tanh(x) if i < len(params) - 1 else x
    return x


def loss_of(params: Any, batch: Any) -> jax.Array:
    x, y = batch
    return optax.softmax_cross_entropy_with_integer_labels(dense(params, x), y).mean()


TX = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-2, eps=1e-3))


def adam_step(state: Any, batch: Any) -> Any:
    params, opt = state
    value, grads = jax.value_and_grad(loss_of)(params, batch)
    updates, opt = TX.update(grads, opt, params)
    return (optax.apply_updates(params, updates), opt), {"loss": value, "norm": optax.tree.norm(grads)}


def adam_state() -> Any:
    params = init(16, 12, 3)
    return params, TX.init(params)


class Net(nn.Module):
    """Batch statistics and dropout."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.Conv(6, (3, 3))(x.reshape(-1, 4, 4, 1))
        x = nn.relu(nn.BatchNorm(use_running_average=False, momentum=0.9)(x))
        x = nn.Dropout(0.25, deterministic=False)(x)
        return nn.Dense(3)(x.reshape(x.shape[0], -1))


class State(TrainState):
    stats: Any
    key: Any


def linen_state(model: nn.Module) -> State:
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = model.init(keys, BATCH[0])
    tx = optax.sgd(0.05, momentum=0.9)
    stats, key = variables.get("batch_stats", {}), jax.random.key(2)
    return State.create(apply_fn=model.apply, params=variables["params"], tx=tx, stats=stats, key=key)


def linen_step(state: State, batch: Any) -> Any:
    key = jax.random.fold_in(state.key, state.step)

    def loss(params: Any) -> Any:
        given = {"params": params, "batch_stats": state.stats}
        out, new = state.apply_fn(given, batch[0], rngs={"dropout": key}, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(out, batch[1]).mean(), new

    (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads).replace(stats=new["batch_stats"]), value


@pytest.mark.parametrize("donate", [{}, dict(donate_argnums=0), dict(donate_argnames="state")])
def test_an_optax_chain(donate: dict[str, Any]) -> None:
    check(adam_step, adam_state(), **donate)


@pytest.mark.parametrize("donate", [{}, dict(donate_argnums=0)])
def test_a_train_state_with_statistics_dropout_and_a_counter_of_pythons(donate: dict[str, Any]) -> None:
    check(linen_step, linen_state(Net()), **donate)


def test_nnx_states() -> None:
    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.a, self.norm = nnx.Linear(16, 12, rngs=rngs), nnx.BatchNorm(12, rngs=rngs)
            self.drop, self.b = nnx.Dropout(0.2, rngs=rngs), nnx.Linear(12, 3, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.b(self.drop(nnx.relu(self.norm(self.a(x)))))

    model = Model(nnx.Rngs(0, dropout=1))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2, eps=1e-3), wrt=nnx.Param)
    graph, state = nnx.split((model, optimizer))

    def step(state: Any, batch: Any) -> Any:
        model, optimizer = nnx.merge(graph, state)
        loss = lambda m: optax.softmax_cross_entropy_with_integer_labels(m(batch[0]), batch[1]).mean()
        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    check(step, state)
    check(step, state, donate_argnums=0)


def test_checkpoints_and_micro_batches_in_a_scan() -> None:
    def step(state: Any, batch: Any) -> Any:
        params, opt = state
        parts = jax.tree.map(lambda a: a.reshape(2, 2, *a.shape[1:]), batch)

        def one(total: Any, part: Any) -> Any:
            value, grads = jax.value_and_grad(jax.checkpoint(loss_of))(params, part)
            return jax.tree.map(jnp.add, total, grads), value

        grads, values = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
        updates, opt = TX.update(grads, opt, params)
        return (optax.apply_updates(params, updates), opt), values

    check(step, adam_state())
    check(step, adam_state(), donate_argnums=0)


def test_states_in_arguments_of_their_own_and_frozen_weights() -> None:
    """What comes back is no weight; what does not, as the frozen layer here, is."""

    def step(params: Any, frozen: Any, batch: Any) -> Any:
        loss = lambda p: loss_of(p, (batch[0] @ frozen["a"] @ frozen["b"], batch[1]))
        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    frozen = {"a": array(16, 24, seed=5), "b": array(24, 16, seed=6)}
    fast, plain = xcoexec.jit(step, strategy="host", strict=True), jax.jit(step)
    mine = theirs = init(16, 12, 3)
    for _ in range(4):
        mine, value = fast(mine, frozen, BATCH)
        theirs, want = plain(theirs, frozen, BATCH)
        same((mine, value), (theirs, want))
    (session,) = sessions(fast)
    assert session.problem.step and len(session.problem.weights) == 2


def test_gradients_alone_with_an_optimizer_outside() -> None:
    def train(jit: Any) -> Any:
        grads_of, (params, opt), values = jit(jax.value_and_grad(loss_of)), adam_state(), []
        for _ in range(4):
            value, grads = grads_of(params, BATCH)
            updates, opt = TX.update(grads, opt, params)
            params = optax.apply_updates(params, updates)
            values.append(value)
        return (params, opt, values), grads_of

    got, grads_of = train(lambda f: xcoexec.jit(f, strategy="host", strict=True))
    same(got, train(jax.jit)[0])
    (session,) = sessions(grads_of)
    assert session.problem.step and not session.problem.weights and grads_of.report(got[0], BATCH).ran == "xco"


def test_what_changes_three_times_becomes_inputs_and_nothing_else() -> None:
    def fn(a: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ a) @ b

    fast, plain = xcoexec.jit(fn, strategy="host", strict=True), jax.jit(fn)
    b, x = array(12, 5, seed=1), array(4, 16, seed=2)
    for i in range(6):
        a = array(16, 12, seed=10 + i)
        same(fast(a, b, x), plain(a, b, x))
    (session,) = sessions(fast)
    assert [w is b for w in session.problem.weights] == [True]
    same(fast(a, b * 2, x), plain(a, b * 2, x))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("donate", [{}, dict(donate_argnums=0)])
def test_steps_that_are_planned_behind_their_calls(donate: dict[str, Any]) -> None:
    """Nothing is said, the plan is made once, and the caller's own calls choose."""
    want = trained(jax.jit, adam_step, adam_state(), 60)
    step = xcoexec.jit(adam_step, wait=False, **donate)
    monkey = pytest.MonkeyPatch()
    monkey.setattr("xcoexec.api.entry.small", lambda closed: False)
    try:
        state, values = adam_state(), []
        for i in range(60):
            before = state
            state, value = step(state, BATCH)
            values.append(value)
            assert jax.tree.leaves(before)[0].is_deleted() == bool(donate)
            if i == 1:
                assert step.ready(600)
    finally:
        monkey.undo()
    same((state, values), want[:2])
    (session,) = sessions(step)
    assert session.problem.step and isinstance(session.choice, Race)


def test_planning_holds_no_state() -> None:
    step, state = xcoexec.jit(adam_step, strategy="host", strict=True), adam_state()
    gone = [weakref.ref(x) for x in jax.tree.leaves(state)]
    state, value = step(state, BATCH)
    gone += [weakref.ref(x) for x in jax.tree.leaves(state)]
    state, value = step(state, BATCH)
    del state, value
    gc.collect()
    assert [r for r in gone if r() is not None] == []


def test_numpy_states_new_shapes_nans_and_arrays_that_are_gone() -> None:
    step, plain = xcoexec.jit(adam_step, strategy="host", strict=True, donate_argnums=0), jax.jit(adam_step)
    state = jax.tree.map(np.asarray, adam_state())
    same(step(state, BATCH), plain(state, BATCH))
    assert len(step._entries) == 1
    small = jax.tree.map(lambda a: a[:3], BATCH)  # the last batch of an epoch
    same(step(adam_state(), small), plain(adam_state(), small))
    wide = lambda: (init(16, 20, 3), TX.init(init(16, 20, 3)))
    same(step(wide(), BATCH), plain(wide(), BATCH))
    assert len(step._entries) == 3 and all(s.problem.step for s in sessions(step))
    nan = (BATCH[0] * jnp.nan, LABELS)
    state, value = step(adam_state(), nan)
    assert np.isnan(value["loss"]) and np.isnan(state[0]["l0"]["w"]).all()
    taken = adam_state()
    step(taken, BATCH)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        step(taken, BATCH)
    same(step(adam_state(), BATCH), plain(adam_state(), BATCH))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("decided", [False, True])
def test_bad_lines_while_calls_are_compared_and_afterwards(decided: bool) -> None:
    """A state given away twice, one of other shapes, NumPy's arrays and NaN losses get what `jax.jit` gives them."""
    step, plain = xcoexec.jit(adam_step, wait=True, donate_argnums=0), jax.jit(adam_step)
    taken, nan = adam_state(), (BATCH[0] * jnp.nan, LABELS)
    step(taken, BATCH)
    (session,) = sessions(step)
    race = session.choice
    assert isinstance(race, Race) and race.races
    if decided:
        race._seconds = ([1e-3], [1.0])
        race._decide("far")
    for _ in range(3):  # whoever takes the call
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            step(taken, BATCH)
        same(step(adam_state(), BATCH), plain(adam_state(), BATCH))
        same(step(jax.tree.map(np.asarray, adam_state()), BATCH), plain(adam_state(), BATCH))
        state, value = step(adam_state(), nan)
        assert np.isnan(value["loss"]) and all(np.isnan(x).all() for x in jax.tree.leaves(state[0]))
        state, value = step(state, BATCH)  # and it stays NaN
        assert np.isnan(value["loss"])
    assert len(step._entries) == 1
    wide = lambda: (init(16, 20, 3), TX.init(init(16, 20, 3)))
    same(step(wide(), BATCH), plain(wide(), BATCH))
    with pytest.raises(TypeError):
        step((init(15, 12, 3), adam_state()[1]), BATCH)
    same(step(adam_state(), BATCH), plain(adam_state(), BATCH))


def test_frozen_weights_of_numpy_are_read_at_every_call() -> None:
    """They may change between calls: plain `jax.jit` runs, and it is said once."""

    def step(params: Any, frozen: Any, batch: Any) -> Any:
        value, grads = jax.value_and_grad(lambda p: loss_of(p, (batch[0] @ frozen, batch[1])))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    fast, plain, frozen = xcoexec.jit(step, strategy="host"), jax.jit(step), np.array(array(16, 16, seed=5))
    with pytest.warns(xcoexec.CoexecWarning, match="weights are NumPy arrays") as said:
        for _ in range(4):
            same(fast(init(16, 12, 3), frozen, BATCH), plain(init(16, 12, 3), frozen, BATCH))
            frozen *= 1.5
    assert len(said) == 1


def test_what_comes_back_is_known_by_tree_and_types() -> None:
    def found(tree: Any, out: Any) -> tuple[frozenset[int], tuple[int, ...]]:
        a, b = (jax.tree.flatten(x) for x in ((tree, {}), out))
        ids = returned(a[1], a[0], b[1], b[0])
        return ids, whole(a[1], ids)

    state = {"p": {"w": "8x3", "b": "3"}, "n": "i"}
    assert found((state, "x"), (state, "f")) == (frozenset({0, 1, 2}), (0, 1, 2))
    assert found((state, "x"), {"new": state["p"]}) == (frozenset({1, 2}), (0, 1, 2))
    assert found(("x", state), (state, "f")) == (frozenset({1, 2, 3}), (1, 2, 3))
    assert found((state, "x"), ({"p": {"w": "8x4", "b": "3"}, "n": "i"}, "f")) == (frozenset(), ())
    assert found(("8x8", "8x8"), "8x8") == (frozenset(), ())  # a product of squares


class Loop:
    """Steps that take as many seconds as a test says."""

    def __init__(self, compiled: bool = True, decided: bool = False, apart: bool = False, segments: int = 1):
        plan = xcoexec.Plan("host", (), "")
        lowered: Any = SimpleNamespace(rest=lambda: None, segments=("a segment",) * segments)
        self.plan = Executable(plan, list, lowered)
        self.jit = Executable(plan, list, None)
        self.monitor, self.clock = Monitor(self.plan), 0.0
        self.kept: list[Executable] = []  # what the next process would begin with
        planner: Any = SimpleNamespace(plain=self.jit, decided=decided, keep=self.kept.append, forget=self.kept.clear)
        planner.machine = SimpleNamespace(apart=apart)
        self.race = Race(self.monitor, planner, compiled, lambda: self.clock)
        self.race.anew()

    def steps(self, plan: float, jit: float, most: int = 400) -> str:
        """Which took the steps: p or j, until it is decided."""
        took = ""
        while self.race.races and len(took) < most:
            exe = self.race.takes()
            took += "j" if exe is self.jit else "p"
            self.clock += jit if exe is self.jit else plan
            self.race.gave([])
        return took


@pytest.mark.parametrize(
    ("compiled", "plan", "jit", "took"),
    [
        (True, 0.1, 1.0, "jppppppj"),  # two long calls that count say enough
        (False, 0.1, 1.0, "jjppppppj"),  # the first one compiles
        (True, 10.0, 1.0, "jppp"),
        (True, 1.0, 0.7, "jpppj"),
        (True, 1.0, 1.01, "jpppjjppjjppj"),  # a draw is jax.jit's
        (True, 0.02, 0.03, "jjjppp"),
        (True, 1e-4, 1e-5, 21 * "j" + "ppp"),
    ],
)
def test_a_race_is_decided_by_the_callers_own_calls(compiled: bool, plan: float, jit: float, took: str) -> None:
    loop = Loop(compiled)
    assert loop.steps(plan, jit)[: len(took)] == took and not loop.race.races
    current = loop.monitor.current
    assert loop.kept == [current]
    assert (current.lowered is not None) == (plan < 0.98 * jit) and "in the caller's own calls" in current.plan.chosen
    assert current.plan.measured == pytest.approx({"host": plan, "jit": jit})


@pytest.mark.parametrize(("look", "wins"), [(0.1, True), (0.3, False)])
def test_looks_count_for_the_plan_alone(look: float, wins: bool) -> None:
    """Without them plain jax.jit goes on once it has won."""
    loop = Loop()
    while loop.race.races:
        since = loop.clock
        loop.clock += look
        loop.clock += 0.5 if loop.race.takes(since) is loop.plan else 0.7
        loop.race.gave([])
    assert (loop.monitor.current.lowered is not None) == wins
    assert loop.monitor.current.plan.measured == pytest.approx({"host": 0.5 + look, "jit": 0.7})


@pytest.mark.parametrize(("plan", "jit"), [(7e-3, 3e-3), (3e-3, 7e-3)])
@pytest.mark.parametrize("late", [0, 3, 8])
def test_one_call_that_waited_for_something_else_decides_nothing(plan: float, jit: float, late: int) -> None:
    """Of either of the two: the machine stood still for a second."""
    loop = Loop()
    took = ""
    while loop.race.races:
        exe = loop.race.takes()
        took += "j" if exe is loop.jit else "p"
        loop.clock += (jit if exe is loop.jit else plan) + (len(took) == 1 + late)
        loop.race.gave([])
    assert (loop.monitor.current.lowered is not None) == (plan < jit), took


class DeviceLoop(Loop):
    """Steps of a device: calls return in `BEGIN` seconds, before the device has done what it was given."""

    BEGIN, WAKES = 1e-4, 1e-4  # seconds of a call, and of a wait behind the device's end

    def __init__(self, segments: int = 1) -> None:
        super().__init__(apart=True, segments=segments)
        self.device = self.busy = 0.0  # when the device will have done all, and seconds that it computed

    def block_until_ready(self) -> None:
        """As an array's: a wait for all that was begun."""
        self.clock = max(self.clock, self.device) + self.WAKES

    def steps(self, plan: float, jit: float, most: int = 4000) -> str:
        took = ""
        while self.race.races and len(took) < most:
            exe = self.race.takes()
            took += "j" if exe is self.jit else "p"
            seconds = jit if exe is self.jit else plan
            self.clock += self.BEGIN
            self.device, self.busy = max(self.device, self.clock) + seconds, self.busy + seconds
            self.race.gave([self])
        return took


@pytest.mark.parametrize(("plan", "jit"), [(1e-3, 9.1e-4), (1e-3, 2e-3), (5e-3, 4.9e-3), (0.04, 0.044), (3e-4, 4e-4)])
def test_a_race_on_a_device_waits_for_calls_together(plan: float, jit: float) -> None:
    """What is slower loses, times are those of calls in flight, and waiting costs a few percent at most."""
    loop = DeviceLoop()
    loop.steps(plan, jit)
    assert not loop.race.races and loop.clock < 1.05 * loop.busy
    current = loop.monitor.current
    assert (current.lowered is not None) == (plan < jit) and loop.kept == [current]
    assert current.plan.measured == pytest.approx({"host": plan, "jit": jit}, rel=0.03)


@pytest.mark.parametrize(("plan", "wins"), [(0.5e-3, True), (0.85e-3, True), (0.95e-3, False), (1.1e-3, False)])
def test_kernels_that_are_launched_otherwise_have_to_win_by_more(plan: float, wins: bool) -> None:
    """Nothing of such a plan is on the host half: what it wins depends on whether each step is waited for."""
    loop = DeviceLoop(segments=0)
    loop.steps(plan, 1e-3)
    assert not loop.race.races and (loop.monitor.current.lowered is not None) == wins
    both = DeviceLoop()
    both.steps(plan, 1e-3)
    assert (both.monitor.current.lowered is not None) == (plan < 1e-3)


@pytest.mark.parametrize("soon", [True, False])
def test_calls_that_may_not_have_the_plan_are_not_compared(monkeypatch: pytest.MonkeyPatch, soon: bool) -> None:
    """Beside a planning the race goes on behind it; beside a thread that may stay it ends, and nothing is decided."""
    loop, allowed = DeviceLoop(), True
    monkeypatch.setattr(race.recording, "soon", lambda: soon)
    loop.plan = loop.monitor.current = dataclasses.replace(loop.plan, may=lambda: allowed)
    loop.race.anew()
    loop.steps(1e-3, 2e-3, most=5)
    allowed = False
    assert loop.steps(1e-3, 1e-3, most=100) == "j" * (100 if soon else 1)
    assert loop.race.races == soon and loop.race.takes() is loop.jit and not loop.kept
    allowed = True
    if not soon:
        assert loop.race.takes() is loop.plan
        return
    loop.steps(1e-3, 2e-3)
    assert not loop.race.races and loop.monitor.current.lowered is not None
    assert loop.monitor.current.plan.measured == pytest.approx({"host": 1e-3, "jit": 2e-3}, rel=0.1)


def test_a_stretch_of_calls_ends_with_its_race() -> None:
    """A host call that fails while calls are compared: nobody waits any more, and nothing is decided."""
    loop = DeviceLoop()
    loop.steps(1e-3, 1e-3, most=3)
    began, stays = loop.race.takes(), Executable(loop.jit.plan, list, None)
    assert began is loop.race._plan or began is loop.jit
    loop.monitor.stay(stays)
    for _ in range(500):
        loop.race.gave([loop])
        assert loop.race.takes() is stays
    assert not loop.race.races and not loop.kept and loop.monitor.current is stays


def test_a_step_whose_plan_has_won_before_is_compared_when_its_times_drift() -> None:
    """It is tried again after its first loss, and goes for good with the second one."""
    loop = Loop(decided=True)
    assert loop.steps(0.1, 1.0) == "" and loop.race.takes() is loop.plan
    loop.race.again()
    assert set(loop.steps(0.1, 1.0)) == {"j", "p"} and loop.monitor.current.lowered is not None
    assert loop.monitor.interval == 2 * PAUSE_SECONDS and not loop.monitor.past
    loop.kept.append(loop.plan)
    loop.race.again()
    assert loop.steps(1.0, 0.1) and loop.monitor.current.lowered is None and not loop.monitor.final
    assert [e.lowered for e in loop.monitor.past] == [loop.plan.lowered] and loop.kept
    loop.race.again()
    assert loop.steps(1.0, 0.1) and loop.monitor.current.lowered is None and loop.monitor.final
    assert not loop.monitor.past and not loop.kept
    loop.race.again()
    assert not loop.race.races, "there is no plan any more"


def test_a_drift_waits_for_no_compilation_of_plain_jit() -> None:
    loop = Loop(compiled=False, decided=True)
    loop.race.again()
    assert not loop.race.races


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(("plan", "races"), [(0.5, False), (0.94, True), (2.0, False)])
def test_a_step_whose_plan_has_won_by_little_is_raced_in_the_next_process(
    plan: float, races: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one may have had others beside it. Where plain `jax.jit` has won there is no plan to compare."""
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    step, state = xcoexec.jit(adam_step, strict=True), adam_state()
    step(state, BATCH)
    (session,) = sessions(step)
    race = session.choice
    assert isinstance(race, Race) and race.races
    race._seconds = ([plan], [1.0])
    race._decide("far")
    again = xcoexec.jit(adam_step, strict=True)
    again(adam_state(), BATCH)
    (session,) = sessions(again)
    assert isinstance(session.choice, Race) and "(remembered)" in session.plan().chosen
    assert session.choice.races == races and session.plain == (plan > 1)


@pytest.mark.usefixtures("own_cache")
def test_drifting_times_of_a_step_have_its_calls_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    step, state = xcoexec.jit(adam_step, strict=True), adam_state()
    state, _ = step(state, BATCH)
    (session,) = sessions(step)
    race, monitor = session.choice, session.monitor
    assert isinstance(race, Race) and race.races
    race._seconds, race._cold = ([1e-6], [1.0]), [False, False]
    race._decide("far")
    assert not race.races and not session.plain and not session.settled
    monkeypatch.setattr(monitor, "interval", 0.0)
    for seconds in (1e-3, *[2e-3] * PATIENCE):
        monitor.look(seconds)
    until(lambda: race.races)
    want = trained(jax.jit, adam_step, state, 8)
    got = trained(lambda fn: step, adam_step, state, 8)
    same(got[:2], want[:2])
    assert len([h for h in session.history if "planning again" in h]) == 1


def test_a_plan_that_has_lost_once_is_raced_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While it is, plain jax.jit is not in use for good, though it takes calls."""
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    step, state = xcoexec.jit(adam_step, strict=True), adam_state()
    state, _ = step(state, BATCH)
    (session,) = sessions(step)
    race = session.choice
    assert isinstance(race, Race) and race.races
    race._cold = [False, False]
    for plan in (1e-6, 10.0):
        race._seconds = ([plan], [1.0])
        race._decide("far")
        race.again()
        assert race.races and not session.settled
        state, _ = step(state, BATCH)
    assert session.plain and step._rest is None
    race._seconds = ([10.0], [1.0])
    race._decide("far")
    state, _ = step(state, BATCH)
    assert session.settled and step._rest is not None


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("wins", [True, False])
def test_a_step_on_a_device_is_raced_when_its_planning_is_over(wins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages' plan is in use while they go on; then calls in flight decide, and the next process knows."""
    relay = Relay(StandIn(), limit_seconds=60.0)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: relay)
    monkeypatch.setattr("xcoexec.api.entry.small", lambda closed: False)
    monkeypatch.setattr("xcoexec.session.planner.stages", lambda attempt: iter([attempt.all_host]))
    want = trained(jax.jit, adam_step, adam_state(), 40)

    def begun() -> Any:
        """A step, and its session and results behind 40 calls."""
        step, state, values = xcoexec.jit(adam_step, wait=False), adam_state(), []
        for i in range(40):
            state, value = step(state, BATCH)
            values.append(value)
            if i == 1:
                assert step.ready(600)
        (session,) = sessions(step)
        same((state, values), want[:2])
        return session, session.choice

    session, race = begun()
    assert session.machine.apart and session.problem.step and isinstance(race, Race) and race._most == MOST_TOGETHER
    if race.races:  # what the calls have found is whatever this machine takes
        race._seconds, race._first = ([1e-3], [1.0]) if wins else ([1.0], [1e-3]), True
        race._decide("far")
    assert not race.races and "in the caller's own calls" in session.current.plan.chosen
    won = session.current.lowered is not None
    session, race = begun()
    assert (session.current.lowered is not None) == won and "(remembered)" in session.current.plan.chosen
    assert not race.races
    relay.stop()


ROOT = Path(__file__).resolve().parent.parent
BEGINS = """
import jax, sys, xcoexec
from tests.test_training import BATCH, adam_state, adam_step
step = xcoexec.jit(adam_step, wait=True)
state, value = step(adam_state(), BATCH)
report = step.report(state, BATCH)
print(report.ran, report.why)
"""


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("wins", [True, False])
def test_another_process_begins_with_what_has_won(wins: bool) -> None:
    step = xcoexec.jit(adam_step, strict=True)
    step(adam_state(), BATCH)
    (session,) = sessions(step)
    race = session.choice
    assert isinstance(race, Race) and GOES_ON in step.report(adam_state(), BATCH).why
    race._seconds = ([1e-3], [1.0]) if wins else ([1.0], [1e-3])
    race._decide("far")
    run = subprocess.run([sys.executable, "-c", BEGINS], cwd=ROOT, capture_output=True, text=True, timeout=600)
    ran, why = run.stdout.split(" ", 1)
    assert ran == ("xco" if wins else "jit"), run.stderr
    assert "(remembered)" in why and GOES_ON not in why


def pairs(fn: Callable[..., Any], *args: jax.Array) -> tuple[tuple[int, int], ...]:
    """Which operands of a function's one segment may share memory with which of its results; with the algorithms that
    come first, whatever is the fastest on this machine.
    """
    _, graph = stages_of(fn, *args)
    return shareable(host.build(graph.program, 2, pick=default))


def test_results_share_memory_only_with_operands_that_nobody_reads_afterwards() -> None:
    w, g = array(24, 24), array(24, 24, seed=1)
    assert pairs(lambda w, g: w - 0.1 * g, w, g) == ((0, 0), (1, 0))
    assert {(0, 0), (1, 1)} <= set(pairs(lambda w, g: (w - 0.1 * g, 0.9 * g + w), w, g))  # in one pass
    assert {(0, 0), (1, 0)} - set(pairs(lambda w, g: (g @ w, 0.9 * w + g), w, g))  # the product reads both
    assert (0, 0) not in pairs(lambda w, g: w.T - 0.1 * g, w, g)  # other elements than those that are written
    assert (0, 0) not in pairs(lambda w, g: w + w.T * g, w, g)
    assert (0, 0) not in pairs(lambda w, g: w * w[:, :1] + g, w, g)
    assert pairs(lambda w: jax.nn.softmax(w), w) == ()  # rows are read twice
    assert pairs(lambda w, g: (g @ w) - w, w, g) == ()


def test_weights_are_updated_behind_whoever_reads_the_old_ones() -> None:
    """The gradient by a layer's weights is there before the one by its input, which reads them."""

    def step(w: dict[str, jax.Array], x: jax.Array) -> tuple[Any, jax.Array]:
        layer = lambda x, w: jnp.tanh(
            jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        )
        loss, grads = jax.value_and_grad(lambda w: jnp.sum(layer(layer(layer(x, w["a"]), w["b"]), w["c"]) ** 2))(w)
        return jax.tree.map(lambda w, g: w - 0.1 * g, w, grads), loss

    weights = {k: array(3, 3, 16, 16, seed=i) for i, k in enumerate("abc")}
    assert {(i, i) for i in range(3)} <= set(pairs(step, weights, array(2, 9, 9, 16)))


def test_words_before_those_of_the_operands_are_as_many_as_the_kernels_have() -> None:
    assert AHEAD["columns"] == columns.WORDS


def test_a_state_that_is_given_away_is_updated_in_place() -> None:
    step, state = xcoexec.jit(adam_step, strategy="host", strict=True, donate_argnums=0), adam_state()
    state, _ = step(state, BATCH)
    (session,) = sessions(step)
    compiled = session.current.compiled
    assert compiled is not None
    used = compiled(session.problem.example).memory_analysis()
    assert used.alias_size_in_bytes == sum(x.nbytes for x in jax.tree.leaves(state))
    places = [x.unsafe_buffer_pointer() for x in jax.tree.leaves(state)]
    state, _ = step(state, BATCH)
    now = [x.unsafe_buffer_pointer() for x in jax.tree.leaves(state)]
    assert now == places
    text = compiled(session.problem.example).as_text()
    assert "custom-call" in text and not re.search(r"f32\[16,12\]\S* copy\(", text)
