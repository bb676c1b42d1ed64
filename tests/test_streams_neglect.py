"""Streams and schedulers that nobody closes, that fail within, or that are used from elsewhere: all who wait are
answered, nothing is left.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xcoexec
from xcoexec.streams import Scheduler, Stats, task
from xcoexec.streams import stream as streams
from xcoexec.streams.cuts import Partly
from xcoexec.streams.edf import Policy
from xcoexec.streams.jobs import Block, Way
from xcoexec.streams.policies import POLICIES
from xcoexec.streams.stream import Stage, Stream

from .test_scheduler import Sleepy, stopped_while_held

pytestmark = pytest.mark.usefixtures("quick_xla")


def _threads() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if t.name.startswith(("xcoexec-scheduler", "xcoexec-stream")))


def _soon(holds: Callable[[], bool], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return holds()


def _as_before() -> bool:
    return not _threads() and gc.get_freeze_count() < 1000


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    assert _as_before()
    yield
    assert _soon(_as_before), (_threads(), gc.get_freeze_count())


@pytest.fixture
def _no_collection() -> Iterator[None]:
    """What ends by its last reference must not need the collector."""
    gc.disable()
    yield
    gc.enable()


class Held(Sleepy):
    """A network whose first block waits for `gate` where the input is "held"."""

    def __init__(self, seconds: float = 0.001, blocks: int = 2):
        self.gate = threading.Event()
        super().__init__(seconds, blocks, lambda x: self.gate.wait(600) if isinstance(x, str) and x == "held" else None)


class Big:
    """Something whose life can be watched."""

    def __mul__(self, factor: int) -> Big:
        return Big()


class Rude:
    def __mul__(self, factor: int) -> Any:
        raise Refused


class Refused(Exception):
    pass


# -- dropped schedulers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [0, 1, 3, 200])
def test_a_dropped_scheduler_ends_and_its_jobs_are_cancelled(jobs: int, _no_collection: None) -> None:
    """One job is at work when the last reference goes; those behind it wait."""
    net = Held()
    s = Scheduler([task("t", net, deadline=600.0)], queue=200)
    futures = [s.release("t", "held") for _ in range(jobs)]
    assert len(_threads()) == 2 and gc.get_freeze_count() > 1000
    time.sleep(0.02)
    del s
    net.gate.set()
    done, left = concurrent.futures.wait(futures, 120)
    assert not left and all(f.cancelled() for f in done) and _soon(_as_before)


def test_a_dropped_scheduler_answers_while_a_block_does_not_return(_no_collection: None) -> None:
    """The other half's worker does it."""
    net = Held()
    net.blocks = (Block("b", (Way("device", 0.001),)),)
    s = Scheduler([task("t", net, deadline=600.0)])
    futures = [s.release("t", "held") for _ in range(3)]
    del s
    assert (
        not concurrent.futures.wait(futures, 120)[1] and all(f.cancelled() for f in futures) and not net.gate.is_set()
    )
    net.gate.set()


def test_futures_keep_neither_the_scheduler_nor_its_networks(_no_collection: None) -> None:
    net = Sleepy()
    s = Scheduler([task("t", net, deadline=600.0)])
    future, alive = s.release("t", 4), weakref.ref(net)
    assert future.result(120) == 40
    del s, net
    assert _soon(lambda: alive() is None) and future.result() == 40


def test_a_scheduler_that_the_collector_finds() -> None:
    """In a circle with something that is younger; another scheduler begins, which collects first, at the same time as
    it ends.
    """
    holder: Any = type("Holder", (), {})()
    holder.me, holder.scheduler = holder, Scheduler([task("t", Sleepy(), deadline=600.0)])
    future = holder.scheduler.release("t", "x" * 3)
    assert future.result(120) == 10 * "xxx"
    gc.unfreeze()  # the holder is older than what was set aside
    alive = weakref.ref(holder)
    del holder
    with Scheduler([task("t", Sleepy(), deadline=600.0)]) as other:
        gc.collect()
        assert alive() is None and other.release("t", 1).result(120) == 10


def test_an_exception_within_with_ends_it() -> None:
    net = Held()
    with pytest.raises(KeyError), Scheduler([task("t", net, deadline=600.0)]) as s:
        futures = [s.release("t", "held") for _ in range(3)]
        net.gate.set()
        raise KeyError
    assert all(f.done() for f in futures)


