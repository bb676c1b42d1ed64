"""Where the weights of a call come from: bytes and seconds of what is resident, of what is streamed, and of what the
host half reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..codegen.runtime.peaks import Peaks
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.text import columns, number
from ..lowering.lower import Lowered
from ..planning.memory import large, weight_shares

WAYS = ("host", "resident", "streamed")  # in the order of `weight_shares`
HEAD = ["weights", "MB a call", "ms measured", "ms calculated", "GB/s", "GB/s at most", "% of it"]


@dataclasses.dataclass(frozen=True)
class Flow:
    """One way of a call's weights: `nbytes` bytes, `calculated` seconds by the plan's figures (of one way after the
    other, where the ways run at the same time), `measured` seconds (None where nothing was stamped: copies leave stamps
    while `timeline()` records), `most` bytes/s that the way delivers at most (None: not known).
    """

    way: str
    nbytes: int
    calculated: float
    measured: float | None
    most: float | None

    @property
    def rate(self) -> float | None:
        """Bytes/s by the measured seconds; None where there are none."""
        return self.nbytes / self.measured if self.measured else None

    @property
    def share(self) -> float | None:
        """The measured rate over the most; None where one of them is not known."""
        return self.rate / self.most if self.rate and self.most else None

    @property
    def row(self) -> list[str]:
        """The cells below `HEAD`."""
        ms = [number(1e3 * s, 3) if s else "-" for s in (self.measured, self.calculated)]
        rates = [number(r / 1e9, 3) if r else "-" for r in (self.rate, self.most)]
        share = "-" if self.share is None else f"{100 * self.share:.0f}"
        return [self.way, number(self.nbytes / 1e6, 4), *ms, *rates, share]


def flows(
    graph: LayerGraph,
    placements: Sequence[Placement],
    lowered: Lowered,
    costs: Costs,
    roof: Peaks,
    seconds: Mapping[int, float],
) -> tuple[Flow, ...]:
    """The three ways of a plan's large weights. `seconds`: measured ones of the host half's part by layer. Of a table
    from which indices choose, all rows count.
    """
    consts = set(graph.program.consts)
    nbytes, calculated = [0.0] * len(WAYS), [0.0] * len(WAYS)
    host: list[float | None] = []
    for x, place in zip(graph.layers, placements, strict=True):
        size, shares = large(x, consts), weight_shares(x, place)
        alone = (costs.host[x.index] or 0.0, costs.device[x.index], costs.device[x.index])
        for i, share in enumerate(shares if size else ()):
            nbytes[i] += share * size
            calculated[i] += share * alone[i]
        if size and shares[0]:
            host.append(seconds.get(x.index))
    calculated[2] = max(calculated[2], nbytes[2] / costs.stream_rate)
    copies = [b - a for a, b in (f.stamps() for f in lowered.fetches.values())]
    measured = (
        sum(s for s in host if s) if host and all(host) else None,
        None,
        sum(copies) * 1e-9 if copies and all(copies) else None,
    )
    most = (roof.bandwidth, None, costs.stream_rate)
    parts = zip(WAYS, nbytes, calculated, measured, most, strict=True)
    return tuple(Flow(way, round(size), planned, seen, rate) for way, size, planned, seen, rate in parts)


def text(found: Sequence[Flow]) -> str:
    """The ways as a table; nothing where there are none."""
    return columns([HEAD, *(f.row for f in found)], range(1, len(HEAD))) if found else ""


__all__ = ["Flow", "flows", "text"]
