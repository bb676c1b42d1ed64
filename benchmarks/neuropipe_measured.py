"""Rows of NeuroPipe's tables and figures, and those that are measured: records of `benchmarks.streams` that tell what
pipelining gives from what the kernels give.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .neuropipe_board import PAPER

RESULTS = pathlib.Path(__file__).parent / "results"
MEASURED = "*-neuropipe.jsonl"  # records of benchmarks.streams that have `gains`
Row = dict[str, Any]
Records = Sequence[Mapping[str, Any]]


def row(figure: str, what: str, paper: object, ours: object, kind: str, unit: str = "", **more: object) -> Row:
    """A row of the page; `more`: "spread" and "note"; of a curve "series" and "x"."""
    return {
        "figure": figure,
        "what": what,
        "paper": paper,
        "ours": ours,
        "kind": kind,
        "unit": unit,
        "spread": more.get("spread"),
        "note": more.get("note", ""),
        **{k: more[k] for k in ("series", "x") if k in more},
    }


def not_here(figure: str, what: str, why: str, paper: object = None, unit: str = "") -> Row:
    """A row of what is not rerun, and why."""
    return row(figure, what, paper, None, "not here", unit, note=why)


WORDS = {
    "pipelining": "pipelining alone, the same kernels",
    "kernels": "our kernels alone, against jax.jit, both one after the other",
    "both": "both together, against jax.jit one after the other",
}


def kept_records() -> list[Mapping[str, Any]]:
    """The latest record of each network and machine: a network counts once."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for path in sorted(RESULTS.glob(MEASURED)):
        for line in path.read_text().splitlines():
            r = json.loads(line)
            if "gains" in r:
                found[r["machine"], r["model"]] = r
    return list(found.values())


def machine_of(r: Mapping[str, Any]) -> str:
    """Where and how often a record was measured, in words."""
    rounds = f"{len(r['rounds']['serial'])} rounds of {r['seconds']:g} s"
    return (
        f"{r['machine']}; xcoexec {r['xcoexec']}, commit {r['commit']}; {rounds}, load of {r['load']:.1f} before them"
    )


def gains(figure: str, records: Records) -> list[Row]:
    """What pipelining gives and what the kernels give, apart: of each network (median of the rounds) and their mean, in
    percent of time saved.
    """
    saved = lambda ratios: 100 * (1 - 1 / np.asarray(ratios, float))
    out = []
    for machine in dict.fromkeys(r["machine"] for r in records):
        here = [r for r in records if r["machine"] == machine]
        for key, words in WORDS.items():
            each = {r["model"]: saved(r["gains"][key]) for r in here if key in r["gains"]}
            middle = {name: float(np.median(x)) for name, x in each.items()}
            if not middle:
                continue
            values = list(middle.values())
            note = f"{machine_of(here[0])}; {cut_of(here)}"
            what = f"less execution time, {words}"
            every = f"mean of {len(values)} ({', '.join(middle)})"
            out.append(
                row(
                    figure,
                    f"{what}, {every}",
                    PAPER["basic_time"].number("mean") if key == "pipelining" else None,
                    float(np.mean(values)),
                    "measured",
                    "%",
                    spread=(min(values), max(values)),
                    note=note,
                )
            )
            out += [
                row(figure, f"{what}, {n}", None, middle[n], "measured", "%", spread=(float(min(x)), float(max(x))))
                for n, x in each.items()
            ]
    return out


def cut_of(records: Records) -> str:
    cut = [r["model"] for r in records if r["cut"] is not None]
    if cut:
        return f"cut between the halves: {', '.join(cut)}"
    return "no network is cut on this machine, whose halves share their cores: only the host operations overlap"


__all__ = ["Records", "Row", "gains", "kept_records", "machine_of", "not_here", "row"]
