"""Streams and deadlines on a real GPU: `make test-gpu` (skipped elsewhere)."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import xcoexec
from xcoexec import models
from xcoexec.streams import Scheduler, task
from xcoexec.streams.neuropipe import Around
from xcoexec.streams.policies import POLICIES

from .oracle import oracles, worst
from .support import array
from .test_gpu import exact, pytestmark  # noqa: F401
from .test_neuropipe import _net, every_cut_is_right

WEIGHTS = [array(32, 3, 3, 3), array(32, 32, 3, 3), array(32, 5)]


def test_every_cut_computes_what_the_whole_does() -> None:
    every_cut_is_right(
        xcoexec.jit(_net, strategy="edgenn").bind(WEIGHTS), WEIGHTS, [array(1, 3, 19, 23, seed=i) for i in range(3)] * 4
    )


def test_a_stream_tries_its_ways_and_stays_right() -> None:
    """Results are right and in order while the ways are tried, after a stream was dropped in the middle of it, and
    afterwards.
    """
    fast = xcoexec.jit(_net).bind(WEIGHTS)
    items = [array(1, 3, 64, 64, seed=i) for i in range(5)]
    want = [oracles(_net, WEIGHTS, x) for x in items]
    pipe = xcoexec.pipeline(fast, preprocess=lambda i: items[i], workers=2)
    with pipe(i % 5 for i in range(1000)) as dropped:
        assert all(worst(next(dropped), want[i % 5]) < 1e-5 for i in range(40))
    count = 0
    while not pipe.decided and count < 5000:
        for i, got in enumerate(pipe(i % 5 for i in range(500))):
            assert i % 50 or worst(got, want[i % 5]) < 1e-5
            count += 1
    assert pipe.decided and pipe.periods(Around())[0] > 0
    assert all(worst(got, want[i]) < 1e-5 for i, got in enumerate(pipe(range(5))))


@pytest.mark.parametrize("policy", list(POLICIES))
def test_jobs_on_both_halves(policy: str) -> None:
    entries = [models.get(n) for n in ("lenet", "squeezenet")]
    inputs = [e.example() for e in entries]
    bound = [xcoexec.jit(e.module.apply, strategy="edgenn").bind(e.variables()) for e in entries]
    want = [np.asarray(jax.jit(e.module.apply)(e.variables(), x)) for e, x in zip(entries, inputs, strict=True)]
    tasks = [task(str(i), f, x, deadline=30.0) for i, (f, x) in enumerate(zip(bound, inputs, strict=True))]
    with Scheduler(tasks, policy) as s:
        futures = [(i % 2, s.release(str(i % 2), inputs[i % 2])) for i in range(60)]
        for i, f in futures:
            np.testing.assert_allclose(np.asarray(f.result(60)), want[i], rtol=2e-3, atol=2e-4)
        got = s.served()
    assert got.outcomes == {"in time": 60}
    if policy in ("slack", "blastnet_no_pf", "duo_either", "mono_sched", "layer_sched"):
        assert min(got.busy.values()) > 0  # both halves were at work
