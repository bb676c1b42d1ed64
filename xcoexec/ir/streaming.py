"""Weights that come over the bus at every call: how far ahead of their use, in a plan on paper and in a program."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

STREAMED_BYTES = 1 << 16  # smaller constants are resident
AHEAD = 4  # largest pieces of streamed weights that may be under way or in use at a time


def ahead(fetches: Sequence[float]) -> float:
    """Bytes of streamed weights that may be under way or in use at a time, of pieces of these sizes."""
    return AHEAD * max(fetches, default=0)


class Ahead:
    """The clock of streamed weights in a plan on paper, in seconds: a piece may come when there is room, which pieces
    give back once they are computed with. `sizes`: bytes of the pieces.
    """

    def __init__(self, sizes: Sequence[float]):
        self._room = ahead(sizes)
        self._used: deque[tuple[float, float]] = deque()  # (bytes, end of the computation)

    def take(self, size: float) -> float:
        """Since when, in seconds, there is room for a piece of `size` bytes (0: from the beginning)."""
        since = 0.0
        while self._used and self._room < size * (1 - 1e-9):
            freed, since = self._used.popleft()
            self._room += freed
        self._room -= size
        return since

    def used(self, size: float, end: float) -> None:
        """A piece of `size` bytes is computed with until `end` seconds."""
        self._used.append((size, end))
