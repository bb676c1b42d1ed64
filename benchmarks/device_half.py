"""The device half alone, on a GPU: plain `jax.jit`, and XLA on the folded graph with weights and convolutions laid out
in several ways; alternating in one process.

    python -m benchmarks.device_half FOLDER [MODEL...] [--precision default highest]

    folded           batch norm inside of the weights
    channels first   exact convolutions have channels first as well (precision "highest")
    as read          weights of convolutions lie as the kernels read them as well: what plans use

Under `benchmarks/edge_slice` a small part of the GPU stands for an edge GPU; the records say so.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from rich.console import Console

import xcoexec
from xcoexec import models
from xcoexec.devices.cuda import RECORD
from xcoexec.devices.record import Device
from xcoexec.devices.registry import register
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate, silent
from xcoexec.papers.source import commit
from xcoexec.tools.machine import environment

from .gpu import PRECISIONS, gpu_parser, on_gpu, slice_percent, where

MODELS = ("resnet18", "resnet50", "mobilenet_v2", "squeezenet", "vgg16")
NOTHING: dict[str, Any] = {"compiling": lambda ops: {}, "filters": lambda ops, options: {}}
WAYS: dict[str, Device] = {
    "folded": dataclasses.replace(RECORD, **NOTHING),
    "channels first": dataclasses.replace(RECORD, filters=NOTHING["filters"]),
    "as read": RECORD,
}
ROUNDS, BLOCK_SECONDS = 6, 0.06


def calls(name: str) -> dict[str, Callable[[], Any]]:
    """Calls that wait, of plain `jax.jit` and of the device half in every way that differs here."""
    entry = models.get(name)
    weights, x = entry.variables(), entry.example()
    plain = jax.jit(entry.module.apply)
    found: dict[str, Callable[[], Any]] = {"jax.jit": lambda: jax.block_until_ready(plain(weights, x))}
    fast = xcoexec.jit(entry.module.apply, strategy="host", strict=True).bind(weights)
    fast(x)
    options: list[object] = []
    for way, device in WAYS.items():
        register(device)
        attempt = fast.session().planner._attempt(silent)  # the device half alone is no strategy's plan
        setting = (attempt.machine.device.compiling(attempt.graph.program.ops), way == "as read")
        if setting in options:
            continue
        options.append(setting)
        found[way] = functools.partial(attempt.run, attempt.all_device)
        found[way]()
    return found


def record(name: str, precision: str) -> dict[str, Any]:
    """Median, 10th and 90th percentile of seconds of a call in each way."""
    with jax.default_matmul_precision(precision):
        samples: dict[str, list[float]] = {}
        medians = alternate(calls(name), ROUNDS, BLOCK_SECONDS, samples=samples)
    spread = {k: np.percentile(v, [10, 90]).tolist() for k, v in samples.items()}
    about = {"model": name, "precision": precision, "machine": where(), "slice_percent": slice_percent()}
    return {**environment(), **about, "seconds": medians, "spread": spread, "commit": commit()}


def main() -> None:
    parser = gpu_parser("device_half", __doc__)
    parser.add_argument("models", nargs="*", default=[], choices=[*models.NAMES, []])
    parser.add_argument("--precision", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    args = on_gpu(parser)
    rows = []
    with (args.folder / "device-half.jsonl").open("a") as out:
        for precision in args.precision:
            for name in args.models or MODELS:
                r = record(name, precision)
                out.write(json.dumps(r) + "\n")
                out.flush()
                ms = [f"{1e3 * r['seconds'][k]:.3f}" if k in r["seconds"] else "-" for k in ("jax.jit", *WAYS)]
                rows.append([name, precision, *ms, f"{r['seconds']['jax.jit'] / r['seconds']['as read']:.2f}"])
    head = ("model", "precision", "jax.jit", *WAYS, "jax.jit/as read")
    Console(width=160).print(table(f"{where()} (ms a call)", head, rows, right=range(2, len(head))))


if __name__ == "__main__":
    main()
