"""Expressions of f32, s32, bool and literals of all kinds: cases that are easy to confuse, then programs at random."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax import lax

import xcoexec
from xcoexec.codegen.kernels.elementwise import even
from xcoexec.codegen.rules import numpy_rules
from xcoexec.codegen.rules.expressions import SHORTER, expression, literal
from xcoexec.codegen.rules.primitives import PRIMITIVES

from .oracle import oracles
from .support import array, check_host, run_host, stages_of
from .test_accuracy import UNARY

pytestmark = pytest.mark.usefixtures("quick_xla")

X = np.ones((4, 8), np.float32)
STEP = np.int32(7)
INT = np.array([[-3, 0, 1], [2, 2**31 - 1, -(2**31)]], np.int32)
BOOL = np.array([[True, False, True], [False, False, True]])
FLOAT = np.array([[-0.0, 0.0, 1.5], [np.nan, -np.inf, -2.5]], np.float32)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "schedule": (lambda w, g, step: w - g * (0.1 / (1 + 0.5 * (step + 1))), (X, 3 * X, STEP)),
    "one number, two kinds": (lambda x, p: x * 2 + p * 2 + 1.0, (X, np.int32(4))),
    "one number, three kinds": (
        lambda f, i, b: jnp.where(b, f + 1.0, f) + (i + 1) + jnp.where(b ^ True, 1.0, 0.0),
        (FLOAT, INT, BOOL),
    ),
    "two zeros": (lambda x: 1 / jnp.maximum(x * 0.0, 0.0) + 1 / jnp.minimum(abs(x) * 0.0, -0.0) + x, (X,)),
    "spence": (jax.scipy.special.spence, (array(4, 9, low=0.01, high=9),)),
    "bitwise": (lambda i: ((i & 6) | 1) ^ ~i, (INT,)),
    "logical": (lambda f, b: jnp.where((f > 0) & ~b | (b ^ True), 2.0, f), (FLOAT, BOOL)),
    "compare bools": (lambda f, b: (b == (f > 0)) | (b < (f == 0)), (FLOAT, BOOL)),
    "largest bool": (lambda f, b: jnp.maximum(b, f > 0), (FLOAT, BOOL)),
    "select bools": (lambda f, b: lax.select(b, f > 0, f <= 0), (FLOAT, BOOL)),
    "select by s32": (lambda i, f: lax.select_n(i, f, f + 1, f + 2), (np.clip(INT, 0, 2), FLOAT)),
    "select s32 by s32": (lambda i: lax.select_n(i, i + 5, i * 2, -i), (np.clip(INT, 0, 2),)),
    "clamp s32": (lambda i: lax.clamp(np.int32(-2), i, np.int32(2)), (INT,)),
    "clamp bool": (lambda b, f: lax.clamp(f > 0, b, f < 2), (BOOL, FLOAT)),
    "clamp upside down": (lambda f: lax.clamp(np.float32(3), f, np.float32(1)), (FLOAT,)),
    "clamp by NaN": (lambda f: lax.clamp(np.float32(np.nan), f, np.float32(1)), (FLOAT,)),
    "largest of NaN": (lambda f: jnp.maximum(f, np.float32(np.nan)), (FLOAT,)),
    "s32 of f32": (lambda f: (f * 1e9).astype(jnp.int32), (FLOAT,)),
    "s32 of NaN": (lambda f: f.astype(jnp.int32) + 1, (FLOAT,)),
    "bool of NaN": (lambda f: f.astype(bool), (FLOAT,)),
    "wrap around": (lambda i: i * 3 + jnp.abs(i) - jnp.square(i) + i**3, (INT,)),
    "signs": (lambda i, f: jnp.sign(i) + jnp.sign(f), (INT, FLOAT)),
    "rounded to bf16": (lambda f: (f * 1.001).astype(jnp.bfloat16).astype(jnp.float32) + 1, (array(3, 21),)),
    "rounded to f16": (lambda f: (f * 1.001).astype(jnp.float16).astype(jnp.float32) + 1, (array(3, 21),)),
    "beyond f16": (lambda f: (f * 1e6).astype(jnp.float16).astype(jnp.float32), (array(3, 21),)),
    "s32 to bf16": (lambda i: i.astype(jnp.bfloat16).astype(jnp.float32) * 0.5, (INT,)),
}


SPLIT = ("spence",)  # some of their operations have no kernel


#: what XLA's older emitters do not compile: the smoke tests of .ci/run have the newer ones
ALONE = ("clamp bool",) if "xla_cpu_use_fusion_emitters=false" in os.environ.get("XLA_FLAGS", "") else ()


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[str, Any]]:
    """What all cases give under `xcoexec.jit` and under `jax.jit`, as one program."""
    every = lambda operands: {name: CASES[name][0](*args) for name, args in operands.items()}
    operands = {name: args for name, (_, args) in CASES.items() if name not in ALONE}
    return xcoexec.jit(every, strategy="host", strict=True)(operands), jax.jit(every)(operands)


@pytest.mark.parametrize("name", CASES)
def test_kinds(name: str, both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Kernels and the whole of `jit` give what jax.jit gives: the same type and NaN, all digits but the last two."""
    fn, args = CASES[name]
    if name in ALONE:
        want = jax.jit(fn, compiler_options={"xla_cpu_use_fusion_emitters": True})(*args)
        np.testing.assert_allclose(run_host(fn, *args)[0], np.asarray(want), rtol=2e-6)
        return
    got, want = (of[name] for of in both)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-6, atol=2e-6 if name == "spence" else 0)
    if name not in SPLIT:
        np.testing.assert_allclose(run_host(fn, *args)[0], np.asarray(want), rtol=2e-6)


