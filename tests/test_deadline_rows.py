"""Records of deadline runs, and BlastNet's simulated rows: what they say of twins, names and sources."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import pathlib

import numpy as np
import pytest

from benchmarks import blastnet_jobs, blastnet_rows, blastnet_search, deadline_records, deadlines
from benchmarks.deadline_records import RENAMED, histogram, named_now, twin_jobs, words
from xcoexec.streams.duo import Duo
from xcoexec.streams.jobs import Accuracy, Task
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


def test_simulated_rows_have_every_policy_and_the_papers_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blastnet_jobs, "PERIODS", 12)
    monkeypatch.setattr(blastnet_jobs, "SEEDS", 2)
    blastnet_jobs._run.cache_clear()
    rows = blastnet_rows.figure_15()
    blastnet_jobs._run.cache_clear()
    assert {r["kind"] for r in rows} == {"simulated", "calculated"}
    high = {r["what"]: r for r in rows if r["figure"] == "Figure 15(c)"}
    assert {f"missed, {p}" for p in PAPER} <= high.keys()
    assert {w.split(",")[1].split()[0] for w in high if w.startswith("missed, ")} <= set(POLICIES)
    assert high["missed, layer_sched"]["paper"] == 45.70 and high["missed, blastnet"]["paper"] == 10.63
    assert high["points fewer missed by blastnet than by layer_sched"]["paper"] == pytest.approx(35.07)
    assert high["missed, mono_sched"]["paper"] is None
    assert high["missed, blastnet, epsilon 10"]["note"] == "vgg11: 1 of 9 blocks have twins"
    assert "nearest to what is printed with periods of" in high["missed, blastnet"]["note"]
    assert not [r for r in rows if r["what"] == "jobs below the bound, blastnet" and r["ours"] > 0]
    bound = high["missed at least, by any schedule"]["ours"]
    assert all(r["ours"] > bound - 5 for w, r in high.items() if w.startswith("missed, "))


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
    gpu = rows["Figure 13(c)", "device time of a job, blastnet, 2 m/s"]
    assert gpu["ours"] == pytest.approx(100) and gpu["paper"] == 74.08
