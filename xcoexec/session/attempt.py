"""One planning of a problem on a machine: what it measures, and the executables that it makes on the way."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import jax

from ..codegen.program import Program
from ..codegen.runtime import guesses
from ..codegen.segment.assembly import Segment
from ..codegen.segment.context import Groups
from ..compat import as_array, configuration
from ..cost.predictor import Predictor
from ..devices.registry import connected
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.placement import bare
from ..ir.plan import Plan
from ..lowering.executable import INSIDE_BYTES, Executable, executable, local, without_mesh
from ..lowering.lower import Lowered, lower
from ..lowering.shards import Shards
from ..measure.device_layers import to_predict
from ..measure.kept import tuning
from ..measure.profile import (
    Progress,
    assume,
    device_costs,
    host_placements,
    learn_contention,
    measure,
    overheads,
    silent,
    streaming_rate,
)
from ..measure.timing import Beside, alone, empty_call, lent, median_seconds
from ..planning.baselines import device_plan
from ..planning.memory import ways
from .problem import Machine, Problem
from .recording import recording

CALIBRATION_SECONDS = 0.015
MOST_FACTOR = 2.0  # by which layers together may take longer than one by one
WORTH_FLOPS = 2e6  # of a layer that is predicted in parts too


class Attempt:
    """Lives as long as a planning does; what it was only made for to be measured goes with it.

    `costs`: seconds of the layers (None: not measured yet). `predictor`: costs are predicted, not measured. `hasty`:
    algorithms are taken from nearly the same layers, not measured. `plain_ready`: plain `jax.jit` is compiled. `early`:
    what is the machine's, not the function's, is measured afterwards (`learn`). `seen`: seconds of a call of
    candidates, by name, as they were measured last; `slow`: of those that need not be measured again. `quick`: seconds
    of the layers where no parts of them were measured (None: not needed). `reserved`: bytes of the device's limit that
    plans leave to XLA's programs. `untried`: no caller came who could measure what only he may.
    """

    def __init__(
        self,
        problem: Problem,
        machine: Machine,
        *,
        costs: Costs | None = None,
        predictor: Predictor | None = None,
        progress: Progress = silent,
        hasty: bool = False,
        plain_ready: bool = False,
        early: bool = False,
    ):
        self.problem, self.machine, self.costs, self.predictor = problem, machine, costs, predictor
        self.progress, self.hasty, self.plain_ready, self.early = progress, hasty, plain_ready, early
        self._guessed = False  # whether an algorithm of what is built now was guessed
        self.seen, self.slow = dict[str, float](), dict[str, float]()
        self.quick: Costs | None = None
        self.reserved = 0
        self.untried = False

    @property
    def graph(self) -> LayerGraph:
        """The layers that are planned."""
        return self.problem.graph

    def run(self, exe: Executable) -> Sequence[jax.Array]:
        """Calls an executable with the example, and waits for its results. Raises `NotCalled` where only a caller's
        thread may do so, and none comes.
        """
        if exe.may is None:
            return self.problem.run(exe)
        if exe.compiled is not None:
            exe.compiled(self.problem.example)  # for which nobody waits
        return lent(lambda: self.problem.run(_allowed(exe)))

    def stream(self, exe: Executable, count: int = 1) -> None:
        """Calls an executable so often with the example, as callers do, and waits for results when all calls are
        made. Raises `NotCalled` where that may not be now.
        """
        _allowed(exe)
        begun = [self.problem.begin_as_called(exe) for _ in range(count)]
        jax.block_until_ready(begun[-1] if self.problem.donated else begun)  # those before it have been given away

    def unhurried(self) -> None:
        """From now on algorithms are measured, and so are the shapes of kernels, once a machine; what was built with
        guessed ones is built anew.
        """
        learned = not self.problem.hostless and guesses.learn(alone)
        if learned or self._guessed:
            for name, built in (("host", "all_host"), ("local", "local")):
                self.__dict__.pop(built, None)
                self.slow.pop(name, None)
        self.hasty = self._guessed = False

    def build(self, program: Program) -> Segment:
        """A segment for this machine's team. Raises `Unsupported` for what kernels cannot express."""
        self.progress("build", 0, 0)
        return self.machine.build(program, self._guess if self.hasty else None)

    def _guess(self, groups: Groups, names: tuple[str, ...], threads: int) -> str:
        found, guessed = guesses.at_once(groups, names, threads)
        self._guessed |= guessed
        return found

    def executable(self, plan: Plan) -> Executable:
        """A plan as an executable with resident weights. Raises `Unsupported` or `SplitError` for layers that cannot
        run as it says.
        """
        p = self.problem
        if plan.engine == "jit":
            return Executable(plan, p.plain, None)
        if plan.engine == "local":
            return local(plan, lower(p.graph, p.folded, plan.placements, self.build), p.weights)
        if not self.machine.apart and bare(plan.placements) == bare(host_placements(p.graph)):
            return dataclasses.replace(self.all_host, plan=plan)  # its weights are packed once
        return self._made(plan)

    def candidate(self, plan: Plan) -> Executable:
        """The same of a plan that is tried: in a program of a device XLA times no kernels of products that it makes
        itself, where that takes long.
        """
        return self.executable(self._tried(plan))

    def _tried(self, plan: Plan) -> Plan:
        return dataclasses.replace(plan, libraries=plan.engine == "xco" and bool(self.few_kernels))

    @functools.cached_property
    def few_kernels(self) -> Mapping[str, object]:
        """XLA's options by which it times few kernels; none where it does so anyway, and for a step, of which little is
        tried.
        """
        m = self.machine
        return m.device.libraries(self.graph.program.ops) if m.apart and not self.problem.step else {}

    def _made(self, plan: Plan) -> Executable:
        """A plan with an engine of our own as an executable."""
        p, relay = self.problem, self.machine.relay
        if self.machine.apart:
            moves = overheads(relay).moves if self.machine.memory == "auto" else {}
            plan = dataclasses.replace(plan, placements=ways(p.graph, plan.placements, self.machine.memory, moves))
        device, ops = self.machine.device, p.graph.program.ops
        options = {**tuning(), **device.compiling(ops), **(device.graphs(ops) if plan.graphs else {})}
        options |= device.singly() if plan.singly else {}
        options |= {**(self.few_kernels if plan.libraries else {}), **(p.compiler_options or {})}
        lowered = lower(p.graph, p.folded, plan.placements, self.build, relay)
        made = self._compilable(plan, lowered, options)
        made = without_mesh(made) if p.meshed else made
        return recording.only(made, p.plain) if plan.graphs else made

    def _compilable(self, plan: Plan, lowered: Lowered, options: Mapping[str, object]) -> Executable:
        """A lowered plan on the device, or on those of a call's shards; XLA compiles it at its first call."""
        p = self.problem
        if p.shards is not None:
            return self._on_all(plan, lowered, p.shards, options)
        about = (options, configuration(), p.results, p.caller if p.banks else None)
        return executable(plan, lowered, p.weights, p.donated, *about, inside=self._inside)

    @property
    def _inside(self) -> int:
        """Bytes of weights that may be part of a device's program."""
        return INSIDE_BYTES if self.machine.limit is None and not self.problem.step else 0

    def _on_all(self, plan: Plan, lowered: Lowered, shards: Shards, options: Mapping[str, object]) -> Executable:
        """A plan on the devices of a call's shards: one program where the host half has no part in it, else lowered for
        each that has cores of its own, packed once where they share their memory.
        """
        together = shards.together(plan, lowered.with_inside(shards.weights[0], self._inside), options)
        if together is not None:
            return together
        p, made = self.problem, list[Executable]()
        for k, device in enumerate(shards.devices):
            if k and self.machine.beside:
                machine = self.machine.beside[k - 1]
                build = functools.partial(machine.build, pick=self._guess if self.hasty else None)
                lowered = lower(p.graph, p.folded, plan.placements, build, machine.relay)
            blobs = made[0].blobs if made and not self.machine.apart else None
            there = {"where": device, "blobs": blobs, "made_for": shards.configuration, "inside": self._inside}
            made.append(executable(plan, lowered, shards.weights[k], (), options, **there))
        return shards.executable(plan, made)

    def fits(self, plan: Plan) -> bool:
        """Whether a plan keeps within the bytes that may lie on the device."""
        return self.machine.holds(self.graph, plan, self.reserved)

    def excess(self, exe: Executable) -> int:
        """Bytes that XLA's program of a plan holds on the device beyond those that may lie there (0: it keeps within
        them). XLA may write out what a kernel could keep to itself, such as the products of a row and a weight.
        """
        m = self.machine
        if m.limit is None or not m.apart or exe.compiled is None or exe.plan.engine == "local":
            return 0
        made = exe.compiled(self.problem.example)
        held = made.memory_analysis() if isinstance(made, jax.stages.Compiled) else None
        if held is None:
            return 0
        own = held.argument_size_in_bytes + held.temp_size_in_bytes + held.output_size_in_bytes
        return int(max(own - m.limit - m.link.workspace, 0))

    @functools.cached_property
    def too_large(self) -> bool:
        """Whether the weights as a whole have more bytes than may lie on the device."""
        return not self.machine.holds(self.graph, device_plan(self.graph))

    @functools.cached_property
    def plain(self) -> Executable:
        """Plain `jax.jit`."""
        return self.executable(device_plan(self.graph))

    @functools.cached_property
    def all_host(self) -> Executable:
        """Every layer that kernels can run on the host half, the others on the device half."""
        plan = Plan(
            "host",
            host_placements(self.graph),
            self.graph.key,
            chosen="all layers that kernels can express on the host half",
        )
        return self._made(self._tried(plan))

    @functools.cached_property
    def all_device(self) -> Executable:
        """The folded graph on the device half: what the device's parts of a plan come from."""
        return self.candidate(dataclasses.replace(device_plan(self.graph), engine="xco"))

    @functools.cached_property
    def local(self) -> Executable:
        """The whole call on the CPU of a machine with a device. Raises `RuntimeError` where JAX has no CPU backend."""
        plan = Plan(
            "local",
            host_placements(self.graph),
            self.graph.key,
            chosen="the whole call on the CPU, where its inputs are",
            engine="local",
        )
        return self.executable(plan)

    def measured_costs(self) -> Costs:
        """Seconds of every layer on both halves, measured once."""
        if self.costs is None:
            if not self.early:
                self.learn()
            with self.machine.there():
                self.costs = self._measured()
        m = self.machine
        if m.limit is None:
            return self.costs
        rate = min(streaming_rate(connected(m.relay), m.threads), self.costs.stream_rate)
        return dataclasses.replace(self.costs, capacity=m.limit - self.reserved, stream_rate=rate)

    def quick_costs(self, together: float) -> Costs:
        """As `measured_costs`, on a device of which nothing is known but that all layers take so many seconds
        `together`.
        """
        m, run = self.machine, lambda: self.run(self.all_host)
        where = (connected(m.relay), m.threads, m.cpus)
        with m.there():
            self.quick = assume(self.graph, lowered_of(self.all_host), run, together, *where)
        return self.quick

    def learn(self) -> None:
        """Measures what of the machine is not known yet, and is kept on disk."""
        if self.predictor is None and not self.problem.hostless:
            with self.machine.there():
                learn_contention(self.machine.relay, self.machine.threads, self.machine.cpus)

    def _measured(self) -> Costs:
        p, m = self.problem, self.machine
        if self.predictor is not None:
            worth = lambda x: to_predict(x, p.graph.program.consts) if x.flops > WORTH_FLOPS else {}
            return self.predictor.costs(p.graph, worth if m.apart else None)
        if p.hostless:
            return self._calibrated(device_costs(p.graph, p.constant, self.progress, m.relay))
        run = lambda: self.run(self.all_host)
        where = (m.relay, m.threads, m.cpus, self.too_large)
        costs = measure(p.graph, lowered_of(self.all_host), run, p.constant, self.progress, *where)
        return costs if self.too_large else self._calibrated(costs)

    def _calibrated(self, costs: Costs) -> Costs:
        """Layers that are timed one by one take longer or shorter than together: scaled to what the whole function
        takes on each half.
        """
        if self.problem.donated:
            return costs
        costs = costs.scaled(device=min(MOST_FACTOR, self._whole_device() / sum(costs.device)))
        return self._host_calibrated(costs) if all(t is not None for t in costs.host) else costs

    def _whole_device(self) -> float:
        """Seconds of all layers together on the device half."""
        if self.machine.apart:
            call = lambda: self.run(self.all_device)
        else:
            leaves = [as_array(x) for x in self.problem.feed.leaves()]
            call = lambda: jax.block_until_ready(self.problem.plain(leaves))
        return max(median_seconds(call, CALIBRATION_SECONDS) - empty_call(), 1e-6)

    def _host_calibrated(self, costs: Costs) -> Costs:
        """As much longer as the call of all layers on the host half takes than they were stamped with."""
        known = [t or 0.0 for t in costs.host]
        whole = median_seconds(lambda: self.run(self.all_host), CALIBRATION_SECONDS) - empty_call() - costs.sync
        factor = min(max(whole / max(sum(known), 1e-7), 1.0), MOST_FACTOR)
        return costs.scaled(host=factor)

    def fallback(self, strategy: str, why: str) -> Executable:
        """What runs when co-execution cannot: plain jax.jit, or the CPU alone where the weights do not fit."""
        if self.too_large:
            return dataclasses.replace(self.local, plan=dataclasses.replace(self.local.plan, chosen=f"fallback: {why}"))
        plan = Plan(strategy, (), self.graph.key, chosen=f"fallback: {why}", engine="jit")
        return Executable(plan, self.problem.plain, None)


def _allowed(exe: Executable) -> Executable:
    """An executable that may be called now: plain jax.jit in its place is not what is to be measured."""
    if exe.may is not None and not exe.may():
        raise Beside
    return exe


def lowered_of(exe: Executable) -> Lowered:
    """What an executable other than plain `jax.jit` was lowered to. Raises `AssertionError` for that one."""
    assert exe.lowered is not None
    return exe.lowered


__all__ = ["Attempt", "lowered_of"]
