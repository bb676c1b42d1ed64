"""EdgeNN's planner: every option that is compared pays all its synchronisations and all that crosses."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import pytest

from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.plan import Plan
from xcoexec.planning.strategies.edgenn import edgenn
from xcoexec.planning.strategies.single import device

from .support import array, stages_of

W, X = array(64, 64), array(8, 64)
NBYTES = 8 * 64 * 4  # of every array between layers
INTER = functools.partial(edgenn, intra=False, whole=False)


def _graph(fn: Any) -> LayerGraph:
    """The graph of a function, of whose layers none can be divided."""
    graph = stages_of(fn, W, X, weights=1)[1]
    return dataclasses.replace(graph, layers=tuple(dataclasses.replace(x, dims={}) for x in graph.layers))


def _fork(w: Any, x: Any) -> Any:
    y = jnp.tanh(x @ w)
    return (jnp.exp(y @ w) @ w + jnp.arctan(y @ w) @ w) @ w


FORK = _graph(_fork)
CHAIN = _graph(lambda w, x: jnp.tanh(jnp.tanh(x @ w) @ w) @ w)


def _costs(graph: LayerGraph, host: float, device: float, sync: float, rate: float = float("inf")) -> Costs:
    n = len(graph.layers)
    return Costs.of_halves((host,) * n, (device,) * n, sync, rate, 1.0, False)


def _halves(plan: Plan) -> list[str]:
    return [p.half for p in plan.placements]


def test_the_graph_is_the_one_that_is_meant() -> None:
    (region,) = FORK.regions
    assert [len(b) for b in region.branches] == [2, 2] and region.join - region.fork == 5


@pytest.mark.parametrize("sync", [0.0, 1.0, 1.8])
def test_a_branch_on_the_host_half_pays_its_synchronisation(sync: float) -> None:
    """Each layer takes 1 s on either half: two branches of two layers at once save 2 s, one call costs `sync`."""
    plan = INTER(FORK, _costs(FORK, 1.0, 1.0, sync))
    assert _halves(plan).count("host") == 2
    assert plan.predicted == pytest.approx(len(FORK.layers) - 2 + sync)


def test_a_branch_stays_where_its_synchronisation_costs_what_it_saves() -> None:
    plan = INTER(FORK, _costs(FORK, 1.0, 1.0, 2.1))
    assert set(_halves(plan)) == {"device"} and plan.predicted == pytest.approx(len(FORK.layers))


@pytest.mark.parametrize(("rate", "hosts"), [(4 * NBYTES, 2), (NBYTES / 1.5, 0)])
def test_what_crosses_counts_in_both_directions(rate: float, hosts: int) -> None:
    """The branch reads one array of the device half and gives one back: half a second together, then three."""
    plan = INTER(FORK, _costs(FORK, 1.0, 1.0, 0.0, rate))
    assert _halves(plan).count("host") == hosts
    assert plan.predicted == pytest.approx(len(FORK.layers) - hosts + hosts * NBYTES / rate)


def test_branches_in_turn_on_the_host_half_pay_for_their_call_too() -> None:
    """Layers take 1 s on the host half, 1.3 s on the device half. All in turn on the host half is one call; a branch
    on the device half makes it two, and saves 1.4 s. Both options count their calls, so that 1.4 s decide.
    """
    n = len(FORK.layers)
    for sync, halves, seconds in ((1.0, 2, n - 1.4 + 2 * 1.0), (1.6, 0, n + 1.6)):
        plan = edgenn(FORK, _costs(FORK, 1.0, 1.3, sync))
        assert _halves(plan).count("device") == halves and plan.predicted == pytest.approx(seconds)


def test_inter_kernel_alone_is_the_device_half_alone_without_branches() -> None:
    """A network without branches gains 0 by construction: it is the same plan, so that it is measured once."""
    costs = _costs(CHAIN, 0.1, 1.0, 0.0)  # the host half would be ten times as fast
    plan, alone = INTER(CHAIN, costs), device(CHAIN, costs)
    places = [[dataclasses.replace(p, predicted=None) for p in made.placements] for made in (plan, alone)]
    assert places[0] == places[1] and plan.predicted == alone.predicted == len(CHAIN.layers)
    assert "host" in _halves(edgenn(CHAIN, costs)) and "host" not in _halves(edgenn(CHAIN, costs, whole=False))


@pytest.mark.parametrize("sync", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("host", [0.2, 1.0, 4.0])
def test_inter_kernel_never_makes_the_prediction_worse(sync: float, host: float) -> None:
    costs = _costs(FORK, host, 1.0, sync, 100 * NBYTES)
    without = edgenn(FORK, costs, inter=False).predicted
    found = edgenn(FORK, costs).predicted
    assert found is not None and without is not None and found <= without
