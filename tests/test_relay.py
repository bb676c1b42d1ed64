"""Asynchronous host calls against a stand-in device: real threads, random delays, faults; the same code that runs on a
GPU.
"""

from __future__ import annotations

import dataclasses
import gc
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.native import call_layout as abi
from xcoexec.codegen.native.ptx import KERNELS, ptx
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.codegen.runtime.sites import Merge, Window
from xcoexec.errors import BindError, CoexecWarning, PlanError
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.lowering.executable import Executable
from xcoexec.planning.strategies import STRATEGIES
from xcoexec.session import adaptive, contest, prepare, rebalance, timeline

from .standin import StandIn, sleeping
from .support import array, beside_a_device, build_on, error, given_back, moved, oracle, stages_of, until

pytestmark = pytest.mark.usefixtures("quick_xla")

DN = ("NHWC", "HWIO", "NHWC")


def _conv(x: Any, w: Any, stride: int = 1) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=DN)


def _residual(w: Any, x: Any) -> Any:
    y = jax.nn.relu(_conv(x, w[0]))
    z = jax.nn.relu(_conv(jax.nn.relu(_conv(y, w[1])), w[2]) + y)
    return z.mean((1, 2)) @ w[3]


WEIGHTS = [array(3, 3, 4, 16), array(3, 3, 16, 16, seed=1), array(3, 3, 16, 16, seed=2), array(16, 10, seed=3)]
X = array(2, 11, 9, 4, seed=4)


@pytest.fixture(scope="module")
def relay() -> Relay:
    return Relay(StandIn(delay=5e-4))


Make = Callable[[LayerGraph], Plan | Any]


def _check(exe: Executable, fn: Any, weights: Any, x: Any, calls: int = 3) -> None:
    want = oracle(fn, weights, x)
    for _ in range(calls):
        assert error(np.asarray(exe.call([x])[0]), want) < 1e-5
    sites = exe.lowered.sites.values()  # type: ignore[union-attr]
    assert sites and all(s.calls >= calls for s in sites)


@pytest.mark.parametrize("dim", ["channel", "rows"])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8, 1.0])
def test_every_ratio(relay: Relay, dim: str, p: float) -> None:
    _check(build_on(relay, _residual, WEIGHTS, X, Plan.uniform(p, dim)), _residual, WEIGHTS, X)


