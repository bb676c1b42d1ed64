"""The rows of EdgeNN, CoDL and the layer-switching paper: complete, of one shape, no number where nothing was split."""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import (  # noqa: E402
    one_split,
    split_codl,
    split_common,
    split_edgenn,
    split_predictor,
    split_rows,
    split_switched,
)
from xcoexec.papers import quoted  # noqa: E402
from xcoexec.tools.splits import NO_SPLIT  # noqa: E402

CHEAP = {
    "edgenn": split_edgenn.FUNCTIONS,
    "codl": [
        f
        for f in split_codl.FUNCTIONS
        if f.__name__ not in ("figure1", "figure15", "figure17", "figure18", "figure19", "figure20", "figure22")
    ],
    "layer_switched": split_switched.FUNCTIONS,
}


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    return {k: [r for f in found for r in f()] for k, found in CHEAP.items()}


def test_rows_have_one_shape(rows: dict[str, list[dict[str, Any]]]) -> None:
    for key, found in rows.items():
        for r in found:
            names = ["paper_key", "figure", "what", "paper", "ours", "kind", "unit", "spread", "note"]
            assert list(r)[: len(names)] == names and set(r) - set(names) <= {
                "by",
                "paper_by",
                "series",
                "x",
                "runs",
                "splits",
            }
            assert r["paper_key"] == key and r["kind"] in split_common.KINDS and r["what"]
            assert (r["ours"] is None) == (r["kind"] == "absent") and (r["kind"] != "absent" or r["note"])
            if r["spread"]:
                assert r["spread"][0] - 1e-9 <= r["ours"] <= r["spread"][1] + 1e-9


@pytest.mark.parametrize("key", split_rows.FUNCTIONS)
def test_no_table_or_figure_is_left_out(key: str) -> None:
    """By the names of the functions, and the pictures without values."""
    paper = quoted.load(key)
    roman = {"Table I": "Table 1", "Table II": "Table 2", "Table III": "Table 3"}
    items = {re.sub(r"\(.*", "", roman.get(q.item, q.item)).strip() for q in paper.records.values()}
    items = {i for i in items if i.startswith(("Figure", "Table"))}
    has: set[str] = {r["figure"] for r in split_common.pictures(key)}
    for f in split_rows.FUNCTIONS[key]:
        kind, first, _, last = re.match(r"(figure|table|section)s?_?(\w+?)(_(?:to|and)_(\d+))?$", f.__name__).groups()  # type: ignore[union-attr]
        if kind != "section":
            has |= {f"{kind.title()} {n}" for n in range(int(first), int(last or first) + 1)}
    # Figure 11 is drawn of Table I's layers; CoDL's Tables 3 and 4 are measured (`split_predictor`)
    has |= {"edgenn": {"Figure 11"}, "codl": {"Table 3", "Table 4"}}.get(key, set())
    assert items <= has, sorted(items - has)


def test_simulated_rows_have_nothing_measured(rows: dict[str, list[dict[str, Any]]]) -> None:
    """What is measured is in rows of its own, which are run on the machine that their records name."""
    assert {r["kind"] for found in rows.values() for r in found} == {"calculated", "simulated", "absent"}


