"""CoDL (Jia et al., MobiSys 2022): a function for each of its tables and figures."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xcoexec.frontend.graph import graph_of
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.words import DEVICE, HOST
from xcoexec.papers import quoted
from xcoexec.planning import profiles
from xcoexec.planning.simulate import replay
from xcoexec.strategies import algorithm1, codl, device, host, mu_layer

from .split_codl_gaps import (
    BOARD,
    FLOPS,
    MODELS,
    ONE,
    SHARES,
    against_dp,
    alone_to_both,
    as_bounded,
    divided_by_rows,
    divided_everywhere,
    exchanged,
    faster,
    in_chains,
    less_sharing,
    sharing,
    small_layers,
)
from .split_common import (
    Row,
    absent,
    mean,
    on,
    over_networks,
    plan,
    row,
    simulated,
)

KEY = "codl"
NO_CHAINS = functools.partial(codl, chain=False)
NO_BOARD = "not here, because that phone is not at hand and no time of one of its processors is printed"
DATA_TYPES = (
    "not here, because a plan chooses no data type or layout: XLA chooses the device half's, the host half's kernels"
    " compute channels-last, and section 4's images and buffers are absent"
)
LINEAR = (
    "on a board of numbers a part takes its share of a layer's time along either dimension: how well a part fills the"
    " GPU is not in it"
)
FITTED = (
    "the profile is fitted to the ratio of both processors alone, which follows from these two printed gains (2.08 over"
    " 1.56), and to one divided convolution (Figure 4)"
)
#: network of the suite -> the paper's, and why another one stands in
STAND_INS = {
    "posenet": (
        "PoseNet (PN) [35]",
        "the cited network (Zimmermann and Brox, ICCV 2017) estimates 3-D hand poses; the zoo's PoseNet estimates a"
        " person's pose with MobileNetV1's layers, and stands in because it is the one of that name with published"
        " shapes",
    ),
    "fast_style": (
        "Fast Style Transfer (FST) [5]",
        "the cited network (An et al., 2019) is universal style transfer; the zoo's is Johnson's feed-forward network,"
        " and stands in because the cited one's layers and input size are not printed",
    ),
}


def _quoted(key: str) -> quoted.Quoted:
    return quoted.load(KEY)[key]


def _stand_ins() -> str:
    return "; ".join(f"{m} stands for {cited}: {why}" for m, (cited, why) in STAND_INS.items())


def _convolution(shape: tuple[int, int, int, int], window: int) -> tuple[Any, Any]:
    """The graph and the board's costs of one convolution <H, W, IC, OC>."""
    height, width, into, out = shape

    def fn(w: jax.Array, x: jax.Array) -> jax.Array:
        dims = ("NHWC", "HWIO", "NHWC")
        return jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims))

    given = (jnp.zeros((window, window, into, out)), np.zeros((1, height, width, into), np.float32))
    graph = graph_of(fn, given, 1)[1]
    return graph, profiles.load(BOARD).costs(graph)


def figure1() -> list[Row]:
    """PoseNet is slower on both processors (mu-layer) than on one."""
    printed = _quoted("slower_together").number("posenet")
    ms = {
        name: 1e3 * simulated(BOARD, "posenet", by)
        for name, by in (("the CPU", host), ("the GPU", device), ("CPU+GPU (mu-layer)", FLOPS))
    }
    *alone, both = ms.values()
    note = f"{alone_to_both(printed)}; {STAND_INS['posenet'][1]}"
    what = "PoseNet: mu-layer's time over the better processor's"
    return [
        row(KEY, "Figure 1", what, printed, both / min(alone), "simulated", "times", note=note),
        *(row(KEY, "Figure 1", f"PoseNet on {name}", None, t, "simulated", "ms") for name, t in ms.items()),
    ]


def figure2() -> list[Row]:
    """Images against buffers on the GPU."""
    return [absent(KEY, "image_type", DATA_TYPES, "faster")]


