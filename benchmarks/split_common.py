"""What the rows of EdgeNN, CoDL and the layer-switching paper are made of: records, simulations, one shape of a row."""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.plan import Plan
from xcoexec.papers import quoted
from xcoexec.planning import profiles
from xcoexec.planning.simulate import replay
from xcoexec.strategies import Strategy
from xcoexec.tools.splits import NO_SPLIT, gain, shared, split_layers
from xcoexec.tools.suite import SUITES
from xcoexec.tools.zoo_graphs import model_graph

RESULTS = pathlib.Path(__file__).parent / "results"
#: machine -> the file of what its suites measured
MACHINES = {"slice": "xeon-16cores-h200-slice-suites.jsonl", "CPU": "zen5-2cores-suites.jsonl"}
KINDS = ("measured", "calculated", "simulated", "absent")
Row = dict[str, Any]
Record = Mapping[str, Any]


def row(
    paper: str,
    figure: str,
    what: str,
    printed: float | str | None,
    ours: float | str | None,
    kind: str,
    unit: str = "%",
    spread: Sequence[float] | None = None,
    note: str = "",
    **more: Any,
) -> Row:
    """A row: `paper` a key of `xcoexec.papers.quoted`, `figure` as printed, `printed` the paper's value (None: drawn or
    not printed), `ours` a number in `unit` or a sentence (None where `kind` is "absent", and `note` says why),
    `spread`: least and most over the networks; `more`: `by`, `paper_by`, `series` and `x` of a cell.
    """
    names = ("paper_key", "figure", "what", "paper", "ours", "kind", "unit", "spread", "note")
    return dict(zip(names, (paper, figure, what, printed, ours, kind, unit, spread, note), strict=True)) | more


def absent(paper: str, key: str, why: str, value: str | None = None) -> Row:
    """A row of a printed record that is not run here; `value`: the name of the number that the row shows."""
    q = quoted.load(paper)[key]
    printed = q.number(value) if value is not None else None
    return row(paper, q.item or f"section {q.section}", q.what, printed, None, "absent", q.unit, note=why)


def pictures(paper: str) -> list[Row]:
    """Every figure that is a picture without values."""
    why = "not here, because it is a picture without values"
    return [absent(paper, k, why) for k, q in quoted.load(paper).records.items() if q.kind == "diagram"]


@functools.cache
def on(device: str, model: str) -> tuple[LayerGraph, Costs]:
    """A network's graph and its costs on a board of numbers."""
    graph = model_graph(model)
    return graph, profiles.load(device).costs(graph)


@functools.cache
def plan(device: str, model: str, strategy: Strategy) -> Plan:
    """A strategy's plan of a network on a board of numbers."""
    return strategy(*on(device, model))


@functools.cache
def simulated(device: str, model: str, strategy: Strategy) -> float:
    """Seconds of a call by the simulator."""
    graph, costs = on(device, model)
    return replay(graph, plan(device, model, strategy), costs).seconds


def mean(values: Collection[float]) -> float:
    """The arithmetic mean, as the papers have it."""
    return float(np.mean(list(values)))


def spread(values: Collection[float]) -> list[float]:
    """Least and most."""
    return [min(values), max(values)]


@functools.cache
def records(machine: str, suite: str) -> tuple[Record, ...]:
    """What a machine's suite measured."""
    file = RESULTS / MACHINES[machine]
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    return tuple(r for r in found if r["suite"] == suite)


def about(machine: str) -> str:
    """Machine, versions and number of networks of its records, as a row's note says them."""
    for suite in SUITES:
        for r in records(machine, suite):
            e = r["environment"]
            return f"{machine}: {e['cpu']}, {e['device']}, xcoexec {e['xcoexec']}, jax {e['jax']}"
    return f"{machine}: no records"


