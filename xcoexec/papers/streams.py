"""NeuroPipe's and BlastNet's figures by formulas over what the papers print, and by our scheduler on their boards."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..streams.neuropipe import speedup
from ..tools.zoo_graphs import model_graph
from . import quoted
from .cells import CALCULATED, Cell

TX2 = "jetson-tx2"
#: NeuroPipe's networks -> those of the zoo that stand for them
STREAMED = {"mlp": "mlp", "resnet": "resnet50", "mobilenet": "mobilenet_v1", "yolo": "yolov3", "fcn": "fcn8s"}
STANDS_FOR = {"fcn": "FCN-8s on VGG-16 stands in for the paper's FCN", "mlp": "five dense layers, the paper has six"}
TASKED = ("vgg11", "alexnet", "resnet18", "mobilenet_v1")
TWIN, LOSS = 1.2, 0.004  # times what a block takes on its own half, and accuracy, that a twin is supposed to cost
LOAD, TASKS, RUN = 2.0, 8, 20.0  # of one half by all blocks where they are fastest; tasks; seconds
MOST_BLOCKS, KEPT = 8, 0.0163  # blocks of a network at most; accuracy that a path may lose
STEPS = 31  # points of a curve


def _cell(figure: str, what: str, paper: Any, ours: Any, unit: str, kind: str, **more: Any) -> Cell:
    return {"figure": figure, "what": what, "paper": paper, "ours": ours, "kind": kind, "unit": unit, **more}  # type: ignore[typeddict-item]


# -- NeuroPipe ----------------------------------------------------------------------------------------


def operations() -> list[Cell]:
    """Table 4: operations of an inference, of the zoo's networks."""
    paper = quoted.load("neuropipe")["operations"]
    cells = []
    for name, ours in STREAMED.items():
        flops = sum(x.flops for x in model_graph(ours).layers) / 1e9
        note = STANDS_FOR.get(name, f"{ours} of the zoo")
        cells.append(_cell("Table 4", f"{name}: operations", paper[name], flops, "GFLOP", CALCULATED, note=note))
    return cells


def equation1() -> list[Cell]:
    """Figure 3: Equation 1 for two gammas over alpha, and at the alpha and gamma of each network (Table 4)."""
    paper = quoted.load("neuropipe")
    curves, alpha, gamma = paper["model_curves"], paper["alpha"], paper["gamma"]
    ends: tuple[float, float] = curves.numbers("alphas")[:2]  # type: ignore[assignment]
    cells = []
    for g in curves.numbers("gammas"):
        for a in np.linspace(*ends, STEPS):
            line, x = f"gamma {g:g}", round(float(a), 4)
            cells.append(_cell("Figure 3", line, None, speedup(x, g), "times", CALCULATED, series=line, x=x))
    for name in STREAMED:
        a, g = alpha.number(name), gamma.number(name)
        cells.append(_cell("Figure 3", name, None, speedup(a, g), "times", CALCULATED, series="networks", x=a))
    return cells


def basic_mode() -> list[Cell]:
    """Figure 5(a): percent of time saved by pipelining alone, as Equation 1 predicts it from Table 4."""
    paper = quoted.load("neuropipe")
    less = {n: 100 * (1 - 1 / speedup(paper["alpha"].number(n), paper["gamma"].number(n))) for n in STREAMED}
    measured = paper["basic_time"]
    cells = [
        _cell("Figure 5(a)", f"less time: {n}", (measured.values or {}).get(n), t, "%", CALCULATED)
        for n, t in less.items()
    ]
    mean = float(np.mean(list(less.values())))
    note = "the paper's value is measured; ours is its Equation 1 at the parameters of its Table 4"
    return [*cells, _cell("Figure 5(a)", "less time: mean", measured["mean"], mean, "%", CALCULATED, note=note)]


__all__ = ["basic_mode", "equation1", "operations"]
