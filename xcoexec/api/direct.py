"""Functions that Python calls without us: while plain `jax.jit` has a function, `jax.jit`'s own one answers its calls.

    fast(x) -> CoPjitFunction.__call__: looks at the call -> jax.jit's function     for the first calls
    fast(x) -> the slot `_direct` ------------------------> jax.jit's function      then, as long as nothing can change

Behind a function that takes 0.1 ms on several threads, caches and branch predictors know our code no more: a few lines
of it take 4 to 15 us each time.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..session.adaptive import Told
from ..session.choice import PLAIN_SECONDS
from .plain import Plain
from .rest import Rest


class Directly:
    """A function that may be called so. `_rest`: in which plain `jax.jit` answers calls without a look."""

    __slots__ = ("__dict__", "__weakref__", "_direct")
    _direct: Callable[..., Any]
    _plain: Plain
    _rest: Rest | None

    def _classes(self) -> tuple[type, type]:
        """Its class, and the one that it has meanwhile."""
        raise NotImplementedError

    def _answering(self, rest: Rest) -> Callable[..., Any]:
        """What answers its calls then."""
        return rest.jitted

    @property
    def _differentiated(self) -> bool:
        """Whether both passes of it are planned: `jax.jit` alone would differentiate its own program."""
        return False

    def _over(self, rest: Rest) -> None:
        """So many calls were answered without a look: the next one has one, or none runs our code any more until
        `jax.jit` traces anew, a planning needs calls to wait, or a caller's habit may have become another one.
        """
        if not rest.direct:
            self._rest = None
            return
        looks = weakref.WeakMethod(self._looks)
        for listeners in (self._plain.traced, *(gate.closes for gate in rest.gates)):
            listeners.add(looks)
        self._direct, self.__class__ = self._answering(rest), self._classes()[1]
        late = self._plain.traced.times != rest.traces or not rest.takes((), {})  # another thread was faster
        if late or self._differentiated or (rest.ends and not _later(PLAIN_SECONDS, looks)):
            self._looks()

    def _looks(self) -> None:
        """Calls are looked at from here on."""
        self.__class__, self._rest = self._classes()[0], None


#: as `__call__` of a class it is what the slot of an object holds: Python calls that by itself
CALLED: Any = Directly.__dict__["_direct"]


def _later(seconds: float, then: Told) -> bool:
    """Has a method called after so many seconds, if its object is still there; whether it will be."""

    def tell() -> None:
        if (told := then()) is not None:
            told()

    timer = threading.Timer(seconds, tell)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # the interpreter ends
        return False
    return True


__all__ = ["CALLED", "Directly"]
