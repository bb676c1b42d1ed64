"""Drift is noticed, noise is not; the swap loses no call and gives no wrong result."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.ir.plan import Plan
from xcoexec.lowering.executable import Executable
from xcoexec.session import adaptive
from xcoexec.session import gate as gates
from xcoexec.session.adaptive import Monitor

from .support import array, co, error, oracle, until


def _exe(name: str) -> Executable:
    return Executable(Plan(name, ()), lambda leaves: [name], None)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(adaptive, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(adaptive, "SETTLE_SECONDS", 0.1)


def _idle(m: Monitor, entries: int) -> None:
    """Waits until a planning has ended, after which the history has so many entries."""
    until(lambda: len(m.history) >= entries and not m._busy.locked())
    assert len(m.history) == entries


def test_lasting_drift_plans_again() -> None:
    m = Monitor(_exe("a"), lambda: _exe("b"))
    for s in (1e-3, 1e-3, 2e-3, 2e-3, 2e-3):
        m.look(s)
    _idle(m, 2)
    assert m.current.plan.strategy == "b" and "planning again" in m.history[0]


def test_what_was_just_planned_is_left_alone_for_a_while() -> None:
    """Where plain jax.jit has won, nothing is planned behind its calls at once."""
    clock = Clock()
    m = Monitor(_exe("a"), lambda: _exe("b"), clock=clock)
    with pytest.raises(KeyError), m.planning():
        clock.now += 100.0
        raise KeyError
    m.again()
    assert not m.history
    clock.now += adaptive.RETRY_SECONDS
    m.again()
    until(lambda: m.current.plan.strategy == "b")
    assert "plain jax.jit has been in use for a while" in m.history[0]


def test_noise_does_not() -> None:
    m = Monitor(_exe("a"), lambda: _exe("b"))
    for s in (1e-3, 1.2e-3, 3e-3, 1e-3, 3e-3, 3e-3, 0.9e-3, 1.3e-3) * 5:
        m.look(s)
    assert m.history == [] and m.current.plan.strategy == "a"


@pytest.mark.parametrize(
    ("usual", "now", "plans"),
    [
        (1e-5, 5e-5, False),  # five times as long, and less than LEAST_SECONDS more
        (1e-5, 1.05e-4, False),
        (1e-5, 1.15e-4, True),
        (1.3e-4, 1e-5, True),  # faster counts too
        (1e-3, 1.3e-3, False),  # more than LEAST_SECONDS, and less than DRIFT
        (1e-3, 1.4e-3, True),
    ],
)
def test_a_change_must_be_a_large_share_and_worth_the_planning(usual: float, now: float, plans: bool) -> None:
    m = Monitor(_exe("a"), lambda: _exe("b"))
    for s in (usual, *[now] * (adaptive.PATIENCE - 1)):
        m.look(s)
    assert m.history == []
    m.look(now)
    if plans:
        _idle(m, 2)
    assert bool(m.history) == plans and m.current.plan.strategy == ("b" if plans else "a")


def test_two_plannings_have_a_pause_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "PAUSE_SECONDS", 2.0)
    clock, made = Clock(), iter("bc")
    m = Monitor(_exe("a"), lambda: _exe(next(made)), clock=clock)

    def drifts() -> None:
        for s in (1e-3, *[2e-3] * adaptive.PATIENCE):
            m.look(s)

    drifts()
    _idle(m, 2)
    clock.now += 1.9
    drifts()
    assert len(m.history) == 2 and m.current.plan.strategy == "b"
    clock.now += 0.2
    m.look(2e-3)
    _idle(m, 4)
    assert m.current.plan.strategy == "c"


def test_looks_have_calls_and_seconds_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "LOOK_SECONDS", 0.1)
    clock, looks = Clock(), []
    exe = Executable(Plan("a", ()), lambda leaves: [], [])  # type: ignore[arg-type]
    m = Monitor(exe, lambda: exe, clock=clock)
    monkeypatch.setattr(adaptive, "_segment_seconds", lambda e: looks.append(e))
    for _ in range(adaptive.EVERY - 1):
        m.tick()
    assert not looks
    m.tick()
    assert len(looks) == 1
    for _ in range(3 * adaptive.EVERY):
        m.tick()
    assert len(looks) == 1  # no time has passed
    clock.now += 0.2
    for _ in range(3 * adaptive.EVERY):
        m.tick()
    assert len(looks) == 2


def test_failed_planning_keeps_the_plan() -> None:
    def broken() -> Executable:
        raise RuntimeError("nothing")

    m = Monitor(_exe("a"), broken)
    for s in (1e-3, 5e-3, 5e-3, 5e-3):
        m.look(s)
    _idle(m, 2)
    assert m.current.plan.strategy == "a" and "failed" in m.history[1]


def test_swap_under_calls() -> None:
    """Four threads call while the plan changes many times: every result is right."""
    f = lambda w, x: jax.nn.relu(x @ w)
    w = array(32, 64)
    plans = [co(f, w, plan=Plan.uniform(p)) for p in (1.0, 0.5, 0.0)]
    xs = [array(8, 32, seed=i) for i in range(4)]
    want = [oracle(f, w, x) for x in xs]
    [p(xs[0]) for p in plans]
    exes = [p.session().current for p in plans]
    compiled = plans[0].session()
    stop, calls = threading.Event(), [0] * 4

    def call(i: int) -> bool:
        good = True
        while not stop.is_set():
            good &= error(compiled.call([xs[i]]), want[i]) < 1e-5
            calls[i] += 1
        return good

    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(call, i) for i in range(4)]
        for k in range(30):
            compiled.monitor.current, before = exes[k % 3], sum(calls)
            until(lambda before=before: sum(calls) > before + 4 or any(r.done() for r in results))
        stop.set()
        assert all(r.result() for r in results) and all(calls)


def test_co_execution_comes_back() -> None:
    """A planning that ends with plain jax.jit is looked at again, after ever longer pauses while nothing changes."""
    made = [_exe("jit"), _exe("jit"), _exe("host")]
    clock = Clock()
    m = Monitor(_exe("a"), lambda: made.pop(0), clock=clock)
    m._planned = clock.now

    def calls() -> None:
        for _ in range(adaptive.EVERY):
            m.tick()

    for k in range(3):
        pause = adaptive.RETRY_SECONDS * 2**k
        clock.now += 0.99 * pause
        calls()
        assert len(m.history) == 2 * k and not m._busy.locked()
        clock.now += 0.02 * pause
        calls()
        _idle(m, 2 * (k + 1))
    assert not made and m.current.plan.strategy == "host" and "measuring again" in m.history[-2]


def test_plain_calls_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    f = lambda w, x: jnp.tanh(x @ w)
    w, x = array(16, 16), array(2, 16)
    fast = co(f, w, strategy="host")
    fast(x)
    compiled = fast.session()
    compiled.monitor.current = Executable(compiled.current.plan, compiled.problem.plain, None)
    before = compiled.monitor._calls
    for _ in range(3):
        assert error(np.asarray(fast(x)), oracle(f, w, x)) < 1e-5
    assert compiled.plain and compiled.monitor._calls == before + 3


def test_a_real_replan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: a bound function whose times seem to drift measures again in the background and goes on."""
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    f = lambda w, x: jax.nn.relu(x @ w)
    w, x = array(64, 128), array(8, 64)
    fast = co(f, w, strategy="host")
    want = oracle(f, w, x)
    fast(x)
    session = fast.session()
    before, was = session.current, session.known_costs
    for s in (1e-3, 9e-3, 9e-3, 9e-3):
        session.monitor.look(s)
    until(lambda: len(session.history) >= 2 and not session.monitor._busy.locked())
    assert "planning again" in session.history[0] and session.history[-1].startswith("plan 'host' ")
    assert not any("failed" in line for line in session.history)
    assert session.known_costs is not None and session.known_costs is not was  # measured anew
    assert session.current is not before and session.current.lowered is not None
    assert error(fast(x), want) < 1e-5


