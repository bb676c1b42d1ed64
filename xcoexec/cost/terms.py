"""What a predictor knows of a layer before it runs: for each half the kernels' class, and what their time is made of.

CoDL's predictor (Jia et al., MobiSys 2022, section 4.3) takes the non-linear part of a kernel's time out by counting
the blocks that it really computes, and learns the time of a block by linear regression. The host half's blocks are read
from the step table that the kernels' own rules make; the device half's are tiles of the matrix product that a layer
amounts to, in whole waves over the device's processors.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Collection, Sequence

from ..codegen.kernels.conv import ALGORITHMS
from ..codegen.program import Group, Value, external
from ..codegen.rules.primitives import primitive
from ..codegen.runtime import host
from ..codegen.segment.assembly import Groups, Step
from ..codegen.segment.choice import default
from .features import flops


@dataclasses.dataclass(frozen=True)
class Work:
    """Kernels of one class. Their seconds are a sum over `terms` with learned coefficients, times a correction that is
    learned over `traits` (logarithms of sizes)."""

    kind: str
    terms: tuple[float, ...]
    traits: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Blocks:
    """How a device computes a matrix product: tiles (rows, columns) that kernels may have, processors that compute one
    each.
    """

    tiles: tuple[tuple[int, int], ...]
    processors: int


#: XLA:CPU's Eigen kernels, and the usual tiles of cuDNN and cuBLAS
CPU_TILES = ((48, 8), (16, 16))
GPU_TILES = ((32, 32), (64, 64), (128, 128), (256, 64))


@functools.lru_cache
def cache_bytes(level: int = 2) -> int:
    """Of one core's L2 cache, or of the L3 that it shares (a virtual machine may show more than it has: at most 32
    MiB).
    """
    least, most = {2: (1 << 18, 1 << 22), 3: (1 << 22, 1 << 25)}[level]
    try:
        return min(max(os.sysconf(f"SC_LEVEL{level}_CACHE_SIZE"), least), most)
    except (ValueError, OSError):
        return 4 * least


def cold(footprint: float) -> float:
    """The share (0..1) of a program's bytes that its next call no longer finds in the L3 cache: from half the cache's
    size on, all at twice.
    """
    return min(max((footprint / cache_bytes(3) - 0.5) / 1.5, 0.0), 1.0)


# -- the host half -----------------------------------------------------------------------------------


def host_work(group: Group, consts: Collection[Value], threads: int, footprint: float) -> dict[str, tuple[Work, ...]]:
    """Algorithm -> the work of its steps, for each algorithm that a layer may get, in a program of so many bytes.
    Raises `Unsupported`.
    """
    offered: list[tuple[str, ...]] = []

    def pick(groups: Groups, names: tuple[str, ...], n: int) -> str:
        offered.append(names)
        return default(groups, names, n)

    first = host.steps(group, consts, threads, pick)
    names = offered[0] if offered else ALGORITHMS[:1]
    found = {names[0]: _works(first, group, names[0], threads, footprint)}
    for name in names[1:]:
        found[name] = _works(
            host.steps(group, consts, threads, functools.partial(_always, name)), group, name, threads, footprint
        )
    return found


def _always(name: str, groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """A choice among algorithms that is made already."""
    return name


def _works(steps: Sequence[Step], group: Group, algorithm: str, threads: int, footprint: float) -> tuple[Work, ...]:
    return tuple(step_work(s, group, algorithm, threads, footprint) for s in steps)


def step_work(step: Step, group: Group, algorithm: str, threads: int, footprint: float) -> Work:
    """A step's fixed cost, kernel calls and units of work of the thread with the most items, bytes, and bytes beyond
    the L2 and the L3 cache.
    """
    kind = step.kernel if algorithm == ALGORITHMS[0] else f"{step.kernel} {algorithm}"
    share = -(-step.items // threads) / step.items
    weights = sum(b.nbytes for b in set(step.reads) if b.kind == "arg") / threads
    read = sum(b.nbytes for b in set(step.reads) if b.kind != "arg") / threads
    written = sum(b.nbytes for b in set(step.writes)) / threads
    beyond = [max(0.0, n - cache_bytes() / 2) for n in (read, weights, written)]
    calls, units = step.calls * share, step.units * share
    shape = group.anchor.out.shape
    ragged = float(shape[-1] % host.host_target().vl > 0) if shape else 0.0
    far = weights * cold(footprint)
    traits = (*(math.log(max(x, 1.0)) for x in (calls, units, read, weights, written)), math.log(max(far, 1e5)), ragged)
    return Work(kind, (1.0, calls, units, read, weights, written, *beyond, far, units * ragged), traits)


# -- the device half ---------------------------------------------------------------------------------


def device_work(group: Group, blocks: Blocks) -> Work:
    """Waves of tiles for matrix products, bytes and FLOP for all others."""
    op = group.anchor
    inputs = external(group.ops)
    read, written = sum(v.nbytes for v in inputs), float(group.out.nbytes)
    rule = primitive(op).matrix
    if rule is None:
        work = float(sum(map(flops, group.ops)))
        terms = (1.0, work, float(read), written, *(max(0.0, n - cache_bytes()) for n in (float(read), written)))
        return Work(primitive(op).model, terms, tuple(math.log(max(x, 1.0)) for x in (work, read, written)))
    m = rule(op)
    waves = [
        -(-(-(-m.rows // a) * -(-m.columns // b) * m.groups) // blocks.processors) * a * b * m.inner
        for a, b in blocks.tiles
    ]
    weights = float(sum(v.nbytes for v in inputs[1:]))
    data, patches = float(inputs[0].nbytes), 4.0 * m.rows * m.inner
    beyond = [max(0.0, n - cache_bytes()) for n in (data, weights, written, patches)]
    terms = (
        1.0,
        float(m.rows * m.inner * m.columns * m.groups),
        *map(float, waves),
        patches,
        data,
        weights,
        written,
        *beyond,
    )
    traits = tuple(math.log(max(x, 1)) for x in (m.rows, m.inner, m.columns, m.groups, m.window, m.stride))
    return Work(m.kind, terms, traits)


__all__ = ["CPU_TILES", "GPU_TILES", "Blocks", "Work", "cache_bytes", "device_work", "host_work", "step_work"]
