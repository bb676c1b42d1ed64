"""Random plans of random networks, on a device without hardware and without a device, against float64 NumPy; the long
run is `tests.outside.plans`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from xcoexec.codegen.runtime.relay import Relay

from .outside import plans
from .standin import StandIn
from .support import given_back

pytestmark = pytest.mark.usefixtures("quick_xla")


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    made = Relay(StandIn(delay=2e-5))
    yield made
    given_back(made)


@pytest.mark.parametrize("seed", range(16))
def test_a_plan(relay: Relay, seed: int) -> None:
    _right(plans.check(seed, relay))


@pytest.mark.parametrize("seed", range(100, 106))
def test_a_plan_without_a_device(seed: int) -> None:
    _right(plans.check(seed, None))


def _right(found: str) -> None:
    if found.startswith("- "):
        pytest.skip(found)
    assert not found


def test_plans_are_of_many_kinds() -> None:
    """Halves, dimensions, chains, streams, calls of several programs, and steps of training."""
    made, nets = [], [plans.plan_network(seed) for seed in range(40)]
    for seed, net in enumerate(nets):
        made.append(plans.plan_of(plans.stages_of(net.fn, net.weights, net.x, weights=0 if net.given else 1)[1], seed))
    places = [p for plan in made for p in plan.placements]
    assert {p.half for p in places} == {"device", "host", "split"}
    assert {p.dim for p in places if p.half == "split"} == {"channel", "rows", "items", "sums"}
    assert {p.dim for p in places if p.chain} == {"channel", "rows", "items", "sums"}
    assert {plan.programs for plan in made} >= {1, 2, 3} and any(0 < p.streamed < 1 for p in places)
    assert {plan.strategy for plan in made} >= {"random", "codl"}
    assert 4 <= sum("training" in net.text for net in nets) <= 8


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch, relay: Relay) -> None:
    """Results that are off by a tenth, and a lowering that fails."""
    right = plans.computed
    monkeypatch.setattr(plans, "computed", lambda *given: [[y * 1.1 for y in call] for call in right(*given)])
    assert "of the largest result" in plans.check(1, relay)

    def fails(*given: object) -> None:
        raise AssertionError("only so")

    monkeypatch.setattr(plans, "lower", fails)
    assert "only so" in plans.check(1, relay)
