"""The team of threads: pinned or not, under load, with too many threads, after fork, for a long time."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import xcoexec
from xcoexec.codegen.runtime import host

from .support import array, oracle, stages_of, until

pytestmark = pytest.mark.usefixtures("quick_xla")

W1, W2 = array(40, 64, seed=1), array(64, 24, seed=2)
CPUS = sorted(os.sched_getaffinity(0))


def _fn(w1: Any, w2: Any, x: Any) -> Any:
    return jax.nn.softmax(jax.nn.relu(x @ w1) @ w2)


def _bound(**options: Any) -> Any:
    return xcoexec.jit(_fn, strategy="host", strict=True, **options).bind(W1, W2)


def test_all_threads_take_numbers_below_the_normal_ones_for_0() -> None:
    """As XLA's threads do, which call the kernels: an element is the same whichever thread computes it."""
    x, fn = np.full(1 << 18, 3e-39, np.float32), lambda x: x * 0.5
    host_only = xcoexec.jit(fn, strategy="host", strict=True, threads=2)
    assert all(not np.asarray(host_only(x)).any() for _ in range(20))
    assert not np.asarray(jax.jit(fn)(x)).any()


def test_a_thread_computes_as_before_when_it_has_served() -> None:
    """A worker's life on this thread, whose team has stopped already."""
    team, tiny = host.Team(), np.float32(2.0**-126)
    team.stop()
    assert host.function("worker", 2)(team.address, 0) == 0
    assert tiny * np.float32(0.5) > 0


@pytest.mark.parametrize("affinity", [CPUS[:1], CPUS[-1:], CPUS])
def test_affinity(affinity: list[int]) -> None:
    x = array(33, 40)
    fast = _bound(affinity=affinity)
    assert np.allclose(fast(x), oracle(_fn, W1, W2, x), atol=1e-6)
    pinned = host.team(tuple(affinity))
    threads = [t for t in pinned._threads if t.is_alive()]
    assert len(threads) == len(affinity)
    found = [os.sched_getaffinity(t.native_id) for t in threads]  # type: ignore[arg-type]
    assert found == [{c} for c in affinity]
    segment = fast.session().current.lowered.segments[0].segment
    assert segment.threads == len(affinity)


def test_the_caller_stays_out_of_a_pinned_team() -> None:
    """The work of a pinned function costs the calling thread no processor time to speak of, and the pinned thread does
    it.
    """
    x = array(512, 40)
    fast = _bound(affinity=CPUS[:1])
    fast(x).block_until_ready()
    segment = fast.session().current.lowered.segments[0].segment
    assert segment._descriptor[host.abi.Segment.APART // 8] == 1
    before = segment.calls
    for _ in range(20):
        fast(x).block_until_ready()
    assert segment.calls == before + 20 and (np.diff(segment.stamps(), axis=1) >= 0).all()


@pytest.mark.parametrize("got", [[], [10_000], [-1], ["a"], [0.5], 3])
def test_bad_affinity(got: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"affinity=|iterable"):
        xcoexec.jit(_fn, affinity=got)


def test_more_threads_than_pinned_cores() -> None:
    with pytest.raises(
        ValueError, match=r"got threads=2 for affinity=\(\d+,\); valid are as many threads as cores, or fewer"
    ):
        xcoexec.jit(_fn, threads=2, affinity=CPUS[:1])


@pytest.mark.parametrize("threads", [1, 2, 7, 40])
def test_more_threads_than_cores_under_load(threads: int) -> None:
    """Other threads keep every core busy; several callers share the team."""
    stop = threading.Event()

    def spin() -> None:
        a = np.ones(1 << 16)
        while not stop.is_set():
            np.sqrt(a, out=a)

    load = [threading.Thread(target=spin) for _ in range(2 * len(CPUS))]
    for t in load:
        t.start()
    try:
        fast, x = _bound(threads=threads), array(65, 40)
        want = np.asarray(fast(x))
        wrong: list[int] = []

        def call() -> None:
            for _ in range(30):
                if not np.array_equal(np.asarray(fast(x)), want):
                    wrong.append(1)

        callers = [threading.Thread(target=call) for _ in range(4)]
        for t in callers:
            t.start()
        for t in callers:
            t.join()
        assert not wrong and np.allclose(want, oracle(_fn, W1, W2, x), atol=1e-6)
    finally:
        stop.set()
        for t in load:
            t.join()


_FORK = """
import os, sys, warnings; warnings.simplefilter("ignore")
import numpy as np, jax, jax.numpy as jnp
from xcoexec.codegen.runtime import host
from tests.support import stages_of
w, x = jnp.asarray(np.random.default_rng(0).standard_normal((40, 64), np.float32)), jnp.ones((9, 40))
fn = lambda w, x: jax.nn.relu(x @ w)
folded, graph = stages_of(fn, w, x, weights=1)
consts = folded.constants([w])
masks = ((), (min(os.sched_getaffinity(0)),))
segments = [host.build(graph.program, 2, cpus=cpus) for cpus in masks]
calls = [host.Call(s, [np.asarray(x)], [consts[v] for v in graph.program.consts]) for s in segments]
want = [c()[0].copy() for c in calls]
pid = os.fork()
if pid == 0:
    ok = all(np.array_equal(c()[0], v) for c, v in zip(calls, want))
    os._exit(0 if ok else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def _alone(code: str, seconds: float) -> None:
    """Runs code in a process of its own, which ends with 0."""
    root = os.path.dirname(os.path.dirname(__file__))
    done = subprocess.run([sys.executable, "-c", code], timeout=seconds, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_forked_child_works_without_the_parents_threads() -> None:
    _alone(_FORK, 120)


def test_soak() -> None:
    """In a process of its own, whose memory no other test's threads take or give back meanwhile."""
    _alone("from tests.test_team import soak; soak()", 180)


def soak() -> None:
    """40,000 calls: no thread more, no memory more, the same result to the last bit."""
    fast, x = _bound(threads=2), array(3, 40)
    want = np.asarray(fast(x))
    for _ in range(2000):
        fast(x)
    jax.block_until_ready(fast(x))
    threads, before = threading.active_count(), _resident()
    for i in range(40_000):
        out = fast(x)
        if i % 1000 == 0:
            assert np.array_equal(np.asarray(out), want)
    jax.block_until_ready(out)
    assert threading.active_count() == threads
    assert _resident() - before < 6 << 20


def _resident() -> int:
    with open("/proc/self/status") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith("VmRSS"))


