"""`python -m benchmarks.mesh [model ...]`: a batch over all devices of this process, beside sharded `jax.jit`.

The batch is divided by item over a mesh of all devices, the weights lie on all of them. Blocks of calls by `jax.jit`,
by `xcoexec.jit` and by a function with these weights bound take turns, waiting for each result and with 10 calls in
flight; what is printed is the median of the blocks' ratios with the least and the most. On a CPU:
XLA_FLAGS=--xla_force_host_platform_device_count=4.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import xcoexec
from xcoexec import models
from xcoexec.papers.source import commit
from xcoexec.tools import bench, lines
from xcoexec.tools.machine import environment

from .both_ways import block
from .settled import settle

MODELS = ("lenet", "mobilenet_v2", "resnet18")
FLIGHT = 10  # calls in flight
BLOCKS, BLOCK_SECONDS = 8, 0.3  # of each, after the first, which is not counted
LEAST, LONG_SECONDS = 3, 30.0  # blocks of calls that take long


def record_of(name: str, batch: int) -> dict[str, Any]:
    """The record of a model."""
    entry, mesh = models.get(name), jax.make_mesh((len(jax.devices()),), ("batch",))
    weights = jax.device_put(entry.variables(bench.SEED), NamedSharding(mesh, P()))
    images = jax.device_put(np.asarray(entry.example(batch, bench.SEED)), NamedSharding(mesh, P("batch")))
    plain, fast = jax.jit(entry.module.apply), xcoexec.jit(entry.module.apply)
    bound = fast.bind(weights)
    want, _, _ = plain(weights, images), fast(weights, images), bound(images)
    fast.ready(), bound.ready()
    got, plan = fast(weights, images), fast.plan(weights, images)
    error = float(np.abs(np.asarray(got) - np.asarray(want)).max() / np.abs(np.asarray(want)).max())
    record = {"model": name, "batch": batch, "devices": len(jax.devices()), "engine": plan.engine, "error": error}
    same = [x.sharding == want.sharding for x in (got, bound(images))]
    record |= {"plan": plan.summary(), "bound_engine": bound.plan().engine, "same_sharding": all(same)}
    calls = (lambda: plain(weights, images), lambda: fast(weights, images), lambda: bound(images))
    for what, flight in (("waiting", 1), ("in_flight", FLIGHT)):
        for call in calls[1:]:
            settle(call, flight)
        began, turns = time.perf_counter(), list[list[float]]()
        while len(turns) <= LEAST or (len(turns) <= BLOCKS and time.perf_counter() - began < LONG_SECONDS):
            turns.append([block(call, flight, BLOCK_SECONDS) for call in calls])
        record[what] = _ratios(np.array(turns[1:]))
    return record | {"chosen": fast.plan(weights, images).chosen, "bound_chosen": bound.plan().chosen}


def _ratios(turns: np.ndarray) -> dict[str, float]:
    """Milliseconds of a call by jax.jit, ours and bound, and how many times faster than jax.jit, of a row for each
    turn.
    """
    plain, ours, bound = 1e3 * np.median(turns, axis=0)
    found = {"jit_ms": plain, "ours_ms": ours, "bound_ms": bound}
    for column, name in ((1, ""), (2, "bound_")):
        times = turns[:, 0] / turns[:, column]
        found |= {f"{name}times": np.median(times), f"{name}least": times.min(), f"{name}most": times.max()}
    return {k: float(v) for k, v in found.items()} | {"blocks": len(turns)}


def main(argv: Sequence[str] | None = None) -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(prog="benchmarks.mesh", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--out", type=pathlib.Path, help="a file of lines to which the records are added")
    given = parser.parse_args(argv)
    for name in given.models:
        record = record_of(name, given.batch)
        for what in ("waiting", "in_flight"):
            r = record[what]
            for kind, prefix in (("ours", ""), ("bound", "bound_")):
                times, least, most = (r[prefix + k] for k in ("times", "least", "most"))
                span = f"{r['jit_ms']:.2f} / {r[kind + '_ms']:.2f} ms, {times:.2f}x ({least:.2f} to {most:.2f})"
                print(f"{name} {what}, {kind}: {span}", record["plan"], flush=True)
        if given.out is not None:
            lines.append(given.out, {**record, "commit": commit(), **environment()})


if __name__ == "__main__":
    main()
