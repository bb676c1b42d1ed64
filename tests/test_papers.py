"""The papers' page: every table and figure has a row; what is shown comes from records alone; columns are not mixed;
what does not split is no figure about splits; a run goes on where it was.
"""

from __future__ import annotations

import functools
import importlib
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks import papers
from xcoexec.papers import (
    axes,
    beyond,
    cases,
    cells,
    kept,
    markdown,
    measured,
    page,
    pictures,
    quoted,
    records,
    rows,
    run,
    source,
    steps,
    table,
    view,
)
from xcoexec.papers.cells import CALCULATED, MEASURED, NO_SPLIT, SIMULATED, Cell, PapersError
from xcoexec.papers.records import Record
from xcoexec.papers.rows import Row
from xcoexec.tools import lines
from xcoexec.tools.lines import LinesError
from xcoexec.tools.machine import environment

pytestmark = pytest.mark.usefixtures("quick_xla")

ROOT = pathlib.Path(__file__).parent.parent
HERE = f"{__name__}"
called: list[dict[str, Any]] = []


def made_cells(**given: Any) -> list[dict[str, Any]]:
    """A row's function."""
    called.append(given)
    common = {"figure": "Figure 8", "paper": 22.02, "unit": "%"}
    return [
        {
            **common,
            "what": "EdgeNN over the GPU alone",
            "ours": 11.25,
            "kind": MEASURED,
            "spread": [10.5, 12.5],
            "splits": 3,
        },
        {**common, "what": "EdgeNN over the GPU alone", "ours": 7.75, "kind": SIMULATED},
    ]


def failing() -> list[dict[str, Any]]:
    """A row's function that does not end."""
    called.append({})
    raise OSError("no such board")


def stepping(names: Sequence[str], stop: str = "") -> list[dict[str, Any]]:
    """A row's function with a step for each name; an interrupt comes in the step `stop`."""

    def make(name: str) -> float:
        if name == stop:
            raise KeyboardInterrupt
        called.append({"step": name})
        return 1.5

    found = [(n, steps.once(HERE, n, lambda n=n: make(n))) for n in names]
    common = {"figure": "Figure 8", "paper": None, "unit": "%", "kind": MEASURED}
    return [{**common, "what": n, "ours": v} for n, v in found if v is not None]


def row(**changed: Any) -> Row:
    return Row(**{"paper": "edgenn", "figures": ("Figure 8",), "function": f"{HERE}:made_cells", **changed})


def record(of: Row, found: Sequence[dict[str, Any]], **changed: Any) -> Record:
    made = records.made(of, "quick", found, 1.5, environment())  # type: ignore[arg-type]
    return {**made, **changed}  # type: ignore[typeddict-item]


@pytest.fixture(autouse=True)
def no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    called.clear()
    monkeypatch.setattr(run, "RESULTS", ROOT / "no such folder")


# -- rows ---------------------------------------------------------------------------------------------


def test_every_table_and_figure_has_a_row() -> None:
    assert rows.without_row(table.ROWS) == []
    assert sum(len(rows.items(p)) for p in quoted.papers()) == sum(p.tables + p.figures for p in quoted.papers())
    fewer = [r for r in table.ROWS if (r.paper, "Figure 13") not in {(r.paper, f) for f in r.figures}]
    found = {name.rpartition(", ")[0] for name in rows.without_row(fewer)}
    assert found == {p.name for p in quoted.papers() if p.figures >= 13}


def test_a_row_has_a_function_or_a_reason() -> None:
    for r in table.ROWS:
        assert bool(r.function) != bool(r.because), r.key
        if r.function:
            assert callable(getattr(importlib.import_module(r.module), r.function.partition(":")[2])), r.key
        known = rows.items(quoted.load(r.paper)) if r.paper in quoted.KEYS else r.figures
        assert all(f in known or f.startswith(("Section", "Equation", "Algorithm", "Kernels")) for f in r.figures), (
            r.key
        )
    keys = [r.key for r in table.ROWS]
    assert len(set(keys)) == len(keys)


def test_functions_give_the_figures_of_their_rows() -> None:
    """One that only computes; the paper's values that it names are printed."""
    (mine,) = [r for r in table.ROWS if r.function == "xcoexec.benchmarks.split_switched:table1"]
    found = mine.run(full=False)
    assert found and {cells.base(c["figure"]) for c in found} == set(mine.figures)
    known = {v for q in quoted.load(mine.paper).records.values() for v in _numbers(q)}
    assert all(c["paper"] is None or c["paper"] in known for c in found)
    assert any(c["ours"] == pytest.approx(86.49) for c in found if isinstance(c["ours"], float))