def _gated(name: str, x: Any) -> Any:
    return getattr(lax, name)(x * 3) * x


@pytest.mark.parametrize("name", sorted(SHORTER))
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_functions_of_bf16_take_less(name: str, dtype: str) -> None:
    """And only those; what they lose is less than the last rounding loses."""
    x = array(7, 45).astype(dtype)
    program = stages_of(functools.partial(_gated, name), x)[1].program
    nodes, _ = expression(tuple(program.ops), program.outputs[0])
    assert (f"{name}@bf16" in [node[0] for node in nodes]) == (dtype == "bfloat16")
    got = run_host(functools.partial(_gated, name), x)[0]
    thrice = np.asarray(x * 3, np.float64) if dtype == "float32" else np.asarray(x, np.float64) * 3
    want = UNARY[name][0](thrice) * np.asarray(x, np.float64)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2.0**-8 if dtype == "bfloat16" else 2e-6)


def test_f16_overflows_inside_a_layer() -> None:
    """An intermediate beyond 65504 is infinite, as under jax.jit, behind a product too."""
    x = jnp.asarray([[300.0, 1.5, -400.0]], jnp.float16)
    for fn in (lambda x: (x * x) / x, lambda x: x * x - x * x, lambda x: (x.T @ x) * jnp.float16(0.5)):
        got, want = run_host(fn, x)[0], jax.jit(fn)(x)
        np.testing.assert_array_equal(got.astype(np.float16), np.asarray(want))


def test_reduce_precision_stays() -> None:
    x = array(3, 21)
    fn = lambda x: lax.reduce_precision(x * 1.5, 8, 7) + 1
    np.testing.assert_array_equal(np.asarray(xcoexec.jit(fn, strategy="host")(x)), np.asarray(jax.jit(fn)(x)))


def test_literals_that_are_equal_are_different_nodes() -> None:
    nodes = [
        literal(2, "int32"),
        literal(2, "float32"),
        literal(True, "bool"),
        literal(1, "int32"),
        literal(1.0),
        literal(0.0),
        literal(-0.0),
    ]
    assert len(set(nodes)) == len(nodes)
    assert literal(float("nan")) == literal(float("nan"))
    assert literal(0.1, "bfloat16") == literal(0.1001, "bfloat16")


def test_values_that_are_read_twice_are_built_once() -> None:
    def fn(x: Any) -> Any:
        for _ in range(60):
            x = x * x - x
        return x

    check_host(fn, array(3, 5, low=0.1, high=0.9))


def test_very_long_expressions_are_left_to_the_device_half() -> None:
    def fn(x: Any) -> Any:
        for i in range(1500):
            x = x * 0.5 + i
        return x

    _, graph = stages_of(fn, array(3, 5))
    assert any("operations in one group" in layer.host_error for layer in graph.layers)


