"""How the sums of a tile end: what they begin with, the epilogue that is applied to them, and where results are stored.

The words are those of `kernels.gemm`, whose micro-kernel is one of those that end so.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import llvmlite.ir as ir

from ..rules.expressions import Expr
from .expressions import emit_nodes
from .simd import Builder
from .vectors import STORED_BYTES, i64
from .whole_bytes import TOGETHER, Haste, store, store_in

Written = tuple[str, int, bool]  # type of its elements, node of the expression; whether the result itself is stored
BEGIN = "begin"
ROWS = 32  # address slots reserved for each operand; MR never exceeds it


@dataclasses.dataclass(frozen=True)
class Block:
    """The results of a tile: vectors `0..nv` of `mr` pixels, at `shift` bytes from the addresses that `rows` lists.

    `lanes`: how many of the last vector (None: all).
    """

    mr: int
    nv: int
    lanes: ir.Value | None
    rows: ir.Value
    shift: ir.Value

    def mask(self, v: Builder, i: int) -> None:
        """Has only the lanes touched that vector `i` has."""
        v.set_mask(self.lanes if i == self.nv - 1 else None)


@dataclasses.dataclass(frozen=True)
class Epilogue:
    """What is applied to sums, the addresses of its operands and how far on this tile's lie. `row`: bytes from where a
    pixel's addresses are listed to where those of the first pixel of the block are. `numbers`: operands that are one
    number for all pixels, by their number, where they were read before.
    """

    expr: Expr
    kinds: tuple[str | Written, ...]
    rows: ir.Value
    shifts: list[ir.Value]
    row: ir.Value | int = 0
    numbers: Mapping[int, ir.Value] = dataclasses.field(default_factory=dict)


def numbers_of(v: Builder, kinds: Sequence[str | Written], operands: ir.Value) -> dict[int, ir.Value]:
    """The operands that are one number for all pixels, in every lane. What follows from them is computed once."""
    return {k: v.broadcast(v.ld64(operands, (k - 1) * ROWS)) for k, kind in enumerate(kinds, 1) if kind == "p"}


def begun(v: Builder, block: Block, kinds: Sequence[str | Written], operands: ir.Value) -> list[ir.Value]:
    """What the sums of a pixel begin with, vector by vector."""
    if BEGIN not in kinds:
        return [v.const(0.0)] * block.nv
    base, found = v.ld64(operands, kinds.index(BEGIN) * ROWS), []
    for i in range(block.nv):
        block.mask(v, i)
        found.append(v.load(v.add(base, i * v.vl * 4)))
    v.set_mask(None)
    return found


def partial_sums(v: Builder, block: Block, first: ir.Value, begin: Sequence[ir.Value] | None = None) -> list[ir.Value]:
    """What the sums of a pixel begin with for the first block of the reduction (`begin`; None: zeroes), else what y has
    of them.
    """
    b = v.b
    entry = b.block
    again, go = b.append_basic_block("again"), b.append_basic_block("go")
    b.cbranch(b.icmp_signed("!=", first, i64(0)), go, again)
    b.position_at_end(again)
    loaded = []
    for r in range(block.mr):
        row = v.add(v.ld64(block.rows, r), block.shift)
        for i in range(block.nv):
            block.mask(v, i)
            loaded.append(v.load(v.add(row, i * v.vl * 4)))
    v.set_mask(None)
    b.branch(go)
    b.position_at_end(go)
    acc = []
    for number, value in enumerate(loaded):
        phi = b.phi(v.vec)
        phi.add_incoming(begin[number % block.nv] if begin else v.const(0.0), entry)
        phi.add_incoming(value, again)
        acc.append(phi)
    return acc


def finish(
    v: Builder, block: Block, acc: list[ir.Value], tail: Epilogue, last: ir.Value, haste: Haste | None = None
) -> None:
    """Stores partial sums, or, after the last block of the reduction, the epilogue's result."""
    b = v.b
    partial, final, end = (b.append_basic_block(n) for n in ("partial", "final", "end"))
    b.cbranch(b.icmp_signed("!=", last, i64(0)), final, partial)
    for place, *apply in ((partial, None, None), (final, tail, haste)):
        b.position_at_end(place)
        _store(v, block, acc, *apply)
        v.set_mask(None)
        b.branch(end)
    b.position_at_end(end)


