"""Suites: resumed runs lose nothing, files are guarded, comparisons look at the spread, the page holds everything."""

from __future__ import annotations

import copy
import fcntl
import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest

from xcoexec import models
from xcoexec.errors import SuiteError
from xcoexec.tools import html, plots, suite
from xcoexec.tools.machine import environment
from xcoexec.tools.suite import SUITES, VARIANTS, Suite, compare, load, run, table

pytestmark = pytest.mark.usefixtures("quick_xla")

TINY = Suite("for tests", ("lenet", "fcnn"), variants=("device", "host", "layer_switch", "auto"), rounds=2, block=0.005)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "SUITES", {**SUITES, "tiny": TINY})


def test_a_run_its_table_and_its_page(tiny: None, tmp_path: pathlib.Path) -> None:
    records = run("tiny", tmp_path / "a.jsonl")
    assert [r["model"] for r in records] == ["lenet", "fcnn"] and load(tmp_path / "a.jsonl") == records
    for r in records:
        assert set(r["seconds"]) == {"jit", *TINY.variants} and all(
            0 < q[0] <= q[1] <= q[2] for q in r["seconds"].values()
        )
        assert max(r["errors"].values()) < 1e-4 and r["ran"]["host"] == "xco" and r["halves"]["host"]["host"] > 0
        assert r["simulated"]["host"] > 0
        assert (
            len(r["layers"]) == sum(r["halves"]["host"].values())
            and all(x[5] > 0 for x in r["layers"])
            and r["timelines"]
        )
        assert r["sharing"]["host"][0] >= 1 and r["affinity"]
    text = table(records)
    assert "layer_switch" in text and "lenet, batch 1" in text and all(len(line) <= 80 for line in text.splitlines())
    for r in records:
        for variant, first in r["stands_for"].items():
            assert re.search(rf"^{re.escape(variant)} +(as {re.escape(first)}$|[0-9.]+ )", text, re.M)
    shared = sum(v != first for r in records for v, first in r["stands_for"].items())
    assert len(re.findall(r" as [a-z_, ]+$", text, re.M)) == shared
    html.write(records, "a <title>", tmp_path / "p" / "a.html")
    text = (tmp_path / "p" / "a.html").read_text()
    assert "a &lt;title&gt;" in text and "data:image/png;base64," in text and records[0]["environment"]["cpu"] in text
    for name in ("a.png", "a-seconds-by-layer.png", "a-roofline.png", "a-timelines.png"):
        assert (tmp_path / "p" / name).stat().st_size > 1000
    assert text.count("data:image/png;base64,") == 4
    assert "name='viewport'" in text and "Glossary" in text and records[0]["commit"] in text
    for r in records:
        for variant, first in r["stands_for"].items():
            assert (f">as {first}</td>" in text) or variant == first
    assert "src=" not in text.replace('src="data:', "") and "href" not in text  # nothing outside is needed


