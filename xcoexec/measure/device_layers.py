"""Seconds of device layers and of parts of them, read from the device's own clock inside one program."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import jax
import numpy as np

from ..codegen.program import Group, Op, Program, Value, external, kind
from ..codegen.runtime import host
from ..codegen.runtime.clocks import Clock, HostClock
from ..codegen.runtime.relay import Relay
from ..codegen.segment.choice import likely
from ..compat import as_array, host_call, plain_jit
from ..devices.registry import connected, device_of
from ..errors import SplitError
from ..ir.costs import Points
from ..ir.geometry import axis_of, cut
from ..ir.layers import Layer, LayerGraph
from ..lowering.emit import TARGET, register, run_ops, turned_back
from ..partition.split import Slice, split
from .kept import tuning
from .timing import alone

SHARES = (0.5,)  # parts that are measured; the planner draws straight lines through them and the whole
#: the same of products with at most so many rows, which a device computes in a few tiles: its time grows in steps
FEW_ROWS, FEW_SHARES = 512, (0.5, 0.75)
WORTH_SECONDS = 25e-6  # layers that are faster on either half are never worth a part of their own
APART = 12.0  # a half that takes so many times as long as the other one cannot save a tenth of a layer
RUNS = 15
TOGETHER = 24  # pieces in one program
#: of weights, where the device cannot hold all: of layers with more a part is measured; still more than caches hold
SAMPLE_BYTES = 1 << 26
UNKNOWN_SECONDS = 1e-4  # of a layer that can neither be measured nor run on the host half

#: gives the array of a value: a constant of the program where it lies, so that nothing is copied that is not measured
ArrayOf = Callable[[Value], jax.Array | np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class TimedOps:
    """Operations to be timed, and what of which values they read."""

    ops: tuple[Op, ...]
    outs: tuple[Value, ...]
    slices: Mapping[Value, Slice]
    groups: tuple[Group, ...]


def whole(layer: Layer) -> TimedOps:
    return TimedOps(layer.ops, layer.outs, {}, (layer.group,))


def measurable(piece: TimedOps) -> bool:
    """Whether a piece ends on arrays that are made up: how often a `while` loop turns is up to its operands."""
    return not any(op.unbounded for op in piece.ops)


def weight_bytes(piece: TimedOps, consts: Collection[Value]) -> int:
    """Bytes of the weights that a piece reads; `consts`: the program's constants."""
    known = set(consts) | {s.value for s in piece.slices.values() if s.source in consts}
    return sum(v.nbytes for v in external(piece.ops) if v in known)


def sample(layer: Layer, consts: set[Value], most: float) -> tuple[float, TimedOps] | None:
    """(share, piece): what is measured of a layer with at most `most` bytes of weights, and which share (0..1) of it
    that is; None where it cannot be divided, or not be measured.
    """
    all_of_it = whole(layer)
    if not measurable(all_of_it):
        return None
    nbytes = weight_bytes(all_of_it, consts)
    if nbytes <= most:
        return 1.0, all_of_it
    axis = axis_of(layer.group, "channel")
    if axis is None or "channel" not in layer.dims:
        return None
    size = layer.out.shape[axis]
    at = min(cut(size, layer.dims["channel"], 1 - most / nbytes), size - layer.dims["channel"])
    return (size - at) / size, _part(layer, axis, at)


def worth_parts(layer: Layer, consts: set[Value], seconds: float, other: float | None, most: float = math.inf) -> bool:
    """Whether parts of a layer are measured on their own: it takes long enough (`seconds`), the other half (`other`;
    None: not known) could take a share of it, and its weights are no burden (at most `most` bytes).
    """
    less, more = sorted((seconds, seconds if other is None else other))
    if not measurable(whole(layer)):
        return False
    return less > WORTH_SECONDS and more < APART * less and weight_bytes(whole(layer), consts) <= most


def _part(layer: Layer, axis: int, start: int) -> TimedOps:
    part = split(layer.ops, axis, start, layer.out.shape[axis])
    return TimedOps(part.ops, (part.out,), {s.value: s for s in part.slices}, part.groups([layer.group])[0])


def parts(layer: Layer) -> dict[tuple[str, float], TimedOps]:
    """(dim, share) -> a part of a layer: the last indices along the dimension, of shares 0..1 that can be cut out."""
    found = {}
    for dim, granule in layer.dims.items():
        if dim == "items":  # the halves of whole networks are what is divided so
            continue
        axis = axis_of(layer.group, dim)
        for share in _measured(layer, dim) if axis is not None else ():
            size = layer.out.shape[axis or 0]
            at = cut(size, granule, 1 - share)
            if not 0 < at < size:
                continue
            with contextlib.suppress(SplitError):
                found[dim, (size - at) / size] = _part(layer, axis or 0, at)
    return found


