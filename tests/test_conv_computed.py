"""Convolutions whose weights arrive with the call or are computed by the model, and their gradients by the image."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from xcoexec.codegen.kernels import conv
from xcoexec.codegen.kernels.block_shapes import measured_shapes
from xcoexec.codegen.target import Target

from .support import TOLERANCE, array, check_host, error, oracle, targets
from .test_algorithms import run_on
from .test_ops import CONVS, _conv

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
        monkeypatch.setattr(conv, "block_shape", lambda *_, shape=shape: shape)
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
