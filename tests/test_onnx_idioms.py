"""Graphs for other runtimes: operations of their own instead of arithmetic, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the extra peers is not installed")
pytest.importorskip("onnxscript", reason="the extra peers is not installed")

from onnx import helper, numpy_helper  # noqa: E402

from benchmarks.onnx_idioms import idiomatic  # noqa: E402

X = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)
HEADS = np.random.default_rng(1).standard_normal((2, 5, 2, 4)).astype(np.float32)


def graph(nodes: list[tuple[str, str, str]], x: np.ndarray, **constants: Any) -> bytes:
    """A graph of (operation, inputs, output); its input is `x`, its result `y`. An equation stands behind Einsum."""
    made = []
    for op, ins, out in nodes:
        name, *more = op.split(":")
        told = {"Einsum": {"equation": more and more[0]}, "Softmax": {"axis": 3}, "ReduceMean": {"keepdims": 1}}
        made.append(helper.make_node(name, ins.split(), [out], **told.get(name, {})))
    ends = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", x.shape), ("y", None))]
    known = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    model = helper.make_model(
        helper.make_graph(made, "g", ends[:1], ends[1:], known), opset_imports=[helper.make_opsetid("", 21)]
    )
    return bytes(model.SerializeToString())


def run(model: bytes, x: np.ndarray) -> np.ndarray:
    from onnx.reference import ReferenceEvaluator

    return np.asarray(ReferenceEvaluator(onnx.load_from_string(model)).run(None, {"x": x})[0])


F = np.float32
NORM = [
    ("ReduceMean", "x axes", "mean"),
    ("Sub", "x mean", "centred"),
    ("Mul", "x x", "squared"),
    ("ReduceMean", "squared axes", "second"),
    ("Mul", "mean mean", "mean2"),
    ("Sub", "second mean2", "difference"),
    ("Max", "difference zero", "variance"),
    ("Add", "variance epsilon", "more"),
    ("Sqrt", "more", "deviation"),
    ("Div", "centred deviation", "normal"),
    ("Mul", "normal scale", "scaled"),
    ("Add", "scaled bias", "y"),
]
GELU = [
    ("Mul", "half x", "halved"),
    ("Neg", "x", "negative"),
    ("Mul", "negative root", "rooted"),
    ("Erf", "rooted", "erf"),
    ("Sub", "one erf", "erfc"),
    ("Mul", "halved erfc", "y"),
]
ATTENTION = [
    ("Einsum:nthd,nshd->nhts", "x x", "scores"),
    ("Div", "scores two", "less"),
    ("Softmax", "less", "shares"),
    ("Einsum:nhts,nshd->nthd", "shares x", "y"),
]
NORM_NUMBERS = {
    "axes": np.array([2]),
    "zero": F(0),
    "epsilon": F(1e-6),
    "scale": np.linspace(0.5, 2, 8, dtype=F),
    "bias": np.linspace(-1, 1, 8, dtype=F),
}


@pytest.mark.parametrize(
    ("nodes", "x", "constants", "wanted"),
    [
        ([("Max", "x zero", "y")], X, {"zero": F(0)}, {"Relu": 1}),
        ([("Max", "x zero", "r"), ("Min", "r most", "y")], X, {"zero": F(0), "most": F(1.5)}, {"Clip": 1}),
        (NORM, X, NORM_NUMBERS, {"LayerNormalization": 1}),
        (GELU, X, {"half": F(0.5), "one": F(1), "root": F(0.5**0.5)}, {"Gelu": 1}),
        (ATTENTION, HEADS, {"two": F(2)}, {"MatMul": 2, "Transpose": 4, "Div": 1, "Softmax": 1}),
    ],
    ids=["relu", "clip", "norm", "gelu", "attention"],
)
def test_idioms(nodes: Any, x: np.ndarray, constants: dict[str, Any], wanted: dict[str, int]) -> None:
    before = graph(nodes, x, **constants)
    after = idiomatic(before)
    found = [n.op_type for n in onnx.load_from_string(after).graph.node]
    assert {op: found.count(op) for op in set(found)} == wanted
    np.testing.assert_allclose(run(after, x), run(before, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([("Max", "x half", "y")], {"half": F(0.5)}),
        ([("Max", "x zero", "y")], {"zero": np.zeros(8, F) + np.arange(8, dtype=F)}),
        (NORM, NORM_NUMBERS | {"axes": np.array([1])}),
        (GELU, {"half": F(0.5), "one": F(1), "root": F(0.7)}),
    ],
    ids=["another number", "several numbers", "another axis", "another root"],
)
def test_what_only_looks_alike_stays(nodes: Any, constants: dict[str, Any]) -> None:
    before = graph(nodes, X, **constants)
    after = idiomatic(before)
    found = [n.op_type for n in onnx.load_from_string(after).graph.node]
    assert found == [op if len(nodes) == 1 else op.replace("Max", "Relu") for op, _, _ in nodes]
    np.testing.assert_allclose(run(after, X), run(before, X), rtol=1e-6)
