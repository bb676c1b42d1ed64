"""Cells of the papers' page: one number of ours beside one of a paper, and what may stand in which column."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

#: measured: on this machine's clock; calculated: by a formula from numbers of the paper or of a record; simulated: by
#: our planners and schedulers on a device that exists as numbers
MEASURED, CALCULATED, SIMULATED = KINDS = ("measured", "calculated", "simulated")
ABSENT = ("absent", "not here")  # kinds of a cell that only says, in its note, why there is no number
NO_SPLIT = "no split on this machine"
NONE = "-"

Ours = float | int | str | bool | None


class PapersError(ValueError):
    """A row, a cell or a record of the papers' page is not what it should be; the text says what is valid."""


class Cell(TypedDict):
    """One number of ours. `figure`: "Figure 8", "Table I" or "Section V-F" of the paper; `what`: what it is; `paper`:
    what the paper prints there (None: no number); `ours` in `unit`; `kind`: one of `KINDS`, or of `ABSENT`.

    `spread`: least and most of the runs, or words; `runs`: how many; `splits`: layers that were divided between both
    halves (rows about splits); `series` and `x`: the line that the number belongs to, and where it stands on it
    (without `series` a point beside the lines); `by` and `paper_by`: the numbers of single networks, whose mean stands
    in `ours` and in `paper`.
    """

    figure: str
    what: str
    paper: Ours
    ours: Ours
    kind: str
    unit: str
    spread: NotRequired[Any]
    note: NotRequired[str]
    runs: NotRequired[int]
    splits: NotRequired[int]
    series: NotRequired[str]
    x: NotRequired[float]
    by: NotRequired[dict[str, float]]
    paper_by: NotRequired[dict[str, float]]


NEEDED = ("figure", "what", "paper", "ours", "kind", "unit")


def base(figure: str) -> str:
    """A figure without its part: "Figure 7" of "Figure 7(a)" and of "Figure 7, Xavier"."""
    name = re.split(r"[(,]", figure)[0].strip()
    return name[:1].upper() + name[1:]


def checked(found: object, figures: Sequence[str], where: str) -> list[Cell]:
    """What a row's function returned, as cells. Raises `PapersError` that names the first wrong one."""
    if not isinstance(found, Sequence) or not all(isinstance(c, Mapping) for c in found):
        raise PapersError(f"papers: got {type(found).__name__} from {where}; valid is a list of dicts.")
    for c in found:
        if missing := [k for k in NEEDED if k not in c]:
            raise PapersError(f"papers: got a cell of {where} without {missing[0]!r}; valid has {', '.join(NEEDED)}.")
        if c["kind"] not in (*KINDS, *ABSENT):
            raise PapersError(f"papers: got kind={c['kind']!r} in {where}; valid are {', '.join(KINDS)}.")
        if base(c["figure"]) not in figures:
            raise PapersError(f"papers: got figure={c['figure']!r} in {where}; valid are {', '.join(figures)}.")
    return [plain({k: v for k, v in c.items() if k in Cell.__annotations__}) for c in found]


def plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's scalars become Python's, numbers that are none become None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def splits_missing(cell: Cell, about_splits: bool) -> bool:
    """Whether a measured cell of a row about splits speaks of a run in which nothing was split."""
    return about_splits and cell["kind"] == MEASURED and not cell.get("splits")


def number(cell: Cell, about_splits: bool = False) -> float | None:
    """What a picture may draw of a cell; None where it says no number, or none that is about what the row is about."""
    ours = None if splits_missing(cell, about_splits) else cell["ours"]
    return float(ours) if isinstance(ours, (int, float)) and not isinstance(ours, bool) else None


def shown(cell: Cell, about_splits: bool = False) -> str:
    """A cell's own number as the page shows it, with its spread behind it."""
    if splits_missing(cell, about_splits):
        return NO_SPLIT
    text = value(cell["ours"], cell["unit"])
    if cell.get("spread") not in (None, "", []):
        text += f" ({spread(cell['spread'])})"
    return text


def spread(given: Any) -> str:
    """Least and most, or words."""
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) >= 2:
        return f"{value(given[0])} to {value(given[-1])}"
    return value(given)


def value(given: Any, unit: str = "") -> str:
    """A number in four digits, with its unit behind it; a word as it is."""
    if given is None:
        return NONE
    if isinstance(given, (list, tuple)):
        return ", ".join(value(v) for v in given) + _behind(unit)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return str(given)
    text = f"{given:,}" if isinstance(given, int) else f"{given:.0f}" if abs(given) >= 1000 else f"{given:.4g}"
    return text + _behind(unit)


def _behind(unit: str) -> str:
    return "x" if unit == "times" else f" {unit}" if unit else ""


__all__ = ["CALCULATED", "KINDS", "MEASURED", "NONE", "NO_SPLIT", "SIMULATED", "Cell", "PapersError", "base", "checked"]
