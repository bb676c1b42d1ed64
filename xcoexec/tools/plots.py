"""Pictures of a suite's records (matplotlib, imported when one is drawn)."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..planning.simulate import ROWS
from ..session.drawing import COLOURS
from .suite import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 12  # layers with a colour of their own in a stack
COLUMNS = 2  # of small pictures


def names(records: Sequence[Record]) -> list[str]:
    """Networks, with their batch size where it is not 1."""
    return [f"{r['model']}" + (f", batch {r['batch']}" if r["batch"] > 1 else "") for r in records]


def slug(title: str) -> str:
    """A title as a part of a file's name."""
    return title.lower().replace(" ", "-")


def png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG; the figure is closed."""
    import matplotlib.pyplot as plt

    figure.tight_layout()
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120)
    plt.close(figure)
    return out.getvalue()


def axes(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """(figure, so many axes of `width` x `height` inches, without frames above and at the right)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False)
    places = list(grid.ravel())
    for ax in places[count:]:
        ax.axis("off")
    for ax in places:
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    return figure, places[:count]


def bars(records: Sequence[Record]) -> Figure:
    """Gains over jax.jit, a group of bars for each network. What shares the plan of another one has no bar there."""
    own = lambda r, v: r["stands_for"].get(v, v) == v
    variants = [v for v in records[0]["seconds"] if v != "jit" and any(own(r, v) for r in records)]
    import matplotlib

    colours = [c for name in ("tab20", "tab20b") for c in matplotlib.colormaps[name](range(20))]
    width = 0.85 / len(variants)
    figure, (ax,) = axes(1, max(7.0, 1.8 * len(records)), 4.5)
    for i, v in enumerate(variants):
        gains = [r["seconds"]["jit"][1] / r["seconds"][v][1] if own(r, v) else np.nan for r in records]
        ax.bar([k + i * width for k in range(len(records))], gains, width, label=v, color=colours[i % len(colours)])
    ax.axhline(1.0, color="#888888", linewidth=1)
    ax.set_xticks([k + 0.4 for k in range(len(records))], names(records))
    ax.set_ylabel("times faster than jax.jit")
    ax.legend(frameon=False, fontsize=7, ncols=2)
    return figure


def stacks(records: Sequence[Record]) -> Figure:
    """Seconds of each layer on either half, the longest ones by name."""
    return _each(records, 6.5, 3.6, _stack)


def _stack(ax: Axes, record: Record) -> None:
    layers = record["layers"]
    longest = sorted(range(len(layers)), key=lambda i: -max(layers[i][4] or 0.0, layers[i][5]))[:SHOWN]
    rest = [i for i in range(len(layers)) if i not in longest]
    groups = [([i], "/".join(layers[i][0].split("/")[-2:])) for i in sorted(longest)]
    if rest:
        groups.append((rest, f"{len(rest)} others"))
    left = [0.0, 0.0]
    for k, (members, name) in enumerate(groups):
        widths = [sum((layers[i][c] or 0.0) for i in members) * 1e3 for c in (4, 5)]
        ax.barh(
            (0, 1), widths, left=left, color=COLOURS[k % len(COLOURS)], edgecolor="white", linewidth=0.5, label=name
        )
        left = [a + b for a, b in zip(left, widths, strict=True)]
    ax.set_yticks((0, 1), ("host half", "device half"))
    ax.set_xlabel("ms")
    ax.legend(frameon=False, fontsize=5, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.18))


def roofline(records: Sequence[Record]) -> Figure:
    """FLOP/s over FLOP/byte of every layer on both halves."""
    return _each(records, 5.0, 3.6, _points)


def _points(ax: Axes, record: Record) -> None:
    for column, name, colour in ((4, "host half", COLOURS[0]), (5, "device half", COLOURS[1])):
        known = [x for x in record["layers"] if x[2] and x[3] and x[column]]
        total = sum(x[column] for x in known) or 1.0
        sizes = [8 + 300 * x[column] / total for x in known]
        ax.scatter(
            [x[2] / x[3] for x in known],
            [x[2] / x[column] / 1e9 for x in known],
            s=sizes,
            alpha=0.6,
            color=colour,
            label=name,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("FLOP / byte")
    ax.set_ylabel("GFLOP/s (area: time)")
    ax.legend(frameon=False, fontsize=7)


def timelines(records: Sequence[Record]) -> Figure:
    """In which seconds each row of the simulated plan is busy."""
    return _each(records, 6.5, 2.2, _timeline)


def _timeline(ax: Axes, record: Record) -> None:
    variant, events = next(iter(record["timelines"].items()), ("no plan", []))
    for row, _, start, end in events:
        ax.barh(
            row,
            (end - start) * 1e3,
            left=start * 1e3,
            color=COLOURS[row % len(COLOURS)],
            edgecolor="white",
            linewidth=0.2,
        )
    ax.set_yticks(range(len(ROWS)), ROWS, fontsize=6)
    ax.invert_yaxis()
    ax.set_xlabel(f"ms, {variant} (simulated from measured layers)", fontsize=7)


def _each(records: Sequence[Record], width: float, height: float, draw: Callable[[Axes, Record], None]) -> Figure:
    """A small picture for each network."""
    figure, places = axes(len(records), width, height)
    for ax, record, name in zip(places, records, names(records), strict=True):
        draw(ax, record)
        ax.set_title(name, fontsize=9)
    return figure


__all__ = ["axes", "bars", "names", "png", "roofline", "slug", "stacks", "timelines"]
