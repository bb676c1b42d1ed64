"""A traced function with its weights -> the session that calls use; plain jax.jit where a stage fails."""

from __future__ import annotations

import dataclasses
import functools
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import jax
from jax.sharding import Sharding
from jax.typing import ArrayLike

from .. import config
from ..codegen.runtime import host
from ..codegen.runtime.relay import Relay
from ..compat import SingleDevice, alone
from ..devices.cores import divided
from ..devices.registry import device_half, link_of
from ..errors import BindError, SplitError
from ..frontend.fold import Folded
from ..frontend.trace import Traced
from ..guard import Asked, Failed, asked, stage, warn
from ..ir.plan import Plan
from ..lowering.executable import Executable, Flat
from ..lowering.shards import Placed, Shards
from ..measure.profile import Progress
from ..measure.training import stored
from ..planning.strategies import strategy_name
from .gate import Gate
from .options import Options
from .plain_session import PlainSession
from .planner import Planner
from .problem import Machine, Problem
from .session import Session

log = logging.getLogger("xcoexec")

PLAIN = "with plain jax.jit"
COLLECTIVES = re.compile(r"all-reduce|all-gather|all-to-all|reduce-scatter|collective-\w+")  # operations of XLA
CPU_ALONE = "on the CPU alone, because its weights do not fit the device's memory"


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """What has to be compiled: which of the example `leaves` are weights and which inputs, the inputs that are given
    away, plain jax.jit of the inputs, and the parameters of `jax.jit` as the caller named them. `sibling`: the same
    function is planned already for other shapes. `compile_plain`: what plain jax.jit compiles for the example; raises
    what it raises. `called`, `looked_up`, `step`, `meshed`: as in `Problem`. `committed`: results stay on the default
    device whatever lies where of the inputs; `on_mesh`: it is one of a mesh, on which they lie as those of plain
    `jax.jit`. `placed`: where the leaves lie (None: on the default device).
    """

    traced: Traced
    index: tuple[int, ...]
    inputs: tuple[int, ...]
    leaves: Sequence[ArrayLike]
    donated: tuple[int, ...]
    plain: Flat
    given: Mapping[str, object]
    sibling: bool
    compile_plain: Callable[[], jax.stages.Compiled]
    called: Callable[[], object] | None = None
    looked_up: Callable[[], object] | None = None
    step: bool = False
    committed: bool = False
    on_mesh: bool = False
    meshed: bool = False
    placed: Placed | None = None

    @property
    def weights(self) -> list[ArrayLike]:
        """The leaves that are weights; of a mesh of one device, those there."""
        found = [self.leaves[i] for i in self.index]
        return list(map(alone, found)) if self.on_mesh else found

    @property
    def example(self) -> list[ArrayLike]:
        """The inputs."""
        return [self.leaves[i] for i in self.inputs]

    def problem(self) -> Problem:
        """The function folded and cut into layers. Raises `Unsupported` as `Problem.of`."""
        return Problem.of(
            self.traced,
            self.index,
            self.weights,
            self.example,
            donated=self.donated,
            plain=self.plain,
            sibling=self.sibling,
            compiler_options=cast("Mapping[str, object] | None", self.given.get("compiler_options")),
            called=self.called,
            looked_up=self.looked_up,
            step=self.step,
            results=self._results(),
            meshed=self.meshed,
            divide=None if self.placed is None else functools.partial(self._divided, self.placed),
        )

    def _results(self) -> Sequence[Sharding] | None:
        """Where results lie, if that depends on more than on the inputs."""
        home = SingleDevice(jax.local_devices()[0])
        count = len(self.traced.outputs)
        if self.on_mesh:
            found = jax.tree_util.tree_leaves(self.compile_plain().output_shardings)
            if not all(isinstance(s, SingleDevice) for s in found):
                return found
        return [home] * count if self.committed else None

    def _divided(self, placed: Placed, whole: Folded) -> tuple[Folded, Shards]:
        """The program of a shard of a call, and how its results are put together: as those of plain `jax.jit` lie."""
        compiled = self.compile_plain()
        if placed.local != placed.devices and (met := COLLECTIVES.search(compiled.as_text() or "")):
            raise SplitError(f"processes would wait for each other in {met[0]}, and they plan each for itself.")
        results = jax.tree_util.tree_leaves(compiled.output_shardings)
        return placed.divided(whole, self.leaves, results), Shards.of(placed, whole, self.leaves, results)


@dataclasses.dataclass(frozen=True, eq=False)
class Manner:
    """How a planning goes on: whom it tells its progress, the gate that calls pass meanwhile (None: its caller
    waits), and who is warned. `recalls`: only what is remembered of a process before is wanted, before plain `jax.jit`
    is compiled.
    """

    progress: Progress
    gate: Gate | None = None
    warn: Callable[[str, str, bool, str], None] = warn
    recalls: bool = False


class Absent(Exception):
    """Nothing is remembered of a function."""


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    task: Task
    session: Session


def prepared(
    name: str,
    options: Options,
    make: Callable[[], Task],
    refuse: Callable[[Sequence[ArrayLike]], str],
    manner: Manner,
) -> Prepared | PlainSession:
    """Compiles a task. Whatever fails on the way, but for what the caller asked for, ends in plain jax.jit with one
    warning; when strict it raises `BindError`.

    What the caller asked for and cannot have is raised as it is, and so is `Absent`. Where plain jax.jit cannot compile
    the function either, its exception is raised.

    `refuse`: of the weights, why they cannot be used ("" where they can).
    """
    task: Task | None = None
    try:
        task = make()
        why = refuse(task.weights)
        return refused(name, options, why, manner) if why else Prepared(task, _session(name, options, task, manner))
    except Asked as e:
        raise e.error from None
    except (BindError, Absent):
        raise
    except Failed as e:
        why, cause = e.why, e.__cause__
    except Exception as e:  # whatever of the library fails outside of its stages too
        why, cause = Failed("preparing", e).why, e
    if task is not None:
        task.compile_plain()
    try:
        return refused(name, options, why, manner)
    except BindError as e:
        raise e from cause


