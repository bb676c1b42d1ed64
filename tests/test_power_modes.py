"""NeuroPipe's power modes on made stages with known answers: basic, saving, par energy, Figure 4's decision."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcoexec.ir.watts import Watts
from xcoexec.streams.power_modes import Dial, basic, boost, chosen, decide, level, save, serial

#: two halves at 1 GHz that can have half of that and twice as much
DIALS = (Dial("cpu", "host", (5e8, 1e9, 2e9), 1e9), Dial("gpu", "device", (5e8, 1e9, 2e9), 1e9))
EVEN = {"host": 0.010, "device": 0.010}
WATTS = Watts(3.0, {"host": 1.0, "device": 1.0}, 3.0)


def test_what_an_item_costs() -> None:
    """3 W at rest and 1 W more for each half at work: 20 ms one after the other, 10 ms at the same time."""
    assert serial(EVEN, WATTS).joules == pytest.approx(3 * 0.020 + 0.020)
    got = basic(EVEN, WATTS)
    assert got.period == 0.010 and got.joules == pytest.approx(3 * 0.010 + 0.020)
    assert got.watts == pytest.approx(5.0) and got.edp == pytest.approx(0.050 * 0.010)
    fast = {"host": 2.0, "device": 2.0}  # dynamic power 8 times, for half as long
    assert WATTS.joules(EVEN, 0.005, fast) == pytest.approx(3 * 0.005 + 4 * 0.020)


def test_saving_without_an_interval_is_as_slow_as_one_after_the_other() -> None:
    """The constraint of section III-D; boosting is something else."""
    got = chosen("save", DIALS, EVEN, None, WATTS)
    assert got.clocks == {"cpu": 5e8, "gpu": 5e8} and got.period == 0.020 == serial(EVEN).period
    assert got.joules == pytest.approx(3 * 0.020 + 0.020 / 4)
    assert chosen("boost", DIALS, EVEN, None, WATTS).clocks != got.clocks


@pytest.mark.parametrize(
    ("target", "clocks"),
    [
        (0.040, {"cpu": 5e8, "gpu": 5e8}),
        (0.010, {"cpu": 1e9, "gpu": 5e8}),
        (0.001, {"cpu": 1e9, "gpu": 5e8}),  # saving raises nothing
    ],
)
def test_saving_for_an_interval(target: float, clocks: dict[str, float]) -> None:
    got = save(DIALS, {"host": 0.010, "device": 0.004}, target)
    assert got.clocks == clocks and got.joules is None


@pytest.mark.parametrize(
    ("idle", "clocks", "period"),
    [
        (3.0, {"cpu": 1e9, "gpu": 1e9}, 0.010),  # 80 mJ are had; 2 GHz costs 15 + 80
        (5.0, {"cpu": 2e9, "gpu": 2e9}, 0.005),  # 120 mJ are had; 2 GHz costs 25 + 80
        (4.0, {"cpu": 2e9, "gpu": 2e9}, 0.005),  # 100 mJ against 20 + 80: the par-energy point itself
    ],
)
def test_the_par_energy_point(idle: float, clocks: dict[str, float], period: float) -> None:
    watts = Watts(idle, {"host": 1.0, "device": 1.0}, 3.0)
    had = serial(EVEN, watts).joules
    assert had is not None
    got = boost(DIALS, EVEN, watts, had)
    assert got.clocks == clocks and got.period == period and got.joules is not None and got.joules <= had * (1 + 1e-9)


def test_boosting_without_powers_is_bounded_by_the_clocks() -> None:
    got = boost(DIALS, {"host": 0.010, "device": 0.004})
    assert got.clocks == {"cpu": 2e9, "gpu": 1e9} and got.period == 0.005


def test_boosting_that_nothing_pays_for_leaves_the_clocks() -> None:
    assert boost(DIALS, EVEN, WATTS, 1e-9).clocks == {"cpu": 1e9, "gpu": 1e9}


@pytest.mark.parametrize(
    ("target", "mode"), [(None, "save"), (0.020, "save"), (0.010, "save"), (0.0099, "boost"), (0.0001, "boost")]
)
def test_figure_4(target: float | None, mode: str) -> None:
    got = decide(DIALS, EVEN, target, Watts(5.0, {"host": 1.0, "device": 1.0}))
    assert got.mode == mode and chosen("auto", DIALS, EVEN, target, Watts(5.0, {"host": 1.0, "device": 1.0})) == got
    assert got.period == {"save": 0.020 if target != 0.010 else 0.010, "boost": 0.005}[mode]


def test_the_baseline_may_be_other_work_than_the_stages() -> None:
    """What the network costs whole on the accelerator bounds the boost, not what its parts cost on both halves."""
    watts = Watts(3.0, {"host": 1.0, "device": 1.0}, 3.0)
    cheap, dear = {"host": 0.002, "device": 0.012}, {"host": 0.002, "device": 0.040}
    assert chosen("boost", DIALS, EVEN, None, watts, cheap).period == 0.010
    assert chosen("boost", DIALS, EVEN, None, watts, dear).period == 0.005


times = st.floats(1e-3, 1.0)
levels = st.lists(st.floats(1e8, 5e9), min_size=1, max_size=5, unique=True).map(sorted)


@settings(max_examples=80, deadline=None)
@given(levels, levels, times, times, st.floats(0.1, 9), st.floats(0.1, 9), st.floats(0.1, 9))
def test_the_par_energy_point_is_the_best_of_all_clocks(
    cpu: list[float], gpu: list[float], host: float, device: float, idle: float, a: float, b: float
) -> None:
    """Against every pair of clocks, with the highest ones as they are."""
    dials = (Dial("cpu", "host", cpu, cpu[0]), Dial("gpu", "device", gpu, gpu[0]))
    watts, seconds = Watts(idle, {"host": a, "device": b}), {"host": host, "device": device}
    had = serial(seconds, watts).joules
    assert had is not None
    best = math.inf
    for f, g in itertools.product(cpu, gpu):
        faster = {"host": f / cpu[0], "device": g / gpu[0]}
        period = max(t / faster[h] for h, t in seconds.items())
        if watts.joules(seconds, period, faster) <= had:
            best = min(best, period)
    assert boost(dials, seconds, watts, had).period == pytest.approx(best)


@given(levels, st.floats(1e-3, 1.0), st.floats(1e-3, 4.0), st.floats(1e8, 5e9))
def test_the_lowest_clock_that_is_enough(clocks: list[float], seconds: float, target: float, now: float) -> None:
    enough = [f for f in clocks if seconds * now / f <= target]
    assert level(clocks, seconds, target, now) == (min(enough) if enough else clocks[-1])