def test_planning_again_has_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's precision context holds for one thread; the thread that plans again must be in it too, or it measures
    another function.
    """
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    seen: list[Any] = []

    def f(w: Any, x: Any) -> Any:
        seen.append(jax.config.jax_default_matmul_precision)
        return jax.nn.relu(x @ w)

    w, x = array(64, 128), array(8, 64)
    with jax.default_matmul_precision("highest"):
        fast = co(f, w, strategy="host")
        fast(x)
    compiled = fast.session()
    compiled.planner.strategy = "auto"
    with ThreadPoolExecutor(1) as pool:
        pool.submit(compiled._again).result()
    assert seen == ["highest"]  # what plans again does not trace again, under whatever settings


def test_what_was_in_use_before_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick steps come at once, the new plan later; what was in use stays at hand."""
    fake = lambda name: Executable(Plan(name, ()), lambda leaves: [name], [name])  # type: ignore[arg-type]
    first, second, third = map(fake, "abc")
    monkeypatch.setattr(adaptive, "SETTLE_SECONDS", 5.0)
    clock = Clock()
    m = Monitor(first, lambda: second, lambda: m.current, lambda: third, clock=clock)
    for s in (1e-3, 1e-3, 2e-3, 2e-3, 2e-3):
        m.look(s)
    until(lambda: m.past == [first])
    for _ in range(4):
        clock.now += 1.2
        time.sleep(0.06)  # the thread looks every 50 ms
    assert m.past == [first] and m.current is second
    until(lambda: setattr(clock, "now", clock.now + 0.3) or m.current is third)
    until(lambda: not m._busy.locked())
    assert m.past == [second, first]
    m.swap(first, 0.0, True)
    assert m.past == [third, second]
    m.keep = 0
    m.swap(second, 0.0, True)
    assert m.past == []


