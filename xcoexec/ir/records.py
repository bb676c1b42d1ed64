"""Frozen records that pass between the stages: Layer, LayerGraph, Placement, Plan, Costs."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import numbers
from collections.abc import Mapping, Sequence

import numpy as np

from ..codegen.program import Group, Op, Program, Value, consumers, external, format_params
from ..errors import PlanError

HALVES = ("device", "host", "split")
DIMS = ("channel", "rows")
Parts = Mapping[int, Mapping[str, tuple[tuple[float, float], ...]]]
FIXED = 3e-6  # seconds of a layer that do not shrink with its part
ENGINES = ("xco", "jit", "local")
WAYS = ("", "mapped", "copy")
PLAN_VERSION = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """One group of operations, placed as a whole. `flops` FLOP and `nbytes` bytes (read and written) of one call.

    `host_error` says why kernels cannot run it ("" if they can); `dims` along which it can be split,
    with the granule (smallest block) of each. `uncounted`: primitives in it whose FLOP nobody knows; `flops` then has one
    for each element of their results.
    """

    index: int
    name: str
    group: Group
    flops: int
    nbytes: int
    host_error: str = ""
    dims: Mapping[str, int] = dataclasses.field(default_factory=dict)
    uncounted: tuple[str, ...] = ()

    @property
    def ops(self) -> tuple[Op, ...]:
        return self.group.ops

    @property
    def out(self) -> Value:
        return self.group.out

    @property
    def outs(self) -> tuple[Value, ...]:
        return self.group.outs

    @property
    def kind(self) -> str:
        return self.group.leader.prim

    @functools.cached_property
    def ins(self) -> tuple[Value, ...]:
        return external(self.ops)

    @functools.cached_property
    def signature(self) -> str:
        """Content of the layer without names: layers of one signature cost the same."""
        ids: dict[Value, int] = {}
        text = []
        for op in self.ops:
            ins = [f"{ids.setdefault(v, len(ids))}:{v}" if isinstance(v, Value) else repr(v) for v in op.ins]
            outs = [f"{ids.setdefault(v, len(ids))}:{v}" for v in op.outs]
            text.append(
                f"{outs}={op.prim}{ins}[{format_params(op.params)},{op.params.get('dimension_numbers')},{op.params.get('precision')}]"
            )
        return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Region:
    """A fork-join part: `branches` of layer indices between the layer `fork` (-1: the input) and the layer `join`."""

    fork: int
    join: int
    branches: tuple[tuple[int, ...], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class LayerGraph:
    """Layers in an order that respects their edges. `edges[i]`: indices of the layers that layer i reads."""

    program: Program
    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, ...], ...]
    chains: tuple[tuple[int, ...], ...]
    regions: tuple[Region, ...]

    @functools.cached_property
    def home(self) -> Mapping[Value, int]:
        """Value -> the index of the layer that makes it."""
        return {v: x.index for x in self.layers for v in x.outs}

    @functools.cached_property
    def readers(self) -> Mapping[Value, list[Op]]:
        """Value -> the operations that read it."""
        return consumers(self.program.ops)

    @functools.cached_property
    def key(self) -> str:
        """Content hash: plans are made for, and checked against, this."""
        text = "|".join(f"{x.name}:{x.signature}:{e}" for x, e in zip(self.layers, self.edges, strict=True))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where one layer runs. `p_cpu` (0..1) is the host half's share along `dim`; `predicted` seconds.

    Neighbouring split layers with the same `chain` (not 0) exchange nothing between them: the last one's result is
    divided, and each half computes what its part needs of those before. `reads`, `writes`: how what the host half takes
    and gives crosses to a device of its own, "mapped" (kernels in host-mapped memory) or "copy" (copy engines); ""
    where nothing crosses. `streamed` (0..1, of the whole layer): what the device half computes from weights that come
    over at every call, in so many `pieces`; the rest of its weights is resident.
    """

    layer: str
    half: str
    p_cpu: float
    dim: str = "channel"
    predicted: float | None = None
    note: str = ""
    chain: int = 0
    reads: str = ""
    writes: str = ""
    streamed: float = 0.0
    pieces: int = 1


def chains(graph: LayerGraph, placements: Sequence[Placement]) -> list[list[Layer]]:
    """The layers in runs that are placed together: neighbours of one split chain, every other layer alone."""
    out: list[list[Layer]] = []
    before = 0
    for layer, place in zip(graph.layers, placements, strict=True):
        if place.chain and place.chain == before:
            out[-1].append(layer)
        else:
            out.append([layer])
        before = place.chain
    return out


