"""CoDL's own predictor: the counts of Table 1 on hand-made shapes, and what a plain regression learns of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xcoexec.cost.equation3 import ANY, Blocking, Shape, learned, size, units

SHAPE = Shape(13, 13, 64, 128, 3)
PLAIN = Blocking(1, (1, 1), 1)


def test_the_counts_of_table_1() -> None:
    assert size("pool", SHAPE) == (13 * 13 * 128, 1.0)
    assert size("gemm", SHAPE) == (13 * 13 * 64 * 128 * 9, 64 * 9)
    tiles = 4 * 4  # of 4 by 4 places
    assert size("winograd_input winograd4", SHAPE) == (64 * tiles * 36, 1.0)
    assert size("gemm winograd4", SHAPE) == (36 * tiles * 64 * 128, 64)
    assert size("winograd_output winograd4", SHAPE) == (128 * tiles * 16, 1.0)
    assert size("winograd_input winograd2", SHAPE) == (64 * 7 * 7 * 16, 1.0)


@pytest.mark.parametrize(("elements", "expected"), [(1, 1), (16, 1), (17, 2), (32, 2), (33, 3)])
def test_time_has_steps_of_a_block_for_each_core(elements: int, expected: int) -> None:
    """Two cores with blocks of 8 elements, one unit each: 16 elements are one step."""
    assert units("pool", Shape(1, 1, 1, elements), Blocking(2, (1, 1), 8)) == expected


def test_a_tile_of_a_product_counts_as_a_whole() -> None:
    """5 x 5 places and 10 channels in tiles of 4 places and 8 channels: 250 of 32 elements are eight tiles."""
    shape, blocking = Shape(5, 5, 6, 10), Blocking(1, (4, 8), 8)
    assert units("gemm", shape, blocking) == 8 * (4 * 8 * 6 / 8)


def test_what_follows_the_form_is_learned_exactly() -> None:
    rng = np.random.default_rng(0)
    shapes = [Shape(*map(int, rng.integers(1, 60, 2)), *map(int, rng.integers(8, 400, 2)), 3) for _ in range(40)]
    unit = lambda s: 1e-9 + 2e-12 * s.height + 3e-12 * s.width + 5e-13 * s.into + 7e-13 * s.out
    blocking = {"host": Blocking(2, (6, 16), 8), "device": PLAIN}
    samples = [(half, "gemm", s, units("gemm", s, b) * unit(s)) for s in shapes for half, b in blocking.items()]
    model = learned(samples[:60], blocking)
    for half, kernel, s, seconds in samples[60:]:
        assert model.seconds(half, kernel, s) == pytest.approx(seconds, rel=0.02)
    assert model.seconds("host", "unheard of", shapes[0]) > 0
    assert set(model.lines) == {(h, k) for h in blocking for k in ("gemm", ANY)}
    assert model.nbytes == 4 * 5 * 4 and len(json.loads(model.to_json())) == 4


def test_a_line_below_nothing_gives_no_negative_time() -> None:
    samples = [("host", "pool", Shape(n, 1, 1, 1), 1e-6 / n**3) for n in range(1, 9)]
    model = learned(samples, {"host": PLAIN})
    assert all(model.seconds("host", "pool", Shape(n, 1, 1, 1)) > 0 for n in range(1, 200))
