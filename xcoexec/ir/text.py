"""Text and tables of every record (the plain text is the golden form in the tests)."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .layers import LayerGraph
from .placement import Placement
from .words import SPLIT

if TYPE_CHECKING:
    from rich.table import Table


WIDTH = 80  # characters of a terminal's line
UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6))
NARROW = 8  # characters that a shortened column keeps at least
HEAD = 2  # characters that a shortened word of a path begins with


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = (), width: int = 0) -> str:
    """Rows of equally many cells as aligned text; `right`: indices of the columns aligned right. `width`: the most
    characters of a line (0: any number); the middle of what is too long then becomes "..".
    """
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    words = [i for i in range(len(widths)) if i not in right]
    while width and sum(widths) + 2 * len(widths) - 2 > width and max(widths[i] for i in words) > NARROW:
        widths[max(words, key=lambda i: widths[i])] -= 1
    rows = [[shortened(c, w) for c, w in zip(r, widths, strict=True)] for r in rows]
    return "\n".join(
        "  ".join(
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))
        ).rstrip()
        for r in rows
    )


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters. Of a path each module keeps its number, which tells layers apart; of other
    texts more of the end stays.
    """
    if len(text) <= most:
        return text
    path = text.split("/")
    words = list(path)
    while len("/".join(words)) > most:
        spare = {len(words[i]): i for i in reversed(range(len(path))) if _word(path[i], len(words[i]) - 1)}
        if len(path) == 1 or not spare:
            head = max(most - 2, 0) // 3
            return f"{text[:head]}..{text[len(text) - (most - 2 - head) :]}"
        longest = max(spare)
        words[spare[longest]] = _word(path[spare[longest]], longest - 1)
    return "/".join(words)


def _word(word: str, most: int) -> str:
    """A word of a path with at most so many characters: its beginning and its number; "" where these need more."""
    number = word[len(word.rstrip("0123456789")) :]
    head = most - 2 - len(number)
    return f"{word[:head]}..{number}" if head >= HEAD else ""


def number(x: float | None, digits: int = 4) -> str:
    """A number of at most so many digits, without an exponent; "-" where there is none."""
    if x is None or x != x:
        return "-"
    if abs(x) >= 10**digits or x in (float("inf"), float("-inf")):
        return f"{x:.0f}"
    rounded = f"{x:.{digits}g}"
    return rounded if "e" not in rounded else f"{x:.{digits + 3}f}".rstrip("0").rstrip(".")


def duration(seconds: float | None) -> str:
    """Seconds in the unit that suits them, of at most four digits; "-" where nobody knows them."""
    if seconds is None or seconds != seconds:
        return "-"
    unit, scale = next((u for u in UNITS if abs(seconds) * u[1] >= 1), UNITS[-1] if seconds else UNITS[0])
    return f"{number(seconds * scale)} {unit}"


def html_table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows as an HTML table, the first one as its head; `right`: indices of the columns aligned right."""
    side = lambda i: "right" if i in right else "left"
    cells = lambda r, tag: "".join(
        f'<{tag} style="text-align:{side(i)};padding:2px 4px">{html.escape(c)}</{tag}>' for i, c in enumerate(r)
    )
    body = "".join(f"<tr>{cells(r, 'td')}</tr>" for r in rows[1:])
    return f"<table><thead><tr>{cells(rows[0], 'th')}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """Lines of text as an HTML paragraph."""
    return f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>"


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
    width: int = 0,
) -> str:
    """The fields of a plan: one line a layer. `predicted` and the values of `measured` are seconds; `width` as for
    `columns`.
    """
    rows = [["layer", "placement", "predicted ms", "note"]]
    rows += [[p.layer, where(p), milliseconds(p.predicted), p.note] for p in placements]
    times = ", ".join(f"{k} {v * 1e3:.3f} ms" for k, v in sorted(measured.items()))
    tail = [f"strategy {strategy}, predicted {milliseconds(predicted)} ms", chosen, times]
    return columns(rows, (2,), width) + "\n" + "\n".join(t for t in tail if t)


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
    return "\n".join([columns(rows, (0, 5, 6)), *_structure(graph)])


def _structure(graph: LayerGraph) -> list[str]:
    """Chains of several layers, and regions, a line each."""
    lines = [f"chain {'-'.join(map(str, c))}" for c in graph.chains if len(c) > 1]
    return lines + [
        f"region {r.fork} -> {r.join}: {' | '.join('-'.join(map(str, b)) or 'direct' for b in r.branches)}"
        for r in graph.regions
    ]


def layers_text(graph: LayerGraph, width: int = WIDTH) -> str:
    """The layers of a graph in a terminal's width: operations, work, and whether kernels can run them; then why not,
    chains and regions.
    """
    rows = [["#", "layer", "operations", "MFLOP", "MB", "kernels"]]
    for x in graph.layers:
        ops = "+".join(dict.fromkeys(op.prim for op in x.ops))
        work = number(x.flops / 1e6) + "?" * bool(x.uncounted)
        rows.append([str(x.index), x.name, ops, work, number(x.nbytes / 1e6), "no" if x.host_error else "yes"])
    reasons = dict.fromkeys(f"no: {x.host_error}" for x in graph.layers if x.host_error)
    lines = [textwrap.fill(line, width, subsequent_indent="  ") for line in (*reasons, *_structure(graph))]
    return "\n".join([columns(rows, (0, 3, 4), width), *lines])


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Table:
    """A rich table; `right`: indices of the columns aligned right."""
    from rich.table import Table

    t = Table(title=title, title_justify="left")
    for i, h in enumerate(head):
        t.add_column(h, justify="right" if i in right else "left", no_wrap=i == 0)
    for r in rows:
        t.add_row(*r)
    return t
