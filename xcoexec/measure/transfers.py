"""What it costs to move arrays between the halves on a machine with a device of its own, by the device's clock."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np

from ..codegen.program import Group, Literal, Op, Program, Value
from ..codegen.runtime import host, peaks
from ..codegen.runtime.clocks import Clock
from ..codegen.runtime.relay import Relay
from ..codegen.runtime.sites import Fetch, Merge, Site, Window
from ..codegen.segment.assembly import Segment
from ..compat import host_call, plain_jit
from ..devices.registry import device_of
from ..lowering.emit import TARGET, register, started

SMALL, LARGE = 256, 1 << 20  # f32 values; the line through both gives fixed seconds and a rate
FETCHED = 1 << 24  # f32 values
PIECE = 1 << 21  # f32 values of a usual piece of streamed weights
READ_BYTES = 1 << 29  # that threads read meanwhile: more than most caches hold
RUNS = 25
ROUNDS = 3  # of which the least counts: disturbances only ever make it longer, and the figures are kept
LAUNCHES = 5e-6  # seconds before and behind the two kernels of a host call


@dataclasses.dataclass(frozen=True)
class Overheads:
    """`sync`: seconds of one host call inside an executable; `rate`: bytes/s between halves; `moves`, `stream_rate`: as
    in `Costs`.
    """

    sync: float
    rate: float
    moves: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    stream_rate: float = 1e10


def tiny(shape: tuple[int, ...]) -> Segment:
    """A segment that adds 1 to an f32 array of this shape."""
    v, w = Value(shape, "float32"), Value(shape, "float32")
    return host.build(Program((v,), (), (Group.of(Op("add", (v, Literal(1.0, "float32")), (w,), {})),), (w,)), 1)


def exchange_overheads(relay: Relay) -> Overheads:
    """The figures of this machine (seconds, bytes/s): a host call of a small and a large array, by kernels and by
    copies, and a fetch.
    """
    register(device_of(relay))
    sizes = (SMALL, LARGE)
    stamps = [_stamps(relay, n) for n in sizes]
    spans = {(n, way): _call_seconds(relay, n, way) for n in sizes for way in ("mapped", "read", "write")}
    mapped = {
        "read": [float(s[1]) for s in stamps],
        # by the span: the stamps are those of one block, which may end long before the others
        "write": [
            max(spans[n, "mapped"] - float(s[4]), float(s[5] - s[4])) for n, s in zip(sizes, stamps, strict=True)
        ],
    }
    moves: dict[str, tuple[float, float]] = {}
    for what, seconds in mapped.items():
        copied = [m + spans[n, what] - spans[n, "mapped"] for n, m in zip(sizes, seconds, strict=True)]
        moves[f"{what} mapped"], moves[f"{what} copy"] = _line(seconds), _line(copied)
    rate = 2 * 4 * LARGE / max(mapped["read"][1] + mapped["write"][1], 1e-6)
    return Overheads(float(stamps[0][5]) + LAUNCHES, rate, moves, 4 * FETCHED / _fetch_seconds(relay, FETCHED))


def rate_beside_reads(relay: Relay, threads: int) -> float:
    """Bytes/s of streamed weights on their way to the device while so many threads read memory, which they share."""
    reads = host.Call(peaks.reading(READ_BYTES, threads), [np.full(READ_BYTES // 4, 1.0, np.float32)], [])
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            reads()

    register(device_of(relay))
    thread = threading.Thread(target=again)
    thread.start()
    try:
        return 4 * PIECE / _fetch_seconds(relay, PIECE)
    finally:
        over.set()
        thread.join()


def _line(seconds: Sequence[float]) -> tuple[float, float]:
    """(seconds, bytes/s) through the seconds of a small and a large array."""
    rate = 4 * (LARGE - SMALL) / max(seconds[1] - seconds[0], 1e-7)
    return max(seconds[0] - 4 * SMALL / rate, 0.0), rate


def _site(relay: Relay, n: int, way: str) -> Site:
    return Site(relay, tiny((n,)), [Window.whole((n,), way == "read")], [Merge.whole((n,), way == "write")], {})


def _pass(site: Site, x: jax.Array) -> jax.Array:
    """One host call in a traced function."""
    result = [jax.ShapeDtypeStruct(x.shape, np.float32)]
    (behind,), word = started(site, [x], [x])
    joined: jax.Array = host_call(f"{TARGET}_join", result, site.address, [behind, word], False)[0]
    return joined


def _stamps(relay: Relay, n: int) -> np.ndarray:
    """Stamps of a host call, seconds after its start: of each the least of the rounds' medians."""
    site = _site(relay, n, "mapped")
    f, x = plain_jit(lambda x: _pass(site, x)), jax.numpy.zeros(n)
    rounds = []
    for _ in range(ROUNDS):
        for _ in range(RUNS):
            f(x).block_until_ready()
        recent = site.stamps()[-RUNS:]
        rounds.append(np.median(recent - recent[:, :1], axis=0) * 1e-9)
    return np.asarray(np.min(rounds, axis=0))


def _call_seconds(relay: Relay, n: int, way: str) -> float:
    site = _site(relay, n, way)
    return between(relay, lambda x: _pass(site, x), jax.numpy.zeros(n))


def _fetch_seconds(relay: Relay, count: int) -> float:
    fetch = Fetch(relay, np.zeros(count, np.float32))
    results = [jax.ShapeDtypeStruct((count,), np.float32), jax.ShapeDtypeStruct((1,), np.float32)]

    def fn(x: jax.Array) -> jax.Array:
        weights, word = host_call(f"{TARGET}_fetch", results, fetch.address, [x], False)
        fetched: jax.Array = host_call(f"{TARGET}_fetched", results[:1], fetch.address, [weights, word], True)[0]
        return fetched[:8]

    return between(relay, fn, jax.numpy.zeros(8))


def between(relay: Relay, fn: Callable[[jax.Array], jax.Array], x: jax.Array) -> float:
    """Seconds of `fn(x)` inside a program, between two reads of the device's clock: the least median of the rounds. `x`
    and its result have one shape and type.
    """
    clock = Clock(relay, 2)

    def tick(i: int, v: jax.Array) -> jax.Array:
        result = [jax.ShapeDtypeStruct(v.shape, v.dtype)]
        ticked: jax.Array = host_call(f"{TARGET}_tick", result, clock.address(i), [v], True)[0]
        return ticked

    f = plain_jit(lambda x: tick(1, fn(tick(0, x))))
    seconds = []
    for _ in range(ROUNDS * RUNS + 1):
        f(x).block_until_ready()
        first, last = clock.times()
        seconds.append(float(last - first) * 1e-9)
    clock.close()
    return max(float(np.median(np.reshape(seconds[1:], (ROUNDS, RUNS)), axis=1).min()), 1e-7)
