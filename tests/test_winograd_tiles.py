"""Winograd's convolution in work items of some tiles each, which large images get, on small images against float64."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.kernels import winograd_ways
from xcoexec.codegen.kernels.winograd_steps import Tiles
from xcoexec.codegen.target import Target, target

from .support import TOLERANCE, array, error, oracle, targets
from .test_algorithms import BF16_UNIT, run_on

pytestmark = pytest.mark.usefixtures("quick_xla")
NHWC = ("NHWC", "HWIO", "NHWC")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of any size count as large, and items may have few tiles."""
    monkeypatch.setattr(winograd_ways, "_beyond_caches", lambda ctx, nbytes: True)
    monkeypatch.setattr(winograd_ways, "LEAST_TILES", 1)


def keeping(isa: Target, tiles: int, m: int, channels: int) -> Target:
    """A CPU whose caches hold so many tiles of so many channels, of the image and the result together."""
    return dataclasses.replace(isa, kept=2 * (m + 2) ** 2 * channels * tiles)


def _layer(k: Any, b: Any, x: Any, residual: bool = False, padding: Any = "SAME") -> Any:
    y = lax.conv_general_dilated(x, k, (1, 1), padding, dimension_numbers=NHWC) + b
    return jax.nn.relu(y + x) if residual else jax.nn.relu(y)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("weights", [0, 2])
@pytest.mark.parametrize(
    ("n", "h", "w", "c", "oc", "most"),
    [
        (1, 17, 13, 9, 17, 1),  # tile by tile
        (1, 17, 13, 9, 17, 3),  # a part of a row
        (2, 19, 14, 16, 33, 9),  # some rows
        (5, 9, 7, 8, 24, 14),  # some images, the last item with fewer
        (1, 1, 40, 40, 8, 4),
        (3, 23, 1, 8, 16, 2),
    ],
)
def test_odd_sizes(isa: Target, m: int, weights: int, n: int, h: int, w: int, c: int, oc: int, most: int) -> None:
    k, b, x = array(3, 3, c, oc, seed=1), array(oc, seed=2), array(n, h, w, c)
    for threads in (1, 2, 3):
        got, ran = run_on(
            _layer, k, b, x, isa=keeping(isa, most, m, c + oc), how=f"winograd{m}", weights=weights, threads=threads
        )
        assert error(got, oracle(_layer, k, b, x)) < TOLERANCE
        assert any("strips" in a and f"winograd({m}x{m})" in a for a in ran)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("padding", ["VALID", ((1, 1), (1, 1)), ((0, 2), (2, 0)), ((3, 3), (3, 3))])
@pytest.mark.parametrize("most", [2, 5, 12])
def test_paddings(padding: Any, most: int) -> None:
    k, b, x = array(3, 3, 16, 24, seed=1), array(24, seed=2), array(2, 21, 18, 16)
    fn = functools.partial(_layer, padding=padding)
    got, ran = run_on(fn, k, b, x, isa=keeping(target(), most, 4, 40), how="winograd4", weights=2)
    assert error(got, oracle(fn, k, b, x)) < TOLERANCE and any("strips" in a for a in ran)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("how", ["winograd2", "winograd4"])
def test_residual_and_chain(how: str) -> None:
    """A residual, which is cut as the result is, and an image between two layers whose border whole tiles read."""
    k, b, x = array(3, 3, 16, 16, seed=1), array(16, seed=2), array(2, 19, 14, 16)
    fn = lambda k, b, x: _layer(k, b, _layer(k, b, x, residual=True), residual=True)
    got, ran = run_on(fn, k, b, x, isa=keeping(target(), 3, int(how[-1]), 32), how=how, weights=2)
    assert error(got, oracle(fn, k, b, x)) < TOLERANCE and any("strips" in a for a in ran)


