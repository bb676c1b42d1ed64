"""Chains by rows and by channels: exact on a stand-in device, chosen where exchanging costs more than computing."""

from __future__ import annotations

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
from xcoexec.frontend.trace import paths, trace
from xcoexec.ir.costs import Costs
from xcoexec.ir.geometry import axis_of
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.lowering.executable import Executable
from xcoexec.partition.split import split
from xcoexec.planning.chain_shares import Chains
from xcoexec.planning.simulate import replay
from xcoexec.planning.strategies import BOUNDED, CONTEST, STRATEGIES
from xcoexec.planning.strategies.codl import DIMS, codl
from xcoexec.session import contest
from xcoexec.session.attempt import Attempt
from xcoexec.session.problem import Machine, Problem

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


ROWS, CHANNEL, BOTH = {"rows"}, {"channel"}, {"rows", "channel"}


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
        (True, 24, 64, 0.5, ROWS, [BOTH, CHANNEL, ROWS]),
        (True, 24, 64, 0.99, BOTH, [BOTH, CHANNEL, ROWS]),  # a near thing
        (True, 12, 512, 0.5, BOTH, [BOTH, CHANNEL]),  # rows are predicted to take 1.23 times as long
        (False, 24, 64, 0.5, BOTH, [BOTH]),  # both halves share cores
    ],
)
def test_on_a_device_plans_along_one_dimension_are_measured_too(
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
    own = codl(s.graph, s.measured_costs())
    assert _dims(own) == BOTH
    exe = contest._realised(s, own, "codl_measured")
    assert _dims(exe.plan) == dims
    assert built[: len(tried)] == tried and set(map(frozenset, built[len(tried) :])) <= {frozenset(dims)}
    assert (
        error(
            np.asarray(exe.call(s.problem.example)[0]),
            oracle(_ends_in_a_product, s.problem.weights, *s.problem.example),
        )
        < 1e-5
    )


def test_codls_own_plan_is_the_predicted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the quickest of several: a plan along rows alone would take half of its time here."""
    s = _planning(24, 64, Relay(StandIn()))
    s.rows_take = 0.5
    built: list[set[str]] = []
    make = s.executable
    s.executable = lambda plan: built.append(_dims(plan)) or make(plan)  # type: ignore[method-assign, func-returns-value]
    monkeypatch.setattr(time, "perf_counter", lambda: s.now)
    exe = contest._realised(s, codl(s.graph, s.measured_costs()), "codl")
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
    split = [STRATEGIES[name](s.graph, costs).predicted or 0.0 for name in ("edgenn", "codl", "layer_switch")]
    assert predicted == sorted(predicted) and predicted[0] == min(split)
    assert len(found) <= contest.MOST_PLANS and predicted[-1] < contest.NEAR * predicted[0]


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
