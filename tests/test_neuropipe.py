"""Cutting a network into pipeline stages: the paper's model, the exact cut against brute force, and parts that compute
what the whole does.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcoexec
from xcoexec import models
from xcoexec.codegen.program import Unsupported
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.ir.costs import Costs
from xcoexec.planning.spans import Span
from xcoexec.streams import cuts as streams_cuts
from xcoexec.streams import fastest_way as trials
from xcoexec.streams.compiled_spans import begin, compile_span, finish
from xcoexec.streams.cuts import leaves_room
from xcoexec.streams.fastest_way import Trial
from xcoexec.streams.neuropipe import (
    OTHER,
    Around,
    Cut,
    best,
    best_rear,
    busiest,
    neuropipe,
    two_stages,
)

from .oracle import oracles, worst
from .standin import StandIn
from .support import array

pytestmark = pytest.mark.usefixtures("quick_xla")


def _period(
    stages: Sequence[float], halves: Sequence[str], around: Around, costs: Costs, cores: int, threads: int
) -> float:
    cut = Cut(tuple((h, i, i + 1) for i, h in enumerate(halves)), tuple(stages))
    return busiest(*cut.busy(costs.shared_cores), around, cores, threads)


def _brute_force(
    costs: Costs, crossing: list[int], around: Around, cores: int, threads: int, most: int, each: dict[str, float]
) -> float:
    n, found = len(costs.device), []
    for count in range(1, most + 1):
        for cuts in itertools.combinations(range(1, n), count - 1):
            ends = [0, *cuts, n]
            for first in ("host", "device"):
                halves = [first if i % 2 == 0 else OTHER[first] for i in range(count)]
                seconds = []
                for half, a, b in zip(halves, ends, ends[1:], strict=False):
                    layers = (costs.host if half == "host" else costs.device)[a:b]
                    if any(t is None for t in layers):
                        break
                    moved = (
                        0.0
                        if costs.shared_cores or (a == 0 and half == "device")
                        else costs.sync + crossing[a] / costs.copy_rate
                    )
                    seconds.append(sum(t or 0.0 for t in layers) + moved + each[half])
                else:
                    found.append(_period(seconds, halves, around, costs, cores, threads))
    return min(found)


times = st.floats(0.1, 5.0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.one_of(st.none(), times), times, st.integers(0, 20)), min_size=1, max_size=6),
    st.tuples(st.floats(0, 3), st.floats(0, 3), st.integers(1, 3)),
    st.integers(1, 3),
    st.booleans(),
    st.tuples(st.floats(0, 2), st.floats(0, 2)),
)
def test_the_exact_cut_is_the_best_of_all(
    layers: list[tuple[float | None, float, int]],
    given_around: tuple[float, float, int],
    most: int,
    shared: bool,
    beside: tuple[float, float],
) -> None:
    host, device, nbytes = (tuple(column) for column in zip(*layers, strict=True))
    costs = Costs.of_halves(host, device, 0.05, 10.0, 1.0, shared)
    crossing, around = [*nbytes, 1], Around(*given_around)
    each = {"host": beside[0], "device": beside[1]}
    cut = best(costs, crossing, around, 4, 3, most, each)
    assert cut.period == pytest.approx(_brute_force(costs, crossing, around, 4, 3, most, each))
    assert cut.period == pytest.approx(_period(cut.seconds, [h for h, _, _ in cut.stages], around, costs, 4, 3))
    assert cut.stages[0][1] == 0 and cut.stages[-1][2] == len(layers)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(times, times), min_size=2, max_size=12), st.floats(0, 10))
def test_the_exact_cut_is_never_worse_than_the_papers(layers: list[tuple[float, float]], operations: float) -> None:
    """Also where the CPU stage does the host operations itself, as the paper's does."""
    host, device = (tuple(column) for column in zip(*layers, strict=True))
    costs, crossing = Costs.of_halves(host, device, 0.0, 1e9, 1.0, False), [0] * (len(layers) + 1)
    exhaustive = min(max(two_stages(costs, crossing, k, operations)) for k in range(len(layers) + 1))
    assert max(two_stages(costs, crossing, best_rear(costs, crossing, operations), operations)) == exhaustive
    counts = host  # as many operations as seconds on the CPU
    for printed in (False, True):
        k = neuropipe(costs, counts, operations, printed)
        assert max(two_stages(costs, crossing, k, operations)) >= exhaustive - 1e-9
        stages, halves = ([sum(device[:k]), sum(host[k:])], ["device", "host"])
        theirs = _period(stages, halves, Around(operations), costs, 64, 1)
        assert best(costs, crossing, Around(operations), 64, 1).period <= theirs + 1e-9


