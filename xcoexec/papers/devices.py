"""EdgeNN's, CoDL's and the layer-switching paper's figures on their own devices: our planners on profiles (simulated),
and formulas over what the papers print (calculated).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..cost.edgenn import bound
from ..frontend.graph import graph_of
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.plan import Plan
from ..ir.words import DIMS, SPLIT
from ..planning import profiles
from ..planning.simulate import BACK, OUT, replay
from ..strategies import STRATEGIES, Strategy, codl, edgenn, layer_switch
from ..tools.suite import SUITES
from ..tools.zoo_graphs import model_graph
from . import quoted
from .cells import CALCULATED, SIMULATED, Cell

XAVIER, VIM3, PHONE = "jetson-agx-xavier", "khadas-vim3", "snapdragon-855"
CONVOLUTION, DENSE = "conv_general_dilated", "dot_general"
#: the papers' names of networks of the zoo
NAMED = {"vgg16": "vgg", "resnet18": "resnet", "retinaface_resnet50": "retinaface", "fast_style": "style"}
SHAPES, KERNELS, FIRST_FILTERS = (7, 14, 28, 56, 112), (3, 5, 7), 64


@functools.cache
def on(device: str, model: str) -> tuple[LayerGraph, Costs]:
    """A network's layers, and their seconds on a device of numbers."""
    graph = model_graph(model)
    return graph, profiles.load(device).costs(graph)


def seconds(device: str, model: str, strategy: Strategy) -> float:
    """Simulated seconds of a call by a strategy."""
    graph, costs = on(device, model)
    return replay(graph, strategy(graph, costs), costs).seconds


