"""Shares corrected by what calls measured: how long each half of a split worked, and which one waited for the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

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

WAITED = 3e-6  # seconds: a device that waits longer than this for the host's flag was the faster half


@dataclasses.dataclass(frozen=True)
class HalfSeconds:
    """Median seconds of one host call between its start and its join: each half's work, and all of it on the device's
    clock.
    """

    host: float
    device: float
    span: float


def halves(unit: HostUnit, lowered: Lowered) -> HalfSeconds | None:
    """What recent calls of a host unit took, in seconds; None before the first."""
    site = lowered.sites[unit]
    stamps, own = site.stamps(), unit.segment.stamps()
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


def rebalanced(graph: LayerGraph, placements: Sequence[Placement], lowered: Lowered) -> tuple[Placement, ...]:
    """The placements with each split's share (0..1) moved to where both halves, at the speeds they showed, end
    together.
    """
    measured = {u.layers[-1]: halves(u, lowered) for u in lowered.segments if u.beside}
    out, known = list(placements), Chains(graph)
    for members in chains(graph, placements):
        last = members[-1]
        place, seen = placements[last.index], measured.get(last.index)
        size = last.extent(place.dim)
        granule = known.grain(members[0].index, last.index + 1, place.dim)
        if place.half != "split" or seen is None or not size or granule is None:
            continue
        at = cut(size, granule, place.p_cpu)
        host, device = at / max(seen.host, 1e-7), (size - at) / max(seen.device, 1e-7)
        target = cut(size, granule, host / (host + device))
        target = min(max(target, granule), size - granule)
        resident = 1 - place.p_cpu - place.streamed  # what is resident stays so
        streamed = max(0.0, 1 - target / size - resident) if place.streamed else 0.0
        for x in members:
            out[x.index] = dataclasses.replace(out[x.index], p_cpu=target / size, streamed=streamed)
    return tuple(out)
