"""The gradient by weights, of convolutions and of dense layers, on kernels: against float64 NumPy, and through
`jax.grad`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.kernels import gemm
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.assembly import Segment
from xcoexec.codegen.segment.steps import Kernel
from xcoexec.codegen.target import Target

from .support import array, assert_on_host, error, oracle, stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")

LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}
TOLERANCE = 1e-5


def compiled(fn: Callable[..., Any], *args: Any, threads: int = 1) -> Segment:
    """`fn` on kernels alone, without Winograd's algorithm; fails if any layer cannot run there."""
    _, graph = stages_of(fn, *args)
    assert not [x.host_error for x in graph.layers if x.host_error]
    return host.build(graph.program, threads, pick=lambda groups, names, threads: names[0])


def run(fn: Callable[..., Any], *args: Any, threads: int = 1) -> np.ndarray:
    """The first result of `fn` on kernels."""
    leaves = [np.asarray(x) for x in jax.tree_util.tree_leaves(args)]
    return host.Call(compiled(fn, *args, threads=threads), leaves, [])()[0].copy()


def against_oracle(fn: Callable[..., Any], *args: Any, threads: int = 1) -> None:
    assert error(run(fn, *args, threads=threads), oracle(fn, *args)) < TOLERANCE


def gradient(x: Any, w: Any, dy: Any, **how: Any) -> Any:
    """The gradient of a convolution by its weights `w`, for the gradient `dy` of its result."""
    numbers = LAYOUTS[x.ndim - 2]
    forward = lambda w: lax.conv_general_dilated(x, w, dimension_numbers=numbers, **how)
    return jax.vjp(forward, w)[1](dy)[0]


def expected(
    x: Any, shape: Sequence[int], dy: Any, strides: Sequence[int], padding: Any, dilation: Sequence[int], groups: int
) -> np.ndarray:
    """Each element of the window on its own: what it saw of the image, times the gradient, in float64."""
    x, dy = np.asarray(x, np.float64), np.asarray(dy, np.float64)
    x = np.pad(x, [(0, 0), *padding, (0, 0)])
    out = np.zeros(shape)
    ci, co = shape[-2], shape[-1] // groups
    for tap in itertools.product(*(range(k) for k in shape[:-2])):
        seen = x[
            (
                slice(None),
                *(
                    slice(t * d, t * d + (n - 1) * s + 1, s)
                    for t, d, s, n in zip(tap, dilation, strides, dy.shape[1:-1], strict=True)
                ),
            )
        ]
        for g in range(groups):
            a, b = seen[..., g * ci : (g + 1) * ci], dy[..., g * co : (g + 1) * co]
            out[tap][:, g * co : (g + 1) * co] = a.reshape(-1, ci).T @ b.reshape(-1, co)
    return out


def check(
    image: Sequence[int],
    weights: Sequence[int],
    strides: Sequence[int],
    padding: str = "SAME",
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    threads: int = 1,
) -> None:
    """Kernels against `expected`, for an image [n, ..., c] and weights [..., ci, co]."""
    dilation = dilation or (1,) * len(strides)
    x, w = array(*image, seed=1), array(*weights, seed=2)
    how = {"window_strides": strides, "padding": padding, "rhs_dilation": dilation, "feature_group_count": groups}
    numbers = LAYOUTS[len(strides)]
    result = jax.eval_shape(lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=numbers, **how), x, w)
    dy = array(*result.shape, seed=3)
    reach = [(k - 1) * d + 1 for k, d in zip(weights, dilation, strict=False)]
    pads = lax.padtype_to_pads(image[1:-1], reach, strides, padding)
    got = run(lambda x, w, dy: gradient(x, w, dy, **how), x, w, dy, threads=threads)
    assert error(got, expected(x, weights, dy, strides, pads, dilation, groups)) < TOLERANCE


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_windows_and_strides(window: int, stride: int, padding: str) -> None:
    for n, (h, w), (ci, co) in (
        (2, (9, 11), (5, 7)),
        (1, (8, 13), (16, 32)),
    ):
        check((n, h, w, ci), (window, window, ci, co), (stride, stride), padding)


