"""What layers cost on each device, and the figures around them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TypedDict, Unpack, cast

from .words import DEVICE, HOST, SUMS

Points = Mapping[str, tuple[tuple[float, float], ...]]  # dim -> (share, seconds) of parts of a layer, ascending
Parts = Mapping[int, Points]  # by layer index
FIXED = 3e-6  # seconds of a layer that do not shrink with its part


class More(TypedDict, total=False):
    """The fields of `Costs` that may be left out."""

    parts: Mapping[str, Parts]
    moves: Mapping[str, tuple[float, float]]
    stream_rate: float
    capacity: float


@dataclasses.dataclass(frozen=True)
class Costs:
    """Seconds of each layer on each device (None: it cannot run there) and the figures around them.

    `seconds`: device name -> by layer index; "host" is the host half, "device" the device half. `parts`: device name ->
    layer index -> dim -> (share, seconds) of parts of the layer, ascending. `sync`: seconds of one segment call;
    `copy_rate`: bytes/s between halves; `contention`: factor (>= 1) by which both halves slow down together;
    `shared_cores`: the halves run on the same cores, one after the other. `moves`: "read mapped", "read copy",
    "write mapped", "write copy" -> (seconds, bytes/s) of an array between the halves; `stream_rate`: bytes/s of weights
    on their way to the device; `capacity`: bytes that may lie there.
    """

    seconds: Mapping[str, tuple[float | None, ...]]
    sync: float
    copy_rate: float
    contention: float
    shared_cores: bool
    parts: Mapping[str, Parts] = dataclasses.field(default_factory=dict)
    moves: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    stream_rate: float = 1e10
    capacity: float = math.inf

    @classmethod
    def of_halves(
        cls,
        host: tuple[float | None, ...],
        device: tuple[float, ...],
        sync: float,
        copy_rate: float,
        contention: float,
        shared_cores: bool,
        **rest: Unpack[More],
    ) -> Costs:
        """The costs of one machine's host half and device half, in seconds by layer; `rest`: the other fields."""
        return cls({HOST: host, DEVICE: device}, sync, copy_rate, contention, shared_cores, **rest)

    @property
    def host(self) -> tuple[float | None, ...]:
        """Seconds of each layer on the host half; None where kernels cannot run it."""
        return self.seconds[HOST]

    @property
    def device(self) -> tuple[float, ...]:
        """Seconds of each layer on the device half, which runs every layer."""
        return cast(tuple[float, ...], self.seconds[DEVICE])

    def part(self, device: str, layer: int, dim: str, share: float) -> float:
        """Seconds of a share (0..1) of a layer along `dim` on a device: between measured points a straight line. A part
        of a product's sums costs what one of its channels costs. Raises `KeyError` for a device that the costs do not
        name.
        """
        points = self.parts.get(device, {}).get(layer, {}).get("channel" if dim == SUMS else dim, ())
        return _between(points, self.seconds[device][layer] or 0.0, share)

    def exchange(self, nbytes: float) -> float:
        """Seconds to bring so many bytes from one half to the other, a host call with it."""
        return self.sync + nbytes / self.copy_rate

    def scaled(self, **factors: float) -> Costs:
        """The same with all seconds of the named devices, and of parts on them, times a factor."""
        seconds = {name: tuple(t and t * factors.get(name, 1.0) for t in times) for name, times in self.seconds.items()}
        parts = {name: _times(known, factors.get(name, 1.0)) for name, known in self.parts.items()}
        return dataclasses.replace(self, seconds=seconds, parts=parts)

    def fields(self) -> dict[str, object]:
        """The two halves' figures as JSON has them: "host" and "device" seconds, "host_parts" and (device) "parts"."""
        rest = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("seconds", "parts")}
        parts = {"parts": self.parts.get(DEVICE, {}), "host_parts": self.parts.get(HOST, {})}
        return {HOST: self.host, DEVICE: self.device, **rest, **parts}

    def of_layers(self, start: int, stop: int) -> Costs:
        """The costs of the layers `start:stop` alone, in seconds, counted from 0."""
        seconds = {name: times[start:stop] for name, times in self.seconds.items()}
        parts = {
            name: {i - start: dims for i, dims in known.items() if start <= i < stop}
            for name, known in self.parts.items()
        }
        return dataclasses.replace(self, seconds=seconds, parts=parts)


def _times(parts: Parts, factor: float) -> Parts:
    return {
        i: {d: tuple((p, t * factor) for p, t in points) for d, points in dims.items()} for i, dims in parts.items()
    }


def _between(known: tuple[tuple[float, float], ...], whole: float, share: float) -> float:
    """Seconds of a share on the lines between neighbouring points. Planners ask millions of times."""
    points, first = (*known, (1.0, whole)), FIXED
    if known:  # below the smallest part that was measured the line through the first two goes on
        (p, t), (q, u) = points[:2]
        first = t - p * (u - t) / (q - p)
    p, t = 0.0, min(max(first, FIXED), points[0][1])
    for q, u in points:
        if share < q:
            return (u - t) / (q - p) * (share - p) + t if share > p else t
        p, t = q, u
    return t
