"""Products of two computed sides that are read where they lie: x' y summed over the pixels of two arrays.

    the gradient by a layer's weights:   [pixels, rows]' [pixels, channels] -> [rows, channels]

The elements that are summed lie some bytes apart on either side, so neither is turned or packed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ..rules.expressions import COPY, Expr
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand, Storage
from .block_shapes import Shape, candidates, cycles, slowdown
from .elementwise import nest
from .lanes import Lane, Product
from .panels import packed
from .product import Rows, add_gemm, in_a_row, panel_bytes

PART_BYTES = 1 << 21  # partial results of all parts together
ACROSS = 1.4  # how much longer tiles take that do not fill rows of the image
PACKED_ROWS = 150  # rows from which on it pays to pack channels of several blocks
BLOCK = 4  # vectors of a usual block
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
    return row != 0 and all(a.right % row == 0 for a in axes)


def parts(ctx: Context, sides: Sides) -> int:
    """In how many parts a product is summed, each by one thread: 1 where rows and channels give work enough."""
    if ctx.threads == 1 or sides.groups > 1:
        return 1
    rows, outer = math.prod(sides.pixels), sides.axes[0].size
    nbytes, read = max(4 * rows * sides.channels, 1), 4 * sides.depth * (rows + sides.channels)
    most = min(6 * ctx.threads, PART_BYTES // nbytes, read // (SHARE * nbytes), outer)
    return max((p for p in range(1, most + 1) if outer % p == 0), default=1)


def turned(ctx: Context, sides: Sides) -> bool:
    """Whether it is better to compute the product's transpose: what is on the right lies in rows of several blocks that
    too few rows read, and the left side has fewer channels.
    """
    rows, blocks = sides.pixels[3], -(-sides.channels // (BLOCK * ctx.target.vl))
    plain = math.prod(sides.pixels) == rows and sides.groups == 1 and sides.walk[3] == 4
    return plain and blocks > 1 and rows < min(PACKED_ROWS, sides.channels) and even(_swapped(sides.axes))


def swapped(sides: Sides) -> Sides:
    """The transpose of a product whose rows lie side by side."""
    *_, rows = sides.pixels
    return dataclasses.replace(
        sides,
        axes=_swapped(sides.axes),
        pixels=(1, 1, 1, sides.channels),
        channels=rows,
        left=sides.right,
        right=sides.left,
    )


def _swapped(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    return tuple(Axis(a.size, a.right, a.left) for a in axes)


def add_product(ctx: Context, sides: Sides, y: Lane, expr: Expr, operands: Sequence[Lane]) -> None:
    """Appends the step that writes `expr` of the product and the operands to `y`."""
    *outer, inner = sides.axes
    taps = [0]
    for a in outer:
        taps = [tap + i * a.left for tap in taps for i in range(a.size)]
    g = Product(sides.pixels, tuple(taps), inner.size, sides.channels, sides.groups, inner.left)
    left = Lane(sides.left[0], sides.walk, 4, sides.left[1])
    shape = _shape(ctx, in_a_row(g, (left, y, *operands))[0])
    add_gemm(ctx, g, left, _right(ctx, sides, g, shape), y, expr, operands, shape)


def _right(ctx: Context, sides: Sides, g: Product, shape: Shape) -> Rows:
    """The right side as it lies; where channels make several blocks and enough rows read them, as panels of these."""
    (ref, group), inner, (_, vectors) = sides.right, sides.axes[-1], shape
    if sides.channels <= vectors * ctx.target.vl or math.prod(sides.pixels) < PACKED_ROWS:
        rows = [0]
        for a in sides.axes[:-1]:
            rows = [row + i * (a.right // inner.right) for row in rows for i in range(a.size)]
        return Rows(ref, group, inner.right, tuple(rows))
    source = (Storage(ref.buffer, ref.offset, (), (), ()), (), 0)
    walk = [(a.size, a.right) for a in sides.axes]
    panels = packed(ctx, source, [(sides.groups, group)], walk, (sides.channels, 4), vectors)
    return Rows(panels, panel_bytes(g, ctx.target.vl, vectors), 0, tuple(range(0, g.depth, g.run)))


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
    _, d, h, w = sides.pixels
    row = 4 * sides.channels
    sums = Lane(Ref(made.buffer, made.offset), (d * h * w * row, h * w * row, w * row, row), 4, 4 * size)
    add_product(ctx, split, sums, COPY, ())
    width = min(size, 256)
    operands: list[Operand] = [(made, (4 * width,), 0), (y, (4 * width,), 0)]
    words, loops = [count, 4 * size, size, width], (-(-size // width),)
    nest(ctx, Kernel(("reduce", "sum", False)), words, loops, operands, 1, 16, count * width / ctx.target.vl)


def _shape(ctx: Context, g: Product) -> Shape:
    """The block of the least time by the model; where rows of the image can be filled with whole tiles, of those."""
    slower, vectors, pixels = slowdown(ctx.target), -(-g.channels // ctx.target.vl), math.prod(g.pixels)

    def cost(shape: Shape) -> tuple[float, int]:
        mr, nv = shape
        tiles, blocks = -(-pixels // mr), -(-vectors // nv)
        used = (-(-pixels // tiles), -(-vectors // blocks))
        filled = 1.0 if g.pixels[3] % used[0] == 0 else ACROSS
        return round(tiles * blocks * cycles(used) * slower[used] * filled, 3), -nv

    return min(candidates(ctx.target), key=cost)
