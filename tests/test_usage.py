"""Calls in flight take a plan of their own; a plan that makes the caller's loop slower goes."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import xcoexec
from xcoexec.ir.plan import Plan, fields
from xcoexec.ir.plan_json import REMEMBERED
from xcoexec.lowering.executable import Executable
from xcoexec.measure.kept import store
from xcoexec.measure.profile import host_placements
from xcoexec.session import bursts, contest, stages, usage
from xcoexec.session.choice import PLAIN_SECONDS
from xcoexec.session.session import Session
from xcoexec.session.usage import (
    BLOCK,
    BLOCKS,
    EVERY,
    FIRST,
    FLOW_BLOCK,
    MOST_PAIRS,
    SHORT_BLOCK,
    STEADY,
    WINDOW,
    FlowTrial,
    Guard,
    Habit,
    Trial,
)

from .support import array, co, error, oracle

pytestmark = pytest.mark.usefixtures("quick_xla")

W, X = array(64, 64), array(8, 64)


def dense(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.numpy.tanh(x @ w)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether results are still computed when the next call begins: the last entry says so."""
    found = [False]
    monkeypatch.setattr(usage, "there", lambda result: not found[-1])
    return found


def test_a_habit_changes_after_three_calls_of_the_other_kind(late: list[bool]) -> None:
    habit, result = Habit(), jax.numpy.ones(3)
    seen = []
    for open_ in map(int, "0110111101000"):
        late.append(bool(open_))
        habit.gave([0, result])
        habit.begins()
        seen.append(habit.in_flight)
    assert seen == [False] * 6 + [True] * 6 + [False]


def test_a_result_that_nobody_holds_was_waited_for() -> None:
    habit = Habit()
    for _ in range(5):
        habit.gave([jax.numpy.ones(3) + 1])
        assert habit.begins()
    assert not habit.in_flight


def test_a_caller_who_holds_results_that_are_there_at_once_does_not_wait(late: list[bool]) -> None:
    habit, kept = Habit(), list[jax.Array]()
    for i in range(20):
        late.append(habit.in_flight)  # as soon as calls in flight have an executable that is not through at once
        habit.begins(through=True)
        assert habit.in_flight == (i >= usage.HELD + usage.CHANGE - 1)
        kept.append(jax.numpy.ones(3) + i)
        habit.gave([kept[-1]])


def test_a_caller_who_holds_results_and_waits_for_them_waits(late: list[bool]) -> None:
    habit, kept, seen = Habit(), list[jax.Array](), list[bool]()
    for i in range(300):  # as soon as an executable is in use that is not through at once, its results are there
        habit.begins(through=not habit.in_flight)
        seen.append(habit.in_flight)
        kept.append(jax.numpy.ones(3) + i)
        habit.gave([kept[-1]])
    first = usage.HELD + 2 * usage.CHANGE
    assert any(seen[:first]) and not any(seen[first : first + usage.PAUSE])
    assert sum(seen) <= 4 * usage.CHANGE  # it is tried again ever more seldom


class Loop:
    """A caller's loop whose turns take as many seconds as a test says; `slow` with jax.jit, `fast` with the plan."""

    def __init__(self, trial: Trial, clock: list[float]):
        self.trial, self.clock, self.plain = trial, clock, list[bool]()

    def turns(self, count: int, seconds: Callable[[bool, int], float], waited: bool = True) -> str:
        for i in range(count):
            plain = self.trial.plain(waited)
            self.plain.append(plain)
            self.clock[0] += seconds(plain, i)
        return self.trial.verdict


def loop(alone: float) -> Loop:
    clock = [100.0]
    return Loop(Trial(alone, lambda: clock[0]), clock)


ALL = FIRST + BLOCKS * BLOCK * MOST_PAIRS + 1


def test_a_loop_that_is_faster_than_jit_alone_needs_no_call_of_it() -> None:
    found = loop(alone=1.0)
    assert found.turns(ALL, lambda plain, i: 0.4) == "plan" and not any(found.plain)


def test_a_loop_that_takes_what_it_took_before_needs_no_call_of_jit() -> None:
    clock = [100.0]
    found = Loop(Trial(1.0, lambda: clock[0], sure=0.8), clock)
    assert found.turns(ALL, lambda plain, i: 0.75) == "plan" and not any(found.plain)


