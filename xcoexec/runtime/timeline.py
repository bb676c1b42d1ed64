"""Timelines for Perfetto and chrome://tracing (JSON trace event format), from the stamps of host segments."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from ..ir import LayerGraph
from ..lower import Lowered


def events(graph: LayerGraph, lowered: Lowered | None) -> list[dict[str, Any]]:
    """Complete events (microseconds) of the last recorded call: host layers from their stamps, device layers in the gaps."""
    out: list[dict[str, Any]] = [
        {"ph": "M", "pid": 0, "tid": t, "name": "thread_name", "args": {"name": n}} for t, n in enumerate(("host half", "device half"))
    ]
    if lowered is None:
        return out
    calls = [u.segment.calls for u in lowered.segments]
    rings = [u.segment.stamps() for u in lowered.segments]
    if not calls or min(calls) == 0:
        return out
    begin, last = None, None
    order = [(r[(c - 1) % len(r)], u) for r, c, u in zip(rings, calls, lowered.segments, strict=True)]
    for stamps, unit in order:
        begin = int(stamps[0]) if begin is None else begin
        if last is not None and stamps[0] > last:
            out.append(_event("device layers", 1, last - begin, int(stamps[0]) - last, {}))
        for i, step in enumerate(unit.segment.steps):
            layer = graph.layers[unit.layers[step.group]]
            args = {"layer": layer.name, "flop": layer.flops, "bytes": layer.nbytes, "driver": step.driver, "items": step.items}
            out.append(_event(layer.name, 0, int(stamps[i]) - begin, int(stamps[i + 1] - stamps[i]), args))
        last = int(stamps[-1])
    return out


def _event(name: str, tid: int, start_ns: int, ns: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "pid": 0, "tid": tid, "name": name, "ts": start_ns / 1e3, "dur": ns / 1e3, "args": args}


def write(path: str | os.PathLike[str], traces: list[dict[str, Any]]) -> None:
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"traceEvents": traces, "displayTimeUnit": "ms"}))
