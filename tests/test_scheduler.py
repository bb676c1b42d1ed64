"""Tasks with deadlines: the simulation against a naive one, EDF order, policies' bounds, and the real scheduler in
every state.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcoexec
from xcoexec import SkippedError
from xcoexec.streams import admits, model, task
from xcoexec.streams.block_model import Twin
from xcoexec.streams.edf import Core, Pace
from xcoexec.streams.jobs import BOTH, Accuracy, Block, Job, Task, Way, utilisation
from xcoexec.streams.policies import PAPER, POLICIES
from xcoexec.streams.virtual import releases, simulate

from .oracle import oracles, worst
from .support import array, until

pytestmark = pytest.mark.usefixtures("quick_xla", "short_collections")

# -- what decides ---------------------------------------------------------------------------------------

ways = st.tuples(
    st.integers(1, 5),
    st.integers(1, 5),
    st.one_of(st.none(), st.integers(1, 5)),
    st.one_of(st.none(), st.integers(1, 3)),
)


def _block(i: int, w: tuple[int, int, int | None, int | None]) -> Block:
    device, host, twin, both = w
    found = [Way("device", device), Way("host", host)]
    found += [Way("host" if host >= device else "device", twin, True)] if twin else []
    found += [Way(BOTH, both)] if both else []
    return Block(f"b{i}", tuple(found), 1.0)


def _task(name: str, blocks: list[Any], deadline: int, period: int, loss: float = 0.0) -> Task:
    of = {frozenset(): 0.9, **{frozenset({i}): 0.9 - loss for i in range(len(blocks))}}
    return Task(name, tuple(_block(i, w) for i, w in enumerate(blocks)), deadline, period, Accuracy(of), 0.88)


task_sets = st.lists(
    st.tuples(
        st.lists(ways, min_size=1, max_size=3),
        st.integers(3, 20),
        st.integers(3, 12),
        st.sampled_from((0.0, 0.011, 0.05)),
    ),
    min_size=1,
    max_size=3,
).map(lambda rows: [_task(f"t{i}", *row) for i, row in enumerate(rows)])


def _naive(jobs: list[Job], policy: str, until: int) -> dict[tuple[str, int], tuple[float | None, bool]]:
    """Time in steps of one: what ends, ends; what comes, comes; who is late is dropped; then the policy is asked."""
    core, running = Core(POLICIES[policy]), {}
    for now in range(until):
        for start in [s for s in running if running[s] == now]:
            del running[start]
            core.finish(start, now)
        for job in jobs:
            if job.release == now:
                core.release(job)
        for start in core.decide(now)[0]:
            running[start] = round(now + start.job.moving(start.way) + start.way.seconds)
    return {(j.task.name, j.number): (j.end, j.skipped) for j in jobs}


@settings(max_examples=80, deadline=None)
@given(task_sets, st.sampled_from(list(POLICIES)))
def test_the_simulation_is_what_counting_ticks_gives(tasks: list[Task], policy: str) -> None:
    found = simulate(releases(tasks, 40), policy)
    want = _naive(releases(tasks, 40), policy, 200)
    assert {(j.task.name, j.number): (j.end, j.skipped) for j in found.jobs} == want
    assert all((j.end is not None) != j.skipped for j in found.jobs)  # every job has one end


@settings(max_examples=60, deadline=None)
@given(task_sets, st.sampled_from(list(POLICIES)))
def test_halves_run_one_block_at_a_time_and_schedules_are_the_same_again(tasks: list[Task], policy: str) -> None:
    first, again = (simulate(releases(tasks, 40), policy) for _ in range(2))
    key = lambda s: [(b.job.task.name, b.job.number, b.way, b.time, end) for b, end in s.blocks]
    assert key(first) == key(again)
    for half in ("device", "host"):
        spans = sorted((b.time, end) for b, end in first.blocks if half in b.way.halves)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    for job in first.jobs:
        done = sorted((b.time, end) for b, end in first.blocks if b.job is job)
        assert all(a[1] <= b[0] for a, b in zip(done, done[1:], strict=False)) and len(done) <= len(job.task.blocks)


@settings(max_examples=60, deadline=None)
@given(task_sets)
def test_jobs_begin_in_the_order_of_their_deadlines(tasks: list[Task]) -> None:
    """On one half (nothing else to choose) no job's block begins while one with an earlier deadline waits."""
    one = [
        dataclasses.replace(t, blocks=tuple(Block(b.name, (Way("device", b.ways[0].seconds),)) for b in t.blocks))
        for t in tasks
    ]
    found = simulate(releases(one, 40), "merged_blocks")
    for start, _ in found.blocks:
        for other in found.jobs:
            blocks = [(b.time, end) for b, end in found.blocks if b.job is other]
            runs, begun = any(b <= start.time < e for b, e in blocks), sum(b < start.time for b, _ in blocks)
            waits = other.release <= start.time and not runs and begun < len(other.task.blocks)
            gone = other.skipped and other.deadline < start.time
            assert other is start.job or not waits or gone or other.key > start.job.key


