"""Functions that plain `jax.jit` has: none of our code runs in a call, for a while."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import inspect
import os
import pickle
import threading
import time
import traceback
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.api import direct as directly
from xcoexec.api import rest
from xcoexec.api.direct import UNKNOWN
from xcoexec.api.functions import CoPjitFunction, _DirectPjitFunction
from xcoexec.api.resident import ResidentFunction, _DirectResidentFunction
from xcoexec.session import contest

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def by_order(x: Any) -> Any:
    """The largest first. No kernel sorts, and there is nothing else to do: no measurement decides who has the calls."""
    return jax.lax.top_k(x, x.shape[-1])[0]


def called(fn: Any, *args: Any, count: int = rest.QUIET + 4) -> Any:
    """The result of the last of so many calls."""
    for _ in range(count):
        out = fn(*args)
    return out


LATER = directly._later


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directly, "_later", lambda seconds, then: True)


def looked(fast: Any) -> None:
    """Time passes: calls are looked at."""
    fast._looks()
    assert type(fast) in (CoPjitFunction, ResidentFunction) and fast._rest is None


def direct(**options: Any) -> Any:
    """A function whose calls go to `jax.jit` directly."""
    fast = xcoexec.jit(by_order, **options)
    fast(X)
    assert fast.ready(60)
    np.testing.assert_array_equal(called(fast, X), X[:, ::-1])
    assert type(fast) is _DirectPjitFunction
    return fast


def test_calls_run_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = direct()

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a call was looked at")

    monkeypatch.setattr(CoPjitFunction, "__call__", never)
    np.testing.assert_array_equal(fast(X), X[:, ::-1])
    np.testing.assert_array_equal(fast(X + 1), X[:, ::-1] + 1)


def test_it_is_the_function_that_it_was() -> None:
    fast = direct()
    assert isinstance(fast, CoPjitFunction) and "PjitFunction" in type(fast).__name__ and callable(fast)
    assert repr(fast) == repr(xcoexec.jit(by_order)) and fast.__name__ == "by_order"
    assert list(inspect.signature(fast).parameters) == ["x"] and fast.__wrapped__ is by_order
    assert fast.plan(X).engine == "jit" and fast.report(X).ran == "jit"
    for again in (pickle.loads(pickle.dumps(fast)), copy.copy(fast), copy.deepcopy(fast)):
        assert type(again) is CoPjitFunction
        np.testing.assert_array_equal(again(X), X[:, ::-1])


@pytest.mark.parametrize("x", [X[:2], X.astype(np.int32), X[0]])
def test_calls_that_nobody_knows_are_looked_at(x: np.ndarray) -> None:
    """However many others come in between."""
    fast = direct()
    for _ in range(3):
        np.testing.assert_array_equal(fast(x), x[..., ::-1])
    assert len(fast._entries) == 1, "nobody has looked yet"
    looked(fast)
    np.testing.assert_array_equal(called(fast, X), X[:, ::-1])
    assert type(fast) is CoPjitFunction, "calls are looked at for a while"
    np.testing.assert_array_equal(fast(x), x[..., ::-1])
    assert len(fast._entries) == 2 and fast.ready(60)
    for y in (X, x):
        np.testing.assert_array_equal(called(fast, y, count=UNKNOWN), y[..., ::-1])
    assert type(fast) is _DirectPjitFunction, "once more, for both"


def test_another_configuration() -> None:
    fast = direct()
    with jax.default_matmul_precision("highest"):
        np.testing.assert_array_equal(fast(X), X[:, ::-1])
    with jax.enable_x64(True):
        assert fast(X.astype(np.float64)).dtype == np.float64
    looked(fast)
    with jax.default_matmul_precision("highest"):
        np.testing.assert_array_equal(fast(X), X[:, ::-1])
    assert len(fast._entries) == 2


def test_a_forgotten_program_is_made_anew() -> None:
    fast = direct()
    fast.clear_cache()
    assert type(fast) is CoPjitFunction and not fast._entries
    np.testing.assert_array_equal(fast(X), X[:, ::-1])
    assert len(fast._entries) == 1


def test_transformations() -> None:
    fast = direct()
    np.testing.assert_array_equal(jax.vmap(fast)(X[None])[0], X[:, ::-1])
    np.testing.assert_array_equal(jax.jit(lambda x: fast(x) * 2)(X), X[:, ::-1] * 2)
    fast = direct()
    weights = jnp.arange(12.0).reshape(3, 4)
    found = jax.grad(lambda x: (fast(x) * weights).sum())(jnp.asarray(X))
    np.testing.assert_array_equal(found, weights[:, ::-1])
    with jax.disable_jit():
        np.testing.assert_array_equal(fast(X), X[:, ::-1])
    np.testing.assert_array_equal(fast(X), X[:, ::-1])


def test_a_method() -> None:
    class Sorter:
        def __init__(self, by: float):
            self.by = by

        @xcoexec.jit
        def sorted(x: Any) -> Any:
            return by_order(x)

    fast = Sorter.__dict__["sorted"]
    fast(X), fast.ready(60), called(fast, X)
    assert type(fast) is _DirectPjitFunction
    with pytest.raises(TypeError):
        Sorter(1.0).sorted(X)  # `jax.jit` sees two arguments


def times(x: Any, n: Any, by: Any = 1) -> Any:
    return by_order(x) * (n[0] if isinstance(n, tuple) else n) * by


@pytest.mark.parametrize(
    "given",
    [
        dict(static_argnums=(1,)),
        dict(static_argnums=(-1, 1)),
        dict(static_argnames="n"),
        dict(static_argnums=(1, 2)),
        dict(static_argnames=("by", "n")),
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [3, 2.5, (3, 4)], ids=str)
def test_static_arguments(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], n: Any) -> None:
    """By position and by name, and values that come for the first time."""
    fast, plain = xcoexec.jit(times, **given), jax.jit(times, **given)
    fast(X, n), fast.ready(60)
    np.testing.assert_array_equal(called(fast, X, n), plain(X, n))
    assert type(fast) is _DirectPjitFunction
    with monkeypatch.context() as m:
        m.setattr(CoPjitFunction, "__call__", None)
        for other in (n, 7, True):
            np.testing.assert_array_equal(fast(X, other), plain(X, other))
        if -1 not in given.get("static_argnums", ()):
            np.testing.assert_array_equal(fast(X, n=n), plain(X, n=n))
            np.testing.assert_array_equal(fast(by=2, n=n, x=X), plain(by=2, n=n, x=X))
    looked(fast)
    np.testing.assert_array_equal(fast(X, 7), plain(X, 7))
    assert len(fast._entries) == 2, "the next call is looked at, whose value is another one"


@pytest.mark.parametrize("name", [False, True])
def test_static_values_differ_by_type_and_sign(monkeypatch: pytest.MonkeyPatch, name: bool) -> None:
    seen: list[Any] = []

    def fn(x: Any, n: Any) -> Any:
        seen.append(n)
        return by_order(x)

    fast = xcoexec.jit(fn, static_argnames="n")
    call = (lambda n: fast(X, n=n)) if name else (lambda n: fast(X, n))
    call("first"), fast.ready(60), called(call, "first")
    assert type(fast) is _DirectPjitFunction
    monkeypatch.setattr(CoPjitFunction, "__call__", None)
    values = ["first", 0, 0.0, -0.0, False, 0j, (0,), (0.0,), (-0.0,), ((False,),), ((0,),), frozenset([1]), None]
    for n in values * 2:
        call(n)
    assert list(map(repr, seen)) == list(map(repr, values)), "each is traced once, and none is taken for another one"


def test_a_method_with_a_static_self(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sorter:
        def __init__(self, by: float):
            self.by = by

        @functools.partial(xcoexec.jit, static_argnums=0)
        def sorted(self, x: Any) -> Any:
            return by_order(x) * self.by

    fast, two, three = Sorter.__dict__["sorted"], Sorter(2.0), Sorter(3.0)
    two.sorted(X), fast.ready(60), called(two.sorted, X)
    assert type(fast) is _DirectPjitFunction
    monkeypatch.setattr(CoPjitFunction, "__call__", None)
    np.testing.assert_array_equal(two.sorted(X), X[:, ::-1] * 2)
    np.testing.assert_array_equal(three.sorted(X), X[:, ::-1] * 3)


def test_static_arguments_of_bound_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a function that plain `jax.jit` has, whatever a measurement of its product would have said."""
    monkeypatch.setattr(contest, "_worth_a_try", lambda *_: False)
    w = np.array([5, 1, 9, 3], np.float32)
    fast = xcoexec.jit(lambda w, x, n: with_weights(w, x) * n, static_argnums=2).bind(w)
    fast(X, 2.5), fast.ready(60), called(fast, X, 2.5)
    assert type(fast) is _DirectResidentFunction and fast.plan(X, 2.5).engine == "jit"
    monkeypatch.setattr(ResidentFunction, "__call__", None)
    for n in (2.5, 3, 0.0, -0.0):
        out = np.asarray(fast(X, n))
        np.testing.assert_array_equal(out, X[:, np.argsort(w)] * n)
        assert np.signbit(out).all() == np.signbit(n)


