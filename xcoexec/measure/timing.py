"""How long calls take: medians, several calls in turn, and calls that wake a machine up first."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import jax
import numpy as np

from ..codegen.native.children import go_on
from ..compat import plain_jit

T = TypeVar("T")
RECENT = 16  # calls: older stamps may be written over while they are read
SECONDS_A_LAYER = 0.01
ROUND_SECONDS = 0.06  # of one call in one round of a comparison
ROUNDS, WINS = 5, 3
MOST_CALLS = 1000  # of one block
STILL_LOOKS = 1000  # at a clock that does not go
BLOCK_SECONDS = 0.02  # of calls that others wait for
WAKE_SECONDS = 0.004  # of calls at the start of a block, which are not counted
LONG_SECONDS = 0.02  # of a call, of which waking up is no part worth mentioning
FAR, FAR_SECONDS = 0.5, 0.1  # of the others' seconds, where each call takes so many: then one round tells
SHORT_SECONDS = 0.008  # that blocks of many short calls take
WARM_SECONDS = 0.008  # of calls before parts are measured on the host half, and of the measurement

#: what is told how far a measurement is: (what is done, steps done, steps in all)
Progress = Callable[[str, int, int], None]
#: in which a block of calls is measured: while a function is in use, its calls wait meanwhile
Alone = Callable[[], contextlib.AbstractContextManager[object]]
#: has a block of calls made by a thread that does nothing else with the device meanwhile; what it returns
Lend = Callable[[Callable[[], Any]], Any]
_alone: contextvars.ContextVar[Alone] = contextvars.ContextVar("alone", default=contextlib.nullcontext)
_lend: contextvars.ContextVar[Lend] = contextvars.ContextVar("lend", default=lambda block: block())


class NotCalled(Exception):
    """No caller has come whose thread could make a block of calls."""

    def __init__(self, why: str = "no caller has come whose thread could measure it") -> None:
        super().__init__(why)


class Beside(NotCalled):
    """One has come, and another thread may use the device meanwhile."""

    def __init__(self) -> None:
        super().__init__("another thread may use the device")


@contextlib.contextmanager
def measured_in(wanted: Alone, lend: Lend) -> Iterator[None]:
    """What this thread measures inside is measured in `wanted`, a block of calls at a time, or by `lend`."""
    before, by = _alone.set(wanted), _lend.set(lend)
    try:
        yield
    finally:
        _alone.reset(before)
        _lend.reset(by)


def alone() -> contextlib.AbstractContextManager[object]:
    """In which this thread measures a block of calls."""
    return _alone.get()()


def lent(block: Callable[[], T]) -> T:
    """What a block of calls gives that only a caller's own thread may make: this one where it is that. Raises
    `NotCalled` where none comes, and what the block raises.
    """
    return cast(T, _lend.get()(block))


def silent(what: str, done: int, total: int) -> None:
    """A progress callback that shows nothing; planning is cut short when the interpreter ends."""
    go_on()


def clock_goes() -> bool:
    """Whether time passes for this process: `freezegun` and its like have it stand still, and what measures for so many
    seconds would go on for good.
    """
    began = time.perf_counter()
    return any(time.perf_counter() != began for _ in range(STILL_LOOKS))


def median_seconds(fn: Callable[[], object], budget: float = SECONDS_A_LAYER, least: int = 3) -> float:
    """Median seconds of a call, after one warm-up call: of calls for `budget` seconds (1000 at most), `least` at
    least.
    """
    times: list[float] = []
    fn()  # may compile, for which nobody has to wait
    part = budget if _alone.get() is contextlib.nullcontext else min(budget, BLOCK_SECONDS)
    spent = 0.0
    while not times or (spent < budget and len(times) < MOST_CALLS):
        with alone():
            began = time.perf_counter()
            times += _block(fn, part, 1 if times else least)
            spent += time.perf_counter() - began
    return float(np.median(times))


def warm_up(call: Callable[[], object]) -> None:
    """Calls for `WARM_SECONDS` seconds behind the first one, until cores that slept are awake: a team that has waited
    for a compilation is several times slower at first.
    """
    call()  # may compile
    with alone():
        end = time.perf_counter() + WARM_SECONDS
        while time.perf_counter() < end:
            call()


def in_turn(calls: Sequence[Callable[[], object]], runs: int, seconds: float = BLOCK_SECONDS) -> list[float]:
    """Median seconds of each of many short calls, of `runs` in a row: in blocks of about so many seconds, each behind
    `WARM_SECONDS` of calls, because a team that has waited is several times slower at first.
    """
    times: list[float] = []
    for fn in calls:
        fn()  # may compile
    while len(times) < len(calls):
        with alone():
            end = time.perf_counter() + WARM_SECONDS
            while time.perf_counter() < end:
                calls[len(times)]()
            end = time.perf_counter() + seconds
            while len(times) < len(calls) and time.perf_counter() < end:
                times.append(float(np.median([_seconds(calls[len(times)]) for _ in range(runs)])))
    return times


def _seconds(fn: Callable[[], object]) -> float:
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


@functools.lru_cache(maxsize=1)
def empty_call() -> float:
    """Seconds of a call of a program that does nothing worth mentioning, measured once a process."""
    f = plain_jit(lambda x: x + 1)
    x = jax.numpy.zeros(8)
    return median_seconds(lambda: f(x).block_until_ready(), 0.02)


def alternate(
    calls: Mapping[str, Callable[[], object]],
    rounds: int = ROUNDS,
    seconds: float = ROUND_SECONDS,
    progress: Progress = silent,
    samples: dict[str, list[float]] | None = None,
    clear: float = 0.0,
    enough: int = MOST_CALLS,
    slow: float = math.inf,
    wins: int = WINS,
    least: int = 1,
    warm: Container[str] = (),
    callers: Container[str] = (),
) -> dict[str, float]:
    """Median seconds of each call; blocks of about `seconds` in turn, there and back, and `least` calls at least, or of
    `enough` calls where those take at least `SHORT_SECONDS`; of calls that are not long the first `WAKE_SECONDS` of a
    block are dropped.

    `samples` receives all times. A call of which all times, two at least, are above `slow` times the median of the
    fastest one is measured no more. With `clear` one call may win early: from the second round on when all its times
    are below this share of every time of the others, and when its median was the least one in `wins` rounds in a row;
    after the first round where it is `FAR` from all others, whose calls are long. What is `warm` was called before.
    Those in `callers` are `lent`; what no caller comes for is not among the results.
    """
    times = samples if samples is not None else {}
    times.update({k: [] for k in calls})
    first: list[str] = []  # of each round
    for name, fn in calls.items():
        if name not in warm and name not in callers:
            fn()
    rivals = dict(calls)
    for r in range(rounds):
        progress("compare", r, rounds)
        block: dict[str, list[float]] = {}
        for name in list(rivals)[:: -1 if r % 2 else 1]:  # nobody comes behind the same one each time
            fn = rivals[name]
            made = functools.partial(_block, fn, seconds, least, enough)
            if name in callers:
                block[name] = _lent(made)
            else:
                with alone():
                    block[name] = made()
            times[name] += block[name]
        first.append(min(block, key=lambda k: float(np.median(block[k]))))
        most = slow * min(float(np.median(t)) for t in times.values())
        rivals = {k: fn for k, fn in rivals.items() if len(times[k]) < 2 or min(times[k]) <= most}
        if len(rivals) == 1 < len(calls):
            break
        if clear and len(first) >= wins and len(set(first[-wins:])) == 1:
            break
        if clear and len(calls) > 1 and _far(list(times.values())):
            break
        worst = min(max(t) for t in times.values())
        if r and clear and sum(min(t) * clear <= worst for t in times.values()) == 1:
            break
    progress("compare", rounds, rounds)
    return {k: t for k, v in times.items() if (t := float(np.median(v))) < math.inf}


def _lent(made: Callable[[], list[float]]) -> list[float]:
    try:
        return lent(made)
    except NotCalled:
        return [math.inf, math.inf]


def _far(times: Sequence[Sequence[float]]) -> bool:
    """Whether all calls of one take a far smaller part of the seconds than those of all others, which are long."""
    best, *others = sorted(times, key=min)
    least = min(map(min, others))
    return least >= FAR_SECONDS and max(best) < FAR * least


def _block(fn: Callable[[], object], seconds: float, least: int, enough: int = MOST_CALLS) -> list[float]:
    """Seconds of each of the calls of about so many seconds, `least` at least and `enough` of those that are not very
    short, behind `WAKE_SECONDS` of calls that are not counted: a machine that has waited is slower at first, which long
    calls do not feel.
    """
    began = time.perf_counter()
    times = [_seconds(fn)]
    if times[0] < LONG_SECONDS:
        while time.perf_counter() - began < min(WAKE_SECONDS, seconds):
            fn()
        began, times = time.perf_counter(), []
    most = lambda: enough if time.perf_counter() - began > SHORT_SECONDS else MOST_CALLS
    while len(times) < least or (time.perf_counter() - began <= seconds and len(times) < most()):
        times.append(_seconds(fn))
    return times
