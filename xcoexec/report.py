"""What ran where, how long, and how far from the bound: `Bound.report()`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .cost.edgenn import bound
from .ir import Costs, LayerGraph, Plan
from .lower import Lowered
from .pretty import columns, milliseconds, where
from .profile import layer_seconds


@dataclasses.dataclass(frozen=True)
class LayerReport:
    """One layer: where it ran, predicted and measured seconds (host half's own part; None where nothing was stamped)."""

    layer: str
    placement: str
    flops: int
    predicted: float | None
    measured: float | None
    bound: float | None

    @property
    def gflops(self) -> float | None:
        return self.flops / self.measured / 1e9 if self.measured else None


@dataclasses.dataclass(frozen=True)
class Report:
    """`ran`: "xco" when the plan's executable runs, "jit" when plain jax.jit does; `why` in words."""

    ran: str
    why: str
    layers: tuple[LayerReport, ...]
    measured: Mapping[str, float]
    segments: int

    def __str__(self) -> str:
        rows = [["layer", "placement", "predicted ms", "measured ms", "bound ms", "% of bound", "GFLOP/s"]]
        for x in self.layers:
            share = f"{100 * x.bound / x.measured:.0f}" if x.bound and x.measured else "-"
            speed = f"{x.gflops:.1f}" if x.gflops else "-"
            rows.append([x.layer, x.placement, milliseconds(x.predicted), milliseconds(x.measured), milliseconds(x.bound), share, speed])
        times = ", ".join(f"{k} {v * 1e3:.3f} ms" for k, v in sorted(self.measured.items()))
        return columns(rows, (2, 3, 4, 5, 6)) + f"\nran: {self.ran} ({self.why}); {self.segments} host segments; {times}"


def report(graph: LayerGraph, plan: Plan, lowered: Lowered | None, costs: Costs | None) -> Report:
    """The report of a plan from the stamps of its segments' recent calls."""
    seconds: dict[int, float] = {}
    for unit in lowered.segments if lowered else ():
        if unit.segment.calls:
            seconds.update(layer_seconds(unit))
    layers = []
    for x, p in zip(graph.layers, plan.placements, strict=True):
        placement = where(p.half, p.p_cpu, p.dim) if plan.engine == "xco" else "device (jax.jit)"
        both = (costs.host[x.index], costs.device[x.index]) if costs else (None, None)
        limit = bound(both[0], both[1]) if both[0] and both[1] else None
        layers.append(LayerReport(x.name, placement, x.flops, p.predicted, seconds.get(x.index), limit))
    return Report(plan.engine, plan.chosen, tuple(layers), plan.measured, len(lowered.segments) if lowered else 0)