def test_an_interrupted_run_goes_on(tiny: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def measure(name: str, s: Suite, model: str, batch: int) -> Any:
        if made.count(model) == 0 and model == "fcnn" and "stop" not in made:
            made.append("stop")
            raise KeyboardInterrupt
        made.append(model)
        return {
            "suite": name,
            "model": model,
            "batch": batch,
            "seconds": {v: [1, 1, 1] for v in ("jit", *s.variants)},
            "environment": environment(),
        }

    monkeypatch.setattr(suite, "measure", measure)
    file = tmp_path / "b.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run("tiny", file)
    with file.open("a") as out:
        out.write('{"suite": "tiny", "mod')  # killed in the middle of a line
    assert [r["model"] for r in run("tiny", file)] == ["lenet", "fcnn"]
    assert made == ["lenet", "stop", "fcnn"] and len(file.read_text().splitlines()) == 2
    other = json.loads(file.read_text().splitlines()[0])
    other["environment"]["jax"] = "0.0"
    file.write_text(json.dumps(other) + "\n")
    run("tiny", file)  # another environment's records stay, and are not taken for this one's
    assert len(load(file)) == 3


def test_only_some_variants(tiny: None, tmp_path: pathlib.Path) -> None:
    records = run("tiny", tmp_path / "v.jsonl", variants=["host", "codl, channel"])
    assert all(set(r["seconds"]) == {"jit", "host", "codl, channel"} for r in records)
    with pytest.raises(SuiteError, match="got variant 'fastest'; valid are device; host; "):
        run("tiny", tmp_path / "v.jsonl", variants=["host", "fastest"])


def test_two_benches_and_one_file(tiny: None, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "c.jsonl"
    with file.open("a") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        with pytest.raises(SuiteError, match="which another bench is writing"):
            run("tiny", file)


def test_bad_names_and_files(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SuiteError, match="got suite 'fast'; valid are smoke, edgenn, codl, layer_switch"):
        run("fast", tmp_path / "d.jsonl")
    assert not (tmp_path / "d.jsonl").exists()
    with pytest.raises(SuiteError, match="which is not there"):
        load(tmp_path / "no.jsonl")
    (tmp_path / "e.jsonl").write_text("hello\n")
    with pytest.raises(SuiteError, match="got line 1"):
        load(tmp_path / "e.jsonl")


def test_comparisons_look_at_the_spread() -> None:
    old = [{"suite": "s", "model": "m", "batch": 1, "seconds": {"jit": [0.99, 1.0, 1.01], "auto": [0.4, 0.5, 0.6]}}]
    new = copy.deepcopy(old)
    assert "no change beyond the spread in 2" in compare(new, old)
    new[0]["seconds"]["auto"] = [0.55, 0.7, 0.8]  # slower, but the quartiles overlap
    assert "no change" in compare(new, old)
    new[0]["seconds"]["auto"] = [0.65, 0.7, 0.8]
    text = compare(new, old)
    assert "slower" in text and "1.40" in text and "jit" not in text
    assert "faster" in compare(old, new)
    slow = [{**new[0], "seconds": {k: [3 * t for t in q] for k, q in old[0]["seconds"].items()}}]
    lines = compare(slow, old).splitlines()
    assert len(lines) == 2 and "jit" in lines[1] and "slower" in lines[1]  # the machine, not the variant
    with pytest.raises(SuiteError, match="without any case"):
        compare([{**new[0], "model": "x"}], old)


def test_suites_name_models_and_variants_that_exist() -> None:
    for s in SUITES.values():
        assert set(s.models) <= set(models.NAMES) and set(s.variants) <= set(VARIANTS)
    assert all(set(s.variants) == set(VARIANTS) for s in SUITES.values())  # every strategy runs on every suite


def test_the_simulator_is_given_the_halves_as_they_were_in_the_run(tiny: None, tmp_path: pathlib.Path) -> None:
    """Only layers' seconds are scaled: plans of one half then come out exactly."""
    for r in run("tiny", tmp_path / "c.jsonl"):
        assert r["simulated"]["host"] == pytest.approx(r["seconds"]["host"][1], rel=1e-3)
        assert r["plans"]["host"]["engine"] == "xco" and len(r["plans"]["host"]["placements"]) == sum(
            r["halves"]["host"].values()
        )


def test_a_variant_has_a_bar_where_its_plan_is_its_own() -> None:
    """Each with a colour of its own."""
    names = [f"v{i}" for i in range(24)]
    seconds = {"jit": [1.0, 1.0, 1.0], **{v: [0.5, 0.5, 0.5] for v in names}}
    alone = {"model": "a", "batch": 1, "seconds": seconds, "stands_for": {v: v for v in names}}
    shared = {**alone, "model": "b", "stands_for": {**alone["stands_for"], "v3": "v1", "v7": "v1"}}
    figure = plots.bars([alone, shared])  # type: ignore[list-item]
    heights = {c.get_label(): [p.get_height() for p in c] for c in figure.axes[0].containers}
    assert {v for v, h in heights.items() if np.isnan(h[1])} == {"v3", "v7"} and all(
        h[0] == 2.0 for h in heights.values()
    )
    assert len({c[0].get_facecolor() for c in figure.axes[0].containers}) == len(names)