@settings(max_examples=60, deadline=None)
@given(task_sets, st.sampled_from(sorted(POLICIES.keys() - {"mono_adapt", "blastnet_no_pf"})))
def test_no_path_goes_below_the_accuracy_bound(tasks: list[Task], policy: str) -> None:
    """The paper gives one to BlastNet alone; here no twin makes a path better, so that the highest still possible is
    the path's own.
    """
    for job in simulate(releases(tasks, 40), policy).jobs:
        assert job.task.accuracy.of(job.twins) >= job.task.bound - 1e-12


# -- the paper's policies, on schedules worked out by hand ----------------------------------------------

LAST = Accuracy(
    {frozenset(): 0.9, **{frozenset({i}): 0.8 for i in range(3)}, frozenset({0, 1}): 0.6, frozenset({0, 1, 2}): 0.5}
)


def _beside_a_long_one(deadline: float, period: float | None = None) -> list[Task]:
    """The device is at work for 5 seconds; beside it a network of three blocks, each 1.5 on the device, 8 on the host,
    3 by its twin there, and of two equal layers each.
    """
    duo = (Way("device", 1.5), Way("host", 8.0), Way("host", 3.0, twin=True))
    layer = Block("layer", (Way("device", 0.75), Way("host", 4.0)))
    three = tuple(Block(f"b{i}", duo) for i in range(3))
    long = Task("long", (Block("b", (Way("device", 5.0), Way("host", 60.0))),), 5.0, 1000.0)
    return [long, Task("three", three, deadline, period or 1000.0, LAST, 0.7, (layer,) * 6)]


@pytest.mark.parametrize(
    ("policy", "end", "twins"),
    [
        ("mono_sched", 24.0, ""),  # whole on the idle host
        ("layer_sched", 11.0, ""),  # two layers on the host, until 8, four on the device
        ("mono_adapt", 9.0, "012"),  # whole on the host by all of its twins there, whatever the bound
        ("blastnet_no_pf", 7.5, "01"),  # two twins until both are idle, whatever the bound
        ("blastnet", 8.0, "0"),  # one twin, then it waits for the device: two would be below the bound
        ("pinned", 9.5, ""),
        ("layer_fastest", 9.5, ""),
        ("merged_blocks", 9.5, ""),
        ("duo_either", 8.0, "0"),
    ],
)
def test_each_policy_has_a_known_end(policy: str, end: float, twins: str) -> None:
    found = simulate(releases(_beside_a_long_one(100.0), 1.0), policy)
    long, three = found.jobs
    assert long.end == 5.0 and three.end == end and three.twins == frozenset(map(int, twins))
    assert found.paths["three"] == {frozenset(map(int, twins)): 1}


