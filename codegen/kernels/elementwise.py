"""Steps for elementwise groups and plain movement: one loop nest over strided operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..native.layout import MAX_OPERANDS, MAX_RANK
from ..program import Op, Unsupported, Value
from ..rules.expressions import COPY, TO_BF16, Expr, View, expression, expressions, literal
from ..rules.primitives import ROUNDS
from ..segment.context import Context
from ..segment.steps import Early, Kernel, Ref, Word
from ..segment.storage import Operand, Storage, streamed
from .forms import PassMaker, followed
from .vectors import STORED_BYTES

INNER = 4096  # elements of the inner loop in one kernel call
SHORT = 1024  # elements of a row that is not worth a kernel call of its own
NARROW, WORTH = 32, 8  # elements of a short row, most; reads of an element, least, for which it is copied
ITEM = 1 << 14  # elements worth a work item
RUN = 1 << 12  # elements worth a kernel call: items are whole calls, and a small array has enough of them for a team


def read(ctx: Context, view: View, rank: int) -> Operand:
    """The operand of a view over an output of `rank` axes, its strides and offset in bytes."""
    s = ctx.storage(view.value)
    strides, offset = view.strides(rank, s.strides)
    return s, strides, offset


def nest(
    ctx: Context,
    kernel: Kernel,
    extra: Sequence[int],
    loops: Sequence[int],
    operands: Sequence[Operand],
    outputs: int,
    chunk: int,
    units: float = 0.0,
    written: int = 1,
    early: Early | None = None,
    forms: int = 0,
) -> None:
    """Appends a step of the nest driver: `loops` (outermost first), at most `chunk` iterations an item.

    `operands[outputs]` is the one that is written (of several, `written`, the first), and so are the last `forms` of
    them; all others are read. `units`: vector operations of one kernel call; `early`: as `Step` has it, where an item
    is one iteration.
    Raises `Unsupported` for more operands or loops than the driver has.
    """
    if len(operands) > MAX_OPERANDS or len(loops) > MAX_RANK:
        raise Unsupported(
            f"{len(operands)} operands in {len(loops)} loops; a nest has at most {MAX_OPERANDS} in {MAX_RANK}"
        )
    pad = MAX_RANK - len(loops)
    total = math.prod(loops)
    chunk = even(total, chunk, ctx.threads)
    views: list[Word] = []
    for s, strides, offset in operands:
        views += [Ref(s.buffer, s.offset + offset), *([0] * pad), *strides]
    width = 5 + MAX_RANK + len(operands) * (2 + MAX_RANK)
    words: list[Word] = [kernel, width, total, chunk, len(operands), *([1] * pad), *loops, *views, *extra]
    buffers, end = [s.buffer for s, _, _ in operands], len(operands) - forms
    ctx.add(
        "nest",
        words,
        -(-total // chunk),
        buffers[:outputs] + buffers[outputs + written : end],
        buffers[outputs : outputs + written] + buffers[end:],
        calls=total,
        units=total * units,
        early=early if chunk == 1 else None,
    )


def even(total: int, most: int, threads: int) -> int:
    """The iterations of an item, at most so many, so that all threads have as many items: of three the second thread
    would wait for the third.
    """
    items = -(-total // most)
    return most if items <= 1 else -(-total // (-(-items // threads) * threads))


def coalesce(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drops loops of length 1 of a `shape`, and merges neighbours that every operand walks without a jump (strides in
    bytes).
    """
    dims: list[int] = []
    walks: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if dims and all(w[-1] == s[d] * n for w, s in zip(walks, strides, strict=True)):
            dims[-1] *= n
            for w, s in zip(walks, strides, strict=True):
                w[-1] = s[d]
        else:
            dims.append(n)
            for w, s in zip(walks, strides, strict=True):
                w.append(s[d])
    if not dims:
        return [1], [[4] for _ in strides]
    return dims, walks


def compute(ctx: Context, expr: Expr, out: Operand, operands: Sequence[Operand], shape: tuple[int, ...]) -> None:
    """Appends `out = expr(operands)` over an index space of `shape`.

    Raises `Unsupported` for an output with stride 0 along the innermost axis, and for more operands or loops than a
    nest has.
    """
    compute_all(ctx, expr, (len(expr) - 1,), [out], operands, shape)


