"""Measured seconds of every layer on each half, and of the fixed costs around them; kept on disk."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NotRequired, TypedDict, TypeVar

import jax
import numpy as np

from ..codegen.native.build import source_hash
from ..codegen.program import Unsupported, Value
from ..codegen.runtime.relay import Relay
from ..codegen.store.disk import Record
from ..compat import as_array
from ..cost.features import flops
from ..devices.host import RECORD as HOST_CORES
from ..devices.registry import connected, device_half, device_of
from ..ir.costs import Costs, Points
from ..ir.layers import Layer, LayerGraph
from ..ir.placement import Placement
from ..ir.words import DEVICE, HOST
from ..lowering.lower import Lowered
from ..lowering.work_units import HostUnit
from . import contention, device_layers, transfers
from .device_layers import ArrayOf, Measured, TimedOps
from .records import CONTENTION, OVERHEADS, PARTS, WHOLES
from .timing import WARM_SECONDS, Progress, empty_call, median_seconds, silent, warm_up
from .transfers import Overheads

TYPICAL = 1.15  # contention of halves with cores of their own, before it is measured
IN_TURN = 2.0  # contention of halves on the same cores
T = TypeVar("T")
Timed = Callable[[Sequence[TimedOps]], list[float]]  # median seconds of pieces on the device

#: type of a key of random numbers -> the generator's name
KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


@functools.lru_cache
def machine() -> str:
    """Fingerprint of CPU, cores, instruction set, JAX and this library's kernels."""
    text = f"{HOST_CORES.title()} {jax.__version__} {device_half().title()} {source_hash()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load(record: Record, name: str) -> Any:
    """A record of this machine from the disk cache; None where there is none, or where it does not fit."""
    return record.load(f"{name}-{machine()}")


def read(record: Record, name: str, make: Callable[[Any], T]) -> T | None:
    """`make` of such a record; also None where `make` raises `ValueError`."""
    found: T | None = record.read(f"{name}-{machine()}", make)
    return found


def store(record: Record, name: str, value: object) -> None:
    """Keeps a record of this machine in the disk cache."""
    record.store(f"{name}-{machine()}", value)


def forget(record: Record, name: str) -> None:
    """Keeps a record of this machine no longer."""
    record.forget(f"{name}-{machine()}")


def example(v: Value, seed: int = 0) -> jax.Array:
    """A random array of a value's shape and type: normal numbers, keys, or zeros for all other types."""
    rng = np.random.default_rng(seed)
    if v.dtype in ("float32", "float16", "float64", "bfloat16"):
        return as_array(np.asarray(rng.standard_normal(v.shape, np.float32), v.dtype))
    if v.dtype in KEYS:
        keys = jax.random.split(jax.random.key(seed, impl=KEYS[v.dtype]), max(v.size, 1))
        return keys[: v.size].reshape(v.shape)
    return jax.numpy.zeros(v.shape, v.dtype)


def _known_parts(name: str) -> dict[str, Measured]:
    """By signature, what a record says of layers."""
    rows = (load(PARTS, name) or {}).items()
    return {key: Measured(whole, [(dim, share, s) for dim, share, s in parts]) for key, (whole, *parts) in rows}


def _keep_parts(name: str, known: Mapping[str, Measured]) -> None:
    store(PARTS, name, {key: [x.whole, *x.parts] for key, x in known.items()})


def host_placements(graph: LayerGraph) -> tuple[Placement, ...]:
    """Everything that kernels can run on the host half."""
    return tuple(
        Placement(x.name, DEVICE if x.host_error else HOST, 0.0 if x.host_error else 1.0, note=x.host_error)
        for x in graph.layers
    )


def host_seconds(
    graph: LayerGraph, lowered: Lowered, call: Callable[[], object], budget: float = 0.06
) -> tuple[float | None, ...]:
    """Seconds of each layer on the host half (None: it does not run there), from the stamps of calls of an all-host
    plan; `budget`: seconds of these calls.
    """
    median_seconds(call, budget, 5)
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


def device_seconds(graph: LayerGraph, constant: ArrayOf, progress: Progress = silent) -> tuple[float, ...]:
    """Seconds of each layer on XLA:CPU, inside programs of many layers. `constant` gives the array of a constant."""
    consts = set(graph.program.consts)
    known: dict[str, float] = load(WHOLES, "device") or {}
    todo = {x.signature: x for x in graph.layers if x.signature not in known}
    if todo:
        progress("profile", 0, 1)
        value = lambda v: as_array(constant(v))
        known.update(
            zip(
                todo,
                device_layers.seconds([device_layers.whole(x) for x in todo.values()], consts, value, example, None),
                strict=True,
            )
        )
        progress("profile", 1, 1)
        store(WHOLES, "device", known)
    return tuple(known[x.signature] for x in graph.layers)


