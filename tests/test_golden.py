"""Golden text of graphs, plans and kernels (`pytest --update-golden` writes it anew), and what the kernels' text
computes, against float64 NumPy.
"""

from __future__ import annotations

import ctypes
import pathlib
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np
import pytest

from xcoexec import models
from xcoexec.codegen.kernels import gemm
from xcoexec.codegen.native.build import Spec, kernel_text
from xcoexec.codegen.program import format_program
from xcoexec.codegen.target import Target
from xcoexec.ir.costs import Costs
from xcoexec.ir.plan import Plan
from xcoexec.ir.text import graph_text
from xcoexec.planning.strategies import BOUNDED, RIVALS, STRATEGIES
from xcoexec.session.contest import forced

from .support import stages_of

GOLDEN = pathlib.Path(__file__).parent / "golden"
#: a target that does not depend on the machine of the test
FIXED = Target("avx2", 8, 16, "haswell", "+avx2,+fma")
RELU = (("in", 0), ("in", 1), ("add", 0, 1), ("lit", "f", "0.0"), ("max", 2, 3))


def _graph(name: str):
    entry = models.get(name)
    weights = jax.tree_util.tree_map(
        lambda s: jax.numpy.zeros(s.shape), jax.eval_shape(entry.module.init, jax.random.key(0), entry.example())
    )
    return stages_of(entry.module.apply, weights, entry.example(), weights=1)[1]


def test_graphs(golden) -> None:
    for name in ("lenet", "squeezenet", "resnet18"):
        golden(f"graph_{name}.txt", graph_text(_graph(name)) + "\n")
    golden("program_lenet.txt", format_program(_graph("lenet").program) + "\n")


def _costs(graph, shared: bool) -> Costs:
    host = tuple(1e-5 + x.flops / 200e9 + x.nbytes / 30e9 for x in graph.layers)
    device = tuple(1e-5 + x.flops / 150e9 + x.nbytes / 30e9 for x in graph.layers)
    return Costs.of_halves(host, device, 2e-5, 20e9, 1.1, shared)


def test_plans(golden) -> None:
    graph = _graph("squeezenet")
    for name in set(STRATEGIES) - {*BOUNDED, *RIVALS}:
        strategy = STRATEGIES[name]
        golden(f"plan_{name}_apart.txt", str(strategy(graph, _costs(graph, shared=False))) + "\n")
        golden(f"plan_{name}_shared.txt", str(strategy(graph, _costs(graph, shared=True))) + "\n")
    golden("plan_uniform.txt", str(forced(_graph("lenet"), Plan.uniform(0.25))) + "\n")


# -- kernels: their text, and what that very text computes -------------------------------------------------------------

VL = FIXED.vl
KERNELS: dict[str, Spec] = {
    "gemm": gemm.spec(2, 1, False, RELU, ("c",)),
    "gemm_asks": gemm.spec(2, 1, False, RELU, ("c",), asked=2),
    "gemm_tail": gemm.spec(1, 2, True, (("in", 0),), ()),
    "gemm_beside": gemm.spec(3, 2, True, (("in", 0),), (), walk=gemm.BESIDE),
    "elementwise": ("elementwise", RELU, ("v", "v", "s")),
    "depthwise": ("depthwise", 1, 1, 3, 1, 1, 2, 1, "float32", RELU, ("c",), False, False),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str, golden: Any) -> None:
    golden(f"kernel_{name}.ll", kernel_text(KERNELS[name], FIXED))


def _compiled(name: str, arguments: int) -> Any:
    """The golden text itself as a function of addresses and whole numbers, for whatever CPU this is."""
    text = (GOLDEN / f"kernel_{name}.ll").read_text().replace("unknown-unknown-unknown", llvm.get_process_triple())
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    fn = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(engine.get_function_address("kernel"))
    fn.engine = engine  # the code lives as long as this
    return fn


def _f32(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _words(*values: int) -> np.ndarray:
    return np.array(values or (0,), np.int64)


def _at(a: np.ndarray, *place: int) -> int:
    return a.ctypes.data + sum(i * s for i, s in zip(place, a.strides, strict=False))


def _close(got: np.ndarray, want: np.ndarray) -> None:
    assert np.count_nonzero(want) > want.size // 4
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("run", [1, 4, 7])
def test_the_golden_product_multiplies(run: int) -> None:
    """Two rows a tile, three taps that lie apart, in two blocks of the reduction: partial sums, then the epilogue."""
    fn, tiles, taps = _compiled("gemm", gemm.ARGUMENTS), 5, 3
    x, w, b = _f32(2 * tiles, taps, run + 2, seed=0), _f32(taps, run, VL, seed=1), _f32(VL, seed=2)
    y = np.full((2 * tiles, VL), 9.0, np.float32)
    rows, outs = _words(_at(x), _at(x, 1)), _words(_at(y), _at(y, 1))
    extra, walk = np.zeros(16, np.int64), _words(1, tiles, 0, 0, 2 * x.strides[0], 0, 2 * y.strides[0], 0, 0)
    extra[0] = _at(b)
    for first, last, blocks in ((1, 0, [0, 1]), (0, 1, [2])):
        offsets = _words(*(t * x.strides[1] for t in blocks))
        args = rows, _at(w, blocks[0]), outs, extra, offsets, len(blocks), run
        args = *args, first, last, VL, walk, 4, 4 * VL
        fn(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in args))
    want = np.einsum("rtk,tkn->rn", x[..., :run].astype(np.float64), w.astype(np.float64)) + b
    _close(y, np.maximum(want, 0))