@pytest.mark.parametrize(
    ("policy", "end", "missing"),
    [
        ("mono_sched", 24.0, 0.5),  # overtime: a whole network runs to its end
        ("layer_sched", None, 0.5),  # discarded behind its third layer, at 8.75
        ("mono_adapt", 9.0, 0.5),
        ("blastnet_no_pf", 7.5, 0.0),
        ("blastnet", 8.0, 0.0),
    ],
)
def test_each_policy_has_a_known_outcome_at_a_deadline(policy: str, end: float | None, missing: float) -> None:
    found = simulate(releases(_beside_a_long_one(8.5), 1.0), policy)
    assert found.jobs[1].end == end and found.missing_rate == missing
    assert found.missing_rates == {"long": 0.0, "three": 2 * missing}
    assert found.jobs[1].skipped == (end is None)


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        ("mono_sched", [24.0, None, None, None, 28.5, 34.5]),  # those of 6, 12 and 18 are skipped
        ("mono_adapt", [9.0, None, 16.5, 22.5, 28.5, 34.5]),
        ("pinned", [9.5, 14.0, 18.5, 23.0, 28.5, 34.5]),  # ours lets them wait: three are late
    ],
)
def test_a_late_job_costs_those_that_come_while_it_runs(policy: str, ends: list[float | None]) -> None:
    """A job every 6 seconds; skipped jobs count as missed (Equation 3)."""
    found = simulate(releases(_beside_a_long_one(6.0, 6.0), 36.0), policy)
    three = [j for j in found.jobs if j.task.name == "three"]
    assert [j.end for j in three] == ends


def test_a_waiting_job_that_is_over_makes_room_for_the_next_one() -> None:
    """One half: of two tasks that need it for 3 seconds of every 4 the first one gets it twice, the other one never in
    time, but its jobs come each time.
    """
    only = lambda name, seconds: Task(name, (Block("b", (Way("device", seconds),)),), 4.0, 4.0)
    found = simulate(releases([only("a", 3.0), only("b", 3.0)], 8.0), "blastnet")
    assert [(j.task.name, j.end, j.skipped) for j in found.jobs] == [
        ("a", 3.0, False),
        ("b", 6.0, False),
        ("a", 9.0, False),
        ("b", None, True),
    ]
    assert found.missing_rates == {"a": 0.5, "b": 1.0}


def test_blastnet_looks_at_what_a_path_can_still_reach() -> None:
    """Figure 10 asks for the highest accuracy that is possible: the second twin mends what the first one breaks. Ours
    asks for the path as it is.
    """
    duo = (Way("device", 1.5), Way("host", 8.0), Way("host", 3.0, twin=True))
    table = Accuracy({frozenset(): 0.9, frozenset({0}): 0.6, frozenset({1}): 0.8, frozenset({0, 1}): 0.8})
    two = Task("two", (Block("b0", duo), Block("b1", duo)), 100.0, None, table, 0.7)
    assert table.highest(frozenset({0}), 0) == 0.8 and table.highest(frozenset({0}), 1) == 0.6
    for policy, twins in (("blastnet", {0, 1}), ("duo_either", set())):
        long = Task("long", (Block("b", (Way("device", 6.5),)),), 7.0)
        job = Job(two, 0, 0.0)
        simulate([Job(long, 0, 0.0), job], policy)
        assert job.twins == twins


@pytest.mark.parametrize(("twin", "seconds"), [(None, 3.0), (1.2, 1.2)])
@pytest.mark.parametrize("policy", ["blastnet", "blastnet_no_pf", "duo_either"])
def test_a_block_that_was_not_optimised_is_the_same_on_both(policy: str, twin: float | None, seconds: float) -> None:
    ways = [Way("device", 1.0), Way("host", 3.0), *([Way("host", twin, twin=True)] if twin else [])]
    core = Core(POLICIES[policy])
    core.release(Job(Task("first", (Block("b", (Way("device", 1.0),)),), 5.0), 0, 0.0))
    core.release(Job(Task("second", (Block("b", tuple(ways)),), 9.0), 0, 0.0))
    begun, _ = core.decide(0.0)
    assert [(s.job.task.name, s.way.half, s.way.seconds) for s in begun[1:]] == [("second", "host", seconds)]


def test_layers_are_placed_where_a_network_has_them() -> None:
    """The real scheduler runs a network's single layers under Layer_Sched, its blocks under all others."""

    class Divided(Sleepy):
        @property
        def in_layers(self) -> Sleepy:
            return fine

    fine = Sleepy(0.001, 6)
    coarse = Divided(0.001, 3)
    for policy in PAPER:
        with xcoexec.Scheduler([task("t", coarse, deadline=600.0)], policy) as s:
            assert s.release("t", 1).result(120) == 10
            assert s.served().paths == {"t": {frozenset(): 1}} and s.served().missing_rates == {"t": 0.0}
    assert len(fine.ran) == 6 and len(coarse.ran) == 3 * (len(PAPER) - 1)


