"""What ran where, how long, by which algorithm, and how far from the machine's roofline: `Bound.report()`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from .codegen.peaks import Peaks, peaks
from .cost.edgenn import bound
from .ir import Costs, LayerGraph, Plan
from .lower import Lowered
from .pretty import columns, milliseconds, where
from .profile import layer_seconds


@dataclasses.dataclass(frozen=True)
class LayerReport:
    """One layer: where it ran, predicted and measured seconds (host half's own part; None where nothing was stamped).

    `flops` FLOP and `nbytes` bytes (weights, inputs and results once each) of one call; `algorithm`: the kernel
    families that ran; `least`: the roofline's seconds for this work; `bound`: no split of the layer is faster.
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

    @property
    def gflops(self) -> float | None:
        return self.flops / self.measured / 1e9 if self.measured else None

    @property
    def gbytes(self) -> float | None:
        return self.nbytes / self.measured / 1e9 if self.measured else None


@dataclasses.dataclass(frozen=True)
class Report:
    """`ran`: "xco" when the plan's executable runs, "local" when it runs on the CPU beside an idle device, "jit" when plain jax.jit does; `why` in words."""

    ran: str
    why: str
    layers: tuple[LayerReport, ...]
    measured: Mapping[str, float]
    segments: int
    peaks: Peaks | None  # None where no kernel runs

    def __str__(self) -> str:
        rows = [["layer", "placement", "algorithm", "predicted ms", "measured ms", "bound ms", "GFLOP/s", "GB/s", "% of roofline"]]
        for x in self.layers:
            speeds = [f"{s:.1f}" if s else "-" for s in (x.gflops, x.gbytes)]
            share = f"{100 * x.least / x.measured:.0f}" if x.measured else "-"
            rows.append([x.layer, x.placement, x.algorithm, milliseconds(x.predicted), milliseconds(x.measured), milliseconds(x.bound), *speeds, share])
        times = ", ".join(f"{k} {v * 1e3:.3f} ms" for k, v in sorted(self.measured.items()))
        ran = f"ran: {self.ran} ({self.why}); {self.segments} host segments; {times}"
        if self.peaks is None:
            return "\n".join((columns(rows, (3, 4, 5, 6, 7, 8)), ran))
        peak = f"{self.peaks.flops / 1e9:.0f} GFLOP/s, {self.peaks.bandwidth / 1e9:.1f} GB/s from memory"
        roof = f"roofline of {self.peaks.threads} threads: {peak} (more than 100 %: Winograd, or data in caches)"
        return "\n".join((columns(rows, (3, 4, 5, 6, 7, 8)), ran, roof))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the roofline with the measured layers on it, as a PNG (needs matplotlib)."""
        from .draw import roofline

        if self.peaks is None:
            raise ValueError(f"report: got no kernel to draw, {self.why}; valid is a report of a plan with host layers.")
        roofline(self.layers, self.peaks, path)


def report(graph: LayerGraph, plan: Plan, lowered: Lowered | None, costs: Costs | None, threads: int) -> Report:
    """The report of a plan from the stamps of its segments' recent calls."""
    seconds: dict[int, float] = {}
    algorithms: dict[int, str] = {}
    for unit in lowered.segments if lowered else ():
        if unit.segment.calls:
            seconds.update(layer_seconds(unit))
        algorithms.update(zip(unit.layers, unit.segment.algorithms, strict=True))
    roof = peaks(threads)
    layers = []
    for x, p in zip(graph.layers, plan.placements, strict=True):
        placement = where(p.half, p.p_cpu, p.dim) if plan.engine != "jit" else "device (jax.jit)"
        both = (costs.host[x.index], costs.device[x.index]) if costs else (None, None)
        limit = bound(both[0], both[1]) if both[0] and both[1] else None
        algorithm = algorithms.get(x.index, "XLA")
        layers.append(LayerReport(x.name, placement, algorithm, x.flops, x.nbytes, p.predicted, seconds.get(x.index), roof.seconds(x.flops, x.nbytes), limit))
    return Report(plan.engine, plan.chosen, tuple(layers), plan.measured, len(lowered.segments) if lowered else 0, roof)
