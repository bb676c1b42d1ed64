"""Calls that a plan answers without a look have the results of those that are looked at."""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.api import direct as directly
from xcoexec.api.functions import CoPjitFunction
from xcoexec.api.resident import ResidentFunction
from xcoexec.api.stretch import MOST_OTHERS, Stretch
from xcoexec.ir.plan import Plan
from xcoexec.measure.profile import host_placements
from xcoexec.session.choice import LEAST_CALLS, REST_CALLS
from xcoexec.session.session import Session
from xcoexec.session.usage import WINDOW, Guard

from .support import array, error, oracle, until

W, X = jnp.asarray(array(64, 64)), jnp.asarray(array(8, 64))
V, Y = jnp.asarray(array(64, 64)) + 1, jnp.asarray(array(8, 64)) - 1


def dense(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def made(bound: bool, fn: Callable[..., Any] = dense, w: Any = W, x: Any = X) -> tuple[Callable[..., Any], Any]:
    """A function of the input alone and what has its stretch, in the middle of one."""
    function: Any = xcoexec.jit(fn, strategy="host", strict=True)
    fast, asked = (function.bind(w),) * 2 if bound else (functools.partial(function, w), function)
    begin(fast, asked, x)
    return fast, asked


def begin(fast: Callable[..., Any], asked: Any, x: Any = X) -> None:
    for _ in range(2 * LEAST_CALLS):
        fast(x)
        if asked._stretch is not None and asked._stretch.left > LEAST_CALLS // 2:
            return
    raise AssertionError("no call has gone by without a look")


@pytest.fixture(params=[True, False], ids=["bound", "unbound"])
def bound(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Of each call that a stretch was asked for: whether it took it."""
    found: list[bool] = []
    answering = Stretch.answering

    def noted(self: Stretch, looked: Callable[..., Any]) -> Callable[..., Any]:
        def missed(*args: Any, **kwargs: Any) -> Any:
            found[-1] = False
            return looked(*args, **kwargs)

        answer = answering(self, missed)

        def asked(*args: Any, **kwargs: Any) -> Any:
            found.append(True)
            return answer(*args, **kwargs)

        return asked

    monkeypatch.setattr(Stretch, "answering", noted)
    yield found


def test_most_calls_of_a_settled_plan_are_not_looked_at(bound: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    fast, asked = made(bound)
    looked: list[int] = []
    call = Session.call
    monkeypatch.setattr(Session, "call", lambda self, *args: looked.append(1) or call(self, *args))  # type: ignore[func-returns-value]
    inputs = [X + i for i in range(4)]
    outs = [(x, fast(x)) for _ in range(LEAST_CALLS) for x in inputs]
    assert 0 < len(looked) <= 6
    assert all(error(out, oracle(dense, W, x)) < 1e-5 for x, out in outs)
    assert asked._stretch is None or asked._stretch.session.current.lowered is not None


@pytest.mark.parametrize("other", [3, 2.0, np.float32(2), True], ids=repr)
def test_calls_with_a_static_argument(taken: list[bool], other: Any) -> None:
    """Others than the one that a plan was made for are looked at."""
    fn: Callable[..., Any] = lambda n, w, x: jnp.tanh(x @ w) / n
    asked: Any = xcoexec.jit(fn, strategy="host", strict=True, static_argnums=0)
    begin(functools.partial(asked, 2, W), asked)
    for n, known in ((2, True), (other, False), (2, True)):
        assert error(asked(n, W, Y), oracle(functools.partial(fn, n), W, Y)) < 1e-5
        assert taken[-1] is known
        begin(functools.partial(asked, 2, W), asked)
    assert len(asked._entries) == 2


@pytest.mark.parametrize(
    "other",
    [
        np.asarray(array(8, 64)),
        np.asarray(array(3, 64)),
        jnp.asarray(array(3, 64)),
        jnp.asarray(array(8, 64)).astype(jnp.float16),
        jnp.ones((8, 64), jnp.int32),
        np.asarray(array(8, 64)).tolist(),
    ],
    ids=["numpy", "numpy of another shape", "another shape", "another type", "whole numbers", "a list"],
)
def test_other_inputs_are_looked_at(bound: bool, taken: list[bool], other: Any) -> None:
    plain = jax.jit(dense)
    function: Any = xcoexec.jit(dense, strategy="host")
    fast, asked = (function.bind(W),) * 2 if bound else (functools.partial(function, W), function)
    begin(fast, asked)
    taken.clear()
    try:
        want = plain(W, other)
    except TypeError:
        with pytest.raises(TypeError):
            fast(other)
        return
    out = fast(other)
    assert taken[:1] == [False] and out.dtype == want.dtype and out.weak_type == want.weak_type
    assert error(out, want) < 2e-2 if out.dtype == jnp.float16 else error(out, want) < 1e-5
    assert error(fast(Y), oracle(dense, W, Y)) < 1e-5


def test_numpy_arrays_are_taken_by_shape_and_type(bound: bool, taken: list[bool]) -> None:
    near = np.asarray(X)
    fast, _ = made(bound, x=near)
    taken.clear()
    for x in (near - 1, near[::-1], near.astype(np.float64), near[:3], X, near.tolist()):
        out = None
        try:
            out = fast(x)
        except TypeError:
            assert type(x) is list
        assert out is None or error(out, oracle(dense, W, np.asarray(x, np.float32))) < 1e-5
    assert taken[:3] == [True, True, False] and True not in taken[4:]


def test_weak_types_stay_what_they_are(bound: bool, taken: list[bool]) -> None:
    scaled = lambda w, x, s: (x @ w) * s
    plain = jax.jit(scaled)
    function: Any = xcoexec.jit(scaled, strategy="host", strict=True)
    fast, asked = (function.bind(W),) * 2 if bound else (functools.partial(function, W), function)
    strong, weak = jnp.asarray(2.0, jnp.float32), jax.lax.full((), 2.0)
    weak = jnp.asarray(2.0) if not weak.weak_type else weak
    begin(functools.partial(fast, X), asked, strong)
    for s in (strong, weak, 2.0, np.float32(2)):
        out, want = fast(X, s), plain(W, X, s)
        assert out.weak_type == want.weak_type and error(out, want) < 1e-5
    assert True in taken and False in taken


def test_arguments_by_name_are_looked_at(bound: bool, taken: list[bool]) -> None:
    fast, _ = made(bound)
    taken.clear()
    assert error(fast(x=Y), oracle(dense, W, Y)) < 1e-5
    assert taken == [False]


def test_other_weights_give_other_results(taken: list[bool]) -> None:
    function: Any = xcoexec.jit(dense, strategy="host", strict=True)
    begin(functools.partial(function, W), function)
    taken.clear()
    assert error(function(V, X), oracle(dense, V, X)) < 1e-5
    assert taken == [False]
    stretch = function._stretch
    assert stretch is None or all(w is V for w in stretch._given[0].weights), "the others are not kept alive"


def test_weights_in_containers_that_are_written_to_give_other_results(taken: list[bool]) -> None:
    inside: Any = lambda w, x: dense(w["a"][0], x)
    function: Any = xcoexec.jit(inside, strategy="host", strict=True)
    weights = {"a": [W], "b": ()}
    begin(functools.partial(function, weights), function)
    taken.clear()
    assert error(function(weights, X), oracle(dense, W, X)) < 1e-5
    weights["a"][0] = V  # type: ignore[index]
    assert error(function(weights, X), oracle(dense, V, X)) < 1e-5
    assert taken[:2] == [True, False]


def test_deleted_weights_are_jits_error() -> None:
    w = W + 0
    function: Any = xcoexec.jit(dense, strategy="host")
    begin(functools.partial(function, w), function)
    w.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        function(w, X)


def test_deleted_inputs_are_jits_error(bound: bool) -> None:
    fast, _ = made(bound)
    x = X + 0
    x.delete()
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        fast(x)
    assert error(fast(Y), oracle(dense, W, Y)) < 1e-5


@pytest.mark.parametrize("name", ["jax_default_matmul_precision", "jax_numpy_rank_promotion", "jax_enable_x64"])
def test_another_configuration_is_looked_at(bound: bool, taken: list[bool], name: str) -> None:
    fast, _ = made(bound)
    value = {"jax_default_matmul_precision": "highest", "jax_numpy_rank_promotion": "raise", "jax_enable_x64": True}
    before = getattr(jax.config, name)
    taken.clear()
    try:
        jax.config.update(name, value[name])
        assert error(fast(X), oracle(dense, W, X)) < 1e-5
        assert taken[:1] == [False]
    finally:
        jax.config.update(name, before)
    assert error(fast(X), oracle(dense, W, X)) < 1e-5


def test_transformations_and_disabled_jit(bound: bool, taken: list[bool]) -> None:
    fast, _ = made(bound)
    taken.clear()
    want = oracle(dense, W, X)
    assert error(jax.jit(fast)(X), want) < 1e-5
    assert error(jax.vmap(lambda x: fast(x[None])[0])(X), want) < 1e-5
    assert jax.grad(lambda x: fast(x).sum())(X).shape == X.shape
    with jax.disable_jit():
        assert error(fast(X), want) < 1e-5
    assert True not in taken


def test_another_plan_is_taken_at_once(bound: bool, taken: list[bool]) -> None:
    fast, asked = made(bound)
    session = asked._stretch.session
    host = session.planner.executable(Plan("host", host_placements(session.graph), session.graph.key, chosen="again"))
    session.monitor.current = host
    taken.clear()
    assert error(fast(X), oracle(dense, W, X)) < 1e-5
    assert taken == [False] and (asked._stretch is None or asked._stretch.session.current is host)


def test_calls_wait_for_a_measurement(bound: bool, taken: list[bool]) -> None:
    fast, asked = made(bound)
    asked._stretch.session.gate.active = True
    taken.clear()
    assert error(fast(X), oracle(dense, W, X)) < 1e-5
    assert taken == [False] and asked._stretch is None


def test_results_are_trees(bound: bool) -> None:
    both = lambda w, x: {"a": dense(w, x), "b": [x @ w]}
    fast, _ = made(bound, both)
    out = fast(Y)
    assert sorted(out) == ["a", "b"] and type(out["b"]) is list
    assert error(out["a"], oracle(dense, W, Y)) < 1e-5


@pytest.mark.parametrize("result", [None, (), [], {}, (None, ())])
def test_results_without_arrays(bound: bool, result: Any) -> None:
    nothing = lambda w, x: (dense(w, x), result)[1]
    function: Any = xcoexec.jit(nothing, strategy="host")
    fast = function.bind(W) if bound else functools.partial(function, W)
    assert all(fast(X) == result for _ in range(2 * LEAST_CALLS))


def test_several_shapes_in_turn(taken: list[bool]) -> None:
    fast: Any = xcoexec.jit(dense, strategy="host", strict=True).bind(W)
    inputs = [jnp.asarray(array(n, 64)) for n in (8, 3)]
    for i in range(8 * LEAST_CALLS):
        x = inputs[i % 2]
        assert error(fast(x), oracle(dense, W, x)) < 1e-5
    assert True in taken and False in taken


def test_a_function_is_what_it_was(bound: bool) -> None:
    """In the middle of a stretch its class is another one."""
    _, asked = made(bound)
    usual = ResidentFunction if bound else CoPjitFunction
    assert type(asked) is not usual and isinstance(asked, usual) and callable(asked)
    assert list(inspect.signature(asked).parameters) == (["x"] if bound else ["w", "x"])
    asked._looks()
    assert type(asked) is usual and list(inspect.signature(asked).parameters) == (["x"] if bound else ["w", "x"])


def test_no_thread_calls_what_is_not_there_yet(bound: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one that is through with a call meanwhile goes on as before."""
    answering, asked, others = Stretch.answering, [], []

    def slowly(self: Stretch, looked: Callable[..., Any]) -> Callable[..., Any]:
        (fast,) = asked
        usual = type(fast) in (ResidentFunction, CoPjitFunction)
        assert (usual or hasattr(fast, "_direct")) and fast._stretch is None  # behind a first one something is there
        if not others:
            others.append(0)
            thread = threading.Thread(target=lambda: others.append(fast(X) if bound else fast(W, X)))
            thread.start()
            thread.join(0.2)  # it waits where it would begin such calls too
        return answering(self, looked)

    monkeypatch.setattr(Stretch, "answering", slowly)
    function: Any = xcoexec.jit(dense, strategy="host", strict=True)
    fast = function.bind(W) if bound else function
    asked.append(fast)
    for _ in range(2 * LEAST_CALLS):
        assert error(fast(X) if bound else fast(W, X), oracle(dense, W, X)) < 1e-5
    until(lambda: len(others) > 1)
    assert error(others[1], oracle(dense, W, X)) < 1e-5 and fast._stretch is not None


def test_what_answers_calls_keeps_no_function_alive(bound: bool) -> None:
    fast, asked = made(bound)
    there, begun = weakref.ref(asked), gc.isenabled()
    gc.disable()
    try:
        del fast, asked
        assert there() is None
    finally:
        if begun:
            gc.enable()


def test_the_report_is_of_what_ran_last() -> None:
    """Also where a stretch goes on behind a call that it does not take."""
    fast: Any = xcoexec.jit(dense, strategy="host", strict=True).bind(W)
    begin(fast, fast)
    first, fewer = fast._stretch.session, X[:3]
    fast(fewer)
    assert fast.session() is not first and fast._stretch.session is first
    fast(X)
    assert fast.session() is first


def test_an_error_within_a_program_is_met_as_in_a_call_that_is_looked_at(
    bound: bool, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """XLA has no memory left, say: the call is made again, with a look."""
    fast, asked = made(bound)
    answer, session = asked._direct, asked._stretch.session

    def fails(*inputs: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")

    broken = dataclasses.replace(session.current, program=fails)
    stretch = asked._stretch
    stretch._exe = broken
    asked._direct = stretch.answering(directly._looking(weakref.ref(asked)))
    taken.clear()
    assert answer is not asked._direct and error(fast(X), oracle(dense, W, X)) < 1e-5
    assert taken == [False] and asked._stretch is not stretch and not stretch.left > 0


def test_other_calls_in_a_row_get_a_stretch_of_their_own(bound: bool, taken: list[bool]) -> None:
    fast, asked = made(bound)
    first, fewer = asked._stretch, X[:3]
    first.left = REST_CALLS
    for x in (fewer, X) * MOST_OTHERS:
        fast(x)
    assert asked._stretch is first, "of calls in turn every second one is its own"
    taken.clear()
    for _ in range(MOST_OTHERS + 4):
        assert error(fast(fewer), oracle(dense, W, fewer)) < 1e-5
    assert asked._stretch is not first and taken[-1]
    assert taken[: MOST_OTHERS - 1] == [False] * (MOST_OTHERS - 1)


def test_a_stretch_ends_before_a_guard_looks() -> None:
    guard = Guard(1.0, 2 * WINDOW)
    seen = [guard.looks() for _ in range(2 * WINDOW)]
    assert seen.count(True) == WINDOW
    while guard.looks():
        pass
    spare = guard.spare
    assert 0 < spare < WINDOW
    guard.answered(spare)
    assert guard.looks(), "the very next call is looked at"


def test_the_watch_counts_calls_without_a_look(bound: bool) -> None:
    fast, asked = made(bound)
    monitor = asked._stretch.session.monitor
    monitor._calls, monitor.look = 0, lambda seconds: None
    stretch = asked._stretch
    many = stretch.left
    for _ in range(many):
        fast(X)
    assert asked._stretch is stretch and not stretch.left and monitor._calls == 0
    fast(X)
    assert asked._stretch is not stretch and monitor._calls >= many


def test_no_stretch_is_longer_than_a_caller_may_go_unseen() -> None:
    fast: ResidentFunction[jax.Array] = xcoexec.jit(dense, strategy="auto", wait=True).bind(W)
    for _ in range(3 * REST_CALLS):
        fast(X)
        assert fast._stretch is None or fast._stretch.left <= REST_CALLS
