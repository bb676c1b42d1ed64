"""Reductions over the last dimension fused with what surrounds them: softmax, norms, their gradients, ...

A group over rows [..., C] is cut into passes: each pass walks the row once and computes all reductions and all rows of
results whose operands are known by then. A row stays in the L1 cache from pass to pass; what a pass has stored, later
ones read again instead of computing it. Two rows go through their passes together: one row's totals, which its next
pass waits for, are on their way while the other's are computed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..program import Unsupported, Value
from ..rules.expressions import Expr, View, primitive_of
from ..rules.primitives import PRIMITIVES, UNKNOWN
from ..rules.rows import PREFIX, Rowwise, levels, needed, operands
from ..segment.context import Context
from ..segment.steps import Kernel
from ..segment.storage import Operand
from ..target import Target
from .elementary import factors
from .elementwise import coalesce, nest, read
from .expressions import emit_node
from .forms import PassMaker
from .nests import LAST, REDUCE, along, minimum, vectors
from .simd import Builder
from .vectors import F32, STORED_BYTES, i64

Step = Callable[[list[ir.Value], ir.Value, bool], list[ir.Value]]  # (totals, byte offset, masked) -> totals
UNROLL = 4  # vectors that a turn takes, each with accumulators of its own: additions do not wait for each other
TOGETHER = 2  # rows
ITEM = 1 << 13  # elements worth a work item
HELD = 1 << 11  # elements of a row that a kernel has room for on its stack


def rowwise(ctx: Context, results: Sequence[Value], row: Rowwise) -> None:
    """Appends the step of a recognised group that makes `results`, in the order of `row`.

    Raises `Unsupported` where the elements of a row of a result, or of an operand, do not lie side by side, and for
    more operands or loops than a nest has.
    """
    rank = len(row.shape)
    made = [_result(ctx, v, whole, rank) for v, whole in zip(results, row.whole, strict=True)]
    read = [_contiguous(ctx, view, rank) for view in row.views]
    again = lambda nodes, results, outs, forms: _append(ctx, row.shape, nodes, results, outs, read, forms)
    before = len(ctx.steps)
    again(row.nodes, row.results, made, ())
    if row.whole == (True,) and len(ctx.steps) > before:
        maker = PassMaker(ctx, before, row.nodes, row.results[0], made[0], tuple(read), row.shape, again)
        ctx.makers.note(before, maker)


def _append(
    ctx: Context,
    shape: tuple[int, ...],
    nodes: Expr,
    results: tuple[int, ...],
    outs: Sequence[Operand],
    read: Sequence[Operand],
    forms: tuple[str, ...],
) -> None:
    """As `rowwise`; the last results are stored as elements of the types `forms`."""
    columns, views, whole = shape[-1], [*outs, *read], len(outs) - len(forms)
    kinds = tuple("v" if strides[-1] == 4 else "s" for _, strides, _ in views)
    kinds = (*kinds[:whole], *forms, *kinds[len(outs) :])
    dims, walks = coalesce(shape[:-1], [strides[:-1] for _, strides, _ in views])
    if dims == [1]:
        walks = [[0] for _ in views]
    rows, together = dims[-1], min(TOGETHER, dims[-1])
    dims = [*dims[:-1], -(-rows // together)]
    places = [(s, (*w[:-1], together * w[-1]), offset) for (s, _, offset), w in zip(views, walks, strict=True)]
    units = -(-columns // ctx.target.vl) * 2 * len(nodes) * together
    full = "v" in kinds[: len(outs)] or columns > HELD  # there is a row to hold things in, or none has room for them
    spec = ("rowwise", nodes, results, kinds, together, columns < ctx.target.vl, 0 if full else _room(columns))
    words, chunk = [columns, rows, *(w[-1] for w in walks)], max(1, ITEM // (columns * together))
    nest(ctx, Kernel(spec), words, dims, places, 0, chunk, units, len(outs))


def _room(columns: int) -> int:
    """Elements of a kernel's room for rows of so many ones: few kernels serve all lengths."""
    return max(64, 1 << (columns - 1).bit_length())


def _result(ctx: Context, v: Value, whole: bool, rank: int) -> Operand:
    """Where a result is written: rows, or one number each."""
    s = ctx.output(v)
    if whole and s.strides[-1] != 4:
        raise Unsupported("a row whose elements do not lie side by side")
    return s, s.strides if whole else (*s.strides[: rank - 1], 0), 0


