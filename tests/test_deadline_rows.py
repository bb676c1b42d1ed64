"""Records of deadline runs, and BlastNet's simulated rows: what they say of twins, names and sources."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks import blastnet_jobs, blastnet_rows, blastnet_search, deadline_records, deadlines
from benchmarks.deadline_records import RENAMED, histogram, named_now, twin_jobs, words
from xcoexec.papers import axes, markdown
from xcoexec.papers.cells import base
from xcoexec.papers.quoted import load
from xcoexec.papers.table import ROWS
from xcoexec.streams.duo import Duo
from xcoexec.streams.jobs import Accuracy, Block, Task, Way
from xcoexec.streams.policies import PAPER, POLICIES
from xcoexec.streams.twin_search import BLASTNET
from xcoexec.streams.twins import Shape

HERE = pathlib.Path(__file__).parent.parent / "benchmarks" / "results"


def test_a_record_says_which_jobs_took_twins() -> None:
    record = {
        "runs": {
            "pinned": [{"paths": {"a 0": {"own": 7}, "b 1": {"own": 2}}}],
            "blastnet": [{"paths": {"a 0": {"own": 3, "1": 2, "0 1": 1}}}, {"paths": {"a 0": {"own": 5}}}],
        }
    }
    assert twin_jobs(record) == {"pinned": 0, "blastnet": 3}
    assert named_now(record)["runs"].keys() == record["runs"].keys()
    assert [words(frozenset(p)) for p in ((), (3, 1))] == ["own", "1 3"]
    table = {"a": Accuracy({frozenset(): 0.9, frozenset({1}): 0.8})}
    assert histogram(table, [("a", frozenset(), 3), ("a", frozenset({1}), 2)]) == {"0.8": 2, "0.9": 3}
    with pytest.raises(ValueError, match="without paths or histograms"):
        twin_jobs({"runs": {"pinned": [{}]}})


def test_kept_records_show_twins_on_the_cpu() -> None:
    """AlexNet's twin was used there, which no sentence may deny; and the rules have the names that are theirs now."""
    lines = (HERE / "zen5-2cores-streams.jsonl").read_text().splitlines()
    found = [r for r in map(json.loads, lines) if r["suite"] == "blastnet" and r["twins"]]
    used = {p: n for r in found for p, n in twin_jobs(named_now(r)).items() if n}
    assert used.keys() <= {"duo_primary_first", "duo_either", "slack"} and used["duo_primary_first"] > 0
    assert not any(name in PAPER for name in RENAMED.values())


