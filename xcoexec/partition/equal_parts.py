"""Equal parts: which part of each operand makes one of several equal parts of a result, along which axes."""

from __future__ import annotations

import dataclasses
import math

from ..codegen.program import Indivisible, Op
from ..codegen.rules.convolution import convolution
from ..codegen.rules.primitives import primitive
from ..codegen.rules.splits import Request


@dataclasses.dataclass(frozen=True)
class ImageRows:
    """Rows of images: their axis in the operand and in the result; `border`: rows of others that a part reads."""

    axis: int
    result: int
    border: int


def summed(op: Op, x: int) -> list[tuple[int, int]]:
    """Pairs (axis of operand `x`, axis of the other one) along which a layer sums."""
    conv = convolution(op)
    if conv is not None:
        return [(conv.image[1], conv.weights[1])] if conv.all_groups == 1 else []
    if op.prim != "dot_general":
        return []
    pairs = list(zip(*op.params["dimension_numbers"][0], strict=True))
    return pairs if x == 0 else [(b, a) for a, b in pairs]


def image_rows(op: Op) -> ImageRows | None:
    """The rows of an operation on images, of two spatial dimensions at least."""
    conv = convolution(op)
    if conv is not None and len(conv.image) >= 4 and conv.batch_groups == 1 and not conv.transposed:
        return ImageRows(conv.image[2], conv.result[2], (conv.window[0] - 1) * conv.dilation[0])
    if op.prim in ("reduce_window_sum", "reduce_window_max") and len(op.out.shape) == 4:
        windows = op.params["window_dimensions"]
        axis = next((d for d, n in enumerate(windows) if n > 1), None)
        return None if axis is None else ImageRows(axis, axis, windows[axis] - op.params["window_strides"][axis])
    return None


def equal_parts(op: Op, axis: int, count: int) -> tuple[int | None, ...]:
    """Along which axis each operand is divided in parts of which each makes one of the result's parts along `axis`
    (None: all of it is needed). Raises `Indivisible` where there are no such parts.
    """
    if len(op.outs) != 1 or op.out.shape[axis] % count:
        raise Indivisible(f"{op.prim}: no {count} equal parts.")
    if op.prim == "reshape":
        return (_regrouped(op, axis, count),)
    if op.prim == "dynamic_update_slice":
        whole, part = (v.shape[axis] for v in op.ins[:2])
        if whole != part:
            raise Indivisible(f"{op.prim}: a part of the axis is written.")
        return (axis, axis, *(None for _ in op.ins[2:]))
    rule = primitive(op).split
    if rule is None:
        raise Indivisible(f"{op.prim} has no parts.")
    size, found = op.out.shape[axis], set[tuple[int | None, ...]]()
    for k in (0, count - 1):
        need = rule(op, axis, k * size // count, (k + 1) * size // count)
        if need.keep is not None and not all(need.keep):
            raise Indivisible(f"{op.prim}: parts of other operands.")
        found.add(tuple(_share(v.shape, r, k, count) for v, r in zip(op.ins, need.operands, strict=True)))
    if len(found) > 1:
        raise Indivisible(f"{op.prim}: parts that differ.")
    return found.pop()


def _share(shape: tuple[int, ...], request: Request | None, k: int, count: int) -> int | None:
    """The axis of which a range is the k-th of equal parts; None for all of it."""
    if request is None or request[1:] == (0, shape[request[0]]):
        return None
    axis, start, stop = request
    size = shape[axis]
    if size % count or (start, stop) != (k * size // count, (k + 1) * size // count):
        raise Indivisible("a range that is no part.")
    return axis


def _regrouped(op: Op, axis: int, count: int) -> int:
    """The operand's axis that begins where an axis of a reshape's result does: heads beside what each has."""
    source, target = op.ins[0].shape, op.out.shape
    for i, n in enumerate(source):
        if n > 1 and n % count == 0 and math.prod(source[:i]) == math.prod(target[:axis]):
            return i
    raise Indivisible("reshape: parts of other groups.")


__all__ = ["ImageRows", "equal_parts", "image_rows", "summed"]
