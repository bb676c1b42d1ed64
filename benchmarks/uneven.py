"""`python -m benchmarks.uneven FOLDER MODEL... [--batch 16]`: one network over GPUs of which the last one is in use.

A process of its own computes products on the last GPU all the time, as a neighbour would: on all of it, or, started
under `benchmarks/edge_slice 100`, on `--share` percent of its multiprocessors. Plain `jax.jit` on the first
GPU, and `spread` over all of them, cut as if they were alike and cut by how fast each was measured to be, take turns in
one process. What is printed: milliseconds of a call, and the median of the blocks' ratios to `jax.jit` with quartiles.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec.api import spread
from xcoexec.ir.text import columns
from xcoexec.measure.device_speeds import product_rates
from xcoexec.papers.source import commit
from xcoexec.tools import lines
from xcoexec.tools.machine import environment
from xcoexec.tools.oracle import worst

from .both_ways import WAYS, block
from .gpu import where
from .networks import get
from .settled import settle

ROUNDS = 9
ALIKE, MEASURED = "as if alike", "as measured"
NEIGHBOUR = """
import jax
x = jax.numpy.ones((4096, 4096))
f = jax.jit(lambda x: x @ x / 4096)
y = f(x).block_until_ready()
print("began", flush=True)
while True:
    for _ in range(50):
        y = f(y)
    y.block_until_ready()
"""


@contextlib.contextmanager
def neighbour(share: int) -> Iterator[None]:
    """Within it another process uses so many percent of the last device of this one."""
    last = str(len(jax.devices()) - 1)
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    env = os.environ | {"CUDA_VISIBLE_DEVICES": seen.split(",")[-1] or last, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(share)
    process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if "began" not in process.stdout.readline():
            raise RuntimeError("uneven: the process on the last device did not begin.")
        yield
    finally:
        process.kill()
        process.wait()


def cut_as(rates: Callable[[tuple[jax.Device, ...]], Sequence[float]], ours: Any, weights: Any, x: Any) -> Any:
    """The network over all devices, planned, cut for devices of so many FLOP a second each."""
    with contextlib.ExitStack() as back:
        back.callback(setattr, spread, "product_rates", spread.product_rates)
        spread.product_rates = rates
        found = ours.spread(weights)
        jax.block_until_ready(found(x))
    found.ready()
    return found


def record_of(name: str, batch: int, rounds: int) -> dict[str, Any]:
    """The record of a model: seconds of a call by each way, block by block, and what lies where."""
    entry, count = get(name), len(jax.devices())
    weights, x = entry.variables(), jax.tree.map(jax.numpy.asarray, entry.example(batch))
    plain, ours = jax.jit(entry.module.apply), xcoexec.jit(entry.module.apply)
    rates = product_rates(tuple(jax.devices()))
    same = [max(rates)] * count
    cuts = {ALIKE: cut_as(lambda _: same, ours, weights, x), MEASURED: cut_as(lambda _: rates, ours, weights, x)}
    calls: dict[str, Callable[[], Any]] = {"jit": lambda: plain(weights, x)}
    calls |= {k: lambda f=f: f(x) for k, f in cuts.items()}
    want = [np.asarray(y) for y in jax.tree.leaves(calls["jit"]())]
    found: dict[str, Any] = {"model": name, "batch": batch, "devices": count}
    found["product_rates"] = rates
    found["difference_to_jit"] = {k: worst(call(), want) for k, call in calls.items()}
    for way, flight in WAYS.items():
        found[way] = {k: [] for k in calls}
        for call in list(calls.values())[1:]:
            settle(call, flight)
        for r in range(rounds + 1):
            for k in list(calls)[:: 1 if r % 2 else -1]:
                seconds = block(calls[k], flight)
                found[way][k] += [seconds] if r else []  # the first round is not counted
    found["cut"] = {k: str(f.report().cut) for k, f in cuts.items()}
    found["ran"] = {k: [r.ran for _, r in f.report().parts] for k, f in cuts.items()}
    return found


def rows_of(found: dict[str, Any]) -> list[list[str]]:
    """A record as rows, one for each way of cutting."""
    rows = []
    for k in found["waiting"]:
        cells = []
        for way in WAYS:
            mine, plain = np.array(found[way][k]), np.array(found[way]["jit"])
            low, middle, high = np.percentile(plain / mine, (25, 50, 75))
            cells += [f"{1e3 * np.median(mine):.3f}", f"{middle:.2f} ({low:.2f}-{high:.2f})"]
        rows.append([f"{found['model']} x{found['batch']}", k, *cells, f"{found['difference_to_jit'][k]:.1e}"])
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(prog="benchmarks.uneven", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--share", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    head = ["model", "cut"]
    for way in WAYS:
        head += [f"{way} ms", "times jit"]
    print(f"{where()}; {jax.device_count()} devices; another process uses {given.share} % of the last one")
    with neighbour(given.share):
        for name in given.models:
            began = time.strftime("%Y-%m-%dT%H:%M:%S")
            found = record_of(name, given.batch, given.rounds)
            about = {"neighbour_percent": given.share, "began": began, "machine": where(), "commit": commit()}
            line = {**found, **about, **environment()}
            lines.append(given.folder / "uneven.jsonl", line)
            print(columns([[*head, "difference"], *rows_of(found)], range(2, 7)), flush=True)
            print("\n".join(f"{k}: {cut}" for k, cut in found["cut"].items()), flush=True)


if __name__ == "__main__":
    main()
