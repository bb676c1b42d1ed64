"""Chains along the sums of a product: exact at every share, chosen where they save an exchange, refused where not."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.program import Op, Value
from xcoexec.codegen.rules.splits import reshape
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices import null
from xcoexec.errors import PlanError, SplitError, XcoexecError
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement, chain_results
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.ir.words import SUMS
from xcoexec.lowering.emit import run_ops
from xcoexec.lowering.programs import sections
from xcoexec.lowering.work_units import DeviceUnit, HostUnit
from xcoexec.partition.split import split_sums
from xcoexec.planning.chain_shares import Chains
from xcoexec.planning.memory import usage, ways
from xcoexec.planning.simulate import member_shares, replay
from xcoexec.planning.strategies.codl import ALL, DIMS, codl
from xcoexec.session.rebalance import halves, rebalanced

from .standin import StandIn
from .support import array, build_on, co, error, oracle, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")


def features(w: Any, x: Any) -> Any:
    """What a transformer does to each token: features between two products, and a sum that goes around both."""
    return x + jax.nn.gelu(x @ w[0] + w[1]) @ w[2] + w[3]


def attention(w: Any, x: Any) -> Any:
    """Heads are on their own between the first products and the last one."""
    q, k, v = ((x @ w[i] + w[3]).reshape(*x.shape[:-1], 4, -1) for i in range(3))
    share = jax.nn.softmax(jnp.einsum("nthd,nshd->nhts", q, k) / 4)
    return x + jnp.einsum("nhts,nshd->nthd", share, v).reshape(x.shape) @ w[4]


def general(w: Any, x: Any) -> Any:
    """The same with products over heads and their features at once, as Flax's attention has them."""
    q, k, v = (jnp.einsum("ntf,fhd->nthd", x, w[i]) for i in range(3))
    share = jax.nn.softmax(jnp.einsum("nthd,nshd->nhts", q, k) / 4)
    return x + jnp.einsum("nthd,hdf->ntf", jnp.einsum("nhts,nshd->nthd", share, v), w[3])


def alone(w: Any, x: Any) -> Any:
    """One product: each half reads its part of the operand."""
    return jnp.tanh(x) @ w[0] * 2.0 + w[1]


NETWORKS: dict[str, tuple[Any, list[jax.Array], jax.Array]] = {
    "features": (
        features,
        [array(37, 53), array(53, seed=1), array(53, 37, seed=2), array(37, seed=3)],
        array(2, 21, 37, seed=4),
    ),
    "attention": (
        attention,
        [*(array(48, 48, seed=i) for i in range(3)), array(48, seed=3), array(48, 48, seed=4)],
        array(2, 13, 48, seed=5),
    ),
    "general": (
        general,
        [*(array(40, 4, 8, seed=i) for i in range(3)), array(4, 8, 40, seed=3)],
        array(1, 19, 40, seed=4),
    ),
    "alone": (alone, [array(45, 31), array(31, seed=1)], array(7, 45, seed=2)),
}


def along_sums(graph: LayerGraph, p: float, first: int = 0) -> Plan:
    """A chain up to the last product, its part as near to `p` as its blocks allow; the rest on the device half."""
    last = max(x.index for x in graph.layers if x.sums is not None)
    grain, size = Chains(graph).grain(first, last + 1, SUMS), graph.layers[last].extent(SUMS)
    assert grain is not None
    share = min(max(round(p * size / grain), 1), size // grain - (size % grain == 0)) * grain / size
    inside = lambda x: first <= x.index <= last
    place = lambda x: (
        Placement(x.name, "split", share, SUMS, chain=1) if inside(x) else Placement(x.name, "device", 0.0)
    )
    plan = Plan("test", tuple(map(place, graph.layers)), graph.key)
    check_plan(plan, graph)
    return plan


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 0.77, 1.0])
@pytest.mark.parametrize("name", NETWORKS)
def test_both_halves_sum_a_part(name: str, p: float, apart: bool) -> None:
    fn, w, x = NETWORKS[name]
    exe = build_on(Relay(StandIn(delay=2e-4)) if apart else None, fn, w, x, lambda g: along_sums(g, p))
    assert exe.lowered is not None
    (unit,) = exe.lowered.segments
    assert unit.partial and unit.beside and not unit.joins
    program, graph = unit.segment.program, stages_of(fn, w, x, weights=1)[1]
    last = max(x.index for x in graph.layers if x.sums is not None)
    sums = graph.layers[last].sums
    assert sums is not None and program.outputs[0].shape == sums.anchor.out.shape
    parts = [u for u in exe.lowered.units if isinstance(u, DeviceUnit) and u.layers == unit.layers]
    assert len(parts) == 1 and len(set(unit.layers)) == last + 1, "all of the chain is in one call, beside one part"
    want = oracle(fn, w, x)
    for _ in range(3):
        assert error(np.asarray(exe.call([x])[0]), want) < 1e-5
    assert unit.segment.calls == 3


