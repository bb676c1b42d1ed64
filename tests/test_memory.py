"""Memory policies, streamed weights and the capacity planner, against a stand-in device."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import xcoexec
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.errors import BindError, CoexecWarning, PlanError
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.ir.words import HOST, SPLIT
from xcoexec.lowering.executable import Executable
from xcoexec.planning.memory import alive, amount, large, usage, ways, weight_shares
from xcoexec.planning.strategies.capacity import PIECE_SECONDS, capacity
from xcoexec.session import prepare, timeline
from xcoexec.session.attempt import Attempt
from xcoexec.session.contest import forced

from .standin import StandIn
from .support import (
    LAYERS,
    array,
    beside_a_device,
    build_on,
    dense,
    error,
    given_back,
    moved,
    oracle,
    stages_of,
    streaming,
)
from .test_relay import OPERATIONS, WEIGHTS, X, _residual

pytestmark = pytest.mark.usefixtures("quick_xla")

WAYS = [("copy", "mapped"), ("mapped", "copy"), ("copy", "copy")]


def check(exe: Any, fn: Any, weights: Any, x: Any, calls: int = 3) -> None:
    want = oracle(fn, weights, x)
    for _ in range(calls):
        assert error(np.asarray(exe.call([x])[0]), want) < 1e-5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dim", ["channel", "rows"])
@pytest.mark.parametrize("p", [0.3, 0.6, 1.0])
def test_copies_give_the_same(way: tuple[str, str], dim: str, p: float) -> None:
    driver = StandIn(delay=5e-4)
    check(build_on(Relay(driver), _residual, WEIGHTS, X, moved(Plan.uniform(p, dim), *way)), _residual, WEIGHTS, X)
    assert driver.copied > 0


@pytest.mark.parametrize("name", [n for n in OPERATIONS if n != "bf16"])
@pytest.mark.parametrize("dim", ["channel", "rows"])
def test_operations_over_copies(name: str, dim: str) -> None:
    fn, w, x = OPERATIONS[name]
    check(build_on(Relay(StandIn(delay=2e-4)), fn, w, x, moved(Plan.uniform(0.4, dim), "copy", "copy")), fn, w, x, 2)


def test_a_missing_event_is_caught() -> None:
    """The planted bug: streams that do not wait for each other. The check that the other tests use must see it."""
    exe = build_on(
        Relay(StandIn(delay=5e-3, forget_event=True)), _residual, WEIGHTS, X, moved(Plan.uniform(0.5), "copy", "copy")
    )
    with pytest.raises(AssertionError):
        for i in range(5):
            check(exe, _residual, WEIGHTS, array(2, 11, 9, 4, seed=20 + i), 1)


def test_many_calls_over_copies_in_flight() -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, xs = array(16, 16), [array(3, 16, seed=i) for i in range(6)]
    exe = build_on(Relay(StandIn(delay=2e-4)), fn, w, xs[0], moved(Plan.uniform(0.5), "copy", "copy"))
    outs = [exe.call([x])[0] for _ in range(5) for x in xs]
    assert all(error(np.asarray(o), oracle(fn, w, x)) < 1e-5 for o, x in zip(outs, xs * 5, strict=True))


@pytest.mark.parametrize("call", ["copy", "record", "follow"])
def test_a_refused_copy(call: str) -> None:
    driver = StandIn()
    relay = Relay(driver)
    exe = build_on(relay, _residual, WEIGHTS, X, moved(Plan.uniform(0.5), "copy", "copy"))
    check(exe, _residual, WEIGHTS, X, 1)
    driver.fail_driver[call] = 700
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="refused"):
        for _ in range(2):
            np.asarray(exe.call([X])[0])
    assert relay.code == 700


def test_refused_events_leave_nothing() -> None:
    driver = StandIn()
    driver.fail_driver["event"] = 2
    with pytest.raises(RuntimeError, match="cuEventCreate"):
        build_on(Relay(driver), _residual, WEIGHTS, X, moved(Plan.uniform(0.5), "copy", "copy"))
    assert driver.allocations == 0


# -- streamed weights


@pytest.mark.parametrize("p, streamed", [(0.0, 1.0), (0.0, 0.5), (0.5, 0.5), (0.4, 0.3), (0.25, 0.75), (0.7, 0.1)])
@pytest.mark.parametrize("rows, pieces", [(1, 1), (3, 1), (1, 3), (2, 5)])
def test_streamed_weights(p: float, streamed: float, rows: int, pieces: int) -> None:
    driver = StandIn(delay=5e-4)
    x = array(rows, 160)
    exe = build_on(Relay(driver), dense, LAYERS, x, streaming(p, streamed, pieces))
    check(exe, dense, LAYERS, x)
    assert driver.copied >= 3 * 3  # three of the layers have weights that are large enough, three calls
    resident = sum(v.nbytes for v in exe.lowered.consts)  # type: ignore[union-attr]
    kept = usage(stages_of(dense, LAYERS, x, weights=1)[1], exe.plan.placements).resident
    assert resident == pytest.approx(kept, rel=0.02) and resident < sum(w.nbytes for w in LAYERS)


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_rows_of_few_granules_with_streamed_weights(pieces: int) -> None:
    """Pieces are of whole granules of the dimension that is divided: a grouped convolution's channels have larger
    ones than its rows.
    """

    def fn(w: Any, x: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
        )

    w, x = array(3, 3, 64, 64), array(1, 5, 4, 128, seed=1)

    def plan(graph: LayerGraph) -> Plan:
        (layer,) = graph.layers
        assert layer.dims["channel"] > 5
        found = Plan("test", (Placement(layer.name, "split", 0.2, "rows", streamed=0.8, pieces=pieces),), graph.key)
        check_plan(found, graph)
        return found

    exe = build_on(Relay(StandIn()), fn, w, x, plan)
    assert exe.lowered is not None and len(exe.lowered.fetches) == pieces
    assert error(np.asarray(exe.call([x])[0]), oracle(fn, w, x)) < 1e-5


@pytest.mark.parametrize("p, streamed", [(0.0, 1.0), (0.5, 0.5)])
def test_streamed_weights_are_on_the_timeline(p: float, streamed: float) -> None:
    x = array(1, 160)
    exe = build_on(Relay(StandIn(delay=5e-4)), dense, LAYERS, x, streaming(p, streamed, 2))
    graph, lowered = stages_of(dense, LAYERS, x, weights=1)[1], exe.lowered
    assert lowered is not None and lowered.fetches
    check(exe, dense, LAYERS, x)
    assert not [
        e for e in timeline.events(graph, lowered) if e["ph"] == "X" and e["tid"] == timeline.WEIGHTS
    ]  # not traced, no stamps
    for fetch in lowered.fetches.values():
        fetch.trace(True)
    check(exe, dense, LAYERS, x)
    copies = [e for e in timeline.events(graph, lowered) if e["ph"] == "X" and e["tid"] == timeline.WEIGHTS]
    assert len(copies) == len(lowered.fetches) and all(
        e["dur"] >= 0 and e["ts"] >= 0 and e["args"]["bytes"] > 0 for e in copies
    )
    assert [e["ts"] for e in copies] == sorted(e["ts"] for e in copies)  # one stream brings them in their order


def test_xla_holds_no_more_than_is_counted() -> None:
    w, x = [array(512, 512, seed=i) for i in range(6)], array(1, 512)
    exe = build_on(Relay(StandIn()), dense, w, x, streaming(0.25, 0.75, 3))
    lowered = exe.lowered
    assert lowered is not None and len(lowered.fetches) == 18
    held = jax.jit(lambda c, x: lowered(c, [x])).lower(lowered.arguments(w), x).compile().memory_analysis()
    assert held.temp_size_in_bytes <= usage(stages_of(dense, w, x, weights=1)[1], exe.plan.placements).streaming + (
        1 << 16
    )


def test_streamed_convolutions() -> None:
    w = [array(3, 3, 32, 64), array(3, 3, 64, 64, seed=1)]
    fn = lambda w, x: lax.conv_general_dilated(
        jnp.tanh(lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))),
        w[1],
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    x = array(1, 9, 7, 32, seed=5)
    check(build_on(Relay(StandIn(delay=2e-4)), fn, w, x, streaming(0.25, 0.5)), fn, w, x)


def test_a_stream_that_nobody_waits_for_is_caught() -> None:
    exe = build_on(Relay(StandIn(delay=2e-2, forget_event=True)), dense, LAYERS, array(1, 160), streaming(0.0, 1.0))
    with pytest.raises(AssertionError):
        for i in range(5):
            check(exe, dense, LAYERS, array(1, 160, seed=i), 1)


def test_streams_inside_scan_and_from_several_calls() -> None:
    w = [array(192, 192, seed=1), array(192, 192, seed=2)]
    x = array(2, 192)
    exe = build_on(Relay(StandIn(delay=2e-4)), dense, w, x, streaming(0.5, 0.5))
    lowered = exe.lowered
    assert lowered is not None
    consts = lowered.arguments(w)
    got, _ = jax.jit(lambda c, x: lax.scan(lambda s, _: (lowered(c, [s])[0], None), x, None, length=5))(consts, x)
    want = x
    for _ in range(5):
        want = dense(w, want)
    assert error(np.asarray(got), np.asarray(want)) < 1e-5


def test_streams_give_their_memory_back() -> None:
    import gc

    relay = Relay(StandIn())
    exe = build_on(relay, dense, LAYERS, array(1, 160), streaming(0.5, 0.5))
    check(exe, dense, LAYERS, array(1, 160), 1)
    del exe
    jax.clear_caches()
    gc.collect()
    given_back(relay)


# -- the planner


def dense_graph(sizes: list[int]) -> LayerGraph:
    w = [np.ones((a, b), np.float32) for a, b in itertools.pairwise(sizes)]
    return stages_of(dense, w, np.ones((1, sizes[0]), np.float32), weights=1)[1]


def costs_of(
    graph: LayerGraph, host_rate: float, device_rate: float, stream_rate: float, limit: float, sync: float = 1e-5
) -> Costs:
    weights = [sum(v.nbytes for v in x.ins if v in set(graph.program.consts)) for x in graph.layers]
    host = tuple(1e-6 + b / host_rate for b in weights)
    device = tuple(1e-6 + b / device_rate for b in weights)
    return Costs.of_halves(host, device, sync, 1e18, 1.0, False, stream_rate=stream_rate, capacity=limit)


def simulated(graph: LayerGraph, placements: tuple[Placement, ...], costs: Costs) -> float:
    """The slow, obvious clock of a plan: one copy engine, room for four pieces, halves that meet after every layer."""
    consts = set(graph.program.consts)
    layer_end, copied, used = 0.0, [], []  # ends of copies and of the computations with what they brought
    weight = lambda x: sum(v.nbytes for v in x.ins if v in consts)
    sizes = [
        weight_shares(x, p)[2] * weight(x) / p.pieces
        for x, p in zip(graph.layers, placements, strict=True)
        for _ in range(p.pieces)
        if weight_shares(x, p)[2]
    ]
    room = 4 * max(sizes, default=0.0)
    for x, place in zip(graph.layers, placements, strict=True):
        host, resident, streamed = weight_shares(x, place)
        nbytes = sum(v.nbytes for v in x.ins if v in consts)
        device = layer_end + costs.device[x.index] * resident
        for _ in range(place.pieces if streamed else 0):
            size = streamed * nbytes / place.pieces
            first = next(
                i for i in range(len(used) + 1) if sum(sizes[i : len(used)]) + size <= room * (1 + 1e-9)
            )  # what must be done with
            began = max([copied[-1] if copied else 0.0, *used[:first]])
            copied.append(began + size / costs.stream_rate + PIECE_SECONDS)
            device = max(device, copied[-1]) + costs.device[x.index] * streamed / place.pieces
            used.append(device)
        on_host = layer_end + (costs.host[x.index] or 0.0) * host * costs.contention + (costs.sync if host else 0.0)
        layer_end = max(on_host, device)
    return layer_end


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([128, 192, 256, 512, 1024]), min_size=3, max_size=6),
    rates=st.tuples(*[st.floats(1e9, 3e11)] * 3),
    part=st.floats(0.05, 1.2),
)
def test_the_planner_keeps_the_bound_and_is_no_worse_than_simple_plans(
    sizes: list[int], rates: tuple[float, float, float], part: float
) -> None:
    graph = dense_graph(sizes)
    whole = usage(graph, [Placement(x.name, "device", 0.0) for x in graph.layers])
    limit = alive(graph) + whole.resident * part + 2 * 16 * 4 * 1024
    costs = costs_of(graph, *rates, limit)
    plan = capacity(graph, costs)
    check_plan(plan, graph)
    assert usage(graph, plan.placements).total <= limit
    got = simulated(graph, plan.placements, costs)
    names = [x.name for x in graph.layers]
    for half, streamed in (("host", 0.0), ("device", 1.0), ("device", 0.0)):
        simple = tuple(Placement(n, half, float(half == "host"), streamed=streamed) for n in names)
        if usage(graph, simple).total <= limit:
            assert got <= simulated(graph, simple, costs) * (1 + 1e-6)


@settings(max_examples=20, deadline=None)
@given(rates=st.tuples(*[st.floats(1e9, 3e11)] * 3), part=st.floats(0.1, 0.9))
def test_the_planner_against_a_grid(rates: tuple[float, float, float], part: float) -> None:
    """Two layers, all shares in eighths: none that fits is much faster."""
    graph = dense_graph([1024, 1024, 1024])
    limit = alive(graph) + 8 * 1024 * 1024 * part
    costs = costs_of(graph, *rates, limit)
    got = simulated(graph, capacity(graph, costs).placements, costs)
    eighths = [(h / 8, s / 8) for h in range(9) for s in range(9 - h)]
    for first, second in itertools.product(eighths, repeat=2):
        places = tuple(
            Placement(x.name, "host" if h == 1 else "split" if h else "device", h, streamed=s)
            for x, (h, s) in zip(graph.layers, (first, second), strict=True)
        )
        if usage(graph, places).total <= limit - 4 * 16 * 4 * 1024:
            assert got <= simulated(graph, places, costs) * 1.05


def test_more_room_is_never_slower() -> None:
    graph = dense_graph([512, 1024, 1024, 1024, 256])
    seconds = []
    for part in (0.1, 0.3, 0.5, 0.8, 1.5):
        limit = alive(graph) + part * usage(graph, [Placement(x.name, "device", 0.0) for x in graph.layers]).resident
        seconds.append(capacity(graph, costs_of(graph, 1e10, 1e11, 5e9, limit)).predicted or 0.0)
    assert seconds == sorted(seconds, reverse=True)


def test_too_little_memory_says_how_much_is_needed() -> None:
    graph = dense_graph([512, 1024, 256])
    known = costs_of(graph, 1e10, 1e11, 5e9, 1000)
    costs = dataclasses.replace(known, seconds={**known.seconds, HOST: (None, None)})
    with pytest.raises(PlanError, match=r"device_memory: got 0.0 MB; valid for this function is .* or more"):
        capacity(graph, costs)


def test_amounts() -> None:
    assert (
        amount("16GiB") == 16 << 30
        and amount("1.5 MB") == 1_500_000
        and amount(0.25) == 0.25
        and amount(1000) == 1000
        and amount(None) is None
    )
    for bad in ("lots", "-1GB", "GiB", 0, -5, 1.5, True, [], float("nan"), "16GX"):
        with pytest.raises(ValueError, match="device_memory"):
            amount(bad)


def test_ways_follow_the_figures() -> None:
    graph = stages_of(_residual, WEIGHTS, X, weights=1)[1]
    rates = {
        "read mapped": (1e-6, 1e9),
        "read copy": (1e-5, 5e10),
        "write mapped": (1e-6, 5e10),
        "write copy": (1e-5, 5e10),
    }
    plan = forced(graph, Plan.uniform(1.0))
    places = ways(graph, plan.placements, "auto", rates)
    assert places[0].reads == "mapped" and all(p.writes in ("", "mapped") for p in places)  # 3 KB cost less than 10 us
    slow = {**rates, "read mapped": (1e-4, 1e9)}
    assert ways(graph, plan.placements, "auto", slow)[0].reads == "copy"
    assert not places[1].reads and not places[0].writes  # neighbours on the host exchange nothing
    assert all(
        p.reads == p.writes == "copy"
        for p in ways(graph, forced(graph, Plan.uniform(0.5)).placements, "copy", {})
        if p.half == "split"
    )
    strided = ways(graph, forced(graph, Plan.uniform(0.5)).placements, "auto", {**slow, "write mapped": (1e-4, 1e9)})
    assert strided[0].writes == "mapped" and strided[0].reads == "copy"  # channels of an image are short rows


# -- the public way


@pytest.fixture
def on_standin(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    driver = StandIn(delay=1e-4)
    relay = Relay(driver, limit_seconds=60.0)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: relay)
    return driver


HOST_LAYERS = [np.asarray(w) for w in LAYERS]
NEEDED = sum(w.nbytes for w in LAYERS)


@pytest.mark.parametrize("strategy", ["auto", "capacity"])
def test_weights_larger_than_the_device(on_standin: StandIn, strategy: str) -> None:
    fast = xcoexec.jit(dense, device_memory=NEEDED // 3, strategy=strategy, strict=True).bind(HOST_LAYERS)
    for i in range(4):
        x = array(1, 160, seed=i)
        assert error(np.asarray(fast(x)), oracle(dense, LAYERS, x)) < 1e-5
    graph = fast.graph()
    assert usage(graph, fast.plan().placements).total <= NEEDED // 3
    assert fast.report().ran in ("xco", "local") and "jit" not in fast.plan().measured


@pytest.mark.parametrize("scratch", [0, 30_000, NEEDED])
def test_what_xla_holds_beside_weights_comes_off_their_room(
    on_standin: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, scratch: int
) -> None:
    """`scratch`: bytes that XLA needs as long as a weight is resident; more than there are cannot be had."""
    limit = NEEDED // 2

    def excess(s: Attempt, exe: Executable) -> int:
        need = usage(s.graph, exe.plan.placements)
        return max(need.total + (scratch if need.resident else 0) - limit, 0)

    monkeypatch.setattr(Attempt, "excess", excess)
    fast = xcoexec.jit(dense, device_memory=limit, strategy="capacity", strict=True).bind(HOST_LAYERS)
    x = array(1, 160)
    assert error(np.asarray(fast(x)), oracle(dense, LAYERS, x)) < 1e-5
    need = usage(fast.graph(), fast.plan().placements)
    assert need.total <= limit - (scratch if scratch < limit and need.resident else 0)
    assert ("more on the device than device_memory allows" in caplog.text) is (scratch > limit and need.resident > 0)


def test_shares_that_are_moved_keep_to_the_room_that_xla_leaves(
    on_standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Balancing fills the device up to the last byte that it may have."""
    limit, scratch, times = NEEDED // 2, 30_000, itertools.count()

    def filled(graph: LayerGraph, placements: Sequence[Placement], *_: object) -> tuple[Placement, ...]:
        next(times)
        shared = lambda p, p_cpu: dataclasses.replace(p, p_cpu=p_cpu) if p.half == SPLIT else p
        fewer = (tuple(shared(p, step / 64) for p in placements) for step in range(65))
        return next(x for x in fewer if usage(graph, x).total <= limit)

    def excess(s: Attempt, exe: Executable) -> int:
        return max(usage(s.graph, exe.plan.placements).total + scratch - limit, 0)

    monkeypatch.setattr(Attempt, "excess", excess)
    monkeypatch.setattr("xcoexec.session.realise.rebalanced", filled)
    fast = xcoexec.jit(dense, device_memory=limit, strategy="capacity", strict=True).bind(HOST_LAYERS)
    x = array(1, 160)
    assert error(np.asarray(fast(x)), oracle(dense, LAYERS, x)) < 1e-5
    assert next(times) > 0 and usage(fast.graph(), fast.plan().placements).total <= limit - scratch


