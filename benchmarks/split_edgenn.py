"""EdgeNN (Zhang et al., ICDE 2023): a function for each of its tables and figures."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from xcoexec.papers import quoted
from xcoexec.planning.simulate import replay
from xcoexec.strategies import device, edgenn, host
from xcoexec.tools.suite import SUITES

from . import one_split
from .split_common import (
    Row,
    absent,
    mean,
    meeting,
    on,
    over_networks,
    row,
    simulated,
    spread,
)

KEY, BOARD = "edgenn", "jetson-agx-xavier"
MODELS = SUITES["edgenn"].models
PAPERS = functools.partial(edgenn, whole=False)  # a layer is split or stays on the GPU, as Equation 4 has it
INTER = functools.partial(edgenn, intra=False, whole=False)
ALL, HYBRID = "EdgeNN over the GPU alone", "hybrid execution alone, over the GPU alone"
NO_BOARD = "not here, because that machine is not at hand"


def _quoted(key: str) -> quoted.Quoted:
    return quoted.load(KEY)[key]


def _copies() -> float:
    """The share of the GPU-only time that explicit copies take (section V-C2): a time of one processor."""
    return _quoted("copies").number("xavier") / 100


def figure6() -> list[Row]:
    """Times faster than CPUs."""
    printed = _quoted("over_cpus").number("xavier")
    values = {m: simulated(BOARD, m, host) / simulated(BOARD, m, PAPERS) for m in MODELS}
    what = "times faster than the board's own CPU"
    gain = _quoted("gain").number("mean")
    ours = mean([100 * (1 - simulated(BOARD, m, PAPERS) / simulated(BOARD, m, device)) for m in MODELS])
    note = (
        f"as printed if EdgeNN took the printed {gain:g} % less than the GPU alone, not {ours:.1f} %, and the CPU"
        f" {printed * (1 - gain / 100):.2f} times the GPU's seconds; the profile's takes"
        f" {mean([_slower(m) for m in MODELS]):.2f}, to which it is fitted by both printed gains"
    )
    return [
        over_networks(KEY, "Figure 6", what, printed, values, unit="times", note=note),
        *(absent(KEY, "over_cpus", NO_BOARD, name) for name in ("phone", "raspberry")),
    ]


def figure7() -> list[Row]:
    """Performance per watt and per price over the Raspberry Pi."""
    return [
        absent(KEY, "over_raspberry_power", NO_BOARD, "mean"),
        absent(KEY, "over_raspberry_price", NO_BOARD, "geometric"),
    ]


def figure8() -> list[Row]:
    """Improvement over the GPU alone: all of EdgeNN, hybrid execution alone, memory management alone."""
    copies = _copies()
    alone = {m: simulated(BOARD, m, device) for m in MODELS}
    copied = {m: alone[m] * copies / (1 - copies) for m in MODELS}  # what explicit copies add to the GPU alone
    both = {m: simulated(BOARD, m, PAPERS) for m in MODELS}
    whole = {m: 100 * (1 - both[m] / (alone[m] + copied[m])) for m in MODELS}
    hybrid = {m: 100 * (1 - (both[m] + copied[m]) / (alone[m] + copied[m])) for m in MODELS}
    one = [m for m in MODELS if both[m] == alone[m]]
    with_copies = (
        f"the GPU alone pays the printed {copies:.2%} for explicit copies (Figure 9), which is all that"
        f" {', '.join(one) or 'no network'} gain: nothing is split there"
    )
    paid = _uncounted(100 * mean([1 - both[m] / alone[m] for m in MODELS]))
    same = (
        "with everything on the device half nothing crosses, so that memory policies have one plan: 0 by construction;"
        f" as printed if a call copied its arrays as the paper's does ({copies:.2%} of the time)"
    )
    return [
        over_networks(
            KEY,
            "Figure 8",
            ALL,
            _quoted("gain").number("mean"),
            whole,
            note=f"{with_copies}; {paid}",
            paper_by={m: _quoted("gain").number(n) for m, n in (("vgg16", "vgg"), ("alexnet", "alexnet"))},
        ),
        over_networks(
            KEY, "Figure 8", HYBRID, _quoted("hybrid").number("mean"), hybrid, note=f"{with_copies}, in both; {paid}"
        ),
        row(
            KEY,
            "Figure 8",
            "memory management alone",
            _quoted("memory").number("mean"),
            100 * copies,
            "calculated",
            note="at most: all that copies take (Figure 9); the paper's pooling layers become slower (Figure 10)",
        ),
        row(KEY, "Figure 8", "memory management alone", _quoted("memory").number("mean"), 0.0, "calculated", note=same),
    ]


def _list(values: dict[str, float]) -> str:
    return ", ".join(f"{m} {v:.1f}" for m, v in values.items())


def _without(**free: float) -> float:
    """Mean improvement over the GPU alone, in percent, if a cost that Equations 1 to 4 do not count were not there."""
    values = []
    for m in MODELS:
        graph, costs = on(BOARD, m)
        changed = dataclasses.replace(costs, **free)  # type: ignore[arg-type]
        values.append(100 * (1 - replay(graph, PAPERS(graph, changed), changed).seconds / sum(changed.device)))
    return mean(values)


def _slower(model: str, kinds: Sequence[str] = ()) -> float:
    """Times that the board's CPU takes of its GPU's seconds in a network's layers; of some classes only."""
    graph, costs = on(BOARD, model)
    mine = [x.index for x in graph.layers if not kinds or one_split.CLASSES.get(x.kind) in kinds]
    return sum(costs.host[i] or 0.0 for i in mine) / sum(costs.device[i] for i in mine)