def _net(w: Any, x: Any) -> Any:
    y = jax.nn.relu(jax.lax.conv(x, w[0], (1, 1), "SAME"))
    z = jax.lax.conv(y, w[1], (1, 1), "SAME") + y  # the skip crosses a cut
    return {"mean": jax.nn.relu(z).mean((2, 3)) @ w[2], "shape": z}


WEIGHTS = [array(8, 3, 3, 3), array(8, 8, 3, 3), array(8, 5)]


def every_cut_is_right(fast: Any, weights: Any, items: Sequence[Any]) -> None:
    """What a stream gives for items of one shape at every cut into two stages and some others, against float64."""
    want = [oracles(_net, weights, x) for x in items]
    n = len(fast.graph(items[0]).layers)
    assert n >= 4
    cuts = [(("device", 0, k), ("host", k, n)) for k in range(1, n)] + [
        (("host", 0, k), ("device", k, n)) for k in range(1, n)
    ]
    cuts += [(("host", 0, 1), ("device", 1, n - 1), ("host", n - 1, n)), (("host", 0, n),), (("device", 0, n),)]
    for stages in cuts:
        pipe = xcoexec.pipeline(fast, cut=Cut(stages))
        assert all(worst(got, w) < 1e-5 for got, w in zip(pipe(items), want, strict=True))
        made = next(iter(pipe.networks.known.values())).chosen
        assert [p.half for p in made.parts] == [h for h, _, _ in stages]
        assert all(
            p.executable.lowered is not None and p.executable.lowered.segments for p in made.parts if p.half == "host"
        )  # kernels ran it


def test_every_cut_computes_what_the_whole_does() -> None:
    every_cut_is_right(xcoexec.jit(_net, strategy="host", strict=True).bind(WEIGHTS), WEIGHTS, [array(1, 3, 9, 11)] * 3)


@pytest.mark.parametrize("half", ["device", "host", "both"])
def test_parts_beside_a_device_of_its_own(half: str) -> None:
    """Every part of a network, on a stand-in device: its values come over, whichever half the ones before were on."""
    relay = Relay(StandIn(delay=2e-4))
    fast, x = xcoexec.jit(_net, strategy="host", strict=True).bind(WEIGHTS), array(1, 3, 9, 11)
    jax.block_until_ready(fast(x))
    n = len(fast.graph().layers)
    s = fast.session()
    s.planner.machine = dataclasses.replace(s.machine, relay=relay)
    n = len(s.graph.layers)
    s.planner.costs = Costs.of_halves((1e-3,) * n, (1e-3,) * n, 1e-6, 1e10, 1.0, False)
    made = []
    for k in range(n):
        try:
            made.append(compile_span(s, Span(k, k + 1), half if k % 2 else "device"))
        except Unsupported:
            made.append(compile_span(s, Span(k, k + 1), "device"))
    assert any(p.half == half for p in made)
    env: Any = begin(s, [x])
    for p in made:
        env = p(env)
    assert worst(finish(s, env), oracles(_net, WEIGHTS, x)) < 1e-5
    if half != "device":
        assert any(p.executable.lowered is not None and p.executable.lowered.segments for p in made)


