"""Calls that a plan in use answers without a look at how they are made: nothing but their arguments is compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np

from ..compat import NOTHING, TRACED, Array, configuration, meshes
from ..guard import outside
from ..lowering.executable import Executable, Stale
from ..session.plain_session import PlainSession
from ..session.session import Session
from .kept import Kept
from .look import Look
from .plain import Args, Kwargs
from .signature import alone

MOST_OTHERS = 16  # calls in a row that a stretch does not take, behind which others may have one


class Stretch:
    """The next calls (`left`) with arrays, JAX's or NumPy's, of these types and places, and with the weights of a
    function that is `given` them (None: they are bound), which `exe` answers while no other plan comes into use and
    nothing is measured. A call that it does not take uses it up as well, and `MOST_OTHERS` in a row end it.
    """

    __slots__ = (
        *("_answered", "_around", "_at_last", "_current", "_exe", "_given", "_in_a_row", "_place"),
        *("_places", "_types"),
        *("left", "session"),
    )

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
        # our programs know no mesh around calls, and nothing is stale that is called within another
        self._around = configuration() if meshes() else None
        self._place = _place if self._around is None else _place_within
        known = alone() and self._around is None  # the types of arrays on a mesh of the one device are others
        self._places = None if known else list(map(self._place, inputs))
        self._given = given
        self._answered = self._at_last = 0  # calls, and those before the last one that it did not take
        self._in_a_row = 0  # calls that it did not take

    def answering(self, looked: Callable[..., Any]) -> Callable[..., Any]:
        """What answers calls in the place of the function; `looked` takes those that have to be looked at."""
        session, current, types, places = self.session, self._current, self._types, self._places
        monitor, choice, gate, unflatten = session.monitor, session.choice, session.gate, session.unflatten
        arrays = self._arrays if self._given is not None else None
        around, place = self._around, self._place
        program, refused = self._program()

        def answer(*args: Any, **kwargs: Any) -> Any:
            if (
                TRACED.trace is NOTHING
                and self.left > 0
                and monitor.current is choice.seen is current
                and not (gate.active or kwargs)
            ):
                inputs = args if arrays is None else arrays(args)
                if (
                    inputs is not None
                    and [x.aval if type(x) is Array else _type(x) for x in inputs] == types
                    and (places is None or (list(map(place, inputs)) == places and _within(around)))
                ):
                    try:
                        out = program(*inputs)
                    except refused:
                        self.left = 0
                    except Exception as e:
                        e.__traceback__ = outside(e.__traceback__)
                        raise
                    else:
                        self.left, self._answered = self.left - 1, self._answered + 1
                        return unflatten(out)
            return looked(*args, **kwargs)

        return answer

    def _program(self) -> tuple[Callable[..., Sequence[jax.Array]], tuple[type[Exception], ...]]:
        """The flat results of inputs, and what it raises where a call is to be made again, with a look: whatever fails
        of a program that has nothing behind it and gives nothing away; else what JAX's configuration makes stale.
        """
        session, exe = self.session, self._exe
        if exe.program is not None and exe.through:
            return exe.program, (Stale, jax.errors.JaxRuntimeError, ValueError, FloatingPointError)
        return lambda *inputs: session.answer(inputs, exe), (Stale,)

    def _arrays(self, args: Args) -> Sequence[Any] | None:
        """The inputs of a call with the weights that were given; None of others, or where these are gone."""
        assert self._given is not None
        kept, look = self._given
        found = look.arrays(args)
        return None if found is None or kept.gone() else found

    def missed(self, args: Args, kwargs: Kwargs) -> bool:
        """Notes a call that is looked at; whether those behind it may be of these."""
        self._in_a_row = 1 if self.latest else self._in_a_row + 1
        self.left, self._at_last = self.left - 1, self._answered
        ends = self._in_a_row == MOST_OTHERS
        if not kwargs and TRACED.trace is NOTHING:
            same = self._given is None or self._arrays(args) is not None
            ends |= not (same and self.session.passes(self._current))
        if self.left > 0 and not ends:
            return True
        self.left = 0
        self.session.answered(self._answered)
        return False

    @property
    def latest(self) -> bool:
        """Whether it has answered the last call."""
        return self._answered > self._at_last


def _type(x: Any) -> Hashable:
    """What a program depends on of an array of JAX's or NumPy's; None for anything else."""
    if type(x) is Array:
        return x.aval
    return (x.shape, x.dtype) if type(x) is np.ndarray else None


def _place(x: Any) -> Hashable:
    """Where an array of JAX's lies."""
    return x.sharding if type(x) is Array else None


def _place_within(x: Any) -> Hashable:
    """As `_place`, within a mesh: what is committed to a device brings results there."""
    return (x.sharding, x.committed) if type(x) is Array else None


def _within(around: Hashable) -> bool:
    """Whether a call is made under the meshes that are set around these."""
    return around is None or configuration() == around


def stretch_of(
    session: Session | PlainSession, exe: Executable, inputs: Sequence[Any], kwargs: Kwargs, kept: Kept | None = None
) -> Stretch | None:
    """The calls that may follow one with these inputs without a look; None where the next one has to be looked at."""
    if kwargs or not isinstance(session, Session):
        return None
    left = session.spare(exe)
    if left <= 0 or None in map(_type, inputs):
        return None
    given: tuple[Kept, Look] | None = None
    if kept is not None:
        if not isinstance(kept.look, Look) or not kept.look.plain:
            return None
        given = kept, kept.look
    return Stretch(session, session.current, exe, inputs, left, given)


__all__ = ["Stretch", "stretch_of"]
