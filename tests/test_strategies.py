"""Planning from numbers alone: EdgeNN's equations, regions, and costs that decide."""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.cost.edgenn import bound, optimum, total
from xcoexec.devices import null
from xcoexec.errors import PlanError
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.words import DEVICE, HOST
from xcoexec.planning.strategies import STRATEGIES, strategy_name
from xcoexec.planning.strategies.edgenn import edgenn

from .support import array, assert_on_host, co, error, oracle, stages_of


def test_equations() -> None:
    assert total(0.0, 3.0, 2.0, 10, 100.0) == 2.0
    assert total(1.0, 3.0, 2.0, 10, 100.0) == pytest.approx(3.1)
    assert optimum(3.0, 1.0, 0, 1.0) == 0.25
    assert optimum(3.0, 1.0, 200, 100.0) == 0.0  # copying the output takes longer than the device half
    assert bound(3.0, 1.0) == 0.75
    p = optimum(3.0, 1.0, 0, 1.0)
    assert total(p, 3.0, 1.0, 0, 1.0) == pytest.approx(bound(3.0, 1.0))


def _chain() -> LayerGraph:
    w = array(64, 64)
    return stages_of(lambda w, x: jnp.tanh(jnp.tanh(x @ w) @ w) @ w, w, array(8, 64), weights=1)[1]


def _fork() -> LayerGraph:
    w = array(64, 64)
    return stages_of(lambda w, x: jnp.tanh(x @ w) @ w + jnp.exp(x @ w) @ w, w, array(8, 64), weights=1)[1]


def _costs(graph: LayerGraph, host: float, device: float, sync: float = 1e-6, shared: bool = False) -> Costs:
    return null.costs(graph, host, device, sync, shared_cores=shared)


def test_equal_halves_split_in_the_middle() -> None:
    plan = STRATEGIES["edgenn"](_chain(), _costs(_chain(), 1e-3, 1e-3))
    assert [p.half for p in plan.placements] == ["split"] * 3
    assert all(p.p_cpu == 0.5 for p in plan.placements)
    assert plan.predicted == pytest.approx(3 * (0.5e-3 + 1e-6), rel=0.01)


def test_fixed_costs_forbid_small_splits() -> None:
    plan = STRATEGIES["edgenn"](_chain(), _costs(_chain(), 1e-5, 1e-5, sync=2e-5))
    assert {p.half for p in plan.placements} == {"device"}


def test_shared_cores_are_never_split() -> None:
    plan = STRATEGIES["edgenn"](_chain(), _costs(_chain(), 1e-3, 1.2e-3, shared=True))
    assert {p.half for p in plan.placements} == {"host"}


@pytest.mark.parametrize(
    ("middle", "halves", "seconds"),
    [(2.4e-5, ["host", "host", "host"], 4.9e-5), (2.6e-5, ["host", "device", "host"], 5.0e-5)],
)
def test_one_entry_for_a_run_of_host_layers(middle: float, halves: list[str], seconds: float) -> None:
    """A layer between two of the host stays with them while it loses less there than a second entry costs (5 us)."""
    costs = Costs.of_halves((1e-5, middle, 1e-5), (2e-5, 2e-5, 2e-5), 5e-6, float("inf"), 1.0, True)
    plan = STRATEGIES["edgenn"](_chain(), costs)
    assert [p.half for p in plan.placements] == halves and plan.predicted == pytest.approx(seconds)


def test_branches_go_to_both_halves() -> None:
    graph = _fork()
    graph = dataclasses.replace(
        graph, layers=tuple(dataclasses.replace(x, dims={}) for x in graph.layers)
    )  # only whole branches
    (region,) = graph.regions
    assert len(region.branches) == 2
    halves = [p.half for p in STRATEGIES["edgenn"](graph, _costs(graph, 1e-3, 1e-3)).placements]
    assert {halves[i] for i in region.branches[0]} != {halves[i] for i in region.branches[1]}