def _numbers(q: quoted.Quoted) -> list[Any]:
    return [v for given in (q.values or {}).values() for v in (given if isinstance(given, tuple) else (given,))]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"what": "x"}, "got a cell of f without 'figure'"),
        ({"kind": "guessed"}, "got kind='guessed' in f; valid are measured, calculated, simulated"),
        ({"figure": "Figure 9"}, "got figure='Figure 9' in f; valid are Figure 8"),
    ],
)
def test_a_wrong_cell_is_named(cell: dict[str, Any], message: str) -> None:
    whole = made_cells()[0]
    wrong = cell if "what" in cell else {**whole, **cell}
    with pytest.raises(PapersError, match=message):
        cells.checked([whole, wrong], ("Figure 8",), "f")
    with pytest.raises(PapersError, match="got dict from f; valid is a list of dicts"):
        cells.checked(whole, ("Figure 8",), "f")


# -- the page -----------------------------------------------------------------------------------------


def test_the_page_shows_records_and_nothing_else() -> None:
    empty = markdown.text([], table.ROWS)
    assert "rerun (measured)" not in empty and "not run yet" in empty
    mine = row()
    shown = markdown.text([record(mine, made_cells())], [mine])
    (line,) = [x for x in shown.splitlines() if x.startswith("| Figure 8 | EdgeNN over the GPU alone ")]
    columns = [c.strip() for c in line.strip("|").split("|")]
    assert columns == ["Figure 8", "EdgeNN over the GPU alone", "22.02 %", "11.25 % (10.5 to 12.5)", "-", "7.75 %", ""]
    assert markdown.text([record(row(paper="codl"), made_cells())], [mine]).count("11.25") == 0


def test_the_html_page_shows_the_same_and_draws_it() -> None:
    mine = row()
    with_picture = page.text([record(mine, made_cells())], [mine])
    assert "11.25 % (10.5 to 12.5)" in with_picture and "7.75 %" in with_picture and "22.02 %" in with_picture
    assert with_picture.count('<img src="data:image/png;base64,') == 1 and 'src="http' not in with_picture
    other = row(figures=("Table I",))
    found = [{**c, "figure": "Table I"} for c in made_cells()]
    assert "<img" not in page.text([], [mine]) and "<img" not in page.text([record(other, found)], [other])


def test_without_matplotlib_the_page_has_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = row()
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    text = page.text([record(mine, made_cells())], [mine])
    assert "matplotlib is not installed" in text and "11.25 %" in text and "<img" not in text


def _figure(figure: str, found: list[dict[str, Any]], paper: str = "edgenn") -> view.Figure:
    mine = row(paper=paper, figures=(cells.base(figure),))
    (made,) = view.figures([record(mine, found)], [mine])
    return made


def test_a_picture_has_a_bar_for_each_network_and_the_papers_points() -> None:
    """What the pattern does not match is not drawn; the paper's names and its values are at the bars' places."""
    common = {"figure": "Figure 8", "paper": 22.02, "unit": "%", "kind": SIMULATED}
    found = [
        {
            **common,
            "what": "EdgeNN over the GPU alone",
            "ours": 14.0,
            "by": {"vgg16": 16.5, "lenet": 11.5},
            "paper_by": {"vgg16": 16.29},
        },
        {**common, "what": "memory management alone", "ours": 11.46},
    ]
    figure = _figure("Figure 8", found)
    (panel,) = pictures.drawable(figure)
    drawn = {p.place: (p.ours, p.paper) for p in pictures.points(figure, panel)}
    assert drawn == {"VGG": (16.5, 16.29), "LeNet": (11.5, None), "average": (14.0, 22.02)}
    assert panel.y.endswith("(%)") and pictures.png(figure, [panel]).startswith(b"\x89PNG")


def test_savings_are_drawn_over_the_baseline_and_curves_as_lines() -> None:
    common = {"paper": None, "unit": "%", "kind": SIMULATED}
    found = [
        {**common, "figure": "Figure 5(a)", "what": "less execution time, mlp", "ours": 20.0},
        {**common, "figure": "Figure 5(b)", "what": "more power, mean of five", "ours": 10.0, "paper": 8.9},
    ]
    figure = _figure("Figure 5", found, "neuropipe")
    (time, power) = [pictures.points(figure, p)[0] for p in pictures.drawable(figure)]
    assert (time.place, time.ours) == ("MLP", pytest.approx(0.8))
    assert (power.place, power.ours, power.paper) == ("average", pytest.approx(1.1), pytest.approx(1.089))
    curve = [
        {**common, "figure": "Figure 3", "what": "g", "ours": 1.0 + a, "series": "gamma = 10", "x": a} for a in (0, 1)
    ]
    network = {**common, "figure": "Figure 3", "what": "mlp", "ours": 1.5, "x": 0.3}
    figure = _figure("Figure 3", [*curve, network], "neuropipe")
    assert [line.what for line in figure.lines()] == ["gamma = 10 (curve)", "mlp"]
    (panel,) = pictures.drawable(figure)
    assert [p.x for p in pictures.points(figure, panel)] == [0, 1, 0.3]
    assert pictures.png(figure, [panel]).startswith(b"\x89PNG")


