"""Functions that are called with as little of our code as can be: where nothing may have changed since the last call.

    fast(x) -> CoPjitFunction.__call__: looks at the call -> jax.jit's function, or a plan's      the first calls
    fast(x) -> the slot `_direct` ------------------------> jax.jit's function                    for 0.3 s at a time
    fast(x) -> the slot `_direct` -> Stretch.answering: compares the arguments -> a plan's        for a stretch of calls

Behind a function that takes 0.1 ms on several threads, caches and branch predictors know our code no more: a few lines
of it take 4 to 15 us each time.
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..lowering.executable import Executable
from ..session.choice import PLAIN_SECONDS
from ..session.listeners import Listeners
from ..session.plain_session import PlainSession
from ..session.session import Session
from .entry import Entry
from .kept import Kept
from .look import Elsewhere, Look
from .plain import Args, Kwargs, Plain
from .rest import Rest, rest_of
from .signature import Signature
from .stretch import Stretch, stretch_of

R = TypeVar("R")
UNKNOWN = 1000  # calls that are looked at behind one that nobody has looked at, and that had a program of its own


class Directly:
    """A function that may be called so. `_rest`: in which plain `jax.jit` answers calls without a look; `_stretch`: the
    same of a plan.
    """

    __slots__ = ("__dict__", "__weakref__", "_direct")
    _direct: Callable[..., Any]
    _plain: Plain
    _rest: Rest | None
    _stretch: Stretch | None
    _lock: threading.RLock
    _entries: dict[Signature, Entry]
    _programs = 0  # of plain `jax.jit`, of calls that were looked at (0: not counted yet)
    _missing = 0  # of others
    _looked_at = 0  # kinds of calls
    _unknown = 0  # calls to come that are looked at, because some are missing

    def _classes(self) -> tuple[type, type]:
        """Its class, and the one that it has meanwhile."""
        raise NotImplementedError

    def _answering(self, rest: Rest) -> Callable[..., Any]:
        """What answers its calls then."""
        return rest.run

    @property
    def _differentiated(self) -> bool:
        """Whether both passes of it are planned: `jax.jit` alone would differentiate its own program."""
        return False

    def _rests(self, session: Session | PlainSession, before: int, look: Look | Elsewhere | None = None) -> None:
        """Plain `jax.jit` answers the next calls, behind one that was looked at; `before`: its programs before that
        one. Not for a while where calls without a look have made some: who makes these calls again gets one.
        """
        if self._misses(before):
            return
        self._rest = rest = rest_of(self._plain, self._entries.values(), look, not self._differentiated)
        if rest is not None:
            session.rests(rest.answered)

    def _misses(self, before: int) -> bool:
        """Whether a program may be missing among the calls that were looked at."""
        after, entries = self._plain.jitted._cache_size(), len(self._entries)
        found = entries > self._looked_at and after == before  # whose program a call without a look had made
        self._programs = min(self._programs + after - before + found, after) if self._programs else after
        missing, self._looked_at = after - self._programs, entries
        if missing > self._missing:
            self._unknown = UNKNOWN
        self._missing = missing
        if missing and self._unknown:
            self._unknown -= 1
            return True
        self._programs, self._missing = after, 0
        return False

    def _transformed(self, call: Callable[[], R]) -> R:
        """The results of a call inside of a transformation, of whose programs nobody needs to know."""
        before = self._plain.jitted._cache_size()
        out = call()
        if self._programs:
            self._programs += self._plain.jitted._cache_size() - before
        return out

    def _over(self, rest: Rest) -> None:
        """So many calls were answered without a look: the next one has one, or none runs our code any more for a while,
        or until a planning needs calls to wait.
        """
        if not rest.direct or self._differentiated:
            self._rest = None
            return
        self._forgets_stretch()
        ends, looks = Listeners(), weakref.WeakMethod(self._looks)
        for listeners in (ends, *(gate.closes for gate in rest.gates)):
            listeners.add(looks)
        self._direct, self.__class__ = self._answering(rest), self._classes()[1]
        if not rest.takes((), {}) or not _later(PLAIN_SECONDS, ends.tell):  # a measurement was faster, or all ends
            self._looks()

    def _looks(self) -> None:
        """Calls are looked at from here on."""
        self.__class__, self._rest = self._classes()[0], None

    def _goes_on(
        self,
        session: Session | PlainSession,
        exe: Executable,
        inputs: Sequence[Any],
        kwargs: Kwargs,
        kept: Kept | None = None,
    ) -> None:
        """Has the plan that has answered a call answer the next ones, as far as these need no look."""
        if self._stretch is None:
            stretch = stretch_of(session, exe, inputs, kwargs, kept)
            if stretch is None:
                return
            with self._lock:
                if self._stretch is None:  # else another thread was first
                    self._direct = stretch.answering(_looking(weakref.ref(self)))
                    self._stretch = stretch
        self.__class__ = self._classes()[1]

    def _missed(self, args: Args, kwargs: Kwargs) -> None:
        """The next call is looked at, which is none of those that a stretch answers."""
        self.__class__, stretch = self._classes()[0], self._stretch
        if stretch is not None and not stretch.missed(args, kwargs):
            self._forgets_stretch()

    def _forgets_stretch(self) -> None:
        """Keeps nothing of a plan that may be used no more."""
        with self._lock:
            if self._stretch is not None:
                self._stretch = None
                self._direct = _looking(weakref.ref(self))  # another thread may be about to call what is there


#: as `__call__` of a class it is what the slot of an object holds: Python calls that by itself
CALLED: Any = Directly.__dict__["_direct"]


def signature_of(fn: Callable[..., Any], *given: object) -> inspect.Signature:
    """What `__signature__` is of a function, without the first arguments, which are given. Raises `AttributeError`
    where nobody can tell.
    """
    try:
        return inspect.signature(functools.partial(fn, *given) if given else fn)
    except (TypeError, ValueError) as e:
        raise AttributeError(f"{fn!r} has no signature: {e}") from None


def _looking(of: weakref.ref[Directly]) -> Callable[..., Any]:
    """A look at a call of a function, of which nothing is kept alive."""

    def look(*args: Any, **kwargs: Any) -> Any:
        fast = of()
        assert fast is not None, "its caller has it"
        fast._missed(args, kwargs)
        return fast._classes()[0].__call__(fast, *args, **kwargs)

    return look


def _later(seconds: float, tell: Callable[[], None]) -> bool:
    """Has something done after so many seconds; whether it will be."""
    timer = threading.Timer(seconds, tell)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # the interpreter ends
        return False
    return True


__all__ = ["CALLED", "Directly", "signature_of"]
