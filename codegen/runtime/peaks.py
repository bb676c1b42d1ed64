"""The machine's roofline, measured: FMA rate and read bandwidth of so many threads, kept on disk."""

from __future__ import annotations

import dataclasses
import functools
import time

import numpy as np

from ..kernels.elementwise import nest
from ..kernels.gemm import MULTIPLY
from ..kernels.simd import Builder
from ..kernels.tiles import ROWS, WORDS, Amx, W, X
from ..kernels.vectors import i64
from ..native.build import Spec, family, source_hash
from ..program import Group, Op, Program, Value
from ..segment.assembly import Segment, compile_segment
from ..segment.choice import default
from ..segment.context import Context, Rules
from ..segment.steps import Kernel
from ..segment.storage import Operand, Storage
from ..store.disk import Record
from ..store.schema import RATE, Row
from ..target import Target, target
from . import host

CHAINS = 12  # independent accumulators: twice the latency of an FMA on cores that start two a cycle
ITERATIONS = 1 << 15
STREAM_BYTES = 1 << 28  # more than the last-level cache holds
ITEM_BYTES = 1 << 20
STREAMS = 2  # at once in each thread; one alone leaves memory idle while the hardware finds its next page
REPEATS = 9
FLOPS_A_LANE, BYTES_A_SECOND = 3.6e9, 2e10  # half of an FMA a cycle in each thread, and what any memory gives
PEAKS = Record("peaks", Row((RATE, RATE)))


@dataclasses.dataclass(frozen=True)
class Peaks:
    """FLOP/s of f32 FMA and bytes/s read from memory, by `threads` threads together."""

    flops: float
    bandwidth: float
    threads: int

    def seconds(self, flops: int, nbytes: int) -> float:
        """The least seconds for so many FLOP and bytes: the roofline (Williams et al., 2009)."""
        return max(flops / self.flops, nbytes / self.bandwidth)


def likely_seconds(flops: int, nbytes: int, threads: int) -> float:
    """Seconds of layers of so many FLOP and bytes, by what kernels reach on most machines: nothing is measured."""
    return flops / (threads * target().vl * FLOPS_A_LANE) + nbytes / BYTES_A_SECOND


@functools.lru_cache
def peaks(threads: int) -> Peaks:
    """The peaks (FLOP/s, bytes/s) of this machine; measured once (about 0.5 s), then read from the cache."""
    name = f"peaks-{target().fingerprint}-{threads}-{source_hash()[:12]}"
    stored = PEAKS.load(name)
    if stored is None:
        items = 8 * threads
        fma = (
            items
            * ITERATIONS
            * CHAINS
            * target().vl
            * 2
            / _least(_calls(("peak_fma",), [ITERATIONS], items, 0, threads))
        )
        read = STREAM_BYTES / _least(reading(STREAM_BYTES, threads))
        stored = [fma, read]
        PEAKS.store(name, stored)
    fma, read = stored
    return Peaks(fma, read, threads)


