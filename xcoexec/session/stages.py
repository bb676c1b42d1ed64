"""One function at one set of shapes through all stages: graph, measured seconds, executables of plans."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from ..codegen.program import Program, Value
from ..codegen.runtime import host
from ..codegen.runtime.relay import Relay
from ..codegen.segment.assembly import Segment
from ..codegen.segment.choice import likely
from ..compat import configuration
from ..cost.predictor import Predictor
from ..frontend.fold import Folded, fold
from ..frontend.graph import build_graph
from ..frontend.trace import Traced
from ..ir.records import Costs, LayerGraph, Placement, Plan
from ..ir.validate import check_graph
from ..lowering.lower import identities, lower
from ..measure.device_layers import to_predict
from ..measure.profile import Progress, device_costs, host_placements, measure, overheads, silent
from ..measure.timing import empty_call, median_seconds
from ..partition.split import split
from ..planning.memory import usage, ways
from .executable import Executable, executable, local

CALIBRATION_SECONDS = 0.05
MOST_FACTOR = 2.0  # by which layers together may take longer than one by one
WORTH_FLOPS = 2e6  # of a layer that is predicted in parts too

Alone = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclasses.dataclass(eq=False)
class Stages:
    """One function at one set of shapes, through all stages; made once, planned as often as needed."""

    traced: Traced
    folded: Folded
    graph: LayerGraph
    weights: Sequence[Any]
    example: Sequence[Any]
    threads: int
    cpus: tuple[int, ...]
    donated: tuple[int, ...]
    plain: Callable[[Sequence[Any]], Sequence[Any]]
    progress: Progress = silent
    costs: Costs | None = None
    relay: Relay | None = None  # None: the device half is XLA:CPU
    memory: str = "auto"  # how arrays cross between the halves
    limit: int | None = None  # bytes that may lie on the device; None: as many as there are
    hasty: bool = False  # algorithms are taken from nearly the same layers, not measured
    alone: Alone = contextlib.nullcontext  # in which a block of calls is measured
    predictor: Predictor | None = None  # costs are predicted, not measured
    plain_ready: bool = False  # plain jax.jit is compiled
    sibling: bool = False  # the same function is planned already, for other shapes
    compiler_options: Mapping[str, Any] | None = None  # of `jax.jit`

    def build(self, program: Program) -> Segment:
        self.progress("build", 0, 0)
        return host.build(program, self.threads, cpus=self.cpus, cut=split, pick=likely if self.hasty else None)

    def executable(self, plan: Plan) -> Executable:
        """A plan as an executable with resident weights."""
        if plan.engine == "jit":
            return Executable(plan, self.plain, None)
        if plan.engine == "local":
            return local(plan, lower(self.graph, self.folded, plan.placements, self.build), self.weights)
        if self.relay is not None:
            moves = overheads(self.relay).moves if self.memory == "auto" else {}
            plan = dataclasses.replace(plan, placements=ways(self.graph, plan.placements, self.memory, moves))
        lowered = lower(self.graph, self.folded, plan.placements, self.build, self.relay)
        return executable(plan, lowered, self.weights, self.donated, self.compiler_options, configuration())

    def fits(self, plan: Plan) -> bool:
        """Whether a plan keeps within the bytes that may lie on the device."""
        return (
            self.limit is None
            or self.relay is None
            or plan.engine == "local"
            or usage(self.graph, plan.placements).total <= self.limit
        )

    @functools.cached_property
    def bounded(self) -> bool:
        """Whether the weights as a whole are too large for the device."""
        return not self.fits(device_plan(self.graph))

    @functools.cached_property
    def all_host(self) -> Executable:
        plan = Plan(
            "host",
            host_placements(self.graph),
            self.graph.key,
            chosen="all layers that kernels can express on the host half",
        )
        return self.executable(plan)

    @functools.cached_property
    def all_device(self) -> Executable:
        """The folded graph on the device half: what the device's parts of a plan come from."""
        return self.executable(dataclasses.replace(device_plan(self.graph), engine="xco"))

    @property
    def on_host(self) -> bool:
        """Whether the inputs arrive in host memory (NumPy arrays), so that a device would have to be given them, and
        XLA:CPU is there.
        """
        try:
            jax.local_devices(backend="cpu")
        except RuntimeError:  # JAX_PLATFORMS names the device alone
            return False
        return all(not isinstance(x, jax.Array) for x in self.example)

    @functools.cached_property
    def local(self) -> Executable:
        plan = Plan(
            "local",
            host_placements(self.graph),
            self.graph.key,
            chosen="the whole call on the CPU, where its inputs are",
            engine="local",
        )
        return self.executable(plan)

    def run(self, exe: Executable) -> Any:
        leaves = [jax.numpy.array(x, copy=True) for x in self.example] if self.donated else self.example
        return jax.block_until_ready(exe.call(leaves))

    def constant(self, v: Value) -> Any:
        """A constant of the program where it lies; weights as they are, without a copy."""
        resident = identities(self.folded, self.weights)
        return resident[v] if v in resident else self.folded.constants(self.weights)[v]

    def measured_costs(self) -> Costs:
        """Seconds of every layer on both halves, measured once."""
        if self.costs is None and self.predictor is not None:
            worth = lambda x: to_predict(x, self.graph.program.consts) if x.flops > WORTH_FLOPS else {}
            self.costs = self.predictor.costs(self.graph, worth if self.relay is not None else None)
        if self.costs is None and all(x.host_error for x in self.graph.layers):
            self.costs = self._calibrated(device_costs(self.graph, self.constant, self.progress, self.relay))
        if self.costs is None:
            run = lambda: self.run(self.all_host)
            where = (self.relay, self.threads, self.cpus, self.bounded)
            costs = measure(self.graph, lowered_of(self.all_host), run, self.constant, self.progress, *where)
            self.costs = costs if self.bounded else self._calibrated(costs)
        return self.costs if self.limit is None else dataclasses.replace(self.costs, capacity=self.limit)

    def _calibrated(self, costs: Costs) -> Costs:
        """Layers that are timed one by one take longer or shorter than together: scaled to what the whole function
        takes on each half.
        """
        if self.donated:
            return costs
        leaves = [jax.numpy.asarray(x) for x in self.example]
        call = (
            (lambda: self.run(self.all_device))
            if self.relay is not None
            else lambda: jax.block_until_ready(self.plain(leaves))
        )
        whole = median_seconds(call, CALIBRATION_SECONDS) - empty_call()
        costs = costs.scaled(device=min(MOST_FACTOR, max(whole, 1e-6) / sum(costs.device)))
        return self._host_calibrated(costs) if all(t is not None for t in costs.host) else costs

    def _host_calibrated(self, costs: Costs) -> Costs:
        """As much longer as the call of all layers on the host half takes than they were stamped with."""
        known = [t or 0.0 for t in costs.host]
        whole = median_seconds(lambda: self.run(self.all_host), CALIBRATION_SECONDS) - empty_call() - costs.sync
        factor = min(max(whole / max(sum(known), 1e-7), 1.0), MOST_FACTOR)
        return costs.scaled(host=factor)

    def fallback(self, strategy: str, why: str) -> Executable:
        """What runs when co-execution cannot: plain jax.jit, or the CPU alone where the weights do not fit the device."""
        if self.limit is not None and self.bounded:
            exe = self.local
            return dataclasses.replace(exe, plan=dataclasses.replace(exe.plan, chosen=f"fallback: {why}"))
        return Executable(Plan(strategy, (), self.graph.key, chosen=f"fallback: {why}", engine="jit"), self.plain, None)

    def forget(self) -> None:
        """Drops the executable that was only made to be measured, with its packed weights."""
        for made in ("all_host", "all_device", "local"):
            self.__dict__.pop(made, None)


def device_plan(graph: LayerGraph) -> Plan:
    """Plain jax.jit as a plan."""
    layers = tuple(Placement(x.name, "device", 0.0) for x in graph.layers)
    return Plan("device", layers, graph.key, chosen="no layer that kernels can express", engine="jit")


def lowered_of(exe: Executable) -> Any:
    assert exe.lowered is not None
    return exe.lowered


def stages(
    traced: Traced, weight_index: Sequence[int], weights: Sequence[Any], example: Sequence[Any], **rest: Any
) -> Stages:
    """Folds a trace and builds its graph; both are checked."""
    folded = fold(traced, weight_index)
    graph = build_graph(folded)
    check_graph(graph)
    return Stages(traced, folded, graph, weights, example, **rest)


__all__ = ["Alone", "Stages", "device_plan", "lowered_of", "stages"]
