"""What of a suite's records may be said about splits: plans in which layers are split or lie on both halves.

On a machine where no plan splits a layer, what a variant gains over plain `jax.jit` is the host half's kernels; that
stands in a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.text import columns

NO_SPLIT = "no split on this machine"
SAME_PLAN = 0.0  # what a variant gains over another one whose plan it shares

Records = Sequence[Mapping[str, Any]]


def split_layers(record: Mapping[str, Any], variant: str) -> int:
    """How many layers of a record's plan are split; 0 for plain `jax.jit` and for a variant that was not measured."""
    return int(record["halves"].get(variant, {}).get("split", 0))


def shared(record: Mapping[str, Any], variant: str) -> bool:
    """Whether a record's plan has work on both halves: layers that are split, or some on either half."""
    counted = record["halves"].get(variant, {})
    return bool(counted.get("split", 0)) or (counted.get("host", 0) > 0 and counted.get("device", 0) > 0)


def splitting(records: Records, variant: str) -> list[Mapping[str, Any]]:
    """The records in which a variant splits a layer."""
    return [r for r in records if split_layers(r, variant)]


def about_splits(records: Records, variant: str, claim: Callable[[Records], str]) -> str:
    """A claim about splits, made of the records in which the variant splits a layer; `NO_SPLIT` where there is none."""
    found = splitting(records, variant)
    return claim(found) if found else NO_SPLIT


def gain(record: Mapping[str, Any], variant: str, than: str) -> float:
    """The share of another variant's median time that a variant takes less; exactly 0 where both have one plan."""
    first = record.get("stands_for", {})
    if first and first.get(variant, variant) == first.get(than, than):
        return SAME_PLAN
    return 1 - record["seconds"][variant][1] / record["seconds"][than][1]


def kernels(records: Records) -> str:
    """The table of what the host half's kernels gain: all layers on the host half beside plain `jax.jit`, ms, medians
    and quartiles. Records without the variant "host" have no row.
    """
    rows = [["model", "batch", "jax.jit ms", "host half ms", "gain"]]
    ratios = []
    for r in records:
        if "host" not in r["seconds"] or r["halves"]["host"].get("host", 0) == 0:
            continue
        jit, host = r["seconds"]["jit"], r["seconds"]["host"]
        ratios.append(jit[1] / host[1])
        times = [f"{q[1] * 1e3:.3f} ({q[0] * 1e3:.3f} to {q[2] * 1e3:.3f})" for q in (jit, host)]
        rows.append([str(r["model"]), str(r["batch"]), *times, f"{ratios[-1]:.2f}x"])
    if not ratios:
        return "no model has all its layers on the host half"
    mean = f"geometric mean {float(np.exp(np.mean(np.log(ratios)))):.2f}x"
    return f"{columns(rows, range(1, len(rows[0])))}\n{mean}"


__all__ = ["NO_SPLIT", "about_splits", "gain", "kernels", "shared", "split_layers", "splitting"]
