"""How fast the devices of a host are beside each other: they may be of several kinds, and others may use some of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
from jax import lax

from ..compat import plain_jit
from .timing import alternate, median_seconds

SIZE = 2048  # of a square product, which is computed several times in a row
LEAST_SECONDS = 0.01  # that these take: a device that others use too works for each in turn, for milliseconds
ROUNDS, SECONDS = 3, 0.03
ALIKE = 1.2  # times the seconds of a faster device, up to which another one counts as alike


@functools.lru_cache(maxsize=8)
def times_longer(devices: tuple[jax.Device, ...]) -> tuple[float, ...]:
    """Of each device how many times longer than the fastest of them it takes; the same number for those that are
    alike. Measured once a process.
    """
    return alike(_measured(devices))


def alike(seconds: Sequence[float]) -> tuple[float, ...]:
    """Times of the least of these seconds; those within `ALIKE` of the least that is not alike yet are one number."""
    steps = list[float]()
    for s in sorted(seconds):
        if not steps or s > ALIKE * steps[-1]:
            steps.append(s)
    return tuple(max(x for x in steps if x <= s) / steps[0] for s in seconds)


def _measured(devices: Sequence[jax.Device]) -> list[float]:
    """Seconds of the same products on each, in turn."""
    products = plain_jit(lambda x, turns: lax.fori_loop(0, turns, lambda _, y: y @ x / SIZE, x))
    given, turns = [jax.device_put(jax.numpy.ones((SIZE, SIZE)), d) for d in devices], 1
    call = lambda x: jax.block_until_ready(products(x, turns))
    while median_seconds(functools.partial(call, given[0]), LEAST_SECONDS, 1) < LEAST_SECONDS:
        turns *= 2
    found = alternate({str(k): functools.partial(call, x) for k, x in enumerate(given)}, ROUNDS, SECONDS)
    return [found[str(k)] for k in range(len(devices))]


__all__ = ["alike", "times_longer"]
