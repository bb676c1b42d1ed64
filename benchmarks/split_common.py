"""What the rows of EdgeNN, CoDL and the layer-switching paper are made of: simulations, and one shape of a row."""

from __future__ import annotations

import functools
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
from xcoexec.tools.zoo_graphs import model_graph

KINDS = ("measured", "calculated", "simulated", "absent")
Row = dict[str, Any]


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
    "Row",
    "absent",
    "all_of",
    "mean",
    "meeting",
    "on",
    "over_networks",
    "pictures",
    "plan",
    "row",
    "simulated",
    "spread",
]
