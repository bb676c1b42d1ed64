"""Cuts over several devices: as good as the best of all that there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from xcoexec.planning.device_cuts import Kind, across, scaling


def by_trying(kinds: dict[str, Kind], crossing: list[float]) -> float:
    """The least seconds between results of all cuts, in any order of devices."""
    n, best = len(crossing), float("inf")
    devices = [name for name, k in kinds.items() for _ in range(k.count)]
    for count in range(1, len(devices) + 1):
        for order in set(itertools.permutations(devices, count)):
            for cuts in itertools.combinations(range(1, n), count - 1):
                edges, slowest = (0, *cuts, n), 0.0
                for name, a, b in zip(order, edges[:-1], edges[1:], strict=True):
                    each = [kinds[name].seconds[i] for i in range(a, b)]
                    slowest = max(slowest, crossing[a] + sum(float("inf") if s is None else s for s in each))
                best = min(best, slowest)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_cut_is_better(seed: int) -> None:
    random, n = np.random.default_rng(seed), 6
    some = lambda: tuple(None if random.random() < 0.1 else float(s) for s in random.uniform(1, 9, n))
    kinds = {
        "gpu": Kind(2, tuple(map(float, random.uniform(1, 4, n)))),
        "host": Kind(1, some()),
        "slow": Kind(1, some()),
    }
    crossing = [float(s) for s in random.uniform(0, 2, n)]
    cut = across(kinds, crossing)
    assert cut.period == pytest.approx(by_trying(kinds, crossing))
    assert [a for _, a, _ in cut.stages] == [0, *(b for _, _, b in cut.stages[:-1])] and cut.stages[-1][2] == n
    for name, k in kinds.items():
        assert sum(stage[0] == name for stage in cut.stages) <= k.count
    for (name, a, b), seconds in zip(cut.stages, cut.seconds, strict=True):
        assert seconds == pytest.approx(crossing[a] + sum(kinds[name].seconds[a:b]))  # type: ignore[arg-type]


def test_stages_on_two_gpus_and_the_host_between() -> None:
    """Stages on GPU 0, host, GPU 1, where the layer in the middle is one that the host computes as fast."""
    cut = across({"gpu": Kind(2, (1.0, 9.0, 1.0)), "host": Kind(1, (9.0, 1.0, 9.0))}, [0.0, 0.1, 0.1])
    assert cut.stages == (("gpu", 0, 1), ("host", 1, 2), ("gpu", 2, 3)) and cut.period == pytest.approx(1.1)
    assert "gpu 0..0 (1000.00 ms) | host 1..1" in str(cut)


def test_where_further_devices_stop_paying() -> None:
    layers = 8
    kinds = {"gpu": Kind(1, (1.0,) * layers)}
    periods = lambda crossing: [c.period for c in scaling(kinds, [0.0, *[crossing] * (layers - 1)], "gpu", 8)]
    assert periods(0.0) == [8.0, 4.0, 3.0, 2.0, 1.0]  # five to seven devices have a stage of two layers, too
    assert periods(9.0) == [8.0]


def test_fewest_devices_of_equal_cuts() -> None:
    assert len(across({"gpu": Kind(4, (5.0, 1.0, 1.0))}, [0.0] * 3).stages) == 2


def test_what_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="no device can compute"):
        across({"gpu": Kind(2, (1.0, None))}, [0.0, 0.0])
    with pytest.raises(ValueError, match="same layers"):
        across({"gpu": Kind(2, (1.0,))}, [0.0, 0.0])
