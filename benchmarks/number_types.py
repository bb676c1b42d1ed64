"""`python -m benchmarks.number_types [folder]`: networks in f32, bf16 and int8 beside OpenVINO's and ONNX Runtime's.

bf16: weights and input are bf16. int8: as qwix quantises the network, with one known scale for each activation.
OpenVINO has the same layers as a graph of its own operations with random weights, or where there is none the graph that
ONNX Runtime runs (`onnx_graphs`, in int8 `onnx_int8`). All alternate in one process.

    python -m benchmarks.number_types out --models resnet50 --batch 1 8
"""

from __future__ import annotations

import argparse
import functools
import math
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec import config, models
from xcoexec.ir.text import columns
from xcoexec.measure.timing import alternate
from xcoexec.papers.source import commit
from xcoexec.tools import bench
from xcoexec.tools.lines import append
from xcoexec.tools.machine import environment
from xcoexec.tools.oracle import error

from . import networks, onnx_graphs, onnx_int8, openvino_graphs, peers
from .quantised import MODELS, quantised

KINDS = ("f32", "bf16", "int8")
ROUNDS, SECONDS = 8, 0.25
HEAD = (
    *("model", "batch", "type", "xcoexec ms", "OpenVINO ms", "ORT ms"),
    *("ratio to the better", "of f32's time", "apart", "ran"),
)
PEERS = ("openvino", "onnxruntime")


def network(name: str, batch: int, kind: str) -> tuple[Callable[..., Any], Any, Any]:
    """The function, weights and input of a network of the zoo in a type."""
    entry = models.get(name)
    weights, x = entry.variables(bench.SEED), entry.example(batch, bench.SEED)
    if kind == "int8":
        return *quantised(entry.module, x, static=True), x
    if kind == "f32":
        return entry.module.apply, weights, x
    return entry.module.apply, networks.rounded(weights), networks.rounded(x)


def openvino(name: str, kind: str, batch: int, threads: int) -> tuple[Callable[[], Any], Any]:
    """A call of a network in a type on OpenVINO, and what it runs."""
    if name in openvino_graphs.NETWORKS:
        return openvino_graphs.request(name, kind, batch, threads)
    if kind == "int8":
        return onnx_int8.openvino(name, batch, threads)
    make = lambda graph: peers.openvino_request(graph, threads, kind)
    request = onnx_graphs.fastest(name, batch, make, peers.openvino_run)
    return request.infer, openvino_graphs.types(request.get_compiled_model())


def onnxruntime(name: str, kind: str, batch: int, threads: int) -> tuple[Callable[[], Any], Any]:
    """A call of a network in f32 or int8 on ONNX Runtime, and what it runs."""
    if kind == "int8":
        return onnx_int8.ort(name, batch, threads)
    session = peers.ort_session(name, batch, threads)
    leaves = jax.tree_util.tree_leaves(models.get(name).example(batch, bench.SEED))
    return functools.partial(session.run, None, peers.ort_feeds(session, leaves)), {}


def measure(name: str, batch: int, threads: int, kinds: Sequence[str], others: Sequence[str]) -> dict[str, Any]:
    """Median milliseconds of ours and of `others` with their quartiles, what ran, and how far the results of each type
    are from `jax.jit`'s of the same network (`apart`, of the largest value).
    """
    calls: dict[str, Callable[[], Any]] = {}
    ran: dict[str, Any] = {}
    apart: dict[str, float] = {}
    first = lambda tree: np.asarray(jax.tree_util.tree_leaves(tree)[0], np.float32)
    for kind in kinds:
        fn, weights, x = network(name, batch, kind)
        fast = xcoexec.jit(fn, strategy="host", threads=threads, strict=True, wait=True).bind(weights)
        apart[kind] = error(first(fast(x)), first(jax.jit(fn)(weights, x)))
        calls[f"xcoexec {kind}"] = lambda fast=fast, x=x: jax.block_until_ready(fast(x))
        families = [a for layer in fast.report().layers for a in layer.algorithm.split("+")]
        ran[f"xcoexec {kind}"] = {a: families.count(a) for a in sorted(set(families))}
        if "openvino" in others:
            calls[f"openvino {kind}"], ran[f"openvino {kind}"] = openvino(name, kind, batch, threads)
        if "onnxruntime" in others and kind != "bf16":  # for which ONNX Runtime has no kernels on CPUs
            calls[f"onnxruntime {kind}"], ran[f"onnxruntime {kind}"] = onnxruntime(name, kind, batch, threads)
    samples: dict[str, list[float]] = {}
    seconds = alternate(calls, ROUNDS, SECONDS, samples=samples)
    spread = {k: [float(q) * 1e3 for q in np.percentile(v, (25, 75))] for k, v in samples.items()}
    return {
        "model": name,
        "batch": batch,
        "threads": threads,
        "ms": {k: s * 1e3 for k, s in seconds.items()},
        "quartiles": spread,
        "ran": ran,
        "apart": apart,
    }


def rows(record: dict[str, Any], kinds: Sequence[str]) -> list[list[str]]:
    """A record's lines under `HEAD`."""
    found, ms = [], record["ms"]
    for kind in kinds:
        ours, theirs = ms[f"xcoexec {kind}"], [ms.get(f"{peer} {kind}") for peer in PEERS]
        best = min((t for t in theirs if t is not None), default=math.nan)
        share = f"{ours / ms['xcoexec f32']:.2f}" if "xcoexec f32" in ms else "-"
        times = [f"{ours:.2f}", *("-" if t is None else f"{t:.2f}" for t in theirs), f"{ours / best:.2f}", share]
        most = max(record["ran"][f"xcoexec {kind}"].items(), key=lambda item: item[1])[0]
        found.append([record["model"], str(record["batch"]), kind, *times, f"{record['apart'][kind]:.0e}", most])
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table; appends records to `number_types.jsonl` in the folder."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.number_types", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="out", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, default=config.threads(None))
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = [list(HEAD)]
    for name in given.models:
        for batch in given.batch:
            record = measure(name, batch, given.threads, given.kinds, given.peers)
            lines += rows(record, given.kinds)
            about = {"commit": commit(), "began": time.strftime("%Y-%m-%dT%H:%M:%S")}
            append(given.folder / "number_types.jsonl", {**record, **environment(), **about})
    print(columns(lines, (1, *range(3, 9))))


if __name__ == "__main__":
    main()
