"""Several networks with deadlines on both halves, in real time: one worker a half, the decisions of `edf.Core`, results
as futures.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ..api.resident import ResidentFunction
from ..ir.text import WIDTH, columns, duration, html_table, html_text
from ..ir.trace_events import event, rows
from ..ir.words import HALVES
from . import lifetime
from .arguments import RULES, checked, optional, shown
from .block_model import Network, input_of, model
from .edf import Policy
from .jobs import BOTH, Task, terms, utilisation
from .metrics import metrics
from .policies import policy as by_name
from .virtual import releases, simulate
from .workers import WHERE, Ended, Running

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

QUEUE = 64  # jobs of a task that may wait
ADMISSION_PERIODS = 20


@dataclasses.dataclass(frozen=True)
class Served:
    """Since the start: jobs by outcome, the missing rate (BlastNet's Equation 3), accuracy of what ended, where time
    went (seconds), and `pace`: by how much blocks took longer on each half than they were measured to. `by_task`: each
    task's jobs by outcome, of which its own missing rate is made; `paths`: each task's jobs that ran to their ends, by
    the blocks whose twins they ran (none: own layers alone).
    """

    released: int
    outcomes: Mapping[str, int]
    missing_rate: float
    accuracy: float
    seconds: float
    busy: Mapping[str, float]
    deciding: float
    pace: Mapping[str, float]
    by_task: Mapping[str, Mapping[str, int]]
    paths: Mapping[str, Mapping[frozenset[int], int]]

    @property
    def missing_rates(self) -> Mapping[str, float]:
        """Equation 3 as it is printed, of each task: a share (0..1) of its jobs."""
        return {t: _missed(of) / max(sum(of.values()), 1) for t, of in self.by_task.items()}

    @property
    def cost(self) -> float:
        """The share of one core that keeping the queue, choosing and waking workers took."""
        return self.deciding / max(self.seconds, 1e-9)

    def _rows(self) -> list[list[str]]:
        names = list(self.outcomes)
        rows = [["task", *names, "missed"]]
        for task, of in self.by_task.items():
            rows.append([task, *(str(of.get(n, 0)) for n in names), f"{100 * self.missing_rates[task]:.1f} %"])
        return rows

    def _first(self) -> str:
        halves = ", ".join(f"{half} {100 * s / max(self.seconds, 1e-9):.0f} %" for half, s in self.busy.items())
        missed = f"{100 * self.missing_rate:.1f} % missed their deadlines"
        return f"{self.released} jobs in {duration(self.seconds)}, {missed}; at work: {halves or '-'}"

    def __repr__(self) -> str:
        rows = self._rows()
        return f"{self._first()}\n{columns(rows, range(1, len(rows[0])), WIDTH)}"

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_text(self._first()) + html_table(rows, range(1, len(rows[0])))


class Scheduler:
    """Runs jobs of several tasks on both halves; a context manager.

    While it runs, Python's garbage collector leaves alone what was there before (`gc.freeze`): looking through it
    takes longer than most deadlines.

    It ends with `stop`, at the end of `with`, with its last reference, and at the exit of the process: then its two
    threads end, jobs that have not ended are cancelled (`future.cancelled()`), and the collector works as before. A
    network that refers to its own scheduler keeps it; such a one needs `stop`. In a process forked from its own it
    takes no jobs, and those that waited are cancelled there.

    Args:
      tasks: what `task` makes.
      policy: "slack" (ours; of more jobs than there is room for the longest give way), "slack_fair" (none does),
        "foresight" (long blocks also leave a half to much shorter periodic jobs that are about to come),
        BlastNet and the four that it is compared with ("blastnet", "blastnet_no_pf", "mono_sched", "mono_adapt",
        "layer_sched"), and further ones of ours: `xcoexec.streams.policies` has them all in a table.
      queue: jobs of one task that may wait; one more is skipped.
      admission: refuse sets of periodic tasks that cannot be met (see `admits`).
      registry: a `prometheus_client` registry for counters and histograms (needs the extra "serve"); schedulers may
        share one.

    Raises `TypeError` or `ValueError` that says what is valid, before anything begins.
    """

    def __init__(
        self,
        tasks: Iterable[tuple[Network, Task]],
        policy: str | Policy = "slack",
        *,
        queue: int = QUEUE,
        admission: bool = False,
        registry: CollectorRegistry | None = None,
    ):
        chosen = by_name(policy)
        networks = {name: _in_layers(*given) if chosen.layers else given for name, given in _networks(tasks).items()}
        self.tasks = {name: task for name, (_, task) in networks.items()}
        wanted = list(self.tasks.values())
        queue = checked(WHERE, "queue", queue, "count")
        for t in wanted:
            if chosen.whole is not None and not chosen.whole(t):
                text = f"got the task {t.name!r}, of which neither half runs every block, with policy={chosen.name!r}"
                raise ValueError(f"{WHERE}: {text}; valid is a policy that changes the half between blocks.")
        if checked(WHERE, "admission", admission, "flag") and not admits(wanted, chosen):
            need = utilisation(wanted)
            raise ValueError(
                f"{WHERE}: got tasks that miss deadlines even by their measured seconds (they need {need:.0%} of both"
                " halves)."
            )
        counted = metrics(checked(WHERE, "registry", registry, optional(RULES["registry"])))
        self._running = Running(
            {name: network for name, (network, _) in networks.items()}, self.tasks, chosen, queue, counted
        )
        self._checks = {name: network.check for name, (network, _) in networks.items() if hasattr(network, "check")}
        lifetime.keep(self, self._running)
        try:
            self._running.begin()
        except BaseException:  # no room for threads, Ctrl-C: whatever it is, the threads that run must end
            self._running.abandon()
            raise

    # -- who asks -----------------------------------------------------------------------------------------

    def release(self, name: str, x: object, deadline: float | None = None) -> Future[Any]:
        """A job now; its result as a future, which raises `SkippedError` where it came too late or there was no room,
        and `CancelledError` where the scheduler ended before the job did.

        `deadline`: seconds from now, instead of the task's (None); inf: none at all. The future's callbacks run in a
        worker's thread. Raises `TypeError` or `ValueError` for an unknown task, another deadline or an input of
        another shape than the task's, `RuntimeError` after `stop`.
        """
        if not isinstance(name, str) or name not in self.tasks:
            raise ValueError(f"{WHERE}: got task {shown(name)}; valid are {', '.join(self.tasks)}.")
        if deadline is not None:
            deadline = checked(WHERE, "deadline", deadline, "deadline", f" for the task {name!r}")
        if name in self._checks:
            self._checks[name](x)
        return self._running.release(name, x, deadline)

    async def submit(self, name: str, x: object, deadline: float | None = None, timeout: float | None = None) -> Any:
        """`release` for asyncio: waits for the result; cancelled or after `timeout` seconds (then it raises
        `TimeoutError`) the job is dropped. Raises what `release` raises, and `TypeError` or `ValueError` for another
        timeout.
        """
        timeout = checked(WHERE, "timeout", timeout, optional(RULES["wait"]))
        return await asyncio.wait_for(asyncio.wrap_future(self.release(name, x, deadline)), timeout)

    def run(self, seconds: float, inputs: Mapping[str, object], offsets: Sequence[float] = ()) -> list[Future[Any]]:
        """Releases the jobs of all periodic tasks for so many seconds, each at its time, and waits until all have
        ended.

        `inputs`: of each periodic task by its name; `offsets`: seconds until each task's first job. Raises
        `TypeError` or `ValueError`.
        """
        plan = releases(
            [dataclasses.replace(t, name=name) for name, t in self.tasks.items()], seconds, offsets, f"{WHERE}.run"
        )
        lacking = [n for n, t in self.tasks.items() if t.period and not (isinstance(inputs, Mapping) and n in inputs)]
        if lacking:
            raise ValueError(
                f"{WHERE}.run: got inputs={shown(inputs)} without {lacking[0]!r}; valid is an input for each periodic"
                " task by its name."
            )
        begin = time.perf_counter()
        futures = []
        for job in plan:
            wait = begin + job.release - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            futures.append(self.release(job.task.name, inputs[job.task.name]))
        concurrent.futures.wait(futures)
        return futures

    # -- the end ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the workers; jobs that have not ended are cancelled. A block that never returns keeps its (daemon)
        thread.
        """
        self._running.stop()

    def __enter__(self) -> Scheduler:
        """Raises `RuntimeError` for one that has ended."""
        self._running.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- what was done ------------------------------------------------------------------------------------

    @property
    def ended(self) -> deque[Ended]:
        """The last 20,000 jobs that have ended."""
        return self._running.ended

    @property
    def blocks(self) -> deque[tuple[str, int, str, bool, float, float]]:
        """The last 20,000 blocks: task, number, half, twin, seconds of start and end."""
        return self._running.blocks

    def served(self) -> Served:
        """What has been done so far, in jobs, shares and seconds."""
        r = self._running
        with r.lock:
            outcomes = dict(r.outcomes)
            released = sum(r.numbers.values())
            paths = {name: dict(of) for name, of in r.paths.items()}
            ran = [(self.tasks[name].accuracy.of(p), n) for name, of in paths.items() for p, n in of.items()]
            accuracy = sum(a * n for a, n in ran) / sum(n for _, n in ran) if ran else 1.0
            pace = {h: r.busy[h] / due if due else 1.0 for h, due in r.due.items()}
            return Served(
                released,
                outcomes,
                _missed(outcomes) / max(released, 1),
                accuracy,
                r.now(),
                dict(r.busy),
                r.deciding,
                pace,
                {name: dict(of) for name, of in r.by_task.items()},
                paths,
            )

    def events(self) -> list[dict[str, object]]:
        """Every block as a trace event (microseconds since the start), a row for each half; for
        `xcoexec.session.timeline.write`.
        """
        work = []
        for task, block, half, twin, start, end in list(self.blocks):
            name = f"{task} {block}" + (" (twin)" if twin else "")
            work += [event(name, i, start, end) for i, h in enumerate(HALVES) if half in (h, BOTH)]
        return [*rows(f"{h} half" for h in HALVES), *work]


def _missed(outcomes: Mapping[str, int]) -> int:
    return sum(outcomes.get(k, 0) for k in ("overtime", "skipped", "overflow"))


def _networks(tasks: Iterable[tuple[Network, Task]]) -> dict[str, tuple[Network, Task]]:
    """What a scheduler is given, by the tasks' names."""
    valid = "valid is a list of what xcoexec.task returns, with names of their own"
    if _is_task(tasks) or isinstance(tasks, (str, Mapping)) or not hasattr(tasks, "__iter__"):
        got = f"the task {tasks[1].name!r} alone" if _is_task(tasks) else f"tasks={shown(tasks)}"  # type: ignore[index]
        raise TypeError(f"{WHERE}: got {got}; {valid}.")
    found: dict[str, tuple[Network, Task]] = {}
    for t in tasks:
        if not _is_task(t):
            raise TypeError(f"{WHERE}: got {shown(t)} among the tasks; {valid}.")
        if t[1].name in found:
            raise ValueError(f"{WHERE}: got two tasks of one name, {t[1].name!r}; {valid}.")
        found[t[1].name] = t
    if not found:
        raise ValueError(f"{WHERE}: got no tasks; {valid}, at least one.")
    return found


def _in_layers(network: Network, task: Task) -> tuple[Network, Task]:
    """A network and its task in single layers, where it can be divided further than into its blocks."""
    fine = getattr(network, "in_layers", network)
    return fine, dataclasses.replace(task, layers=fine.blocks).by_layer


def _is_task(x: object) -> bool:
    return isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], Task) and RULES["network"].kind(x[0])


