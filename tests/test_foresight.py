"""Jobs that are about to come: which blocks they keep from beginning, on schedules that a hand can count."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import deadline_causes
from xcoexec.streams.coming import Coming
from xcoexec.streams.jobs import Block, Job, Task, Way
from xcoexec.streams.virtual import Schedule, releases, simulate

EVEN = {"device": 1.0, "host": 1.0}


def _task(name: str, device: float, host: float, deadline: float, period: float | None) -> Task:
    return Task(name, (Block("b", (Way("device", device), Way("host", host))),), deadline, period)


def _ends(schedule: Schedule, name: str) -> list[float | None]:
    return [j.end for j in schedule.jobs if j.task.name == name]


def _quick_beside(*long: Task, device: float = 1.0) -> list[Job]:
    """A quick job every 2 seconds for 20 seconds, one of each long one at 0.5 seconds."""
    quick = _task("quick", device, 1.0, 2.0, 2.0)
    return releases([quick, *long], 20.0, [0.0, *(0.5 for _ in long)])


def test_a_long_block_waits_while_the_other_half_has_one() -> None:
    """Two blocks of 10 seconds: on both halves at once they cost the quick task the jobs of 2, 4, 6 and 8 seconds. The
    second one may begin at 9: the first one ends before the quick job of 10 has to begin.
    """
    jobs = lambda: _quick_beside(*(_task(n, 10.0, 10.0, 40.0, 40.0) for n in "ab"))
    at_once = simulate(jobs(), "slack")
    assert sorted(_ends(at_once, "a") + _ends(at_once, "b")) == [10.5, 11.0]
    assert _ends(at_once, "quick").count(None) == 4
    one_by_one = simulate(jobs(), "foresight")
    assert sorted(_ends(one_by_one, "a") + _ends(one_by_one, "b")) == [10.5, 19.0]
    assert _ends(one_by_one, "quick")[5] == 11.5 and one_by_one.missing_rate == 0


def test_a_block_that_ends_before_the_quick_job_has_to_begin_does_not_wait() -> None:
    """The next quick job has to begin at 3 at the latest: one half is free by then, or one block waits."""
    ends = lambda seconds: sorted(
        e
        for n in "ab"
        for e in _ends(simulate(_quick_beside(*(_task(n, seconds, seconds, 40.0, 40.0) for n in "ab")), "foresight"), n)
    )
    assert ends(2.5) == [3.0, 3.5]
    assert ends(2.75) == [3.25, 5.75]


def test_the_half_on_which_quick_jobs_have_room_is_left_to_them() -> None:
    """On the device a quick job takes 1.95 of every 2 seconds. The long block would take fewer seconds on the host, but
    waits for the device.
    """
    jobs = lambda: _quick_beside(_task("a", 11.0, 10.0, 40.0, 40.0), device=1.95)
    assert _ends(simulate(jobs(), "slack"), "a") == [11.0]  # the host, behind the first quick job
    found = simulate(jobs(), "foresight")
    assert _ends(found, "a") == [11.5] and found.missing_rate == 0


def test_a_block_that_has_no_other_half_is_not_kept_for_ever() -> None:
    """A quick job that can only be in time on the device, and a long one that runs nowhere else: it begins where
    nothing runs.
    """
    only = Task("a", (Block("b", (Way("device", 5.0),)),), 40.0, 40.0)
    quick = Task("quick", (Block("b", (Way("device", 1.0),)),), 2.0, 2.0)
    found = simulate(releases([quick, only], 20.0, [0.0, 0.5]), "foresight")
    assert _ends(found, "a") == [6.0] and _ends(found, "quick").count(None) == 2


@pytest.mark.parametrize(("seconds", "spoiled"), [(1.5, False), (2.0, True)])
def test_only_much_shorter_jobs_are_waited_for(seconds: float, spoiled: bool) -> None:
    """A job that takes 1 second is waited for by those that take at least 2."""
    coming = Coming()
    coming.see(Job(_task("quick", 1.0, 1.0, 1.5, 1.0), 0, 0.0), EVEN)
    job = Job(_task("a", seconds, seconds, 40.0, 40.0), 0, 0.0)
    busy = {"device": 0.0, "host": 9.0}
    assert coming.spoiled(job, "device", 9.0, busy, 0.0) is spoiled
    assert not coming.spoiled(job, "device", 9.0, {"device": 0.0, "host": 1.5}, 0.0)  # in time on the host: at 2.5


def test_tasks_that_have_ended_are_waited_for_no_more() -> None:
    coming = Coming()
    coming.see(Job(_task("quick", 1.0, 1.0, 1.5, 1.0), 0, 0.0), EVEN)
    job = Job(_task("a", 9.0, 9.0, 40.0, 40.0), 0, 0.0)
    at = lambda now: coming.spoiled(job, "device", now + 9.0, {"device": now, "host": now + 9.0}, now)
    assert at(2.9) and not at(3.1)


def test_jobs_without_a_period_are_placed_as_slack_does() -> None:
    rng = np.random.default_rng(0)
    tasks = [_task(f"t{i}", *rng.uniform(0.1, 3.0, 2), rng.uniform(1, 9), None) for i in range(5)]
    jobs = lambda: [Job(t, n, n * 1.3) for t in tasks for n in range(9)]
    key = lambda s: [(b.job.task.name, b.job.number, b.way, b.time, end) for b, end in s.blocks]
    assert key(simulate(jobs(), "foresight")) == key(simulate(jobs(), "slack"))


def test_blocks_in_pieces_and_foresight_take_the_same_cause_away() -> None:
    """Most of what `slack` misses beyond the bound is due to whole blocks: in pieces it misses as few as the other."""
    whole, pieces = deadline_causes.SETTINGS[:2]
    missed = lambda setting, rule: deadline_causes.missed(setting, rule, 1.0)
    assert missed(whole, "foresight") < missed(whole, "slack") - 0.2
    assert missed(pieces, "slack") < missed(whole, "slack") - 0.2
    assert deadline_causes.bound(whole) < missed(whole, "foresight")
    shown = deadline_causes.table(0.2).splitlines()
    assert len(shown) == 2 + len(deadline_causes.SETTINGS) and "`foresight`" in shown[0]


def test_overloaded_halves_serve_the_quick_ones() -> None:
    """Six tasks whose blocks are longer than a quick task's deadline, twice what both halves can do."""
    quick = [_task(f"q{i}", 0.9, 0.5, 1.4, 1.4) for i in range(2)]
    block = Block("b", (Way("device", 4.0), Way("host", 2.2)))
    long = [Task(f"l{i}", (block, block), 18.0, 18.0) for i in range(6)]
    jobs = lambda: releases([*quick, *long], 2000.0, [0.6 * i for i in range(8)])
    missed = {p: simulate(jobs(), p).missing_rate for p in ("slack", "foresight", "blastnet")}
    assert missed["foresight"] < 0.2 < 0.27 < missed["slack"] < missed["blastnet"]