def test_axes_are_of_figures_that_a_row_reruns() -> None:
    rerun = {(r.paper, f) for r in table.ROWS if r.function for f in r.figures}
    assert axes.AXES.keys() <= rerun
    for panels in axes.AXES.values():
        assert panels and all(p.y and p.scale in axes.SCALES for p in panels)


def test_what_is_simulated_stands_once_whichever_machine_ran_it() -> None:
    mine = row()
    old = record(mine, made_cells(), environment={**environment(), "cpu": "4-core other"}, source="another")
    (line,) = view.figures([old, record(mine, made_cells())], [mine])[0].lines()
    assert line.columns["simulated"] == "7.75 %" and len([c for c in line.columns if c.startswith(MEASURED)]) == 2


def test_kinds_are_columns_that_are_never_mixed() -> None:
    mine = row()
    other = {**environment(), "cpu": "4-core other"}
    both = [record(mine, made_cells()[:1], environment=other), record(mine, made_cells())]
    (figure,) = view.figures(both, [mine])
    (line,) = figure.lines()
    assert len(line.columns) == 3 and [c.partition(":")[0] for c in line.columns] == [MEASURED, MEASURED, SIMULATED]
    assert figure.how == "rerun (measured), simulated"
    assert view.columns([figure])[-2:] == [CALCULATED, SIMULATED]


def test_what_does_not_split_is_no_figure_about_splits() -> None:
    """A number of a run in which nothing was split is neither shown nor drawn; it says so instead."""
    mine = row(about_splits=True)
    found = made_cells()
    found[0] |= {"ours": 62.4, "splits": 0}
    text = markdown.text([record(mine, found)], [mine])
    assert "62.4" not in text and f"| {NO_SPLIT} |" in text and "7.75 %" in text
    del found[0]["splits"]
    assert "62.4" not in markdown.text([record(mine, found)], [mine])
    assert cells.number(found[0], True) is None and cells.number({**found[0], "splits": 2}, True) == 62.4  # type: ignore[arg-type,typeddict-item]
    assert cells.number(found[1], True) == 7.75  # type: ignore[arg-type]
    assert "62.4" in markdown.text([record(row(), found)], [row()])


def test_what_kernels_gain_stands_in_a_table_of_its_own() -> None:
    """No row of a paper's figure speaks of the host half against `jax.jit`; one row beyond the papers does."""
    assert [r.paper for r in table.ROWS if "Kernels" in r.figures] == [rows.BEYOND]
    for suite in measured.CLAIMS:
        assert not [c for c in measured.CLAIMS[suite] if (c.way, c.than) == ("host", "jit")]
    (found, mean) = measured.kernels([case("lenet", jit=0.4, host=0.1)])
    assert found["figure"] == "Kernels" and found["ours"] == pytest.approx(4.0) == mean["ours"]


def case(model: str, splits: int = 0, on_host: int = 0, **seconds: float) -> dict[str, Any]:
    """A network as `cases` has it: every way's plan has so many split layers and so many on the host half."""
    halves = {way: {"split": splits, "host": on_host, "device": 1} for way in seconds}
    return {"model": model, "seconds": {w: [t] * 3 for w, t in seconds.items()}, "halves": halves}


def test_rows_that_measure_splits_are_about_splits() -> None:
    about = {r.function for r in table.ROWS if r.about_splits}
    assert {f"xcoexec.papers.measured:{n}_measured" for n in ("edgenn", "codl")} <= about


def test_a_record_that_is_older_than_the_code_says_so() -> None:
    mine = row()
    now, old = record(mine, made_cells()), record(mine, made_cells(), source="another")
    assert view.OLDER not in markdown.text([now], [mine])
    text = markdown.text([old], [mine])
    assert f"11.25 % (10.5 to 12.5){view.OLDER}" in text and f"7.75 %{view.OLDER}" in text
    assert view.OLDER not in markdown.text([now, old], [mine])  # what speaks of the present code comes first


