"""What the papers claim of their methods, measured on this machine: cells of what `cases` has of each network. The same
functions make cells of records of `xcoexec bench --suite`, which may come from other machines.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..tools.splits import shared, split_layers
from ..tools.suite import SUITES, Suite
from . import quoted
from .cases import BLOCK, ROUNDS, cases
from .cells import MEASURED, Cell

Measured = Mapping[str, Any]  # a `cases.Case`, or a record of a suite
#: the papers' names of networks of the zoo
NAMED = {"vgg16": "vgg", "resnet18": "resnet", "retinaface_resnet50": "retinaface", "fast_style": "style"}
KEPT_ROUNDS = Suite("", ()).rounds  # of kept records
BRANCHES = "a network without branches has the GPU's own plan: 0 by construction"
ONE_PLAN = "one plan by Equations 1 to 4, run as it is: EdgeNN tunes the shares by feedback, which this row leaves out"


def cell(figure: str, what: str, paper: Any, ours: Any, unit: str, **more: Any) -> Cell:
    """A measured cell."""
    return {"figure": figure, "what": what, "paper": paper, "ours": ours, "kind": MEASURED, "unit": unit, **more}  # type: ignore[typeddict-item]


def median(r: Measured, way: str) -> float:
    """Median seconds of an item."""
    return float(r["seconds"][way][1])


def less(mine: float, other: float) -> float:
    """Percent of time below another."""
    return 100 * (1 - mine / other)


def times(mine: float, other: float) -> float:
    """Times faster than another."""
    return other / mine


def quartiles(r: Measured, of: Callable[[float, float], float], way: str, than: str) -> list[float]:
    """What a gain is at the far ends of both quartiles."""
    mine, other = r["seconds"][way], r["seconds"][than]
    return sorted((of(mine[2], other[0]), of(mine[0], other[2])))


def geometric(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def arithmetic(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return float(np.mean(values))


#: unit -> what of two times; means are arithmetic, as the papers' are
GAINS: Mapping[str, Callable[[float, float], float]] = {"%": less, "times": times}


def apart(r: Measured) -> bool:
    """Whether the device half was a device of its own (kept records of suites all are)."""
    return bool(r.get("apart", True))


def both(r: Measured, way: str) -> int:
    """Layers of a plan that are split, or that lie on the host half beside a device of its own: 0 where all are on one
    half.
    """
    split = split_layers(r, way)
    return r["halves"][way]["host"] or split if apart(r) and shared(r, way) else split


@dataclasses.dataclass(frozen=True)
class Claim:
    """A gain of a way over another one in a figure, of each network and their mean. `printed`: record and value of the
    quoted data ("": ours alone); `only`: of these networks; `switched`: whole layers on either half count as splits do.
    """

    figure: str
    words: str
    way: str
    than: str
    unit: str
    printed: str = ""
    only: tuple[str, ...] = ()
    switched: bool = False
    note: str = ""

    def working(self, r: Measured) -> int:
        """Layers of the way's plan that are split, or that lie on the other half where that counts."""
        return both(r, self.way) if self.switched else split_layers(r, self.way)


_RIVAL = "codl, no chains"
CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "edgenn": (
        Claim(
            "Figure 6",
            "times faster than the board's own CPU",
            "edgenn, paper",
            "host",
            "times",
            "over_cpus.xavier",
            note=ONE_PLAN,
        ),
        Claim("Figure 8", "EdgeNN over the GPU alone", "edgenn, paper", "device", "%", "gain.mean", note=ONE_PLAN),
        Claim("Figure 8", "hybrid execution alone, over the GPU alone", "edgenn, hybrid", "device", "%", "hybrid.mean"),
        Claim(
            "Figure 8",
            "ours: layers may run on the CPU as a whole too, over plain jax.jit",
            "edgenn",
            "jit",
            "%",
            note="the host half's kernels are in it",
        ),
        Claim(
            "Section V-F",
            "inter-kernel co-running alone, SqueezeNet",
            "edgenn, inter only",
            "device",
            "%",
            "inter_kernel.squeezenet",
            ("squeezenet",),
            switched=True,
        ),
        Claim(
            "Section V-F",
            "inter-kernel co-running alone, ResNet",
            "edgenn, inter only",
            "device",
            "%",
            only=("resnet18",),
            switched=True,
            note=f"the paper has no improvement for it; {BRANCHES}",
        ),
    ),
    "codl": (
        *(
            Claim(
                "Figure 15",
                f"{words}: times faster than the {name} alone",
                way,
                than,
                "times",
                f"over_one_processor.{key}",
            )
            for words, way in (("dynamic programme", "codl"), ("Algorithm 1", "codl, algorithm 1"))
            for name, key, than in (("CPU", "cpu", "host"), ("GPU", "gpu", "device"))
        ),
        Claim("Figure 15", "times faster than mu-layer", "codl", "mu_layer, FLOP", "times", "over_mu_layer.mean"),
        Claim("Figure 15", "times faster than mu-layer at each layer's best share", "codl", "mu_layer", "times"),
        *(
            Claim(
                "Figure 18",
                f"times faster than by {dim} alone, no chains",
                _RIVAL,
                f"codl, {dim}, no chains",
                "times",
                "hybrid_dimension.mean",
            )
            for dim in ("rows", "channel")
        ),
    ),
}


