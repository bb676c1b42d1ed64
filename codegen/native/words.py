"""Raw memory, atomics and calls by address for native functions: the words that drivers and the team are written in.

Addresses and counts are int64; every load and store names its width.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

import llvmlite.ir as ir

from .language import I64, Function, Word, inline

I32 = ir.IntType(32)


def _p(b: ir.IRBuilder, address: ir.Value, typ: ir.Type = I64) -> ir.Value:
    return b.inttoptr(address, typ.as_pointer())


def _intrinsic(b: ir.IRBuilder, name: str, result: ir.Type, *args: ir.Value) -> ir.Value:
    """Calls an LLVM intrinsic by its name."""
    types = [x.type for x in args]
    return b.call(b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(result, types), name), args)


@Word
def ld(b, address):
    """The int64 at an address (8 bytes)."""
    return b.load(_p(b, address))


@Word
def st(b, address, value):
    """Stores an int64 at an address (8 bytes)."""
    b.store(value, _p(b, address))


@Word
def st32(b, address, value):
    """Stores the lower half of a value at an address (4 bytes)."""
    b.store(b.trunc(value, I32), _p(b, address, I32))


@Word
def atomic_load(b, address):
    """The int64 at an address, in one order for all threads."""
    return b.load_atomic(_p(b, address), "seq_cst", 8)


@Word
def atomic_store(b, address, value):
    """Stores an int64 at an address, in one order for all threads."""
    b.store_atomic(value, _p(b, address), "seq_cst", 8)


@Word
def atomic_add(b, address, value):
    """Adds and returns the value before."""
    return b.atomic_rmw("add", _p(b, address), value, "seq_cst")


@Word
def exchange(b, address, value):
    """Stores a value and returns the one before."""
    return b.atomic_rmw("xchg", _p(b, address), value, "seq_cst")


@Word
def compare_exchange(b, address, expected, value):
    """Stores `value` if `expected` is there; returns 1 on success."""
    pair = b.cmpxchg(_p(b, address), expected, value, "seq_cst", "seq_cst")
    return b.zext(b.extract_value(pair, 1), I64)


@Word
def take_bit(b, address, number):
    """Sets bit `number` (0..63) of the int64 at an address; returns 1 if it was not set before."""
    bit = b.shl(ir.Constant(I64, 1), number)
    before = b.atomic_rmw("or", _p(b, address), bit, "seq_cst")
    return b.zext(b.icmp_signed("==", b.and_(before, bit), ir.Constant(I64, 0)), I64)


@Word
def bit_of(b, value, number):
    """Bit `number` (0..63) of a value: 0 or 1."""
    return b.and_(b.lshr(value, number), ir.Constant(I64, 1))


@Word
def prefetch(b, address):
    """Asks for the cache line at an address, any one, into the second cache."""
    numbers = (ir.Constant(I32, n) for n in (0, 2, 1))
    _intrinsic(b, "llvm.prefetch.p0", ir.VoidType(), _p(b, address, ir.IntType(8)), *numbers)


@Word
def scratch(b, words):
    """Address of `words` (a constant) int64 of 8 bytes each on the stack of the calling function."""
    with b.goto_entry_block():
        return b.ptrtoint(b.alloca(ir.ArrayType(I64, words.constant)), I64)


def _caller(n: int) -> Word:
    """A call of a native function by its address, of `n` int64 besides."""

    def call(b: ir.IRBuilder, address: ir.Value, *values: ir.Value) -> ir.Value:
        if len(values) != n:
            raise SyntaxError(f"call{n} has {len(values)} values.")
        return b.call(_p(b, address, ir.FunctionType(I64, [I64] * n)), values)

    return Word(call)


call1, call2, call3, call4, call5, call11, call13 = (_caller(n) for n in (1, 2, 3, 4, 5, 11, 13))


#: machine -> (LLVM intrinsic that tells the core of a spin loop, its arguments)
_PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}


@Word
def pause(b):
    """Tells the core that this is a spin loop."""
    name, numbers = _PAUSE.get(platform.machine(), ("llvm.donothing", ()))
    _intrinsic(b, name, ir.VoidType(), *(ir.Constant(I32, n) for n in numbers))


#: machine -> bits of a thread's word of control that have it flush denormals
_FLUSH = {"x86_64": 0x8040, "aarch64": 1 << 24, "arm64": 1 << 24}


def _control(b: ir.IRBuilder) -> ir.Value:
    """How this thread computes f32: x86's MXCSR, ARM's FPCR."""
    if platform.machine() != "x86_64":
        return _intrinsic(b, "llvm.aarch64.get.fpcr", I64)
    place = b.alloca(I32)
    _intrinsic(b, "llvm.x86.sse.stmxcsr", ir.VoidType(), b.bitcast(place, ir.IntType(8).as_pointer()))
    return b.zext(b.load(place), I64)


def _set_control(b: ir.IRBuilder, value: ir.Value) -> None:
    if platform.machine() != "x86_64":
        _intrinsic(b, "llvm.aarch64.set.fpcr", ir.VoidType(), value)
        return
    place = b.alloca(I32)
    b.store(b.trunc(value, I32), place)
    _intrinsic(b, "llvm.x86.sse.ldmxcsr", ir.VoidType(), b.bitcast(place, ir.IntType(8).as_pointer()))


@Word
def flush_denormals(b):
    """Has this thread take f32 below the normal numbers for 0, in operands and results, as XLA's threads do: they cost
    many times as much on some CPUs. Returns what `restore_denormals` takes.
    """
    if platform.machine() not in _FLUSH:
        return ir.Constant(I64, 0)
    before = _control(b)
    _set_control(b, b.or_(before, ir.Constant(I64, _FLUSH[platform.machine()])))
    return before


@Word
def restore_denormals(b, before):
    """Has this thread compute again as it did."""
    if platform.machine() in _FLUSH:
        _set_control(b, before)


@inline
def now(address):
    """Nanoseconds of the monotonic clock; `address`: of clock_gettime."""
    t = scratch(2)
    call2(address, 1, t)
    return ld(t) * 1_000_000_000 + ld(t + 8)


def native(arguments: int) -> Callable[[Function], Function]:
    """Marks a function of so many int64, returning int64, that `build.native_address` compiles.

    Raises `TypeError` for a function of another number of them.
    """

    def mark(fn: Function) -> Function:
        if fn.__code__.co_argcount != arguments:
            raise TypeError(f"{fn.__name__} is marked as a function of {arguments} int64.")
        return fn

    return mark
