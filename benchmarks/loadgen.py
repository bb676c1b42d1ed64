"""`python -m benchmarks.loadgen [model ...] [--scenarios single,server] [--engines ...]`: MLPerf's load generator.

The four scenarios of MLPerf's load generator (PyPI: mlcommons-loadgen) over a function with resident weights
(`xcoexec`), the same behind a `xcoexec.Scheduler` (`scheduler`), ONNX Runtime and plain `jax.jit`, each with the same
weights, images, threads and queue. What is valid is the generator's own judgement of its log; an accuracy run compares
the classes of all images with those of `jax.jit`, product by product in f32.

Server: the most queries a second whose 99th percentile keeps within `--bound` seconds (default: `BOUND_CALLS` calls of
the slowest engine, `LEAST_BOUND` at least); looked for from above, each step a run of its own. Up to `--batch` images
are computed at once. Images are random: the accuracy is that of the arithmetic. Runs are shorter than MLPerf's rules
ask for (`--seconds`, and as many queries as its percentiles need).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import math
import pathlib
import queue
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec import config, models
from xcoexec.ir.text import columns
from xcoexec.papers.source import commit
from xcoexec.tools import bench, lines
from xcoexec.tools.machine import environment

from . import peers

MODELS = ("mobilenet_v2", "resnet50")
ENGINES = ("xcoexec", "scheduler", "onnxruntime", "jax.jit")
IMAGES = 64
BOUND_CALLS, LEAST_BOUND = 4.0, 0.015  # calls of the slowest engine that a query may take, and seconds at least
STEPS = 10  # runs in which Server's rate is looked for
LEAST_SHARE = 0.05  # of the rate of calls without a generator, where that range begins
DOWN = 0.85  # of a rate that is not valid, until one is
SINGLE, MULTI, OFFLINE, SERVER = SCENARIOS = ("single", "multi", "offline", "server")
#: scenario -> (the generator's name, what its summary calls the figure, its unit, factor)
FIGURES = {
    SINGLE: ("SingleStream", r"90.0th percentile latency \(ns\) *: *([\d.]+)", "ms, 90 %", 1e-6),
    MULTI: ("MultiStream", r"99.0th percentile latency \(ns\) *: *([\d.]+)", "ms, 99 %", 1e-6),
    OFFLINE: ("Offline", r"Samples per second: *([\d.]+)", "images/s", 1.0),
    SERVER: ("Server", r"Completed samples per second *: *([\d.]+)", "queries/s", 1.0),
}
LEAST = {SINGLE: 100, MULTI: 700, OFFLINE: 1, SERVER: 700}  # queries that the generator's percentiles need
Call = Callable[[np.ndarray], np.ndarray]  # a batch of images -> a row of results each


def _ours(name: str, threads: int, sizes: Sequence[int]) -> Iterator[Call]:
    entry = models.get(name)
    fast = xcoexec.jit(entry.module.apply, threads=threads).bind(entry.variables(bench.SEED))
    for n in sizes:
        fast.plan(entry.example(n, bench.SEED))
    fast.ready()
    yield lambda x: np.asarray(fast(x))


def _scheduler(name: str, threads: int, sizes: Sequence[int]) -> Iterator[Call]:
    """A task for each size, with no deadline: what a scheduler costs beside the bound function."""
    entry = models.get(name)
    fast = xcoexec.jit(entry.module.apply, threads=threads).bind(entry.variables(bench.SEED))
    tasks = [xcoexec.task(f"{n} images", fast, entry.example(n, bench.SEED), deadline=float("inf")) for n in sizes]
    with xcoexec.Scheduler(tasks) as scheduler:
        yield lambda x: np.asarray(scheduler.release(f"{len(x)} images", x).result())


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
    "jax.jit": _plain,
    "onnxruntime": _onnx,
}


class System:
    """A system under test: queries go through a queue to one thread, which takes what is there, up to the largest of
    `sizes`, and computes it in batches of these sizes, the largest first; a last one is filled up to the least of them.
    """

    def __init__(self, lg: Any, call: Call, images: np.ndarray, sizes: Sequence[int]):
        self._lg, self._call, self._images, self._sizes = lg, call, images, sorted(sizes)
        self._queue: queue.SimpleQueue[Sequence[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        most = self._sizes[-1]
        while (samples := self._queue.get()) is not None:
            samples = list(samples)
            while len(samples) < most and not self._queue.empty():
                further = self._queue.get()
                if further is None:
                    self._queue.put(None)
                    break
                samples += further
            while samples:
                n = max((n for n in self._sizes if n <= len(samples)), default=self._sizes[0])
                self._run(samples[:n], n)
                samples = samples[n:]

    def _run(self, samples: Sequence[Any], n: int) -> None:
        index = [s.index for s in samples]
        out = self._call(self._images[index + index[-1:] * (n - len(index))])
        classes = np.ascontiguousarray(out.reshape(n, -1).argmax(-1).astype(np.int64))
        place = lambda i: (classes[i:].ctypes.data, classes.itemsize)
        self._lg.QuerySamplesComplete([self._lg.QuerySampleResponse(s.id, *place(i)) for i, s in enumerate(samples)])

    @contextmanager
    def running(self) -> Iterator[int]:
        """The generator's handle of this system while its thread works."""
        self._thread.start()
        handle = self._lg.ConstructSUT(self._queue.put, lambda: None)
        try:
            yield handle
        finally:
            self._queue.put(None)
            self._thread.join()
            self._lg.DestroySUT(handle)