@pytest.mark.usefixtures("small")
def test_planes_and_gradient() -> None:
    """Planes of a third dimension that the window does not reach over, and the gradient by an image."""
    k, x = array(1, 3, 3, 9, 20, seed=1), array(2, 3, 17, 14, 9)
    dims = ("NDHWC", "DHWIO", "NDHWC")
    fn = lambda k, x: lax.conv_general_dilated(x, k, (1, 1, 1), "SAME", dimension_numbers=dims)
    got, ran = run_on(fn, k, x, isa=keeping(target(), 4, 4, 29), how="winograd4", weights=1)
    assert error(got, oracle(fn, k, x)) < TOLERANCE and any("strips" in a for a in ran)
    k, dy = array(3, 3, 16, 24, seed=1), array(2, 18, 13, 24, seed=2)
    zeros = jnp.zeros((2, 18, 13, 16))
    forward = lambda k, x: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC)
    back = lambda k, dy: jax.linear_transpose(lambda x: forward(k, x), zeros)(dy)[0]
    got, ran = run_on(back, k, dy, isa=keeping(target(), 4, 4, 40), how="winograd4")
    assert error(got, oracle(back, k, dy)) < TOLERANCE and any("strips" in a for a in ran)


@pytest.mark.usefixtures("small")
@pytest.mark.skipif(BF16_UNIT is None or BF16_UNIT.step != 1, reason="a CPU without vectors of bf16")
def test_words_of_bf16_are_written_by_the_items() -> None:
    def fn(k: Any, w: Any, x: Any) -> Any:
        y = lax.conv_general_dilated(
            x.astype(k.dtype), k, (1, 1), "SAME", dimension_numbers=NHWC, preferred_element_type=jnp.float32
        )
        y = jax.nn.relu(y).astype(w.dtype)
        return lax.dot_general(y, w, (((3,), (0,)), ((), ())), preferred_element_type=jnp.float32)

    k, w = (a.astype(jnp.bfloat16) for a in (array(3, 3, 16, 32, seed=1), array(32, 24, seed=3)))
    x = array(2, 17, 14, 16).astype(jnp.bfloat16).astype(jnp.float32)
    whole, _ = run_on(fn, k, w, x, isa=target(), how="direct", weights=2)
    got, ran = run_on(fn, k, w, x, isa=keeping(target(), 5, 4, 48), how="winograd4", weights=2)
    assert error(got, whole) < 2e-3  # what elements that are rounded to their other neighbours add
    assert any("strips" in a for a in ran) and not any("narrow" in a for a in ran if "strips" not in a)


def machine(threads: int, isa: Target) -> Any:
    """What is asked of a context to cut a convolution into items."""
    return types.SimpleNamespace(threads=threads, target=isa)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("sizes", [(1, 1, 56, 56), (1, 1, 224, 112), (8, 1, 29, 31), (40, 1, 8, 8), (2, 3, 17, 64)])
def test_items_are_every_tile_once_and_fit_the_caches(threads: int, sizes: tuple[int, int, int, int]) -> None:
    tiles, most = Tiles(4, *sizes), 30
    box = winograd_ways._box(machine(threads, keeping(target(), most, 4, 64)), tiles, 32, 32)
    assert box is not None and np.prod(box) <= most
    seen = np.zeros(sizes, int)
    loads = np.zeros(threads)
    for part, (n, d, h, w, _) in winograd_ways._pieces(tiles, box):
        assert part.count <= most and not h % 4 and not w % 4
        seen[n : n + part.batch, d : d + part.planes, h : h + part.h, w : w + part.w] += 1
        loads[loads.argmin()] += part.count  # whoever is free takes the next one
    assert (seen == 1).all()
    assert loads.max() <= 1.35 * tiles.count / threads or tiles.count < 8 * threads


@pytest.mark.parametrize(
    ("n", "h", "c", "threads", "by_tiles"),
    [
        (1, 224, 64, 2, True),
        (8, 112, 128, 2, True),
        (1, 56, 64, 2, False),  # the last cache holds it
        (8, 56, 64, 64, False),  # the cores' caches hold it together
        (1, 112, 256, 2, False),  # an item would have few tiles for its weights
    ],
)
def test_small_images_and_many_channels_stay_whole(n: int, h: int, c: int, threads: int, by_tiles: bool) -> None:
    isa = dataclasses.replace(target(), kept=1 << 19)
    assert (winograd_ways._box(machine(threads, isa), Tiles(4, n, 1, h, h), c, c) is not None) == by_tiles
