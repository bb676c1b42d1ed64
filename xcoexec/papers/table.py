"""The table of rows: every table and figure of the five papers, what reruns it, or why nothing here does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tools.suite import SUITES
from .rows import BEYOND, Row, pictured

MEASURED, METHODS = (f"xcoexec.papers.{m}" for m in ("measured", "beyond"))
#: networks of a quick run: those of each suite that are done within a minute on two cores
QUICK: Mapping[str, tuple[str, ...]] = {
    "edgenn": ("fcnn", "lenet", "squeezenet", "resnet18"),
    "codl": ("posenet",),
    "layer_switch": ("mobilenet_v1", "squeezenet"),
    BEYOND: ("lenet", "squeezenet", "resnet18", "mobilenet_v1"),
}
ALL = tuple(dict.fromkeys(m for s in ("edgenn", "codl", "layer_switch") for m in SUITES[s].models))
BENCH = "xcoexec.benchmarks"
JOBS, SEARCH = (f"{BENCH}.{m}" for m in ("blastnet_rows", "blastnet_search"))
QUICK_RUN = 2.0  # seconds of a run with deadlines
LONG = {"rounds": 6, "block": 0.1}
SETUP = "a table of the setup: it has no result"


def _computed(paper: str, figures: str, function: str) -> Row:
    """A row of `benchmarks` that is calculated or simulated."""
    return Row(paper, tuple(figures.split(", ")), f"xcoexec.benchmarks.{function}")


def _pipe(figure: str, name: str) -> Row:
    """The same of NeuroPipe."""
    return _computed("neuropipe", figure, f"neuropipe_rows:{name}")


def _long(
    paper: str, figures: str, function: str, quick: Mapping[str, Any], full: Mapping[str, Any], **more: Any
) -> Row:
    """A row that is measured, in steps."""
    return Row(paper, tuple(figures.split(", ")), function, quick, full, steps=True, **more)


def _suite(name: str) -> dict[str, Any]:
    return {"quick": {"models": QUICK[name]}, "full": {"models": SUITES[name].models, **LONG}}


def _not_here(paper: str, **because: str) -> list[Row]:
    """Rows of what is not rerun: "figure_7" is Figure 7, "table_2" Table 2."""
    return [Row(paper, (name.capitalize().replace("_", " "),), because=why) for name, why in because.items()]


EDGENN = (
    _long(
        "edgenn",
        "Figure 6, Figure 8, Section V-F",
        f"{MEASURED}:edgenn_measured",
        **_suite("edgenn"),
        about_splits=True,
    ),
    _long(
        "edgenn",
        "Table I",
        f"{BENCH}.one_split:table1",
        {"models": ("lenet",)},
        {"models": ("lenet", "alexnet", "vgg16")},
        about_splits=True,
    ),
    _computed("edgenn", "Figure 6", "split_edgenn:figure6"),
    _computed("edgenn", "Figure 7", "split_edgenn:figure7"),
    _computed("edgenn", "Figure 8", "split_edgenn:figure8"),
    _computed("edgenn", "Figure 9", "split_edgenn:figure9"),
    _computed("edgenn", "Figure 10", "split_edgenn:figure10"),
    _computed("edgenn", "Table I, Figure 11", "split_edgenn:table1"),
    _computed("edgenn", "Figure 12", "split_edgenn:figure12"),
    _computed("edgenn", "Figure 13", "split_edgenn:figure13"),
    _computed("edgenn", "Section V-F", "split_edgenn:section_v_f"),
)
CODL = (
    _long("codl", "Figure 15, Figure 18", f"{MEASURED}:codl_measured", **_suite("codl"), about_splits=True),
    _long("codl", "Table 3, Table 4", f"{BENCH}.split_predictor:predicted", {"layers": 120}, {"layers": 408}),
    *(_computed("codl", f"Table {n}", f"split_codl:table{n}") for n in (1, 2)),
    *(_computed("codl", f"Figure {n}", f"split_codl:figure{n}") for n in (1, 2, 4, 5, 6, 10, 13, 14)),
    _computed("codl", "Figure 15", "split_codl:figure15"),
    *(_computed("codl", f"Figure {n}", f"split_codl:figure{n}") for n in range(16, 23)),
)
SWITCHED = (
    _long("layer_switched", "Figure 13", f"{MEASURED}:switch_measured", **_suite("layer_switch"), about_splits=True),
    _computed("layer_switched", "Table I", "split_switched:table1"),
    _computed("layer_switched", "Table II, Table III", "split_switched:tables2_and_3"),
    _computed("layer_switched", "Figure 2", "split_switched:figure2"),
    _computed("layer_switched", "Figure 8, Figure 9, Figure 10, Figure 11, Figure 12", "split_switched:figures8_to_12"),
    _computed("layer_switched", "Figure 13", "split_switched:figure13"),
)
NEUROPIPE = (
    *(_pipe(f"Table {n}", f"table{n}") for n in (1, 2, 3, 4, 5)),
    *(_pipe(f"Figure {n}", f"figure{n}") for n in (1, 2, 3, 4, 6, 7, 8, 9)),
    _pipe("Figure 5, Section III-B", "figure5"),
    _long(
        "neuropipe",
        "Table 4, Table 5, Figure 5",
        f"{BENCH}.neuropipe_measured:streamed",
        {"models": ("mlp", "mobilenet_v1"), "seconds": 1.0},
        {"models": ("mlp", "mobilenet_v1", "resnet50", "yolov3", "fcn8s"), "seconds": 3.0},
    ),
)
FULL = {"full": True}
BLASTNET = (
    Row("blastnet", ("Figure 3", "Figure 4"), f"{JOBS}:figures_3_and_4"),
    *(Row("blastnet", (f"Figure {n}",), f"{JOBS}:figure_{n}", full=FULL) for n in (15, 16, 17, 18)),
    _long("blastnet", "Table 3", f"{SEARCH}:table_3", {"seconds": QUICK_RUN}, FULL),
    _long("blastnet", "Figure 13", f"{SEARCH}:figure_13", {"seconds": QUICK_RUN}, FULL),
    _long("blastnet", "Figure 14", f"{SEARCH}:figure_14", {}, FULL),
    *_not_here(
        "blastnet",
        table_1=SETUP,
        table_2=SETUP,
        figure_2="it needs a desktop's GPU with ten networks on it at once",
        figure_7="its points are only drawn, and of a GPU",
        figure_8="a diagram of the blocks among which the search chooses",
    ),
)
OURS = (
    _long(
        BEYOND,
        "Methods",
        f"{METHODS}:compared",
        {"models": QUICK[BEYOND]},
        {"models": ALL, **LONG},
        matrix=True,
    ),
    _long(BEYOND, "Kernels", f"{MEASURED}:kernels_measured", {"models": QUICK[BEYOND]}, {"models": ALL, **LONG}),
)
RULES: tuple[Row, ...] = (*EDGENN, *CODL, *SWITCHED, *NEUROPIPE, *BLASTNET, *OURS)
ROWS: tuple[Row, ...] = (*RULES, *pictured(RULES))

__all__ = ["ROWS", "RULES"]
