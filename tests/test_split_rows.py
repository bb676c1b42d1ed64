"""The rows of EdgeNN, CoDL and the layer-switching paper: complete, of one shape, no number where nothing was split."""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import split_codl, split_common, split_edgenn, split_rows, split_switched  # noqa: E402
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
            assert list(r)[: len(names)] == names and set(r) - set(names) <= {"by", "paper_by", "series", "x"}
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
    has |= {"Figure 11"} if key == "edgenn" else set()  # drawn of Table I's layers: in its function
    assert items <= has, sorted(items - has)


def test_where_nothing_is_split_no_number_is_said_about_splits(rows: dict[str, list[dict[str, Any]]]) -> None:
    """The machine whose halves share cores: its measured rows are of kernels, switches, single forced splits and
    predictors, or they say that nothing was split.
    """
    for key in ("edgenn", "codl"):
        mine = [r for r in rows[key] if r["kind"] == "measured" and "CPU: " in r["note"]]
        about_splits = [r for r in mine if r["figure"] != "kernels"]
        assert about_splits or key == "codl"
        assert all(r["ours"] == NO_SPLIT for r in about_splits)


def test_a_variant_that_does_not_split_gives_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {
        "suite": "codl",
        "model": "m",
        "seconds": {"jit": [1, 2, 3], "codl": [0.1, 0.2, 0.3]},
        "halves": {"codl": {"device": 1, "split": 0, "host": 2}},
        "stands_for": {},
        "environment": {"cpu": "c", "device": "d", "xcoexec": "0", "jax": "0"},
    }
    monkeypatch.setattr(split_common, "records", lambda machine, suite: (record,))
    ask = lambda **more: split_common.measured_cells("codl", "Figure 15", "w", 1.0, "codl", "codl", ("jit",), **more)
    assert {r["ours"] for r in ask()} == {NO_SPLIT}
    assert all(r["ours"] == pytest.approx(10.0) for r in ask(switched=True, as_times=True))
    record["halves"]["codl"]["split"] = 1  # type: ignore[index]
    assert all(r["ours"] == pytest.approx(10.0) for r in ask(as_times=True))


def test_inter_kernel_alone_gains_nothing_without_branches() -> None:
    (others,) = [r for r in split_edgenn.section_v_f() if r["what"] == "the same, the other five"]
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
