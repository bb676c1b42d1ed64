"""Streams: order, overlap, back-pressure, errors at their own item, and nothing left behind."""

from __future__ import annotations

import gc
import itertools
import json
import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcoexec
from xcoexec.streams.cuts import Partly
from xcoexec.streams.stream import Stage, Stream

from .support import array, until


def _threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("xcoexec-stream")]


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    gc.collect()
    until(lambda: not _threads())


def _slow(seconds: float) -> Any:
    def stage(x: Any) -> Any:
        time.sleep(seconds)
        return x + 1

    return stage


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 30), st.integers(1, 5), st.booleans(), st.booleans())
def test_results_come_in_order(count: int, depth: int, before: bool, behind: bool) -> None:
    pipe = xcoexec.pipeline(
        lambda x: x * 10,
        preprocess=(lambda x: x + 1) if before else None,
        postprocess=(lambda x: x - 3) if behind else None,
        depth=depth,
    )
    assert list(pipe(range(count))) == [10 * (x + before) - 3 * behind for x in range(count)]


def _part(number: int, value: Any) -> Any:
    """Items (name, parts, the part that raises or None): each part but the last leaves the rest to the next one."""
    name, parts, raises = value.value if number else value
    assert number < parts
    if number == raises:
        raise KeyError(name)
    time.sleep(0.0005 * (name % 3))
    return Partly(None, None, (name, parts, raises)) if number + 1 < parts else name  # type: ignore[arg-type]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([None, None, None, 0, 1, 2])), max_size=20),
    st.integers(1, 3),
    st.booleans(),
)
def test_items_that_need_different_parts_stay_in_order(
    items: list[tuple[int, int | None]], depth: int, before: bool
) -> None:
    network = Stage(
        "network 1",
        lambda v: _part(0, v),
        further=(("network 2", lambda v: _part(1, v)), ("network 3", lambda v: _part(2, v))),
    )
    stages = [Stage("preprocess", lambda v: v, 3)] * before + [network, Stage("postprocess", lambda v: -v)]
    stream = Stream(stages, depth, 60.0, [(i, parts, raises) for i, (parts, raises) in enumerate(items)])
    for i, (parts, raises) in enumerate(items):
        if raises is not None and raises < parts:
            with pytest.raises(KeyError, match=str(i)):
                next(stream)
        else:
            assert next(stream) == -i
    assert list(stream) == []


def test_parts_that_an_item_does_not_need_take_no_time() -> None:
    network = Stage("network 1", lambda v: _part(0, v), further=(("network 2", lambda v: _part(1, v)),))
    with Stream([network], 2, 60.0, [(1, 1, None)] * 9) as stream:
        assert len(list(stream)) == 9
        stats = stream.stats()
    assert stats.stages["network 1"] > 4e-4 and stats.stages["network 2"] == stats.busy["network 2"] == 0.0


def test_a_part_that_blocks_is_named() -> None:
    ended = threading.Event()
    network = Stage("network 1", lambda v: _part(0, v), further=(("network 2", lambda v: ended.wait(600)),))
    stream = Stream([network], 2, 0.3, [(0, 2, None)] * 5)
    with pytest.raises(TimeoutError, match=r"network 2 works on its item since \d+\.\d"):
        next(stream)
    ended.set()


def test_stages_overlap() -> None:
    """Three stages meet, each with an item of its own, once an item: one after the other they never would."""
    together = threading.Barrier(3)

    def stage(x: int) -> int:
        """Each adds one: those that are at work at the same time see the same number."""
        if 2 <= x < 20:  # the first and the last items have nobody to meet
            together.wait(120)
        return x + 1

    with xcoexec.pipeline(stage, preprocess=stage, postprocess=stage, depth=1)(range(20)) as stream:
        assert list(stream) == [x + 3 for x in range(20)]


def test_statistics_of_a_stream() -> None:
    with xcoexec.pipeline(_slow(0.02), preprocess=_slow(0.02), postprocess=_slow(0.02))(range(20)) as stream:
        assert list(stream) == [x + 3 for x in range(20)]
        stats, end = stream.stats(), stream.stats(4)
    assert end.items == 4 and stats.items == 20 and set(stats.stages) == {"preprocess", "network", "postprocess"}
    assert set(stats.busy) == set(stats.stages) and all(0 < b <= 1 for b in stats.busy.values())
    assert 0.06 <= stats.latency <= stats.latency_99 and all(t >= 0.02 for t in stats.stages.values())
    assert 0 < stats.throughput <= 50 * (1 + 1e-6)  # an item keeps every stage for 20 ms


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_source_is_not_asked_for_more_than_there_is_room(depth: int) -> None:
    asked: list[int] = []

    def source() -> Iterator[int]:
        for i in itertools.count():
            asked.append(i)
            yield i

    with xcoexec.pipeline(lambda x: x, postprocess=lambda x: x, depth=depth)(source()) as stream:
        assert next(stream) == 0
        time.sleep(0.1)
        assert (
            len(asked) <= 1 + 3 * depth + 2 * 2 + 1
        )  # taken; three channels; worked on and next in each of two stages; in the feeder's hands


