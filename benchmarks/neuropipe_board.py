"""NeuroPipe's five networks on its board, the Xavier, with the alpha and gamma that it prints: calculated by Equation
1, and simulated layer by layer.

Printed and taken over: alpha and gamma of each network (Table 4), the seconds of MobileNet and ResNet on the
accelerator (Tables 2 and 3), the composition (Table 5). Ours: how a network's seconds lie on its layers (the board's
profile), the accelerator's seconds of the other three (the profile's own), and the powers (`[power]` of the profile).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.watts import Watts
from xcoexec.ir.words import DEVICE, HALVES, HOST
from xcoexec.papers.quoted import load
from xcoexec.planning import profiles
from xcoexec.planning.spans import crossing_bytes
from xcoexec.streams.neuropipe import Around, best, best_rear, neuropipe, oblivious, speedup, two_stages
from xcoexec.streams.power_modes import Dial, Setting, basic, chosen, serial
from xcoexec.tools.zoo_graphs import model_graph

BOARD = "jetson-agx-xavier"
#: the paper's name -> ours
NETWORKS = {"mlp": "mlp", "resnet": "resnet50", "mobilenet": "mobilenet_v1", "yolo": "yolov3", "fcn": "fcn8s"}
#: the paper's name -> which network stands in for the cited one ([25], [23], [15]), and why. Table 5's 8 convolutions
#: and 4 others fit none of the networks of [15] but FCN-AlexNet, whose rear of three has more operations than N_opt
STAND_INS = {
    "mobilenet": "MobileNetV1 stands in for the cited MobileNetV2: Table 5's 27 convolutions are V1's",
    "yolo": "YOLOv3 stands in for the cited YOLOv1: Table 5's 75 convolutions are v3's",
    "fcn": "FCN-8s stands in for FCN: no network of the cited work has Table 5's 8 convolutions and its cut",
}
CORES, THREADS = 8, 6  # of the board, and of our host half there: two are left to the user's work
PAPER = load("neuropipe")
PARAMETERS = ("alpha", "gamma")
XAVIERS = "the printed value is the Xavier's, which the simulation takes over"
Seconds = Mapping[str, float]
Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A network on the board: alpha and gamma as printed, `costs` that have them, `operations` seconds of host work."""

    name: str
    alpha: float
    gamma: float
    graph: LayerGraph
    costs: Costs
    operations: float

    @property
    def counts(self) -> list[float]:
        """Operations of each layer."""
        return [x.flops for x in self.graph.layers]

    @property
    def accelerated(self) -> float:
        """Seconds of the whole network on the accelerator."""
        return sum(self.costs.device)

    @property
    def serial(self) -> float:
        """Seconds of an item without a pipeline: the paper's baseline (Figure 1a)."""
        return self.operations + self.accelerated

    @property
    def baseline(self) -> Seconds:
        """What each half works on an item of the baseline, in seconds."""
        return {HOST: self.operations, DEVICE: self.accelerated}

    def stages(self, k: int) -> Seconds:
        """What each half works on an item, in seconds, when the CPU's stage begins with layer k."""
        accelerator, cpu = two_stages(self.costs, crossing_bytes(self.graph), k, self.operations)
        return {HOST: cpu, DEVICE: accelerator}

    def time(self, k: int) -> float:
        """Seconds between results over the baseline's, for such a cut."""
        return basic(self.stages(k)).period / self.serial

    @functools.cached_property
    def cuts(self) -> Mapping[str, int]:
        """The first layer on the CPU: by the rule with the N_opt of Equation 1, by the rule as printed, oblivious of
        the host operations, the best two stages by the layers' seconds, and as many layers as Table 5 prints.
        """
        nbytes = crossing_bytes(self.graph)
        rule = functools.partial(neuropipe, self.costs, self.counts, self.operations)
        return {
            "neuropipe": rule(),
            "printed": rule(printed=True),
            "oblivious": oblivious(self.costs, self.counts),
            "best": best_rear(self.costs, nbytes, self.operations),
            "table 5": as_printed(self),
        }

    @functools.cached_property
    def exact(self) -> float:
        """Seconds between results over the baseline's by our exact cut: up to three stages, host operations on a thread
        of their own.
        """
        nbytes = crossing_bytes(self.graph)
        return best(self.costs, nbytes, Around(self.operations), CORES, THREADS).period / self.serial


@functools.cache
def case(name: str) -> Case:
    """A network by the paper's name for it. Raises `KeyError` for another one."""
    graph = model_graph(NETWORKS[name])
    alpha, gamma = (PAPER[key].number(name) for key in PARAMETERS)
    raw = profiles.load(BOARD).costs(graph)
    on_device, on_host = sum(raw.device), sum(t or 0.0 for t in raw.host)
    wanted = PRINTED.get(name, on_device)
    costs = raw.scaled(device=wanted / on_device, host=gamma * wanted / on_host)
    return Case(name, alpha, gamma, graph, costs, wanted * alpha / (1 - alpha))


#: seconds on the accelerator, where they are printed
PRINTED = {
    "mobilenet": PAPER["table2"].numbers("neural")[0] / 1e3,
    "resnet": PAPER["table3"].numbers("accelerator")[0] / 1e3,
}


def cases() -> tuple[Case, ...]:
    """All five."""
    return tuple(map(case, NETWORKS))


# -- calculated, and simulated ----------------------------------------------------------------------------


def calculated(c: Case) -> float:
    """Less execution time by Equation 1 with the printed alpha and gamma, in percent."""
    return 100 * (1 - 1 / speedup(c.alpha, c.gamma))


