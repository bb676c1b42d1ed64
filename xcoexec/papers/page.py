"""The page as one self-contained HTML file, its figures inside."""

from __future__ import annotations

import html
import importlib.util
from collections.abc import Sequence

from ..tools.html import document, image, table
from . import pictures, view
from .cells import NONE
from .records import Record
from .rows import PAPERS, Row

ABOUT = """<p>Measured, calculated and simulated are three columns. <em>Measured</em> was run on the machine that the
column names, <em>calculated</em> follows by a formula from what a paper prints or a profile says, <em>simulated</em> is
our planner or scheduler on the paper's device as numbers. Figures have the papers' axes; diamonds are values that the
paper prints, what it only draws has none.</p>"""
NO_PICTURES = "<p>Nothing is drawn: matplotlib is not installed (pip install xcoexec[papers]).</p>"


def text(records: Sequence[Record], rows: Sequence[Row]) -> str:
    """The page; without matplotlib it has tables alone, and says so."""
    found = view.figures(records, rows)
    drawing = importlib.util.find_spec("matplotlib") is not None
    parts = [ABOUT, "" if drawing else NO_PICTURES, "<h2>Every table and figure</h2>"]
    parts.append(
        table(("paper", "table or figure", "what it shows", "here"), [[f.paper, f.name, f.title, f.how] for f in found])
    )
    for paper in PAPERS:
        mine = [f for f in found if f.paper == paper and f.whole()]
        if mine:
            parts.append(f"<h2>{html.escape(view.named(paper))}</h2>")
            parts += [_figure(f, view.columns(mine), drawing) for f in mine]
    parts += ["<h2>Runs</h2>", table(view.RUNS_HEAD, view.runs(records, rows))]
    return document("The five papers, rerun", "".join(parts))


def _figure(f: view.Figure, columns: Sequence[str], drawing: bool) -> str:
    panels = pictures.drawable(f) if drawing else ()
    drawn = image(pictures.png(f, panels), f"{f.paper}, {f.name}") if panels else ""
    if f.matrix:
        body = table(*view.matrix(f))
    else:
        rows = [[x.what, x.paper, *(x.columns.get(c, NONE) for c in columns), x.note] for x in f.whole()]
        body = table(("what", "paper", *columns, "note"), rows)
    return f"<h3>{html.escape(f'{f.name}: {f.title}')}</h3>{drawn}{body}"


__all__ = ["text"]