def refused(name: str, options: Options, why: str, manner: Manner | None = None) -> PlainSession:
    """Plain jax.jit, with one warning that says why. Raises `BindError` when strict."""
    log.info("%s: plain jax.jit: %s", name, why)
    (manner.warn if manner else warn)(name, why, options.strict, PLAIN)
    return PlainSession(strategy_name(options.strategy), why)


def device_relay(cpus: tuple[int, ...], ordinal: int | None = None) -> Relay | None:
    """What connects the host half to the device half, or to the device of that number among those of its kind; None
    where both are on the CPU. Raises `RuntimeError` where there is no such connection (`NotImplementedError` for a
    backend that is not known).
    """
    return device_half().connect(cpus) if ordinal is None else device_half().connect_at(cpus, ordinal)


def shard_machine(options: Options, devices: Sequence[jax.Device]) -> Machine:
    """What plans for a shard on the first one of these devices, with those of the others beside it: devices of their
    own have cores of their own, others take turns on all of them. Raises what `device_relay` raises, and
    `NotImplementedError` where there are not enough cores.
    """
    kind = device_half()
    if not kind.apart:
        return Machine(options.threads, options.cpus, None, options.memory, where=devices[0])
    ordinals = [d.local_hardware_id or 0 for d in devices]
    pool = options.cpus or config.usable()
    most = options.threads if options.threads_given else len(pool)
    made = []
    for device, ordinal, cpus in zip(
        devices, ordinals, divided(pool, list(map(kind.near, ordinals)), most), strict=True
    ):
        if not cpus:
            raise NotImplementedError(f"{len(pool)} cores are too few for {len(devices)} devices")
        made.append(Machine(len(cpus), cpus, device_relay(cpus, ordinal), options.memory, where=device))
    return dataclasses.replace(made[0], beside=tuple(made[1:]))


def device_limit(given: float | int | None, relay: Relay | None) -> int | None:
    """Bytes that a plan may keep on the device for `device_memory=` (bytes, or a share of its memory as a float); None
    for no bound. Raises `ValueError` where XLA's libraries have no room left.
    """
    return None if given is None else link_of(relay).limit(given)


def ahead(options: Options) -> None:
    """Begins what each planning beside a device waits for, while XLA compiles plain `jax.jit`. Where host and device
    share their cores that would slow the first call down.
    """
    if options.apart:
        try:
            host.prefetch(True)
        except Exception as e:  # the planning meets it once more, and says so
            log.debug("native functions are not compiled ahead: %s", str(e))


def _machine(options: Options, shards: Shards | None) -> Machine:
    with stage("connecting the device"):
        if shards is not None:
            machine = shard_machine(options, shards.devices)
            limit = asked(device_limit, options.device_memory, machine.relay)
            return dataclasses.replace(machine, limit=limit)
        found = device_relay(options.cpus)
    limit = asked(device_limit, options.device_memory, found)
    return Machine(options.threads, options.cpus, found, options.memory, limit)


def _session(name: str, options: Options, task: Task, manner: Manner) -> Session:
    """All stages of one function for its weights and example inputs. Raises `Absent`."""
    host.prefetch(options.apart)
    with stage("building the graph"):
        problem = task.problem()
    machine = _machine(options, problem.shards)
    with stage("building the graph"):
        problem = _with_experts(problem, machine, options)
    with stage("planning"):
        predictor = asked(stored, machine.relay, options.threads) if options.predicted else None
    planner = Planner(problem, machine, options.strategy, predictor)
    if manner.recalls and not planner.remembers():
        raise Absent
    begin = time.perf_counter()
    log.info("%s: %d layers are planned", name, len(problem.graph.layers))
    first = _first(name, options, planner, manner)
    log.info("%s: %s after %.2f s: %s", name, first.plan.engine, time.perf_counter() - begin, first.plan.chosen)
    problem.feed.drop()
    compiles = task.compile_plain if manner.recalls else None
    return Session(planner, first, functools.partial(_retired, name, options.strict), manner.gate, compiles)


def _with_experts(problem: Problem, machine: Machine, options: Options) -> Problem:
    """The problem with caches of experts, where its plan may have them, or has them."""
    if machine.limit is None or not machine.apart or options.strategy not in ("auto", "capacity"):
        return problem
    if problem.shards is not None:
        return problem
    made = problem.with_experts(machine.limit)
    return made if options.plan is None or getattr(options.plan, "key", "") == made.graph.key else problem


def _first(name: str, options: Options, planner: Planner, manner: Manner) -> Executable:
    """The executable of the first plan, after its first call."""
    try:
        with stage("planning"):
            exe = planner.first(options.plan, manner.progress, early=manner.gate is not None)
        with stage("the first call"):
            if exe.lowered is not None:
                planner.problem.warm(exe)
        return exe
    except Failed as e:
        if planner.fits_as_it_is:
            raise
        manner.warn(name, e.why, options.strict, CPU_ALONE)
        return planner.fallback(strategy_name(options.strategy), e.why)


def _retired(name: str, strict: bool, why: str, plan: Plan) -> None:
    """Tells that a function left its plan at run time."""
    warn(name, why, strict, CPU_ALONE if plan.engine == "local" else PLAIN)