_ONE_CORE = """
import os, warnings; warnings.simplefilter("ignore")
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import jax, jax.numpy as jnp, numpy as np, xcoexec
w, x = jnp.ones((40, 64)), jnp.ones((65, 40))
for threads in (None, 1, 2, 4):
    fast = xcoexec.jit(lambda w, x: jax.nn.softmax(x @ w), strategy="host", strict=True, threads=threads).bind(w)
    for _ in range(50):
        assert np.allclose(fast(x), 1 / 64)
cpus = os.sched_getaffinity(0)
fast = xcoexec.jit(lambda w, x: jax.nn.softmax(x @ w), strategy="host", strict=True, affinity=cpus).bind(w)
for _ in range(50):
    assert np.allclose(fast(x), 1 / 64)
"""


def test_a_machine_with_one_core() -> None:
    done = subprocess.run([sys.executable, "-c", _ONE_CORE], timeout=180, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_exceptions_between_calls_leave_the_team_alone() -> None:
    fast, x = _bound(threads=2), array(9, 40)
    want = np.asarray(fast(x))
    for _ in range(20):
        with pytest.raises(TypeError):
            fast(np.zeros((9, 41), np.float32))
        with pytest.raises(TypeError):
            fast("nine")
        assert np.array_equal(np.asarray(fast(x)), want)


def _switches(thread: threading.Thread) -> str:
    """How often a thread has been given a core and has left it."""
    with open(f"/proc/self/task/{thread.native_id}/status") as f:
        return "".join(line for line in f if "ctxt_switches" in line)


def test_workers_that_calls_do_without_stay_parked() -> None:
    """Calls of two threads want one worker; the others sleep through them (they would spin on cores that somebody else
    can use). Those that a wider call has woken may be late to sleep again where others keep the cores busy.
    """
    x = array(512, 40)
    wide, narrow = _bound(threads=5), _bound(threads=2)
    want = oracle(_fn, W1, W2, x)
    team = host.team(())
    wide(x)
    spare = team._threads[1:]
    assert len(spare) >= 3
    parked = lambda: ctypes.c_int64.from_address(team.address + host.abi.Team.SPARE).value

    def asleep() -> bool:
        """None of them runs through a third of a second of calls."""
        before, end = [*map(_switches, spare)], time.monotonic() + 0.3
        while time.monotonic() < end:
            assert np.allclose(narrow(x), want, atol=1e-6)
        return parked() == len(spare) and [*map(_switches, spare)] == before

    for _ in range(3):
        assert np.allclose(wide(x), want, atol=1e-6)
        until(asleep)


def test_brief_calls_leave_parked_workers_parked() -> None:
    """Whoever calls now and then does not wait for them to wake up where a call is over sooner without them."""
    x = array(64, 40)
    _, graph = stages_of(lambda x: jax.nn.relu(x) * 2 + 1, x)
    segment, team, abi = host.build(graph.program, 2), host.team(()), host.abi
    call = host.Call(segment, [np.asarray(x)], [])
    word = lambda at: ctypes.c_int64.from_address(segment.address + at)
    shared = lambda at: ctypes.c_int64.from_address(team.address + at)
    alone, woken = word(abi.Segment.ALONE_NS), word(abi.Segment.WOKEN_NS)

    def holds(known: tuple[int, int], what: Callable[[], bool], ended: int = 0) -> None:
        """Of what is `known` of calls alone and of those that woke the workers, behind a call that finds these parked:
        one that is on its way to wake up is counted among them, and others may call too.
        """

        def paused() -> bool:
            until(lambda: shared(abi.Team.SLEEPERS).value >= 1)
            time.sleep(0.001)
            alone.value, woken.value = known
            if ended:
                shared(abi.Team.ENDED).value = ended
            np.testing.assert_array_equal(call()[0], np.maximum(x, 0) * 2 + 1)
            return what()

        until(paused)

    call()  # workers that no call has wanted so far are spare ones
    holds((0, 0), lambda: woken.value > 0 == alone.value)
    holds((0, 40_000), lambda: alone.value > 0 and woken.value == 40_000 - 40_000 // 64)
    holds((10**9, 40_000), lambda: woken.value != 40_000 and alone.value == 10**9 - 10**9 // 64)
    holds((0, 10**9), lambda: woken.value != 10**9 and alone.value == 0)
    soon = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 10**12  # the call before has only just ended
    holds((0, 40_000), lambda: woken.value != 40_000 and alone.value == 0, soon)
