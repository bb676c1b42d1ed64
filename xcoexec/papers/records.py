"""Records of rows that were run: JSON lines, known by row, size, code and machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

from ..tools import lines
from ..tools.machine import Environment
from . import source
from .cells import Cell
from .rows import Row

NEEDED = ("key", "paper", "figures", "size", "cells", "commit", "source", "seconds", "environment")


class Record(TypedDict):
    """What a row gave: its cells, the revision and the hash of the code, seconds of the run, and the machine.

    `failed`: the error's text where its function did not end; `left`: how many of its steps an interrupt left out. Such
    a row is run again.
    """

    key: str
    paper: str
    figures: list[str]
    size: str
    cells: list[Cell]
    commit: str
    source: str
    seconds: float
    environment: Mapping[str, object]
    failed: NotRequired[str]
    left: NotRequired[int]


def machine(environment: Mapping[str, object]) -> str:
    """The machine of a record: processor, and the device with its number of multiprocessors where there is one."""
    device, _, parts = str(environment.get("device", "cpu")).rpartition(" ")
    return f"{environment['cpu']}" + (f" + {device} with {parts} multiprocessors" if device else "")


def made(
    row: Row, size: str, cells: Sequence[Cell], seconds: float, here: Environment, failed: str = "", left: int = 0
) -> Record:
    """A record of now."""
    record = Record(
        key=row.key,
        paper=row.paper,
        figures=list(row.figures),
        size=size,
        cells=list(cells),
        commit=source.commit(),
        source=source.digest(row.module),
        seconds=round(seconds, 3),
        environment=dict(here),  # type: ignore[call-overload]
    )
    if failed:
        record["failed"] = failed
    if left:
        record["left"] = left
    return record


def load(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a file, none where it is not there. Raises `LinesError` for lines that are no records."""
    return lines.load(path, NEEDED)  # type: ignore[return-value]


def finished(records: Iterable[Record], row: Row, size: str, here: Environment) -> bool:
    """Whether a row was run by this code, on this machine, at this size."""
    mine = dict(here)
    return any(
        r["key"] == row.key
        and r["size"] == size
        and r["environment"] == mine
        and (r["commit"], r["source"]) == (source.commit(), source.digest(row.module))
        and not r.get("failed")
        and not r.get("left")
        for r in records
    )


def stale(record: Record, row: Row) -> bool:
    """Whether the code that a record speaks of has changed since."""
    return record["source"] != source.digest(row.module)


def latest(records: Sequence[Record], rows: Mapping[str, Row]) -> list[Record]:
    """One record of each row on each machine: of those that ended, that speak of the present code and that have the
    full size, the last one, in this order. `rows`: by key; records of other rows are left out.
    """
    return _first(records, rows, lambda r: (r["key"], machine(r["environment"])))


def computing(records: Sequence[Record], rows: Mapping[str, Row]) -> list[Record]:
    """One record of each row, as `latest` has them, on whichever machine: what is calculated or simulated is the same
    on all.
    """
    return _first(records, rows, lambda r: (r["key"],))


def _first(records: Sequence[Record], rows: Mapping[str, Row], by: Callable[[Record], tuple[str, ...]]) -> list[Record]:
    found: dict[tuple[str, ...], tuple[tuple[bool, bool, bool, int], Record]] = {}
    for i, r in enumerate(records):
        if r["key"] not in rows:
            continue
        rank = ("failed" not in r, not stale(r, rows[r["key"]]), r["size"] == "full", i)
        if by(r) not in found or rank > found[by(r)][0]:
            found[by(r)] = (rank, r)
    return [r for _, r in found.values()]


__all__ = ["Record", "computing", "finished", "latest", "load", "machine", "made", "stale"]