def simulated(c: Case, cut: str = "neuropipe") -> float:
    """Less execution time by pipelining alone (the basic mode, Figure 5), in percent; `cut`: one of `Case.cuts`."""
    return 100 * (1 - c.time(c.cuts[cut]))


def exactly(c: Case) -> float:
    """Less execution time by our exact cut, in percent."""
    return 100 * (1 - c.exact)


def mean(of: Callable[[Case], float]) -> float:
    """Over the five networks, each once; of percentages, as the paper does."""
    return float(np.mean([of(c) for c in cases()]))


def spread(of: Callable[[Case], float]) -> tuple[float, float]:
    """The least and the most of the five."""
    found = [of(c) for c in cases()]
    return min(found), max(found)


def faster_than_serial() -> str:
    """Less execution time, mean of the five networks, in words: by Equation 1, by the rule's cut, by the exact one."""
    return (
        f"-{mean(simulated):.1f} % by the paper's cut, -{mean(exactly):.1f} % by the exact one (Equation 1:"
        f" -{mean(calculated):.1f} %)"
    )


# -- power ------------------------------------------------------------------------------------------------


@functools.cache
def electric() -> tuple[Watts, tuple[Dial, ...]]:
    """What the board draws, and its clocks. Raises `ValueError` where the profile has no powers."""
    found = profiles.load(BOARD).electric
    if found is None:
        raise ValueError(f"{BOARD}: got a profile without [power]; valid is one with it.")
    return found.watts, tuple(Dial(h, h, found.levels(h), found.now[h].value) for h in HALVES)


@functools.cache
def alone(c: Case) -> Setting:
    """The baseline: one half after the other at the clocks as they are."""
    return serial(c.baseline, electric()[0])


@functools.cache
def mode(c: Case, name: str, target: float | None = None) -> Setting:
    """A power mode with the paper's cut; `target` seconds between results (default: the baseline's)."""
    watts, dials = electric()
    return chosen(name, dials, c.stages(c.cuts["neuropipe"]), target or c.serial, watts, c.baseline)


def less(name: str, what: str) -> Callable[[Case], float]:
    """How much less a mode needs than the baseline, in percent: of "period", "watts", "joules" or "edp"."""
    return lambda c: 100 * (1 - getattr(mode(c, name), what) / getattr(alone(c), what))


def swing(watts: Watts) -> float:
    """Watts between the accelerator's phase and the CPU's of an item that is done one after the other (Figure 6a)."""
    return abs(watts.active[DEVICE] - watts.active[HOST])


# -- rows of the page ------------------------------------------------------------------------------------


def stand_in(name: str) -> str:
    """Which network stands in for the one that the paper cites, why, and the operations of both; "" where none does."""
    if name not in STAND_INS:
        return ""
    ours = sum(x.flops for x in model_graph(NETWORKS[name]).layers) / 1e9
    return f"{STAND_INS[name]} ({ours:.4g} GFLOP, printed {PAPER['operations'].number(name):g})"


def row(
    figure: str,
    what: str,
    paper: object,
    ours: object,
    kind: str,
    unit: str = "",
    of: Iterable[str] = (),
    note: str = "",
    **more: object,
) -> Row:
    """A row of the page; `of`: the networks, by the paper's names, whose layers its number is from: the note says which
    of them stand in. `more`: "spread" and "runs"; of a curve "series" and "x".
    """
    return {
        "figure": figure,
        "what": what,
        "paper": paper,
        "ours": ours,
        "kind": kind,
        "unit": unit,
        "spread": more.get("spread"),
        "note": "; ".join(filter(None, (note, *map(stand_in, of)))),
        **{k: more[k] for k in ("series", "x", "runs") if k in more},
    }


def not_here(figure: str, what: str, why: str, paper: object = None, unit: str = "") -> Row:
    """A row of what is not rerun, and why."""
    return row(figure, what, paper, None, "not here", unit, note=why)


# -- layers as Table 5 counts them ------------------------------------------------------------------------

PRODUCTS = ("conv_general_dilated", "dot_general", "reduce_window_max", "reduce_sum", "concatenate")
SOFTMAX = ("mlp", "resnet", "mobilenet")  # networks that end with one in Table 5; ours end before it


def as_counted(c: Case, k: int) -> int:
    """Layers from layer k on as Table 5 counts them: products, poolings, concatenations, additions of two layers'
    results, and the softmax behind them; batch norm, bias and activation belong to the layer before them.
    """
    fixed = set(c.graph.program.consts)
    for op in (op for x in c.graph.layers for op in x.ops):
        if op.value_ins and all(v in fixed for v in op.value_ins):
            fixed.update(op.outs)
    added = lambda op: op.prim == "add" and len(op.value_ins) == 2 and not fixed & set(op.value_ins)
    rear = [op for x in c.graph.layers[k:] for op in x.ops]
    return sum(op.prim in PRODUCTS or added(op) for op in rear) + (c.name in SOFTMAX)


def as_printed(c: Case) -> int:
    """The first layer of a rear that has as many layers as Table 5 gives to the CPU, or as nearly as many as ours
    allows.
    """
    wanted = PAPER["cut_neuropipe"].numbers(c.name)[1]
    return min(range(1, len(c.graph.layers)), key=lambda k: (abs(as_counted(c, k) - wanted), -k))


__all__ = [
    "BOARD",
    "NETWORKS",
    "PAPER",
    "PARAMETERS",
    "STAND_INS",
    "XAVIERS",
    "Case",
    "Row",
    "alone",
    "as_counted",
    "as_printed",
    "calculated",
    "case",
    "cases",
    "electric",
    "exactly",
    "faster_than_serial",
    "less",
    "mean",
    "mode",
    "not_here",
    "row",
    "simulated",
    "spread",
    "stand_in",
    "swing",
]