def test_reference_of_integers() -> None:
    """The oracle's own quotients, selects and bit patterns, against XLA."""
    a, b = INT.ravel(), np.array([2, 0, -1, -3, 7, -1], np.int32)
    for fn in (lax.div, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor):
        with np.errstate(all="ignore"):
            got = PRIMITIVES[{"div": "div"}.get(fn.__name__, fn.__name__.removeprefix("bitwise_"))].reference(
                None, a, b
            )
        np.testing.assert_array_equal(got, np.asarray(jax.jit(fn)(a, b)))
    which, cases = np.array([-1, 0, 1, 2, 9], np.int32), [np.full(5, i, np.float32) for i in range(3)]
    got = numpy_rules.select_n(which, *cases)
    np.testing.assert_array_equal(got, np.asarray(lax.select_n(which, *cases)))


# -- programs at random ------------------------------------------------------------------------------

SHAPE = (3, 5)
LEAVES = [SHAPE, SHAPE, (5,), (3, 1), ()]
NUMBERS = {
    "f": [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.25, 7.75, 100.0, 1e-3, -2e4, 3e9, 1e38, 1e-40, np.inf, -np.inf, np.nan],
    "i": [0, 1, -1, 2, 3, -7, 100, 65536, 2**31 - 1, -(2**31)],
    "b": [False, True],
}
TYPES = {"f": np.float32, "i": np.int32, "b": np.bool_}
Rule = Callable[..., Any]


def _f32(fn: Rule) -> Rule:
    """A function as float64 NumPy computes it, rounded once."""
    return lambda *xs: np.asarray(fn(*(x.astype(np.float64) for x in xs))).astype(np.float32)


def _signed(pick: Rule, when_equal: Rule) -> Rule:
    return lambda a, b: np.where(
        (a == 0) & (b == 0),
        np.where(when_equal(np.signbit(a), np.signbit(b)), np.float32(-0.0), np.float32(0.0)),
        pick(a, b),
    )


def _converted(x: Any, to: Any) -> np.ndarray:
    """To integers: the nearest inside of the range; NaN is 0."""
    if to is np.int32 and np.asarray(x).dtype == np.float32:
        x = np.clip(np.nan_to_num(np.asarray(x, np.float64)), -(2**31), 2**31 - 1)
    return np.asarray(x).astype(to)


_MAX, _MIN = _signed(np.maximum, np.logical_and), _signed(np.minimum, np.logical_or)

#: operation -> (kinds of the operands, kind of the result, JAX's function, NumPy's); LOOSE ones may lose some digits
OPS: dict[str, tuple[str, str, Rule, Rule]] = {
    "add": ("ff", "f", jnp.add, _f32(np.add)),
    "sub": ("ff", "f", jnp.subtract, _f32(np.subtract)),
    "mul": ("ff", "f", jnp.multiply, _f32(np.multiply)),
    "div": ("ff", "f", jnp.divide, _f32(np.divide)),
    "max": ("ff", "f", jnp.maximum, _MAX),
    "min": ("ff", "f", jnp.minimum, _MIN),
    "neg": ("f", "f", jnp.negative, np.negative),
    "abs": ("f", "f", jnp.abs, np.abs),
    "floor": ("f", "f", jnp.floor, np.floor),
    "ceil": ("f", "f", jnp.ceil, np.ceil),
    "sign": ("f", "f", jnp.sign, lambda x: np.where(x == 0, x, np.sign(x))),
    "cube": ("f", "f", lambda x: x**3, lambda x: _f32(np.multiply)(x, _f32(np.multiply)(x, x))),
    "sqrt": ("f", "f", jnp.sqrt, _f32(np.sqrt)),
    "clamp": (
        "f",
        "f",
        lambda x: lax.clamp(np.float32(-0.5), x, np.float32(2)),
        lambda x: _MIN(_MAX(x, np.float32(-0.5)), np.float32(2)),
    ),
    "where": ("bff", "f", jnp.where, np.where),
    "exp": ("f", "f", jnp.exp, _f32(np.exp)),
    "tanh": ("f", "f", jnp.tanh, _f32(np.tanh)),
    "log1p": ("f", "f", jnp.log1p, _f32(np.log1p)),
    "add@i": ("ii", "i", jnp.add, np.add),
    "sub@i": ("ii", "i", jnp.subtract, np.subtract),
    "mul@i": ("ii", "i", jnp.multiply, np.multiply),
    "max@i": ("ii", "i", jnp.maximum, np.maximum),
    "abs@i": ("i", "i", jnp.abs, np.abs),
    "sign@i": ("i", "i", jnp.sign, np.sign),
    "not@i": ("i", "i", jnp.invert, np.invert),
    "and@i": ("ii", "i", jnp.bitwise_and, np.bitwise_and),
    "xor@i": ("ii", "i", jnp.bitwise_xor, np.bitwise_xor),
    "where@i": ("bii", "i", jnp.where, np.where),
    "lt": ("ff", "b", jnp.less, np.less),
    "eq": ("ff", "b", jnp.equal, np.equal),
    "ne": ("ff", "b", jnp.not_equal, np.not_equal),
    "ge@i": ("ii", "b", jnp.greater_equal, np.greater_equal),
    "eq@b": ("bb", "b", jnp.equal, np.equal),
    "and@b": ("bb", "b", jnp.logical_and, np.logical_and),
    "xor@b": ("bb", "b", jnp.logical_xor, np.logical_xor),
    "not@b": ("b", "b", jnp.logical_not, np.logical_not),
    "max@b": ("bb", "b", jnp.maximum, np.maximum),
    "where@b": ("bbb", "b", jnp.where, np.where),
    **{
        f"{a}{b}": (
            a,
            b,
            lambda x, to=TYPES[b]: jnp.asarray(x).astype(to),
            lambda x, to=TYPES[b]: _converted(x, to),
        )
        for a in "fib"
        for b in "fib"
        if a != b
    },
}
LOOSE = ("exp", "tanh", "log1p")
SUMS = ("add", "sub")  # a product in them may be added without a rounding