def test_the_hash_is_that_of_the_code_and_of_its_data(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "xcopapers"
    package.mkdir()
    for name, text in (
        ("__init__.py", ""),
        ("a.py", "def f():\n    from .b import g\n"),
        ("b.py", "g = 1\n"),
        ("c.py", ""),
    ):
        (package / name).write_text(text)

    def now() -> str:
        source.digest.cache_clear()
        source._found.cache_clear()
        return source.digest("xcopapers.a")

    before = now()
    (package / "c.py").write_text("h = 1\n")
    assert now() == before
    (package / "b.py").write_text("g = 2\n")
    changed = now()
    assert changed != before
    (package / "data.toml").write_text("x = 1\n")
    assert now() == changed  # beside a module that nothing imports: the package itself is not imported by name
    source.digest.cache_clear()


def test_the_table_of_methods_says_what_was_not_measured() -> None:
    mine = Row(rows.BEYOND, ("Methods",), f"{HERE}:made_cells", matrix=True)
    common = {"figure": "Methods", "what": "lenet", "paper": None, "kind": MEASURED, "unit": "ms"}
    here = [{**common, "series": s, "ours": t} for s, t in (("EdgeNN", 1.5), ("NeuroPipe", 2.5))]
    other = {**environment(), "device": "NVIDIA H200 8"}
    both = [record(mine, here), record(mine, here[:1], environment=other)]
    head, body = view.matrix(view.figures(both, [mine])[0])
    assert head == ["machine", "network", "EdgeNN", "NeuroPipe"]
    assert [r[2:] for r in body] == [["1.5 ms", "2.5 ms"], ["1.5 ms", "not measured"]]
    assert "NVIDIA H200 with 8 multiprocessors" in body[1][0]


def test_a_winner_is_one_only_beyond_the_spread() -> None:
    clear = {"a": [1.0, 1.1, 1.2], "b": [1.3, 1.4, 1.5]}
    assert beyond.line("m", clear, {}, 3)[-1]["ours"] == "a"
    assert beyond.line("m", {**clear, "b": [1.15, 1.4, 1.5]}, {}, 3)[-1]["ours"] == "no clear winner: a, b"


def test_the_table_of_methods_counts_wins_and_says_what_failed() -> None:
    two = [case("lenet", jit=2e-3, edgenn=1e-3, codl=1e-3), case("vgg16", jit=1e-3, edgenn=2e-3, codl=3e-3)]
    two[0]["plans"] = {"blastnet": "failed: OSError: no blocks"}
    found = {(c["what"], c["series"]): c["ours"] for c in beyond.table(two, 3)}
    assert found["lenet", "EdgeNN"] == pytest.approx(1.0) and found["lenet", "BlastNet"].startswith("failed: ")
    assert found["lenet", "fastest"] == "no clear winner: EdgeNN, CoDL" and found["vgg16", "fastest"] == "jax.jit alone"
    wins = {s: w for (what, s), w in found.items() if what == beyond.WON}
    assert wins == {"jax.jit alone": "1 of 2", "EdgeNN": "1 of 2", "CoDL": "1 of 2", "BlastNet": "0 of 2"}


def test_a_mean_about_splits_is_that_of_networks_that_split() -> None:
    ways = {"edgenn, paper": 0.75, "device": 1.0, "host": 2.0}
    none, some = case("lenet", **{**ways, "edgenn, paper": 0.2}), case("alexnet", 4, **ways)
    found = {c["what"]: c for c in measured.gains("edgenn", [none, some]) if c["figure"] == "Figure 8"}
    whole = found["EdgeNN over the GPU alone"]
    assert whole["ours"] == pytest.approx(25.0) and whole["paper"] == 22.02 and whole["splits"] == 4
    assert whole["note"].startswith(
        "1 of 2 networks (lenet, alexnet) have work on both halves here; one plan by Equations 1 to 4"
    )
    assert found["EdgeNN over the GPU alone: alexnet"]["paper"] == 27.22
    assert "EdgeNN over the GPU alone: lenet" not in found
    assert {cells.shown(c, True) for c in measured.gains("edgenn", [none])} == {NO_SPLIT}


def test_ablations_mean_what_the_papers_mean() -> None:
    """Each claim's way and what it is held against; a paper's number stands beside the paper's own form only."""
    of = {(c.figure, c.words): c for name in measured.CLAIMS for c in measured.CLAIMS[name]}
    assert all(not c.printed for c in of.values() if c.than == "jit" and c.way == "edgenn")
    inter = of["Section V-F", "inter-kernel co-running alone, SqueezeNet"]
    assert (inter.way, inter.than, inter.only) == ("edgenn, inter only", "device", ("squeezenet",))
    ways = {"edgenn, inter only": 0.9, "device": 1.0}
    squeezenet, other = case("squeezenet", on_host=3, **ways), case("lenet", on_host=3, **ways)
    (found,) = measured.gains("edgenn", [squeezenet, other])
    assert found["ours"] == pytest.approx(10.0) and found["paper"] == 8.27 and found["splits"] == 3
    known = {v for r in cases.PARTS.values() for v in r} | set(cases.METHODS) | {"jit"}
    assert {w for c in of.values() for w in (c.way, c.than)} <= known


def test_switches_count_where_layers_are_on_both_halves() -> None:
    both = case("alexnet", on_host=2, layer_switch=0.8, device=1.0, jit=1.2, host=1.6)
    one = case("lenet", layer_switch=0.5, device=1.0, jit=1.2, host=1.0)
    found = {c["what"]: c for c in measured.switching([both, one])}
    assert found["less time than the better component alone"]["ours"] == pytest.approx(20.0)
    assert found["less time than the CPU alone"]["ours"] == pytest.approx(50.0)
    assert found["less time than the CPU alone"]["paper"] == 14.4
    assert found["less time than the GPU alone: alexnet"]["splits"] == 2
    for alone in (one, {**both, "apart": False}):  # one half, or two that are the same cores
        assert {(c["ours"], c["splits"]) for c in measured.switching([alone])} == {(None, 0)}
        assert not measured.both(alone, "layer_switch")
    (switched,) = (r for r in table.ROWS if r.function.endswith(":switch_measured"))
    assert switched.about_splits


def test_a_plan_that_is_the_host_half_alone_has_no_time_of_its_own_among_the_methods() -> None:
    both = {"split": 1, "host": 2, "device": 3}
    halves = {"host": {"host": 6}, "edgenn": {"host": 6, "device": 0, "split": 0}, "codl": both, "layer_switch": both}
    seconds = {w: [t] * 3 for w, t in (("jit", 3.0), ("host", 1.0), ("edgenn", 1.0), ("codl", 1.0))}
    here = {"model": "lenet", "seconds": seconds, "halves": halves, "plans": {"edgenn": "6 host"}, "runs": 1}
    of = {c.get("series"): c["ours"] for c in beyond.table([here]) if c["what"] == "lenet"}
    assert of["EdgeNN"] == beyond.ON_HOST and of["host half alone"] == 1000.0 == of["CoDL"]
    assert of["fastest"] == "no clear winner: host half alone, CoDL"


@pytest.mark.parametrize("paper", quoted.papers(), ids=lambda p: p.key)
def test_every_number_that_a_table_or_figure_prints_is_on_the_page(paper: quoted.Paper) -> None:
    """Beside ours where a cell has it, else in a line of its own."""
    found = {f.name: f for f in view.figures(run.others(), table.ROWS) if f.paper == paper.key}
    for item in rows.items(paper):
        figure = found[item]
        text = " ".join(f"{x.paper} {x.note} {x.what}" for x in figure.whole())
        for q in paper.of(item):
            for n in view._flat(dict(q.values or {})):
                if isinstance(n, (int, float)):
                    assert cells.value(n, q.unit) in text or cells.value(n) in text, (item, q.key, n)


# -- runs ---------------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was(tmp_path: pathlib.Path) -> None:
    one = row(quick={"size": 1}, full={"size": 9})
    two = row(figures=("Figure 8", "Figure 6"), quick={"size": 2})
    assert len(run.run(tmp_path, table=[one])) == 1 and called == [{"size": 1}]
    assert run.run(tmp_path, table=[one]) == [] and len(called) == 1
    assert len(run.run(tmp_path, table=[one, two])) == 1 and called[1:] == [{"size": 2}]
    assert len(run.run(tmp_path, full=True, table=[one])) == 1 and called[2:] == [{"size": 9}]
    assert "11.25 %" in (tmp_path / run.TEXT).read_text() and "11.25 %" in (tmp_path / run.PAGE).read_text()
    assert run.run(tmp_path, ["codl"], table=[one]) == []


def test_an_interrupted_run_shows_what_it_has_and_goes_on_behind_it(tmp_path: pathlib.Path) -> None:
    long = {"function": f"{HERE}:stepping", "steps": True}
    first = row(**long, quick={"names": ("a", "b", "c"), "stop": "b"})
    rest = [row(paper="codl"), row(**long, paper="blastnet", quick={"names": ("d",)})]
    (found,) = run.run(tmp_path, table=[first, *rest])
    assert called == [{"step": "a"}] and found["left"] == 2 and [c["what"] for c in found["cells"]] == ["a"]
    page_text = (tmp_path / run.TEXT).read_text()
    assert "| Figure 8 | a |" in page_text and "2 steps left" in page_text and "not run yet" in page_text
    again = row(**long, quick={"names": ("a", "b", "c")})
    done = run.run(tmp_path, table=[again, *rest])
    assert [r.get("left") for r in done] == [None] * 3 and "steps left" not in (tmp_path / run.TEXT).read_text()
    assert [c for c in called if "step" in c] == [{"step": n} for n in "abcd"]
    assert run.run(tmp_path, table=[again, *rest]) == []


def test_an_interrupt_between_steps_leaves_the_row_for_the_next_time(tmp_path: pathlib.Path) -> None:
    assert run.run(tmp_path, table=[row(function=f"{HERE}:stopped"), row(paper="codl")]) == []
    assert len(records.load(tmp_path / run.FILE)) == 0 and (tmp_path / run.PAGE).is_file()


def stopped() -> list[dict[str, Any]]:
    raise KeyboardInterrupt


def test_steps_that_only_compute_are_made_in_processes_of_their_own(tmp_path: pathlib.Path) -> None:
    named = {f"{n}": functools.partial(divmod, 17, n) for n in (2, 3, 5)}
    with steps.kept(tmp_path / "steps.jsonl", environment()) as state:
        steps.together(HERE, named)
        assert len(state.known) == 3
        fail = functools.partial(pytest.fail, "made again")
        assert [steps.once(HERE, n, fail) for n in named] == [[8, 1], [5, 2], [3, 2]]
    assert len(lines.load(tmp_path / "steps.jsonl", ("step",))) == 3
    steps.together(HERE, dict.fromkeys("ab", functools.partial(pytest.fail, "no file keeps it")))


def test_a_step_of_other_code_or_another_machine_is_made_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    ask = lambda: steps.once(HERE, "a", lambda: made.append(1) or len(made))  # type: ignore[func-returns-value]
    file, here = tmp_path / "steps.jsonl", environment()
    with steps.kept(file, here):
        assert ask() == 1 and ask() == 1
    with steps.kept(file, {**here, "cpu": "other"}):
        assert ask() == 2
    with steps.kept(file, here) as state:
        assert ask() == 1 and state.seconds >= 0
        monkeypatch.setattr(steps.source, "digest", lambda module: "other")
        assert ask() == 3
    assert len(lines.load(file, ("step",))) == 3
    assert ask() == 4 and ask() == 5  # nothing is kept


@pytest.mark.parametrize("what", ["commit", "source", "environment"])
def test_another_commit_code_or_machine_is_run_again(tmp_path: pathlib.Path, what: str) -> None:
    (first,) = run.run(tmp_path, table=[row()])
    other = {**first, what: {**environment(), "cpu": "other"} if what == "environment" else "other"}
    (tmp_path / run.FILE).write_text(json.dumps(other) + "\n")
    assert len(run.run(tmp_path, table=[row()])) == 1 and len(called) == 2


def test_a_line_that_was_cut_off_is_run_again(tmp_path: pathlib.Path) -> None:
    run.run(tmp_path, table=[row()])
    line = (tmp_path / run.FILE).read_text()
    (tmp_path / run.FILE).write_text(line + line[:50])
    assert len(records.load(tmp_path / run.FILE)) == 1
    run.run(tmp_path, table=[row(), row(figures=("Figure 8", "Figure 6"))])
    assert len(called) == 2 and len(records.load(tmp_path / run.FILE)) == 2
    (tmp_path / run.FILE).write_text('{"key": 1}\n' + line)
    with pytest.raises(LinesError, match=r"got line 1 of .* which is no record"):
        run.run(tmp_path, table=[row()])


def test_a_row_that_fails_is_shown_and_run_again(tmp_path: pathlib.Path) -> None:
    mine = [row(function=f"{HERE}:failing"), row(figures=("Figure 8", "Figure 6"))]
    assert [r.get("failed") for r in run.run(tmp_path, table=mine)] == ["OSError: no such board", None]
    assert "failed: OSError: no such board" in markdown.text(records.load(tmp_path / run.FILE)[:1], mine[:1])
    assert len(run.run(tmp_path, table=mine)) == 1 and len(called) == 3


def test_a_record_says_what_it_is_of(tmp_path: pathlib.Path) -> None:
    (found,) = run.run(tmp_path, table=[row()])
    (kept_one,) = records.load(tmp_path / run.FILE)
    assert kept_one == json.loads(json.dumps(found)) and kept_one["environment"] == dict(environment())
    assert kept_one["seconds"] >= 0 and kept_one["cells"][0]["spread"] == [10.5, 12.5]
    git = subprocess.run(("git", "rev-parse", "HEAD"), capture_output=True, text=True, cwd=ROOT)
    wanted = git.stdout.strip()[:12] if git.returncode == 0 else "version"
    assert kept_one["commit"].startswith(wanted)


def test_bad_input_is_one_sentence(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PapersError, match="got paper 'edge'; valid are edgenn, codl, neuropipe, layer_switched"):
        run.run(tmp_path, ["edge"])
    (tmp_path / "file").write_text("")
    done = _command(f"--out={tmp_path / 'file' / 'in'}")
    told = " ".join(done.stderr.split())
    assert done.returncode == 2 and "where nothing can be written" in told and "Traceback" not in told
    done = _command("--paper=edge,codl", f"--out={tmp_path}")
    told = " ".join(done.stderr.split())
    assert done.returncode == 2 and "got paper 'edge'" in told and "Traceback" not in told


def test_the_command_writes_the_page(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from absl.testing import flagsaver

    from xcoexec import cli

    cli.FLAGS.mark_as_parsed()
    table_of_test = [row(quick={"size": 1}), row(paper="codl", figures=("Figure 15", "Figure 8"))]
    monkeypatch.setattr(run, "run", functools.partial(run.run, table=table_of_test))
    with flagsaver.flagsaver(out=str(tmp_path), paper=["edgenn"], full=False):
        cli.papers()
        cli.papers()
    told = capsys.readouterr()
    assert told.out.count("edgenn, Figure 8: 2 cells") == 1 and called == [{"size": 1}]
    assert "1 rows were run" in told.err and "0 rows were run" in told.err
    assert {f.name for f in tmp_path.iterdir()} == {run.FILE, run.PAGE, run.TEXT}


def _command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "xcoexec", "papers", *args], capture_output=True, text=True, timeout=300, cwd=ROOT
    )