def test_a_measurement_has_the_machine_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that comes meanwhile waits until it is over; while nothing is measured calls go through."""
    monkeypatch.setattr(gates, "HOLD_SECONDS", 600.0)
    gate, measured, order = gates.Gate(), threading.Event(), []
    gate.wait()
    asked = threading.Event()

    def call() -> None:
        asked.set()
        gate.wait()
        order.append(measured.is_set())

    for _ in range(5):
        measured.clear()
        asked.clear()
        with gate.alone():
            caller = threading.Thread(target=call)
            caller.start()
            assert asked.wait(60)
            time.sleep(5e-3)  # one that does not wait is through
            measured.set()
        caller.join(60)
    assert order == [True] * 5


def test_a_measurement_waits_for_the_calls_that_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever shares the cores with one takes twice as long; for how long it waits is bounded."""
    monkeypatch.setattr(gates, "END_SECONDS", 600.0)
    gate, inside, over, order = gates.Gate(active=True), threading.Event(), threading.Event(), []

    def call(leaves: list[str]) -> list[str]:
        inside.set()
        assert over.wait(60)
        order.append("call")
        return leaves

    def measure() -> None:
        with gate.alone():
            order.append("measurement")

    caller = threading.Thread(target=gate.through, args=(call, ["x"]))
    caller.start()
    assert inside.wait(60)
    measuring = threading.Thread(target=measure)
    measuring.start()
    time.sleep(0.01)  # a measurement that does not wait is over
    over.set()
    caller.join(60)
    measuring.join(60)
    assert order == ["call", "measurement"]
    monkeypatch.setattr(gates, "END_SECONDS", 0.01)
    over.clear()
    inside.clear()
    caller = threading.Thread(target=gate.through, args=(call, ["x"]))
    caller.start()
    assert inside.wait(60)
    measure()
    assert order[-1] == "measurement", "it does not wait for ever"
    over.set()
    caller.join(60)


def test_a_measurement_waits_for_results(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([False, False, True, True])
    monkeypatch.setattr(gates, "there", lambda array: next(looks))
    gate, result = gates.Gate(active=True), jnp.zeros(3)
    gate.gave([1.0, result])
    with gate.alone():
        assert next(looks), "all looks but the last one were needed"
    del result
    with gate.alone():
        assert next(looks, None) is None, "a result that nobody holds is not looked at"


def test_calls_are_not_held_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "HOLD_SECONDS", 0.01)
    gate = gates.Gate()
    with gate.alone():
        through = threading.Thread(target=gate.wait, daemon=True)
        through.start()
        through.join(60)
        assert not through.is_alive()


def test_planning_outlives_no_interpreter() -> None:
    """A thread that is killed inside XLA aborts the process: also begun from a daemon's thread, planning is waited for
    at exit.
    """
    seen: list[bool] = []
    m = Monitor(_exe("a"), lambda: (seen.append(threading.current_thread().daemon), _exe("b"))[1])

    def call() -> None:
        for s in (1e-3, 5e-3, 5e-3, 5e-3):
            m.look(s)

    threading.Thread(target=call, daemon=True).start()
    until(lambda: bool(seen))
    assert seen == [False]