def test_paths_that_were_not_measured_are_bounded_by_their_parts() -> None:
    found = Accuracy({frozenset(): 0.9, frozenset({0}): 0.89, frozenset({1}): 0.88, frozenset({0, 1}): 0.885})
    assert found.of(frozenset({0, 1})) == 0.885
    three = Accuracy({frozenset(): 0.9, frozenset({0}): 0.89, frozenset({1}): 0.88, frozenset({2}): 0.91})
    assert three.of(frozenset({0, 1, 2})) == pytest.approx(0.9 - 0.01 - 0.02)  # a gain alone is not counted on
    assert Accuracy().of(frozenset({3})) == 1.0


def _many(seed: int, count: int, load: float) -> list[Task]:
    """Tasks of several blocks on a device that is twice as fast as its host on average; twins nearly as fast as the
    faster half.
    """
    rng = np.random.default_rng(seed)
    nets = []
    for _ in range(count):
        blocks = []
        for b in range(int(rng.integers(3, 8))):
            device, ratio = rng.uniform(0.2e-3, 1.5e-3), rng.uniform(0.6, 4)
            both = [Way("device", device), Way("host", device * ratio)]
            if max(ratio, 1 / ratio) > 1.5:
                both.append(
                    Way("host" if ratio > 1 else "device", min(device, device * ratio) * rng.uniform(1, 1.5), True)
                )
            blocks.append(Block(f"b{b}", tuple(both), rng.uniform(2e-5, 1e-4)))
        nets.append(tuple(blocks))
    mean = np.mean([sum(b.primary.seconds for b in n) for n in nets])
    loss = {frozenset({i}): 0.9 - rng.uniform(0, 0.006) for i in range(8)}
    period = lambda n: sum(b.primary.seconds for b in n) * count / load
    return [
        Task(f"t{i}", n, 4 * mean, period(n), Accuracy({frozenset(): 0.9, **loss}), 0.9 - 0.0163)
        for i, n in enumerate(nets)
    ]


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("load", [0.8, 1.2, 1.6, 2.0, 2.5])
def test_slack_misses_no_more_than_blastnet_and_that_no_more_than_the_others(count: int, load: float) -> None:
    jobs = lambda seed: releases(_many(seed, count, load), 1.0, [0.0011 * i for i in range(count)])
    rates = {p: float(np.mean([simulate(jobs(seed), p).missing_rate for seed in range(3)])) for p in POLICIES}
    assert max(rates["slack"], rates["slack_fair"]) <= rates["blastnet"]
    assert rates["blastnet"] <= min(rates[p] for p in ("mono_sched", "layer_sched")) + 1e-9
    if load >= 2:
        assert rates["slack"] <= rates["pinned"] - 0.35


