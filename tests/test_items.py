"""A batch divided by item: one chain, whose halves are the function of their items alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices import null
from xcoexec.frontend.graph import graph_of
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.planning.memory import usage
from xcoexec.planning.strategies.items import items

from .oracle import error, oracle
from .standin import StandIn
from .support import array, build_on, given_back

pytestmark = pytest.mark.usefixtures("quick_xla")

N = 5


def _convolutions(w: Any, x: Any) -> Any:
    """A residual, a depthwise convolution, a mean over space, a dense layer."""
    conv = lambda x, k, **kw: jax.lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **kw
    )
    y = jax.nn.relu(conv(x, w[0]))
    y = y + jax.nn.swish(conv(y, w[1], feature_group_count=8))
    y = nn.max_pool(y, (2, 2), (2, 2))
    return y.reshape(len(y), -1)[:, :32] @ w[2] + y.mean((1, 2)) @ w[3]


def _inside(w: Any, x: Any) -> Any:
    """A batch that is not the first axis."""
    layout = ("HWNC", "HWIO", "HWNC")
    for k in w:
        x = jnp.tanh(jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=layout))
    return x


def _attention(w: Any, x: Any) -> Any:
    q, k, v = (jnp.einsum("ntd,dhe->nthe", x, m) for m in w[:3])
    p = jax.nn.softmax(jnp.einsum("nthe,nshe->nhts", q, k))
    y = jnp.einsum("nhts,nshe->nthe", p, v)
    return jnp.concatenate([x, jnp.einsum("nthe,hed->ntd", y, w[3])], -1)


def _embedding(w: Any, x: Any) -> Any:
    y = w[0][x] + w[1][: x.shape[1]]
    return (y - y.mean(-1, keepdims=True)) @ w[2]


FUNCTIONS: dict[str, tuple[Any, Any, Any]] = {
    "convolutions": (
        _convolutions,
        [array(3, 3, 3, 8), array(3, 3, 1, 8, seed=1), array(32, 7, seed=2), array(8, 7, seed=3)],
        array(N, 6, 6, 3, seed=4),
    ),
    "a batch inside": (_inside, [array(3, 3, 3, 8), array(3, 3, 8, 4, seed=1)], array(6, 7, N, 3, seed=4)),
    "attention": (
        _attention,
        [*(array(16, 2, 8, seed=s) for s in range(3)), array(2, 8, 16, seed=3)],
        array(N, 9, 16, seed=4),
    ),
    "embedding": (
        _embedding,
        [array(50, 16), array(12, 16, seed=1), array(16, 24, seed=2)],
        jnp.asarray(np.random.default_rng(0).integers(0, 50, (N, 12)), jnp.int32),
    ),
}


@pytest.fixture(scope="module")
def relay() -> Any:
    made = Relay(StandIn())
    yield made
    given_back(made)


def _costs(graph: LayerGraph, host: float = 2e-3, device: float = 1e-3) -> Costs:
    return null.costs(graph, host, device)


def _counted(graph: LayerGraph, count: int) -> Plan:
    """The strategy's chain, with so many items on the host half."""
    plan = items(graph, _costs(graph))
    places = [dataclasses.replace(p, p_cpu=count / N) if p.chain else p for p in plan.placements]
    return dataclasses.replace(plan, placements=tuple(places))


@pytest.mark.parametrize("count", range(1, N))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_half_computes_its_items(name: str, count: int, relay: Relay) -> None:
    fn, w, x = FUNCTIONS[name]
    exe = build_on(relay, fn, w, x, lambda graph: _counted(graph, count))
    assert exe.lowered is not None and [bool(u.joins) for u in exe.lowered.segments] == [True]
    assert all(count in v.shape for v in exe.lowered.segments[0].segment.program.inputs)
    (out,) = exe.call([x])
    assert error(np.asarray(out), oracle(fn, w, x)) < 5e-6


def test_the_halves_end_together() -> None:
    fn, w, x = FUNCTIONS["convolutions"]
    graph = graph_of(fn, (w, x), 1)[1]
    for host, device, count in ((1e-3, 1e-3, 2), (4e-3, 1e-3, 1), (1e-3, 4e-3, 4)):
        plan = items(graph, _costs(graph, host, device))
        check_plan(plan, graph)
        assert {(p.half, p.dim, p.chain) for p in plan.placements} == {("split", "items", 1)}
        assert plan.placements[0].p_cpu * N == pytest.approx(count, abs=1e-6) or count == 2
        assert plan.predicted is not None and plan.predicted < 0.85 * min(host, device) * len(graph.layers)
    assert usage(graph, plan.placements).resident == sum(m.nbytes for m in w), "the device half needs all weights"


def test_what_cannot_be_divided_stays_on_the_device() -> None:
    fn, w, x = FUNCTIONS["convolutions"]
    one = graph_of(fn, (w, x[:1]), 1)[1]
    assert {p.half for p in items(one, _costs(one)).placements} == {"device"}
    shared = graph_of(fn, (w, x), 1)[1]
    plan = items(shared, null.costs(shared, 1e-3, 1e-3, shared_cores=True))
    assert {p.half for p in plan.placements} == {"device"}
    assert plan.predicted == pytest.approx(1e-3 * len(shared.layers))
    mixed = graph_of(lambda w, x: jnp.tanh(x @ x.T) @ w, (array(N, 8), array(N, 8)), 1)[1]
    assert items(mixed, _costs(mixed)).placements[0].half == "device", "every item needs all of them"


def test_a_chain_goes_as_far_as_items_do() -> None:
    """What follows a sum over the batch, and a second result, stay on the device."""
    w = [array(16, 16, seed=s) for s in range(4)]

    def fn(w: Any, x: Any) -> Any:
        for m in w:
            x = jnp.tanh(x @ m)
        return x.sum(0, keepdims=True) @ w[0]

    graph = graph_of(fn, (w, array(N, 16)), 1)[1]
    halves = [p.half for p in items(graph, _costs(graph)).placements]
    assert halves[:4] == ["split"] * 4 and set(halves[4:]) == {"device"}


def test_layers_that_kernels_cannot_run_end_a_chain() -> None:
    fn, w, x = FUNCTIONS["attention"]
    graph = graph_of(fn, (w, x), 1)[1]
    costs = _costs(graph)
    hosts = [None if i == 2 else t for i, t in enumerate(costs.host)]
    plan = items(graph, dataclasses.replace(costs, seconds={**costs.seconds, "host": tuple(hosts)}))
    split = [i for i, p in enumerate(plan.placements) if p.half == "split"]
    assert split == list(range(split[0], len(graph.layers))) and split[0] > 2


def test_one_layer_by_item(relay: Relay) -> None:
    """`Plan.uniform` takes the word, too."""
    w, x = array(24, 40), array(N, 24, seed=1)
    exe = build_on(relay, lambda w, x: x @ w, w, x, Plan.uniform(0.4, dim="items"))
    assert [(p.dim, p.half) for p in exe.plan.placements] == [("items", "split")]
    assert error(np.asarray(exe.call([x])[0]), np.asarray(x, np.float64) @ np.asarray(w, np.float64)) < 2e-6
