"""Calls that a function makes before it is measured: it compares its plan with plain `jax.jit` in its caller's loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax

LEAST, CALLS, SECONDS = 420, 1300, 4.0  # calls that a comparison of clear cases takes, and the most of short ones


def settle(call: Callable[[], Any], flight: int = 1) -> None:
    """Makes calls, of which `flight` begin before the first result is read, until the comparison is over."""
    end, count = time.perf_counter() + SECONDS, 0
    while count < LEAST or (count < CALLS and time.perf_counter() < end):
        jax.block_until_ready([call() for _ in range(flight)])
        count += flight


__all__ = ["settle"]
