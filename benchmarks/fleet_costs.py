"""What a host of a fleet costs, measured on this machine with a local Ray: the inputs of `benchmarks.fleet_hosts`.

The driver's seconds are those of all its threads on the processor, while actors that do nothing take batches: what they
rise by with each further batch, for different numbers of actors. Seconds of start-up are those of an actor whose cache
folder is empty, as on a new host.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from xcoexec import fleet, models

from .fleet_hosts import Measured

ACTORS, BLOCKS = (1, 2, 4, 8), (40, 240)  # of the runs in which the driver's seconds are measured
CALLS = 30  # of an actor, whose seconds are measured
SECONDS, MOST_BLOCKS = 15.0, 600  # of the run of Ray Data whose items a second are measured


class _Nothing:
    """An actor that gives a batch back."""

    def __call__(self, batch: Any) -> Any:
        return batch


class _Timed:
    """An actor of a fleet that also says what its calls take, and when its own plan is in use."""

    def __init__(self, kind: type[fleet.Predictor]):
        self._predictor = kind()

    def answer(self, x: np.ndarray) -> None:
        """A batch, computed."""
        self._predictor.predict(x)

    def planned(self, x: np.ndarray) -> None:
        """The same, with a plan of its own in use."""
        self._predictor.predict(x)
        self._predictor._fast.ready()
        self._predictor.predict(x)

    def calls(self, x: np.ndarray, count: int) -> list[float]:
        """Seconds of so many calls."""
        found = []
        for _ in range(count):
            began = time.perf_counter()
            self._predictor.predict(x)
            found.append(time.perf_counter() - began)
        return found


def driver(ray: Any, actors: int, blocks: int) -> float:
    """Seconds on the processor, of all threads of this process, for so many batches through so many idle actors."""
    data = ray.data.range(blocks, override_num_blocks=blocks).materialize()
    began = time.process_time()
    through = data.map_batches(
        _Nothing, batch_size=None, compute=ray.data.ActorPoolStrategy(size=actors), num_cpus=1 / max(ACTORS)
    )
    count = sum(1 for _ in through.iter_internal_ref_bundles())
    assert count == blocks, f"got {count} blocks back of {blocks}"
    return time.process_time() - began


def driver_line(taken: Callable[[int, int], float]) -> tuple[float, float, float]:
    """(seconds for a batch, further seconds for each actor there is, seconds for making an actor), by least squares.
    `taken(actors, blocks)`: the driver's seconds for a run.
    """
    found = {(a, b): taken(a, b) for a in ACTORS for b in BLOCKS}
    few, many = BLOCKS
    each = [(found[a, many] - found[a, few]) / (many - few) for a in ACTORS]
    more, one = np.polyfit(ACTORS, each, 1)
    if more < 0.0:  # less than what can be seen: the same for any number of actors
        more, one = 0.0, float(np.mean(each))
    rest = [found[a, few] - few * s for a, s in zip(ACTORS, each, strict=True)]
    return float(one), float(more), max(float(np.polyfit(ACTORS, rest, 1)[0]), 0.0)


def stored(ray: Any, tree: Any) -> int:
    """Bytes of a tree of arrays in Ray's object store."""
    reference = ray.put(jax.tree_util.tree_map(np.asarray, tree))
    return int(ray.experimental.get_object_locations([reference])[reference]["object_size"])


def _started(ray: Any, kind: type[fleet.Predictor], x: np.ndarray, method: str) -> float:
    """Seconds until an actor with an empty cache folder has answered, or is done with `method`."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        env = {"env_vars": {"XCOEXEC_CACHE_DIR": folder}}
        actor = ray.remote(num_cpus=1, runtime_env=env)(_Timed).remote(kind)
        ray.get(getattr(actor, method).remote(x))
        seconds = time.perf_counter() - began
        ray.kill(actor)
    return seconds


def _calls(ray: Any, kind: type[fleet.Predictor], x: np.ndarray, actors: int) -> list[float]:
    """Seconds of the calls of actors that work at the same time, each on a core."""
    made = [ray.remote(num_cpus=1)(_Timed).remote(kind) for _ in range(actors)]
    ray.get([a.planned.remote(x) for a in made])
    found = ray.get([a.calls.remote(x, CALLS) for a in made])
    for actor in made:
        ray.kill(actor)
    return [seconds for calls in found for seconds in calls]


def measure(ray: Any, name: str, batch: int, rounds: int, line: Sequence[float]) -> Measured:
    """A network on this host, one actor a core. `line`: what `driver_line` returns."""
    entry, actors = models.get(name), len(os.sched_getaffinity(0))
    x = np.asarray(entry.example(batch))
    make: Callable[..., type[fleet.Predictor]] = lambda **more: fleet.predictor(
        entry.module.apply, entry.variables(), cores=1, **more
    )
    along, alone = make(example=x), make()
    median = lambda kind, method: float(np.median([_started(ray, kind, x, method) for _ in range(rounds)]))
    handing, more, making = line
    return Measured(
        model=name,
        batch=batch,
        calls=tuple(_calls(ray, along, x, actors)),
        actors=actors,
        start=median(along, "answer"),
        start_alone=median(alone, "planned"),
        making=making,
        handing=handing,
        handing_actor=more,
        weights=stored(ray, entry.variables()),
        item=x[0].nbytes + np.asarray(along().predict(x))[0].nbytes,
    )


def rate(ray: Any, name: str, measured: Measured) -> float:
    """Items a second of Ray Data itself on this host, once all its actors have started."""
    entry = models.get(name)
    block = np.asarray(entry.example(measured.batch))
    kind = fleet.predictor(entry.module.apply, entry.variables(), cores=1, example=block)
    blocks = int(SECONDS * measured.actors / measured.batch_seconds())
    data = ray.data.from_numpy([block] * min(max(blocks, 8 * measured.actors), MOST_BLOCKS))
    pool = ray.data.ActorPoolStrategy(size=measured.actors)
    through = data.map_batches(kind, batch_size=measured.batch, compute=pool, **kind.resources)
    times = [time.perf_counter() for _ in through.iter_internal_ref_bundles()]
    first, last = len(times) // 4, 3 * len(times) // 4
    return measured.batch * (last - first) / (times[last] - times[first])


def arguments(parser: argparse.ArgumentParser) -> None:
    """What `simulate` is asked with."""
    parser.add_argument("--batch", type=int, default=64, help="of each network that is simulated")
    parser.add_argument("--simulated", nargs="*", default=("lenet", "mobilenet_v2"), help="networks")
    parser.add_argument("--rounds", type=int, default=3, help="starts whose median counts")
