"""The graph that is planned: layers, their edges, chains and fork-join regions."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping

from ..codegen.program import Group, Op, Program, Value, consumers, external, format_params
from .geometry import Sums, axis_of, sums_of
from .words import SUMS


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """One group of operations, placed as a whole. `flops` FLOP and `nbytes` bytes (read and written) of one call.

    `host_error` says why kernels cannot run it ("" if they can); `dims` along which it can be split,
    with the granule (smallest block) of each. `uncounted`: primitives in it whose FLOP nobody knows; `flops` then has
    one for each element of their results. `half`: the one that has to compute it ("": either).
    """

    index: int
    name: str
    group: Group
    flops: int
    nbytes: int
    host_error: str = ""
    dims: Mapping[str, int] = dataclasses.field(default_factory=dict)
    uncounted: tuple[str, ...] = ()
    half: str = ""

    @property
    def ops(self) -> tuple[Op, ...]:
        """Its operations in program order."""
        return self.group.ops

    @property
    def out(self) -> Value:
        """Its result; of several the first one."""
        return self.group.out

    @property
    def outs(self) -> tuple[Value, ...]:
        """The results of its last operation."""
        return self.group.outs

    @property
    def kind(self) -> str:
        """The primitive that it is named after."""
        return self.group.leader.prim

    @functools.cached_property
    def ins(self) -> tuple[Value, ...]:
        """What it reads and does not make, weights too, in order of first use."""
        return external(self.ops)

    @functools.cached_property
    def sums(self) -> Sums | None:
        """What it sums over, along which it can be split with the layers before it; None where it cannot."""
        return sums_of(self.group)

    def extent(self, dim: str) -> int:
        """Indices that it is divided along a dimension by; 0 where it has no such dimension."""
        if dim == SUMS:
            return self.sums.size if self.sums is not None else 0
        axis = axis_of(self.group, dim)
        return 0 if axis is None else self.out.shape[axis]

    def requests(self, dim: str, start: int, stop: int) -> dict[Value, tuple[int, int, int]]:
        """Value -> (axis, `start`, `stop`): its result, or along "sums" what it multiplies, for these indices.
        Raises `ValueError` for a dimension that it has not.
        """
        if not self.extent(dim):
            raise ValueError(f"requests: got {dim!r}, which {self.name!r} has not; valid is a dimension that it has.")
        if dim == SUMS and self.sums is not None:
            return self.sums.requests(start, stop)
        return {self.out: (axis_of(self.group, dim) or 0, start, stop)}

    @functools.cached_property
    def signature(self) -> str:
        """Hash of the layer's operations, shapes and types without its name: layers of one signature cost the same."""
        ids: dict[Value, int] = {}
        text = []
        for op in self.ops:
            ins = [f"{ids.setdefault(v, len(ids))}:{v}" if isinstance(v, Value) else repr(v) for v in op.ins]
            outs = [f"{ids.setdefault(v, len(ids))}:{v}" for v in op.outs]
            rest = f"{op.params.get('dimension_numbers')},{op.params.get('precision')}"
            text.append(f"{outs}={op.prim}{ins}[{format_params(op.params)},{rest}]")
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
