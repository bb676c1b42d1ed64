"""Runs the rows that a folder has no record of yet, and writes the page from its records."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable, Sequence

from ..measure.timing import Progress, silent
from ..tools import lines
from ..tools.machine import environment
from . import kept, markdown, page, records, rows, steps
from .cells import PapersError
from .records import Record
from .rows import Row
from .table import ROWS

FILE, STEPS, PAGE, TEXT = "papers.jsonl", "steps.jsonl", "papers.html", "papers.md"
#: records of other machines, in a checkout
KEPT = ("xeon-16cores-h200-slice-suites.jsonl",)
RESULTS = pathlib.Path(__file__).parents[2] / "benchmarks" / "results"

Clock = Callable[[], float]


def folder(path: str | os.PathLike[str]) -> pathlib.Path:
    """A folder that can be written to, made where it is not there. Raises `PapersError` for one that cannot."""
    found = pathlib.Path(path)
    try:
        found.mkdir(parents=True, exist_ok=True)
        with (found / FILE).open("a"):
            pass
    except OSError as e:
        raise PapersError(
            f"papers: got --out={os.fspath(path)}, where nothing can be written ({e.strerror}); valid is a folder of"
            " yours."
        ) from None
    return found


def run(
    out: str | os.PathLike[str],
    papers: Sequence[str] = (),
    full: bool = False,
    progress: Progress = silent,
    table: Sequence[Row] = ROWS,
) -> list[Record]:
    """Runs the rows of some papers (none named: of all) that `out` has no record of, each at its quick or its full
    size, and writes the page there. Returns the records of this run: none where all was there.

    A row is written when it has ended, and its steps when each has, so that a run that was cut off goes on where it
    was. An interrupt (Ctrl-C, SIGINT) ends it in order: rows that have steps are written with those that they have, the
    rest is run the next time. A row that fails is written with its error, shown as failed, and run again the next time.
    Raises `PapersError` for an unknown paper or a folder that cannot be written to.
    """
    chosen = [r for r in rows.of(table, papers) if r.function]
    file = folder(out) / FILE
    known, here, size = records.load(file), environment(), "full" if full else "quick"
    made: list[Record] = []
    with steps.kept(file.parent / STEPS, here) as state:
        for i, row in enumerate(chosen):
            progress(f"{row.paper}, {', '.join(row.figures)}", i, len(chosen))
            if records.finished(known, row, size, here) or (state.ended and not row.steps):
                continue
            if (record := _once(row, size, here, state)) is not None:
                made.append(record)
                lines.append(file, record)
    write(out, table)
    return made


def _once(row: Row, size: str, here: records.Environment, state: steps.Steps) -> Record | None:
    """A row's record; None where an interrupt left nothing of it."""
    began, left, known = time.perf_counter(), state.left, state.seconds
    took = lambda: time.perf_counter() - began + state.seconds - known
    try:
        cells = row.run(size == "full")
    except KeyboardInterrupt:
        state.ended = True
        return None
    except Exception as e:  # one row does not end a run of many
        return records.made(row, size, [], took(), here, f"{type(e).__name__}: {e}")
    if state.left > left and not cells:
        return None
    return records.made(row, size, cells, took(), here, left=state.left - left)


def write(out: str | os.PathLike[str], table: Sequence[Row] = ROWS) -> None:
    """Writes the page from a folder's records, and from those of other machines that a checkout keeps."""
    found = folder(out)
    known = [*others(table), *records.load(found / FILE)]
    (found / TEXT).write_text(markdown.text(known, table), "utf-8")
    (found / PAGE).write_text(page.text(known, table), "utf-8")


def others(table: Sequence[Row] = ROWS) -> list[Record]:
    """The records that a checkout keeps, of this command, and of suites where no record of a GPU speaks of the same
    row; none in an installed package.
    """
    found = [r for file in sorted(RESULTS.glob("*-papers.jsonl")) for r in records.load(file)]
    known = {r["key"] for r in found if r["environment"]["device"] != "cpu"}
    suites = [r for name in KEPT if (RESULTS / name).is_file() for r in kept.records(RESULTS / name, table)]
    return [*(r for r in suites if r["key"] not in known), *found]


__all__ = ["folder", "others", "run", "write"]
