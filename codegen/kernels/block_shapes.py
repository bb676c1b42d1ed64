"""Block shapes of the matrix micro-kernel, chosen by a model and by what was measured on this machine."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..native.build import Spec, kernel_address, prepare, source_hash
from ..rules.expressions import COPY
from ..store.disk import Record, folder
from ..store.schema import MEASURED, Fields
from ..target import MATRIX_UNITS, MatrixUnit, Target
from . import gemm
from .across import ACROSS, rows

Shape = tuple[int, int]  # rows, vectors
Alone = Callable[[], contextlib.AbstractContextManager[object]]  # in which a shape is measured
VECTOR = MATRIX_UNITS["vector"]
RUN = 512  # length of the reduction that is timed
TALLEST = 16  # rows of a block of vectors
REPEATS = 15  # samples, of which the least counts
CALLS = 16  # in one sample, so that it is far above the clock's resolution
NOISE = 1.15  # a shape this much slower than the model has it is taken at its measured time
CACHE_BYTES = 14.0  # from the second cache in the time of an FMA, of which cores do two a cycle
ALIKE = 1.01  # costs that the model does not tell apart
TILE, ROW = 80.0, 8.0  # that a tile takes beside its sums, and each of its rows, in the time of an FMA (Zen 5)
CALL = 180.0  # and a kernel call, whose driver finds where its pixels are
TILE_BYTES = 36.0  # a cycle of a unit with tiles, from the second cache (measured: one core of a Xeon)


def candidates(target: Target, unit: MatrixUnit = VECTOR) -> list[Shape]:
    """Shapes that fit the unit's tile, or two of them with as many sums, or whose sums, weights, one broadcast and what
    the unit needs besides fit the registers.
    """
    if unit.tile is not None:
        rows, sums = unit.tile
        most = {nv: rows * (min(2, sums // nv) if unit.step > 1 else 1) for nv in range(1, sums + 1)}
        return [(mr, nv) for nv in most for mr in range(1, most[nv] + 1)]
    room = target.registers - 1 - gemm.FURTHER.get(unit.name, 0)
    return [(mr, nv) for nv in range(1, 7) for mr in range(1, TALLEST + 1) if mr * nv + nv <= room]


def measured_shapes(target: Target, unit: MatrixUnit = VECTOR) -> list[Shape]:
    """The tallest shape of each width, one row less, half of it, and a single row."""
    shapes = []
    for nv in sorted({n for _, n in candidates(target, unit)}):
        tallest = max(mr for mr, n in candidates(target, unit) if n == nv)
        shapes += [(mr, nv) for mr in sorted({tallest, tallest - 1, (tallest + 1) // 2, 1}) if mr >= 1]
    return shapes


def cycles(shape: Shape) -> float:
    """The model: vector FMA, one a cycle, or loads, which are as fast, or the latency of a chain; and a share for loads
    that these do not hide.
    """
    mr, nv = shape
    return max(mr * nv, 4.0, mr + nv) + 0.25 * (mr + nv)


def expected(shape: Shape, target: Target, unit: MatrixUnit = VECTOR) -> float:
    """How much slower than `cycles` a shape is by the model alone: one of few rows waits for its weights, which come
    from the second cache. Those of a unit with tiles come from there too, and so does the input.
    """
    if unit.step > 1:
        mr, nv = shape
        return max(1.0, 4 * unit.step * (mr + unit.step * nv) / TILE_BYTES / cycles(shape))
    return max(1.0, 4 * target.vl * shape[1] / CACHE_BYTES / cycles(shape))


def slowdown(target: Target, unit: MatrixUnit = VECTOR) -> Mapping[Shape, float]:
    """How much slower than `cycles` each block shape is on this machine: as the model has it, until `learn` has
    measured it. One answer for units that share the vector unit's kernels.

    A shape that spills, or a core with fewer load ports, shows here; differences within the noise do not.
    """
    return _slowdown(target, _timed(unit))


def learn(target: Target, alone: Alone = contextlib.nullcontext, unit: MatrixUnit = VECTOR) -> bool:
    """Measures the block shapes, once a machine (about a second), each in `alone`; whether what is chosen from now on
    may differ from what was chosen before. Without a cache nothing is measured.
    """
    unit = _timed(unit)
    name, record = _kept(target, unit)
    if folder() is None or record.load(name) is not None:
        return False
    before = _slowdown(target, unit)
    found = _measured(target, unit, measured_shapes(target, unit), alone)
    record.store(name, {f"{mr},{nv}": seconds for (mr, nv), seconds in found.items()})
    _slowdown.cache_clear()
    return _slowdown(target, unit) != before


def _timed(unit: MatrixUnit) -> MatrixUnit:
    return VECTOR if unit.kernel == VECTOR.kernel else unit


def _kept(target: Target, unit: MatrixUnit) -> tuple[str, Record]:
    """The name and kind of what is kept of a unit's shapes on disk: seconds of a step of each."""
    name = f"blocks-{target.fingerprint}-{source_hash()[:12]}" + f"-{unit.name}" * (unit is not VECTOR)
    return name, Record("blocks", Fields({f"{mr},{nv}": MEASURED for mr, nv in measured_shapes(target, unit)}))


@functools.lru_cache
def _slowdown(target: Target, unit: MatrixUnit) -> Mapping[Shape, float]:
    name, record = _kept(target, unit)
    table, shapes = record.load(name), candidates(target, unit)
    model = {s: expected(s, target, unit) for s in shapes}
    if table is None:
        return model
    known = {(mr, nv): float(table[f"{mr},{nv}"]) for mr, nv in measured_shapes(target, unit)}
    scale = float(np.median([s / cycles(k) / model[k] for k, s in known.items()]))
    ratios = {k: s / cycles(k) / model[k] / scale for k, s in known.items()}
    measured = {k: r if r > NOISE else 1.0 for k, r in ratios.items()}
    near = {s: min(known, key=lambda k: (k[1] != s[1], abs(k[0] - s[0]))) for s in shapes}
    return {s: model[s] * (measured.get(s) or measured[near[s]]) for s in shapes}