@pytest.mark.parametrize("where", ["preprocess", "network", "postprocess"])
def test_an_error_comes_up_at_its_own_item(where: str) -> None:
    def fails(x: int) -> int:
        if x == 3:
            raise ArithmeticError("three")
        return x

    stages: dict[str, Any] = {
        "preprocess": lambda x: x,
        "network": lambda x: x,
        "postprocess": lambda x: x,
        where: fails,
    }
    with xcoexec.pipeline(stages.pop("network"), **stages)(range(6)) as stream:
        assert [next(stream) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ArithmeticError, match="three"):
            next(stream)
        assert list(stream) == [4, 5]


def test_an_error_of_the_source_comes_after_its_items() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise OSError("no file")

    with xcoexec.pipeline(lambda x: x)(source()) as stream:
        assert next(stream) == 1
        with pytest.raises(OSError, match="no file"):
            next(stream)
        assert list(stream) == []


def test_dropping_and_closing_leave_no_thread() -> None:
    pipe = xcoexec.pipeline(lambda x: x, preprocess=lambda x: x)
    dropped = pipe(itertools.count())
    next(dropped)
    assert _threads()
    del dropped
    for _ in pipe(itertools.count()):
        break
    with pytest.raises(KeyboardInterrupt), pipe(itertools.count()) as stream:
        next(stream)
        raise KeyboardInterrupt
    assert next(stream, None) is None  # closed


def test_a_stage_that_blocks_is_named() -> None:
    gate = threading.Event()
    stream = xcoexec.pipeline(lambda x: x, preprocess=lambda x: gate.wait() and x, timeout=0.2)(range(3))
    with pytest.raises(TimeoutError, match=r"no result within 0.2 s \(preprocess works on its item since \d+\.\d s\)"):
        next(stream)
    gate.set()
    waiting = xcoexec.pipeline(lambda x: x, timeout=0.1)(iter(lambda: gate.clear() or gate.wait(600), None))
    with pytest.raises(TimeoutError, match="it waits for the iterator of inputs"):
        next(waiting)
    gate.set()


def test_a_co_executed_function_in_a_stream(tmp_path: pathlib.Path) -> None:
    w = array(64, 32)
    fast = xcoexec.jit(lambda w, x: jnp.tanh(x @ w), strategy="host", threads=2, strict=True).bind(w)
    inputs = [np.random.default_rng(i).standard_normal((4, 64)).astype(np.float32) for i in range(12)]
    with xcoexec.pipeline(fast, preprocess=jnp.asarray, postprocess=np.asarray)(inputs) as stream:
        for x, y in zip(inputs, stream, strict=True):
            assert np.abs(y - np.tanh(x.astype(np.float64) @ np.asarray(w, np.float64))).max() < 1e-4
        stream.timeline(tmp_path / "s.json")
    events = json.loads((tmp_path / "s.json").read_text())["traceEvents"]
    rows = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert rows == {"preprocess", "network", "postprocess"} and sum(e["ph"] == "X" for e in events) == 36


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="got network=3; valid is a callable"):
        xcoexec.pipeline(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got preprocess='x'"):
        xcoexec.pipeline(len, preprocess="x")  # type: ignore[arg-type]
    for depth in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match=r"got depth=.*valid is an integer from 1 on"):
            xcoexec.pipeline(len, depth=depth)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got timeout=0"):
        xcoexec.pipeline(len, timeout=0)
    stream = xcoexec.pipeline(len)([])
    with pytest.raises(ValueError, match="before the first result"):
        stream.stats()
    assert list(stream) == []


def test_a_stream_computes_under_the_settings_of_who_made_it() -> None:
    """`with jax.default_matmul_precision(...)` holds for one thread; without it a stream would compile the network
    anew, in another precision.
    """
    seen = lambda _: (jax.config.jax_default_matmul_precision, jax.config.jax_enable_x64)
    with jax.default_matmul_precision("highest"), xcoexec.pipeline(seen, preprocess=seen)(range(2)) as stream:
        assert next(stream) == ("highest", False)
    with xcoexec.pipeline(seen)(range(2)) as stream:
        assert next(stream) == seen(0)


def test_a_network_with_fewer_threads_is_the_same_function() -> None:
    from xcoexec.streams.cuts import beside

    w, x = array(8, 8), array(4, 8)
    resident = xcoexec.jit(lambda w, x: jnp.tanh(x @ w), strategy="host", donate_argnums=1).bind(w)
    fewer = beside(resident, 1)
    assert fewer is not resident and fewer._function.plain.given == {"donate_argnums": 1}
    np.testing.assert_allclose(np.asarray(fewer(x + 0)), np.tanh(np.asarray(x) @ np.asarray(w)), rtol=1e-5)