def test_errors_of_calls_with_static_arguments() -> None:
    """They are `jax.jit`'s, without a line of ours."""
    fast, plain = xcoexec.jit(times, static_argnums=1), jax.jit(times, static_argnums=1)
    fast(X, 2), fast.ready(60), called(fast, X, 2)
    assert type(fast) is _DirectPjitFunction
    for n in ([1], ([1],), "wrong", object()):
        with pytest.raises(Exception) as want:
            plain(X, n)
        with pytest.raises(want.type) as got:
            fast(X, n)
        ours = os.path.dirname(xcoexec.__file__)
        assert not any(x.filename.startswith(ours) for x in traceback.extract_tb(got.value.__traceback__))
    np.testing.assert_array_equal(fast(X, 2), plain(X, 2))


def test_static_arguments_under_transformations() -> None:
    fast = xcoexec.jit(times, static_argnames="n")
    fast(X, n=0.5), fast.ready(60), called(lambda x: fast(x, n=0.5), X)
    assert type(fast) is _DirectPjitFunction
    np.testing.assert_array_equal(jax.vmap(lambda x: fast(x, n=0.5))(X[None])[0], X[:, ::-1] / 2)
    found = jax.grad(lambda x: fast(x, n=0.5).sum())(jnp.asarray(X))
    np.testing.assert_array_equal(found, np.full_like(X, 0.5))
    with jax.disable_jit():
        np.testing.assert_array_equal(fast(X, n=0.5), X[:, ::-1] / 2)


