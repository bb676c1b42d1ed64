"""A scheduler at work: one worker a half, the decisions of `edf.Core`, jobs and their answers. It does not know its
`Scheduler`.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from queue import SimpleQueue

from ..compat import worker
from ..errors import SkippedError
from ..ir.words import HALVES
from . import gc_freeze
from .arguments import shown, told
from .block_model import Network
from .edf import Core, Policy, Start
from .jobs import Job, Task
from .metrics import Metrics

KEPT = 20_000  # of what is kept of ended jobs and blocks
STOP_SECONDS = 0.9
TIDY_SECONDS = 10.0  # between two looks for memory to give back: 4 to 9 ms each, on a half that has nothing to do
WHERE = "xcoexec.Scheduler"
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


@dataclasses.dataclass(frozen=True)
class Ended:
    """What is kept of a job: seconds from its release to its end (None: it was not run to its end), and its path's
    accuracy.
    """

    task: str
    number: int
    outcome: str
    seconds: float | None
    accuracy: float


@dataclasses.dataclass(eq=False)
class _Request:
    """A job on its way: its input or its state between blocks, and who waits for it."""

    job: Job
    state: object
    future: Future[object]


class Running:
    """What a scheduler's threads share. `queue`: jobs of one task that may wait."""

    def __init__(
        self,
        networks: Mapping[str, Network],
        tasks: Mapping[str, Task],
        policy: Policy,
        queue: int,
        metrics: Metrics | None,
    ):
        self.tasks = tasks
        self._networks = networks
        self._queue = queue
        self._metrics = metrics
        self._core = Core(policy)
        self._requests: dict[Job, _Request] = {}
        # that nobody has been told yet; the last: cancelled
        self._answers: deque[tuple[_Request, BaseException | None, bool]] = deque()
        self._telling: set[int] = set()  # threads
        self._waiting: Counter[str] = Counter()
        self.numbers: Counter[str] = Counter()
        self._work_for: dict[str, SimpleQueue[tuple[Start, _Request] | None]] = {half: SimpleQueue() for half in HALVES}
        self.lock = threading.RLock()
        self._over = ""  # why no job is taken any more
        self.outcomes: Counter[str] = Counter()
        self.by_task: dict[str, Counter[str]] = {name: Counter() for name in tasks}
        self.paths: dict[str, Counter[frozenset[int]]] = {name: Counter() for name in tasks}  # twins run, by task
        self.ended: deque[Ended] = deque(maxlen=KEPT)
        # task, block, half, twin, start, end
        self.blocks: deque[tuple[str, int, str, bool, float, float]] = deque(maxlen=KEPT)
        self.busy = dict.fromkeys(HALVES, 0.0)
        self.due = dict.fromkeys(HALVES, 0.0)
        self.deciding = 0.0
        self._tidied = 0.0
        self._threads = [worker(self._work, (half,), f"xcoexec-scheduler-{half}") for half in HALVES]
        self._began = time.perf_counter()

    def begin(self) -> None:
        gc_freeze.freeze(self)
        self._began = time.perf_counter()
        for thread in self._threads:
            thread.start()

    def now(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._began

    # -- who asks -----------------------------------------------------------------------------------------

    def release(self, name: str, x: object, deadline: float | None) -> Future[object]:
        """A job now; its result as a future. `deadline`: seconds from now, None: the task's. Raises `RuntimeError`
        where no job is taken any more.
        """
        future: Future[object] = Future()
        self._change(self._release, name, x, deadline, future)
        return future

    def _release(self, name: str, x: object, deadline: float | None, future: Future[object]) -> None:
        self.open()
        self.numbers[name] += 1
        job = Job(self.tasks[name], self.numbers[name], self.now(), deadline)
        if self._metrics:
            self._metrics.released(name)
        future.add_done_callback(functools.partial(_cancelled, weakref.ref(self), job))
        if self._waiting[name] >= self._queue:
            job.skipped = True
            self._end(
                _Request(job, None, future),
                "overflow",
                SkippedError(f"{WHERE}: {self._queue} jobs of {name!r} wait already."),
            )
            return
        self._waiting[name] += 1
        self._requests[job] = _Request(job, x, future)
        self._step(released=job)

    def open(self) -> None:
        """Raises `RuntimeError` where no job is taken any more."""
        if self._over:
            raise RuntimeError(f"{WHERE}: got a job {self._over}; valid is a scheduler that runs.")

    def cancel(self, job: Job) -> None:
        """A job that waits leaves at once, one that runs after its block."""
        if job in self._requests:
            self._change(self._cancel, job)

    def _cancel(self, job: Job) -> None:
        if job in self._requests and not job.running:
            self._core.drop(job)
            self._finish(job, "cancelled")

    # -- what changes -------------------------------------------------------------------------------------

    def _change(self, change: Callable[..., None], *args: object) -> None:
        """A change with the lock held. Answers are told when it is free: they run the user's callbacks, which may come
        back here.

        An exception from within (a policy's, Ctrl-C) ends the scheduler: what was done by then cannot be told from
        what was not.
        """
        try:
            with self.lock:
                over = self._over
                try:
                    change(*args)
                except BaseException as e:  # a policy is the user's, and Ctrl-C may come anywhere
                    if not over:
                        self._close(f"after {type(e).__name__} in its decisions", e)
                    raise
        finally:
            self._tell()

    def _tell(self) -> None:
        """A callback that comes back here leaves further answers to the call that is telling."""
        me = threading.get_ident()
        if me in self._telling:
            return
        self._telling.add(me)
        try:
            while self._answers:
                # told by another thread; cancelled in this moment
                with contextlib.suppress(IndexError, InvalidStateError):
                    _answer(*self._answers.popleft())
        finally:
            self._telling.discard(me)

    def _step(self, released: Job | None = None, ended: Start | None = None, failed: bool = False) -> bool:
        """A job has come or a block has ended: starts what the policy chooses, skips what is too late; with the lock
        held.

        Returns whether the block was its job's last. What is timed is keeping the queue, choosing and waking workers,
        not the answers.
        """
        begin = time.thread_time()
        now = self.now()
        over = False
        if released is not None:
            self._core.release(released)
        if ended is not None:
            over = self._core.finish(ended, now, failed)
        begun, gone = self._core.decide(now)
        for start in begun:
            self._work_for[start.way.halves[0]].put((start, self._requests[start.job]))
        self.deciding += time.thread_time() - begin
        for job in gone:
            self._finish(
                job,
                "skipped",
                SkippedError(f"{WHERE}: a job of {job.task.name!r} was skipped, it could not end by its deadline."),
            )
        return over

    def _finish(self, job: Job, outcome: str, error: BaseException | None = None) -> None:
        request = self._requests.pop(job)
        self._waiting[job.task.name] -= 1
        self._end(request, outcome, error)

    def _end(self, request: _Request, outcome: str, error: BaseException | None = None) -> None:
        job = request.job
        if request.future.cancelled():
            outcome = "cancelled"
        took = None if job.end is None or error is not None or outcome == "cancelled" else job.end - job.release
        self.outcomes[outcome] += 1
        self.by_task[job.task.name][outcome] += 1
        if took is not None:
            self.paths[job.task.name][job.twins] += 1
        self.ended.append(Ended(job.task.name, job.number, outcome, took, job.task.accuracy.of(job.twins)))
        self._answers.append((request, error, outcome == "cancelled"))
        if self._metrics:
            self._metrics.ended(job.task.name, outcome, took)

    # -- who works ----------------------------------------------------------------------------------------

    def _work(self, half: str) -> None:
        """The life of a half's worker. What it has done is not kept while it waits."""
        queue = self._work_for[half]
        while not self._over:
            if queue.empty():
                self._tidy()
            if (given := queue.get()) is None or self._over:
                break
            self._run(*given)
            del given
        self._change(self._close, self._over)  # of a scheduler that was dropped this is the first chance to answer

    def _run(self, start: Start, request: _Request) -> None:
        began = time.perf_counter()
        request.state, error = self._block(start, request.state)
        try:
            self._change(self._after, start, request, began, error)
        except BaseException as e:  # whatever it is: those who wait were told, and the thread has to end
            self._over = self._over or f"after {type(e).__name__}"
        finally:
            del request, error  # a traceback knows this frame: with the future in it that is a circle

    def _after(self, start: Start, request: _Request, began: float, error: BaseException | None) -> None:
        if self._over:
            return
        self._account(start, began)
        if self._step(ended=start, failed=error is not None or request.future.cancelled()):
            in_time = "overtime" if start.job.missed else "in time"
            self._finish(start.job, "failed" if error is not None else in_time, error)

    def _tidy(self) -> None:
        """Gives memory back that the C library keeps for threads which freed what others had allocated: it adds up over
        hours.
        """
        if _trim is not None and self.now() - self._tidied > TIDY_SECONDS:
            self._tidied = self.now()
            _trim(0)

    def _block(self, start: Start, state: object) -> tuple[object, BaseException | None]:
        """What a block makes of a job's state, or its exception."""
        job = start.job
        network = self._networks[job.task.name]
        try:
            if job.at == 0:
                state = network.begin(state)
            state = network.run(job.at, start.way, state)
            return network.result(state) if job.at == len(job.task.blocks) - 1 else state, None
        except BaseException as e:  # whatever a network raises is its job's answer
            return None, told(f"{WHERE}: a block of {job.task.name!r}", e)

    def _account(self, start: Start, began: float) -> None:
        """Remembers what ran, and how long its halves were at work."""
        job = start.job
        ended = time.perf_counter()
        self.blocks.append(
            (job.task.name, job.at, start.way.half, start.way.twin, began - self._began, ended - self._began)
        )
        for half in start.way.halves:
            self.busy[half] += ended - began
            self.due[half] += start.due

    # -- the end ------------------------------------------------------------------------------------------

    def _close(self, why: str, cause: BaseException | None = None) -> None:
        """No job is taken any more; those that wait are cancelled, or told the cause."""
        self._over = why
        error = None
        if cause is not None:
            error = RuntimeError(
                f"{WHERE}: got {shown(cause)} while it decided what runs next, which ended it; valid is a new"
                " scheduler."
            )
            error.__cause__ = cause
        for job in list(self._requests):
            self._finish(job, "cancelled" if error is None else "failed", error)
        self._end_threads()

    def _end_threads(self) -> None:
        for queue in self._work_for.values():
            queue.put(None)
        gc_freeze.unfreeze(self)

    def stop(self) -> None:
        if not self._over:
            self._change(self._close, "after stop()")
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(STOP_SECONDS)

    def abandon(self) -> None:
        self._over = self._over or "after its last reference was gone"
        self._end_threads()

    def forked(self) -> None:
        """Locks may have been held by threads that are not here: jobs' futures begin anew, which takes none, and are
        cancelled.
        """
        self.lock = threading.RLock()
        self._over = "in a process that was forked from its own"
        waiting = [*self._requests.values(), *(r for r, _, _ in self._answers)]
        self._requests.clear()
        self._answers.clear()
        self._telling.clear()
        for request in waiting:
            Future.__init__(request.future)
            request.future.cancel()
            request.future.set_running_or_notify_cancel()


def _answer(request: _Request, error: BaseException | None, cancelled: bool) -> None:
    if cancelled:
        request.future.cancel()
    elif error is not None:
        request.future.set_exception(error)
    else:
        request.future.set_result(request.state)


def _cancelled(running: weakref.ref[Running], job: Job, future: Future[object]) -> None:
    """Whom `wait` and `as_completed` make wait for a cancelled future is told; the job leaves."""
    if future.cancelled():
        future.set_running_or_notify_cancel()
        if (here := running()) is not None:
            here.cancel(job)


__all__ = ["STOP_SECONDS", "WHERE", "Ended", "Running"]
