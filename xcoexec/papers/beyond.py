"""All five methods on the same networks, machine, kernels and items: what no paper has.

Milliseconds an item of a stream whose items are there from the start, so that a method that answers one item at a time
(EdgeNN, CoDL, layer switching) and one that works on several (NeuroPipe, BlastNet) can be compared. The baselines are
`jax.jit` alone and the host half alone.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import jax
import numpy as np

from .. import models
from ..api.functions import jit
from ..ir.plan import Plan
from ..streams.block_model import model as blocks_of
from ..streams.item_pipeline import pipeline
from ..streams.scheduler import Scheduler
from ..streams.scheduler import task as task_of
from ..tools.suite import Record
from .cells import MEASURED, Cell

FIGURE = "Methods"
#: the word of a method in the table -> strategy of its plan; the baselines first
PLANNED = {
    "jax.jit alone": "",
    "host half alone": "host",
    "EdgeNN": "edgenn",
    "CoDL": "codl",
    "Layer-switched": "layer_switch",
}
STREAMED = ("NeuroPipe", "BlastNet")
FEWEST, MOST = 4, 400  # items of a run
IN_FLIGHT = 4  # jobs of the scheduler
CUT = "neuropipe"

Run = Callable[[int], object]  # so many items


@contextlib.contextmanager
def methods(name: str) -> Iterator[tuple[dict[str, Run], dict[str, str]]]:
    """(what runs so many items by each method, in words what its plan is)."""
    entry = models.get(name)
    weights, x = entry.variables(), entry.example(1)
    plain, resting = jax.jit(entry.module.apply), jax.device_put(entry.variables())
    planned = {
        word: jit(entry.module.apply, strategy=strategy, wait=True).bind(weights)
        for word, strategy in PLANNED.items()
        if strategy
    }
    runs: dict[str, Run] = {"jax.jit alone": _one_by_one(lambda v: plain(resting, v), x)}
    runs |= {word: _one_by_one(f, x) for word, f in planned.items()}
    whole = planned["host half alone"]
    pipe = pipeline(whole, cut=CUT)
    runs["NeuroPipe"] = lambda n: _last(pipe(itertools.repeat(x, n)))
    for run in runs.values():
        run(1)
    plans = {"jax.jit alone": "XLA", **{word: _brief(f.plan()) for word, f in planned.items()}}
    plans |= {"NeuroPipe": "cut by the paper's rule" if any(pipe.cuts) else "not cut"}
    network = blocks_of(whole, x)
    with Scheduler([task_of("all", network, x, deadline=float("inf"))], "blastnet") as scheduler:
        runs["BlastNet"] = functools.partial(_released, scheduler, x)
        yield runs, {**plans, "BlastNet": f"{len(network.blocks)} blocks, primary first, no twins"}


def _one_by_one(call: Callable[[Any], object], x: object) -> Run:
    def run(n: int) -> None:
        for _ in range(n):
            jax.block_until_ready(call(x))

    return run


def _last(stream: Any) -> object:
    with stream:
        return list(stream)[-1]


def _released(scheduler: Scheduler, x: object, n: int) -> None:
    """So many jobs, of which a few are in flight at any time."""
    flying: collections.deque[Future[Any]] = collections.deque()
    for _ in range(n):
        if len(flying) == IN_FLIGHT:
            flying.popleft().result()
        flying.append(scheduler.release("all", x))
    while flying:
        flying.popleft().result()


def _brief(plan: Plan) -> str:
    halves = [p.half for p in plan.placements]
    return ", ".join(f"{halves.count(h)} {h}" for h in ("device", "split", "host") if h in halves)


def in_turn(runs: Mapping[str, Run], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Seconds an item of each, a run of about `seconds` in each round, in turn."""
    counts = {}
    for name, run in runs.items():
        run(2)
        began = time.perf_counter()
        run(FEWEST)
        counts[name] = int(np.clip(seconds * FEWEST / (time.perf_counter() - began), FEWEST, MOST))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run(counts[name])
            found[name].append((time.perf_counter() - began) / counts[name])
    return found


def cells(model: str, quartiles: Mapping[str, Sequence[float]], plans: Mapping[str, str], runs: int) -> list[Cell]:
    """A network's line of the table, with its winner; times of which the quartiles overlap are no win."""
    out: list[Cell] = [
        {
            "figure": FIGURE,
            "what": model,
            "series": word,
            "paper": None,
            "ours": q[1] * 1e3,
            "kind": MEASURED,
            "unit": "ms",
            "spread": [q[0] * 1e3, q[2] * 1e3],
            "runs": runs,
            "note": plans.get(word, ""),
        }
        for word, q in quartiles.items()
    ]
    best = min(quartiles, key=lambda w: quartiles[w][1])
    even = [w for w, q in quartiles.items() if q[0] <= quartiles[best][2]]
    word = best if even == [best] else "no clear winner: " + ", ".join(even)
    last: Cell = {"figure": FIGURE, "what": model, "series": "fastest", "paper": None, "ours": word}  # type: ignore[typeddict-item]
    return [*out, {**last, "kind": MEASURED, "unit": ""}]  # type: ignore[typeddict-item]


def compared(models: Sequence[str], rounds: int = 5, seconds: float = 0.2) -> list[Cell]:
    """The table on this machine: quartiles over rounds of seconds an item, every method in turn."""
    out: list[Cell] = []
    for name in models:
        with methods(name) as (runs, plans):
            found = in_turn(runs, rounds, seconds)
        quartiles = {w: [float(q) for q in np.percentile(t, (25, 50, 75))] for w, t in found.items()}
        out += cells(name, quartiles, plans, rounds)
    return out


def from_suite(records: Sequence[Record]) -> list[Cell]:
    """The part of the table that records of a suite hold: the methods that answer one item at a time."""
    out: list[Cell] = []
    for r in records:
        known = {w: r["seconds"][s or "jit"] for w, s in PLANNED.items() if (s or "jit") in r["seconds"]}
        out += cells(r["model"], known, {}, 1)
    return out


__all__ = ["FIGURE", "PLANNED", "STREAMED", "cells", "compared", "from_suite"]
