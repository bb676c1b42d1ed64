"""CoDL's own predictor (Jia et al., MobiSys 2022, section 5.2): Equation 3 with the counts of Table 1, and a plain
linear regression for the time of a basic unit.

    T_kernel = ceil(size / (block * cores)) * ceil(block / unit) * t_unit

`t_unit` alone is learned, from (H, W, IC, OC), for each kernel of each processor; the time of an operator is the sum
over its kernels. The blocks are the runtime's own: here a tile of the matrix product, and a vector for all other
kernels. The paper learns by gradient descent what least squares give at once.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

FEATURES = ("H", "W", "IC", "OC")
DIGITS = 3  # of stored numbers
LEAST = 1e-8  # seconds: a line may go below 0, a kernel does not
FEW = 6  # samples below which a kernel has no line of its own
ANY = "any"

Key = tuple[str, str]  # half, kernel


@dataclasses.dataclass(frozen=True)
class Shape:
    """An operator as Table 1 has it: height and width of its result, channels in and out, filter size."""

    height: float
    width: float
    into: float
    out: float
    filter: float = 1.0

    @property
    def features(self) -> tuple[float, float, float, float]:
        """What the regression is given: (H, W, IC, OC)."""
        return (self.height, self.width, self.into, self.out)


@dataclasses.dataclass(frozen=True)
class Blocking:
    """Of a processor: cores, places and channels of a tile of the matrix product, and elements of a basic unit."""

    cores: int
    tile: tuple[int, int]
    unit: int


def size(kernel: str, shape: Shape) -> tuple[float, float]:
    """(Table 1's size of what a kernel computes, the inner length of each of its elements).

    The kernels of Winograd are named by their tile: "winograd_input winograd4" transforms for tiles of 4 by 4. "gemm",
    "gemv" and the matrix products of a device half count multiplications, all others elements of the result.
    """
    name, _, algorithm = kernel.partition(" ")
    places = shape.height * shape.width
    inner = shape.into * shape.filter**2
    if algorithm.startswith("winograd"):
        w = int(algorithm.removeprefix("winograd"))
        tiles = math.ceil(shape.height / w) * math.ceil(shape.width / w)
        return {
            "winograd_input": (shape.into * tiles * (w + 2) ** 2, 1.0),
            "winograd_output": (shape.out * tiles * w**2, 1.0),
        }.get(name, ((w + 2) ** 2 * tiles * shape.into * shape.out, shape.into))
    if name in ("gemm", "tiles", "gemv", "conv", "pointwise", "dense"):
        return places * shape.out * inner, inner
    return places * shape.out, 1.0


def units(kernel: str, shape: Shape, blocking: Blocking) -> float:
    """Basic units that the core with the most blocks computes (the two quotients of Equation 3)."""
    count, inner = size(kernel, shape)
    block = blocking.tile[0] * blocking.tile[1] * inner if inner > 1 else blocking.unit
    return math.ceil(count / (block * blocking.cores)) * math.ceil(block / blocking.unit)


@dataclasses.dataclass(frozen=True)
class Equation3:
    """`lines`: (half, kernel) -> five coefficients of t_unit in seconds, a constant and one for each of `FEATURES`."""

    lines: Mapping[Key, tuple[float, ...]]
    blocking: Mapping[str, Blocking]

    def seconds(self, half: str, kernel: str, shape: Shape) -> float:
        """Seconds of one kernel on a half, by the line of all kernels where it has none."""
        line = self.lines.get((half, kernel), self.lines[half, ANY])
        t = line[0] + sum(c * x for c, x in zip(line[1:], shape.features, strict=True))
        return max(units(kernel, shape, self.blocking[half]) * t, LEAST)

    def to_json(self) -> str:
        """What is learned, as text."""
        return json.dumps([[*key, *line] for key, line in self.lines.items()], separators=(",", ":"))

    @property
    def nbytes(self) -> int:
        """Bytes of what is learned as numbers of four bytes, to hold beside the 500 of Table 3."""
        return 4 * sum(len(line) for line in self.lines.values())


def learned(samples: Iterable[tuple[str, str, Shape, float]], blocking: Mapping[str, Blocking]) -> Equation3:
    """The lines from (half, kernel, shape, seconds), by least squares of the time of a basic unit."""
    by_key: dict[Key, list[tuple[Sequence[float], float]]] = {}
    for half, kernel, shape, seconds in samples:
        row = ((1.0, *shape.features), seconds / units(kernel, shape, blocking[half]))
        by_key.setdefault((half, kernel), []).append(row)
        by_key.setdefault((half, ANY), []).append(row)
    found = {}
    for key, rows in by_key.items():
        if len(rows) >= FEW or key[1] == ANY:
            line, *_ = np.linalg.lstsq(np.array([x for x, _ in rows]), np.array([t for _, t in rows]), rcond=None)
            found[key] = tuple(float(f"{c:.{DIGITS}g}") for c in line)
    return Equation3(found, blocking)


__all__ = ["FEATURES", "Blocking", "Equation3", "Shape", "learned", "size", "units"]