def task(
    name: str,
    network: Network | ResidentFunction,
    x: object = None,
    *,
    deadline: float,
    period: float | None = None,
    bound: float = 0.0,
) -> tuple[Network, Task]:
    """A network with its deadline (seconds after each release; inf: none), period (seconds; None: jobs come when they
    are submitted) and the least accuracy (a share from 0 to 1) that its path may have.

    `network`: what `xcoexec.jit(...).bind(weights)` returns, with an input `x` of the shape that all its jobs have,
    or a model in blocks (`xcoexec.streams.model`). Raises `TypeError` or `ValueError` that says what is valid.
    """
    where = "xcoexec.task"
    deadline, period, bound = terms(name, deadline, period, bound)
    if not isinstance(network, ResidentFunction):
        made = checked(where, "network", network, "network", f" for the task {name!r}")
    elif x is None:
        raise TypeError(
            f"{where}: got the function of {name!r} with resident weights, without an input; valid is one of the shape"
            " that all its jobs have."
        )
    else:
        input_of(where, network, x, f" for the task {name!r}")
        made = model(network, x)
    return made, Task(name, made.blocks, deadline, period, made.accuracy, bound)


def admits(tasks: Sequence[Task], by: str | Policy = "slack", periods: int = ADMISSION_PERIODS) -> bool:
    """Whether periodic tasks meet all deadlines by their measured seconds: they need at most the time that there is,
    and a simulation of so many of the longest periods misses none.

    Raises `TypeError` for anything but `Task`s: of what `task` returns the second; `TypeError` or `ValueError` for
    periods that are no integer from 1 on.
    """
    periods = checked("xcoexec.streams.admits", "periods", periods, "count")
    if wrong := [t for t in tasks if not isinstance(t, Task)]:
        raise TypeError(
            f"xcoexec.streams.admits: got {shown(wrong[0])} among the tasks; valid are Tasks, of what xcoexec.task"
            " returns the second."
        )
    periodic = [t for t in tasks if t.period]
    if utilisation(periodic) > 1:
        return False
    longest = max((t.period or 0.0 for t in periodic), default=0.0)
    return simulate(releases(periodic, periods * longest), by).missing_rate == 0


__all__ = ["Ended", "Scheduler", "Served", "admits", "task"]