@pytest.mark.parametrize("co", [1, 3, 16, 17, 33])
@pytest.mark.parametrize("ci", [1, 3, 16, 17, 33])
@pytest.mark.parametrize("n", [1, 8])
def test_channels(n: int, ci: int, co: int) -> None:
    check((n, 6, 7, ci), (3, 3, ci, co), (1, 1))
    check((n, 6, 7, ci), (1, 1, ci, co), (1, 1))


@pytest.mark.parametrize("dilation", [(2, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (2, 3)])
def test_dilation(dilation: tuple[int, int], stride: tuple[int, int]) -> None:
    check((3, 12, 17, 6), (3, 2, 6, 18), stride, "SAME", dilation)


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_groups(groups: int) -> None:
    for each_in, each_out in ((3, 2), (16, 17), (8, 16)):
        check((2, 7, 9, groups * each_in), (3, 3, each_in, groups * each_out), (2, 1), groups=groups)
        check((2, 7, 9, groups * each_in), (1, 1, each_in, groups * each_out), (1, 1), groups=groups, threads=2)


@pytest.mark.parametrize("n", [1, 8])
def test_one_and_three_dimensions(n: int) -> None:
    check((n, 31, 6), (5, 6, 18), (2,))
    check((n, 31, 16), (3, 16, 16), (1,), "VALID", (4,))
    check((n, 5, 6, 7, 3), (3, 2, 3, 3, 17), (1, 2, 1))
    check((n, 5, 6, 7, 8), (1, 3, 3, 8, 16), (2, 1, 1), "VALID")


@pytest.mark.parametrize("threads", [2, 3, 16])
@pytest.mark.parametrize("n", [1, 7, 8])
def test_tiny_results_of_many_pixels_are_summed_in_parts(n: int, threads: int) -> None:
    check((n, 28, 27, 16), (1, 1, 16, 24), (1, 1), threads=threads)
    check((n, 28, 27, 3), (3, 3, 3, 17), (2, 2), threads=threads)


def test_sums_in_parts_have_the_same_bits_at_every_call() -> None:
    x, w, dy = array(8, 56, 56, 24), array(1, 1, 24, 16, seed=1), array(8, 56, 56, 16, seed=2)
    by_weights = lambda x, w, dy: gradient(x, w, dy, window_strides=(1, 1), padding="SAME")
    segment = compiled(by_weights, x, w, dy, threads=2)
    product, joined = segment.steps
    assert (product.kernel, joined.kernel) == ("gemm", "reduce") and product.items >= 8  # for a tile or two of results
    call = host.Call(segment, [np.asarray(a) for a in (x, w, dy)], [])
    first = call()[0].copy()
    assert all((call()[0] == first).all() for _ in range(10))


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
def test_vector_lengths(isa: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "host_target", lambda: isa)
    check((2, 9, 10, 12), (3, 3, 12, 41), (2, 1), threads=2)
    check((2, 30, 31, 5), (1, 1, 5, 9), (1, 1), threads=2)
    check((2, 9, 10, 6), (3, 3, 3, 10), (1, 1), groups=2)
    against_oracle(lambda x, dy: x.T @ dy, array(100, 33), array(100, 70, seed=1))


def test_the_kernel_reads_the_image_where_it_lies() -> None:
    """A step for the halo, then one product: the image is not turned, nor is the gradient."""
    x, w, dy = array(2, 8, 9, 16), array(3, 3, 16, 32), array(2, 8, 9, 32)
    how = {"window_strides": (1, 1), "padding": "SAME"}
    padded, product = compiled(lambda x, w, dy: gradient(x, w, dy, **how), x, w, dy).steps
    assert padded.kernel.startswith("elementwise") and product.kernel == "gemm"
    valid = lambda x, w, dy: gradient(x, w, dy, window_strides=(1, 1), padding="VALID")
    assert [s.kernel for s in compiled(valid, x, w, dy[:, 2:, 2:]).steps] == ["gemm"]


def walks(segment: Segment) -> list[set[str]]:
    """How the kernels of each product read their input."""
    kernels = [{w.spec for w in step.words if isinstance(w, Kernel)} for step in segment.steps if step.kernel == "gemm"]
    return [{spec[8] for spec in specs} for specs in kernels]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("ci", "co", "transposed"), [(24, 132, True), (132, 24, False), (8, 70, True), (160, 40, False)]
)
def test_the_wider_side_is_read_in_place(ci: int, co: int, transposed: bool, stride: int, threads: int) -> None:
    """Where it would be the right one, the transpose is computed; lines of long runs are asked for ahead."""
    image, weights = (3, 18 * stride, 7 * stride, ci), (1, 1, ci, co)
    check(image, weights, (stride, stride), threads=threads)
    x, w, dy = array(*image), array(*weights), array(3, 18, 7, co)
    made = compiled(lambda x, w, dy: gradient(x, w, dy, window_strides=(stride, stride), padding="SAME"), x, w, dy)
    assert (made.steps[-1].kernel == "elementwise_rows" or made.steps[-1].kernel == "elementwise") == transposed
    assert stride > 1 or any(gemm.AHEAD in found for found in walks(made))


