"""What the page says, from records alone: figures, lines of what is compared, and columns that are never mixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from . import quoted
from .cells import ABSENT, CALCULATED, KINDS, MEASURED, NONE, SIMULATED, Cell, base, shown, value
from .records import Record, computing, latest, machine, stale
from .rows import BEYOND, PAPERS, Row, items

OLDER = " (older than the code)"
NOT_MEASURED = "not measured"
PRINTED_ONLY = "printed; nothing here is compared with it"
HOW = {MEASURED: "rerun (measured)", CALCULATED: "recomputed", SIMULATED: "simulated"}
TITLES = {"Methods": "all five methods on the same networks", "Kernels": "what the generated kernels give alone"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A cell with the record that it is from and the row that it belongs to."""

    cell: Cell
    record: Record
    row: Row
    old: bool

    @property
    def text(self) -> str:
        """As a column shows it."""
        return shown(self.cell, self.row.about_splits) + OLDER * self.old

    @property
    def column(self) -> str:
        """Kind, and of what is measured the machine."""
        kind = self.cell["kind"]
        return f"{kind}: {machine(self.record['environment'])}" if kind == MEASURED else kind

    @property
    def absent(self) -> bool:
        """Whether it only says why there is no number."""
        return self.cell["kind"] in ABSENT


@dataclasses.dataclass(frozen=True)
class Line:
    """What is compared: the paper's value, and ours by column."""

    what: str
    paper: str
    columns: dict[str, str]
    note: str


@dataclasses.dataclass(frozen=True)
class Figure:
    """A table or figure of a paper. `because`: why nothing here reruns it, or what went wrong; `matrix`: see `Row`."""

    paper: str
    name: str
    title: str
    entries: tuple[Entry, ...]
    because: str
    matrix: bool = False

    @property
    def how(self) -> str:
        """In words how it is here."""
        kinds = [k for k in KINDS if any(e.cell["kind"] == k for e in self.entries)]
        absent = dict.fromkeys(e.cell["note"] for e in self.entries if e.absent and e.cell.get("note"))
        why = f"not here, because: {'; '.join(x.removeprefix('not here, because ') for x in absent)}" if absent else ""
        why = why or self.because
        return ", ".join(HOW[k] for k in kinds) or why

    def lines(self) -> list[Line]:
        """Its lines; the points of a curve are one."""
        groups: dict[str, list[Entry]] = {}
        for e in self.entries:
            groups.setdefault(_subject(e.cell), []).append(e)
        return [_line(what, found) for what, found in groups.items()]

    def whole(self) -> list[Line]:
        """All that the page shows of it."""
        return [*self.lines(), *self.printed_only()]

    def printed_only(self) -> list[Line]:
        """A line for each printed value of which no cell has the number."""
        known = {n for e in self.entries for n in (*_flat(e.cell["paper"]), *_flat(e.cell.get("paper_by") or {}))}
        out = []
        for q in () if self.paper == BEYOND else quoted.load(self.paper).of(self.name):
            for name, given in (q.values or {}).items():
                rest = [n for n in _flat(given) if n not in known and isinstance(n, (int, float))]
                if rest:
                    out.append(Line(f"{q.what}: {name}", ", ".join(value(n, q.unit) for n in rest), {}, PRINTED_ONLY))
        return out


def _flat(given: object) -> list[object]:
    """A value, or those of a list or a mapping."""
    if isinstance(given, Mapping):
        given = tuple(given.values())
    return [n for x in given for n in _flat(x)] if isinstance(given, (list, tuple)) else [given]


def _subject(cell: Cell) -> str:
    series = cell.get("series", "")
    if "x" in cell and series:
        return f"{series} (curve)"
    return f"{cell['what']}, {series}" if series else cell["what"]


def _line(what: str, found: Sequence[Entry]) -> Line:
    columns: dict[str, list[Entry]] = {}
    for e in found:
        if not e.absent:
            columns.setdefault(e.column, []).append(e)
    papers = dict.fromkeys(value(e.cell["paper"], e.cell["unit"]) for e in found if e.cell["paper"] is not None)
    notes = dict.fromkeys(note for e in found if (note := _note(e, columns)))
    texts = {
        c: _curve(es) if "x" in es[0].cell and es[0].cell.get("series") else "; ".join(e.text for e in es)
        for c, es in columns.items()
    }
    return Line(what, "; ".join(papers) or NONE, texts, "; ".join(notes))


def _note(e: Entry, columns: Collection[str]) -> str:
    """A cell's note with what is printed of single networks, and its machine where several have measured the same."""
    each = ", ".join(f"{m} {value(n, e.cell['unit'])}" for m, n in (e.cell.get("paper_by") or {}).items())
    text = "; ".join(filter(None, (e.cell.get("note", ""), f"printed: {each}" if each else "")))
    several = e.cell["kind"] == MEASURED and sum(c.startswith(MEASURED) for c in columns) > 1
    return f"{machine(e.record['environment'])}: {text}" if several and text else text


