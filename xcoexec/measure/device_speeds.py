"""How fast the devices of a host are: they may be of several kinds, and others may use some of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax

from ..compat import plain_jit
from .timing import alternate, median_seconds

SIZE = 2048  # of a square product, which is computed several times in a row
LEAST_SECONDS = 0.01  # that these take: a device that others use too works for each in turn, for milliseconds
ROUNDS, SECONDS = 3, 0.03
ALIKE = 1.2  # times the seconds of a faster device, up to which another one counts as alike


def product_rates(devices: tuple[jax.Device, ...]) -> tuple[float, ...]:
    """FLOP a second of each device in a large product, at the precision of products that is set; the same number for
    those that are alike. Measured once a process.
    """
    return _rates(devices, str(jax.config.jax_default_matmul_precision))  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=8)
def _rates(devices: tuple[jax.Device, ...], precision: str) -> tuple[float, ...]:
    return tuple(2 * SIZE**3 / s for s in alike(_measured(devices)))


def alike(seconds: Sequence[float]) -> tuple[float, ...]:
    """These seconds, where those within `ALIKE` of the least that is not alike yet are one number."""
    steps = list[float]()
    for s in sorted(seconds):
        if not steps or s > ALIKE * steps[-1]:
            steps.append(s)
    return tuple(max(x for x in steps if x <= s) for s in seconds)


def _measured(devices: Sequence[jax.Device]) -> list[float]:
    """Seconds of a product on each, in turn: in flight, as a part's kernels are."""
    product, turns = plain_jit(lambda y, x: y @ x / SIZE), 1

    def call(x: jax.Array) -> None:
        y = x
        for _ in range(turns):
            y = product(y, x)
        y.block_until_ready()

    given = [jax.device_put(jax.numpy.ones((SIZE, SIZE)), d) for d in devices]
    while median_seconds(functools.partial(call, given[0]), LEAST_SECONDS, 1) < LEAST_SECONDS:
        turns *= 2
    found = alternate({str(k): functools.partial(call, x) for k, x in enumerate(given)}, ROUNDS, SECONDS)
    return [found[str(k)] / turns for k in range(len(devices))]


__all__ = ["alike", "product_rates"]