def figure4() -> list[Row]:
    """A 1x1 convolution alone, divided, and what is shared."""
    q = _quoted("sharing")
    graph, costs = _convolution((52, 52, 256, 128), 1)
    (x,) = graph.layers
    t_cpu, t_gpu = costs.host[0] or 0.0, costs.device[0]
    shared = costs.exchange((sum(v.nbytes for v in graph.program.inputs) + x.out.nbytes) / 2)
    note = "the board's profile is fitted to these"
    values = (("alone", t_gpu), ("divided", t_cpu * t_gpu / (t_cpu + t_gpu)), ("sharing", shared))
    return [
        row(KEY, "Figure 4", f"1x1 convolution: {name}", q.number(name), 1e6 * t, "simulated", "us", note=note)
        for name, t in values
    ]


def figure5() -> list[Row]:
    """The best share of a 3x3 convolution on the GPU."""
    graph, costs = _convolution((240, 320, 64, 128), 3)
    ours = 100 * (1 - mu_layer(graph, costs).placements[0].p_cpu)
    printed = _quoted("flops_ratio").number("best")
    times = (costs.host[0] or 0.0) / costs.device[0]
    note = (
        "the paper's FLOP-based predictor gives 60 %; the profile has one rate for all 3x3 convolutions: as printed if"
        f" the GPU were {printed / (100 - printed):.1f} times as fast as the CPU in this one, there it is {times:.1f}"
        " times"
    )
    times = {p: replay(graph, _halves(graph, p, "channel"), costs).seconds for p in SHARES[1::2]}
    curve = [
        row(KEY, "Figure 5", "latency", None, 1e3 * t, "simulated", "ms", series="latency", x=100 * (1 - p))
        for p, t in times.items()
    ]
    return [
        *curve,
        row(
            KEY,
            "Figure 5",
            "best share on the GPU",
            printed,
            ours,
            "simulated",
            note=note,
        ),
    ]


def _halves(graph: LayerGraph, p: float, dim: str) -> Plan:
    """Every layer split at one share."""
    return Plan("one share", tuple(Placement(x.name, "split", p, dim) for x in graph.layers), graph.key)


def figure6() -> list[Row]:
    """Time over FLOP."""
    return [absent(KEY, "steps", "not here, because only points are drawn; Equation 3's steps are tested")]


def figure10() -> list[Row]:
    """Two convolutions of YOLO, half of each on each processor."""
    out = []
    for key, shape in (("dimensions_large", (104, 104, 64, 128)), ("dimensions_small", (13, 13, 1024, 1024))):
        graph, costs = _convolution(shape, 3)
        for dim, name in (("rows", "rows"), ("channel", "channels")):
            seconds = replay(graph, _halves(graph, 0.5, dim), costs).seconds
            what = f"{shape}, half by {name}: times faster than the CPU alone"
            alone, printed = costs.host[0] or 0.0, _quoted(key).number(name)
            longest = max(costs.part(HOST, 0, dim, 0.5), costs.part(DEVICE, 0, dim, 0.5))
            note = (
                f"{LINEAR}; sharing takes {1e3 * (seconds - longest):.2f} ms here (without it {alone / longest:.2f});"
                f" as printed if half and sharing took {1e3 * alone / printed:.2f} ms instead of {1e3 * seconds:.2f}"
            )
            out.append(row(KEY, "Figure 10", what, printed, alone / seconds, "simulated", "times", note=note))
    return out


def figure13() -> list[Row]:
    """A chain of nine operators of YOLO."""
    why = "not here, because the text does not say which nine operators"
    return [absent(KEY, "chain_of_nine", why, "sharing"), absent(KEY, "best_chain", why, "length")]


def figure14() -> list[Row]:
    """The parts of an exchange by size."""
    return [absent(KEY, "fig14", "not here, because only points are drawn")]


