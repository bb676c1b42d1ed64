"""CoDL's Tables 3 and 4: how well layers are predicted, by the paper's own form, ours and FLOP alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcoexec.papers import quoted, steps

from . import predictors
from .split_common import Row, row

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
    accuracy, sizes = _quoted("accuracy_halves"), _quoted("sizes")
    where = (
        f"{found['layers']} made layers of which a quarter is held out, {found['samples']} samples; the paper's test"
        " samples are of the networks that it trains with"
    )
    out = []
    for a in found["accuracy"]:
        if a["kind"] != "all":
            continue
        printed = accuracy.number({"host": "cpu", "device": "gpu"}[a["half"]])  # section 1; Table 3 has both together
        for form, key in (("Equation 3", "Equation 3"), ("ours", "ours"), ("FLOP alone", "FLOP")):
            what, theirs = f"layers predicted within 10 %, {a['half']} half: {form}", printed if key != "FLOP" else None
            out.append(row(KEY, "Table 3", what, theirs, 100 * a["within"][key], "measured", note=where))
    for form, printed in (("Equation 3", sizes.number("ours")), ("FLOP", sizes.number("flops"))):
        what = f"bytes of the predictor's numbers, four each: {form}"
        out.append(row(KEY, "Table 3", what, printed, found["bytes_of_numbers"][form], "measured", "B", note=where))
    what = "bytes of the predictor as text: ours"
    return [*out, row(KEY, "Table 3", what, None, found["bytes"]["ours"], "measured", "B", note=where)]


def _convolutions(found: Mapping[str, Any]) -> list[Row]:
    """Table 4."""
    out = []
    for a in found["accuracy"]:
        for form in ("Equation 3", "ours") if a["kind"] == "conv" else ():
            what = f"convolutions within 10 %, {a['half']} half: {form}"
            note = f"{a['layers']} layers, each with its fastest kernel; the paper prints each kernel alone"
            out.append(row(KEY, "Table 4", what, None, 100 * a["within"][form], "measured", note=note))
    return out


__all__ = ["predicted"]
