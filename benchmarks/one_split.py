"""One layer split at a time, run: what EdgeNN's hybrid execution improves of single layers (Figure 11, Table I).

    python -m benchmarks.one_split [file.jsonl]

For each layer that can be divided by channels, the plan that splits it alone, at the share of Equation 4, alternates
with the plan of all layers on the device half; what it saves is divided by the layer's own time there.
"""

from __future__ import annotations

import functools
import json
import pathlib
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from xcoexec import jit, models
from xcoexec.cost.edgenn import optimum
from xcoexec.ir.costs import Costs
from xcoexec.ir.geometry import axis_of
from xcoexec.ir.layers import Layer, LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.words import DEVICE, SPLIT
from xcoexec.measure.timing import alternate
from xcoexec.papers import steps
from xcoexec.papers.quoted import load
from xcoexec.papers.source import commit
from xcoexec.planning.simulate import replay
from xcoexec.tools.machine import environment
from xcoexec.tools.splits import NO_SPLIT

from .predictors import RESULTS
from .split_common import Row, mean, row, spread

MODELS = ("lenet", "alexnet", "vgg16")  # of Table I
PRINTED = {"lenet": "lenet", "alexnet": "alexnet", "vgg16": "vgg"}  # ours -> the paper's
CLASSES = {"conv_general_dilated": "conv", "dot_general": "fc"}
FILE = RESULTS / "one-split.jsonl"
ROUNDS, BLOCK = 5, 0.05


def plan(graph: LayerGraph, split: Mapping[int, float]) -> Plan:
    """All layers on the device half but for those that are split, by their index, at a share of their channels."""
    places = tuple(
        Placement(x.name, SPLIT if x.index in split else DEVICE, split.get(x.index, 0.0)) for x in graph.layers
    )
    return Plan("one split", places, graph.key, chosen=f"{len(split)} layers split alone")


def divisible(graph: LayerGraph) -> list[Layer]:
    """The convolutions and dense layers that can be divided by channels."""
    return [x for x in graph.layers if x.kind in CLASSES and "channel" in x.dims and not x.host_error]


def share(layer: Layer, costs: Costs) -> float:
    """Equation 4's share for the host half; 0 where the layer is better not split, or is too small for it."""
    t_cpu, t_gpu = costs.host[layer.index], costs.device[layer.index]
    if t_cpu is None:
        return 0.0
    p = optimum(t_cpu, t_gpu, layer.out.nbytes, costs.copy_rate)
    size = layer.out.shape[axis_of(layer.group, "channel") or 0]
    at = round(p * size / layer.dims["channel"]) * layer.dims["channel"]
    return at / size if 0 < at < size else 0.0


def simulated(graph: LayerGraph, costs: Costs) -> dict[str, list[float]]:
    """Class ("conv", "fc") -> the improvement of each layer by its split alone, as a share of its time on the device;
    0 where the split is slower, as EdgeNN's tuning leaves such a layer alone.
    """
    alone = replay(graph, plan(graph, {}), costs).seconds
    found: dict[str, list[float]] = {}
    for x in divisible(graph):
        p = share(x, costs)
        saved = alone - replay(graph, plan(graph, {x.index: p}), costs).seconds if p else 0.0
        found.setdefault(CLASSES[x.kind], []).append(max(saved, 0.0) / costs.device[x.index])
    return found


