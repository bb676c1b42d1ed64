"""Which jobs give way when more come than there is room for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from xcoexec.streams.demand import EVEN, NEVER, ROOM, SELDOM, Demand, Work, balance, least_missing, least_work, shares
from xcoexec.streams.jobs import Accuracy, Block, Job, Task, Way
from xcoexec.streams.policies import POLICIES
from xcoexec.streams.virtual import releases, simulate

seconds = st.floats(1e-4, 1.0)
works = st.lists(st.tuples(seconds, seconds), min_size=1, max_size=8)


def _task(name: str, *blocks: tuple[float, float], period: float | None = None, deadline: float = 1.0) -> Task:
    made = tuple(Block(str(i), (Way("device", d), Way("host", h))) for i, (d, h) in enumerate(blocks))
    return Task(name, made, deadline, period)


@settings(max_examples=100, deadline=None)
@given(works)
def test_the_balance_and_its_prices_are_the_linear_programs(work: list[Work]) -> None:
    """min t: sum d x <= t, sum h (1 - x) <= t, 0 <= x <= 1."""
    device, host = np.array(work).T
    found = linprog(
        [0.0] * len(work) + [1.0],
        [[*device, -1.0], [*-host, -1.0]],
        [0.0, -host.sum()],
        bounds=[(0, 1)] * len(work) + [(0, None)],
    )
    needed, ratio = balance(work)
    assert needed == pytest.approx(found.fun, rel=1e-7)
    prices = -found.ineqlin.marginals  # of the device and the host
    worth = lambda d, h: min(prices[0] * d, prices[1] * h)
    mine = np.array([1 / (1 + ratio), ratio / (1 + ratio)])
    assert sum(min(mine[0] * d, mine[1] * h) for d, h in work) == pytest.approx(
        sum(worth(d, h) for d, h in work), rel=1e-6
    )  # the dual's value


@settings(max_examples=100, deadline=None)
@given(st.lists(works, min_size=1, max_size=6), st.data())
def test_what_has_room_fits_and_the_longest_give_way(jobs: list[list[Work]], data: st.DataObject) -> None:
    names = [str(i) for i in range(len(jobs))]
    work = dict(zip(names, jobs, strict=True))
    rates = {n: data.draw(st.one_of(st.just(0.0), st.floats(2 * SELDOM, 5.0))) for n in names}
    found = shares({n: r for n, r in rates.items() if r > 0}, work)
    times = lambda factors: [(f * d, f * h) for n, f in factors.items() if f > 0 for d, h in work[n]]
    assert balance(times({n: rates[n] * found.get(n, 1.0) for n in names}))[0] <= ROOM + 1e-9
    assert all(0 <= s < 1 for s in found.values())
    by_length = sorted((n for n in names if rates[n] > SELDOM), key=lambda n: sum(map(min, work[n])))
    first = next((i for i, n in enumerate(by_length) if n in found), len(by_length))
    shorter = times({n: rates[n] for n in by_length[: first + 1]})
    assert not found or balance(shorter)[0] > ROOM  # none gives way to a longer one
    assert (not found) == (balance(times(rates))[0] <= ROOM)


def test_blocks_of_one_half_and_forbidden_twins() -> None:
    only = Block("only", (Way("host", 2.0),))
    twin = Block("twin", (Way("device", 1.0), Way("host", 5.0), Way("host", 1.5, twin=True)))
    lost = Accuracy({frozenset(): 0.9, frozenset({1}): 0.8})
    assert least_work(Task("a", (only, twin), 9.0, accuracy=lost))[1] == (1.0, 1.5)
    (device, host), kept = least_work(Task("a", (only, twin), 9.0, accuracy=lost, bound=0.85))
    assert host == 2.0 and device > 100 and kept == (1.0, 5.0)
    assert balance([(device, host), (1.0, 5.0)])[0] == pytest.approx(2.0, rel=1e-2)


def test_a_half_on_which_a_job_cannot_be_in_time_is_no_choice() -> None:
    task = _task("a", (1.0, 2.0), (3.0, 2.0), deadline=4.5)
    assert least_work(task) == (
        (1.0, 2.0),
        (3.0, 2.0),
    )  # 1.5 seconds are left, either block takes one more on its slower half
    assert least_work(task, {"device": 1.2, "host": 1.0}) == (
        (1.2, 2.0),
        (2.0 * NEVER, 2.0),
    )  # 1.3 are left, the second one takes 1.6 more
    assert least_work(task, {"device": 2.0, "host": 1.0}) == ((2.0, 2.0), (2.0 * NEVER, 2.0))
    assert least_work(task, {"device": 3.0, "host": 1.5}) == ((3.0, 3.0), (9.0, 3.0))  # it cannot be in time at all
    assert least_work(task, EVEN, 4.0)[1] == (3.0, 2.0) and least_work(task, EVEN, 3.5)[1] == (2.0 * NEVER, 2.0)
    assert least_missing([_task("a", (1.0, 2.0), period=1.0, deadline=1.5)]) == pytest.approx(0.0, abs=1e-9)
    assert least_missing([_task(n, (1.0, 2.0), period=1.0, deadline=1.5) for n in "ab"]) == pytest.approx(
        0.5, abs=1e-3
    )  # no host that helps


def test_jobs_that_are_too_long_at_the_pace_of_now_leave_the_others_alone() -> None:
    """The device takes four times as long: the two long tasks cannot be in time there any more and do not fit on the
    host beside the short one.
    """
    tasks = [
        _task("short", (1e-3, 0.9e-3), period=2e-3, deadline=8e-3),
        *(_task(n, (3e-3, 5e-3), period=7e-3, deadline=8e-3) for n in ("a", "b")),
    ]
    runs = {
        p: simulate(releases(tasks, 6.0), p, lambda s: 4.0 if s.way.half == "device" else 1.0)
        for p in ("slack", "merged_blocks")
    }
    missed = lambda p: [j.task.name for j in runs[p].jobs if j.missed and j.release > 0.5]
    assert missed("slack").count("short") == 0 < missed("slack").count("a") + missed("slack").count("b")
    assert runs["slack"].missing_rate < runs["merged_blocks"].missing_rate


def _room(demand: Demand, task: Task, period: float, begin: float, end: float) -> float:
    """The share of jobs that come in a time for which there is room."""
    times = np.arange(begin, end, period)
    return float(np.mean([demand.room_for(Job(task, i, float(t)), EVEN) for i, t in enumerate(times)]))


def test_half_the_jobs_of_twice_as_many_as_there_is_room_for() -> None:
    """A task of 10 ms on either half: 200 * ROOM a second are what there is room for."""
    demand, task = Demand(), _task("a", (0.01, 0.01))
    _room(demand, task, 1 / (400 * ROOM), 0.0, 1.0)
    assert _room(demand, task, 1 / (400 * ROOM), 1.0, 3.0) == pytest.approx(0.5, abs=0.03)
    _room(demand, task, 1 / 100, 3.0, 6.0)
    assert _room(demand, task, 1 / 100, 6.0, 8.0) == 1.0


def test_a_slow_pace_leaves_room_for_fewer() -> None:
    demand, task = Demand(), _task("a", (0.01, 0.01))
    slow = {"device": 2.0, "host": 2.0}
    found = [demand.room_for(Job(task, i, i / (200 * ROOM)), slow) for i in range(900)]
    assert np.mean(found[400:]) == pytest.approx(0.5, abs=0.05)


def test_one_burst_after_a_long_pause_has_room() -> None:
    demand, task = Demand(), _task("a", (0.01, 0.01))
    assert all(demand.room_for(Job(task, i, 0.0), EVEN) for i in range(50))
    assert all(demand.room_for(Job(task, i, 1000.0 + 0.001 * i), EVEN) for i in range(50))


@pytest.mark.parametrize("load", [0.8, 1.2, 2.0, 2.4, 3.0])
def test_fewer_jobs_miss_when_the_longest_give_way(load: float) -> None:
    """Against the same policy without it, the device at a third of its speed at heavy loads: nothing changes where
    there is room for all.
    """
    lengths = [0.6e-3, 1e-3, 1.9e-3, 2.5e-3, 4e-3]
    tasks = [
        _task(str(i), (t, 1.2 * t), period=t * 5 / load, deadline=4 * float(np.mean(lengths)))
        for i, t in enumerate(lengths)
    ]
    slow = lambda s: 3.0 if s.way.half == "device" and load > 1.5 else 1.0
    runs = {p: simulate(releases(tasks, 4.0, [1e-3 * i for i in range(5)]), p, slow) for p in ("slack", "slack_fair")}
    missing = {p: s.missing_rate for p, s in runs.items()}
    if load < 1.5:
        assert [(s.job.key, end) for s, end in runs["slack"].blocks] == [
            (s.job.key, end) for s, end in runs["slack_fair"].blocks
        ]
        return
    rates, work = (
        {t.name: 1 / t.period for t in tasks if t.period},
        {t.name: [(3 * d, h) for d, h in least_work(t)] for t in tasks},
    )
    at_least, promised = (
        sum(r * (1 - shares(rates, work, room).get(n, 1.0)) for n, r in rates.items()) / sum(rates.values())
        for room in (1.0, ROOM)
    )
    assert at_least - 0.02 <= missing["slack"] <= promised + 0.02 and missing["slack"] < missing["slack_fair"] - 0.02
    late = [j.task.name for j in runs["slack"].jobs if j.missed and j.release > 0.5]
    assert all(late.count(n) >= late.count("0") for n in "1234")


def test_no_schedule_misses_fewer_than_the_linear_program_says() -> None:
    """All policies, over random tasks; and the program against shares worked out by hand."""
    one = [
        _task("a", (0.01, 0.02), period=0.005)
    ]  # device 2 of 1, so 0.01 a job and 0.02: 100 + 50 of 200 jobs a second
    assert least_missing(one) == pytest.approx(0.25)
    assert least_missing(one, {"device": 2.0, "host": 1.0}) == pytest.approx(0.5)
    assert least_missing([_task("a", (0.01, 0.02), period=0.02)]) == pytest.approx(0.0, abs=1e-9)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        blocks = [
            [(float(d), float(d * r)) for d, r in zip(rng.uniform(1e-3, 4e-3, 3), rng.uniform(0.5, 2, 3), strict=True)]
            for _ in range(4)
        ]
        tasks = [_task(str(i), *b, period=sum(map(min, b)) * 4 / 2.6, deadline=0.03) for i, b in enumerate(blocks)]
        bound = least_missing(tasks)
        assert bound > 0.05
        rates = {p: simulate(releases(tasks, 6.0), p).missing_rate for p in POLICIES}
        assert bound - 0.02 < min(rates.values())
        assert rates["slack"] < bound + 0.12


def test_looking_is_rare_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count()
    demand, task = Demand(), _task("a", (0.01, 0.01))
    look = demand._look
    monkeypatch.setattr(demand, "_look", lambda now, pace: (next(looks), look(now, pace))[1])
    for i in range(10_000):
        demand.room_for(Job(task, i, i * 1e-4), EVEN)
    assert next(looks) <= math.ceil(1.0 / 0.1) + 1