# -- what the repository keeps ------------------------------------------------------------------------


def test_the_kept_page_is_that_of_the_kept_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the marks of what is older than the code, which change with the code."""
    monkeypatch.setattr(run, "RESULTS", ROOT / "benchmarks" / "results")
    text = markdown.text(run.others(), table.ROWS)
    plain = lambda t: t.replace(view.OLDER.strip(), "").replace(" ", "")
    kept_page = (ROOT / "benchmarks" / "papers.md").read_text()
    assert plain(text) == plain(kept_page), (
        "papers.md is not that of the records; python -m benchmarks.papers writes it"
    )


def test_records_of_suites_are_older_than_any_code() -> None:
    found = kept.records(ROOT / "benchmarks" / "results" / run.KEPT[0], table.ROWS)
    by_key = {r.key: r for r in table.ROWS}
    assert len(found) == len(kept.SOURCES) and all(records.stale(r, by_key[r["key"]]) for r in found)
    edgenn = next(r for r in found if r["paper"] == "edgenn")
    whole: Cell = next(c for c in edgenn["cells"] if c["what"].startswith("ours: ") and ": " not in c["what"][6:])
    assert whole["splits"] > 0 and whole["note"].startswith("4 of 6 networks") and whole["paper"] is None


def test_suites_give_way_to_records_of_a_gpu(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same row, on whichever GPU; what only a machine without one has does not count."""
    suite = (ROOT / "benchmarks" / "results" / run.KEPT[0]).read_text()
    (tmp_path / run.KEPT[0]).write_text(suite)
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    (mine,) = [r for r in table.ROWS if r.function.endswith(":codl_measured")]
    without = {r["key"] for r in run.others()}
    made = record(mine, [], environment={**environment(), "device": "cpu"})
    lines.append(tmp_path / "a-papers.jsonl", made)
    assert [r["key"] for r in run.others()].count(mine.key) == 2 and {r["key"] for r in run.others()} == without
    lines.append(tmp_path / "a-papers.jsonl", {**made, "environment": {**environment(), "device": "NVIDIA L4 58"}})
    devices = [str(r["environment"]["device"]) for r in run.others() if r["key"] == mine.key]
    assert devices == ["cpu", "NVIDIA L4 58"]


