"""Convolutions that XLA records, beside other threads, on a real GPU: `make test-gpu` (skipped elsewhere).

Each case is a process: without care the driver ends it within a second.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.session.recording import recording

pytestmark = pytest.mark.skipif(not os.environ.get("XCOEXEC_TEST_GPU"), reason="needs a CUDA GPU: make test-gpu")
SECONDS = 6.0
LAYERS, CHANNELS = 10, 64


def network(weights: Any, x: Any) -> Any:
    """Convolutions, each of which XLA records anew at other addresses."""
    numbers = ("NHWC", "HWIO", "NHWC")
    for w in weights:
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers, precision="highest")
        x = jnp.maximum(y, 0) + 0.1 * x
    return x


def other(weights: Any, x: Any) -> Any:
    """Another program."""
    return network(weights, x) - 1


def as_graphs(fn: Callable[..., Any], weights: Any, x: Any) -> Any:
    """A function whose convolutions are recorded."""
    there = xcoexec.jit(fn, strategy="device", strict=True).bind(weights).session(x).current.plan
    return xcoexec.jit(fn, plan=dataclasses.replace(there, graphs=True), strict=True).bind(weights)


class Loop:
    """Calls with arrays at other addresses each time, of which results are looked at now and then."""

    def __init__(self, call: Callable[..., Any], x: jax.Array, want: np.ndarray):
        self._call, self._x, self._want, self.calls = call, x, want, 0

    def run(self, end: float) -> None:
        """Until then. Raises `AssertionError` where a result is wrong."""
        while time.time() < end:
            out = self._call(self._x + 0)
            if not self.calls % 16:
                np.testing.assert_allclose(np.asarray(out), self._want, rtol=1e-3, atol=1e-3)
            self.calls += 1


def main(case: str) -> None:
    """`case`: what the other thread calls, `jax.jit`'s own function or one of ours; or two functions in one thread, of
    which plans are made behind their calls.
    """
    rng = np.random.default_rng(0)
    weights = [jnp.asarray(rng.normal(0, 0.05, (3, 3, CHANNELS, CHANNELS)), jnp.float32) for _ in range(LAYERS)]
    x = jnp.asarray(rng.normal(0, 1, (2, 28, 28, CHANNELS)), jnp.float32)
    wants = [np.asarray(jax.jit(fn)(weights, x)) for fn in (network, other)]
    if case == "behind":
        functions = [xcoexec.jit(fn, wait=False).bind(weights) for fn in (network, other)]
        loops = [Loop(fast, x, want) for fast, want in zip(functions, wants, strict=True)]
        planned = False
        while not planned:
            for loop in loops:
                loop.run(time.time() + 0.05)
            planned = all(fast.ready(0.0) for fast in functions)
        plans = [fast.session(x).current.plan.measured for fast in functions]
        print("right", *(loop.calls for loop in loops))
        print(plans, file=sys.stderr)
        return
    fast = as_graphs(network, weights, x)
    beside = {
        "jit": lambda: functools.partial(jax.jit(other), weights),
        "ours": lambda: as_graphs(other, weights, x),
        "same": lambda: fast,
    }[case]()
    mine = Loop(fast, x, wants[0])
    mine.run(time.time() + 1.0)
    assert recording.may() and fast.report().ran == "xco"
    alone = mine.calls
    theirs = Loop(beside, x, wants[0] if case == "same" else wants[1])
    failed: list[BaseException] = []

    def run() -> None:
        try:
            theirs.run(time.time() + SECONDS)
        except BaseException as e:
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    mine.run(time.time() + SECONDS)
    thread.join()
    if failed:
        raise failed[0]
    print("right", alone, mine.calls - alone, theirs.calls)


@pytest.mark.parametrize("case", ["jit", "ours", "same", "behind"])
def test_other_threads(case: str, tmp_path: Any) -> None:
    env = {**os.environ, "XCOEXEC_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.test_gpu_threads", case]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.startswith("right"), done.stdout[-1000:] + done.stderr[-3000:]
    assert all(int(calls) for calls in done.stdout.split()[1:])


if __name__ == "__main__":
    main(sys.argv[1])