def _measured(layer: Layer, dim: str) -> tuple[float, ...]:
    """The shares (0..1) of a layer along a dimension that are measured."""
    out = layer.group.anchor.out
    few = dim == "rows" and layer.group.anchor.prim == "dot_general" and out.size <= FEW_ROWS * out.shape[-1]
    return FEW_SHARES if few else SHARES


def seconds(
    pieces: Sequence[TimedOps],
    consts: Collection[Value],
    constant: ArrayOf,
    example: ArrayOf,
    relay: Relay | None,
) -> list[float]:
    """Median seconds of each piece between two reads of the device's clock, less what two reads alone take. Without a
    relay XLA:CPU's.

    `constant` gives the array of a constant, `example` one of the shape and type of any other value. Raises
    `ValueError` for a piece that is not `measurable`.
    """
    if not all(map(measurable, pieces)):
        raise ValueError("seconds: got a loop that may never end on made-up arrays; valid are `measurable` pieces.")
    batches: list[list[TimedOps]] = []
    for piece in pieces:
        if not batches or (
            len(batches[-1]) == TOGETHER
            or sum(weight_bytes(p, consts) for p in (*batches[-1], piece)) > 2 * SAMPLE_BYTES
        ):
            batches.append([])
        batches[-1].append(piece)
    # one after the other: a GPU's compiler times kernels, and several of them at once take twice as long together;
    # what comes first takes longer on a device that has rested, and is there once more
    made = lambda batch: program([batch[0], *batch], consts, constant, example, relay)
    return [t for batch in batches for t in _times(made(batch))[1:]]


def _times(p: TimedProgram) -> list[float]:
    times = []
    for i in range(RUNS + 1):
        with alone() if i else contextlib.nullcontext():  # the first one compiles
            p.run(p.token, p.given).block_until_ready()
        times.append(p.clock.times())
    p.clock.close()
    return intervals(np.array(times[1:]))


def intervals(times: np.ndarray) -> list[float]:
    """Seconds of each piece from nanoseconds of shape [runs, places]: the median, less that of nothing. Two places
    belong to a piece, the first two to nothing.
    """
    gaps = np.median(np.diff(times.reshape(len(times), -1, 2), axis=2)[:, :, 0], axis=0) * 1e-9
    return [max(float(g - gaps[0]), 5e-7) for g in gaps[1:]]


@dataclasses.dataclass(frozen=True, eq=False)
class TimedProgram:
    """A jitted function of (`token`, `given`) that computes pieces one after the other, with the clock read around
    each. `token`: what orders the reads; `given`: the arrays that each piece reads.
    """

    run: jax.stages.Wrapped
    token: jax.Array
    given: Sequence[Sequence[jax.Array | np.ndarray]]
    clock: Clock | HostClock


def program(
    pieces: Sequence[TimedOps],
    consts: Collection[Value],
    constant: ArrayOf,
    example: ArrayOf,
    relay: Relay | None,
) -> TimedProgram:
    """All pieces one after the other, with the clock (in nanoseconds) read twice before them and around each."""
    device, places = device_of(relay), 2 * len(pieces) + 2
    register(device)
    ops = [op for p in pieces for op in p.ops]
    options = {**device.compiling(ops), **device.libraries(ops)}
    filters = [device.filters(p.ops, options) for p in pieces]
    ticks = _Ticks(Clock(connected(relay), places) if device.apart else HostClock(places), device.apart)

    def fn(token: jax.Array, given: Sequence[Sequence[jax.Array]]) -> jax.Array:
        token, _ = ticks.read(0, token, [])
        token, _ = ticks.read(1, token, [])
        for i, (piece, args) in enumerate(zip(pieces, given, strict=True)):
            env = dict(zip(_reads(piece, consts), args, strict=True))
            token = _timed(2 * i + 2, token, piece, env, consts, ticks, turned[i])
        return token

    known = [{*consts, *(v for v, s in p.slices.items() if s.source in consts)} for p in pieces]
    turned = [{v: o for v, o in f.items() if v in k} for f, k in zip(filters, known, strict=True)]
    turn = lambda x, order: as_array(np.ascontiguousarray(np.asarray(x).transpose(order)))
    stored = lambda v, x, orders: turn(x, orders[v]) if v in orders else x
    arrays = [
        [stored(v, _given(v, p, consts, constant, example), orders) for v in _reads(p, consts)]
        for p, orders in zip(pieces, turned, strict=True)
    ]
    run = plain_jit(fn, compiler_options={**tuning(), **options} or None)
    return TimedProgram(run, jax.numpy.zeros(4), arrays, ticks.clock)