def test_a_loop_that_is_far_faster_than_the_plan_was_is_compared() -> None:
    """Both were measured while something else went on: neither number tells which is faster."""
    clock = [100.0]
    found = Loop(Trial(20.0, lambda: clock[0], sure=15.0, planned=14.0), clock)
    assert found.turns(ALL, lambda plain, i: 0.06 if plain else 0.09) == "jit" and any(found.plain)
    found = Loop(Trial(20.0, lambda: clock[0], sure=15.0, planned=14.0), clock)
    assert found.turns(ALL, lambda plain, i: 5.0) == "plan" and not any(found.plain)


def test_what_jit_took_beside_a_planning_is_not_trusted() -> None:
    found = loop(alone=1.6)  # the plan looks clearly faster than that, and is not
    assert found.turns(ALL, lambda plain, i: 0.9 if plain else 1.0) == "jit"


@pytest.mark.parametrize(("plan", "verdict"), [(0.8, "plan"), (1.3, "jit")])
def test_two_clear_pairs_are_enough(plan: float, verdict: str) -> None:
    found = loop(alone=1.0)
    assert found.turns(ALL, lambda plain, i: 1.0 if plain else plan) == verdict
    assert sum(found.plain) == usage.CLEAR_PAIRS * BLOCK


def test_two_clear_pairs_that_disagree_are_not_enough() -> None:
    found = loop(alone=0.1)
    turn = lambda plain, i: 1.0 if plain else 0.8 if i < FIRST + BLOCKS * BLOCK else 1.3
    assert found.turns(FIRST + 2 * BLOCKS * BLOCK + 1, turn) == "" and len(found.trial.pairs) == usage.CLEAR_PAIRS


@pytest.mark.parametrize(("plan", "jit", "verdict"), [(1.1, 1.0, "jit"), (1.0, 1.1, "plan")])
def test_both_take_blocks_of_calls_in_turn(plan: float, jit: float, verdict: str) -> None:
    found = loop(alone=0.1)  # the caller's own work is most of the loop
    assert found.turns(ALL, lambda plain, i: jit if plain else plan) == verdict
    assert 0 < sum(found.plain) <= 4 * BLOCK, "four pairs agree"
    assert found.trial.medians() == pytest.approx((plan, jit))
    turns = [found.plain[i] for i in range(FIRST, FIRST + 2 * BLOCKS * BLOCK, BLOCK)]
    assert not any(found.plain[:FIRST]) and turns == [False, True, False, False, False, False, True, False]


def test_most_calls_that_are_compared_have_the_plan() -> None:
    """Who takes the median of them sees what the plan takes."""
    found = loop(alone=0.1)
    while not found.turns(1, lambda plain, i: 1.0 if plain else 0.9):
        pass
    seen = [1.0 if plain else 0.9 for plain in found.plain]
    assert np.median(seen) == 0.9 and np.mean(seen) < 0.925


def test_a_loop_of_noise_decides_nothing() -> None:
    found = loop(alone=0.1)
    even = lambda i: (i - FIRST) // (BLOCKS * BLOCK) % 2 == 0
    assert found.turns(ALL, lambda plain, i: 1.0 + 0.2 * (plain == even(i))) == "open"


def test_calls_that_nobody_waits_for_are_not_compared() -> None:
    found = loop(alone=0.1)
    assert found.turns(3 * ALL, lambda plain, i: 1.0 + plain, waited=False) == "open" and not found.trial.pairs


def test_calls_of_another_thread_are_not_compared() -> None:
    found = loop(alone=1.0)
    found.turns(1, lambda plain, i: 1.0)
    thread = threading.Thread(target=found.turns, args=(ALL, lambda plain, i: 0.1))
    thread.start()
    thread.join()
    assert found.trial.verdict == ""


def looked(guard: Guard, clock: list[float], calls: int, seconds: float, waited: bool = True) -> list[int]:
    """Makes calls; the numbers of those at which the guard has found the loop too slow."""
    found = []
    for i in range(calls):
        if guard.looks() and guard.slow(waited):
            found.append(i)
        clock[0] += seconds
    return found


def test_a_guard_looks_at_some_calls_and_tells_when_the_loop_is_slow() -> None:
    clock = [0.0]
    guard = Guard(1.0, EVERY, lambda: clock[0])
    assert not looked(guard, clock, 3 * EVERY, 0.9)
    assert looked(guard, clock, EVERY, 1.1) == [WINDOW - 2], "at the end of its look"
    assert not looked(guard, clock, EVERY, 1.1, waited=False), "of calls in flight it knows nothing"


