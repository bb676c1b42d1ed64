"""Streams of JPEG files through networks: NeuroPipe's comparison (Tables 2, 3 and 5) on this machine.

    python -m benchmarks.streams FOLDER [MODEL...] [--seconds 2] [--workers 1]

`serial`: decode, jax.jit, result, one after the other. `kernels`: the same with our kernels, so that `kernels` over
`serial` is what they give and `pipeline` over `kernels` what pipelining gives. `prefetch`: what users do today, a
thread that decodes ahead and jax.jit's asynchronous dispatch; with `--workers` threads as many as ours get.
`inner-layer`: layers divided between both halves where EdgeNN's planner does so, behind the same prefetch (in Table 2
every layer is). `oblivious`: Table 3's cut, by gamma alone; `neuropipe`: the paper's rule (III-C) with the N_opt that
Equation 1 follows from; `printed`: with N_opt as printed; `cut K`: two stages of which the CPU's begins with layer K,
the ones around the best one by the layers' seconds: the fastest of them as they ran is Table 5's empirical cut;
`exact`: up to three stages; `pipeline`: ours, the whole network or the cut that the stream has found fastest.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from rich.console import Console

import xcoexec
from xcoexec import models
from xcoexec.api.resident import ResidentFunction
from xcoexec.config import cores
from xcoexec.ir.costs import Costs
from xcoexec.ir.text import table
from xcoexec.papers.source import commit
from xcoexec.planning.spans import crossing_bytes
from xcoexec.session.session import Session
from xcoexec.streams.cuts import planned
from xcoexec.streams.item_pipeline import Pipeline
from xcoexec.streams.neuropipe import Around, Cut, best, front_and_rear, oblivious, speedup, two_stages
from xcoexec.streams.stream import Stats, Stream

from .energy import NOT_MEASURED, used
from .gpu import where
from .jpegs import decoder, files, label

MODELS = ("mlp", "mobilenet_v1", "resnet50", "yolov3", "fcn8s")
AHEAD = 2  # decoded items that wait, for everybody
WARM = 6  # items before the clock starts
# and before that of a pipeline: until its queues are full, threads that prepare items take more of the cores than later
FILLED = 16
FEWEST = 5  # items of a run
NEAR, TRIED = 1.25, 8  # times the best cut's seconds by the layers, and cuts, that Table 5's empirical one is sought in
MEASURED_ON = 4  # items that a prediction is made from, as in the paper


def serial(fn: Callable[[Any], Any], before: Callable[[bytes], Any], items: Iterator[bytes]) -> Iterator[Any]:
    for data in items:
        yield label(jax.block_until_ready(fn(before(data))))


def prefetch(
    fn: Callable[[Any], Any], before: Callable[[bytes], Any], items: Iterator[bytes], workers: int
) -> Iterator[Any]:
    """Threads that decode ahead, in order; the network of the next item is dispatched before the result of this one is
    asked for.
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    ready: queue.Queue[Future[Any] | None] = queue.Queue(AHEAD + workers)
    stop = threading.Event()

    def feed() -> None:
        with ThreadPoolExecutor(workers) as pool:
            for data in items:
                if stop.is_set():
                    break
                ready.put(pool.submit(before, data))
            ready.put(None)

    threading.Thread(target=feed, daemon=True).start()
    flying: list[Any] = []
    while (future := ready.get()) is not None:
        flying.append(fn(future.result()))
        if len(flying) > 1:
            yield label(flying.pop(0))
    yield from map(label, flying)
    stop.set()


