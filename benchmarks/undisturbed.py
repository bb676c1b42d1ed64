"""Measurements on a machine that others use too: what other processes had of its cores meanwhile, and another try."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
QUIET, TRIES = 0.05, 6  # the share of the cores that others may have; runs until one is so
LOOK, PATIENCE = 1.0, 60.0  # seconds of a look at the machine, and of waiting in front of a run


def others() -> float:
    """Seconds on all cores that processes other than this one have had since the machine began; 0.0 where the system
    does not say.
    """
    try:
        words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, soft, stolen = (int(w) for w in words[:8])
    mine = os.times()
    return (user + nice + system + irq + soft + stolen) / os.sysconf("SC_CLK_TCK") - mine.user - mine.system


def beside(work: Callable[[], T], cores: int) -> tuple[T, float]:
    """What some work returns, and the share of so many cores that other processes have had during it."""
    began, before = time.perf_counter(), others()
    found = work()
    return found, max(others() - before, 0.0) / (cores * (time.perf_counter() - began))


def undisturbed(work: Callable[[], T], cores: int, tries: int = TRIES, patience: float = PATIENCE) -> tuple[T, float]:
    """The same of the first run beside which others had at most `QUIET` of the cores; the last one of `tries` whatever
    they had. Before each run it waits for such a moment, `patience` seconds at most.
    """
    for left in reversed(range(tries)):
        end = time.monotonic() + patience
        while time.monotonic() < end and beside(lambda: time.sleep(LOOK), cores)[1] > QUIET:
            pass
        found, share = beside(work, cores)
        if share <= QUIET or not left:
            return found, share
    raise ValueError(f"undisturbed: got tries={tries}; valid is a number from 1 on.")