OPERATIONS = {
    "strided": (lambda w, x: jax.nn.relu(_conv(x, w, 2)), array(5, 5, 4, 12), X),
    "depthwise": (
        lambda w, x: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=DN, feature_group_count=4),
        array(3, 3, 1, 8),
        X,
    ),
    "pool": (lambda w, x: lax.reduce_window(x * w, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), array(4), X),
    "dense": (lambda w, x: jnp.tanh(x @ w), array(33, 29), array(5, 33)),
    "row": (lambda w, x: x @ w, array(64, 31), array(1, 64)),
    "bf16": (
        lambda w, x: jax.nn.relu(x.astype(jnp.bfloat16) @ w).astype(jnp.float32),
        array(32, 24).astype(jnp.bfloat16),
        array(6, 32),
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dim", ["channel", "rows"])
def test_operations(relay: Relay, name: str, dim: str) -> None:
    fn, w, x = OPERATIONS[name]
    exe = build_on(relay, fn, w, x, Plan.uniform(0.4, dim))
    got, want = np.asarray(exe.call([x])[0]), oracle(fn, w, x)
    assert error(got, want) < (2e-2 if name == "bf16" else 1e-5)


def _chain(first: int, last: int, p: float) -> Make:
    def make(graph: LayerGraph) -> Plan:
        inside = [
            Placement(x.name, "split", p, "rows", chain=1)
            if first <= x.index < last
            else Placement(x.name, "device", 0.0)
            for x in graph.layers
        ]
        return Plan("test", tuple(inside), graph.key)

    return make


@pytest.mark.parametrize("p", [0.2, 0.5, 0.7])
def test_a_chain_through_a_residual_block(relay: Relay, p: float) -> None:
    """Both halves recompute the rows around the border; the skip connection reads fewer rows than the convolution."""
    exe = build_on(relay, _residual, WEIGHTS, X, _chain(0, 3, p))
    assert len(exe.lowered.segments) == 1  # type: ignore[union-attr]
    _check(exe, _residual, WEIGHTS, X)


def test_branches_on_both_halves_join_late(relay: Relay) -> None:
    """The host's branch is started before the device's and joined where the sum needs it."""

    def fn(w: Any, x: Any) -> Any:
        a = jnp.tanh(_conv(x, w[0]))
        b = jax.nn.relu(_conv(x, w[1]))
        return a * jnp.exp(b) + b

    w = [array(3, 3, 4, 8), array(3, 3, 4, 8, seed=1)]
    make = lambda g: Plan(
        "test",
        tuple(Placement(x.name, "host" if x.index == 0 else "device", float(x.index == 0)) for x in g.layers),
        g.key,
    )
    _check(build_on(relay, fn, w, X, make), fn, w, X)


def test_a_missing_flag_is_caught() -> None:
    """The planted bug: joins that do not wait for the host. The check that the other tests use must see it."""
    shape = (2, 44, 36, 4)
    x = array(*shape)
    for forgets in (False, True):
        driver = StandIn(forget_flag=forgets)
        exe = build_on(Relay(driver), _residual, WEIGHTS, x, Plan.uniform(0.5, "rows"))
        segment = exe.lowered.segments[0].segment  # type: ignore[union-attr]
        if not forgets:
            with sleeping(segment, 0.05):
                _check(exe, _residual, WEIGHTS, x, 1)
            continue
        with sleeping(segment, 600.0), pytest.raises(AssertionError):  # the host has not even begun
            _check(exe, _residual, WEIGHTS, x, 1)


def test_an_operand_of_a_host_call_is_not_copied(relay: Relay) -> None:
    exe = build_on(relay, _residual, WEIGHTS, X, Plan.uniform(0.5))
    lowered = exe.lowered
    assert lowered is not None
    program = jax.jit(lambda consts, x: lowered(consts, [x]))
    text = program.lower(lowered.arguments(WEIGHTS), X).compile().as_text()
    assert text.count("_start") >= len(lowered.segments) > 0
    copies = "".join(line for line in text.splitlines() if " copy(" in line)
    assert "f32[2,11,9,4]" not in copies and "f32[2,11,9,16]" not in copies


def test_inside_scan(relay: Relay) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(16, 16), array(3, 16)
    exe = build_on(relay, fn, w, x, Plan.uniform(0.5))
    lowered = exe.lowered
    assert lowered is not None
    consts = lowered.arguments([w])

    @jax.jit
    def loop(consts: Any, x: Any) -> Any:
        return lax.scan(lambda c, _: (lowered(consts, [c])[0], c.sum()), x, None, length=7)

    carried, sums = np.asarray(x, np.float64), []
    for _ in range(7):
        sums.append(carried.sum())
        carried = np.tanh(carried @ np.asarray(w, np.float64))
    for got, expected in zip(loop(consts, x), (carried, np.array(sums)), strict=True):
        assert error(np.asarray(got), expected) < 1e-5
    assert sum(s.calls for s in lowered.sites.values()) == 7


def test_several_threads_and_calls_in_flight(relay: Relay) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w = array(16, 16)
    xs = [array(3, 16, seed=i) for i in range(6)]
    want = [oracle(fn, w, x) for x in xs]
    exe = build_on(relay, fn, w, xs[0], Plan.uniform(0.5))

    def work(i: int) -> bool:
        outs = [exe.call([xs[(i + k) % 6]])[0] for k in range(20)]  # nobody waits in between
        return all(error(np.asarray(o), want[(i + k) % 6]) < 1e-5 for k, o in enumerate(outs))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_memory_comes_back_after_work_in_flight() -> None:
    relay = Relay(StandIn(delay=2e-3))
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(16, 16), array(3, 16)
    for _ in range(5):
        exe = build_on(relay, fn, w, x, Plan.uniform(0.5))
        exe.call([x])
        exe.call([x])
        del exe
        gc.collect()
    jax.clear_caches()
    gc.collect()
    given_back(relay)


@pytest.mark.parametrize("memory", ["mapped", "copy"])
def test_a_call_in_flight_keeps_its_site(memory: str) -> None:
    """Everything in Python is gone, the host has answered, and XLA has yet to join: the site is there until then."""
    driver = StandIn()
    relay = Relay(driver)
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(64, 64), array(8, 64)  # XLA:CPU runs programs of fewer operations in the thread that calls them
    exe = build_on(relay, fn, w, x, moved(Plan.uniform(0.5), memory, memory))
    exe.call([x])[0].block_until_ready()
    before = driver.allocations
    with driver.unjoined():
        out = exe.call([x])[0]
        until(lambda: relay._word(abi.Relay.HEAD).value == 2)
        del exe
        jax.clear_caches()
        gc.collect()
        relay.collect()
        assert driver.allocations == before
    assert error(np.asarray(out), oracle(fn, w, x)) < 1e-5
    given_back(relay)
    relay.stop()


@pytest.fixture
def on_standin(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The public API over a stand-in device."""
    driver = StandIn(delay=1e-4)
    relay = Relay(driver, limit_seconds=60.0)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: relay)
    driver.relay = relay  # type: ignore[attr-defined]
    return driver


@pytest.mark.parametrize("strategy", ["auto", "host", "edgenn", "codl"])
def test_the_whole_way(on_standin: StandIn, strategy: str) -> None:
    fast = xcoexec.jit(_residual, strategy=strategy, strict=True).bind(WEIGHTS)
    assert error(np.asarray(fast(X)), oracle(_residual, WEIGHTS, X)) < 1e-5
    plan = fast.plan()
    assert fast.report().ran == plan.engine == (plan.engine if strategy == "auto" else "xco")
    assert strategy == plan.strategy or (strategy == "auto" and {"jit", plan.strategy} <= {*plan.measured, "device"})


@pytest.mark.parametrize("clear", [0.0, 100.0], ids=["layers are measured", "a whole half wins clearly"])
def test_numpy_inputs_are_planned_for_on_their_own(
    on_standin: StandIn, own_cache: None, monkeypatch: pytest.MonkeyPatch, clear: float
) -> None:
    monkeypatch.setattr(contest, "CLEAR", clear)
    fast = xcoexec.jit(_residual, strict=True)
    fast._function = beside_a_device(fast._function)
    fast = fast.bind(WEIGHTS)
    for x in (X, np.asarray(X)):
        assert error(np.asarray(fast(x)), oracle(_residual, WEIGHTS, X)) < 1e-5
    assert len(fast._entries) == 2
    assert "local" in fast.plan().measured or fast.plan().engine == "local"


def test_refused_memory(on_standin: StandIn) -> None:
    on_standin.fail_mapped = 2
    with pytest.warns(CoexecWarning, match="out of memory"):
        fast = xcoexec.jit(_residual, plan=Plan.uniform(0.5)).bind(WEIGHTS)
        got = fast(X)
    assert error(np.asarray(got), oracle(_residual, WEIGHTS, X)) < 1e-5
    assert on_standin.allocations == 0


def _until_right(fast: Any, x: Any, text: str) -> np.ndarray:
    """Calls until the results can be read: XLA:CPU may tell of an error at the call or when its results are read."""
    for _ in range(3):
        try:
            return np.asarray(fast(x))
        except (jax.errors.JaxRuntimeError, ValueError) as e:
            assert text in str(e)
    raise AssertionError("the error stays")


def test_a_refused_launch(on_standin: StandIn) -> None:
    want = oracle(_residual, WEIGHTS, X)
    fast = xcoexec.jit(_residual, plan=Plan.uniform(0.5)).bind(WEIGHTS)
    assert error(np.asarray(fast(X)), want) < 1e-5
    on_standin.fail_launch = 700
    with pytest.warns(CoexecWarning, match=r"refused to launch.*made up.*700") as seen:
        assert error(_until_right(fast, X, "refused"), want) < 1e-5
    assert len([w for w in seen if issubclass(w.category, CoexecWarning)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert error(np.asarray(fast(X)), want) < 1e-5
    assert fast.report().ran == "jit"


def test_a_refused_launch_when_strict(on_standin: StandIn) -> None:
    fast = xcoexec.jit(_residual, plan=Plan.uniform(0.5), strict=True).bind(WEIGHTS)
    fast(X)
    on_standin.fail_launch = 700
    with pytest.raises(BindError, match=r"refused to launch.*made up.*700"):
        _until_right(fast, X, "refused")


def test_shares_move_to_the_faster_half(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    exe = build_on(relay, _residual, WEIGHTS, X, _chain(0, 3, 0.5))
    lowered, graph = exe.lowered, stages_of(_residual, WEIGHTS, X, weights=1)[1]
    assert lowered is not None and rebalance.halves(lowered.segments[0], lowered) is None  # no call yet
    jax.block_until_ready(exe.call([X]))
    assert rebalance.halves(lowered.segments[0], lowered) is not None
    for host_seconds, device_seconds, expected in ((1e-3, 1e-3, 6 / 11), (2e-3, 1e-3, 4 / 11), (1e-3, 9e-3, 10 / 11)):
        monkeypatch.setattr(
            rebalance, "halves", lambda u, low, h=host_seconds, d=device_seconds: rebalance.HalfSeconds(h, d, h + d)
        )
        places = rebalance.rebalanced(graph, exe.plan.placements, lowered)
        assert [p.p_cpu for p in places[:3]] == [pytest.approx(expected)] * 3


def test_shares_that_were_measured_count_more_than_lines_between_them(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device whose time goes in steps: the first correction overshoots, the second one knows both sides."""
    exe = build_on(relay, _residual, WEIGHTS, X, _chain(0, 3, 0.5))
    lowered, graph = exe.lowered, stages_of(_residual, WEIGHTS, X, weights=1)[1]
    assert lowered is not None
    rows, seen, at = 11, rebalance.Seen(), 6
    jax.block_until_ready(exe.call([X]))
    took = {6: (300e-6, 189e-6), 5: (290e-6, 205e-6), 4: (200e-6, 247e-6), 3: (150e-6, 247e-6)}
    monkeypatch.setattr(rebalance, "halves", lambda *_: rebalance.HalfSeconds(*took[at], sum(took[at])))
    places, tried = exe.plan.placements, [at]
    for _ in range(3):
        places = rebalance.rebalanced(graph, places, lowered, seen)
        at = round(places[0].p_cpu * rows)
        tried.append(at)
    assert tried == [6, 5, 4, 4] and set(seen) == {2} and set(seen[2]) == {6, 5, 4}
    assert min(took, key=lambda k: max(took[k])) in (3, 4) and max(took[tried[-1]]) == 247e-6


@pytest.mark.parametrize("size, granule", [(14, 1), (11, 1), (48, 16), (50, 16), (3, 2), (1, 1)])
def test_shares_end_where_neither_half_is_alone(size: int, granule: int) -> None:
    """Whatever was measured, each half keeps a whole granule, and the best measured share is never left for a worse."""
    rng = np.random.default_rng(size)
    valid = [c for c in range(granule, size, granule) if c <= size - granule]
    for _ in range(50):
        cuts = rng.choice(valid, size=rng.integers(1, len(valid) + 1), replace=False) if valid else [0]
        points = {int(c): rebalance.HalfSeconds(*rng.uniform(1e-5, 1e-3, 2), 1.0) for c in cuts}
        found = rebalance._best_cut(points, size, granule)
        assert found in (valid or points)
        if len(points) == len(valid):
            assert found == min(points, key=lambda c: max(points[c].host, points[c].device))


def test_the_timeline_has_both_clocks(relay: Relay) -> None:
    exe = build_on(relay, _residual, WEIGHTS, X, _chain(0, 3, 0.5))
    graph = stages_of(_residual, WEIGHTS, X, weights=1)[1]
    assert [e["ph"] for e in timeline.events(graph, exe.lowered)] == ["M"] * len(timeline.ROWS)  # no call yet
    for _ in range(40):
        jax.block_until_ready(exe.call([X]))
    events = [e for e in timeline.events(graph, exe.lowered) if e["ph"] == "X"]
    by_name = {e["name"]: e for e in events}
    assert {n for n, *_ in timeline.PHASES} <= set(by_name)
    start, wait = by_name["operands to the host"], by_name["waits for the host"]
    team = [e for e in events if e["tid"] == 0 and e["name"] != "idle"]
    assert len(team) == len(exe.lowered.segments[0].segment.steps)  # type: ignore[union-attr]
    assert all(e["ts"] >= start["ts"] + start["dur"] - 1e3 for e in team)  # the team works after it has its operands
    assert all(
        e["ts"] + e["dur"] <= wait["ts"] + wait["dur"] + 1e3 for e in team
    )  # and before the device has left its wait


def test_the_report_tells_both_halves(on_standin: StandIn) -> None:
    graph = stages_of(_residual, WEIGHTS, X, weights=1)[1]
    fast = xcoexec.jit(_residual, plan=_chain(0, 3, 0.5)(graph), strict=True).bind(WEIGHTS)
    for _ in range(3):
        jax.block_until_ready(fast(X))
    layers = fast.report().layers
    assert layers[2].device is not None and layers[2].device > 0 and layers[1].device is None
    assert all(
        x.flops == round(g.flops / 2) and x.measured is not None for x, g in zip(layers[:3], graph.layers, strict=False)
    )
    assert "chain 1" in str(fast.report()) and layers[3].placement == "device"


def test_clock_shift() -> None:
    device = np.array([0, 100, 150, 200, 900, 950])
    assert abs(timeline.clock_shift([(device, np.array([5120, 5500, 5880]))]) - 5000) <= 20


def test_drift_is_seen_on_the_devices_clock(relay: Relay) -> None:
    exe = build_on(relay, _residual, WEIGHTS, X, Plan.uniform(0.5, "rows"))
    assert adaptive._segment_seconds(exe) is None
    for _ in range(3):
        jax.block_until_ready(exe.call([X]))
    seconds = adaptive._segment_seconds(exe)
    stamps = [site.stamps() for site in exe.lowered.sites.values()]  # type: ignore[union-attr]
    assert seconds is not None and 0 < seconds <= 1e-9 * (max(s.max() for s in stamps) - min(s.min() for s in stamps))


def test_plans_that_do_not_fit() -> None:
    graph = stages_of(_residual, WEIGHTS, X, weights=1)[1]
    good = _chain(0, 3, 0.5)(graph)
    from xcoexec.ir.validate import check_plan

    check_plan(good, graph)
    assert Plan.from_json(good.to_json()) == good
    cases = {
        "different shares": {1: {"p_cpu": 0.25}},
        "valid is a chain of split layers": {1: {"half": "host", "p_cpu": 1.0}},
    }
    for text, changes in cases.items():
        places = tuple(dataclasses.replace(p, **changes.get(i, {})) for i, p in enumerate(good.placements))
        with pytest.raises(PlanError, match=text):
            check_plan(dataclasses.replace(good, placements=places), graph)


@pytest.mark.parametrize("sync", [1e-7, 2e-5, 1e-2])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_codl_is_never_predicted_worse_than_one_half(sync: float, ratio: float) -> None:
    graph = stages_of(_residual, WEIGHTS, X, weights=1)[1]
    device = tuple(1e-4 + x.flops / 1e9 for x in graph.layers)
    costs = Costs.of_halves(tuple(t * ratio for t in device), device, sync, 50e9, 1.05, False)
    plan = STRATEGIES["codl"](graph, costs)
    moved = (X.nbytes + 80) / costs.copy_rate + sync
    assert plan.predicted is not None and plan.predicted <= min(sum(device), sum(device) * ratio + moved) * (1 + 1e-9)
    assert sync < 1e-3 or all(p.half != "split" for p in plan.placements)


def test_windows_and_merges() -> None:
    assert Window((2, 5, 3), 1, 1, 4).words() == (2, 9, 15, 3)
    assert Merge((2, 5, 3), 1, 2).words() == (2, 6, 9)
    assert Window.whole(()).words() == (1, 1, 1, 0) and Merge.whole((4, 2)).words() == (1, 8, 0)


def test_device_kernels_are_made() -> None:
    text = ptx()
    assert all(f".entry {k}(" in text for k in KERNELS)
    assert "ld.acquire.sys" in text and "st.release.sys" in text and "ld.global.v4" in text
    assert text.count("trap;") == sum(
        k.startswith(("cross", "await")) for k in KERNELS
    )  # who waits in vain stops the device


def test_the_end_waits_for_what_is_in_flight() -> None:
    relay = Relay(StandIn(delay=2e-2))
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(16, 16), array(3, 16)
    exe = build_on(relay, fn, w, x, Plan.uniform(0.5))
    (out,) = exe.call([x])
    while relay._word(abi.Relay.TAIL).value == 0:  # XLA:CPU starts it on a thread of its own
        time.sleep(1e-4)
    relay.stop()
    assert relay._word(abi.Relay.HEAD).value == 1
    assert error(np.asarray(out), oracle(fn, w, x)) < 1e-5


def test_a_machine_without_a_cpu_backend(on_standin: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    known = jax.local_devices

    def refuse(backend: str | None = None) -> list[Any]:
        if backend is None:
            return known()
        raise RuntimeError(f"Unknown backend {backend}")

    monkeypatch.setattr(jax, "local_devices", refuse)
    fast = xcoexec.jit(_residual, strict=True).bind(WEIGHTS)
    assert error(np.asarray(fast(np.asarray(X))), oracle(_residual, WEIGHTS, X)) < 1e-5
    assert "local" not in fast.plan().measured


def test_the_serving_thread_ends(relay: Relay) -> None:
    other = Relay(StandIn())
    exe = build_on(other, lambda w, x: x @ w, array(8, 8), array(2, 8), Plan.uniform(0.5))
    exe.call([array(2, 8)])
    (thread,) = other._threads
    assert thread.is_alive()
    other.stop()
    assert not thread.is_alive()
