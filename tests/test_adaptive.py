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
from xcoexec.session.adaptive import Monitor

from .support import array, co, error, oracle


def _exe(name: str) -> Executable:
    return Executable(Plan(name, ()), lambda leaves: [name], None)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(adaptive, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(adaptive, "SETTLE_SECONDS", 0.1)


def _wait(done: Any) -> None:
    end = time.monotonic() + 20
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    assert done()


def test_lasting_drift_plans_again() -> None:
    m = Monitor(_exe("a"), lambda: _exe("b"))
    for s in (1e-3, 1e-3, 2e-3, 2e-3, 2e-3):
        m.look(s)
    _wait(lambda: len(m.history) == 2)
    assert m.current.plan.strategy == "b" and "planning again" in m.history[0]


def test_noise_does_not() -> None:
    m = Monitor(_exe("a"), lambda: _exe("b"))
    for s in (1e-3, 1.2e-3, 3e-3, 1e-3, 3e-3, 3e-3, 0.9e-3, 1.3e-3) * 5:
        m.look(s)
    for s in (1e-5, 1e-5, 5e-5, 5e-5, 5e-5, 5e-5):
        Monitor(_exe("a"), lambda: _exe("b")).look(s)
    assert m.history == [] and m.current.plan.strategy == "a"


def test_failed_planning_keeps_the_plan() -> None:
    def broken() -> Executable:
        raise RuntimeError("nothing")

    m = Monitor(_exe("a"), broken)
    for s in (1e-3, 5e-3, 5e-3, 5e-3):
        m.look(s)
    _wait(lambda: len(m.history) == 2)
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
    stop = threading.Event()

    def call(i: int) -> bool:
        good = True
        while not stop.is_set():
            good &= error(compiled.call([xs[i]]), want[i]) < 1e-5
        return good

    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(call, i) for i in range(4)]
        for k in range(150):
            compiled.monitor.current = exes[k % 3]
            time.sleep(0.002)
        stop.set()
        assert all(r.result() for r in results)


def test_co_execution_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planning that ends with plain jax.jit is looked at again, after ever longer pauses while nothing changes."""
    made = [_exe("jit"), _exe("jit"), _exe("host")]
    monkeypatch.setattr(adaptive, "RETRY_SECONDS", 0.02)
    m = Monitor(_exe("a"), lambda: made.pop(0))
    pauses = []
    while made:
        pauses.append(m._retry)
        left = len(made)
        for _ in range(2000):
            for _ in range(adaptive.EVERY):
                m.tick()
            if len(made) < left:
                break
            time.sleep(0.001)
        _wait(lambda left=left: len(m.history) == 2 * (4 - left))
    assert pauses == [0.02, 0.04, 0.08]
    assert m.current.plan.strategy == "host" and "measuring again" in m.history[-2]


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
    monitor = fast.session().monitor
    for s in (1e-3, 9e-3, 9e-3, 9e-3):
        monitor.look(s)
    _wait(lambda: len(fast.history()) == 2)
    assert error(fast(x), want) < 1e-5
    assert np.isfinite(np.asarray(fast(x))).all()


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
    monkeypatch.setattr(adaptive, "SETTLE_SECONDS", 0.5)
    m = Monitor(first, lambda: second, lambda: m.current, lambda: third)
    began = time.monotonic()
    for s in (1e-3, 1e-3, 2e-3, 2e-3, 2e-3):
        m.look(s)
    _wait(lambda: m.current is second)
    assert time.monotonic() - began < 0.4 and m.past == [first]
    _wait(lambda: m.current is third)
    assert time.monotonic() - began > 0.5 and m.past == [second, first]
    m._swap(first, 0.0, True)
    assert m.past == [third, second]
    m.keep = 0
    m._swap(second, 0.0, True)
    assert m.past == []


def test_a_measurement_has_the_machine_for_itself() -> None:
    gate = adaptive.Gate()
    inside, stop, seen = threading.Event(), threading.Event(), []

    def calls() -> None:
        while not stop.is_set():
            gate.wait()
            seen.append(inside.is_set())
            time.sleep(1e-4)

    thread = threading.Thread(target=calls)
    thread.start()
    for _ in range(5):
        with gate.alone():
            time.sleep(2e-3)  # who was past the gate is through
            inside.set()
            time.sleep(1e-2)
            inside.clear()
    stop.set()
    thread.join()
    assert len(seen) > 20 and not any(seen)


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
    _wait(lambda: bool(seen))
    assert seen == [False]
