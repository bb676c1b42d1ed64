"""Products of two computed sides that are read where they lie: x' y summed over the pixels of two arrays.

    the gradient by a layer's weights:   [pixels, rows]' [pixels, channels] -> [rows, channels]

The elements that are summed lie some bytes apart on either side, so neither is turned or packed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ..rules.expressions import COPY, Expr
from ..segment.assembly import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Storage
from .block_shapes import Shape, block_shape, candidates, cycles, slowdown
from .elementwise import nest
from .product import Lane, Product, Rows, add_gemm

PART_BYTES = 1 << 21  # partial results of all parts together
SHARE = 4  # a result this many times smaller than what is read is computed in parts


@dataclasses.dataclass(frozen=True)
class Axis:
    """A dimension that is summed: its length, and the bytes from one index to the next on the left and on the right."""

    size: int
    left: int
    right: int


@dataclasses.dataclass(frozen=True)
class Sides:
    """Rows by channels, in `groups`, summed over `axes` (outermost first).

    `left`, `right`: where each side begins, and the bytes from one group to the next; `pixels` and `walk`: the rows as
    the pixels (N, D, H, W) of a product and their byte strides. Channels lie side by side.
    """

    axes: tuple[Axis, ...]
    pixels: tuple[int, int, int, int]
    walk: tuple[int, int, int, int]
    channels: int
    groups: int
    left: tuple[Ref, int]
    right: tuple[Ref, int]

    @property
    def depth(self) -> int:
        """Products that are summed for one element of the result."""
        return math.prod(a.size for a in self.axes)


def merged(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The same elements by fewer dimensions: none of length 1 (but one at least), and neighbours that both sides walk
    without a jump are one.
    """
    out: list[Axis] = []
    for a in axes:
        if a.size == 1:
            continue
        if out and (out[-1].left, out[-1].right) == (a.left * a.size, a.right * a.size):
            out[-1] = Axis(out[-1].size * a.size, a.left, a.right)
        else:
            out.append(a)
    return tuple(out) or (Axis(1, 4, 4),)


def even(axes: Sequence[Axis]) -> bool:
    """Whether the right side can be read in place: what is summed begins at whole rows of the innermost dimension."""
    row = axes[-1].right
    return row > 0 and all(a.right % row == 0 for a in axes)


def parts(ctx: Context, sides: Sides) -> int:
    """In how many parts a product is summed, each by a thread of its own: 1 where rows and channels give work enough."""
    if ctx.threads == 1 or sides.groups > 1:
        return 1
    rows, outer = math.prod(sides.pixels), sides.axes[0].size
    nbytes, read = 4 * rows * sides.channels, 4 * sides.depth * (rows + sides.channels)
    most = min(6 * ctx.threads, max(PART_BYTES, 0) // nbytes, read // (SHARE * nbytes), outer)
    return max((p for p in range(1, most + 1) if outer % p == 0), default=1)


def add_product(ctx: Context, sides: Sides, y: Lane, expr: Expr, operands: Sequence[Lane]) -> None:
    """Appends the step that writes `expr` of the product and the operands to `y`."""
    *outer, inner = sides.axes
    taps = [(0, 0)]
    for a in outer:
        taps = [
            (left + i * a.left, right + i * (a.right // inner.right)) for left, right in taps for i in range(a.size)
        ]
    g = Product(sides.pixels, tuple(left for left, _ in taps), inner.size, sides.channels, sides.groups, inner.left)
    (x, x_group), (w, w_group) = sides.left, sides.right
    rows = Rows(w, w_group, inner.right, tuple(right for _, right in taps))
    add_gemm(ctx, g, Lane(x, sides.walk, 4, x_group), rows, y, expr, operands, _shape(ctx, g))


def add_parts(ctx: Context, sides: Sides, count: int, y: Storage) -> None:
    """Appends the steps that write the product to `y`, which lies side by side: `count` sums of a part of the outermost
    dimension each, and then their sum, in order.
    """
    first, *rest = sides.axes
    share, size = first.size // count, math.prod(sides.pixels) * sides.channels
    split = dataclasses.replace(
        sides,
        axes=(dataclasses.replace(first, size=share), *rest),
        groups=count,
        left=(sides.left[0], share * first.left),
        right=(sides.right[0], share * first.right),
    )
    made = ctx.scratch((count, size))
    n, d, h, w = sides.pixels
    row = 4 * sides.channels
    add_product(
        ctx,
        split,
        Lane(Ref(made.buffer, made.offset), (d * h * w * row, h * w * row, w * row, row), 4, 4 * size),
        COPY,
        (),
    )
    width = min(size, 256)
    operands = [(made, (4 * width,), 0), (y, (4 * width,), 0)]
    words = [count, 4 * size, size, width]
    nest(
        ctx,
        Kernel(("reduce", "sum", False)),
        words,
        (-(-size // width),),
        operands,
        1,
        16,
        count * width / ctx.target.vl,
    )


def _shape(ctx: Context, g: Product) -> Shape:
    """The block of the least time by the model; where rows of the image can be filled with whole tiles, of those."""
    return block_shape(ctx.target, math.prod(g.pixels), g.channels)
