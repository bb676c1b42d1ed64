"""Types and constants of LLVM's, each made once: an object of llvmlite writes its text once, and a constant vector has
a long one.
"""

from __future__ import annotations

import dataclasses
import functools
import struct

import llvmlite.ir as ir

F32, I32, I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
KEPT = 1024  # constants of a kind that are kept; kernels share most of theirs
FIRST = ir.Constant(I32, 0)  # lane
ROUNDED = "rounded bfloat16"  # what AVX512-BF16 makes of f32: as bfloat16, where numbers below the normal ones are 0
STORED_BYTES = {"bfloat16": 2, "float16": 2, "int16": 2, "int8": 1, ROUNDED: 2}  # of an element that has not 4 bytes


class BFloat(ir.Type):
    """LLVM's bfloat, which llvmlite does not name."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash(BFloat)


@functools.cache
def vector(element: ir.Type, lanes: int) -> ir.VectorType:
    """The type of vectors of so many elements."""
    return ir.VectorType(element, lanes)


@functools.cache
def pointer(typ: ir.Type) -> ir.PointerType:
    return typ.as_pointer()


@functools.lru_cache(KEPT)
def i64(n: int) -> ir.Constant:
    """A constant of 64 bits: an address, a count or a size in bytes."""
    return ir.Constant(I64, n)


@functools.lru_cache(KEPT)
def f32s(number: bytes, lanes: int) -> ir.Constant:
    """A constant vector of f32, by the bytes of its number as a double: +0 and -0 stay apart, and so do NaNs."""
    return ir.Constant(vector(F32, lanes), struct.unpack("d", number)[0])


@functools.lru_cache(KEPT)
def integers(bits: int, numbers: tuple[int, ...]) -> ir.Constant:
    """A constant vector of integers of so many bits."""
    return ir.Constant(vector(ir.IntType(bits), len(numbers)), list(numbers))


@functools.cache
def undefined(typ: ir.VectorType) -> ir.Constant:
    return ir.Constant(typ, ir.Undefined)


def number(x: ir.Value) -> float | None:
    """The number that every lane of a constant vector holds; None for what is computed."""
    return float(x.constant[0].constant) if isinstance(x, ir.Constant) else None


@dataclasses.dataclass(frozen=True)
class Bytes:
    """What a vector of f32 was made of: `narrow`, the s8 nearest to each f32 of `source`, between each two `bounds`,
    and 128 larger where `flipped`.
    """

    source: ir.Value
    narrow: ir.Value
    flipped: bool = False
    bounds: tuple[tuple[ir.Value, ...], ...] = ()
