"""The stages of a planning: what is assumed of layers that nobody has measured, and what is kept on disk of it."""

from __future__ import annotations

import dataclasses
import functools
import types

import jax
import numpy as np
import pytest

from xcoexec.frontend.graph import graph_of
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.words import DEVICE, HOST, SPLIT
from xcoexec.lowering.executable import Executable
from xcoexec.measure import part_seconds, timing
from xcoexec.measure.profile import silent
from xcoexec.planning.baselines import device_plan
from xcoexec.session import contest, stages
from xcoexec.session.attempt import Attempt
from xcoexec.session.contest import Found, times, why

from .support import co, error, oracle

pytestmark = pytest.mark.usefixtures("quick_xla")

RNG = np.random.default_rng(0)
WEIGHTS = [RNG.standard_normal((64, n), np.float32) for n in (64, 64)]
X = RNG.standard_normal((8, 64), np.float32)


def dense(weights, x):
    for w in weights:
        x = jax.nn.relu(x @ w)
    return x


@pytest.mark.parametrize("together", [1e-3, 1e-5, 1e-9])
def test_assumed_layers_take_the_measured_seconds_together(together: float) -> None:
    big = [RNG.standard_normal(s, np.float32) for s in ((64, 2048), (2048, 64))]
    _, graph = graph_of(lambda w, x: dense(w, x), ([*WEIGHTS, *big], X), 1)
    seconds = part_seconds.assumed_wholes(graph, together)
    assert len(seconds) == len(graph.layers) and min(seconds) > 0
    assert sum(seconds) == pytest.approx(together)
    assert seconds[-1] > seconds[0], "more FLOP, more seconds"


def test_half_a_layer_is_assumed_to_take_more_than_half(monkeypatch: pytest.MonkeyPatch) -> None:
    _, graph = graph_of(lambda w, x: dense(w, x), (WEIGHTS, X), 1)
    parts = part_seconds.assumed_parts(graph, [1e-3, None], [2e-3, 2e-3])
    assert set(parts[HOST]) == set(parts[DEVICE]) == {0}, "a layer that one half cannot run is not split"
    for half, whole in ((HOST, 1e-3), (DEVICE, 2e-3)):
        assert set(parts[half][0]) == set(graph.layers[0].dims)
        for ((share, seconds),) in parts[half][0].values():
            assert share == 0.5 and 0.5 * whole < seconds < whole


def test_an_early_plan_is_kept_until_all_is_measured(monkeypatch: pytest.MonkeyPatch, own_cache: None) -> None:
    """A process that ends too early leaves its plan to the next one, which takes it at once and measures the rest."""
    fast = co(dense, WEIGHTS, strategy="auto")
    fast(X)
    attempt = fast.session().planner._attempt(lambda *step: None, early=True)
    stages.forget(attempt)
    early = why(attempt.all_host, {"jit": 2.0, "host": 1.0}, "early")
    whole = dataclasses.replace(early, plan=dataclasses.replace(early.plan, chosen="whole"))
    asked: list[str] = []
    monkeypatch.setattr(stages, "clear_winner", lambda s: asked.append("early") or early)
    monkeypatch.setattr(stages, "contest", lambda s: asked.append("contest") or Found(whole))

    first = stages.stages(attempt)
    assert next(first).plan.chosen == "early"
    name = stages.record_name(attempt)
    assert not stages.remembered(name, attempt.graph).whole
    first.close()

    told = [exe.plan.chosen for exe in stages.stages(attempt)]
    assert told == ["early (remembered)", "whole"] and asked == ["early", "contest"]
    assert stages.remembered(name, attempt.graph).whole
    draw = why(attempt.plain, {"jit": 1.0, "host": 1.0}, "a draw")
    stages.keep(attempt, draw)
    assert stages.remembered(name, attempt.graph) is None, "what was in use before the draw is not remembered either"
    stages.keep(attempt, whole)
    assert [exe.plan.chosen for exe in stages.stages(attempt)] == ["whole (remembered)"]
    assert error(np.asarray(attempt.run(early)[0]), oracle(dense, WEIGHTS, X)) < 1e-5