def measured_cells(
    paper: str,
    figure: str,
    what: str,
    printed: float | None,
    suite: str,
    variant: str,
    than: Sequence[str],
    *,
    as_times: bool = False,
    switched: bool = False,
    note: str = "",
) -> list[Row]:
    """A row for each machine: how much less time a variant takes than the best of others, by medians and in percent,
    over the networks in which its plan splits a layer; `NO_SPLIT` where there is none. `as_times`: how many times
    faster. `switched`: whole layers on either half count as well.
    """
    unit = "times" if as_times else "%"
    counts = shared if switched else split_layers
    out = []
    for machine in MACHINES:
        mine = [r for r in records(machine, suite) if {variant, *than} <= r["seconds"].keys()]
        where = f"{about(machine)}; {note}".rstrip("; ")
        there = records(machine, suite)
        if not mine and there and there[0]["environment"]["device"] == "cpu":
            where = f"both halves share the cores, so that no planner splits there; {where}"
            out.append(row(paper, figure, what, printed, NO_SPLIT, "measured", unit, note=where))
            continue
        if not mine:
            why = f"not measured yet: `xcoexec bench --suite={suite}` measures it; {where}"
            out.append(row(paper, figure, what, printed, None, "absent", unit, note=why))
            continue
        working = [r for r in mine if counts(r, variant)]
        if not working:
            out.append(row(paper, figure, what, printed, NO_SPLIT, "measured", unit, note=where))
            continue
        values = {}
        for r in working:
            least = min(gain(r, variant, t) for t in than)
            values[r["model"]] = 1 / (1 - least) if as_times else 100 * least
        of = f"{len(working)} of {len(mine)} networks: {_named(values)}; {where}"
        least_most = spread(values.values())
        ours = mean(values.values())
        out.append(row(paper, figure, what, printed, ours, "measured", unit, least_most, of, by=values))
    return out


def _named(values: Mapping[str, float]) -> str:
    return ", ".join(f"{m} {v:.2f}" for m, v in values.items())


def over_networks(
    paper: str,
    figure: str,
    what: str,
    printed: float | None,
    values: Mapping[str, float],
    kind: str = "simulated",
    unit: str = "%",
    note: str = "",
    paper_by: Mapping[str, float] | None = None,
) -> Row:
    """The mean over networks, with each one's value in the note; `paper_by`: those that are printed."""
    text = f"{_named(values)}; {note}".rstrip("; ")
    more = {"by": dict(values), **({"paper_by": dict(paper_by)} if paper_by else {})}
    return row(paper, figure, what, printed, mean(values.values()), kind, unit, spread(values.values()), text, **more)


def kernels_rows(suite: str, paper: str) -> list[Row]:
    """What the host half's kernels gain over plain `jax.jit`, by machine: no claim about splits."""
    out = []
    for machine in MACHINES:
        values = {
            r["model"]: r["seconds"]["jit"][1] / r["seconds"]["host"][1]
            for r in records(machine, suite)
            if "host" in r["seconds"] and r["halves"]["host"]["device"] == 0
        }
        what = "kernels: all layers on the host half, times faster than plain jax.jit"
        if values:
            out.append(over_networks(paper, "kernels", what, None, values, "measured", "times", about(machine)))
    return out


def meeting(of: Callable[[float], float], target: float, low: float, high: float, steps: int = 12) -> float | None:
    """Where a function that only rises or only falls between two positive numbers meets a target, by halving their
    ratio; None where it does not.
    """
    rising = of(high) > of(low)
    if not min(of(low), of(high)) <= target <= max(of(low), of(high)):
        return None
    for _ in range(steps):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if (of(middle) < target) == rising else (low, middle)
    return (low * high) ** 0.5


def all_of(functions: Sequence[Callable[[], list[Row]]]) -> list[Row]:
    """The rows of several tables and figures, in their order."""
    return [r for f in functions for r in f()]


__all__ = [
    "KINDS",
    "MACHINES",
    "Row",
    "about",
    "absent",
    "all_of",
    "kernels_rows",
    "mean",
    "measured_cells",
    "meeting",
    "on",
    "over_networks",
    "pictures",
    "plan",
    "records",
    "row",
    "simulated",
    "spread",
]
