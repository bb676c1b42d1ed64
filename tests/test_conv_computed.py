"""Convolutions whose weights arrive with the call or are computed by the model, and their gradients by the image."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.kernels import conv, winograd, winograd_gradient, winograd_ways
from xcoexec.codegen.kernels.block_shapes import measured_shapes
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment import choice
from xcoexec.codegen.target import Target, target

from .oracle import oracles, worst
from .support import TOLERANCE, array, check_host, error, oracle, run_host, stages_of, targets
from .test_algorithms import _adversarial as adversarial
from .test_algorithms import run_on
from .test_ops import CONVS, _conv

pytestmark = pytest.mark.usefixtures("quick_xla")

TARGETS = targets()
COMPUTED = [name for name, (_, w, options) in CONVS.items() if not (len(w) == 4 and options.get("groups") == w[-1])]
LAYOUTS = [
    ("NHWC", "HWIO", "NHWC"),
    ("NCHW", "OIHW", "NCHW"),
    ("NHWC", "OHWI", "NHWC"),
    ("NHWC", "IHWO", "NCHW"),
    ("NHWC", "WHIO", "NHWC"),
    ("NHWC", "HWOI", "NHWC"),
    ("NHWC", "OHIW", "NHWC"),
    ("NHWC", "HOWI", "NHWC"),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", COMPUTED)
def test_weights_that_arrive_with_the_call(name: str, threads: int) -> None:
    x, w, options = CONVS[name]
    check_host(lambda w, x: _conv(x, w, **options), array(*w, seed=1), array(*x), threads=threads)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("spec", LAYOUTS, ids="-".join)
@pytest.mark.parametrize(("c", "oc"), [(3, 17), (17, 40), (70, 1)])
def test_layouts_of_the_weights(isa: Target, spec: tuple[str, str, str], c: int, oc: int) -> None:
    """Panels are copied from rows, turned from columns, or put together from single elements."""
    sizes = {"H": 3, "W": 2, "I": c, "O": oc}
    fn = lambda w, x: jnp.tanh(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=spec))
    shape = {"N": 2, "H": 5, "W": 4, "C": c}
    w, x = array(*(sizes[d] for d in spec[1]), seed=1), array(*(shape[d] for d in spec[0]))
    got, _ = run_on(fn, w, x, isa=isa)
    assert error(got, oracle(fn, w, x)) < TOLERANCE


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_every_width_of_a_panel(isa: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of every number of vectors, the last of them one lane wide, of rows and of columns."""
    spec = ("NHWC", "HWOI", "NHWC")
    rows = lambda w, x: _conv(x, w)
    columns = lambda w, x: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=spec)
    for shape in measured_shapes(isa):
        monkeypatch.setattr(conv, "block_shape", lambda *_, shape=shape, **more: shape)
        for oc in (2 * isa.vl + 1, 7 * isa.vl):
            x, w = array(1, 3, 4, 19), array(3, 3, 19, oc, seed=1)
            assert error(run_on(rows, w, x, isa=isa)[0], oracle(rows, w, x)) < TOLERANCE, (shape, oc)
            w = w.transpose(0, 1, 3, 2)
            assert error(run_on(columns, w, x, isa=isa)[0], oracle(columns, w, x)) < TOLERANCE, (shape, oc)


