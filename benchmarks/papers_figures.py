"""The figures of `benchmarks.papers`: what our planners make of the papers' devices, and what was measured."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcoexec.cost.edgenn import bound
from xcoexec.frontend.graph import graph_of
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.planning import profiles
from xcoexec.planning.simulate import BACK, OUT, replay
from xcoexec.strategies import Strategy, codl, layer_switch
from xcoexec.tools.suite import SUITES
from xcoexec.tools.zoo_graphs import model_graph

from . import quoted

NONE = "-"

Record = dict[str, Any]
Suite = Sequence[Record]


# -- on the papers' devices ---------------------------------------------------------------------------


@functools.cache
def on(device: str, model: str) -> tuple[LayerGraph, Costs]:
    graph = model_graph(model)
    return graph, profiles.load(device).costs(graph)


def seconds(device: str, model: str, strategy: Strategy) -> float:
    graph, costs = on(device, model)
    return replay(graph, strategy(graph, costs), costs).seconds


def less(device: str, suite: str, strategy: Strategy, than: Sequence[Strategy]) -> str:
    """Mean share of time that a strategy takes less than the best of others, over a suite's networks; least and
    most.
    """
    found = {}
    for model in SUITES[suite].models:
        best = min(seconds(device, model, other) for other in than)
        found[model] = 1 - seconds(device, model, strategy) / best
    return _range(found)


def times(device: str, suite: str, strategy: Strategy, than: Strategy) -> str:
    """Geometric mean of another strategy's time over a strategy's."""
    return _mean_ratio([seconds(device, m, than) / seconds(device, m, strategy) for m in SUITES[suite].models])


def exchanged(device: str, suite: str) -> str:
    """By how much chains shorten the copies: plans with chains beside the same shares of the same layers, each
    exchanged on its own.
    """
    shares = {}
    for model in SUITES[suite].models:
        graph, costs = on(device, model)
        plan = codl(graph, costs)
        alone = tuple(dataclasses.replace(p, chain=0) for p in plan.placements)
        if alone != plan.placements:
            runs = [
                replay(graph, dataclasses.replace(plan, placements=places), costs)
                for places in (plan.placements, alone)
            ]
            with_chains, without = (run.busy(OUT) + run.busy(BACK) for run in runs)
            shares[model] = 1 - with_chains / without
    return _range(shares) if shares else NONE


def chained(device: str, suite: str) -> str:
    """The share of layers that are in chains."""
    plans = [codl(*on(device, m)) for m in SUITES[suite].models]
    return f"{sum(p.chain > 0 for plan in plans for p in plan.placements) / sum(len(p.placements) for p in plans):.0%}"


def copied(device: str, suite: str) -> str:
    """Weights that both halves keep, as a share of all."""
    both = total = 0
    for model in SUITES[suite].models:
        graph, costs = on(device, model)
        consts = set(graph.program.consts)
        for x, p in zip(graph.layers, codl(graph, costs).placements, strict=True):
            nbytes = sum(v.nbytes for v in x.ins if v in consts)
            total += nbytes
            both += nbytes if p.half == "split" and p.dim == "rows" else 0
    return f"+{both / total:.0%} (weights)"


def dense_and_conv(layers: Sequence[tuple[str, float | None, float]]) -> tuple[float, float]:
    """By how much the best split of each layer (EdgeNN's Equation 4, where copies cost nothing) would shorten dense
    layers and convolutions, as shares.
    """
    out = []
    for kind in ("dot_general", "conv_general_dilated"):
        chosen = [(h, d) for k, h, d in layers if k == kind and h]
        out.append(1 - sum(bound(h, d) for h, d in chosen) / sum(d for _, d in chosen))
    return out[0], out[1]


def alexnet_simulated() -> str:
    graph, costs = on("jetson-agx-xavier", "alexnet")
    dense, conv = dense_and_conv(
        [(x.kind, h, d) for x, h, d in zip(graph.layers, costs.host, costs.device, strict=True)]
    )
    return f"dense {dense:.0%}, convolutions {conv:.0%}"


def table_1() -> str:
    """The exact path over the table that the paper prints."""
    import jax.numpy as jnp

    printed = quoted.load("layer_switched")["table1"]
    cpu, gpu = (tuple(t * 1e-3 for t in printed.numbers(column)) for column in ("cpu", "gpu"))
    fn = lambda w, x: functools.reduce(lambda y, m: jnp.tanh(y @ m), w, x)
    graph = graph_of(fn, ([np.ones((4, 4), np.float32)] * len(cpu), np.ones((1, 4), np.float32)), 1)[1]
    best = layer_switch(graph, Costs.of_halves(cpu, gpu, 0.0, float("inf"), 1.0, False)).predicted
    assert best is not None
    return f"{best * 1e3:.2f} ms; {1 - best / sum(cpu):.2%} and {1 - best / sum(gpu):.2%}"


# -- measured -----------------------------------------------------------------------------------------


def median(record: Record, variant: str) -> float:
    return float(record["seconds"][variant][1])


def measured_less(records: Suite, variant: str, than: Sequence[str]) -> str:
    return _range({r["model"]: 1 - median(r, variant) / min(median(r, t) for t in than) for r in records})


def measured_times(records: Suite, variant: str, than: str) -> str:
    return _mean_ratio([median(r, than) / median(r, variant) for r in records])


def measured_sharing(records: Suite) -> str:
    pairs = {
        r["model"]: (r["sharing"]["codl"], r["sharing"]["codl, no chains"])
        for r in records
        if "codl, no chains" in r["sharing"]
    }
    shares = {m: 1 - a[1] / b[1] for m, (a, b) in pairs.items() if a[1] and b[1] and a[0] < b[0]}
    return _range(shares) if shares else NONE


def alexnet_measured(records: Suite) -> str:
    for r in records:
        if r["model"] == "alexnet" and r["layers"]:
            dense, conv = dense_and_conv([(kind, h, d) for _, kind, _, _, h, d in r["layers"]])
            return f"dense {dense:.0%}, convolutions {conv:.0%}"
    return NONE


def simulated(records: Suite) -> str:
    """How many variants the simulator is right about; the halves alone, which it is scaled to, do not count."""
    pairs = [
        (r["simulated"][v], median(r, v))
        for r in records
        if "simulated" in r
        for v in r["simulated"]
        if v not in ("host", "device") and r["simulated"][v]
    ]
    return f"{sum(abs(s / t - 1) <= 0.1 for s, t in pairs) / len(pairs):.0%} of {len(pairs)}"


def _mean_ratio(ratios: Sequence[float]) -> str:
    return f"{float(np.exp(np.mean(np.log(ratios)))):.2f}x"


def _range(shares: Mapping[str, float]) -> str:
    least, most = min(shares, key=lambda k: shares[k]), max(shares, key=lambda k: shares[k])
    return f"{np.mean(list(shares.values())):.1%} ({shares[least]:.1%} {least} .. {shares[most]:.1%} {most})"