def compute_all(
    ctx: Context,
    expr: Expr,
    results: tuple[int, ...],
    outs: Sequence[Operand],
    operands: Sequence[Operand],
    shape: tuple[int, ...],
) -> None:
    """As `compute`, of several results at once: `outs[i]` is node number `results[i]` of the expression. Nothing for a
    shape of no elements.
    """
    if not math.prod(shape):
        return
    operands = _along_rows(ctx, outs, operands, shape)
    again = lambda expr, results, outs, forms: _pass(ctx, expr, results, outs, operands, shape, forms)
    known, before = followed(ctx, expr, operands, shape), len(ctx.steps)
    again(expr, results, outs, ())
    if len(outs) == 1 and shape and len(ctx.steps) > before:
        maker = PassMaker(ctx, before, expr, results[0], outs[0], tuple(operands), shape, again, *known)
        ctx.makers.note(before, maker)


def _along_rows(
    ctx: Context, outs: Sequence[Operand], operands: Sequence[Operand], shape: tuple[int, ...]
) -> Sequence[Operand]:
    """Operands of which a number stands for each of many short rows, as a group's mean for its channels, in copies that
    have it for every element: rows that lie one behind the other are one then.
    """
    dims, walks = coalesce(shape, [o[1] for o in (*outs, *operands)])
    if len(dims) < 2 or dims[-1] > NARROW:
        return operands
    n, stops = dims[-1], [w[-1] == 0 != w[-2] for w in walks]
    others = all(w[-2] == w[-1] * n for w, stop in zip(walks, stops, strict=True) if not stop)
    first = next(d for d in range(len(shape), -1, -1) if math.prod(shape[d:]) == n)
    found: list[Operand] = []
    for (s, strides, at), stop in zip(operands, stops[len(outs) :], strict=True):
        once = tuple(m if d >= first or strides[d] else 1 for d, m in enumerate(shape))
        if stop and others and not s.narrow and WORTH * math.prod(once) <= math.prod(shape):
            rows = ctx.scratch(once)
            copy(ctx, s, rows, strides, at)
            again = tuple(t if m > 1 else 0 for t, m in zip(rows.strides, once, strict=True))
            found.append((rows, again, 0))
        else:
            found.append((s, strides, at))
    return found


