"""Energy of calls, read from the machine's own counters: NVML for the GPU, RAPL for the CPU packages. Nothing is
written.
"""

from __future__ import annotations

import functools
import os
import pathlib
import time
from collections.abc import Callable

NOT_MEASURED = "not measured"
SECONDS = 1.0  # of calls: the counters move every few milliseconds to tens of milliseconds
RAPL = pathlib.Path("/sys/class/powercap")


def _nvml() -> Callable[[], float] | None:
    """Joules that the first GPU that this process sees has used, or None without NVML or its counter."""
    try:
        import pynvml

        pynvml.nvmlInit()
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        by = pynvml.nvmlDeviceGetHandleByUUID if first.startswith("GPU-") else pynvml.nvmlDeviceGetHandleByIndex
        device = by(first if first.startswith("GPU-") else int(first))
        pynvml.nvmlDeviceGetTotalEnergyConsumption(device)
    except Exception:  # the package, the library, the device or the counter is missing
        return None
    return lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1e3


def _rapl() -> Callable[[], float] | None:
    """Joules that the CPU packages have used, or None where they cannot be read."""
    files = sorted(RAPL.glob("intel-rapl:[0-9]*/energy_uj"))
    files = [f for f in files if f.parent.name.count(":") == 1]
    try:
        for f in files:
            f.read_text()
    except OSError:
        return None
    return (lambda: sum(int(f.read_text()) for f in files) / 1e6) if files else None


@functools.cache
def meters() -> dict[str, Callable[[], float] | None]:
    """Counter of joules used so far for each kind of processor, or None."""
    return {"gpu": _nvml(), "cpu": _rapl()}


def used(by: Callable[[], int]) -> dict[str, float | str]:
    """Joules of each of the things that `by` does and counts, on each counter (the whole device, idle power included),
    or "not measured".
    """
    found = meters()
    before = {k: m() for k, m in found.items() if m}
    count = by()
    return {k: max(m() - before[k], 0.0) / count if m and count else NOT_MEASURED for k, m in found.items()}


def joules(call: Callable[[], object], seconds: float = SECONDS) -> dict[str, float | str]:
    """Joules of one call on each counter, or "not measured"."""

    def calls() -> int:
        count, end = 0, time.perf_counter() + (seconds if any(meters().values()) else 0.0)
        while time.perf_counter() < end:
            call()
            count += 1
        return count

    return used(calls)
