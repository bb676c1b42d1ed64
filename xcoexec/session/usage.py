"""How callers use a function: whether they wait for results, and whether their loop is faster with the plan."""

from __future__ import annotations

import collections
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import jax
import numpy as np

from ..compat import Array

HELD = 3  # results of calls in a row that a caller who does not wait holds at once
PAUSE = 64  # calls behind which it is tried again whether such a caller waits, twice as many each time
CHANGE = 3  # calls in a row, made the other way, after which a caller's habit counts as changed
STEADY = 4  # calls in a row that were made as the habit says, behind which calls need no look for a while
FIRST = 8  # calls behind a swap that are not compared: caches and threads wake up
BLOCK = 5  # calls in a row with the same executable, of which the first is not compared
#: the same of calls below so many seconds: threads of plain jax.jit that sleep between calls wake up within a block
SHORT_SECONDS, SHORT_BLOCK = 1e-3, 20
BLOCKS = 4  # that are compared with each other, one of them plain jax.jit's: most calls have what was chosen
LEAST_PAIRS, MOST_PAIRS = 4, 16  # of executables that are compared, in so many blocks each
CLEAR_PAIRS = 2  # of them that are enough where both are clear, and say the same
FLOW_BLOCK, FLOW_DROPPED = 96, 32  # calls in flight of a block, and those of it that are not compared
FLOW_BLOCKS = 2  # of them that are compared with each other
LONG_SECONDS = 0.01  # of a call in flight: blocks of longer ones drop no more calls than a caller holds results
LONG_FIRST, LONG_BLOCK = 40, 24  # of these, the calls that show how many he holds, and the least of a block
FLOW_PAIRS, FLOW_GAIN = 6, 0.97  # the most pairs, and the share of jax.jit's seconds below which a plan takes them
CLEAR = 0.85  # of plain jax.jit's seconds in the caller's own loop: below it nothing is left to decide
DOUBTED = 1 / 3  # of a plan's seconds as they were measured: calls that take less say that others were at work then
SURE = 0.5  # of its seconds when it was measured alone, which calls beside a planning may have made too many
WINDOW, EVERY, MOST_EVERY = 32, 256, 1 << 16  # calls that are looked at, of how many
EVERY_SECONDS = 1.0  # of calls between two looks, where more than `EVERY` are over in it
MOST_OTHERS = 400  # calls of other threads, after which the first one need not end the comparison
LOST = 10  # pairs, of the most, in which a plan has to be slower to count as slower


def there(result: jax.Array) -> bool:
    """Whether a result is computed, or given away: then, in another thread, between the two looks as well."""
    try:
        return result.is_deleted() or result.is_ready()  # type: ignore[attr-defined]
    except RuntimeError:
        return True


def held(results: Iterable[object]) -> weakref.ref[jax.Array] | None:
    """The first of the results that is an array of numbers, kept alive by nobody; keys cannot tell whether they are
    there.
    """
    return next((weakref.ref(x) for x in results if type(x) is Array), None)


class Habit:
    """Whether calls are made while the results of those before them are still computed.

    An executable that is through when its call returns cannot show that. Then a caller who holds several results counts
    as one who does not wait, until an executable that is not through shows that he does.
    """

    def __init__(self) -> None:
        self.in_flight = False
        self._last: collections.deque[weakref.ref[jax.Array] | None] = collections.deque(maxlen=FLOW_DROPPED)
        self._others = self.steady = 0  # calls in a row made the other way, and made as the habit says
        self._rest, self._pause = 0, PAUSE  # calls for which a caller who holds results is one who waits for them

    def begins(self, through: bool = False) -> bool:
        """Notes that a call begins; whether the result of the last one is there, or nobody holds it any more.
        `through`: the executable's calls return when they are through.
        """
        last = self._last[-1]() if self._last and self._last[-1] is not None else None
        waited = last is None or there(last)
        awaits = waited and (self.in_flight or not (through and self._holds()))
        if awaits is not self.in_flight:
            self._others, self.steady = 0, self.steady + 1
        else:
            self._others, self.steady = self._others + 1, 0
            if self._others >= CHANGE:
                if self.in_flight:
                    self._rest, self._pause = self._pause, 2 * self._pause
                self.in_flight, self._others = not self.in_flight, 0
        return waited

    def _holds(self) -> bool:
        """Whether the caller holds the last results, and has not waited for such results lately."""
        if self._rest:
            self._rest -= 1
            return False
        return len(self._last) >= HELD and all(_alive(self._last[-k]) for k in range(1, HELD + 1))

    @property
    def held(self) -> int:
        """How many of the last results, `FLOW_DROPPED` at most, the caller still holds."""
        return sum(map(_alive, self._last))

    def gave(self, results: Sequence[object]) -> None:
        """Notes what a call has returned; nothing is kept alive."""
        self._last.append(held(results))


def _alive(x: weakref.ref[jax.Array] | None) -> bool:
    return x is not None and x() is not None


