"""Streams of JPEG files through networks: NeuroPipe's comparison (Tables 2, 3 and 5) on this machine.

    python -m benchmarks.streams FOLDER [MODEL...] [--seconds 2] [--workers 1]

`serial`: decode, jax.jit, result, one after the other. `prefetch`: what users do today, a thread that decodes ahead and jax.jit's
asynchronous dispatch; with `--workers` threads as many as ours get. `oblivious`: a pipeline cut where both stages have half of the
accelerator's time (Table 3). `inner-layer`: every layer divided between both halves, behind the same prefetch (Table 2). `neuropipe`:
the paper's cut; `printed`: with its misprint; `best`: the best of all cuts by brute force over two stages, measured. `pipeline`: ours.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import pathlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from PIL import Image
from rich.console import Console
from sklearn.datasets import load_sample_images

import xcoexec
from xcoexec import models
from xcoexec.config import cores
from xcoexec.pretty import table
from xcoexec.streams.cuts import crossed, planned
from xcoexec.streams.neuropipe import Around, Cut, best, front_and_rear, neuropipe, speedup, two_stages

from .energy import joules
from .gpu import where

MODELS = ("mlp", "mobilenet_v2", "resnet50", "yolov3", "fcn8s")
AHEAD = 2  # decoded items that wait, for everybody
WARM = 6  # items before the clock starts
MEAN, DEVIATION = np.float32((0.485, 0.456, 0.406)), np.float32((0.229, 0.224, 0.225))


def files() -> list[bytes]:
    """The sample photographs of scikit-learn as JPEG files, four crops each so that no two neighbours are the same."""
    out = []
    for image in load_sample_images().images:
        for dy, dx in itertools.product((0, 16), (0, 24)):
            file = io.BytesIO()
            Image.fromarray(image[dy : dy + 400, dx : dx + 600]).save(file, "JPEG", quality=90)
            out.append(file.getvalue())
    return out


def decoder(shape: tuple[int, ...]) -> Callable[[bytes], np.ndarray]:
    """Decode, resize and normalise for a network's input: an image, or 50 x 50 grey values in a row."""

    def image(data: bytes) -> np.ndarray:
        x = np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize(shape[1::-1]), np.float32)
        return ((x / 255 - MEAN) / DEVIATION)[None]

    def row(data: bytes) -> np.ndarray:
        side = round(shape[0] ** 0.5)
        return (np.asarray(Image.open(io.BytesIO(data)).convert("L").resize((side, side)), np.float32) / 255).reshape(1, -1)

    return image if len(shape) == 3 else row


def label(out: Any) -> Any:
    """The user's work behind the network: results on the host."""
    return [np.asarray(x).argmax(-1) for x in jax.tree_util.tree_leaves(out)]


def serial(fn: Callable[[Any], Any], before: Callable[[bytes], Any], items: Iterator[bytes]) -> Iterator[Any]:
    for data in items:
        yield label(jax.block_until_ready(fn(before(data))))


def prefetch(fn: Callable[[Any], Any], before: Callable[[bytes], Any], items: Iterator[bytes], workers: int) -> Iterator[Any]:
    """Threads that decode ahead, in order; the network of the next item is dispatched before the result of this one is asked for."""
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


def throughput(make: Callable[[Iterator[bytes]], Iterator[Any]], data: list[bytes], seconds: float) -> float:
    """Items a second."""
    ended = threading.Event()
    endless = (x for x in itertools.takewhile(lambda _: not ended.is_set(), itertools.cycle(data)))
    results = make(endless)
    for _ in range(WARM):
        next(results)
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds or count < 5:
        next(results)
        count += 1
    took = time.perf_counter() - begin
    ended.set()
    for _ in results:
        pass
    return count / took


def oblivious(costs: Any) -> Cut:
    """Half of the accelerator's time for each stage, as if both processors were alike."""
    n, half = len(costs.device), sum(costs.device) / 2
    k = min(range(1, n), key=lambda k: abs(sum(costs.device[:k]) - half))
    return front_and_rear(k, n)


def every_cut(costs: Any, nbytes: list[int], operations: float) -> int:
    """The best two stages, with the host operations in the CPU's (Table 5)."""
    return min(range(1, len(costs.device) + 1), key=lambda k: max(two_stages(costs, nbytes, k, operations)))