def test_errors_of_the_function() -> None:
    def stops(x: Any) -> Any:
        if x.ndim == 1:
            raise ValueError("got one axis; valid are two.")
        return by_order(x)

    fast = xcoexec.jit(stops)
    fast(X), fast.ready(60), called(fast, X)
    assert type(fast) is _DirectPjitFunction
    for _ in range(2):
        with pytest.raises(ValueError, match="got one axis"):
            fast(X[0])
    np.testing.assert_array_equal(fast(X), X[:, ::-1])


def test_nothing_keeps_it_alive() -> None:
    gc.disable()
    try:
        fast = direct()
        gone = weakref.ref(fast)
        del fast
        assert gone() is None
        fast = direct()
        gone = weakref.ref(fast)
        del fast
        assert gone() is None
    finally:
        gc.enable()


def test_with_several_devices_all_calls_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "single", lambda: False)
    fast = xcoexec.jit(by_order)
    fast(X), fast.ready(60), called(fast, X)
    assert type(fast) is CoPjitFunction and fast._rest is not None


def waiting(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """A function of which plain `jax.jit` has the calls that wait for now, and its session."""
    monkeypatch.setenv("XCOEXEC_ADAPT", "1")
    fast = xcoexec.jit(lambda x: jnp.tanh(x) * 2, strategy="host")
    fast(X)
    found = fast._planned((X,), {})
    plain, host = found.planner.plain, found.current
    measured = dataclasses.replace(plain.plan, measured={"jit": 1e-5})
    found.monitor.current = dataclasses.replace(plain, plan=measured, in_flight=host)
    for _ in range(200):
        jax.block_until_ready(fast(X))
        if type(fast) is _DirectPjitFunction:
            return fast, found
    raise AssertionError("calls are still looked at")


def test_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directly, "_later", LATER)
    monkeypatch.setattr(directly, "PLAIN_SECONDS", 0.5)
    fast, _ = waiting(monkeypatch)
    end = time.monotonic() + 60
    while type(fast) is _DirectPjitFunction and time.monotonic() < end:
        time.sleep(0.01)
    assert type(fast) is CoPjitFunction and fast._rest is None
    np.testing.assert_allclose(fast(X), np.tanh(X) * 2, rtol=1e-6)


