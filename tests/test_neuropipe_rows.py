"""Rows of NeuroPipe's tables and figures: none left out, printed numbers from the quoted ones, and what they say."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benchmarks import neuropipe_board as board
from benchmarks import neuropipe_measured, neuropipe_rows
from benchmarks.streams import Way, empirical, gains, tried
from xcoexec.ir.costs import Costs
from xcoexec.streams.neuropipe import speedup

KINDS = {"measured", "calculated", "simulated", "not here"}


def record(machine: str = "made", model: str = "mlp", **given: Any) -> dict[str, Any]:
    """Pipelining saves half of the time, kernels a fifth."""
    gained = {"pipelining": [1.9, 2.0, 2.1], "kernels": [1.25, 1.25, 1.25], "both": [2.4, 2.5, 2.6]}
    made = {
        "gains": gained,
        "rounds": {"serial": [1.0] * 3},
        "seconds": 2.0,
        "xcoexec": "1",
        "commit": "abc",
        "load": 0.4,
    }
    return {
        "machine": machine,
        "model": model,
        "alpha": 0.2,
        "gamma": 3.0,
        "cut": None,
        "empirical": None,
        **made,
        **given,
    }


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return neuropipe_rows.rows()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    runs = {"mlp": record(), "resnet50": record(model="resnet50", empirical="cut 53", cut="device 0..52 | host")}
    monkeypatch.setattr(neuropipe_measured.streams, "run", lambda model, seconds, workers, rounds: runs[model])
    return neuropipe_measured.streamed(tuple(runs), 2.0)


def test_every_table_and_figure_has_a_row(rows: list[dict[str, Any]]) -> None:
    named = {r["figure"].split("(")[0] for r in rows}
    wanted = [f"Table {i}" for i in range(1, 6)] + [f"Figure {i}" for i in range(1, 10)]
    assert named >= set(wanted)
    for r in rows:
        assert set(r) - {"series", "x"} == {"figure", "what", "paper", "ours", "kind", "unit", "spread", "note"}
        assert r["kind"] in KINDS
        assert (r["ours"] is None) == (r["kind"] == "not here") and (r["ours"] is not None or r["note"])
        if isinstance(r["ours"], float):
            assert math.isfinite(r["ours"])
        if r["spread"] and isinstance(r["ours"], float):
            assert r["spread"][0] - 1e-9 <= r["ours"] <= r["spread"][1] + 1e-9, r


def test_printed_numbers_are_the_quoted_ones(rows: list[dict[str, Any]]) -> None:
    """Each printed number of a row stands in a record of its table or figure."""
    for r in rows:
        if isinstance(r["paper"], float):
            quoted = [q for q in board.PAPER.records.values() if q.values and r["figure"].split("(")[0] in q.item]
            quoted += [q for q in board.PAPER.records.values() if q.values and r["figure"].startswith("Section")]
            flat = [x for q in quoted for v in (q.values or {}).values() for x in (v if isinstance(v, tuple) else (v,))]
            assert r["paper"] in flat, r


def test_measured_rows_tell_pipelining_from_kernels(measured: list[dict[str, Any]]) -> None:
    found = {r["what"]: r for r in measured if r["figure"] == "Figure 5(a)"}
    (alone,) = (r for w, r in found.items() if "pipelining alone" in w and "mean of 2" in w)
    (kernels,) = (r for w, r in found.items() if "kernels alone" in w and "mean of 2" in w)
    assert alone["ours"] == pytest.approx(50.0) and kernels["ours"] == pytest.approx(20.0)
    assert alone["paper"] == 17.6 and kernels["paper"] is None  # pipelining alone is what the figure has
    assert "resnet50" in alone["note"] and "mlp" in alone["what"]


@pytest.mark.parametrize(("empirical", "why"), [(None, "share their cores"), ("cut 2", "faster whole than cut")])
def test_a_row_of_networks_that_are_not_cut_says_why(empirical: str | None, why: str) -> None:
    (said,) = {neuropipe_measured.cut_of([record(empirical=empirical)])}
    assert why in said


def test_measured_rows_have_the_machines_own_parameters_and_cuts(measured: list[dict[str, Any]]) -> None:
    found = {(r["figure"], r["what"]): r["ours"] for r in measured}
    assert found["Table 4", "alpha of mlp on this machine"] == 0.2
    assert found["Table 5", "resnet50, empirical on this machine"] == "cut 53"
    assert found["Table 5", "mlp, empirical on this machine"] == neuropipe_measured.NOT_CUT
    assert {r["kind"] for r in measured} == {"measured"}


@pytest.mark.parametrize("name", list(board.NETWORKS))
def test_the_simulation_has_the_printed_alpha_and_gamma(name: str) -> None:
    c = board.case(name)
    assert c.operations / c.serial == pytest.approx(c.alpha) == pytest.approx(board.PAPER["alpha"].number(name))
    assert sum(t or 0.0 for t in c.costs.host) / c.accelerated == pytest.approx(board.PAPER["gamma"].number(name))
    assert board.calculated(c) == pytest.approx(100 * (1 - 1 / speedup(c.alpha, c.gamma)))
    assert (
        board.simulated(c, "best") >= max(board.simulated(c, k) for k in ("neuropipe", "printed", "oblivious")) - 1e-9
    )
    assert board.exactly(c) >= board.simulated(c, "best") - 1e-9


def test_layers_are_counted_as_table_5_does() -> None:
    """Poolings and additions count, biases and activations do not; ResNet has four convolutions more, where blocks
    change their width.
    """
    counted = {n: board.as_counted(board.case(n), 0) for n in ("mlp", "mobilenet", "resnet")}
    assert counted == {"mlp": 7, "mobilenet": 30, "resnet": 69 + 4}


def test_modes_keep_what_they_promise() -> None:
    """Saving: the baseline's time for less power. Boosting: the baseline's energy in less time."""
    for c in board.cases():
        base, basic, saving, boosting = board.alone(c), *(board.mode(c, m) for m in ("basic", "save", "boost"))
        assert saving.period <= base.period * (1 + 1e-9) and saving.watts < base.watts and saving.period >= basic.period
        assert boosting.joules <= base.joules * (1 + 1e-9) and boosting.period < basic.period


def test_cuts_around_the_best_one_are_run() -> None:
    """Periods of 12.7, 3.7, 3.5, 4.5 and 6 s by the layers' seconds: those up to a quarter above the best one run. With
    host operations that outweigh the network all cuts are alike.
    """
    costs = Costs.of_halves((9.0, 9.0, 1.5, 1.5, 0.7), (2.0, 1.0, 0.5, 1.0, 1.5), 0.0, 1e12, 1.0, False)
    nbytes = [0] * 6
    assert tried(costs, nbytes, 0.0) == [2, 3] and tried(costs, nbytes, 100.0) == [1, 2, 3, 4, 5]
    assert empirical({"serial": 9.0, "cut 2": 1.0, "cut 3": 1.1}) == "cut 3" and empirical({"serial": 1.0}) is None


def test_gains_are_ratios_of_the_same_round() -> None:
    ways = {
        k: Way(iter, rates=rates)
        for k, rates in dict(serial=[1.0, 2.0], kernels=[2.0, 2.0], pipeline=[3.0, 8.0]).items()
    }
    assert gains(ways) == {"pipelining": [1.5, 4.0], "kernels": [2.0, 1.0], "both": [3.0, 4.0]}
    assert "pipelining" not in gains({k: ways[k] for k in ("serial", "pipeline")})
