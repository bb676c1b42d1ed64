"""Runs of int8 of which none is negative, told from others as a kernel meets them.

    x >= 0:  two products of x u8 and w s8 are at most 2 * 127 * 128 together, which 16 bits have
    else:    such a sum may not fit, and each product is added in 32 bits

Both are exact. The first one takes three instructions where the other one takes twice as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from .simd import Builder

SIGNS = -0x7F7F7F80  # of the four bytes of a word


def any_negative(v: Builder, rows: Sequence[ir.Value], run: ir.Value) -> ir.Value:
    """Whether a byte is negative of the `run` words of 4 bytes that lie at each of these addresses."""
    b, size = v.b, 4 * v.vl
    whole, rest = b.sdiv(run, ir.Constant(run.type, v.vl)), b.srem(run, ir.Constant(run.type, v.vl))

    def seen(found: ir.Value, at: ir.Value) -> ir.Value:
        for row in rows:
            found = b.or_(found, v.bits(v.load(v.add(row, at))))
        return found

    with v.carry(whole, [v.iconst(0)]) as (k, (found,), done):
        done([seen(found, v.mul(k, size))])
    v.set_mask(rest)
    found = b.and_(seen(v.carried[0], v.mul(whole, size)), v.iconst(SIGNS))
    v.set_mask(None)
    typ = ir.IntType(8 * size)
    return b.icmp_unsigned("!=", b.bitcast(found, typ), ir.Constant(typ, 0))


def either(
    v: Builder, which: ir.Value, first: Callable[[], list[ir.Value]], second: Callable[[], list[ir.Value]]
) -> list[ir.Value]:
    """What `first` makes where `which` holds, what `second` makes elsewhere: each in blocks of its own."""
    b = v.b
    blocks, end = [b.append_basic_block(n) for n in ("then", "otherwise")], b.append_basic_block("joined")
    b.cbranch(which, *blocks)
    made = []
    for block, make in zip(blocks, (first, second), strict=True):
        b.position_at_end(block)
        made.append((make(), b.block))
        b.branch(end)
    b.position_at_end(end)
    out = []
    for values in zip(*(values for values, _ in made), strict=True):
        phi = b.phi(values[0].type)
        for value, (_, block) in zip(values, made, strict=True):
            phi.add_incoming(value, block)
        out.append(phi)
    return out


__all__ = ["SIGNS", "any_negative", "either"]
