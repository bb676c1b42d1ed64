"""Layer-switched inference (Aghapour et al., DSD 2022): a function for each of its tables and figures."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from xcoexec.frontend.graph import graph_of
from xcoexec.ir.costs import Costs
from xcoexec.papers import quoted
from xcoexec.planning.strategies.layer_switch import total
from xcoexec.strategies import layer_switch
from xcoexec.tools.suite import SUITES

from .split_common import Row, absent, mean, on, over_networks, row

KEY, BOARD = "layer_switched", "khadas-vim3"
MODELS = SUITES["layer_switch"].models
#: Table I's layers -> ours: pooling belongs to the convolution before it
TABLE_1 = ((0, 1), (2, 3), (4,), (5,), (6, 7), (9,), (10,), (11,))
CPU_FASTER = ("mobilenet_v1", "resnet50")  # Figure 2 as the text of section I says it
FITTED = "the board's profile is fitted to their sums; layers 1 and 2 hold normalisation that our AlexNet lacks"
DRAWN = "not here, because only curves are drawn, without a number"


def _quoted(key: str) -> quoted.Quoted:
    return quoted.load(KEY)[key]


def _alone(model: str) -> tuple[float, float]:
    """Seconds on the CPU and on the GPU alone, layers in turn; images and results lie where the GPU is."""
    graph, costs = on(BOARD, model)
    n = len(graph.layers)
    return total(graph, costs, [True] * n), total(graph, costs, [False] * n)


def _switched(model: str) -> float:
    """Seconds of the layer-switched plan with its layers in turn, as the paper's system runs them."""
    predicted = layer_switch(*on(BOARD, model)).predicted
    assert predicted is not None
    return predicted


def figure2() -> list[Row]:
    """Which component is faster."""
    out = []
    for m in MODELS:
        cpu, gpu = _alone(m)
        printed, ours = ("CPU" if m in CPU_FASTER else "GPU"), ("CPU" if cpu < gpu else "GPU")
        note = f"CPU {1e3 * cpu:.1f} ms, GPU {1e3 * gpu:.1f} ms; the profile's pooling is fitted to this order"
        out.append(row(KEY, "Figure 2", f"{m}: the faster component", printed, ours, "simulated", "", note=note))
    return [*out, *_latencies("Figure 2")]


def _latencies(figure: str) -> list[Row]:
    """Milliseconds of each network on the CPU and on the GPU alone; the papers' bars are only drawn."""
    ms = {m: [1e3 * t for t in _alone(m)] for m in MODELS}
    return [
        over_networks(KEY, figure, f"latency on the {name}", None, {m: t[i] for m, t in ms.items()}, unit="ms")
        for i, name in enumerate(("CPU", "GPU"))
    ]


def table1() -> list[Row]:
    """AlexNet's layers on the CPU and on the GPU, and the best of both."""
    q, gains = _quoted("table1"), _quoted("table1_gain")
    out = []
    _, costs = on(BOARD, "alexnet")
    for column, times in (("cpu", costs.host), ("gpu", costs.device)):
        ours = [1e3 * sum(times[i] or 0.0 for i in layers) for layers in TABLE_1]
        printed = q.numbers(column)
        rest = f"without those two {sum(printed[2:]):.2f} ms are printed, the profile's are {sum(ours[2:]):.2f} ms"
        for number, (a, b) in enumerate(zip(printed, ours, strict=True), 1):
            what = f"AlexNet's layer {number} on the {column.upper()}"
            out.append(row(KEY, "Table I", what, a, b, "simulated", "ms", note=f"{FITTED}; {rest}"))
    cpu, gpu = (tuple(t * 1e-3 for t in q.numbers(c)) for c in ("cpu", "gpu"))
    fn = lambda w, x: functools.reduce(lambda y, m: jnp.tanh(y @ m), w, x)
    graph = graph_of(fn, ([np.ones((4, 4), np.float32)] * len(cpu), np.ones((1, 4), np.float32)), 1)[1]
    best = layer_switch(graph, Costs.of_halves(cpu, gpu, 0.0, float("inf"), 1.0, False)).predicted
    assert best is not None
    note = "from the table's entries, which are rounded: they add up to 86.49 ms"
    out.append(
        row(KEY, "Table I", "the best of both", q.numbers("totals")[2], 1e3 * best, "calculated", "ms", note=note)
    )
    for column, times in (("cpu", cpu), ("gpu", gpu)):
        less, what = 100 * (1 - best / sum(times)), f"the best below the {column.upper()} alone"
        out.append(row(KEY, "Table I", what, gains.number(column), less, "calculated", note=note))
    return out


def figures8_to_12() -> list[Row]:
    """T_CPU/GPU over sizes."""
    keys = ("input_shape", "kernel_first", "kernel", "input_channels", "filters")
    return [absent(KEY, key, DRAWN) for key in keys]


def tables2_and_3() -> list[Row]:
    """The sizes that were tried, and what they prefer."""
    why = "not here, because its merged cells cannot be told apart in the text; the profile has no rate by size"
    return [
        absent(KEY, "table2", "not here, because it lists sizes of curves that are only drawn"),
        absent(KEY, "table3", why),
    ]


def figure13() -> list[Row]:
    """Layer-switched execution against one component."""
    better, parts = _quoted("gain"), _quoted("gain_components")
    switched = {m: _switched(m) for m in MODELS}
    found = {
        "the better component alone": (better.number("mean"), {m: min(_alone(m)) for m in MODELS}),
        "the CPU alone": (parts.number("cpu"), {m: _alone(m)[0] for m in MODELS}),
        "the GPU alone": (parts.number("gpu"), {m: _alone(m)[1] for m in MODELS}),
    }
    out = []
    for name, (printed, alone) in found.items():
        values = {m: 100 * (1 - switched[m] / alone[m]) for m in MODELS}
        note = _switches(switched, printed, values) if name == "the better component alone" else ""
        out.append(over_networks(KEY, "Figure 13", f"less time than {name}", printed, values, note=note))
    ms = {m: 1e3 * t for m, t in switched.items()}
    return [
        *out,
        *_latencies("Figure 13"),
        over_networks(KEY, "Figure 13", "latency, layer-switched", None, ms, unit="ms"),
    ]


def _switches(switched: dict[str, float], printed: float, values: dict[str, float]) -> str:
    """What switches cost by the profile, and what each would cost more where the gain came out as printed."""
    count = {}
    for m in MODELS:
        halves = [p.half for p in layer_switch(*on(BOARD, m)).placements]
        count[m] = sum(a != b for a, b in zip(["device", *halves], [*halves, "device"], strict=True))
    missing = mean([(values[m] - printed) / 100 * min(_alone(m)) for m in MODELS])
    each = missing / max(mean(count.values()), 1.0)
    over = sum(count.values()) * on(BOARD, MODELS[0])[1].sync / 2 / sum(switched.values())
    return (
        f"{mean(count.values()):.1f} switches a network, whose fixed part is {over:.1%} of the time; as printed if each"
        f" cost {1e3 * each:+.2f} ms more (the paper's regression is not printed, and it never parts pooling from its"
        " convolution)"
    )


FUNCTIONS = (figure2, table1, figures8_to_12, tables2_and_3, figure13)