def test_layers_that_kernels_lack_stay_on_the_device_half() -> None:
    graph = stages_of(lambda w, x: jnp.sort(x @ w) @ w, array(16, 16), array(4, 16), weights=1)[1]
    costs = Costs.of_halves((1e-6, None, 1e-6), (1e-3,) * 3, 1e-6, 1e12, 1.0, False)
    for name in ("host", "edgenn"):
        assert STRATEGIES[name](graph, costs).placements[1].half == "device"
    assert {p.half for p in STRATEGIES["device"](graph, costs).placements} == {"device"}


def test_ablations_of_edgenn() -> None:
    chain, fork = _chain(), _fork()
    whole = functools.partial(edgenn, intra=False)(chain, _costs(chain, 1e-3, 1e-3))
    assert all(p.half != "split" for p in whole.placements)
    assert all(p.half == "split" for p in edgenn(chain, _costs(chain, 1e-3, 1e-3)).placements)
    apart = dataclasses.replace(fork, layers=tuple(dataclasses.replace(x, dims={}) for x in fork.layers))
    (region,) = apart.regions
    together = functools.partial(edgenn, inter=False)(apart, _costs(apart, 1e-3, 0.9e-3))
    assert {together.placements[i].half for b in region.branches for i in b} == {"device"}
    both = edgenn(apart, _costs(apart, 1e-3, 0.9e-3))
    assert both.predicted is not None and together.predicted is not None and both.predicted < 0.8 * together.predicted
    assert {both.placements[i].half for b in region.branches for i in b} == {"device", "host"}


def test_a_planner_of_ones_own() -> None:
    def first_on_the_device(graph: LayerGraph, costs: Costs) -> Plan:
        places = tuple(
            Placement(x.name, "device" if x.index == 0 else "host", float(x.index > 0)) for x in graph.layers
        )
        return Plan("mine", places, graph.key)

    w, x = array(64, 64), array(8, 64)
    fn = lambda w, x: jnp.tanh(jnp.tanh(x @ w) @ w) @ w
    fast = co(fn, w, strategy=first_on_the_device)
    assert error(np.asarray(fast(x)), oracle(fn, w, x)) < 1e-5
    assert [p.half for p in fast.plan().placements] == ["device", "host", "host"]
    assert_on_host(fast)
    assert (
        strategy_name(functools.partial(edgenn, intra=False)) == "edgenn"
        and strategy_name(first_on_the_device) == "first_on_the_device"
    )
    with pytest.raises(PlanError, match="got 0 placements"):
        co(fn, w, strategy=lambda graph, costs: Plan("none", ()))(x)


def test_codl_on_layers_that_kernels_lack() -> None:
    graph = stages_of(lambda w, x: jnp.sort(x @ w) @ w, array(16, 16), array(4, 16), weights=1)[1]
    costs = Costs.of_halves((1e-6, None, 1e-6), (1e-3,) * 3, 1e-6, 1e12, 1.0, False)
    plan = STRATEGIES["codl"](graph, costs)
    assert plan.placements[1].half == "device" and plan.placements[0].half != "device"


def test_parts_between_and_below_what_was_measured() -> None:
    points = {0: {"rows": ((0.25, 4e-4), (0.5, 6e-4))}}
    costs = Costs.of_halves((1e-3,), (1e-3,), 1e-6, 1e12, 1.0, False, parts={DEVICE: points})
    assert costs.part(DEVICE, 0, "rows", 0.5) == pytest.approx(6e-4)
    assert costs.part(DEVICE, 0, "rows", 0.75) == pytest.approx(8e-4)
    assert costs.part(DEVICE, 0, "rows", 0.125) == pytest.approx(3e-4)  # the line through the first two goes on
    assert costs.part(DEVICE, 0, "channel", 0.5) == pytest.approx(5e-4, rel=0.01)
    assert costs.part(HOST, 0, "rows", 1.0) == pytest.approx(1e-3)
