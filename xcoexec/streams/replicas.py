"""Replicas of a scheduler behind Ray Serve (extra "ray"): many machines are Ray's matter, each machine's halves the scheduler's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .scheduler import Scheduler


class Replica:
    """One scheduler, made where it runs; `handle.infer.remote(name, x, deadline)` for each job."""

    def __init__(self, make: Callable[[], Scheduler]):
        self._scheduler = make()

    async def infer(self, name: str, x: Any, deadline: float | None = None) -> Any:
        return await self._scheduler.submit(name, x, deadline)

    def served(self) -> Any:
        return self._scheduler.served()

    def __del__(self) -> None:
        self._scheduler.stop()


def deployment(make: Callable[[], Scheduler], **options: Any) -> Any:
    """A Ray Serve application whose replicas each run a scheduler that `make` returns; `options` as in `ray.serve.deployment`.

    Raises `ImportError` that names the extra where Ray is missing.
    """
    try:
        from ray import serve
    except ImportError:
        raise ImportError('xcoexec.streams.replicas: got deployment() without Ray; valid after pip install "xcoexec[ray]".') from None
    return serve.deployment(**options)(Replica).bind(make)  # type: ignore[attr-defined]


__all__ = ["Replica", "deployment"]
