"""The figures' axes, as captions and texts of the papers have them: titles with units, and which of our cells are drawn
where on them. What a paper only draws has no point of its own; its printed numbers are points.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

#: our words -> the paper's
NAMES: Mapping[str, str] = {
    **{"fcnn": "FCNN", "lenet": "LeNet", "alexnet": "AlexNet", "vgg16": "VGG", "squeezenet": "SqueezeNet"},
    **{"resnet18": "ResNet", "resnet50": "ResNet50", "googlenet": "GoogleNet", "mobilenet_v1": "MobileNet"},
    **{"retinaface_resnet50": "RF", "yolov2": "YOLO", "posenet": "PN", "fast_style": "FST", "vgg11": "VGG11"},
    **{"mlp": "MLP", "resnet": "ResNet", "mobilenet": "MobileNet", "yolo": "YOLO", "fcn": "FCN"},
    **{"mean": "average", "mean of five": "average", "rows": "H", "channel": "OC", "channels": "OC", "both": "H + OC"},
    **{"mono_sched": "Mono_Sched", "layer_sched": "Layer_Sched", "mono_adapt": "Mono_Adapt", "blastnet": "BlastNet"},
    **{"blastnet_no_pf": "BlastNet-w/o-PF", "similarity": "Similarity-based NAS"},
    **{p: f"{p} (ours)" for p in ("pinned", "layer_fastest", "merged_blocks", "slack")},
}
SCALES = ("", "less", "more")


@dataclasses.dataclass(frozen=True)
class Panel:
    """One picture of a figure.

    `x`, `y`: titles of the axes. `pattern`: of a cell's words, all of them; only what it matches is drawn. Its groups
    `place` and `series` are where on the x axis and which bars; without them its networks and `whole`, else its words,
    and its own series. `part`: of these cells alone ("Figure 5(a)"). `scale`: "less" draws a saving of v % as
    1 - v / 100 of the baseline, "more" v % more as 1 + v / 100; the baseline, 1, is a line then.
    """

    x: str
    y: str
    pattern: str = ".*"
    part: str = ""
    scale: str = ""
    whole: str = ""

    def match(self, figure: str, what: str) -> re.Match[str] | None:
        """A cell's words by the pattern; None where the cell is not drawn here."""
        return re.fullmatch(self.pattern, what) if self.part in ("", figure) else None

    def value(self, v: float) -> float:
        """A cell's number as the y axis has it."""
        return {"": v, "less": 1 - v / 100, "more": 1 + v / 100}[self.scale]


def _network(y: str, pattern: str, **more: str) -> Panel:
    return Panel("network", y, pattern, whole="mean", **more)


_ONE = r"(?:mlp|resnet|mobilenet|yolo|fcn|mean of five)"


def _parts(figure: str) -> tuple[Panel, ...]:
    """Parts (a) to (d) of NeuroPipe's figures: time, power, energy and EDP over the baseline's."""
    out = []
    for letter, words in zip("abcd", ("execution time", "power", "energy", "EDP"), strict=True):
        for scale in ("less", "more"):
            pattern = rf"{scale} {words}, (?P<place>{_ONE})"
            out.append(_network(f"({letter}) normalised {words}", pattern, part=f"{figure}({letter})", scale=scale))
    return tuple(out)


_MISSED = r"missed, (?P<place>\w+)(?: \(ours\))?: .*"  # behind it the setting, which the part has one of
_TWINS = r"(?P<series>jobs with twins|jobs below the bound), (?P<place>\w+): .*"


def _jobs(figure: str, *parts: str, twins: bool = False) -> tuple[Panel, ...]:
    """Parts of BlastNet's figures with a bar for each policy."""
    if twins:
        return tuple(Panel("policy", f"{p} % of jobs", _TWINS, figure + p) for p in parts)
    return tuple(Panel("policy", f"{p} deadline missing rate (%)".lstrip(), _MISSED, figure + p) for p in parts)


