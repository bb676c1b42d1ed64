"""NeuroPipe's rows that are measured: runs of `benchmarks.streams` that tell what pipelining gives from what kernels
give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcoexec.papers import steps

from . import streams
from .neuropipe_board import PAPER, Row, row

ROUNDS = 3
NOT_CUT = "not cut on this machine"
Records = Sequence[Mapping[str, Any]]


WORDS = {
    "pipelining": "pipelining alone, the same kernels",
    "kernels": "our kernels alone, against jax.jit, both one after the other",
    "both": "both together, against jax.jit one after the other",
}


def streamed(models: Sequence[str], seconds: float, rounds: int = ROUNDS) -> list[Row]:
    """What this machine gives: parameters (Table 4), the cut that ran fastest (Table 5), what pipelining and what the
    kernels give (Figure 5). A step for each network, which counts once.
    """
    found = [
        steps.once(__name__, f"{m}, {rounds} rounds of {seconds:g} s", lambda m=m: streams.run(m, seconds, 1, rounds))
        for m in models
    ]
    records = [r for r in found if r is not None]
    return [*parameters(records), *tried(records), *gains("Figure 5(a)", records)]


def parameters(records: Records) -> list[Row]:
    """alpha and gamma of each network on the machine that measured it."""
    return [
        row(
            "Table 4",
            f"{key} of {r['model']} on this machine",
            None,
            r[key],
            "measured",
            note=runs_of(r),
        )
        for r in records
        for key in ("alpha", "gamma")
    ]


def tried(records: Records) -> list[Row]:
    """The cut into two stages that was the fastest of those that ran."""
    return [
        row(
            "Table 5",
            f"{r['model']}, empirical on this machine",
            None,
            r["empirical"] or NOT_CUT,
            "measured",
            note=runs_of(r),
        )
        for r in records
    ]


def runs_of(r: Mapping[str, Any]) -> str:
    """How a record was measured, in words."""
    return f"{len(r['rounds']['serial'])} rounds of {r['seconds']:g} s, a load of {r['load']:.1f} before them"


def gains(figure: str, records: Records) -> list[Row]:
    """What pipelining gives and what the kernels give, apart: of each network (median of the rounds) and their mean, in
    percent of time saved.
    """
    saved = lambda ratios: 100 * (1 - 1 / np.asarray(ratios, float))
    out = []
    for key, words in WORDS.items():
        each = {r["model"]: saved(r["gains"][key]) for r in records if key in r["gains"]}
        middle = {name: float(np.median(x)) for name, x in each.items()}
        if not middle:
            continue
        values = list(middle.values())
        what = f"less execution time, {words}"
        every = f"mean of {len(values)} ({', '.join(middle)})"
        printed = PAPER["basic_time"].number("mean") if key == "pipelining" else None
        note = f"{runs_of(records[0])}; {cut_of(records)}"
        spread = (min(values), max(values))
        out.append(
            row(figure, f"{what}, {every}", printed, float(np.mean(values)), "measured", "%", spread=spread, note=note)
        )
        out += [
            row(figure, f"{what}, {n}", None, middle[n], "measured", "%", spread=(float(min(x)), float(max(x))))
            for n, x in each.items()
        ]
    return out


def cut_of(records: Records) -> str:
    """Which networks ran cut between the halves, and why the others did not, in words."""
    cut = [r["model"] for r in records if r["cut"] is not None]
    if cut:
        return f"cut between the halves: {', '.join(cut)}"
    if all(r["empirical"] is None for r in records):
        return "no network is cut on this machine, whose halves share their cores: only the host operations overlap"
    return "every network ran faster whole than cut: only the host operations overlap"


__all__ = ["Records", "Row", "gains", "parameters", "streamed", "tried"]
