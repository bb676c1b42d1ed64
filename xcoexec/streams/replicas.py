"""Replicas of a scheduler behind Ray Serve (extra "ray"): many machines are Ray's matter, each machine's halves the
scheduler's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .arguments import Rule, checked
from .scheduler import Scheduler, Served

if TYPE_CHECKING:
    from ray.serve import Application

WHERE = "xcoexec.streams.replicas"
SCHEDULER = Rule("an xcoexec.Scheduler", lambda x: isinstance(x, Scheduler))


class Replica:
    """One scheduler, made where it runs; `handle.infer.remote(name, x, deadline)` for each job. It ends with its
    replica.

    Raises `TypeError` where `make` makes something else.
    """

    def __init__(self, make: Callable[[], Scheduler]):
        made = checked(WHERE, "make", make, "callable")()
        self._scheduler: Scheduler = checked(WHERE, "make()", made, SCHEDULER)

    async def infer(self, name: str, x: object, deadline: float | None = None) -> object:
        """The result of a job; `deadline`: seconds from now, instead of the task's. Raises what `Scheduler.release`
        raises, and `SkippedError` for a job that was skipped.
        """
        return await self._scheduler.submit(name, x, deadline)

    def served(self) -> Served:
        """What the replica's scheduler has done so far."""
        return self._scheduler.served()


def deployment(make: Callable[[], Scheduler], **options: object) -> Application:
    """A Ray Serve application whose replicas each run a scheduler that `make` returns; `options` as in
    `ray.serve.deployment`.

    Raises `TypeError`, and `ImportError` that names the extra where Ray is missing.
    """
    checked(WHERE, "make", make, "callable")
    try:
        from ray import serve
    except ImportError:
        raise ImportError(
            'xcoexec.streams.replicas: got deployment() without Ray; valid after pip install "xcoexec[ray]".'
        ) from None
    return serve.deployment(**options)(Replica).bind(make)  # type: ignore[arg-type, attr-defined]


__all__ = ["Replica", "deployment"]