def run(name: str, seconds: float, workers: int, rounds: int, ways: list[str] | None = None) -> dict[str, Any]:
    entry, data = models.get(name), files()
    before, weights = decoder(entry.shape), entry.variables()
    plain = jax.jit(entry.module.apply)
    device = jax.device_put(weights)
    fast = xcoexec.jit(entry.module.apply).bind(weights)
    divided = xcoexec.jit(entry.module.apply, strategy="edgenn").bind(weights)
    x = before(data[0])
    for f in (fast, divided, lambda x: plain(device, x)):
        jax.block_until_ready(f(x))
    s = fast._used("streams").stages
    costs, nbytes = s.measured_costs(), crossed(s)
    operations = float(np.median([_seconds(before, d) for d in data * 4]))
    n, around = len(s.graph.layers), Around(operations, 0.0, workers)
    alpha, gamma = operations / (operations + sum(costs.device)), sum(t or 0 for t in costs.host) / sum(costs.device)
    pipelines = {"pipeline": xcoexec.pipeline(fast, preprocess=before, postprocess=label, workers=workers, depth=AHEAD)}
    if not costs.shared_cores:
        cuts = {
            "oblivious": oblivious(costs),
            "neuropipe": planned(s, "neuropipe", around),
            "printed": planned(s, "neuropipe, printed", around),
            "best": front_and_rear(every_cut(costs, nbytes, operations), n),
            "exact": best(costs, nbytes, around, cores(), s.threads),
        }
        for k, c in cuts.items():
            pipelines[k] = xcoexec.pipeline(fast, preprocess=before, postprocess=label, workers=workers, depth=AHEAD, cut=Cut(c.stages))
    makers: dict[str, Callable[[Iterator[bytes]], Iterator[Any]]] = {
        "serial": lambda items: serial(lambda x: plain(device, x), before, items),
        "prefetch": lambda items: prefetch(lambda x: plain(device, x), before, items, workers),
        "inner-layer": lambda items: prefetch(divided, before, items, workers),
    }
    streams: dict[str, Any] = {}

    def stream(k: str, items: Iterator[bytes]) -> Iterator[Any]:
        streams[k] = pipelines[k](items)
        return streams[k]

    makers.update((k, lambda items, k=k: stream(k, items)) for k in pipelines)
    if ways:
        makers = {k: v for k, v in makers.items() if k in ways}
        pipelines = {k: v for k, v in pipelines.items() if k in ways}
    want = next(makers["serial"](iter(data[:1])))
    right = {k: all(np.mean(a == b) > 0.99 for a, b in zip(next(make(iter(data[:1]))), want, strict=True)) for k, make in makers.items()}
    rates: dict[str, list[float]] = {k: [] for k in makers}
    slowest: dict[str, list[float]] = {k: [] for k in pipelines}
    for _ in range(rounds):  # alternating
        for k, make in makers.items():
            rates[k].append(throughput(make, data, seconds))
            if k in streams:
                stats = streams[k].stats()
                slowest[k].append(max(stats.stages.values()))
    medians = {k: float(np.median(v)) for k, v in rates.items()}
    cut = pipelines["pipeline"].cuts[0]
    ours = best(costs, nbytes, around, cores(), s.threads)
    return {
        "suite": "neuropipe",
        "model": name,
        "machine": where(),
        "precision": str(jax.config.jax_default_matmul_precision),
        "workers": workers,
        "operations": operations,
        "alpha": alpha,
        "gamma": gamma,
        "items_a_second": medians,
        "rounds": rates,
        "right": right,
        "of_slowest_stage": {k: medians[k] * float(np.median(v)) for k, v in slowest.items()},
        "cut": None if cut is None else str(cut),
        "halves": fast.plan().engine if cut is None else "cut",
        "predicted": {
            "equation 1": speedup(alpha, gamma),
            "neuropipe": _over_serial(two_stages(costs, nbytes, neuropipe(costs, operations), operations), costs, operations),
            "exact": (operations + sum(costs.device)) / ours.period,
        },
        "joules_an_item": joules(lambda: jax.block_until_ready(fast(x)), 0.5),
        "xcoexec": xcoexec.__version__,
    }


def _over_serial(stages: tuple[float, float], costs: Any, operations: float) -> float:
    return float((operations + sum(costs.device)) / max(stages))


def _seconds(fn: Callable[[bytes], Any], x: bytes) -> float:
    begin = time.perf_counter()
    fn(x)
    return time.perf_counter() - begin


def row(r: dict[str, Any], names: list[str]) -> list[str]:
    rates, base = r["items_a_second"], r["items_a_second"]["prefetch"]
    cells = [f"{rates[k]:.1f} ({rates[k] / base:.2f})" if k in rates else "-" for k in names]
    return [r["model"], f"{r['operations'] * 1e3:.2f}", f"{r['alpha']:.2f}", f"{r['gamma']:.2f}", *cells, f"{r['of_slowest_stage']['pipeline']:.0%}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", default=[], choices=[*models.NAMES, []])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ways", nargs="+", help="only these, which have to include serial, prefetch and pipeline")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    records = []
    with (args.folder / "streams.jsonl").open("a") as out:
        for name in args.models or MODELS:
            records.append(run(name, args.seconds, args.workers, args.rounds, args.ways))
            out.write(json.dumps(records[-1]) + "\n")
            out.flush()
    names = list(records[0]["items_a_second"])
    head = ("model", "host ms", "alpha", "gamma", *(f"{k}: items/s (of prefetch)" for k in names), "of 1/slowest stage")
    Console(width=260).print(table(records[0]["machine"], head, [row(r, names) for r in records], right=range(1, len(head))))


if __name__ == "__main__":
    main()
