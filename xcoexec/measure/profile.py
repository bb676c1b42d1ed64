"""Measured seconds of every layer on each half, and of the fixed costs around them; kept on disk."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NotRequired, TypedDict

import jax
import numpy as np

from ..codegen.runtime.relay import Relay
from ..compat import as_array
from ..cost.bounds import IN_TURN, pays
from ..cost.features import flops
from ..devices.registry import connected, device_of
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.words import DEVICE, HOST
from ..lowering.lower import Lowered
from ..lowering.work_units import HostUnit
from . import contention, device_layers, transfers
from .device_layers import ArrayOf
from .kept import load, store
from .part_seconds import assumed_parts, assumed_wholes, example, host_parts, parts_seconds
from .records import CONTENTION, OVERHEADS, STREAMING, WHOLES
from .timing import Progress, empty_call, median_seconds, silent
from .transfers import Overheads

TYPICAL = 1.15  # contention of halves with cores of their own, before it is measured


def host_placements(graph: LayerGraph) -> tuple[Placement, ...]:
    """Everything that kernels can run on the host half."""
    return tuple(
        Placement(x.name, DEVICE if x.host_error else HOST, 0.0 if x.host_error else 1.0, note=x.host_error)
        for x in graph.layers
    )


def host_seconds(
    graph: LayerGraph, lowered: Lowered, call: Callable[[], object], budget: float = 0.03
) -> tuple[float | None, ...]:
    """Seconds of each layer on the host half (None: it does not run there), from the stamps of calls of an all-host
    plan; `budget`: seconds of these calls.
    """
    median_seconds(call, budget)
    seconds: list[float | None] = [None] * len(graph.layers)
    for unit in lowered.segments:
        for layer, s in layer_seconds(unit).items():
            seconds[layer] = s
    return tuple(seconds)


def layer_seconds(unit: HostUnit) -> dict[int, float]:
    """Layer index -> median seconds in a segment's recent calls (0 for a layer without steps).

    The seconds of a step that several layers share are divided by their FLOP.
    """
    stamps = unit.segment.stamps()
    out = dict.fromkeys(unit.layers, 0.0)
    if len(stamps):
        steps = np.median(np.diff(stamps, axis=1), axis=0) * 1e-9
        for step, s in zip(unit.segment.steps, steps, strict=True):
            groups = range(step.group, step.group + step.span)
            work = [sum(map(flops, unit.segment.program.groups[g].ops)) for g in groups]
            for g, share in zip(groups, work, strict=True):
                out[unit.layers[g]] += float(max(s, 0.0)) * (share / sum(work) if sum(work) else 1 / len(work))
    return out


def device_seconds(
    graph: LayerGraph, constant: ArrayOf, on_host: Sequence[float | None], progress: Progress = silent
) -> tuple[float, ...]:
    """Seconds of each layer on XLA:CPU, inside programs of many layers. `constant` gives the array of a constant. A
    layer that cannot be measured on its own counts as on the host half.
    """
    consts = set(graph.program.consts)
    known: dict[str, float] = load(WHOLES, "device") or {}
    pieces = {x.signature: device_layers.whole(x) for x in graph.layers if x.signature not in known}
    todo = {signature: piece for signature, piece in pieces.items() if device_layers.measurable(piece)}
    if todo:
        progress("profile", 0, 1)
        value = lambda v: as_array(constant(v))
        known.update(
            zip(
                todo,
                device_layers.seconds([*todo.values()], consts, value, example, None),
                strict=True,
            )
        )
        progress("profile", 1, 1)
        store(WHOLES, "device", known)
    other = lambda x: on_host[x.index] or device_layers.UNKNOWN_SECONDS
    return tuple(known[x.signature] if x.signature in known else other(x) for x in graph.layers)


@functools.lru_cache(maxsize=8)
def overheads(relay: Relay | None) -> Overheads:
    """The fixed costs around layers (seconds, bytes/s), measured once a machine (kept on disk) and read once a process:
    every executable asks for them.
    """
    device = device_of(relay)
    name = f"overhead{device.suffix}"
    known = load(OVERHEADS, name)
    if known is None:
        known = dataclasses.asdict(
            transfers.exchange_overheads(connected(relay)) if device.apart else Overheads(_segment_call(), _copy_rate())
        )
        store(OVERHEADS, name, known)
    return Overheads(**{**known, "moves": {k: tuple(v) for k, v in known["moves"].items()}})


def _segment_call() -> float:
    """What a native call costs beside its work: a program with a tiny segment against one without."""
    from ..compat import ffi_call, plain_jit
    from ..lowering.emit import TARGET, register

    register(device_of(None))
    segment = transfers.tiny((16,))
    blob = jax.numpy.zeros(16)
    result = [jax.ShapeDtypeStruct((16,), np.float32)]
    f = plain_jit(lambda x: ffi_call(TARGET, result, segment, [x, blob])[0])
    x = jax.numpy.zeros(16)
    return max(median_seconds(lambda: f(x).block_until_ready(), 0.03) - empty_call(), 1e-6)


def _copy_rate() -> float:
    a = np.ones(1 << 22, np.float32)
    b = np.empty_like(a)
    return a.nbytes / median_seconds(lambda: np.copyto(b, a), 0.05)


def device_costs(
    graph: LayerGraph, constant: ArrayOf, progress: Progress = silent, relay: Relay | None = None
) -> Costs:
    """The costs (seconds of each layer, and the figures around them) of a graph of which nothing can run on the host
    half.
    """
    return _costs(graph, (None,) * len(graph.layers), constant, progress, relay, 1, ())


def measure(
    graph: LayerGraph,
    lowered: Lowered,
    call: Callable[[], object],
    constant: ArrayOf,
    progress: Progress = silent,
    relay: Relay | None = None,
    threads: int = 1,
    cpus: tuple[int, ...] = (),
    sampled: bool = False,
) -> Costs:
    """All costs that planning needs (seconds, bytes/s); `call` runs `lowered`, a plan with everything possible on the
    host half; `sampled`: see `parts_seconds`.
    """
    return _costs(graph, host_seconds(graph, lowered, call), constant, progress, relay, threads, cpus, sampled)


def assume(
    graph: LayerGraph,
    lowered: Lowered,
    call: Callable[[], object],
    together: float,
    relay: Relay,
    threads: int,
    cpus: tuple[int, ...],
) -> Costs:
    """The costs of a graph on a device by which all layers take so many seconds `together`, without a measurement of
    any of them there; `call` and `lowered` as in `measure`.
    """
    on_host, on_device = host_seconds(graph, lowered, call, 0.0), assumed_wholes(graph, together)
    parts = assumed_parts(graph, on_host, on_device)
    return Costs.of_halves(on_host, on_device, parts=parts, **around(relay, threads, cpus))


def _costs(
    graph: LayerGraph,
    on_host: tuple[float | None, ...],
    constant: ArrayOf,
    progress: Progress,
    relay: Relay | None,
    threads: int,
    cpus: tuple[int, ...],
    sampled: bool = False,
) -> Costs:
    if not device_of(relay).apart:
        on_device = device_seconds(graph, constant, on_host, progress)
        return Costs.of_halves(on_host, on_device, **around(relay, threads, cpus))
    fixed = around(relay, threads, cpus)
    whole = lambda on_device: Costs.of_halves(on_host, tuple(on_device), **fixed)
    worth = lambda on_device: sampled or pays(whole(on_device))
    on_device, device_parts = parts_seconds(graph, constant, connected(relay), on_host, progress, sampled, worth)
    if not worth(on_device):
        return whole(on_device)
    parts = {HOST: host_parts(graph, on_host, on_device, threads, cpus), DEVICE: device_parts}
    return dataclasses.replace(whole(on_device), parts=parts)


def learn_contention(relay: Relay | None, threads: int, cpus: tuple[int, ...]) -> None:
    """Measures by what factor seconds grow while both halves work, once a machine and number of threads (some
    seconds); nothing where they share their cores.
    """
    name = _contention_name(relay, threads, cpus)
    if device_of(relay).apart and load(CONTENTION, name) is None:
        store(CONTENTION, name, contention.slowdown(connected(relay), threads, cpus))


def _contention_name(relay: Relay | None, threads: int, cpus: tuple[int, ...]) -> str:
    return f"contention{device_of(relay).suffix}-{threads}" + "".join(f"-{c}" for c in cpus)


def contended(relay: Relay, threads: int, cpus: tuple[int, ...]) -> float:
    """The factor (1 to 2) by which seconds grow while both halves work: what was measured, or else `TYPICAL`."""
    known = load(CONTENTION, _contention_name(relay, threads, cpus))
    return TYPICAL if known is None else float(known)


def streaming_rate(relay: Relay, threads: int) -> float:
    """Bytes/s of weights that stream to the device while so many threads read theirs, measured once (a second)."""
    name = f"streaming{device_of(relay).suffix}-{threads}"
    known = load(STREAMING, name)
    if known is None:
        known = [transfers.rate_beside_reads(relay, threads)]
        store(STREAMING, name, known)
    return float(known[0])


class Around(TypedDict):
    """The fields of `Costs` that do not depend on layers: seconds, bytes/s and a factor."""

    sync: float
    copy_rate: float
    shared_cores: bool
    contention: float
    moves: NotRequired[dict[str, tuple[float, float]]]
    stream_rate: NotRequired[float]


def around(relay: Relay | None, threads: int, cpus: tuple[int, ...]) -> Around:
    """The fields of `Costs` that do not depend on layers. On a machine whose device half is the CPU the halves share
    their cores.
    """
    fixed = overheads(relay)
    device = device_of(relay)
    found: Around = {
        "sync": fixed.sync,
        "copy_rate": fixed.rate,
        "shared_cores": device.shares_cores,
        "contention": IN_TURN if device.shares_cores else contended(connected(relay), threads, cpus),
    }
    if not device.shares_cores:
        found["moves"], found["stream_rate"] = dict(fixed.moves), fixed.stream_rate
    return found