class Trial:
    """Whether the caller's own loop is faster with a plan than with plain `jax.jit`: both take blocks of its calls in
    turn, the plan most of them, and the seconds from one call's beginning to the next one's are compared, pair by pair.

    `alone`: seconds of a call of plain `jax.jit` that was measured alone, `planned`: of one with the plan. A loop that
    is clearly faster than the former, or than `sure` seconds, needs no comparison, unless it is so much faster than
    `planned` that both were wrong. `verdict`: "" while it goes on, then "plan", "jit" or "open" (the loop says
    nothing). `looks`: seconds of the look that a call of plain `jax.jit` is given here, and is not given any more when
    it has won.
    """

    first: int = FIRST  # calls that are not compared
    block: int = BLOCK
    blocks: ClassVar[int] = BLOCKS  # of a pair
    dropped: int = 1  # calls of a block that are not compared
    most: ClassVar[int] = MOST_PAIRS
    flows: ClassVar[bool] = False

    def __init__(
        self,
        alone: float,
        clock: Callable[[], float] = time.perf_counter,
        sure: float = 0.0,
        planned: float = 0.0,
    ):
        self.verdict, self.looks = "", 0.0
        self._answered: Callable[[], int] | None = None  # calls of this block that went by without a look
        if alone < SHORT_SECONDS and not self.flows:
            self.block = SHORT_BLOCK
        self._doubted, self._sure = DOUBTED * planned, max(sure, SURE * alone)
        self.pairs: list[tuple[float, float]] = []  # seconds with the plan and with jax.jit
        self._alone, self._clock = alone, clock
        self._thread = 0
        self._calls, self._began = 0, 0.0
        self._samples: tuple[list[float], list[float]] = ([], [])  # of the pair that is measured
        self._ends: tuple[list[int], list[int]] = ([], [])  # samples behind which all results were there
        self._missed = self._others = 0

    def plain(self, waited: bool) -> bool:
        """Whether the call that begins now is plain `jax.jit`'s; `waited`: the results of the one before are there."""
        me = threading.get_ident()
        if self.verdict or me != (self._thread or me):
            self._others += 1
            if self._others > MOST_OTHERS:  # the first thread may have ended
                self.verdict = self.verdict or "open"
            return False
        self._thread = me
        now, answered, self._answered = self._clock(), self._answered, None
        unseen = answered() if answered is not None else 0
        self._calls += unseen
        self._note(now - self._began, waited, 1 + unseen)
        self._began = now
        self._calls += 1
        return not self.verdict and self._plain_at(self._calls - 1)

    @property
    def spare(self) -> int:
        """Calls to come of a block of plain `jax.jit` that need no look: one makes them longer than they will be when
        `jax.jit` has won. The block's last ones, behind one that is looked at.
        """
        call = self._calls - 1
        alone = not (self.verdict or self._others or self.flows or self._answered)
        return self.block - 1 - (call - self.first) % self.block if alone and self._counts(call) else 0

    def rests(self, answered: Callable[[], int]) -> None:
        """Notes that calls go by without a look; `answered` tells how many when the next one begins."""
        self._answered = answered

    def _counts(self, call: int) -> bool:
        """Whether a call is plain `jax.jit`'s and no first one of its block."""
        return self._plain_at(call) and (call - self.first) % self.block >= self.dropped

    @property
    def begun(self) -> bool:
        """Whether calls are compared already."""
        return self._calls > 0

    def _plain_at(self, call: int) -> bool:
        """Which executable takes a call: plain `jax.jit` the second block of a pair, and the last but one of the next,
        so that each comes as often behind the other.
        """
        pair, place = divmod((call - self.first) // self.block, self.blocks)
        return call >= self.first and place == (self.blocks - 2 if pair % 2 else 1)

    def _note(self, seconds: float, waited: bool, calls: int = 1) -> None:
        """So many calls are over, one or the last of a block, that took so many seconds until the next one began."""
        call = self._calls - 1
        if call < self.first:
            return
        if not (waited or self.flows):
            self._missed += 1
        elif (call - self.first) % self.block >= self.dropped:
            plain = self._plain_at(call)
            self._samples[plain].append(max(seconds - self.looks, 0.0) / calls if plain else seconds)
            if waited:
                self._ends[plain].append(len(self._samples[plain]))
        place = (call - self.first + 1) % (self.blocks * self.block)
        first = place == self.block and not self.pairs and self._samples[0]
        if first and self._doubted <= self._typical(0) < self._sure:
            self.verdict = "plan"
        elif place == 0:
            self._pair()

    def _typical(self, which: int) -> float:
        """Seconds of a call in a block: with the plan (0) or plain `jax.jit` (1)."""
        return float(np.median(self._samples[which]))

    def _pair(self) -> None:
        """The blocks of a pair are over."""
        if all(self._samples):
            self.pairs.append((self._typical(0), self._typical(1)))
        self._samples, self._ends = ([], []), ([], [])
        lost, many = sum(plan > jit for plan, jit in self.pairs), len(self.pairs)
        if lost in (0, many) and (many >= LEAST_PAIRS or (many == CLEAR_PAIRS and self._clear())):
            self.verdict = "jit" if lost else "plan"
        elif many == self.most:
            self.verdict = self._at_last(lost, many)
        elif self._missed > self.blocks * self.block * LEAST_PAIRS:
            self.verdict = "open"

    def _at_last(self, lost: int, many: int) -> str:
        """The verdict when all pairs are there, of which the plan has lost so many."""
        return "jit" if lost >= LOST else "plan" if many - lost >= LOST else "open"

    def _clear(self) -> bool:
        """Whether one of the two takes clearly less than the other in all pairs."""
        return all(min(pair) < CLEAR * max(pair) for pair in self.pairs)

    @property
    def limit(self) -> float:
        """Seconds of the caller's loop with plain `jax.jit`, as far as they are known: a plan that takes longer is
        compared anew.
        """
        return self.medians()[1] if self.pairs else self._alone

    def medians(self) -> tuple[float, float]:
        """Seconds of the caller's loop with the plan and with plain `jax.jit`: medians over pairs. Raises `ValueError`
        before the first pair.
        """
        if not self.pairs:
            raise ValueError("medians: got a trial without pairs; valid is one that compared blocks.")
        plan, jit = np.median(np.array(self.pairs), axis=0)
        return float(plan), float(jit)


class FlowTrial(Trial):
    """The same for calls in flight, of which only many together tell what one takes: means over longer blocks, of which
    those calls are dropped that begin while the other executable's are still computed. Where a caller waits for many
    calls at once, it is the median of these, so that what he does between them does not count. Calls of both are looked
    at. A plan has to show that it gains something: nobody waits for what it has gained in a single call.
    """

    block, blocks, dropped, most, flows = FLOW_BLOCK, FLOW_BLOCKS, FLOW_DROPPED, FLOW_PAIRS, True

    _held = 0  # the most results that a caller of long calls was seen to hold

    @property
    def asks(self) -> bool:
        """Whether it is still to be told how many results the caller holds."""
        return self._alone >= LONG_SECONDS and self._calls <= self.first

    def holds(self, results: int) -> None:
        """Notes how many results the caller holds as a call begins. Blocks of long calls are as short as that allows:
        half of the calls have the slower executable while they are compared.
        """
        if self.asks:
            self._held = max(self._held, results)
            self.first, self.dropped = LONG_FIRST, min(self._held + 2, FLOW_DROPPED)
            self.block = max(FLOW_BLOCK // FLOW_DROPPED * self.dropped, LONG_BLOCK)  # whole bursts are compared

    def waits(self) -> None:
        """A call waits for its result: after many of them the comparison ends."""
        self._others += 1
        if self._others > MOST_OTHERS:
            self.verdict = self.verdict or "open"

    def _typical(self, which: int) -> float:
        bursts = np.split(np.array(self._samples[which]), self._ends[which])[1:-1]  # the outer ones are cut off
        return float(np.median([b.mean() for b in bursts]) if bursts else np.mean(self._samples[which]))

    def _at_last(self, lost: int, many: int) -> str:
        return "plan" if float(np.median([plan - FLOW_GAIN * jit for plan, jit in self.pairs])) < 0 else "jit"


class Guard:
    """Whether the caller's loop has become slower with the plan than it was with plain `jax.jit`: looks at `WINDOW` of
    every so many calls, at first `EVERY` or those of `EVERY_SECONDS`, twice as many each time that `jax.jit` turns out
    to be slower still.

    `limit`: seconds of the loop with plain `jax.jit`.
    """

    def __init__(self, limit: float, every: int = 0, clock: Callable[[], float] = time.perf_counter):
        usual = min(max(int(EVERY_SECONDS / max(limit, 1e-9)), EVERY), MOST_EVERY)
        self._limit, self.every, self._clock = limit, every or usual, clock
        self._calls, self._began = 0, 0.0
        self._samples: list[float] = []

    def looks(self) -> bool:
        """Whether the call that begins now is looked at."""
        self._calls += 1
        return self._calls % self.every < WINDOW

    @property
    def spare(self) -> int:
        """Calls to come before the next one that is looked at."""
        place = self._calls % self.every
        return self.every - 1 - place if place >= WINDOW - 1 else 0

    def answered(self, calls: int) -> None:
        """Notes that so many calls have begun without a look."""
        self._calls += calls

    def slow(self, waited: bool) -> bool:
        """Notes that a call begins that is looked at; whether the loop has been too slow in all of this look."""
        now = self._clock()
        seconds, self._began = now - self._began, now
        place = self._calls % self.every
        if place == 0:
            self._samples = []
        elif waited:
            self._samples.append(seconds)
        return (
            place == WINDOW - 1 and len(self._samples) > WINDOW // 2 and float(np.median(self._samples)) > self._limit
        )


__all__ = ["FlowTrial", "Guard", "Habit", "Trial"]
