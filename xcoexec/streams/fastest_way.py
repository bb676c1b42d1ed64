"""Which of several ways of computing a network gives a stream its results fastest: tried on the stream's own first
items.

What the user's threads do to the host half's team beside them, and one half to the other, no model knows well enough.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Sequence
from typing import Generic, TypeVar

SETTLED = 8  # items in flight that the way before has left behind; they are not counted
FEWEST = 6  # counted items of a turn
MOST = 18
TURN_SECONDS = 0.1  # that those should take together
WORTH = 1.3  # times longer than the fastest way's that a way's period may be to be tried again
GAIN = 0.97  # another way than the first has to shorten the period by this much


W = TypeVar("W")


@dataclasses.dataclass(eq=False)
class Turn(Generic[W]):
    """Items in a row that get the same way; `ends`: when they left, in seconds."""

    way: W
    given: int = 0
    ends: list[float] = dataclasses.field(default_factory=list)


class Trial(Generic[W]):
    """Ways of computing, the one that should be fastest first. Each gets some items in turn; those that come near the
    fastest one get another turn; the one that items left fastest gets all others, the first one unless another is 3 %
    faster at least.
    """

    def __init__(self, ways: Sequence[W], seconds: float = 0.0, around: int = 0):
        """`seconds` between items that are expected; `around`: items that may be prepared already when a turn begins,
        beside those in flight.
        """
        self.ways = tuple(ways)
        self.chosen = self.ways[0]
        self._lock = threading.Lock()
        self._settled = SETTLED + around
        self._items = self._settled + min(MOST, max(FEWEST, math.ceil(TURN_SECONDS / max(seconds, 1e-6))))
        self._seconds: dict[W, list[float]] = {w: [] for w in self.ways}
        self._turns = [Turn(w) for w in self.ways] if len(self.ways) > 1 else []

    @property
    def decided(self) -> bool:
        return not self._turns

    def next(self) -> Turn[W]:
        """The turn that the next item belongs to."""
        with self._lock:
            turn = next((t for t in self._turns if t.given < self._items), None)
            if turn is None:
                return Turn(self.chosen)
            turn.given += 1
            return turn

    def left(self, turn: Turn[W]) -> None:
        """An item has come out."""
        with self._lock:
            turn.ends.append(time.perf_counter())
            if self._turns and all(len(t.ends) == self._items for t in self._turns):
                self._judge()

    def again(self) -> None:
        """A stream begins: turns whose items another one has dropped start anew."""
        with self._lock:
            self._turns = [t if len(t.ends) == self._items else Turn(t.way) for t in self._turns]

    def _judge(self) -> None:
        for t in self._turns:
            self._seconds[t.way].append((t.ends[-1] - t.ends[self._settled]) / (self._items - 1 - self._settled))
        periods = {w: sum(found) / len(found) for w, found in self._seconds.items()}
        first_round = all(len(found) == 1 for found in self._seconds.values())
        fastest = min(periods, key=periods.__getitem__)
        self.chosen = fastest if periods[fastest] < GAIN * periods[self.ways[0]] else self.ways[0]
        near = [w for w in self.ways if periods[w] <= WORTH * periods[fastest]]
        self._turns = [Turn(w) for w in near] if first_round and len(near) > 1 else []
        if self.decided:
            self.ways = (self.chosen,)  # the others' weights are not needed any more
            self._seconds = {}


__all__ = ["Trial", "Turn"]
