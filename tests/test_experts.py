"""Experts on both halves: the program with caches computes the same wherever matrices lie, and while they move."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec import models
from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices import null
from xcoexec.frontend.experts import regions, with_caches
from xcoexec.frontend.graph import build_graph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.words import DEVICE, HOST
from xcoexec.lowering.executable import Executable, executable
from xcoexec.lowering.lower import lower
from xcoexec.planning.memory import usage
from xcoexec.planning.strategies.capacity import capacity
from xcoexec.session import experts
from xcoexec.session.problem import Problem

from .oracle import error
from .standin import StandIn
from .support import array, stages_of, until

pytestmark = pytest.mark.usefixtures("quick_xla")

E, K, N = 12, 160, 520  # a matrix of int8 has 83,200 bytes
INDEX = jnp.asarray([[1, 5], [0, 0], [4, 11]])
OUTSIDE = jnp.asarray([1, E, -E - 1, 2])


def _tables(dtype: str = "float32") -> list[jax.Array]:
    """Matrices to go up and down."""
    up, down = array(E, K, N, low=-9, high=9), array(E, N, K, seed=1, low=-9, high=9)
    return [up.astype(dtype), down.astype(dtype)]


def _mixture(w: Any, x: Any, i: Any) -> Any:
    """Two products for each choice, and the mean of a token's choices."""
    y = jnp.tanh(jnp.einsum("td,tkdf->tkf", x, w[0][i].astype(x.dtype)) / 99)
    return jnp.einsum("tkf,tkfd->tkd", y, w[1][i].astype(x.dtype)).mean(1)


def _taken(mode: str) -> Callable[..., Any]:
    return lambda w, x, i: jnp.einsum("kd,kdf->kf", x, jnp.take(w[0], i, axis=0, mode=mode).astype(x.dtype)) * 2


def _scaled(w: Any, x: Any, i: Any) -> Any:
    """Whole numbers with a scale for each expert's column."""
    return jnp.einsum("kd,kdf->kf", x, w[0][i].astype(x.dtype)) * w[1][i]


def _grouped(w: Any, x: Any, sizes: Any) -> Any:
    """Rows that are sorted by their experts, the tables cast before that."""
    return jax.lax.ragged_dot(x, w[0].astype(x.dtype), sizes) / 99


def _fused(w: Any, x: Any, i: Any) -> Any:
    """Gate and up in one table."""
    gate, up = jnp.split(jnp.einsum("kd,kdf->kf", x, w[0][i]), 2, axis=-1)
    return (jax.nn.silu(gate / 99) * up).sum(0)


STYLES: dict[str, tuple[Callable[..., Any], Any, tuple[int, ...], Any]] = {
    **{f"mixture {d}": (_mixture, _tables(d), (3, K), INDEX) for d in ("float32", "bfloat16", "float16", "int8")},
    **{f"outside, {m}": (_taken(m), _tables("bfloat16"), (4, K), OUTSIDE) for m in ("fill", "clip")},
    "scaled": (_scaled, [_tables("int8")[0], array(E, N, seed=2)], (2, K), INDEX[0]),
    "grouped": (_grouped, _tables("bfloat16"), (5, K), jnp.zeros(E, jnp.int32).at[jnp.asarray([3, 3, 8, 0])].add(1)),
    "fused": (_fused, _tables(), (2, K), INDEX[0]),
}


def _wide(fn: Any, w: Any, x: Any, i: Any) -> np.ndarray:
    """The float64 result by XLA."""
    with jax.enable_x64():
        return np.asarray(fn([np.asarray(m, np.float64) for m in w], np.asarray(x, np.float64), i))


def _problem(fn: Any, w: Any, *args: Any) -> Problem:
    folded, graph = stages_of(fn, w, *args, weights=1)
    tree = jax.tree_util.tree_structure(0)
    return Problem(folded, graph, tree, jax.tree_util.tree_leaves(w), args, (), lambda leaves: leaves)


def _bound(problem: Problem, slots: int) -> Problem:
    """The problem beside a device that holds so many experts of each layer."""
    found = regions(problem.folded)
    tables = {t for r in found for t in r.tables}
    places = [Placement(x.name, HOST if tables & set(x.ins) else DEVICE, 0.0) for x in problem.graph.layers]
    room = (slots + 0.5) * sum(r.nbytes for r in found) + max(r.nbytes for r in found)
    return problem.with_experts(int(usage(problem.graph, places).total + room))


