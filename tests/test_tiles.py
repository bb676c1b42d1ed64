"""Products and convolutions on tiles: in memory, number by number, on every machine with vectors of 16 lanes; on AMX
where the CPU has it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.kernels import gemm, tiles
from xcoexec.codegen.kernels.block_shapes import candidates
from xcoexec.codegen.runtime import host
from xcoexec.codegen.target import MATRIX_UNITS, Target, target
from xcoexec.partition.split import split

from .support import error, stages_of
from .toys import memory_tiles

NHWC = ("NHWC", "HWIO", "NHWC")
WIDE = pytest.mark.skipif(target().vl != 16, reason="tiles are for vectors of 16 lanes")
RAPIDS = Target(
    "avx512", 16, 32, "sapphirerapids", "+avx512f,+avx512vl,+avx512bw,+avx512dq,+amx-tile,+amx-bf16,+amx-int8"
)


@pytest.fixture(params=["memory", "amx"])
def family(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The family that computes products."""
    if request.param == "amx":
        if (unit := target().unit("bfloat16")) is None or unit.kernel != "tiles":
            pytest.skip("this CPU has no tiles, or the kernel does not grant them")
        return "tiles"
    for unit in memory_tiles.UNITS:
        monkeypatch.setitem(MATRIX_UNITS, unit.name, unit)
    return "toy_memory_tiles"


def narrow(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers that bf16 has."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(jnp.bfloat16)


def whole(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def run(fn: Any, w: Any, x: np.ndarray, *families: str, threads: int = 2) -> np.ndarray:
    """The result of `fn(w, x)` on kernels, those of the families among them."""
    folded, graph = stages_of(fn, w, x, weights=1)
    assert not [layer.host_error for layer in graph.layers if layer.host_error]
    segment = host.build(graph.program, threads, pick=lambda groups, names, t: names[0], cut=split)
    consts = folded.constants(jax.tree.leaves(w))
    call = host.Call(segment, [np.asarray(x).astype(np.float32)], [consts[v] for v in graph.program.consts])
    assert {f for name in segment.algorithms for f in name.split("+")} >= set(families), segment.algorithms
    return call()[0].copy()


def wide(tree: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(x).astype(np.float64), tree)


def dense(w: Any, x: Any) -> Any:
    y = jnp.matmul(x, w[0], preferred_element_type=jnp.float32)
    return jax.nn.gelu(y + w[1]) * w[2]


@WIDE
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(17, 32, 16), (33, 64, 80), (40, 31, 33), (19, 1, 1), (64, 100, 130), (50, 2100, 70), (21, 34, 64), (128, 96, 47)],
)
def test_products_of_bf16(family: str, m: int, k: int, n: int) -> None:
    """Any remainder of rows, of what is summed, of channels; sums in several blocks; an epilogue with operands."""
    w = [narrow(k, n, seed=1), np.float32(narrow(n, seed=2)), np.float32(narrow(m, 1, seed=3))]
    x = narrow(m, k)
    got = run(dense, w, x, family)
    with jax.enable_x64(True):
        want = np.asarray(dense([jnp.asarray(v) for v in wide(w)], jnp.asarray(wide(x))))
    assert error(got, want) < 1e-5


def attention(w: Any, x: Any) -> Any:
    """Sums of products of computed sides, which are whole numbers that f32 and bf16 have."""
    q, k, v = (jnp.reshape(x @ m, (*x.shape[:2], 3, -1)).astype(x.dtype) for m in w)
    return jnp.einsum("bhst,bthd->bshd", jnp.einsum("bshd,bthd->bhst", q, k).astype(x.dtype), v)


@WIDE
@pytest.mark.parametrize(("length", "depth"), [(17, 32), (33, 7), (64, 64), (130, 20)])
def test_products_of_computed_sides(family: str, length: int, depth: int) -> None:
    """One number of each row is not 0, so that nothing is rounded and each element counts."""
    random = np.random.default_rng(0)
    x = np.where(random.integers(0, length, (2, length, 1)) == np.arange(length), 1.0, 0.0).astype(jnp.bfloat16)
    w = [random.integers(-2, 3, (length, 3 * depth)).astype(np.float32).astype(jnp.bfloat16) for _ in range(3)]
    w[1] = np.where(np.arange(3 * depth) % depth == random.integers(0, depth), w[1], 0).astype(jnp.bfloat16)
    got = run(attention, w, x, family, "word_panel")
    with jax.enable_x64(True):
        want = np.asarray(attention([jnp.asarray(v) for v in wide(w)], jnp.asarray(wide(x))))
    assert np.abs(want).max() > 8
    np.testing.assert_allclose(got, want, rtol=2**-8)


@WIDE
@pytest.mark.parametrize(("m", "k", "n"), [(17, 64, 16), (33, 128, 80), (40, 31, 33), (64, 100, 130), (21, 3000, 70)])
def test_products_of_int8_are_exact(family: str, m: int, k: int, n: int) -> None:
    w, x = whole(k, n, seed=1), whole(m, k)
    got = run(lambda w, x: lax.dot(x, w, preferred_element_type=jnp.int32), w, x, family)
    assert np.array_equal(got, x.astype(np.int64) @ w.astype(np.int64))


CASES = {
    "same": ((2, 9, 11, 32), (3, 3, 32, 48), {}),
    "odd": ((1, 7, 5, 37), (3, 3, 37, 33), {}),
    "stride": ((1, 13, 17, 64), (3, 3, 64, 70), {"window_strides": (2, 2)}),
    "dilated": ((1, 12, 10, 34), (3, 3, 34, 16), {"rhs_dilation": (2, 2)}),
    "groups": ((1, 10, 9, 128), (3, 3, 64, 64), {"feature_group_count": 2}),
    "pointwise": ((3, 6, 7, 96), (1, 1, 96, 130), {}),
    "window": ((1, 20, 20, 40), (5, 5, 40, 24), {"window_strides": (2, 2)}),
}