@pytest.mark.parametrize("news", [False, True])
def test_until_a_planning_needs_calls_to_wait(monkeypatch: pytest.MonkeyPatch, news: bool) -> None:
    fast, found = waiting(monkeypatch)
    if news:
        found.gate.tell()
        assert type(fast) is CoPjitFunction
    else:
        with found.gate.alone():
            assert type(fast) is CoPjitFunction
    np.testing.assert_allclose(fast(X), np.tanh(X) * 2, rtol=1e-6)
    assert not found.gate.closes._methods


def test_not_beside_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, found = waiting(monkeypatch)
    rest_now = fast._rest
    fast._looks()
    found.gate._open.clear()
    fast._over(rest_now)
    assert type(fast) is CoPjitFunction and fast._rest is None


def test_not_while_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    fast, _ = waiting(monkeypatch)
    rest_now = fast._rest
    fast._looks()
    monkeypatch.setattr(directly, "_later", LATER)
    monkeypatch.setattr(threading.Timer, "start", refuses)
    fast._over(rest_now)
    assert type(fast) is CoPjitFunction


def with_weights(w: Any, x: Any) -> Any:
    """Each row in the order of the weights. No kernel sorts, and there is nothing else to do."""
    return jax.vmap(lambda row: jax.lax.sort_key_val(w, row)[1])(x)


def test_bound_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    w = np.array([5, 1, 9, 3], np.float32)
    order = np.argsort(w)
    fast = xcoexec.jit(with_weights)
    bound, other = fast.bind(w), fast.bind(-w)
    for call in (bound, other):
        call(X), call.ready(60), called(call, X)
        assert type(call) is _DirectResidentFunction and call.plan().engine == "jit"

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a call was looked at")

    with monkeypatch.context() as m:
        m.setattr(ResidentFunction, "__call__", never)
        np.testing.assert_array_equal(bound(X), X[:, order])
        np.testing.assert_array_equal(other(X), X[:, order[::-1]])
        found = jax.grad(lambda x: bound(x)[:, 0].sum())(jnp.asarray(X))
        np.testing.assert_array_equal(found, np.eye(4, dtype=np.float32)[[order[0]] * len(X)])
    np.testing.assert_array_equal(jax.vmap(bound)(X[None])[0], X[:, order])
    np.testing.assert_array_equal(bound(X[:2]), X[:2, order])
    looked(bound)
    bound(X)
    bound(X[:2])
    assert len(bound._entries) == 2
    gone = weakref.ref(other)
    called(other, X)
    del other, call
    assert gone() is None


def test_where_both_passes_are_ours_too_calls_are_looked_at() -> None:
    """`jax.jit` would differentiate it alone."""
    fast = xcoexec.jit(by_order)
    fast(X), fast.ready(60)
    fast._gradients.entries = lambda: iter(["a program"])  # type: ignore[method-assign]
    called(fast, X)
    assert type(fast) is CoPjitFunction


def test_threads_with_shapes_of_their_own() -> None:
    fast, wrong = direct(), []

    def calls(rows: int) -> None:
        x = np.tile(X, (rows, 1))
        for _ in range(300):
            if not np.array_equal(fast(x), x[:, ::-1]):
                wrong.append(rows)

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(1, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and fast.ready(60)
    looked(fast)
    for n in range(1, 7):
        np.testing.assert_array_equal(called(fast, np.tile(X, (n, 1))), np.tile(X, (n, 1))[:, ::-1])
    assert len(fast._entries) == 6
