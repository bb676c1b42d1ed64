"""Functions that begin with what has won in a process before: at their first call, where that is there sooner."""

from __future__ import annotations

import dataclasses
import threading
import types
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import xcoexec
from xcoexec.session import begin, stages
from xcoexec.session.background import submit
from xcoexec.session.choice import PATIENCE_SECONDS
from xcoexec.session.session import Session
from xcoexec.session.usage import SURE, Trial

from .support import error, oracle, until

pytestmark = pytest.mark.usefixtures("quick_xla")

RNG = np.random.default_rng(0)
X = jax.numpy.asarray(RNG.standard_normal((1, 37, 41, 61)), np.float32)
W = jax.numpy.asarray(RNG.standard_normal((3, 3, 1, 61)), np.float32)


def depthwise(w: jax.Array, x: jax.Array) -> jax.Array:
    """A layer for which kernels take a small part of XLA:CPU's time, so that its plan wins on a busy machine too."""
    out = jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=x.shape[-1]
    )
    return jax.nn.relu(out) + 1.0


def co(**words: Any) -> Any:
    """Of a function that nobody has jitted yet, as in a process of its own."""
    return xcoexec.jit(types.FunctionType(depthwise.__code__, globals(), "depthwise"), wait=False, **words)


def right(out: jax.Array) -> bool:
    return error(out, oracle(depthwise, W, X)) < 1e-5


@pytest.fixture(autouse=True)
def planned(monkeypatch: pytest.MonkeyPatch, own_cache: None) -> Iterator[Any]:
    """A function that is planned, in the place of a process before; its plan could be had at once."""
    monkeypatch.setattr(begin, "_seconds", lambda session, plain: 0.0)
    fast = co()
    assert right(fast(W, X)) and fast._plain.jitted._cache_size() == 1, "plain jax.jit has answered"
    assert fast.ready(600) and fast.report(W, X).ran == "xco"
    until(lambda: begin.Beginning(trace_of(fast), fast._function.options.threads).with_plan())
    yield fast


def trace_of(fast: Any) -> Any:
    return fast.trace(W, X).jaxpr


def test_the_first_call_is_co_executed_and_nothing_else_is_compiled() -> None:
    fast = co()
    assert right(fast(W, X))
    found = fast._last.current
    assert isinstance(found, Session) and found.current.lowered is not None
    assert found.current.lowered.segments[0].segment.calls > 0 and "(remembered)" in found.plan().chosen
    assert fast._plain.jitted._cache_size() == 0
    assert fast.ready(600) and fast.report(W, X).ran == "xco"


def test_bound_functions_and_inputs_that_are_given_away_too() -> None:
    fast = co().bind(W)
    assert right(fast(X)) and isinstance(fast.session(X), Session) and fast.report().ran == "xco"
    fast = co(donate_argnums=1)
    given = jax.numpy.array(X, copy=True)
    assert right(fast(W, given)) and isinstance(fast._last.current, Session) and given.is_deleted()


def test_other_weights_are_planned_behind_the_calls() -> None:
    fast = co()
    fast(W, X)
    other = 2 * W
    out = fast(other, X)
    assert fast._plain.jitted._cache_size() == 1, "plain jax.jit has answered"
    assert error(out, oracle(depthwise, other, X)) < 1e-5
    assert fast.ready(600) and fast.report(other, X).ran == "xco"


def test_a_plan_that_takes_longer_is_made_behind_the_calls(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "_seconds", lambda session, plain: 2 * plain)
    begin.Beginning(trace_of(planned), planned._function.options.threads).note(planned._last.current, 1.0)
    fast = co()
    assert right(fast(W, X)) and fast._plain.jitted._cache_size() == 1, "plain jax.jit has answered"
    assert fast.ready(600) and fast.report(W, X).ran == "xco"


def test_where_jax_keeps_programs_its_first_call_may_be_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "programs_are_kept", lambda: True)
    fast = co()
    assert right(fast(W, X)) and fast._plain.jitted._cache_size() == 1, "plain jax.jit has answered"
    assert fast.ready(600)


def test_a_plan_that_is_forgotten_is_made_anew(planned: Any) -> None:
    planned._last.current.planner.forget()
    fast = co()
    assert right(fast(W, X)) and fast._plain.jitted._cache_size() == 1, "plain jax.jit has answered"
    assert fast.ready(600) and "(remembered)" not in fast.report(W, X).why


def test_what_does_not_fit_any_more_is_told_and_left_to_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(stages, "_again", broken)
    fast = co()
    with pytest.warns(xcoexec.errors.CoexecWarning, match="no such kernel"):
        assert right(fast(W, X))
    assert fast.report(W, X).ran == "jit" and fast.ready(1)


def test_nothing_waits_while_another_function_is_planned() -> None:
    """The plan is there at once also where the background has much to do."""
    go = threading.Event()
    submit(lambda: go.wait(60) and None)
    try:
        fast = co()
        assert right(fast(W, X)) and fast.report(W, X).ran == "xco"
        assert not fast.ready(0.01), "what follows behind it has to wait"
    finally:
        go.set()
    assert fast.ready(600)


def test_plain_jit_is_compiled_behind_the_calls_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that has not been clearly faster in its caller's loop for a while is compared with jax.jit, for which no
    call waits.
    """
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    fast = co()
    fast(W, X)
    assert fast.ready(600)
    choice = fast._last.current.choice
    now = 0.0
    choice.clock, choice._since = lambda: now, now
    monkeypatch.setattr(choice, "_trial_of", lambda exe: Trial(1e-9))
    choice.seen, choice.trial = fast._last.current.current, Trial(1e-9)
    held = [fast(W, X) for _ in range(60)]
    assert all(map(right, held[::20])) and choice.compiles is not None, "something else may have slowed it down"
    now = 1.1 * PATIENCE_SECONDS
    held = [fast(W, X) for _ in range(60)]
    assert all(map(right, held[::20])) and choice.compiles is None
    until(lambda: choice._compiled)
    count = fast._plain.jitted._cache_size()
    assert right(fast(W, X)) and choice.trial is not None, "it begins anew"
    assert fast._plain.jitted._cache_size() == count


def test_a_plan_that_won_clearly_and_takes_what_it_took_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    fast = co()
    fast(W, X)
    assert fast.ready(600)
    choice, exe = fast._last.current.choice, fast._last.current.current
    for seconds, sure in ((0.1, 0.11), (0.8, 0.85), (0.9, 0.0)):
        plan = dataclasses.replace(exe.plan, measured={"jit": 1.0, exe.plan.strategy: seconds})
        trial = choice._trial_of(dataclasses.replace(exe, plan=plan))
        assert trial is not None and trial._sure == pytest.approx(max(sure, SURE))
    choice._compiled = True
    trial = choice._trial_of(exe)
    assert trial is not None and trial._sure == SURE * exe.plan.measured["jit"]


def test_functions_are_told_apart_by_shapes_primitives_and_threads() -> None:
    names = {
        begin.Beginning(jax.make_jaxpr(fn)(x), threads)._name
        for fn in (jax.numpy.sin, jax.numpy.cos)
        for x in (X, X[:, 1:], X.astype(np.int32))
        for threads in (1, 2)
    }
    assert len(names) == 12
