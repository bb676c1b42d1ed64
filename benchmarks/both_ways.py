"""`python -m benchmarks.both_ways [folder] [model ...] [--rounds 11]`: `xcoexec.jit` against `jax.jit`, both ways.

Measured, in blocks that alternate in one process: calls that wait for each result, and calls in flight (`IN_FLIGHT`
begin before the first result is read). A line a network: milliseconds of a call, how many times faster than `jax.jit`
(median of the rounds' ratios, quartiles), the same of a second `jax.jit` of the function ("jit again": how far two of
the same are apart in this run), and what the plan in use says.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import track

import xcoexec
from xcoexec.ir.text import columns
from xcoexec.papers.source import commit
from xcoexec.tools import lines
from xcoexec.tools.machine import environment

from .gpu import MODELS as GPU_MODELS
from .networks import NETWORKS, get
from .settled import settle

MODELS = (
    *GPU_MODELS,
    *("mlp", "vgg11", "googlenet", "mobilenet_v1", "posenet", "retinaface_mobile", "vit_s16", "bert_base", "decoder"),
    *NETWORKS,
)
IN_FLIGHT = 30
ROUNDS, BLOCK_SECONDS = 11, 0.15
Call = Callable[[], Any]


def block(call: Call, flight: int, seconds: float = BLOCK_SECONDS) -> float:
    """Mean seconds of calls for so many `seconds`, of which `flight` begin before the first result is read."""
    count, began = 0, time.perf_counter()
    while not count or time.perf_counter() - began < seconds:
        jax.block_until_ready([call() for _ in range(flight)])
        count += flight
    return (time.perf_counter() - began) / count


WAYS = {"waiting": 1, "in flight": IN_FLIGHT}  # calls that begin before the first result is read


def one(name: str, rounds: int) -> dict[str, Any]:
    """Seconds of a call of both, both ways, round by round."""
    entry = get(name)
    args = jax.tree.map(jax.numpy.asarray, (entry.variables(), entry.example()))
    ours, plain = xcoexec.jit(entry.module.apply), jax.jit(entry.module.apply)
    again = jax.jit(lambda *given: entry.module.apply(*given))
    calls: dict[str, Call] = {"ours": lambda: ours(*args), "jit": lambda: plain(*args), "again": lambda: again(*args)}
    for call in calls.values():
        jax.block_until_ready(call())
    ours.ready()
    found: dict[str, Any] = {
        "model": name,
        "commit": commit(),
        **environment(),
        "began": time.strftime("%Y-%m-%dT%H:%M:%S"),
    }
    for way, flight in WAYS.items():
        settle(calls["ours"], flight)
        found[way] = {k: [] for k in calls}
        for r in range(rounds):
            for k in list(calls)[:: 1 if r % 2 else -1]:
                found[way][k].append(block(calls[k], flight))
    report, plan = ours.report(*args), ours.plan(*args)
    return found | {"ran": report.ran, "why": report.why, "strategy": plan.strategy, "measured": dict(plan.measured)}


def cells(found: dict[str, Any]) -> list[str]:
    """A record as a row."""
    row = [str(found["model"])]
    for way in WAYS:
        mine, theirs, again = (np.array(found[way][k]) for k in ("ours", "jit", "again"))
        row += [f"{1e3 * np.median(theirs):.3f}", f"{1e3 * np.median(mine):.3f}"]
        for ratios in (theirs / mine, theirs / again):
            low, middle, high = np.percentile(ratios, (25, 50, 75))
            row.append(f"{middle:.2f} ({low:.2f}-{high:.2f})")
    return [*row, str(found["ran"]), str(found["why"])]


def main() -> None:
    """Runs the lines, appends JSONL, and prints a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.both_ways", description=__doc__)
    parser.add_argument("folder", nargs="?", default="out", type=pathlib.Path)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = [["model"]]
    for way in WAYS:
        rows[0] += [f"jit {way} ms", f"ours {way} ms", "times faster", "jit again"]
    rows[0] += ["ran", "why"]
    for name in track(given.models or MODELS, "both ways", console=Console(stderr=True)):
        found = one(name, given.rounds)
        rows.append(cells(found))
        lines.append(given.folder / "both_ways.jsonl", found)
    print(columns(rows, range(1, 9)))


if __name__ == "__main__":
    main()
