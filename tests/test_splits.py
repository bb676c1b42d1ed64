"""What is said about splits comes from plans that split: a variant that does not is in no such column."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from xcoexec.tools.splits import NO_SPLIT, about_splits, gain, kernels, shared, split_layers, splitting
from xcoexec.tools.variants import VARIANTS

RESULTS = pathlib.Path(__file__).parent.parent / "benchmarks/results"


def _record(model: str, split: int, **seconds: float) -> dict[str, Any]:
    times = {v: [0.9 * t, t, 1.1 * t] for v, t in seconds.items()}
    halves = {v: {"device": 3 - split, "split": split, "host": 0} for v in times if v != "jit"}
    return {"model": model, "batch": 1, "seconds": times, "halves": halves, "stands_for": {v: v for v in halves}}


def _mean_gain(records: Any) -> str:
    return ", ".join(f"{r['model']} {gain(r, 'codl', 'jit'):.0%}" for r in records)


def test_a_variant_that_does_not_split_is_in_no_column_about_splits() -> None:
    """Twice as fast without a split: that is the kernels' gain, and no number about splits."""
    fast, splits = _record("fast", 0, jit=2.0, codl=1.0), _record("splits", 1, jit=2.0, codl=1.5)
    assert about_splits([fast], "codl", _mean_gain) == NO_SPLIT
    assert about_splits([fast, splits], "codl", _mean_gain) == "splits 25%"
    assert splitting([fast, splits], "codl") == [splits]
    assert split_layers(splits, "jit") == 0 and about_splits([splits], "jit", _mean_gain) == NO_SPLIT


def test_one_plan_is_one_number() -> None:
    """Two variants with one plan differ by nothing, whatever was measured for them."""
    r = _record("m", 1, jit=2.0, codl=1.5, edgenn=1.4)
    assert gain(r, "edgenn", "codl") == pytest.approx(1 - 1.4 / 1.5)
    r["stands_for"]["edgenn"] = "codl"
    assert gain(r, "edgenn", "codl") == 0.0


def test_layers_on_either_half_share_the_work() -> None:
    r = _record("m", 0, jit=1.0, layer_switch=1.0)
    assert not shared(r, "layer_switch")
    r["halves"]["layer_switch"]["host"] = 1
    assert shared(r, "layer_switch") and not split_layers(r, "layer_switch")


def test_the_records_of_a_machine_whose_halves_share_cores_split_nothing() -> None:
    """Of every variant and network that was measured there."""
    lines = (RESULTS / "zen5-2cores-suites.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    variants = {v for r in records for v in r["halves"]}
    assert len(records) > 10 and variants >= {"edgenn", "codl", "layer_switch"}
    assert {about_splits(records, v, _mean_gain) for v in variants} == {NO_SPLIT}


def test_kernels_have_a_table_of_their_own() -> None:
    r = _record("m", 0, jit=0.004, host=0.002)
    r["halves"]["host"] = {"device": 0, "split": 0, "host": 3}
    text = kernels([r, _record("none", 0, jit=1.0, codl=1.0)])
    assert "2.00x" in text and "4.000 (3.600 to 4.400)" in text and "none" not in text
    assert kernels([]) == "no model has all its layers on the host half"


def test_the_papers_ablations_and_rivals_are_measured() -> None:
    assert {"edgenn, inter only", "edgenn, hybrid", "edgenn, paper", "mu_layer", "codl, algorithm 1"} <= set(VARIANTS)