def test_the_golden_product_walks_rows_of_an_image() -> None:
    """Two rows of three tiles of two pixels; each side has a border of its own, which stays as it is."""
    fn, lines, tiles, run = _compiled("gemm", gemm.ARGUMENTS), 2, 3, 5
    x, w, b = _f32(lines, 2 * tiles + 1, run, seed=0), _f32(run, VL, seed=1), _f32(VL, seed=2)
    y = np.full((lines, 2 * tiles + 2, VL), 9.0, np.float32)
    extra = np.zeros(16, np.int64)
    extra[0] = _at(b)
    walk = _words(lines, tiles, 0, x.strides[0], 2 * x.strides[1], y.strides[0], 2 * y.strides[1], 0, 0)
    args = _words(_at(x), _at(x, 0, 1)), _at(w), _words(_at(y, 0, 1), _at(y, 0, 2)), extra, _words(0), 1, run
    args = *args, 1, 1, VL, walk, 4, 4 * VL
    fn(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in args))
    want = x[:, : 2 * tiles].astype(np.float64) @ w.astype(np.float64) + b
    _close(y[:, 1:-1], np.maximum(want, 0))
    assert (y[:, [0, -1]] == 9.0).all()


@pytest.mark.parametrize("lanes", [1, 5, 8])
def test_the_golden_product_with_a_tail_writes_no_lane_more(lanes: int) -> None:
    fn, tiles, run = _compiled("gemm_tail", gemm.ARGUMENTS), 3, 6
    x, w = _f32(tiles, run, seed=0), _f32(run, 2 * VL, seed=1)
    y = np.full((tiles, 2 * VL), 9.0, np.float32)
    walk = _words(1, tiles, 0, 0, x.strides[0], 0, y.strides[0])
    args = _words(_at(x)), _at(w), _words(_at(y)), _words(), _words(0), 1, run, 1, 1, lanes, walk, 4, 8 * VL
    fn(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in args))
    _close(y[:, : VL + lanes], (x.astype(np.float64) @ w.astype(np.float64))[:, : VL + lanes])
    assert (y[:, VL + lanes :] == 9.0).all()


@pytest.mark.parametrize("run", [1, 4, 7])
def test_the_golden_product_reads_both_sides_in_place(run: int) -> None:
    """x' w of arrays with gaps behind their rows: three rows a tile, two taps, in two blocks that are added."""
    fn, tiles, lanes = _compiled("gemm_beside", gemm.ARGUMENTS), 2, 5
    x, w = _f32(2 * run + 1, 3 * tiles + 2, seed=0), _f32(2 * run, VL + lanes + 1, seed=1)
    y = np.full((3 * tiles, 2 * VL), 9.0, np.float32)
    apart = run * x.strides[0], run  # a tap: bytes of the input, rows of the weights
    for first, last, tap in ((1, 0, (0, 0)), (0, 1, apart)):
        args = _words(_at(x)), _at(w), _words(*(_at(y, r) for r in range(3))), _words(), _words(*tap), 1, run
        args = *args, first, last, lanes, _words(1, tiles, 0, 0, 12, 0, 3 * y.strides[0]), x.strides[0], w.strides[0]
        fn(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in args))
    want = x[: 2 * run, : 3 * tiles].astype(np.float64).T @ w[:, : VL + lanes].astype(np.float64)
    _close(y[:, : VL + lanes], want)
    assert (y[:, VL + lanes :] == 9.0).all()


@pytest.mark.parametrize("n", [3, 8, 37])
def test_the_golden_elementwise_kernel_computes(n: int) -> None:
    """relu(x + s), in chunks of 16 elements, the last one not whole."""
    fn, chunk = _compiled("elementwise", 3), 16
    x, s, y = _f32(n, seed=0), _f32(1, seed=1), np.full(n + VL, 9.0, np.float32)
    where, words = _words(_at(y), _at(x), _at(s)), _words(n, chunk)
    for i in range(-(-n // chunk)):
        index = _words(0, 0, 0, 0, 0, i)
        fn(where.ctypes.data, index.ctypes.data, words.ctypes.data)
    _close(y[:n], np.maximum(x.astype(np.float64) + s, 0))
    assert (y[n:] == 9.0).all()


@pytest.mark.parametrize("width", [2, 5])
def test_the_golden_depthwise_kernel_convolves(width: int) -> None:
    """1x3 windows over five rows in chunks of two; pixels in pairs, the last one alone where their number is odd."""
    fn, height, rows = _compiled("depthwise", 3), 5, 2
    x, w, b = _f32(height, width + 2, VL, seed=0), _f32(3, VL, seed=1), _f32(VL, seed=2)
    y = np.full((height, width, VL), 9.0, np.float32)
    taps, vectors = (0, 0, w.strides[0], 0, 0), (1, 1)
    image = (x.strides[0], 0, x.strides[0], x.strides[1], x.strides[1])
    steps = *image, *taps, *vectors, y.strides[0], y.strides[1], 0, 0
    words = _words(height, rows, width, 0, *steps)
    for i in range(-(-height // rows)):
        where, index = _words(_at(x, i * rows), _at(w), _at(y, i * rows), _at(b)), _words(0, 0, 0, 0, i, 0)
        fn(where.ctypes.data, index.ctypes.data, words.ctypes.data)
    wide = x.astype(np.float64)
    want = sum(wide[:, j : j + width] * w[j].astype(np.float64) for j in range(3)) + b
    _close(y, np.maximum(want, 0))
