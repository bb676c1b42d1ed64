"""The layers of a training step with their seconds, slowest first.

By default the step runs with all that kernels can express on kernels, and the seconds are those of its stamps, in the
place where layers are. With `both` each layer is measured alone on both halves, which takes minutes for large networks.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator

import jax

import xcoexec
from xcoexec.codegen.program import Value
from xcoexec.ir.layers import Layer
from xcoexec.ir.text import columns, milliseconds
from xcoexec.papers.source import commit

from .train_steps import Training

CALLS, SECONDS = 15, 5.0  # at most; medians, as the first calls touch new pages
HEAD = (
    *("layer", "anchor and tail", "result", "reads", "kernels ms", "XLA ms", "GFLOP/s", "GB/s"),
    "kernel, or why there is none",
)
Timed = tuple[Layer, float | None, float | None, str]  # seconds on kernels and on XLA (None: not measured), how


def listed(name: str, batch: int, both: bool = False) -> str:
    """A table of a network's step; rates are those of the faster half. Above it the sums, and how many layers kernels
    cannot run and why.
    """
    training = Training(name, batch)
    timed, said = _alone(training) if both else _in_place(training)
    timed.sort(key=_best, reverse=True)
    sums: dict[str, float] = collections.defaultdict(float)
    for t in timed:
        sums[t[0].kind] += _best(t)
    why = collections.Counter(layer.host_error for layer, *_ in timed if layer.host_error)
    kinds = sorted(sums.items(), key=lambda kv: -kv[1])[:12]
    return "\n".join(
        [
            f"{name}, batch {batch}, commit {commit()}",
            f"{len(timed)} layers, {sum(why.values())} without kernels; {said}",
            "ms by kind: " + ", ".join(f"{kind} {milliseconds(s)}" for kind, s in kinds),
            *(f"no kernels, {n} x: {text}" for text, n in why.most_common()),
            columns([list(HEAD), *map(_row, timed)], range(4, 8)),
        ]
    )


def _in_place(training: Training) -> tuple[list[Timed], str]:
    """By the stamps of a step that runs on kernels where it can."""
    step, state, data = xcoexec.jit(training.step, plan=xcoexec.Plan.uniform(1.0)), training.state(), training.data(0)
    whole = min(_seconds(step, state, data))
    report = step.report(state, data)
    layers = step.graph(state, data).layers
    timed: list[Timed] = [(x, r.measured, None, r.algorithm) for x, r in zip(layers, report.layers, strict=True)]
    inside = sum(r.measured or 0.0 for r in report.layers)
    return timed, (
        f"a step {milliseconds(whole)} ms, of it {milliseconds(inside)} in {report.segments} segments;"
        f" jax.jit {milliseconds(min(_seconds(jax.jit(training.step), state, data)))} ms"
    )


def _seconds(step: object, state: object, data: object) -> Iterator[float]:
    end = time.perf_counter() + SECONDS
    for i in range(CALLS):
        if i > 1 and time.perf_counter() > end:
            break
        began = time.perf_counter()
        jax.block_until_ready(step(state, data))  # type: ignore[operator]
        yield time.perf_counter() - began


def _alone(training: Training) -> tuple[list[Timed], str]:
    """Each layer alone on both halves, as the planner measures them."""
    session = xcoexec.jit(training.step, wait=True).bind().session(training.state(), training.data(0))
    costs = session.costs()
    timed: list[Timed] = [(x, costs.host[x.index], costs.device[x.index], "") for x in session.graph.layers]
    return timed, f"XLA {milliseconds(sum(costs.device))} ms, the faster half {milliseconds(sum(map(_best, timed)))} ms"


def _least(timed: Timed) -> float | None:
    """Seconds on the faster half; None where no half was measured."""
    return min((s for s in timed[1:3] if s is not None), default=None)


def _best(timed: Timed) -> float:
    return _least(timed) or 0.0


def _row(timed: Timed) -> list[str]:
    layer, host, device, algorithm = timed
    tail = collections.Counter(op.prim for op in layer.ops if op.prim != layer.kind)
    reads = " ".join(f"{list(v.shape)}" for v in layer.ins if isinstance(v, Value) and len(v.shape) > 1)
    least = _least(timed)
    rates = [f"{n / least / 1e9:.1f}" if least else "-" for n in (layer.flops, layer.nbytes)]
    return [
        layer.name[-60:],
        " ".join([layer.kind, *(f"{k}*{n}" if n > 1 else k for k, n in tail.items())])[:70],
        str(list(layer.out.shape)),
        reads[:70],
        milliseconds(host),
        milliseconds(device),
        *rates,
        (layer.host_error or algorithm)[:70],
    ]
