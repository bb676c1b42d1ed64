"""How much of an optimizer's state stays on the device: chosen by what steps have measured.

    device      ... backward ... |g3|g2|g1|  join .......... next step
    host                            g3   g2    g1   done
                                           <------->  `exposed`: the device waits so long (negative: the host did)

A parameter whose update the device computes shortens `exposed` by the seconds of the host's pass over it, and costs the
device a pass of its own over the same bytes. So the device gets as many as make `exposed` zero, those whose gradients
come last first, as far as there is room; and gives back what the host would have done by then anyway.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ..compat import plain_jit

LEAST_STEPS, MOST_STEPS = 3, 9  # of a program that are measured; the first one is not counted
SPARE = 0.9  # of the time that the host has left, which is filled
PROBE_ELEMENTS = 1 << 23


@dataclasses.dataclass
class Timing:
    """Steps of one program. `exposed`: seconds of each step that the device waited for the host (negative: the host for
    the device); `seconds`: of the host's passes by parameter, in the order in which gradients came, step by step.
    """

    exposed: list[float] = dataclasses.field(default_factory=list)
    seconds: dict[int, list[float]] = dataclasses.field(default_factory=dict)

    def note(self, exposed: float, seconds: Mapping[int, float]) -> None:
        """A step is over."""
        self.exposed.append(exposed)
        for i, took in seconds.items():
            self.seconds.setdefault(i, []).append(took)

    @property
    def open(self) -> bool:
        """Whether steps are still measured."""
        return len(self.exposed) < MOST_STEPS

    @property
    def enough(self) -> bool:
        """Whether there is something to choose by."""
        return len(self.exposed) >= LEAST_STEPS


def staying(
    timing: Timing, sizes: Mapping[int, int], resident: Collection[int], room: float, device: float
) -> frozenset[int]:
    """The parameters whose states are to lie on the device. `sizes`: bytes of each one's states and masters;
    `resident`: those that lie there now; `room`: bytes that may; `device`: seconds of the device's pass for a byte.
    """
    exposed = float(np.median(timing.exposed[1:]))
    took = {i: float(np.median(s[1:])) for i, s in timing.seconds.items()}
    rate = sum(took.values()) / max(sum(sizes[i] for i in took), 1)  # of the host, for a byte
    left = room - sum(sizes[i] for i in resident)
    found = set(resident)
    if exposed > 0 and device < rate:
        for i in reversed(timing.seconds):
            if exposed > 0 and sizes[i] <= left:
                found.add(i)
                exposed, left = exposed - took[i], left - sizes[i]
    for i in sorted(resident, key=sizes.__getitem__, reverse=True):
        if rate * sizes[i] <= -SPARE * exposed:
            found.remove(i)
            exposed += rate * sizes[i]
    return frozenset(found)


def device_rate() -> float:
    """Seconds for a byte that the device reads and writes in place, of JAX's default backend."""
    turn = plain_jit(lambda x: x + 1, donate_argnums=0)
    x, best = turn(jnp.zeros(PROBE_ELEMENTS, jnp.float32)), float("inf")
    for _ in range(5):
        jax.block_until_ready(x)
        began = time.perf_counter()
        x = jax.block_until_ready(turn(x))
        best = min(best, time.perf_counter() - began)
    return best / x.nbytes


__all__ = ["Timing", "device_rate", "staying"]