@pytest.fixture(scope="module")
def simulated() -> Iterator[list[blastnet_rows.Row]]:
    """All simulated rows, of short runs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(blastnet_jobs, "PERIODS", 12)
        patched.setattr(blastnet_jobs, "SEEDS", 2)
        for cached in (blastnet_jobs._run, blastnet_rows._with_periods):
            cached.cache_clear()
        yield [r for figure in blastnet_rows.FIGURES for r in figure()]
    for cached in (blastnet_jobs._run, blastnet_rows._with_periods):
        cached.cache_clear()


def test_simulated_rows_have_every_policy_and_the_papers_numbers(simulated: list[blastnet_rows.Row]) -> None:
    rows = [r for r in simulated if base(r["figure"]) == "Figure 15"]
    assert {r["kind"] for r in rows} == {"simulated", "calculated", "absent"}
    here = ": 8 tasks, desktop"
    found = {r["what"]: r for r in rows if r["figure"] == "Figure 15(c)"}
    high = {what.removesuffix(here): r for what, r in found.items() if what.endswith(here)}
    assert len(high) == len(found)
    assert {f"missed, {p}" for p in PAPER} <= high.keys()
    assert {w.split(",")[1].split()[0] for w in high if w.startswith("missed, ")} <= set(POLICIES)
    assert high["missed, layer_sched"]["paper"] == 45.70 and high["missed, blastnet"]["paper"] == 10.63
    assert high["points fewer missed by blastnet than by layer_sched"]["paper"] == pytest.approx(35.07)
    assert high["missed, mono_sched"]["paper"] is None
    assert high["missed, blastnet, epsilon 10"]["note"] == "vgg11: 1 of 9 blocks have twins"
    assert "nearest to what is printed with periods of" in high["missed, blastnet"]["note"]
    below = [r for r in rows if r["what"].startswith("jobs below the bound, blastnet:")]
    assert len(below) == 2 and not any(r["ours"] for r in below)
    bound = high["missed at least, by any schedule"]["ours"]
    assert all(r["ours"] > bound - 5 for w, r in high.items() if w.startswith("missed, "))


def test_a_line_of_the_page_has_one_setting(simulated: list[blastnet_rows.Row]) -> None:
    """Rows of a figure with the same words would be one line there."""
    lines = [(base(r["figure"]), r["what"]) for r in simulated]
    assert len(set(lines)) == len(lines)
    missed = {r["figure"]: r["what"] for r in simulated if r["what"].startswith("missed, blastnet: ")}
    assert {figure: what.partition(": ")[2] for figure, what in missed.items()} == {
        "Figure 15(a)": "4 tasks, desktop",
        "Figure 15(c)": "8 tasks, desktop",
        "Figure 16(a)": "4 tasks, desktop",
        "Figure 16(c)": "4 tasks, desktop, a load on the GPU",
        "Figure 16(e)": "4 tasks, desktop, a load on the CPU",
        "Figure 17, Xavier": "8 tasks, Xavier",
        "Figure 17, TX2": "8 tasks, TX2",
    }


def test_pictures_draw_every_policy_of_a_setting(simulated: list[blastnet_rows.Row]) -> None:
    with_twins = {"mono_adapt", "blastnet_no_pf", "blastnet"}
    for figure in ("Figure 15", "Figure 16", "Figure 17"):
        for panel in axes.AXES["blastnet", figure]:
            found = [m for r in simulated if (m := panel.match(r["figure"], r["what"])) is not None]
            places = {m["place"] for m in found}
            assert places == (with_twins if "series" in panel.pattern else set(blastnet_rows.POLICIES))
            assert len(found) == len(places) * (2 if "series" in panel.pattern else 1)


def test_the_papers_column_has_printed_numbers_alone(simulated: list[blastnet_rows.Row]) -> None:
    values = [v for q in load("blastnet").records.values() for v in (q.values or {}).values()]
    assert {r["paper"] for r in simulated} - {None} <= {v for v in values if isinstance(v, float | int)}
    found = {r["what"]: r for r in simulated if r["what"].startswith("points fewer missed")}
    without = {what: r["note"] for what, r in found.items() if r["paper"] is None}
    assert {what.partition(" than by ")[2]: note.partition(" %")[0] for what, note in without.items()} == {
        "mono_adapt: 8 tasks, desktop": "printed are 11.78 and 10.63",
        "layer_sched: 4 tasks, desktop, a load on the CPU": "printed are 35.54 and 15.99",
        "mono_sched: 4 tasks, desktop, a load on the CPU": "printed are 27.65 and 15.99",
    }


def test_printed_losses_of_accuracy_stand_in_rows_that_say_why_nothing_is_beside_them(
    simulated: list[blastnet_rows.Row],
) -> None:
    absent = {r["what"]: r for r in simulated if r["kind"] == "absent"}
    more = "more than by blastnet"
    assert {what: r["paper"] for what, r in absent.items()} == {
        f"accuracy lost by blastnet_no_pf, {more}: 4 tasks, desktop": 14.39,
        "accuracy lost by blastnet: 8 tasks, desktop": 1.63,
        f"accuracy lost by mono_adapt, {more}: 8 tasks, desktop": 32.51,
        f"accuracy lost by blastnet_no_pf, {more}: 8 tasks, desktop": 12.14,
        "accuracy lost by blastnet: 4 tasks, desktop, a load on the GPU": 7.31,
        "accuracy lost by blastnet: 4 tasks, desktop, a load on the CPU": 7.31,
        "accuracy lost by blastnet: 8 tasks, Xavier": 1.54,
        f"accuracy lost by blastnet_no_pf, {more}: 8 tasks, TX2": 1.63,
    }
    assert all(r["ours"] is None and r["note"].startswith("not here, because ") for r in absent.values())


def test_figure_2_is_on_the_page_with_its_numbers() -> None:
    lines = [x for x in markdown.text([], ROWS).splitlines() if "Figure 2 | worst time of ten networks" in x]
    assert "not here, because: it needs a desktop's GPU" in lines[0]
    assert all(any(f"{n}x" in x for x in lines[1:]) for n in (60.97, 48.08, 36.06))


def test_rows_of_mono_adapt_say_what_it_can_lose(simulated: list[blastnet_rows.Row]) -> None:
    """A whole network on its faster half has no twins: no more of its accuracy is lost than jobs have twins."""
    rows = [r for r in simulated if "mono_adapt" in r["what"]]
    assert all("(`Task.adapted`): " in r["note"] for r in rows)
    high = {r["what"].removesuffix(": 8 tasks, desktop"): r for r in rows if r["what"].endswith("8 tasks, desktop")}
    share = high["jobs with twins, mono_adapt"]["ours"]
    assert len(high) == 5 and 0 < share < 32.51
    limit = f"{share:.1f} % of jobs have twins, so that Mono_Adapt loses {share:.1f} points of accuracy at most"
    assert all(
        f"{limit} (printed" in r["note"] and "32.51 points more than BlastNet" in r["note"] for r in high.values()
    )
    assert not any("Task.adapted" in r["note"] for r in simulated if "mono_adapt" not in r["what"])


def test_paths_within_the_bound_are_those_with_the_fewest_twins() -> None:
    found = blastnet_jobs.paths([0, 2, 5, 6])
    within = [p for p, a in found.of_paths.items() if a == 1]
    assert len(found.of_paths) == 16 and len(within) == 13 and max(map(len, within)) == 3
    assert found.of(frozenset({0, 2, 5, 6})) == 0 and found.of(frozenset()) == 1
    assert blastnet_jobs.paths([]).of_paths == {frozenset(): 1.0}


def test_the_desktops_profile_has_the_ratios_that_are_printed() -> None:
    rows = {r["what"]: r for r in blastnet_rows.figures_3_and_4() if r["figure"] == "Figure 3"}
    printed = {what: row for what, row in rows.items() if row["paper"] is not None}
    assert printed.keys() == {"CPU/GPU, convolution 2", "CPU/GPU, dense layer 1"} and len(rows) == 11
    for row in printed.values():
        assert row["ours"] == pytest.approx(row["paper"], rel=0.01) and row["kind"] == "calculated"
    shares = [r["ours"] for r in blastnet_rows.figures_3_and_4() if r["what"].startswith("vgg11:")]
    assert np.sum(shares) == pytest.approx(100)


def test_layers_and_blocks_are_the_same_work() -> None:
    task = blastnet_jobs.network(blastnet_jobs.XAVIER, "vgg11")
    assert len(task.layers) > len(task.blocks) > 1
    for half, ways in task.monolithic.items():
        assert sum(w.seconds for w in ways) == pytest.approx(sum(w.seconds for w in task.by_layer.monolithic[half]))


# -- records of single runs -----------------------------------------------------------------------------


def run_of(policy: str, missing: float, **changed: object) -> dict[str, object]:
    made = {
        "environment": {"cpu": "a board", "device": "cpu"},
        "commit": "abc",
        "networks": ["vgg11"],
        "side": 64,
        "twins": 2,
        "threads": 1,
    }
    made |= {"epsilon": 1.0, "search": "ours", "tasks": 4, "load": None, "background": "none", "seed": 0}
    made |= {"policy": policy, "seconds": 120.0, "bound": 0.7, "as_long_as_the_papers": True}
    return {**made, "missing": missing, "at_least": 0.01, **changed}


def test_the_table_of_deadlines_is_made_of_records() -> None:
    """The paper's rules first in the paper's order, then ours; means and spreads; a short run says so."""
    found = [run_of("slack", 0.02), run_of("blastnet", 0.1), run_of("mono_sched", 0.5), run_of("layer_sched", 0.25)]
    found += [
        run_of("blastnet", 0.2, seed=1, at_least=0.005),
        run_of("slack", 0.03, seconds=3.0, as_long_as_the_papers=False),
    ]
    head, _, first, short = deadline_records.table(found).strip().split("\n")
    columns = lambda line: [c.strip() for c in line.strip("|").split("|")]
    assert columns(head)[7:] == ["`mono_sched`", "`layer_sched`", "`blastnet`", "`slack`", "bound"]
    assert columns(first)[:2] == ["a board", "abc"]
    assert columns(first)[6:] == ["120", "50.0", "25.0", "15.0 (10.0 to 20.0)", "2.0", "0.5"]
    assert columns(first)[2:5] == ["vgg11 for 64 x 64, 2 twins", "4", "periods as deadlines"]
    assert columns(short)[6:] == ["3 (the paper: 120)", "-", "-", "-", "3.0", "1.0"]


def test_the_table_stands_between_two_comments() -> None:
    text = f"before\n{deadline_records.BEGIN}\nold\n{deadline_records.END}\nbehind\n"
    made = deadline_records.written(text, [run_of("slack", 0.02)])
    assert "old" not in made and "| 2.0 |" in made and made.startswith("before") and made.endswith("behind\n")
    assert deadline_records.written(made, [run_of("slack", 0.02)]) == made
    with pytest.raises(ValueError, match=r"valid is docs"):
        deadline_records.written("no comments", [])


def test_readmes_table_is_that_of_the_kept_records() -> None:
    text = deadline_records.PAGE.read_text()
    assert deadline_records.written(text, deadline_records.kept()) == text, "python -m benchmarks.deadline_records"


def test_a_run_with_deadlines_is_not_run_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls go on behind the runs that are on record; policies alternate, the paper's first."""
    ran: list[str] = []

    def once(given: object, policy: str, kind: str, seconds: float, timeline: object) -> dict[str, object]:
        ran.append(policy)
        assert seconds == 120.0
        return {"missing": 0.25, "at_least": 0.0}

    for name, value in {"once": once, "networks": lambda args: {}, "tasks": lambda *_: []}.items():
        monkeypatch.setattr(deadlines, name, value)
    ask = lambda *more: monkeypatch.setattr(
        "sys.argv", ["deadlines", str(tmp_path), "--rounds=1", "--tasks", "4", *more]
    )
    ask("--policies", "mono_sched", "blastnet", "slack", "--most=2")
    deadlines.main()
    assert ran == ["mono_sched", "blastnet"]
    deadlines.main()
    deadlines.main()
    assert ran == ["mono_sched", "blastnet", "slack"]
    records = deadline_records.load(tmp_path / "deadlines.jsonl")
    assert [r["policy"] for r in records] == ran and all(r["as_long_as_the_papers"] for r in records)
    ask("--policies", "slack", "--seconds=1")
    monkeypatch.setattr(deadlines, "once", lambda *_: {"missing": 0.5, "at_least": 0.0})
    deadlines.main()
    assert [r["seconds"] for r in deadline_records.load(tmp_path / "deadlines.jsonl")] == [120.0] * 3 + [1.0]