def _measured(target: Target, unit: MatrixUnit, shapes: Sequence[Shape], alone: Alone) -> dict[Shape, float]:
    """Seconds of a step of each shape. One row less than a tall shape is only measured where that one is slow: it is
    there for what spills; else it is as much faster as the model has it.
    """
    tallest = {nv: max(mr for mr, n in shapes if n == nv) for _, nv in shapes}
    less = {(mr, nv) for mr, nv in shapes if (tallest[nv] + 1) // 2 < mr < tallest[nv]}
    prepare([_spec(unit, *s) for s in shapes if s not in less], target)

    def measure(shape: Shape) -> float:
        with alone():
            return _measure(target, unit, *shape)

    found = {s: measure(s) for s in shapes if s not in less}
    usual = float(np.median([seconds / cycles(s) for s, seconds in found.items()]))
    for mr, nv in less:
        taller = found[mr + 1, nv] / cycles((mr + 1, nv))
        slow = taller > NOISE * usual
        found[mr, nv] = measure((mr, nv)) if slow else taller * cycles((mr, nv))
    return found


def _spec(unit: MatrixUnit, mr: int, nv: int) -> Spec:
    return gemm.spec(mr, nv, False, COPY, (), dtype=unit.dtype, family=unit.kernel)


def _measure(target: Target, unit: MatrixUnit, mr: int, nv: int) -> float:
    fn = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * gemm.ARGUMENTS)(kernel_address(_spec(unit, mr, nv), target))
    x = np.ones((mr, RUN), np.float32)
    w = np.full((RUN, nv * target.vl), 1e-3, np.float32)
    y = np.zeros((mr, nv * target.vl), np.float32)
    rows = [np.array([a.ctypes.data + r * a.strides[0] for r in range(mr)], np.int64) for a in (x, y)]
    zero, walk = np.zeros(1, np.int64), np.array([1, 1, *[0] * 5], np.int64)

    def least(taps: int) -> float:
        args = (
            rows[0].ctypes.data,
            w.ctypes.data,
            rows[1].ctypes.data,
            zero.ctypes.data,
            zero.ctypes.data,
            taps,
            RUN,
            1,
            1,
            target.vl,
            walk.ctypes.data,
            4,
            nv * target.vl * 4,
        )
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                fn(*args)
            times.append((time.perf_counter_ns() - start) / CALLS)
        return min(times) * 1e-9

    least(1)
    return max(least(1) - least(0), 1e-9) / RUN  # without taps nothing but the call is left


def unit_for_floats(target: Target) -> MatrixUnit:
    """The unit that multiplies f32, which every target has."""
    return target.unit("float32") or VECTOR


def even_parts(n: int, most: int) -> list[tuple[int, int]]:
    """n as the fewest parts of at most `most`, differing by at most one: (size, how many), larger first."""
    parts = -(-n // most)
    size, larger = divmod(n, max(parts, 1))
    return [(s, count) for s, count in ((size + 1, larger), (size, parts - larger)) if count]


def block_shape(
    target: Target, pixels: int, channels: int, unit: MatrixUnit | None = None, depth: int = RUN, line: int = 0
) -> Shape:
    """The shape (rows, vectors) with the least time, by model and measurement, for `pixels` x `channels` sums of
    `depth` elements of a group; of those that are alike the one with the fewest kernels, then the one that reads the
    fewest bytes. `unit`: what multiplies them (None: the one for f32). `line`: so many pixels lie evenly apart, one
    behind the other (0: all).
    """
    if unit is ACROSS:
        return rows(target, channels), 1
    vectors, unit = -(-channels // target.vl), unit or unit_for_floats(target)
    slower = slowdown(target, unit)
    parts = {(mr, nv): (even_parts(pixels, mr), even_parts(vectors, nv)) for mr, nv in candidates(target, unit)}

    def cost(shape: Shape) -> float:
        tall, wide = parts[shape]
        sums = sum(
            tiles * blocks * cycles((rows, many)) * slower[rows, many]
            for (rows, tiles), (many, blocks) in itertools.product(tall, wide)
        )
        return depth * sums + _beside(unit, tall, wide, line)

    def order(shape: Shape) -> tuple[int, float]:
        tall, wide = map(len, parts[shape])
        read = 1 / shape[0] + 1 / (shape[1] * target.vl)  # of the weights by each row, of the input by each channel
        return tall * wide, read

    costs = {shape: cost(shape) for shape in parts}
    return min((shape for shape, c in costs.items() if c <= ALIKE * min(costs.values())), key=order)


def _beside(unit: MatrixUnit, tall: Sequence[tuple[int, int]], wide: Sequence[tuple[int, int]], line: int) -> float:
    """What tiles of the sizes `tall` x `wide` and kernel calls take beside the sums. One call has all tiles that lie
    evenly apart; where tiles do not fill a line, one that lies on two lines has a call of its own. Nothing for a unit
    with tiles, whose `cycles` are others.
    """
    if unit.step > 1:
        return 0.0
    tiles, blocks = (sum(count for _, count in parts) for parts in (tall, wide))
    filled = not line or (len(tall) == 1 and line % tall[0][0] == 0)
    pixels = sum(rows * count for rows, count in tall)
    lines = pixels // line if line else 0
    return blocks * (TILE * tiles + ROW * pixels + CALL * (0 if filled else min(tiles, 2 * lines)))
