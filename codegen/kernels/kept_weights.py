"""Weights as the model keeps them: of a narrow type, times a scale by channel, or by channel and group of rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..program import Value, bits
from ..segment.context import Context
from ..segment.steps import Ref

#: what kernels read as it is stored
STORED = ("float32", "bfloat16", "float16", "int8", "int4")


@dataclasses.dataclass(frozen=True)
class Stored:
    """Weights [rows, channels]: `value`, times `scale` where there is one; `lead` of its first axes go along the rows,
    `group` rows have the same.
    """

    value: Value
    rows: int
    channels: int
    scale: Value | None = None
    lead: int = 0
    group: int = 0

    @property
    def by_channel(self) -> bool:
        """Whether all rows have the same scale."""
        return self.scale is not None and self.group == self.rows

    def pack_scale(self, ctx: Context) -> Ref:
        """The scales, f32 [rows / group, channels]."""
        groups = self.rows // self.group
        return ctx.pack(4 * groups * self.channels, self.scales, ("scales", *self._key))

    @property
    def _key(self) -> tuple[object, ...]:
        return self.scale, self.lead, self.rows // self.group, self.channels

    @property
    def scale_dtype(self) -> str:
        """The type in which the model keeps the scales: float32, float16 or bfloat16."""
        kept = as_cast(self.scale).dtype if self.scale is not None else ""
        return kept if kept in ("float16", "bfloat16") else "float32"

    def scales(self, consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        """The scales of given constants, f32 [rows / group, channels]."""
        scale, shape = self.scale, self.value.shape
        assert scale is not None
        cut = _cut(shape, self.channels)
        first = np.asarray(consts[scale], np.float32)[(slice(None),) * self.lead + (0,) * (cut - self.lead)]
        whole = np.broadcast_to(first, (*shape[: self.lead], *shape[cut:]))
        return whole.reshape(self.rows // self.group, self.channels)


def stored(w: Value, rows: int, channels: int) -> Stored:
    """Constant weights that lie as [rows, channels] in the narrowest form that kernels read: fewer bytes, and no
    copy.
    """
    if w.source is None or w.source.dtype not in STORED:
        return Stored(w, rows, channels)
    if w.scale is None:
        return Stored(w.source, rows, channels)
    shape = w.source.shape
    cut = _cut(shape, channels)
    lead = max((d + 1 for d in range(cut) if w.scale.shape[d] != 1), default=0)
    group = rows // math.prod(shape[:lead]) if cut else 0
    return Stored(w.source, rows, channels, w.scale, lead, group) if group else Stored(w, rows, channels)


def as_cast(w: Value) -> Value:
    """The array that constant weights are a cast of, where kernels read that by whole bytes and nothing is multiplied;
    else the weights.
    """
    cast = w.source is not None and w.scale is None and w.source.dtype in STORED and bits(w.source.dtype) >= 8
    return w.source if cast and w.source is not None else w


def _cut(shape: Sequence[int], channels: int) -> int:
    """The first of the last axes that are the channels together; 0 where there are none such, or nothing but them."""
    return next((d for d in range(len(shape) - 1, 0, -1) if math.prod(shape[d:]) == channels), 0)


__all__ = ["STORED", "Stored", "as_cast", "bits", "stored"]
