"""One layer split at a time: what is simulated of it, on layers whose times are known."""

from __future__ import annotations

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import one_split  # noqa: E402
from xcoexec.devices import null  # noqa: E402
from xcoexec.ir.costs import Costs  # noqa: E402
from xcoexec.ir.validate import check_plan  # noqa: E402

from .support import LAYERS, array, dense, stages_of  # noqa: E402

GRAPH = stages_of(dense, LAYERS, array(8, 160), weights=1)[1]
N = len(GRAPH.layers)


def test_a_plan_splits_one_layer_alone() -> None:
    (first, *_) = one_split.divisible(GRAPH)
    plan = one_split.plan(GRAPH, {first.index: 0.25})
    check_plan(plan, GRAPH)
    assert [p.half for p in plan.placements].count("split") == 1 and plan.placements[first.index].p_cpu == 0.25
    assert {p.half for p in one_split.plan(GRAPH, {}).placements} == {"device"}


def test_equal_halves_improve_every_layer_by_half() -> None:
    found = one_split.simulated(GRAPH, null.costs(GRAPH, 1e-3, 1e-3, 0.0, 1e15))
    assert set(found) == {"fc"} and found["fc"] == pytest.approx([0.5] * N, abs=0.01)


def test_a_layer_whose_split_is_slower_is_left_alone() -> None:
    sync = null.costs(GRAPH, 1e-3, 1e-3, 1e-2, 1e15)
    assert one_split.simulated(GRAPH, sync)["fc"] == [0.0] * N
    lacking = Costs.of_halves((None,) * N, (1e-3,) * N, 0.0, 1e15, 1.0, False)
    assert all(one_split.share(x, lacking) == 0.0 for x in GRAPH.layers)


def test_what_was_run_is_compared_by_its_own_layers_time() -> None:
    made = {"model": "m", "class": "fc", "layer_seconds": {"device": 2.0}}
    runs = [
        {**made, "seconds": {"device": [0, 10.0, 0], "split": [0, 9.0, 0]}},
        {**made, "seconds": {"device": [0, 10.0, 0], "split": [0, 11.0, 0]}},
        {**made, "class": "conv", "seconds": {"device": [0, 1.0, 0], "split": [0, 1.0, 0]}},
    ]
    assert one_split.improvements(runs, "m", "fc") == [0.5, -0.5]