@pytest.mark.usefixtures("own_cache")
def test_a_plan_that_has_won_is_compared_again_when_the_loop_gets_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    monkeypatch.setattr(usage, "DOUBTED", 0.0)  # the seconds are made up
    monkeypatch.setattr(contest, "times", lambda s, candidates: dict.fromkeys(candidates, 1.0) | {"host": 0.5})
    monkeypatch.setattr(bursts, "_in_flight", fitting("host"))
    fast = co(dense, W, strategy="auto")
    calls = lambda many: [jax.block_until_ready(fast(X)) for _ in range(many)]
    calls(FIRST + BLOCK + 2)
    found = fast.session()
    assert found.choice.trial is None and found.choice.guard is not None and found.choice.guard.every == EVERY
    found.choice.guard = Guard(1e-9, EVERY)
    calls(EVERY + WINDOW)
    assert found.choice.guard.every == 2 * EVERY, "it was compared once more"


def session() -> tuple[Callable[[jax.Array], jax.Array], Session]:
    """A function whose plan runs on the host half."""
    fast = co(dense, W, strategy="host")
    fast(X)
    found = fast.session()
    assert isinstance(found, Session) and found.current.lowered is not None
    return fast, found


def plain_in_flight(found: Session) -> Executable:
    plain = found.planner.plain
    found.monitor.current = dataclasses.replace(found.current, in_flight=plain)
    return plain


def test_calls_in_flight_take_their_own_plan(late: list[bool]) -> None:
    fast, found = session()
    own, plain = found.current, plain_in_flight(found)
    before = own.lowered.segments[0].segment.calls if own.lowered else 0
    late.append(True)
    outs = [fast(X) for _ in range(6)]
    assert found.takes() is plain
    late.append(False)
    want = oracle(dense, W, X)
    assert all(error(out, want) < 1e-5 for out in outs)
    ran = (own.lowered.segments[0].segment.calls if own.lowered else 0) - before
    assert 0 < ran < 6, "the first ones take the plan for callers who wait"
    for _ in range(4):
        jax.block_until_ready(fast(X))
    assert found.takes() is found.current and not found.plain


@pytest.mark.parametrize(("plan", "verdict"), [(1.3, "jit"), (0.7, "plan")])
def test_calls_in_flight_are_compared_by_many_together(plan: float, verdict: str) -> None:
    """Bursts of which only the last call waits; the first ones of a block still wait for the other executable's."""
    clock, ends = [100.0], [0.0]  # now, and when the device is through
    found = Loop(FlowTrial(0.1, lambda: clock[0]), clock)

    def turn(plain: bool, i: int) -> float:
        ends[0] = max(ends[0], clock[0]) + (1.0 if plain else plan)
        return 0.01 if i % 30 else ends[0] - clock[0]

    calls = FIRST + 2 * usage.FLOW_BLOCK * MOST_PAIRS + 1
    assert found.turns(calls, turn, waited=False) == verdict
    assert found.trial.medians() == pytest.approx((plan, 1.0), rel=0.25)


@pytest.mark.parametrize(("gain", "verdict"), [(0.01, "jit"), (0.05, "plan")])
def test_calls_in_flight_have_a_plan_where_it_gains(gain: float, verdict: str) -> None:
    """Pairs that disagree end in time, and not with a plan that gains nothing."""
    clock = [100.0]
    found = Loop(FlowTrial(0.1, lambda: clock[0]), clock)
    pair = lambda i: max(i - FIRST, 0) // (2 * usage.FLOW_BLOCK)
    turn = lambda plain, i: 1.0 if plain else 1.01 if pair(i) == 0 else 1.0 - gain
    calls = FIRST + 2 * usage.FLOW_BLOCK * usage.FLOW_PAIRS + 1
    assert found.turns(calls, turn, waited=False) == verdict
    assert len(found.trial.pairs) == usage.FLOW_PAIRS


