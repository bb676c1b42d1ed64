"""A budget of a call's seconds adds up, and says what each half could do."""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcoexec
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.cost.bounds import attainable_seconds, ideal_seconds
from xcoexec.ir.costs import Costs
from xcoexec.session import prepare
from xcoexec.session.budget import MOST_CROSSINGS, Budget, budget

from .oracle import error, oracle
from .standin import StandIn
from .support import array, until

pytestmark = pytest.mark.usefixtures("quick_xla")

WEIGHTS, X = [array(64, 64, seed=i) for i in range(3)], array(256, 64)
SECONDS = st.floats(1e-6, 1e-2)


def dense(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    for w in weights:
        x = jax.nn.relu(x @ w)
    return x


@given(st.lists(st.tuples(st.none() | SECONDS, SECONDS), min_size=1, max_size=8), st.floats(1.0, 2.0))
def test_bounds(layers: list[tuple[float | None, float]], slower: float) -> None:
    """Halves that have all of a layer's rate at any share reach the ideal where the layers are alike."""
    host, device = zip(*layers, strict=True)
    costs = Costs.of_halves(host, device, 1e-6, 1e11, slower, False)
    both = [i for i, h in enumerate(host) if h is not None]
    mine, others = math.fsum(host[i] for i in both), math.fsum(device[i] for i in both)
    alone = math.fsum(device) - others
    assert ideal_seconds(costs) == pytest.approx(alone + (mine * others / (mine + others) if both else 0.0))
    whole = math.fsum(min(h, g) if h is not None else g for h, g in layers)
    assert attainable_seconds(costs) == pytest.approx(whole), "no parts were measured"
    lines = lambda times: {i: {"rows": ((0.5, times[i] / 2),)} for i in both}
    even = dataclasses.replace(costs, parts={"host": lines(host), "device": lines(device)}, contention=1.0)
    assert (
        math.fsum(device)
        >= attainable_seconds(even)
        >= 0.9 * sum(h * g / (h + g) if h is not None else g for h, g in layers)
    )
    slow = dataclasses.replace(even, contention=1e3)
    assert attainable_seconds(slow) == pytest.approx(whole), "halves in each other's way"


def test_a_report_says_where_the_seconds_go(monkeypatch: pytest.MonkeyPatch) -> None:
    relay = Relay(StandIn(delay=1e-4), limit_seconds=60.0)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: relay)
    fast = xcoexec.jit(dense, plan=xcoexec.Plan.uniform(0.5, "rows"), strict=True).bind(WEIGHTS)
    assert error(np.asarray(fast(X)), oracle(dense, WEIGHTS, X)) < 1e-5
    session = fast.session()
    session.costs()

    def undisturbed() -> bool:
        """Whether nothing lies outside of the stamps of calls that nobody disturbs."""
        for _ in range(8):
            jax.block_until_ready(fast(X))
        found = fast.report().budget
        return isinstance(found, Budget) and abs(found.launch) <= 0.2 * found.call

    until(undisturbed)
    report = fast.report()
    found = report.budget
    assert isinstance(found, Budget)
    assert found.call == pytest.approx(found.ideal + sum(found.lost.values()))
    assert len(found.crossings) == len(session.current.lowered.segments)
    assert all(min(c.host, c.device, c.waits, c.operands, c.merge) >= 0 for c in found.crossings)
    assert {n for c in found.crossings for n in c.layers} == {x.layer for x in report.layers}
    text = str(report)
    assert "lost to launch and return" in text and "% of what is attainable" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    longer = budget(session.graph, fast.plan().placements, session.current.lowered, session.known_costs, 1.0)
    assert longer is not None and longer.call == 1.0 and longer.launch > 0.5
    many = dataclasses.replace(found, crossings=found.crossings * 40)
    assert len(many.text(True).splitlines()) - len(many.text().splitlines()) == len(many.crossings) - MOST_CROSSINGS


def test_one_half_has_no_budget() -> None:
    fast = xcoexec.jit(dense, strategy="host", strict=True).bind(WEIGHTS)
    fast(X)
    assert fast.report().budget is None
