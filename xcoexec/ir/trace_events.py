"""Rows and events of timelines in the JSON trace event format (Perfetto, chrome://tracing)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def rows(names: Iterable[str]) -> list[dict[str, Any]]:
    """The rows of a trace, from 0 on."""
    return [row(i, name) for i, name in enumerate(names)]


def row(tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 0, "tid": tid, "name": "thread_name", "args": {"name": name}}


def event(name: str, row: int, start: float, end: float) -> dict[str, Any]:
    """Something that keeps a row busy, in seconds."""
    return {"ph": "X", "pid": 0, "tid": row, "name": name, "ts": start * 1e6, "dur": (end - start) * 1e6, "args": {}}
