"""Records of suites that were kept from other machines, as records of the rows that they stand beside."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from ..tools import suite as suites
from . import beyond, measured
from .cells import Cell, checked
from .records import Record
from .rows import Row

Found = Callable[[Sequence[Any]], list[Cell]]
#: function of a row -> (the suite of its records, "" for all; what makes cells of them)
SOURCES: dict[str, tuple[str, Found]] = {
    "xcoexec.papers.measured:edgenn_measured": ("edgenn", measured.FROM_SUITE["edgenn"]),
    "xcoexec.papers.measured:codl_measured": ("codl", measured.FROM_SUITE["codl"]),
    "xcoexec.papers.measured:switch_measured": ("layer_switch", measured.FROM_SUITE["layer_switch"]),
    "xcoexec.papers.beyond:compared": ("", beyond.table),
    "xcoexec.papers.measured:kernels_measured": ("", measured.kernels),
}


def records(file: str | pathlib.Path, rows: Sequence[Row]) -> list[Record]:
    """A suite's file as records of rows. They name no revision, so that they are older than any code. Raises
    `SuiteError` for a file that is none.
    """
    found = suites.load(file)
    out: list[Record] = []
    for row in rows:
        if row.function not in SOURCES:
            continue
        name, make = SOURCES[row.function]
        mine = list({r["model"]: r for r in found if not name or r["suite"] == name}.values())
        if not mine:
            continue
        environment = {**mine[0]["environment"]}
        out.append(
            Record(
                key=row.key,
                paper=row.paper,
                figures=list(row.figures),
                size="full",
                cells=checked(make(mine), row.figures, str(file)),
                commit=f"version {environment['xcoexec']}",
                source="",
                seconds=0.0,
                environment=environment,
            )
        )
    return out


__all__ = ["SOURCES", "records"]
