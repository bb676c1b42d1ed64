"""What NeuroPipe and BlastNet claim, on their devices by our planners and schedulers, and measured: part of
`benchmarks.papers`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.words import HALVES
from xcoexec.planning import profiles
from xcoexec.streams.blocks import TWIN_SECONDS, blocks, deserving, seconds
from xcoexec.streams.jobs import Accuracy, Block, Task, Way
from xcoexec.streams.neuropipe import Around, best, neuropipe, two_stages
from xcoexec.streams.spans import crossing
from xcoexec.streams.virtual import releases, simulate
from xcoexec.tools.zoo_graphs import model_graph

STREAMED = ("mlp", "resnet50", "mobilenet_v2", "yolov3", "fcn8s")
#: the user's work on the host, as a share of what the accelerator takes: supposed, the same for all (alpha of the
#: paper's Table 4 makes it alpha / (1 - alpha): 0.08 for YOLO to 0.47 for the MLP)
OPERATIONS = 0.25
CORES, THREADS = 8, 6
TASKED = ("vgg11", "alexnet", "resnet18", "mobilenet_v1")
TWIN, LOSS = 1.2, 0.004  # times what a block takes on its own half, and accuracy, that a twin is supposed to cost
LOAD, TASKS, RUN = 2.0, 8, 20.0  # of one half by all blocks where they are fastest; tasks; seconds
HEAVY = 1.5  # a load from which on one half alone cannot keep up
Records = Sequence[Mapping[str, Any]]


@functools.cache
def _on(device: str, model: str) -> tuple[LayerGraph, Costs]:
    graph = model_graph(model)
    return graph, profiles.load(device).costs(graph)


def _mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


# -- NeuroPipe ------------------------------------------------------------------------------------------


def faster_than_serial(device: str) -> str:
    """Geometric mean over the five networks of serial time over the period, by the paper's cut and by the exact one."""
    theirs, ours = [], []
    for name in STREAMED:
        graph, costs = _on(device, name)
        nbytes = [sum(v.nbytes for v in crossing(graph, k)) for k in range(len(graph.layers) + 1)]
        operations = OPERATIONS * sum(costs.device)
        serial = operations + sum(costs.device)
        theirs.append(serial / max(two_stages(costs, nbytes, neuropipe(costs, operations), operations)))
        ours.append(serial / best(costs, nbytes, Around(operations), CORES, THREADS).period)
    return f"+{_mean(theirs) - 1:.0%} by the paper's cut, +{_mean(ours) - 1:.0%} by the exact one"


def measured_faster(records: Records) -> str:
    """Geometric mean of items a second over serial execution and over a prefetch thread."""
    if not records:
        return "-"
    over = {
        k: _mean([r["items_a_second"]["pipeline"] / r["items_a_second"][k] for r in records])
        for k in ("serial", "prefetch")
    }
    return f"{over['serial']:.2f}x serial, {over['prefetch']:.2f}x prefetch ({len(records)} runs)"


# -- BlastNet -------------------------------------------------------------------------------------------


def _task(device: str, name: str, number: int, deadline: float) -> Task:
    graph, costs = _on(device, name)
    spans = blocks(graph, costs, 8, TWIN_SECONDS)
    twins = {w.span: w for w in deserving(spans, graph, costs)}
    made = []
    for span in spans:
        ways = [Way(h, seconds(span, h, costs)) for h in HALVES]
        if span in twins:
            ways.append(Way(next(h for h in HALVES if h != twins[span].half), TWIN * twins[span].primary, twin=True))
        made.append(Block(str(span), tuple(ways), costs.sync))
    own = sum(b.primary.seconds for b in made)
    lost = Accuracy({frozenset(): 1.0, **{frozenset({i}): 1 - LOSS for i in range(len(made))}})
    return Task(f"{name} {number}", tuple(made), deadline, own * TASKS / LOAD, lost, 1 - 0.0163)


@functools.cache
def missing(device: str) -> Mapping[str, tuple[float, float]]:
    """Policy -> (missing rate, accuracy lost) with eight tasks, deadlines of four times the mean inference time."""
    names = [TASKED[i % len(TASKED)] for i in range(TASKS)]
    mean = float(np.mean([sum(b.primary.seconds for b in _task(device, n, 0, 1.0).blocks) for n in names]))
    tasks = [_task(device, n, i, 4 * mean) for i, n in enumerate(names)]
    out = {}
    for policy in ("mono_sched", "blastnet", "slack"):
        run = simulate(releases(tasks, RUN, [mean * i / TASKS for i in range(TASKS)]), policy)
        out[policy] = (run.missing_rate, 1 - run.accuracy)
    return out


def fewer_missed(device: str) -> str:
    found = missing(device)
    points = {p: 100 * (found["mono_sched"][0] - found[p][0]) for p in ("blastnet", "slack")}
    return f"{points['blastnet']:.1f} points (ours {points['slack']:.1f})"


def accuracy_lost(device: str) -> str:
    found = missing(device)
    return f"{found['blastnet'][1]:.2%} (ours {found['slack'][1]:.2%})"


def _cells(records: Records, policy: str, what: str) -> list[float]:
    return [float(np.mean([run[what] for run in r["runs"][policy]])) for r in records]


def measured_fewer(records: Records) -> str:
    """Points less than the whole network on its faster half, mean over the cells of heavy load."""
    records = [r for r in records if r["load"] >= HEAVY]
    if not records:
        return "-"
    mono = np.array(_cells(records, "mono_sched", "missing"))
    points = {p: 100 * float(np.mean(mono - _cells(records, p, "missing"))) for p in ("blastnet", "slack")}
    return f"{points['blastnet']:.1f} points (ours {points['slack']:.1f}; {len(records)} cells)"


def measured_lost(records: Records) -> str:
    return (
        f"{np.mean(_cells(records, 'blastnet', 'accuracy_lost')):.2%} (ours"
        f" {np.mean(_cells(records, 'slack', 'accuracy_lost')):.2%})"
        if records
        else "-"
    )
