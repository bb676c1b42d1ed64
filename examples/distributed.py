"""Runs a network over a data set with a process for each part of it (`jax.distributed`), and adds up what they find.

    python examples/distributed.py                                   # alone
    python examples/distributed.py --processes 2 --process 0 &       # two on one machine
    python examples/distributed.py --processes 2 --process 1

Each process plans for its own first device and cores. `--address` is where process 0 listens.
"""

from __future__ import annotations

import argparse

import jax
import numpy as np
from jax.experimental import multihost_utils

import xcoexec
from xcoexec import models

BATCH = 32


def main() -> None:
    """Prints how many images of each class there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--address", default="localhost:8476")
    given = parser.parse_args()
    if given.processes > 1:
        jax.distributed.initialize(given.address, given.processes, given.process)
    images = np.random.default_rng(0).normal(size=(given.images, 28, 28, 1)).astype(np.float32)
    mine = images[jax.process_index() :: jax.process_count()]
    entry = models.get("lenet")
    fast = xcoexec.jit(entry.module.apply).bind(entry.variables())
    found = [np.asarray(fast(mine[i : i + BATCH])).argmax(-1) for i in range(0, len(mine), BATCH)]
    counts = np.bincount(np.concatenate(found), minlength=10)
    if given.processes > 1:
        counts = np.asarray(multihost_utils.process_allgather(counts)).sum(0)
    print(f"process {jax.process_index()}: {given.images} images:", counts.tolist())


if __name__ == "__main__":
    main()
