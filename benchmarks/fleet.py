"""`python -m benchmarks.fleet [data] [start] [serve] [simulate]`: a network in Ray's actors (extra "ray").

`data`: `--images` images through two actors of Ray Data, of which one is killed on the way, beside a process on its own
with as many cores; each image has to come once, with the class that this process finds. `start`: seconds until the
second actor has answered, when the first one's plan is known. `serve`: a replica of Ray Serve under an open loop
(random arrivals, which wait for nobody) at rising rates, each row a request (`served`) and through a `fleet.Client`
that sends rows together (`gathered`), beside `xcoexec.Scheduler` in this process: median and 99th percentile of the
latency. `simulate`: what this machine measures as a host of a fleet, and what 1 to 64 such hosts come to by arithmetic
and by a replay of all events; where the driver does not keep up with 64, all of it once more with batches for which it
does.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import xcoexec
from xcoexec import config, fleet, models
from xcoexec.papers.source import commit
from xcoexec.tools import lines
from xcoexec.tools.machine import environment

from . import fleet_costs, fleet_hosts

PARTS = ("data", "start", "serve", "simulate")
BATCH, BLOCKS = 64, 40
RATES = (25, 50, 100, 200, 400, 800, 1600, 3200, 6400)  # arrivals a second
SATURATED = 0.5  # seconds of the median latency, behind which no higher rate is tried
Record = dict[str, Any]


def dying(marker: str, batch: int) -> Callable[[Any], np.ndarray]:
    """Classes of results; the first process to come to its call number `batch` is killed there."""
    calls = iter(range(1 << 30))

    def finish(y: Any) -> np.ndarray:
        if next(calls) == batch and not os.path.exists(marker):
            pathlib.Path(marker).write_text(str(os.getpid()))
            os.kill(os.getpid(), 9)
        return np.asarray(y).argmax(-1)

    return finish


def made(name: str, cores: int, finish: Callable[[Any], np.ndarray] | None = None) -> type[fleet.Predictor]:
    """A predictor of a network of the zoo, on so many cores, with its plan for batches of `BATCH`."""
    entry = models.get(name)
    example = np.asarray(entry.example(BATCH))
    return fleet.predictor(
        entry.module.apply,
        entry.variables(),
        reads="image",
        writes="class",
        finish=finish,
        cores=cores,
        example=example,
    )


def data(ray: Any, given: argparse.Namespace) -> Record:
    """Items a second of two actors with a core each, one of them killed, and of this process with both cores."""
    shape = np.asarray(models.get(given.model).example(1)).shape[1:]
    images = np.random.default_rng(0).normal(size=(given.images, *shape)).astype(np.float32)
    alone = made(given.model, 2)()
    classes = lambda: np.concatenate(
        [alone.predict(images[i : i + BATCH]).argmax(-1) for i in range(0, len(images), BATCH)]
    )
    classes()
    began = time.perf_counter()
    want, seconds = classes(), time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        marker = str(pathlib.Path(folder, "killed"))
        actor = made(given.model, 1, dying(marker, len(images) // BATCH // 4))
        rows = [{"at": i, "image": image} for i, image in enumerate(images)]
        source = ray.data.from_items(rows, override_num_blocks=BLOCKS).materialize()
        began, got, first = time.perf_counter(), {}, 0.0
        twice = 0
        through = source.map_batches(actor, batch_size=BATCH, concurrency=2, **actor.resources)
        for batch in through.iter_batches(batch_size=BATCH):
            first = first or time.perf_counter()
            twice += sum(int(i) in got for i in batch["at"])
            got.update(zip(map(int, batch["at"]), map(int, batch["class"]), strict=True))
        ended, killed = time.perf_counter(), os.path.exists(marker)
    agree = np.mean([got.get(i) == c for i, c in enumerate(want)])
    return {
        "killed": killed,
        "lost": len(images) - len(got),
        "twice": int(twice),
        "agreement": float(agree),
        "items_a_second": len(images) / (ended - began),
        "items_a_second_once_begun": len(images) / (ended - first),
        "items_a_second_alone": len(images) / seconds,
        "bytes": images.nbytes,
        "peak_mb": peak(),
    }


def start(ray: Any, given: argparse.Namespace) -> Record:
    """Seconds until each of two actors has answered, made one after the other."""
    kind, found, actors = made(given.model, 1), [], []
    batch = {"image": np.asarray(models.get(given.model).example(BATCH))}
    for _ in range(2):
        began = time.perf_counter()
        actors.append(ray.remote(num_cpus=1)(kind).remote())
        ray.get(actors[-1].__call__.remote(batch))
        found.append(time.perf_counter() - began)
    for actor in actors:
        ray.kill(actor)
    return {"first_seconds": found[0], "second_seconds": found[1]}


def open_loop(ask: Callable[[], concurrent.futures.Future[Any]], rate: float, seconds: float) -> tuple[float, float]:
    """Median and 99th percentile of the seconds from the arrival of a request to its answer, at random arrivals."""
    random, took, lock = np.random.default_rng(0), list[float](), threading.Lock()
    arrivals = np.cumsum(random.exponential(1 / rate, max(int(rate * seconds), 20)))
    began, asked = time.perf_counter(), []

    def note(due: float) -> Callable[[Any], None]:
        def ended(_: Any) -> None:
            with lock:
                took.append(time.perf_counter() - began - due)

        return ended

    for due in arrivals:
        time.sleep(max(began + due - time.perf_counter(), 0.0))
        asked.append(ask())
        asked[-1].add_done_callback(note(float(due)))
    concurrent.futures.wait(asked, timeout=120)
    return float(np.median(took)), float(np.percentile(took, 99))


def curve(ask: Callable[[], concurrent.futures.Future[Any]], seconds: float) -> list[Record]:
    """The latencies at rising rates, until the median says that requests pile up."""
    found: list[Record] = []
    for rate in RATES:
        median, high = open_loop(ask, rate, seconds)
        found.append({"rate": rate, "median_ms": 1e3 * median, "p99_ms": 1e3 * high})
        if median > SATURATED:
            break
    return found


def serve(ray: Any, given: argparse.Namespace) -> Record:
    """Latency against rate of a replica, one row a request and rows together, and of the scheduler alone."""
    from ray import serve as ray_serve

    entry = models.get(given.model)
    row, cores = np.asarray(entry.example(1))[0], config.cores()
    kind = made(given.model, 1)
    handle = ray_serve.run(fleet.deployment(kind, rows=8, wait=0.002, max_ongoing_requests=4096))
    pool = concurrent.futures.ThreadPoolExecutor(256)
    handle.remote(row).result(timeout_s=120)
    served = curve(lambda: pool.submit(lambda: handle.remote(row).result(timeout_s=120)), given.seconds)
    with fleet.Client(handle) as client:
        client.ask(row).result(120)
        gathered = curve(lambda: client.ask(row), given.seconds)
    ray_serve.shutdown()
    fast = xcoexec.jit(entry.module.apply, threads=1).bind(entry.variables())
    task = xcoexec.task("a row", fast, row[None], deadline=float("inf"))
    with xcoexec.Scheduler([task]) as scheduler:
        alone = curve(lambda: scheduler.release("a row", row[None]), given.seconds)
    return {"served": served, "gathered": gathered, "scheduler": alone, "cores": cores}


def many_hosts(ray: Any, given: argparse.Namespace) -> Iterator[Record]:
    """Of each network what was measured here, and what each number of hosts comes to."""
    line = fleet_costs.driver_line(lambda actors, blocks: fleet_costs.driver(ray, actors, blocks))
    most, batches = fleet_hosts.HOSTS[-1], [(name, given.batch) for name in given.simulated]
    while batches:
        name, batch = batches.pop(0)
        measured = fleet_costs.measure(ray, name, batch, given.rounds, line)
        whole = fleet_costs.rate(ray, name, measured)
        hosts = fleet_hosts.table(measured, whole)
        print(fleet_hosts.text(measured, hosts), flush=True)
        if batch == given.batch and fleet_hosts.limit(measured) < most:
            batches.insert(0, (name, fleet_hosts.batch_for(measured, most)))
        yield {"model": name, "measured": dataclasses.asdict(measured), "rate": whole, "hosts": hosts}


def peak() -> float:
    """The most MB that a process of this run, this one or one of its actors, has had in memory."""
    found = 0.0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text, parent = status.read_text(), status.with_name("cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if b"ray::" in parent or status.parent.name == str(os.getpid()):
            found = max(found, *(int(x.split()[1]) / 1e3 for x in text.splitlines() if x.startswith("VmHWM")))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(prog="benchmarks.fleet", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each rate")
    fleet_costs.arguments(parser)
    parser.add_argument("--out", type=pathlib.Path, help="a file of lines to which the records are added")
    given = parser.parse_args(argv)
    try:
        import ray
    except ImportError:
        parser.exit(1, 'benchmarks.fleet: Ray is missing; pip install "xcoexec[ray]"\n')
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    for part in given.parts:
        if part == "simulate":
            records = many_hosts(ray, given)  # one by one: each takes minutes
        else:
            found = {"data": data, "start": start, "serve": serve}[part](ray, given)
            records = iter([{"model": given.model, "images": given.images, **found}])
        for record in records:
            if part != "simulate":  # it has printed a table
                print({"part": part, **record}, flush=True)
            if given.out is not None:
                about = {"ray": ray.__version__, "commit": commit(), **environment()}
                lines.append(given.out, {"part": part, **record, **about})
    ray.shutdown()


if __name__ == "__main__":
    main()
