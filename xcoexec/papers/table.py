"""The table of rows: every table and figure of the five papers, what reruns it, or why nothing here does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tools.suite import SUITES
from .rows import BEYOND, Axes, Row, pictured

DEVICES, STREAMS, MEASURED, METHODS = (f"xcoexec.papers.{m}" for m in ("devices", "streams", "measured", "beyond"))
#: networks of a quick run: those of each suite that are done within a minute on two cores
QUICK: Mapping[str, tuple[str, ...]] = {
    "edgenn": ("fcnn", "lenet", "squeezenet", "resnet18"),
    "codl": ("posenet",),
    "layer_switch": ("mobilenet_v1", "squeezenet"),
    BEYOND: ("lenet", "squeezenet", "resnet18", "mobilenet_v1"),
}
ALL = tuple(dict.fromkeys(m for s in ("edgenn", "codl", "layer_switch") for m in SUITES[s].models))
JOBS, SEARCH = (f"xcoexec.benchmarks.{m}" for m in ("blastnet_rows", "blastnet_search"))
QUICK_RUN = 2.0  # seconds of a run with deadlines
LONG = {"rounds": 6, "block": 0.3}
LESS, FASTER = Axes("network", "% of time saved"), Axes("network", "times faster")
RATIO = "T_CPU / T_GPU"

NO_GPU = "a machine without a GPU of its own has one memory: nothing is copied, and nothing can be mapped instead"
SETUP = "a table of the setup: it has no result"
METER = "no power meter can be read here"


def _suite(name: str) -> dict[str, Any]:
    return {"quick": {"models": QUICK[name]}, "full": {"models": SUITES[name].models, **LONG}}


def _not_here(paper: str, **because: str) -> list[Row]:
    """Rows of what is not rerun: "figure_7" is Figure 7, "table_2" Table 2."""
    return [Row(paper, (name.capitalize().replace("_", " "),), because=why) for name, why in because.items()]


EDGENN = (
    Row("edgenn", ("Figure 6",), f"{DEVICES}:edgenn_over_cpu", axes=(FASTER,)),
    Row("edgenn", ("Figure 8",), f"{DEVICES}:edgenn_gain", axes=(LESS,)),
    Row(
        "edgenn",
        ("Figure 6", "Figure 8"),
        f"{MEASURED}:edgenn_measured",
        **_suite("edgenn"),
        about_splits=True,
        axes=(FASTER, LESS),
    ),
    Row("edgenn", ("Table I", "Figure 11"), f"{DEVICES}:edgenn_layers", axes=(Axes("layers", "% of time saved"),)),
    *_not_here(
        "edgenn",
        figure_7=f"it needs a Raspberry Pi 4 beside the Xavier; {METER}",
        figure_9=NO_GPU,
        figure_10=NO_GPU,
        figure_12="it needs a cloud server with a GPU behind a network of 1 MB/s",
        figure_13=f"it needs an RTX 2080 Ti beside the Xavier; {METER}",
    ),
)
CODL = (
    Row("codl", ("Figure 15",), f"{DEVICES}:codl_gain", axes=(FASTER,)),
    Row("codl", ("Figure 15",), f"{MEASURED}:codl_measured", **_suite("codl"), about_splits=True, axes=(FASTER,)),
    Row(
        "codl",
        ("Figure 17", "Figure 18"),
        f"{DEVICES}:codl_dimensions",
        axes=(Axes("dimension", "% of operators"), Axes("network", "times faster")),
    ),
    Row(
        "codl",
        ("Figure 19", "Figure 20", "Figure 22"),
        f"{DEVICES}:codl_chains",
        axes=(Axes("network", "% of operators"), Axes("network", "% of overhead saved"), Axes("", "% more memory")),
    ),
    *_not_here(
        "codl",
        table_1="a table of formulas: the predictor is built after it, without a number to compare",
        table_2=SETUP,
        table_3="not measured in this run: `xcoexec profile` trains the predictor and prints its accuracy",
        table_4="not measured in this run: `xcoexec profile` trains the predictor and prints its accuracy",
        figure_1="it needs a phone with mu-layer on both processors",
        figure_2="it needs a GPU with an image type for arrays",
        figure_4=f"it needs both processors of a phone: {NO_GPU}",
        figure_5="it needs both processors of a phone",
        figure_6="it needs the GPU of a phone; its points are only drawn",
        figure_10="it needs both processors of a phone",
        figure_13="it needs both processors of a phone",
        figure_14=f"its points are only drawn; {NO_GPU}",
        figure_16="there is no profile of the Kirin 990, of which the paper prints no rates",
        figure_21=METER,
    ),
)
SWITCHED = (
    Row("layer_switched", ("Table I",), f"{DEVICES}:switched_table"),
    Row("layer_switched", ("Figure 2", "Figure 13"), f"{DEVICES}:switched_gain", axes=(Axes("network", "ms"), LESS)),
    Row("layer_switched", ("Figure 13",), f"{MEASURED}:switch_measured", **_suite("layer_switch"), axes=(LESS,)),
    Row(
        "layer_switched",
        ("Figure 8", "Figure 9", "Figure 10", "Figure 11", "Figure 12"),
        f"{DEVICES}:switched_ratios",
        axes=(
            Axes("input shape", RATIO, log_x=True),
            Axes("kernel shape", RATIO),
            Axes("kernel shape", RATIO),
            Axes("input channels", RATIO, log_x=True),
            Axes("filters", RATIO, log_x=True),
        ),
    ),
    Row("layer_switched", ("Table III",), f"{DEVICES}:switched_preferred"),
    Row("layer_switched", ("Table II",), because="a table of the sizes at which Figures 8 to 12 are simulated"),
)

ITEMS = "items of JPEG files are streamed by `python -m benchmarks.streams`, not by this command"
NEUROPIPE = (
    Row("neuropipe", ("Table 4",), f"{STREAMS}:operations"),
    Row("neuropipe", ("Figure 3",), f"{STREAMS}:equation1", axes=(Axes("alpha", "speedup"),)),
    Row("neuropipe", ("Figure 5",), f"{STREAMS}:basic_mode", axes=(Axes("network", "% less execution time"),)),
    *_not_here(
        "neuropipe",
        table_1=SETUP,
        table_2=ITEMS,
        table_3=ITEMS,
        table_5=ITEMS,
        figure_6=METER,
        figure_7=f"clocks are not touched on a machine that others share; {METER}",
        figure_8=f"clocks are not touched on a machine that others share; {METER}",
        figure_9="no thermometer of a board can be read here",
    ),
)
MISSED, FULL = Axes("policy", "% of deadlines missed, or points"), {"full": True}
BLASTNET = (
    Row(
        "blastnet",
        ("Figure 3", "Figure 4"),
        f"{JOBS}:figures_3_and_4",
        axes=(Axes("layer", "CPU / GPU"), Axes("", "%")),
    ),
    Row("blastnet", ("Figure 15",), f"{JOBS}:figure_15", full=FULL, axes=(MISSED,)),
    Row("blastnet", ("Figure 16",), f"{JOBS}:figure_16", full=FULL, axes=(MISSED,)),
    Row("blastnet", ("Figure 17",), f"{JOBS}:figure_17", full=FULL, axes=(MISSED,)),
    Row("blastnet", ("Figure 18",), f"{JOBS}:figure_18", full=FULL, axes=(Axes("policy", "% of GPU time"),)),
    Row("blastnet", ("Figure 14",), f"{SEARCH}:figure_14", full=FULL, axes=(Axes("accuracy", "% of paths"),)),
    Row("blastnet", ("Figure 13",), f"{SEARCH}:figure_13", {"seconds": QUICK_RUN}, FULL, axes=(MISSED,)),
    Row("blastnet", ("Table 3",), f"{SEARCH}:table_3", {"seconds": QUICK_RUN}, FULL),
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
    Row(
        BEYOND,
        ("Methods",),
        f"{METHODS}:compared",
        {"models": QUICK[BEYOND]},
        {"models": ALL, "seconds": 0.5},
        matrix=True,
    ),
    Row(BEYOND, ("Kernels",), f"{MEASURED}:kernels_measured", {"models": QUICK[BEYOND]}, {"models": ALL, **LONG}),
)
RULES: tuple[Row, ...] = (*EDGENN, *CODL, *SWITCHED, *NEUROPIPE, *BLASTNET, *OURS)
ROWS: tuple[Row, ...] = (*RULES, *pictured(RULES))

__all__ = ["ROWS", "RULES"]
