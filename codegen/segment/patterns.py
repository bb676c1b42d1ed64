"""Which neighbouring groups may be computed strip by strip: 1x1 -> depthwise or grouped -> 1x1, or two of these, and
attention; and along which dimensions of the last result they are cut.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from ..program import Group, Op, Unsupported, external
from ..rules.convolution import Convolution, convolution
from ..rules.products import few_rows, product
from ..target import Target
from .context import Context
from .strips import STRIPS, Ranges, append

SCRATCH_BYTES = 3 << 17  # of what lies between the layers of one strip: it stays in L2 beside weights and data
WEIGHT_BYTES = 1 << 18  # of all layers of a strip: every strip reads them again, so they have to stay in L2 too
LEAST_ROWS = 32  # of a head that a strip has where heads are cut
PACKED = 8  # rows for which a strip could be computed while it makes panels of all keys and values
NAMES = ("apart", STRIPS)


@dataclasses.dataclass(frozen=True)
class Pattern:
    """`count` groups that `fits` accepts may be cut along two of the `axes` of the last result, the first of them in
    blocks of one; along the third one too, if there is one, where threads would find too few strips otherwise.
    """

    count: int
    fits: Callable[[Sequence[Group], Target], bool]
    axes: Callable[[Sequence[Group]], tuple[int, ...]]


def fused(ctx: Context, at: int) -> int:
    """Appends one step for the groups from number `at` on if a pattern fits them, their weights fit `WEIGHT_BYTES`
    bytes and it is faster; returns how many groups that are (0: none). What cannot be cut is not fused.
    """
    for pattern in PATTERNS:
        groups = ctx.program.groups[at : at + pattern.count]
        if (
            len(groups) == pattern.count
            and pattern.fits(groups, ctx.target)
            and _linear(ctx, groups)
            and weight_bytes(ctx, groups) <= WEIGHT_BYTES
        ):
            steps = _steps(ctx, groups, pattern)
            strips = _ranges(groups[-1].out.shape, steps)
            if len(strips) < 2 or ctx.choose(groups, NAMES) != STRIPS:
                return 0
            try:
                append(ctx, groups, strips, tuple(steps))
            except (Unsupported, ValueError):  # the partitioner cannot cut it there
                return 0
            return pattern.count
    return 0


def fusible(groups: Sequence[Group], target: Target) -> bool:
    """Whether a pattern fits some of these groups."""
    windows = ((p, groups[i : i + p.count]) for p in PATTERNS for i in range(len(groups) - p.count + 1))
    return any(p.fits(window, target) for p, window in windows)


def weight_bytes(ctx: Context, groups: Sequence[Group]) -> int:
    """Bytes of the weights that groups read."""
    return sum(v.nbytes for v in external(op for g in groups for op in g.ops) if v in ctx.consts)


def _linear(ctx: Context, groups: Sequence[Group]) -> bool:
    """Whether every group but the last is read by the next one alone, and by nothing outside."""
    for group, following in zip(groups, groups[1:], strict=False):
        out = group.out
        inside = set(following.ops)
        if out in ctx.program.outputs or not ctx.readers(out) or any(r not in inside for r in ctx.readers(out)):
            return False
    return True


# -- patterns ---------------------------------------------------------------------------------------


def _on_images(op: Op) -> Convolution | None:
    """The geometry of a convolution of channels-last images that is no transposed one, and none of int8: what lies
    between these is bytes that one step writes as the next one reads them, which strips, measured alone, would not.
    """
    conv = convolution(op)
    plain = conv is not None and not conv.transposed and conv.image == conv.result == (0, 3, 1, 2)
    return conv if plain and op.out.dtype != "int32" else None


def _is_pointwise(op: Op) -> bool:
    conv = _on_images(op)
    return conv is not None and conv.groups == 1 and conv.pointwise


def _is_grouped(op: Op) -> bool:
    conv = _on_images(op)
    return conv is not None and conv.groups > 1


def _by_vectors(op: Op, target: Target) -> bool:
    """Whether it reads bf16 that vectors multiply: one step writes such an image as the next one reads it, strips,
    measured alone, as f32, which takes longer than they save. Tiles, which compute so much faster, gain by strips none
    the less.
    """
    unit = target.unit("bfloat16") if op.ins[0].dtype == "bfloat16" else None
    return unit is not None and unit.step == 1


def _bottleneck(groups: Sequence[Group], target: Target) -> bool:
    a, b, c = (g.anchor for g in groups)
    return _is_pointwise(a) and _is_grouped(b) and _is_pointwise(c) and not _by_vectors(a, target)


def _separable(groups: Sequence[Group], target: Target) -> bool:
    a, b = (g.anchor for g in groups)
    return _is_grouped(a) and _is_pointwise(b) and not _by_vectors(a, target)


def _expanded(groups: Sequence[Group], target: Target) -> bool:
    a, b = (g.anchor for g in groups)
    return _is_pointwise(a) and _is_grouped(b) and not _by_vectors(a, target)


def _attention(groups: Sequence[Group], target: Target) -> bool:
    """Scores, softmax and the weighted sum, all with the same leading batch dimensions (batch, head)."""
    a, b, c = groups
    first, last, softmax = a.anchor, c.anchor, {op.prim for op in b.ops}
    rowwise = {"reduce_max", "exp"} <= softmax and b.out.shape == a.out.shape
    products = first.prim == last.prim == "dot_general"
    if products and any(_reads_only(op) for op in (first, last)):
        return False
    return products and rowwise and len(first.params["dimension_numbers"][1][0]) == 2


def _reads_only(op: Op) -> bool:
    """Whether the sides of a product are a few rows and large matrices: all threads read each of those together."""
    found = product(op)
    return few_rows(min(found.rows, found.columns), found.inner, max(found.rows, found.columns), found.groups)


def _images_and_rows(groups: Sequence[Group]) -> tuple[int, ...]:
    return (0, 1)


def _heads_and_rows(groups: Sequence[Group]) -> tuple[int, ...]:
    """The batch, the heads and the rows of queries of an attention's result, which may be turned."""
    scores, last = groups[1].out, groups[2]
    turn = next((op for op in last.tail if op.prim == "transpose" and op.ins[0] is last.anchor.out), None)
    order = tuple(turn.params["permutation"]) if turn else tuple(range(len(last.anchor.out.shape)))
    left, right = last.anchor.ins
    axes = (0, 1, 3 if right is scores or left.shape != scores.shape else 2)  # scores may be cast before
    return tuple(map(order.index, axes)) if len(order) == len(last.out.shape) == 4 else (0, 2, 1)


