"""By how much both halves slow down while they work together, measured on split layers.

CoDL's Equation 2 adds for concurrency what sharing data takes; the halves' computation takes there as long as alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import numpy as np

from ..codegen.runtime import host
from ..codegen.runtime.relay import Relay
from ..codegen.segment.assembly import Segment
from ..compat import as_array
from ..frontend.graph import graph_of
from ..ir.placement import Placement
from ..ir.plan import Plan
from ..ir.words import SPLIT
from ..lowering.executable import executable
from ..lowering.lower import lower
from ..partition.split import split
from . import device_layers
from .sample_layers import NHWC, Made
from .timing import RECENT, WARM_SECONDS, median_seconds, warm_up

MOST = 2.0  # more is a disturbed measurement
SHARE, ROUNDS = 0.5, 3
#: a convolution that keeps the cores busy, and products whose weights keep the memory busy
LAYERS = (
    Made(
        "convolution",
        lambda w, x: jax.lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=NHWC),
        ((3, 3, 128, 128),),
        (1, 28, 28, 128),
    ),
    Made("product", lambda w, x: x @ w[0], ((2048, 2048),), (16, 2048)),
)


@dataclasses.dataclass(frozen=True)
class Together:
    """Seconds of the two parts of a layer, each alone and beside the other."""

    host: tuple[float, float]
    device: tuple[float, float]

    @property
    def factor(self) -> float:
        """By how much the half that suffers more takes longer: its seconds beside the other half over its seconds
        alone.
        """
        return max(both / alone for alone, both in (self.host, self.device))


def slowdown(relay: Relay, threads: int, cpus: tuple[int, ...] = ()) -> float:
    """The factor (1 to 2) by which seconds grow on this machine while both halves work: the least of the layers'. A
    plan that is made for too little is measured, and made again for what its calls show; one that is not made is not.
    """
    return min(max(min(together(x, relay, threads, cpus).factor for x in LAYERS), 1.0), MOST)


def together(made: Made, relay: Relay, threads: int, cpus: tuple[int, ...] = ()) -> Together:
    """Seconds of both parts of one layer, which is divided in the middle of its channels."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(s, np.float32) * 0.05 for s in made.weights]
    x = as_array(rng.standard_normal(made.shape, np.float32))
    folded, graph = graph_of(lambda w, x: made.apply(w, x), (weights, x), 1)
    place = (Placement(graph.layers[0].name, SPLIT, SHARE),)
    lowered = lower(graph, folded, place, lambda program: host.build(program, threads, cpus=cpus, cut=split), relay)
    exe = executable(Plan("split", place, graph.key), lowered, weights, ())
    assert exe.lowered is not None
    run, sites, (unit,) = exe.call, exe.lowered.sites, exe.lowered.segments
    consts, value = set(graph.program.consts), dict(zip(graph.program.consts, weights, strict=True))
    piece = device_layers.parts(graph.layers[0])["channel", SHARE]
    alone = device_layers.host_call_of(piece, consts, threads, cpus)
    (device,) = device_layers.seconds(
        [piece], consts, value.__getitem__, lambda v: jax.numpy.full(v.shape, 0.5, v.dtype), relay
    )
    rounds = []
    for _ in range(ROUNDS):
        by_itself = _seconds(alone, alone.segment)
        both = _seconds(lambda: jax.block_until_ready(run([x])), unit.segment)
        _, ended, _, asked, *_ = np.median(sites[unit].stamps()[-RECENT:].T, axis=1)
        rounds.append((by_itself, both, float(asked - ended) * 1e-9))
    by_itself, both, beside = (min(column) for column in zip(*rounds, strict=True))
    return Together((by_itself, both), (device, beside))


def _seconds(call: Callable[[], object], segment: Segment) -> float:
    """What a segment takes in calls, by its own stamps."""
    warm_up(call)
    median_seconds(call, WARM_SECONDS)
    own = segment.stamps()[-RECENT:]
    return float(np.median(own[:, -1] - own[:, 0])) * 1e-9


__all__ = ["LAYERS", "Together", "slowdown", "together"]
