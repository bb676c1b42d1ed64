"""What ran where, how long, by which algorithm, and how far from the machine's roofline: `Bound.report()`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from ..codegen.runtime.peaks import Peaks, peaks
from ..cost.edgenn import bound
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.plan import Plan
from ..ir.text import columns, milliseconds, where
from ..lowering.lower import Lowered
from ..measure.profile import layer_seconds
from .drawing import Point, roofline
from .rebalance import halves


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

    @property
    def gflops(self) -> float | None:
        """10^9 FLOP a second of the host half's part; None where no seconds were stamped."""
        return self.flops / self.measured / 1e9 if self.measured else None

    @property
    def gbytes(self) -> float | None:
        """GB/s of the host half's part; None where no seconds were stamped."""
        return self.nbytes / self.measured / 1e9 if self.measured else None


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

    def __str__(self) -> str:
        rows = [
            [
                "layer",
                "placement",
                "algorithm",
                "predicted ms",
                "measured ms",
                "device ms",
                "bound ms",
                "GFLOP/s",
                "GB/s",
                "% of roofline",
            ]
        ]
        for x in self.layers:
            speeds = [f"{s:.1f}" if s else "-" for s in (x.gflops, x.gbytes)]
            share = f"{100 * x.least / x.measured:.0f}" if x.measured else "-"
            rows.append(
                [
                    x.layer,
                    x.placement,
                    x.algorithm,
                    *map(milliseconds, (x.predicted, x.measured, x.device, x.bound)),
                    *speeds,
                    share,
                ]
            )
        times = ", ".join(f"{k} {v * 1e3:.3f} ms" for k, v in sorted(self.measured.items()))
        ran = f"ran: {self.ran} ({self.why}); {self.segments} host segments; {times}"
        if self.peaks is None:
            return "\n".join((columns(rows, (3, 4, 5, 6, 7, 8, 9)), ran))
        peak = f"{self.peaks.flops / 1e9:.0f} GFLOP/s, {self.peaks.bandwidth / 1e9:.1f} GB/s from memory"
        roof = f"roofline of {self.peaks.threads} threads: {peak} (more than 100 %: Winograd, or data in caches)"
        return "\n".join((columns(rows, (3, 4, 5, 6, 7, 8, 9)), ran, roof))

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
    algorithms: dict[int, str] = {}
    for unit in lowered.segments if lowered else ():
        if unit.segment.calls:
            seconds.update(layer_seconds(unit))
        algorithms.update(zip(unit.layers, unit.segment.algorithms, strict=True))
    roof = peaks(threads)
    both = (
        {u.layers[-1]: seen for u in lowered.segments if u.join and (seen := halves(u, lowered))}
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
        layers.append(
            LayerReport(
                x.name, placement, algorithm, work, data, p.predicted, seconds.get(x.index), least, limit, device
            )
        )
    return Report(plan.engine, plan.chosen, tuple(layers), plan.measured, len(lowered.segments) if lowered else 0, roof)