def _curve(entries: Sequence[Entry]) -> str:
    """The first and the last point of a curve."""
    ordered = sorted(entries, key=lambda e: e.cell["x"])
    ends = dict.fromkeys(f"{e.text} at {value(e.cell['x'])}" for e in (ordered[0], ordered[-1]))
    return ", ".join(ends)


def figures(records: Sequence[Record], rows: Sequence[Row]) -> list[Figure]:
    """All tables and figures that rows speak of, in the papers' order, with the latest records of each."""
    by_key = {r.key: r for r in rows}
    entries: dict[tuple[str, str], list[Entry]] = {}
    first = [id(r) for r in computing(records, by_key)]
    for record in latest(records, by_key):
        row = by_key[record["key"]]
        for cell in record["cells"]:
            if cell["kind"] != MEASURED and id(record) not in first:
                continue
            entry = Entry(cell, record, row, stale(record, row))
            entries.setdefault((row.paper, base(cell["figure"])), []).append(entry)
    failed = {f"{r['key']}": r["failed"] for r in latest(records, by_key) if "failed" in r}
    out = []
    for paper in PAPERS:
        for name in _names(paper, rows):
            mine = [r for r in rows if r.paper == paper and name in r.figures]
            if mine:
                because = "; ".join(_why(r, failed) for r in mine)
                found = tuple(entries.get((paper, name), ()))
                out.append(Figure(paper, name, title(paper, name), found, because, any(r.matrix for r in mine)))
    return out


def _why(row: Row, failed: dict[str, str]) -> str:
    if row.key in failed:
        return f"failed: {failed[row.key]}"
    return f"not here, because: {row.because}" if row.because else "not run yet"


def _names(paper: str, rows: Sequence[Row]) -> list[str]:
    """Tables and figures in the paper's order, then what else rows speak of."""
    printed = () if paper == BEYOND else items(quoted.load(paper))
    order = sorted(printed, key=lambda i: (i.startswith("Figure"), _number(i)))
    return list(dict.fromkeys([*order, *(f for r in rows if r.paper == paper for f in r.figures)]))


def _number(item: str) -> int:
    word = item.split()[1]
    return int(word) if word.isdigit() else len(word)


def title(paper: str, name: str) -> str:
    """What a table or figure shows, in the words of the quoted data."""
    found = () if paper == BEYOND else quoted.load(paper).of(name)
    return found[0].what if found else TITLES.get(name, name)


def named(paper: str) -> str:
    """A paper's name, as a heading."""
    if paper == BEYOND:
        return "Beyond the papers"
    p = quoted.load(paper)
    return f"{p.name}: {p.title} ({p.venue}, {p.year}, doi:{p.doi})"


def columns(found: Sequence[Figure]) -> list[str]:
    """All columns of some figures: measured on each machine, calculated, simulated."""
    measured = dict.fromkeys(e.column for f in found for e in f.entries if e.cell["kind"] == MEASURED)
    return [*(measured or {MEASURED: None}), CALCULATED, SIMULATED]


def matrix(figure: Figure) -> tuple[list[str], list[list[str]]]:
    """(head, rows) of a figure whose cells are a table: a row for each machine and network, a column for each
    method.
    """
    series = list(dict.fromkeys(e.cell.get("series", "") for e in figure.entries))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for e in figure.entries:
        at = (machine(e.record["environment"]) + OLDER * e.old, e.cell["what"])
        rows.setdefault(at, {})[e.cell.get("series", "")] = shown(e.cell, e.row.about_splits)
    order = [*(s for s in series if s != "fastest"), *(s for s in series if s == "fastest")]
    without = {"fastest": ""}
    body = [[*at, *(found.get(s, without.get(s, NOT_MEASURED)) for s in order)] for at, found in rows.items()]
    return ["machine", "network", *order], body


def runs(records: Sequence[Record], rows: Sequence[Row]) -> list[list[str]]:
    """A line for each record that the page shows: what made it, when the code was what, where, and how long it took."""
    by_key = {r.key: r for r in rows}
    out = []
    for r in latest(records, by_key):
        e = r["environment"]
        versions = ", ".join(f"{k} {e[k]}" for k in ("xcoexec", "jax", "llvmlite", "python") if k in e)
        took = f"{r['seconds']:.1f}" if r["seconds"] else NONE
        count = max((c.get("runs", 1) for c in r["cells"]), default=0)
        left = [f"{r['left']} steps left"] if "left" in r else []
        old = ", ".join([*left, *([OLDER.strip()] if stale(r, by_key[r["key"]]) else [])])
        out.append(
            [", ".join(r["figures"]), r["paper"], r["size"], r["commit"], machine(e), versions, took, str(count), old]
        )
    return out


RUNS_HEAD = ("figures", "paper", "size", "commit", "machine", "versions", "s", "runs", "")

__all__ = ["OLDER", "Entry", "Figure", "Line", "columns", "figures", "matrix", "named", "runs", "title"]
