"""Calls that plain `jax.jit` answers without a look at them: it tells its programs apart itself."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .entry import Entry
from .look import Elsewhere, Look
from .plain import Plain


class Rest:
    """`jitted` answers so many calls (`left`) that need no look, while it has no more than these `programs`; `count`
    says how many it has. `ends`: a caller's habit may become another one. `where`: only calls with an array on other
    devices there (None: all calls).
    """

    __slots__ = ("_left", "count", "ends", "jitted", "programs", "where")

    def __init__(self, plain: Plain, left: float, where: Elsewhere | None = None):
        self.jitted, self._left, self.ends, self.where = plain.jitted, left, left != math.inf, where
        self.count = self.jitted._cache_size
        self.programs = self.count()

    def over(self) -> bool:
        """Notes a call; whether the next one is to be looked at."""
        self._left -= 1
        return not self._left


def rest_of(plain: Plain, entries: Iterable[Entry], look: Look | Elsewhere | None = None) -> Rest | None:
    """The rest that all of a function's programs allow, or that calls which are found by `look` do; None where calls
    have to be looked at.
    """
    if plain.boxed:
        return None
    left = min(e.rest for e in tuple(entries))
    if left:
        return Rest(plain, left)
    return Rest(plain, math.inf, look) if isinstance(look, Elsewhere) else None


__all__ = ["Rest", "rest_of"]
