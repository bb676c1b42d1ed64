"""A group -> its steps: its anchor's by the family that the table of primitives names, and what of the tail is left."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

from ..program import Group, Op, Unsupported
from ..rules.columns import columns
from ..rules.primitives import is_reduction, primitive
from ..rules.rows import recognise
from ..rules.sums import summed
from ..segment.context import Context
from . import elementwise
from .columns import sweep
from .indexed import sum_rows
from .pairs import check_sums
from .rowwise import rowwise

Rule = Callable[[Context, Op, tuple[Op, ...]], tuple[Op, ...]]  # returns what of the tail is still to be done


@functools.cache
def family(name: str) -> Rule:
    """The rule of a kernel family by its name: ".module.function" beside this file, or an absolute one.

    Raises `ImportError` or `AttributeError` for a name of nothing.
    """
    module, _, function = name.rpartition(".")
    rule: Rule = getattr(importlib.import_module(module, __package__), function)
    return rule


def rule_of(op: Op) -> Rule | None:
    """The rule that makes an operation's steps; None where it has none of its own."""
    name = primitive(op).kernel
    return family(name) if name else None


def lower_group(ctx: Context, group: Group) -> None:
    """Appends the steps of one group. A kernel that cannot write into a part of a concatenation or inside a border
    writes beside it, and a copy brings the result there. Reductions that no kernel takes with what they read (a part of
    a layer may have one channel) are computed operation by operation. Raises `Unsupported`, with the operation's name,
    for what kernels cannot express.
    """
    several = group.tail and any(map(is_reduction, group.ops))
    *first, last = (_lower, _beside, _one_by_one) if several else (_lower, _beside)
    for way in first:
        before = ctx.mark()
        try:
            return way(ctx, group)
        except Unsupported:
            ctx.back(before)
    return last(ctx, group)


def _beside(ctx: Context, group: Group) -> None:
    """The steps of a group whose results lie beside their places, and copies that bring them there."""
    strided = {v: place for v in group.outs if not (place := ctx.output(v)).dense}
    for v in strided:
        ctx.place(v, ctx.scratch(v.shape))
    _lower(ctx, group)
    for v, place in strided.items():
        elementwise.copy(ctx, ctx.storage(v), place)
        ctx.place(v, place)


def _one_by_one(ctx: Context, group: Group) -> None:
    """The steps of each operation of a group by itself."""
    for op in group.ops:
        for v in op.outs:
            if v not in group.outs:
                ctx.place(v, ctx.scratch(v.shape))
        lower_group(ctx, Group.of(op))


def _lower(ctx: Context, group: Group) -> None:
    """Its steps, its results where the context says; none for results of no elements."""
    anchor, tail = group.anchor, group.tail
    if not any(v.size for v in group.outs):
        for v in group.outs:
            ctx.output(v)
        return
    # it reads what the others make: all of them are one expression; a contraction follows them itself
    last = bool(tail) and anchor.out is group.out and not primitive(anchor).contraction
    try:
        check_sums(group.ops)
        rule, row = None if last else rule_of(anchor), recognise(group.ops, group.outs)
        total, found = summed(group.ops), columns(group)
        if total is not None:
            sum_rows(ctx, total)
        elif found is not None:
            sweep(ctx, *found)
        elif row is not None:
            rowwise(ctx, group.outs, row)
        elif group.also:
            elementwise.several(ctx, group.ops, group.outs)
        elif rule is None:
            elementwise.tail(ctx, group.ops, group.out)
        elif left := rule(ctx, anchor, tail):
            elementwise.tail(ctx, left, group.out)
    except Unsupported as e:
        raise Unsupported(f"{anchor.prim} {anchor.name!r}: {e}") from None
