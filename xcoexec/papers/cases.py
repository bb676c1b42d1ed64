"""A network under every method, measured: both halves alone, the papers' strategies with a part left out where a figure
has that, NeuroPipe's stream and BlastNet's blocks, all in turn in one process.

Seconds an item of a stream whose items are there from the start, so that a method that answers one item at a time
(EdgeNN, CoDL, layer switching) and one that works on several (NeuroPipe, BlastNet) can be compared.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypedDict

import jax
import numpy as np

from .. import models
from ..api.functions import jit
from ..api.resident import ResidentFunction
from ..devices.registry import device_half
from ..streams.block_model import model as blocks_of
from ..streams.item_pipeline import pipeline
from ..streams.scheduler import Scheduler
from ..streams.scheduler import task as task_of
from ..tools import suite
from ..tools.suite import SUITES
from ..tools.variants import VARIANTS
from . import steps

METHODS = ("device", "host", "edgenn", "codl", "layer_switch")
#: suite -> what its figures leave out of a method, or hold against it
PARTS: Mapping[str, tuple[str, ...]] = {
    "edgenn": ("edgenn, paper", "edgenn, hybrid", "edgenn, inter only"),
    "codl": (
        *("mu_layer, FLOP", "mu_layer", "codl, algorithm 1"),
        *("codl, no chains", "codl, rows, no chains", "codl, channel, no chains"),
    ),
}
ROUNDS, BLOCK = 5, 0.05  # of a quick run: rounds, seconds of each way's block
FEWEST, MOST = 4, 400  # items of a block
IN_FLIGHT = 4  # jobs of the scheduler
CUT = "neuropipe"

Run = Callable[[int], object]  # so many items


class Case(TypedDict):
    """What was measured of a network. By way ("jit", a variant, "neuropipe", "blastnet"): quartiles of `seconds` of an
    item over `runs` blocks; how many layers are on which half; in words what its plan is, or why it did not run.
    `apart`: whether the device half is a device of its own.
    """

    model: str
    seconds: dict[str, list[float]]
    halves: dict[str, dict[str, int]]
    plans: dict[str, str]
    runs: int
    apart: bool


def case(model: str, rounds: int = ROUNDS, block: float = BLOCK) -> Case | None:
    """A network under every way, measured once (`steps.once`)."""
    return steps.once(__name__, f"{model}, {rounds} rounds of {block:g} s", lambda: _measured(model, rounds, block))


def cases(models: Sequence[str], rounds: int = ROUNDS, block: float = BLOCK) -> list[Case]:
    """Those of some networks that there are: an interrupt leaves some out."""
    return [c for m in models if (c := case(m, rounds, block)) is not None]


def variants(model: str) -> tuple[str, ...]:
    """The variants that the figures which have this network speak of."""
    return (*METHODS, *(v for name, parts in PARTS.items() if model in SUITES[name].models for v in parts))


def _measured(model: str, rounds: int, block: float) -> Case:
    entry = models.get(model)
    weights, x = entry.variables(), entry.example(1)
    plain, resting = jax.jit(entry.module.apply), jax.device_put(weights)
    runs: dict[str, Run] = {"jit": _one_by_one(lambda v: plain(resting, v), x)}
    made, same, plans = _planned(entry.module.apply, weights, x, variants(model))
    runs |= {v: _one_by_one(f, x) for v, f in made.items()}
    words = {"jit": "XLA", **{v: _brief(f) for v, f in made.items()}}
    with contextlib.ExitStack() as open_ones:
        for name, streamed in (("neuropipe", _pipelined), ("blastnet", _scheduled)):
            try:
                runs[name], words[name] = streamed(made["host"], x, open_ones)
                runs[name](1)
            except Exception as e:  # one way does not end the others
                runs.pop(name, None)
                words[name] = f"failed: {type(e).__name__}: {e}"
        found = in_turn(runs, rounds, block)
    quartiles = {w: [float(q) for q in np.percentile(t, (25, 50, 75))] for w, t in found.items()}
    return {
        "model": model,
        "seconds": {**quartiles, **{v: quartiles[first] for v, first in same.items()}},
        "halves": plans,
        "plans": {**words, **{v: words[first] for v, first in same.items()}},
        "runs": rounds,
        "apart": device_half().apart,
    }


def _planned(
    fn: Callable[..., Any], weights: object, x: object, names: tuple[str, ...]
) -> tuple[dict[str, ResidentFunction[Any]], dict[str, str], dict[str, dict[str, int]]]:
    """(functions with resident weights, one for each plan; variant -> the one that stands for it, which has the same
    plan; variant -> layers by half).
    """
    made: dict[str, ResidentFunction[Any]] = {}
    stands_for: dict[str, str] = {}
    counted = {}
    plans = {}
    for v in names:
        f = jit(fn, **VARIANTS[v], wait=True).bind(weights)
        jax.block_until_ready(f(x))
        plans[v] = f.plan()
        counted[v] = suite._counted(plans[v])
        stands_for[v] = suite._measured_once(plans)[v]
        if stands_for[v] == v:
            made[v] = f
    made.setdefault("host", made[stands_for["host"]])
    return made, {v: first for v, first in stands_for.items() if v not in made}, counted


def _one_by_one(call: Callable[[Any], object], x: object) -> Run:
    def run(n: int) -> None:
        for _ in range(n):
            jax.block_until_ready(call(x))

    return run


def _pipelined(whole: ResidentFunction[Any], x: object, _: contextlib.ExitStack) -> tuple[Run, str]:
    """NeuroPipe's stream, cut by the paper's rule."""
    pipe = pipeline(whole, cut=CUT)
    run = lambda n: _last(pipe(itertools.repeat(x, n)))
    run(1)
    return run, "cut by the paper's rule" if any(pipe.cuts) else "not cut"


def _last(stream: Any) -> object:
    with stream:
        return list(stream)[-1]


def _scheduled(whole: ResidentFunction[Any], x: Any, open_ones: contextlib.ExitStack) -> tuple[Run, str]:
    """BlastNet's blocks under its policy."""
    network = blocks_of(whole, x)
    task = task_of("all", network, x, deadline=float("inf"))
    scheduler = open_ones.enter_context(Scheduler([task], "blastnet"))
    return functools.partial(_released, scheduler, x), f"{len(network.blocks)} blocks, primary first, no twins"


def _released(scheduler: Scheduler, x: object, n: int) -> None:
    """So many jobs, of which a few are in flight at any time."""
    flying: collections.deque[Future[Any]] = collections.deque()
    for _ in range(n):
        if len(flying) == IN_FLIGHT:
            flying.popleft().result()
        flying.append(scheduler.release("all", x))
    while flying:
        flying.popleft().result()


def _brief(f: ResidentFunction[Any]) -> str:
    counted = suite._counted(f.plan())
    return ", ".join(f"{n} {half}" for half, n in counted.items() if n) or f.plan().engine


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


__all__ = ["BLOCK", "METHODS", "PARTS", "ROUNDS", "Case", "case", "cases", "in_turn", "variants"]
