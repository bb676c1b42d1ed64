"""Reductions over the last dimension fused with what surrounds them: softmax, layer norm, RMS norm, log-softmax, ...

A group over rows [..., C] is cut into passes: each pass walks the row once and computes all reductions whose
operands are known by then; the last one stores the result. A row stays in the L1 cache from pass to pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..program import Unsupported, Value
from ..rules.expressions import Expr, View
from ..rules.primitives import PRIMITIVES, UNKNOWN
from ..rules.rows import LEAVES, Rowwise, subexpression
from ..segment.assembly import Context
from ..segment.steps import Kernel
from ..segment.storage import Storage
from ..target import Target
from .elementwise import coalesce, nest, read
from .expressions import emit
from .nests import REDUCE, vectors
from .simd import Builder, i64

Pass = tuple[str, Expr, int]  # a reduction: how, its operand, its level
Step = Callable[[list[ir.Value], ir.Value, bool], list[ir.Value]]  # (totals, byte offset, masked) -> totals
UNROLL = 4  # accumulators of a reduction, so that its additions do not wait for each other
ITEM = 1 << 13  # elements worth a work item


def rowwise(ctx: Context, result: Value, row: Rowwise) -> None:
    """Appends the step of a recognised group that makes `result` [..., C].

    Raises `Unsupported` where the elements of a row of the result, or of an operand, do not lie side by side, and for
    more operands or loops than a nest has.
    """
    out, rank = ctx.output(result), len(result.shape)
    if out.strides[-1] != 4:
        raise Unsupported("a row whose elements do not lie side by side")
    operands = [(out, out.strides, 0), *(_contiguous(ctx, view, rank) for view in row.views)]
    kinds = tuple("v" if strides[-1] == 4 else "s" for _, strides, _ in operands[1:])
    dims, walks = coalesce(result.shape[:-1], [strides[:-1] for _, strides, _ in operands])
    if dims == [1]:
        walks = [[0] for _ in operands]
    views = [(s, tuple(w), offset) for (s, _, offset), w in zip(operands, walks, strict=True)]
    spec = ("rowwise", tuple((r.how, r.operand, r.level) for r in row.reductions), row.result, kinds)
    units = -(-result.shape[-1] // ctx.target.vl) * (len(row.result) + sum(len(r.operand) for r in row.reductions))
    nest(ctx, Kernel(spec), [result.shape[-1]], dims, views, 0, max(1, ITEM // result.shape[-1]), units)


def _contiguous(ctx: Context, view: View, rank: int) -> tuple[Storage, tuple[int, ...], int]:
    operand = read(ctx, view, rank)
    if operand[1][-1] not in (0, 4):
        raise Unsupported("a row whose elements do not lie side by side")
    return operand


@family("rowwise")
def kernel(name: str, key: Spec, target: Target) -> str:
    """("rowwise", reductions (how, operand, level), result, kinds): one row [C]. Operands: y, then those read ("v" or
    "s"). Words: C.
    """
    _, reductions, result, kinds = key
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    y, n = v.ld64(where, 0), v.ld64(words, 0)
    bases = [v.ld64(where, 1 + k) for k in range(len(kinds))]
    known: dict[int | str, ir.Value] = {}
    kept = _kept(reductions, result)

    def evaluate(expr: Expr, offset: ir.Value) -> ir.Value:
        operand = lambda k: v.load(v.add(bases[k], offset)) if kinds[k] == "v" else v.broadcast(bases[k])
        return emit(v, expr, operand, known)

    for level in sorted({r[2] for r in reductions}):
        chosen = [j for j, r in enumerate(reductions) if r[2] == level]

        def step(acc: list[ir.Value], offset: ir.Value, masked: bool, chosen: list[int] = chosen) -> list[ir.Value]:
            new = []
            for a, j in zip(acc, chosen, strict=True):
                how, operand, _ = reductions[j]
                start, combine = REDUCE[how]
                value = evaluate(operand, offset)
                if j == kept:
                    v.store(value, v.add(y, offset))
                new.append(combine(v, a, v.b.select(v.mask, value, v.const(start)) if masked else value))
            return new

        known.update(zip(chosen, _walk(v, n, step, [reductions[j][0] for j in chosen]), strict=True))
    final = result if kept is None else _with_kept(result, reductions[kept][1])

    def last(offset: ir.Value) -> None:
        if kept is not None:
            known["kept"] = v.load(v.add(y, offset))
        v.store(evaluate(final, offset), v.add(y, offset))

    vectors(v, n, last)
    return v.finish()


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
    for a, m, h in zip(acc, masked, how, strict=True):
        phi = v.b.phi(v.vec)
        phi.add_incoming(a, before)
        phi.add_incoming(m, inside)
        totals.append((phi, h))
    return [v.across(phi, functools.partial(REDUCE[h][1], v)) for phi, h in totals]


def _kept(reductions: Sequence[Pass], result: Expr) -> int | None:
    """The reduction whose operand is costly and needed again by the result: it is stored on the way (softmax's exp)."""
    for j, (_, operand, level) in enumerate(reductions):
        last = level == max(r[2] for r in reductions)
        if last and any(PRIMITIVES.get(n[0], UNKNOWN).costly for n in operand) and _find(result, operand) is not None:
            return j
    return None


def _find(expr: Expr, part: Expr) -> int | None:
    """The node of `expr` that computes the same as `part`."""

    def same(i: int, j: int) -> bool:
        a, b = expr[i], part[j]
        if a[0] != b[0] or len(a) != len(b):
            return False
        if a[0] in LEAVES:
            return a == b
        return all(same(x, y) for x, y in zip(a[1:], b[1:], strict=True))

    return next((i for i in range(len(expr)) if same(i, len(part) - 1)), None)


def _with_kept(expr: Expr, part: Expr) -> Expr:
    at = _find(expr, part)
    assert at is not None
    return subexpression((*expr[:at], ("red", "kept"), *expr[at + 1 :]), len(expr) - 1, {})
