"""What threads ask for while they wait: of every owner's items each line once, and nothing beyond them."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.codegen.native import layout as abi
from xcoexec.codegen.native.build import native_address
from xcoexec.codegen.runtime import host
from xcoexec.codegen.target import target

from .support import array, error, oracle

DRIVER = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)
RUN_STEPS = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)


def _job(items: list[int], owned: list[bool], threads: int, work: ctypes._CFuncPtr, data: np.ndarray) -> list[Any]:
    """A job of steps with so many items each, and everything that it refers to."""
    n = len(items)
    following = [next((j for j in range(i + 1, n) if owned[j]), n) for i in range(n)]
    early = np.array([0, 0, data.nbytes // 8, data.nbytes, 2, data.nbytes // 16], np.int64)
    steps = np.zeros((n, abi.STEP_WORDS), np.int64)
    for i in range(n):
        address = early.ctypes.data if owned[i] else 0
        steps[i] = ctypes.cast(work, ctypes.c_void_p).value, i, items[i], 0, address, following[i], 0
    team = host.team(())
    segment = np.zeros(len(abi.Segment) + 64, np.int64)
    times, buffers = np.zeros(n + 1, np.int64), np.array([data.ctypes.data], np.int64)
    counters = np.zeros(n * abi.COUNTER_BYTES // 8, np.int64)
    for word, value in {
        abi.Segment.STEPS: steps.ctypes.data,
        abi.Segment.STEP_COUNT: n,
        abi.Segment.TEAM: team.address,
        abi.Segment.THREADS: threads,
    }.items():
        segment[word // 8] = value
    job = np.zeros(abi.JOB_WORDS, np.int64)
    for word, record in {
        abi.Job.SEGMENT: segment,
        abi.Job.BUFFERS: buffers,
        abi.Job.TIMES: times,
        abi.Job.COUNTERS: counters,
    }.items():
        job[word // 8] = record.ctypes.data
    return [job, segment, steps, early, times, buffers, counters, data]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("items", [1, 2, 7, 65, 384])
def test_each_owned_item_is_done_once(threads: int, items: int) -> None:
    done: list[tuple[int, int, int]] = []
    lock = threading.Lock()

    def work(step: int, buffers: int, first: int, last: int, who: int) -> int:
        with lock:
            done.extend((step, i, who) for i in range(first, last))
        return 0

    driver = DRIVER(work)
    counts = [3, items, 1, items]
    held = _job(counts, [False, True, False, True], threads, driver, np.zeros(1 << 12, np.int64))
    run, libc = RUN_STEPS(native_address("team", "run_steps", target())), host.team(()).libc.ctypes.data
    team = [threading.Thread(target=run, args=(held[0].ctypes.data, libc, who)) for who in range(threads)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    assert sorted((s, i) for s, i, _ in done) == [(s, i) for s, n in enumerate(counts) for i in range(n)]
    last_of = [max(k for k, (s, _, _) in enumerate(done) if s == step) for step in range(4)]
    assert last_of == sorted(last_of)


def test_who_comes_late_finds_its_items_done() -> None:
    """A thread that is put aside before a step holds nobody up: others take what it owns."""
    done: list[tuple[int, int]] = []

    def work(step: int, buffers: int, first: int, last: int, who: int) -> int:
        done.append((first, who))
        return 0

    driver = DRIVER(work)
    held = _job([6], [True], 2, driver, np.zeros(64, np.int64))
    run, libc = RUN_STEPS(native_address("team", "run_steps", target())), host.team(()).libc.ctypes.data
    run(held[0].ctypes.data, libc, 1)
    assert [i for i, _ in done] == [1, 3, 5, 2, 4, 0]
    run(held[0].ctypes.data, libc, 0)
    assert len(done) == 6 and {who for _, who in done} == {1}


READ = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)


def test_lines_that_are_asked_for() -> None:
    """Of the items of thread 1 of 3: their lines, stream by stream, until the most bytes are reached."""
    read = READ(native_address("ahead", "read_ahead", target()))
    ahead = np.zeros(abi.AHEAD_WORDS, np.int64)
    words = {abi.Ahead.ITEMS: 5, abi.Ahead.STRIDE: 256, abi.Ahead.BYTES: 5 * 256 - 128, abi.Ahead.STREAMS: 2}
    for word, value in {**words, abi.Ahead.APART: 128, abi.Ahead.ITEM: 1}.items():
        ahead[word // 8] = value
    asked = 0
    while read(ahead.ctypes.data, 3, 1 << 20):
        asked += 1
        assert asked < 20
    assert ahead[abi.Ahead.SUM // 8] == 256 + 128  # item 1, and what there is of item 4
    assert ahead[abi.Ahead.ITEM // 8] == 7
    ahead[abi.Ahead.ITEM // 8] = 1
    assert read(ahead.ctypes.data, 3, 256) == 0  # more was asked for already


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_layers_that_narrow_the_same_value(threads: int) -> None:
    weights = [array(96, n, seed=n).astype(jnp.bfloat16) for n in (64, 40, 17)]
    x = array(1, 96)

    def fn(w: list[np.ndarray], x: np.ndarray) -> jax.Array:
        y = jnp.tanh(x)
        return jnp.concatenate([(y.astype(jnp.bfloat16) @ m).astype(jnp.float32) for m in w], -1)

    fast = xcoexec.jit(fn, strategy="host", threads=threads, strict=True).bind(weights)
    assert error(np.asarray(fast(x)), oracle(fn, weights, x)) < 1e-2
    prims = [op.prim for layer in fast.graph().layers for op in layer.ops if op.outs[0].dtype == "bfloat16"]
    assert prims.count("convert_element_type") == 1