@pytest.mark.parametrize(
    "equation", ["bik,bkj->bij", "bik,bjk->bij", "ki,bkj->bij", "bik,kbjl->bijl", "ibk,bjkl->bijl"]
)
@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_products_of_two_computed_sides(equation: str, isa: Target) -> None:
    sizes = dict(b=2, i=5, j=19, k=37, l=3)
    a, b = (array(*(sizes[d] for d in side), seed=i) for i, side in enumerate(equation.split("->")[0].split(",")))
    fn = lambda a, b: jnp.einsum(equation, a, b)
    assert error(run_on(fn, a, b, isa=isa)[0], oracle(fn, a, b)) < TOLERANCE


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("how", conv.ALGORITHMS)
@pytest.mark.parametrize(
    ("h", "w", "c", "oc", "n"), [(8, 8, 16, 16, 1), (7, 13, 9, 17, 1), (1, 5, 8, 133, 2), (17, 6, 70, 64, 3)]
)
def test_winograd_with_weights_that_arrive(isa: Target, how: str, h: int, w: int, c: int, oc: int, n: int) -> None:
    k, x = array(3, 3, c, oc, seed=1), array(n, h, w, c)
    fn = lambda k, x: jax.nn.relu(_conv(x, k))
    got, ran = run_on(fn, k, x, isa=isa, how=how)
    assert error(got, oracle(fn, k, x)) < TOLERANCE
    assert any("winograd" in a for a in ran) == how.startswith("winograd")


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("how", ["winograd4", "winograd2"])
@pytest.mark.parametrize("gradient", [False, True])
def test_winograd_makes_weights_where_they_are_used(
    isa: Target, how: str, gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work items of some channels, the last of fewer; what is summed comes in parts, the last one smaller."""
    monkeypatch.setattr(winograd_ways, "FAR_BYTES", 0)
    c, oc = (139, 70) if gradient else (70, 139)
    k, x, e, b = array(3, 3, c, oc, seed=1), array(2, 5, 6, 70), array(2, 5, 6, 139, seed=2), array(139, seed=3)
    like = jnp.zeros(e.shape)
    by = (
        (lambda k, x: jax.linear_transpose(lambda y: _conv(y, k), like)(x)[0]) if gradient else lambda k, x: _conv(x, k)
    )
    fn = lambda k, x, e, b: jax.nn.relu(by(k, x) + b) * e
    got, ran = run_on(fn, k, x, e, b, isa=isa, how=how)
    assert error(got, oracle(fn, k, x, e, b)) < TOLERANCE
    assert any("strips" in a for a in ran)


# -- gradients by the image ------------------------------------------------------------------------------------------

GRADIENTS = {
    **{name: CONVS[name] for name in COMPUTED},
    "3x3 strided": ((2, 9, 8, 5), (3, 3, 5, 19), dict(stride=2)),
    "3x3 strided valid": ((2, 12, 11, 5), (3, 3, 5, 19), dict(stride=2, padding="VALID")),
    "3x3 stride 3 valid": ((1, 16, 15, 5), (3, 3, 5, 19), dict(stride=3, padding="VALID")),
    "5x5 stride 3": ((1, 16, 15, 5), (5, 5, 5, 19), dict(stride=3)),
    "2x2 stride 3": ((1, 11, 10, 5), (2, 2, 5, 19), dict(stride=3, padding="VALID")),
    "1x1 stride 3": ((2, 10, 8, 17), (1, 1, 17, 33), dict(stride=3)),
    "dilated and strided": ((1, 17, 16, 5), (3, 3, 5, 9), dict(dilation=3, stride=2)),
    "dilated as strided": ((1, 17, 16, 5), (3, 3, 5, 9), dict(dilation=2, stride=2)),
    "dilated by more": ((1, 21, 20, 5), (3, 3, 5, 9), dict(dilation=2, stride=4)),
    "grouped strided": ((1, 9, 10, 12), (3, 3, 3, 20), dict(groups=4, stride=2)),
    "padded by much": ((1, 6, 7, 4), (3, 3, 4, 9), dict(stride=2, padding=[(4, 3), (5, 4)])),
    "cut off": ((1, 12, 11, 4), (3, 3, 4, 9), dict(stride=2, padding=[(-2, -1), (-1, -3)])),
    "1-D strided": ((2, 17, 6), (4, 6, 21), dict(stride=3)),
    "3-D strided": ((1, 7, 6, 8, 3), (3, 2, 3, 3, 18), dict(stride=2)),
}


def by_image(name: str) -> tuple[Any, jax.Array, jax.Array]:
    """The gradient of a convolution by its image, as a function of weights and the result's gradient; and both."""
    x, w, options = GRADIENTS[name]
    of = lambda w, x: _conv(x, w, **options)
    like = jnp.zeros(x)
    fn = lambda w, dy: jax.linear_transpose(lambda x: of(w, x), like)(dy)[0]
    return fn, array(*w, seed=1), array(*jax.eval_shape(of, jnp.zeros(w), like).shape, seed=2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_by_the_image(name: str, threads: int) -> None:
    fn, w, dy = by_image(name)
    check_host(fn, w, dy, threads=threads)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_by_the_image_for_constant_weights(name: str) -> None:
    fn, w, dy = by_image(name)
    check_host(fn, w, dy, weights=1)


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    "name", ["odd", "3x3 strided", "1x1 stride 3", "grouped strided", "1-D strided", "3-D strided"]
)
def test_a_fused_tail_of_a_gradient(name: str, isa: Target) -> None:
    """Pixels that no window reaches have the tail of 0; the gradient's maker leaves the zeroes that phases read."""
    fn, w, dy = by_image(name)
    e = array(*GRADIENTS[name][0], seed=3)
    tailed = lambda w, dy, e: jnp.where(e > 0, fn(w, dy * 2), 0) + jnp.cos(0.5) * e + 1
    assert error(run_on(tailed, w, dy, e, isa=isa)[0], oracle(tailed, w, dy, e)) < TOLERANCE


@pytest.mark.parametrize("name", ["3x3", "3x3 strided", "1x1 stride 3"])
def test_turned_weights_are_no_layer(name: str) -> None:
    """Packing follows `rev`, and images that steps before made are not copied: panels and products are all there is."""
    fn, w, dy = by_image(name)
    _, graph = stages_of(lambda w, dy: fn(w, jnp.tanh(dy)), w, dy)
    assert len(graph.layers) == 2
    segment = host.build(graph.program, 1, pick=choice.default)  # not by Winograd, which may be faster here
    first, *rest = [s.kernel for s in segment.steps]
    assert first.startswith("elementwise")
    zeroes = "1x1" in name  # pixels that no window reaches
    assert not {s for s in rest if s not in ("panel", "gemm") and not (zeroes and s.startswith("elementwise"))}


@pytest.mark.parametrize("how", conv.ALGORITHMS)
def test_gradient_by_winograd(how: str) -> None:
    fn, w, dy = by_image("3x3")
    got, ran = run_on(fn, w, dy, isa=target(), how=how)
    assert error(got, oracle(fn, w, dy)) < TOLERANCE
    assert any("winograd" in a for a in ran) == how.startswith("winograd")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_stays_in_its_channel(value: float) -> None:
    """One weight that is no number reaches its output channel alone, whatever lies behind a panel's last channel."""
    x, w = array(1, 5, 6, 9), np.array(array(3, 3, 9, 21, seed=1))
    w[1, 1, 4, 20] = value
    got, _ = run_on(lambda w, x: _conv(x, w), jnp.asarray(w), x, isa=target())
    assert np.isfinite(got[..., :20]).all() and not np.isfinite(got[..., 20]).any()


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("c", [8, 64, 300])
@pytest.mark.parametrize("gradient", [False, True])
def test_error_of_winograd_is_within_its_bound(m: int, c: int, gradient: bool) -> None:
    """As for constant weights: of the convolution, and of its gradient by the image, which is one too."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((1, 12, 12, c), (3, 3, c, 16)))
    given = w[::-1, ::-1].swapaxes(2, 3) if gradient else w  # whose gradient by the image is the convolution by w
    like = jnp.zeros((1, 12, 12, 16))
    backward = lambda w, dy: jax.linear_transpose(lambda x: _conv(x, w), like)(dy)[0]
    got, ran = run_on(backward if gradient else lambda w, x: _conv(x, w), given, x, isa=target(), how=f"winograd{m}")
    assert any("winograd" in a for a in ran)
    assert np.max(np.abs(got - oracle(lambda w, x: _conv(x, w), w, x))) <= winograd.error_bound(x, w, m)


def test_weights_of_transposed_layers_are_turned_while_they_are_packed() -> None:
    """`conv_transpose(transpose_kernel=True)` flips and swaps computed weights."""
    w, x = array(4, 4, 7, 9, seed=1), array(1, 5, 6, 9)
    fn = lambda w, x: lax.conv_transpose(x, w * x[0, 0, 0, 0], (2, 2), "SAME", transpose_kernel=True)
    assert len(stages_of(fn, w, x)[1].layers) == 2
    check_host(fn, w, x)


def test_weights_that_something_else_reads_turned_as_well() -> None:
    w, x = array(3, 3, 5, 9, seed=1), array(1, 5, 6, 5)
    fn = lambda w, x: (jnp.sum(_conv(x, w[::-1]), (1, 2)), w[::-1] * 2)
    for got, want in zip(run_host(fn, w, x), oracles(fn, w, x), strict=True):
        assert error(got, want) < TOLERANCE


def test_layers_with_computed_weights_are_of_a_kin_by_the_weights_sizes() -> None:
    def kin(k: int, c: int, oc: int) -> str:
        groups = stages_of(lambda w, x: _conv(x, w), array(k, k, c, oc), array(1, 8, 8, c))[1].program.groups
        return choice.kinship([(groups[0], frozenset())], conv.ALGORITHMS, 1, target())

    assert kin(3, 8, 16) == kin(3, 8, 24)
    assert len({kin(3, 8, 16), kin(3, 16, 16), kin(1, 8, 16)}) == 3


# -- gradients by the weights, by Winograd's algorithm -----------------------------------------------------------------


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("how", conv.ALGORITHMS)
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((0, 2), (2, 1))])
@pytest.mark.parametrize(("n", "h", "w", "c", "oc"), [(2, 7, 9, 12, 19), (1, 8, 8, 70, 33), (3, 3, 4, 8, 16)])
def test_gradient_by_weights(isa: Target, how: str, padding: Any, n: int, h: int, w: int, c: int, oc: int) -> None:
    """With the optimizer's update as its tail; tiles that reach beyond the result, whose pixels there count nothing."""
    x, old = array(n, h, w, c), array(3, 3, c, oc, seed=2)
    of = lambda x, k: _conv(x, k, padding=padding)
    dy = array(*jax.eval_shape(of, x, old).shape, seed=1)
    fn = lambda x, dy, old: old - 0.1 * jax.linear_transpose(lambda k: of(x, k), old)(dy * 2)[0]
    got, ran = run_on(fn, x, dy, old, isa=isa, how=how)
    assert error(got, oracle(fn, x, dy, old)) < 1e-5
    assert any("winograd" in a for a in ran) == how.startswith("winograd")


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("spec", [("NCHW", "OIHW", "NCHW"), ("NHWC", "OHWI", "NHWC")], ids="-".join)
def test_gradient_by_weights_in_other_layouts(m: int, spec: tuple[str, str, str]) -> None:
    sizes = {"N": 2, "H": 3, "W": 3, "I": 9, "O": 17, "C": 9}
    x, k = (array(*({"H": 6, "W": 7}.get(d, sizes[d]) for d in spec[0])), array(*(sizes[d] for d in spec[1])))
    of = lambda x, k: lax.conv_general_dilated(jnp.tanh(x), k, (1, 1), "SAME", dimension_numbers=spec)
    dy = array(*jax.eval_shape(of, x, k).shape, seed=1)
    fn = lambda x, dy: jax.linear_transpose(lambda k: of(x, k), k)(dy)[0]
    got, _ = run_on(fn, x, dy, isa=target(), how=f"winograd{m}")
    assert error(got, oracle(fn, x, dy)) < 1e-5


@pytest.mark.parametrize("kind", ["random", "alternating", "offset", "spike", "tiny"])
@pytest.mark.parametrize("m", [2, 4])
def test_error_of_gradients_by_weights(kind: str, m: int) -> None:
    """Rounded as the transposed transforms have it: a bound as that of the convolution, with tiles summed."""
    x, dy = adversarial(kind, (2, 12, 12, 16)), adversarial("random", (2, 12, 12, 24))
    fn = lambda x, dy: jax.linear_transpose(lambda k: _conv(x, k), jnp.zeros((3, 3, 16, 24)))(dy)[0]
    got, ran = run_on(fn, x, dy, isa=target(), how=f"winograd{m}")
    assert any("winograd" in a for a in ran)
    assert np.max(np.abs(got - oracle(fn, x, dy))) <= winograd_gradient.error_bound(x, dy, m)


@pytest.mark.parametrize("options", [dict(stride=2), dict(dilation=2), dict(groups=2)])
def test_other_gradients_by_weights_have_no_tiles(options: dict[str, int]) -> None:
    x, k = array(2, 9, 9, 16), array(3, 3, 16 // options.get("groups", 1), 16, seed=1)
    of = lambda k: _conv(x, k, **options)
    dy = array(*jax.eval_shape(of, k).shape, seed=2)
    fn = lambda x, dy: jax.linear_transpose(lambda k: _conv(x, k, **options), k)(dy)[0]
    got, ran = run_on(fn, x, dy, isa=target(), how="winograd4")
    assert error(got, oracle(fn, x, dy)) < 1e-5 and not any("winograd" in a for a in ran)


# -- whole steps -----------------------------------------------------------------------------------------------------


def test_a_training_step_runs_on_kernels() -> None:
    """Forward and both gradients of convolutions whose weights change with every call, planned, compiled and called."""
    sizes = [(3, 3, 6, 16), (3, 3, 16, 16), (1, 1, 16, 24), (3, 3, 24, 8)]
    x, weights = array(2, 9, 10, 6), [array(*s, seed=i + 1) for i, s in enumerate(sizes)]

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for stride, w in zip((1, 2, 2, 1), weights, strict=True):
            x = jnp.tanh(_conv(x, w, stride))
        return jnp.sum(x * x)

    def step(state: list[jax.Array], rate: jax.Array, x: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        weights = [w * rate for w in state]  # computed: nothing of them is known when the function is bound
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return [w - 0.01 * g for w, g in zip(weights, gradients, strict=True)], value

    fast = xcoexec.compile(step, weights, jnp.float32(0.9), x, plan=xcoexec.Plan.uniform(1.0), strict=True)
    for rate in (0.9, 1.1):
        assert worst(fast(weights, jnp.float32(rate), x), oracles(step, weights, jnp.float32(rate), x)) < 1e-5
    report = fast.report()
    assert report.ran == "xco" and not any(layer.host_error for layer in fast.graph().layers)
    ran = [layer.algorithm for layer in report.layers if "gemm" in layer.algorithm]
    assert (
        len(ran) == 11 and sum("panel" in a for a in ran) == 7
    )  # four layers, and all but the first hand a gradient on
