"""Batches item by item: one thread takes an item through many layers, so that what lies between these stays in the
caches, where that of a whole batch would not.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..program import Group, Op, Unsupported, Value, external
from .choice import likely
from .context import Context, Groups
from .patterns import fusible, weight_bytes
from .strips import append

#: all layers of a batch one after the other; or of an item, some of them strip by strip; or each of them whole; or of
#: an item only those before weights are large
NAMES = BATCH, ITEMS, WHOLE, EARLY = "batch", "items", "items whole", "items early"
LEAST_GROUPS = 4  # that are worth it
LEAST_SHARE = 1  # of what the threads' caches hold that a layer of a batch reads and writes at least
#: times the bytes of an item that a layer, and all layers together, read and write their weights may have: each item
#: reads these again; the same of early layers
READ_AGAIN, READ_AGAIN_BY_ALL, READ_AGAIN_EARLY = 32, 1, 1
UNEVEN = 1.15  # times the items a thread has on average the busiest one may have
MOST_ITEMS = 4096


def by_item(ctx: Context, at: int) -> int:
    """Appends one step for the groups from number `at` on which a batch can go through item by item, if there is more
    between them than the caches hold and it is faster; returns how many groups that are (0: none).
    """
    items = _items(ctx, at) if len(ctx.program.groups) - at >= LEAST_GROUPS else 0
    if not items or (at and _divides(ctx, at - 1, items, READ_AGAIN)):  # the run was looked at from its first group on
        return 0
    groups = _run(ctx, at, items, READ_AGAIN)
    most = max((_bytes(ctx, g)[1] for g in groups), default=0)
    if len(groups) < LEAST_GROUPS or most < LEAST_SHARE * ctx.threads * ctx.target.kept:
        return 0
    early = _run(ctx, at, items, READ_AGAIN_EARLY)
    further = {WHOLE: fusible(groups, ctx.target), EARLY: LEAST_GROUPS <= len(early) < len(groups)}
    how = ctx.choose(groups, (BATCH, ITEMS, *(name for name, differs in further.items() if differs)))
    if how == BATCH:
        return 0
    groups = early if how == EARLY else groups
    before = ctx.mark()
    strips = [((0, i, i + 1),) for i in range(items)]
    try:
        append(ctx, groups, strips, (0, -1), ITEMS, functools.partial(_as_together, ctx.threads), how != WHOLE)
    except (Unsupported, ValueError):  # the partitioner cannot cut it there
        ctx.back(before)
        return 0
    return len(groups)


def _as_together(threads: int, groups: Groups, names: tuple[str, ...], one: int) -> str:
    """The algorithm of an item's layer: that of the batch's, by so many threads."""
    return likely(groups, names, threads)


def _items(ctx: Context, at: int) -> int:
    """The items of the batch that group number `at` makes; 0 where threads cannot share them evenly."""
    items = (*ctx.program.groups[at].out.shape, 0)[0]
    if not 1 < items <= MOST_ITEMS:
        return 0
    return items if -(-items // ctx.threads) * ctx.threads <= UNEVEN * items else 0


def _run(ctx: Context, at: int, items: int, again: float) -> Sequence[Group]:
    """The most groups from number `at` on of which each item needs no other item, and others read the last result
    alone; `again`: as `_divides` has it.
    """
    groups, found = ctx.program.groups, 0
    done, unread = set[Op](), set[Value]()  # results that groups to come read
    weights = moved = 0
    for number in range(at, len(groups)):
        if not _divides(ctx, number, items, again):
            break
        out = groups[number].out
        done.update(groups[number].ops)
        unread = {v for v in (*unread, out) if v in ctx.program.outputs or not done.issuperset(ctx.readers(v))}
        more = _bytes(ctx, groups[number])
        weights, moved = weights + more[0], moved + more[1]
        if unread == {out} and weights <= READ_AGAIN_BY_ALL * moved / items:
            found = number + 1 - at
    return groups[at : at + found]


def _divides(ctx: Context, number: int, items: int, again: float) -> bool:
    """Whether group `number` makes one result, of a batch of so many items, each of which needs no other one, with
    weights of at most `again` times an item's bytes.
    """
    group, cut = ctx.program.groups[number], ctx.rules.cut
    assert cut is not None
    if len(group.outs) != 1 or group.out.shape[:1] != (items,):
        return False
    weights, moved = _bytes(ctx, group)
    if weights > again * moved / items:
        return False
    try:
        part = cut(group.ops, 0, 0, 1)
    except ValueError:
        return False
    return not any(s.source in ctx.consts for s in part.slices)


def _bytes(ctx: Context, group: Group) -> tuple[int, int]:
    """Bytes of weights that a group reads, and of what else it reads and makes, as kernels hold it."""
    moved = group.out.size + sum(v.size for v in external(group.ops) if v not in ctx.consts)
    return weight_bytes(ctx, (group,)), 4 * moved
