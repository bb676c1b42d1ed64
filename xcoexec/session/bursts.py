"""The fastest way while calls are in flight: the next call begins before the last result is there."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping

import jax

from ..lowering.executable import Executable
from ..measure.timing import alternate
from .attempt import Attempt
from .contest import CLEAR, SLOW, WORTH, Found, why
from .ways import callers

FLOW_NEAR = 1.5  # what takes longer than this times the winner's time is not tried with calls in flight
FLOW_ROUNDS = 4
FLOW_WORTH = 0.92  # a plan takes calls in flight when it takes less than this share of jax.jit's time: no caller tells
LONG_SECONDS = 0.01  # of a call, of which its beginning is no part worth mentioning
BURST_SECONDS = 0.05  # of calls without a wait between them
LEAST_IN_FLIGHT, MOST_IN_FLIGHT = 4, 30


def streamed(s: Attempt, found: Found) -> Executable:
    """The winner for callers who wait, with the winner for calls in flight where that is another one. Where plain
    jax.jit is that, and waiting gains little and no more than calls in flight lose, it is the winner for both: habits
    of calls are seen a few calls late.
    """
    flow, seconds = _in_flight(s, found.candidates, found.best, found.seconds) if found.candidates else ("", {})
    if flow == found.best:
        return found.exe
    if flow == "jit" and s.machine.apart and _gains_little(found, seconds):
        reason = f"{found.best} gains little for callers who wait, and loses while calls are in flight"
        return why(found.candidates["jit"], found.seconds, reason)
    other = why(found.candidates[flow], seconds, f"fastest of {', '.join(seconds)} for calls in flight by measurement")
    winner = why(found.exe, found.seconds, f"{found.exe.plan.chosen}; {flow} while calls are in flight")
    return dataclasses.replace(winner, in_flight=other)


def _gains_little(found: Found, flows: Mapping[str, float]) -> bool:
    """Whether a winner takes not clearly less than plain jax.jit of callers who wait, and costs those who do not more;
    `flows`: seconds of calls in flight.
    """
    share = found.seconds[found.best] / found.seconds["jit"]
    return share > CLEAR and flows["jit"] < share * flows[found.best]


def _in_flight(
    s: Attempt, candidates: Mapping[str, Executable], best: str, seconds: Mapping[str, float]
) -> tuple[str, dict[str, float]]:
    """The name of what is fastest when nobody waits between calls, and the seconds of a call of each that was tried:
    plain jax.jit, and what is not much slower when calls wait.
    """
    rivals = {k: e for k, e in candidates.items() if k == "jit" or seconds.get(k, math.inf) < FLOW_NEAR * seconds[best]}
    # calls that share their cores gain no more in flight than their beginnings take
    if len(rivals) == 1 or (not s.machine.apart and seconds[best] > LONG_SECONDS):
        return best, {}
    count = min(max(int(BURST_SECONDS / seconds[best]), LEAST_IN_FLIGHT), MOST_IN_FLIGHT)
    calls = {k: functools.partial(s.stream, e, count) for k, e in rivals.items()}
    try:
        bursts = alternate(
            calls,
            FLOW_ROUNDS,
            BURST_SECONDS,
            s.progress,
            clear=CLEAR,
            slow=SLOW,
            least=2,
            callers=callers(rivals),
        )
    except jax.errors.JaxRuntimeError:  # so many results at once have no room
        return best, {}
    times = {k: t / count for k, t in bursts.items()}
    favoured = {best: WORTH, "jit": FLOW_WORTH}
    return min(times, key=lambda k: times[k] * favoured.get(k, 1.0)), times


__all__ = ["streamed"]
