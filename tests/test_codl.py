"""Chains by rows and by channels: exact on a stand-in device, chosen where exchanging costs more than computing."""

from __future__ import annotations

import dataclasses
import itertools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices import null
from xcoexec.errors import PlanError
from xcoexec.frontend.trace import paths, trace
from xcoexec.ir.costs import Costs
from xcoexec.ir.geometry import axis_of
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement, chain_results
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.lowering.executable import Executable
from xcoexec.measure import device_layers
from xcoexec.measure.contention import MOST
from xcoexec.partition.split import split
from xcoexec.planning.chain_shares import Chains
from xcoexec.planning.simulate import member_shares, replay
from xcoexec.planning.strategies import BOUNDED, CONTEST, STRATEGIES
from xcoexec.planning.strategies.codl import DIMS, codl
from xcoexec.session import contest, realise
from xcoexec.session.attempt import Attempt
from xcoexec.session.problem import Machine, Problem
from xcoexec.session.realise import realised
from xcoexec.session.rebalance import halves, slowdown

from .standin import StandIn
from .support import array, build_on, error, oracle, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

NHWC = ("NHWC", "HWIO", "NHWC")


def separable(w: Any, x: Any) -> Any:
    """1x1, depthwise 3x3, a pool: behind the first layer every channel is on its own."""
    y = jax.nn.relu(lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=NHWC))
    y = jax.nn.relu(
        lax.conv_general_dilated(y, w[1], (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=w[1].shape[-1])
        + w[2]
    )
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def weights(channels: int = 48, out: int = 64) -> list[jax.Array]:
    return [array(1, 1, channels, out), array(3, 3, 1, out, seed=1), array(out, seed=2)]


W, X = weights(), array(1, 13, 11, 48, seed=3)


def _chained(graph: LayerGraph, p: float, dim: str) -> Plan:
    return Plan("test", tuple(Placement(x.name, "split", p, dim, chain=1) for x in graph.layers), graph.key)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("p", [0.1, 0.25, 0.4, 0.5, 0.77, 0.9])
def test_chains_are_exact_and_exchange_nothing_inside(dim: str, p: float) -> None:
    exe = build_on(Relay(StandIn(delay=2e-4)), separable, W, X, lambda g: _chained(g, p, dim))
    assert exe.lowered is not None and len(exe.lowered.segments) == 1 and len(exe.lowered.sites) == 1
    (unit,) = exe.lowered.segments
    assert len(unit.segment.program.groups) >= 3  # all three layers in one call
    want = oracle(separable, W, X)
    for _ in range(3):
        assert error(np.asarray(exe.call([X])[0]), want) < 1e-5


def block(w: Any, x: Any) -> Any:
    """What a transformer does between two attentions: a sum goes around, and three products read it; a third of them is
    not divided, and reads everything.
    """
    y = x + jnp.tanh(x @ w[0])
    z = y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1.0)
    q, k = ((z @ w[i]).reshape(*z.shape[:-1], 4, -1) for i in (1, 2))
    return y + jnp.einsum("nqhd,nkhd->nqh", q, k).sum(-1, keepdims=True)


BLOCK, TOKENS = [array(32, 32), array(32, 48, seed=1), array(32, 48, seed=2)], array(1, 21, 32, seed=4)


def up_to(graph: LayerGraph, shape: tuple[int, ...], p: float) -> Plan:
    """A chain of rows up to the last layer with a result of that shape; what is behind it on the device half."""
    last = max(x.index for x in graph.layers if x.out.shape == shape)
    place = lambda x: (
        Placement(x.name, "split", p, "rows", chain=1) if x.index <= last else Placement(x.name, "device", 0)
    )
    return Plan("test", tuple(map(place, graph.layers)), graph.key)


