"""Rows and events of timelines in the JSON trace event format (Perfetto, chrome://tracing)."""

from __future__ import annotations

from collections.abc import Iterable

Event = dict[str, object]  # one object of the format: "ph" says of which kind


def rows(names: Iterable[str]) -> list[Event]:
    """The rows of a trace, from 0 on."""
    return [row(i, name) for i, name in enumerate(names)]


def row(tid: int, name: str) -> Event:
    """The row of number `tid`, with its name."""
    return {"ph": "M", "pid": 0, "tid": tid, "name": "thread_name", "args": {"name": name}}


def event(name: str, row: int, start: float, end: float) -> Event:
    """Something that keeps a row busy, from `start` to `end` seconds; the format has microseconds."""
    return {"ph": "X", "pid": 0, "tid": row, "name": name, "ts": start * 1e6, "dur": (end - start) * 1e6, "args": {}}
