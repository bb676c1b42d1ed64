"""What runs calls of one program with certain weights, and waiting for it."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import jax
from jax.typing import ArrayLike

from ..compat import Array
from ..errors import brief
from ..session.plain_session import PlainSession
from ..session.session import Session
from .look import Elsewhere, Look

IS_DELETED = operator.methodcaller("is_deleted")


class Kept(NamedTuple):
    """What runs calls with these very weights: which leaves they are, which the inputs, and what was compiled.

    One record, replaced as a whole: a thread that calls with other weights never sees a part of it.
    """

    where: tuple[int, ...]
    inputs: tuple[int, ...]
    weights: list[ArrayLike]
    session: Session | PlainSession
    arrays: tuple[jax.Array, ...] = ()  # of the weights, those of numbers
    others: tuple[jax.Array, ...] = ()  # random keys among them
    look: Look | Elsewhere | None = None  # that tells such calls from others

    def serves(self, leaves: Sequence[ArrayLike], known: bool) -> bool:
        """Whether leaves hold these weights; `known`: they always do."""
        return known or all(map(operator.is_, map(leaves.__getitem__, self.where), self.weights))

    def gone(self) -> bool:
        """Whether a weight has been deleted or given away."""
        return any(map(Array.is_deleted, self.arrays)) or any(map(IS_DELETED, self.others))


class Waits(Protocol):
    """What is planned now or later."""

    def wait(self, timeout: float | None) -> bool:
        """Waits for a planning that goes on, for at most `timeout` seconds; whether there is none any more."""
        ...


def ready(entries: Iterable[Waits], timeout: float | None) -> bool:
    """Waits for all plannings that go on, for at most `timeout` seconds together; whether there are none any more.
    Raises `ValueError` for a timeout that is no number of seconds.
    """
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout >= 0):
        raise ValueError(f"xcoexec.ready: got timeout={brief(timeout)}; valid are seconds from 0 on, or None.")
    end = None if timeout is None else time.monotonic() + timeout
    left = lambda: None if end is None else max(end - time.monotonic(), 0.0)
    return all([entry.wait(left()) for entry in tuple(entries)])


__all__ = ["Kept", "ready"]
