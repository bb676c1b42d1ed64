"""What ran where, how long, by which algorithm, and how far from the machine's roofline: `fast.report()`."""

from __future__ import annotations

import dataclasses
import os
import textwrap
from collections.abc import Mapping

from ..codegen.runtime.peaks import Peaks, peaks
from ..cost.edgenn import bound
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.plan import Plan
from ..ir.text import WIDTH, columns, duration, html_table, html_text, number, where
from ..lowering.lower import Lowered
from ..measure.profile import layer_seconds
from .budget import Budget, budget
from .drawing import Point, roofline
from .experts import Resident
from .flows import Flow, flows
from .flows import text as flows_text
from .rebalance import halves

SLOWEST = 10  # layers that a report shows
FEWEST = 5  # calls whose stamps make a median
WINOGRAD = 4.0  # times the FLOP of an FMA: F(4x4, 3x3), the most that a sum needs no multiplications for
NARROW = 64.0  # the same of int8 on AMX's tiles, for which an FMA of f32 is the measure
NARROW_KERNELS = ("tiles", "(int8)", "(uint8)", "(bfloat16)")  # in the names of kernels that multiply narrow elements
LOADS = 2.0  # bytes for each FLOP of an FMA: a core loads two vectors where it multiplies and adds two
HIGHER = "(more than 100 %: Winograd, which multiplies less, or data in caches);"
UNKNOWN = '"-": too short, or too few calls so far.'


@dataclasses.dataclass(frozen=True)
class LayerReport:
    """One layer: where it ran, predicted and measured seconds (host half's own part; None where nothing was stamped).

    `flops` FLOP and `nbytes` bytes (weights, inputs and results once each) of the host half's part of one call, of the
    whole layer where there is none; `algorithm`: the kernel families that ran; `least`: the roofline's seconds for this
    work; `bound`: no split of the layer is faster; `device`: seconds of the device's half of the split that ends with
    this layer.
    """

    layer: str
    placement: str
    algorithm: str
    flops: int
    nbytes: int
    predicted: float | None
    measured: float | None
    least: float
    bound: float | None
    device: float | None = None
    calls: int = 0  # whose stamps `measured` is a median of

    @property
    def gflops(self) -> float | None:
        """10^9 FLOP a second of the host half's part; None where no seconds were stamped."""
        return self.flops / self.measured / 1e9 if self.measured else None

    @property
    def gbytes(self) -> float | None:
        """GB/s of the host half's part; None where no seconds were stamped."""
        return self.nbytes / self.measured / 1e9 if self.measured else None

    @property
    def share(self) -> float | None:
        """The roofline's seconds over the measured ones; None where no seconds were stamped."""
        return self.least / self.measured if self.measured else None