# -- the search -----------------------------------------------------------------------------------------


def test_figure_14_counts_paths_above_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """13 of 16 paths are above 70 % as in the paper; one of exactly 70 % is not."""
    every = [frozenset(c) for n in range(5) for c in itertools.combinations(range(4), n)]
    reached = [0.95] * 13 + [0.70, 0.31, 0.05]
    shape = Shape("host", (1, 8, 8, 8), (1, 8, 8, 8), 32, ("separable 3x3",))
    made = Duo((), {k: (shape, True) for k in range(4)}, {}, Accuracy(dict(zip(every, reached, strict=True))))
    monkeypatch.setattr(blastnet_search, "duo", lambda name, full: made)
    monkeypatch.setattr(blastnet_search, "distances", lambda found: [0.125, 3.0])
    rows = {r["what"]: r for r in blastnet_search.figure_14()}
    assert rows["paths above 70 %, blastnet"]["ours"] == 81.25 == rows["paths above 70 %, blastnet"]["paper"]
    assert rows["paths above 70 %, similarity"]["paper"] == 50
    assert {r["kind"] for r in rows.values()} == {"measured"}
    found = [rows[f"paths of {10 * b} to {10 * b + 10} %, blastnet"]["ours"] for b in range(10)]
    assert found == [6.25, 0, 0, 6.25, 0, 0, 0, 6.25, 0, 81.25]
    assert "values are 0.12 to 3 of the block's" in rows["paths above 70 %, blastnet"]["note"]
    assert "filtered by simulated seconds of the desktop's profile" in rows["paths above 70 %, blastnet"]["note"]
    assert "simulated" in (blastnet_search.figure_14.__doc__ or "")
    every = {r["what"]: r for r in blastnet_search.figure_14(full=True) if r["what"].startswith("paths above")}
    assert every["paths above 70 %, similarity"]["note"].count("480 steps") == 1
    assert every["paths above 70 %, similarity, 120 steps"]["note"].count("120 steps") == 1 and len(every) == 6