@dataclasses.dataclass(frozen=True, eq=False)
class _Ticks:
    """The places of a traced program where its clock is read; `apart`: by a device of its own."""

    clock: Clock | HostClock
    apart: bool

    def read(self, i: int, token: jax.Array, values: Sequence[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        """The i-th place: behind the token and these values, and before what is returned in their places."""
        # keys are known to JAX alone
        arrays = [k for k, x in enumerate(values) if not jax.numpy.issubdtype(x.dtype, jax.dtypes.extended)]
        args = [token, *(values[k] for k in arrays)]
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
        handler = f"{TARGET}_{'tick' if self.apart else 'stamp'}"
        first, *rest = host_call(handler, shapes, self.clock.address(i), args, True)
        out = dict(enumerate(values)) | dict(zip(arrays, rest, strict=True))
        return first, list(out.values())


def _timed(
    place: int,
    token: jax.Array,
    piece: TimedOps,
    env: dict[Value, jax.Array],
    consts: Collection[Value],
    ticks: _Ticks,
    turned: Mapping[Value, tuple[int, ...]],
) -> jax.Array:
    """A piece of a traced program between the places `place` and `place + 1`; `env`: what it is given, of it `turned`
    in another order of axes.
    """
    known = {*consts, *(v for v, s in piece.slices.items() if s.source in consts)}
    # on the CPU weights are not moved before their use
    ordered = [v for v in env if ticks.apart or v not in known] or list(env)
    token, held = ticks.read(place, token, [env[v] for v in ordered])
    env.update(zip(ordered, held, strict=True))
    turned_back(env, turned)
    for v, s in piece.slices.items():
        if s.source not in consts:
            env[v] = jax.lax.slice_in_dim(env[s.source], s.start, s.stop, axis=s.axis)
    run_ops(piece.ops, env)
    token, _ = ticks.read(place + 1, token, [env[v] for v in piece.outs])
    return token


def _given(
    v: Value, piece: TimedOps, consts: Collection[Value], constant: ArrayOf, example: ArrayOf
) -> jax.Array | np.ndarray:
    """The array that a piece is given for a value: of a constant the part that it reads."""
    s = piece.slices.get(v)
    if s is not None:
        return as_array(constant(s.source)[(slice(None),) * s.axis + (slice(s.start, s.stop),)])
    return as_array(constant(v)) if v in consts else example(v)


def _reads(piece: TimedOps, consts: Collection[Value]) -> list[Value]:
    """The arrays that a piece is given: values of the call whole, slices of constants as they are."""
    return list(
        dict.fromkeys(
            piece.slices[v].source if v in piece.slices and piece.slices[v].source not in consts else v
            for v in external(piece.ops)
        )
    )


def to_predict(
    layer: Layer, consts: Collection[Value]
) -> dict[tuple[str, float], tuple[tuple[Group, ...], frozenset[Value]]]:
    """(dim, share) -> the groups of a part of a layer and which values are constants: what a predictor asks for."""
    found = {}
    for key, piece in parts(layer).items():
        found[key] = (piece.groups, frozenset(consts) | {s.value for s in piece.slices.values() if s.source in consts})
    return found


def host_call_of(piece: TimedOps, consts: set[Value], threads: int, cpus: tuple[int, ...]) -> host.Call:
    """A part of a layer as a call of the team, on made arrays of its values' shapes. Raises `Unsupported` where kernels
    cannot express the part.
    """
    ops = [op for g in piece.groups for op in g.ops]
    known = {s.value for s in piece.slices.values() if s.source in consts} | consts
    outside = external(ops)
    inputs, weights = [v for v in outside if v not in known], [v for v in outside if v in known]
    program = Program(tuple(inputs), tuple(weights), piece.groups, piece.outs)
    segment = host.build(program, threads, cpus=cpus, pick=likely)  # a part takes what the whole layer took
    made = lambda v, x: np.full(v.shape, x, np.int32 if kind(v.dtype) == "i" else np.float32)
    return host.Call(segment, [made(v, 0.5) for v in inputs], [made(v, 1e-3) for v in weights])


@dataclasses.dataclass(frozen=True)
class Measured:
    """What was measured of a layer: seconds of the `whole`, and (dim, share, seconds) of parts of it."""

    whole: float
    parts: list[tuple[str, float, float]] = dataclasses.field(default_factory=list)


def known_parts(graph: LayerGraph, known: Mapping[str, Measured], wholes: Sequence[float | None]) -> dict[int, Points]:
    """Layer index -> dim -> (share, seconds), from what was measured, by signature.

    `wholes`: seconds of the layers as they are now; parts that were measured when a layer took longer or shorter are
    scaled.
    """
    found: dict[int, Points] = {}
    for x in graph.layers:
        points: dict[str, list[tuple[float, float]]] = {}
        then = known.get(x.signature, Measured(0.0))
        scale = (wholes[x.index] or then.whole) / then.whole if then.whole else 1.0
        for dim, share, s in then.parts:
            points.setdefault(dim, []).append((share, s * scale))
        found[x.index] = {d: tuple(sorted(p)) for d, p in points.items()}
    return found