#: (paper, figure) -> its pictures
AXES: Mapping[tuple[str, str], tuple[Panel, ...]] = {
    ("edgenn", "Figure 6"): (
        _network("speedup over the CPU", r"times faster than the board's own CPU(?:: (?P<place>\w+))?"),
    ),
    ("edgenn", "Figure 8"): (
        _network("performance improvement (%)", r"EdgeNN over the GPU alone(?:: (?P<place>\w+))?"),
    ),
    ("edgenn", "Figure 11"): (Panel("AlexNet's dense layers", "improvement (%)", whole="mean"),),
    ("codl", "Figure 1"): (_network("latency (ms)", r"(?P<place>PoseNet) on (?:the )?(?P<series>.*)"),),
    ("codl", "Figure 4"): (Panel("1x1 convolution", "latency (us)", r"1x1 convolution: (?P<place>.*)"),),
    ("codl", "Figure 5"): (Panel("partitioning ratio, share on the GPU (%)", "latency (ms)", r"latency.*"),),
    ("codl", "Figure 10"): (
        Panel(
            "convolution <H, W, IC, OC>",
            "speedup over CPU_only",
            r"(?P<place>\([^)]*\)), half by (?P<series>\w+): .*",
        ),
    ),
    ("codl", "Figure 15"): tuple(
        _network(
            f"speedup over {name}",
            rf"(?:(?P<series>dynamic programme|Algorithm 1): )?times faster than {words}(?:: (?P<place>\w+))?",
        )
        for name, words in (
            ("the CPU", "the CPU alone"),
            ("the GPU", "the GPU alone"),
            ("muLayer-like", "(?P<series2>mu-layer[^:]*)"),
        )
    ),
    ("codl", "Figure 17"): (_network("operators divided by H (%)", r"split layers divided by rows"),),
    ("codl", "Figure 18"): (
        _network("latency (ms)", r"latency, no chains, by (?P<series>\w+)"),
        _network(
            "speedup of both dimensions", r"times faster than by (?P<series>\w+) alone, no chains(?:: (?P<place>\w+))?"
        ),
    ),
    ("codl", "Figure 19"): (_network("operators in chains (%)", r"(?P<series>.*): layers in chains"),),
    ("codl", "Figure 20"): (
        _network("data sharing overhead (ms)", r"time for sharing, (?P<series>.*)"),
        _network("overhead saved by chains (%)", r"less time for sharing by chains"),
    ),
    ("codl", "Figure 22"): (Panel("", "more memory (%)", r"more memory"),),
    ("layer_switched", "Figure 2"): (_network("latency (ms)", r"latency on (?:the )?(?P<series>.*)"),),
    ("layer_switched", "Figure 13"): (
        _network("latency (ms)", r"latency on (?:the )?(?P<series>.*)|latency, (?P<series2>layer-switched)"),
        *(
            _network(f"less latency than {name} (%)", pattern)
            for name, pattern in (
                ("the better one", r"less time than the better component alone(?:: (?P<place>\w+))?"),
                ("the CPU", r"less time than the CPU alone(?:: (?P<place>\w+))?"),
                ("the GPU", r"less time than the GPU alone(?:: (?P<place>\w+))?"),
            )
        ),
    ),
    ("neuropipe", "Figure 3"): (Panel("alpha: host operations' share of the time", "speedup"),),
    ("neuropipe", "Figure 5"): _parts("Figure 5"),
    ("neuropipe", "Figure 6"): (
        Panel("time (ms)", "power (W)", r"power over time"),
        Panel("MobileNet", "peak-to-peak variation (W)", r"swing, (?P<place>.*)"),
    ),
    ("neuropipe", "Figure 7"): _parts("Figure 7"),
    ("neuropipe", "Figure 8"): _parts("Figure 8"),
    ("blastnet", "Figure 3"): (Panel("layer of VGG11", "CPU/GPU execution ratio", r"CPU/GPU, (?P<place>.*)"),),
    ("blastnet", "Figure 4"): (Panel("network", "share of the delay (%)", r"(?P<place>\w+): (?P<series>.*)"),),
    ("blastnet", "Figure 13"): (
        Panel("car", "(b) deadline missing rate (%)", r"missed, (?P<series>\w+), (?P<place>.*)", "Figure 13(b)"),
        Panel("car", "(c) time of a job (ms)", r"(?P<series>\w+ time of a job, \w+), (?P<place>.*)", "Figure 13(c)"),
    ),
    ("blastnet", "Figure 14"): (
        Panel("accuracy (%)", "paths (%)", r"paths of (?P<place>\d+) to \d+ %, (?P<series>.*)"),
        Panel("paths above 70 % of accuracy", "paths (%)", r"paths above 70 %, (?P<place>.*)"),
    ),
    ("blastnet", "Figure 15"): (
        *_jobs("Figure 15", "(a)"),
        *_jobs("Figure 15", "(b)", twins=True),
        *_jobs("Figure 15", "(c)"),
        *_jobs("Figure 15", "(d)", twins=True),
    ),
    ("blastnet", "Figure 16"): tuple(
        p
        for a, b in ("ab", "cd", "ef")
        for p in (*_jobs("Figure 16", f"({a})"), *_jobs("Figure 16", f"({b})", twins=True))
    ),
    ("blastnet", "Figure 17"): tuple(
        Panel("policy", f"{b}: deadline missing rate (%)", _MISSED, f"Figure 17, {b}") for b in ("Xavier", "TX2")
    ),
    ("blastnet", "Figure 18"): (Panel("policy", "GPU in inference (% of the time)", r"GPU at work, (?P<place>\w+)"),),
}

__all__ = ["AXES", "NAMES", "Panel"]
