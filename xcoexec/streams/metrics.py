"""Counters and histograms of a scheduler for Prometheus."""

from __future__ import annotations

from typing import Any

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds


class Metrics:
    """`registry`: a `prometheus_client.CollectorRegistry`. Raises `ImportError` that names the extra where the package is missing."""

    def __init__(self, registry: Any):
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise ImportError('xcoexec.Scheduler: got a registry without prometheus_client; valid after pip install "xcoexec[serve]".') from None
        self._released = prometheus.Counter("xcoexec_released", "Jobs released", ["task"], registry=registry)
        self._ended = prometheus.Counter("xcoexec_ended", "Jobs ended, by outcome", ["task", "outcome"], registry=registry)
        self._seconds = prometheus.Histogram("xcoexec_response_seconds", "From release to end", ["task"], buckets=BUCKETS, registry=registry)

    def released(self, task: str) -> None:
        self._released.labels(task).inc()

    def ended(self, task: str, outcome: str, seconds: float | None) -> None:
        self._ended.labels(task, outcome).inc()
        if seconds is not None:
            self._seconds.labels(task).observe(seconds)


class _Nothing:
    def released(self, task: str) -> None: ...

    def ended(self, task: str, outcome: str, seconds: float | None) -> None: ...


no_metrics = _Nothing()

__all__ = ["Metrics", "no_metrics"]
