"""Calls that a plan in use answers without a look at how they are made: nothing but their arguments is compared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..compat import Array
from ..lowering.executable import Executable, Stale
from ..session.session import PlainSession, Session
from .kept import Kept
from .look import Look
from .plain import Kwargs
from .signature import alone

MISSED = object()  # in the place of results: the call has to be looked at


class Stretch:
    """The next calls (`left`) with arrays, JAX's or NumPy's, of these types and places, and with the weights of a
    function that is `given` them (None: they are bound), which `exe` answers while no other plan comes into use and
    nothing is measured. A call that it does not take uses it up as well.
    """

    __slots__ = ("_answered", "_current", "_exe", "_given", "_places", "_types", "left", "session")

    def __init__(
        self,
        session: Session,
        current: Executable,
        exe: Executable,
        inputs: Sequence[Any],
        left: int,
        given: tuple[Kept, Look] | None,
    ):
        self.session, self.left, self._exe, self._current = session, left, exe, current
        self._types = list(map(_type, inputs))
        self._places = None if alone() else list(map(_place, inputs))
        self._given = given
        self._answered = 0

    def run(self, args: Sequence[Any], kwargs: Kwargs) -> Any:
        """The function's results, or `MISSED`. Raises what `Session.call` raises."""
        self.left -= 1
        session, inputs = self.session, args
        if kwargs or not session.passes(self._current):
            return self._missed(bool(kwargs))
        if self._given is not None:
            kept, look = self._given
            found = look.arrays(args)
            if found is None or kept.gone():  # these weights are not kept any longer
                return self._missed(False)
            inputs = found
        if [x.aval if type(x) is Array else _type(x) for x in inputs] != self._types:
            return self._missed(True)
        if self._places is not None and list(map(_place, inputs)) != self._places:
            return self._missed(True)
        try:
            out = session.unflatten(session.answer(inputs, self._exe))
        except Stale:  # JAX's configuration has changed: another program
            return self._missed(False)
        self._answered += 1
        if self.left <= 0:
            session.answered(self._answered)
        return out

    def _missed(self, goes_on: bool) -> object:
        """The call is looked at; whether the next one may be one of these."""
        self.left = self.left if goes_on else 0
        if self.left <= 0:
            self.session.answered(self._answered)
        return MISSED


def _type(x: Any) -> Hashable:
    """What a program depends on of an array of JAX's or NumPy's; None for anything else."""
    if type(x) is Array:
        return x.aval
    return (x.shape, x.dtype) if type(x) is np.ndarray else None


def _place(x: Any) -> Hashable:
    """Where an array of JAX's lies."""
    return x.sharding if type(x) is Array else None


def stretch_of(
    session: Session | PlainSession, exe: Executable, inputs: Sequence[Any], kwargs: Kwargs, kept: Kept | None = None
) -> Stretch | None:
    """The calls that may follow one with these inputs without a look; None where the next one has to be looked at."""
    if kwargs or not isinstance(session, Session) or None in map(_type, inputs):
        return None
    given: tuple[Kept, Look] | None = None
    if kept is not None:
        if not isinstance(kept.look, Look) or not kept.look.plain:
            return None
        given = kept, kept.look
    current, left = session.current, session.spare(exe)
    return Stretch(session, current, exe, inputs, left, given) if left > 0 else None


__all__ = ["MISSED", "Stretch", "stretch_of"]