def test_cuts_that_a_stream_tries_beside_a_device_of_its_own() -> None:
    """The device alone and cuts by measured seconds, the second with what stages take beside their layers: all compute
    the same.
    """
    fast, x = xcoexec.jit(_net, strategy="host", strict=True).bind(WEIGHTS), array(1, 3, 9, 11)
    jax.block_until_ready(fast(x))
    n = len(fast.graph().layers)
    s = fast.session()
    s.planner.machine = dataclasses.replace(s.machine, relay=Relay(StandIn(delay=2e-4)))
    s.planner.costs = Costs.of_halves((1e-3,) * n, (1e-3,) * n, 1e-6, 1e10, 1.0, False)
    ways = list(streams_cuts._best_cuts(s, x, Around(1e-4, 0.0, 2)))
    assert 2 <= len(ways) <= 3 and ways[-1].cut == dataclasses.replace(ways[-1].cut, stages=(("device", 0, n),))
    assert {h for h, _, _ in ways[0].cut.stages} == {"host", "device"}  # both at work by the seconds it was given
    for way in ways:
        value: Any = x
        assert way.count == len(way.parts) == len(way.cut.stages)
        for k in range(way.count):
            value = way.run(k, value)
        assert worst(value, oracles(_net, WEIGHTS, x)) < 1e-5
        assert len(way.cut.seconds) == len(way.cut.stages) and all(t > 0 for t in way.cut.seconds)
        assert way.period(Around(0.5)) >= 0.5 and way.period(Around(1e-4, 0.0, 2)) == pytest.approx(way.cut.period)


def test_a_device_without_memory_for_all_ways_gets_those_it_has_room_for() -> None:
    def ways() -> Iterator[Any]:
        yield 1
        yield 2
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64 bytes.\nmore")

    with pytest.warns(
        xcoexec.CoexecWarning, match="not every way .* the device refused one: RESOURCE_EXHAUSTED: .* 64 bytes.$"
    ):
        assert list(streams_cuts._there_is_room_for(ways())) == [1, 2]


def test_shapes_may_change_within_a_stream() -> None:
    fast = xcoexec.jit(_net, strategy="host").bind(WEIGHTS)
    n = len(fast.graph(array(1, 3, 9, 11)).layers)
    pipe = xcoexec.pipeline(fast, cut=Cut((("device", 0, 2), ("host", 2, n))))
    items = [array(1, 3, 9, 11), array(1, 3, 5, 5), array(2, 3, 5, 5), array(1, 3, 9, 11)]
    for x, got in zip(items, pipe(items), strict=True):
        np.testing.assert_allclose(got["mean"], _net(WEIGHTS, x)["mean"], rtol=2e-4, atol=2e-4)
    assert len(pipe.cuts) == 3


def test_parts_on_the_cpu_are_the_cpus_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What power modes are given: beside a device of its own the seconds of a cut network go to the halves of its
    parts.
    """
    fast = xcoexec.jit(_net, strategy="host").bind(WEIGHTS)
    n = len(fast.graph(array(1, 3, 8, 8)).layers)
    pipe = xcoexec.pipeline(fast, preprocess=lambda x: x, cut=Cut((("device", 0, 2), ("host", 2, n))))
    with pipe([array(1, 3, 8, 8)] * 5) as stream:
        for _ in stream:
            pass
        assert pipe.networks.halves() == {"network 1": ("device",), "network 2": ("host",)}
        took = dict(preprocess=1.0, **{"network 1": 2.0, "network 2": 4.0})
        monkeypatch.setattr(type(stream), "stats", lambda _: types.SimpleNamespace(stages=took))
        assert stream._halves() == {"host": 5.0, "device": 2.0}


@pytest.mark.parametrize("way", ["neuropipe", "neuropipe, printed", "auto", "none"])
def test_ways_to_cut(way: str) -> None:
    fast = xcoexec.jit(_net, strategy="host").bind(WEIGHTS)
    pipe = xcoexec.pipeline(fast, preprocess=lambda i: array(1, 3, 8, 8, seed=i), workers=3, cut=way)
    for i, got in enumerate(pipe(range(6))):
        np.testing.assert_allclose(got["mean"], _net(WEIGHTS, array(1, 3, 8, 8, seed=i))["mean"], rtol=2e-4, atol=2e-4)
    assert len(pipe.cuts) == 1 and (pipe.cuts[0] is None) == (
        way in ("auto", "none")
    )  # one CPU: nothing to gain from a cut


def test_several_workers_keep_the_order_and_overlap() -> None:
    """An item of two waits until the one behind it is done: another worker must do that one meanwhile."""
    done = [threading.Event() for _ in range(24)]

    def prepared(i: int) -> int:
        assert i % 2 or done[i + 1].wait(120)
        done[i].set()
        return i

    assert list(xcoexec.pipeline(lambda x: x, preprocess=prepared, workers=4)(range(24))) == list(range(24))


def test_bad_cuts_are_named() -> None:
    fast = xcoexec.jit(_net, strategy="host").bind(WEIGHTS)
    with pytest.raises(ValueError, match="got cut='somewhere'; valid is 'auto', 'none', 'neuropipe'"):
        xcoexec.pipeline(fast, cut="somewhere")
    with pytest.raises(TypeError, match=r"got cut='auto' with function; valid is what xcoexec\.jit"):
        xcoexec.pipeline(lambda x: x, cut="auto")
    with pytest.raises(ValueError, match="valid are stages"):
        next(xcoexec.pipeline(fast, cut=Cut((("device", 0, 1),)))([array(1, 3, 8, 8)]))
    with pytest.raises(ValueError, match="got workers=0; valid is an integer from 1 on"):
        xcoexec.pipeline(fast, workers=0)
    with pytest.raises(ValueError, match="not made by its layers"):
        next(
            xcoexec.pipeline(
                xcoexec.jit(lambda w, x: (jnp.tanh(x @ w), 3.0), strategy="host").bind(array(4, 4)), cut="neuropipe"
            )([array(2, 4)])
        )


def test_cores_are_left_where_preparing_needs_them() -> None:
    """Two cores: beside a short network, not beside one that takes ten times as long; of sixteen one is always left."""
    assert leaves_room(Around(2.6e-3), 2.0e-3, 2, 2) and not leaves_room(Around(2.6e-3), 18e-3, 2, 2)
    assert leaves_room(Around(2.6e-3), 18e-3, 16, 16) and leaves_room(Around(4e-3, 0.0, 4), 1e-3, 14, 16)


class _Clock:
    """Time that passes while items of a way are computed: so many seconds each, but none for those that a turn finds
    waiting.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now, self.given = 0.0, []
        monkeypatch.setattr(trials.time, "perf_counter", lambda: self.now)

    def stream(self, trial: Trial[float], items: int) -> list[float]:
        for _ in range(items):
            turn = trial.next()
            self.now += 1e-9 if turn.given in range(1, trials.SETTLED) else turn.way
            trial.left(turn)
            self.given.append(turn.way)
        return self.given


