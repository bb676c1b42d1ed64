"""Programs whose convolutions XLA records: a caller's own thread calls them, while no other one uses the device."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.lowering.executable import Executable
from xcoexec.measure.timing import NotCalled, alternate, lent, measured_in, silent
from xcoexec.session import contest, gate, prepare, recording, stages
from xcoexec.session.gate import Gate
from xcoexec.session.listeners import Listeners
from xcoexec.session.recording import OTHERS, Recording

from . import standin
from .oracle import error, oracle
from .standin import StandIn
from .support import array, check_host, given_back

pytestmark = pytest.mark.usefixtures("quick_xla")
WEIGHTS = [array(3, 3, 8, 16), array(3, 3, 16, 16, seed=1)]
X = array(1, 8, 8, 8, seed=2)
PLAN = xcoexec.Plan("device", (), "")


def _convolutions(w: Any, x: Any) -> Any:
    for k in w:
        x = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x


class _Other:
    """A thread that does something and does not end."""

    def __init__(self, work: Callable[[], object] = list):
        self._ends, self._called = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, args=(work,))

    def _run(self, work: Callable[[], object]) -> None:
        work()
        self._called.set()
        self._ends.wait(60)

    def __enter__(self) -> _Other:
        self.thread.start()
        assert self._called.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.thread.join(60)


@pytest.fixture(autouse=True)
def only_new_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests have left does nothing."""
    usual, before = recording.origin, {*threading.enumerate()} - {threading.current_thread()}
    monkeypatch.setattr(recording, "origin", lambda t: recording.HARMLESS[0] if t in before else usual(t))


def _only(mine: Recording) -> tuple[Executable, list[str]]:
    """An executable, and what has called: itself, or plain jax.jit."""
    calls: list[str] = []
    told = lambda name: lambda leaves: calls.append(name) or []
    return mine.only(Executable(PLAN, told("recorded"), None), told("jit")), calls


def test_calls_beside_another_thread_are_plain_jits() -> None:
    """Whatever it does: nobody can see calls of a function that `jax.jit` has compiled."""
    mine = Recording()
    exe, calls = _only(mine)
    assert exe.may is not None and exe.may()
    exe.call([])
    with _Other() as other:
        assert mine.others == [other.thread] and not exe.may()
        exe.call([])
        with _Other(lambda: exe.call([])):
            pass
    exe.call([])
    assert calls == ["recorded", "jit", "jit", "recorded"]


def test_who_lends_a_block_does_nothing_meanwhile() -> None:
    mine = Recording()
    exe, calls = _only(mine)
    with _Other() as planner:
        with mine.lent(planner.thread):
            exe.call([])
            with _Other():
                exe.call([])
        exe.call([])
    assert calls == ["recorded", "jit", "jit"]


class Heartbeat(threading.Thread):
    """As a notebook's."""

    __module__ = "ipykernel.heartbeat"
    ends: threading.Event

    def run(self) -> None:
        self.ends.wait(60)


def test_threads_that_compute_nothing_are_harmless() -> None:
    """Those of the host half, of timers, of notebooks, of what watches a program."""
    mine, ends = Recording(), threading.Event()
    watching, alike = (lambda: ends.wait(60)), (lambda: ends.wait(60))
    watching.__module__, alike.__module__ = "wandb.sdk.internal", "wandbox.server"
    timer, heartbeat = threading.Timer(60.0, Listeners().tell), Heartbeat()
    heartbeat.ends = ends
    threads = [threading.Thread(target=watching), timer, heartbeat]
    for t in threads:
        t.start()
    check_host(lambda x: jnp.tanh(x) @ x, np.ones((64, 64), np.float32))  # its threads live on
    assert mine.may(), mine.others
    other = threading.Thread(target=alike)
    other.start()
    assert mine.others == [other], "another library's name begins like that"
    ends.set()
    timer.cancel()
    for t in (*threads, other):
        t.join(60)


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
    assert seconds["a"] < 1.0 and list(seconds) == ["a"]
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
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of the calls whose convolutions are recorded."""
    found: list[int] = []
    usual = recording.recording.only

    def only(exe: Executable, plain: Any) -> Executable:
        def call(leaves: Sequence[Any]) -> Sequence[jax.Array]:
            found.append(threading.get_ident())
            return inner(leaves)

        inner = exe.call
        return usual(dataclasses.replace(exe, call=call), plain)

    monkeypatch.setattr(recording.recording, "only", only)
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
    relay: Relay, threads: list[int], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    there = xcoexec.jit(_convolutions, strategy="device", strict=True).bind(WEIGHTS).session(X).current.plan
    plan = dataclasses.replace(there, graphs=True)
    fast = xcoexec.jit(_convolutions, plan=plan, strict=True).bind(WEIGHTS)
    want = oracle(_convolutions, WEIGHTS, X)
    assert error(np.asarray(fast(X)), want) < 1e-5 and OTHERS not in fast.report().why
    before = len(threads)
    with _Other(lambda: fast(X)):
        assert error(np.asarray(fast(X)), want) < 1e-5
        assert OTHERS in fast.report().why and len(threads) == before
    fast(X)
    assert OTHERS not in fast.report().why and len(threads) == before + 1


def test_what_is_not_compiled_waits_for_the_end_of_a_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few milliseconds, as at the beginning of a process that begins with a plan; not for a thread that stays."""
    mine, over = Recording(), threading.Event()
    planner = threading.Thread(target=lambda: over.wait(60), name=recording.PLANNERS[0])
    planner.start()
    assert not mine.may() and mine.soon()
    monkeypatch.setattr(recording, "SETTLE_SECONDS", 0.01)
    assert not mine.settles(), "it goes on"
    monkeypatch.setattr(recording, "SETTLE_SECONDS", 60.0)
    with _Other():
        assert not mine.soon() and not mine.settles()
    monkeypatch.setattr(recording.time, "sleep", lambda seconds: (over.set(), planner.join(60)))
    assert mine.settles()


def test_what_is_new_is_compiled_before_a_caller_calls_it() -> None:
    """He would wait for it."""
    order: list[str] = []
    now = Executable(PLAN, list, None)
    new = dataclasses.replace(now, compiled=lambda example: order.append("compiled"), may=lambda: True)
    s: Any = SimpleNamespace(
        progress=silent, problem=SimpleNamespace(example=()), stream=lambda exe: exe is new and order.append("called")
    )
    contest._better(s, {"now": now, "shares moved": new})
    assert order[:2] == ["compiled", "called"] and order.count("compiled") == 1