def test_rows_of_neuropipe_run() -> None:
    """The ones without a simulation, through the function that gives them the kept records."""
    mine = {r.figures[0]: r for r in table.ROWS if r.paper == "neuropipe"}
    for name in ("Table 1", "Figure 1", "Figure 9"):
        found = mine[name].run(full=False)
        assert found and {cells.base(c["figure"]) for c in found} == {name}
        assert all(c["kind"] in cells.ABSENT and c["note"] for c in found), name


def test_what_only_type_checkers_see_is_no_part_of_the_code() -> None:
    """A simulated row does not hang on the code that calls functions; what asks the package for `jit` does."""
    functions = "xcoexec.api.functions"
    assert functions not in source._files("xcoexec.benchmarks.blastnet_rows")
    assert functions in source._files("xcoexec.benchmarks.one_split")  # from xcoexec import jit
    assert functions in source._files("xcoexec.benchmarks.streams")  # import xcoexec
    assert "xcoexec.codegen.kernels.conv" in source._files("xcoexec.papers.cases")
    assert "xcoexec.planning.profiles/jetson-agx-xavier.toml" in source._files("xcoexec.benchmarks.xavier")


def test_records_of_another_machine_are_taken_and_name_the_revision_of_their_code(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without a repository names a version; the hash of its code says whether it was this revision's."""
    (mine,) = [r for r in table.ROWS if r.function.endswith(":edgenn_measured")]
    board = {**environment(), "device": "NVIDIA L4 58"}
    ways = {"edgenn, paper": 0.75, "device": 1.0}
    found = measured.gains("edgenn", [case("alexnet", 4, **ways)])
    here = record(mine, found, environment=board, commit="version 0", size="full")
    old = {**here, "source": "other", "environment": {**board, "device": "NVIDIA H200 132"}}
    for r in (here, old, {**here, "key": "none"}, {**here, "failed": "OSError"}):
        lines.append(tmp_path / "papers.jsonl", r)
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(papers, "PAGE", tmp_path / "papers.md")
    papers.main(["--take", str(tmp_path / "papers.jsonl"), "--name", "some-gpu"])
    taken = records.load(tmp_path / "some-gpu-papers.jsonl")
    assert [r["commit"] for r in taken] == [source.commit(), "version 0"]
    text = (tmp_path / "papers.md").read_text()
    assert "NVIDIA L4 with 58 multiprocessors" in text
    (line,) = [x for x in text.splitlines() if x.startswith("| Figure 8 | EdgeNN over the GPU alone |")]
    assert f"| 25 % (25 to 25) | 25 % (25 to 25){view.OLDER} |" in line
    again = record(mine, found[:1], environment=board, size="full")
    (tmp_path / "papers.jsonl").write_text(json.dumps(again) + "\n")
    papers.main(["--take", str(tmp_path / "papers.jsonl"), "--name", "some-gpu"])
    taken = records.load(tmp_path / "some-gpu-papers.jsonl")
    assert [r["environment"]["device"] for r in taken] == ["NVIDIA H200 132", "NVIDIA L4 58"]
    assert len(taken[1]["cells"]) == 1
    with pytest.raises(SystemExit):
        papers.main(["--take", "file"])


def far(c: Cell) -> bool:
    """Whether a computed number is more than five points of a gain, or a tenth of a time, away from the printed one."""
    printed, ours = c["paper"], c["ours"]
    if c["kind"] not in (CALCULATED, SIMULATED) or not isinstance(printed, (int, float)):
        return False
    if not isinstance(ours, (int, float)):
        return False
    if c["unit"] in ("%", "points"):
        return abs(printed - ours) > 5
    if c["unit"] == "times":
        return abs(100 / ours - 100 / printed) > 5
    return c["unit"] in ("ms", "us", "W") and abs(ours - printed) > 0.1 * abs(printed)


def test_what_is_far_from_the_printed_number_says_by_a_number_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all rows that compute, as they are kept; which of them are far is known for some."""
    monkeypatch.setattr(run, "RESULTS", ROOT / "benchmarks" / "results")
    by_key = {r.key: r for r in table.ROWS}
    found = [c for r in records.computing(run.others(), by_key) for c in r["cells"] if far(c)]
    known = ("SqueezeNet", "divided by rows", "GPU at work")
    assert all(any(w in c["what"] for c in found) for w in known)
    for c in found:
        assert re.search(r"(as printed|without|nearest to)[^;]*\d", c.get("note", "")), (c["figure"], c["what"])


def test_far_is_five_points_of_a_gain_or_a_tenth_of_a_time() -> None:
    cell = lambda unit, paper, ours: {"kind": SIMULATED, "unit": unit, "paper": paper, "ours": ours}
    near = [("%", 10.0, 14.9), ("times", 2.0, 2.2), ("ms", 10.0, 10.9), ("layers", 1.0, 9.0), ("%", None, 3.0)]
    assert not any(far(cell(*given)) for given in near)  # type: ignore[arg-type]
    assert all(far(cell(*given)) for given in [("points", 10.0, 4.9), ("times", 2.0, 1.6), ("us", 10.0, 11.1)])  # type: ignore[arg-type]
