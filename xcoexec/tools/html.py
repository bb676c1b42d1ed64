"""One self-contained HTML page of a suite's records: tables, gains as bars, the environment."""

from __future__ import annotations

import base64
import html
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence

from . import plots
from .plots import names as _names
from .suite import Record

GAINS = "Times faster than jax.jit"
PICTURES = {
    GAINS: plots.bars,
    "Seconds by layer": plots.stacks,
    "Roofline": plots.roofline,
    "Timelines": plots.timelines,
}

STYLE = (
    "body{font:14px sans-serif;margin:2em;max-width:72em}"
    "table{border-collapse:collapse}"
    "td,th{padding:3px 9px;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}"
    "td.number{text-align:right}"
    "h1,h2,h3,p{overflow-wrap:anywhere}"
    ".best{font-weight:bold}"
    ".same{color:#777}"
    ".wide{overflow-x:auto}"
    "@media(max-width:40em){body{margin:.7em}td,th{padding:2px 5px;font-size:12px}}"
    "img{max-width:100%}"
)


def write(records: Sequence[Record], title: str, path: str | os.PathLike[str]) -> None:
    """Writes the page; the picture is inside it, and beside it as a PNG."""
    file = pathlib.Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn = {
        name: plots.png(draw(records))
        for name, draw in PICTURES.items()
        if name == GAINS or all(r["layers"] for r in records)
    }
    for name, png in drawn.items():
        file.with_name(f"{file.stem}{'' if name == GAINS else '-' + plots.slug(name)}.png").write_bytes(png)
    e = records[0]["environment"]
    facts = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(str(v))}</td></tr>" for k, v in e.items())
    sections = {
        **{name: image(png, name) for name, png in drawn.items()},
        "Exchanges between the halves": _sharing(records),
        "Simulated / measured": _simulated(records),
        "Errors": _errors(records),
        "Where layers ran": _halves(records),
        "Glossary": table(("strategy", "what it is"), list(GLOSSARY.items())),
        "Environment": f"<table>{facts}</table>",
    }
    body = f"""<p>Median milliseconds of blocks that alternate in one process (quartiles in brackets); the fastest of
each network is bold; "as X": the variant's plan is X's, and was measured once. Error: largest difference to float64
NumPy, relative to the output's scale. Machine: {html.escape(f"{e['cpu']}, {e['isa']}, device {e['device']}")}; xcoexec
{html.escape(f"{e['xcoexec']}, commit {records[0].get('commit', 'not kept')}, jax {e['jax']}")}.</p>
{_times(records)}{"".join(f"<h2>{name}</h2>{part}" for name, part in sections.items())}"""
    file.write_text(document(title, body))


def document(title: str, body: str) -> str:
    """A page of its own: a title, and a body of HTML."""
    phone = "<meta name='viewport' content='width=device-width,initial-scale=1'>"
    head = f"<meta charset='utf-8'>{phone}<title>{html.escape(title)}</title><style>{STYLE}</style>"
    return f"<!doctype html><html><head>{head}</head><body><h1>{html.escape(title)}</h1>{body}</body></html>"


def image(png: bytes, name: str) -> str:
    """A picture inside the page."""
    return f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="{html.escape(name)}">'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    return _table(head, [[_cell(text) for text in row] for row in rows])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(f"<th>{html.escape(h)}</th>" for h in head)
    return (
        f"<div class=wide><table><tr>{cells}</tr>{''.join(f'<tr>{chr(10).join(r)}</tr>' for r in rows)}</table></div>"
    )


def _cell(text: str, kind: str = "") -> str:
    """A text; numbers are at the right of their column."""
    kinds = " ".join(filter(None, (kind, "number" if text.lstrip("-")[:1].isdigit() else "")))
    return f"<td class='{kinds}'>{html.escape(text)}</td>" if kinds else f"<td>{html.escape(text)}</td>"


def _by_variant(records: Sequence[Record], variants: Iterable[str], text: Callable[[Record, str], str]) -> str:
    """A table with a row for each variant and a column for each network."""
    return _table(["variant", *_names(records)], [[_cell(v), *(_cell(text(r, v)) for r in records)] for v in variants])


def _times(records: Sequence[Record]) -> str:
    best = [min(q[1] for q in r["seconds"].values()) for r in records]
    rows = []
    for v in records[0]["seconds"]:
        rows.append([_cell(v), *(_time(r, v, b) for r, b in zip(records, best, strict=True))])
    return _table(["variant", *_names(records)], rows)


def _time(r: Record, v: str, best: float) -> str:
    """A variant's time on a network, or whose plan it shares."""
    first = r["stands_for"].get(v, v)
    if first != v:
        return _cell(f"as {first}", "same")
    low, median, high = r["seconds"][v]
    return _cell(f"{median * 1e3:.3f} ({low * 1e3:.3f}–{high * 1e3:.3f})", "best" if median == best else "")


#: a strategy's name, or the beginning of a variant's -> what it is
GLOSSARY = {
    "jit": "plain jax.jit",
    "device": "all layers on XLA, in xcoexec's program",
    "host": "all layers that kernels can run on CPU cores",
    "edgenn": "EdgeNN: layers divided between both halves, and branches at the same time",
    "codl": "CoDL: chains, channels and halves, the plan that is predicted to be the fastest",
    "codl_measured": "the best of codl and some others, by measurement",
    "mu_layer": "mu-layer: every layer is split",
    "layer_switch": "whole layers on either half",
    "items": "a batch divided by item: each half has the whole network",
    "auto": "the fastest of several plans and jax.jit, by measurement",
    "no ...": "the strategy without that part",
}


def _simulated(records: Sequence[Record]) -> str:
    def one(r: Record, v: str) -> str:
        s = r["simulated"][v]
        return f"{s / r['seconds'][v][1]:.2f}" if s else "-"

    return _by_variant(records, records[0]["simulated"], one)


def _sharing(records: Sequence[Record]) -> str:
    def one(r: Record, v: str) -> str:
        calls, seconds = r["sharing"][v]
        return f"{calls} host calls" + (f", {seconds * 1e6:.0f} us" if seconds else "")

    return _by_variant(records, records[0]["sharing"], one)


def _errors(records: Sequence[Record]) -> str:
    return _by_variant(records, records[0]["errors"], lambda r, v: f"{r['errors'][v]:.0e}")


def _halves(records: Sequence[Record]) -> str:
    def one(r: Record, v: str) -> str:
        h = r["halves"][v]
        return "jax.jit" if r["ran"][v] == "jit" else f"{h['device']} device, {h['split']} split, {h['host']} host"

    return _by_variant(records, records[0]["ran"], one)


__all__ = ["document", "image", "table", "write"]