@pytest.mark.parametrize("load", [0.8, 1.2])
def test_slack_sees_how_fast_the_halves_are_now(load: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that take twice what they were measured to take: jobs that cannot be in time any more are given up
    sooner.
    """
    jobs = lambda seed: releases(_many(seed, 8, load), 1.0, [0.0011 * i for i in range(8)])
    rates = lambda: float(np.mean([simulate(jobs(seed), "slack", lambda s: 2.0).missing_rate for seed in range(4)]))
    learned = rates()
    monkeypatch.setattr(Pace, "see", lambda self, took, due: 1.0)
    assert learned < rates() - 0.02


def test_a_half_that_was_slow_is_tried_again() -> None:
    """Nothing is in time while all blocks take 30 times as long; behind that, jobs are in time again."""
    slow = lambda s: 30.0 if s.time < 0.5 else 1.0
    found = simulate(releases(_many(0, 4, 0.5), 2.0), "slack", slow)
    assert all(j.missed for j in found.jobs if 0.1 < j.release < 0.45)
    assert not any(j.missed for j in found.jobs if j.release > 1.0)


def test_unlikely_jobs_keep_no_likely_one_waiting() -> None:
    """Blocks take three times as long: 40 jobs with early deadlines will not be in time, the one behind them is begun.
    Alone they are tried.
    """
    core = Core(POLICIES["slack"])
    core.pace = dict.fromkeys(core.pace, 3.0)
    both = (Way("device", 1.0), Way("host", 1.0))
    running, soon, later = (
        Task(n, (Block("b", both),), deadline) for n, deadline in (("running", 9.0), ("soon", 2.0), ("later", 8.0))
    )
    core.release(Job(running, 0, 0.0))
    assert len(core.decide(0.0)[0]) == 1
    for i in range(40):
        core.release(Job(soon, i, 0.0))
    core.release(Job(later, 0, 0.0))
    begun, gone = core.decide(0.0)
    assert [s.job.task.name for s in begun] == ["later"] and not gone and len(core.waiting) == 40
    for start in (*begun, *core.running.values()):
        if start.job.running:
            core.finish(start, 0.5)
    begun, gone = core.decide(0.5)
    assert [s.job.task.name for s in begun] == ["soon", "soon"] and not gone and len(core.waiting) == 38
    for start in begun:
        core.finish(start, 1.0)
    begun, gone = core.decide(1.5)
    assert not begun and len(gone) == 38 and not core.waiting and all(j.skipped for j in gone)


def test_one_delay_does_not_change_the_pace_for_long() -> None:
    pace = Pace()
    for _ in range(30):
        pace.see(1.0, 1.0)
    pace.see(1000.0, 1.0)
    assert pace.factor < 1.5


def test_admission() -> None:
    light, heavy = _many(0, 4, 0.5), _many(0, 4, 4.0)
    assert admits(light) and not admits(heavy) and utilisation(heavy) > 1 > utilisation(light)


# -- the real scheduler ---------------------------------------------------------------------------------


class Sleepy:
    """A network of blocks that sleep; `fault`: what its first block does."""

    def __init__(self, seconds: float = 0.002, blocks: int = 3, fault: Any = None):
        self.blocks = tuple(Block(f"b{i}", (Way("device", seconds), Way("host", 1.5 * seconds))) for i in range(blocks))
        self.accuracy, self.fault = Accuracy(), fault
        self.ran: list[tuple[Any, int, str]] = []

    def begin(self, x: Any) -> Any:
        return x, 0

    def run(self, block: int, way: Way, state: Any) -> Any:
        x, done = state
        assert done == block, "blocks out of order"
        if self.fault and block == 0:
            self.fault(x)
        time.sleep(way.seconds)
        self.ran.append((x, block, way.half))
        return x, done + 1

    def result(self, state: Any) -> Any:
        return state[0] * 10


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("xcoexec-scheduler")])


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_are_answered_once_under_every_policy(policy: str) -> None:
    nets = {f"t{i}": Sleepy() for i in range(4)}
    with xcoexec.Scheduler([task(n, net, deadline=600.0) for n, net in nets.items()], policy) as s:
        futures = [(i, s.release(f"t{i % 4}", i)) for i in range(60)]
        assert [f.result(120) for _, f in futures] == [10 * i for i, _ in futures]
        got = s.served()
    assert got.released == 60 and got.outcomes == {"in time": 60} and got.missing_rate == 0
    assert sum(len(n.ran) for n in nets.values()) == 180 and len(s.blocks) == 180
    if policy in ("mono_sched", "slack"):
        assert {h for n in nets.values() for _, _, h in n.ran} == {"device", "host"}
    assert got.cost > 0 and got.busy["device"] > 0  # how little it is, benchmarks.deadlines measures
    assert set(got.pace) == {"device", "host"} and all(p > 0 for p in got.pace.values())
    assert {e["tid"] for e in s.events() if e["ph"] == "X"} <= {0, 1}


def test_old_objects_are_left_alone_by_the_collector_while_schedulers_run() -> None:
    """Looking through all of JAX's objects takes longer than most deadlines. What the user has frozen stays frozen."""
    assert gc.get_freeze_count() < 1000  # Python's own
    with xcoexec.Scheduler([task("a", Sleepy(), deadline=1.0)]) as one:
        assert gc.get_freeze_count() > 10_000
        with xcoexec.Scheduler([task("b", Sleepy(), deadline=1.0)]):
            pass
        assert gc.get_freeze_count() > 10_000
        one.stop()
        one.stop()
        assert gc.get_freeze_count() < 1000
    gc.freeze()
    with xcoexec.Scheduler([task("a", Sleepy(), deadline=1.0)]):
        pass
    assert gc.get_freeze_count() > 10_000
    gc.unfreeze()


def test_late_jobs_are_skipped_and_counted_and_others_unharmed() -> None:
    slow, quick = Sleepy(0.05, 2), Sleepy(0.001, 1)
    with xcoexec.Scheduler([task("slow", slow, deadline=0.18), task("quick", quick, deadline=600.0)]) as s:
        futures = [s.release("slow", i) for i in range(8)]
        good = s.release("quick", 7)
        assert good.result(120) == 70
        skipped = sum(isinstance(f.exception(120), SkippedError) for f in futures)
        got = s.served()
    assert skipped == got.outcomes["skipped"] >= 2 and got.missing_rate == pytest.approx(
        (skipped + got.outcomes.get("overtime", 0)) / 9
    )


def test_a_full_queue_is_a_counted_skip() -> None:
    with xcoexec.Scheduler([task("t", Sleepy(0.02), deadline=600.0)], queue=2) as s:
        futures = [s.release("t", i) for i in range(5)]
        full = [f for f in futures if f.done() and isinstance(f.exception(), SkippedError)]
        assert len(full) == 3 and "2 jobs of 't' wait already" in str(full[0].exception())
        assert sorted(f.result(120) for f in futures if f not in full) == [0, 10]
        assert s.served().outcomes == {"overflow": 3, "in time": 2}


def test_a_model_that_raises_harms_nobody_else() -> None:
    def fault(x: Any) -> None:
        raise RuntimeError(f"cannot {x}")

    with xcoexec.Scheduler([task("bad", Sleepy(fault=fault), deadline=1.0), task("good", Sleepy(), deadline=1.0)]) as s:
        bad, good = s.release("bad", 1), s.release("good", 2)
        assert good.result(120) == 20 and str(bad.exception(120)) == "cannot 1"
        assert s.served().outcomes == {"failed": 1, "in time": 1}


def test_cancellation_in_every_state() -> None:
    gate, begun = threading.Event(), threading.Event()
    net = Sleepy(fault=lambda x: (begun.set(), gate.wait(600)) if x == "held" else None)
    with xcoexec.Scheduler([task("t", net, deadline=600.0)], "pinned") as s:
        running = s.release("t", "held")
        assert begun.wait(120)
        waiting = s.release("t", "behind")
        assert waiting.cancel() and running.cancel()
        gate.set()
        last = s.release("t", 5)
        assert last.result(120) == 50
        assert not last.cancel()
        got = s.served()
    assert got.outcomes == {"cancelled": 2, "in time": 1} and {x for x, _, _ in net.ran} == {"held", 5}
    assert len([1 for x, _, _ in net.ran if x == "held"]) == 1  # its further blocks were not run


def test_a_job_may_have_a_deadline_of_its_own() -> None:
    """It counts for the order and for what is skipped; the others keep their task's."""
    gate = threading.Event()
    net = Sleepy(fault=lambda x: gate.wait(600) if x == "held" else None)
    with xcoexec.Scheduler([task("t", net, deadline=600.0)], "pinned") as s:
        futures = [s.release("t", x, d) for x, d in (("held", None), (1, None), (2, 400.0), (3, 0.02), (4, 300.0))]
        for bad in (0, -1.0, float("nan")):
            with pytest.raises(
                ValueError, match=r"got deadline=.* for the task 't'; valid is a positive number of seconds"
            ):
                s.release("t", 9, bad)
        time.sleep(0.05)  # the third one's 20 ms are over
        gate.set()
        assert [futures[i].result(120) for i in (1, 2, 4)] == [10, 20, 40]
        with pytest.raises(SkippedError, match="could not end by its deadline"):
            futures[3].result(120)
        assert s.served().outcomes == {"in time": 4, "skipped": 1} and s.served().released == 5
    assert list(dict.fromkeys(x for x, _, _ in net.ran)) == ["held", 4, 2, 1]


def test_asyncio_with_timeouts_and_cancellation() -> None:
    async def serve(s: xcoexec.Scheduler) -> Any:
        results = await asyncio.gather(*(s.submit("t", i) for i in range(6)))
        with pytest.raises(TimeoutError):
            await s.submit("slow", 1, timeout=0.02)
        waiting = asyncio.ensure_future(s.submit("slow", 2))
        await asyncio.sleep(0.005)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return results

    with xcoexec.Scheduler([task("t", Sleepy(), deadline=600.0), task("slow", Sleepy(0.1), deadline=600.0)]) as s:
        assert asyncio.run(serve(s)) == [10 * i for i in range(6)]
        until(lambda: s.served().outcomes.get("cancelled") == 2)
        assert s.served().outcomes == {"in time": 6, "cancelled": 2}


def test_periodic_tasks_are_released_at_their_times() -> None:
    with xcoexec.Scheduler(
        [task("a", Sleepy(0.001), deadline=0.05, period=0.02), task("b", Sleepy(0.001), deadline=0.05, period=0.05)]
    ) as s:
        futures = s.run(0.2, {"a": 1, "b": 2})
        assert len(futures) == 14 and all(f.done() for f in futures) and s.served().released == 14


def stopped_while_held(s: xcoexec.Scheduler, gate: threading.Event) -> None:
    """Stops a scheduler whose first job waits for `gate`: it has ended before that job goes on."""
    stopper = threading.Thread(target=s.stop)
    stopper.start()

    def ended() -> bool:
        try:
            s.release("t", "late")
        except RuntimeError:
            return True
        return False

    until(ended)
    gate.set()
    stopper.join(120)
    assert not stopper.is_alive()


def test_stopping_ends_everything_at_once() -> None:
    gate, begun = threading.Event(), threading.Event()
    net = Sleepy(fault=lambda x: (begun.set(), gate.wait(600)))
    s = xcoexec.Scheduler([task("t", net, deadline=600.0)])
    futures = [s.release("t", i) for i in range(10)]
    assert begun.wait(120)
    stopped_while_held(s, gate)
    assert all(f.cancelled() or f.done() for f in futures)
    assert len(net.ran) <= 2 and {block for _, block, _ in net.ran} <= {0}  # what both halves had begun
    with pytest.raises(RuntimeError, match=r"got a job after stop\(\)"):
        s.release("t", 1)


def test_metrics_are_counted() -> None:
    prometheus = pytest.importorskip("prometheus_client")
    registry = prometheus.CollectorRegistry()
    with xcoexec.Scheduler([task("t", Sleepy(), deadline=600.0)], registry=registry) as s:
        assert s.release("t", 4).result(120) == 40
        until(lambda: registry.get_sample_value("xcoexec_response_seconds_count", {"task": "t"}))
    assert registry.get_sample_value("xcoexec_released_total", {"task": "t"}) == 1
    assert registry.get_sample_value("xcoexec_ended_total", {"task": "t", "outcome": "in time"}) == 1
    assert registry.get_sample_value("xcoexec_response_seconds_count", {"task": "t"}) == 1


def test_bad_tasks_are_named() -> None:
    net = Sleepy()
    for bad in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="valid is a positive number of seconds, or inf for none"):
            task("t", net, deadline=bad)
    for bad in (0, -1.0, float("inf")):
        with pytest.raises(ValueError, match="valid is a positive number of seconds"):
            task("t", net, deadline=1.0, period=bad)
    net.accuracy = Accuracy({frozenset(): 0.9})
    with pytest.raises(ValueError, match=r"got the accuracy bound 0\.95 for the task 't'; valid is up to 0\.9"):
        task("t", net, deadline=1.0, bound=0.95)
    with pytest.raises(ValueError, match="valid are mono_sched"):
        xcoexec.Scheduler([task("t", net, deadline=1.0)], "fifo")
    with pytest.raises(ValueError, match="at least one"):
        xcoexec.Scheduler([])
    with pytest.raises(ValueError, match="two tasks of one name"):
        xcoexec.Scheduler([task("t", net, deadline=1.0)] * 2)
    with pytest.raises(ValueError, match="miss deadlines even by their measured seconds"):
        xcoexec.Scheduler([task("t", Sleepy(0.1), deadline=1.0, period=0.01)], admission=True)
    with (
        xcoexec.Scheduler([task("t", net, deadline=1.0)]) as s,
        pytest.raises(ValueError, match="got task 'u'; valid are t"),
    ):
        s.release("u", 1)