@dataclasses.dataclass(frozen=True)
class Step:
    """An operation on earlier values (their numbers; the inputs come first) or literals (a number in a tuple)."""

    name: str
    operands: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    inputs: tuple[tuple[str, Any], ...]  # kinds and arrays
    steps: tuple[Step, ...]

    def evaluate(self, values: list[Any], apply: Rule, constant: Rule) -> Any:
        """The last value; `apply(name, operands)` computes a step, `constant(kind, number)` makes a literal."""
        values = list(values)
        for step in self.steps:
            kinds = OPS[step.name][0]
            pairs = zip(kinds, step.operands, strict=True)
            operands = [constant(k, x[0]) if isinstance(x, tuple) else values[x] for k, x in pairs]
            values.append(apply(step.name, operands))
        return values[-1]

    def jax(self, *inputs: Any) -> Any:
        out = self.evaluate(list(inputs), lambda name, xs: OPS[name][2](*xs), lambda k, x: x)
        return jnp.broadcast_to(out, SHAPE)

    def numpy(self, noise: float = 0.0, fused: Sequence[int] = ()) -> np.ndarray:
        """The result, with the results of functions that are not exact changed by a relative `noise`. `fused`: of each
        sum in turn which operand is added without a rounding, where it is a product.
        """
        which = iter(fused)

        def apply(name: str, xs: list[Any]) -> Any:
            xs = [np.asarray(x) for x in xs]
            if name == "mul":
                return np.multiply(*map(_rounded, xs), dtype=np.float64)
            if name == "neg":
                return -xs[0]
            kept = next(which, None) if name in SUMS else None
            xs = [x if k == kept else _rounded(x) for k, x in enumerate(xs)]
            y = np.asarray(OPS[name][3](*xs)).astype(TYPES[OPS[name][1]])
            return (y * (1 + noise)).astype(np.float32) if name in LOOSE else y

        with np.errstate(all="ignore"):
            out = self.evaluate([x for _, x in self.inputs], apply, lambda k, x: TYPES[k](x))
            return np.broadcast_to(_rounded(np.asarray(out)), SHAPE)


def _rounded(x: np.ndarray) -> np.ndarray:
    """What is wider than f32 as f32."""
    return x.astype(np.float32) if x.dtype == np.float64 else x


