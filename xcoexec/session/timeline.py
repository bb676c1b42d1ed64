"""Timelines for Perfetto and chrome://tracing (JSON trace event format), from the stamps of host segments."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from ..ir.layers import LayerGraph
from ..ir.trace_events import Event, rows
from ..ir.trace_events import row as _row
from ..lowering.lower import Lowered
from ..lowering.work_units import HostUnit


def events(graph: LayerGraph, lowered: Lowered | None, trace: np.ndarray | None = None) -> list[Event]:
    """Complete events (microseconds) of the last recorded call: host layers from their stamps, device layers in the
    gaps.

    `trace`: what each thread of the team did, [entries, 5] as `Team.traced` gives it, for a row of its own for each.
    """
    out = rows(("host half", "device half"))
    if lowered is None:
        return out
    if lowered.device.apart:
        return _both_clocks(graph, lowered, trace)
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
        out += _steps(graph, unit, stamps, begin)
        last = int(stamps[-1])
    return out + _threads(graph, lowered, trace, begin or 0, last or 0, 0)


def _steps(graph: LayerGraph, unit: HostUnit, stamps: np.ndarray, begin: int) -> list[Event]:
    """The steps of one call of a host unit. `stamps`: nanoseconds [steps + 1], which are counted from `begin`."""
    out = []
    for i, step in enumerate(unit.segment.steps):
        layer = graph.layers[unit.layers[step.group]]
        args = {
            "layer": layer.name,
            "flop": layer.flops,
            "bytes": layer.nbytes,
            "driver": step.driver,
            "items": step.items,
        }
        out.append(_event(layer.name, 0, int(stamps[i]) - begin, int(stamps[i + 1] - stamps[i]), args))
    return out


def _threads(
    graph: LayerGraph, lowered: Lowered, trace: np.ndarray | None, begin: int, end: int, shift: int
) -> list[Event]:
    """A row for each thread: its part of every step between `begin` and `end` of the host's clock less `shift`, all in
    nanoseconds.
    """
    units = {u.segment.address: u for u in lowered.segments}
    out, seen = [], set()
    for segment, step, who, began, ended in trace if trace is not None else ():
        unit = units.get(int(segment))
        if unit is None or began - shift < begin or ended - shift > end + SLACK_NS:
            continue
        seen.add(int(who))
        name = graph.layers[unit.layers[unit.segment.steps[int(step)].group]].name
        out.append(
            _event(name, THREADS + int(who), int(began) - shift - begin, int(ended - began), {"thread": int(who)})
        )
    return [*(_row(THREADS + t, f"thread {t}" + (" (calls)" if t == 0 else "")) for t in sorted(seen)), *out]


THREADS = 10  # number of the first thread's row
SLACK_NS = 100_000  # between the two clocks
ROWS = ("host half: team", "device half: stream", "device half: waits", "device half: streamed weights")
WEIGHTS = 3  # the row of streamed weights
#: of a host call's stamps on the device's clock: (name, row, from, to)
PHASES = (
    ("operands to the host", 1, 0, 1),
    ("device half", 1, 1, 3),
    ("waits for the host", 2, 3, 4),
    ("merge", 1, 4, 5),
)


def _both_clocks(graph: LayerGraph, lowered: Lowered, trace: np.ndarray | None) -> list[Event]:
    """The last call on one clock: the team's steps, the stream's phases of every host call, what the device does
    between them.
    """
    out, calls, seen = rows(ROWS), [], []
    for unit, site in lowered.sites.items():
        device, host = site.phases(), unit.segment.stamps()
        if not len(device) or not len(host):
            return out
        own = host[(unit.segment.calls - 1) % len(host)]
        seen.append((site.stamps()[-1], own))
        calls.append((unit, device[-1], own))
    shift = clock_shift(seen)
    calls.sort(key=lambda r: int(r[1][0]))
    copies = [(part, v, *fetch.stamps()) for (part, v), fetch in lowered.fetches.items() if fetch.stamps()[1]]
    if not calls and not copies:
        return out
    begin = min([int(device[0]) for _, device, _ in calls] + [began for *_, began, _ in copies])
    last, idle = None, begin
    for part, v, began, ended in copies:
        names = ", ".join(graph.layers[i].name for i in part.layers)
        out.append(_event(str(v), WEIGHTS, began - begin, ended - began, {"layers": names, "bytes": v.nbytes}))
    for unit, device, host in calls:
        names = ", ".join(dict.fromkeys(graph.layers[i].name for i in unit.layers))
        if last is not None and device[0] > last:
            out.append(_event("device layers", 1, last - begin, int(device[0]) - last, {}))
        for name, row, a, b in PHASES:
            out.append(_event(name, row, int(device[a]) - begin, int(device[b] - device[a]), {"layers": names}))
        out += _steps(graph, unit, host, shift + begin)
        if int(host[0]) - shift > idle:
            out.append(_event("idle", 0, idle - begin, int(host[0]) - shift - idle, {}))
        last, idle = int(device[5]), int(host[-1]) - shift
    return out + _threads(graph, lowered, trace, begin, last or begin, shift)


def clock_shift(calls: Sequence[tuple[np.ndarray, np.ndarray]]) -> int:
    """Nanoseconds that the host's clock is ahead of the device's; 0 without calls.

    `calls`: for each host call the device's stamps, [6] as in `PHASES`, and the host's own, [steps + 1].
    No host call starts before its operands are there, none is left before the host has ended: both bound the
    difference, and the middle between the tightest bounds is taken.
    """
    if not calls:
        return 0
    most = min(int(host[0] - device[1]) for device, host in calls)
    least = max(int(host[-1] - device[4]) for device, host in calls)
    return (most + least) // 2


def _event(name: str, tid: int, start_ns: int, ns: int, args: Mapping[str, object]) -> Event:
    return {"ph": "X", "pid": 0, "tid": tid, "name": name, "ts": start_ns / 1e3, "dur": ns / 1e3, "args": args}


def write(path: str | os.PathLike[str], traces: list[Event]) -> None:
    """Writes events as a file for Perfetto; its folder is made. Raises `OSError` where it cannot be written."""
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"traceEvents": traces, "displayTimeUnit": "ms"}))