def test_an_exception_that_keeps_the_frame_keeps_it_until_it_goes(_no_collection: None) -> None:
    """Nobody closes it, but for the exception's own end nothing is needed."""

    def serve() -> None:
        s = Scheduler([task("t", Sleepy(fault=lambda x: 1 / 0), deadline=600.0)])
        s.release("t", 1).result(120)

    with pytest.raises(ZeroDivisionError) as caught:
        serve()
    caught.value.__traceback__ = None
    del caught


def test_what_a_worker_has_done_is_not_kept(_no_collection: None) -> None:
    with Scheduler([task("t", Sleepy(), deadline=600.0)]) as s:
        s._running._networks["t"].ran = type("Nothing", (), {"append": lambda *_: None})()  # its log keeps inputs
        given = Big()
        future = s.release("t", given)
        result = future.result(120)
        alive = [weakref.ref(given), weakref.ref(result)]
        del given, result, future
        assert _soon(lambda: [a() for a in alive] == [None, None])
        bad = s.release("t", Rude())
        error = weakref.ref(bad.exception(120))
        del bad
        assert _soon(lambda: error() is None)


def test_threads_that_cannot_begin_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, count = threading.Thread.start, itertools.count()

    def start(self: threading.Thread) -> None:
        if self.name.startswith("xcoexec-s") and next(count) == 1:
            raise RuntimeError("can't start new thread")
        begin(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Scheduler([task("t", Sleepy(), deadline=600.0)])
    assert _soon(_as_before)
    count = itertools.count()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        xcoexec.pipeline(lambda x: x, preprocess=lambda x: x)(itertools.count())
    assert _soon(_as_before)


# -- answers --------------------------------------------------------------------------------------------


def test_who_waits_for_a_cancelled_job_is_told() -> None:
    """`wait` and `as_completed`, for jobs that wait, that run, and that the end cancels."""
    net = Held()
    with Scheduler([task("t", net, deadline=600.0)], "pinned") as s:
        running, waiting, left = (s.release("t", "held") for _ in range(3))
        time.sleep(0.02)
        assert waiting.cancel() and running.cancel()
        assert not concurrent.futures.wait([running, waiting], 120)[1]
        net.gate.set()
        s.stop()
        assert list(concurrent.futures.as_completed([left], 120)) == [left] and left.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        left.result()


def test_callbacks_come_back() -> None:
    """They run without the scheduler's lock: one that stops it, from a worker, while jobs are skipped; and thousands
    that release.
    """
    net = Held()
    with Scheduler([task("t", net, deadline=600.0)], "pinned") as s:
        first = s.release("t", "held")
        late = [s.release("t", i, 0.01) for i in range(5)]
        late[0].add_done_callback(lambda _: s.stop())
        time.sleep(0.05)
        net.gate.set()
        assert not concurrent.futures.wait([first, *late], 120)[1] and _soon(lambda: not _threads())
        assert all(f.cancelled() or isinstance(f.exception(), xcoexec.SkippedError) for f in late)
    refused = []

    def again(s: Scheduler, _: Any) -> None:
        try:
            s.release("t", 1)
        except RuntimeError as e:
            refused.append(type(e))

    net = Held()
    with Scheduler([task("t", net, deadline=600.0)], "pinned", queue=3000) as s:
        futures = [s.release("t", "held") for _ in range(3000)]
        for f in futures:
            f.add_done_callback(lambda f, s=s: again(s, f))
        stopped_while_held(s, net.gate)
    assert all(f.done() for f in futures) and set(refused) <= {RuntimeError} and len(refused) > 2900


def test_a_callback_that_waits_for_another_thread() -> None:
    """Who holds the lock while the user's code runs would make both wait for ever."""
    with Scheduler([task("t", Sleepy(), deadline=600.0)]) as s:
        found: list[bool] = []

        def callback(_: Any) -> None:
            thread = threading.Thread(target=s.served)
            thread.start()
            thread.join(120)
            found.append(not thread.is_alive())

        future = s.release("t", 1)
        future.add_done_callback(callback)
        assert future.result(120) == 10 and _soon(lambda: found == [True])


def test_stop_iteration_is_an_error_of_its_job() -> None:
    """Also for asyncio, whose futures refuse it."""

    def ends(x: Any) -> None:
        raise StopIteration(x)

    with Scheduler([task("t", Sleepy(fault=ends), deadline=600.0)]) as s:
        with pytest.raises(RuntimeError) as awaited:
            asyncio.run(s.submit("t", 3, timeout=120))
        for error in (s.release("t", 3).exception(120), awaited.value):
            assert (
                str(error).startswith("xcoexec.Scheduler: a block of 't' raised StopIteration; valid is")
                and error.__cause__.value == 3
            )


def _choose_by(fault: BaseException, at: int) -> Policy:
    count = itertools.count()

    def choose(core: Any, job: Any, now: float) -> Any:
        if next(count) == at:
            raise fault
        return POLICIES["pinned"].choose(core, job, now)

    return Policy("mine", choose)


@pytest.mark.parametrize("fault", [KeyError("lost"), KeyboardInterrupt()], ids=["an error", "Ctrl-C"])
@pytest.mark.parametrize("at", [0, 3, 5])
def test_an_exception_while_it_decides_ends_a_scheduler(fault: BaseException, at: int) -> None:
    """Whether it comes up in `release` or in a worker: all who wait are told, and who comes later."""
    net = Held(blocks=3)
    with Scheduler([task("t", net, deadline=600.0)], _choose_by(fault, at)) as s:
        futures = []
        with contextlib.suppress(type(fault)):
            for _ in range(3):
                futures.append(s.release("t", "held"))
        net.gate.set()
        told = [f.exception(120) for f in futures]
        assert all(
            t is None
            or (
                isinstance(t, RuntimeError)
                and t.__cause__ is fault
                and "which ended it; valid is a new scheduler" in str(t)
            )
            for t in told
        )
        assert any(told) or not futures
        assert _soon(lambda: not _threads())
        with pytest.raises(
            RuntimeError,
            match=f"got a job after {type(fault).__name__} in its decisions; valid is a scheduler that runs",
        ):
            s.release("t", 1)


def test_a_choice_that_is_none() -> None:
    with Scheduler([task("t", Sleepy(), deadline=600.0)], Policy("mine", lambda core, job, now: 3)) as s:  # type: ignore[arg-type, return-value]
        with pytest.raises(AttributeError):
            s.release("t", 1)
        with pytest.raises(RuntimeError, match="after AttributeError"):
            s.release("t", 1)


# -- use after the end, and from elsewhere --------------------------------------------------------------


def test_a_second_with_says_that_it_has_ended() -> None:
    s = Scheduler([task("t", Sleepy(), deadline=600.0)])
    with s:
        assert s.release("t", 1).result(120) == 10
    s.stop()
    with pytest.raises(RuntimeError, match=r"got a job after stop\(\); valid is a scheduler that runs"), s:
        pass
    with pytest.raises(RuntimeError, match=r"after stop\(\)"):
        asyncio.run(s.submit("t", 1))
    assert s.served().outcomes == {"in time": 1} and s.events()
    stream = xcoexec.pipeline(lambda x: x)(range(3))
    with stream:
        assert next(stream) == 0
    stream.close()
    with pytest.raises(RuntimeError, match="got a stream that has ended; valid is a new one"), stream:
        pass
    assert list(stream) == []


def test_a_block_that_stops_its_own_scheduler() -> None:
    found: list[Scheduler] = []
    with Scheduler([task("t", Sleepy(fault=lambda x: found[0].stop()), deadline=600.0)]) as s:
        found.append(s)
        futures = [s.release("t", i) for i in range(4)]
        assert not concurrent.futures.wait(futures, 120)[1] and all(f.cancelled() for f in futures)
    found.clear()


def test_stopping_from_another_thread_while_jobs_are_released() -> None:
    with Scheduler([task("t", Sleepy(0.001), deadline=9.0, period=0.005)]) as s:
        threading.Timer(0.1, s.stop).start()
        with pytest.raises(RuntimeError, match=r"after stop\(\)"):
            s.run(5.0, {"t": 1})


def test_waiting_for_a_stream_that_another_thread_closes() -> None:
    """Its item is at work, and its stage does not come back."""
    gate = threading.Event()
    for pipe in (
        xcoexec.pipeline(lambda x: gate.wait(600)),
        xcoexec.pipeline(lambda x: x, preprocess=lambda x: gate.wait(600)),
    ):
        stream = pipe(range(4))
        threading.Timer(0.1, lambda s=stream: s._shared.abandon()).start()
        assert list(stream) == [] and not gate.is_set()
    gate.set()


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Where a shell has started the tests in the background, SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("what", ["stream", "scheduler"])
def test_ctrl_c_while_waiting(what: str, _no_collection: None, _interruptible: None) -> None:
    """Without the collector: an interrupt inside one of its callbacks (JAX has one) goes no further."""
    net, gate = Held(), threading.Event()
    interrupt = threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        if what == "stream":
            stream = xcoexec.pipeline(lambda x: gate.wait(600))(range(3))
            interrupt.start()
            next(stream)
        with Scheduler([task("t", net, deadline=600.0)]) as s:
            future = s.release("t", "held")
            interrupt.start()
            future.result(120)
    gate.set()
    net.gate.set()


def test_asyncio_tasks_that_are_cancelled_give_their_jobs_up() -> None:
    net = Held()

    async def serve(s: Scheduler) -> None:
        waiting = [asyncio.ensure_future(s.submit("t", "held")) for _ in range(4)]
        await asyncio.sleep(0.05)
        for w in waiting:
            w.cancel()
        assert all(
            isinstance(r, asyncio.CancelledError) for r in await asyncio.gather(*waiting, return_exceptions=True)
        )
        stopped = asyncio.ensure_future(s.submit("t", "held"))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(s.stop)
        with pytest.raises(asyncio.CancelledError):
            await stopped

    with Scheduler([task("t", net, deadline=600.0)]) as s:
        threading.Timer(0.3, net.gate.set).start()
        asyncio.run(serve(s))
    assert s.served().outcomes == {"cancelled": 5}


# -- streams --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["preprocess", "network", "postprocess"])
def test_stop_iteration_in_a_stage_is_an_error_at_its_item(where: str) -> None:
    def ends(x: int) -> int:
        return next(iter(())) if x == 2 else x

    stages: dict[str, Any] = {
        "preprocess": lambda x: x,
        "network": lambda x: x,
        "postprocess": lambda x: x,
        where: ends,
    }
    with xcoexec.pipeline(stages.pop("network"), **stages)(range(5)) as stream:
        assert [next(stream), next(stream)] == [0, 1]
        with pytest.raises(
            RuntimeError, match=f"xcoexec.pipeline: the stage '{where}' raised StopIteration; valid is"
        ) as caught:
            next(stream)
        assert isinstance(caught.value.__cause__, StopIteration) and list(stream) == [3, 4]


def test_stop_iteration_in_a_further_part_is_one_too() -> None:
    def ends(x: Any) -> Any:
        raise StopIteration

    stage = Stage("network 1", lambda v: Partly(None, None, v), further=(("network 2", ends),))  # type: ignore[arg-type]
    with Stream([stage], 2, 60.0, range(2)) as stream:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="the stage 'network 2' raised StopIteration"):
                next(stream)
        assert list(stream) == []


