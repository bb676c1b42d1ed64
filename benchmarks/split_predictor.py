"""CoDL's Tables 3 and 4: how well layers are predicted, by the paper's own form, ours and FLOP alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcoexec.papers import quoted, steps

from . import predictors
from .split_common import Row, mean, row

KEY = "codl"


def _quoted(key: str) -> quoted.Quoted:
    return quoted.load(KEY)[key]


def predicted(layers: int) -> list[Row]:
    """The predictor's accuracy and size: the paper's own form, ours and FLOP alone on the same samples of so many made
    layers of this machine.
    """
    found = steps.once(__name__, f"{layers} made layers", lambda: predictors.record(layers))
    return [*_accuracy(found), *_convolutions(found)] if found else []


def _accuracy(found: Mapping[str, Any]) -> list[Row]:
    """Table 3."""
    accuracy, sizes = _quoted("accuracy"), _quoted("sizes")
    where = (
        f"{found['layers']} made layers of which a quarter is held out, {found['samples']} samples; the paper's test"
        " samples are of the networks that it trains with"
    )
    out = []
    for a in found["accuracy"]:
        if a["kind"] != "all":
            continue
        for form, key, printed in (
            ("Equation 3", "Equation 3", accuracy.number("sd855")),
            ("ours", "ours", accuracy.number("sd855")),
            ("FLOP alone", "FLOP", _quoted("accuracy_flops").number("sd855")),
        ):
            what = f"layers predicted within 10 %, {a['half']} half: {form}"
            out.append(row(KEY, "Table 3", what, printed, 100 * a["within"][key], "measured", note=where))
    for form, printed in (("Equation 3", sizes.number("ours")), ("ours", None), ("FLOP", sizes.number("flops"))):
        what = f"bytes of the predictor as text: {form}"
        out.append(row(KEY, "Table 3", what, printed, found["bytes"][form], "measured", "B", note=where))
    return out


def _convolutions(found: Mapping[str, Any]) -> list[Row]:
    """Table 4."""
    printed = mean(_quoted("table4").numbers("sd855"))
    out = []
    for a in found["accuracy"]:
        for form in ("Equation 3", "ours") if a["kind"] == "conv" else ():
            what = f"convolutions within 10 %, {a['half']} half: {form}"
            note = f"{a['layers']} layers; the paper's is the mean of its four kernels on the Snapdragon 855"
            out.append(row(KEY, "Table 4", what, printed, 100 * a["within"][form], "measured", note=note))
    return out


__all__ = ["predicted"]