# -- networks -------------------------------------------------------------------------------------------


def _net(w: Any, x: Any) -> Any:
    y = jax.nn.relu(jax.lax.conv(x, w[0], (1, 1), "SAME"))
    z = jax.nn.relu(jax.lax.conv(y, w[1], (1, 1), "SAME"))
    return (z + y).mean((2, 3)) @ w[2]


WEIGHTS = [array(8, 3, 3, 3), array(8, 8, 3, 3), array(8, 5)]


def test_a_networks_blocks_run_on_either_half_and_through_its_twin() -> None:
    fast, x = xcoexec.jit(_net, strategy="host").bind(WEIGHTS), array(1, 3, 9, 11)
    n = len(fast.graph(x).layers)
    from xcoexec.planning.spans import Span

    spans = [Span(0, 1), Span(1, 2), Span(2, n)]
    twin = Twin(1, "host", lambda p, y: jax.nn.relu(jax.lax.conv(y, p, (1, 1), "SAME")) + y, 1.5 * WEIGHTS[1])
    made = model(fast, x, spans=spans, twins=[twin])
    assert [len(b.ways) for b in made.blocks] == [2, 3, 2]
    for path in np.ndindex(2, 3, 2):
        state = made.begin(x)
        for i, k in enumerate(path):
            state = made.run(i, made.blocks[i].ways[k], state)
        changed = made.blocks[1].ways[path[1]].twin
        w = [WEIGHTS[0], 1.5 * WEIGHTS[1], WEIGHTS[2]] if changed else WEIGHTS
        assert worst(made.result(state), oracles(_net, w, x)) < 1e-5
    with pytest.raises(ValueError, match="valid are"):
        made.begin(array(2, 3, 9, 11))


