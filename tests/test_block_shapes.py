"""Block shapes: a model until a process before has measured them, then what is far from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from xcoexec.codegen.kernels import block_shapes
from xcoexec.codegen.kernels.product import split_evenly
from xcoexec.codegen.target import Target, target

from .support import targets


@pytest.fixture(autouse=True)
def _forget(own_cache: None) -> Iterator[None]:
    block_shapes._slowdown.cache_clear()
    yield
    block_shapes._slowdown.cache_clear()


def test_nothing_measured_is_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_shapes, "_measured", lambda *_: pytest.fail("measured"))
    found = block_shapes.slowdown(target())
    assert found == {s: block_shapes.expected(s, target()) for s in block_shapes.candidates(target())}
    assert min(found.values()) == 1.0 and found[max(found)] == 1.0, "many rows hide what is read"


def test_without_a_cache_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_shapes, "folder", lambda: None)
    monkeypatch.setattr(block_shapes, "_measured", lambda *_: pytest.fail("measured"))
    assert not block_shapes.learn(target())


def test_what_is_learned_counts_from_now_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shape that is far slower than the model has it; what is near is as the model has it."""
    shapes = block_shapes.measured_shapes(target())
    slow, times = shapes[len(shapes) // 2], []

    def seconds(
        isa: object, unit: object, which: list[block_shapes.Shape], alone: object
    ) -> dict[block_shapes.Shape, float]:
        times.append(len(which))
        model = {s: 1e-9 * block_shapes.cycles(s) * block_shapes.expected(s, target()) for s in which}
        return {s: t * (3.0 if s == slow else 1.05) for s, t in model.items()}

    monkeypatch.setattr(block_shapes, "_measured", seconds)
    before = block_shapes.slowdown(target())
    assert block_shapes.learn(target()) and not block_shapes.learn(target())
    assert times == [len(shapes)], "once a machine"
    after = block_shapes.slowdown(target())
    block_shapes._slowdown.cache_clear()
    assert block_shapes.slowdown(target()) == after, "the next process says the same"
    assert after[slow] == pytest.approx(before[slow] * 3.0 / 1.05)
    assert all(after[s] == before[s] for s in shapes if s != slow)


def test_shapes_are_measured_as_seconds() -> None:
    inside: list[str] = []

    @contextlib.contextmanager
    def alone() -> Iterator[None]:
        inside.append("shape")
        yield

    block_shapes.learn(target(), alone)
    assert inside, "other calls wait"
    name, record = block_shapes._kept(target(), block_shapes.VECTOR)
    found = record.load(name)
    assert found is not None and all(1e-12 < seconds < 1e-3 for seconds in found.values())


def _cost(isa: Target, shape: block_shapes.Shape, pixels: int, vectors: int, depth: int, line: int) -> float:
    """Tile by tile, in the time of an FMA; a call takes what lies in one line, or all where tiles fill the lines."""
    slower, (mr, nv) = block_shapes.slowdown(isa), shape
    heights, took = split_evenly(pixels, mr), 0.0
    fill = not line or (len(set(heights)) == 1 and line % heights[0] == 0)
    for wide in split_evenly(vectors, nv):
        for rows in heights:
            took += depth * block_shapes.cycles((rows, wide)) * slower[rows, wide]
            took += block_shapes.TILE + block_shapes.ROW * rows
        took += 0 if fill else block_shapes.CALL * min(len(heights), 2 * (pixels // line))
    return took


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("depth", [8, 500])
@pytest.mark.parametrize(("pixels", "line"), [(197, 0), (196, 14), (3136, 56), (49, 7), (25, 5), (1, 1), (2, 0)])
@pytest.mark.parametrize("channels", [1, 24, 144, 197])
def test_the_shape_with_the_least_time(isa: Target, depth: int, pixels: int, line: int, channels: int) -> None:
    found = block_shapes.block_shape(isa, pixels, channels, depth=depth, line=line)
    vectors = -(-channels // isa.vl)
    costs = {s: _cost(isa, s, pixels, vectors, depth, line) for s in block_shapes.candidates(isa)}
    near = [s for s, c in costs.items() if c <= block_shapes.ALIKE * min(costs.values())]
    kernels = lambda s: len(set(split_evenly(pixels, s[0]))) * len(set(split_evenly(vectors, s[1])))
    assert found in near and kernels(found) == min(map(kernels, near))


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
def test_tiles_of_short_sums_fill_lines(isa: Target) -> None:
    """One kernel call has them all."""
    rows, _ = block_shapes.block_shape(isa, 3136, 144, depth=12, line=56)
    assert 56 % split_evenly(3136, rows)[0] == 0 == 3136 % rows


@pytest.mark.parametrize(("n", "most"), [(1, 1), (1, 9), (7, 7), (8, 7), (13, 3), (197, 6), (3136, 9)])
def test_even_parts(n: int, most: int) -> None:
    parts = block_shapes.even_parts(n, most)
    sizes = [size for size, count in parts for _ in range(count)]
    assert sum(sizes) == n and max(sizes) <= most and max(sizes) - min(sizes) <= 1 and len(sizes) == -(-n // most)
    assert sizes == sorted(sizes, reverse=True) == split_evenly(n, most)
