"""Pictures (matplotlib, imported when one is drawn)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..codegen.runtime.peaks import Peaks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#1f6fb4", "#e0a458", "#5a9e6f", "#b5546c", "#7d6bb5", "#888888")


@dataclasses.dataclass(frozen=True)
class Point:
    """A measured layer: its FLOP, the bytes that it moves, its seconds, and by which algorithm."""

    algorithm: str
    flops: int
    nbytes: int
    seconds: float


def roofline(measured: Sequence[Point], peaks: Peaks, path: str | os.PathLike[str]) -> None:
    """FLOP/s over FLOP/byte: the roof of the machine and a point for every layer, coloured by algorithm. Raises
    `ImportError` without matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(8, 5))
    _roof(ax, measured, peaks)
    _points(ax, measured)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("FLOP / byte")
    ax.set_ylabel("GFLOP/s")
    peak = f"{peaks.flops / 1e9:.0f} GFLOP/s and {peaks.bandwidth / 1e9:.1f} GB/s measured"
    ax.set_title(f"{peak}, {peaks.threads} threads; area: time", fontsize=10)
    if measured:
        ax.legend(frameon=False, fontsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    fig.tight_layout()
    fig.savefig(path, dpi=150)
    plt.close(fig)


def _roof(ax: Axes, measured: Sequence[Point], peaks: Peaks) -> None:
    """What the machine can do: bound by memory up to the ridge, by arithmetic behind it."""
    intensities = [x.flops / x.nbytes for x in measured] or [1.0]
    left, right = min(0.1, *intensities) / 2, max(1000.0, *intensities) * 2
    ridge = peaks.flops / peaks.bandwidth
    ax.plot(
        [left, ridge, right],
        [left * peaks.bandwidth / 1e9, peaks.flops / 1e9, peaks.flops / 1e9],
        color="#333333",
        linewidth=1.2,
    )


def _points(ax: Axes, measured: Sequence[Point]) -> None:
    """A colour for each algorithm; a point's area is its share of all seconds."""
    for i, name in enumerate(dict.fromkeys(x.algorithm for x in measured)):
        chosen = [x for x in measured if x.algorithm == name]
        sizes = [12 + 400 * x.seconds / sum(y.seconds for y in measured) for x in chosen]
        ax.scatter(
            [x.flops / x.nbytes for x in chosen],
            [x.flops / x.seconds / 1e9 for x in chosen],
            s=sizes,
            alpha=0.7,
            label=name,
            color=COLOURS[i % len(COLOURS)],
        )
