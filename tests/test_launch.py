"""Kernels of a device that are launched as graphs: which plans are tried so, when they win, and that plans keep it."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec import compat
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices import cuda
from xcoexec.frontend.trace import paths, trace
from xcoexec.ir.costs import Costs
from xcoexec.ir.plan import Plan
from xcoexec.lowering.executable import Executable
from xcoexec.planning.strategies import STRATEGIES
from xcoexec.session import bursts, contest, stages, ways
from xcoexec.session.attempt import Attempt
from xcoexec.session.problem import Machine, Problem
from xcoexec.session.recording import Recording

from . import standin
from .oracle import error, oracle
from .standin import StandIn
from .support import array, given_back, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")
LAUNCH = {"xla_gpu_graph_min_graph_size": 7}  # an option that every XLA takes, and that changes nothing on a CPU
FEW_KERNELS = {cuda.OWN_PRODUCTS: False}
WEIGHTS = [array(3, 3, 8, 16), array(3, 3, 16, 16, seed=1)]


def _convolutions(w: Any, x: Any) -> Any:
    for k in w:
        x = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x


def _name(plan: Plan) -> str:
    halves = {p.half for p in plan.placements}
    where = "jit" if plan.engine == "jit" else "host" if halves == {"host"} else "both"
    where = "device" if halves == {"device"} and plan.engine != "jit" else where
    return f"{where}{', graphs' if plan.graphs else ''}{', libraries' if plan.libraries else ''}"


class _Clock(Attempt):
    """A planning whose calls take as long as `takes` says (seconds, by `_name`), those in flight as long as `flows`
    does, on a clock of its own.
    """

    takes: Mapping[str, float] = {}
    flows: Mapping[str, float] = {}
    now = 0.0

    def stream(self, exe: Executable, count: int = 1) -> None:
        super().stream(exe, count)
        name = _name(exe.plan)
        self.now += count * (self.flows.get(name, self.takes[name]) if count > 1 else self.takes[name])


@pytest.fixture(scope="module")
def relay() -> Any:
    made = Relay(StandIn())
    yield made
    given_back(made)


@pytest.fixture(autouse=True)
def device_with_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standin, "GRAPHS", LAUNCH)
    monkeypatch.setattr(Recording, "others", [])  # whatever threads other tests have left


def _planning(relay: Relay, takes: Mapping[str, float]) -> _Clock:
    x = array(1, 8, 8, 8, seed=2)
    leaves, tree = jax.tree_util.tree_flatten(((WEIGHTS, x), {}))
    traced = trace(_convolutions, leaves, tree, paths(tree))
    plain = jax.jit(lambda leaves: (_convolutions(WEIGHTS, leaves[0]),))
    return _clock(relay, takes, Problem.of(traced, range(len(WEIGHTS)), WEIGHTS, [x], donated=(), plain=plain))


def _step(w: Any, x: Any) -> Any:
    """A step's next state, and a value."""
    return [0.5 * k + jnp.mean(x) for k in w], jnp.sum(_convolutions(w, x))


def _planning_a_step(relay: Relay, takes: Mapping[str, float], donated: tuple[int, ...]) -> _Clock:
    """Shapes of its state are all that is known."""
    x = array(1, 8, 8, 8, seed=2)
    leaves, tree = jax.tree_util.tree_flatten(((WEIGHTS, x), {}))
    traced = trace(_step, leaves, tree, paths(tree))
    plain = jax.jit(lambda leaves: jax.tree_util.tree_leaves(_step(leaves[:-1], leaves[-1])))
    example = [*(jax.ShapeDtypeStruct(w.shape, w.dtype) for w in WEIGHTS), x]
    return _clock(relay, takes, Problem.of(traced, (), (), example, donated=donated, plain=plain, step=True))


def _clock(relay: Relay, takes: Mapping[str, float], problem: Problem) -> _Clock:
    layers = len(problem.graph.layers)
    costs = Costs.of_halves((1e-3,) * layers, (1e-3,) * layers, 1e-6, 1e11, 1.0, False)
    found = _Clock(problem, Machine(2, relay=relay), costs=costs)
    found.takes = takes
    return found


ALONE = {"jit": 1.0, "device": 0.97, "host": 3.0, "both": 2.0}


