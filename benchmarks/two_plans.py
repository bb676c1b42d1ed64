"""`python -m benchmarks.two_plans [folder] [model ...]`: plans found behind calls against those of full measurements.

Both are made in one process, each with an empty cache of its own: `xcoexec.jit`, whose calls go on meanwhile, and
`xcoexec.jit(..., wait=True)`, for which nothing else runs. Then blocks of awaited calls of both alternate. A line a
network: milliseconds of a call, how many times as long the first one takes (median of the rounds' ratios, quartiles),
and what each planning says.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import track

import xcoexec
from xcoexec.codegen.environment import CACHE_DIR
from xcoexec.codegen.segment import choice
from xcoexec.ir.text import columns
from xcoexec.papers.source import commit
from xcoexec.tools import lines
from xcoexec.tools.machine import environment

from .both_ways import block
from .networks import get

MODELS = ("lenet", "fcnn", "squeezenet", "resnet18", "mobilenet_v2", "googlenet", "vit_s16", "efficientnet_b0")
ROUNDS = 15
Call = Callable[[], Any]


def planned(name: str, wait: bool, seconds: float) -> tuple[Call, Any]:
    """A call of a network whose planning is over, with an empty cache, and its report; without `wait` calls went on
    meanwhile, for at most `seconds`.
    """
    entry = get(name)
    args = jax.tree.map(jax.numpy.asarray, (entry.variables(), entry.example()))
    fn = xcoexec.jit(entry.module.apply, wait=wait)
    choice._known.clear()  # which algorithms this process has measured
    with tempfile.TemporaryDirectory() as cache:
        os.environ[CACHE_DIR] = cache
        end = time.perf_counter() + seconds
        jax.block_until_ready(fn(*args))
        while not fn.ready(0) and time.perf_counter() < end:
            jax.block_until_ready(fn(*args))
        fn.ready()
    return lambda: fn(*args), fn.report(*args)


def one(name: str, seconds: float) -> dict[str, Any]:
    """Seconds of a call with both plans, round by round."""
    found = {kind: planned(name, kind == "wait", seconds) for kind in ("behind", "wait")}
    rounds: dict[str, list[float]] = {kind: [] for kind in found}
    for r in range(ROUNDS):
        for kind in list(found)[:: 1 if r % 2 else -1]:
            found[kind][0]()  # wakes the caches up
            rounds[kind].append(block(found[kind][0], 1))
    about = {kind: {"ran": report.ran, "why": report.why} for kind, (_, report) in found.items()}
    return {"model": name, "commit": commit(), **environment(), "seconds": rounds, **about}


def cells(found: dict[str, Any]) -> list[str]:
    """A record as a row."""
    behind, wait = (np.array(found["seconds"][kind]) for kind in ("behind", "wait"))
    low, middle, high = np.percentile(behind / wait, (25, 50, 75))
    times = (f"{1e3 * np.median(x):.3f}" for x in (behind, wait))
    said = (found[kind]["why"] for kind in ("behind", "wait"))
    return [found["model"], *times, f"{middle:.3f} ({low:.3f}-{high:.3f})", *said]


def main() -> None:
    """Runs the lines, appends JSONL, and prints a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.two_plans", description=__doc__)
    parser.add_argument("folder", nargs="?", default="out", type=pathlib.Path)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    os.environ["XCOEXEC_ADAPT"] = "0"  # plans stay as they were found
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = [["model", "behind calls ms", "full measurement ms", "times as long", "behind calls", "full measurement"]]
    for name in track(given.models or MODELS, "two plans", console=Console(stderr=True)):
        found = one(name, given.seconds)
        rows.append(cells(found))
        lines.append(given.folder / "two_plans.jsonl", found)
    print(columns(rows, range(1, 4)))


if __name__ == "__main__":
    main()