def test_a_network_is_divided_into_its_single_layers_once() -> None:
    from xcoexec.planning.spans import Span

    fast, x = xcoexec.jit(_net, strategy="host").bind(WEIGHTS), array(1, 3, 9, 11)
    n = len(fast.graph(x).layers)
    made = model(fast, x, spans=[Span(0, 2), Span(2, n)])
    fine = made.in_layers
    assert made.in_layers is fine and len(made.blocks) == 2 and [s.stop - s.start for s in fine.spans] == [1] * n
    state = fine.begin(x)
    for i, block in enumerate(fine.blocks):
        state = fine.run(i, block.ways[i % len(block.ways)], state)
    assert worst(fine.result(state), oracles(_net, WEIGHTS, x)) < 1e-5
    with xcoexec.Scheduler([task("t", made, deadline=600.0)], "layer_sched") as s:
        assert worst(s.release("t", x).result(120), oracles(_net, WEIGHTS, x)) < 1e-5
        assert len(s.blocks) == n


def test_real_networks_under_deadlines() -> None:
    fast, x = xcoexec.jit(_net, strategy="host").bind(WEIGHTS), array(1, 3, 24, 24)
    want = oracles(_net, WEIGHTS, x)
    with xcoexec.Scheduler([task("a", fast, x, deadline=600.0), task("b", fast, x, deadline=600.0)]) as s:
        futures = [s.release(n, x) for n in "abababab"]
        assert all(worst(f.result(120), want) < 1e-5 for f in futures)
        with pytest.raises(
            ValueError,
            match=r"got an input of shapes float32\[1,3,5,5\]; valid are float32\[1,3,24,24\], for which the task",
        ):
            s.release("a", array(1, 3, 5, 5))
        assert s.served().released == 8
    with pytest.raises(TypeError, match="without an input"):
        task("a", fast, deadline=1.0)