def parts_seconds(
    graph: LayerGraph,
    constant: ArrayOf,
    relay: Relay,
    on_host: Sequence[float | None],
    progress: Progress = silent,
    sampled: bool = False,
) -> tuple[tuple[float, ...], dict[int, Points]]:
    """Seconds of each layer on a device, and of parts of those that are worth splitting, by its own clock.

    `sampled`: of layers with very large weights only a part is measured, so that their weights need not fit the device;
    one that cannot be divided then counts as on the host half.
    """
    name = f"device{device_of(relay).suffix}" + "-sampled" * sampled
    known = _known_parts(name)
    todo = list({x.signature: x for x in graph.layers if x.signature not in known}.values())
    if todo:
        consts, most = set(graph.program.consts), device_layers.SAMPLE_BYTES if sampled else math.inf
        timed = lambda pieces: device_layers.seconds(pieces, consts, constant, example, relay)
        progress("profile", 0, 2)
        wholes = _wholes(todo, consts, timed, on_host, most)
        known.update((x.signature, Measured(t)) for x, t in zip(todo, wholes, strict=True))
        progress("profile", 1, 2)
        for x, part in _parts(todo, consts, timed, wholes, on_host, most):
            known[x.signature].parts.append(part)
        progress("profile", 2, 2)
        _keep_parts(name, known)
    seconds = tuple(known[x.signature].whole for x in graph.layers)
    return seconds, device_layers.known_parts(graph, known, seconds)


def _wholes(
    layers: Sequence[Layer], consts: set[Value], timed: Timed, on_host: Sequence[float | None], most: float
) -> list[float]:
    """Seconds of layers on a device, of which parts with at most `most` bytes of weights are measured."""
    samples = [device_layers.sample(x, consts, most) for x in layers]
    times = iter(timed([piece for _, piece in filter(None, samples)]))
    return [
        next(times) / sample[0] if sample else on_host[x.index] or device_layers.UNKNOWN_SECONDS
        for x, sample in zip(layers, samples, strict=True)
    ]


def _parts(
    layers: Sequence[Layer],
    consts: set[Value],
    timed: Timed,
    wholes: Sequence[float],
    on_host: Sequence[float | None],
    most: float,
) -> Iterator[tuple[Layer, tuple[str, float, float]]]:
    """(layer, (dim, share, seconds)) of the parts that are worth measuring; `wholes`: seconds of the layers; where the
    device cannot hold all weights, parts of any may be worth it.
    """
    points = [
        (x, *key, piece)
        for x, t in zip(layers, wholes, strict=True)
        if device_layers.worth_parts(x, consts, t, on_host[x.index] if most == math.inf else None, most)
        for key, piece in device_layers.parts(x).items()
    ]
    for (x, dim, share, _), t in zip(points, timed([p for *_, p in points]), strict=True):
        yield x, (dim, share, t)


def host_parts(
    graph: LayerGraph,
    on_host: Sequence[float | None],
    on_device: Sequence[float],
    threads: int,
    cpus: tuple[int, ...],
) -> dict[int, Points]:
    """Layer index -> dim -> (share, seconds) of parts on the host half, of the layers that are worth splitting;
    `on_host`, `on_device`: seconds of the whole layers.
    """
    consts = set(graph.program.consts)
    name = f"host-parts-{threads}"
    known = _known_parts(name)
    before = len(known)
    for x, t, other in zip(graph.layers, on_host, on_device, strict=True):
        if t is None or x.signature in known or not device_layers.worth_parts(x, consts, t, other):
            continue
        known[x.signature] = Measured(t)
        for (dim, share), piece in device_layers.parts(x).items():
            with contextlib.suppress(Unsupported):
                call = device_layers.host_call_of(piece, consts, threads, cpus)
                warm_up(call)
                seconds = median_seconds(call, WARM_SECONDS, device_layers.RUNS)
                known[x.signature].parts.append((dim, share, seconds))
    if len(known) > before:
        _keep_parts(name, known)
    found = device_layers.known_parts(graph, known, on_host)
    return {i: {d: no_slower_than_more(points, on_host[i]) for d, points in dims.items()} for i, dims in found.items()}


def no_slower_than_more(points: Sequence[tuple[float, float]], whole: float | None) -> tuple[tuple[float, float], ...]:
    """(share, seconds) of parts, ascending, of which none takes longer than a larger one, which on the host half only a
    disturbed measurement does; `whole`: seconds of the layer.
    """
    out: list[tuple[float, float]] = []
    least = whole if whole is not None else math.inf
    for share, seconds in reversed(points):
        least = min(least, seconds)
        out.append((share, least))
    return tuple(reversed(out))


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
        on_device = device_seconds(graph, constant, progress)
        return Costs.of_halves(on_host, on_device, **around(relay, threads, cpus))
    on_device, device_parts = parts_seconds(graph, constant, connected(relay), on_host, progress, sampled)
    parts = {HOST: host_parts(graph, on_host, on_device, threads, cpus), DEVICE: device_parts}
    return Costs.of_halves(on_host, on_device, parts=parts, **around(relay, threads, cpus))


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