def test_what_callers_do_between_bursts_does_not_count() -> None:
    """Bursts of ten, all of which are waited for; behind some that the plan took the caller does something else."""
    clock, burst = [100.0], 10
    trial = FlowTrial(0.1, lambda: clock[0])
    for i in range(FIRST + 2 * usage.FLOW_BLOCK * usage.FLOW_PAIRS + 1):
        plain = trial.plain(waited=i % burst == 0)
        last, pause = (i + 1) % burst == 0, not plain and i % (4 * burst) == 4 * burst - 1
        clock[0] += (burst * (1.0 if plain else 0.7) if last else 0.0) + 20.0 * pause
    assert trial.verdict == "plan"
    assert trial.medians() == pytest.approx((0.7, 1.0), rel=0.01)


@pytest.mark.parametrize("burst", [3, 10, 30])
@pytest.mark.parametrize(("plan", "verdict"), [(1.3, "jit"), (0.7, "plan")])
def test_long_calls_in_flight_are_compared_in_blocks_as_short_as_a_caller_allows(
    burst: int, plan: float, verdict: str
) -> None:
    """Bursts that begin before the last one's end, of calls of a second: fewer calls have the slower executable."""
    clock, ends, counts = [100.0], [0.0], [0, 0]
    trial = FlowTrial(1.0, lambda: clock[0])
    for i in range(2000):
        trial.holds(i % burst)
        plain = trial.plain(waited=i % burst == 0)
        if trial.verdict:
            break
        counts[plain] += 1
        ends[0] = max(ends[0], clock[0]) + (1.0 if plain else plan)
        clock[0] += 0.01 if (i + 1) % burst else ends[0] - clock[0]
    assert trial.verdict == verdict and trial.medians() == pytest.approx((plan, 1.0), rel=0.1)
    assert counts[1] <= usage.CLEAR_PAIRS * max(3 * (burst + 2), usage.LONG_BLOCK) and trial.dropped >= burst


def test_short_calls_in_flight_and_callers_who_keep_all_results_have_long_blocks() -> None:
    for trial, held in ((FlowTrial(1e-3), 3), (FlowTrial(1.0), 32)):
        trial.holds(held)
        assert (trial.block, trial.dropped) == (FLOW_BLOCK, usage.FLOW_DROPPED)


def test_how_many_results_a_caller_holds() -> None:
    habit, kept = Habit(), [jax.numpy.ones(3) + i for i in range(5)]
    for x in kept:
        habit.gave([x])
    habit.gave([jax.numpy.ones(3) + 9])
    assert habit.held == 5
    del kept[1:], x
    assert habit.held == 1


def test_a_comparison_of_calls_in_flight_ends_where_callers_wait() -> None:
    trial = FlowTrial(0.1)
    trial.plain(False)
    for _ in range(usage.MOST_OTHERS):
        trial.waits()
    assert trial.begun and not trial.verdict
    trial.waits()
    assert trial.verdict == "open"


def test_one_whole_burst_tells_what_a_call_takes() -> None:
    """Bursts of thirty, of which a block holds two or three ends."""
    clock, burst = [100.0], 30
    trial = FlowTrial(0.1, lambda: clock[0])
    for i in range(FIRST + 2 * usage.FLOW_BLOCK * usage.FLOW_PAIRS + 1):
        plain = trial.plain(waited=i % burst == 0)
        clock[0] += burst * (1.0 if plain else 0.9) if (i + 1) % burst == 0 else 0.0
    assert trial.verdict == "plan"
    assert trial.medians() == pytest.approx((0.9, 1.0), rel=0.01)