@pytest.mark.parametrize("shared", [True, False])
def test_forced_splits_of_halves_that_share_cores_give_no_number(monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    layer = {"device": 1e-3, "host": 2e-3}
    made = {"model": "lenet", "shared_cores": shared, "layer_seconds": layer, "runs": {"split": 9}, "p_cpu": 0.25}
    seconds = {"device": [0, 2e-3, 0], "split": [0, 1.75e-3, 0]}
    splits = [{**made, "class": kind, "seconds": seconds} for kind in ("conv", "fc", "fc")]
    monkeypatch.setattr(one_split, "single_splits", lambda model: iter(splits))
    conv, dense = one_split.table1(("lenet",))
    assert [r["paper"] for r in (conv, dense)] == [20.6, 36.4] and dense["note"].startswith("2 layers")
    assert [r["splits"] for r in (conv, dense)] == ([0, 0] if shared else [1, 2])
    assert dense["ours"] == (NO_SPLIT if shared else pytest.approx(25.0))
    assert ("changes a call by -0.250 ms" in dense["note"]) == shared


def test_a_layer_whose_split_is_slower_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As EdgeNN's tuning does; what the split by force takes stands beside it."""
    layer = {"device": 1e-3, "host": 2e-3}
    made = {"model": "vgg16", "class": "fc", "shared_cores": False, "layer_seconds": layer, "runs": {"split": 9}}
    gain, loss = ({"device": [0, 2e-3, 0], "split": [0, t, 0]} for t in (1.5e-3, 2.25e-3))
    splits = [{**made, "p_cpu": 0.25, "seconds": gain}, {**made, "p_cpu": 0.25, "seconds": loss}]
    monkeypatch.setattr(one_split, "single_splits", lambda model: iter(splits))
    (dense,) = one_split.table1(("vgg16",))
    assert dense["ours"] == pytest.approx(25.0) and dense["spread"] == pytest.approx([0.0, 50.0])
    assert "of which 1 gain" in dense["note"] and "with every split forced the mean is 12.5 %" in dense["note"]
    assert "a split costs 0.125 ms beside its two parts" in dense["note"]  # -0.5 and 0.25, 0.25 saved by the parts


def test_predictors_are_measured_by_half_and_form(monkeypatch: pytest.MonkeyPatch) -> None:
    within = {"ours": 0.5, "Equation 3": 0.25, "FLOP": 0.125}
    judged = [
        {"half": h, "kind": k, "layers": 7, "within": within} for h in ("host", "device") for k in ("conv", "all")
    ]
    record = {
        "accuracy": judged,
        "bytes": {"ours": 900},
        "bytes_of_numbers": {"Equation 3": 300, "FLOP": 16},
        "layers": 28,
        "samples": 80,
    }
    monkeypatch.setattr(split_predictor.predictors, "record", lambda count: record)
    found = {(r["figure"], r["what"]): r for r in split_predictor.predicted(28)}
    assert found["Table 3", "layers predicted within 10 %, host half: Equation 3"]["ours"] == 25
    assert found["Table 3", "layers predicted within 10 %, device half: FLOP alone"]["paper"] is None
    printed = {
        h: found["Table 3", f"layers predicted within 10 %, {h} half: ours"]["paper"] for h in ("host", "device")
    }
    assert printed == {"host": 86.21, "device": 82.69}  # section 1: on the CPU and on the GPU
    assert found["Table 4", "convolutions within 10 %, device half: ours"]["ours"] == 50
    size = found["Table 3", "bytes of the predictor's numbers, four each: Equation 3"]
    assert (size["paper"], size["ours"]) == (500, 300)


def test_inter_kernel_alone_gains_nothing_without_branches() -> None:
    (others,) = [r for r in split_edgenn.section_v_f() if r["what"] == "the same, the other four"]
    assert all(f"{m} 0.00" in others["note"] for m in ("fcnn", "lenet", "alexnet", "vgg16"))


def test_the_simulated_gain_of_layer_switching_is_near_the_printed_one() -> None:
    """The board's profile knows single-processor times alone; each mean lies within five points."""
    near = [r for r in split_switched.figure13() if r["kind"] == "simulated" and r["paper"] is not None]
    assert len(near) == 3 and all(abs(r["ours"] - r["paper"]) < 5 for r in near)
    order = [r for r in split_switched.figure2() if r["paper"] is not None]
    assert all(r["paper"] == r["ours"] for r in order)


def test_each_network_that_stands_in_says_for_which_and_why() -> None:
    printed = set(quoted.load("codl")["networks"].values.values())  # type: ignore[union-attr]
    for model, (cited, why) in split_codl.STAND_INS.items():
        assert model in split_codl.MODELS and cited in printed and "stands in because" in why