@pytest.mark.parametrize(
    ("takes", "graphs", "wins"),
    [
        ({**ALONE, "device, graphs": 0.3, "both, graphs": 0.5}, LAUNCH, "device, graphs"),
        ({**ALONE, "device, graphs": 0.97, "both, graphs": 0.97}, LAUNCH, "jit"),  # no more than a change of luck
        ({**ALONE, "both": 0.5, "device, graphs": 0.495, "both, graphs": 0.6}, LAUNCH, "both"),
        ({**ALONE, "both": 0.5, "device, graphs": 0.6, "both, graphs": 0.4}, LAUNCH, "both, graphs"),
        ({**ALONE, "host": 0.2, "device, graphs": 0.4}, LAUNCH, "host"),
        ({**ALONE, "host": 0.5, "both": 0.49, "device, graphs": 0.6, "both, graphs": 0.6}, LAUNCH, "host"),
        # the launching thread may be all that keeps both halves behind one
        ({**ALONE, "host": 0.5, "both": 0.6, "device, graphs": 0.6, "both, graphs": 0.4}, LAUNCH, "both, graphs"),
        (ALONE, {}, "jit"),  # a device that launches all kernels as graphs anyway
    ],
)
def test_what_is_measured_wins(
    monkeypatch: pytest.MonkeyPatch, relay: Relay, takes: Mapping[str, float], graphs: Mapping[str, object], wins: str
) -> None:
    monkeypatch.setattr(standin, "GRAPHS", graphs)
    s = _planning(relay, takes)
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    exe = contest.contest(s).exe
    assert _name(exe.plan) == wins
    assert exe.plan.graphs == wins.endswith("graphs") and ("graphs" in str(exe.plan.measured)) == bool(graphs)
    assert ("kernels are launched as graphs" in exe.plan.chosen) == exe.plan.graphs
    got = np.asarray(exe.call(s.problem.example)[0])
    assert error(got, oracle(_convolutions, WEIGHTS, *s.problem.example)) < 1e-5


@pytest.mark.parametrize("donated", [(), (0, 1)])
@pytest.mark.parametrize(("seconds", "wins"), [(0.5, "device, graphs"), (0.97, "jit")])
def test_a_training_step(
    monkeypatch: pytest.MonkeyPatch, relay: Relay, seconds: float, wins: str, donated: tuple[int, ...]
) -> None:
    """Its kernels are launched as graphs before any layer is measured, and its results are those of the function."""
    takes = {**ALONE, "device, graphs": seconds, "both, graphs": 2.0}
    s = _planning_a_step(relay, takes, donated)
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    monkeypatch.setattr(s, "quick_costs", lambda together: s.costs)
    monkeypatch.setattr(contest, "empty_call", lambda: 1e-5)
    early = stages.clear_winner(s) or stages.quick(s)
    assert ("jit" if early is None else _name(early.plan)) == wins
    exe = contest.contest(s).exe
    assert _name(exe.plan) == wins
    given = [jnp.array(w, copy=True) for w in WEIGHTS]
    want = jax.tree_util.tree_leaves(_step(WEIGHTS, s.problem.example[-1]))
    for a, b in zip(exe.call([*given, s.problem.example[-1]]), want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5)
    if wins != "jit" and donated:
        assert all(g.is_deleted() for g in given), "the state was given away"


def test_a_step_without_convolutions_is_launched_as_ever(monkeypatch: pytest.MonkeyPatch, relay: Relay) -> None:
    monkeypatch.setattr(standin, "GRAPHS", {})
    s = _planning_a_step(relay, ALONE, ())
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    monkeypatch.setattr(s, "quick_costs", lambda together: s.costs)
    monkeypatch.setattr(contest, "empty_call", lambda: 1e-5)
    assert stages.clear_winner(s) is None and stages.quick(s) is None


@pytest.mark.parametrize(
    ("waiting", "in_flight", "plans"),
    [
        (0.9, 0.9, ("jit", "")),  # ten calls of a stream would begin with a plan that is slower for them
        (0.9, 0.72, ("device, graphs", "jit")),  # a few calls that take longer cost less than waiting ones gain
        (0.6, 0.9, ("device, graphs", "jit")),
        (0.9, 0.4, ("device, graphs", "")),
    ],
)
def test_calls_in_flight(
    monkeypatch: pytest.MonkeyPatch, relay: Relay, waiting: float, in_flight: float, plans: tuple[str, str]
) -> None:
    s = _planning(relay, {**ALONE, "device, graphs": waiting, "both, graphs": 2.0})
    s.flows = {"jit": 0.7, "device, graphs": in_flight}
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    exe = bursts.streamed(s, contest.contest(s))
    assert (_name(exe.plan), _name(exe.in_flight.plan) if exe.in_flight else "") == plans