def gains(suite: str, records: Sequence[Measured], runs: int = KEPT_ROUNDS) -> list[Cell]:
    """EdgeNN's and CoDL's gains. Only networks of which layers were split count, alone and in a mean."""
    return [c for claim in CLAIMS[suite] for c in _claimed(suite, claim, records, runs)]


def _claimed(paper: str, c: Claim, records: Sequence[Measured], runs: int) -> list[Cell]:
    mine = [r for r in records if {c.way, c.than} <= r["seconds"].keys() and r["model"] in (c.only or (r["model"],))]
    if not mine:
        return []
    of = GAINS[c.unit]
    key, _, name = c.printed.partition(".")
    printed = quoted.load(paper)[key].values or {} if key else {}
    working = [r for r in mine if c.working(r)]
    gain = lambda r: of(median(r, c.way), median(r, c.than))
    out: list[Cell] = []
    for r in () if c.only else working:
        theirs = printed.get(NAMED.get(str(r["model"]), str(r["model"])))
        more = {"spread": quartiles(r, of, c.way, c.than), "splits": c.working(r), "runs": runs}
        out.append(cell(c.figure, f"{c.words}: {r['model']}", theirs, gain(r), c.unit, **more))
    every = ", ".join(r["model"] for r in mine)
    note = f"{len(working)} of {len(mine)} networks ({every}) have work on both halves here"
    more = {"splits": sum(map(c.working, working)), "note": f"{note}; {c.note}".rstrip("; "), "runs": runs}
    values = [gain(r) for r in working]
    if working:
        alone = quartiles(working[0], of, c.way, c.than)
        more["spread"] = [min(values), max(values)] if len(values) > 1 else alone
    out.append(cell(c.figure, c.words, printed.get(name), arithmetic(values) if values else None, c.unit, **more))
    return out


def switching(records: Sequence[Measured], runs: int = KEPT_ROUNDS) -> list[Cell]:
    """Figure 13 of the layer-switching paper; a network that stays on one half has no switch."""
    found = {r["model"]: r for r in records if both(r, "layer_switch")}
    gpu = "device" if all("device" in r["seconds"] for r in records) else "jit"  # kept suites have no such plan
    switched = {m: both(r, "layer_switch") for m, r in found.items()}
    every = ", ".join(r["model"] for r in records)
    note = (
        f"{len(found)} of {len(records)} networks ({every}) have layers on both halves here; a minimum cut, which may"
        " part pooling from its convolution as the paper's never does"
    )
    out: list[Cell] = []
    for words, printed, ways in (
        ("the better component alone", "gain.mean", (gpu, "host")),
        ("the CPU alone", "gain_components.cpu", ("host",)),
        ("the GPU alone", "gain_components.gpu", (gpu,)),
    ):
        values = []
        for m, r in found.items():
            better = min(ways, key=lambda w: median(r, w))
            values.append(less(median(r, "layer_switch"), median(r, better)))
            more = {"spread": quartiles(r, less, "layer_switch", better), "splits": switched[m], "runs": runs}
            out.append(cell("Figure 13", f"less time than {words}: {m}", None, values[-1], "%", **more))
        key, _, name = printed.partition(".")
        more = {"spread": [min(values), max(values)]} if len(values) > 1 else {}
        more |= {"splits": sum(switched.values()), "note": note, "runs": runs}
        theirs, mean = quoted.load("layer_switched")[key][name], arithmetic(values) if values else None
        out.append(cell("Figure 13", f"less time than {words}", theirs, mean, "%", **more))
    return out


def kernels(records: Sequence[Measured], runs: int = KEPT_ROUNDS) -> list[Cell]:
    """Times that the host half alone is faster than `jax.jit`: what kernels give, which no paper claims."""
    out = []
    for r in records:
        ours = times(median(r, "host"), median(r, "jit"))
        spread = quartiles(r, times, "host", "jit")
        out.append(cell("Kernels", r["model"], None, ours, "times", spread=spread, runs=runs))
    if not out:
        return []
    mean = geometric([times(median(r, "host"), median(r, "jit")) for r in records])
    return [*out, cell("Kernels", "geometric mean", None, mean, "times", runs=runs)]


# -- rows ---------------------------------------------------------------------------------------------


def edgenn_measured(models: Sequence[str], rounds: int = ROUNDS, block: float = BLOCK) -> list[Cell]:
    """Figures 6 and 8 and section V-F of EdgeNN on this machine."""
    return gains("edgenn", cases(models, rounds, block), rounds)


def codl_measured(models: Sequence[str], rounds: int = ROUNDS, block: float = BLOCK) -> list[Cell]:
    """Figures 15 and 18 of CoDL on this machine."""
    return gains("codl", cases(models, rounds, block), rounds)


def switch_measured(models: Sequence[str], rounds: int = ROUNDS, block: float = BLOCK) -> list[Cell]:
    """Figure 13 of the layer-switching paper on this machine."""
    found = cases(models, rounds, block)
    return switching(found, rounds) if found else []


def kernels_measured(models: Sequence[str], rounds: int = ROUNDS, block: float = BLOCK) -> list[Cell]:
    """The host half alone beside `jax.jit`."""
    return kernels(cases(models, rounds, block), rounds)


#: suite of a kept record -> cells of its records
FROM_SUITE: dict[str, Callable[[Sequence[Measured]], list[Cell]]] = {
    "edgenn": functools.partial(gains, "edgenn"),
    "codl": functools.partial(gains, "codl"),
    "layer_switch": switching,
}

__all__ = ["CLAIMS", "FROM_SUITE", "SUITES", "gains", "kernels", "switching"]