def _store(v: Builder, block: Block, acc: list[ir.Value], tail: Epilogue | None, haste: Haste | None = None) -> None:
    """Stores a tile: the sums, or what the epilogue makes of them."""
    whole = block.nv - (block.lanes is not None)
    groups = [*side_by_side(whole, tail.kinds if tail else ()), *(range(i, i + 1) for i in range(whole, block.nv))]

    def write(haste: Haste | None) -> None:
        together = dataclasses.replace(tail, expr=haste.expr, kinds=haste.kinds) if haste and tail else tail
        for group in groups:
            block.mask(v, group[-1])
            with v.stored_together():
                _finish_vectors(v, block, acc, together if len(group) > 1 else tail, group)

    store_in(v, haste, write)


def _finish_vectors(v: Builder, block: Block, acc: list[ir.Value], tail: Epilogue | None, group: range) -> None:
    """Stores some vectors of every pixel, side by side: the sums, or what the epilogue makes of them."""
    shared = {(k, i): number for k, number in tail.numbers.items() for i in group} if tail else {}
    for r in range(block.mr):
        values = {i: acc[r * block.nv + i] for i in group}
        if tail is not None:
            made = results_of(tail.expr, tail.kinds)
            same = in_common(tail.kinds)
            nodes = [emit_nodes(v, tail.expr, _operands(v, tail, r, i, values[i], shared), made, same) for i in group]
            values = dict(zip(group, (n[-1] for n in nodes), strict=True))
            store_forms(v, tail.kinds, nodes, functools.partial(_form_at, v, tail, r, group[0]))
        if tail is None or stores_result(tail.kinds):
            for i, value in values.items():
                v.store(value, v.add(v.ld64(block.rows, r), block.shift, i * v.vl * 4))


def side_by_side(count: int, kinds: Sequence[str | Written]) -> list[range]:
    """The numbers of `count` whole vectors that an epilogue stores at once: several where one vector holds theirs."""
    step = max((TOGETHER.get(kind[0], 1) for kind in kinds if isinstance(kind, tuple)), default=1)
    return [range(i, min(i + step, count)) for i in range(0, count, step)]


def in_common(kinds: Sequence[str | Written]) -> frozenset[int]:
    """The operands of an epilogue that all pixels have in common, by their numbers."""
    return frozenset(k for k, kind in enumerate(kinds, 1) if kind in ("c", "p"))


def stores_result(kinds: Sequence[str | Written]) -> bool:
    """Whether an epilogue's own result is stored, beside or without forms of it."""
    return all(kind[2] for kind in kinds if isinstance(kind, tuple))


def results_of(expr: Expr, kinds: Sequence[str | Written]) -> list[int]:
    """The nodes of an epilogue that are stored."""
    return [kind[1] for kind in kinds if isinstance(kind, tuple)] + [len(expr) - 1] * stores_result(kinds)


def store_forms(
    v: Builder,
    kinds: Sequence[str | Written],
    nodes: Sequence[Sequence[ir.Value]],
    places: Callable[[int, int], Sequence[ir.Value]],
) -> None:
    """Stores the forms among an epilogue's operands, given all nodes of each of some vectors; `places`: (number of the
    operand, bytes of its elements) -> where they go, as many to each place, side by side.
    """
    for k, kind in enumerate(kinds):
        if isinstance(kind, tuple):
            dtype, node, _ = kind
            store(v, [of_one[node] for of_one in nodes], places(k, STORED_BYTES[dtype]), dtype)


def _form_at(v: Builder, tail: Epilogue, r: int, i: int, k: int, nbytes: int) -> list[ir.Value]:
    """Where vector `i` of pixel `r` goes in operand `k`, whose elements have so many bytes."""
    base = v.add(v.ld64(v.add(tail.rows, tail.row), k * ROWS + r), tail.shifts[k])
    return [v.add(base, i * v.vl * nbytes)]


def _operands(
    v: Builder, tail: Epilogue, r: int, i: int, acc: ir.Value, shared: dict[tuple[int, int], ir.Value]
) -> Callable[[int], ir.Value]:
    """What an operand of the epilogue is at vector `i` of pixel `r`; `shared`: those that do not change by pixel, by
    vector.
    """

    def operand(k: int) -> ir.Value:
        if k == 0:
            return acc
        kind = tail.kinds[k - 1]
        per_pixel = kind in ("v", "h", "s")
        if not per_pixel and (k, i) in shared:
            return shared[k, i]
        if per_pixel:
            base = v.add(v.ld64(v.add(tail.rows, tail.row), (k - 1) * ROWS + r), tail.shifts[k - 1])
        else:
            base = v.ld64(tail.rows, (k - 1) * ROWS)
        if kind == "h":
            value = v.load_stored(v.add(base, i * v.vl * STORED_BYTES["bfloat16"]), "bfloat16")
        else:
            value = v.load(v.add(base, i * v.vl * 4)) if kind in ("v", "c") else v.broadcast(base)
        if not per_pixel:
            shared[k, i] = value
        return value

    return operand
