"""Steps of Winograd's convolution: transform of the image, transform back, and that of weights that arrive with the
call; those that are known are transformed when they are packed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..program import Value
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand, Storage, dense_strides
from .elementwise import nest
from .epilogue import Written
from .lanes import Lane, Product, operand_kind
from .panels import Filters, packed
from .product import Epilogue, pack_panels, panel_bytes
from .winograd import R, matrices

LINE = 64  # bytes of a cache line
ALONE = 1 << 17  # multiplications of a product that OpenBLAS, whose bound is twice as high, computes in one thread
INNER = 1 << 11  # weights that a kernel transforms in one call


def apart(nbytes: int) -> int:
    """Bytes between the positions of a tile of `nbytes` each, so that the stores (or loads) of one vector at all
    positions fall into different sets of the cache.
    """
    return nbytes + LINE * (nbytes % (2 * LINE) == 0)


@dataclasses.dataclass(frozen=True)
class Tiles:
    """An array of `batch` images of `planes` [h, w] in tiles of `m` by `m` pixels."""

    m: int
    batch: int
    planes: int
    h: int
    w: int

    @property
    def loops(self) -> tuple[int, int, int, int]:
        """Images, planes, rows of tiles, tiles of a row."""
        return self.batch, self.planes, -(-self.h // self.m), -(-self.w // self.m)

    @property
    def count(self) -> int:
        return math.prod(self.loops)

    @property
    def positions(self) -> int:
        """Elements of a transformed tile: products of each channel pair."""
        return (self.m + R - 1) ** 2

    def pixels(self, strides: Sequence[int]) -> tuple[int, int, int, int]:
        """Bytes from tile to tile of an array [n, d, h, w, c], by loop."""
        return strides[0], strides[1], self.m * strides[2], self.m * strides[3]

    def rows(self, lane: Lane) -> tuple[int, ...]:
        """Bytes from tile to tile of transformed ones, by loop."""
        return dense_strides(self.loops, lane.pixels[-1])

    def made(self, ctx: Context, channels: int) -> Lane:
        """Room for transformed tiles of so many channels, position by position; its pixels are images, planes and the
        tiles of one.
        """
        row = -(-channels // ctx.target.vl) * ctx.target.vl * 4
        far = apart(self.count * row)
        room = ctx.scratch((self.positions, far // 4))
        n, d, *_ = dense_strides(self.loops, row)
        return Lane(Ref(room.buffer, room.offset), (n, d, 0, row), 4, far)

    def per_item(self, ctx: Context) -> int:
        """Tiles of a work item."""
        return max(1, min(self.loops[-1], -(-self.count // (4 * ctx.threads))))


def transformed_image(ctx: Context, tiles: Tiles, image: Operand, c_in: int, asks: bool = False) -> Lane:
    """Appends the transform of tiles of an image [n, d, h, w, c_in]; `asks`: for what comes from beyond the caches."""
    storage, strides, offset = image
    data = tiles.made(ctx, c_in)
    operands: list[Operand] = [(storage, tiles.pixels(strides), offset), (at_ref(data.ref), tiles.rows(data), 0)]
    words = [*strides[2:4], data.group, c_in]
    work = tiles.positions * -(-c_in // ctx.target.vl)
    nest(ctx, Kernel(("winograd_input", tiles.m, asks)), words, tiles.loops, operands, 1, tiles.per_item(ctx), work)
    return data


def transformed_back(
    ctx: Context,
    tiles: Tiles,
    sums: Lane,
    y: Storage,
    tail: Epilogue,
    forms: tuple[Written, ...] = (),
    to: Sequence[Operand] = (),
    asks: bool = False,
) -> None:
    """Appends the transform of the products, which writes y and `forms` of it `to` places; `asks`: as
    `transformed_image` has it.
    """
    channels, others = y.shape[-1], (*tail.operands, *to)
    kinds = (*(operand_kind(walk[:-1], walk[-1]) for _, walk, _ in tail.operands), *forms)
    operands: list[Operand] = [(at_ref(sums.ref), tiles.rows(sums), 0), (y, tiles.pixels(y.strides), 0)]
    operands += [(s, tiles.pixels(walk), offset) for s, walk, offset in others]
    words = [sums.group, tiles.h, tiles.w, channels, *y.strides[2:4]]
    words += [step for _, walk, _ in others for step in walk[2:4]]
    kernel = Kernel(("winograd_output", tiles.m, tail.expr, kinds, asks))
    work = tiles.positions * -(-channels // ctx.target.vl)
    nest(ctx, kernel, words, tiles.loops, operands, 1, tiles.per_item(ctx), work, forms=len(forms))


def at_ref(ref: Ref) -> Storage:
    """What lies at a place, as an operand whose walk is given beside it."""
    return Storage(ref.buffer, ref.offset, (), (), ())


def weights_of(ctx: Context, g: Product, w: Filters, m: int, nv: int) -> tuple[Ref, int]:
    """Panels of the transformed weights G g G', one group a position, and the bytes from one to the next."""
    vl, value, axes = ctx.target.vl, w.value, w.axes
    if w.source is not None:
        *taps, down, across, inner, channels = w.dims()
        panels = packed(ctx, w.start(), [down, across], [*taps, inner], channels, nv)
        return transformed_weights(ctx, panels, m, panel_bytes(g, vl, nv))

    def packer(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        by_tap = np.transpose(consts[value], axes).reshape(len(g.taps), R * R, g.run, g.channels)
        k = by_tap.swapaxes(0, 1).reshape(R * R, g.depth, g.channels)
        taps = pack_panels(k, vl, nv)  # panels of the taps become those of the positions: a sum over taps
        return one_thread(np.kron(matrices(m).g, matrices(m).g).astype(np.float32), taps)

    nbytes = panel_bytes(g, vl, nv)
    return ctx.pack(nbytes * g.groups, packer, ("winograd", value, axes, m, nv)), nbytes


def one_thread(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b, f32 [m, k] and [k, n], in products that BLAS gives to no threads of its own: beside calls that keep all
    cores busy these wait for each other ten times as long as they compute.
    """
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), np.float32)
    step = max(1, ALONE // (m * k))
    whole = n - n % step
    parts = lambda x: x[:, :whole].reshape(len(x), -1, step).swapaxes(0, 1)
    np.matmul(a, parts(b), out=parts(out))
    np.matmul(a, b[:, whole:], out=out[:, whole:])
    return out


def transformed_weights(ctx: Context, taps: Ref, m: int, nbytes: int) -> tuple[Ref, int]:
    """Appends the transform of weights that arrive with the call, of which each tap has panels of `nbytes`: panels by
    position, and the bytes from one to the next.
    """
    n2, spacing = (m + R - 1) ** 2, apart(nbytes)
    out = ctx.scratch((n2, spacing // 4))
    operands: list[Operand] = [(at_ref(taps), (4 * INNER,), 0), (out, (4 * INNER,), 0)]
    loops, each = (-(-nbytes // (4 * INNER)),), min(INNER, nbytes // 4) // ctx.target.vl
    nest(ctx, Kernel(("winograd_weights", m)), [nbytes, spacing, 4 * INNER], loops, operands, 1, 1, n2 * each)
    return Ref(out.buffer, out.offset), spacing
