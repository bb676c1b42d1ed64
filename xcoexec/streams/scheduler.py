"""Several networks with deadlines on both halves, in real time: one worker a half, the decisions of `edf.Core`, results as futures."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import functools
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..bound import Bound
from ..compat import worker
from ..errors import SkippedError
from ..runtime.timeline import event, rows
from . import garbage
from .edf import Core, Policy, Start
from .jobs import BOTH, HALVES, Job, Task, positive, utilisation
from .metrics import Metrics, no_metrics
from .model import Network, model
from .policies import policy as by_name
from .virtual import releases, simulate

QUEUE = 64  # jobs of a task that may wait
KEPT = 20_000  # of what is kept of ended jobs and blocks
STOP_SECONDS = 0.9
ADMISSION_PERIODS = 20
TIDY_SECONDS = 10.0  # between two looks for memory to give back: 4 to 9 ms each, on a half that has nothing to do
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


@dataclasses.dataclass(frozen=True)
class Ended:
    """What is kept of a job: seconds from its release to its end (None: it was not run to its end), and its path's accuracy."""

    task: str
    number: int
    outcome: str
    seconds: float | None
    accuracy: float


@dataclasses.dataclass(frozen=True)
class Served:
    """Since the start: jobs by outcome, the missing rate (Equation 3), accuracy of what ended, where time went (seconds), and `pace`: by how
    much blocks took longer on each half than they were measured to."""

    released: int
    outcomes: Mapping[str, int]
    missing_rate: float
    accuracy: float
    seconds: float
    busy: Mapping[str, float]
    deciding: float
    pace: Mapping[str, float]

    @property
    def cost(self) -> float:
        """The share of one core that keeping the queue, choosing and waking workers took."""
        return self.deciding / max(self.seconds, 1e-9)


@dataclasses.dataclass(eq=False)
class _Request:
    """A job on its way: its input or its state between blocks, and who waits for it."""

    job: Job
    state: Any
    future: Future[Any]


