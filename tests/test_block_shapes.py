"""Block shapes: a model until a process before has measured them, then what is far from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from xcoexec.codegen.kernels import block_shapes
from xcoexec.codegen.target import target


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
