"""Seconds of layers that were never measured, from a few hundred made layers that were (see
`xcoexec.measure.training`).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping

from ..codegen.program import Group, Unsupported, Value
from ..ir.costs import Costs, Points
from ..ir.layers import Layer, LayerGraph
from ..ir.words import DEVICE, HALVES, HOST
from .regress import Regression, fit
from .terms import Blocks, Kernels, Work, device_work

REST = "rest"  # the model of classes that were not measured
FEW = 8  # measurements that a class needs for a model of its own

Known = tuple[tuple[Group, ...], frozenset[Value]]  # groups of a part of a layer, and which values are constants
Parts = Callable[[Layer], Mapping[tuple[str, float], Known]]  # (dim, share) -> a part of a layer
Key = tuple[str, str]  # half, class


@dataclasses.dataclass(frozen=True)
class _Predicted:
    """What layers of one signature cost."""

    seconds: Mapping[str, float | None]  # by device
    parts: Mapping[str, Points]


def _points(seconds: Mapping[tuple[str, float], float | None]) -> Points:
    """Dim -> (share, seconds), ascending, from (dim, share) -> seconds."""
    dims = dict.fromkeys(d for d, _ in seconds)
    return {
        d: tuple(sorted((share, t) for (other, share), t in seconds.items() if other == d and t is not None))
        for d in dims
    }


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Models by half and class; `blocks` of the device, threads of the host half and its `kernels`, and what does not
    depend on layers: `around`.

    `around`: fields of `Costs` (sync, copy_rate, contention, shared_cores, moves, stream_rate).
    """

    models: Mapping[Key, Regression]
    blocks: Blocks
    threads: int
    around: Mapping[str, object]
    kernels: Kernels

    def seconds(self, half: str, work: Work) -> float:
        """Seconds of kernels on a half ("host", "device") by the model of their class, or by the one for all classes
        that have none.
        """
        model = self.models.get((half, work.kind))
        if model is not None:
            return model.seconds(work)
        return self.models[half, REST].seconds(_general(work))

    def host(self, group: Group, consts: Collection[Value], footprint: float) -> float:
        """Seconds on the host half with the algorithm that will be chosen, in a program of `footprint` bytes. Raises
        `Unsupported` where kernels cannot express the group.
        """
        found = {
            name: sum(self.seconds(HOST, w) for w in works)
            for name, works in self.kernels.work(group, consts, self.threads, footprint).items()
        }
        first, best = next(iter(found)), min(found, key=lambda n: found[n])
        return found[best] if found[best] < self.kernels.gain * found[first] else found[first]

    def device(self, group: Group) -> float:
        """Seconds of a group on the device half."""
        return self.seconds(DEVICE, device_work(group, self.blocks))

    def costs(self, graph: LayerGraph, parts: Parts | None = None) -> Costs:
        """The costs of a graph (seconds of each layer on both halves) without a measurement; `parts`: those of layers
        that are predicted too.
        """
        consts, footprint = frozenset(graph.program.consts), float(sum(x.nbytes for x in graph.layers))
        alike: dict[str, _Predicted] = {}
        for x in graph.layers:
            if x.signature not in alike:
                found = parts(x) if parts is not None else {}
                on_host = self._groups((x.group,), consts, footprint) if not x.host_error else None
                mine = {key: self._groups(groups, known, footprint) for key, (groups, known) in found.items()}
                other = {key: sum(map(self.device, groups)) for key, (groups, _) in found.items()}
                alike[x.signature] = _Predicted(
                    {HOST: on_host, DEVICE: self.device(x.group)}, {HOST: _points(mine), DEVICE: _points(other)}
                )
        by_layer = {x.index: alike[x.signature] for x in graph.layers}
        return Costs(
            seconds={name: tuple(p.seconds[name] for p in by_layer.values()) for name in HALVES},
            parts={name: {i: p.parts[name] for i, p in by_layer.items()} for name in HALVES},
            **self.around,  # type: ignore[arg-type]
        )

    def _groups(self, groups: Iterable[Group], consts: Collection[Value], footprint: float) -> float | None:
        """Seconds of groups on the host half; None where kernels cannot run one."""
        try:
            return sum(self.host(g, consts, footprint) for g in groups)
        except Unsupported:
            return None

    def to_json(self) -> str:
        """The models as text, for `from_json`; the kernels are no part of it."""
        models = [[*key, m.record()] for key, m in self.models.items()]
        return json.dumps(
            {
                "models": models,
                "blocks": dataclasses.astuple(self.blocks),
                "threads": self.threads,
                "around": self.around,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str, kernels: Kernels) -> Predictor:
        data = json.loads(text)
        tiles, processors = data["blocks"]
        models = {(half, kind): Regression.of(record) for half, kind, record in data["models"]}
        moves = {k: tuple(v) for k, v in data["around"].get("moves", {}).items()}
        blocks = Blocks(tuple((rows, columns) for rows, columns in tiles), processors)
        return cls(models, blocks, data["threads"], {**data["around"], "moves": moves}, kernels)


def _general(work: Work) -> Work:
    """What terms of any class are reduced to: a fixed cost, kernel calls or FLOP, and the sum of bytes and the like
    behind them.
    """
    rest = work.terms[1:]
    return Work(REST, (1.0, work.terms[1], sum(rest[2:])), (math.log(max(sum(rest), 1.0)),))


def trained(
    samples: Iterable[tuple[str, Work, float]],
    blocks: Blocks,
    threads: int,
    around: Mapping[str, object],
    kernels: Kernels,
) -> Predictor:
    """A predictor from (half, work, seconds). A class has a model of its own from `FEW` measurements on."""
    by_key: dict[Key, list[tuple[Work, float]]] = {}
    for half, work, seconds in samples:
        by_key.setdefault((half, work.kind), []).append((work, seconds))
        by_key.setdefault((half, REST), []).append((_general(work), seconds))
    models = {
        key: fit(*zip(*found, strict=True)) for key, found in by_key.items() if len(found) >= FEW or key[1] == REST
    }
    return Predictor(models, blocks, threads, around, kernels)


@functools.lru_cache(maxsize=4)
def parsed(text: str, kernels: Kernels) -> Predictor:
    """`Predictor.from_json`, once for a text."""
    return Predictor.from_json(text, kernels)


__all__ = ["Predictor", "parsed", "trained"]
