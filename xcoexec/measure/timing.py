"""How long a call takes: medians, and calls that wake a machine up first."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..compat import plain_jit

RECENT = 16  # calls: older stamps may be written over while they are read
SECONDS_A_LAYER = 0.01
WARM_SECONDS = 0.02  # of calls before parts are measured on the host half, and of the measurement


def median_seconds(fn: Callable[[], Any], budget: float = SECONDS_A_LAYER, least: int = 3) -> float:
    """Median seconds of a call, after one warm-up call."""
    fn()
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < least or (time.perf_counter() < end and len(times) < 1000):
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def warm_up(call: Callable[[], Any]) -> None:
    """Calls until cores that slept are awake: a team that has waited for a compilation is several times slower at
    first.
    """
    end = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < end:
        call()


def empty_call() -> float:
    """Seconds of a call of a program that does nothing worth mentioning."""
    f = plain_jit(lambda x: x + 1)
    x = jax.numpy.zeros(8)
    return median_seconds(lambda: f(x).block_until_ready(), 0.02)
