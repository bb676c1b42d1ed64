"""How a thread reads a large matrix once: as few streams, row by row.

Rows that are read together lie far apart, so that each stream goes on where a row ends, and an odd number of rows
apart, so that they do not meet in the same sets of a cache. With long vectors what lies far ahead is asked for into
the second cache: the first one waits for few lines at a time, and half the bandwidth is lost where they come from
memory. Where they come from the last cache of a Zen 4, fewer streams and nothing asked for are faster. On a Zen 5
fewer streams are from memory too, 49 GB/s instead of 39 with two threads; but not where elements have one byte or less.
There what lies a page ahead is asked for into the first cache: two threads read 215 GB/s from the last cache, 190
without, and as much from memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import llvmlite.ir as ir

from ..program import Value, itemsize
from ..segment.context import Context
from ..segment.steps import Early, Ref
from .simd import Builder
from .vectors import i64

MANY = 32  # rows of a stream


@dataclasses.dataclass(frozen=True)
class Reading:
    """`streams`: rows that are read together; `ahead`: bytes by which each of them is asked for in advance, and into
    which cache (`prefetch`).
    """

    streams: int
    ahead: tuple[tuple[int, int], ...]

    def apart(self, v: Builder, rows: ir.Value) -> ir.Value:
        """How many of so many rows each stream has, the distance from one to the next: an odd number where they are
        many.
        """
        each = v.b.sdiv(rows, i64(self.streams))
        odd = v.b.or_(v.b.sub(each, i64(1)), i64(1))
        return v.b.select(v.b.icmp_signed("<", each, i64(MANY)), each, odd)

    def ask(self, v: Builder, addresses: Sequence[ir.Value], spread: ir.Value) -> None:
        """Asks for what streams at these addresses read later; `spread`: how far apart rows lie, in lengths of a
        row.
        """
        for ahead, cache in self.ahead:
            further = v.mul(spread, ahead)
            for a in addresses:
                v.prefetch(v.add(a, further), cache)


#: by where a matrix comes from: memory, by vectors of 16 lanes and by shorter ones (on Zen 3 lines that are asked for
#: into the second cache come two to three times as slowly), and the last cache; or for cores that are `steady`
READINGS = {
    "far": Reading(8, ((4096, 2), (256, 3))),
    "near": Reading(8, ((256, 3),)),
    "cached": Reading(4, ()),
    "steady": Reading(4, ((4096, 3),)),
}


def reading_of(ctx: Context, w: Value) -> str:
    """How a matrix is read: its name in `READINGS`. The constants of a program that all fit the last cache together
    stay in it from call to call.
    """
    if ctx.target.steady and itemsize(w.dtype) > 1:
        return "steady"
    if w in ctx.consts and sum(c.nbytes for c in ctx.program.consts) <= ctx.target.resident:
        return "cached"
    return "far" if ctx.target.vl == 16 else "near"


def in_streams(where: Ref, row: int, rows: int, total: int, streams: int) -> Early:
    """What items of `rows` rows each read of a matrix of so many of `row` bytes, that are read together as
    `Reading.apart` has it.
    """
    each = rows // streams
    distance = each if each < MANY else (each - 1) | 1
    together = (streams, distance * row) if distance else (1, 0)
    return Early(where, rows * row, total * row, *together)


__all__ = ["READINGS", "Reading", "in_streams", "reading_of"]
