"""Where values live inside a segment, and the plan that gives temporaries their place in the arena."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from ..program import Value, itemsize

T = TypeVar("T")
ALIGN = 64
APART = 16  # elements, a line of the caches: between pixels that would share few of their sets
STREAMED_BYTES = 1 << 24  # of one result from which on caches keep too little of it for whoever reads it next


@dataclasses.dataclass(eq=False)
class Buffer:
    """A block of memory: "arg" and "ret" belong to XLA, "temp" to the arena.

    `geometry` marks a temporary with a zero border that is never written: buffers of one geometry may
    follow each other in one place, so the border is cleared once, when an arena is made.
    """

    kind: str
    nbytes: int
    index: int = 0
    geometry: tuple[object, ...] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Storage:
    """A strided array in a buffer: `offset` and `strides` in bytes, `halo` zero elements around each dim. `narrow`: the
    type of elements that have not 4 bytes ("": they have), which passes read and write, and some windows read.
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    halo: tuple[tuple[int, int], ...]
    narrow: str = ""

    @property
    def dense(self) -> bool:
        """Whether the elements lie side by side, the last axis fastest."""
        return all(
            n == 1 or s == d for n, s, d in zip(self.shape, self.strides, dense_strides(self.shape), strict=True)
        )

    def part(self, axis: int, start: int, size: int) -> Storage:
        """`size` elements from `start` on along `axis`; it has no halo of its own along that axis."""
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        halo = (*self.halo[:axis], (0, 0), *self.halo[axis + 1 :])
        return Storage(self.buffer, self.offset + start * self.strides[axis], shape, self.strides, halo)

    def of_axes(self, count: int) -> Storage:
        """The same elements as an array of so many axes: those that it lacks have one index and stand behind the
        first.
        """
        shape, strides = (grown(axes, count, new) for axes, new in ((self.shape, 1), (self.strides, self.strides[0])))
        return Storage(self.buffer, self.offset, shape, strides, grown(self.halo, count, (0, 0)), self.narrow)

    def reshaped(self, shape: tuple[int, ...]) -> Storage:
        """As `seen_as`; asserts that there is one, as there is of elements that lie side by side."""
        found = self.seen_as(shape)
        assert found is not None, f"no strides reach {self.shape} as {shape}"
        return found

    def seen_as(self, shape: tuple[int, ...]) -> Storage | None:
        """The same elements in another shape; None where no strides reach them in that order."""
        strides = dense_strides(shape) if self.dense else _strides_of(shape, self.shape, self.strides)
        if strides is None:
            return None
        return Storage(self.buffer, self.offset, shape, strides, ((0, 0),) * len(shape))


Operand = tuple[Storage, tuple[int, ...], int]  # storage, byte stride of every loop around a kernel, byte offset


def grown(axes: tuple[T, ...], count: int, new: T) -> tuple[T, ...]:
    """One thing for each of so many axes: `new` for those behind the first that were not there."""
    return (axes[0], *(new,) * (count - len(axes)), *axes[1:])


def dense_strides(shape: Sequence[int], itemsize: int = 4) -> tuple[int, ...]:
    """Bytes from one index to the next along each axis, where elements lie side by side, the last axis fastest."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def _strides_of(shape: tuple[int, ...], old: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """Bytes along each axis of `shape` where its elements are those of one of shape `old`; None: there are none."""
    runs = [(1, 4)]  # of elements at one distance: how many, and how far apart
    for n, step in zip(old, strides, strict=True):
        if n != 1:
            many = runs.pop()[0] if runs[-1][1] == n * step else 1
            runs.append((many * n, step))
    found, left, step = [], 1, 4
    for n in reversed(shape):
        if n > 1 == left:
            left, step = runs.pop()
        if left % n:
            return None
        found.append(step)
        left, step = left // n, step * n
    return tuple(reversed(found))


def dense(buffer: Buffer, shape: tuple[int, ...], offset: int = 0, narrow: str = "") -> Storage:
    """An array of f32 or s32, or of the type `narrow`, whose elements lie side by side in a buffer from `offset` bytes
    on.
    """
    strides = dense_strides(shape, itemsize(narrow or "float32"))
    return Storage(buffer, offset, shape, strides, ((0, 0),) * len(shape), narrow)


def streamed(s: Storage, strides: Sequence[int], offset: int = 0) -> bool:
    """Whether a result that is written from `offset` bytes on, whose rows lie `strides` bytes apart, is better stored
    past the caches, which then need not read what is overwritten: it is large, and its rows begin at multiples of
    `ALIGN` (in an arena; nobody says so of XLA's buffers).
    """
    rows = (s.offset + offset, *strides)
    return s.buffer.kind == "temp" and 4 * math.prod(s.shape) >= STREAMED_BYTES and not any(x % ALIGN for x in rows)


def temporary(value: Value, halo: tuple[tuple[int, int], ...], apart: int = 0, narrow: str = "") -> Storage:
    """A fresh temporary for `value` of its shape, inside a border of `halo` (before, behind) zeroes along each axis.
    `apart`: elements between one run of the last axis and the next that nobody uses; `narrow`: as `Storage` has it.
    """
    outer = tuple(lo + n + hi for n, (lo, hi) in zip(value.shape, halo, strict=True))
    outer = (*outer[:-1], outer[-1] + apart) if apart else outer
    strides = dense_strides(outer, itemsize(narrow or "float32"))
    nbytes = strides[0] * outer[0] if outer else 4
    border = any(lo or hi for lo, hi in halo)
    buffer = Buffer("temp", nbytes, geometry=(value.shape, halo, apart, narrow) if border else None)
    first = sum(lo * s for (lo, _), s in zip(halo, strides, strict=True))
    return Storage(buffer, first, value.shape, strides, halo, narrow)


@dataclasses.dataclass(frozen=True)
class Lifetime:
    """A temporary and the first and last step (inclusive) that touch it."""

    buffer: Buffer
    first: int
    last: int


def place(lifetimes: Iterable[Lifetime]) -> tuple[dict[Buffer, int], int, int]:
    """(offset in bytes of each temporary, bytes to clear once, bytes in all): live buffers never overlap.

    Bordered buffers come first, each geometry in slots of its own; the rest, largest first, takes the lowest gap that
    is free during its life.
    """
    offsets: dict[Buffer, int] = {}
    top = 0
    slots: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    bordered = [x for x in lifetimes if x.buffer.geometry is not None]
    for life in sorted(bordered, key=lambda x: x.first):
        assert life.buffer.geometry is not None
        free = slots.setdefault(life.buffer.geometry, [])
        slot = next((i for i, (_, last) in enumerate(free) if last < life.first), None)
        if slot is None:
            free.append((top, life.last))
            offsets[life.buffer] = top
            top += _align(life.buffer.nbytes)
        else:
            offsets[life.buffer] = free[slot][0]
            free[slot] = (free[slot][0], life.last)
    cleared = end = top
    placed: list[tuple[int, int, Lifetime]] = []
    for life in sorted((x for x in lifetimes if x.buffer.geometry is None), key=lambda x: -x.buffer.nbytes):
        size, at = _align(life.buffer.nbytes), cleared
        busy = sorted((a, b) for a, b, other in placed if other.first <= life.last and life.first <= other.last)
        for a, b in busy:
            if at + size <= a:
                break
            at = max(at, b)
        placed.append((at, at + size, life))
        offsets[life.buffer] = at
        end = max(end, at + size)
    return offsets, cleared, end


def _align(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
