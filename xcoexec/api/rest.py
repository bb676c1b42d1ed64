"""Calls that plain `jax.jit` answers without a look at them: it tells its programs apart itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..session.adaptive import Gate
from .entry import Entry
from .plain import Plain


class Rest:
    """`jitted` answers so many calls (`left`) that need no look, while no program comes to those it has. `gates`: of
    plannings that go on behind them.
    """

    __slots__ = ("_gates", "_left", "_programs", "jitted")

    def __init__(self, plain: Plain, left: float, gates: Sequence[Gate]):
        self.jitted, self._left, self._gates = plain.jitted, left, gates
        self._programs = self.jitted._cache_size()

    def takes(self) -> bool:
        """Whether the call that begins now needs no look: none has to wait for a measurement."""
        return not self._gates or all([gate.passes() for gate in self._gates])

    def over(self) -> bool:
        """Notes a call; whether the next one is to be looked at: for a program that nobody has looked at yet, or a
        caller whose habit may be another one.
        """
        self._left -= 1
        return not self._left or self.jitted._cache_size() != self._programs


def rest_of(plain: Plain, entries: Iterable[Entry]) -> Rest | None:
    """The rest that all of a function's programs allow; None where calls have to be looked at."""
    found = tuple(entries)
    left = min(e.rest for e in found)
    gates = tuple(gate for e in found if (gate := e.gate) is not None)
    return Rest(plain, left, gates) if left and not plain.boxed else None


__all__ = ["Rest", "rest_of"]
