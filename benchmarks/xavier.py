"""What the papers print for the Jetson AGX Xavier against what its profile says.

The list is data, in the profile's own file: `[[printed]]` has a printed number that a profile can meet, whether this
one does within `within` (relative), and why not; `[[elsewhere]]` has records whose numbers are none of a board.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from xcoexec.ir.words import DEVICE, HOST
from xcoexec.papers.quoted import Quoted, load
from xcoexec.planning import profiles
from xcoexec.tools.zoo_graphs import model_graph

from .neuropipe_board import BOARD, NETWORKS, electric, swing

EDGENN = ("fcnn", "lenet", "alexnet", "vgg16", "squeezenet", "resnet18")
PAPERS = ("edgenn", "neuropipe", "blastnet")
CLOCKS = (1.377e9, 2.26e9)  # of the GPU (datasheet) and of the CPU (EdgeNN IV-C), for counting cores
CONVOLUTIONS, DENSE = ("conv", "winograd", "depthwise"), ("dense",)


@functools.cache
def profile() -> profiles.Profile:
    return profiles.load(BOARD)


@functools.cache
def _seconds(model: str, kinds: tuple[str, ...] = ()) -> tuple[tuple[float, float], ...]:
    """Seconds of a network's layers on the CPU and on the GPU; of some kinds only."""
    graph = model_graph(model)
    costs = profile().costs(graph)
    pairs = zip(graph.layers, costs.host, costs.device, strict=True)
    return tuple((h or 0.0, d) for x, h, d in pairs if not kinds or profiles.kind(x) in kinds)


def ratio(model: str) -> float:
    """gamma: the whole network on the CPU over the whole network on the GPU."""
    host, device = map(sum, zip(*_seconds(model), strict=True))
    return host / device


def over_cpu() -> float:
    """Times that the CPU alone takes of EdgeNN's time, mean of its six networks: by the ratio of the halves and the
    printed improvement over the GPU (V-C1).
    """
    return float(np.mean([ratio(m) for m in EDGENN])) / (1 - load("edgenn")["gain"].number("mean") / 100)


def split(model: str, kinds: tuple[str, ...]) -> float:
    """Percent that layers gain in the mean on both halves at once over the GPU alone, by EdgeNN's Equation 4."""
    return float(np.mean([100 * d / (h + d) for h, d in _seconds(model, kinds)]))


def copies() -> float:
    """Percent of the GPU's time that copies of the inputs and results take, mean of EdgeNN's six networks."""
    found = []
    for m in EDGENN:
        program = model_graph(m).program
        moved = [v.nbytes for v in (*program.inputs[-1:], *program.outputs)]
        seconds = sum(profile().sync.value + n / profile().copy_rate.value for n in moved)
        found.append(100 * seconds / (seconds + sum(d for _, d in _seconds(m))))
    return float(np.mean(found))


def _watts(cpu: float, gpu: float) -> float:
    """With the halves at work so much of the time."""
    watts = electric()[0]
    return watts.idle + cpu * watts.active[HOST] + gpu * watts.active[DEVICE]


def _milliseconds(model: str) -> float:
    return 1e3 * sum(d for _, d in _seconds(model))


#: paper.record.value (and the place in a list) -> what the profile says
CHECKS: Mapping[str, Callable[[], float]] = {
    "edgenn.bandwidth.xavier": lambda: profile().device.bandwidth.value / 1e9,
    "edgenn.bandwidth_setup.bandwidth": lambda: 8 * profile().device.bandwidth.value / 1e9,
    "edgenn.cores.xavier": lambda: profile().device.flops.value / 2 / CLOCKS[0],
    "edgenn.cpu_clock.clock": lambda: profile().host.flops.value / 8 / 16 / 1e9,
    "edgenn.over_cpus.xavier": over_cpu,
    "edgenn.copies.xavier": copies,
    "edgenn.power_resnet.power": lambda: _watts(0.72, 0.42),
    "edgenn.power_squeezenet.power": lambda: _watts(1.0, 1.0),
    "edgenn.alexnet_dense.zero_copy": lambda: split("alexnet", DENSE),
    "edgenn.table1.lenet_conv.2": lambda: split("lenet", CONVOLUTIONS),
    "edgenn.table1.lenet_fc.2": lambda: split("lenet", DENSE),
    "edgenn.table1.alexnet_conv.2": lambda: split("alexnet", CONVOLUTIONS),
    "edgenn.table1.alexnet_fc.2": lambda: split("alexnet", DENSE),
    "edgenn.table1.vgg_conv.2": lambda: split("vgg16", CONVOLUTIONS),
    "edgenn.table1.vgg_fc.2": lambda: split("vgg16", DENSE),
    "neuropipe.table1.cpu_cores.1": lambda: profile().host.flops.value / 16 / CLOCKS[1],
    "neuropipe.table2.neural.0": lambda: _milliseconds("mobilenet_v1"),
    "neuropipe.table3.accelerator.0": lambda: _milliseconds("resnet50"),
    **{f"neuropipe.gamma.{n}": functools.partial(ratio, m) for n, m in NETWORKS.items()},
    "neuropipe.power_swing.baseline": lambda: swing(electric()[0]),
}


@dataclasses.dataclass(frozen=True)
class Printed:
    """A printed number, the profile's, and whether they are within `within` (relative) of each other; `why` they are
    not.
    """

    of: str
    paper: float
    ours: float
    within: float
    said: bool
    why: str
    quoted: Quoted

    @property
    def met(self) -> bool:
        """Whether the profile meets it."""
        return abs(self.ours - self.paper) <= self.within * abs(self.paper)


@functools.cache
def lists() -> Mapping[str, Any]:
    """The profile's file, with its lists."""
    return tomllib.loads((importlib.resources.files(profiles) / f"{BOARD}.toml").read_text("utf-8"))


def printed() -> tuple[Printed, ...]:
    """Every `[[printed]]` entry, computed."""
    return tuple(_entry(e) for e in lists()["printed"])


def _entry(e: Mapping[str, Any]) -> Printed:
    paper, record, value, *place = e["of"].split(".")
    quoted = load(paper)[record]
    number = quoted.numbers(value)[int(place[0])] if place else quoted.number(value)
    return Printed(e["of"], number, CHECKS[e["of"]](), e.get("within", 0.01), e["met"], e.get("why", ""), quoted)


def records() -> Iterator[str]:
    """paper.record of everything that the three papers print for this board as numbers."""
    for key in PAPERS:
        for name, q in load(key).records.items():
            if q.values and (q.board == "xavier" or any("xavier" in v for v in q.values)):
                yield f"{key}.{name}"


__all__ = ["CHECKS", "Printed", "lists", "printed", "records"]
