"""The geometry of a convolution: what every stage asks of its axes, sizes and groups is decided here."""

from __future__ import annotations

import dataclasses
import math

from ..program import Op

CONVOLUTION = "conv_general_dilated"


@dataclasses.dataclass(frozen=True)
class Convolution:
    """Axes and sizes of a convolution; `strides`, `dilation`, `spread`, `padding` have one entry a spatial dimension.

    `image`, `result`: axes of (batch, channels, spatial...); `weights`: axes of (channels out, channels in a group,
    spatial...). `spread`: the image's own dilation, not 1 where the convolution is a transposed one. `batch`: images.
    `sizes`: of the result's spatial dimensions. `inner`: products that are summed for one element of the result.
    """

    image: tuple[int, ...]
    weights: tuple[int, ...]
    result: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    spread: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int
    batch_groups: int
    channels_in: int
    channels: int
    batch: int
    sizes: tuple[int, ...]
    inner: int

    @property
    def depthwise(self) -> bool:
        """Whether every channel is convolved on its own."""
        return self.groups == self.channels_in == self.channels > 1

    def in_vectors(self, lanes: int) -> bool:
        """Whether a vector of so many channels holds several whole groups, each with as many channels in as out."""
        small = self.granule < lanes and lanes % self.granule == 0
        return self.groups > 1 and self.channels_in == self.channels and small

    @property
    def window_sums(self) -> bool:
        """Whether it is the gradient of a depthwise one by its weights: the image's channels stand for its batch, and
        each is convolved with its own channel of the other operand.
        """
        return self.groups == 1 and self.batch_groups == self.batch == self.channels > 1

    @property
    def sums_pixels(self) -> bool:
        """Whether it has the form of a gradient by weights: what lies side by side in the image stands for its batch
        (or neither that nor its channels do, and the window is larger than the result).
        """
        last, large = len(self.image) - 1, math.prod(self.window) > math.prod(self.sizes)
        return self.groups == 1 and (self.image[0] == last or (self.image[1] != last and large))

    @property
    def pointwise(self) -> bool:
        """Whether every pixel is taken, and on its own."""
        return {*self.window, *self.strides} == {1}

    @property
    def transposed(self) -> bool:
        """Whether zeroes are inserted into the image (lhs_dilation)."""
        return any(d != 1 for d in self.spread)

    @property
    def granule(self) -> int:
        """Channels of the result that belong together: a group's (1 where all are one group)."""
        return self.channels // self.all_groups if self.all_groups > 1 else 1

    @property
    def all_groups(self) -> int:
        """Groups of channels or of the batch; there is but one kind of them."""
        return self.groups * self.batch_groups


def convolution(op: Op) -> Convolution | None:
    """The geometry of an operation that is a convolution, its axes and sizes; None for any other."""
    if op.prim != CONVOLUTION:
        return None
    p, (x, w) = op.params, op.ins
    dn = p["dimension_numbers"]
    return Convolution(
        image=tuple(dn.lhs_spec),
        weights=tuple(dn.rhs_spec),
        result=tuple(dn.out_spec),
        window=tuple(w.shape[d] for d in dn.rhs_spec[2:]),
        strides=tuple(p["window_strides"]),
        dilation=tuple(p["rhs_dilation"]),
        spread=tuple(p["lhs_dilation"]),
        padding=tuple(p["padding"]),
        groups=p["feature_group_count"],
        batch_groups=p["batch_group_count"],
        channels_in=x.shape[dn.lhs_spec[1]],
        channels=op.out.shape[dn.out_spec[1]],
        batch=x.shape[dn.lhs_spec[0]],
        sizes=tuple(op.out.shape[d] for d in dn.out_spec[2:]),
        inner=math.prod(w.shape[d] for d in dn.rhs_spec[1:]),
    )


def geometry(op: Op) -> Convolution:
    """`convolution` of what is known to be one; asserts that it is."""
    found = convolution(op)
    assert found is not None, f"{op.prim} is no convolution"
    return found


def channels_last(axes: tuple[int, ...]) -> bool:
    """Whether axes of (batch, channels, spatial...) lie as batch, spatial..., channels."""
    rank = len(axes) - 2
    return axes == (0, rank + 1, *range(1, rank + 1))


# -- transposed convolutions: every phase of the result is a small convolution of the image as it is ---------


@dataclasses.dataclass(frozen=True)
class Phase:
    """Results `first`, `first + step`, ... (`count` of them) along one dimension: they read `window` taps (none: they
    are sums of nothing) from tap `tap` on, every `every`-th, at pixels of the image from `shift` on, `reach` apart.
    """

    first: int
    step: int
    count: int
    tap: int = 0
    every: int = 1
    window: int = 0
    shift: int = 0
    reach: int = 1

    @property
    def last(self) -> int:
        """The last pixel that is read."""
        return self.shift + self.count - 1 + (self.window - 1) * self.reach


def phases(conv: Convolution) -> tuple[tuple[Phase, ...], ...]:
    """The phases of each dimension of a transposed convolution; () for any other one, and for what is both transposed
    and strided.
    """
    if not conv.transposed or any(s != 1 for s in conv.strides):
        return ()
    axes = zip(conv.sizes, conv.window, conv.spread, conv.dilation, conv.padding, strict=True)
    return tuple(
        tuple(_phase(f, -(-(n - f) // d), k, d, r, lo) for f in range(min(d, n))) for n, k, d, r, (lo, _) in axes
    )


def _phase(first: int, count: int, window: int, spread: int, dilation: int, lo: int) -> Phase:
    """Result q spread + first reads the grown image at q spread + first + tap dilation - lo, which is not a zero where
    first + tap dilation - lo is a multiple of `spread`.
    """
    common = math.gcd(dilation, spread)
    every, reach = spread // common, dilation // common
    tap = next((t for t in range(min(every, window)) if (first + t * dilation - lo) % spread == 0), None)
    if tap is None:
        return Phase(first, spread, count)
    shift = (first + tap * dilation - lo) // spread
    return Phase(first, spread, count, tap, every, -(-(window - tap) // every), shift, reach)


def around(conv: Convolution, pixels: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Zeroes that are read before and behind the image, whose spatial dimensions have so many `pixels`: what phases
    read, or the padding (less than 0 where pixels are left out) of the image as it is or has been grown.
    """
    found = phases(conv)
    if not found:
        return conv.padding
    return tuple(_around([p for p in some if p.window], n) for some, n in zip(found, pixels, strict=True))


def _around(used: list[Phase], n: int) -> tuple[int, int]:
    return max((0, *(-p.shift for p in used))), max((0, *(p.last + 1 - n for p in used)))
