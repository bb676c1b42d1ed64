"""What records of `benchmarks.deadlines` say: paths that jobs took, and rules by their names."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from xcoexec.streams.jobs import Accuracy

#: rules by the names that they have now: records without paths have these
RENAMED = {
    "mono_sched": "pinned",
    "layer_sched": "merged_blocks",
    "mono_adapt": "either_half",
    "blastnet_any": "duo_either",
    "blastnet": "duo_primary_first",
}
OWN = "own"


def words(path: frozenset[int]) -> str:
    """A path by the blocks whose twins it has: "own" for none, "0 3" for two."""
    return " ".join(map(str, sorted(path))) or OWN


def histogram(accuracy: Mapping[str, Accuracy], ended: Sequence[tuple[str, frozenset[int], int]]) -> dict[str, int]:
    """Accuracy of the path -> jobs that ended on such a path."""
    found: collections.Counter[float] = collections.Counter()
    for name, path, n in ended:
        found[round(accuracy[name].of(path), 3)] += n
    return {str(k): v for k, v in sorted(found.items())}


def twin_jobs(record: Mapping[str, Any]) -> dict[str, int]:
    """Policy -> jobs of a record that ended on a path with a twin.

    Of a record without paths: jobs at another accuracy than most of their task's have, by its histograms, which is what
    they show at least. Raises `ValueError` for one that has neither.
    """
    return {policy: sum(map(_twins_of, runs)) for policy, runs in record["runs"].items()}


def _twins_of(run: Mapping[str, Any]) -> int:
    if "paths" in run:
        return sum(n for of in run["paths"].values() for path, n in of.items() if path != OWN)
    if "by_task" not in run:
        raise ValueError("benchmarks.deadlines: got a record without paths or histograms; valid is one of a run.")
    return sum(sum(of.values()) - max(of.values(), default=0) for of in run["by_task"].values())


def named_now(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with the names that its rules have now: those without paths ran other rules than the paper's by its
    names.
    """
    told = all("paths" in run for runs in record["runs"].values() for run in runs)
    names = {} if told else RENAMED
    return {**record, "runs": {names.get(p, p): runs for p, runs in record["runs"].items()}}
