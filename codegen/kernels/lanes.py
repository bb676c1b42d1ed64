"""Products as loops over lanes, and the step of one as the maker of its result (see `forms`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ..rules.expressions import Expr
from ..segment.context import Context
from ..segment.makers import Form, Result, Walk
from ..segment.steps import Ref
from ..target import MATRIX_UNITS
from . import epilogue
from .forms import MOST, composed, ending, rounded_once
from .vectors import STORED_BYTES


def operand_kind(pixels: Sequence[int], channel: int) -> str:
    """As gemm's operand kinds, by strides in bytes: does it change with the pixel, does it change with the channel?"""
    return {(True, 4): "v", (True, 2): "h", (True, 0): "s", (False, 4): "c", (False, 0): "p"}[any(pixels), channel]


@dataclasses.dataclass(frozen=True)
class Lane:
    """How a tensor is walked: byte strides of the pixel dimensions (N, D, H, W), of a channel and of a group. `form`:
    it is written by the epilogue, as `epilogue.Written` has it. `begins`: sums begin with it (a vector for all pixels).
    """

    ref: Ref
    pixels: tuple[int, int, int, int]
    channel: int
    group: int
    form: epilogue.Written | None = None
    begins: bool = False

    @property
    def kind(self) -> str | epilogue.Written:
        """Its kind as an operand of the epilogue (see `operand_kind`)."""
        return self.form or (epilogue.BEGIN if self.begins else operand_kind(self.pixels, self.channel))


@dataclasses.dataclass(frozen=True)
class Product:
    """`pixels` (N, D, H, W) x `channels` outputs in each of `groups`; `run` inputs at each tap (byte offset), which lie
    `element` bytes apart (other than 4 only with `Rows`). `odd`: the last ones of a run are one, not a pair.
    """

    pixels: tuple[int, int, int, int]
    taps: tuple[int, ...]
    run: int
    channels: int
    groups: int
    element: int = 4
    odd: bool = False

    @property
    def depth(self) -> int:
        """Products that are summed for one element of the result."""
        return len(self.taps) * self.run


def narrower(ctx: Context, g: Product, lane: Lane) -> Lane:
    """An operand of a product's epilogue as a form of bf16 has it, where there is one of an array of bf16: fewer bytes,
    and the array itself may have no other reader.
    """
    row = g.channels * (g.groups if lane.group == 4 * g.channels else 1)
    for (unit, _, offset, shape, strides, _), to in ctx.makers.forms.get(lane.ref.buffer, {}).items():
        walks = [s if n > 1 else 0 for s, n in zip((*lane.pixels, lane.group), (*g.pixels, g.groups), strict=True)]
        walks[-1] = 0 if row != g.channels else walks[-1]
        alike = all(  # a form with a border of an array without one is not
            n == 1 or s * to.shape[-1] == t * row for n, s, t in zip(shape[:-1], strides, to.strides, strict=False)
        )
        fits = alike and offset == lane.ref.offset and shape[-1] == row and not any(s % (4 * row) for s in walks)
        if MATRIX_UNITS[unit].dtype == "bfloat16" and fits:
            n, d, h, w, group = (s // row * to.shape[-1] for s in walks)
            group = 2 * g.channels if row != g.channels else group
            return Lane(Ref(to.buffer, to.offset), (n, d, h, w), 2, group)
    return lane


@dataclasses.dataclass
class ProductMaker:
    """A product's step. `again(expr, operands)` appends one that writes the expression to the same place.

    `root`: the node of the result. Raises nothing: a form that an epilogue cannot write is not written.
    """

    ctx: Context
    number: int
    product: Product
    y: Lane
    expr: Expr
    root: int
    operands: tuple[Lane, ...]
    again: Callable[[Expr, Sequence[Lane]], None]

    @property
    def result(self) -> Result:
        g, y = self.product, self.y
        return Result.of(y.ref, (*g.pixels, g.groups, g.channels), (*y.pixels, y.group, y.channel))

    def also(self, form: Form) -> bool:
        """As `Maker` has it: where channels lie side by side, and all that the form reads is there before the step."""
        lanes = self._lanes(form)
        if lanes is None or len(self.operands) + len(lanes) > MOST:
            return False
        late = {b for step in self.ctx.steps[self.number :] for b in step.writes}
        if any(lane.ref.buffer in late for lane in lanes[:-1]):
            return False
        read = len(self.operands)
        expr, node = rounded_once(*composed(self.expr, self.root, form.expr, read), form.dtype)
        written = dataclasses.replace(lanes[-1], form=(form.dtype, node, True))
        made = dataclasses.replace(self, expr=expr, operands=(*self.operands, *lanes[:-1], written))
        made._replace()
        return True

    def forms_only(self) -> None:
        """As `Maker` has it."""
        lanes = tuple(
            dataclasses.replace(x, form=(*x.form[:2], False)) if x.form is not None else x for x in self.operands
        )
        if lanes != self.operands:
            dataclasses.replace(self, operands=lanes)._replace()

    def _replace(self) -> None:
        expr = ending(self.expr, self.root)
        self.ctx.again(self.number, lambda: self.again(expr, self.operands))
        self.ctx.makers.steps[self.number] = self

    def _lanes(self, form: Form) -> list[Lane] | None:
        """What the form reads and where it is written, as lanes of the product; None where they are none."""
        g, y, each = self.product, self.y, STORED_BYTES[form.dtype]
        beside = y.group == 4 * g.channels or g.groups == 1  # groups of channels lie side by side
        if y.channel != 4 or form.row not in (0, g.channels * (g.groups if beside else 1)):
            return None

        def lane(ref: Ref, walk: Walk, channel: int) -> Lane | None:
            steps = [walk(s, n) if n > 1 else 0 for s, n in zip(y.pixels, g.pixels, strict=True)]
            group = channel * g.channels if beside else walk(y.group, g.groups)
            n, d, h, w = (s or 0 for s in steps)
            return None if None in steps or group is None else Lane(ref, (n, d, h, w), channel, group)

        lanes = [*(lane(r.ref, r.walk, r.channel) for r in form.operands), lane(form.ref, form.walk, each)]
        found = [x for x in lanes if x is not None]
        return found if len(found) == len(lanes) else None