PATTERNS = (
    Pattern(3, _bottleneck, _images_and_rows),
    Pattern(2, _separable, _images_and_rows),
    Pattern(2, _expanded, _images_and_rows),
    Pattern(3, _attention, _heads_and_rows),
)


# -- cuts ---------------------------------------------------------------------------------------------


def _ranges(shape: tuple[int, ...], steps: Mapping[int, int]) -> list[Ranges]:
    """Every strip's range on the axes, so many elements each (an axis that is not cut has no range)."""
    found: list[Ranges] = [()]
    for axis, step in steps.items():
        if step < shape[axis]:
            found = [(*r, (axis, a, min(a + step, shape[axis]))) for r in found for a in range(0, shape[axis], step)]
    return found


def _steps(ctx: Context, groups: Sequence[Group], pattern: Pattern) -> dict[int, int]:
    """Elements of each axis that a strip has, so that what is between the layers fits SCRATCH_BYTES and every thread
    gets several strips.
    """
    first, axis, *more = pattern.axes(groups)
    shape = groups[-1].out.shape
    between = sum(4 * g.out.size for g in groups[:-1]) // shape[first]
    strips = max(-(-between // SCRATCH_BYTES), min(shape[axis], -(-3 * ctx.threads // shape[first])))
    block = max(1, shape[axis] // strips)
    if not more or block > 1:
        return {first: 1, axis: block}
    least = -(-between // (shape[axis] * SCRATCH_BYTES))
    rows = _rows(shape[more[0]], shape[first] * shape[axis], ctx.threads, least)
    return {first: 1, axis: 1, **({more[0]: rows} if rows < shape[more[0]] else {})}


def _rows(rows: int, heads: int, threads: int, least: int) -> int:
    """Rows a strip, of which each head has `least` or more: the fewest that the busiest thread has to do, beside
    `PACKED` for each strip.
    """
    most = max(1, rows // LEAST_ROWS)
    busiest = lambda parts: -(-heads * parts // threads) * (-(-rows // parts) + PACKED)
    return -(-rows // min(range(min(least, most), most + 1), key=busiest))


__all__ = ["NAMES", "fused", "fusible", "weight_bytes"]
