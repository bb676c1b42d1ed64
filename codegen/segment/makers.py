"""Which step made an array, so that a reader who needs it in another form can ask that step to write this form too."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ..rules.expressions import Expr
from .steps import Ref, Step
from .storage import Buffer, Storage

#: bytes from an element of an array to another one, and how many such steps an axis has -> bytes in another array; None
#: where that has no such step
Walk = Callable[[int, int], int | None]


#: name and step of the matrix unit, then offset, shape, strides and halo of the array
Key = tuple[str, int, int, tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]


@dataclasses.dataclass(frozen=True)
class Read:
    """An operand along an array, whose first element is at `ref`; `channel`: bytes along the last axis, 0 or 4."""

    ref: Ref
    walk: Walk
    channel: int


@dataclasses.dataclass(frozen=True)
class Form:
    """A narrow form of an array: `expr` of each of its elements (operand 0) and of `operands` as elements of `dtype`,
    from `ref` on. `row`: elements of the array that lie side by side in the form, as in the array (0: all of them).
    """

    expr: Expr
    operands: tuple[Read, ...]
    dtype: str
    ref: Ref
    walk: Walk
    row: int


@dataclasses.dataclass(frozen=True)
class Result:
    """So many elements of f32, the first of them at `ref`; `span`: bytes from there to behind the last one."""

    ref: Ref
    size: int
    span: int

    @classmethod
    def of(cls, ref: Ref, shape: Sequence[int], strides: Sequence[int]) -> Result:
        """An array's, by its strides in bytes."""
        return cls(ref, math.prod(shape), 4 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))


class Maker(Protocol):
    """A step that has written an array."""

    @property
    def result(self) -> Result: ...

    def also(self, form: Form) -> bool:
        """Has the step write a form too; whether it can."""

    def forms_only(self) -> None:
        """Has the step write nothing but forms of its result, where it writes any."""


class Makers:
    """The makers of arrays: by the number of their step, and which one wrote a buffer last; and forms that are there,
    by what they are forms of.
    """

    def __init__(self) -> None:
        self.steps: dict[int, Maker] = {}
        self.last: dict[Buffer, int] = {}
        self.forms: dict[Buffer, dict[Key, Storage]] = {}

    def copy(self) -> Makers:
        made = Makers()
        made.steps, made.last = dict(self.steps), dict(self.last)
        made.forms = {b: dict(forms) for b, forms in self.forms.items()}
        return made

    def note(self, number: int, maker: Maker) -> None:
        """Says who wrote a buffer, as step number `number`."""
        self.steps[number] = maker
        self.last[maker.result.ref.buffer] = number

    def written(self, buffers: Iterable[Buffer]) -> None:
        """Forgets what is known of buffers that a step writes."""
        for b in buffers:
            self.last.pop(b, None)
            self.forms.pop(b, None)

    def of(self, buffer: Buffer) -> Maker | None:
        """Who wrote a buffer last, where that is known."""
        return self.steps.get(self.last.get(buffer, -1))


def needed(steps: Sequence[Step], kept: Iterable[Buffer] = ()) -> tuple[list[bool], set[Buffer]]:
    """Which steps make something that is read or handed out, and the buffers that those read; `kept`: what is read
    elsewhere.
    """
    read = set(kept)
    alive: list[bool] = []
    for step in reversed(steps):
        used = not step.writes or any(b.kind != "temp" or b in read for b in step.writes)
        alive.append(used)
        if used:
            read.update(step.reads)
    return alive[::-1], read
