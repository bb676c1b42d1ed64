"""Streams and deadlines on a real GPU: `make test-gpu` (skipped elsewhere)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import xcoexec
from xcoexec import models
from xcoexec.bench import oracles, worst
from xcoexec.streams import Scheduler, task
from xcoexec.streams.edf import POLICIES
from xcoexec.streams.neuropipe import Around, Cut

from .support import array

pytestmark = pytest.mark.skipif(not os.environ.get("XCOEXEC_TEST_GPU"), reason="needs a CUDA GPU: make test-gpu")
WEIGHTS = [array(32, 3, 3, 3), array(32, 32, 3, 3), array(32, 5)]


@pytest.fixture(scope="module", autouse=True)
def exact() -> Iterator[None]:
    with jax.default_matmul_precision("highest"):
        yield


def _net(w: Any, x: Any) -> Any:
    y = jax.nn.relu(jax.lax.conv(x, w[0], (1, 1), "SAME"))
    z = jax.lax.conv(y, w[1], (1, 1), "SAME") + y  # the skip crosses a cut
    return {"mean": jax.nn.relu(z).mean((2, 3)) @ w[2], "shape": z}


def test_every_cut_computes_what_the_whole_does() -> None:
    fast = xcoexec.jit(_net, strategy="edgenn").bind(WEIGHTS)
    items = [array(1, 3, 19, 23, seed=i) for i in range(3)]
    want = [oracles(_net, WEIGHTS, x) for x in items]
    n = len(fast.graph(items[0]).layers)
    cuts = [((a, 0, k), (b, k, n)) for k in range(1, n) for a, b in (("device", "host"), ("host", "device"))]
    cuts += [(("host", 0, 1), ("device", 1, n - 1), ("host", n - 1, n)), (("host", 0, n),), (("device", 0, n),)]
    for stages in cuts:
        pipe = xcoexec.pipeline(fast, cut=Cut(stages))
        assert all(worst(got, w) < 1e-5 for got, w in zip(pipe(items * 4), want * 4, strict=True))
        (trial,) = pipe.networks.known.values()
        assert [p.half for p in trial.chosen.parts] == [h for h, _, _ in stages]
        assert all(p.executable.lowered.segments for p in trial.chosen.parts if p.half == "host")  # kernels ran it


def test_a_stream_tries_its_ways_and_stays_right() -> None:
    """Results are right and in order while the ways are tried, after a stream was dropped in the middle of it, and afterwards."""
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
    if policy in ("slack", "blastnet_any", "mono_adapt"):
        assert min(got.busy.values()) > 0  # both halves were at work
