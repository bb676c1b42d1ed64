"""What layers cost on each device, and the figures around them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

Parts = Mapping[int, Mapping[str, tuple[tuple[float, float], ...]]]  # layer -> dim -> (share, seconds)
FIXED = 3e-6  # seconds of a layer that do not shrink with its part


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
