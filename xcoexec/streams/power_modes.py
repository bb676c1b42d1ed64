"""NeuroPipe's power modes as functions of times, powers and a target (section III-D and Figure 4): no clock is touched.

All seconds are those of an item at the clocks as they are. A half takes seconds * clock as it is / clock at another
one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from ..ir.watts import Watts

MODES = ("basic", "save", "boost", "auto")
SAME = 1e-9  # of a budget: what sums of seconds and joules differ by


@dataclasses.dataclass(frozen=True)
class Dial:
    """Clocks of one half. `levels`: those that can be asked for (Hz, ascending); `now`: the clock as it is (Hz)."""

    name: str
    half: str
    levels: Sequence[float]
    now: float


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a mode makes of a stream: `clocks` (dial -> Hz), `period` seconds from item to item, `joules` an item (None
    where no powers are known).
    """

    mode: str
    clocks: Mapping[str, float]
    period: float
    joules: float | None

    @property
    def watts(self) -> float | None:
        """The mean power, in watts."""
        return None if self.joules is None else self.joules / self.period

    @property
    def edp(self) -> float | None:
        """The energy-delay product of an item, in joule seconds."""
        return None if self.joules is None else self.joules * self.period


def level(levels: Sequence[float], seconds: float, target: float, now: float | None = None) -> float:
    """The lowest of `levels` (Hz, ascending) at which what takes `seconds` at the clock `now` (default: the highest
    level) takes at most `target` seconds: seconds * now / clock.
    """
    now = levels[-1] if now is None else now
    return next((f for f in levels if seconds * now / f <= target), levels[-1])


def serial(seconds: Mapping[str, float], watts: Watts | None = None) -> Setting:
    """One half after the other: the paper's baseline (Figure 1a), whose own time is the usual target."""
    period = sum(seconds.values())
    return Setting("serial", {}, period, None if watts is None else watts.joules(seconds, period))


def _set(mode: str, dials: Sequence[Dial], seconds: Mapping[str, float], target: float, watts: Watts | None) -> Setting:
    """Every dial as low as `target` seconds from item to item allow."""
    clocks = {d.name: level(d.levels, seconds.get(d.half, 0.0), target, d.now) for d in dials}
    return _at(mode, dials, seconds, clocks, watts)


def _at(
    mode: str, dials: Sequence[Dial], seconds: Mapping[str, float], clocks: Mapping[str, float], watts: Watts | None
) -> Setting:
    faster: dict[str, float] = {}
    for d in dials:
        ratio = clocks.get(d.name, d.now) / d.now
        faster[d.half] = min(faster.get(d.half, math.inf), ratio)
    period = max((t / faster.get(h, 1.0) for h, t in seconds.items()), default=0.0)
    return Setting(mode, clocks, period, None if watts is None else watts.joules(seconds, period, faster))


def basic(seconds: Mapping[str, float], watts: Watts | None = None) -> Setting:
    """Pipelining alone, with the clocks as they are (section IV-B)."""
    return _at("basic", (), seconds, {}, watts)


def save(dials: Sequence[Dial], seconds: Mapping[str, float], target: float, watts: Watts | None = None) -> Setting:
    """Section IV-C: clocks as low as still give `target` seconds from item to item; where the clocks as they are do
    not, as low as give what those do.
    """
    return _set("save", dials, seconds, max(target, basic(seconds).period), watts)


def boost(
    dials: Sequence[Dial], seconds: Mapping[str, float], watts: Watts | None = None, joules: float = math.inf
) -> Setting:
    """Section IV-D, the par-energy point: of all settings of the clocks the fastest one that costs at most `joules` an
    item, exactly over the dials' levels; among equally fast ones the one with the lowest clocks.

    Without `watts` nothing bounds the clocks: the slowest half gets its highest one, the others what keeps up with it.
    Where nothing is as cheap as `joules`, the clocks stay as they are.
    """
    found = (_set("boost", dials, seconds, p, watts) for p in _periods(dials, seconds))
    cheap = [s for s in found if s.joules is None or s.joules <= joules * (1 + SAME)]
    stay = _at("boost", dials, seconds, {d.name: d.now for d in dials}, watts)
    return min(cheap, key=lambda s: s.period, default=stay)


def _periods(dials: Sequence[Dial], seconds: Mapping[str, float]) -> Iterator[float]:
    """Every number of seconds from item to item that some clock gives, longest first."""
    work = [(d, seconds.get(d.half, 0.0)) for d in dials]
    yield from sorted({t * d.now / f for d, t in work for f in d.levels if t > 0} or {0.0}, reverse=True)


def decide(
    dials: Sequence[Dial],
    seconds: Mapping[str, float],
    target: float | None = None,
    watts: Watts | None = None,
    baseline: Mapping[str, float] | None = None,
) -> Setting:
    """Figure 4: where the stream meets `target` seconds from item to item at the clocks as they are, the power-saving
    mode, else the performance-boosting one.

    `target`: default the baseline's own time (section III-D). `baseline`: seconds of each half of an item that is done
    one after the other (default: `seconds`), which says what the boosting mode may cost.
    """
    alone = serial(baseline or seconds, watts)
    target = alone.period if target is None else target
    if basic(seconds).period <= target:
        return save(dials, seconds, target, watts)
    return boost(dials, seconds, watts, math.inf if alone.joules is None else alone.joules)


def chosen(
    mode: str,
    dials: Sequence[Dial],
    seconds: Mapping[str, float],
    target: float | None = None,
    watts: Watts | None = None,
    baseline: Mapping[str, float] | None = None,
) -> Setting:
    """What a mode of `MODES` sets: "basic" nothing, "auto" what `decide` decides; arguments as there."""
    alone = serial(baseline or seconds, watts)
    if mode == "basic":
        return basic(seconds, watts)
    if mode == "save":
        return save(dials, seconds, alone.period if target is None else target, watts)
    if mode == "boost":
        return boost(dials, seconds, watts, math.inf if alone.joules is None else alone.joules)
    return decide(dials, seconds, target, watts, baseline)


__all__ = ["MODES", "Dial", "Setting", "basic", "boost", "chosen", "decide", "level", "save", "serial"]