def _contiguous(ctx: Context, view: View, rank: int) -> Operand:
    operand = read(ctx, view, rank)
    if operand[1][-1] not in (0, 4):
        raise Unsupported("a row whose elements do not lie side by side")
    return operand


@family("rowwise")
def kernel(name: str, key: Spec, target: Target) -> str:
    """("rowwise", nodes, results, kinds, together, short, room): so many rows [C]. Operands: a result for each of those
    nodes, then those read; all are rows ("v") or one number ("s"), and results may be rows of a type of narrower
    elements. Words: C, rows along the innermost loop, bytes from a row to the next of each operand. Rows that are
    `short` have fewer elements than a vector. Where fewer rows are left the last one is computed several times. A pass
    may hold `room` elements of each row for later ones (0: where a result has a row of its own).
    """
    _, nodes, results, kinds, together, short, room = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    columns, left = v.ld64(words, 0), v.b.sub(v.ld64(words, 1), v.mul(v.ld64(index, LAST), together))
    bases = [v.ld64(where, k) for k in range(len(kinds))]
    steps = [v.ld64(words, 2 + k) for k in range(len(kinds))]
    if short:
        v.set_mask(columns)
    rows = []
    for r in range(together):
        at = minimum(v, i64(r), v.add(left, -1)) if r else i64(0)
        places = [v.add(b, v.b.mul(step, at)) if r else b for b, step in zip(bases, steps, strict=True)]
        rows.append(_Row(v, nodes, results, kinds, places, columns, v.local(room) if room else None))
    _passes(rows)
    return v.finish()


def _passes(rows: Sequence[_Row]) -> None:
    """All passes of some rows, then the results that are one number."""
    last = rows[0].last
    for number in range(last + 1):
        _walked([row.part(number, last) for row in rows])
    for row in rows:
        row.store_numbers()


