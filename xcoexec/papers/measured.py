"""What is measured of the papers' networks on this machine: every strategy beside both halves alone, alternating in one
process. The same functions make cells of records of `xcoexec bench --suite`, which may come from other machines.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..tools.suite import SUITES, Record, Suite, measure
from . import quoted
from .cells import MEASURED, NONE, Cell

#: the papers' names of networks of the zoo
NAMED = {"vgg16": "vgg", "resnet18": "resnet", "retinaface_resnet50": "retinaface", "fast_style": "style"}
METHODS = ("edgenn", "codl", "layer_switch")
VARIANTS = ("device", "host", *METHODS)
ROUNDS, BLOCK = 5, 0.05  # of a quick run: rounds, seconds of each variant's block
KEPT_ROUNDS = Suite("", ()).rounds  # of kept records
NO_SWITCH = "no layer switches on this machine"


@functools.cache
def case(model: str, rounds: int = ROUNDS, block: float = BLOCK) -> Record:
    """A network under every method and both halves alone, measured once a process."""
    return measure("papers", Suite("the papers", (model,), variants=VARIANTS, rounds=rounds, block=block), model, 1)


def _cell(figure: str, what: str, paper: Any, ours: Any, unit: str, **more: Any) -> Cell:
    return {"figure": figure, "what": what, "paper": paper, "ours": ours, "kind": MEASURED, "unit": unit, **more}  # type: ignore[typeddict-item]


def median(r: Record, variant: str) -> float:
    """Median seconds of a call."""
    return float(r["seconds"][variant][1])


def _splits(r: Record, variant: str) -> int:
    return int(r["halves"].get(variant, {}).get("split", 0))


def _quartiles(r: Record, of: Callable[[float, float], float], variant: str, than: str) -> list[float]:
    """What a gain is at the far ends of both quartiles."""
    mine, other = r["seconds"][variant], r["seconds"][than]
    return sorted((of(mine[2], other[0]), of(mine[0], other[2])))


def less(mine: float, other: float) -> float:
    """Percent of time below another."""
    return 100 * (1 - mine / other)


def times(mine: float, other: float) -> float:
    """Times faster than another."""
    return other / mine


def geometric(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


@dataclasses.dataclass(frozen=True)
class Claim:
    """A gain of a method over one that is always there, in a figure: of each network, and their mean."""

    figure: str
    words: str
    variant: str
    than: str
    of: Callable[[float, float], float]
    unit: str
    mean: Callable[[Sequence[float]], float]
    paper: str
    record: str
    name: str


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


CLAIMS = {
    "edgenn": (
        Claim("Figure 8", "EdgeNN", "edgenn", "jit", less, "%", _mean, "edgenn", "gain", "mean"),
        Claim(
            "Figure 6", "over the CPU alone", "edgenn", "host", times, "times", _mean, "edgenn", "over_cpus", "xavier"
        ),
    ),
    "codl": (
        Claim(
            "Figure 15",
            "over the CPU alone",
            "codl",
            "host",
            times,
            "times",
            geometric,
            "codl",
            "over_one_processor",
            "cpu",
        ),
        Claim(
            "Figure 15",
            "over the GPU alone",
            "codl",
            "jit",
            times,
            "times",
            geometric,
            "codl",
            "over_one_processor",
            "gpu",
        ),
    ),
}


def gains(suite: str, records: Sequence[Record], runs: int = KEPT_ROUNDS) -> list[Cell]:
    """EdgeNN's and CoDL's gains from records of networks. Only networks of which layers were split count in a mean."""
    out: list[Cell] = []
    for c in CLAIMS[suite]:
        paper = quoted.load(c.paper)[c.record]
        split = [r for r in records if _splits(r, c.variant)]
        for r in records:
            ours = c.of(median(r, c.variant), median(r, c.than))
            more = {"spread": _quartiles(r, c.of, c.variant, c.than), "splits": _splits(r, c.variant), "runs": runs}
            printed = (paper.values or {}).get(NAMED.get(r["model"], r["model"]))
            out.append(_cell(c.figure, f"{c.words}: {r['model']}", printed, ours, c.unit, **more))
        values = [c.of(median(r, c.variant), median(r, c.than)) for r in split]
        mean = c.mean(values) if values else None
        note = f"{len(split)} of {len(records)} networks have split layers here"
        more = {"splits": sum(_splits(r, c.variant) for r in split), "note": note}
        if len(values) > 1:
            more["spread"] = [min(values), max(values)]
        out.append(_cell(c.figure, f"{c.words}: mean", paper[c.name], mean, c.unit, **more))
    return out


def switching(records: Sequence[Record], runs: int = KEPT_ROUNDS) -> list[Cell]:
    """Figure 13 of the layer-switching paper; a network that stays on one half has no switch."""
    gain = quoted.load("layer_switched")["gain"]
    out: list[Cell] = []
    found = []
    for r in records:
        h = r["halves"]["layer_switch"]
        better = min(("jit", "host"), key=lambda v: median(r, v))
        ours = less(median(r, "layer_switch"), median(r, better))
        if h["host"] and h["device"]:
            found.append(ours)
            spread = _quartiles(r, less, "layer_switch", better)
            out.append(
                _cell("Figure 13", f"below the better one: {r['model']}", None, ours, "%", spread=spread, runs=runs)
            )
        else:
            out.append(_cell("Figure 13", f"below the better one: {r['model']}", None, NO_SWITCH, "%"))
    mean = _mean(found) if found else NO_SWITCH
    note = f"{len(found)} of {len(records)} networks have layers on both halves here"
    return [*out, _cell("Figure 13", "below the better one: mean", gain["mean"], mean, "%", note=note)]


def kernels(records: Sequence[Record], runs: int = KEPT_ROUNDS) -> list[Cell]:
    """Times that the host half alone is faster than `jax.jit`: what kernels give, which no paper claims."""
    out = []
    for r in records:
        ours = times(median(r, "host"), median(r, "jit"))
        spread = _quartiles(r, times, "host", "jit")
        out.append(_cell("Kernels", r["model"], None, ours, "times", spread=spread, runs=runs))
    mean = geometric([times(median(r, "host"), median(r, "jit")) for r in records])
    return [*out, _cell("Kernels", "geometric mean", None, mean, "times")]


# -- rows ---------------------------------------------------------------------------------------------


def edgenn_measured(
    models: Sequence[str] = SUITES["edgenn"].models, rounds: int = ROUNDS, block: float = BLOCK
) -> list[Cell]:
    """Figures 6 and 8 of EdgeNN on this machine."""
    return gains("edgenn", [case(m, rounds, block) for m in models], rounds)


def codl_measured(
    models: Sequence[str] = SUITES["codl"].models, rounds: int = ROUNDS, block: float = BLOCK
) -> list[Cell]:
    """Figure 15 of CoDL on this machine."""
    return gains("codl", [case(m, rounds, block) for m in models], rounds)


def switch_measured(
    models: Sequence[str] = SUITES["layer_switch"].models, rounds: int = ROUNDS, block: float = BLOCK
) -> list[Cell]:
    """Figure 13 of the layer-switching paper on this machine."""
    return switching([case(m, rounds, block) for m in models], rounds)


def kernels_measured(models: Sequence[str], rounds: int = ROUNDS, block: float = BLOCK) -> list[Cell]:
    """The host half alone beside `jax.jit`."""
    return kernels([case(m, rounds, block) for m in models], rounds)


#: suite of a kept record -> (cells of its records, key of the row that they stand beside)
FROM_SUITE: dict[str, Callable[[Sequence[Record]], list[Cell]]] = {
    "edgenn": functools.partial(gains, "edgenn"),
    "codl": functools.partial(gains, "codl"),
    "layer_switch": switching,
}

__all__ = ["CLAIMS", "FROM_SUITE", "METHODS", "NONE", "case", "gains", "kernels", "switching"]