def _as_fast(printed: float, model: str, kind: str) -> str:
    """What a printed gain of a split layer means of the CPU: by Equation 4, t_GPU / (t_CPU + t_GPU); and what a split
    pays that the equation leaves out.
    """
    graph, costs = on(BOARD, model)
    alone = mean([costs.device[x.index] for x in graph.layers if one_split.CLASSES.get(x.kind) == kind])
    return (
        f"as printed if the CPU took {(100 - printed) / printed:.2f} times the GPU's seconds of such layers and a call"
        f" of the host half nothing; the profile's takes {_slower(model, (kind,)):.2f} times, a call"
        f" {1e3 * costs.sync:.3f} ms, such a layer {1e3 * alone:.3f} ms on the GPU"
    )


def _branches(printed: float) -> str:
    """What SqueezeNet's branches would gain on a faster CPU."""
    alone = simulated(BOARD, "squeezenet", device)
    graph, costs = on(BOARD, "squeezenet")

    def gained(faster: float) -> float:
        changed = costs.scaled(host=1 / faster)
        return 100 * (1 - replay(graph, INTER(graph, changed), changed).seconds / alone)

    found = meeting(gained, printed, 1.0, 64.0)
    slower = (
        f"the profile's CPU takes {_slower('squeezenet'):.1f} times the GPU's seconds, so that no branch gains there"
    )
    return f"{slower}; as printed if it were {found:.1f} times as fast" if found else slower


def _uncounted(split: float) -> str:
    """What the simulated plans pay that the paper's equations leave out, in points."""
    calls, slowdown, both = _without(sync=0.0), _without(contention=1.0), _without(sync=0.0, contention=1.0)
    whole = 100 - (100 - both) * (1 - _copies())
    return (
        f"splits and branches alone: {split:.1f} points; Equations 1 to 4 count no seconds of a call of the host half"
        f" (without them {calls:.1f}) and no slowdown of both halves together (without it {slowdown:.1f}, without"
        f" either {both:.1f}, with the copies {whole:.1f})"
    )


def figure9() -> list[Row]:
    """The share of time that copies take."""
    why = "not here, because JAX's arrays lie in device memory: a call on the GPU alone copies nothing"
    return [absent(KEY, "copies", why, "xavier"), absent(KEY, "copies", NO_BOARD, "rtx2080ti")]


def figure10() -> list[Row]:
    """AlexNet's layers with and without zero-copy."""
    return [absent(KEY, "zero_copy_layers", "not here, because only bars are drawn, and no layer is copied here")]


def table1() -> list[Row]:
    """Table I and Figure 11: each layer split alone, simulated on the board."""
    out = []
    for model, name in one_split.PRINTED.items():
        found = one_split.simulated(*on(BOARD, model))
        for kind in ("conv", "fc"):
            least, most, middle = _quoted("table1").numbers(f"{name}_{kind}")
            values = [100 * v for v in found.get(kind, [])]
            if values:
                what = one_split.words(model, kind)
                why = _as_fast(middle, model, kind) if middle else ""
                note = f"printed: {least} to {most}; a layer whose split is slower is left alone (0); {why}".rstrip(
                    "; "
                )
                ours = mean(values)
                out.append(row(KEY, "Table I", what, middle, ours, "simulated", "%", spread(values), note))
    dense = _quoted("alexnet_dense")
    found = one_split.simulated(*on(BOARD, "alexnet")).get("fc", [])
    values = {f"fc{n}": 100 * v for n, v in enumerate(found, 6)}
    what = "AlexNet's dense layers, with zero-copy"
    printed = dense.number("zero_copy")
    why = _as_fast(printed, "alexnet", "fc")
    return [*out, over_networks(KEY, "Figure 11", what, printed, values, note=why)]


def figure12() -> list[Row]:
    """Against the cloud."""
    size, rate = _quoted("cloud_image").number("size"), _quoted("cloud_network").number("bandwidth")
    seconds = size / 1000 / rate + _quoted("cloud_delay").number("delay") / 1000
    note = "the image's bytes over the network's, and the delay, as printed; the cloud's own time is not printed"
    return [
        row(KEY, "Figure 12", "seconds before the cloud answers", None, seconds, "calculated", "s", note=note),
        absent(KEY, "over_cloud", "not here, because the cloud's own time is only drawn", "mean"),
    ]


def figure13() -> list[Row]:
    """Against a discrete GPU, by power and by price."""
    return [
        absent(KEY, "over_gpu_power", NO_BOARD, "mean"),
        absent(KEY, "over_gpu_price", NO_BOARD, "mean"),
    ]


def section_v_f() -> list[Row]:
    """Inter-kernel co-running alone against the GPU alone."""
    values = {m: 100 * (1 - simulated(BOARD, m, INTER) / simulated(BOARD, m, device)) for m in MODELS}
    printed = _quoted("inter_kernel").number("squeezenet")
    what = "inter-kernel co-running alone, SqueezeNet"
    ours, resnet = values.pop("squeezenet"), values.pop("resnet18")
    slow = f"it has branches; the profile's CPU takes {_slower('resnet18'):.1f} times the GPU's seconds"
    one_plan = "a network without branches has the GPU's own plan: 0 by construction"
    return [
        row(KEY, "section V-F", what, printed, ours, "simulated", note=_branches(printed)),
        row(KEY, "section V-F", "inter-kernel co-running alone, ResNet", 0.0, resnet, "simulated", note=slow),
        over_networks(KEY, "section V-F", "the same, the other four", 0.0, values, note=one_plan),
    ]


FUNCTIONS = (figure6, figure7, figure8, figure9, figure10, table1, figure12, figure13, section_v_f)