class Scheduler:
    """Runs jobs of several tasks on both halves; a context manager.

    While it runs, Python's garbage collector leaves alone what was there before (`gc.freeze`): looking through it takes longer than most deadlines.

    Args:
      tasks: what `task` makes.
      policy: "slack" (ours; of more jobs than there is room for the longest give way), "slack_fair" (none does), "blastnet",
        "blastnet_any", "layer_sched", "mono_adapt", "mono_sched".
      queue: jobs of one task that may wait; one more is skipped.
      admission: refuse sets of periodic tasks that cannot be met (see `admits`).
      registry: a `prometheus_client` registry for counters and histograms (needs the extra "serve").
    """

    def __init__(
        self,
        tasks: Iterable[tuple[Network, Task]],
        policy: str | Policy = "slack",
        *,
        queue: int = QUEUE,
        admission: bool = False,
        registry: Any = None,
    ):
        tasks = list(tasks)
        networks = {t.name: (network, t) for network, t in tasks}
        if len(networks) < len(tasks):
            raise ValueError("xcoexec.Scheduler: got two tasks of one name; valid are tasks with names of their own.")
        if not networks:
            raise ValueError("xcoexec.Scheduler: got no tasks; valid is at least one.")
        if not isinstance(queue, int) or isinstance(queue, bool) or queue < 1:
            raise ValueError(f"xcoexec.Scheduler: got queue={queue!r}; valid is an integer from 1 on.")
        self._networks = {name: network for name, (network, _) in networks.items()}
        self.tasks = {name: task for name, (_, task) in networks.items()}
        self._policy, self._queue = by_name(policy), queue
        if admission and not admits(list(self.tasks.values()), self._policy):
            need = utilisation(list(self.tasks.values()))
            raise ValueError(f"xcoexec.Scheduler: got tasks that miss deadlines even by their measured seconds (they need {need:.0%} of both halves).")
        self._metrics = Metrics(registry) if registry is not None else no_metrics
        self._core = Core(self._policy)
        self._requests: dict[Job, _Request] = {}
        self._waiting: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._work_for: dict[str, SimpleQueue[tuple[Start, _Request] | None]] = {half: SimpleQueue() for half in HALVES}
        self._lock = threading.RLock()
        self._stopped = False
        self._outcomes: Counter[str] = Counter()
        self.ended: deque[Ended] = deque(maxlen=KEPT)
        self.blocks: deque[tuple[str, int, str, bool, float, float]] = deque(maxlen=KEPT)  # task, block, half, twin, start, end
        self._busy, self._due = dict.fromkeys(HALVES, 0.0), dict.fromkeys(HALVES, 0.0)
        self._deciding, self._tidied = 0.0, 0.0
        self._threads = [worker(self._work, (half,), f"xcoexec-scheduler-{half}") for half in HALVES]
        garbage.freeze()
        self._began = time.perf_counter()
        for thread in self._threads:
            thread.start()

    # -- who asks -----------------------------------------------------------------------------------------

    def release(self, name: str, x: Any, deadline: float | None = None) -> Future[Any]:
        """A job now; its result as a future, which raises `SkippedError` where it came too late or there was no room.

        `deadline`: seconds from now, instead of the task's. Raises `ValueError` for an unknown task, `RuntimeError` after `stop`.
        """
        if name not in self.tasks:
            raise ValueError(f"xcoexec.Scheduler: got task {name!r}; valid are {', '.join(self.tasks)}.")
        positive("deadline", deadline, name)
        future: Future[Any] = Future()
        with self._lock:
            if self._stopped:
                raise RuntimeError("xcoexec.Scheduler: got a job after stop(); valid is a scheduler that runs.")
            self._numbers[name] += 1
            job = Job(self.tasks[name], self._numbers[name], self._now(), deadline)
            self._metrics.released(name)
            if self._waiting[name] >= self._queue:
                job.skipped = True
                self._end(_Request(job, None, future), "overflow", SkippedError(f"xcoexec.Scheduler: {self._queue} jobs of {name!r} wait already."))
                return future
            self._waiting[name] += 1
            self._requests[job] = _Request(job, x, future)
            future.add_done_callback(functools.partial(self._cancelled, job))
            self._step(released=job)
        return future

    async def submit(self, name: str, x: Any, deadline: float | None = None, timeout: float | None = None) -> Any:
        """`release` for asyncio: waits for the result; cancelled or after `timeout` seconds (`TimeoutError`) the job is dropped."""
        return await asyncio.wait_for(asyncio.wrap_future(self.release(name, x, deadline)), timeout)

    def run(self, seconds: float, inputs: Mapping[str, Any], offsets: Sequence[float] = ()) -> list[Future[Any]]:
        """Releases the jobs of all periodic tasks for so many seconds, each at its time, and waits until all have ended."""
        plan = releases([dataclasses.replace(t, name=name) for name, t in self.tasks.items()], seconds, offsets)
        begin, futures = time.perf_counter(), []
        for job in plan:
            wait = begin + job.release - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            futures.append(self.release(job.task.name, inputs[job.task.name]))
        for f in futures:
            if not f.done():
                f.exception()
        return futures

    # -- who works ----------------------------------------------------------------------------------------

    def _now(self) -> float:
        return time.perf_counter() - self._began

    def _step(self, released: Job | None = None, ended: Start | None = None, failed: bool = False) -> bool:
        """A job has come or a block has ended: starts what the policy chooses, skips what is too late; with the lock held.

        Returns whether the block was its job's last. What is timed is keeping the queue, choosing and waking workers, not the answers.
        """
        begin, now, over = time.thread_time(), self._now(), False
        if released is not None:
            self._core.release(released)
        if ended is not None:
            over = self._core.finish(ended, now, failed)
        begun, gone = self._core.decide(now)
        for start in begun:
            self._work_for[start.way.halves[0]].put((start, self._requests[start.job]))
        self._deciding += time.thread_time() - begin
        for job in gone:
            self._finish(job, "skipped", SkippedError(f"xcoexec.Scheduler: a job of {job.task.name!r} was skipped, it could not end by its deadline."))
        return over

    def _cancelled(self, job: Job, future: Future[Any]) -> None:
        """A job that waits leaves at once, one that runs after its block."""
        with self._lock:
            if future.cancelled() and job in self._requests and not job.running:
                self._core.drop(job)
                self._finish(job, "cancelled")

    def _work(self, half: str) -> None:
        """The life of a half's worker."""
        queue = self._work_for[half]
        while True:
            if queue.empty():
                self._tidy()
            given = queue.get()
            if given is None or self._stopped:
                return
            start, request = given
            error: BaseException | None = None
            began = time.perf_counter()
            try:
                self._block(request, start)
            except BaseException as e:
                error = e
            with self._lock:
                if self._stopped:
                    return
                self._account(start, began)
                if self._step(ended=start, failed=error is not None or request.future.cancelled()):
                    outcome = "failed" if error is not None else "overtime" if start.job.missed else "in time"
                    self._finish(start.job, outcome, error)

    def _tidy(self) -> None:
        """Gives memory back that the C library keeps for threads which freed what others had allocated: it adds up over hours."""
        if _trim is not None and self._now() - self._tidied > TIDY_SECONDS:
            self._tidied = self._now()
            _trim(0)

    def _block(self, request: _Request, start: Start) -> None:
        network = self._networks[start.job.task.name]
        if start.job.at == 0:
            request.state = network.begin(request.state)
        request.state = network.run(start.job.at, start.way, request.state)
        if start.job.at == len(start.job.task.blocks) - 1:
            request.state = network.result(request.state)

    def _account(self, start: Start, began: float) -> None:
        job, ended = start.job, time.perf_counter()
        self.blocks.append((job.task.name, job.at, start.way.half, start.way.twin, began - self._began, ended - self._began))
        for half in start.way.halves:
            self._busy[half] += ended - began
            self._due[half] += start.due

    def _finish(self, job: Job, outcome: str, error: BaseException | None = None) -> None:
        request = self._requests.pop(job)
        self._waiting[job.task.name] -= 1
        self._end(request, outcome, error)

    def _end(self, request: _Request, outcome: str, error: BaseException | None = None) -> None:
        job = request.job
        if request.future.cancelled():
            outcome = "cancelled"
        took = None if job.end is None or error is not None else job.end - job.release
        self._outcomes[outcome] += 1
        self.ended.append(Ended(job.task.name, job.number, outcome, took, job.task.accuracy.of(job.twins)))
        self._metrics.ended(job.task.name, outcome, took)
        try:
            if error is not None:
                request.future.set_exception(error)
            elif outcome != "cancelled":
                request.future.set_result(request.state)
        except InvalidStateError:  # cancelled in this moment
            pass

    # -- the end ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the workers; jobs that wait are cancelled. A block that never returns keeps its (daemon) thread."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            for job in list(self._requests):
                self._finish(job, "cancelled", CancelledError())
            for queue in self._work_for.values():
                queue.put(None)
        garbage.unfreeze()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(STOP_SECONDS)

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def served(self) -> Served:
        """What has been done so far."""
        with self._lock:
            outcomes, released = dict(self._outcomes), sum(self._numbers.values())
            over = sum(outcomes.get(k, 0) for k in ("overtime", "skipped", "overflow"))
            accuracy = float(np.mean([e.accuracy for e in self.ended if e.seconds is not None] or [1.0]))
            pace = {h: self._busy[h] / due if due else 1.0 for h, due in self._due.items()}
            return Served(released, outcomes, over / max(released, 1), accuracy, self._now(), dict(self._busy), self._deciding, pace)

    def events(self) -> list[dict[str, Any]]:
        """Every block as a trace event, a row for each half; for `xcoexec.runtime.timeline.write`."""
        work = []
        for task, block, half, twin, start, end in list(self.blocks):
            name = f"{task} {block}" + " (twin)" * twin
            work += [event(name, i, start, end) for i, h in enumerate(HALVES) if half in (h, BOTH)]
        return [*rows(f"{h} half" for h in HALVES), *work]


