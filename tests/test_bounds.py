"""What no plan of both halves can go below, and what is not measured nor compiled where nothing can be gained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from xcoexec.cost.bounds import PAYS, least_seconds, pays
from xcoexec.devices import null
from xcoexec.ir.costs import Costs
from xcoexec.measure import part_seconds
from xcoexec.measure.device_layers import TimedOps
from xcoexec.planning.simulate import replay
from xcoexec.planning.strategies import CONTEST, STRATEGIES

from .support import array, stages_of

SECONDS = st.floats(1e-6, 1e-2)
W = [array(64, 64, seed=i) for i in range(4)]
X = array(32, 64)


def dense(w: Any, x: Any) -> Any:
    for one in w:
        x = jax.nn.relu(x @ one)
    return x


@given(st.lists(st.tuples(st.none() | SECONDS, SECONDS), min_size=1, max_size=12), st.floats(1.0, 2.5), st.booleans())
def test_the_bound_is_the_linear_programmes(
    layers: list[tuple[float | None, float]], slower: float, shared: bool
) -> None:
    """Shares x of the host half, and seconds in which the host half works, the device half, or both, where each gets as
    much done as it does alone in `1 / slower` of them.
    """
    host, device = zip(*layers, strict=True)
    costs = Costs.of_halves(host, device, 1e-6, 1e11, slower, shared)
    mine, others = (1e3 * np.array([t or 0.0 for t in x]) for x in (host, device))  # near 1, for the solver
    rate = 1 / (2.0 if shared else slower)
    rows = [[*mine, -1.0, 0.0, -rate], [*-others, 0.0, -1.0, -rate]]
    bounds = [(0.0, 0.0 if h is None else 1.0) for h in host] + [(0.0, None)] * 3
    solved = linprog([*np.zeros(len(host)), 1.0, 1.0, 1.0], rows, [0.0, -others.sum()], bounds=bounds)
    assert least_seconds(costs) * 1e3 == pytest.approx(solved.fun, rel=1e-6)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=len(W), max_size=len(W)), st.floats(1.0, 2.0), st.booleans())
@settings(max_examples=300)
def test_no_strategy_is_predicted_to_take_less(halves: list[tuple[float, float]], slower: float, shared: bool) -> None:
    graph = stages_of(dense, W, X, weights=1)[1]
    costs = dataclasses.replace(null.costs(graph, 1e-3, 1e-3), contention=slower, shared_cores=shared)
    host, device = (tuple(x[i] for x in halves) for i in (0, 1))
    costs = dataclasses.replace(costs, seconds={"host": host, "device": device})
    for name in CONTEST:
        assert replay(graph, STRATEGIES[name](graph, costs), costs).seconds >= least_seconds(costs) * (1 - 1e-9)


@pytest.mark.parametrize(("times", "worth"), [(1.0, True), (4.0, True), (12.0, False), (100.0, False)])
def test_a_half_that_is_far_behind_gives_nothing(times: float, worth: bool) -> None:
    costs = Costs.of_halves((times * 1e-3,) * 3, (1e-3,) * 3, 1e-6, 1e11, 1.0, False)
    assert least_seconds(costs) == pytest.approx(3e-3 * times / (1 + times))
    assert pays(costs) is worth and (least_seconds(costs) < PAYS * 3e-3) is worth


def test_one_layer_that_the_host_half_does_at_once_is_worth_it() -> None:
    """Though all layers together take it a hundred times as long."""
    assert pays(Costs.of_halves((0.3, 1e-4), (2e-3, 1e-3), 1e-6, 1e11, 1.15, False))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("worth", [True, False])
def test_parts_are_measured_where_they_may_pay(monkeypatch: pytest.MonkeyPatch, worth: bool) -> None:
    """Whole layers are measured once a machine, whether or not their parts are."""
    graph = stages_of(dense, W, X, weights=1)[1]
    measured: list[int] = []

    def seconds(pieces: Sequence[TimedOps], *rest: object) -> list[float]:
        measured.append(len(pieces))
        return [1e-3] * len(pieces)

    monkeypatch.setattr(part_seconds.device_layers, "seconds", seconds)
    made = lambda: part_seconds.parts_seconds(
        graph,
        lambda v: np.zeros(v.shape, v.dtype),
        None,  # type: ignore[arg-type]
        (1e-3,) * len(graph.layers),
        pays=lambda wholes: worth,
    )
    wholes, parts = made()
    kinds = len({x.signature for x in graph.layers})
    assert wholes == (1e-3,) * len(graph.layers) and measured[0] == kinds
    assert len(measured) == 1 + worth and bool(parts) is worth
    assert made() == (wholes, parts) and len(measured) == 1 + worth


@pytest.mark.usefixtures("own_cache")
def test_parts_are_compared_with_their_layer_in_the_same_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever makes that program slower as a whole: a part of a third of the seconds is one third of the layer."""
    graph = stages_of(dense, W, X, weights=1)[1]
    programs: list[int] = []

    def seconds(pieces: Sequence[TimedOps], *rest: object) -> list[float]:
        programs.append(len(pieces))
        size = {v.shape for x in graph.layers for v in x.outs}
        slow = 1.0 if len(programs) == 1 else 2.5
        return [slow * (1e-3 if p.outs[0].shape in size else 1e-3 / 3) for p in pieces]

    monkeypatch.setattr(part_seconds.device_layers, "seconds", seconds)
    wholes, parts = part_seconds.parts_seconds(
        graph,
        lambda v: np.zeros(v.shape, v.dtype),
        None,  # type: ignore[arg-type]
        (1e-3,) * len(graph.layers),
    )
    found = [t for dims in parts.values() for points in dims.values() for _, t in points]
    assert len(programs) == 2 and wholes == (1e-3,) * len(graph.layers)
    assert found == pytest.approx([1e-3 / 3] * len(found)) and found
