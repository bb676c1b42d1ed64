"""How fast products of a few rows read their weights, beside threads that only read.

    python -m benchmarks.tokens [--dtypes bfloat16 int8] [--rows 1 4] [--threads 1 2] [--gigabytes 1.5]

Weights are matrices of the size of a language model's, many of them, so that together they are larger than the last
cache and no call finds its own there. Reads and products alternate in one process, on memory of their own. A figure is
bytes of the stored weights in a second. With one thread the seconds are those of the thread's own clock, so that who
else uses the machine counts less; with more they are wall seconds, of which the least fiftieth counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from xcoexec.codegen.program import itemsize
from xcoexec.codegen.runtime import host, peaks
from xcoexec.frontend.graph import graph_of
from xcoexec.ir.text import table

SHAPES = ((2048, 2048), (2048, 5632), (5632, 2048), (2048, 32000))
DTYPES = ("bfloat16", "float32", "float16", "int8", "int8 scaled", "int8 grouped", "int4 scaled", "int4 grouped")
GROUP = 128  # rows that have a scale for each channel of their own
SET_BYTES = 1 << 24  # of weights that one call reads, at least
HEAD = ("weights", "matrix", "rows", "threads", "reads GB/s", "product GB/s", "of the reads", "kernels")


def product(stored: str) -> Callable[..., Any]:
    """The sum of x @ w over the weights of a list. Of whole numbers, with scales: for each output channel, multiplied
    behind the product ("int8") or with the weights ("scaled"), or also for each `GROUP` rows ("grouped").
    """

    def one(w: Any, x: Any) -> Any:
        if not isinstance(w, tuple):
            return (x @ w.astype(x.dtype)).astype(jnp.float32)
        q, scale = w[0].astype(x.dtype), w[1]
        return x @ (q * scale).reshape(x.shape[1], -1) if " " in stored else (x @ q) * scale

    def fn(ws: Sequence[Any], x: Any) -> Any:
        y = one(ws[0], x)
        for w in ws[1:]:
            y = y + one(w, x)
        return y

    return fn


def weights(stored: str, k: int, n: int, count: int) -> list[Any]:
    """`count` matrices [k, n], those of whole numbers with their scales."""
    rng = np.random.default_rng(0)
    dtype, _, scaled = stored.partition(" ")
    most = {"int4": 8}.get(dtype, 127)
    block = rng.integers(-most, most, (k, n), np.int8)
    if not dtype.startswith("int"):
        made = (block.astype(np.float32) / 1024).astype(jnp.dtype(dtype))
        return [made.copy() for _ in range(count)]
    groups = k // GROUP if scaled == "grouped" else 1
    scale = rng.uniform(0.01, 0.02, (groups, 1, n)).astype(np.float32)
    block = block.astype(jnp.dtype(dtype)).reshape(groups, k // groups, n)
    if scaled != "grouped":
        block, scale = block[0], scale[0, 0]
    return [(block.copy(), scale) for _ in range(count)]


def calls(stored: str, k: int, n: int, rows: int, threads: int, nbytes: float) -> tuple[list[Any], list[Any], str, int]:
    """Calls that read, calls that multiply, one each for every set of weights; the kernels; bytes of a set."""
    each = k * n // 2 if stored.startswith("int4") else k * n * itemsize(stored.split()[0])
    per = -(-SET_BYTES // each)
    sets = max(2, int(nbytes / (per * each)))
    size = per * each // peaks.ITEM_BYTES * peaks.ITEM_BYTES
    x = np.random.default_rng(1).standard_normal((rows, k)).astype(np.float32)
    narrow = jnp.bfloat16 if stored == "bfloat16" else jnp.float32
    given = jnp.asarray(x, narrow)
    folded, graph = graph_of(product(stored), (weights(stored, k, n, per), given), 1)
    segment = host.build(graph.program, threads)
    reads, products = [], []
    read = peaks.reading(size, threads)
    for _ in range(sets):
        mine = weights(stored, k, n, per)
        constants = folded.constants(jax.tree_util.tree_leaves(mine))
        arrays = [np.ascontiguousarray(constants[v]) for v in segment.raw]
        products.append(host.Call.on(segment, [np.asarray(given, np.float32), *arrays, segment.pack(constants)]))
        reads.append(host.Call(read, [np.ones(size // 4, np.float32)], []))
    return reads, products, "+".join(dict.fromkeys(segment.algorithms)), per * each


def alternating(
    reads: Sequence[Any], products: Sequence[Any], threads: int, rounds: int
) -> Iterator[tuple[float, float]]:
    """Seconds of a read and of a product, in turn."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    for i in range(rounds * len(reads)):
        pair = []
        for call in (reads[i % len(reads)], products[i % len(reads)]):
            start = clock()
            call()
            pair.append(clock() - start)
        yield pair[0], pair[1]


def row(stored: str, shape: tuple[int, int], rows: int, threads: int, args: argparse.Namespace) -> list[str]:
    reads, products, kernels, nbytes = calls(stored, *shape, rows, threads, args.gigabytes * 1e9)
    times = np.array(list(alternating(reads, products, threads, args.rounds)))[2:]
    size = reads[0].segment.program.inputs[0].nbytes
    read, made = np.quantile(times, 0.5 if threads == 1 else 0.02, axis=0)
    rates = size / read / 1e9, nbytes / made / 1e9
    figures = [f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{rates[1] / rates[0]:.0%}"]
    return [stored, f"{shape[0]}x{shape[1]}", str(rows), str(threads), *figures, kernels]


def main() -> None:
    parser = argparse.ArgumentParser("tokens", description=__doc__)
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--shapes", nargs="+", default=["x".join(map(str, s)) for s in SHAPES])
    parser.add_argument("--rows", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--gigabytes", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    shapes = [tuple(map(int, s.split("x"))) for s in args.shapes]
    cases = [(d, s, r, t) for d in args.dtypes for s in shapes for r in args.rows for t in args.threads]
    found = [row(*case, args) for case in cases]
    Console(width=160).print(table("", HEAD, found, right=range(2, 7)))


if __name__ == "__main__":
    main()