@dataclasses.dataclass(frozen=True)
class Report:
    """`ran`: "xco" when the plan's executable runs, "local" when it runs on the CPU beside an idle device, "jit" when
    plain jax.jit does; `why` in words. `measured`: name -> seconds of what was timed when the plan was chosen;
    `segments`: how many native calls one call makes.
    """

    ran: str
    why: str
    layers: tuple[LayerReport, ...]
    measured: Mapping[str, float]
    segments: int
    peaks: Peaks | None  # None where no kernel runs

    whole: bool = False  # whether the text shows all layers
    budget: Budget | None = None  # where the seconds of a call go; None where one half runs
    weights: tuple[Flow, ...] = ()  # where large weights come from, if not all of them are resident on a device
    experts: Resident | None = None  # which of them are resident, where some are

    @property
    def jit_seconds(self) -> float | None:
        """Seconds of a call of plain `jax.jit`, as measured when the plan was chosen; None where that was not done."""
        return self.measured.get("jit")

    @property
    def seconds(self) -> float | None:
        """Seconds of a call of what runs, as measured when the plan was chosen; None where that was not done."""
        if self.ran == "jit":
            return self.jit_seconds
        return min((s for name, s in self.measured.items() if name != "jit"), default=None)

    @property
    def gain(self) -> float | None:
        """How many times as fast as plain `jax.jit`; None where both were not measured."""
        return self.jit_seconds / self.seconds if self.jit_seconds and self.seconds else None

    def _first(self) -> str:
        """What matters: both times, the gain, and why."""
        times = f"jax.jit {duration(self.jit_seconds)}, xcoexec {duration(self.seconds)} a call"
        if self.ran == "jit":
            said = "Plain jax.jit runs" + (f", {duration(self.jit_seconds)} a call." if self.jit_seconds else ".")
        elif self.gain:
            said = f"{times}: {number(self.gain, 3)} times as fast."
        else:
            said = "The plan runs; it was not compared with jax.jit."
        said += f"\n{textwrap.fill(f'Why: {self.why}.', WIDTH)}"
        return said + (f"\nHost segments (native calls) in a call: {self.segments}." if self.segments else "")

    def _rows(self) -> tuple[list[list[str]], int]:
        """The head and the rows of the layers that are shown, and how many are not."""
        slowest = sorted(self.layers, key=lambda x: x.measured or x.predicted or 0.0, reverse=True)
        shown = self.layers if self.whole else slowest[:SLOWEST]
        tops = {x.layer.split("/")[0] for x in self.layers if "/" in x.layer}
        prefix = f"{tops.pop()}/" if len(tops) == 1 else ""
        halves = any(x.device is not None for x in self.layers)
        rows = [["layer", "runs on", "algorithm", "ms", *["GPU ms"] * halves, "GFLOP/s", "GB/s", "% roof"]]
        for x in shown:
            if x.calls < FEWEST:
                x = dataclasses.replace(x, measured=None, device=None)
            ms = [number(1e3 * s, 3) if s else "-" for s in (x.measured, *([x.device] if halves else []))]
            speeds = [number(s) for s in (x.gflops, x.gbytes)]
            share = "-" if x.share is None else f"{100 * x.share:.0f}"
            rows.append([x.layer.removeprefix(prefix), x.placement, x.algorithm, *ms, *speeds, share])
        return rows, len(self.layers) - len(shown)

    def _last(self, left: int) -> str:
        said = [f"{left} more layers: report(all=True)."] if left else []
        if self.peaks is not None and self.layers:
            peak = f"{number(self.peaks.flops / 1e9)} GFLOP/s, {number(self.peaks.bandwidth / 1e9)} GB/s from memory"
            said += [f"% of roofline: of {self.peaks.threads} threads, {peak}", HIGHER, UNKNOWN]
        return "\n".join(said)

    def __str__(self) -> str:
        """What matters first, then the slowest layers, in 80 columns."""
        rows, left = self._rows()
        numbers = range(3, len(rows[0]))
        body = columns(rows, numbers, WIDTH) if self.layers else ""
        spent = self.budget.text(self.whole) if self.budget is not None else ""
        experts = textwrap.fill(self.experts.text, WIDTH) if self.experts is not None else ""
        parts = (self._first(), flows_text(self.weights), experts, spent, body, self._last(left))
        return "\n\n".join(part for part in parts if part)

    def text(self, all: bool = False) -> str:
        """The text with the slowest layers, or with all of them in the order of the graph."""
        return str(dataclasses.replace(self, whole=all))

    def __repr__(self) -> str:
        gain = f"{number(self.gain, 3)} times as fast as jax.jit, " if self.gain else ""
        return f"<xcoexec report: {self.ran}, {gain}{len(self.layers)} layers>"

    def _repr_html_(self) -> str:
        rows, left = self._rows()
        body = html_table(rows, range(3, len(rows[0]))) if self.layers else ""
        return html_text(self._first()) + body + html_text(self._last(left))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the roofline with the measured layers on it, as a PNG (needs matplotlib). Raises `ValueError` where no
        kernel runs.
        """
        if self.peaks is None:
            raise ValueError(
                f"report: got no kernel to draw, {self.why}; valid is a report of a plan with host layers."
            )
        known = [x for x in self.layers if x.measured and x.flops and x.nbytes]
        points = [Point(x.algorithm, x.flops, x.nbytes, x.measured or 0.0) for x in known]
        roofline(points, self.peaks, path)


def report(graph: LayerGraph, plan: Plan, lowered: Lowered | None, costs: Costs | None, threads: int) -> Report:
    """The report of a plan, in seconds, FLOP and bytes, from the stamps of its segments' recent calls. `threads`: of
    the host half. Raises `ValueError` for a plan with more or fewer placements than the graph has layers.
    """
    seconds: dict[int, float] = {}
    calls: dict[int, int] = {}
    algorithms: dict[int, str] = {}
    for unit in lowered.segments if lowered else ():
        if unit.segment.calls:
            seconds.update(layer_seconds(unit))
            calls.update(dict.fromkeys(unit.layers, unit.segment.calls))
        algorithms.update(zip(unit.layers, unit.segment.algorithms, strict=True))
    roof = peaks(threads)
    both = (
        {u.layers[-1]: seen for u in lowered.segments if u.beside and (seen := halves(u, lowered))}
        if lowered and lowered.device.apart
        else {}
    )
    layers = []
    for x, p in zip(graph.layers, plan.placements, strict=True):
        placement = where(p) if plan.engine != "jit" else "device (jax.jit)"
        alone = (costs.host[x.index], costs.device[x.index]) if costs else (None, None)
        limit = bound(alone[0], alone[1]) if alone[0] and alone[1] else None
        part = p.p_cpu if p.half == "split" else 1.0
        work, data = round(x.flops * part), round(x.nbytes * part)
        device = both[x.index].device if x.index in both else None
        algorithm = algorithms.get(x.index, "XLA")
        least = roof.seconds(work, data)
        most = NARROW if any(name in algorithm for name in NARROW_KERNELS) else WINOGRAD
        measured = believed(seconds.get(x.index), work, data, roof, most)
        known = (measured, least, limit, device, calls.get(x.index, 0))
        layers.append(LayerReport(x.name, placement, algorithm, work, data, p.predicted, *known))
    count = len(lowered.segments) if lowered else 0
    found = Report(plan.engine, plan.chosen, tuple(layers), plan.measured, count, roof)
    if lowered and costs and plan.engine == "xco":
        spent = budget(graph, plan.placements, lowered, costs, found.seconds)
        found = dataclasses.replace(found, budget=spent)
    bounded = plan.strategy == "capacity" or any(p.streamed for p in plan.placements)
    if not (bounded and lowered and costs and lowered.device.apart):
        return found
    sure = {i: s for i, s in seconds.items() if calls.get(i, 0) >= FEWEST}
    return dataclasses.replace(found, weights=flows(graph, plan.placements, lowered, costs, roof, sure))


def believed(seconds: float | None, flops: int, nbytes: int, roof: Peaks, most: float = WINOGRAD) -> float | None:
    """Measured seconds, or None where so much work cannot be done in them, at `most` times the FLOP of an FMA: a thread
    that was put aside stamps a step late, and the next one seems to take no time.
    """
    least = max(flops / (most * roof.flops), nbytes / (LOADS * roof.flops))
    return seconds if seconds and seconds >= least else None