def single_splits(model: str, done: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """A record for each layer that is not done: seconds (quartiles) of the call without and with its split, and of the
    layer alone on either half. A layer that Equation 4 does not split has no such seconds.
    """
    entry = models.get(model)
    weights, x = entry.variables(), entry.example(1)
    bound = jit(entry.module.apply, strategy="device", wait=True).bind(weights)
    jax.block_until_ready(bound(x))
    session = bound.session()
    graph, costs = session.graph, session.costs()
    for layer in divisible(graph):
        start, p = time.perf_counter(), share(layer, costs)
        if layer.name in done:
            continue
        known = {
            "model": model,
            "layer": layer.name,
            "class": CLASSES[layer.kind],
            "p_cpu": p,
            "layer_seconds": {"host": costs.host[layer.index], "device": costs.device[layer.index]},
            "shared_cores": costs.shared_cores,
            "commit": commit(),
            "environment": environment(),
        }
        if not p:
            yield known
            continue
        plans = {"device": plan(graph, {}), "split": plan(graph, {layer.index: p})}
        fast = {
            k: jit(entry.module.apply, plan=made, wait=True, strict=True).bind(weights) for k, made in plans.items()
        }
        calls = {k: lambda f=f: jax.block_until_ready(f(x)) for k, f in fast.items()}
        for call in calls.values():
            call()
        samples: dict[str, list[float]] = {}
        alternate(calls, ROUNDS, BLOCK, samples=samples)
        yield known | {
            "seconds": {k: [float(q) for q in np.percentile(t, (25, 50, 75))] for k, t in samples.items()},
            "runs": {k: len(t) for k, t in samples.items()},
            "took": time.perf_counter() - start,
        }


def longer(r: Mapping[str, Any]) -> float:
    """Seconds by which a call takes longer with its split than without."""
    return float(r["seconds"]["split"][1] - r["seconds"]["device"][1])


def improvements(records: Sequence[Mapping[str, Any]], model: str, kind: str) -> list[float]:
    """What each layer's split saved of its time on the device half; below 0 where it cost time."""
    mine = [r for r in records if (r["model"], r["class"]) == (model, kind) and "seconds" in r]
    return [-longer(r) / r["layer_seconds"]["device"] for r in mine]


def beside(r: Mapping[str, Any]) -> float:
    """Seconds that a split costs beside its two parts, which are as long as their shares of the layer's seconds:
    crossing, waiting, merging.
    """
    p, t = r["p_cpu"], r["layer_seconds"]
    parts = max(p * t["host"], (1 - p) * t["device"])
    return float(longer(r) + t["device"] - parts)


def words(model: str, kind: str) -> str:
    """What a row of Table I is."""
    return f"{model}, {kind}: each layer split alone, mean over layers"


def table1(models: Sequence[str]) -> list[Row]:
    """Table I run on this machine, a step for each network. Where both halves share cores they take turns, so that a
    forced split says nothing about working together.
    """
    out = []
    for model in models:
        records = steps.once(__name__, f"{model}, splits one by one", lambda m=model: list(single_splits(m)))
        kinds = dict.fromkeys(r["class"] for r in records or ())
        out += [_row_of(model, kind, [r for r in records if r["class"] == kind]) for kind in kinds]
    return out


def _row_of(model: str, kind: str, records: Sequence[Mapping[str, Any]]) -> Row:
    """The layers of one kind of a network."""
    printed = load("edgenn")["table1"].numbers(f"{PRINTED[model]}_{kind}")[2]
    note, made = f"{len(records)} layers", functools.partial(row, "edgenn", "Table I", words(model, kind), printed)
    whole, records = len(records), [r for r in records if r["p_cpu"]]
    if whole > len(records):
        note += f", of which Equation 4 leaves {whole - len(records)} to the GPU (0)"
    if not records:
        return made(NO_SPLIT, "measured", note=note, splits=0)
    runs = min(min(r["runs"].values()) for r in records)
    if records[0]["shared_cores"]:
        more = 1e3 * mean([longer(r) for r in records])
        note += f"; both halves share the cores and take turns: a forced split changes a call by {more:+.3f} ms"
        return made(NO_SPLIT, "measured", note=note, runs=runs, splits=0)
    forced = [100 * v for v in improvements(records, model, kind)]
    kept = [max(v, 0.0) for v in forced] + [0.0] * (whole - len(records))
    costs, alone = mean([beside(r) for r in records]), mean([r["layer_seconds"]["device"] for r in records])
    note += (
        f", of which {sum(v > 0 for v in forced)} gain; a layer whose split is slower is left alone (0); with every"
        f" split forced the mean is {mean(forced):.1f} %; a split costs {1e3 * costs:.3f} ms beside its two parts, such"
        f" a layer takes {1e3 * alone:.3f} ms on the GPU"
    )
    return made(mean(kept), "measured", "%", spread(kept), note, runs=runs, splits=len(records))


def main(path: pathlib.Path = FILE) -> None:
    """Appends the records of the layers that a file does not have yet."""
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    for model in MODELS:
        for r in single_splits(model, {k["layer"] for k in kept if k["model"] == model}):
            with path.open("a") as out:
                out.write(json.dumps(r) + "\n")
            if not (q := r.get("seconds")):
                continue
            print(
                f"{model} {r['layer']} p={r['p_cpu']:.2f}: {q['device'][1] * 1e3:.3f} -> {q['split'][1] * 1e3:.3f} ms"
            )


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