@dataclasses.dataclass(frozen=True, eq=False)
class Setting:
    """A network, its items, and what was measured on four of them before anything runs as a stream."""

    name: str
    workers: int
    before: Callable[[bytes], np.ndarray]
    plain: Callable[[Any], Any]
    fast: ResidentFunction
    divided: ResidentFunction
    session: Session
    operations: float  # seconds of the user's work an item
    alone: float  # seconds of an item when everything is done one after the other

    @classmethod
    def of(cls, name: str, workers: int, data: list[bytes]) -> Setting:
        entry = models.get(name)
        weights = entry.variables()
        device, jitted = jax.device_put(weights), jax.jit(entry.module.apply)
        plain = lambda x: jitted(device, x)
        fast = xcoexec.jit(entry.module.apply, wait=True).bind(weights)
        divided = xcoexec.jit(entry.module.apply, strategy="edgenn").bind(weights)
        before = decoder(entry.shape)
        for f in (fast, divided, plain):
            jax.block_until_ready(f(before(data[0])))
        session = fast.session()
        session.costs()
        few = data[:MEASURED_ON] * 4
        operations = float(np.median([_seconds(before, d) for d in few]))
        alone = float(np.median([_seconds(lambda d: next(serial(plain, before, iter([d]))), d) for d in few]))
        return cls(name, workers, before, plain, fast, divided, session, operations, alone)

    @property
    def costs(self) -> Costs:
        return self.session.costs()

    @property
    def around(self) -> Around:
        return Around(self.operations, 0.0, self.workers)

    @property
    def alpha(self) -> float:
        return self.operations / (self.operations + sum(self.costs.device))

    @property
    def gamma(self) -> float:
        return sum(t or 0.0 for t in self.costs.host) / sum(self.costs.device)

    def cuts(self) -> dict[str, Cut]:
        """The cuts that are compared, on a machine with a device of its own."""
        if self.costs.shared_cores:
            return {}
        n, nbytes = len(self.session.graph.layers), crossing_bytes(self.session.graph)
        counts = [x.flops for x in self.session.graph.layers]
        return {
            "oblivious": front_and_rear(oblivious(self.costs, counts), n),
            "neuropipe": planned(self.session, "neuropipe", self.around),
            "printed": planned(self.session, "neuropipe, printed", self.around),
            **{f"cut {k}": front_and_rear(k, n) for k in tried(self.costs, nbytes, self.operations)},
            "exact": Cut(best(self.costs, nbytes, self.around, cores(), self.session.machine.threads).stages),
        }


@dataclasses.dataclass(eq=False)
class Way:
    """One way of getting a stream's results, and what its runs gave: items a second, joules an item and, of pipelines,
    the statistics of each run and of its first few items."""

    make: Callable[[Iterator[bytes]], Iterator[Any]]
    pipeline: Pipeline | None = None
    rates: list[float] = dataclasses.field(default_factory=list)
    joules: list[dict[str, float | str]] = dataclasses.field(default_factory=list)
    stats: list[Stats] = dataclasses.field(default_factory=list)
    early: list[Stats] = dataclasses.field(default_factory=list)

    def begin(self, data: list[bytes]) -> tuple[threading.Event, Iterator[Any]]:
        """What ends a stream over all items again and again, and its results."""
        ended = threading.Event()
        return ended, self.make(x for x in itertools.takewhile(lambda _: not ended.is_set(), itertools.cycle(data)))

    def settle(self, data: list[bytes]) -> None:
        """Until it is known which way of computing the network a pipeline keeps."""
        ended, results = self.begin(data)
        for i, _ in enumerate(results):
            if i >= WARM and (self.pipeline is None or self.pipeline.decided):
                ended.set()

    def run(self, data: list[bytes], seconds: float) -> None:
        """Once more, from the start of a stream to its end."""
        ended, results = self.begin(data)
        for _ in range(WARM + MEASURED_ON + FILLED * (self.pipeline is not None)):
            next(results)
        if isinstance(results, Stream):
            self.early.append(results.stats(MEASURED_ON))
        begin = time.perf_counter()

        def work() -> int:
            count = 0
            while time.perf_counter() - begin < seconds or count < FEWEST:
                next(results)
                count += 1
            self.rates.append(count / (time.perf_counter() - begin))
            return count

        self.joules.append(used(work))
        ended.set()
        for _ in results:
            pass
        if isinstance(results, Stream):
            self.stats.append(results.stats())

    @property
    def rate(self) -> float:
        return float(np.median(self.rates))

    @property
    def foreseen(self) -> float:
        """The rate that four items of each run promised over the rate that it had (the machine's speed changes from run
        to run).
        """
        return float(
            np.median([1 / (max(s.stages.values()) * rate) for s, rate in zip(self.early, self.rates, strict=True)])
        )

    def energy(self) -> dict[str, Any]:
        """Joules, watts and joules times seconds between results (the energy-delay product), of an item; by counter."""
        out: dict[str, Any] = {}
        for k in self.joules[0]:
            found = [j[k] for j in self.joules if not isinstance(j[k], str)]
            j = float(np.median(found)) if found else None
            out[k] = NOT_MEASURED if j is None else {"joules": j, "watts": j * self.rate, "edp": j / self.rate}
        return out