def settings(lg: Any, scenario: str, seconds: float, rate: float, bound: float, accuracy: bool) -> Any:
    """The generator's settings; `rate`: expected images a second."""
    s = lg.TestSettings()
    s.scenario = getattr(lg.TestScenario, FIGURES[scenario][0])
    s.mode = lg.TestMode.AccuracyOnly if accuracy else lg.TestMode.PerformanceOnly
    s.min_duration_ms, s.min_query_count = int(seconds * 1e3), LEAST[scenario]
    s.single_stream_expected_latency_ns = s.multi_stream_expected_latency_ns = int(1e9 / rate)
    s.multi_stream_samples_per_query, s.offline_expected_qps = 8, rate
    s.server_target_qps, s.server_target_latency_ns, s.server_target_latency_percentile = rate, int(bound * 1e9), 0.99
    return s


def run(call: Call, images: np.ndarray, sizes: Sequence[int], scenario: str, given: Any, lg: Any) -> tuple[str, Any]:
    """The generator's summary of one run, and its log of results (of an accuracy run)."""
    system = System(lg, call, images, sizes)
    nothing = lambda indices: None
    with tempfile.TemporaryDirectory() as folder, system.running() as sut:
        logs = lg.LogSettings()
        logs.log_output.outdir, logs.log_output.copy_summary_to_stdout, logs.enable_trace = folder, False, False
        library = lg.ConstructQSL(len(images), len(images), nothing, nothing)
        try:
            lg.StartTestWithLogSettings(sut, library, given, logs)
        finally:
            lg.DestroyQSL(library)
        said = pathlib.Path(folder, "mlperf_log_accuracy.json").read_text()
        return pathlib.Path(folder, "mlperf_log_summary.txt").read_text(), json.loads(said or "[]")


def judged(summary: str, scenario: str) -> tuple[bool, float | None]:
    """Whether a run is valid, and its figure."""
    _, pattern, _, factor = FIGURES[scenario]
    found = re.search(pattern, summary)
    return "Result is : VALID" in summary, float(found[1]) * factor if found else None


def agreement(log: Sequence[Mapping[str, Any]], wanted: np.ndarray) -> float:
    """The share of images whose class is the wanted one; all images have to be there."""
    got = {r["qsl_idx"]: int(np.frombuffer(bytes.fromhex(r["data"]), np.int64)[0]) for r in log}
    return float(np.mean([got.get(i) == c for i, c in enumerate(wanted)]))


def most(valid: Callable[[float], bool], low: float, high: float, steps: int = STEPS) -> float:
    """The highest rate that is valid, between `low` and `high`; 0.0 where none of those tried is. It is looked for from
    above, as a run of so many queries takes the longer the fewer come in a second; behind the first valid one by
    halving (by ratio).
    """
    best = 0.0
    for _ in range(steps):
        rate = math.sqrt(best * high) if best else max(DOWN * high, low)
        if valid(rate):
            best = rate
        elif rate == low:
            break
        else:
            high = rate
    return best


