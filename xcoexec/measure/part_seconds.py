"""Seconds of layers on a device and of parts of layers on each half, measured or assumed; kept on disk."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import numpy as np

from ..codegen.program import Unsupported, Value, external
from ..codegen.runtime import host
from ..codegen.runtime.relay import Relay
from ..compat import as_array
from ..devices.registry import device_of
from ..ir.costs import Points
from ..ir.layers import Layer, LayerGraph
from ..ir.words import DEVICE, HOST
from . import device_layers
from .device_layers import ArrayOf, Measured, TimedOps
from .kept import load, store
from .records import PARTS
from .timing import Progress, in_turn, silent

BALANCE, LAUNCH_SECONDS = 12.0, 2e-6  # FLOP a byte; of one layer
HALF = {HOST: 0.53, DEVICE: 0.65}  # of a layer's seconds that half of it takes, where it was not measured
Timed = Callable[[Sequence[TimedOps]], list[float]]  # median seconds of pieces on the device

#: type of a key of random numbers -> the generator's name
KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


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


def parts_seconds(
    graph: LayerGraph,
    constant: ArrayOf,
    relay: Relay,
    on_host: Sequence[float | None],
    progress: Progress = silent,
    sampled: bool = False,
    pays: Callable[[Sequence[float]], bool] = lambda wholes: True,
) -> tuple[tuple[float, ...], dict[int, Points]]:
    """Seconds of each layer on a device, and of parts of those that are worth splitting, by its own clock.

    `sampled`: of layers with very large weights only a part is measured, so that their weights need not fit the device;
    one that cannot be divided then counts as on the host half. `pays`: whether layers of so many seconds may be worth
    splitting at all; else no part is measured.
    """
    name = f"device{device_of(relay).suffix}" + "-sampled" * sampled
    known = _known_parts(name)
    todo = list({x.signature: x for x in graph.layers if x.signature not in known}.values())
    if todo:
        consts, most = set(graph.program.consts), device_layers.SAMPLE_BYTES if sampled else math.inf
        timed = lambda pieces: device_layers.seconds(pieces, consts, constant, example, relay)
        progress("profile", 0, 2)
        wholes = _wholes(f"{name}-whole", todo, consts, timed, on_host, most)
        known.update((x.signature, Measured(t)) for x, t in zip(todo, wholes, strict=True))
        progress("profile", 1, 2)
        seconds = tuple(known[x.signature].whole for x in graph.layers)
        if not pays(seconds):
            return seconds, {}
        for x, part in _parts(todo, consts, timed, wholes, on_host, most):
            known[x.signature].parts.append(part)
        progress("profile", 2, 2)
        _keep_parts(name, known)
    seconds = tuple(known[x.signature].whole for x in graph.layers)
    return seconds, device_layers.known_parts(graph, known, seconds)


def _wholes(
    name: str,
    layers: Sequence[Layer],
    consts: set[Value],
    timed: Timed,
    on_host: Sequence[float | None],
    most: float,
) -> list[float]:
    """Seconds of layers on a device, of which parts with at most `most` bytes of weights are measured; kept on disk as
    `name`.
    """
    known = _known_parts(name)
    todo = [x for x in layers if x.signature not in known]
    if todo:
        samples = [device_layers.sample(x, consts, most) for x in todo]
        times = iter(timed([piece for _, piece in filter(None, samples)]))
        for x, sample in zip(todo, samples, strict=True):
            whole = next(times) / sample[0] if sample else on_host[x.index] or device_layers.UNKNOWN_SECONDS
            known[x.signature] = Measured(whole)
        _keep_parts(name, known)
    return [known[x.signature].whole for x in layers]


def _parts(
    layers: Sequence[Layer],
    consts: set[Value],
    timed: Timed,
    wholes: Sequence[float],
    on_host: Sequence[float | None],
    most: float,
) -> Iterator[tuple[Layer, tuple[str, float, float]]]:
    """(layer, (dim, share, seconds)) of the parts that are worth measuring; `wholes`: seconds of the layers; where the
    device cannot hold all weights, parts of any may be worth it. A layer is measured once more beside its parts: what
    disturbs one program, such as a lower clock, disturbs all that is in it.
    """
    points: list[tuple[Layer, float, str, float, TimedOps]] = []
    for x, t in zip(layers, wholes, strict=True):
        if device_layers.worth_parts(x, consts, t, on_host[x.index] if most == math.inf else None, most):
            parts = device_layers.parts(x).items()
            points += [(x, t, "", 1.0, device_layers.whole(x))] if parts else []
            points += [(x, t, dim, share, piece) for (dim, share), piece in parts]
    beside = 1.0
    for (x, whole, dim, share, _), t in zip(points, timed([p for *_, p in points]), strict=True):
        if not dim:
            beside = whole / t
        else:
            yield x, (dim, share, t * beside)


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
    todo = {
        x.signature: (x, t)
        for x, t, other in zip(graph.layers, on_host, on_device, strict=True)
        if t is not None and x.signature not in known and device_layers.worth_parts(x, consts, t, other)
    }
    calls: list[tuple[str, str, float, host.Call]] = []
    for x, t in todo.values():
        known[x.signature] = Measured(t)
        for (dim, share), piece in device_layers.parts(x).items():
            with contextlib.suppress(Unsupported):
                made = device_layers.host_call_of(piece, consts, threads, cpus)
                calls.append((x.signature, dim, share, made))
    times = in_turn([made for *_, made in calls], device_layers.RUNS)
    for (signature, dim, share, _), seconds in zip(calls, times, strict=True):
        known[signature].parts.append((dim, share, seconds))
    if todo:
        _keep_parts(name, known)
    found = device_layers.known_parts(graph, known, on_host)
    return {i: {d: no_slower_than_more(points, on_host[i]) for d, points in dims.items()} for i, dims in found.items()}


def assumed_wholes(graph: LayerGraph, together: float) -> tuple[float, ...]:
    """Seconds of each layer on a device, of which all take so many seconds `together`: by the roofline of a device that
    does `BALANCE` FLOP in the time of a byte, behind `LAUNCH_SECONDS` for each layer.
    """
    work = [max(x.flops / BALANCE, float(_nbytes(x)), 1.0) for x in graph.layers]
    launch = min(LAUNCH_SECONDS, together / (2 * len(work)))
    a_byte = (together - launch * len(work)) / sum(work)
    return tuple(launch + a_byte * w for w in work)


def _nbytes(layer: Layer) -> int:
    """Bytes that a layer reads and writes."""
    return sum(v.nbytes for v in {*external(layer.ops), *layer.outs})


def assumed_parts(
    graph: LayerGraph, on_host: Sequence[float | None], on_device: Sequence[float]
) -> dict[str, dict[int, Points]]:
    """Half -> layer index -> dim -> (share, seconds) of parts that nobody has measured: half of a layer that is worth
    splitting takes the share `HALF` of it.
    """
    consts, found = set(graph.program.consts), {HOST: dict[int, Points](), DEVICE: dict[int, Points]()}
    for x, mine, other in zip(graph.layers, on_host, on_device, strict=True):
        if mine is not None and device_layers.worth_parts(x, consts, other, mine):
            for half, whole in ((HOST, mine), (DEVICE, other)):
                found[half][x.index] = {d: ((0.5, HALF[half] * whole),) for d in x.dims}
    return found


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


__all__ = ["assumed_parts", "assumed_wholes", "example", "host_parts", "no_slower_than_more", "parts_seconds"]