def ways(s: Setting) -> dict[str, Way]:
    """What is compared; ours last."""
    out = {
        "serial": Way(lambda items: serial(s.plain, s.before, items)),
        "kernels": Way(lambda items: serial(s.fast, s.before, items)),
        "prefetch": Way(lambda items: prefetch(s.plain, s.before, items, s.workers)),
        "inner-layer": Way(lambda items: prefetch(s.divided, s.before, items, s.workers)),
    }
    for k, cut in {**s.cuts(), "pipeline": None}.items():
        pipe = xcoexec.pipeline(s.fast, preprocess=s.before, postprocess=label, workers=s.workers, depth=AHEAD, cut=cut)
        out[k] = Way(pipe, pipe)
    return out


def tried(costs: Costs, nbytes: list[int], operations: float) -> list[int]:
    """The cuts into two stages among which the empirical one is sought: the best by the layers' seconds and those near
    it, so that `TRIED` run at most.
    """
    able = [t is not None for t in costs.host]
    seconds = {k: max(two_stages(costs, nbytes, k, operations)) for k in range(1, len(able) + 1) if all(able[k:])}
    near = [k for k, t in seconds.items() if t <= NEAR * min(seconds.values())]
    return sorted(sorted(near, key=lambda k: seconds[k])[:TRIED])


def empirical(rates: dict[str, float]) -> str | None:
    """Table 5's empirical cut: of the cuts into two stages that ran the fastest one; None where none ran."""
    return max((k for k in rates if k.startswith("cut ")), key=lambda k: rates[k], default=None)


def gains(found: dict[str, Way]) -> dict[str, list[float]]:
    """What pipelining gives with the same kernels, what the kernels give without it, and both together: items a second
    over items a second, of each round.
    """
    over = {"pipelining": ("pipeline", "kernels"), "kernels": ("kernels", "serial"), "both": ("pipeline", "serial")}
    return {
        k: [x / y for x, y in zip(found[a].rates, found[b].rates, strict=True)]
        for k, (a, b) in over.items()
        if a in found and b in found
    }


