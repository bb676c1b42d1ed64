"""How much both halves slow down together: parts are measured alone and beside each other."""

from __future__ import annotations

import math
import pathlib

import numpy as np
import pytest

from xcoexec.codegen.runtime.relay import Relay
from xcoexec.frontend.graph import graph_of
from xcoexec.measure import contention, device_layers, profile
from xcoexec.measure.contention import Together

from .standin import StandIn


def test_both_halves_are_measured_alone_and_together() -> None:
    found = contention.together(contention.LAYERS[0], Relay(StandIn()), 2)
    assert all(t > 0 for t in (*found.host, *found.device))
    assert found.factor == max(found.host[1] / found.host[0], found.device[1] / found.device[0])


@pytest.mark.parametrize(
    ("host", "device", "factor"),
    [((1.0, 1.2), (1.0, 1.1), 1.2), ((1.0, 0.9), (1.0, 0.8), 1.0), ((1.0, 9.0), (1.0, 1.0), 2.0)],
)
def test_the_factor_is_the_slower_half_and_bounded(
    host: tuple[float, float], device: tuple[float, float], factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contention, "together", lambda *_: Together(host, device))
    assert contention.slowdown(Relay(StandIn()), 2) == pytest.approx(factor)


def test_of_several_layers_the_least_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {x.name: Together((1.0, f), (1.0, 1.0)) for x, f in zip(contention.LAYERS, (1.1, 1.4), strict=True)}
    monkeypatch.setattr(contention, "together", lambda made, *_: slow[made.name])
    assert contention.slowdown(Relay(StandIn()), 2) == pytest.approx(1.1)


def test_contention_is_typical_until_it_is_learnt(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    measured: list[int] = []
    monkeypatch.setattr(contention, "slowdown", lambda *_: measured.append(1) or 1.5)
    relay = Relay(StandIn())
    assert profile.contended(relay, 2, ()) == profile.TYPICAL
    for _ in range(2):
        profile.learn_contention(relay, 2, ())
        assert profile.contended(relay, 2, ()) == 1.5 and len(measured) == 1
    assert profile.contended(relay, 3, ()) == profile.TYPICAL, "of other threads nothing is known"
    profile.learn_contention(None, 4, ())
    assert len(measured) == 1, "halves that share their cores work in turn"


@pytest.mark.parametrize(
    ("seconds", "other", "most", "worth"),
    [
        (1e-3, 1e-3, math.inf, True),
        (1e-3, None, math.inf, True),  # nothing is known of the other half
        (1e-3, 1.1e-2, math.inf, True),
        (1e-3, 1.3e-2, math.inf, False),  # which could take a thirteenth of it
        (1.3e-2, 1e-3, math.inf, False),
        (1e-3, 2e-5, math.inf, False),
        (2e-5, 2e-5, math.inf, False),  # over before a call to the other half is
        (0.0, 1e-3, math.inf, False),
        (1e-3, 1e-3, 1.0, False),  # larger weights than may be moved for it
    ],
)
def test_layers_of_which_a_part_is_worth_a_measurement(
    seconds: float, other: float | None, most: float, worth: bool
) -> None:
    w, x = np.ones((64, 64), np.float32), np.ones((8, 64), np.float32)
    _, graph = graph_of(lambda w, x: x @ w, (w, x), 1)
    consts = set(graph.program.consts)
    assert device_layers.worth_parts(graph.layers[0], consts, seconds, other, most) is worth
