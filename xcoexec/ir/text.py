"""Text and tables of every record (the plain text is the golden form in the tests)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .layers import LayerGraph
from .placement import Placement
from .words import SPLIT

if TYPE_CHECKING:
    from rich.table import Table


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows of equally many cells as aligned text; `right`: indices of the columns aligned right."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))
        ).rstrip()
        for r in rows
    )


def milliseconds(seconds: float | None) -> str:
    """Seconds as text in milliseconds; "-" where nobody knows them."""
    return "-" if seconds is None else f"{seconds * 1e3:.3f}"


def where(p: Placement) -> str:
    """A placement in words: the host half's share, how its arrays cross, and the share of it that is streamed."""
    words = [f"split {p.p_cpu:.3f} {p.dim}" if p.half == SPLIT else p.half]
    words += [f"chain {p.chain}"] if p.chain else []
    words += [f"streamed {p.streamed:.3f} in {p.pieces}"] if p.streamed else []
    words += [f"{name} {way}" for name, way in (("reads", p.reads), ("writes", p.writes)) if way]
    return ", ".join(words)


def plan_text(
    placements: Sequence[Placement],
    strategy: str,
    predicted: float | None,
    chosen: str,
    measured: Mapping[str, float],
) -> str:
    """The fields of a plan: one line a layer. `predicted` and the values of `measured` are seconds."""
    rows = [["layer", "placement", "predicted ms", "note"]]
    rows += [[p.layer, where(p), milliseconds(p.predicted), p.note] for p in placements]
    times = ", ".join(f"{k} {v * 1e3:.3f} ms" for k, v in sorted(measured.items()))
    tail = [f"strategy {strategy}, predicted {milliseconds(predicted)} ms", chosen, times]
    return columns(rows, (2,)) + "\n" + "\n".join(t for t in tail if t)


def graph_text(graph: LayerGraph) -> str:
    """A layer graph: what each layer does, reads and costs ("?": FLOP in part unknown); then chains and regions."""
    rows = [["#", "layer", "operations", "result", "reads", "MFLOP", "MB", "split dims", "host half"]]
    for x, reads in zip(graph.layers, graph.edges, strict=True):
        ops = "+".join(op.prim for op in x.ops)
        dims = " ".join(f"{d}/{g}" for d, g in x.dims.items()) or "-"
        rows.append(
            [
                str(x.index),
                x.name,
                ops,
                str(x.out),
                ",".join(map(str, reads)) or "in",
                f"{x.flops / 1e6:.3f}" + "?" * bool(x.uncounted),
                f"{x.nbytes / 1e6:.3f}",
                dims,
                x.host_error or "yes",
            ]
        )
    lines = [columns(rows, (0, 5, 6))]
    lines += [f"chain {'-'.join(map(str, c))}" for c in graph.chains if len(c) > 1]
    lines += [
        f"region {r.fork} -> {r.join}: {' | '.join('-'.join(map(str, b)) or 'direct' for b in r.branches)}"
        for r in graph.regions
    ]
    return "\n".join(lines)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Table:
    """A rich table; `right`: indices of the columns aligned right."""
    from rich.table import Table

    t = Table(title=title, title_justify="left")
    for i, h in enumerate(head):
        t.add_column(h, justify="right" if i in right else "left", no_wrap=i == 0)
    for r in rows:
        t.add_row(*r)
    return t
