"""What `benchmarks.loadgen` drives: a model of the zoo as a function of a batch of images, in each engine."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec import models
from xcoexec.tools import bench

from . import peers

ENGINES = ("xcoexec", "scheduler", "pipeline", "onnxruntime", "jax.jit")
Call = Callable[[np.ndarray], np.ndarray]  # a batch of images -> a row of results each


def _bound(name: str, threads: int, sizes: Sequence[int]) -> Any:
    """A model with resident weights, with a plan for each size of a batch."""
    entry = models.get(name)
    fast = xcoexec.jit(entry.module.apply, threads=threads).bind(entry.variables(bench.SEED))
    for n in sizes:
        fast.plan(entry.example(n, bench.SEED))
    fast.ready()
    return fast


def _ours(name: str, threads: int, sizes: Sequence[int]) -> Iterator[Call]:
    fast = _bound(name, threads, sizes)
    yield lambda x: np.asarray(fast(x))


def _scheduler(name: str, threads: int, sizes: Sequence[int]) -> Iterator[Call]:
    """A task for each size, with no deadline: what a scheduler costs beside the bound function."""
    entry, fast = models.get(name), _bound(name, threads, sizes)
    tasks = [xcoexec.task(f"{n} images", fast, entry.example(n, bench.SEED), deadline=float("inf")) for n in sizes]
    with xcoexec.Scheduler(tasks) as scheduler:
        yield lambda x: np.asarray(scheduler.release(f"{len(x)} images", x).result())


def _pipeline(name: str, threads: int, sizes: Sequence[int]) -> Iterator[Call]:
    """A stream of batches, the next one given when the last one has come: what its threads cost."""
    given: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()

    def items() -> Iterator[np.ndarray]:
        while (x := given.get()) is not None:
            yield x

    with xcoexec.pipeline(_bound(name, threads, sizes))(items()) as stream:

        def call(x: np.ndarray) -> np.ndarray:
            given.put(x)
            return np.asarray(next(stream))

        yield call
        given.put(None)


def _plain(name: str, threads: int, sizes: Sequence[int]) -> Iterator[Call]:
    entry = models.get(name)
    weights, plain = entry.variables(bench.SEED), jax.jit(entry.module.apply)
    yield lambda x: np.asarray(plain(weights, x))


def _onnx(name: str, threads: int, sizes: Sequence[int]) -> Iterator[Call]:
    sessions = {n: peers.ort_session(name, n, threads) for n in sizes}
    inputs = {n: s.get_inputs()[0].name for n, s in sessions.items()}
    yield lambda x: sessions[len(x)].run(None, {inputs[len(x)]: x})[0]


MAKERS: Mapping[str, Callable[[str, int, Sequence[int]], Iterator[Call]]] = {
    "xcoexec": _ours,
    "scheduler": _scheduler,
    "pipeline": _pipeline,
    "jax.jit": _plain,
    "onnxruntime": _onnx,
}