@dataclasses.dataclass(frozen=True, eq=False)
class Contest:
    """A model in all engines. `rates`: of each engine and size of a batch the images a second; `bound`: seconds that
    Server's queries may take; `wanted`: the classes of the images.
    """

    lg: Any
    calls: Mapping[str, Call]
    images: np.ndarray
    wanted: np.ndarray
    rates: Mapping[str, Mapping[int, float]]
    bound: float
    seconds: float

    @classmethod
    def of(
        cls, lg: Any, name: str, calls: Mapping[str, Call], sizes: Sequence[int], given: argparse.Namespace
    ) -> Contest:
        """All engines timed alone, and the classes by plain `jax.jit`."""
        entry = models.get(name)
        images = np.concatenate([np.asarray(entry.example(1, i)) for i in range(IMAGES)])
        rates = {e: {n: n / _seconds(call, images[:n]) for n in sizes} for e, call in calls.items()}
        plain, weights = jax.jit(entry.module.apply), entry.variables(bench.SEED)
        parts = [np.asarray(plain(weights, images[i : i + 8])) for i in range(0, IMAGES, 8)]
        wanted = np.concatenate(parts).reshape(IMAGES, -1).argmax(-1)
        bound = given.bound or max(LEAST_BOUND, BOUND_CALLS / min(r[1] for r in rates.values()))
        return cls(lg, calls, images, wanted, rates, bound, given.seconds)

    def go(self, engine: str, scenario: str, rate: float, accuracy: bool = False) -> tuple[str, Any]:
        """One run of the generator's: its summary, and its log of results."""
        sizes = [1] if scenario == SINGLE else list(self.rates[engine])
        given = settings(self.lg, scenario, self.seconds, rate, self.bound, accuracy)
        return run(self.calls[engine], self.images, sizes, scenario, given, self.lg)

    def figure(self, engine: str, scenario: str) -> tuple[bool, float | None]:
        """Whether an engine's run is valid, and its figure; of Server the most queries a second."""
        rates = self.rates[engine]
        if scenario == SERVER:
            valid = lambda rate: judged(self.go(engine, SERVER, rate)[0], SERVER)[0]
            best = most(valid, LEAST_SHARE * rates[1], max(rates.values()) / DOWN)
            return best > 0, best or None
        return judged(self.go(engine, scenario, max(rates.values()) if scenario == OFFLINE else rates[1])[0], scenario)

    def agrees(self, engine: str, scenario: str) -> float:
        """The share of images whose class an accuracy run finds."""
        return agreement(self.go(engine, scenario, 0.5 * self.rates[engine][1], True)[1], self.wanted)


def measure(name: str, given: argparse.Namespace, lg: Any, log: Callable[[str], None]) -> list[dict[str, Any]]:
    """The records of a model: one for each engine and scenario."""
    threads, sizes = config.threads(given.threads), [1, *(n for n in (2, 4, 8, 16) if n <= given.batch)]
    records = []
    with contextlib.ExitStack() as stack:
        calls = {e: stack.enter_context(contextmanager(MAKERS[e])(name, threads, sizes)) for e in given.engines}
        contest = Contest.of(lg, name, calls, sizes, given)
        for scenario, engine in itertools.product(given.scenarios, calls):
            valid, figure = contest.figure(engine, scenario)
            share, unit = contest.agrees(engine, scenario), FIGURES[scenario][2]
            log(f"{name} {scenario} {engine}: {'valid' if valid else 'INVALID'}, {figure} {unit}, {share:.0%}")
            about = dict(model=name, engine=engine, scenario=scenario, valid=valid, figure=figure, agreement=share)
            how = dict(bound=contest.bound, threads=threads, batch=given.batch, seconds=given.seconds)
            records.append({**about, **how, "commit": commit(), **environment(), "versions": peers.versions()})
    return records


def _seconds(call: Call, x: np.ndarray) -> float:
    """The least seconds of some calls."""
    call(x)
    times = []
    for _ in range(7):
        began = time.perf_counter()
        call(x)
        times.append(time.perf_counter() - began)
    return min(times)


def text(records: Sequence[Mapping[str, Any]]) -> str:
    """A line for each model and scenario; "!": the generator says that the run is not valid."""
    engines = list(dict.fromkeys(r["engine"] for r in records))
    rows = [["model", "scenario", "", *engines, "same classes"]]
    for name, scenario in dict.fromkeys((r["model"], r["scenario"]) for r in records):
        of = {r["engine"]: r for r in records if (r["model"], r["scenario"]) == (name, scenario)}
        cell = lambda r: "-" if r["figure"] is None else f"{r['figure']:.2f}" + "!" * (not r["valid"])
        least = min(r["agreement"] for r in of.values())
        rows.append([name, scenario, FIGURES[scenario][2], *(cell(of[e]) for e in engines), f"{least:.1%}"])
    return columns(rows)


def main(argv: Sequence[str] | None = None) -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(prog="benchmarks.loadgen", description=(__doc__ or "").splitlines()[0])
    several = lambda valid: lambda text: [one(valid, word) for word in text.split(",")]
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--scenarios", type=several(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--engines", type=several(ENGINES), default=list(ENGINES))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--bound", type=float, help="seconds that Server's queries may take")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=pathlib.Path, help="a file of lines to which the records are added")
    given = parser.parse_args(argv)
    try:
        import mlperf_loadgen as lg
    except ImportError:
        parser.exit(1, 'benchmarks.loadgen: the generator is missing; pip install "xcoexec[peers]"\n')
    records = []
    for name in given.models:
        found = measure(name, given, lg, lambda line: print(line, flush=True))
        records += found
        if given.out is not None:
            for record in found:
                lines.append(given.out, record)
    print(text(records))


def one(valid: Sequence[str], word: str) -> str:
    """A word of a list. Raises `ValueError` for another one."""
    if word not in valid:
        raise argparse.ArgumentTypeError(f"got {word!r}; valid are {', '.join(valid)}")
    return word


if __name__ == "__main__":
    main()