def task(name: str, network: Network | Bound, x: Any = None, *, deadline: float, period: float | None = None, bound: float = 0.0) -> tuple[Network, Task]:
    """A network with its deadline (seconds after each release), period (seconds; None: jobs come when they are submitted) and the least
    accuracy that its path may have.

    `network`: what `xcoexec.jit(...).bind(weights)` returns, with an input `x` of the shape that all its jobs have, or a model in
    blocks (`xcoexec.streams.model`). Raises `TypeError` or `ValueError` that says what is valid.
    """
    if isinstance(network, Bound) and x is None:
        raise TypeError(f"xcoexec.task: got the bound function of {name!r} without an input; valid is one of the shape that all its jobs have.")
    made = model(network, x) if isinstance(network, Bound) else network
    return made, Task(name, made.blocks, deadline, period, made.accuracy, bound)


def admits(tasks: Sequence[Task], by: str | Policy = "slack", periods: int = ADMISSION_PERIODS) -> bool:
    """Whether periodic tasks meet all deadlines by their measured seconds: they need at most the time that there is, and a simulation of
    so many of the longest periods misses none."""
    periodic = [t for t in tasks if t.period]
    if utilisation(periodic) > 1:
        return False
    return simulate(releases(periodic, periods * max((t.period or 0.0 for t in periodic), default=0.0)), by).missing_rate == 0


__all__ = ["Ended", "Scheduler", "Served", "admits", "task"]
