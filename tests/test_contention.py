"""How much both halves slow down together: parts are measured alone and beside each other."""

from __future__ import annotations

import pytest

from xcoexec.codegen.runtime.relay import Relay
from xcoexec.measure import contention
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
