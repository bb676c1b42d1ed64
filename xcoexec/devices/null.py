"""The null device: numbers and nothing else. Planners and the simulator run on it without hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Unpack

from ..ir.costs import Costs, More
from ..ir.layers import Layer, LayerGraph
from ..ir.words import DEVICE
from .record import Device

Seconds = float | Callable[[Layer], float]  # of every layer, or by layer


def _nowhere(cores: tuple[int, ...]) -> NoReturn:
    raise RuntimeError("xcoexec: the null device exists as numbers only; nothing can be run on it.")


RECORD = Device(
    name="null",
    half=DEVICE,
    apart=True,
    shares_cores=False,
    handlers="",
    title=lambda: "null",
    connect=_nowhere,
    tiles=((16, 16),),
    processors=lambda threads: 1,
)


def costs(
    graph: LayerGraph,
    host: Seconds,
    device: Seconds,
    sync: float = 1e-6,
    copy_rate: float = 1e12,
    contention: float = 1.0,
    shared_cores: bool = RECORD.shares_cores,
    **rest: Unpack[More],
) -> Costs:
    """Costs of a graph on a host and the null device: the same seconds for every layer, or a function of the layer.

    `sync`: seconds of a host call; `copy_rate`: bytes/s; `rest`: other fields of `Costs`. What kernels cannot run has
    no seconds on the host half.
    """
    on_host = tuple(None if x.host_error else _seconds(host, x) for x in graph.layers)
    on_device = tuple(_seconds(device, x) for x in graph.layers)
    return Costs.of_halves(on_host, on_device, sync, copy_rate, contention, shared_cores, **rest)


def _seconds(given: Seconds, layer: Layer) -> float:
    return given(layer) if callable(given) else given


__all__ = ["RECORD", "costs"]
