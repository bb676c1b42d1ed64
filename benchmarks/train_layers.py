"""The layers of a training step with their seconds on both halves, slowest first."""

from __future__ import annotations

import collections

import jax

import xcoexec
from xcoexec.codegen.program import Value
from xcoexec.ir.layers import Layer
from xcoexec.ir.text import columns, milliseconds
from xcoexec.papers.source import commit

from .train_steps import Training

HEAD = (
    "layer",
    "anchor and tail",
    "result",
    "reads",
    "kernels ms",
    "XLA ms",
    "faster",
    "GFLOP/s",
    "GB/s",
    "no kernels",
)


def listed(name: str, batch: int) -> str:
    """A table of a network's step: milliseconds of every layer alone on kernels and on XLA; rates are those of the
    faster one. Above it the sums, and how many layers kernels cannot run and why.
    """
    training = Training(name, batch)
    args = training.state(), training.data(0)
    session = xcoexec.jit(training.step, wait=True).bind().session(*args)
    costs, layers = session.costs(), session.graph.layers
    both = [(layer, costs.host[layer.index], costs.device[layer.index]) for layer in layers]
    best = lambda row: min(s for s in row[1:] if s is not None)
    rows = [list(HEAD), *(_row(*row) for row in sorted(both, key=best, reverse=True))]
    sums = [sum(row[2] for row in both), sum(map(best, both))]
    why = collections.Counter(layer.host_error for layer in layers if layer.host_error)
    whole = milliseconds(_whole(training))
    return "\n".join(
        [
            f"{name}, batch {batch}, commit {commit()}: {len(layers)} layers, {sum(why.values())} without kernels",
            f"sums: XLA {milliseconds(sums[0])} ms, the faster of both {milliseconds(sums[1])} ms; jax.jit {whole} ms",
            *(f"no kernels, {n} x: {text}" for text, n in why.most_common()),
            columns(rows, range(4, 9)),
        ]
    )


def _whole(training: Training) -> float:
    """Median seconds of `jax.jit`'s step."""
    from xcoexec.measure.timing import median_seconds

    step, args = jax.jit(training.step), (training.state(), training.data(0))
    return median_seconds(lambda: jax.block_until_ready(step(*args)), 1.0)


def _row(layer: Layer, host: float | None, device: float) -> list[str]:
    least = min(s for s in (host, device) if s is not None) or 1e-9
    ops = [op.prim for op in layer.ops]
    tail = collections.Counter(op for op in ops if op != layer.kind)
    reads = " ".join(f"{list(v.shape)}" for v in layer.ins if isinstance(v, Value) and len(v.shape) > 1)
    return [
        layer.name[-60:],
        " ".join([layer.kind, *(f"{k}*{n}" if n > 1 else k for k, n in tail.items())])[:70],
        str(list(layer.out.shape)),
        reads[:70],
        milliseconds(host),
        milliseconds(device),
        "-" if host is None else f"{device / host:.2f}x",
        f"{layer.flops / least / 1e9:.1f}",
        f"{layer.nbytes / least / 1e9:.1f}",
        layer.host_error[:60],
    ]