def _walked(parts: Sequence[_Pass]) -> None:
    """One pass over some rows. What a place has is read for all of them before anything is stored: they may be one."""
    v, count = parts[0].row.v, len(parts[0].sums)

    def step(acc: list[ir.Value], offset: ir.Value, masked: bool) -> list[ir.Value]:
        found = [p.row.values(p.inside, p.wanted, offset) for p in parts]
        for p, env in zip(parts, found, strict=True):
            p.store(env, offset)
        return [
            p.joined(k, acc[r * count + k], env, masked)
            for r, (p, env) in enumerate(zip(parts, found, strict=True))
            for k in range(count)
        ]

    how = [h for p in parts for h in p.how]
    totals: list[ir.Value] = []
    if v.mask is not None:  # a part of a vector is the row
        totals = _across(v, step([v.const(REDUCE[h][0]) for h in how], i64(0), True), how)
    elif how:
        totals = _walk(v, parts[0].row.columns, step, how, max(1, UNROLL // len(parts)))
    elif parts[0].writes:
        vectors(v, parts[0].row.columns, lambda offset: step([], offset, False))
    for r, p in enumerate(parts):
        p.end(totals[r * count : (r + 1) * count])


@dataclasses.dataclass
class _Row:
    """The code of one row. `fixed`: vectors of nodes that are one number a row, as far as they are there. `stored`:
    node -> the address of its row, written by a pass that is over. `divisors`: what elements are multiplied with that
    are divided by such a number. `room`: the address of a row of the kernel's own.
    """

    v: Builder
    nodes: Expr
    results: tuple[int, ...]
    kinds: tuple[str, ...]
    bases: list[ir.Value]
    columns: ir.Value
    room: ir.Value | None

    def __post_init__(self) -> None:
        self.fixed: dict[int, ir.Value] = {}
        self.divisors: dict[int, tuple[ir.Value, ...]] = {}
        self.stored: dict[int, ir.Value] = {}
        self.level = levels(self.nodes)
        self.constant = self._constants()
        made = list(enumerate(self.results))
        self.rows = [(n, k) for k, n in made if self.kinds[k] == "v"]
        self.narrow = [(n, k) for k, n in made if self.kinds[k] in STORED_BYTES]
        self.numbers = [(n, k) for k, n in made if self.kinds[k] == "s"]
        self.reductions = [n for n, node in enumerate(self.nodes) if node[0].startswith(PREFIX)]

    def _constants(self) -> list[bool]:
        """Which nodes are the same all along the row."""
        found: list[bool] = []
        for node in self.nodes:
            head, *args = node
            if head == "in":
                found.append(self.kinds[len(self.results) + args[0]] == "s")
            else:
                found.append(head.startswith(PREFIX) or head == "lit" or all(found[a] for a in operands(node)))
        return found

    @property
    def last(self) -> int:
        """The number of the last pass (-1: there is none)."""
        makes = [self.level[n] for n, _ in (*self.rows, *self.narrow)] + [self.level[n] - 1 for n in self.reductions]
        return max(makes, default=-1)

    def store_numbers(self) -> None:
        """Stores the results that are one number."""
        for n, k in self.numbers:
            self._fix([n])
            self.v.b.store(self.v.b.extract_element(self.fixed[n], i64(0)), self.v.ptr(self.bases[k], F32))

    def part(self, number: int, last: int) -> _Pass:
        """One pass: the reductions and rows of its level. Computes the numbers that it needs."""
        sums = [n for n in self.reductions if self.level[n] - 1 == number]
        rows = [(n, self.bases[k]) for n, k in self.rows if self.level[n] == number]
        narrow = [(n, k) for n, k in self.narrow if self.level[n] == number]
        kept = self._kept(sums, last) if number < last else []
        wanted = [*(operands(self.nodes[n])[0] for n in sums), *(n for n, _ in (*rows, *narrow))]
        inside = needed(self.nodes, wanted, self.stored)
        self._fix([n for n in inside if self.constant[n]] + [n for n in wanted if self.constant[n]])
        inside = [n for n in inside if not self.constant[n]]
        for by in map(self._divisor, inside):
            if by is not None and by not in self.divisors:
                self.divisors[by] = factors(self.v, self.fixed[by])
        return _Pass(self, sums, [*rows, *kept], narrow, wanted, inside)

    def values(self, inside: Sequence[int], wanted: Sequence[int], offset: ir.Value) -> dict[int, ir.Value]:
        """The vectors of nodes at an offset; those that are stored are loaded."""
        env = dict(self.fixed)
        operand = functools.partial(self._operand, offset)
        read = {a for n in inside for a in operands(self.nodes[n])} | set(wanted)
        for n in sorted(read & set(self.stored)):
            env[n] = self.v.load(self.v.add(self.stored[n], offset))
        for n in inside:
            if (by := self._divisor(n)) is not None:
                env[n] = functools.reduce(self.v.b.fmul, self.divisors[by], env[operands(self.nodes[n])[0]])
            else:
                env[n] = emit_node(self.v, self.nodes[n], operand, env)
        return env

    def _divisor(self, n: int) -> int | None:
        """The node that node `n` divides elements by, where it is one number a row that is not known before."""
        head, *_ = self.nodes[n]
        by = operands(self.nodes[n])[1] if head == "div" else None
        return by if by is not None and self.constant[by] and self.nodes[by][0] != "lit" else None

    def _operand(self, offset: ir.Value, k: int) -> ir.Value:
        place = len(self.results) + k
        if self.kinds[place] == "s":
            return self.v.broadcast(self.bases[place])
        return self.v.load(self.v.add(self.bases[place], offset))

    def _fix(self, wanted: Sequence[int]) -> None:
        """Computes nodes that are one number a row, before a loop."""
        for n in needed(self.nodes, wanted, self.fixed):
            self.fixed[n] = emit_node(self.v, self.nodes[n], functools.partial(self._operand, i64(0)), self.fixed)

    def _kept(self, sums: Sequence[int], last: int) -> list[tuple[int, ir.Value]]:
        """An operand of a reduction that is costly and needed again (softmax's exp): a row that is written in the last
        pass holds it until then, or one of the kernel's own.
        """
        results = {n for n, _ in (*self.rows, *self.narrow)}
        rows = [self.bases[k] for n, k in self.rows if self.level[n] == last] if self.room is None else [self.room]
        later = [operands(self.nodes[n])[0] for n in self.reductions if n not in sums and n not in self.fixed]
        later += [n for n in results if self.level[n] > min(self.level[s] - 1 for s in sums)] if sums else []
        again = set(needed(self.nodes, later, self.stored))
        held = set(self.stored.values())
        for s in sums:
            n = operands(self.nodes[s])[0]
            if n in again and n not in results and not self.constant[n] and self._costly(n):
                free = [base for base in rows if base not in held]
                return [(n, free[-1])] if free else []
        return []

    def _costly(self, n: int) -> bool:
        """Whether computing a node takes longer than reading it."""
        inside = needed(self.nodes, [n], self.stored)
        return any(PRIMITIVES.get(primitive_of(self.nodes[i]), UNKNOWN).costly for i in inside if not self.constant[i])


@dataclasses.dataclass
class _Pass:
    """One pass over one row: the reductions `sums` that it finds, (node, address) of the `rows` that it stores,
    (node, result) of the `narrow` ones, and the nodes that are `wanted` and computed `inside` for it.
    """

    row: _Row
    sums: list[int]
    rows: list[tuple[int, ir.Value]]
    narrow: list[tuple[int, int]]
    wanted: list[int]
    inside: list[int]

    @property
    def how(self) -> list[str]:
        """How its reductions join."""
        return [str(self.row.nodes[n][0]).removeprefix(PREFIX) for n in self.sums]

    @property
    def writes(self) -> bool:
        """Whether it stores anything."""
        return bool(self.rows or self.narrow)

    def store(self, env: Mapping[int, ir.Value], offset: ir.Value) -> None:
        """Stores what it makes at an offset."""
        v, row = self.row.v, self.row
        for n, base in self.rows:
            v.store(env[n], v.add(base, offset))
        for n, k in self.narrow:
            v.store_as(env[n], v.add(row.bases[k], along(v, row.kinds[k], offset)), row.kinds[k])

    def joined(self, k: int, total: ir.Value, env: Mapping[int, ir.Value], masked: bool) -> ir.Value:
        """The total of reduction number `k` with one vector more."""
        v, (start, combine) = self.row.v, REDUCE[self.how[k]]
        value = env[operands(self.row.nodes[self.sums[k]])[0]]
        return combine(v, total, v.b.select(v.mask, value, v.const(start)) if masked else value)

    def end(self, totals: Sequence[ir.Value]) -> None:
        """Notes what is there behind it."""
        self.row.fixed.update(zip(self.sums, totals, strict=True))
        self.row.stored.update((n, base) for n, base in self.rows if not self.row.constant[n])


def _walk(v: Builder, n: ir.Value, step: Step, how: list[str], unroll: int) -> list[ir.Value]:
    """Runs `step` over a row of `n` floats with `unroll` accumulators for each reduction, which joins as `how` says,
    then over the masked rest; totals are vectors of one value.
    """
    width, start = len(how), [v.const(REDUCE[h][0]) for h in how]
    vecs, rest = v.b.sdiv(n, i64(v.vl)), v.b.srem(n, i64(v.vl))
    rounds, single = v.b.sdiv(vecs, i64(unroll)), v.b.srem(vecs, i64(unroll))
    with v.carry(rounds, start * unroll) as (i, acc, done):
        new = []
        for u in range(unroll):
            new += step(acc[u * width : (u + 1) * width], v.add(v.mul(i, unroll * 4 * v.vl), u * 4 * v.vl), False)
        done(new)
    acc = v.carried
    joined = list(acc[:width])
    for u in range(1, unroll):
        joined = [REDUCE[h][1](v, a, b) for h, a, b in zip(how, joined, acc[u * width : (u + 1) * width], strict=True)]
    with v.carry(single, joined) as (i, acc, done):
        done(step(acc, v.add(v.mul(rounds, unroll * 4 * v.vl), v.mul(i, 4 * v.vl)), False))
    acc = v.carried
    has_rest = v.b.icmp_signed(">", rest, i64(0))
    before = v.b.block
    with v.b.if_then(has_rest):
        v.set_mask(rest)
        masked = step(acc, v.mul(vecs, 4 * v.vl), True)
        v.set_mask(None)
        inside = v.b.block
    totals = []
    for a, m in zip(acc, masked, strict=True):
        phi = v.b.phi(v.vec)
        phi.add_incoming(a, before)
        phi.add_incoming(m, inside)
        totals.append(phi)
    return _across(v, totals, how)


def _across(v: Builder, totals: Sequence[ir.Value], how: Sequence[str]) -> list[ir.Value]:
    """Vectors of which each lane is the total of all."""
    return [v.across(x, functools.partial(REDUCE[h][1], v)) for x, h in zip(totals, how, strict=True)]


__all__ = ["rowwise"]
