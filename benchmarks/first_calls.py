"""`python -m benchmarks.first_calls [folder] [model ...] [--seconds 60]`: what the first calls of a process take.

Every line is three processes: `jax.jit`; xcoexec with an empty cache, whose calls go on while the plan is made; and
xcoexec once more with the cache that it left. Measured: the first call (the first two as medians of `FIRSTS` processes,
as a process' first call takes longer or shorter by a fifth), the calls while planning (median, and the share
of time lost to `jax.jit`'s), seconds from the first call's start until a call ran co-executed (or the plan was made,
where plain `jax.jit` stays) and until all of the planning was over, and a call's median afterwards.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from rich.progress import track

from xcoexec import config
from xcoexec.codegen.environment import CACHE_DIR
from xcoexec.ir.text import columns
from xcoexec.papers.source import commit
from xcoexec.tools import lines

MODELS = (
    *("lenet", "fcnn", "squeezenet", "resnet18", "mobilenet_v2", "googlenet"),
    *("vgg11", "retinaface_mobile", "vit_s16", "bert_base", "densenet121", "convnext_t", "efficientnet_b0"),
)
FIRSTS = 3
AFTER_SECONDS = 1.0
SETTLED = 60  # calls after which the plan has been compared in use
LOOK_SECONDS = 0.1  # between two looks whether calls are co-executed
Record = dict[str, object]


def one(kind: str, name: str, seconds: float) -> Record:
    """What a process sees: its first call, its calls while a plan is made for at most `seconds`, and those after."""
    import jax

    import xcoexec
    from xcoexec.tools.machine import environment

    from .networks import get

    entry = get(name)
    args = jax.tree.map(jax.numpy.asarray, (entry.variables(), entry.example()))
    jax.block_until_ready(args)
    fn = jax.jit(entry.module.apply) if kind == "jit" else xcoexec.jit(entry.module.apply)

    def calls(count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            jax.block_until_ready(fn(*args))
            times.append(time.perf_counter() - start)
        return times

    began = time.perf_counter()
    first = calls(1)[0]
    planning: list[float] = []
    until = math.inf
    if kind != "jit":
        looked = began
        while not (done := fn.ready(0)) and time.perf_counter() - began < seconds:
            planning += calls(1)
            if until == math.inf and time.perf_counter() - looked > LOOK_SECONDS:
                looked = time.perf_counter()
                until = looked - began if fn.report(*args).ran != "jit" else until
    whole = time.perf_counter() - began
    until = min(until, whole)
    calls(SETTLED)
    after: list[float] = []
    end = time.perf_counter() + AFTER_SECONDS
    while time.perf_counter() < end:
        after += calls(1)
    found: Record = {"first": first, "after": float(np.median(after)), **environment()}
    if kind != "jit":
        report = fn.report(*args)
        found |= {"until": until, "whole": whole, "done": done, "ran": report.ran, "planning": planning}
        found |= {"chosen": report.why, "measured": dict(report.measured)}
    return found


def process(kind: str, name: str, seconds: float, cache: str) -> dict[str, Any]:
    """What a process of its own has seen (`one`)."""
    env = config.environment_with(**{CACHE_DIR: cache})
    command = [sys.executable, "-m", "benchmarks.first_calls", "--one", kind, name, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def first(kind: str, name: str) -> float:
    """Seconds of a process' first call, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        return float(process(kind, name, 0.0, cache)["first"])


def record(name: str, seconds: float) -> Record:
    """One line: the processes of a model."""
    kinds = (("jit", "jit"), ("cold", "xco"), ("warm", "xco"))
    with tempfile.TemporaryDirectory() as cache:
        runs = {key: process(kind, name, seconds, cache) for key, kind in kinds}
    firsts = {key: [runs[key]["first"]] for key, _ in kinds[:2]}
    for _ in range(FIRSTS - 1):
        for key, kind in kinds[:2]:
            firsts[key].append(first(kind, name))
    for key, times in firsts.items():
        runs[key]["first"] = float(np.median(times))
    plain = runs["jit"]["after"]
    out: Record = {
        "model": name,
        "commit": commit(),
        **{k: v for k, v in runs["jit"].items() if k not in ("first", "after")},
        **{f"{key}_firsts_seconds": times for key, times in firsts.items()},
    }
    for key, run in runs.items():
        times = run.pop("planning", [])
        out |= {f"{key}_{k}_seconds": run[k] for k in ("first", "after", "until", "whole") if k in run}
        if times:
            out[f"{key}_planning_median_seconds"] = float(np.median(times))
            out[f"{key}_planning_lost"] = 1 - plain * len(times) / sum(times)
            out[f"{key}_planning_longest_seconds"] = max(times)
        if key != "jit":
            out |= {f"{key}_chosen": run["chosen"], f"{key}_measured_seconds": run["measured"]}
            out[f"{key}_ran"] = run["ran"] if run["done"] else "planning"
    return out


HEAD = (
    "model",
    "jit first s",
    "first s",
    "ratio",
    "co-executed after s",
    "planned after s",
    "ran",
    "lost meanwhile",
    "longest ms",
)
HEAD_WARM = ("again after s", "ran", "jit ms", "then ms")


def row(r: Record) -> list[str]:
    """A record as cells."""
    number = lambda key, form, scale=1.0: format(scale * float(str(r[key])), form) if key in r else "-"
    ratio = float(str(r["cold_first_seconds"])) / float(str(r["jit_first_seconds"]))
    return [
        str(r["model"]),
        number("jit_first_seconds", ".2f"),
        number("cold_first_seconds", ".2f"),
        f"{ratio:.2f}",
        number("cold_until_seconds", ".1f"),
        number("cold_whole_seconds", ".1f"),
        str(r["cold_ran"]),
        number("cold_planning_lost", ".0%"),
        number("cold_planning_longest_seconds", ".0f", 1e3),
        number("warm_until_seconds", ".2f"),
        str(r["warm_ran"]),
        number("jit_after_seconds", ".3f", 1e3),
        number("warm_after_seconds", ".3f", 1e3),
    ]


def main(argv: list[str]) -> None:
    """Runs the lines, prints a table and appends JSONL."""
    parser = argparse.ArgumentParser(prog="benchmarks.first_calls", description=__doc__)
    parser.add_argument("folder", nargs="?", default="out")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--one", nargs=2)
    given = parser.parse_args(argv)
    if given.one:
        print(json.dumps(one(*given.one, given.seconds)))
        return
    folder = pathlib.Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = [[*HEAD, *HEAD_WARM]]
    for name in track(given.models or MODELS, "first calls"):
        found = record(name, given.seconds)
        rows.append(row(found))
        lines.append(folder / "first_calls.jsonl", found)
    print(columns(rows, range(1, len(rows[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