def test_short_runs_ask_for_nothing_ahead() -> None:
    x, w, dy = array(2, 30, 30, 16), array(3, 3, 16, 32), array(2, 30, 30, 32)
    made = compiled(lambda x, w, dy: gradient(x, w, dy, window_strides=(1, 1), padding="SAME"), x, w, dy)
    assert walks(made) == [{gemm.BESIDE}]


def test_a_tail() -> None:
    """A step of an optimizer is applied to the sums, whether they are made in one part or in several."""
    how = {"window_strides": (1, 1), "padding": "SAME"}
    for n, size, ci, co in ((2, 6, 17, 33), (8, 28, 4, 8)):
        x, w, dy = array(n, size, size, ci), array(3, 3, ci, co, seed=1), array(n, size, size, co, seed=2)
        step = lambda x, w, dy: w - 0.1 * (gradient(x, w, dy, **how) + 0.01 * w)
        for threads in (1, 2):
            against_oracle(step, x, w, dy, threads=threads)


@pytest.mark.parametrize("numbers", [("NCHW", "OIHW", "NCHW"), ("CHWN", "IHWO", "CHWN"), ("NHWC", "OHWI", "HWCN")])
@pytest.mark.parametrize("stride", [1, 2])
def test_other_layouts(numbers: tuple[str, str, str], stride: int) -> None:
    sizes = {"N": 3, "H": 9, "W": 10, "C": 5, "I": 5, "O": 7}
    x = array(*(sizes[d] for d in numbers[0]))
    w = array(*({**sizes, "H": 3, "W": 2}[d] for d in numbers[1]), seed=1)
    forward = lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)
    dy = array(*jax.eval_shape(forward, x, w).shape, seed=2)
    against_oracle(lambda x, w, dy: jax.vjp(forward, x, w)[1](dy)[1], x, w, dy, threads=2)


def test_transposed_convolutions() -> None:
    """Zeroes are inserted into the image, or into the gradient."""
    x, w = array(2, 5, 6, 4), array(3, 3, 4, 9, seed=1)
    forward = lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME")
    dy = array(*jax.eval_shape(forward, x, w).shape, seed=2)
    against_oracle(lambda x, w, dy: jax.vjp(forward, x, w)[1](dy)[1], x, w, dy)


