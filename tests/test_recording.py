"""Programs whose convolutions XLA records: a caller's own thread calls them, while no other one uses the device."""

from __future__ import annotations

import dataclasses
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
import xcoexec.api.resident  # as functions are made: what it imports has the usual one, which tests replace
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.lowering.executable import Executable
from xcoexec.measure.timing import NotCalled, alternate, lent, measured_in
from xcoexec.session import gate, prepare, recording, stages
from xcoexec.session.gate import Gate
from xcoexec.session.recording import SEVERAL, Recording

from . import standin
from .oracle import error, oracle
from .standin import StandIn
from .support import array, given_back

pytestmark = pytest.mark.usefixtures("quick_xla")
WEIGHTS = [array(3, 3, 8, 16), array(3, 3, 16, 16, seed=1)]
X = array(1, 8, 8, 8, seed=2)
PLAN = xcoexec.Plan("device", (), "")


def _convolutions(w: Any, x: Any) -> Any:
    for k in w:
        x = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x


def _apart(work: Callable[[], None]) -> None:
    """Does something in a thread of its own, which ends."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


class _Other:
    """A thread that makes calls and does not end."""

    def __init__(self, work: Callable[[], object]):
        self._ends, self._called = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,))

    def _run(self, work: Callable[[], object]) -> None:
        work()
        self._called.set()
        self._ends.wait(60)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._called.wait(60)

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(60)


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Recording:
    """One that looks at once which threads have ended."""
    monkeypatch.setattr(recording, "LOOK_SECONDS", -1.0)
    return Recording()


def _only(mine: Recording) -> tuple[Executable, list[str]]:
    """An executable, and what has called: itself, or plain jax.jit."""
    calls: list[str] = []
    told = lambda name: lambda leaves: calls.append(name) or []
    return mine.only(Executable(PLAN, told("recorded"), None), told("jit")), calls


def test_calls_of_several_threads_are_plain_jits(mine: Recording) -> None:
    exe, calls = _only(mine)
    assert exe.may is not None and exe.may()
    mine.passes()
    exe.call([])
    with _Other(mine.passes):
        assert mine.several and not exe.may()
        exe.call([])
    assert not mine.several, "the other thread has ended"
    exe.call([])
    assert calls == ["recorded", "jit", "recorded"]


def test_who_compiles_shows_his_thread(mine: Recording) -> None:
    """`jax.jit` of the caller's own."""
    exe, calls = _only(mine)
    mine.passes()
    with _Other(lambda: jax.jit(lambda x: x * 3 + 1)(jnp.zeros(7))):
        exe.call([])
    assert calls == ["jit"]


def test_calls_beside_a_planning_are_plain_jits(mine: Recording) -> None:
    """But for those that the planning itself waits for, while there is no other one."""
    exe, calls = _only(mine)
    with mine.planning():
        exe.call([])
        with mine.lent():
            exe.call([])
            _apart(lambda: _planning_too(mine, exe))
        exe.call([])
    exe.call([])
    assert calls == ["jit", "recorded", "jit", "jit", "recorded"]


def _planning_too(mine: Recording, exe: Executable) -> None:
    with mine.planning():
        exe.call([])


def test_a_planning_begins_behind_what_is_being_launched(mine: Recording) -> None:
    order: list[str] = []
    begun, ends = threading.Event(), threading.Event()

    def recorded(leaves: Sequence[Any]) -> list[Any]:
        begun.set()
        assert ends.wait(60)
        order.append("recorded")
        return []

    exe = mine.only(Executable(PLAN, recorded, None), lambda leaves: [])
    caller = threading.Thread(target=exe.call, args=([],))
    caller.start()
    assert begun.wait(60)

    def plan() -> None:
        with mine.planning():
            order.append("planning")

    planner = threading.Thread(target=plan)
    planner.start()
    ends.set()
    planner.join(60)
    caller.join(60)
    assert order == ["recorded", "planning"]


# -- what a caller makes for who plans ---------------------------------------------------------------


def _lending(monkeypatch: pytest.MonkeyPatch, block: Callable[[], Any], call: Callable[[Gate], None]) -> Any:
    """What a block gives that is lent in a thread of its own while this one does `call` again and again; or raises."""
    monkeypatch.setattr(gate, "MOST_OPEN_SECONDS", 0.0)
    found: list[Any] = []
    its = Gate(active=True)

    def plan() -> None:
        try:
            with measured_in(its.alone, its.lend):
                found.append(lent(block))
        except Exception as e:
            found.append(e)

    planner = threading.Thread(target=plan)
    planner.start()
    while planner.is_alive():
        call(its)
    return found[0]