def geometric(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def printed(paper: str, record: str, name: str) -> float:
    """A number that a paper prints."""
    return quoted.load(paper)[record].number(name)


def _cell(figure: str, what: str, paper: Any, ours: Any, unit: str, kind: str = SIMULATED, **more: Any) -> Cell:
    return {"figure": figure, "what": what, "paper": paper, "ours": ours, "kind": kind, "unit": unit, **more}  # type: ignore[typeddict-item]


# -- EdgeNN on the Xavier -----------------------------------------------------------------------------


def edgenn_gain(models: Sequence[str] = SUITES["edgenn"].models) -> list[Cell]:
    """Figure 8: percent of time below the GPU alone, each network and their mean."""
    less = {m: 100 * (1 - seconds(XAVIER, m, edgenn) / seconds(XAVIER, m, STRATEGIES["device"])) for m in models}
    gain = quoted.load("edgenn")["gain"].values or {}
    cells = [_cell("Figure 8", f"EdgeNN: {m}", gain.get(NAMED.get(m, m)), t, "%") for m, t in less.items()]
    return [*cells, _cell("Figure 8", "EdgeNN: mean", gain["mean"], float(np.mean(list(less.values()))), "%")]


def edgenn_over_cpu(models: Sequence[str] = SUITES["edgenn"].models) -> list[Cell]:
    """Figure 6: times faster than the Xavier's own CPU."""
    over = {m: seconds(XAVIER, m, STRATEGIES["host"]) / seconds(XAVIER, m, edgenn) for m in models}
    cells = [_cell("Figure 6", f"over the Xavier's CPU: {m}", None, t, "times") for m, t in over.items()]
    mean = float(np.mean(list(over.values())))
    paper = printed("edgenn", "over_cpus", "xavier")
    return [*cells, _cell("Figure 6", "over the Xavier's CPU: mean", paper, mean, "times")]


def edgenn_layers() -> list[Cell]:
    """Table I and Figure 11: percent of a layer's time that its best split saves (Equation 4, copies for nothing), from
    the profile's seconds of the layers.
    """
    table = quoted.load("edgenn")["table1"]
    cells: list[Cell] = []
    for model, name in (("lenet", "lenet"), ("alexnet", "alexnet"), ("vgg16", "vgg")):
        for kind, short, words in ((CONVOLUTION, "conv", "convolutions"), (DENSE, "fc", "dense layers")):
            saved = _saved(model, kind)
            of_paper = table.numbers(f"{name}_{short}")
            ours = {"least": min(saved), "most": max(saved), "mean": float(np.mean(saved))}
            for (word, t), theirs in zip(ours.items(), of_paper, strict=True):
                cells.append(_cell("Table I", f"{model}, {words}, {word}", theirs, t, "%", CALCULATED))
    dense, conv = (float(np.mean(_saved("alexnet", k))) for k in (DENSE, CONVOLUTION))
    paper = printed("edgenn", "alexnet_dense", "zero_copy")
    cells.append(_cell("Figure 11", "AlexNet's dense layers, mean", paper, dense, "%", CALCULATED))
    cells.append(_cell("Figure 11", "AlexNet's convolutions, mean", None, conv, "%", CALCULATED))
    return cells


def _saved(model: str, kind: str) -> list[float]:
    graph, costs = on(XAVIER, model)
    pairs = zip(graph.layers, costs.host, costs.device, strict=True)
    return [100 * (1 - bound(h, d) / d) for x, h, d in pairs if x.kind == kind and h]


# -- CoDL on the Snapdragon 855 -----------------------------------------------------------------------


@functools.cache
def _chained(model: str) -> Plan:
    return codl(*on(PHONE, model))


def _replayed(model: str) -> float:
    graph, costs = on(PHONE, model)
    return replay(graph, _chained(model), costs).seconds


def codl_gain(models: Sequence[str] = SUITES["codl"].models) -> list[Cell]:
    """Figure 15: times faster than the CPU and than the GPU alone, each network and their geometric mean."""
    cells: list[Cell] = []
    for of, name in (("cpu", "host"), ("gpu", "device")):
        over = {m: seconds(PHONE, m, STRATEGIES[name]) / _replayed(m) for m in models}
        words = f"over the {of.upper()} alone"
        cells += [_cell("Figure 15", f"{words}: {m}", None, t, "times") for m, t in over.items()]
        paper = printed("codl", "over_one_processor", of)
        cells.append(_cell("Figure 15", f"{words}: mean", paper, geometric(list(over.values())), "times"))
    return cells


def codl_dimensions(models: Sequence[str] = SUITES["codl"].models) -> list[Cell]:
    """Figures 17 and 18: without chains, what is divided along which dimension, and both dimensions over the better
    one.
    """
    alone = functools.partial(codl, chain=False)
    plans = {m: alone(*on(PHONE, m)) for m in models}
    dims = [p.dim for plan in plans.values() for p in plan.placements if p.half == SPLIT]
    shares = {d: 100 * dims.count(d) / len(dims) for d in DIMS}
    rows, channels = (printed("codl", "by_dimension", k) for k in ("rows", "channels"))
    cells = [
        _cell("Figure 17", "divided by rows", rows, shares["rows"], "%"),
        _cell("Figure 17", "divided by channels", channels, shares["channel"], "%"),
    ]
    over = {}
    for m in models:
        best = min(seconds(PHONE, m, functools.partial(alone, dims=(d,))) for d in DIMS)
        over[m] = best / seconds(PHONE, m, alone)
    style = printed("codl", "hybrid_dimension", "most")
    cells += [
        _cell("Figure 18", f"over one dimension: {m}", style if m == "fast_style" else None, t, "times")
        for m, t in over.items()
    ]
    mean = printed("codl", "hybrid_dimension", "mean")
    return [*cells, _cell("Figure 18", "over one dimension: mean", mean, geometric(list(over.values())), "times")]


def codl_chains(models: Sequence[str] = SUITES["codl"].models) -> list[Cell]:
    """Figures 19, 20 and 22: layers in chains, copies that chains save, weights that both halves keep."""
    plans = {m: _chained(m) for m in models}
    shares = {m: 100 * float(np.mean([p.chain > 0 for p in plan.placements])) for m, plan in plans.items()}
    saved, kept = {}, {}
    for m, plan in plans.items():
        graph, costs = on(PHONE, m)
        alone = tuple(dataclasses.replace(p, chain=0) for p in plan.placements)
        if alone != plan.placements:
            both = [replay(graph, dataclasses.replace(plan, placements=q), costs) for q in (plan.placements, alone)]
            with_chains, without = (run.busy(OUT) + run.busy(BACK) for run in both)
            saved[m] = 100 * (1 - with_chains / without)
        consts = set(graph.program.consts)
        sizes = [sum(v.nbytes for v in x.ins if v in consts) for x in graph.layers]
        twice = [n for n, p in zip(sizes, plan.placements, strict=True) if p.half == SPLIT and p.dim == "rows"]
        kept[m] = 100 * sum(twice) / sum(sizes)
    chained, sharing = quoted.load("codl")["chained"], quoted.load("codl")["less_sharing"]
    return [
        *(_cell("Figure 19", f"layers in chains: {m}", None, s, "%") for m, s in shares.items()),
        _cell("Figure 19", "layers in chains: mean", chained["mean"], float(np.mean(list(shares.values()))), "%"),
        *(
            _cell("Figure 20", f"less sharing: {m}", (sharing.values or {}).get(NAMED.get(m, m)), s, "%")
            for m, s in saved.items()
        ),
        _cell("Figure 20", "less sharing: mean", sharing["mean"], float(np.mean(list(saved.values()))), "%"),
        _cell(
            "Figure 22",
            "more memory: mean",
            printed("codl", "memory", "mean"),
            float(np.mean(list(kept.values()))),
            "%",
            note="ours: weights that both halves keep, of all weights; the paper's: memory of the process",
        ),
    ]


# -- layer switching on the Khadas VIM 3 --------------------------------------------------------------


def switched_table() -> list[Cell]:
    """Table I: the shortest path over AlexNet's printed milliseconds, switches for nothing."""
    table = quoted.load("layer_switched")["table1"]
    cpu, gpu = (tuple(t * 1e-3 for t in table.numbers(column)) for column in ("cpu", "gpu"))
    chain = lambda w, x: functools.reduce(lambda y, m: y @ m, w, x)
    graph = graph_of(chain, ([np.ones((4, 4), np.float32)] * len(cpu), np.ones((1, 4), np.float32)), 1)[1]
    best = layer_switch(graph, Costs.of_halves(cpu, gpu, 0.0, float("inf"), 1.0, False)).predicted
    assert best is not None
    note = "the table's entries are rounded"
    gain = quoted.load("layer_switched")["table1_gain"]
    cell = lambda what, paper, ours, unit: _cell("Table I", what, paper, ours, unit, CALCULATED, note=note)
    return [
        cell("AlexNet, best of both", table.numbers("totals")[2], best * 1e3, "ms"),
        cell("below the CPU alone", gain["cpu"], 100 * (1 - best / sum(cpu)), "%"),
        cell("below the GPU alone", gain["gpu"], 100 * (1 - best / sum(gpu)), "%"),
    ]


def switched_gain(models: Sequence[str] = SUITES["layer_switch"].models) -> list[Cell]:
    """Figures 2 and 13: milliseconds on one processor, and percent of time below the better one, the CPU, the GPU."""
    took = {m: {s: seconds(VIM3, m, STRATEGIES[s]) for s in ("host", "device")} for m in models}
    cells: list[Cell] = []
    for m, of in took.items():
        for half, word in (("host", "big cluster"), ("device", "GPU")):
            cells.append(_cell("Figure 2", m, None, of[half] * 1e3, "ms", series=word))
    ours = {m: seconds(VIM3, m, layer_switch) for m in models}
    gain, parts = quoted.load("layer_switched")["gain"], quoted.load("layer_switched")["gain_components"]
    better = [100 * (1 - ours[m] / min(took[m].values())) for m in models]
    cells += [
        _cell("Figure 13", f"below the better one: {m}", None, t, "%") for m, t in zip(models, better, strict=True)
    ]
    cells.append(_cell("Figure 13", "below the better one: mean", gain["mean"], float(np.mean(better)), "%"))
    for part, half in (("cpu", "host"), ("gpu", "device")):
        mean = float(np.mean([100 * (1 - ours[m] / took[m][half]) for m in models]))
        cells.append(_cell("Figure 13", f"below the {part.upper()} alone: mean", parts[part], mean, "%"))
    return cells


def ratio(shape: int, channels: int, filters: int, kernel: int) -> float:
    """T_CPU/GPU of one convolution (stride 1, padded) on the Khadas VIM 3."""
    import jax

    w, x = np.zeros((kernel, kernel, channels, filters), np.float32), np.zeros((1, shape, shape, channels), np.float32)
    fn = lambda w, x: jax.lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    graph = graph_of(fn, ([w], x), 1)[1]
    costs = profiles.load(VIM3).costs(graph)
    return sum(t or 0.0 for t in costs.host) / sum(costs.device)


def switched_ratios() -> list[Cell]:
    """Figures 8 to 12: T_CPU/GPU of a convolution over the sizes of Table II; the papers' points are only drawn."""
    sizes = quoted.load("layer_switched")["table2"]
    shapes, channels, filters = (
        [int(v) for v in sizes.numbers(k)] for k in ("input_shape", "input_channels", "filters")
    )
    curves: Mapping[str, list[tuple[str, float, tuple[int, int, int, int]]]] = {
        "Figure 8": [(f"{f} filters", s, (s, 64, f, 3)) for f in filters for s in shapes],
        "Figure 9": [(f"{f} filters", k, (224, 3, f, k)) for f in (64, 128) for k in KERNELS],
        "Figure 10": [(f"shape {s}", k, (s, 64, 128, k)) for s in SHAPES for k in KERNELS],
        "Figure 11": [(f"shape {s}", c, (s, c, 256, 3)) for s in SHAPES for c in channels],
        "Figure 12": [(f"shape {s}", f, (s, 64, f, 3)) for s in SHAPES for f in filters],
    }
    points = itertools.chain.from_iterable(((fig, *p) for p in found) for fig, found in curves.items())
    return [
        _cell(fig, f"{line}, {x:g}", None, ratio(*size), "times", series=line, x=x) for fig, line, x, size in points
    ]


def switched_preferred() -> list[Cell]:
    """Table III: for each input shape, the share of the filters and channels of Table II for which the CPU is
    preferred; the paper says so of shapes 28, 14 and 7, and of none of 224.
    """
    sizes = quoted.load("layer_switched")["table2"]
    filters = [int(f) for f in sizes.numbers("filters")]
    words = {224: "GPU", 112: "either", 56: "either", 28: "CPU", 14: "CPU", 7: "CPU"}
    cells: list[Cell] = []
    for shape, word in words.items():
        channels = (3,) if shape == 224 else (32, 64, 128, 256)
        found = [ratio(shape, c, f, 3) < 1 for c in channels for f in filters]
        share = 100 * float(np.mean(found))
        note = f"{len(found)} sizes of Table II, kernel 3"
        cells.append(_cell("Table III", f"shape {shape}: CPU preferred", word, share, "% of sizes", note=note))
    return cells


__all__ = ["codl_chains", "codl_dimensions", "codl_gain", "edgenn_gain", "edgenn_layers", "edgenn_over_cpu"]
