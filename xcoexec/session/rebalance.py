"""Shares corrected by what calls measured: how long each half of a split worked, and which one waited for the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ..ir.costs import Costs
from ..ir.geometry import cut
from ..ir.layers import LayerGraph
from ..ir.placement import Placement, chain_results, chains
from ..ir.words import DEVICE, HOST
from ..lowering.lower import Lowered
from ..lowering.work_units import HostUnit
from ..measure.contention import MOST
from ..measure.timing import RECENT
from ..planning.chain_shares import Chains
from ..planning.simulate import member_shares

#: what the measured seconds of a share are multiplied with before they are compared with calculated ones
NEAR = 0.98
WAITED = 3e-6  # seconds: a device that waits longer than this for the host's flag was the faster half


@dataclasses.dataclass(frozen=True)
class HalfSeconds:
    """Median seconds of one host call between its start and its join: each half's work, and all of it on the device's
    clock.
    """

    host: float
    device: float
    span: float


Seen = dict[int, dict[int, HalfSeconds]]  # a split's last layer -> the host half's end along its axis -> what it took


def halves(unit: HostUnit, lowered: Lowered) -> HalfSeconds | None:
    """What recent calls of a host unit took, in seconds; None before the first."""
    site = lowered.sites[unit]
    stamps, own = site.phases(), unit.segment.stamps()
    if not len(stamps) or not len(own):
        return None
    began, ended, _, asked, left, done = (np.median(stamps, axis=0) - np.median(stamps[:, 0])) * 1e-9
    device, waited = asked - ended, left - asked
    host = device + waited if waited > WAITED else float(np.median(own[:, -1] - own[:, 0])) * 1e-9
    return HalfSeconds(float(host), float(device), float(done - began))


def span(lowered: Lowered) -> float | None:
    """Median seconds of a call from the first host call's start to the last one's join, on the device's clock; None
    before the first.
    """
    # the last call that is over at every site
    last = min((site.calls for site in lowered.sites.values()), default=0) - 1
    if last < 1:
        return None
    stamps = np.stack([site.stamps(last)[-RECENT:] for site in lowered.sites.values()])
    return float(np.median(stamps[:, :, 5].max(axis=0) - stamps[:, :, 0].min(axis=0))) * 1e-9


def sharing(lowered: Lowered) -> float | None:
    """Median seconds of a call in which the device's stream gives operands to the host and merges results; None before
    the first call.
    """
    if span(lowered) is None:
        return None
    stamps = (np.median(site.stamps()[-RECENT:], axis=0) for site in lowered.sites.values())
    return float(sum(s[1] - s[0] + s[5] - s[4] for s in stamps)) * 1e-9


def slowdown(graph: LayerGraph, placements: Sequence[Placement], lowered: Lowered, costs: Costs) -> float | None:
    """How many times as long as its parts alone the slower half of the splits takes in recent calls, 1 to `MOST`; None
    before the first call, and without a split.
    """
    measured = {u.layers[-1]: halves(u, lowered) for u in lowered.segments if u.beside}
    took = alone = 0.0
    for members in chains(graph, placements):
        place, seen = placements[members[-1].index], measured.get(members[-1].index)
        if seen is None:
            continue
        shares = member_shares(members, place, chain_results(graph, members, place.dim))
        took += max(seen.host, seen.device)
        alone += max(
            sum(costs.part(half, x.index, place.dim, share[x.index]) for x in members)
            for half, share in zip((HOST, DEVICE), shares, strict=True)
        )
    return min(max(took / alone, 1.0), MOST) if alone > 0 else None


def rebalanced(
    graph: LayerGraph, placements: Sequence[Placement], lowered: Lowered, seen: Seen | None = None
) -> tuple[Placement, ...]:
    """The placements with each split's share (0..1) where the slower half ends soonest, by the speeds that both showed.
    `seen`: what was measured at other shares of the same splits; what these calls show is added.
    """
    measured = {u.layers[-1]: halves(u, lowered) for u in lowered.segments if u.beside}
    out, known, points = list(placements), Chains(graph), {} if seen is None else seen
    for members in chains(graph, placements):
        last = members[-1]
        place, took = placements[last.index], measured.get(last.index)
        size = last.extent(place.dim)
        granule = known.grain(members[0].index, last.index + 1, place.dim)
        if place.half != "split" or took is None or not size or granule is None:
            continue
        mine = points.setdefault(last.index, {})
        mine[cut(size, granule, place.p_cpu)] = took
        target = _best_cut(mine, size, granule)
        resident = 1 - place.p_cpu - place.streamed  # what is resident stays so
        streamed = max(0.0, 1 - target / size - resident) if place.streamed else 0.0
        for x in members:
            out[x.index] = dataclasses.replace(out[x.index], p_cpu=target / size, streamed=streamed)
    return tuple(out)


def _best_cut(points: Mapping[int, HalfSeconds], size: int, granule: int) -> int:
    """Where the slower half ends soonest: of the cuts that were measured, and of those in between and beyond them,
    whose seconds are on the line between their neighbours, or in proportion to the nearest one's work. A device takes
    its work in steps, so that a cut which was measured stands above one that is hardly any better by that.
    """
    cuts = {c for c in range(granule, size, granule) if c <= size - granule} | points.keys()

    known = sorted(points)
    host, device = [points[c].host for c in known], [points[c].device for c in known]

    def slower(at: int) -> float:
        near = min(max(at, known[0]), known[-1])  # itself between those that were measured
        own, other = float(np.interp(near, known, host)), float(np.interp(near, known, device))
        return max(own * at / max(near, 1), other * (size - at) / max(size - near, 1))

    return min(cuts, key=lambda at: slower(at) * (NEAR if at in points else 1.0))
