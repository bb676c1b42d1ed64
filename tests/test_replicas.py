"""Replicas of a scheduler: without Ray one clear sentence, with it jobs are answered."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from xcoexec.streams import Scheduler, task
from xcoexec.streams.replicas import Replica, deployment

from .test_scheduler import Sleepy


def _make() -> Scheduler:
    return Scheduler([task("t", Sleepy(), deadline=5.0)])


def test_a_replica_answers() -> None:
    replica = Replica(_make)
    assert asyncio.run(replica.infer("t", 4)) == 40 and replica.served().outcomes == {"in time": 1}
    replica._scheduler.stop()


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'valid after pip install "xcoexec\[ray\]"'):
        deployment(_make)


def test_with_ray_a_deployment_is_made() -> None:
    pytest.importorskip("ray.serve")
    made: Any = deployment(_make, num_replicas=2)
    assert made is not None
