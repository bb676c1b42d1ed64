"""Planning from numbers alone: EdgeNN's equations, regions, and costs that decide."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import pytest

from xcoexec.cost.edgenn import bound, optimum, total
from xcoexec.ir import Costs, LayerGraph
from xcoexec.strategies import STRATEGIES

from .support import array, stages_of


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
    n = len(graph.layers)
    return Costs((host,) * n, (device,) * n, sync, 1e12, 1.0, shared)


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


def test_one_entry_for_a_run_of_host_layers() -> None:
    graph = _chain()
    costs = Costs((1e-5, 3e-5, 1e-5), (2e-5, 2e-5, 2e-5), 5e-6, 1e12, 1.0, True)
    plan = STRATEGIES["edgenn"](graph, costs)
    assert [p.half for p in plan.placements] == ["host", "host", "host"] or plan.predicted <= 5.0e-5


def test_branches_go_to_both_halves() -> None:
    graph = _fork()
    graph = dataclasses.replace(graph, layers=tuple(dataclasses.replace(x, dims={}) for x in graph.layers))  # only whole branches
    (region,) = graph.regions
    assert len(region.branches) == 2
    halves = [p.half for p in STRATEGIES["edgenn"](graph, _costs(graph, 1e-3, 1e-3)).placements]
    assert {halves[i] for i in region.branches[0]} != {halves[i] for i in region.branches[1]}


def test_layers_that_kernels_lack_stay_on_the_device_half() -> None:
    graph = stages_of(lambda w, x: jnp.sort(x @ w) @ w, array(16, 16), array(4, 16), weights=1)[1]
    costs = Costs((1e-6, None, 1e-6), (1e-3,) * 3, 1e-6, 1e12, 1.0, False)
    for name in ("host", "edgenn"):
        assert STRATEGIES[name](graph, costs).placements[1].half == "device"
    assert {p.half for p in STRATEGIES["device"](graph, costs).placements} == {"device"}