@dataclasses.dataclass(frozen=True)
class Costs:
    """Seconds of each layer on each half (None: cannot run there) and the costs around them.

    `host`/`device`: by layer index; `parts`, `host_parts`: layer -> dim -> (share, seconds) of parts of it, ascending.
    `sync`: one segment call; `copy_rate`: bytes/s between halves; `contention`: factor (>= 1) by which both
    halves slow down together; `shared_cores`: the halves run on the same cores, one after the other. `moves`: "read
    mapped", "read copy", "write mapped", "write copy" -> (seconds, bytes/s) of an array between the halves;
    `stream_rate`: bytes/s of weights on their way to the device; `capacity`: bytes that may lie there.
    """

    host: tuple[float | None, ...]
    device: tuple[float, ...]
    sync: float
    copy_rate: float
    contention: float
    shared_cores: bool
    parts: Parts = dataclasses.field(default_factory=dict)
    host_parts: Parts = dataclasses.field(default_factory=dict)
    moves: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    stream_rate: float = 1e10
    capacity: float = math.inf

    def device_part(self, layer: int, dim: str, share: float) -> float:
        """Seconds of a share of a layer along `dim` on the device half: between measured points a straight line."""
        return _between(self.parts, self.device[layer], layer, dim, share)

    def host_part(self, layer: int, dim: str, share: float) -> float:
        """The same on the host half."""
        return _between(self.host_parts, self.host[layer] or 0.0, layer, dim, share)

    def exchange(self, nbytes: float) -> float:
        """Seconds to bring so many bytes from one half to the other."""
        return self.sync + nbytes / self.copy_rate

    def scaled(self, host: float = 1.0, device: float = 1.0) -> Costs:
        """The same with all seconds of a half, and of parts on it, times a factor."""
        return dataclasses.replace(
            self,
            host=tuple(t and t * host for t in self.host),
            device=tuple(t * device for t in self.device),
            parts=_times(self.parts, device),
            host_parts=_times(self.host_parts, host),
        )


def _times(parts: Parts, factor: float) -> Parts:
    return {
        i: {d: tuple((p, t * factor) for p, t in points) for d, points in dims.items()} for i, dims in parts.items()
    }


def _between(parts: Parts, whole: float, layer: int, dim: str, share: float) -> float:
    points = [*parts.get(layer, {}).get(dim, ()), (1.0, whole)]
    if len(points) > 1:  # below the smallest part that was measured the line through the first two goes on
        (p, t), (q, u) = points[:2]
        first = t - p * (u - t) / (q - p)
    else:
        first = FIXED
    shares, seconds = zip((0.0, min(max(first, FIXED), points[0][1])), *points, strict=True)
    return float(np.interp(share, shares, seconds))


@dataclasses.dataclass(frozen=True)
class Plan:
    """A placement for every layer, in graph order; frozen, printable, JSON.

    `predicted` seconds of one call; `measured` name -> seconds for what was timed when the plan was chosen
    ("jit" is plain `jax.jit`); `chosen` says why this plan. `engine`: "xco", "jit" (plain jax.jit is
    kept) or "local" (on a machine with a device: the whole call on the CPU, for inputs in host memory).
    """

    strategy: str
    placements: tuple[Placement, ...]
    graph: str = ""
    predicted: float | None = None
    measured: Mapping[str, float] = dataclasses.field(default_factory=dict)
    chosen: str = ""
    engine: str = "xco"

    @classmethod
    def uniform(cls, p_cpu: float, dim: str = "channel") -> UniformPlan:
        """A forced plan: every layer that can be split along `dim` gives the host half `p_cpu` (0..1) of it."""
        if isinstance(p_cpu, bool) or not isinstance(p_cpu, numbers.Real) or not 0.0 <= p_cpu <= 1.0:
            raise PlanError(f"Plan.uniform: got p_cpu={p_cpu!r}; valid is 0 to 1.")
        if dim not in DIMS:
            raise PlanError(f"Plan.uniform: got dim={dim!r}; valid is {' or '.join(map(repr, DIMS))}.")
        return UniformPlan(float(p_cpu), dim)

    def __str__(self) -> str:
        """The plan as a table, one line a layer."""
        from .text import plan_text

        return plan_text(self)

    def to_json(self) -> str:
        """The plan as JSON text, for `from_json`. Raises `PlanError` where a field is not of its kind."""
        from .plan_json import write

        return write(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """The plan of a JSON text (bytes: in UTF-8). Raises `PlanError` that names the first entry that is wrong."""
        from .plan_json import read

        return read(text)


@dataclasses.dataclass(frozen=True)
class UniformPlan:
    """The request of `Plan.uniform`, made a `Plan` when the graph is known."""

    p_cpu: float
    dim: str
