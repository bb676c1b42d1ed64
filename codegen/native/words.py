"""Raw memory, atomics and calls by address for Numba code: the words that drivers and the team are written in.

Addresses and counts are int64; every load and store names its width.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

import llvmlite.ir as ir
from numba import cfunc, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

I64, I32 = ir.IntType(64), ir.IntType(32)


def _p(b: ir.IRBuilder, address: ir.Value, typ: ir.Type = I64) -> ir.Value:
    return b.inttoptr(address, typ.as_pointer())


@intrinsic
def ld(typingctx, address):
    """The int64 at an address (8 bytes)."""
    return types.int64(types.int64), lambda c, b, s, a: b.load(_p(b, a[0]))


def _storing(typ: ir.Type) -> Callable[..., ir.Value]:
    def codegen(c, b, s, a):
        b.store(a[1], _p(b, a[0], typ))
        return c.get_dummy_value()

    return codegen


@intrinsic
def st(typingctx, address, value):
    """Stores an int64 at an address (8 bytes)."""
    return types.void(types.int64, types.int64), _storing(I64)


@intrinsic
def st32(typingctx, address, value):
    """Stores an int32 at an address (4 bytes)."""
    return types.void(types.int64, types.int32), _storing(I32)


@intrinsic
def atomic_load(typingctx, address):
    """The int64 at an address, in one order for all threads."""
    return types.int64(types.int64), lambda c, b, s, a: b.load_atomic(_p(b, a[0]), "seq_cst", 8)


@intrinsic
def atomic_store(typingctx, address, value):
    """Stores an int64 at an address, in one order for all threads."""

    def codegen(c, b, s, a):
        b.store_atomic(a[1], _p(b, a[0]), "seq_cst", 8)
        return c.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def atomic_add(typingctx, address, value):
    """Adds and returns the value before."""
    return types.int64(types.int64, types.int64), lambda c, b, s, a: b.atomic_rmw("add", _p(b, a[0]), a[1], "seq_cst")


@intrinsic
def exchange(typingctx, address, value):
    """Stores a value and returns the one before."""
    return types.int64(types.int64, types.int64), lambda c, b, s, a: b.atomic_rmw("xchg", _p(b, a[0]), a[1], "seq_cst")


@intrinsic
def compare_exchange(typingctx, address, expected, value):
    """Stores `value` if `expected` is there; returns 1 on success."""

    def codegen(c, b, s, a):
        pair = b.cmpxchg(_p(b, a[0]), a[1], a[2], "seq_cst", "seq_cst")
        return b.zext(b.extract_value(pair, 1), I64)

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic(prefer_literal=True)
def scratch(typingctx, words):
    """Address of `words` (a literal) int64 of 8 bytes each on the stack of the calling function."""
    if not isinstance(words, types.IntegerLiteral):
        return None
    n = words.literal_value

    def codegen(c, b, s, a):
        with b.goto_entry_block():
            return b.ptrtoint(b.alloca(ir.ArrayType(I64, n)), I64)

    return types.int64(words), codegen


def _caller(n: int) -> Callable[..., int]:
    """A call of a native function by its address, of `n` int64 besides."""
    sig = types.int64(*[types.int64] * (n + 1))

    def codegen(c, b, s, a):
        return b.call(_p(b, a[0], ir.FunctionType(I64, [I64] * n)), list(a[1:]))

    names = ", ".join(f"a{i}" for i in range(n))
    scope: dict[str, object] = {"sig": sig, "codegen": codegen}
    exec(f"def call{n}(typingctx, address, {names}):\n    return sig, codegen", scope)
    return intrinsic(scope[f"call{n}"])


call1, call2, call3, call4, call5, call11, call14 = (_caller(n) for n in (1, 2, 3, 4, 5, 11, 14))


#: machine -> (LLVM intrinsic that tells the core of a spin loop, its arguments)
_PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}


@intrinsic
def pause(typingctx):
    """Tells the core that this is a spin loop."""
    name, numbers = _PAUSE.get(platform.machine(), ("llvm.donothing", ()))

    def codegen(c, b, s, a):
        args = [ir.Constant(I32, n) for n in numbers]
        fn = cgutils.get_or_insert_function(b.module, ir.FunctionType(ir.VoidType(), [x.type for x in args]), name)
        b.call(fn, args)
        return c.get_dummy_value()

    return types.void(), codegen


@njit(inline="always")
def now(address):
    """Nanoseconds of the monotonic clock; `address`: of clock_gettime."""
    t = scratch(2)
    call2(address, 1, t)
    return ld(t) * 1_000_000_000 + ld(t + 8)


def native(arguments: int) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Marks a function of so many int64, returning int64, that `build.native_address` compiles."""

    def mark(fn: Callable[..., int]) -> Callable[..., int]:
        fn.arguments = arguments  # type: ignore[attr-defined]
        return fn

    return mark


def native_text(fn: Callable[..., int], name: str) -> str:
    """LLVM IR of a marked function, exported as `int64 name(int64...)`.

    Numba compiles it; its Python entry points are left out, so that the code stands alone and can be kept
    as an object file. `error_model="numpy"`: nothing raises.
    """
    n = fn.arguments  # type: ignore[attr-defined]
    compiled = cfunc(types.int64(*[types.int64] * n), nogil=True, error_model="numpy")(fn)
    text = compiled._library.get_llvm_str()
    inner = compiled._wrapper_name.removeprefix("cfunc.")
    args = ", ".join(f"i64 %a{i}" for i in range(n))
    wrapper = f"""
define i64 @{name}({args}) {{
  %result = alloca i64
  %info = alloca ptr
  %status = call i32 @{inner}(ptr %result, ptr %info, {args})
  %value = load i64, ptr %result
  ret i64 %value
}}
"""
    return text + wrapper