def reading(nbytes: int, threads: int) -> Segment:
    """A segment that only reads its argument, f32 of so many bytes (a multiple of `ITEM_BYTES`), in several streams a
    thread.
    """
    return _calls(("peak_read", STREAMS), [ITEM_BYTES // 4 // STREAMS], nbytes // ITEM_BYTES, ITEM_BYTES, threads)


def _calls(spec: Spec, words: list[int], items: int, step: int, threads: int) -> Segment:
    """A segment of `items` calls of a kernel that reads `step` bytes further on each time."""
    x = Value((max(items * step // 4, 16),), "float32")
    y = Value((items * 16,), "float32")
    op = Op("peak", (x,), (y,), {})

    def lower(ctx: Context, group: Group) -> None:
        def walk(s: Storage, n: int) -> Operand:
            return s, (n,), 0

        nest(ctx, Kernel(spec), words, (items,), [walk(ctx.storage(x), step), walk(ctx.output(y), 64)], 1, 1)

    if threads > 1:
        host.team().want(threads)
    return compile_segment(
        Program((x,), (), (Group.of(op),), (y,)),
        target(),
        threads,
        host.runtime(()),
        Rules(lower, lambda ctx, at: 0, lambda op: {}, default, None),
    )


def _least(segment: Segment) -> float:
    """Least seconds of a segment of one argument."""
    call = host.Call(segment, [np.ones(segment.program.inputs[0].shape, np.float32)], [])
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


@family("peak_fma")
def peak_fma(name: str, key: Spec, target: Target) -> str:
    """("peak_fma",): independent chains of FMA in registers. Operands: x (not read), y. Words: iterations."""
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    scale = v.broadcast(v.ld64(where, 0))
    start = [v.b.fmul(scale, v.const(1.0 + k)) for k in range(CHAINS)]
    with v.carry(v.ld64(words, 0), start) as (_, acc, done):
        done([v.fma(a, scale, scale) for a in acc])
    total = v.carried[0]
    for a in v.carried[1:]:
        total = v.b.fadd(total, a)
    v.set_mask(i64(min(16, target.vl)))
    v.store(total, v.ld64(where, 1))
    return v.finish()


def products(dtype: str, threads: int) -> float:
    """Operations a second (a product and its sum are two) that the unit for products of a type reaches in its own
    registers: a bare loop of its instruction. Raises `ValueError` where the CPU has none for it.
    """
    unit = target().unit(dtype)
    if unit is None:
        raise ValueError(f"dtype: got {dtype!r}, for which this CPU has no products; valid is what Target.unit knows.")
    sums = 4 * ROWS * WORDS if unit.kernel == "tiles" else CHAINS * target().vl
    words = WORDS if unit.kernel == "tiles" else 1
    items = 8 * threads
    seconds = _least(_calls(("peak_products", dtype), [ITERATIONS // words], items, 0, threads))
    return items * (ITERATIONS // words) * sums * words * unit.per * 2 / seconds


@family("peak_products")
def peak_products(name: str, key: Spec, target: Target) -> str:
    """("peak_products", dtype): independent sums of products. Operands: x (not read), y. Words: iterations."""
    v, unit = Builder(name, 3, target.vl), target.unit(key[1])
    assert unit is not None
    where, _, words = v.args
    n, y = v.ld64(words, 0), v.ld64(where, 1)
    if unit.kernel == "tiles":
        tiles, room = Amx.of(v, key[1]), v.local(ROWS * WORDS)
        tiles.begin([ROWS] * 8)
        for tile in range(8):
            tiles.zero(tile)
        with v.loop(n):
            for i in range(4):
                tiles.multiply(i, X[0], W[i % len(W)])
        tiles.store(0, room, i64(4 * WORDS))
        tiles.end()
        total = v.load(room)
    else:
        multiply = getattr(v, MULTIPLY.get(unit.name, "fma"))
        scale = v.broadcast(v.ld64(where, 0))
        with v.carry(n, [v.const(float(k)) for k in range(CHAINS)]) as (_, acc, done):
            done([multiply(scale, scale, a) for a in acc])
        total = v.carried[0]
        for a in v.carried[1:]:
            total = v.b.fadd(total, a)
    v.set_mask(i64(min(16, target.vl)))
    v.store(total, y)
    return v.finish()


@family("peak_read")
def peak_read(name: str, key: Spec, target: Target) -> str:
    """("peak_read", streams): the sum of floats that lie side by side, read in so many streams. Operands: x, y. Words:
    floats of a stream (a multiple of 4 vectors).
    """
    streams = key[1]
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    x, n = v.ld64(where, 0), v.ld64(words, 0)
    with v.carry(v.b.sdiv(n, i64(4 * v.vl)), [v.const(0.0)] * (4 * streams)) as (i, acc, done):
        starts = [v.add(x, v.mul(i, 16 * v.vl), v.mul(n, 4 * s)) for s in range(streams)]
        places = [v.add(at, 4 * v.vl * k) for at in starts for k in range(4)]
        done([v.b.fadd(a, v.load(at)) for a, at in zip(acc, places, strict=True)])
    total = v.carried[0]
    for a in v.carried[1:]:
        total = v.b.fadd(total, a)
    v.store(total, v.ld64(where, 1))
    return v.finish()
