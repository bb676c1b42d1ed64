"""Algorithms: what is chosen depends on the layer, the machine and what is kept on disk."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

from xcoexec.codegen.kernels import conv
from xcoexec.codegen.kernels.winograd import eligible, guess
from xcoexec.codegen.program import Group, Op, Value
from xcoexec.codegen.runtime import guesses
from xcoexec.codegen.segment import choice
from xcoexec.codegen.segment.context import Groups
from xcoexec.codegen.target import Target, target
from xcoexec.frontend.graph import graph_of

from .support import array

NAMES = ("direct", "winograd")


def _conv(rows: int, channels: int = 8) -> Groups:
    x, w, y = (Value(s, "float32") for s in ((1, rows, 9, 4), (3, 3, 4, channels), (1, rows, 9, channels)))
    op = Op("conv_general_dilated", (x, w), (y,), {"window_strides": (1, 1), "dimension_numbers": None})
    return ((Group.of(op), frozenset({w})),)


MEASURE = choice._measure


@pytest.fixture(autouse=True)
def _measured(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The second algorithm is the faster one for large layers; a cache of the test's own."""

    def measure(alone: Any, isa: Any, groups: Groups, names: Any, threads: int, key: str) -> str:
        chosen = names[groups[0][0].ops[0].outs[0].shape[1] > 20]
        choice._record(names).store(key, {"chosen": chosen, "seconds": dict.fromkeys(names, 1e-3)})
        return str(chosen)

    monkeypatch.setattr(choice, "_measure", measure)
    _elsewhere(monkeypatch, tmp_path)


def _elsewhere(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, forget: bool = True) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(folder))
    if forget:
        monkeypatch.setattr(choice, "_known", {})


def _measure(rows: int) -> str:
    return choice.measured(lambda *_: pytest.fail("measured"), target(), _conv(rows), NAMES, 2)


def test_nothing_kept_is_the_first_algorithm() -> None:
    assert choice.likely(_conv(12), NAMES, 2) == "direct"


def test_nothing_kept_is_what_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    for guessed, found in (("winograd", "winograd"), ("", "direct")):  # the second: nobody knows
        monkeypatch.setattr(guesses, "_guess", lambda *_, guessed=guessed: guessed)
        assert guesses.at_once(_conv(12), NAMES, 2) == (found, True)
    _measure(12)
    monkeypatch.setattr(guesses, "_guess", lambda *_: "winograd")
    assert guesses.at_once(_conv(12), NAMES, 2) == ("direct", False), "it was measured"


@pytest.mark.parametrize(
    ("pixels", "channels", "guessed"),
    [(56, 64, "winograd4"), (28, 128, "winograd4"), (4, 8, "direct"), (1, 512, "direct")],
)
def test_a_guess_weighs_products_and_weights(
    pixels: int, channels: int, guessed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = Target("avx512", 16, 32, "x", "+avx512f")  # shorter vectors would weigh products more
    monkeypatch.setattr(guesses, "target", lambda: wide)
    nhwc = ("NHWC", "HWIO", "NHWC")
    fn = lambda w, x: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=nhwc)
    _, graph = graph_of(fn, (array(3, 3, channels, channels), array(1, pixels, pixels, channels)), 1)
    group = graph.layers[0].group
    found = guesses.at_once(((group, frozenset(graph.program.consts)),), conv.ALGORITHMS, 2)
    assert found == (guessed if eligible(group.ops[0]) else "direct", True)
    assert guess(group.ops[0], 2, wide) == guessed


def test_the_order_of_measurements_does_not_choose(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The largest layer of the kin speaks for it, whichever this or another process has met last."""
    for i, order in enumerate(itertools.permutations((8, 16, 32))):
        _elsewhere(monkeypatch, tmp_path / str(i))
        for rows in order:
            _measure(rows)
        assert choice.likely(_conv(12), NAMES, 2) == "winograd", order
        assert choice.likely(_conv(8), NAMES, 2) == "direct"  # which is kept for this very layer
        assert choice.likely(_conv(12, channels=4), NAMES, 2) == "winograd"  # a part of the channels


def test_another_process_chooses_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    _measure(32)
    _elsewhere(monkeypatch, tmp_path)  # nothing in the process's memory
    assert choice.likely(_conv(12), NAMES, 2) == "winograd"
    assert choice.likely(_conv(12), NAMES, 3) == "direct"  # of another number of threads nothing is kept


def test_what_the_process_has_seen_does_not_choose(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    _measure(32)
    _elsewhere(monkeypatch, tmp_path / "empty", forget=False)
    assert choice.likely(_conv(12), NAMES, 2) == "direct"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have gone by, which calls add to."""
    now = [0.0]
    monkeypatch.setattr(choice.time, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize("disturbed", [0.0, 0.008])
def test_who_is_disturbed_does_not_lose(disturbed: float, clock: list[float]) -> None:
    """For the first seconds another process has a core: the faster algorithm, which waits for it, takes longer."""

    def alone(groups: Groups, name: str, threads: int, isa: Any) -> tuple[Any, int]:
        def call() -> None:
            clock[0] += 2e-4 if name == "winograd" else 3e-4 if clock[0] < disturbed else 1e-4

        return call, 0

    assert MEASURE(alone, target(), _conv(12), NAMES, 2, "pick-disturbed") == "direct"
    assert clock[0] < 0.2, "and it ends"


@pytest.mark.parametrize("between", [0, choice.COLD_BYTES])
def test_what_caches_lose_is_measured_without_them(
    between: int, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[int] = []
    monkeypatch.setattr(choice.np, "zeros", lambda n: emptied.append(n) or np.ones(1))

    def call() -> None:
        clock[0] += 1e-3

    assert MEASURE(lambda *_: (call, between), target(), _conv(12), NAMES, 2, "pick-cold") == "direct"
    assert bool(emptied) is bool(between)


def test_a_clock_that_stands_still_ends_too(clock: list[float]) -> None:
    assert MEASURE(lambda *_: (lambda: None, 0), target(), _conv(12), NAMES, 2, "pick-still") == "direct"