def test_the_papers_searches_differ_in_the_loss_alone() -> None:
    assert blastnet_search.SEARCHES["blastnet"] == {} and BLASTNET.near == 0 and BLASTNET.space == "blocks"
    assert blastnet_search.SEARCHES["similarity"] == {"by": "similarity"}
    assert blastnet_search.FULL.depths == tuple(range(1, 11)) and blastnet_search.FULL.widths[-1] == 512


def test_candidates_take_longer_the_more_they_do() -> None:
    shape = lambda depth, width: Shape("host", (1, 8, 8, 8), (1, 8, 8, 8), width, ("separable 3x3",) * depth)
    seconds = [blastnet_search.on_profile(shape(*s), True, 4) for s in ((1, 32), (2, 32), (2, 64))]
    assert seconds == sorted(seconds) and seconds[0] < seconds[-1] < 1


def test_figure_13_is_the_task_that_suits_layer_sched_best(monkeypatch: pytest.MonkeyPatch) -> None:
    beside: list[str] = []

    def once(given: object, policy: str, kind: str, seconds: float, timeline: object) -> dict[str, object]:
        rates = (0.4, 0.1, 0.3, 0.2) if policy == "layer_sched" else (0.0, 0.05, 0.0, 0.0)
        return {
            "missing_by_task": {f"signs {i}": rate for i, rate in enumerate(rates)},
            "paths": {"signs 0": {"own": 30, "1": 10}},
            "busy": {"device": 0.5, "host": 0.25},
        }

    class Net:
        blocks = blastnet_jobs.network(blastnet_jobs.XAVIER, "alexnet").blocks

    def background(kind: str, seconds: float) -> contextlib.AbstractContextManager[None]:
        beside.append(kind)
        return contextlib.nullcontext()

    one = Task("signs", Net.blocks, 1.0, 1.0)
    given = [(Net(), dataclasses.replace(one, name=f"signs {i}")) for i in range(4)]
    for name, value in {
        "once": once,
        "background": background,
        "_driving": lambda: given,
    }.items():
        monkeypatch.setattr(blastnet_search, name, value)
    rows = {(r["figure"], r["what"]): r for r in blastnet_search.figure_13(seconds=8.0)}
    assert beside == ["none", "none", "cpu", "cpu", "cpus", "cpus"]
    standing = rows["Figure 13(b)", "missed, layer_sched, standing"]
    assert standing["ours"] == pytest.approx(10) and standing["paper"] == 18.96
    assert rows["Figure 13(b)", "missed, blastnet, standing"]["ours"] == pytest.approx(5)
    assert rows["Figure 13(b)", "missed, blastnet, standing"]["paper"] is None
    assert "10 of 40 jobs ended on paths with twins" in standing["note"]
    assert "primary one" not in standing["note"]
    fast = rows["Figure 13(c)", "device time of a job, blastnet, 2 m/s"]
    assert fast["ours"] == pytest.approx(100)
    times = {what: r["paper"] for (figure, what), r in rows.items() if figure == "Figure 13(c)" and r["paper"]}
    assert times == {
        "device time of a job, layer_sched, mean of the speeds": 101.78,
        "host time of a job, layer_sched, mean of the speeds": 244.84,
        "device time of a job, blastnet, mean of the speeds": 74.08,
        "host time of a job, blastnet, mean of the speeds": 30.74,
    }
    mean = rows["Figure 13(c)", "host time of a job, blastnet, mean of the speeds"]
    assert mean["ours"] == pytest.approx(50) and "at a speed that it does not name" in mean["note"]


