"""`python -m benchmarks.divided FOLDER MODEL... [--batch 1] [--precision highest default]`: one network, all devices.

Plain `jax.jit` and `xcoexec` with resident weights on one device, and over all devices of this process by layers, by
channel and by rows. Blocks of calls of all of them take turns in one process: calls that wait for each result, and
calls in flight. What is printed is the median of the blocks' ratios to `jax.jit`, with quartiles; a way in which
nothing is divided runs on one device, and says so. On a CPU: XLA_FLAGS=--xla_force_host_platform_device_count=4.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec.ir.text import columns
from xcoexec.papers.source import commit
from xcoexec.tools import lines
from xcoexec.tools.machine import environment
from xcoexec.tools.oracle import worst

from .both_ways import WAYS, block
from .gpu import PRECISIONS, where
from .networks import get

DIMS = ("layers", "channel", "rows")
ONE = "one device"
ROUNDS = 9


def record_of(name: str, batch: int, precision: str, rounds: int) -> dict[str, Any]:
    """The record of a model: seconds of a call by each way, block by block, and what ran."""
    entry = get(name)
    with jax.default_matmul_precision(precision):
        weights, x = entry.variables(), jax.tree.map(jax.numpy.asarray, entry.example(batch))
        plain, ours = jax.jit(entry.module.apply), xcoexec.jit(entry.module.apply)
        functions: dict[str, Any] = {ONE: ours.bind(weights)} | {d: ours.spread(weights, dim=d) for d in DIMS}
        calls: dict[str, Callable[[], Any]] = {"jit": lambda: plain(weights, x)}
        calls |= {k: lambda f=f: f(x) for k, f in functions.items()}
        outs = {k: jax.block_until_ready(call()) for k, call in calls.items()}
        for f in functions.values():
            f.ready()
        want = [np.asarray(y) for y in jax.tree.leaves(outs["jit"])]
        found: dict[str, Any] = {"model": name, "batch": batch, "precision": precision, "devices": jax.device_count()}
        found["difference_to_jit"] = {k: worst(call(), want) for k, call in calls.items()}
        for way, flight in WAYS.items():
            found[way] = {k: [] for k in calls}
            for r in range(rounds + 1):
                for k in list(calls)[:: 1 if r % 2 else -1]:
                    seconds = block(calls[k], flight)
                    found[way][k] += [seconds] if r else []  # the first round is not counted
    reports = {k: f.report() for k, f in functions.items()}
    found["ran"] = {k: r.ran for k, r in reports.items()}
    divided = {d: reports[d] for d in ("channel", "rows")}
    found["divided_layers"] = {d: len(r.layers) for d, r in divided.items()}
    found["calculated_saving"] = {
        d: sum(x.seconds - x.share for x in r.layers) - r.exchanges for d, r in divided.items()
    }
    return found


def rows_of(found: dict[str, Any]) -> list[list[str]]:
    """A record as rows, one for each way."""
    rows = []
    for k in found["waiting"]:
        head = [f"{found['model']} x{found['batch']} ({found['precision']})", k, found["ran"].get(k, "jit")]
        layers = str(found["divided_layers"].get(k, "-"))
        cells = []
        for way in WAYS:
            mine, plain = np.array(found[way][k]), np.array(found[way]["jit"])
            low, middle, high = np.percentile(plain / mine, (25, 50, 75))
            cells += [f"{1e3 * np.median(mine):.3f}", f"{middle:.2f} ({low:.2f}-{high:.2f})"]
        rows.append([*head, layers, *cells, f"{found['difference_to_jit'][k]:.1e}"])
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(prog="benchmarks.divided", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--batch", nargs="+", type=int, default=(1,))
    parser.add_argument("--precision", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    head = ["model", "way", "ran", "divided layers"]
    for way in WAYS:
        head += [f"{way} ms", "times jit"]
    print(f"{where()}; {jax.device_count()} devices")
    for name in given.models:
        for precision in given.precision:
            for batch in given.batch:
                began = time.strftime("%Y-%m-%dT%H:%M:%S")
                found = record_of(name, batch, precision, given.rounds)
                line = {**found, "began": began, "machine": where(), "commit": commit(), **environment()}
                lines.append(given.folder / "divided.jsonl", line)
                print(columns([[*head, "difference"], *rows_of(found)], range(3, 9)), flush=True)


if __name__ == "__main__":
    main()