def test_what_xla_holds_is_what_it_says(on_standin: StandIn) -> None:
    fast = xcoexec.jit(dense, device_memory=NEEDED // 2, strategy="capacity", strict=True).bind(HOST_LAYERS)
    fast(array(1, 160))
    found = fast.session()
    made = lambda limit: Attempt(found.problem, dataclasses.replace(found.machine, limit=limit)).excess(found.current)
    weights = usage(fast.graph(), fast.plan().placements).resident
    assert made(None) == made(NEEDED // 2) == 0 < weights
    assert weights - 1 <= made(1) <= NEEDED // 2


def test_a_bound_with_room_for_all_changes_nothing(on_standin: StandIn) -> None:
    fast = xcoexec.jit(dense, device_memory="1GiB", strict=True).bind(HOST_LAYERS)
    x = array(1, 160)
    assert error(np.asarray(fast(x)), oracle(dense, LAYERS, x)) < 1e-5
    assert "jit" in fast.plan().measured


def test_a_bound_needs_bound_weights(on_standin: StandIn) -> None:
    fast = xcoexec.jit(dense, device_memory="1GiB")
    fast._function = beside_a_device(fast._function)
    with pytest.raises(BindError, match=r"valid is .bind\(weights\)"):
        fast(LAYERS, array(1, 160))


def test_strategies_that_need_more_are_refused(on_standin: StandIn) -> None:
    fast = xcoexec.jit(dense, device_memory=NEEDED // 3, strategy="device").bind(HOST_LAYERS)
    with pytest.raises(PlanError, match=r"device_memory: got .* bytes and a plan \(device\)"):
        fast(array(1, 160))


def test_refused_memory_under_a_bound(on_standin: StandIn) -> None:
    on_standin.fail_mapped = 2
    with pytest.warns(CoexecWarning, match=r"on the CPU alone.*out of memory"):
        fast = xcoexec.jit(dense, device_memory=NEEDED // 3, strategy="capacity").bind(HOST_LAYERS)
        got = fast(array(1, 160))
    assert error(np.asarray(got), oracle(dense, LAYERS, array(1, 160))) < 1e-5
    assert fast.report().ran == "local"


@pytest.mark.parametrize("memory", ["mapped", "copy", "auto"])
def test_the_policy_is_in_the_plan(on_standin: StandIn, memory: str) -> None:
    fast = xcoexec.jit(_residual, plan=Plan.uniform(0.5), memory=memory, strict=True).bind(WEIGHTS)
    assert error(np.asarray(fast(X)), oracle(_residual, WEIGHTS, X)) < 1e-5
    text, split = str(fast.plan()), [p for p in fast.plan().placements if p.half == "split"]
    valid = {"mapped", "copy"} if memory == "auto" else {memory}
    assert split and {way for p in split for way in (p.reads, p.writes)} <= valid
    assert all(f"reads {p.reads}" in text for p in split)
    if memory != "auto":  # to choose by itself it measures copies
        assert (on_standin.copied > 0) == (memory == "copy")
    assert Plan.from_json(fast.plan().to_json()) == fast.plan()


def test_bad_policies() -> None:
    with pytest.raises(ValueError, match="got memory='fast'; valid are auto, mapped, copy"):
        xcoexec.jit(dense, memory="fast")
    with pytest.raises(ValueError, match="got device_memory='much'"):
        xcoexec.jit(dense, device_memory="much")
    graph = dense_graph([512, 1024, 256])
    for bad, text in (
        (dict(half="host", p_cpu=1.0, streamed=0.5), "valid is a share of the device half's part"),
        (dict(half="split", p_cpu=0.7, streamed=0.5), "valid is a share of the device half's part"),
    ):
        places = tuple(Placement(x.name, **bad) for x in graph.layers)  # type: ignore[arg-type]
        with pytest.raises(PlanError, match=text):
            check_plan(Plan("test", places, graph.key), graph)


def test_a_report_says_where_weights_come_from(on_standin: StandIn) -> None:
    x = array(1, 160)
    fast = xcoexec.jit(dense, device_memory=NEEDED // 3, strategy="capacity", strict=True).bind(HOST_LAYERS)
    for _ in range(8):
        np.asarray(fast(x))
    graph, found = fast.graph(), fast.report()
    consts = set(graph.program.consts)
    sizes = [large(layer, consts) for layer in graph.layers]
    shares = [weight_shares(layer, p) for layer, p in zip(graph.layers, fast.plan().placements, strict=True)]
    assert [f.way for f in found.weights] == ["host", "resident", "streamed"]
    for i, flow in enumerate(found.weights):
        assert flow.nbytes == round(sum(s[i] * n for s, n in zip(shares, sizes, strict=True)))
    host, resident, streamed = found.weights
    assert sum(f.nbytes for f in found.weights) == pytest.approx(sum(sizes), abs=3)
    assert host.nbytes + streamed.nbytes > 0 and resident.measured is None
    for line in str(found).splitlines():
        assert len(line) <= 80
    assert "MB a call" in str(found)
    alone = xcoexec.jit(dense, strategy="host", strict=True).bind(HOST_LAYERS)
    assert np.asarray(alone(x)).shape == (1, dense(HOST_LAYERS, x).shape[-1]) and not alone.report().weights
