"""Faults of host calls, injected at every call site: what is read is right or an exception came, and it stays with the
function that had it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import pathlib
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.codegen.native import call_layout as calls
from xcoexec.codegen.native import layout as abi
from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.faults import TEXTS, word
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.codegen.segment.assembly import Segment
from xcoexec.errors import BindError, CoexecWarning
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.session import prepare

from .standin import CALLS, TRAPPED, StandIn, sleeping
from .support import array, build_on, dense, error, given_back, moved, oracle, stages_of, streaming, until
from .test_codl import BLOCK, TOKENS, block, up_to
from .test_in_turn import W, residual
from .test_in_turn import X as ROWS
from .test_relay import WEIGHTS, X, _chain, _residual

pytestmark = pytest.mark.usefixtures("quick_xla")

LIMIT = 1.0  # seconds until a call that nobody begins is taken over, where a test is about that
PATIENCE = 300.0  # the same in the others: no machine is so slow
RAISED = (
    jax.errors.JaxRuntimeError,
    ValueError,
    BindError,
)  # what XLA makes of an error depends on where it looks for it
MEMORY = ["mapped", "copy"]


def _two(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w[0]) @ w[1]


WIDE = [array(192, 192, seed=1), array(192, 192, seed=2)]
TWO, SMALL = [array(16, 24, seed=1), array(24, 16, seed=2)], array(3, 16)


def _made(make: Any, fn: Any, w: Any, x: Any) -> Plan:
    return make(stages_of(fn, w, x, weights=1)[1])


def _last(w: Any, x: Any) -> Any:
    return residual(w, x)[1]["last"]


def _in_three(graph: LayerGraph) -> Plan:
    """Some layers of each of three programs divided."""
    split = lambda x: x.index % 9 == 4 and "channel" in x.dims
    places = (Placement(x.name, "split" if split(x) else "device", 0.5 * split(x)) for x in graph.layers)
    return Plan("test", tuple(places), graph.key, programs=3)


#: function, weights, input, plan
PROGRAMS: dict[str, tuple[Any, Any, Any, Plan]] = {
    "host": (_two, TWO, SMALL, Plan.uniform(1.0)),
    "split": (_two, TWO, SMALL, Plan.uniform(0.5)),
    "chain": (_residual, WEIGHTS, X, _made(_chain(0, 3, 0.5), _residual, WEIGHTS, X)),
    "several results": (block, BLOCK, TOKENS, _made(lambda g: up_to(g, (1, 21, 4, 12), 0.5), block, BLOCK, TOKENS)),
    "several programs": (_last, W, ROWS, _made(_in_three, _last, W, ROWS)),
    "streamed": (dense, WIDE, array(1, 192), _made(streaming(0.5, 0.25), dense, WIDE, array(1, 192))),
}
WANT = {name: oracle(fn, w, x) for name, (fn, w, x, _) in PROGRAMS.items()}


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """The public API over a stand-in device, and the relay that it uses."""
    mine = Relay(StandIn(), limit_seconds=PATIENCE, last_seconds=PATIENCE)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: mine)
    yield mine
    mine.stop()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """One that soon takes over what nobody begins."""
    mine = Relay(StandIn(), limit_seconds=LIMIT, last_seconds=PATIENCE)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: mine)
    yield mine
    mine.stop()


def _bound(name: str, memory: str = "mapped", strict: bool = False) -> Any:
    """A co-executed function whose first call was right."""
    fn, w, x, plan = PROGRAMS[name]
    fast = xcoexec.jit(fn, plan=plan, memory=memory, strict=strict).bind(w)
    assert error(np.asarray(fast(x)), WANT[name]) < 1e-5
    assert fast.report().ran == "xco"
    return fast


def _read(fast: Any, name: str) -> bool:
    """Whether a call gave its result; an exception is the other thing that it may give."""
    try:
        got = np.asarray(fast(PROGRAMS[name][2]))
    except RAISED as e:
        assert "xcoexec" in str(e), e
        return False
    assert error(got, WANT[name]) < 1e-5
    return True


def _retired(fast: Any, name: str, strict: bool, seen: list[warnings.WarningMessage]) -> None:
    """After a fault: plain jax.jit from now on with one warning; strict: an exception at every call."""
    read = [_read(fast, name) for _ in range(4)]
    told = [str(w.message) for w in seen if issubclass(w.category, CoexecWarning)]
    if strict:
        assert not told and not any(read)
        with pytest.raises((BindError, jax.errors.JaxRuntimeError, ValueError), match="xcoexec"):
            fast(PROGRAMS[name][2]).block_until_ready()
    else:
        assert len(told) == 1 and read[-2:] == [True, True] and fast.report().ran == "jit", (told, read)


@contextlib.contextmanager
def _warned() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


def _site(fast: Any) -> Any:
    return next(iter(fast.session().current.lowered.sites.values()))


def _segment(fast: Any) -> Segment:
    return fast.session().current.lowered.segments[0].segment


# -- the driver


@pytest.mark.parametrize(
    ("name", "memory", "strict"),
    [
        *((name, memory, False) for name in PROGRAMS for memory in MEMORY),
        *zip(PROGRAMS, MEMORY * 3, (True,) * 6, strict=True),
    ],
)
def test_every_call_of_the_driver_fails_once(relay: Relay, name: str, memory: str, strict: bool) -> None:
    """The n-th launch, copy, record and wait of a call fails, for every n that the call has."""
    driver, faults = relay.driver, 0
    # two of three: a third when strict, another one when not
    many = name in ("chain", "several results", "several programs", "streamed")
    assert isinstance(driver, StandIn)
    for call in CALLS:
        for n in range(1 if many and strict else 0, 200, 3 if many or strict else 1):
            fast = _bound(name, memory, strict)
            driver.fail_at = call, n
            with _warned() as seen:
                _read(fast, name)
                hit, driver.fail_at = driver.fail_at[1] == -1, ("", -1)
                if not hit:
                    break
                _retired(fast, name, strict, seen)
            faults += 1
    assert faults >= {("mapped", False): 1, ("mapped", True): 1, ("copy", False): 3, ("copy", True): 3}[memory, strict]
    assert relay.served
    until(lambda: relay._open() is None)
    del fast
    jax.clear_caches()
    gc.collect()
    given_back(relay)


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_device_that_is_lost_in_a_call(monkeypatch: pytest.MonkeyPatch, name: str, memory: str) -> None:
    """From the n-th launch on all of the driver fails, as it does when a CUDA context has an error. The end does not
    wait for what was open.
    """
    for n in (0, 1, 3):
        driver = StandIn()
        relay = Relay(driver, limit_seconds=PATIENCE, last_seconds=PATIENCE)
        monkeypatch.setattr(prepare, "device_relay", lambda cpus, relay=relay: relay)
        fast, other = _bound(name, memory), _bound("split", memory)
        pending, driver.fail_at, driver.lost = _pending(), ("launch", n), True
        with _warned() as seen:
            _read(fast, name)
            assert driver.fail_at[1] == -1 or n > 1  # every call has two launches at least
            if driver.fail_at[1] == -1:
                _retired(fast, name, False, seen)
                assert [_read(other, "split") for _ in range(3)][-1] and other.report().ran == "jit"
        began = time.monotonic()
        relay.stop()
        assert time.monotonic() - began < PATIENCE / 3 and _pending() == pending


def _pending() -> int:
    """Calls that the team expects."""
    return word(host.team().address + abi.Team.PENDING).value


@pytest.mark.parametrize("what", ["mapped", "words", "event"])
@pytest.mark.parametrize("name", ["split", "streamed"])
def test_memory_that_is_refused_when_a_plan_is_made(relay: Relay, name: str, what: str) -> None:
    driver = relay.driver
    assert isinstance(driver, StandIn)
    fn, w, x, plan = PROGRAMS[name]
    driver.fail_mapped, driver.fail_driver = (2, {}) if what == "mapped" else (0, {what: 2})
    with pytest.warns(CoexecWarning, match=r"failed: .*code 2"):
        assert error(np.asarray(xcoexec.jit(fn, plan=plan, memory="copy").bind(w)(x)), WANT[name]) < 1e-5
    with pytest.raises(BindError, match=r"failed: .*code 2"):
        xcoexec.jit(fn, plan=plan, memory="copy", strict=True).bind(w)(x)
    gc.collect()
    driver.fail_mapped, driver.fail_driver = 0, {}
    given_back(relay)


def test_nothing_is_written_after_an_error() -> None:
    """When a handler returns an error, XLA takes the program's arrays back: no copy to one of them may still be on its
    way.
    """
    driver = StandIn(delay=3e-2)
    relay = Relay(driver, limit_seconds=LIMIT)
    hits = 0
    for call, n in (
        [("follow", n) for n in range(8)] + [("copy", n) for n in range(6)] + [("launch", n) for n in range(6)]
    ):
        exe = build_on(relay, _two, TWO, SMALL, moved(Plan.uniform(0.5), "copy", "copy"))
        np.asarray(exe.call([SMALL])[0])
        driver.fail_at = call, n
        try:
            np.asarray(exe.call([SMALL])[0])
        except RAISED:
            hits += 1
            assert not driver.busy
        driver.fail_at = "", -1
    assert hits > 10
    relay.stop()


# -- the serving thread


def _dismiss(relay: Relay) -> None:
    """The serving thread leaves, as if it had died; while a call is open the watch soon makes another one."""
    server = relay._threads[-1]
    relay._word(calls.Relay.SERVER).value = 0
    relay._wake()
    server.join(timeout=PATIENCE)
    assert not server.is_alive()


def _kill(relay: Relay) -> None:
    """No thread serves any more; no call is open."""
    _dismiss(relay)
    assert not relay.served


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_serving_thread_before_a_call(relay: Relay, name: str, memory: str, strict: bool) -> None:
    fast = _bound(name, memory, strict)
    _kill(relay)
    with _warned() as seen:
        assert _read(fast, name) or strict  # another thread serves it
        assert relay.served
        _retired(fast, name, strict, seen)
    assert all("was gone" in str(w.message) for w in seen)
    assert _read(_bound(name, memory, strict), name)  # other functions have the new thread


def test_the_serving_thread_goes_during_a_call(relay: Relay) -> None:
    """While it waits for the operands, and while the segment runs: another one is there before either has an end."""
    driver = relay.driver
    assert isinstance(driver, StandIn)
    fast = _bound("split")
    segment, before = _segment(fast), _segment(fast).calls
    with _warned() as seen, ThreadPoolExecutor(1) as pool:
        with driver.held():
            reading = pool.submit(_read, fast, "split")
            until(lambda: relay._open() is not None)
            _dismiss(relay)
            until(lambda: relay.served)
        assert reading.result(timeout=PATIENCE) and segment.calls == before + 1
        _retired(fast, "split", False, seen)
    fast = _bound("split")
    segment, before = _segment(fast), _segment(fast).calls
    with _warned() as seen, ThreadPoolExecutor(1) as pool:
        with sleeping(segment, PATIENCE) as began:
            reading = pool.submit(_read, fast, "split")
            assert began.wait(PATIENCE)
            relay._word(calls.Relay.SERVER).value = 0  # what it has begun it ends
            until(lambda: relay.served)
        assert reading.result(timeout=PATIENCE) and segment.calls == before + 1
        _retired(fast, "split", False, seen)
    assert _read(_bound("split"), "split")


def test_a_serving_thread_that_does_not_begin(hasty: Relay) -> None:
    """It lives and does nothing; another one takes the call over, and it finds nothing to do when it comes back."""
    fast, over = _bound("split"), threading.Event()
    with hasty._lock:
        stuck = threading.Thread(target=over.wait, daemon=True)
        stuck.start()
        hasty._threads.append(stuck)
        hasty._word(calls.Relay.SERVER).value = len(hasty._threads)
        hasty._wake()
    began = time.monotonic()
    with _warned() as seen:
        assert _read(fast, "split")
        assert time.monotonic() - began >= LIMIT
        _retired(fast, "split", False, seen)
    assert "not begun in time" in str(seen[0].message)
    before = len(hasty._threads)
    host.function("serve", 2, "serving")(hasty.address, before - 1)  # it leaves at once
    assert _read(_bound("split"), "split") and hasty.served and len(hasty._threads) == before
    over.set()


def test_several_serving_threads_share_the_calls(relay: Relay) -> None:
    """A call is served by the one that claims it, however many there are, and once."""
    fast = _bound("split")
    number = relay._word(calls.Relay.SERVER).value
    others = [
        threading.Thread(target=host.function("serve", 2, "serving"), args=(relay.address, number), daemon=True)
        for _ in range(3)
    ]
    for t in others:
        t.start()
    segment, before = _segment(fast), _segment(fast).calls
    for _ in range(300):
        assert _read(fast, "split")
    assert segment.calls == before + 300 and relay.errors == 0


def test_the_service_has_ended(relay: Relay) -> None:
    """As at the end of the process, where other threads may still call."""
    fast, strict = _bound("split"), _bound("split", strict=True)
    relay.stop()
    relay.stop()
    with _warned() as seen:
        _retired(fast, "split", False, seen)
    with _warned() as seen:
        _retired(strict, "split", True, seen)
    with pytest.warns(CoexecWarning, match="no host call is taken any more"):
        xcoexec.jit(_two, plan=Plan.uniform(0.5)).bind(TWO)(SMALL)


# -- the segment


_kept: list[Any] = []


@pytest.mark.parametrize("memory", MEMORY)
def test_a_slow_host_is_no_fault(hasty: Relay, memory: str) -> None:
    """A segment that takes several times the limit: the result is right, the plan stays."""
    fast = _bound("split", memory, strict=True)
    with sleeping(_segment(fast), 4 * LIMIT):
        began = time.monotonic()
        assert _read(fast, "split") and time.monotonic() - began > 4 * LIMIT
    assert _read(fast, "split") and fast.report().ran == "xco" and hasty.errors == 0


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("memory", MEMORY)
def test_a_segment_that_never_ends(monkeypatch: pytest.MonkeyPatch, memory: str, strict: bool) -> None:
    """The device is stopped: whoever reads gets an exception, and so do all later calls of the relay."""
    relay = Relay(StandIn(), limit_seconds=LIMIT, last_seconds=2 * LIMIT)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: relay)
    fast, other = _bound("split", memory, strict), _bound("host", memory)
    driver = relay.driver
    assert isinstance(driver, StandIn)
    with _warned() as seen, sleeping(_segment(fast), 60.0):
        read = _read(fast, "split")
        until(lambda: driver.trapped == TRAPPED)
        assert not read or not strict  # a stand-in's plain jax.jit still runs
        _retired(fast, "split", strict, seen)
        assert [_read(other, "host") for _ in range(3)][-1]
    relay.stop()


def test_a_flag_that_the_device_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    relay = Relay(StandIn(), limit_seconds=LIMIT, last_seconds=PATIENCE)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: relay)
    fast, driver = _bound("split"), relay.driver
    assert isinstance(driver, StandIn)
    relay._word(calls.Relay.LIMIT_NS).value = int(LIMIT * 1e9)  # the device's; now that a call has been right
    driver.forget_ready = True
    with _warned() as seen:
        _read(fast, "split")
        until(lambda: driver.trapped == TRAPPED)
        _retired(fast, "split", False, seen)
    relay.stop()


@contextlib.contextmanager
def _refusing(times: int) -> Iterator[list[int]]:
    """posix_memalign says no so many times (in what native code calls). Gives the times that are left."""
    table, left = host.team().libc, [times]
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    at, real = abi.Libc.MEMALIGN // 8, kind(int(table[abi.Libc.MEMALIGN // 8]))

    def refuse(out: int, align: int, nbytes: int) -> int:
        left[0] -= 1
        return 12 if left[0] >= 0 else int(real(out, align, nbytes))

    good, callback = int(table[at]), kind(refuse)
    table[at] = ctypes.cast(callback, ctypes.c_void_p).value
    try:
        yield left
    finally:
        table[at] = good
        _kept.append(callback)


def _without_arenas(segment: Segment) -> None:
    swap, free = host.function("swap", 2), ctypes.CDLL(None).free
    for i in range(abi.ARENA_SLOTS):
        free(ctypes.c_void_p(swap(segment.address + abi.Segment.SLOTS + 8 * i, 0)))


def test_calls_of_a_plan_need_no_memory(relay: Relay) -> None:
    """Memory for the intermediates is there before the first call: none can be refused it."""
    exe = build_on(relay, _two, TWO, SMALL, Plan.uniform(0.5))
    with _refusing(1000) as left:
        for _ in range(3):
            assert error(np.asarray(exe.call([SMALL])[0]), WANT["split"]) < 1e-5
    assert left[0] == 1000 and not len(exe.lowered.faults)  # type: ignore[union-attr]


def test_memory_for_intermediates_that_is_refused_when_a_plan_is_made(relay: Relay) -> None:
    with _refusing(1), pytest.warns(CoexecWarning, match="no memory is left for the"):
        got = xcoexec.jit(_two, plan=Plan.uniform(0.5)).bind(TWO)(SMALL)
    assert error(np.asarray(got), WANT["split"]) < 1e-5
    gc.collect()
    given_back(relay)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_for_intermediates_that_is_refused_in_a_call(relay: Relay, name: str, memory: str, strict: bool) -> None:
    """The call waits until there is some; its result is right, and the function is told."""
    fast = _bound(name, memory, strict)
    _without_arenas(_segment(fast))
    with _warned() as seen:
        with _refusing(50) as left:
            assert _read(fast, name) or strict
        assert left[0] < 50
        _retired(fast, name, strict, seen)


def test_memory_for_intermediates_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    relay = Relay(StandIn(), limit_seconds=LIMIT, last_seconds=LIMIT)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: relay)
    fast = _bound("split", strict=True)
    _without_arenas(_segment(fast))
    with _refusing(1 << 60):
        with pytest.raises(RAISED, match="xcoexec"):
            np.asarray(fast(SMALL))
        # the exception may come before XLA gives the device the kernel that is stopped
        until(lambda: relay.driver.trapped == TRAPPED)  # type: ignore[attr-defined]
    relay.stop()


# -- programs and functions


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("fault", ["driver", "thread", "memory"])
def test_a_fault_stays_with_the_function_that_had_it(relay: Relay, fault: str, memory: str) -> None:
    unlucky, others = (
        _bound("split", memory),
        [_bound("host", memory), _bound("streamed", memory), _bound("split", memory)],
    )
    names = ["host", "streamed", "split"]
    before = [f.plan() for f in others]
    with _warned() as seen:
        if fault == "driver":
            relay.driver.fail_at = "launch", 1  # type: ignore[attr-defined]
        elif fault == "thread":
            _kill(relay)
        else:
            _without_arenas(_segment(unlucky))
        with _refusing(3) if fault == "memory" else contextlib.nullcontext():
            _read(unlucky, "split")
        _retired(unlucky, "split", False, seen)
        for _ in range(5):
            assert all(_read(f, n) for f, n in zip(others, names, strict=True))
    assert relay.errors >= 1 and len([w for w in seen if issubclass(w.category, CoexecWarning)]) == 1
    assert [f.report().ran for f in others] == ["xco"] * 3 and [f.plan() for f in others] == before


@pytest.mark.parametrize("memory", MEMORY)
def test_a_site_that_is_never_given_free(hasty: Relay, memory: str) -> None:
    """An execution ended between start and join, by an error that is not ours: the next one waits for it, not for ever,
    and takes nothing from it.
    """
    fast = _bound("split", memory)
    word(_site(fast).address + calls.Site.TAKEN).value = 1
    with _warned() as seen:
        began = time.monotonic()
        _read(fast, "split")
        assert time.monotonic() - began >= LIMIT
        _retired(fast, "split", False, seen)
    assert TEXTS[calls.Text.HELD // 8] in str(seen[0].message)


def test_a_long_call_does_not_cost_the_next_execution_its_site(hasty: Relay) -> None:
    """Executions in several threads, each of which holds the site for twice the limit: all of them are right. The last
    one waits for four times the limit.
    """
    fast = _bound("split", strict=True)
    with sleeping(_segment(fast), 2 * LIMIT), ThreadPoolExecutor(3) as pool:
        assert all(pool.map(lambda _: _read(fast, "split"), range(3)))
    assert hasty.errors == 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("memory", MEMORY)
def test_faults_while_several_threads_call(relay: Relay, memory: str, call: str) -> None:
    driver = relay.driver
    assert isinstance(driver, StandIn)
    with _warned():
        for n in (0, 7, 23):
            fast, calm = _bound("split", memory), _bound("host", memory)
            driver.delay, driver.fail_at = 1e-3, (call, n)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda i, f=fast, c=calm: _read(*((f, "split") if i % 2 else (c, "host"))), range(40)))
            driver.delay, driver.fail_at = 0.0, ("", -1)
            assert [_read(f, m) for f, m in ((fast, "split"), (calm, "host")) for _ in range(3)][2::3] == [True, True]
    assert relay._open() is None


def test_arguments_that_were_given_away(relay: Relay) -> None:
    """They are gone after the call: its result is right or raises, and the next call runs with plain jax.jit."""
    plan = Plan.uniform(0.5)
    want = oracle(_two, TWO, SMALL)
    for n in range(4):
        fast = xcoexec.jit(_two, plan=plan, donate_argnums=1).bind(TWO)
        give = lambda: jnp.array(SMALL, copy=True)
        assert error(np.asarray(fast(give())), want) < 1e-5
        relay.driver.fail_at = "launch", n  # type: ignore[attr-defined]
        with _warned():
            for _ in range(3):
                with contextlib.suppress(*RAISED):
                    assert error(np.asarray(fast(give())), want) < 1e-5
            relay.driver.fail_at = "", -1  # type: ignore[attr-defined]
            assert error(np.asarray(fast(give())), want) < 1e-5


# -- the CPU alone


@pytest.mark.parametrize("strict", [False, True])
def test_memory_for_intermediates_that_is_refused_on_the_cpu(strict: bool) -> None:
    fn, w, x, _ = PROGRAMS["chain"]
    fast = xcoexec.jit(fn, strategy="host", strict=strict).bind(w)
    assert error(np.asarray(fast(x)), WANT["chain"]) < 1e-5
    segment = _segment(fast)
    for _ in range(3):
        _without_arenas(segment)
        with _refusing(1 << 60) as left, _warned() as seen:
            read = _read(fast, "chain")
            assert left[0] < 1 << 60 or fast.report().ran == "jit"
            assert not (read and strict)
        assert not strict or not seen
        if fast.report().ran == "jit":
            break
    assert _read(fast, "chain")


# -- the end of the process

_EXIT = """
import os, sys, time, warnings; warnings.simplefilter("ignore")
from concurrent.futures import ThreadPoolExecutor
import jax, numpy as np
from xcoexec.codegen.runtime.relay import Relay
from tests.standin import StandIn, sleeping
from tests.support import Plan, array, build_on
from tests.test_faults import TWO, SMALL, _two
mode = sys.argv[1]
driver = StandIn(delay=0.1)
relay = Relay(driver, limit_seconds=300.0 if mode == "fork" else 0.5)
exe = build_on(relay, _two, TWO, SMALL, Plan.uniform(0.5))
want = np.asarray(exe.call([SMALL])[0])
if mode == "fork":
    pool = ThreadPoolExecutor(1)
    with sleeping(exe.lowered.segments[0].segment, 60.0) as begun:
        call = pool.submit(lambda: np.asarray(exe.call([SMALL])[0]))
        assert begun.wait(60.0) and relay._open() is not None  # a call of the parent's is open
        pid = os.fork()
        if pid == 0:
            began = time.monotonic()
            relay.stop()
            os._exit(0 if time.monotonic() - began < 100 and relay._open() is None else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert np.array_equal(call.result(), want)
    sys.exit(code)
if mode == "hung":
    slow = sleeping(exe.lowered.segments[0].segment, 30.0)
    slow.__enter__()
    jax.numpy.zeros(3).block_until_ready()
    import threading
    threading.Thread(target=lambda: exe.call([SMALL]), daemon=True).start()
    time.sleep(0.5)
if mode == "flight":
    outs = [exe.call([SMALL])[0] for _ in range(5)]
    relay.stop()
    for out in outs:
        try:
            assert np.array_equal(np.asarray(out), want)
        except (jax.errors.JaxRuntimeError, ValueError) as e:
            assert "no host call is taken any more" in str(e)
"""


@pytest.mark.parametrize("mode", ["flight", "fork", "hung"])
def test_the_end_of_the_process(mode: str) -> None:
    """It comes soon, with calls in flight, in a forked child, and with a segment that never ends."""
    done = subprocess.run(
        [sys.executable, "-c", _EXIT, mode],
        timeout=200,
        capture_output=True,
        text=True,
        cwd=pathlib.Path(__file__).parent.parent,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "ignored in atexit callback" not in done.stderr, done.stderr[-2000:]
