"""Counters and histograms of schedulers for Prometheus."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.registry import Collector, CollectorRegistry

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds


class Metrics:
    """`registry`: a `prometheus_client.CollectorRegistry`. Raises `ImportError` that names the extra where the package
    is missing.
    """

    def __init__(self, registry: CollectorRegistry):
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise ImportError(
                'xcoexec.Scheduler: got a registry without prometheus_client; valid after pip install "xcoexec[serve]".'
            ) from None
        self._released = prometheus.Counter("xcoexec_released", "Jobs released", ["task"], registry=None)
        self._ended = prometheus.Counter("xcoexec_ended", "Jobs ended, by outcome", ["task", "outcome"], registry=None)
        self._seconds = prometheus.Histogram(
            "xcoexec_response_seconds", "From release to end", ["task"], buckets=BUCKETS, registry=None
        )
        put: list[Collector] = []
        try:
            for made in (self._released, self._ended, self._seconds):
                registry.register(made)
                put.append(made)
        except ValueError as e:  # somebody else's of that name
            for mine in put:
                registry.unregister(mine)
            raise ValueError(
                f"xcoexec.Scheduler: got a registry that refuses a name ({e}); valid is one without xcoexec's names."
            ) from None

    def released(self, task: str) -> None:
        self._released.labels(task).inc()

    def ended(self, task: str, outcome: str, seconds: float | None) -> None:
        self._ended.labels(task, outcome).inc()
        if seconds is not None:
            self._seconds.labels(task).observe(seconds)


_lock = threading.Lock()
_known: weakref.WeakKeyDictionary[CollectorRegistry, Metrics] = weakref.WeakKeyDictionary()


def metrics(registry: CollectorRegistry | None) -> Metrics | None:
    """Those of a registry, which all schedulers that are given it share: it has one place for each name."""
    if registry is None:
        return None
    with _lock:
        if registry not in _known:
            _known[registry] = Metrics(registry)
        return _known[registry]


__all__ = ["Metrics", "metrics"]