def _pass(
    ctx: Context,
    expr: Expr,
    results: tuple[int, ...],
    outs: Sequence[Operand],
    operands: Sequence[Operand],
    shape: tuple[int, ...],
    forms: tuple[str, ...],
) -> None:
    """As `compute_all`; the last results are stored as elements of the types `forms`."""
    everything = [*outs, *operands]
    dims, walks = coalesce(shape, [o[1] for o in everything])
    places = zip(everything, walks, strict=True)
    kinds = tuple(s.narrow or ("v" if w[-1] == 4 else "s" if w[-1] == 0 else "g") for (s, _, _), w in places)
    whole = len(outs) - len(forms)
    if forms:
        beside = all(w[-1] == STORED_BYTES[t] for w, t in zip(walks[whole:], forms, strict=False))
        kinds = (*kinds[:whole], *forms, *kinds[len(outs) :])
        if not beside or dims == [1] or "g" in kinds:
            raise Unsupported("a narrow form of elements that do not lie side by side")
    if dims == [1]:
        kinds = ("v",) * len(outs) + ("s",) * len(operands)
    elif "s" in kinds[: len(outs)]:
        raise Unsupported("an output that is written again and again")
    if "g" not in kinds:
        past = (streamed(s, w[:-1], at) for (s, _, at), w in zip(outs[:whole], walks, strict=False))
        kinds = (*("n" if p else k for p, k in zip(past, kinds, strict=False)), *kinds[whole:])
    several = (results,) if len(outs) > 1 or forms else ()
    if len(dims) > 1 and dims[-1] <= SHORT and "g" not in kinds:
        rows = [(s, tuple(w), at) for (s, _, at), w in zip(everything, walks, strict=True)]
        _in_runs(ctx, (expr, kinds, *several), len(outs), rows, dims)
        return
    inner = min(dims[-1], INNER)
    loops = [*dims[:-1], -(-dims[-1] // inner)]
    views = [(s, (*w[:-1], 0), offset) for (s, _, offset), w in zip(everything, walks, strict=True)]
    extra = [dims[-1], inner, *(w[-1] for w in walks)]
    width = 1 if "g" in kinds else ctx.target.vl
    nest(
        ctx,
        Kernel(("elementwise", expr, kinds, *several)),
        extra,
        loops,
        views,
        0,
        max(1, ITEM // inner),
        -(-inner // width) * len(expr),
        len(outs),
    )


def _in_runs(ctx: Context, key: tuple[Any, ...], outs: int, views: Sequence[Operand], dims: list[int]) -> None:
    """As `compute_all`, of rows that are too short for a kernel call each: `views` walk `dims`, `outs` results first;
    `key` is the kernel's, an expression first.
    """
    *around, rows, n = dims
    run = min(rows, max(1, RUN // n))
    loops = [*around, -(-rows // run)]
    steps = [strides[-2] for _, strides, _ in views]
    moving = [(s, (*strides[:-2], run * strides[-2]), at) for s, strides, at in views]
    units = run * -(-n // ctx.target.vl) * len(key[0])
    chunk = max(1, ITEM // (run * n))
    nest(ctx, Kernel(("elementwise_rows", *key)), [rows, run, n, *steps], loops, moving, 0, chunk, units, outs)


def copy(
    ctx: Context, source: Storage, target: Storage, source_strides: tuple[int, ...] | None = None, offset: int = 0
) -> None:
    """Appends a copy into `target`, over its shape; `source_strides` (bytes) for a moved source, `offset` (bytes) for a
    part of it. Raises `Unsupported` for more loops than a nest has.
    """
    strides = source.strides if source_strides is None else source_strides
    compute(ctx, COPY, (target, target.strides, 0), [(source, strides, offset)], target.shape)


def convert(ctx: Context, source: Storage, target: Storage) -> None:
    """Appends a copy of an array to one of another type, one of which is narrow (see `Storage`)."""
    if not target.narrow:
        copy(ctx, source, target)
        return
    expr = TO_BF16 if target.narrow == "bfloat16" != source.narrow else COPY
    outs, operands = [(target, target.strides, 0)], [(source, source.strides, 0)]
    _pass(ctx, expr, (len(expr) - 1,), outs, operands, target.shape, (target.narrow,))


def rounded(ctx: Context, x: Storage, dtype: str) -> None:
    """Appends a step that rounds an array to bf16 or f16 where it lies."""
    compute(ctx, (("in", 0), (ROUNDS[dtype], 0)), (x, x.strides, 0), [(x, x.strides, 0)], x.shape)


def fill(ctx: Context, value: float, target: Storage) -> None:
    """Appends a step that writes one number to all of `target`."""
    compute(ctx, (literal(value),), (target, target.strides, 0), [], target.shape)


def tail(ctx: Context, ops: tuple[Op, ...], result: Value) -> None:
    """Appends the elementwise program `ops` that ends in `result`.

    Raises `Unsupported` for what has no vector code, and for more operands or loops than a nest has.
    """
    expr, views = expression(ops, result)
    out = ctx.output(result)
    operands = [read(ctx, view, len(result.shape)) for view in views]
    compute(ctx, expr, (out, out.strides, 0), operands, result.shape)


def several(ctx: Context, ops: tuple[Op, ...], results: Sequence[Value]) -> None:
    """Appends the elementwise program `ops` with several results of one shape. Raises `Unsupported` as `tail`."""
    expr, nodes, views = expressions(ops, (), tuple(results))
    shape = results[0].shape
    outs = [(s, s.strides, 0) for s in map(ctx.output, results)]
    compute_all(ctx, expr, nodes, outs, [read(ctx, view, len(shape)) for view in views], shape)


def dense(ctx: Context, s: Storage) -> Storage:
    """`s` itself, or a copy of its shape whose elements lie side by side."""
    if s.dense:
        return s
    target = ctx.scratch(s.shape)
    copy(ctx, s, target)
    return target
