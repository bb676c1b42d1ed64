"""The two float64 meanings of every primitive, the tests' and the library's own, against JAX in float64.

JAX computes each operation by itself (eagerly, with nothing fused), so that neither a fault of the library nor one of a
compiled program can hide in all three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.program import Literal
from xcoexec.codegen.rules import reference
from xcoexec.codegen.rules.primitives import PRIMITIVES, ROUNDS
from xcoexec.frontend.trace import paths, trace

from . import oracle
from .support import array

pytestmark = pytest.mark.usefixtures("quick_xla")

F = np.array([[-2.5, -1.0, -0.3], [-0.0, 0.0, 0.4], [1.0, 1.7, 3.2]], np.float32)
G = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -0.4], [1.0, -1.7, 4.0]], np.float32)
EDGES = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0], np.float32)
HALVES = np.arange(-3.5, 4.0, 0.5, dtype=np.float32)
POSITIVE = np.array([0.1, 0.5, 1.0, 2.5, 40.0], np.float32)
INTS = np.array([-7, -2, -1, 0, 1, 3, 2**31 - 1, -(2**31)], np.int32)
J = np.array([2, 0, -1, 3, 0, -2, 5, -1], np.int32)
B, C = np.array([True, False, True, False]), np.array([True, True, False, False])
IMAGE = np.asarray(array(2, 7, 6, 4))
NHWC = ("NHWC", "HWIO", "NHWC")


def conv(**options: Any) -> Callable[..., Any]:
    given = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": NHWC, **options}
    return lambda x, w: lax.conv_general_dilated(x, w, **given)


def pool(reduce: Any, start: float, **options: Any) -> Callable[..., Any]:
    given = {"window_dimensions": (1, 3, 2, 1), "window_strides": (1, 2, 1, 1), "padding": "SAME", **options}
    return lambda x: lax.reduce_window(x, np.asarray(start, x.dtype), reduce, **given)


def gather(mode: str) -> Callable[..., Any]:
    rows = lax.GatherDimensionNumbers((2,), (0,), (0,))
    return lambda x, i: lax.gather(x, i[..., None], rows, (1, x.shape[1]), mode=mode)


KERNEL = array(3, 3, 4, 5, seed=1)
BATCHES = array(3, 4, 5), array(3, 5, 2, seed=1)

#: primitive -> functions that use it, each with its arguments
CASES: dict[str, list[tuple[Any, ...]]] = {
    "add": [(lax.add, F, G), (lax.add, INTS, J)],
    "add_any": [(lambda x: jax.grad(lambda y: (jnp.sin(y) + y * y).sum())(x), F)],
    "sub": [(lax.sub, F, G), (lax.sub, INTS, J)],
    "mul": [(lax.mul, F, G), (lax.mul, INTS, J)],
    "div": [(lax.div, F, G), (lax.div, INTS, J)],
    "max": [(lax.max, F, G), (lax.max, INTS, J), (lax.max, EDGES, EDGES[::-1]), (lax.max, B, C)],
    "min": [(lax.min, F, G), (lax.min, INTS, J), (lax.min, EDGES, EDGES[::-1]), (lax.min, B, C)],
    "neg": [(lax.neg, F), (lax.neg, INTS)],
    "abs": [(lax.abs, F), (lax.abs, INTS)],
    "sign": [(lax.sign, F), (lax.sign, INTS), (lax.sign, EDGES)],
    "floor": [(lax.floor, F), (lax.floor, EDGES)],
    "round": [
        (lambda x, m=m: lax.round(x, m), np.arange(-3.5, 4.0, 0.5, dtype=np.float32)) for m in lax.RoundingMethod
    ],
    "is_finite": [(lax.is_finite, EDGES), (lax.is_finite, F)],
    "rem": [(lax.rem, INTS, np.array([3, -3, 7, 2, -5, -2, 13, 9], np.int32)), (lax.rem, F, POSITIVE[2])],
    "ceil": [(lax.ceil, F), (lax.ceil, EDGES)],
    "sqrt": [(lax.sqrt, POSITIVE), (lax.sqrt, EDGES)],
    "rsqrt": [(lax.rsqrt, POSITIVE), (lax.rsqrt, EDGES)],
    "square": [(lax.square, F), (lax.square, INTS)],
    "integer_pow": [(lambda x, y=y: lax.integer_pow(x, y), F) for y in (-3, -1, 0, 2, 5)]
    + [(lambda x: lax.integer_pow(x, 3), INTS)],
    "pow": [(lax.pow, POSITIVE, POSITIVE[::-1]), (lambda x: lax.pow(x, jnp.asarray(2.0, x.dtype)), F)],
    "exp": [(lax.exp, F), (lax.exp, EDGES)],
    "exp2": [(lax.exp2, F)],
    "log": [(lax.log, POSITIVE), (lax.log, EDGES)],
    "log1p": [(lax.log1p, POSITIVE), (lax.log1p, EDGES)],
    "expm1": [(lax.expm1, F), (lax.expm1, EDGES)],
    "sin": [(lax.sin, F)],
    "cos": [(lax.cos, F)],
    "tanh": [(lax.tanh, F), (lax.tanh, EDGES)],
    "logistic": [(lax.logistic, F), (lax.logistic, EDGES)],
    "erf": [(lax.erf, F), (lax.erf, EDGES)],
    "erfc": [(lax.erfc, F), (lax.erfc, EDGES)],
    **{
        name: [(fn, F, G), (fn, INTS, J), (fn, EDGES, EDGES[::-1]), (fn, B, C)]
        for name, fn in {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}.items()
    },
    "and": [(lax.bitwise_and, INTS, J), (lax.bitwise_and, B, C)],
    "or": [(lax.bitwise_or, INTS, J), (lax.bitwise_or, B, C)],
    "xor": [(lax.bitwise_xor, INTS, J), (lax.bitwise_xor, B, C)],
    "not": [(lax.bitwise_not, INTS), (lax.bitwise_not, B)],
    "select_n": [(lax.select_n, F > G, F, G), (lambda w, x: lax.select_n(w, x, x + 1, x * 3), np.clip(J, 0, 2), INTS)],
    "clamp": [(lambda x: lax.clamp(jnp.asarray(-1, x.dtype), x, jnp.asarray(2, x.dtype)), x) for x in (F, INTS, EDGES)]
    + [(lax.clamp, G, F, abs(G))],
    "stop_gradient": [(lax.stop_gradient, F)],
    "copy": [(lambda x: jnp.array(x, copy=True), F)],
    "convert_element_type": [
        (lambda x: lax.convert_element_type(x, np.int32), EDGES * 1e3),
        (lambda x: lax.convert_element_type(x, np.int32), F * 3),
        (lambda x: lax.convert_element_type(x, bool), F),
        (lambda x: lax.convert_element_type(x, x.dtype) + lax.convert_element_type(x > 0, x.dtype), F),
        (lambda i: lax.convert_element_type(i, np.int8), INTS),
        (lambda i: lax.convert_element_type(i, float), INTS % 1000),
    ],
    "conv_general_dilated": [
        (conv(), IMAGE, KERNEL),
        (conv(window_strides=(2, 1), padding=((1, 2), (0, 0)), rhs_dilation=(2, 1)), IMAGE, KERNEL),
        (conv(padding=((-1, 2), (3, -2))), IMAGE, KERNEL),
        (conv(lhs_dilation=(2, 3), padding=((1, 1), (2, 0))), IMAGE, KERNEL),
        (conv(feature_group_count=2), IMAGE, array(3, 3, 2, 6)),
        (conv(feature_group_count=4), IMAGE, array(2, 3, 1, 8)),
        (conv(dimension_numbers=("CHWN", "IHWO", "CNHW")), array(3, 6, 5, 2), array(3, 2, 3, 4)),
        (conv(window_strides=(2,), dimension_numbers=("NWC", "WIO", "NWC")), array(2, 9, 3), array(4, 3, 5)),
        (
            conv(window_strides=(1, 2, 1), dimension_numbers=("NDHWC", "DHWIO", "NDHWC")),
            array(1, 3, 4, 5, 2),
            array(2, 3, 2, 2, 3),
        ),
    ],
    "dot_general": [
        (jnp.dot, array(3, 4), array(4, 5)),
        (lambda a, b: jnp.einsum("bmk,bkn->bnm", a, b), *BATCHES),
        (lambda a, b: jnp.einsum("abk,ckd->abcd", a, b), array(2, 3, 5), array(4, 5, 2)),
        (lambda a, b: lax.dot_general(a, b, (((2, 0), (1, 0)), ((), ()))), array(3, 4, 5), array(3, 5, 2)),
        (jnp.vdot, array(7), array(7, seed=1)),
        (lambda a, b: jnp.einsum("i,j->ij", a, b), array(3), array(2)),
    ],
    "reduce_window_sum": [
        (pool(lax.add, 0.0), IMAGE),
        (pool(lax.add, 0.0, padding="VALID", window_dilation=(1, 2, 1, 1)), IMAGE),
        (pool(lax.add, 0.0, padding=((0, 0), (2, 1), (0, 1), (0, 0)), base_dilation=(1, 2, 1, 1)), IMAGE),
    ],
    "reduce_window_max": [(pool(lax.max, -np.inf), IMAGE), (pool(lax.max, -np.inf, base_dilation=(1, 1, 3, 1)), IMAGE)],
    "reduce_window_min": [(pool(lax.min, np.inf), IMAGE), (pool(lax.min, np.inf, padding="VALID"), IMAGE)],
    "select_and_scatter_add": [
        (jax.grad(lambda x, fn=fn: (fn(x) ** 2).sum()), IMAGE)
        for fn in (
            lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3, 2, 1), (1, 2, 1, 1), "SAME"),
            lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        )
    ],
    "reduce_and": [(lambda x: (x > 0).all((1, 2)), IMAGE), (lambda x: (x > 0).all(), F)],
    "reduce_or": [(lambda x: (x > 2).any((1, 2)), IMAGE), (lambda x: (x > 2).any(), F)],
    "reduce_sum": [(lambda x: x.sum((1, 2)), IMAGE), (lambda x: x.sum(), IMAGE)],
    "reduce_prod": [(lambda x: x.prod(1), IMAGE)],
    "reduce_max": [(lambda x: x.max((0, 3)), IMAGE), (lambda x: x.max(), EDGES)],
    "reduce_min": [(lambda x: x.min(-1), IMAGE), (lambda x: x.min(), EDGES)],
    "broadcast_in_dim": [(lambda x: lax.broadcast_in_dim(x, (2, 3, 4, 3), (1, 3)), F)],
    "reshape": [(lambda x: x.reshape(4, -1), IMAGE), (lambda x: lax.reshape(x, (9,), (1, 0)), F)],
    "squeeze": [(lambda x: lax.squeeze(x, (1,)), F[:, None])],
    "transpose": [(lambda x: x.transpose(2, 0, 3, 1), IMAGE)],
    "concatenate": [(lambda x, y: lax.concatenate([x, y, x], 1), F, G)],
    "split": [(lambda x: lax.split(x, (1, 4, 2), 1), IMAGE)],
    "slice": [(lambda x: x[:, 1:6:2, :-1], IMAGE), (lambda x: x[1:, :, 2:], IMAGE)],
    "rev": [(lambda x: x[:, ::-1, :, ::-1], IMAGE)],
    "pad": [
        (lambda x, c=c: lax.pad(x, jnp.asarray(2.5, x.dtype), c), F)
        for c in (((1, 0, 1), (0, 2, 2)), ((-1, 2, 0), (0, -2, 1)), ((-2, 1, 0), (3, 0, 2)), ((0, 0, 3), (-3, 1, 1)))
    ],
    "gather": [
        (gather(mode), F, np.array([[2, 0, 1], [1, 1, 2]], np.int32) + off)
        for mode in ("clip", "fill")
        for off in (0, 2, -2)
    ]
    + [
        (lambda x, i: x.at[i, i[::-1]].get(mode="clip"), F, np.array([2, 5, -1], np.int32)),
        (lambda x, i: x[i], F[0], np.array([[2, 0], [1, 7]], np.int32)),
    ],
    **{
        name: [
            (lambda x, i, u, join=join, mode=mode: join(x.at[i])(u, mode=mode), x, index, updates)
            for mode in ("clip", "drop")
            for x, index, updates in (
                (F, np.array([[2, 0], [1, 5], [0, -9]], np.int32), np.asarray(array(3, 2, 3))),
                (G[0], np.array([1, 1, 2, 7], np.int32), np.asarray(array(4))),
            )
        ]
        for name, join in (
            ("scatter-add", lambda x: x.add),
            ("scatter-sub", lambda x: x.subtract),
            ("scatter-mul", lambda x: x.multiply),
            ("scatter-max", lambda x: x.max),
            ("scatter-min", lambda x: x.min),
        )
    },
    "argmax": [(lambda x: jnp.argmax(x, -1), F), (lambda x: jnp.argmax(x, 0), G), (jnp.argmax, F * np.nan)],
    "argmin": [(lambda x: jnp.argmin(x, -1), F), (lambda x: jnp.argmin(x, 0), G), (jnp.argmin, F * np.nan)],
    "scatter": [
        (lambda x, i, u: x.at[i].set(u), F, np.array([2, 0], np.int32), G[:2]),
        (lambda x, i, u: x.at[i, i + 1].set(u, mode="drop"), F, np.array([1, 0, 5], np.int32), G[0]),
    ],
    "scan": [
        (lambda w, x: lax.scan(lambda h, v: (jnp.tanh(h @ w + v), h * 2), x[0], x), F, G),
        (lambda x: lax.scan(lambda c, v: ((c[0] + 1, v), c[1] * c[0]), (0, x[0]), x, reverse=True), F),
        (lambda x: lax.fori_loop(0, 3, lambda i, c: c * i + x, x), F),
    ],
    "while": [(lambda n, x: lax.fori_loop(0, n, lambda i, c: c * i + x, x), np.int32(n), F) for n in (0, 3)]
    + [(lambda x, e: lax.while_loop(lambda c: jnp.abs(c).max() > e, lambda c: c * 0.5, x), F, np.float32(0.7))],
    "dynamic_slice": [
        (lambda x, i: lax.dynamic_slice(x, (i, np.int32(1)), (2, 2)), F, np.int32(i)) for i in (-5, 0, 1, 9)
    ],
    "dynamic_update_slice": [
        (lambda x, y, i: lax.dynamic_update_slice(x, y, (i, np.int32(1))), F, G[:2, :2], np.int32(i))
        for i in (-5, 0, 1, 9)
    ],
    "iota": [
        (lambda x: x + lax.broadcasted_iota(np.int32, (3, 3), 1), F),
        (lambda x: x * lax.iota(np.int32, 3)[:, None], F),
    ],
}
REFERENCE = {name for name, p in PRIMITIVES.items() if p.reference} - {*ROUNDS.values()}  # the kernels' own


def eager(fn: Any, *args: Any) -> list[np.ndarray]:
    """The leaves as JAX computes them in float64, one operation after the other."""
    wide = [np.asarray(x, np.float64) if np.asarray(x).dtype == np.float32 else x for x in args]
    with jax.enable_x64(True), jax.disable_jit():
        return [np.asarray(x) for x in jax.tree_util.tree_leaves(fn(*map(jnp.asarray, wide)))]


def ours(fn: Any, *args: Any) -> list[np.ndarray]:
    """The leaves by the library's reference, over the library's trace."""
    values, tree = jax.tree_util.tree_flatten((args, {}))
    traced = trace(fn, [jnp.asarray(x) for x in values], tree, paths(tree))

    def wide(a: Any) -> Any:
        a = np.asarray(a)
        return a.astype(np.float64) if a.dtype == np.float32 else a

    env = {v: wide(x) for v, x in (*zip(traced.inputs, values, strict=True), *traced.consts)}
    reference.run_ops(traced.ops, env, wide)
    return [np.asarray(out.val if isinstance(out, Literal) else env[out]) for out in traced.outputs]


def primitives(fn: Any, *args: Any) -> set[str]:
    """The names of what a function is made of."""

    def inside(jaxpr: Any) -> set[str]:
        found = set()
        for eqn in jaxpr.eqns:
            inner = [p for p in eqn.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
            found |= {eqn.primitive.name}.union(*(inside(getattr(p, "jaxpr", p)) for p in inner))
        return found

    return inside(jax.make_jaxpr(fn)(*args).jaxpr)


def agree(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    assert want
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind
        if b.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(
                a, b, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0))
            )


def test_every_primitive_has_a_case() -> None:
    assert set(oracle.RULES) == set(CASES) and set(CASES) >= REFERENCE
    for name, cases in CASES.items():
        assert cases and all(name in primitives(*case) for case in cases), name


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_is_jax_in_float64(name: str) -> None:
    for case in CASES[name]:
        agree(oracle.oracles(*case), eager(*case))


@pytest.mark.parametrize("name", sorted(REFERENCE & set(CASES)))
def test_the_reference_is_jax_in_float64(name: str) -> None:
    for case in CASES[name]:
        agree(ours(*case), eager(*case))


def test_what_has_no_rule_is_computed_by_jax() -> None:
    for fn in (lambda x: jnp.sort(x, -1), lambda x: jnp.cumsum(x, 0), lambda x: lax.atan2(x, x + 1)):
        agree(oracle.oracles(fn, F), eager(fn, F))
        assert not primitives(fn, F) <= {*oracle.RULES, *oracle.INLINED}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_halves_are_rounded_where_the_function_says_so(dtype: str) -> None:
    x = np.asarray(array(5, 7)) * 300
    narrow = np.asarray(jnp.asarray(x).astype(dtype), np.float64)
    got = oracle.oracle(lambda x: x.astype(dtype).astype(jnp.float32) * 3, x)
    np.testing.assert_array_equal(got, narrow * 3)
    assert not np.array_equal(got, x.astype(np.float64) * 3)


def test_an_error_is_told_from_a_good_result() -> None:
    want = np.array([[1.0, -2.0], [0.0, 4.0]])
    assert oracle.error(want, want) == 0 and oracle.error(np.zeros((2, 2)), want) == 1.0
    assert oracle.error(want + 4e-5, want) == pytest.approx(1e-5) and not oracle.error(want * np.nan, want) < 1e9
    assert oracle.error(np.ones((2, 2)), np.zeros((2, 2))) > 1e20
    with pytest.raises(AssertionError, match="shape"):
        oracle.error(want[:1], want)
    with pytest.raises(ValueError, match="zip"):
        oracle.worst([want], [want, want])
