"""Many hosts as numbers: nothing is lost, and arithmetic and replay agree where both must."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks import fleet_costs, fleet_hosts
from benchmarks.fleet_hosts import HOSTS, Measured, batch_for, calculated, limit, simulated

#: a driver that keeps up with 20 hosts, and no further
FEW = Measured("few", 64, (0.18, 0.2, 0.22), 2, 3.0, 9.0, 0.002, 0.003, 0.00005, 1000, 10)
#: batches that take long enough for all of them
MANY = dataclasses.replace(FEW, calls=(3.9, 4.0, 4.1))


def test_the_limit_is_where_both_sides_are_equal() -> None:
    hosts = limit(FEW)
    assert 2 * hosts / FEW.batch_seconds() == pytest.approx(1 / FEW.driver_seconds(hosts))  # type: ignore[arg-type]
    assert 16 < hosts < 32 and limit(MANY) > 64


@pytest.mark.parametrize("measured", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("hosts", HOSTS)
def test_each_batch_is_computed_once(measured: Measured, hosts: int) -> None:
    found = simulated(measured, hosts, 40 * hosts)
    assert found.done == (1,) * 40 * hosts


def test_what_dies_is_computed_again() -> None:
    deaths = [(4.1, 0), (4.1, 3), (4.2, 0), (8.0, 1), (8.05, 2)]  # one of them before it has started again
    found = simulated(FEW, 2, 200, deaths=deaths)
    assert found.done == (1,) * 200
    late = simulated(FEW, 2, 200)
    assert found.started > late.started and found.core_ms >= late.core_ms


def test_all_actors_dead_at_once_lose_nothing() -> None:
    assert simulated(FEW, 4, 100, deaths=[(3.5, a) for a in range(8)]).done == (1,) * 100


@pytest.mark.parametrize("hosts", HOSTS)
def test_an_item_costs_the_same_until_the_driver_has_no_time(hosts: int) -> None:
    one = simulated(MANY, 1, 100)
    assert simulated(MANY, hosts, 100 * hosts).core_ms == pytest.approx(one.core_ms, rel=0.03)
    found = simulated(FEW, hosts, 100 * hosts)
    if hosts < 0.9 * limit(FEW):
        assert found.core_ms == pytest.approx(simulated(FEW, 1, 100).core_ms, rel=0.05)
    if hosts > limit(FEW):
        assert found.core_ms > 1.3 * one.core_ms * FEW.batch_seconds() / MANY.batch_seconds()
        assert found.driver > 0.9


@pytest.mark.parametrize("hosts", HOSTS)
def test_batches_for_which_the_driver_keeps_up(hosts: int) -> None:
    batch = batch_for(FEW, hosts)
    assert (batch > FEW.batch) == (calculated(FEW, hosts).driver > fleet_hosts.BUSY)
    larger = dataclasses.replace(FEW, batch=batch, calls=tuple(batch / FEW.batch * s for s in FEW.calls))
    assert calculated(larger, hosts).driver <= fleet_hosts.BUSY and limit(larger) > hosts
    found, one = simulated(larger, hosts, 100 * hosts), simulated(larger, 1, 100)
    assert found.core_ms == pytest.approx(one.core_ms, rel=0.05)


@pytest.mark.parametrize("measured", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("hosts", HOSTS)
def test_arithmetic_and_replay_agree(measured: Measured, hosts: int) -> None:
    by_hand, found = calculated(measured, hosts), simulated(measured, hosts, 100 * hosts)
    assert found.rate == pytest.approx(by_hand.rate, rel=0.05)
    assert found.started == pytest.approx(by_hand.started) and found.store == by_hand.store == 1000 * hosts


def test_a_plan_that_comes_along_starts_sooner_and_changes_nothing_else() -> None:
    along, alone = (simulated(FEW, 4, 400, planned=p) for p in (True, False))
    assert alone.started - along.started == pytest.approx(FEW.start_alone - FEW.start)
    assert alone.rate == pytest.approx(along.rate, rel=0.03)


def test_no_actor_has_more_than_it_may() -> None:
    replay = fleet_hosts._Replay(FEW, 2, 60, FEW.start, 0)
    given, most = replay.given, 0

    def counted(time: float, actor: int, batch: int) -> None:
        nonlocal most
        given(time, actor, batch)
        most = max(most, len(replay.has[actor]))

    replay.given = counted  # type: ignore[method-assign]
    replay.run()
    assert most == fleet_hosts.DEPTH


def test_what_the_driver_needs_is_a_line_through_its_runs() -> None:
    taken = lambda actors, blocks: 0.5 + 0.03 * actors + blocks * (0.002 + 0.0001 * actors)
    one, more, making = fleet_costs.driver_line(taken)
    assert (one, more, making) == pytest.approx((0.002, 0.0001, 0.03))
    falling = lambda actors, blocks: blocks * (0.002 - 0.0001 * actors)
    assert fleet_costs.driver_line(falling)[1:] == (0.0, 0.0)  # nobody costs less than nothing


def test_measured_calculated_and_simulated_are_three_columns() -> None:
    rows = fleet_hosts.table(FEW, 600.0, seconds=4.0)
    assert [r["hosts"] for r in rows] == list(HOSTS) and [r["hosts"] for r in rows if "measured" in r] == [1]
    said = fleet_hosts.text(FEW, rows).splitlines()
    assert said[2].split() == ["hosts", "measured", "calculated", "simulated"]
    first = next(line for line in said if line.startswith("items/s"))
    assert first.split()[1:4] == ["1", "600", "640"]
