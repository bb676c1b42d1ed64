"""CoDL's Algorithm 1 on hand-made graphs, and its rival that always splits."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from jax import lax

from xcoexec.devices import null
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.planning.strategies.algorithm1 import algorithm1
from xcoexec.planning.strategies.codl import codl
from xcoexec.planning.strategies.mu_layer import mu_layer

from .support import array, stages_of

NHWC = ("NHWC", "HWIO", "NHWC")
CHANNELS, SIZE, LAYERS = 64, 40, 5


def _convolutions(w: Any, x: Any) -> Any:
    for m in w:
        x = jax.nn.relu(lax.conv_general_dilated(x, m, (1, 1), "SAME", dimension_numbers=NHWC))
    return x


def _graph(window: int = 1) -> LayerGraph:
    weights = [array(window, window, CHANNELS, CHANNELS, seed=i) for i in range(LAYERS)]
    graph = stages_of(_convolutions, weights, array(1, SIZE, SIZE, CHANNELS), weights=1)[1]
    assert len(graph.layers) == LAYERS and all({"rows", "channel"} <= set(x.dims) for x in graph.layers)
    return graph


ONE, THREE = _graph(1), _graph(3)


def _costs(graph: LayerGraph, host: float, device: float, sync: float) -> Costs:
    return null.costs(graph, host, device, sync, 1e15)


def _chains(plan: Plan) -> list[int]:
    """How many layers each chain has, layers on their own too."""
    lengths: dict[object, int] = {}
    for i, p in enumerate(plan.placements):
        lengths[p.chain or -1 - i] = lengths.get(p.chain or -1 - i, 0) + 1
    return list(lengths.values())


def test_without_a_border_everything_is_one_chain() -> None:
    """Windows of one place have no border: a chain costs one exchange, and the halves are equal."""
    plan = algorithm1(ONE, _costs(ONE, 1e-3, 1e-3, 4e-4))
    check_plan(plan, ONE)
    assert _chains(plan) == [LAYERS] and {p.p_cpu for p in plan.placements} == {0.5}
    assert plan.predicted == pytest.approx(LAYERS * 0.5e-3 + 4e-4, rel=0.02)


@pytest.mark.parametrize(("sync", "longest"), [(0.0, 1), (4e-5, 3), (3e-4, LAYERS)])
def test_a_chain_ends_where_its_border_costs_more_than_an_exchange(sync: float, longest: int) -> None:
    """Each further layer of a chain computes one more row of 40 for every layer before it, 25 us a row."""
    plan = algorithm1(THREE, _costs(THREE, 1e-3, 1e-3, sync))
    assert max(_chains(plan)) <= longest
    assert (max(_chains(plan)) == 1) == (sync == 0.0)


def test_a_chain_keeps_the_dimension_and_stays_near_the_share_of_its_head() -> None:
    graph = ONE
    n = len(graph.layers)
    device = (1e-3,) * n
    # the head wants a tenth on the host half, the others want nine tenths there
    host = (9e-3, *(1e-3 / 9,) * (n - 1))
    costs = Costs.of_halves(host, device, 2e-5, 1e15, 1.0, False)
    plan = algorithm1(graph, costs)
    first = plan.placements[0]
    assert abs(first.p_cpu - 0.1) <= 0.3 + 1e-9
    for delta in (0.0, 0.3, 0.8):
        places = algorithm1(graph, costs, delta=delta).placements
        members = [p for p in places if p.chain and p.chain == places[0].chain]
        assert len({(p.dim, p.p_cpu) for p in members}) <= 1 and abs(places[0].p_cpu - 0.1) <= delta + 1e-9


def test_more_room_for_the_ratio_never_hurts_the_first_chain() -> None:
    costs = _costs(THREE, 2e-3, 1e-3, 1e-4)
    found = [algorithm1(THREE, costs, delta=d).predicted for d in (0.0, 0.3)]
    assert found[1] is not None and found[0] is not None and found[1] <= found[0] * 1.02


@pytest.mark.parametrize("sync", [1e-6, 1e-4, 1e-3])
def test_the_dynamic_programme_is_never_predicted_worse(sync: float) -> None:
    """Its chains need not keep a head's dimension, and it tries sixteenths: within what tenths may be nearer."""
    for graph in (ONE, THREE):
        costs = _costs(graph, 1.7e-3, 1e-3, sync)
        ours, theirs = codl(graph, costs).predicted, algorithm1(graph, costs).predicted
        assert ours is not None and theirs is not None and ours <= theirs * 1.05


def test_on_shared_cores_nothing_is_divided() -> None:
    plan = algorithm1(ONE, null.costs(ONE, 2e-3, 1e-3, 1e-6, shared_cores=True))
    assert {p.half for p in plan.placements} == {"device"}


def test_the_rival_splits_every_layer_also_where_that_costs_more() -> None:
    costs = _costs(ONE, 1e-1, 1e-3, 1e-2)
    plan = mu_layer(ONE, costs)
    check_plan(plan, ONE)
    assert {(p.half, p.dim) for p in plan.placements} == {("split", "channel")}
    assert plan.predicted is not None and plan.predicted > 10 * sum(costs.device)
    assert {p.half for p in codl(ONE, costs).placements} == {"device"}


def test_the_rivals_share_by_flop_is_one_for_all_layers() -> None:
    n = len(ONE.layers)
    costs = Costs.of_halves((1e-3,) * n, (3e-3, *(1e-3 / (n - 1),) * (n - 1)), 1e-6, 1e15, 1.0, False)
    shares = [p.p_cpu for p in mu_layer(ONE, costs, by_flops=True).placements]
    rates = 4e-3 / (4e-3 + n * 1e-3)
    assert len(set(shares)) == 1 and shares[0] == pytest.approx(rates, abs=1 / 16)
    best = mu_layer(ONE, costs)
    assert len({p.p_cpu for p in best.placements}) == 2
    assert best.predicted is not None and best.predicted < (mu_layer(ONE, costs, by_flops=True).predicted or 0.0)