def test_no_program_ends_between_both_parts() -> None:
    """A call of several programs, of which each layer's features are divided."""

    def deep(w: Any, x: Any) -> Any:
        for _ in range(6):
            x = jnp.tanh(features(w, x))
        return x

    w, x = [v / 8 for v in NETWORKS["features"][1]], NETWORKS["features"][2]

    def plan(graph: LayerGraph) -> Plan:
        products = [y.index for y in graph.layers if y.kind == "dot_general"]
        chain = {i: k // 2 + 1 for k, i in enumerate(products)}
        place = lambda y: (
            Placement(y.name, "split", 16 / 53, SUMS, chain=chain[y.index])
            if y.index in chain
            else Placement(y.name, "device", 0.0)
        )
        found = Plan("test", tuple(map(place, graph.layers)), graph.key, programs=2)
        check_plan(found, graph)
        return found

    exe = build_on(Relay(StandIn(delay=2e-4)), deep, w, x, plan)
    assert exe.lowered is not None and len(exe.lowered.segments) == 6
    parts = sections(exe.lowered)
    assert len(parts) == 2 and all(sum(isinstance(u, HostUnit) for u in p.units) for p in parts)
    want = oracle(deep, w, x)
    for _ in range(3):
        assert error(np.asarray(exe.call([x])[0]), want) < 1e-5


def test_every_part_of_the_weights_lies_on_one_half() -> None:
    """Neither half has all of any weight: columns of the first product, rows of the second."""
    fn, w, x = NETWORKS["features"]
    exe = build_on(Relay(StandIn()), fn, w, x, lambda g: along_sums(g, 0.3))
    assert exe.lowered is not None
    graph = stages_of(fn, w, x, weights=1)[1]
    at = round(exe.plan.placements[0].p_cpu * 53)
    assert 0 < at < 53
    mine = {s.source.shape: (s.axis, s.stop - s.start) for s in exe.lowered.slices.values() if s.start == 0}
    assert mine == {(37, 53): (1, at), (1, 1, 53): (2, at), (53, 37): (0, at)}
    placed = usage(graph, exe.plan.placements).resident
    assert placed == pytest.approx((1 - at / 53) * sum(v.nbytes for v in w), abs=8)


def test_parts_add_up_over_every_cut() -> None:
    """Two parts are the whole, wherever they are cut."""
    product = lambda w, x: jnp.tanh(x @ w[0]) @ w[1]
    w, x = [array(37, 53), array(53, 29, seed=1)], array(5, 37, seed=2)
    graph = stages_of(product, w, x, weights=1)[1]
    layer, values = graph.layers[-1], dict(zip((*graph.program.consts, *graph.program.inputs), (*w, x), strict=True))
    assert layer.sums is not None
    want = oracle(product, w, x)
    for at in (1, 2, 16, 26, 37, 51, 52):
        both = np.zeros(layer.out.shape)
        for a, b in ((0, at), (at, 53)):
            part = split_sums([y.group for y in graph.layers], layer.sums, a, b)
            env = values | {
                s.value: lax.slice_in_dim(values[s.source], s.start, s.stop, axis=s.axis) for s in part.slices
            }
            run_ops(part.ops, env)
            both += np.asarray(env[part.out])
        assert error(both, want) < 1e-5


def test_a_head_is_never_cut() -> None:
    fn, w, x = NETWORKS["attention"]
    graph = stages_of(fn, w, x, weights=1)[1]
    chains, last = Chains(graph), len(graph.layers)
    assert chains.grain(0, last, SUMS) == 12 and chains.grain(last - 1, last, SUMS) == 16
    assert chains.needed(0, last, SUMS, 16) is None and chains.needed(0, last, SUMS, 24) is not None
    mine, rest = chains.needed(0, last, SUMS, 12) or ({}, {})
    assert all(mine[i] == 0.25 and rest[i] == 0.75 for i in range(last))
    places = tuple(Placement(y.name, "split", 16 / 48, SUMS, chain=1) for y in graph.layers)
    with pytest.raises((SplitError, XcoexecError), match="reshape"):
        build_on(Relay(StandIn()), fn, w, x, lambda g: Plan("test", places, g.key))


@pytest.mark.parametrize(
    ("source", "target", "axis", "part", "needs"),
    [
        ((2, 48), (2, 4, 12), 1, (1, 3), (1, 12, 36)),
        ((2, 4, 12), (2, 48), 1, (12, 36), (1, 1, 3)),
        ((2, 4, 12), (2, 48), 1, (6, 36), None),
        ((6, 4), (8, 3), 0, (0, 4), None),
        ((6, 4), (3, 8), 0, (1, 3), (0, 2, 6)),
        ((1, 5), (5,), 0, (1, 3), (1, 1, 3)),
        ((5,), (1, 5), 1, (2, 5), (0, 2, 5)),
        ((3, 1, 5), (3, 5), 1, (2, 5), (2, 2, 5)),
    ],
)
def test_blocks_of_an_axis_pass_through_a_reshape(source: Any, target: Any, axis: int, part: Any, needs: Any) -> None:
    op = Op("reshape", (Value(source, "float32"),), (Value(target, "float32"),), {"new_sizes": target})
    if needs is None:
        with pytest.raises(ValueError, match="regroups dimension"):
            reshape(op, axis, *part)
        return
    found = reshape(op, axis, *part)
    (request,) = found.operands
    assert request == needs
    x = np.arange(np.prod(source)).reshape(source)
    piece = np.take(x, range(needs[1], needs[2]), needs[0]).reshape(found.params["new_sizes"])
    np.testing.assert_array_equal(piece, np.take(x.reshape(target), range(*part), axis))


def _large(tokens: int = 96) -> tuple[list[jax.Array], jax.Array]:
    return [array(256, 1024), array(1024), array(1024, 256), array(256)], array(1, tokens, 256)


def test_sums_are_chosen_where_an_exchange_between_two_products_is_dear() -> None:
    w, x = _large()
    graph = stages_of(features, w, x, weights=1)[1]
    seconds = lambda y: 1e-6 + y.flops / 5e11
    costs = null.costs(graph, seconds, seconds, 1e-5, 2e10)
    plan = codl(graph, costs, dims=("channel", SUMS))
    check_plan(plan, graph)
    assert {(p.dim, p.chain) for p in plan.placements} == {(SUMS, 1)} and plan.predicted is not None
    rest = codl(graph, costs, dims=("channel",))
    assert rest.predicted is not None and plan.predicted < 0.97 * rest.predicted
    assert replay(graph, plan, costs).seconds < replay(graph, rest, costs).seconds
    both = [codl(graph, costs, dims=d).predicted or 0.0 for d in (ALL, DIMS)]
    assert both[0] <= both[1] * (1 + 1e-9)


def test_both_halves_shares_are_known_to_all_who_ask() -> None:
    """To the simulator, to the memory's ways, and to the shares that are moved by what calls measure."""
    fn, w, x = NETWORKS["features"]
    exe = build_on(Relay(StandIn(delay=1e-3)), fn, w, x, lambda g: along_sums(g, 0.3))
    assert exe.lowered is not None
    graph, places = stages_of(fn, w, x, weights=1)[1], exe.plan.placements
    p = places[0].p_cpu
    shares = member_shares(graph.layers, places[0], chain_results(graph, graph.layers, SUMS))
    assert shares == ({0: pytest.approx(p), 1: pytest.approx(p)}, {0: pytest.approx(1 - p), 1: pytest.approx(1 - p)})
    way = {"read mapped": (1e-6, 1e10), "read copy": (1e-6, 2e10), "write mapped": (1e-6, 1e10)}
    crossed = ways(graph, places, "auto", way | {"write copy": (1e-6, 2e10)})
    assert crossed[0].reads == crossed[-1].writes == "copy", "both cross as a whole"
    for _ in range(4):
        jax.block_until_ready(exe.call([x]))
    (unit,) = exe.lowered.segments
    assert isinstance(unit, HostUnit) and halves(unit, exe.lowered) is not None
    moved = rebalanced(graph, places, exe.lowered)
    assert len({m.p_cpu for m in moved}) == 1 and 0 < moved[0].p_cpu < 1
    again = build_on(Relay(StandIn()), fn, w, x, lambda g: Plan("test", moved, g.key))
    assert error(np.asarray(again.call([x])[0]), oracle(fn, w, x)) < 1e-5


def test_the_plan_is_text_and_is_read_again() -> None:
    fn, w, x = NETWORKS["features"]
    graph = stages_of(fn, w, x, weights=1)[1]
    plan = along_sums(graph, 0.3)
    assert Plan.from_json(plan.to_json()) == plan and "sums, chain 1" in str(plan)
    bound = co(fn, w, plan=plan)
    assert error(np.asarray(bound(x)), oracle(fn, w, x)) < 1e-5
    report = bound.report()
    assert report.ran == "xco" and report.segments == 1


def _refused(fn: Any, w: Any, x: Any, first: int = 0, last: int | None = None, **others: Any) -> None:
    graph = stages_of(fn, w, x, weights=1)[1]
    end = len(graph.layers) if last is None else last
    split = dataclasses.replace(Placement("", "split", 0.5, SUMS, chain=1), **others)
    inside = lambda y: first <= y.index < end
    places = [
        dataclasses.replace(split, layer=y.name) if inside(y) else Placement(y.name, "device", 0.0)
        for y in graph.layers
    ]
    check_plan(Plan("test", tuple(places), graph.key), graph)


def test_what_cannot_be_split_so_is_refused_in_one_sentence() -> None:
    fn, w, x = NETWORKS["attention"]
    with pytest.raises(PlanError, match=r"got a split along 'sums' that ends with .*; valid is a product with float32"):
        _refused(fn, w, x, last=2)  # ends with a reshape
    with pytest.raises(PlanError, match="is read outside of it"):
        _refused(fn, w, x, last=3)  # the queries, which the scores read
    half = [v.astype(jnp.bfloat16) for v in w]
    with pytest.raises(PlanError, match="valid is a product with float32 results"):
        _refused(fn, half, x.astype(jnp.bfloat16))
    kernel = [array(3, 3, 4, 4)]
    conv = lambda w, x: lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    with pytest.raises(PlanError, match="valid is a product"):
        _refused(conv, kernel, array(1, 5, 5, 4), chain=0)
    square = lambda w, x: lax.dot_general(y := x @ w[0], y, (((1,), (1,)), ((), ())))
    graph = stages_of(square, [array(8, 8)], array(8, 8), weights=1)[1]
    assert graph.layers[-1].sums is None, "both operands are one value"
    around = lambda w, x: jax.nn.softmax(y := x @ w[0], 0) @ w[1] + y
    graph = stages_of(around, [array(8, 8), array(8, 8)], array(5, 8), weights=1)[1]
    last = len(graph.layers)
    assert graph.layers[-1].sums is not None and Chains(graph).grain(0, last, SUMS) is None
    with pytest.raises(PlanError, match="is read outside of it"):  # whole, behind the last product
        _refused(around, [array(8, 8), array(8, 8)], array(5, 8))
    with pytest.raises(PlanError, match="valid is 'channel' or 'rows' or 'items'"):
        Plan.uniform(0.5, SUMS)