def test_what_cannot_be_recorded_is_no_candidate(monkeypatch: pytest.MonkeyPatch, relay: Relay) -> None:
    monkeypatch.setattr(standin, "GRAPHS", {"xla_has_no_such_option": True})
    s = _planning(relay, {**ALONE, "host": 0.5})
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    exe = contest.contest(s).exe
    assert _name(exe.plan) == "host" and "graphs" not in str(exe.plan.measured)


def test_the_compiler_is_asked_for_them(monkeypatch: pytest.MonkeyPatch, relay: Relay) -> None:
    """What the user asks of the compiler stands above it."""
    s = _planning(relay, ALONE)
    seen: list[Any] = []
    made = lambda plan, *args, **_: seen.append(args[3]) or Executable(plan, list, None)
    monkeypatch.setattr("xcoexec.session.attempt.executable", made)
    plan = Plan("test", _on_device(s), s.graph.key)
    for graphs in (False, True):
        s.executable(dataclasses.replace(plan, graphs=graphs))
    assert [dict(o).get("xla_gpu_graph_min_graph_size") for o in seen] == [None, 7]
    s.problem = dataclasses.replace(s.problem, compiler_options={"xla_gpu_graph_min_graph_size": 3})
    s.executable(dataclasses.replace(plan, graphs=True))
    assert seen[-1]["xla_gpu_graph_min_graph_size"] == 3


@pytest.mark.parametrize(
    ("devices", "options", "tried"),
    [(2, LAUNCH, True), (1, LAUNCH, False), (0, LAUNCH, False), (2, {}, False)],
)
def test_on_several_devices_kernels_are_tried_one_by_one(
    monkeypatch: pytest.MonkeyPatch, relay: Relay, devices: int, options: Mapping[str, object], tried: bool
) -> None:
    """`devices`: how many a call is divided over (0: it is not); `options`: what launches each kernel by itself."""
    monkeypatch.setattr(standin, "SINGLY", options)
    s, ran = _planning(relay, ALONE), list[Plan]()
    monkeypatch.setattr(ways, "running", lambda s, name, plan: ran.append(plan) or "an executable")
    _ = s.all_device  # as it is where calls are not divided
    s.problem = dataclasses.replace(s.problem, shards=SimpleNamespace(devices=range(devices)) if devices else None)  # type: ignore[arg-type]
    assert list(ways.one_by_one(s)) == ["device, launched one by one"] * tried
    assert [(p.singly, p.graphs, _name(p)) for p in ran] == [(True, False, "device")] * tried


def test_what_launches_them_one_by_one(monkeypatch: pytest.MonkeyPatch, relay: Relay) -> None:
    monkeypatch.setattr(standin, "SINGLY", {"xla_gpu_graph_min_graph_size": 99})
    s, seen = _planning(relay, ALONE), list[Any]()
    monkeypatch.setattr("xcoexec.session.attempt.executable", lambda *args, **_: seen.append(args[4]))
    plan = Plan("test", _on_device(s), s.graph.key, singly=True)
    s.executable(plan)
    assert seen[-1]["xla_gpu_graph_min_graph_size"] == 99
    assert cuda.RECORD.singly() == {cuda.GRAPHS: ""}
    monkeypatch.setenv("XLA_FLAGS", f"--{cuda.GRAPHS}=FUSION")
    assert cuda.RECORD.singly() == {}
    assert Plan.from_json(plan.to_json()) == plan
    old = {k: v for k, v in json.loads(plan.to_json()).items() if k != "singly"} | {"version": 7}
    assert Plan.from_json(json.dumps(old)) == dataclasses.replace(plan, singly=False)


def _on_device(s: Attempt) -> Any:
    return STRATEGIES["device"](s.graph, s.measured_costs()).placements


