"""Arrays that are kept in fewer bits than what is computed with: casts of them, times a scale, in another shape."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.program import Literal, Value, itemsize, kind


def stored(prim: str, ins: Sequence[Value | Literal], outs: Sequence[Value]) -> Value | None:
    """The result of an operation with the narrower array that it is made from (`Value.source`); None where it is not
    made from one, or in a way that kernels do not read.
    """
    if len(outs) != 1 or not ins:
        return None
    a, out = ins[0], outs[0]
    if prim == "convert_element_type" and isinstance(a, Value):
        if a.scale is not None and kind(out.dtype) == "f":
            return Value(out.shape, out.dtype, a.source, a.scale)
        return Value(out.shape, out.dtype, a) if itemsize(a.dtype) < itemsize(out.dtype) else None
    if prim == "reshape" and isinstance(a, Value) and a.source is not None:
        return Value(out.shape, out.dtype, a.source, a.scale)
    if prim == "mul" and kind(out.dtype) == "f":
        return _scaled(ins[0], ins[1], out) or _scaled(ins[1], ins[0], out)
    return None


def _scaled(a: Value | Literal, scale: Value | Literal, out: Value) -> Value | None:
    """A cast times an array that is the same along some axes."""
    if not isinstance(a, Value) or not isinstance(scale, Value) or a.source is None or a.scale is not None:
        return None
    shape = a.source.shape
    fits = len(scale.shape) == len(shape) and all(n in (1, m) for n, m in zip(scale.shape, shape, strict=True))
    return Value(out.shape, out.dtype, a.source, scale) if fits and shape == out.shape != scale.shape else None


__all__ = ["stored"]