@pytest.mark.parametrize(
    ("ways", "chosen"),
    [((1.0, 1.2), 1.0), ((1.0, 0.99), 1.0), ((1.0, 0.9), 0.9), ((1.0, 0.8, 0.7, 0.9), 0.7), ((2.0, 0.9, 1.0), 0.9)],
)
def test_a_trial_keeps_the_way_that_items_leave_faster(
    ways: tuple[float, ...], chosen: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items that a way finds waiting (they are quick) do not count; a way that is hardly faster than the first one is
    not taken.
    """
    trial, turn = Trial(ways, 1.0), trials.SETTLED + trials.FEWEST
    given = _Clock(monkeypatch).stream(trial, 10 * turn)
    assert trial.decided and trial.chosen == chosen and set(given[2 * len(ways) * turn :]) == {chosen}
    near = [w for w in ways if w <= trials.WORTH * min(ways)]
    tried = [given[i] for i in range(0, (len(ways) + len(near)) * turn, turn)]
    assert tried == [*ways, *near]  # all once, those near the fastest once more


def test_a_trial_survives_streams_that_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    trial, clock = Trial((1.0, 0.5), 1.0), _Clock(monkeypatch)
    lost = [trial.next() for _ in range(5)]  # in flight when their stream was closed
    trial.again()
    for turn in lost:
        trial.left(turn)  # a thread that was still at work
    clock.stream(trial, 8 * (trials.SETTLED + trials.FEWEST))
    assert trial.decided and trial.chosen == 0.5


def test_one_way_is_no_trial() -> None:
    trial = Trial((3.0,), 1.0)
    assert trial.decided and trial.next().way == 3.0


def test_predicted_periods_of_a_stream() -> None:
    """One stage on all cores beside a function that takes longer: the function's seconds; the network's own without
    it.
    """
    fast = xcoexec.jit(models.get("lenet").module.apply).bind(models.get("lenet").variables())
    pipe = xcoexec.pipeline(fast)
    assert pipe.periods() == () and len(list(pipe([models.get("lenet").example()] * 3))) == 3
    (own,) = pipe.periods()
    assert own > 0 and pipe.periods(Around(0.5))[0] >= 0.5
