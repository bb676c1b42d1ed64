"""What a machine draws: watts of its halves at work, at rest, and at other clocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

CUBE = 3.0  # dynamic power is clock times voltage squared, and voltage follows the clock


@dataclasses.dataclass(frozen=True)
class Watts:
    """`idle`: watts of the machine while no half works; `active`: half -> watts more while it works at the clocks as
    they are. At another clock these are multiplied by (clock / clock as it is) ** `exponent`.
    """

    idle: float
    active: Mapping[str, float]
    exponent: float = CUBE

    def joules(
        self, seconds: Mapping[str, float], period: float, faster: Mapping[str, float] = MappingProxyType({})
    ) -> float:
        """Joules of an item. `seconds`: what each half works on it at the clocks as they are; `period`: seconds from
        item to item; `faster`: half -> clock / clock as it is (default 1).
        """
        work = sum(self.active.get(h, 0.0) * t * faster.get(h, 1.0) ** (self.exponent - 1) for h, t in seconds.items())
        return self.idle * period + work


__all__ = ["CUBE", "Watts"]