def figure15() -> list[Row]:
    """Times faster than one processor, mu-layer and buffers, on Snapdragon phones."""
    one, rival = _quoted("over_one_processor"), _quoted("over_mu_layer")
    slower = _quoted("image_type").number("faster")
    out = [
        over_networks(
            KEY,
            "Figure 15",
            f"{name}: times faster than the {other} alone",
            one.number(key),
            faster(alone, by),
            unit="times",
            note=note,
        )
        for name, by in (("dynamic programme", codl), ("Algorithm 1", algorithm1))
        for other, key, alone in (("CPU", "cpu", host), ("GPU", "gpu", device))
        for note in (f"{FITTED}; {_stand_ins()}" if by is codl else against_dp(),)
    ]
    what = "times faster than mu-layer"
    buffers = {}
    for m in MODELS:
        graph, costs = on(BOARD, m)
        slow = costs.scaled(device=slower)
        buffers[m] = replay(graph, FLOPS(graph, slow), slow).seconds / simulated(BOARD, m, codl)
    printed = rival.number("mean")
    note = f"both with one data type, shares by FLOP; {exchanged(printed)}"
    out.append(over_networks(KEY, "Figure 15", what, printed, faster(FLOPS), unit="times", note=note))
    note = f"mu-layer's GPU with buffers, the printed {slower} times slower (Figure 2); {exchanged(printed, slower)}"
    out.append(over_networks(KEY, "Figure 15", f"{what} with buffers", printed, buffers, unit="times", note=note))
    style = _quoted("style_bound")
    ours = 100 * (1 - simulated(BOARD, "fast_style", codl) / simulated(BOARD, "fast_style", host))
    what = "fast style transfer: less time than the CPU alone"
    why = f"{as_bounded(style.number('bound'))}; {small_layers()}; {STAND_INS['fast_style'][1]}"
    out.append(row(KEY, "Figure 15", what, style.number("codl"), ours, "simulated", note=why))
    return [*out, absent(KEY, "over_buffers", DATA_TYPES, "mean")]


def figure16() -> list[Row]:
    """The same on the Kirin 990."""
    return [
        absent(KEY, "kirin_over_mu_layer", NO_BOARD, "mean"),
        absent(KEY, "kirin_over_one_processor", NO_BOARD, "cpu"),
        absent(KEY, "kirin_over_images", DATA_TYPES, "mean"),
    ]


def figure17() -> list[Row]:
    """Operators by dimension, without chains."""
    dims = {m: [p.dim for p in plan(BOARD, m, NO_CHAINS).placements if p.half == "split"] for m in MODELS}
    split = [d for found in dims.values() for d in found]
    printed = _quoted("by_dimension").number("rows")
    if not split:
        return [row(KEY, "Figure 17", "split layers divided by rows", printed, "no layer is split", "simulated")]
    ours = 100 * sum(d == "rows" for d in split) / len(split)
    note = (
        f"{len(split)} layers of five networks are split; the paper divides every operator, as printed if the GPU's"
        f" parts filled it less along one dimension: {divided_by_rows()}"
    )
    each = {m: 100 * found.count("rows") / len(found) for m, found in dims.items() if found}
    return [row(KEY, "Figure 17", "split layers divided by rows", printed, ours, "simulated", note=note, by=each)]


def figure18() -> list[Row]:
    """Both dimensions against one, without chains."""
    q, style = _quoted("hybrid_dimension"), _quoted("hybrid_dimension_style")
    printed = dict(zip(("rows", "channel", "both"), (*style.numbers("one"), style.number("both")), strict=True))
    out = []
    for name, by in {**ONE, "both": NO_CHAINS}.items():
        ms = {m: 1e3 * simulated(BOARD, m, by) for m in MODELS}
        what, theirs = f"latency, no chains, by {name}", {"fast_style": printed[name]}
        out.append(over_networks(KEY, "Figure 18", what, None, ms, unit="ms", paper_by=theirs))
    why = divided_everywhere(q.number("mean"))
    for dim, one in ONE.items():
        what = f"times faster than by {dim} alone, no chains"
        note = f"the mean of the paper is over both dimensions; {LINEAR}; {why}"
        out.append(
            over_networks(KEY, "Figure 18", what, q.number("mean"), faster(one, NO_CHAINS), unit="times", note=note)
        )
    return out


def figure19() -> list[Row]:
    """Operators in chains."""
    out = []
    for name, by in (("dynamic programme", codl), ("Algorithm 1", algorithm1)):
        values = {}
        for m in MODELS:
            places = plan(BOARD, m, by).placements
            values[m] = 100 * sum(p.chain > 0 for p in places) / len(places)
        what, printed = f"{name}: layers in chains", _quoted("chained").number("mean")
        out.append(over_networks(KEY, "Figure 19", what, printed, values, note=in_chains(by, printed)))
    return out


