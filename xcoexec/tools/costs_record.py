"""Costs as the records of benchmarks and `xcoexec profile --json` have them: the halves by name at the top."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..ir.costs import Costs
from ..ir.words import DEVICE, HOST


def costs_record(costs: Costs) -> dict[str, Any]:
    """Seconds of every layer as "host" and "device", of their parts as "host_parts" and "parts" (the device's), and all
    other fields of the costs.
    """
    rest = {f.name: getattr(costs, f.name) for f in dataclasses.fields(costs) if f.name not in ("seconds", "parts")}
    parts = {"parts": costs.parts.get(DEVICE, {}), "host_parts": costs.parts.get(HOST, {})}
    return {"host": costs.host, "device": costs.device, **rest, **parts}


__all__ = ["costs_record"]
