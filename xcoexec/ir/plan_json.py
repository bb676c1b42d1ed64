"""Plans as JSON text: what a plan may hold, declared once, for texts that come in and for plans that go out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..codegen.store.disk import Record
from ..codegen.store.schema import SECONDS, Fields, Flag, Maybe, Misfit, Number, Path, Row, Table, Text, parse, short
from ..errors import PlanError
from .words import DIMS, ENGINES, PLACES, PLAN_VERSION, WAYS

MOST = 1 << 24  # characters of a text
LAYERS = 1 << 16
#: version -> what plans say since then, as those before them mean it
SINCE: Mapping[int, Mapping[str, object]] = {
    4: {"graphs": False},
    5: {"programs": 1},
    6: {"libraries": False},
    7: {},
    8: {"singly": False},
}
#: versions whose plans are read as well -> what they do not say
BEFORE = {v - 1: {k: x for later, said in SINCE.items() if later >= v for k, x in said.items()} for v in SINCE}
MOST_PROGRAMS = 64
SHARE = Number(0, 1)

PLACEMENT = Fields(
    {
        "layer": Text(),
        "half": Text(PLACES),
        "p_cpu": SHARE,
        "dim": Text(DIMS),
        "predicted": Maybe(SECONDS),
        "note": Text(),
        "chain": Number(0, 1 << 30, whole=True),
        "reads": Text(WAYS),
        "writes": Text(WAYS),
        "streamed": SHARE,
        "pieces": Number(1, 1 << 20, whole=True),
    }
)
PLAN = Fields(
    {
        "version": Number(PLAN_VERSION, PLAN_VERSION, whole=True),
        "strategy": Text(),
        "placements": Row((), PLACEMENT, most=LAYERS),
        "graph": Text(),
        "predicted": Maybe(SECONDS),
        "measured": Table(SECONDS, 1000),
        "chosen": Text(),
        "engine": Text(ENGINES),
        "graphs": Flag(),
        "programs": Number(1, MOST_PROGRAMS, whole=True),
        "libraries": Flag(),
        "singly": Flag(),
    }
)
#: the plans that were the fastest ones, for callers who wait and for calls in flight, on disk
REMEMBERED = Record("plan", Fields({"waiting": PLAN, "in_flight": Maybe(PLAN), "whole": Flag()}))


def write(data: Mapping[str, object]) -> str:
    """The text of a plan's fields. Raises `PlanError` where `read` would refuse it."""
    check(data, "Plan.to_json")
    return json.dumps(data, indent=1, sort_keys=True, allow_nan=False)


def read(text: str | bytes) -> Mapping[str, Any]:
    """The fields of a text. Raises `PlanError` that names the first entry that is wrong."""
    try:
        data = parse(text, MOST)
    except Misfit as e:
        raise PlanError(f"Plan.from_json: got text{e.what}; valid is what Plan.to_json writes.") from None
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version in BEFORE and not isinstance(version, bool):
        data, version = {**data, "version": PLAN_VERSION, **BEFORE[version]}, PLAN_VERSION
    if isinstance(version, bool) or version != PLAN_VERSION:
        raise PlanError(f"Plan.from_json: got version {short(version)}; valid is {PLAN_VERSION}.")
    check(data, "Plan.from_json")
    fields: Mapping[str, Any] = data
    return fields


def check(data: Any, who: str) -> None:
    """Raises `PlanError` that names the first entry of a plan's fields that is wrong."""
    try:
        PLAN.check(data)
    except Misfit as e:
        raise PlanError(f"{who}: got {_place(e.path)}{e.what}{_inside(e.path)}; valid is {e.valid}.") from None
    names: set[str] = set()
    for i, p in enumerate(data["placements"]):
        if p["layer"] in names:
            got = f"layer={short(p['layer'])} in placement {i} a second time"
            raise PlanError(f"{who}: got {got}; valid is one placement for each layer.")
        names.add(p["layer"])


def _place(path: Path) -> str:
    if not path:
        return "a plan"
    if isinstance(path[-1], str):
        return path[-1]
    return f"{'placement' if path[0] == 'placements' else path[0]} {path[-1]}"


def _inside(path: Path) -> str:
    """Where an entry lies that is not the plan's own."""
    if len(path) < 2 or not isinstance(path[-1], str):
        return ""
    return f" in placement {path[1]}" if path[0] == "placements" else f" in {path[0]}"


__all__ = ["REMEMBERED", "check", "read", "write"]
