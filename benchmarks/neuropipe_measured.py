"""NeuroPipe's rows that are measured: runs of `benchmarks.streams` that tell what pipelining gives from what kernels
give, and networks that are cut between the halves from those that run whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcoexec.papers import steps

from . import streams
from .neuropipe_board import NETWORKS, PAPER, PARAMETERS, XAVIERS, Row, row

ROUNDS = 3
NOT_CUT = "no cut on this machine"
NAMES = {ours: name for name, ours in NETWORKS.items()}  # our name -> the paper's
Records = Sequence[Mapping[str, Any]]

#: a record's gain, of which networks (True: cut between the halves, False: whole, None: all), and in words. The paper
#: partitions all networks and pipelines them (IV-B): its mean stands beside the first alone
GAINS = (
    ("pipelining", True, "pipelining alone, the same kernels"),
    ("pipelining", False, "only the host operations overlap, the same kernels"),
    ("kernels", None, "our kernels alone, against jax.jit, both one after the other"),
    ("both", True, "both together, against jax.jit one after the other"),
    ("both", False, "both together, only the host operations overlap, against jax.jit one after the other"),
)


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
    """alpha and gamma of each network on the machine that measured it, beside the board's as printed."""
    return [
        row(
            "Table 4",
            f"{key} of {name}",
            PAPER[key].number(name),
            r[key],
            "measured",
            "",
            (name,),
            note=f"{XAVIERS}; measured once before the rounds, a load of {r['load']:.1f} before it",
        )
        for r in records
        for name in (NAMES[r["model"]],)
        for key in PARAMETERS
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
            "",
            (NAMES[r["model"]],),
            note=runs_of([r]),
            runs=rounds_of(r),
        )
        for r in records
    ]


def rounds_of(r: Mapping[str, Any]) -> int:
    """How many times each way of a record ran."""
    return len(r["rounds"]["serial"])


def runs_of(records: Records) -> str:
    """How some records were measured, in words."""
    loads = dict.fromkeys(f"{load:.1f}" for load in sorted(r["load"] for r in records))
    least, *_, most = *loads, *loads
    return (
        f"{rounds_of(records[0])} rounds of {records[0]['seconds']:g} s, a load of {least}"
        f"{f' to {most}' if most != least else ''} before them"
    )


def gains(figure: str, records: Records) -> list[Row]:
    """What pipelining gives and what the kernels give, apart, in percent of time saved: of each network, and the mean
    of networks, each once. A value is the median of the rounds, its spread their least and most.
    """
    out = []
    for key, cut, words in GAINS:
        able = [r for r in records if key in r["gains"]]
        mine = [r for r in able if cut in (None, is_cut(r))]
        what = f"less execution time, {words}"
        printed = PAPER["basic_time"].values or {} if (key, cut) == ("pipelining", True) else {}
        every = ", ".join(r["model"] for r in mine)
        mean = f"{what}, mean of {'the networks that are cut' if printed else f'{len(mine)} ({every})'}"
        if mine:
            saved = 100 * (1 - 1 / np.array([r["gains"][key] for r in mine], float))
            of = [NAMES[r["model"]] for r in mine]
            note = "; ".join([runs_of(mine), *([] if cut is None else [cut_of(mine)])])
            out.append(_saved(figure, mean, printed.get("mean"), saved.mean(0), of, note))
            out += [
                _saved(figure, f"{what}, {r['model']}", printed.get(n), x, [n], runs_of([r]))
                for r, n, x in zip(mine, of, saved, strict=True)
            ]
        elif able and printed:
            out.append(row(figure, mean, printed["mean"], NOT_CUT, "measured", "%", note=cut_of(able)))
    return out


def _saved(figure: str, what: str, printed: object, rounds: np.ndarray, of: Sequence[str], note: str) -> Row:
    """Percent of each round as a row."""
    spread = (float(rounds.min()), float(rounds.max()))
    ours = float(np.median(rounds))
    return row(figure, what, printed, ours, "measured", "%", of, spread=spread, note=note, runs=len(rounds))


def is_cut(r: Mapping[str, Any]) -> bool:
    """Whether a record's pipeline ran the network cut between the halves."""
    return r["cut"] is not None


def cut_of(records: Records) -> str:
    """Which networks ran cut between the halves, or why none did, in words."""
    cut = [r["model"] for r in records if is_cut(r)]
    if cut:
        return f"cut between the halves: {', '.join(cut)}"
    if all(r["empirical"] is None for r in records):
        return "no network is cut on this machine, whose halves share their cores: only the host operations overlap"
    return "each network ran faster whole than cut: only the host operations overlap"


__all__ = ["Records", "Row", "gains", "parameters", "streamed", "tried"]
