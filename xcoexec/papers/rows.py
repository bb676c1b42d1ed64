"""Rows of the papers' page: which function reruns which table or figure, at which size.

A row is one line of a table in `table.py`. Its function returns cells (`cells.Cell`, or dicts like it); what cannot be
rerun on one machine has `because` instead. Figures that are pictures without values get their row from the quoted data.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from . import quoted
from .cells import Cell, PapersError, base, checked

#: what stands beside the five papers: all methods on the same networks, and what the kernels alone give
BEYOND = "beyond"
PAPERS = (*quoted.KEYS, BEYOND)


@dataclasses.dataclass(frozen=True)
class Row:
    """Tables or figures of a paper that one function reruns, or the reason why nothing here does.

    `function`: "module:name", called with the entries of `quick` or of `full` as keyword arguments. `about_splits`: its
    measured cells count only where layers were divided between both halves (`splits` of a cell). `matrix`: the page
    shows its cells as a table of `what` by `series`. `steps`: it takes long, and has what it has after an interrupt.
    """

    paper: str
    figures: tuple[str, ...]
    function: str = ""
    quick: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    full: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    about_splits: bool = False
    because: str = ""
    matrix: bool = False
    steps: bool = False

    @property
    def key(self) -> str:
        """By what its records are known."""
        return f"{self.paper}/{self.function}/{', '.join(self.figures)}"

    @property
    def module(self) -> str:
        """The module of its function; "" without one."""
        return self.function.partition(":")[0]

    def run(self, full: bool) -> list[Cell]:
        """Its cells, measured or computed now. Raises `PapersError` for a function that returns something else."""
        module, _, name = self.function.partition(":")
        function = getattr(importlib.import_module(module), name)
        return checked(function(**(self.full if full else self.quick)), self.figures, self.function)


def items(paper: quoted.Paper) -> tuple[str, ...]:
    """Every table and figure of a paper, as it numbers them."""
    found = dict.fromkeys(base(q.item) for q in paper.records.values() if q.item.startswith(("Table", "Figure")))
    return tuple(found)


def pictured(rules: Sequence[Row]) -> list[Row]:
    """Rows of the figures that have no value at all, which no rule speaks of."""
    spoken = {(r.paper, f) for r in rules for f in r.figures}
    out = []
    for paper in quoted.papers():
        for item in items(paper):
            kinds = {q.kind for q in paper.of(item)}
            if (paper.key, item) not in spoken and kinds <= {"diagram", "rule"}:
                out.append(Row(paper.key, (item,), because="a diagram: it has no values"))
    return out


def without_row(rules: Sequence[Row]) -> list[str]:
    """Tables and figures of the five papers that no row speaks of."""
    spoken = {(r.paper, f) for r in rules for f in r.figures}
    return [f"{p.name}, {item}" for p in quoted.papers() for item in items(p) if (p.key, item) not in spoken]


def of(rules: Sequence[Row], papers: Sequence[str]) -> list[Row]:
    """The rows of some papers (none named: of all). Raises `PapersError` for an unknown one."""
    if unknown := [p for p in papers if p not in PAPERS]:
        raise PapersError(f"papers: got paper {unknown[0]!r}; valid are {', '.join(PAPERS)}.")
    return [r for r in rules if not papers or r.paper in papers]


__all__ = ["BEYOND", "PAPERS", "Row", "items", "of", "pictured", "without_row"]
