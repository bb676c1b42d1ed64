"""The table of primitives is complete, agrees with the code that it names, and its split rules agree with NumPy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec import models
from xcoexec.codegen.kernels.expressions import EMIT
from xcoexec.codegen.kernels.families import family
from xcoexec.codegen.program import Literal, Op, Value
from xcoexec.codegen.rules import reference, splits
from xcoexec.codegen.rules.convolution import CONVOLUTION, convolution, geometry
from xcoexec.codegen.rules.expressions import SHORTER
from xcoexec.codegen.rules.primitives import PRIMITIVES, ROUNDS, Primitive, is_reduction, primitive
from xcoexec.cost.features import flops, uncounted
from xcoexec.errors import SplitError
from xcoexec.frontend.trace import paths, trace
from xcoexec.ir.text import graph_text
from xcoexec.partition.split import split

from .support import array, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

#: what an entry with a field needs besides
NEEDS: dict[str, tuple[str, ...]] = {
    "vector": ("reference", "flops", "split"),
    "axes": ("reference", "flops", "split"),
    "kernel": ("reference",),
    "matrix": ("reference", "flops", "split", "channels", "kernel"),
    "channels": ("matrix",),
    "combine": ("reference", "flops", "split", "kernel"),
    "split": ("reference",),
    "turns": ("kernel",),
    "exact": ("vector",),
    "costly": ("vector",),
    "carries": ("reference",),
    "either": ("matrix",),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_entry_has_what_it_needs(name: str) -> None:
    entry = PRIMITIVES[name]
    assert entry.name == name
    for field, needed in NEEDS.items():
        if getattr(entry, field):
            assert not [n for n in needed if not getattr(entry, n)], f"{name} has {field} and lacks what that needs"
    assert entry.flops or entry.effect or entry.model == name, f"the entry of {name} says nothing"
    assert entry.flops or not entry.kernel or name == "while", f"the FLOP of {name} could be counted"


def test_an_incomplete_entry_is_seen() -> None:
    lacking = Primitive("toy", vector="f")
    assert [n for n in NEEDS["vector"] if not getattr(lacking, n)] == ["reference", "flops", "split"]


@pytest.mark.parametrize("name", sorted({p.kernel for p in PRIMITIVES.values() if p.kernel}))
def test_every_kernel_family_exists(name: str) -> None:
    assert callable(family(name))


def test_vector_code_is_what_the_table_says() -> None:
    said = {(p.name, k) for p in PRIMITIVES.values() for k in p.vector if p.name != "convert_element_type"}
    said |= {(name, "bf16") for name in SHORTER}
    assert said == {(head.partition("@")[0], head.partition("@")[2] or "f") for head in EMIT}


# -- split rules and references on small examples ----------------------------------------------------

A, B = array(4, 6, low=0.2, high=0.9), array(4, 6, seed=1, low=0.2, high=0.9)
K, J = (np.arange(24, dtype=np.int32).reshape(4, 6) % 7, np.arange(24, dtype=np.int32).reshape(4, 6) % 5)
P = np.arange(24).reshape(4, 6) % 3 == 0
IMAGE, WINDOW = array(2, 5, 6, 4), array(3, 3, 2, 8, seed=1)
NHWC = ("NHWC", "HWIO", "NHWC")
Example = tuple[Callable[..., Any], tuple[Any, ...]]


def _pooled(combine: Any, start: float) -> Example:
    pads = ((0, 0), (1, 1), (0, 0), (0, 0))
    return lambda x: lax.reduce_window(x, np.float32(start), combine, (1, 3, 2, 1), (1, 1, 2, 1), pads), (IMAGE,)


EXAMPLES: dict[str, Example] = {
    CONVOLUTION: (
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 2), ((1, 1), (0, 1)), dimension_numbers=NHWC, feature_group_count=2
        ),
        (IMAGE, WINDOW),
    ),
    "dot_general": (lambda a, b: jnp.einsum("bmk,bkn->bmn", a, b), (array(3, 4, 5), array(3, 5, 6, seed=1))),
    "reduce_window_sum": _pooled(lax.add, 0.0),
    "reduce_window_max": _pooled(lax.max, -np.inf),
    "reduce_window_min": _pooled(lax.min, np.inf),
    "reduce_sum": (lambda x: x.sum(1), (IMAGE,)),
    "reduce_max": (lambda x: x.max((0, 3)), (IMAGE,)),
    "reduce_min": (lambda x: x.min(2), (IMAGE,)),
    "reduce_prod": (lambda x: x.prod(0), (IMAGE,)),
    "broadcast_in_dim": (lambda a: lax.broadcast_in_dim(a, (4, 3, 6), (0, 2)), (A,)),
    "transpose": (lambda x: x.transpose(2, 0, 3, 1), (IMAGE,)),
    "slice": (lambda x: x[:, 1:4, ::2], (IMAGE,)),
    "rev": (lambda x: lax.rev(x, (1, 2)), (IMAGE,)),
    "squeeze": (lambda a: lax.squeeze(a, (1,)), (array(4, 1, 6),)),
    "reshape": (lambda a: a.reshape(4, 2, 3), (A,)),
    "concatenate": (lambda a, b: lax.concatenate((a, b), 1), (A, B)),
    "pad": (lambda a: lax.pad(a, np.float32(2), ((0, 0, 0), (1, 2, 1))), (A,)),
    "integer_pow": (lambda a: lax.integer_pow(a, 3), (A,)),
    "clamp": (lambda a: lax.clamp(np.float32(0.3), a, np.float32(0.6)), (A,)),
    "select_n": (lambda p, a, b: lax.select_n(p, a, b), (P, A, B)),
    **dict.fromkeys(("stop_gradient", *ROUNDS.values()), (lambda a: jnp.asarray(a), (A,))),
    "copy": (jnp.copy, (A,)),
    "add_any": (lambda a: jax.vjp(lambda a: a * a, a)[1](a)[0], (A,)),
    "convert_element_type": (lambda a: lax.convert_element_type(a, np.int32), (9 * A,)),
    **{name: (getattr(lax, name), (A, B)) for name in ("add", "sub", "mul", "div", "max", "min")},
    **{name: (getattr(lax, name), (A, B)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: (getattr(lax, name), (A,)) for name in ("neg", "abs", "sqrt", "rsqrt", "square", "exp", "log", "tanh")},
    **{name: (getattr(lax, name), (A,)) for name in ("logistic", "erf", "erfc", "log1p", "expm1", "sign")},
    **{name: (getattr(lax, name), (7 * A,)) for name in ("floor", "ceil")},
    **{name: (getattr(lax, f"bitwise_{name}"), (K, J)) for name in ("and", "or", "xor")},
    "not": (lax.bitwise_not, (K,)),
    "reduce_and": (lambda p: p.all(0), (P,)),
    "reduce_or": (lambda p: p.any(1), (P,)),
    "select_and_scatter_add": (lambda x: jax.grad(lambda x: _pooled(lax.max, -np.inf)[0](x).sum())(x), (IMAGE,)),
    **{name: (getattr(lax, name), (A,)) for name in ("exp2", "sin", "cos")},
    "pow": (lax.pow, (A, B)),
    "rem": (lax.rem, (K, J)),
    "round": (lambda a: lax.round(a, lax.RoundingMethod.TO_NEAREST_EVEN), (7 * A,)),
    "is_finite": (lax.is_finite, (A,)),
    "gather": (lambda a: a[np.asarray([[0, 2, 1], [1, 1, 0]])], (A,)),
}


def _operation(name: str) -> tuple[Op, list[np.ndarray]]:
    """The operation of an example, with the values of its operands."""
    fn, args = EXAMPLES[name]
    values, tree = jax.tree_util.tree_flatten((args, {}))
    traced = trace(fn, values, tree, paths(tree))
    env: dict[Value, Any] = dict(zip(traced.inputs, values, strict=True)) | dict(traced.consts)
    for op in traced.ops:
        if op.prim == name:
            return op, [np.asarray(v.val if isinstance(v, Literal) else env[v]) for v in op.ins]
        reference.run_ops((op,), env)
    # what JAX has no public function for, or leaves out of a trace
    out = Value(traced.inputs[0].shape, traced.inputs[0].dtype)
    assert name in ("stop_gradient", "add_any", "copy", *ROUNDS.values())
    operands = (traced.inputs[0],) * (2 if name == "add_any" else 1)
    return Op(name, operands, (out,), {}), [values[0]] * len(operands)


def test_there_is_an_example_of_every_split_rule() -> None:
    assert set(EXAMPLES) == {p.name for p in PRIMITIVES.values() if p.split}


@pytest.mark.parametrize("name", EXAMPLES)
def test_parts_concatenate_to_the_reference(name: str) -> None:
    """Every cut of every dimension that can be cut; at least one can."""
    op, operands = _operation(name)
    whole = reference.apply(op, *operands)
    assert whole.shape == op.out.shape
    divided = 0
    for axis, size in enumerate(op.out.shape):
        for at in range(1, size):
            try:
                parts = [split((op,), axis, a, b) for a, b in ((0, at), (at, size))]
            except SplitError:
                continue
            divided += 1
            results = [_computed(part, op, operands) for part in parts]
            np.testing.assert_allclose(np.concatenate(results, axis), whole, rtol=1e-6, atol=1e-6)
    assert divided


def _computed(part: Any, op: Op, operands: list[np.ndarray]) -> np.ndarray:
    env: dict[Value, Any] = {v: x for v, x in zip(op.ins, operands, strict=True) if isinstance(v, Value)}
    for s in part.slices:
        env[s.value] = env[s.source][(slice(None),) * s.axis + (slice(s.start, s.stop),)]
    reference.run_ops(part.ops, env)
    return np.asarray(env[part.out])


@pytest.mark.parametrize("name", EXAMPLES)
def test_references_agree_with_jax(name: str) -> None:
    op, operands = _operation(name)
    if op.primitive is None:
        want: Any = operands[0] if len(operands) == 1 else operands[0] + operands[1]
        for dtype in (t for t, rounds in ROUNDS.items() if rounds == name):
            want = want.astype(dtype).astype(want.dtype)
    else:
        want = op.primitive.bind(*map(jnp.asarray, operands), **op.params)
    np.testing.assert_allclose(reference.apply(op, *operands), np.asarray(want), rtol=2e-6, atol=2e-6)


# -- what stages read of it ----------------------------------------------------------------------------


def test_one_function_decides_what_is_depthwise() -> None:
    def conv(channels: int, groups: int, out: int, window: int = 3, stride: int = 1) -> Any:
        fn = lambda x, w: lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=NHWC, feature_group_count=groups
        )
        args = array(1, 4, 4, channels), array(window, window, channels // groups, out)
        return geometry(stages_of(fn, *args)[1].layers[0].group.anchor)

    assert conv(4, 4, 4).depthwise and conv(4, 4, 4).granule == 1
    assert not conv(4, 4, 8).depthwise and conv(4, 4, 8).granule == 2
    assert not conv(1, 1, 1).depthwise and not conv(4, 1, 4).depthwise
    assert conv(4, 1, 8, window=1).pointwise and not conv(4, 1, 8, window=1, stride=2).pointwise
    assert convolution(Op("add", (), (Value((), "float32"),), {})) is None


def test_what_is_not_in_the_table_is_marked_as_not_counted() -> None:
    _, graph = stages_of(lambda x: lax.sort(x * 2.0), A)
    assert [x.uncounted for x in graph.layers] == [(), ("sort",)]
    assert [x.flops for x in graph.layers] == [24, 24]
    lines = graph_text(graph).splitlines()
    assert " 0.000? " in next(s for s in lines if "sort" in s) and "?" not in next(s for s in lines if "mul" in s)


@pytest.mark.parametrize("name", ["mobilenet_v2", "vit_s16", "decoder"])
def test_networks_are_counted_in_full(name: str) -> None:
    entry = models.get(name)
    weights = jax.eval_shape(entry.module.init, jax.random.key(0), entry.example())
    leaves, tree = jax.tree_util.tree_flatten(((weights, entry.example()), {}))
    ops = trace(entry.module.apply, leaves, tree, paths(tree)).ops
    assert uncounted(ops) == ()
    assert sum(map(flops, ops)) > 1e6


def test_reductions_over_axes_and_over_windows_are_told_apart() -> None:
    assert is_reduction(_operation("reduce_max")[0]) and not is_reduction(_operation("reduce_window_max")[0])
    assert primitive(_operation("reduce_max")[0]).combine == primitive(_operation("reduce_window_max")[0]).combine


def test_a_split_rule_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Primitive("rev", reference=PRIMITIVES["rev"].reference, flops=PRIMITIVES["rev"].flops, split=splits.window)
    monkeypatch.setitem(PRIMITIVES, "rev", wrong)
    with pytest.raises((AssertionError, KeyError)):
        test_parts_concatenate_to_the_reference("rev")


def test_the_table_and_its_readers_load_no_native_code() -> None:
    text = """
import sys
import xcoexec.codegen.rules.reference, xcoexec.codegen.rules.rows, xcoexec.codegen.rules.expressions
import xcoexec.partition.split, xcoexec.cost.features
heavy = {"jax", "jaxlib", "llvmlite"}
sys.exit(", ".join(sorted(heavy & {m.partition(".")[0] for m in sys.modules})) or 0)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