def test_figure_13_says_why_no_job_took_a_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins on the half that is their block's primary one are no way of BlastNet's."""
    shared = Block("shared", (Way("device", 2.0), Way("host", 1.0), Way("host", 0.5, twin=True)))
    apart = Block("apart", (Way("device", 1.0), Way("host", 2.0), Way("host", 1.5, twin=True)))
    task = Task("signs 0", (shared, shared, apart), 1.0, 1.0)
    assert [any(w.twin for w in ways.values()) for ways in task.duo] == [False, False, True]
    found = {"missing_by_task": {"signs 0": 0.1}, "paths": {"signs 0": {"own": 40}}, "busy": {"device": 0.5, "host": 1}}
    for name, value in {"once": lambda *_: found, "_driving": lambda: [(None, task)]}.items():
        monkeypatch.setattr(blastnet_search, name, value)
    monkeypatch.setattr(blastnet_search, "background", lambda *_: contextlib.nullcontext())
    rows = {r["what"]: r["note"] for r in blastnet_search.figure_13(seconds=1.0)}
    why = rows["missed, blastnet, standing"]
    assert why.startswith(
        "0 of 40 jobs ended on paths with twins: they are made for the host half, which by the desktop"
    )
    assert "BlastNet runs a block's own layers there (here instead of 2 of 3 twins); " in why
    assert "0 of 40 jobs ended on paths with twins; " in rows["missed, layer_sched, standing"]