@pytest.mark.parametrize("apart", [True, False])
def test_calls_in_flight_leave_a_plan_that_makes_them_slower(
    late: list[bool], monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """Callers who wait keep what they have."""
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    fast = co(dense, W, strategy="auto")
    fast(X)
    found = fast.session()
    host = found.planner.executable(Plan("host", host_placements(found.graph), found.graph.key))
    told = dataclasses.replace(host.plan, measured={"jit": 0.01, "host": 0.005})
    host = dataclasses.replace(host, plan=told)
    plain = dataclasses.replace(
        found.planner.plain, plan=dataclasses.replace(found.planner.plain.plan, measured=told.measured)
    )
    found.monitor.current = dataclasses.replace(plain, in_flight=host) if apart else host
    found.choice._compiled, found._adapt, fast._rest = True, not apart, None
    with found.monitor.planning():  # it has just ended: none begins behind these calls
        pass
    assert found.takes() is found.current
    assert found.choice.flow is not None and not found.choice.flow.begun
    trial = found.choice.trial
    late.append(True)
    jax.block_until_ready([fast(X) for _ in range(8)])
    if found.choice.flow is not None:
        assert found.choice.flow.begun
        found.choice.flow.verdict = "jit"
    outs = [fast(X) for _ in range(2)]
    assert all(error(out, oracle(dense, W, X)) < 1e-5 for out in outs)
    now = found.current
    assert (now.in_flight is None and now.lowered is None) if apart else now.in_flight is found.planner.plain
    assert found.choice.takes().lowered is None and found.choice.flow is None
    assert found.choice.trial is trial and (trial is None) is apart, "what is known of calls that wait stays"
    outs = [fast(X) for _ in range(2 * STEADY)]
    assert fast._rest is not None, "calls in flight need no look any more"
    assert all(error(out, oracle(dense, W, X)) < 1e-5 for out in outs)


@pytest.mark.parametrize("bound", [True, False])
def test_callers_who_wait_for_plain_jit_are_looked_at_now_and_then(late: list[bool], bound: bool) -> None:
    function = xcoexec.jit(lambda w, x: dense(w, x), strategy="host", wait=True)
    weights = jax.numpy.asarray(W)
    fast: Any = function.bind(weights) if bound else functools.partial(function, weights)
    asked: Any = fast if bound else function
    fast(X)
    found = fast.session() if bound else function._planned((weights, X), {})
    host, plain = found.current, found.planner.plain
    measured = dataclasses.replace(plain.plan, measured={"jit": PLAIN_SECONDS / 20})
    found.monitor.current = dataclasses.replace(plain, plan=measured, in_flight=host)
    calls = lambda many: [jax.block_until_ready(fast(X)) for _ in range(many)]
    found.gate.tell()
    calls(STEADY)
    assert asked._rest is not None and not found.settled
    assert found.gate.passes(), "the news were heard"
    calls(19)
    assert asked._rest is not None
    calls(1)
    assert asked._rest is None, "a call is looked at"
    late.append(True)
    outs = [fast(X) for _ in range(2 * usage.CHANGE)]
    assert found.takes() is host, "calls in flight take their plan"
    assert all(error(out, oracle(dense, W, X)) < 1e-5 for out in outs)
    late.append(False)
    calls(2 * STEADY + usage.CHANGE)
    assert asked._rest is not None, "who waits again has plain jax.jit without a look"


def test_a_plan_that_loses_in_use_goes_and_comes_back_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    fast, found = session()
    exe = found.current
    trial = Trial(1.0)
    trial.pairs, trial.verdict = [(2.0, 1.0)] * 4, "jit"
    found.choice.trial = trial
    found.choice.decide(exe, trial)
    found.choice.decide(exe, trial)  # another thread, for the same calls
    assert found.plain and not found.settled and "no plan beats jax.jit in use" in found.plan().chosen
    assert found.monitor.past[0] is exe and "2000.000 ms" in found.history[-1]
    assert error(fast(X), oracle(dense, W, X)) < 1e-5
    found.monitor.current, found.choice.trial = exe, trial
    found.choice.decide(exe, trial)
    assert found.settled, "the second time it is for good"
    assert error(fast(X), oracle(dense, W, X)) < 1e-5


def test_a_plan_that_has_lost_for_good_is_not_remembered(monkeypatch: pytest.MonkeyPatch, own_cache: None) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    _, found = session()
    attempt = found.planner._attempt(lambda *step: None)
    name = stages.record_name(attempt)
    store(REMEMBERED, name, {"waiting": fields(found.plan()), "in_flight": None, "whole": True})
    assert stages.remembered(name, found.graph) is not None
    trial = Trial(1.0)
    trial.pairs, trial.verdict = [(2.0, 1.0)] * 4, "jit"
    exe = found.current
    for kept in (True, False):
        found.monitor.current, found.choice.trial = exe, trial
        found.choice.decide(exe, trial)
        assert (stages.remembered(name, found.graph) is not None) is kept
    found.planner.forget()  # once more does no harm


@pytest.mark.parametrize(
    ("verdict", "planned", "kept"), [("jit", 5.0, True), ("jit", 0.9, False), ("plan", 5.0, True), ("plan", 0.9, False)]
)
def test_what_calls_took_in_use_is_remembered(
    verdict: str, planned: float, kept: bool, monkeypatch: pytest.MonkeyPatch, own_cache: None
) -> None:
    """Where what was measured before took longer, on a busier machine; a loop that does more than call says nothing."""
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    _, found = session()
    plan = dataclasses.replace(found.plan(), measured={"jit": planned, "edgenn": 9.0})
    found.monitor.current = exe = dataclasses.replace(found.current, plan=plan)
    found.planner.keep(exe)
    trial = Trial(1.0)
    trial.pairs, trial.verdict = [(2.0, 3.0)] * 4, verdict
    found.choice.trial = trial
    found.choice.decide(exe, trial)
    now = stages.remembered(stages.record_name(found.planner._attempt(lambda *step: None)), found.graph)
    assert now is not None
    assert now.waiting.measured == (dict(plan.measured) | ({"jit": 3.0, plan.strategy: 2.0} if kept else {}))


def test_a_loss_in_use_leaves_the_plan_for_calls_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    fast, found = session()
    exe = dataclasses.replace(found.current, in_flight=found.current)
    found.monitor.current = exe
    trial = Trial(1.0)
    trial.pairs, trial.verdict = [(2.0, 1.0)] * 4, "jit"
    found.choice.trial = trial
    found.monitor.current = dataclasses.replace(exe)
    found.choice.decide(exe, trial)
    assert not found.plain and not found.history, "what is in use now was not compared"
    found.monitor.current, found.choice.trial = exe, trial
    found.choice.decide(exe, trial)
    assert found.current.lowered is None and found.current.in_flight is exe.in_flight and not found.plain
    assert error(fast(X), oracle(dense, W, X)) < 1e-5


def test_behind_a_loss_in_use_the_plan_for_calls_in_flight_takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who holds results that are there at once seems to wait, and may need it; it is compared like any other plan."""
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    fast, found = session()
    waits, flows = found.current, found.planner.executable(dataclasses.replace(found.plan(), programs=2))
    assert flows.lowered is not None and flows.lowered is not waits.lowered
    found.monitor.current = exe = dataclasses.replace(waits, in_flight=flows)
    trial = Trial(1.0)
    trial.pairs, trial.verdict = [(2.0, 1.0)] * 4, "jit"
    found.choice.trial = trial
    found.choice.decide(exe, trial)
    assert found.current.lowered is flows.lowered and found.current.in_flight is None
    assert "2000.000 ms with 'host', 1000.000 ms without" in found.plan().chosen and found.monitor.past[0] is exe
    assert error(fast(X), oracle(dense, W, X)) < 1e-5
    later = found.current
    found.choice.trial = trial = Trial(1.0)
    trial.pairs, trial.verdict = [(2.0, 1.0)] * 4, "jit"
    found.choice.decide(later, trial)
    assert found.plain and not found.settled, "one loss of a plan with nothing behind it is not for good"
    assert error(fast(X), oracle(dense, W, X)) < 1e-5


def test_nobody_waits_for_a_compilation_of_plain_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    _, found = session()
    measured = dataclasses.replace(found.current.plan, measured={"jit": 1.0})
    monkeypatch.setattr(found.planner, "strategy", "auto")
    for ready in (False, True):
        found.monitor.current = dataclasses.replace(found.current, plan=measured)
        monkeypatch.setattr(type(found.planner), "plain_ready", property(lambda self, ready=ready: ready))
        found.takes()
        assert (found.choice.trial is not None) is ready


def test_results_that_cannot_tell_whether_they_are_there() -> None:
    habit = Habit()
    habit.gave([jax.random.key(0)])
    assert habit.begins()
    gone = jax.numpy.ones(3) + 1
    gone.delete()
    assert usage.there(gone)

    class Between:
        """Given away by another thread between the two looks."""

        def is_deleted(self) -> bool:
            return False

        def is_ready(self) -> bool:
            raise RuntimeError("Array has been deleted.")

    assert usage.there(Between())  # type: ignore[arg-type]


def test_pauses_after_losses_double() -> None:
    _, found = session()
    exe, monitor = found.current, found.monitor
    pauses = []
    for _ in range(3):
        monitor.lost(exe, found.planner.plain)
        pauses.append(monitor._quick)
        monitor.current = exe
    assert pauses == [pauses[0], 2 * pauses[0], 4 * pauses[0]]


def test_only_the_executable_that_lost_goes() -> None:
    _, found = session()
    exe, other = found.current, dataclasses.replace(found.current)
    found.monitor.current = other
    found.monitor.lost(exe, found.planner.plain)
    assert found.monitor.current is other


def fitting(name: str) -> Callable[..., tuple[str, dict[str, float]]]:
    """A comparison of calls in flight that this one wins."""
    return lambda s, candidates, best, seconds: (name, {"jit": 1.0, "host": 2.0})


@pytest.mark.usefixtures("own_cache")
def test_both_plans_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    wins = lambda s, candidates: dict.fromkeys(candidates, 1.0) | {"host": 0.5}
    monkeypatch.setattr(contest, "times", wins)
    monkeypatch.setattr(bursts, "_in_flight", fitting("jit"))
    for again in ("", " (remembered)"):
        fast = co(dense, W, strategy="auto")
        fast(X)
        found = fast.session()
        exe = found.current
        assert exe.plan.engine == "xco" and exe.plan.chosen.endswith(f"jit while calls are in flight{again}")
        assert exe.in_flight is not None and exe.in_flight.plan.engine == "jit"
        assert exe.in_flight.plan.measured == {"jit": 1.0, "host": 2.0}
        monkeypatch.setattr(contest, "contest", None)


@pytest.mark.usefixtures("own_cache")
def test_real_calls_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever wins, every result is right and the comparison ends."""
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    monkeypatch.setattr(contest, "times", lambda s, candidates: dict.fromkeys(candidates, 1e-9) | {"host": 9e-10})
    monkeypatch.setattr(bursts, "_in_flight", fitting("host"))
    fast, want = co(dense, W, strategy="auto"), oracle(dense, W, X)
    for _ in range(FIRST + BLOCKS * SHORT_BLOCK * MOST_PAIRS + 2):  # calls of 1e-9 s are compared in these blocks
        assert error(jax.block_until_ready(fast(X)), want) < 1e-5
    found = fast.session()
    assert found.choice.trial is None and found.history == [found.plan().chosen] * found.plain


def ended(rests: bool) -> Trial:
    """A comparison of short calls: a look makes one of plain jax.jit longer than the plan's, all of which have one."""
    now, plan, jit, look = [0.0], 1.2e-4, 1.0e-4, 0.3e-4
    trial = Trial(jit, lambda: now[0])
    for _ in range(10_000):
        if trial.verdict:
            return trial
        plain = trial.plain(waited=True)
        now[0] += jit + look if plain else plan
        if plain and rests and (count := trial.spare):
            trial.rests(lambda count=count: count)
            now[0] += count * jit
    raise AssertionError("the comparison does not end")


def test_calls_that_are_compared_cost_what_they_will_cost() -> None:
    """Plain jax.jit's calls need no look when they have won, so most of a block have none while they are compared."""
    with_looks, without = ended(rests=False), ended(rests=True)
    assert with_looks.verdict == "plan" and without.verdict == "jit"
    assert without.medians() == pytest.approx((1.2e-4, 1.0e-4), rel=0.02)


def test_only_the_last_calls_of_a_plain_block_go_by_without_a_look() -> None:
    now = [0.0]
    trial, spare = Trial(1e-4, lambda: now[0]), []
    for _ in range(FIRST + 4 * SHORT_BLOCK):
        plain = trial.plain(waited=True)
        now[0] += 1e-4
        spare.append(trial.spare)
        assert plain or not spare[-1]
    first = FIRST + SHORT_BLOCK  # of plain jax.jit's first block
    assert spare[:first] == [0] * first and spare[first : first + 3] == [0, SHORT_BLOCK - 2, SHORT_BLOCK - 3]
    assert spare[first + SHORT_BLOCK - 1] == 0 == spare[first + SHORT_BLOCK]


def test_calls_that_did_not_go_by_are_not_counted() -> None:
    """The loop went back to looks before its time: the first two calls of a block and one more took what they took."""
    now = [0.0]
    trial = Trial(1e-4, lambda: now[0])
    while not trial.spare:
        trial.plain(waited=True)
        now[0] += 1e-4
    trial.rests(lambda: 1)
    now[0] += 1e-4
    before = trial.spare
    trial.plain(waited=True)
    assert before == 0 and trial._samples[True] == pytest.approx([1e-4])


def test_long_calls_are_compared_in_short_blocks() -> None:
    assert (Trial(0.1).block, Trial(1e-4).block, FlowTrial(1e-4).block) == (BLOCK, SHORT_BLOCK, FLOW_BLOCK)
