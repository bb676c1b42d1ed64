"""Reductions over the last dimension fused with what surrounds them: softmax, norms, their gradients, ...

A group over rows [..., C] is cut into passes: each pass walks the row once and computes all reductions and all rows of
results whose operands are known by then. A row stays in the L1 cache from pass to pass; what a pass has stored, later
ones read again instead of computing it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..program import Unsupported, Value
from ..rules.expressions import Expr, View
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
from .nests import REDUCE, along, vectors
from .simd import F32, STORED_BYTES, Builder, i64

Step = Callable[[list[ir.Value], ir.Value, bool], list[ir.Value]]  # (totals, byte offset, masked) -> totals
UNROLL = 4  # accumulators of a reduction, so that its additions do not wait for each other
ITEM = 1 << 13  # elements worth a work item


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
    places = [(s, tuple(w), offset) for (s, _, offset), w in zip(views, walks, strict=True)]
    units = -(-columns // ctx.target.vl) * 2 * len(nodes)
    short = (True,) if columns < ctx.target.vl else ()
    spec = ("rowwise", nodes, results, kinds, *short)
    nest(ctx, Kernel(spec), [columns], dims, places, 0, max(1, ITEM // columns), units, len(outs))


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
    """("rowwise", nodes, results, kinds[, True]): one row [C]. Operands: a result for each of those nodes, then those
    read; all are rows ("v") or one number ("s"), and results may be rows of a type of narrower elements. Words: C. With
    the last entry a row is shorter than a vector.
    """
    _, nodes, results, kinds, *short = key
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    bases = [v.ld64(where, k) for k in range(len(kinds))]
    columns = v.ld64(words, 0)
    if short:
        v.set_mask(columns)
    _Row(v, nodes, results, kinds, bases, columns).passes()
    return v.finish()


@dataclasses.dataclass
class _Row:
    """The code of one row. `fixed`: vectors of nodes that are one number a row, as far as they are there. `stored`:
    node -> the address of its row, written by a pass that is over. `divisors`: what elements are multiplied with that
    are divided by such a number.
    """

    v: Builder
    nodes: Expr
    results: tuple[int, ...]
    kinds: tuple[str, ...]
    bases: list[ir.Value]
    columns: ir.Value

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

    def passes(self) -> None:
        """All passes, then the results that are one number."""
        makes = [self.level[n] for n, _ in (*self.rows, *self.narrow)] + [self.level[n] - 1 for n in self.reductions]
        last = max(makes, default=-1)
        for number in range(last + 1):
            self._one(number, last)
        for n, k in self.numbers:
            self._fix([n])
            self.v.b.store(self.v.b.extract_element(self.fixed[n], i64(0)), self.v.ptr(self.bases[k], F32))

    def _one(self, number: int, last: int) -> None:
        """One pass: the reductions and rows of its level."""
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

        def step(acc: list[ir.Value], offset: ir.Value, masked: bool) -> list[ir.Value]:
            env = self._values(inside, wanted, offset)
            for n, base in (*rows, *kept):
                self.v.store(env[n], self.v.add(base, offset))
            for n, k in narrow:
                self.v.store_as(env[n], self.v.add(self.bases[k], along(self.v, self.kinds[k], offset)), self.kinds[k])
            return [self._joined(n, a, env, masked) for n, a in zip(sums, acc, strict=True)]

        how = [self._how(n) for n in sums]
        if self.v.mask is not None:  # a part of a vector is the row
            totals = step([self.v.const(REDUCE[h][0]) for h in how], i64(0), True)
            self.fixed.update(zip(sums, _across(self.v, totals, how), strict=True))
        elif sums:
            self.fixed.update(zip(sums, _walk(self.v, self.columns, step, how), strict=True))
        elif rows or narrow:
            vectors(self.v, self.columns, lambda offset: step([], offset, False))
        self.stored.update((n, base) for n, base in (*kept, *rows) if not self.constant[n])

    def _values(self, inside: Sequence[int], wanted: Sequence[int], offset: ir.Value) -> dict[int, ir.Value]:
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

    def _how(self, n: int) -> str:
        return str(self.nodes[n][0]).removeprefix(PREFIX)

    def _joined(self, n: int, total: ir.Value, env: dict[int, ir.Value], masked: bool) -> ir.Value:
        """A reduction's total with one vector more."""
        v, (start, combine) = self.v, REDUCE[self._how(n)]
        value = env[operands(self.nodes[n])[0]]
        return combine(v, total, v.b.select(v.mask, value, v.const(start)) if masked else value)

    def _kept(self, sums: Sequence[int], last: int) -> list[tuple[int, ir.Value]]:
        """An operand of a reduction that is costly and needed again (softmax's exp): a row that is written in the last
        pass holds it until then.
        """
        results = {n for n, _ in (*self.rows, *self.narrow)}
        room = [(n, k) for n, k in self.rows if self.level[n] == last]
        later = [operands(self.nodes[n])[0] for n in self.reductions if n not in sums and n not in self.fixed]
        later += [n for n in results if self.level[n] > min(self.level[s] - 1 for s in sums)] if sums else []
        again = set(needed(self.nodes, later, self.stored))
        held = set(self.stored.values())
        for s in sums:
            n = operands(self.nodes[s])[0]
            if n in again and n not in results and not self.constant[n] and self._costly(n):
                free = [self.bases[k] for _, k in room if self.bases[k] not in held]
                return [(n, free[-1])] if free else []
        return []

    def _costly(self, n: int) -> bool:
        """Whether computing a node takes longer than reading it."""
        inside = needed(self.nodes, [n], self.stored)
        return any(PRIMITIVES.get(str(self.nodes[i][0]), UNKNOWN).costly for i in inside if not self.constant[i])


def _walk(v: Builder, n: ir.Value, step: Step, how: list[str]) -> list[ir.Value]:
    """Runs `step` over a row of `n` floats with UNROLL accumulators for each reduction, which joins as `how` says, then
    over the masked rest; totals are vectors of one value.
    """
    width, start = len(how), [v.const(REDUCE[h][0]) for h in how]
    vecs, rest = v.b.sdiv(n, i64(v.vl)), v.b.srem(n, i64(v.vl))
    rounds, single = v.b.sdiv(vecs, i64(UNROLL)), v.b.srem(vecs, i64(UNROLL))
    with v.carry(rounds, start * UNROLL) as (i, acc, done):
        new = []
        for u in range(UNROLL):
            new += step(acc[u * width : (u + 1) * width], v.add(v.mul(i, UNROLL * 4 * v.vl), u * 4 * v.vl), False)
        done(new)
    acc = v.carried
    joined = list(acc[:width])
    for u in range(1, UNROLL):
        joined = [REDUCE[h][1](v, a, b) for h, a, b in zip(how, joined, acc[u * width : (u + 1) * width], strict=True)]
    with v.carry(single, joined) as (i, acc, done):
        done(step(acc, v.add(v.mul(rounds, UNROLL * 4 * v.vl), v.mul(i, 4 * v.vl)), False))
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