@pytest.mark.parametrize("p", [0.04, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("copied", [False, True])
def test_a_chain_may_have_several_results(p: float, copied: bool) -> None:
    def plan(graph: LayerGraph) -> Plan:
        found = up_to(graph, (1, 21, 4, 12), p)
        check_plan(found, graph)
        ways = {"reads": "copy", "writes": "copy"} if copied else {}
        return dataclasses.replace(found, placements=tuple(dataclasses.replace(x, **ways) for x in found.placements))

    exe = build_on(Relay(StandIn(delay=2e-4)), block, BLOCK, TOKENS, plan)
    assert exe.lowered is not None and len(exe.lowered.segments) == 1
    (unit,) = exe.lowered.segments
    assert len(unit.joins) == 3 and len({j.out.shape for j in unit.joins}) == 2  # the sum, and both products
    want = oracle(block, BLOCK, TOKENS)
    for _ in range(3):
        assert error(np.asarray(exe.call([TOKENS])[0]), want) < 1e-5
    began, _, joined, asked, left, ended = exe.lowered.sites[unit].stamps()[-1]
    assert began < joined <= asked <= left <= ended


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_layers_with_several_results_inside_a_chain(p: float) -> None:
    """Both products of one pass over memory are read by later layers of the chain."""

    def fn(w: Any, x: Any) -> Any:
        a, b = jnp.exp(x) * w[0], jnp.exp(x) * w[1]
        return jnp.pad(a, ((0, 0), (0, 0), (0, 3))) + jnp.pad(b, ((0, 0), (0, 0), (3, 0)))

    w, x = [array(12), array(12, seed=1)], array(1, 8, 12, seed=2)
    exe = build_on(Relay(StandIn(delay=2e-4)), fn, w, x, lambda g: _chained(g, p, "rows"))
    assert exe.lowered is not None
    (unit,) = exe.lowered.segments
    assert any(len(g.outs) > 1 for g in unit.segment.program.groups)
    assert error(np.asarray(exe.call([x])[0]), oracle(fn, w, x)) < 1e-5


def test_chains_with_several_results_are_found() -> None:
    w, x = [array(256, 256), array(256, 512), array(256, 512)], array(1, 197, 256)
    graph = stages_of(block, w, x, weights=1)[1]
    costs = _costs(graph, 1e-5, 2e10)
    plan = codl(graph, costs, dims=("rows",))
    check_plan(plan, graph)
    chained = [x.out.shape for x, p in zip(graph.layers, plan.placements, strict=True) if p.chain == 1]
    assert (1, 197, 4, 128) in chained and (1, 197, 256) in chained
    assert replay(graph, plan, costs).seconds < sum(costs.device)


def test_a_result_of_another_size_ends_no_chain() -> None:
    fn = lambda w, x: ((z := lax.slice_in_dim(x @ w[0], 0, 20, axis=1)).sum((1, 2)), z @ w[0])
    graph = stages_of(lambda w, x: fn(w, x)[0][:, None] + fn(w, x)[1].sum(1), BLOCK, TOKENS, weights=1)[1]
    places = tuple(Placement(x.name, "split", 0.5, "rows", chain=1) for x in graph.layers[:-1])
    with pytest.raises(PlanError, match="read outside of it"):
        check_plan(Plan("test", (*places, Placement(graph.layers[-1].name, "device", 0.0)), graph.key), graph)


def test_a_channel_chain_computes_nothing_twice() -> None:
    graph = stages_of(separable, W, X, weights=1)[1]
    n = len(graph.layers)
    costs = null.costs(graph, 1e-3, 1e-3)
    times = {dim: replay(graph, _chained(graph, 0.5, dim), costs).seconds for dim in DIMS}
    assert times["channel"] == pytest.approx(n * 0.5e-3, rel=0.01) and times["rows"] > 1.05 * times["channel"]


def _costs(graph: LayerGraph, sync: float, rate: float) -> Costs:
    seconds = lambda x: 1e-6 + x.flops / 5e11
    return null.costs(graph, seconds, seconds, sync, rate)


def test_a_chain_is_found_where_exchanges_are_dear() -> None:
    w, x = [array(1, 1, 256, 512), array(3, 3, 1, 512), array(512)], array(1, 32, 32, 256)
    graph = stages_of(separable, w, x, weights=1)[1]
    costs = _costs(graph, 1e-5, 2e10)
    plan = codl(graph, costs, dims=("channel",))
    check_plan(plan, graph)
    assert [p.dim for p in plan.placements[:2]] == ["channel"] * 2 and plan.placements[0].chain == plan.placements[
        1
    ].chain != 0
    alone = codl(graph, costs, dims=("channel",), chain=False)
    assert plan.predicted is not None and alone.predicted is not None and plan.predicted < alone.predicted


@pytest.mark.parametrize("sync, rate", [(1e-6, 1e11), (1e-5, 2e10), (1e-4, 5e9)])
def test_more_freedom_is_never_predicted_slower(sync: float, rate: float) -> None:
    w, x = [array(1, 1, 128, 256), array(3, 3, 1, 256), array(256)], array(1, 28, 28, 128)
    graph = stages_of(separable, w, x, weights=1)[1]
    costs = _costs(graph, sync, rate)
    predicted = {
        (dims, chain): codl(graph, costs, dims=dims, chain=chain).predicted
        for dims in (("channel",), ("rows",), DIMS)
        for chain in (True, False)
    }
    assert all(t is not None for t in predicted.values())
    for dims, chain in itertools.product((("channel",), ("rows",)), (True, False)):
        assert predicted[DIMS, chain] <= predicted[dims, chain] * (1 + 1e-9)  # type: ignore[operator]
    for dims in (("channel",), ("rows",), DIMS):
        assert predicted[dims, True] <= predicted[dims, False] * (1 + 1e-9)  # type: ignore[operator]
    assert predicted[DIMS, True] <= sum(costs.device) * (1 + 1e-9)  # type: ignore[operator]


def test_the_plan_says_what_another_layout_costs() -> None:
    w, x = [array(64, 32, 3, 3)], array(1, 32, 24, 24)
    fn = lambda w, x: jax.nn.relu(lax.conv_general_dilated(x, w[0], (1, 1), "SAME"))  # channels first
    graph = stages_of(fn, w, x, weights=1)[1]
    costs = Costs.of_halves((1e-4,), (1e-2,), 1e-6, 1e9, 1.0, False)
    (place,) = codl(graph, costs).placements
    assert (
        place.half != "device"
        and place.note == f"channels-last on the host half: {4 * 24 * 24 * 96 / 1e9 * 1e6:.0f} us to move"
    )
    (kept,) = codl(graph, Costs.of_halves((1e-2,), (1e-4,), 1e-6, 1e9, 1.0, False)).placements
    assert kept.note == ""


HALVES = ("host", "device")
ROWS, BOTH, WITH_SUMS = {"rows"}, {"rows", "channel"}, {"channel", "sums"}


def _dims(plan: Any) -> set[str]:
    return {p.dim for p in plan.placements if p.half == "split"}


def _ends_in_a_product(w: Any, x: Any) -> Any:
    y = jax.nn.relu(lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=NHWC))
    return y.reshape(1, -1) @ w[1]


class _Timed(Attempt):
    """A planning whose calls take as long as a test says, on a clock of its own: `rows_take` seconds for plans along
    rows alone, 1 for others.
    """

    now, rows_take = 0.0, 1.0

    def stream(self, exe: Executable, count: int = 1) -> None:
        super().stream(exe, count)
        self.now += self.rows_take if _dims(exe.plan) == ROWS else 1.0


def _planning(size: int, out: int, relay: Relay | None) -> _Timed:
    w, x = [array(3, 3, 48, 48), array(size * size * 48, out)], array(1, size, size, 48)
    leaves, tree = jax.tree_util.tree_flatten(((w, x), {}))
    traced = trace(_ends_in_a_product, leaves, tree, paths(tree))
    plain = jax.jit(lambda leaves: (_ends_in_a_product(w, leaves[0]),))
    problem = Problem.of(traced, range(len(w)), w, [x], donated=(), plain=plain)
    return _Timed(problem, Machine(2, relay=relay), costs=_costs(problem.graph, 1e-6, 1e11))


@pytest.mark.parametrize(
    ("apart", "size", "out", "rows_take", "dims", "tried"),
    [
        (True, 24, 64, 0.5, ROWS, [BOTH, WITH_SUMS, ROWS]),
        (True, 24, 64, 0.99, BOTH, [BOTH, WITH_SUMS, ROWS]),  # a near thing
        (True, 12, 512, 0.5, BOTH, [BOTH, WITH_SUMS]),  # rows are predicted to take 1.23 times as long
        (False, 24, 64, 0.5, BOTH, [BOTH]),  # both halves share cores
    ],
)
def test_on_a_device_plans_along_fewer_dimensions_are_measured_too(
    monkeypatch: pytest.MonkeyPatch,
    apart: bool,
    size: int,
    out: int,
    rows_take: float,
    dims: set[str],
    tried: list[set[str]],
) -> None:
    """The quickest by measurement is taken; its own plan where that is a near thing, the others are predicted far
    slower or both halves share cores.
    """
    s = _planning(size, out, Relay(StandIn()) if apart else None)
    s.rows_take = rows_take
    built: list[set[str]] = []
    make = s.executable
    s.executable = lambda plan: built.append(_dims(plan)) or make(plan)  # type: ignore[method-assign, func-returns-value]
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    monkeypatch.setattr(realise, "slowdown", lambda *_: None)
    own = codl(s.graph, s.measured_costs())
    assert _dims(own) == BOTH
    exe = realised(s, own, "codl_measured")
    assert _dims(exe.plan) == dims
    assert built[: len(tried)] == tried and set(map(frozenset, built[len(tried) :])) <= {frozenset(dims)}
    assert (
        error(
            np.asarray(exe.call(s.problem.example)[0]),
            oracle(_ends_in_a_product, s.problem.weights, *s.problem.example),
        )
        < 1e-5
    )


@pytest.mark.parametrize(("factor", "again_takes", "again"), [(1.5, 0.5, True), (1.5, 0.99, False), (1.01, 0.5, False)])
def test_a_plan_is_made_once_more_for_the_contention_of_calls(
    monkeypatch: pytest.MonkeyPatch, factor: float, again_takes: float, again: bool
) -> None:
    """Where calls say otherwise than the costs, and where it is faster by more than a near thing."""
    s = _planning(24, 64, Relay(StandIn()))
    seen: list[float] = []

    def strategy(graph: LayerGraph, costs: Costs) -> Plan:
        seen.append(costs.contention)
        return codl(graph, costs, dims=("rows",))

    s.rows_take = again_takes
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    monkeypatch.setattr(realise, "slowdown", lambda *_: factor)
    exe = realise._planned_again(s, s.executable(codl(s.graph, s.measured_costs())), strategy)
    assert _dims(exe.plan) == (ROWS if again else BOTH) and seen == ([factor] if factor > 1.1 else [])


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_the_contention_of_calls_is_what_the_slower_half_takes(p: float) -> None:
    exe = build_on(Relay(StandIn()), separable, W, X, lambda g: _chained(g, p, "channel"))
    for _ in range(5):
        jax.block_until_ready(exe.call([X]))
    assert exe.lowered is not None
    (unit,) = exe.lowered.segments
    graph, found = stages_of(separable, W, X, weights=1)[1], halves(unit, exe.lowered)
    assert found is not None
    took = max(found.host, found.device)
    for seconds in (took / 4, took / 2.2, took * 9):
        costs = null.costs(graph, seconds, seconds)
        shares = member_shares(graph.layers, exe.plan.placements[0], chain_results(graph, graph.layers, "channel"))
        alone = [
            sum(costs.part(half, i, "channel", x) for i, x in s.items()) for half, s in zip(HALVES, shares, strict=True)
        ]
        want = min(max(took / max(alone), 1.0), MOST)
        assert slowdown(graph, exe.plan.placements, exe.lowered, costs) == pytest.approx(want, rel=1e-6)


def test_codls_own_plan_is_the_predicted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the quickest of several: a plan along rows alone would take half of its time here."""
    s = _planning(24, 64, Relay(StandIn()))
    s.rows_take = 0.5
    built: list[set[str]] = []
    make = s.executable
    s.executable = lambda plan: built.append(_dims(plan)) or make(plan)  # type: ignore[method-assign, func-returns-value]
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    exe = realised(s, codl(s.graph, s.measured_costs()), "codl")
    assert _dims(exe.plan) == BOTH and set(map(frozenset, built)) == {frozenset(BOTH)}


@pytest.mark.parametrize("apart", [True, False])
def test_on_a_device_few_strategies_are_compiled(apart: bool) -> None:
    s = _planning(24, 64, Relay(StandIn()) if apart else None)
    costs = s.measured_costs()
    found = contest._promising(s, costs)
    if not apart:
        assert [name for name, _ in found] == list(CONTEST)
        assert set(STRATEGIES) - set(CONTEST) == {*BOUNDED, "codl"}
        return
    predicted = [plan.predicted or 0.0 for _, plan in found]
    split = [STRATEGIES[name](s.graph, costs).predicted or 0.0 for name in ("edgenn", "codl_measured", "layer_switch")]
    assert predicted == sorted(predicted) and predicted[0] == min(split)
    assert len(found) <= contest.MOST_PLANS and predicted[-1] < contest.NEAR * predicted[0]


@pytest.mark.parametrize(
    ("contention", "apart", "tried"), [(1.05, True, 0), (1.55, True, 1), (1.55, False, 0), (1.8, True, 0)]
)
def test_a_plan_that_contention_alone_speaks_against_is_tried(contention: float, apart: bool, tried: int) -> None:
    """What its halves do to each other is measured in its calls; not where no plan at all could win."""
    s = _planning(24, 64, Relay(StandIn()) if apart else None)
    costs = dataclasses.replace(s.measured_costs(), contention=contention).scaled(host=1.3)
    beside, freely = contest._promising(s, costs), contest._if_halves_agree(s, costs)
    assert bool(beside) is (contention < 1.1 or not apart)
    assert [name for name, _ in freely] == ["codl_measured"] * (apart and contention < 1.6)
    assert bool(tried) is (not beside and bool(freely))


def upward(w: Any, x: Any) -> Any:
    """A convolution, a transposed one, and one behind them, as in a U-Net: rows of the second cannot be divided."""
    y = jax.nn.relu(lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=NHWC))
    y = jax.nn.relu(lax.conv_transpose(y, w[1], (2, 2), "SAME", dimension_numbers=NHWC))
    return jax.nn.relu(lax.conv_general_dilated(y, w[2], (1, 1), "SAME", dimension_numbers=NHWC))


@pytest.mark.parametrize("dim", ("rows", "channel"))
def test_chains_that_are_said_to_divide_do(dim: str) -> None:
    """Every chain whose layers can be followed is divided; none that begins at a transposed convolution has rows."""
    w = [array(3, 3, 8, 16), array(2, 2, 16, 16, seed=1), array(3, 3, 16, 16, seed=2)]
    graph = stages_of(upward, w, array(1, 6, 6, 8, seed=3), weights=1)[1]
    chains, found = Chains(graph), []
    for first, last in itertools.combinations(range(len(graph.layers) + 1), 2):
        layer = graph.layers[last - 1]
        axis = axis_of(layer.group, dim)
        if axis is None or dim not in layer.dims:
            continue
        size = layer.out.shape[axis]
        if chains.needed(first, last, dim, size // 2):
            ops = [op for x in graph.layers[first:last] for op in x.ops]
            for start, stop in ((0, size // 2), (size // 2, size)):
                split(ops, axis, start, stop)
            found.append((first, last))
    assert (2, 3) in found and (1, 3) not in found


@pytest.mark.parametrize(("rows", "shares"), [(128, [0.5, 0.75]), (512, [0.5, 0.75]), (1024, [0.5])])
def test_products_of_few_rows_are_measured_at_more_shares(rows: int, shares: list[float]) -> None:
    """A device computes them in a few tiles, so that its time grows in steps."""
    (layer,) = stages_of(lambda w, x: x @ w, array(32, 48), array(2, rows // 2, 32), weights=1)[1].layers
    found = device_layers.parts(layer)
    assert sorted(s for d, s in found if d == "rows") == shares and [s for d, s in found if d == "channel"] == [0.5]