@st.composite
def cases(draw: Any) -> Case:
    shapes = draw(st.lists(st.sampled_from(LEAVES), min_size=2, max_size=4))
    inputs = [
        ("f", SHAPE),
        *zip(draw(st.lists(st.sampled_from("fib"), min_size=len(shapes), max_size=len(shapes))), shapes, strict=True),
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = [k for k, _ in inputs]
    arrays = tuple((k, rng.choice(np.array(NUMBERS[k], TYPES[k]), shape)) for k, shape in inputs)
    steps: list[Step] = []
    for _ in range(draw(st.integers(2, 9))):
        name = draw(st.sampled_from([n for n, (needs, *_) in OPS.items() if set(needs) <= set(kinds)]))
        needs = OPS[name][0]
        fixed = draw(st.integers(0, len(needs) - 1))  # this operand is a value; the others may be literals
        if name.startswith("where"):
            fixed = 1
        operands = []
        for at, k in enumerate(needs):
            known = [i for i, other in enumerate(kinds) if other == k]
            is_literal = at != fixed and draw(st.booleans())
            operands.append((draw(st.sampled_from(NUMBERS[k])),) if is_literal else draw(st.sampled_from(known[-3:])))
        steps.append(Step(name, tuple(operands)))
        kinds.append(OPS[name][1])
    return Case(arrays, tuple(steps))


@settings(max_examples=200, deadline=None)
@given(cases())
def test_random_expressions(case: Case) -> None:
    """Bit for bit where all operations are exact; elsewhere where a function's last digits do not decide. Where a
    product is added, its rounding may be left out, as XLA:CPU does.
    """
    want, other = case.numpy(), [case.numpy(e) for e in (-5e-7, 5e-7)]
    sums = sum(step.name in SUMS for step in case.steps) if any(step.name == "mul" for step in case.steps) else 0
    assume(sums <= 5)
    fused = [case.numpy(fused=which) for which in itertools.product((-1, 0, 1), repeat=sums)]
    alike = lambda x: np.array([(x == y) | ((x != x) & (y != y)) for y in fused])
    exact = not any(step.name in LOOSE for step in case.steps)
    results = run_host(case.jax, *(x for _, x in case.inputs))
    assume(results)  # none where the result is an input or a number
    got = results[0]
    got = got.astype(bool) if want.dtype == bool else got
    if exact:
        assert np.all(np.any(alike(got), axis=0)), (got, want)
        return
    same = functools.partial(np.isclose, rtol=1e-4, atol=0, equal_nan=True)
    with np.errstate(all="ignore"):
        decided = same(other[0], want) & same(other[1], want)
        assert np.all(
            same(got.astype(np.float64), want.astype(np.float64)) | ~(decided & np.all(alike(want), axis=0))
        ), (got, want)


@pytest.mark.parametrize("columns", [2, 3, 7, 15, 16, 17, 31, 33])
@pytest.mark.parametrize("name", ["log_softmax", "layer norm", "greatest", "both", "NaN"])
def test_rows_of_any_length(name: str, columns: int) -> None:
    """Rows that fill no vector, one, and more than one."""
    norm = lambda x: (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)
    fn, x = {
        "log_softmax": (jax.nn.log_softmax, array(67, columns)),
        "layer norm": (norm, array(67, columns)),
        "greatest": (lambda x: x.max(-1), array(67, columns) - 9),
        "both": (lambda x: (jax.nn.softmax(x), (x * x).sum(-1)), array(67, columns)),
        "NaN": (jax.nn.softmax, array(67, columns).at[3, 1].set(jnp.nan)),
    }[name]
    for a, b in zip(run_host(fn, x), oracles(fn, x), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_threads_have_as_many_items(threads: int) -> None:
    assert even(0, 9, threads) == 9
    for total in (1, 2, 7, 100, 2708, 10_556):
        for most in (1, 3, 99, 1170, 8192):
            chunk = even(total, most, threads)
            items, fewest = -(-total // chunk), -(-total // most)
            assert 1 <= chunk <= most and (items - 1) * chunk < total <= items * chunk
            assert items == 1 or items <= threads * -(-fewest // threads)


def test_the_sign_of_what_counts_as_zero_is_a_zero() -> None:
    """XLA's threads take numbers below the normal ones as zero."""
    x = jnp.tile(jnp.array([1e-40, -1e-40, 0.5, -2.0, 0.0, -0.0, jnp.nan, -jnp.inf], jnp.float32), 40)
    got, want = xcoexec.jit(jnp.sign, strategy="host", strict=True)(x), jax.jit(jnp.sign)(x)
    assert np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got), np.signbit(want))