def test_plain_jit_is_measured_whatever_was_slow() -> None:
    """Also where nothing else is left to measure."""
    attempt = Attempt.__new__(Attempt)
    attempt.seen, attempt.slow, attempt.progress = {}, {"jit": 3.0, "host": 2.0}, silent
    attempt.stream, attempt.untried = lambda exe, count=1: None, False  # type: ignore[method-assign]
    exe = Executable(Plan("device", (), ""), list, None)
    for names in (("jit", "host"), ("jit", "host", "device")):
        seconds = times(attempt, dict.fromkeys(names, exe), early=True)
        assert seconds["host"] == 2.0 and seconds["jit"] < 1.0 and list(seconds) == [*names]


@pytest.mark.parametrize(
    ("halves", "switched", "split", "found"),
    [
        ((HOST, DEVICE), 0.5, 0.3, "layer_switch"),  # which costs XLA no kernel that it has not timed
        ((HOST, DEVICE), 0.8, 0.3, "edgenn"),  # not clearly below, with what a call costs anyhow
        ((DEVICE, DEVICE), 0.5, 0.3, "edgenn"),  # that is plain jax.jit on the folded graph
        ((HOST, HOST), 0.5, 0.3, "edgenn"),  # that is the host half once more
        ((HOST, DEVICE), 0.9, 0.9, "device"),
    ],
)
def test_an_early_plan_beside_a_device(
    halves: tuple[str, str], switched: float, split: float, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(name: str, seconds: float | None, halves: tuple[str, str]) -> Plan:
        return Plan(name, tuple(Placement(h, h, float(h != DEVICE)) for h in halves), predicted=seconds)

    exe = lambda plan: Executable(plan, lambda leaves: [], None)
    jit, host = exe(plan("jit", None, (DEVICE, DEVICE))), exe(plan("host", None, (HOST, HOST)))
    problem = types.SimpleNamespace(step=False)
    s = types.SimpleNamespace(seen={"jit": 1.0, "host": 1.2}, graph=None, all_host=host, problem=problem)
    s.all_device = "folded"
    s.executable = s.candidate = exe
    s.quick_costs = lambda together: together
    monkeypatch.setattr(contest, "whole_halves", lambda s: {"jit": jit, "host": host, "local": host})
    monkeypatch.setattr(contest, "empty_call", lambda: 0.1)
    monkeypatch.setattr(contest, "step_as_graphs", lambda s: {"graphs": host} if s.problem.step else {})
    monkeypatch.setattr(contest, "briefly_balanced", lambda s, exe: exe)
    monkeypatch.setitem(contest.STRATEGIES, "layer_switch", lambda graph, costs: plan("layer_switch", switched, halves))
    monkeypatch.setattr(contest, "_promising", lambda s, costs: [("edgenn", plan("edgenn", split, (SPLIT, DEVICE)))])
    candidates = contest.quick_candidates(s)  # type: ignore[arg-type]
    assert list(candidates) == ["jit", "local", found], "the host half has lost already"
    problem.step = True  # whose weights change: nothing is folded
    of_step = contest.quick_candidates(s)  # type: ignore[arg-type]
    assert list(of_step) == ["jit", "local", "graphs", *([found] if found != "device" else [])]
    s.seen["host"] = 0.9
    assert "host" in contest.quick_candidates(s)  # type: ignore[arg-type]


def test_one_slow_sample_of_a_long_call_is_not_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long call that shares its cores with another one takes twice as long, once."""
    took = {"jit": iter([1.0] * 9), "host": iter([2.0] + [0.8] * 9), "late": iter([2.0] * 9)}
    monkeypatch.setattr(timing, "_block", lambda fn, *rest, **more: [next(took[fn()])])
    calls = {name: functools.partial(str, name) for name in took}
    samples: dict[str, list[float]] = {}
    seconds = timing.alternate(calls, 5, 0.06, samples=samples, slow=1.5)
    assert seconds["host"] == 0.8 and len(samples["host"]) == len(samples["jit"]) == 5
    assert samples["late"] == [2.0, 2.0]


def test_blocks_go_there_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of one half leaves the other one's cores slower for a while: each comes behind each."""
    order: list[str] = []
    monkeypatch.setattr(timing, "_block", lambda fn, *rest: order.append(fn()) or [1.0])
    timing.alternate({name: functools.partial(str, name) for name in "abc"}, 3, 0.06)
    assert "".join(order) == "abccbaabc"


def test_the_host_half_is_packed_once(own_cache: None) -> None:
    """Whoever plans it: the remembered plan, the contest, the caller."""
    fast = co(dense, WEIGHTS, strategy="auto")
    fast(X)
    attempt = fast.session().planner._attempt(silent)
    told = dataclasses.replace(attempt.all_host.plan, chosen="remembered")
    again = attempt.executable(told)
    assert again.lowered is attempt.all_host.lowered and again.plan is told
    other = dataclasses.replace(told, placements=(told.placements[0], device_plan(attempt.graph).placements[1]))
    assert attempt.executable(other).lowered is not attempt.all_host.lowered


def test_only_an_early_plan_takes_guessed_algorithms(monkeypatch: pytest.MonkeyPatch, own_cache: None) -> None:
    fast = co(dense, WEIGHTS, strategy="auto")
    fast(X)
    asked: list[tuple[str, bool]] = []
    monkeypatch.setattr(stages, "clear_winner", lambda s: asked.append(("early", s.hasty)))
    monkeypatch.setattr(stages, "contest", lambda s: asked.append(("contest", s.hasty)) or Found(s.plain))
    for early in (True, False):
        attempt = fast.session().planner._attempt(lambda *step: None, early=early)
        stages.forget(attempt)
        assert list(stages.stages(attempt))
    assert asked == [("early", True), ("contest", False), ("contest", False)]


def test_an_early_plan_takes_algorithms_that_are_measured_later(own_cache: None) -> None:
    """What is in use meanwhile has guessed ones; the contest builds the host half anew, with those that have won."""
    fast = co(dense, WEIGHTS, strategy="auto")
    fast(X)
    attempt = fast.session().planner._attempt(lambda *step: None, early=True)
    attempt.hasty = attempt._guessed = True  # dense layers have one algorithm: nothing is guessed of them
    before = attempt.all_host
    attempt.slow = {"host": 1.0, "codl": 2.0}
    attempt.unhurried()
    assert not attempt.hasty and attempt.all_host is not before and attempt.slow == {"codl": 2.0}
    again = attempt.all_host
    attempt.unhurried()
    assert attempt.all_host is again, "nothing was guessed since"
    for exe in (before, again):
        assert error(np.asarray(attempt.run(exe)[0]), oracle(dense, WEIGHTS, X)) < 1e-5


def test_what_has_lost_in_use_may_have_no_measurements(own_cache: None) -> None:
    """Calls in flight leave their plan behind a loss of the one for callers who wait."""
    fast = co(dense, WEIGHTS, strategy="auto")
    fast(X)
    planner = fast.session().planner
    attempt = planner._attempt(silent)
    planner.keep(attempt.plain)
    assert stages.remembered(stages.record_name(attempt), attempt.graph) is None


def test_an_early_plan_is_not_whole_for_what_calls_in_flight_show(own_cache: None) -> None:
    fast = co(dense, WEIGHTS, strategy="auto")
    fast(X)
    planner = fast.session().planner
    attempt = planner._attempt(silent)
    name, exe = stages.record_name(attempt), why(attempt.all_host, {"jit": 2.0, "host": 1.0}, "early")
    for whole in (False, True):
        stages.keep(attempt, exe, whole=whole)
        planner.keep(exe)
        assert stages.remembered(name, attempt.graph).whole is whole


def test_who_expects_a_large_gain_hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = co(dense, WEIGHTS, strategy="host")
    fast(X)
    attempt = fast.session().planner._attempt(lambda *step: None)
    for likely, hurries in ((1e-12, True), (1e3, False)):
        monkeypatch.setattr(stages, "likely_seconds", lambda flops, nbytes, threads, likely=likely: likely)
        assert stages._promises(attempt) is hurries


def test_what_takes_far_longer_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing on the machine explains half the seconds of a long call; of short ones it may. What is warm is not called
    before.
    """
    for scale, rounds in ((1.0, 1), (0.01, 2)):
        took, called = {"jit": 1.0 * scale, "host": 0.4 * scale}, list[str]()
        monkeypatch.setattr(timing, "_block", lambda fn, *rest, took=took: [took[fn()]])
        calls = {name: lambda name=name, called=called: called.append(name) or name for name in took}
        samples: dict[str, list[float]] = {}
        timing.alternate(calls, 5, 0.06, samples=samples, clear=0.85, warm=("jit",))
        assert {k: len(v) for k, v in samples.items()} == dict.fromkeys(took, rounds)
        assert [called.count(k) for k in took] == [rounds, rounds + 1]
