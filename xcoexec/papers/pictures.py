"""Figures in the papers' own axes, ours beside the paper's points (matplotlib, imported when one is drawn)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..session.drawing import COLOURS
from ..tools import plots
from . import view
from .axes import AXES, NAMES, Panel
from .cells import SIMULATED, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILLED = 0.84  # of a place on the x axis
WIDE, NARROW, HEIGHT = 9.0, 7.0, 4.2  # inches of a picture that is alone, of one of several
FEW = 5  # words on the x axis that stand upright
LETTERS = 34  # of such words in all


@dataclasses.dataclass(frozen=True)
class Point:
    """What is drawn of a cell: on the x axis a place or a number `x`, the bars' name, and both values (None: none)."""

    place: str
    name: str
    series: str
    ours: float | None
    paper: float | None
    x: float | None = None


def points(figure: view.Figure, panel: Panel) -> list[Point]:
    """What a picture shows of a figure."""
    found = (p for e in figure.entries if not e.absent for p in _points(e, panel))
    return [p for p in found if p.ours is not None or p.paper is not None]


def _points(e: view.Entry, panel: Panel) -> Iterator[Point]:
    cell = e.cell
    match = panel.match(cell["figure"], cell["what"])
    if match is None:
        return
    groups = {k: v for k, v in match.groupdict().items() if v}
    words = [groups[k] for k in ("series", "series2") if k in groups] or [cell.get("series", "")]
    series = ", ".join(NAMES.get(w, w) for w in words if w)
    name = f"{series}, {_column(e)}" if series else _column(e)
    scaled = lambda v: panel.value(float(v)) if isinstance(v, (int, float)) and not isinstance(v, bool) else None
    ours, whole = number(cell, e.row.about_splits), groups.get("place")
    by, printed = cell.get("by", {}), cell.get("paper_by", {})
    for network, value in by.items() if ours is not None else ():
        yield Point(NAMES.get(network, network), name, series, scaled(value), scaled(printed.get(network)))
    place = whole or panel.whole or cell["what"]
    yield Point(NAMES.get(place, place), name, series, scaled(ours), scaled(cell["paper"]), cell.get("x"))


def _column(e: view.Entry) -> str:
    return e.column + view.OLDER * e.old


def drawable(figure: view.Figure) -> tuple[Panel, ...]:
    """A figure's pictures that have a number of ours."""
    mine = AXES.get((figure.paper, figure.name), ())
    return tuple(p for p in mine if any(x.ours is not None for x in points(figure, p)))


def png(figure: view.Figure, panels: Sequence[Panel]) -> bytes:
    """A figure's pictures, as the bytes of one PNG."""
    made, places = plots.axes(len(panels), WIDE if len(panels) == 1 else NARROW, HEIGHT)
    for ax, panel in zip(places, panels, strict=True):
        found = points(figure, panel)
        (_bars if all(p.x is None for p in found) else _curves)(ax, found)
        ax.set_xlabel(panel.x)
        ax.set_ylabel(panel.y)
        if panel.scale:
            ax.axhline(1.0, color="#888888", linewidth=1, label="baseline")
        ax.legend(frameon=False, fontsize=7, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return plots.png(made)


def _bars(ax: Axes, found: Sequence[Point]) -> None:
    """A group of bars at each place, those of a series side by side, with the paper's value as a point among them."""
    places = list(dict.fromkeys(p.place for p in found))
    if "average" in places:
        places.sort(key=lambda p: p == "average")
    drawn = [p for p in found if p.ours is not None]
    slots = list(dict.fromkeys((p.series, p.name) for p in drawn))
    slots.sort(key=lambda s: [x.series for x in found].index(s[0]))
    width = FILLED / len(slots)
    at = lambda place, slot: places.index(place) + (slot - (len(slots) - 1) / 2) * width
    for i, slot in enumerate(slots):
        mine = {p.place: p.ours for p in drawn if (p.series, p.name) == slot}
        xs, ys = [at(place, i) for place in mine], [y or 0.0 for y in mine.values()]
        ax.bar(xs, ys, 0.92 * width, label=slot[1], color=COLOURS[i % len(COLOURS)])
    of = lambda series: [i for i, s in enumerate(slots) if s[0] == series]
    known = {(p.place, p.series): p.paper for p in found if p.paper is not None and of(p.series)}
    if known:
        middles = [at(place, sum(of(s)) / len(of(s))) for place, s in known]
        ax.plot(middles, list(known.values()), "kD", markersize=5, label="the paper, as printed")
    upright = len(places) <= FEW and sum(map(len, places)) <= LETTERS * (WIDE / NARROW if len(places) > 1 else 1)
    tilt = {} if upright or max(map(len, places)) < FEW else {"rotation": 25, "ha": "right"}
    ax.set_xticks(range(len(places)), places, fontsize=7, **tilt)  # type: ignore[arg-type]
    ax.set_xlim(-0.6, len(places) - 0.4)


def _curves(ax: Axes, found: Sequence[Point]) -> None:
    """A line for each series; what belongs to none is a point with its name. The paper's values are points."""
    names = list(dict.fromkeys(p.name for p in found))
    for i, name in enumerate(names):
        mine = [(p.x, p.ours, p.place) for p in found if p.name == name and p.x is not None and p.ours is not None]
        mine.sort(key=lambda at: at[0])  # corners of a step stay in their order
        line = any(p.series for p in found if p.name == name)
        style = "-" if line else "s" if SIMULATED in name else "o"
        xs, ys = [x for x, _, _ in mine], [y for _, y, _ in mine]
        ax.plot(xs, ys, style, markersize=5, color=COLOURS[i % len(COLOURS)], label=name)
        for x, y, place in () if line else mine:
            ax.annotate(
                place, (x, y), fontsize=7, xytext=(4, -9 if SIMULATED in name else 4), textcoords="offset points"
            )
    paper = [(p.x, p.paper) for p in found if p.x is not None and p.paper is not None]
    if paper:
        ax.plot([x for x, _ in paper], [y for _, y in paper], "kD", markersize=5, label="the paper, as printed")


__all__ = ["drawable", "png", "points"]
