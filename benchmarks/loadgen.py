"""`python -m benchmarks.loadgen [model ...] [--scenarios single,server] [--engines ...]`: MLPerf's load generator.

The four scenarios of MLPerf's load generator (PyPI: mlcommons-loadgen) over a function with resident weights
(`xcoexec`), the same behind a `xcoexec.Scheduler` (`scheduler`) and in a `xcoexec.pipeline` (`pipeline`), ONNX Runtime
and plain `jax.jit`, each with the same weights, images, threads and queue. What is valid is the generator's own
judgement of its log; an accuracy run compares the classes of all images with those of `jax.jit`, product by product in
f32. Up to `--batch` images are computed at once, where an engine computes so many faster than fewer.

Server: the most queries a second whose 99th percentile keeps within `--bound` seconds (default: `BOUND_CALLS` calls of
the slowest engine, `LEAST_BOUND` at least). Each engine's rate is looked for from half of what its calls alone reach,
each step a run of its own, the engines in turn; batches that take more than half of the bound are not used. Images are
random: the accuracy is that of the arithmetic. Runs are shorter than MLPerf's rules ask for (`--seconds`, and as many
queries as its percentiles need); `--rounds` of them are recorded, with their median.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import pathlib
import queue
import re
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from xcoexec import config, models
from xcoexec.ir.text import columns
from xcoexec.papers.source import commit
from xcoexec.tools import bench, lines
from xcoexec.tools.machine import environment

from . import peers
from .loadgen_engines import ENGINES, MAKERS, Call
from .undisturbed import TRIES, undisturbed

MODELS = ("mobilenet_v2", "resnet50")
IMAGES = 64
BOUND_CALLS, LEAST_BOUND = 4.0, 0.015  # calls of the slowest engine that a query may take, and seconds at least
RUNS = 2  # of a rate, where late queries of the machine's own decide
STEPS = 10  # rates that are tried for Server's, at most
LEAST_SHARE = 0.05  # of the rate of calls without a generator, where that range begins
BEYOND = 1.25  # times that rate, where it ends: calls may have been timed while others disturbed them
FINE = 1.1  # ratio of the lowest rate that is not valid to the highest that is, at which the search ends
SINGLE, MULTI, OFFLINE, SERVER = SCENARIOS = ("single", "multi", "offline", "server")
HIGH = r"99.0\d* *(?:th)? *percentile latency \(ns\) *: *([\d.]+)"  # in the generator's summary
#: scenario -> (the generator's name, what its summary calls the figure, its unit, factor)
FIGURES = {
    SINGLE: ("SingleStream", r"90.0th percentile latency \(ns\) *: *([\d.]+)", "ms, 90 %", 1e-6),
    MULTI: ("MultiStream", HIGH, "ms, 99 %", 1e-6),
    OFFLINE: ("Offline", r"Samples per second: *([\d.]+)", "images/s", 1.0),
    SERVER: ("Server", r"Completed samples per second *: *([\d.]+)", "queries/s", 1.0),
}
LEAST = {SINGLE: 100, MULTI: 670, OFFLINE: 1, SERVER: 700}  # queries that the generator's percentiles need


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


def usable(rates: Mapping[int, float], longest: float = math.inf) -> list[int]:
    """Sizes of batches with which an engine computes more images a second than with any smaller one, and which take at
    most `longest` seconds; one image always. `rates`: images a second of each size.
    """
    found = [n for n in sorted(rates) if all(rates[n] > rates[m] for m in rates if m < n)]
    return [n for n in found if n == found[0] or n / rates[n] <= longest]


def most(low: float, high: float, steps: int = STEPS) -> Generator[float, bool, float]:
    """Looks for the highest rate that is valid, between `low` and `high`: yields rates, is sent whether each is valid,
    and returns the best (0.0 where none is). It begins at half of `high`, goes down by halves until one is valid, and
    then goes on by ratio until that one and the lowest that is not are less than `FINE` apart.
    """
    best = 0.0
    for _ in range(steps):
        rate = math.sqrt(best * high) if best else max(0.5 * high, low)
        if (yield rate):
            best = rate
        elif rate <= low:
            break
        else:
            high = rate
        if best and high < FINE * best:
            break
    return best


def in_turn(
    valid: Mapping[str, Callable[[float], bool]], ranges: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """The highest valid rate of each engine; their runs alternate, so that what disturbs a while disturbs all."""
    searches = {e: most(*ranges[e]) for e in valid}
    rates, best = {e: next(s) for e, s in searches.items()}, dict[str, float]()
    while rates:
        for engine, rate in list(rates.items()):
            try:
                rates[engine] = searches[engine].send(valid[engine](rate))
            except StopIteration as end:
                best[engine] = end.value
                del rates[engine]
    return best


@dataclasses.dataclass(frozen=True, eq=False)
class Contest:
    """A model in all engines. `rates`: of each engine and size of a batch the images a second; `bound`: seconds that
    Server's queries may take; `wanted`: the classes of the images; `beside`: of each scenario the most that other
    processes had of the cores during a run that counts.
    """

    lg: Any
    calls: Mapping[str, Call]
    images: np.ndarray
    wanted: np.ndarray
    rates: Mapping[str, Mapping[int, float]]
    bound: float
    seconds: float
    tries: int
    log: Callable[[str], None]
    beside: dict[str, float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        lg: Any,
        name: str,
        calls: Mapping[str, Call],
        sizes: Sequence[int],
        given: argparse.Namespace,
        log: Callable[[str], None],
    ) -> Contest:
        """All engines timed alone, and the classes by plain `jax.jit`."""
        entry = models.get(name)
        images = np.concatenate([np.asarray(entry.example(1, i)) for i in range(IMAGES)])
        timed = lambda n: undisturbed(
            lambda: {e: n / _seconds(call, images[:n]) for e, call in calls.items()}, config.cores(), given.tries
        )[0]
        found = {n: timed(n) for n in sizes}
        rates = {e: {n: found[n][e] for n in sizes} for e in calls}
        plain, weights = jax.jit(entry.module.apply), entry.variables(bench.SEED)
        parts = [np.asarray(plain(weights, images[i : i + 8])) for i in range(0, IMAGES, 8)]
        wanted = np.concatenate(parts).reshape(IMAGES, -1).argmax(-1)
        bound = given.bound or max(LEAST_BOUND, BOUND_CALLS / min(r[1] for r in rates.values()))
        return cls(lg, calls, images, wanted, rates, bound, given.seconds, given.tries, log)

    def sizes(self, engine: str, scenario: str) -> list[int]:
        """The batches that an engine computes in a scenario."""
        longest = {SINGLE: 0.0, SERVER: 0.5 * self.bound}.get(scenario, math.inf)
        return usable(self.rates[engine], longest)

    def go(self, engine: str, scenario: str, rate: float, accuracy: bool = False) -> tuple[str, Any]:
        """One run of the generator's: its summary, and its log of results. Where other processes disturb it, it is made
        again; one of `MULTI` takes too long for that.
        """
        given = settings(self.lg, scenario, self.seconds, rate, self.bound, accuracy)
        one = lambda: run(self.calls[engine], self.images, self.sizes(engine, scenario), scenario, given, self.lg)
        again = 1 if accuracy or scenario == MULTI else self.tries
        found, share = undisturbed(one, config.cores(), again)
        self.beside[scenario] = max(self.beside.get(scenario, 0.0), 0.0 if accuracy else share)
        return found

    def figures(self, scenario: str) -> dict[str, tuple[bool, float | None]]:
        """Of each engine whether its run is valid, and its figure; of Server the most queries a second."""
        if scenario == SERVER:
            valid = lambda e: lambda rate: self.keeps(e, rate)
            reach = {e: max(self.rates[e][n] for n in self.sizes(e, SERVER)) for e in self.calls}
            best = in_turn(
                {e: valid(e) for e in self.calls}, {e: (LEAST_SHARE * r, BEYOND * r) for e, r in reach.items()}
            )
            return {e: (rate > 0, rate or None) for e, rate in best.items()}
        rate = lambda r: max(r.values()) if scenario == OFFLINE else r[1]
        return {e: judged(self.go(e, scenario, rate(self.rates[e]))[0], scenario) for e in self.calls}

    def keeps(self, engine: str, rate: float) -> bool:
        """Whether so many queries a second are answered within the bound, and says it. The generator allows one late
        query of `LEAST`: where the percentile is within the bound and the run is not valid, it is made once more.
        """
        for _ in range(RUNS):
            summary, _ = self.go(engine, SERVER, rate)
            late, valid = re.search(HIGH, summary), judged(summary, SERVER)[0]
            ms, said = float(late[1]) / 1e6 if late else math.nan, "valid" if valid else "not valid"
            bound = f"{ms:.1f} ms of {1e3 * self.bound:.1f}"
            self.log(f"  {engine}: {rate:.2f} queries/s, 99 % of them within {bound}: {said}")
            if valid or not ms <= 1e3 * self.bound:
                break
        return valid

    def agrees(self, engine: str, scenario: str) -> float:
        """The share of images whose class an accuracy run finds."""
        return agreement(self.go(engine, scenario, 0.5 * self.rates[engine][1], True)[1], self.wanted)


def measure(name: str, given: argparse.Namespace, lg: Any, log: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """The records of a model, one for each engine and scenario, as soon as each is there."""
    threads, sizes = config.threads(given.threads), [1, *(n for n in (2, 4, 8, 16) if n <= given.batch)]
    with contextlib.ExitStack() as stack:
        calls = {e: stack.enter_context(contextmanager(MAKERS[e])(name, threads, sizes)) for e in given.engines}
        contest = Contest.of(lg, name, calls, sizes, given, log)
        for scenario in given.scenarios:
            rounds = [contest.figures(scenario) for _ in range(given.rounds)]
            for engine in calls:
                figures, share = [r[engine][1] for r in rounds], contest.agrees(engine, scenario)
                valid, known = all(r[engine][0] for r in rounds), [f for f in figures if f is not None]
                figure, unit = float(np.median(known)) if known else None, FIGURES[scenario][2]
                log(f"{name} {scenario} {engine}: {'valid' if valid else 'INVALID'}, {figures} {unit}, {share:.0%}")
                about = dict(model=name, engine=engine, scenario=scenario, valid=valid, figure=figure, figures=figures)
                how = dict(bound=contest.bound, threads=threads, seconds=given.seconds, agreement=share)
                how |= dict(
                    others=contest.beside[scenario], sizes=contest.sizes(engine, scenario), rates=contest.rates[engine]
                )
                yield {**about, **how, "commit": commit(), **environment(), "versions": peers.versions()}


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
    parser.add_argument("--rounds", type=int, default=1, help="runs, or searches, whose median is the figure")
    parser.add_argument("--tries", type=int, default=TRIES, help="of a run, until other processes leave it alone")
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
        for record in measure(name, given, lg, lambda line: print(line, flush=True)):
            records.append(record)
            if given.out is not None:
                lines.append(given.out, record)
    print(text(records))


def one(valid: Sequence[str], word: str) -> str:
    """A word of a list. Raises `ValueError` for another one."""
    if word not in valid:
        raise argparse.ArgumentTypeError(f"got {word!r}; valid are {', '.join(valid)}")
    return word


if __name__ == "__main__":
    main()