def _executable(problem: Problem, relay: Relay | None = None) -> Executable:
    places = tuple(Placement(x.name, x.half or DEVICE, float(x.half == HOST)) for x in problem.graph.layers)
    lowered = lower(problem.graph, problem.folded, places, lambda p: host.build(p, 2), relay)
    assert lowered.segments, "the host half computes with the tables"
    plan = Plan("capacity", places, problem.graph.key)
    return executable(plan, lowered, problem.weights, (), caller=problem.caller)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("slots", [1, 5, E - 1])
def test_the_same_wherever_matrices_lie(style: str, slots: int) -> None:
    fn, w, shape, index = STYLES[style]
    x = array(*shape, seed=3)
    problem = _problem(fn, w, x, index)
    wanted = _wide(fn, w, x, index)
    rng = np.random.default_rng(slots)
    for _ in range(3):
        order = rng.permutation(E)[:slots]
        folded, banks = with_caches(problem.folded, regions(problem.folded), slots, lambda i, order=order: order)
        assert len(banks) == 1 and all(c.shape[0] == slots for c in banks[0].caches.values())
        graph = build_graph(folded)
        segment = host.build(graph.program, 2)  # both copies by kernels
        assert "gemv" in {name for names in segment.algorithms for name in names.split("+")}
        known = folded.constants(jax.tree_util.tree_leaves(w))
        places = [Placement(g.name, HOST, 1.0) for g in graph.layers]
        lowered = lower(graph, folded, places, lambda p: host.build(p, 2))
        out, seen = executable(Plan("host", tuple(places), graph.key), lowered, jax.tree_util.tree_leaves(w), ()).call(
            [x, index]
        )
        assert np.array_equal(np.sort(known[banks[0].where])[-slots:], np.arange(slots))
        if style != "grouped":
            assert np.array_equal(seen, np.clip(np.where(index < 0, index + E, index), 0, E - 1).ravel())
        inside = ~np.isnan(np.asarray(out))
        assert np.array_equal(inside, ~np.isnan(wanted)) and inside.any()
        assert error(np.asarray(out)[inside], wanted[inside]) < 5e-6


def test_a_decoder_of_experts_is_divided() -> None:
    problem = _bound(_decoder(), 3)
    assert [b.slots for b in problem.banks] == [3, 3] and all(len(b.caches) == 3 for b in problem.banks)
    halves = [x.half for x in problem.graph.layers]
    assert halves.count(HOST) == 6, "gate, up and down of two layers"
    runs = [h for h, before in zip(halves, ["", *halves], strict=False) if h == HOST != before]
    assert len(runs) == 2, "a layer's three products are one crossing"
    merges = [x for x in problem.graph.layers if x.half == DEVICE and any(op.prim == "select_n" for op in x.ops)]
    assert len(merges) >= 2, "the device half's last product merges"


def _decoder() -> Problem:
    routing = models.moe.Routing(experts=E, chosen=2, hidden=256)
    module = models.decoder.Decoder(64, 128, 2, 4, 2, 256, 32, routing=routing)
    step = models.decoder.Step(jnp.full((1, 1), 7, jnp.int32), module.empty_cache(1), jnp.int32(0))
    weights = jax.jit(module.init)(jax.random.key(0), step)
    return _problem(module.apply, weights, step)


def test_what_is_left_alone() -> None:
    x, index, w = array(3, K, seed=3), INDEX, _tables()
    whole = _problem(lambda w, x, i: (w[0][i], _mixture(w, x, i)), w, x, index)
    assert len(regions(whole.folded)) == 1, "the table that is not a result"
    assert not regions(_problem(lambda w, x, i: w[0][i].sum(1), w, x, index).folded)
    assert not regions(_problem(lambda w, x, i: jnp.einsum("kd,kdf->f", x[:2], w[0][i]), w, x, index[0]).folded)
    problem = _problem(_mixture, w, x, index)
    assert problem.with_experts(1000) is problem, "no room"
    assert problem.with_experts(1 << 30) is problem, "room for all"