@WIDE
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("case", CASES)
def test_convolutions(family: str, dtype: str, case: str) -> None:
    """Blocks of pixels that end in the middle of a row, borders, taps."""
    shape, window, params = CASES[case]
    params = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": NHWC, **params}
    make, out = (narrow, jnp.float32) if dtype == "bfloat16" else (whole, jnp.int32)
    w, x = make(*window, seed=1), make(*shape)
    got = run(
        lambda w, x: jax.nn.relu(lax.conv_general_dilated(x, w, **params, preferred_element_type=out)), w, x, family
    )
    with jax.enable_x64(True):
        want = lax.conv_general_dilated(jnp.asarray(wide(x)), jnp.asarray(wide(w)), **params)
    want = np.maximum(np.asarray(want), 0)
    assert np.array_equal(got, want) if dtype == "int8" else error(got, want) < 1e-5


FEW = {
    "7x7": ((1, 23, 21, 3), (7, 7, 3, 24), dict(window_strides=(2, 2), padding="SAME")),
    "5x5": ((2, 13, 11, 3), (5, 5, 3, 40), dict(window_strides=(1, 1), padding=((0, 3), (4, 1)))),
    "valid": ((1, 9, 20, 5), (2, 4, 5, 16), dict(window_strides=(1, 3), padding="VALID")),
    "long": ((1, 6, 40, 2), (3, 19, 2, 7), dict(window_strides=(1, 2), padding=((2, 2), (-1, 3)))),
}


@WIDE
@pytest.mark.parametrize("name", FEW)
def test_few_channels_make_a_run_of_a_row_of_the_window(family: str, name: str) -> None:
    shape, kernel, options = FEW[name]
    w, x = narrow(*kernel, seed=1), narrow(*shape)
    fn = lambda w, x, out=None: lax.conv_general_dilated(
        x, w, dimension_numbers=NHWC, preferred_element_type=out, **options
    )
    with jax.enable_x64(True):
        want = np.asarray(fn(jnp.asarray(wide(w)), jnp.asarray(wide(x))))
    assert error(run(lambda w, x: fn(w, x, jnp.float32), w, x, family), want) < 1e-5


@WIDE
def test_what_is_not_finite_stays_in_its_windows(family: str) -> None:
    """What fills up a run of a few channels is zero, not the pixel beside the window."""
    w, x = narrow(5, 5, 3, 24, seed=1), narrow(1, 20, 20, 3)
    x[0, 9, 9, 1] = np.inf
    fn = lambda w, x: lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=NHWC, preferred_element_type=jnp.float32
    )
    finite = np.isfinite(run(fn, w, x, family)).all(axis=(0, 3))
    want = np.ones((16, 16), bool)
    want[5:10, 5:10] = False
    np.testing.assert_array_equal(finite, want)


@WIDE
def test_an_image_of_few_channels_is_left_to_vectors(family: str) -> None:
    """Its runs would be filled up with more zeroes than it has numbers."""
    w, x = narrow(5, 2, 3, 24, seed=1), narrow(1, 20, 20, 3)
    fn = lambda w, x, out=None: lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=NHWC, preferred_element_type=out
    )
    with jax.enable_x64(True):
        want = np.asarray(fn(jnp.asarray(wide(w)), jnp.asarray(wide(x))))
    assert error(run(lambda w, x: fn(w, x, jnp.float32), w, x, "gemm"), want) < 1e-5


@WIDE
def test_what_is_not_finite_stays_in_its_channel(family: str) -> None:
    """What pads the last words of a run is zero times zero, not zero times a neighbour."""
    w, x = narrow(33, 40, seed=1), narrow(20, 33)
    w[:, 7] = np.inf
    got = run(lambda w, x: jnp.matmul(x, w, preferred_element_type=jnp.float32), w, x, family)
    assert np.isfinite(np.delete(got, 7, axis=1)).all() and not np.isfinite(got[:, 7]).any()


@pytest.mark.parametrize("shape", [(16, 4), (32, 2), (21, 2)])
@pytest.mark.parametrize(("dtype", "instruction"), [("bfloat16", "tdpbf16ps"), ("int8", "tdpbssd")])
def test_the_instructions(dtype: str, instruction: str, shape: tuple[int, int]) -> None:
    """What LLVM makes of the kernels for a CPU with tiles: as many products as tiles of sums, for pixels that lie
    evenly apart and for others.
    """
    unit = RAPIDS.unit(dtype)
    assert unit is not None and unit.kernel == "tiles" and shape in candidates(RAPIDS, unit)
    text = tiles.tiles("f", gemm.spec(*shape, True, (("in", 0),), (), dtype=dtype, family="tiles"), RAPIDS)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(
        cpu=RAPIDS.cpu, features=RAPIDS.features, opt=3
    )
    assembly = machine.emit_assembly(llvm.parse_assembly(text))
    counts = {name: assembly.count(f"\t{name}") for name in (instruction, "ldtilecfg", "tilestored", "tilerelease")}
    assert counts == {instruction: 8, "ldtilecfg": 1, "tilestored": 4, "tilerelease": 1}


def test_a_target_without_grant_has_no_tiles() -> None:
    lacking = Target("avx512", 16, 32, "x", "+avx512f,+avx512bf16,-amx-tile,-amx-bf16")
    unit = lacking.unit("bfloat16")
    assert unit is not None and unit.name == "avx512bf16"
