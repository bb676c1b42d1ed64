"""Figures in the papers' own axes, ours beside the paper's points (matplotlib, imported when one is drawn)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..session.drawing import COLOURS
from ..tools import plots
from . import view
from .cells import number
from .rows import Axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Plot

WIDTH = 0.8  # of the bars of one place on the x axis


def drawable(figure: view.Figure) -> Axes | None:
    """A figure's axes; None where no row gives it any, or where there is no number to draw."""
    if not figure.name.startswith("Figure"):
        return None
    axes = next((a for e in figure.entries if (a := e.row.axes_of(figure.name))), None)
    return axes if any(number(e.cell, e.row.about_splits) is not None for e in figure.entries) else None


def png(figure: view.Figure, axes: Axes) -> bytes:
    """The picture, as the bytes of a PNG."""
    made, (ax,) = plots.axes(1, 8.0, 3.8)
    curves = [e for e in figure.entries if "x" in e.cell]
    (_curves if curves else _bars)(ax, curves or figure.entries)
    ax.set_xlabel(axes.x)
    ax.set_ylabel(axes.y)
    if axes.log_x:
        ax.set_xscale("log", base=2)
    if axes.log_y:
        ax.set_yscale("log")
    ax.legend(frameon=False, fontsize=7, ncols=2)
    return plots.png(made)


def _name(e: view.Entry) -> str:
    series = e.cell.get("series", "")
    return f"{series}, {e.column}" if series else e.column


def _bars(ax: Plot, entries: Sequence[view.Entry]) -> None:
    """A group of bars for each thing that is compared, with a bar for each column, and the paper's value as a point."""
    places = list(dict.fromkeys(e.cell["what"] for e in entries))
    names = list(dict.fromkeys(map(_name, entries)))
    wide = WIDTH / len(names)
    for i, name in enumerate(names):
        mine = [(e, number(e.cell, e.row.about_splits)) for e in entries if _name(e) == name]
        known = [
            (places.index(e.cell["what"]) + (i - (len(names) - 1) / 2) * wide, y) for e, y in mine if y is not None
        ]
        if known:
            xs, ys = zip(*known, strict=True)
            ax.bar(xs, ys, wide, label=name, color=COLOURS[i % len(COLOURS)])
    paper = {e.cell["what"]: e.cell["paper"] for e in entries if isinstance(e.cell["paper"], (int, float))}
    if paper:
        ax.plot([places.index(w) for w in paper], list(paper.values()), "kD", markersize=5, label="the paper")
    ax.set_xticks(range(len(places)), places, fontsize=6, rotation=25, ha="right")


def _curves(ax: Plot, entries: Sequence[view.Entry]) -> None:
    """A line for each series, and the paper's values as points."""
    for i, name in enumerate(dict.fromkeys(map(_name, entries))):
        points = sorted(
            (e.cell["x"], y)
            for e in entries
            if _name(e) == name and (y := number(e.cell, e.row.about_splits)) is not None
        )
        ax.plot(
            [x for x, _ in points],
            [y for _, y in points],
            "o-",
            markersize=3,
            color=COLOURS[i % len(COLOURS)],
            label=name,
        )
    paper = [(e.cell["x"], e.cell["paper"]) for e in entries if isinstance(e.cell["paper"], (int, float))]
    if paper:
        ax.plot([x for x, _ in paper], [y for _, y in paper], "kD", markersize=5, label="the paper")


__all__ = ["drawable", "png"]