def figure20() -> list[Row]:
    """The cost of sharing that chains save: the same shares exchanged at every layer."""
    values = less_sharing(codl)
    short = {n: mean(less_sharing(functools.partial(codl, longest=n)).values()) for n in (2, 3)}
    chains = [p.chain for m in MODELS for p in plan(BOARD, m, codl).placements if p.chain]
    count = sum(len({p.chain for p in plan(BOARD, m, codl).placements} - {0}) for m in MODELS)
    what = "less time for sharing by chains"
    printed = _quoted("less_sharing").number("mean")
    note = (
        "of the layers that the plan splits, exchanged one by one at the same shares; the paper divides all; a chain"
        f" has {len(chains) / count:.1f} layers in the mean here, and with at most "
        + " and ".join(f"{n} it would be {v:.0f} %" for n, v in short.items())
        + f": as printed if chains had about {_between(short, printed):.1f} layers"
    )
    ms = {m: [1e3 * t for t in t_sharing] for m, t_sharing in sharing(codl).items()}
    theirs = _quoted("less_sharing_retinaface")
    retinaface = lambda value: {"retinaface_resnet50": value}
    return [
        over_networks(
            KEY,
            "Figure 20",
            what,
            printed,
            values,
            note=note,
            paper_by=retinaface(_quoted("less_sharing").number("retinaface")),
        ),
        *(
            over_networks(
                KEY,
                "Figure 20",
                f"time for sharing, {name} chains",
                None,
                {m: t[i] for m, t in ms.items()},
                unit="ms",
                paper_by=retinaface(theirs.number(name)),
            )
            for i, name in enumerate(("with", "without"))
        ),
    ]


def _between(values: Mapping[int, float], wanted: float) -> float:
    """Where a straight line through two values has the wanted one."""
    (a, low), (b, high) = values.items()
    return a + (b - a) * (wanted - low) / (high - low)


def table1() -> list[Row]:
    """The counts of the predictor: a rule."""
    return [
        absent(KEY, "table1", "not here, because it is a rule: `xcoexec.cost.equation3.size` has it, tests compare")
    ]


def table2() -> list[Row]:
    """The phones."""
    return [absent(KEY, "table2", "not here, because it lists phones; the Snapdragon 855 is a profile")]


def figure21() -> list[Row]:
    """Power and energy."""
    why = "not here, because no power of the phone is printed in watts"
    return [
        absent(KEY, "power", why, "cpu"),
        absent(KEY, "energy", why, "cpu"),
        absent(KEY, "energy_over_gpu", why, "gpu"),
    ]


def figure22() -> list[Row]:
    """Memory of the plans on the board: another quantity than the paper's."""
    both, total, arrays = 0, 0, 0
    for m in MODELS:
        graph = on(BOARD, m)[0]
        consts = set(graph.program.consts)
        arrays += sum(x.out.nbytes for x in graph.layers)
        for x, p in zip(graph.layers, plan(BOARD, m, codl).placements, strict=True):
            nbytes = sum(v.nbytes for v in x.ins if v in consts)
            total += nbytes
            both += nbytes if p.half == "split" and p.dim == "rows" else 0
    printed, what = _quoted("memory").number("mean"), "more memory"
    beside = (100 * both / printed - total) / len(MODELS) / 1e6
    note = (
        "of weights alone; the paper's is of the whole process: as printed if it held"
        f" {beside:.0f} MB beside {total / len(MODELS) / 1e6:.0f} MB of weights in the mean (all layers' results"
        f" together are {arrays / len(MODELS) / 1e6:.0f} MB)"
    )
    return [row(KEY, "Figure 22", what, printed, 100 * both / total, "simulated", note=note)]


FUNCTIONS = (
    figure1,
    figure2,
    figure4,
    figure5,
    figure6,
    figure10,
    figure13,
    figure14,
    figure15,
    figure16,
    figure17,
    figure18,
    figure19,
    figure20,
    table1,
    table2,
    figure21,
    figure22,
)
__all__ = ["FUNCTIONS", "STAND_INS"]
