"""The exact cut of a network into stages on several devices: of all divisions of its layers into neighbouring stages,
each on a device of its own, the one whose slowest stage takes the least (NeuroPipe's cut for any number of devices).

By dynamic programming over how many devices of each kind are used: devices of a kind are alike, so that eight GPUs and
a host are 18 states, not 512.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

WORTH = 1.02  # times as many results a second, for which further devices are worth having


@dataclasses.dataclass(frozen=True)
class Kind:
    """Devices of one kind: how many there are, and the seconds of each layer on one (None: it cannot compute it).

    `weights`: bytes of each layer's weights (none: they do not matter), of which one device holds `memory`; each byte
    beyond that takes `byte_seconds` of every result.
    """

    count: int
    seconds: tuple[float | None, ...]
    weights: tuple[int, ...] = ()
    memory: float = math.inf
    byte_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class DeviceCut:
    """Stages in order: (kind, first layer, last layer + 1), with the seconds of each."""

    stages: tuple[tuple[str, int, int], ...]
    seconds: tuple[float, ...]

    @property
    def period(self) -> float:
        """Seconds between results: those of the slowest stage."""
        return max(self.seconds)

    def __str__(self) -> str:
        parts = (
            f"{kind} {start}..{stop - 1} ({1e3 * s:.2f} ms)"
            for (kind, start, stop), s in zip(self.stages, self.seconds, strict=True)
        )
        return " | ".join(parts) + f": an item every {1e3 * self.period:.2f} ms"


def across(kinds: Mapping[str, Kind], crossing: Sequence[float]) -> DeviceCut:
    """The cut with the least seconds between results, and the fewest devices where several have as few.

    `crossing`: seconds for which a stage that begins with layer i receives what layers before it have made (of layer 0:
    the network's inputs). Raises `ValueError` for kinds with other layers, without any, and where a layer can be
    computed by no device.
    """
    layers = len(crossing)
    fits = lambda k: len(k.seconds) == layers and len(k.weights) in (0, layers) and k.count >= 0
    if not layers or not kinds or not all(map(fits, kinds.values())):
        raise ValueError(f"across: got {layers} layers and kinds with others; valid are seconds of the same layers.")
    names, spans = list(kinds), {name: _spans(k, crossing) for name, k in kinds.items()}
    best: dict[tuple[int, ...], np.ndarray] = {}
    came: dict[tuple[int, ...], list[tuple[int, int] | None]] = {}
    for used in itertools.product(*(range(kinds[n].count + 1) for n in names)):  # those with fewer come first
        slowest, way = np.full(layers + 1, np.inf), list[tuple[int, int] | None]([None] * (layers + 1))
        slowest[0] = 0.0 if not any(used) else np.inf
        for k, name in enumerate(names):
            if not used[k]:
                continue
            before = best[(*used[:k], used[k] - 1, *used[k + 1 :])]
            ends = np.maximum(before[:, None], spans[name])
            starts = ends.argmin(0)
            for stop in np.flatnonzero(ends.min(0) < slowest):
                slowest[stop], way[stop] = ends[starts[stop], stop], (k, int(starts[stop]))
        best[used], came[used] = slowest, way
    used = min(best, key=lambda u: (best[u][layers], sum(u)))
    if not np.isfinite(best[used][layers]):
        raise ValueError("across: got a layer that no device can compute; valid is one that at least one can.")
    return _stages(used, came, names, spans, layers)


def scaling(kinds: Mapping[str, Kind], crossing: Sequence[float], growing: str, most: int) -> list[DeviceCut]:
    """The cuts with 1, 2, ... devices of the kind `growing`, `most` at most, without those that are not clearly better
    than one with fewer: behind the last one further devices do not pay. Raises as `across`.
    """
    found: list[DeviceCut] = []
    for count in range(1, most + 1):
        cut = across({**kinds, growing: dataclasses.replace(kinds[growing], count=count)}, crossing)
        if not found or found[-1].period > WORTH * cut.period:
            found.append(cut)
    return found


def _spans(kind: Kind, crossing: Sequence[float]) -> np.ndarray:
    """[first, last + 1] seconds of a stage; infinite for one that is empty or that cannot be computed."""
    each = np.array([np.inf if s is None else s for s in kind.seconds])
    weights = np.array(kind.weights or [0] * len(each), float)
    spans = np.full((len(each) + 1, len(each) + 1), np.inf)
    for start in range(len(each)):
        beyond = np.maximum(np.cumsum(weights[start:]) - kind.memory, 0.0) * kind.byte_seconds
        spans[start, start + 1 :] = np.cumsum(each[start:]) + crossing[start] + beyond
    return spans


def _stages(
    used: tuple[int, ...],
    came: Mapping[tuple[int, ...], Sequence[tuple[int, int] | None]],
    names: Sequence[str],
    spans: Mapping[str, np.ndarray],
    layers: int,
) -> DeviceCut:
    """The stages that lead to the last layer, from what each state came from."""
    stages, stop = list[tuple[str, int, int]](), layers
    while stop:
        step = came[used][stop]
        assert step is not None
        k, start = step
        stages.insert(0, (names[k], start, stop))
        used, stop = (*used[:k], used[k] - 1, *used[k + 1 :]), start
    return DeviceCut(tuple(stages), tuple(float(spans[name][a, b]) for name, a, b in stages))


__all__ = ["DeviceCut", "Kind", "across", "scaling"]