def test_a_gradient_that_is_a_view() -> None:
    """Turned, reversed and spread: what is no row of channels is copied first."""
    x, w, dy = array(2, 6, 7, 8), array(1, 1, 8, 16, seed=1), array(2, 6, 7, 16, seed=2)
    how = {"window_strides": (1, 1), "padding": "VALID"}
    for turn in (
        lambda g: g[:, ::-1, :, :],
        lambda g: g[..., ::-1],
        lambda g: jnp.broadcast_to(g[:, :1, :1], g.shape),
        lambda g: jnp.transpose(jnp.transpose(g, (0, 3, 1, 2)) * 2, (0, 2, 3, 1)),
    ):
        fn = lambda x, w, dy, turn=turn: gradient(x, w, turn(dy), **how)
        against_oracle(fn, x, w, dy, threads=2)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_special_values_reach_what_reads_them_alone(value: float) -> None:
    """The border of an image is 0 for every element of the window, whatever lies beside it."""
    x, dy = np.array(array(1, 5, 5, 3)), np.array(array(1, 5, 5, 17, seed=1))
    x[0, 0, 0, 1] = value
    w = array(3, 3, 3, 17)
    got = run(lambda x, w, dy: gradient(x, w, dy, window_strides=(1, 1), padding="SAME"), x, w, dy)
    reached = np.zeros((3, 3, 3, 17), bool)
    reached[:2, :2, 1] = True  # the corner is never under the window's last row or column
    assert (np.isfinite(got) == ~reached).all()


# -- dense layers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (64, 16, 10), (130, 33, 17), (1000, 3, 5), (60, 200, 170)])
def test_dense_layers(shape: tuple[int, int, int], threads: int) -> None:
    m, k, n = shape
    x, w, dy = array(m, k), array(k, n, seed=1), array(m, n, seed=2)
    by_weights = lambda x, w, dy: jax.vjp(lambda w: x @ w, w)[1](dy)[0]
    against_oracle(by_weights, x, w, dy, threads=threads)
    against_oracle(lambda x, w, dy: w - 0.1 * by_weights(x, w, dy), x, w, dy, threads=threads)


@pytest.mark.parametrize(
    "spec", ["bsi,bso->io", "bsi,bsho->iho", "bshi,bsho->hio", "bshi,bthi->bhst", "sbi,bso->io", "bis,bos->io"]
)
def test_contractions(spec: str) -> None:
    sizes = {"b": 3, "s": 14, "t": 9, "h": 4, "i": 17, "o": 19}
    left, right = (array(*(sizes[d] for d in side), seed=i) for i, side in enumerate(spec.split("->")[0].split(",")))
    against_oracle(lambda a, b: jnp.einsum(spec, a, b), left, right, threads=2)


# -- end to end ----------------------------------------------------------------------------------------------------


def loss(w: Any, x: Any) -> Any:
    """A small network with a strided, a grouped and a pointwise convolution, and a dense layer."""
    numbers = LAYOUTS[2]
    conv = lambda x, w, s, g=1: lax.conv_general_dilated(
        x, w, (s, s), "SAME", dimension_numbers=numbers, feature_group_count=g
    )
    x = jnp.tanh(conv(x, w[0], 2))
    x = jnp.tanh(conv(x, w[1], 1, 2))
    x = jnp.tanh(conv(x, w[2], 1))
    return jnp.sum((x.reshape(len(x), -1) @ w[3]) ** 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_through_jax_grad(threads: int) -> None:
    w = [array(5, 5, 3, 16, seed=1), array(3, 3, 8, 24, seed=2), array(1, 1, 24, 9, seed=3), array(9 * 36, 5, seed=4)]
    x = array(4, 12, 11, 3)
    step = jax.grad(loss)
    want = jax.tree_util.tree_leaves(jax.jit(step)(w, x))
    for k in range(len(w)):
        one = lambda w, x, k=k: step(w, x)[k]
        exact = oracle(one, w, x)
        assert error(run(one, w, x, threads=threads), exact) < TOLERANCE
        assert error(want[k], exact) < 10 * TOLERANCE
    fast = xcoexec.jit(step, strict=True, strategy="host", threads=threads).bind()
    assert all(error(a, b) < 2 * TOLERANCE for a, b in zip(fast(w, x), want, strict=True))
    assert_on_host(fast)
    assert not [layer.host_error for layer in fast.graph().layers if layer.host_error]
