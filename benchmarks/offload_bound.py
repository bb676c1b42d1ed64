"""What no step with its optimizer in host memory can be faster than: rates of the machine, seconds of the parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xcoexec import config
from xcoexec.codegen.program import Group, Op, Program, Value
from xcoexec.codegen.runtime import host
from xcoexec.devices.queues import queues
from xcoexec.measure.timing import alternate

COPY_BYTES = 1 << 26


def _in_place(n: int, threads: int) -> Callable[[], object]:
    """Reads and writes n f32 where they lie, with all threads."""
    x, y = Value((n,), "float32"), Value((n,), "float32")
    program = Program((x,), (), (Group.of(Op("neg", (x,), (y,), {})),), (y,))
    segment = host.build_stored(program, threads)
    data = np.ones(n, np.float32)
    return host.Call.on(segment, [data, segment.pack({})], [data])


def rates() -> dict[str, float]:
    """Bytes/s: of memory that is read and written in place, and of copies in both directions at once (each)."""
    n = 1 << 28 if jax.default_backend() == "gpu" else 1 << 23
    call = _in_place(n, config.threads(spare=1 if jax.default_backend() == "gpu" else 0))
    q, device = queues(jax.default_backend()), jnp.zeros(2 * COPY_BYTES, jnp.uint8).block_until_ready()
    here, there = q.memory(2 * COPY_BYTES), device.unsafe_buffer_pointer()

    def best(seconds: Callable[[], float]) -> float:
        return min(seconds() for _ in range(5))

    def touched() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def copied(times: int = 4) -> float:
        start = time.perf_counter()
        for _ in range(times):
            q.up(there + COPY_BYTES, here + COPY_BYTES, COPY_BYTES)
            event = q.down(here, there, COPY_BYTES)
            q.wait(event)
        return (time.perf_counter() - start) / times

    call()
    found = {"memory": 8 * n / best(touched), "bus": COPY_BYTES / best(copied)}
    q.free(here)
    return found


def bound(tx_bytes: float, wire: float, rate: dict[str, float]) -> float:
    """Least seconds of the host's update: its bytes in memory, those of the bus among them, or the bus alone."""
    return max((tx_bytes + 2 * wire) / rate["memory"], wire / rate["bus"])


def seconds_of(fn: Callable[..., Any], params: Any, tokens: jax.Array, rounds: int) -> float:
    """Median seconds of a program that changes nothing."""
    compiled = jax.jit(fn).lower(params, tokens).compile()
    return alternate({"": lambda: jax.block_until_ready(compiled(params, tokens))}, rounds, 0.3)[""]