def test_cuda_graphs_hold_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA makes graphs of everything else by itself."""
    conv = stages_of(_convolutions, WEIGHTS, array(1, 8, 8, 8), weights=1)[1].program.ops
    dense = stages_of(lambda w, x: x @ w, array(8, 8), array(2, 8), weights=1)[1].program.ops
    assert cuda.RECORD.graphs(conv) == {cuda.GRAPHS: cuda.LAUNCHED} and cuda.RECORD.graphs(dense) == {}
    assert "CONVOLUTION" in cuda.LAUNCHED and not compat.xla_knows(cuda.GRAPHS, "NO_SUCH_KIND")
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to=/nowhere --{cuda.GRAPHS}=")
    assert cuda.RECORD.graphs(conv) == {}  # somebody has switched them off
    monkeypatch.delenv("XLA_FLAGS")
    assert cuda.RECORD.graphs(conv)
    monkeypatch.setattr(cuda, "xla_knows", lambda option, value: False)
    assert cuda.RECORD.graphs(conv) == {}


@pytest.mark.parametrize(
    ("takes", "tried", "wins"),
    [
        ({"both, libraries": 0.5, "both": 0.4}, True, "both"),
        ({"both, libraries": 0.5, "both": 0.495}, True, "both, libraries"),  # no more than a change of luck
        ({"both, libraries": 1.05, "both": 0.9}, True, "both"),
        ({"both, libraries": 1.2, "both": 0.4}, False, "jit"),  # too far away for what kernels make of it
        ({"host, libraries": 0.3, "both, libraries": 0.5, "both": 0.4}, False, "host, libraries"),
    ],
)
def test_kernels_that_take_long_to_compile_are_for_the_winner(
    monkeypatch: pytest.MonkeyPatch, relay: Relay, takes: Mapping[str, float], tried: bool, wins: str
) -> None:
    monkeypatch.setattr(standin, "GRAPHS", {})
    monkeypatch.setattr(standin, "LIBRARIES", FEW_KERNELS)
    s = _planning(relay, {"jit": 1.0, "device": 2.0, "device, libraries": 2.0, "host, libraries": 3.0, **takes})
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    first = contest.contest(s)
    assert all(e.plan.libraries == (k != "jit") for k, e in first.candidates.items()), "every plan is tried so"
    exe = contest.with_own_kernels(s, first).exe
    assert _name(exe.plan) == wins and (contest.OWN_KERNELS in str(exe.plan.measured)) == tried
    got = np.asarray(exe.call(s.problem.example)[0])
    assert error(got, oracle(_convolutions, WEIGHTS, *s.problem.example)) < 1e-5


def test_a_named_strategy_has_the_faster_kernels_too(monkeypatch: pytest.MonkeyPatch, relay: Relay) -> None:
    monkeypatch.setattr(standin, "LIBRARIES", FEW_KERNELS)
    s = _planning(relay, {**ALONE, "both, libraries": 2.0, "device, libraries": 2.0, "host, libraries": 3.0})
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    for own, libraries in ((1.0, False), (2.0, True)):
        s.takes = {**s.takes, "both": own}
        exe = contest.choose(s, "edgenn", None)
        assert _name(exe.plan).startswith("both") and exe.plan.libraries is libraries
    plan = Plan("test", _on_device(s), s.graph.key)
    assert not contest.choose(s, "auto", plan).plan.libraries, "a plan of the user's is as it says"


def test_few_kernels_are_timed_where_libraries_are_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is where all products are of f32 that must not be rounded to TF32."""
    asks = lambda fn, *args: cuda.RECORD.libraries(stages_of(fn, *args, weights=1)[1].program.ops)
    w, x = array(8, 8), array(2, 8)
    exact = lambda w, x: jnp.dot(x, w, precision="highest")
    turns = lambda w, x: lax.scan(lambda c, _: (jnp.tanh(exact(w, c)), None), x, None, 3)[0]
    assert asks(exact, w, x) == asks(turns, w, x) == {cuda.OWN_PRODUCTS: False}
    whole = lambda w, x: lax.dot(x.astype(jnp.int8), w.astype(jnp.int8), preferred_element_type=jnp.int32)
    rounded = lambda w, x: exact(w, jnp.tanh(x @ w))
    narrow = lambda w, x: exact(w.astype(jnp.bfloat16), x.astype(jnp.bfloat16))
    for fn in (lambda w, x: jnp.tanh(x + w[:2]), lambda w, x: x @ w, rounded, narrow, whole):
        assert asks(fn, w, x) == {}
    monkeypatch.setenv("XLA_FLAGS", f"--{cuda.OWN_PRODUCTS}=true")
    assert asks(exact, w, x) == {}, "somebody wants them"
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(cuda, "xla_knows", lambda option: False)
    assert asks(exact, w, x) == {}


def test_plans_keep_how_kernels_are_launched(relay: Relay) -> None:
    """As JSON too; a plan of the version before says nothing of it."""
    s = _planning(relay, ALONE)
    plan = Plan("test", _on_device(s), s.graph.key, graphs=True, libraries=True)
    assert Plan.from_json(plan.to_json()) == plan
    later = {3: {"graphs": False, "programs": 1, "libraries": False}, 5: {"libraries": False}}
    for version, unsaid in later.items():
        before = {k: v for k, v in json.loads(plan.to_json()).items() if k not in unsaid} | {"version": version}
        assert Plan.from_json(json.dumps(before)) == dataclasses.replace(plan, **unsaid)
