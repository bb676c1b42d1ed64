"""Calls of several programs in a row: results of one program, wherever a plan is cut, and when they are tried."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices import null
from xcoexec.errors import PlanError
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.lowering.programs import sections
from xcoexec.planning.strategies import STRATEGIES
from xcoexec.session import contest, ways

from .standin import StandIn
from .support import array, build_on, given_back, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")
BLOCKS, WIDTH = 12, 24


def residual(w: Any, x: Any) -> Any:
    """Blocks around which a sum goes; results of the first, a middle and the last one, the input and a constant."""
    seen = []
    for up, down in w:
        y = jnp.tanh(x @ up)
        x = lax.mul(x + y @ down, 0.5)
        seen.append(x.sum(-1))
    return seen[0], {"middle": seen[BLOCKS // 2], "last": x, "given": w[0][0], "one": 1.0}, seen[-1]


def float64(w: Any, x: Any) -> Any:
    """The same in float64 NumPy."""
    seen, x = [], np.asarray(x, np.float64)
    for up, down in w:
        x = (x + np.tanh(x @ np.asarray(up, np.float64)) @ np.asarray(down, np.float64)) / 2
        seen.append(x.sum(-1))
    return seen[0], {"middle": seen[BLOCKS // 2], "last": x, "given": w[0][0], "one": 1.0}, seen[-1]


W = [(0.2 * array(WIDTH, 40, seed=2 * i), 0.2 * array(40, WIDTH, seed=2 * i + 1)) for i in range(BLOCKS)]
X = array(7, WIDTH, seed=99)


@pytest.fixture(scope="module")
def relay() -> Any:
    made = Relay(StandIn(delay=1e-4))
    yield made
    given_back(made)


def _plan(graph: LayerGraph, strategy: str, programs: int) -> Plan:
    seconds = lambda x: 2e-6 + x.flops / 5e9
    plan = STRATEGIES[strategy](graph, null.costs(graph, seconds, seconds, 1e-7, 1e12))
    return dataclasses.replace(plan, programs=programs)


@pytest.mark.parametrize("strategy", ["device", "host", "edgenn", "codl", "layer_switch"])
@pytest.mark.parametrize("programs", [2, 3, 6])
def test_results_are_those_of_one_program(relay: Relay, strategy: str, programs: int) -> None:
    exe = build_on(relay, residual, W, X, lambda g: _plan(g, strategy, programs))
    assert exe.lowered is not None
    parts = sections(exe.lowered)
    if strategy in ("device", "edgenn"):
        assert len(parts) == min(programs, 3)
        assert all(p.units and p.gives for p in parts[:-1]) and not parts[-1].gives
    units = [u for p in parts for u in p.units]
    assert not parts or units == list(exe.lowered.units)
    want = jax.tree.leaves(float64(W, X))
    one = build_on(relay, residual, W, X, lambda g: _plan(g, strategy, 1))
    for _ in range(3):
        got = jax.block_until_ready(exe.call([X]))
        for a, b, alone in zip(got, want, one.call([X]), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-5)
            assert (a.dtype, a.shape, a.weak_type) == (alone.dtype, alone.shape, alone.weak_type)  # type: ignore[attr-defined]


def test_each_program_takes_what_it_reads_alone(relay: Relay) -> None:
    exe = build_on(relay, residual, W, X, lambda g: _plan(g, "device", 3))
    assert exe.lowered is not None
    parts = sections(exe.lowered)
    weights = [v for p in parts for v in p.consts if v.shape in {(WIDTH, 40), (40, WIDTH)}]
    assert len(weights) in (2 * BLOCKS, 2 * BLOCKS + 1) and set(weights) <= set(exe.lowered.consts)
    assert max(len(p.consts) for p in parts) < len(exe.lowered.consts)


@pytest.mark.parametrize("programs", [1, 2, 3])
@pytest.mark.parametrize("strategy", ["device", "host", "codl"])
def test_constants_inside_of_programs(relay: Relay, strategy: str, programs: int) -> None:
    """The smallest ones first, as many as may be: results are the same, and calls hand over the others alone."""
    plan = lambda g: _plan(g, strategy, programs)
    outside = build_on(relay, residual, W, X, plan)
    assert outside.lowered is not None and not outside.lowered.inside
    sizes = sorted(v.nbytes for v in outside.lowered.consts)
    want = [np.asarray(v) for v in outside.call([X])]
    for fit in {0, len(sizes) // 2, len(sizes)}:
        exe = build_on(relay, residual, W, X, plan, inside=sum(sizes[:fit]))
        assert exe.lowered is not None and len(exe.lowered.inside) == fit
        assert len(exe.lowered.consts) == len(sizes) - fit
        assert sorted(v.nbytes for v in exe.lowered.inside) == sizes[:fit]
        parts = sections(exe.lowered)
        assert not set(exe.lowered.inside) & {v for p in parts for v in (*p.reads, *p.consts, *p.gives)}
        assert exe.compiled is not None
        exe.compiled([jax.ShapeDtypeStruct(X.shape, X.dtype)])
        for _ in range(2):
            for a, b in zip(jax.block_until_ready(exe.call([X])), want, strict=True):
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-6)


def test_on_the_callers_own_cores_none_are_inside() -> None:
    exe = build_on(None, residual, W, X, lambda g: _plan(g, "device", 1), inside=1 << 20)
    assert exe.lowered is not None and exe.lowered.consts and not exe.lowered.inside


def test_they_are_compiled_before_the_first_call(relay: Relay) -> None:
    """Of shapes and types alone, and no call compiles again."""
    exe = build_on(relay, residual, W, X, lambda g: _plan(g, "device", 3))
    assert exe.compiled is not None
    exe.compiled([jax.ShapeDtypeStruct(X.shape, X.dtype)])
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("jax._src.compiler.compile_or_get_cached", lambda *_, **__: pytest.fail("compiled in a call"))
        jax.block_until_ready(exe.call([X]))


def test_no_host_call_is_cut(relay: Relay) -> None:
    """Not between its start and where its result is put together, whatever lies between."""
    graph = stages_of(residual, W, X, weights=1)[1]
    half = lambda i, x: "split" if i % 3 == 1 and "channel" in x.dims else "device"
    places = tuple(
        Placement(x.name, half(x.index, x), 0.5 if half(x.index, x) == "split" else 0.0) for x in graph.layers
    )
    assert sum(p.half == "split" for p in places) >= 3
    exe = build_on(relay, residual, W, X, lambda g: Plan("test", places, g.key, programs=3))
    assert exe.lowered is not None
    parts = sections(exe.lowered)
    assert len(parts) > 1
    for part in parts:
        started = {j.parts[1] for u in part.units for j in getattr(u, "joins", ())}
        ended = {v for u in part.units for op in getattr(u, "ops", ()) for v in op.outs}
        assert started <= ended


def test_on_the_callers_own_cores_a_call_is_one_program() -> None:
    exe = build_on(None, residual, W, X, lambda g: _plan(g, "host", 3))
    assert exe.lowered is not None and sections(exe.lowered) == ()


@pytest.mark.parametrize("wrong", [0, -1, 65, 1.5, True, "2"])
def test_plans_say_of_how_many(wrong: Any) -> None:
    graph = stages_of(residual, W, X, weights=1)[1]
    plan = _plan(graph, "device", 4)
    assert Plan.from_json(plan.to_json()) == plan and Plan.from_json(plan.to_json()).programs == 4
    unsaid = ("programs", "libraries", "singly")
    old = {k: v for k, v in json.loads(plan.to_json()).items() if k not in unsaid} | {"version": 4}
    assert Plan.from_json(json.dumps(old)) == dataclasses.replace(plan, programs=1)
    with pytest.raises(PlanError, match="programs"):
        dataclasses.replace(plan, programs=wrong).to_json()


@pytest.mark.parametrize(
    ("takes", "wins"),
    [
        ({"device, in several programs": 0.9}, "device, in several programs"),
        ({"device, in several programs": 0.96}, "jit"),  # no more than a change of luck
        ({"host": 0.7, "device, in several programs": 0.9}, "host"),
        ({"host": 0.9, "device, in several programs": 0.8}, "device, in several programs"),
    ],
)
def test_what_is_measured_wins(takes: dict[str, float], wins: str) -> None:
    class Measured:
        """As much of a planning as `best_of` reads."""

        class machine:
            apart = True

        class all_device:
            lowered = None

    seconds = {"jit": 1.0, "host": 3.0, "device": 0.97, **takes}
    assert contest.best_of(Measured, seconds) == wins  # type: ignore[arg-type]


@pytest.mark.parametrize(("device", "tried"), [(0.97, "both"), (0.92, "device")])
def test_a_plan_of_both_halves_is_tried_so_where_the_device_alone_would_not_win(
    monkeypatch: pytest.MonkeyPatch, device: float, tried: str
) -> None:
    """The folded graph has to be clearly faster to be taken."""
    graph = stages_of(residual, W, X, weights=1)[1]
    s = SimpleNamespace(
        machine=SimpleNamespace(apart=True),
        problem=SimpleNamespace(step=None, shards=None),
        graph=SimpleNamespace(layers=graph.layers * 9),
    )
    plans = {name: SimpleNamespace(plan=_plan(graph, "device", 1)) for name in ("both", "device")}
    candidates = {**plans, "jit": SimpleNamespace(plan=dataclasses.replace(plans["device"].plan, engine="jit"))}
    monkeypatch.setattr(ways, "running", lambda s, name, plan: plan.programs)
    seconds = {"jit": 1.1, "both": 0.98, "device": device}
    assert ways.in_programs(s, candidates, seconds) == {f"{tried}{ways.IN_PROGRAMS}": 3}  # type: ignore[arg-type]
