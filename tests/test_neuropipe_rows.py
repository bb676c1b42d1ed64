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
    (alone,) = (r for w, r in found.items() if "pipelining alone" in w and "mean of" in w)
    (kernels,) = (r for w, r in found.items() if "kernels alone" in w and "mean of 2" in w)
    assert alone["ours"] == pytest.approx(50.0) and kernels["ours"] == pytest.approx(20.0)
    assert alone["paper"] == 17.6 and kernels["paper"] is None  # pipelining alone is what the figure has
    assert "resnet50" in alone["note"] and "mlp" in kernels["what"]


def test_the_printed_gain_stands_beside_networks_that_are_cut_alone() -> None:
    """MobileNet is cut, the MLP is not: its 75 % are of host operations that overlap, which are not the paper's."""
    whole = record(gains={"pipelining": [4.0] * 3, "both": [4.0] * 3})
    cut = record(model="mobilenet_v1", empirical="cut 27", cut="device 0..26 | host")
    found = {r["what"].removeprefix("less execution time, "): r for r in neuropipe_measured.gains("F", [whole, cut])}
    beside = {w: (r["paper"], pytest.approx(r["ours"])) for w, r in found.items() if r["paper"] is not None}
    assert beside == {
        "pipelining alone, the same kernels, mean of the networks that are cut": (17.6, 50.0),
        "pipelining alone, the same kernels, mobilenet_v1": (32.0, 50.0),
    }
    mine = [r for w, r in found.items() if "(mlp)" in w or w.endswith(" mlp")]
    assert len(mine) == 4 and all("only the host operations overlap" in r["what"] and r["ours"] == 75 for r in mine)


@pytest.mark.parametrize(("empirical", "why"), [(None, "share their cores"), ("cut 2", "faster whole than cut")])
def test_a_machine_that_cuts_no_network_has_no_number_beside_the_printed_one(empirical: str | None, why: str) -> None:
    found = neuropipe_measured.gains("Figure 5(a)", [record(empirical=empirical)])
    (beside,) = (r for r in found if r["paper"] is not None)
    assert (beside["paper"], beside["unit"], beside["ours"]) == (17.6, "%", neuropipe_measured.NOT_CUT)
    assert why in beside["note"]
    assert neuropipe_measured.NOT_CUT == "no cut on this machine"
    rest = [r for r in found if r is not beside and "kernels alone" not in r["what"]]
    assert rest and all("only the host operations overlap" in r["what"] for r in rest)
    assert not neuropipe_measured.gains("Figure 5(a)", [])


def test_measured_rows_have_the_machines_own_cuts(measured: list[dict[str, Any]]) -> None:
    found = {(r["figure"], r["what"]): r["ours"] for r in measured}
    assert found["Table 5", "resnet50, empirical on this machine"] == "cut 53"
    assert found["Table 5", "mlp, empirical on this machine"] == neuropipe_measured.NOT_CUT
    assert {r["kind"] for r in measured} == {"measured"}


def test_the_machines_own_parameters_stand_beside_the_printed_ones(
    measured: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    """In the line that has the printed ones where nothing is measured; memory is printed alone."""
    found = {r["what"]: r for r in measured if r["figure"] == "Table 4"}
    assert {w: (r["paper"], r["ours"]) for w, r in found.items()} == {
        "alpha of mlp": (0.32, 0.2),
        "gamma of mlp": (11.0, 3.0),
        "alpha of resnet": (0.18, 0.2),
        "gamma of resnet": (18.7, 3.0),
    }
    assert all("Xavier" in r["note"] and "rounds of" not in r["note"] for r in found.values())
    printed = {r["what"]: r["paper"] for r in rows if r["figure"] == "Table 4" and r["kind"] == "not here"}
    assert all(printed[w] == r["paper"] for w, r in found.items())
    memory = {n: printed[f"memory of {n}"] for n in board.NETWORKS}
    assert memory == board.PAPER["memory"].values and memory["yolo"] == 771.25


def test_a_measured_row_has_as_many_runs_as_rounds_and_their_spread() -> None:
    """The mean of two networks by round: 20, 40 and 70 %."""
    ratio = lambda *saved: {"kernels": [1 / (1 - s) for s in saved]}
    one = record(gains=ratio(0.1, 0.3, 0.8))
    two = record(model="resnet50", gains=ratio(0.3, 0.5, 0.6), load=1.2)
    found = neuropipe_measured.gains("Figure 5(a)", [one, two])
    assert [(pytest.approx(r["ours"]), r["runs"]) for r in found] == [(40.0, 3), (30.0, 3), (50.0, 3)]
    assert [r["spread"] for r in found] == [pytest.approx(s) for s in ((20, 70), (10, 80), (30, 60))]
    assert "load of 0.4 to 1.2" in found[0]["note"] and all("3 rounds of 2 s" in r["note"] for r in found)
    assert [r["runs"] for r in neuropipe_measured.tried([one, two])] == [3, 3]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mobilenet", ("MobileNetV1", "MobileNetV2", "27 conv", "1.148 GFLOP", "printed 0.61")),
        ("yolo", ("YOLOv3", "YOLOv1", "75 conv", "65.99 GFLOP", "printed 44.9")),
        ("fcn", ("FCN-8s", "8 conv", "42.64 GFLOP", "printed 11.1")),
    ],
)
def test_rows_of_a_network_that_stands_in_say_why(
    rows: list[dict[str, Any]], name: str, words: tuple[str, ...]
) -> None:
    """Rows of its layers; those of printed numbers alone are the paper's network's."""
    said = board.stand_in(name)
    assert all(w in said for w in words)
    mine = [r for r in rows if name in r["what"] and r["kind"] == "simulated"]
    mine += [r for r in rows if name in r["what"] and r["figure"] in ("Table 4", "Table 5") and r["ours"] is not None]
    means = ("mean of five", "performance lost by the rule", "our exact cut", "best two stages")
    mine += [r for r in rows if any(w in r["what"] for w in means)]
    if name == "mobilenet":
        mine += [r for r in rows if r["what"] in ("interval, pipelined", "swing, pipelined")]
    cut = [record(model=board.NETWORKS[name], cut="device 0..2 | host", empirical="cut 3")]
    measured = neuropipe_measured
    mine += [*measured.parameters(cut), *measured.tried(cut), *measured.gains("Figure 5(a)", cut)]
    assert len(mine) > 40 and not [r for r in mine if said not in r["note"]]


def test_nothing_stands_in_for_the_other_networks(rows: list[dict[str, Any]]) -> None:
    others = board.NETWORKS.keys() - board.STAND_INS.keys()
    assert others == {"mlp", "resnet"} and {board.stand_in(n) for n in others} == {""}
    equation = [r for r in rows if "Equation 1" in (r["what"], r["note"]) or r["what"].endswith("Equation 1")]
    assert len(equation) > 5 and not any("stands in" in r["note"] for r in equation)
    assert not any("stands in" in r["note"] for r in rows if r["figure"] == "Table 3")


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