def test_a_block_is_made_in_the_callers_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the settings of who plans."""
    assert lent(threading.get_ident) == threading.get_ident(), "who plans for himself is the caller"
    with jax.default_matmul_precision("float32"):
        seen = _lending(monkeypatch, lambda: (threading.get_ident(), jax.numpy.zeros(3).sum()), Gate.wait)
    assert seen == (threading.get_ident(), 0)
    assert _lending(monkeypatch, threading.get_ident, Gate.help) == threading.get_ident()
    assert isinstance(_lending(monkeypatch, lambda: 1 // 0, Gate.wait), ZeroDivisionError)


def test_nobody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "LEND_SECONDS", 0.01)
    assert isinstance(_lending(monkeypatch, lambda: 1, lambda its: None), NotCalled)
    its = Gate(active=True)
    with measured_in(its.alone, its.lend):
        calls = {"a": lambda: 0, "b": lambda: 0}
        seconds = alternate(calls, 2, 0.001, callers={"b"})
    assert seconds["a"] < 1.0 and seconds["b"] == math.inf
    its.help()  # nothing is left of it
    assert its.passes()


def test_an_interrupt_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    def call(its: Gate) -> None:
        try:
            its.wait()
        except KeyboardInterrupt:
            raised.append(True)

    raised: list[bool] = []
    assert isinstance(_lending(monkeypatch, interrupted, call), InterruptedError) and raised == [True]


# -- whole plannings over a device that is none ------------------------------------------------------


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """The public API over a stand-in device whose programs have graphs."""
    found = Relay(StandIn())
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: found)
    monkeypatch.setattr(standin, "GRAPHS", {"xla_gpu_graph_min_graph_size": 7})
    yield found
    given_back(found)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch, mine: Recording) -> list[int]:
    """Of the calls whose convolutions are recorded."""
    found: list[int] = []

    def only(exe: Executable, plain: Any) -> Executable:
        def call(leaves: Sequence[Any]) -> Sequence[jax.Array]:
            found.append(threading.get_ident())
            return inner(leaves)

        inner = exe.call
        return Recording.only(mine, Executable(exe.plan, call, exe.lowered, compiled=exe.compiled), plain)

    monkeypatch.setattr(mine, "only", only)
    usual = recording.recording
    for name, module in list(sys.modules.items()):
        if name.startswith("xcoexec") and getattr(module, "recording", None) is usual:
            monkeypatch.setattr(module, "recording", mine)
    monkeypatch.setattr(gate, "MOST_OPEN_SECONDS", 0.0)
    return found


def _bound() -> Any:
    return xcoexec.jit(_convolutions, wait=False).bind(WEIGHTS)


@pytest.mark.parametrize("waits", [False, True])
def test_behind_calls_they_are_measured_by_the_caller(
    relay: Relay, threads: list[int], tmp_path: Any, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """`waits`: he calls once and waits for the plan; else he goes on calling."""
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    fast, want = _bound(), oracle(_convolutions, WEIGHTS, X)
    assert error(np.asarray(fast(X)), want) < 1e-5
    while not (waits or fast.ready(0.0)):
        assert error(np.asarray(fast(X)), want) < 1e-5
    assert fast.ready() and threads and set(threads) == {threading.get_ident()}
    assert error(np.asarray(fast(X)), want) < 1e-5


def test_where_he_does_not_come_they_are_not_measured(
    relay: Relay, threads: list[int], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process tries them: what is remembered is not all."""
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(gate, "LEND_SECONDS", 0.01)
    whole: list[bool] = []
    monkeypatch.setattr(stages, "keep", lambda s, exe, whole_=True, **k: whole.append(k.get("whole", whole_)))
    fast = _bound()
    fast(X)
    pending = fast._last
    while not pending._done.wait(0.01):
        pass
    assert not threads and whole and not any(whole)
    assert error(np.asarray(fast(X)), oracle(_convolutions, WEIGHTS, X)) < 1e-5


def test_a_report_says_who_has_the_calls(
    relay: Relay, threads: list[int], mine: Recording, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    there = xcoexec.jit(_convolutions, strategy="device", strict=True).bind(WEIGHTS).session(X).current.plan
    plan = dataclasses.replace(there, graphs=True)
    fast = xcoexec.jit(_convolutions, plan=plan, strict=True).bind(WEIGHTS)
    want = oracle(_convolutions, WEIGHTS, X)
    assert error(np.asarray(fast(X)), want) < 1e-5 and SEVERAL not in fast.report().why
    before = len(threads)
    with _Other(lambda: fast(X)):
        assert error(np.asarray(fast(X)), want) < 1e-5
        assert SEVERAL in fast.report().why and len(threads) == before
    fast(X)
    assert SEVERAL not in fast.report().why and len(threads) == before + 1
