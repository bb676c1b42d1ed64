"""Calls that plain `jax.jit` answers without a look at them: it tells its programs apart itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..session.gate import Gate
from .entry import Entry
from .look import Elsewhere, Look
from .plain import Args, Kwargs, Plain
from .signature import single

QUIET = 64  # calls of a function that plain jax.jit has, behind which that is called directly


class Rest:
    """`run` answers so many calls (`left`) that need no look, while `jax.jit` has no more than these `programs`;
    `count` says how many it has. `ends`: a caller's habit may become another one, and a call that it does not take is
    its end. `direct`: behind `QUIET` of them `run` is called directly. `counts`: calls are counted. `gates`: of
    plannings that go on behind them. `where`: only calls with an array on other devices there (None: all calls).
    `free`: it takes all calls.
    """

    __slots__ = (
        *("_all", "_left", "_where"),
        *("count", "counts", "direct", "ends", "free", "gates", "programs", "run"),
    )

    def __init__(
        self,
        plain: Plain,
        left: float,
        gates: Sequence[Gate] = (),
        where: Elsewhere | None = None,
        direct: bool = False,
    ):
        self.run, self.ends = plain.run, left != math.inf
        self.gates, self._where, self.free = gates, where, not gates and where is None
        self.direct = direct and where is None and left > QUIET and single()
        self.counts = self.ends or self.direct
        self._all = self._left = QUIET if self.direct else left
        self.count = plain.jitted._cache_size
        self.programs = self.count()

    def takes(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether the call that begins now needs no look: it has not to wait for a measurement, and has such arrays."""
        return all([gate.passes() for gate in self.gates]) and (self._where is None or self._where.has(args, kwargs))

    def answered(self) -> int:
        """How many calls it has answered, of those that end."""
        return int(self._all - self._left) if self.ends else 0

    def over(self) -> bool:
        """Notes a call; whether the next one is to be looked at."""
        self._left -= 1
        return not self._left


def rest_of(
    plain: Plain, entries: Iterable[Entry], look: Look | Elsewhere | None = None, direct: bool = False
) -> Rest | None:
    """The rest that all of a function's programs allow, or that calls which are found by `look` do; None where calls
    have to be looked at. `direct`: whether `jax.jit`'s function may be called directly.
    """
    found = tuple(entries)
    left = min(e.rest for e in found)
    if left:
        return Rest(plain, left, tuple(gate for e in found if (gate := e.gate) is not None), direct=direct)
    return Rest(plain, math.inf, where=look) if isinstance(look, Elsewhere) else None


__all__ = ["Rest", "rest_of"]