def test_the_plan_leaves_tables_to_the_host_half_and_caches_to_the_device() -> None:
    problem = _bound(_problem(_mixture, _tables(), array(3, K, seed=3), INDEX), 4)
    room = usage(problem.graph, [Placement(x.name, x.half or DEVICE, 0.0) for x in problem.graph.layers]).total
    costs = null.costs(problem.graph, 1e-3, 1e-5)
    seconds = {**costs.seconds, "host": tuple(None if x.host_error else 1e-3 for x in problem.graph.layers)}
    plan = capacity(problem.graph, dataclasses.replace(costs, seconds=seconds, capacity=room))
    for x, place in zip(problem.graph.layers, plan.placements, strict=True):
        assert place.half == (x.half or DEVICE) and not place.streamed


def _skewed(count: int, seed: int, favourites: np.ndarray) -> list[jax.Array]:
    """Choices of which nine of ten are of a few."""
    rng = np.random.default_rng(seed)
    often = rng.choice(favourites, (count, 3, 2))
    return [jnp.asarray(x) for x in np.where(rng.random(often.shape) < 0.9, often, rng.integers(0, E, often.shape))]


@pytest.mark.parametrize("apart", [False, True], ids=["one device", "stand-in"])
def test_what_calls_choose_comes_to_the_device(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experts, "EVERY", 1)
    w, x = _tables(), array(3, K, seed=3)
    problem = _bound(_problem(_mixture, w, x, INDEX), 3)
    exe = _executable(problem, Relay(StandIn()) if apart else None)
    caches, favourites = exe.caller, np.array([6, 8, 9])
    assert isinstance(caches, experts.Caches) and problem.uses is not None
    exe.call([x, INDEX])
    assert caches.resident().choices == 0, "calls of a planning are not counted"
    problem.uses.counting = True
    choices, wanted = _skewed(40, 0, favourites), {}

    def rounds() -> bool:
        for n, index in enumerate(choices):
            (out,) = exe.call([x, index])
            if n not in wanted:
                wanted[n] = _wide(_mixture, w, x, index)
            assert error(np.asarray(out), wanted[n]) < 5e-6
        return caches.moved >= 3

    until(rounds)
    until(lambda: rounds() and caches.resident().hits > 0.7 * caches.resident().choices)
    assert set(caches._there[0]) == set(favourites)
    assert "3 of 12 lie on the device" in caches.resident().text
    later = _executable(problem)
    assert isinstance(later.caller, experts.Caches)
    assert set(later.caller._there[0]) == set(favourites), "a new executable begins with what calls have chosen"


def test_matrices_move_under_calls_of_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round exchanges, whatever was chosen; every call's result is right."""
    for name, value in (("EVERY", 1), ("CALLS", 1), ("OFTEN", 0.0), ("MORE", -2.0)):
        monkeypatch.setattr(experts, name, value)
    w, x = _tables(), array(3, K, seed=3)
    problem = _bound(_problem(_mixture, w, x, INDEX), 2)
    exe = _executable(problem, Relay(StandIn(1e-4)))
    assert isinstance(exe.caller, experts.Caches) and problem.uses is not None
    problem.uses.counting = True
    choices = _skewed(12, 1, np.arange(E))
    wanted = [_wide(_mixture, w, x, i) for i in choices]
    wrong: list[float] = []

    def calls() -> None:
        for index, right in [*zip(choices, wanted, strict=True)] * 5:
            (out,) = exe.call([x, index])
            wrong.append(error(np.asarray(out), right))

    threads = [threading.Thread(target=calls) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wrong) == 180 and max(wrong) < 5e-6
    until(lambda: exe.call([x, choices[0]]) and exe.caller.moved > 3)


def test_a_copy_of_a_cache_on_the_host_half_stays() -> None:
    problem = _bound(_problem(_mixture, _tables(), array(3, K, seed=3), INDEX), 3)
    places = tuple(Placement(x.name, HOST, 1.0) for x in problem.graph.layers)
    lowered = lower(problem.graph, problem.folded, places, lambda p: host.build(p, 2))
    exe = executable(Plan("host", places, problem.graph.key), lowered, problem.weights, (), caller=problem.caller)
    assert isinstance(exe.caller, experts.Caches) and exe.caller._fixed