def run(name: str, seconds: float, workers: int, rounds: int, chosen: list[str] | None = None) -> dict[str, Any]:
    data, load = files(), os.getloadavg()[0]
    setting = Setting.of(name, workers, data)
    found = {k: w for k, w in ways(setting).items() if not chosen or k in chosen}
    want = next(found["serial"].make(iter(data[:1])))
    right = {
        k: all(np.mean(a == b) > 0.99 for a, b in zip(next(w.make(iter(data[:1]))), want, strict=True))
        for k, w in found.items()
    }
    for w in found.values():
        w.settle(data)
    for _ in range(rounds):  # alternating
        for w in found.values():
            w.run(data, seconds)
    piped = {k: (w, w.pipeline) for k, w in found.items() if w.pipeline is not None}
    (kept,) = (t.chosen for t in piped["pipeline"][1].networks.known.values())
    cut = kept.cut
    return {
        "suite": "neuropipe",
        "model": name,
        "machine": where(),
        "precision": str(jax.config.jax_default_matmul_precision),
        "workers": workers,
        "operations": setting.operations,
        "alpha": setting.alpha,
        "gamma": setting.gamma,
        "items_a_second": {k: w.rate for k, w in found.items()},
        "rounds": {k: w.rates for k, w in found.items()},
        "gains": gains(found),
        "empirical": empirical({k: w.rate for k, w in found.items()}),
        "layers": len(setting.session.graph.layers),
        "seconds": seconds,
        "commit": commit(),
        "load": load,
        "right": right,
        "of_slowest_stage": {
            k: w.rate * float(np.median([max(s.stages.values()) for s in w.stats])) for k, (w, _) in piped.items()
        },
        "cut": None if cut is None else str(cut),
        "halves": setting.fast.plan().engine if cut is None else "cut",
        "threads": kept.threads,
        "predicted": {
            "equation 1": speedup(setting.alpha, setting.gamma),
            **{k: setting.alone / p.periods(setting.around)[0] for k, (_, p) in piped.items()},
        },
        "busiest": {k: float(np.median([max(s.busy.values()) for s in w.stats])) for k, (w, _) in piped.items()},
        "stages": {k: w.stats[-1].stages for k, (w, _) in piped.items()},
        "predicted_by_four": {k: w.foreseen * w.rate / found["serial"].rate for k, (w, _) in piped.items()},
        "faster": {k: w.rate / found["serial"].rate for k, (w, _) in piped.items()},
        "energy": {k: w.energy() for k, w in found.items()},
        "xcoexec": xcoexec.__version__,
    }


def _seconds(fn: Callable[[bytes], Any], x: bytes) -> float:
    begin = time.perf_counter()
    fn(x)
    return time.perf_counter() - begin


def row(r: dict[str, Any], names: list[str]) -> list[str]:
    rates, base = r["items_a_second"], r["items_a_second"]["prefetch"]
    cells = [f"{rates[k]:.1f} ({rates[k] / base:.2f})" if k in rates else "-" for k in names]
    over = ", ".join(f"{r[k]['pipeline']:.2f}" for k in ("predicted", "predicted_by_four", "faster"))
    ends = [
        f"{r['of_slowest_stage']['pipeline']:.0%}, {r['busiest']['pipeline']:.0%}",
        over,
        "; ".join(_energy(k, r["energy"]["pipeline"][k]) for k in r["energy"]["pipeline"]),
    ]
    return [r["model"], f"{r['operations'] * 1e3:.2f}", f"{r['alpha']:.2f}", f"{r['gamma']:.2f}", *cells, *ends]


def _energy(counter: str, e: Any) -> str:
    return (
        f"{counter} {e}"
        if isinstance(e, str)
        else f"{counter} {e['joules']:.2f} J, {e['watts']:.0f} W, {e['edp'] * 1e3:.2f} mJs"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streams", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", default=[], choices=[*models.NAMES, []])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--ways", nargs="+", help="only these, which have to include serial, kernels, prefetch and pipeline"
    )
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    records = []
    with (args.folder / "streams.jsonl").open("a") as out:
        for name in args.models or MODELS:
            records.append(run(name, args.seconds, args.workers, args.rounds, args.ways))
            out.write(json.dumps(records[-1]) + "\n")
            out.flush()
    names = list(records[0]["items_a_second"])
    ends = (
        "of 1/(median of the slowest stage), busiest stage at work",
        "over serial: predicted alone, by four items of the stream, measured",
        "energy an item",
    )
    head = ("model", "host ms", "alpha", "gamma", *(f"{k}: items/s (of prefetch)" for k in names), *ends)
    Console(width=260).print(
        table(records[0]["machine"], head, [row(r, names) for r in records], right=range(1, len(head)))
    )


if __name__ == "__main__":
    main()
