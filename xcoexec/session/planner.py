"""The planner of a session: makes its plans, and owns what changes between two of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence

from ..codegen.native.children import go_on
from ..cost.predictor import Predictor
from ..ir.costs import Costs
from ..ir.plan import Plan, UniformPlan
from ..lowering.executable import Executable
from ..measure.profile import Progress, silent
from ..planning.strategies import Strategy
from .attempt import Attempt
from .bursts import streamed
from .contest import choose, contest, known, moved, with_own_kernels
from .problem import Machine, Problem
from .stages import forget, keep, recalled, record_name, remembered, stages
from .usage import CLEAR


class Planner:
    """Plans one problem on one machine. `costs`: what was measured last; replaced as a whole when a planning has ended,
    so that who reads it meanwhile sees those of the plan in use. `races`: the caller's own calls tell which executable
    is the fastest, not calls with the example: a step's state may be as large as there is memory, and its calls long;
    `decided`: they have told it in a process before, and clearly.
    """

    def __init__(
        self, problem: Problem, machine: Machine, strategy: str | Strategy, predictor: Predictor | None = None
    ):
        self.problem, self.machine, self.strategy = problem, machine, strategy
        self.costs: Costs | None = None
        self.races = self.decided = False
        self._predictor, self._plain_ready = predictor, False
        self._begun: Iterator[Executable] = iter(())  # what a planning of which an early winner is in use finds yet

    def _attempt(self, progress: Progress, *, fresh: bool = False, hasty: bool = False, early: bool = False) -> Attempt:
        return Attempt(
            self.problem,
            self.machine,
            costs=None if fresh else self.costs,
            predictor=self._predictor,
            progress=progress,
            hasty=hasty,
            early=early,
            plain_ready=self._plain_ready,
        )

    def _ended(self, attempt: Attempt) -> None:
        """Keeps what a planning has found out."""
        self.costs, self._plain_ready = attempt.costs or attempt.quick, attempt.plain_ready

    def first(self, request: Plan | UniformPlan | None, progress: Progress, *, early: bool = False) -> Executable:
        """The executable of the strategy's plan, or of one that is asked for; `early`: also one that clearly wins
        before layers are measured, then `rest` goes on. Raises `Asked` for a plan or a strategy of the caller's that
        does not fit.
        """
        attempt = self._attempt(progress, early=early)
        if request is not None or self.strategy != "auto":
            exe = choose(attempt, self.strategy, request)
            self._ended(attempt)
            return exe
        if self.problem.step and (raced := self._of_step(attempt)) is not None:
            return raced
        begun = self._stages(attempt)
        exe = next(begun)
        self._begun = begun if early else iter(())
        return exe

    def remembers(self) -> bool:
        """Whether a plan is remembered of a process before."""
        attempt = self._attempt(silent)
        return remembered(record_name(attempt), attempt.graph) is not None

    def _of_step(self, attempt: Attempt) -> Executable | None:
        """What has won in calls of a process before, to be compared once more where it won by little; else what is
        compared with plain jax.jit in the calls to come (None: a plan of the stages, as a device does not compute all
        of a step on its host half).
        """
        exe = recalled(attempt)
        self.races, self.decided = True, exe is not None and _clear(exe.plan)
        if exe is not None or self.machine.apart:
            return exe
        return attempt.plain if self.problem.hostless else attempt.all_host

    def _stages(self, attempt: Attempt) -> Iterator[Executable]:
        for exe in stages(attempt):
            self._ended(attempt)
            yield _contender(exe) if self.races else exe

    def rest(self) -> Iterator[Executable]:
        """What a planning of which `first` has given an early winner finds behind it. Raises `InterruptedError` where
        the progress ends it.
        """
        begun, self._begun = self._begun, iter(())
        yield from begun

    def learn(self) -> None:
        """Measures what plannings to come want to know of the machine."""
        self._attempt(_interruptible).learn()

    def known(self, current: Executable, past: Sequence[Executable]) -> Executable:
        """The best of what is there: can be had at once. Raises `InterruptedError` when the interpreter ends."""
        return known(self._attempt(_interruptible), current, past)

    def moved(self, current: Executable) -> Executable:
        """The plan in use with its shares moved: needs a compilation. Raises `InterruptedError` when the interpreter
        ends.
        """
        return moved(self._attempt(_interruptible, hasty=True), current)

    def again(self) -> Executable:
        """Plans from fresh numbers, as the strategy says. Raises `InterruptedError` when the interpreter ends."""
        attempt = self._attempt(_interruptible, fresh=True)
        auto = self.strategy == "auto"
        found = lambda: streamed(attempt, with_own_kernels(attempt, contest(attempt)))
        exe = found() if auto else choose(attempt, self.strategy, None)
        self._ended(attempt)
        return exe

    def keep(self, exe: Executable) -> None:
        """Has the next process begin with what has won in the caller's own calls, but for a draw; where layers are not
        measured yet it goes on with that.
        """
        attempt = self._attempt(silent)
        kept = remembered(record_name(attempt), attempt.graph)
        keep(attempt, exe, whole=self.races or kept is None or kept.whole)

    def forget(self) -> None:
        """Has the next process plan anew: the plan that is kept on disk has lost in use."""
        forget(self._attempt(silent))

    def executable(self, plan: Plan) -> Executable:
        """A plan of the user's as an executable with resident weights; it is not taken into use. Raises `Unsupported`
        or `SplitError` for layers that cannot run as it says.
        """
        return self._attempt(silent).executable(plan)

    @property
    def plain_ready(self) -> bool:
        """Whether plain `jax.jit` was compiled for a comparison."""
        return self._plain_ready

    @functools.cached_property
    def plain(self) -> Executable:
        """Plain `jax.jit`."""
        return self._attempt(silent).plain

    @property
    def fits_as_it_is(self) -> bool:
        """Whether plain `jax.jit` keeps within the bytes that may lie on the device."""
        return not self._attempt(silent).too_large

    def fallback(self, strategy: str, why: str) -> Executable:
        """What runs when co-execution cannot; `why` stands in its plan."""
        return self._attempt(silent).fallback(strategy, why)

    def measured_costs(self) -> Costs:
        """Seconds of every layer on both halves, measured now where they are not known."""
        attempt = self._attempt(silent)
        costs = attempt.measured_costs()
        self._ended(attempt)
        return costs


def _contender(exe: Executable) -> Executable:
    """Which of the two that have won, when calls wait and when they do not, is compared in the caller's own calls: a
    plan, that for calls in flight before the other one.
    """
    plans = (e for e in (exe.in_flight, exe) if e is not None and e.lowered is not None)
    return dataclasses.replace(next(plans, exe), in_flight=None)


def _clear(plan: Plan) -> bool:
    """Whether a plan was so much faster than plain jax.jit that a process with more or less beside it finds the same;
    also where plain jax.jit had won, which nothing is compared with.
    """
    plan_seconds, jit = plan.measured.get(plan.strategy), plan.measured.get("jit")
    return plan.engine == "jit" or plan_seconds is None or jit is None or plan_seconds < CLEAR * jit


def _interruptible(what: str, done: int, total: int) -> None:
    """A planning in the background is cut short when the interpreter ends."""
    go_on()


__all__ = ["Planner"]
