"""Operands in fewer bytes, side by side in words of 4 that one instruction multiplies and adds to a sum.

Kernels hold bf16 in the upper halves of f32, and s8 as f32. Where a product reads each element many times, the image or
the rows are narrowed once, and the weights are packed as words of `per` elements:

    f32 [.., c]  ->  words [.., c / per]          taps [c, n]  ->  panels [c / per, n] of words

    unit         words             sums
    avx512bf16   2 bf16            f32: products are exact; each pair adds with two roundings, denormals count as 0
    avx512vnni   4 u8 by 4 s8      s32, exact: images are 128 too large, and 128 times the sum of weights is taken off
    s16          2 s16             s32, exact, on any target
    sse2         2 s16             the same by the instruction of x86
    avx2         4 s8              the same for images of which hardly any element is negative: behind a ReLU, say
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from ..program import Op, Unsupported, Value, itemsize
from ..rules.expressions import COPY, TO_BF16, Expr, Node
from ..rules.primitives import primitive
from ..rules.signs import hardly_negative
from ..segment.context import Context
from ..segment.steps import Kernel
from ..segment.storage import Storage, dense, temporary
from ..target import MatrixUnit
from .elementwise import ITEM, RUN, convert, nest
from .forms import written_by_maker
from .gemm import SHORT
from .product import pack_panels
from .vectors import ROUNDED

BF16, INT8, UINT8 = "bfloat16", "int8", "uint8"
EXACT_SUM = 1 << 10  # products of s8 whose sum is a whole number that f32 has
#: sums that are f32 of whole numbers, as the bits of s32
FROM_FLOATS: Expr = (("in", 0), ("fi", 0), ("floats", 1))


def unit_of(ctx: Context, x: Value, w: Value, whole: bool, depth: int) -> MatrixUnit | None:
    """The unit for narrow operands that multiplies these, to sums of s32 if `whole`; None where they are multiplied as
    f32. `depth`: elements of x that lie side by side.
    """
    narrow = x.dtype == w.dtype == (INT8 if whole else BF16)
    unit = ctx.target.unit(x.dtype) if narrow else None
    bytes_ = ctx.target.unit(UINT8) if whole else None
    if unit is None or bytes_ is None or unit.per >= bytes_.per or depth % bytes_.per:
        return unit
    makers = {v: op for op in ctx.program.ops for v in op.outs}
    return bytes_ if hardly_negative(x, makers, ctx.consts) else unit


def check_whole(x: Value, w: Value, out: Value) -> bool:
    """Whether a product's result is whole numbers of s32, of two operands of s8. Raises `Unsupported` for another one
    of whole numbers.
    """
    if out.dtype == "int32" and x.dtype == w.dtype == INT8:
        return True
    if out.dtype in ("int32", INT8):
        raise Unsupported(f"a product of {x.dtype} and {w.dtype} as {out.dtype}; kernels have int8 by int8 as int32")
    return False


def check_exact(depth: int) -> None:
    """Raises `Unsupported` for a sum of so many products of s8 that f32 may round."""
    if depth > EXACT_SUM:
        raise Unsupported(f"a sum of {depth} products of int8 in f32; exact are {EXACT_SUM}")


def words(n: int, unit: MatrixUnit) -> int:
    """Words that so many elements fill, up to a multiple of the unit's step."""
    return -(-n // (unit.per * unit.step)) * unit.step


def narrow(ctx: Context, x: Storage, unit: MatrixUnit) -> Storage:
    """F32 [..., c], whose last axis lies side by side, as words [..., c / per] with the same halo: those that are
    there, or written by the step that makes x, or by one that is appended. What c leaves of the last word is zero in
    pairs of bf16, and any number in others. Words that fill up to the unit's step are zero.
    """
    there = ctx.makers.forms.setdefault(x.buffer, {})
    key = (unit.name, unit.step, x.offset, x.shape, x.strides, x.halo)
    if key not in there:
        there[key] = _given(ctx, x, unit) or _asked(ctx, x, unit) or _appended(ctx, x, unit)
    return there[key]


def large(ctx: Context, x: Storage) -> bool:
    """Whether an array is more than the threads' caches keep, as f32."""
    return 4 * math.prod(x.shape) > ctx.threads * ctx.target.kept


def elements(ctx: Context, x: Storage, dtype: str) -> Storage | None:
    """An array of bf16 or int8 [..., n], held as f32, as elements of its type with the same halo, by the step that
    makes it, for products; None where that cannot.
    """
    n, each = x.shape[-1], itemsize(dtype)
    how = _rounded(ctx) if dtype == BF16 else (COPY, dtype)
    made = written_by_maker(ctx, x, *how, n * each // 4) if n * each % 4 == 0 else None
    return made and dataclasses.replace(made, shape=x.shape, strides=(*made.strides[:-1], each), narrow=dtype)


def _rounded(ctx: Context) -> tuple[Expr, str]:
    """What makes bf16 of a number for products: an expression, and the type as which its result is stored. Sums of
    products begin with +0, which -0 leaves as it is.
    """
    expr, dtype = (COPY, ROUNDED) if ctx.target.unit(BF16, "gemm") is not None else (TO_BF16, BF16)
    return (*expr, ("factor", len(expr) - 1)), dtype


def _given(ctx: Context, x: Storage, unit: MatrixUnit) -> Storage | None:
    """As `narrow`, where x is an argument that lies in words of the unit as it is; None where it is not."""
    given, n = ctx.arrived.get(x.buffer), x.shape[-1]
    if given is None or given.stored.narrow != unit.dtype or unit.shift or 4 // itemsize(unit.dtype) != unit.per:
        return None
    whole = x.dense and not any(map(any, x.halo)) and math.prod(x.shape) == math.prod(given.stored.shape)
    if not whole or n % unit.per or words(n, unit) != n // unit.per:
        return None
    return dense(given.stored.buffer, (*x.shape[:-1], n // unit.per))


def _asked(ctx: Context, x: Storage, unit: MatrixUnit) -> Storage | None:
    """As `narrow`, by the step that makes x; None where it cannot."""
    if unit.shift and any(map(any, x.halo)):  # zeroes of the halo are shifted too
        return None
    expr, dtype = _rounded(ctx) if unit.dtype == BF16 else (COPY, f"int{32 // unit.per}")
    if unit.shift:
        assert unit.shift == 128, "bytes that are u8"
        expr = (("in", 0), ("shifted", 0))
    return written_by_maker(ctx, x, expr, dtype, words(x.shape[-1], unit))


def _appended(ctx: Context, x: Storage, unit: MatrixUnit) -> Storage:
    """As `narrow`, by a step of its own."""
    if unit.shift and any(map(any, x.halo)):  # zeroes of the halo are shifted too
        inner = _narrowed(ctx, _grown(x), unit)
        offset = sum(lo * s for (lo, _), s in zip(x.halo, inner.strides, strict=True))
        shape = (*x.shape[:-1], inner.shape[-1])
        return Storage(inner.buffer, inner.offset + offset, shape, inner.strides, x.halo)
    return _narrowed(ctx, x, unit)


def _grown(x: Storage) -> Storage:
    """An array and the halo around it as one."""
    shape = tuple(lo + n + hi for n, (lo, hi) in zip(x.shape, x.halo, strict=True))
    offset = x.offset - sum(lo * s for (lo, _), s in zip(x.halo, x.strides, strict=True))
    return Storage(x.buffer, offset, shape, x.strides, ((0, 0),) * len(shape))


def as_it_lies(ctx: Context, x: Storage, unit: MatrixUnit) -> Storage | None:
    """Short runs [..., n] of an argument as words of the unit, read from a copy in its own type; None where they are
    not. Behind an odd number of elements the last word has what lies there; words of an even one begin at such.
    """
    count = words(x.shape[-1], unit)
    if (unit.dtype, unit.kernel, unit.step) != (BF16, "gemm", 1) or count > SHORT:
        return None
    own = _own(ctx, x)
    if own is x or (x.shape[-1] % 2 == 0 and any(at % 4 for at in (own.offset, *own.strides[:-1]))):
        return None
    return dataclasses.replace(own, shape=(*x.shape[:-1], count), strides=(*own.strides[:-1], 4), narrow="")


def _own(ctx: Context, x: Storage) -> Storage:
    """Elements of an argument's copy in their own type, with the same halo: fewer bytes than f32 has."""
    given = ctx.arrived.get(x.buffer)
    if given is None or given.stored.narrow != BF16:
        return x
    stored = given.stored
    copied = temporary(Value(stored.shape, "float32"), given.halo, given.apart, BF16)
    copied.buffer.nbytes += itemsize(BF16)  # words are read whole
    convert(ctx, stored, copied)
    first, *strides = (s * itemsize(BF16) // 4 for s in (x.offset - given.first, *x.strides))
    return Storage(copied.buffer, copied.offset + first, x.shape, tuple(strides), x.halo, BF16)


def _narrowed(ctx: Context, x: Storage, unit: MatrixUnit) -> Storage:
    x = _own(ctx, x) if unit.dtype == BF16 else x
    each = itemsize(x.narrow or "float32")
    *outer, n = x.shape
    filled, own = words(n, unit), -(-n // unit.per)
    out = temporary(Value((*outer, own), "float32"), (*x.halo[:-1], (0, filled - own)))
    out = dataclasses.replace(out, shape=(*outer, filled), halo=(*x.halo[:-1], (0, 0)))
    walked, run = list(zip(outer, x.strides[:-1], out.strides[:-1], strict=True)), n
    while walked and run % unit.per == 0 and run * walked[-1][0] <= RUN:
        if walked[-1][0] != 1 and walked[-1][1:] != (each * run, 4 * run // unit.per):
            break
        run *= walked.pop()[0]
    rows, steps = 1, [0, 0]  # of one call
    if walked:
        many, *steps = walked.pop()
        rows = max(d for d in range(1, max(1, RUN // run) + 1) if many % d == 0)
        walked.append((many // rows, rows * steps[0], rows * steps[1]))
    loops = [length for length, _, _ in walked] or [1]
    views = [(s, tuple(step[i] for step in walked) or (0,), 0) for i, s in ((1, x), (2, out))]
    key = ("narrow", x.narrow or "float32") if unit.dtype == BF16 else ("whole", 32 // unit.per, unit.shift)
    work = rows * -(-run // ctx.target.vl)
    nest(ctx, Kernel(key), [run, rows, *steps], loops, views, 1, max(1, ITEM // max(run * rows, 1)), work)
    return out


def pack_words(weights: np.ndarray, vl: int, vectors: int, unit: MatrixUnit) -> np.ndarray:
    """Panels, as `pack_panels` makes them, of words: weights [groups, taps, c, channels] of the unit's type (exactly;
    of any type) as [groups, taps * words of c, channels]. Those of a unit with a step are tiles of so many words.
    """
    groups, taps, c, n = weights.shape
    if unit.dtype == BF16:
        wide = np.zeros((groups, taps, words(c, unit) * unit.per, n), np.float32)
        wide[:, :, :c] = weights
        narrow = (wide.view(np.uint32) >> 16).astype(np.uint16)
    else:
        narrow = np.zeros((groups, taps, words(c, unit) * unit.per, n), f"i{4 // unit.per}")
        narrow[:, :, :c] = weights
    side_by_side = np.ascontiguousarray(narrow.reshape(groups, -1, unit.per, n).swapaxes(2, 3))
    return pack_panels(side_by_side.view(np.float32)[..., 0], vl, vectors, unit.step)


def unshifted(weights: np.ndarray, unit: MatrixUnit) -> np.ndarray:
    """What the shift adds to each sum, negative, as bits in f32 [groups, channels]; weights as in `pack_words`."""
    return np.asarray(-unit.shift * weights.sum((1, 2), dtype=np.int64), np.int32).view(np.float32)


def over(expr: Expr, sums: Expr) -> Expr:
    """An epilogue whose operand 0 is `sums`, an expression over the accumulators."""
    out, number = list(sums), dict[int, int]()
    for i, (head, *args) in enumerate(expr):
        if (head, *args) == ("in", 0):
            number[i] = len(sums) - 1
            continue
        if sums == FROM_FLOATS and (head, *args) == ("if", *_places(expr, ("bits", 0))) and expr[0] == ("in", 0):
            number[i] = 0  # the whole numbers as they are
            continue
        number[i] = len(out)
        out.append((head, *args) if head in ("in", "lit") else (head, *(number[a] for a in args)))
    return tuple(out)


def _places(expr: Expr, node: Node) -> list[int]:
    return [i for i, n in enumerate(expr) if n == node]


def check_sums(ops: Sequence[Op]) -> None:
    """Raises `Unsupported` for sums and products of many values of s8, which wrap around at each step."""
    for op in ops:
        if op.body is not None:
            check_sums(op.body.all_ops)
        if any(v.dtype == INT8 for v in op.outs) and primitive(op).combine in ("sum", "prod"):
            raise Unsupported(f"{op.prim} on int8; kernels sum int8 as int32")


__all__ = [
    "BF16",
    "FROM_FLOATS",
    "INT8",
    "as_it_lies",
    "check_exact",
    "check_sums",
    "check_whole",
    "elements",
    "large",
    "narrow",
    "over",
    "pack_words",
    "unit_of",
    "unshifted",
    "words",
]
