"""CoDL's Tables 3 and 4: how well layers are predicted, by the paper's own form, ours and FLOP alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from xcoexec.papers import quoted

from .split_common import RESULTS, Row, absent, mean, row

KEY = "codl"


def _quoted(key: str) -> quoted.Quoted:
    return quoted.load(KEY)[key]


def table3() -> list[Row]:
    """The predictor's accuracy and size: the paper's own form and ours on the same samples."""
    accuracy, sizes = _quoted("accuracy"), _quoted("sizes")
    out = []
    for found in _predictors():
        e = found["environment"]
        where = (
            f"{e['cpu']}, {e['device']}, commit {found['commit']}, {found['layers']} made layers of which a quarter is"
            f" held out, {found['samples']} samples, {found['runs']} run; the paper's test samples are of the networks"
            " that it trains with"
        )
        for a in found["accuracy"]:
            if a["kind"] != "all":
                continue
            half = {"host": "host half", "device": "device half"}[a["half"]]
            for form, key, printed in (
                ("Equation 3", "Equation 3", accuracy.number("sd855")),
                ("ours", "ours", accuracy.number("sd855")),
                ("FLOP alone", "FLOP", _quoted("accuracy_flops").number("sd855")),
            ):
                what = f"layers predicted within 10 %, {half}: {form}"
                out.append(row(KEY, "Table 3", what, printed, 100 * a["within"][key], "measured", note=where))
        for form, printed in (("Equation 3", sizes.number("ours")), ("ours", None), ("FLOP", sizes.number("flops"))):
            what = f"bytes of the predictor as text: {form}"
            out.append(row(KEY, "Table 3", what, printed, found["bytes"][form], "measured", "B", note=where))
    return out or [absent(KEY, "accuracy", "not measured yet: `python -m benchmarks.predictors` measures it", "sd855")]


def table4() -> list[Row]:
    """The predictor's accuracy on convolutions."""
    out = []
    for found in _predictors():
        for a in found["accuracy"]:
            if a["kind"] == "conv":
                for form in ("Equation 3", "ours"):
                    what = f"convolutions within 10 %, {a['half']} half: {form}"
                    printed = mean(_quoted("table4").numbers("sd855"))
                    note = f"{a['layers']} layers; the paper's is the mean of its four kernels on the Snapdragon 855"
                    out.append(row(KEY, "Table 4", what, printed, 100 * a["within"][form], "measured", note=note))
    return out


def _predictors() -> list[Mapping[str, Any]]:
    files = sorted(RESULTS.glob("*-predictors.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


__all__ = ["table3", "table4"]
