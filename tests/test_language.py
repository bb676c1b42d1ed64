"""The language of native functions: what is compiled gives what Python gives."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import random
from collections.abc import Callable

import llvmlite.binding as llvm
import pytest

from xcoexec.codegen.kernels import gemm
from xcoexec.codegen.native import build
from xcoexec.codegen.native.language import inline, translate
from xcoexec.codegen.native.layout import Step
from xcoexec.codegen.native.words import exchange, ld, scratch, st
from xcoexec.codegen.rules.expressions import COPY
from xcoexec.codegen.target import target

SEVEN = 7
NUMBERS = (0, 1, -1, 2, 3, -3, 7, -8, 64, 1000003, -(2**40), 2**62)


def arithmetic(a, b):
    """Floor division and its rest, of all signs."""
    return (a // SEVEN) * 3 + a % SEVEN - (b // -5) + (b % -5) + (a & 255 | b & 15) + max(a, b) % 97 - min(a, b) // 97


def choices(a, b):
    """Conditions with and without values; what is not asked for is not computed."""
    x = a if a > b and b != 3 else b - 1
    y = (a or 5) + (b and 9)
    if not (a > b and b > 1) or a == b:
        x += 10
    elif b >= 0:
        x -= Step.ITEMS
    else:
        x = 1
    return x + y + (1 if a < b else -1) + (a > 0) + True


def turns(a, b):
    """Loops of all kinds, left early and late."""
    total, n = 0, a % 9
    for i in range(n):
        if i == 5:
            continue
        for j in range(i, 20, 3):
            if j > b % 13:
                break
            total += i * j
    for k in range(4, -1, -2):
        total = total * 3 + k
    while total > 50:
        total -= 17
        if total % 2 == 0:
            return total
    return total + n


@inline
def _square(x):
    return x * x


def _sign(x):
    if x < 0:
        return -1
    if x > 0:
        return 1


def calls(a, b):
    """Functions that are called: one that goes where it is called, one without a result for 0; a call's own memory."""
    at = scratch(2)
    st(at, a % 1000)
    st(at + 8, _square(b % 100))
    before = exchange(at, 5)
    return before * ld(at) + ld(at + 8) + _sign(b)


def _called(a: int, b: int) -> int:
    return a % 1000 * 5 + (b % 100) ** 2 + ((b > 0) - (b < 0))


def _compiled(fn: Callable[[int, int], int]) -> Callable[[int, int], int]:
    machine, _ = build._engine(target())
    module = llvm.parse_assembly(translate(fn, f"it_{fn.__name__}"))
    build._optimise(module, machine, f"it_{fn.__name__}")
    address = build._link(f"it_{fn.__name__}", bytes(machine.emit_object(module)), target())
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)


def _wrapped(n: int) -> int:
    return (n + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize(("fn", "oracle"), [(f, f) for f in (arithmetic, choices, turns)] + [(calls, _called)])
def test_a_compiled_function_gives_what_python_gives(fn: Callable[..., int], oracle: Callable[..., int]) -> None:
    made, some = _compiled(fn), random.Random(0)
    pairs = [*itertools.product(NUMBERS, NUMBERS), *((some.randint(-99, 99), some.randint(-9, 9)) for _ in range(200))]
    for a, b in pairs:
        assert made(a, b) == _wrapped(oracle(a, b)), (a, b)


def quotient(a, b):
    """No constant: the divisor can be 0."""
    return a // b


def rest(a, b):
    """No constant: the divisor can be 0."""
    return a % b


def test_division_rounds_down_and_by_zero_gives_zero() -> None:
    divide, remain = _compiled(quotient), _compiled(rest)
    for a, b in itertools.product(NUMBERS, NUMBERS):
        assert (divide(a, b), remain(a, b)) == (divmod(a, b) if b else (0, 0)), (a, b)


def power(a, b):
    """What the language does not have."""
    return a**b


def unknown(a, b):
    """A name that is no number."""
    return a + inspect


def steps(a, b):
    """A range whose step is computed."""
    for _ in range(0, a, b):
        return 1
    return 0


@pytest.mark.parametrize(("fn", "what"), [(power, "a ** b"), (unknown, "inspect"), (steps, "b")])
def test_what_the_language_lacks_is_named_with_its_line(fn: Callable[..., int], what: str) -> None:
    line = inspect.getsourcelines(fn)[1]
    with pytest.raises(SyntaxError, match=rf"{fn.__name__}, line \d+: .* has no '") as e:
        translate(fn, "it")
    assert what in str(e.value)
    assert int(str(e.value).split("line ")[1].split(":")[0]) > line


def test_a_word_is_for_native_functions_alone() -> None:
    with pytest.raises(TypeError, match="no meaning"):
        ld(8)


def test_native_functions_are_one_export_and_call_nothing() -> None:
    for spec in (*build.NATIVE, *build.CALLS):
        text = build.kernel_text(spec, target(), "it")
        assert text.count('define i64 @"it"(') == 1
        assert text.count("define ") == 1 + text.count("define internal ")


def test_passes_are_made_once_and_kernels_do_not_depend_on_their_order() -> None:
    """LLVM keeps what is made of passes for good: 0.3 MB a kernel, while they were made for each."""
    machine, _ = build._engine(target())
    assert build._passes(machine) is build._passes(machine)
    specs = [gemm.spec(mr, nv, False, COPY, ()) for mr, nv in ((6, 2), (1, 4), (14, 2))]
    made = [build._compile(s, target()) for s in specs]
    assert made == [build._compile(s, target()) for s in reversed(specs)][::-1]