@pytest.mark.parametrize("fails", ["never", "in a stage", "in the iterator"])
def test_a_dropped_stream_ends_without_the_collector(fails: str, _no_collection: None) -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        if fails == "in the iterator":
            raise OSError("no file")
        yield from itertools.count(3)

    stream = xcoexec.pipeline(lambda x: 1 // (x - 2 * (fails == "in a stage")), preprocess=lambda x: x + 1)(source())
    assert next(stream) == (-1 if fails == "in a stage" else 1)
    if fails != "never":
        with pytest.raises((ZeroDivisionError, OSError)):
            list(stream)
    assert fails == "in the iterator" or _threads()
    del stream
    assert _soon(lambda: not _threads())


def test_what_a_stage_has_done_is_not_kept(_no_collection: None) -> None:
    gate, ends = threading.Event(), threading.Event()
    made: list[weakref.ref[Big]] = []

    def source() -> Iterator[Big]:
        for _ in range(3):
            yield Big()
        gate.wait(600)

    def seen(x: Big) -> Big:
        made.append(weakref.ref(x))
        if len(made) == 5:
            raise ValueError("the fifth")
        return x * 1

    with xcoexec.pipeline(seen, preprocess=seen, postprocess=seen)(source()) as stream:
        for _ in range(3):
            with contextlib.suppress(ValueError):
                next(stream)
        assert _soon(lambda: [m() for m in made] == [None] * len(made)) and len(made) >= 7
        gate.set()
        ends.set()


def test_statistics_do_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEPT", 50)
    with xcoexec.pipeline(lambda x: x)(range(300)) as stream:
        assert sum(1 for _ in stream) == 300
        found = stream.stats()
    assert isinstance(found, Stats) and found.items == 50 and stream.stats(7).items == 7


# -- processes ------------------------------------------------------------------------------------------

BEGIN = """
import concurrent.futures, gc, os, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
import xcoexec
from xcoexec.streams import Power, Scheduler, lifetime, task
from tests.test_streams_neglect import Held
from tests.test_scheduler import Sleepy
"""


def _process(text: str, seconds: float = 600) -> tuple[str, str]:
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    ran = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(text)], cwd=here, capture_output=True, text=True, timeout=seconds
    )
    assert ran.returncode == 0, (ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout, ran.stderr


EXITS = {
    "asleep": """
        s = Scheduler([task('t', Sleepy(0.05), deadline=600.0)])
        futures = [s.release('t', i) for i in range(9)]
    """,
    "computing": """
        w = jnp.ones((1200, 1200))
        fast = xcoexec.jit(lambda w, x: jnp.tanh(jnp.tanh(x @ w) @ w), strategy="host").bind(w)
        s = Scheduler([task("t", fast, w, deadline=600.0)])
        futures = [s.release("t", w) for _ in range(9)]
    """,
    "in a stream": """
        w = jnp.ones((900, 900))
        network = jax.jit(lambda x: jnp.tanh(x @ w) @ w)
        stream = xcoexec.pipeline(network, preprocess=lambda i: jnp.full((900, 900), i))(iter(int, 1))
        next(stream)
        futures = []
    """,
}


@pytest.mark.parametrize("what", EXITS)
def test_a_process_may_exit_with_jobs_in_flight(what: str) -> None:
    """They are cancelled, with their callbacks called; nothing is said, nothing hangs."""
    told = "for f in futures: f.add_done_callback(lambda f: sys.stdout.write('x'))"
    text = f"{textwrap.dedent(EXITS[what])}\n{told}\nsys.stdout.write(str(len(futures)))\n"
    out, err = _process(text)
    assert out == ("0" if what == "in a stream" else "9" + 9 * "x") and not err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_no_workers_and_says_so() -> None:
    """Jobs that waited are cancelled there, new ones refused, the collector works; its parent goes on."""
    out, _ = _process("""
        net = Held()
        s = Scheduler([task("t", net, deadline=600.0)])
        pipe = xcoexec.pipeline(lambda x: x)
        stream = pipe(range(5))
        assert next(stream) == 0
        futures = [s.release("t", "held") for _ in range(5)]
        time.sleep(0.05)
        pid = os.fork()
        if pid == 0:
            concurrent.futures.wait(futures, 120)
            print(*(f.cancelled() for f in futures), gc.get_freeze_count() < 1000)
            for call in (lambda: s.release("t", 1), lambda: next(stream), s.__enter__, stream.__enter__):
                try:
                    call()
                except RuntimeError as e:
                    print(e)
            s.stop()
            stream.close()
            with Scheduler([task("t", Sleepy(), deadline=600.0)]) as mine:
                print(mine.release("t", 1).result(120), list(pipe(range(3))))
            del s, stream
            lifetime._exit()
            sys.stdout.flush()
            os._exit(0)  # JAX's own end does not survive a fork
        assert os.waitpid(pid, 0)[1] == 0
        net.gate.set()
        print([f.result(120)[:8] for f in futures], list(stream))
        s.stop()
    """)
    first, *told, new, parent = out.splitlines()
    assert (
        first == "True True True True True True"
        and new == "10 [0, 1, 2]"
        and parent == f"{['heldheld'] * 5} [1, 2, 3, 4]"
    )
    job, item = (
        "got a job in a process that was forked from its own; valid is",
        "got a stream of the process that this one was forked from; valid is",
    )
    assert [job in told[0], item in told[1], job in told[2], "got a stream that has ended" in told[3]] == [
        True
    ] * 4 and len(told) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_leaves_its_parents_clocks_alone(tmp_path: Any) -> None:
    policy = tmp_path / "cpufreq" / "policy0"
    policy.mkdir(parents=True)
    (policy / "scaling_available_frequencies").write_text("400000 3200000")
    (policy / "scaling_max_freq").write_text("3200000")
    out, _ = _process(f"""
        import pathlib
        from xcoexec.streams.power import Cpufreq
        root = pathlib.Path({str(tmp_path)!r})
        limit = lambda: (root / "cpufreq" / "policy0" / "scaling_max_freq").read_text().strip()
        power = Power("save", 9.0, allow_power_control=True, knobs=[Cpufreq(root / "cpufreq")], folder=root)
        stream = xcoexec.pipeline(lambda x: x, power=power)(range(9))
        for _ in range(5): next(stream)
        pid = os.fork()
        if pid == 0:
            stream.close()
            power.restore()
            del stream, power
            lifetime._exit()
            os._exit(0)  # JAX's own end does not survive a fork
        assert os.waitpid(pid, 0)[1] == 0
        print(limit())
        stream.close()
        print(limit())
    """)
    assert out.split() == ["400000", "3200000"] and np.all(
        [not f.name.startswith("power-state") for f in tmp_path.iterdir()]
    )
