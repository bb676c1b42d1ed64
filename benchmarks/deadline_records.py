"""What records of `benchmarks.deadlines` say: paths that jobs took, rules by their names, and their table.

    python -m benchmarks.deadline_records

writes the table between the two comments of docs/guides/deadlines.md, from `benchmarks/results/*-deadlines.jsonl`.
"""

from __future__ import annotations

import collections
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcoexec.papers.records import machine
from xcoexec.streams.jobs import Accuracy
from xcoexec.streams.policies import PAPER
from xcoexec.tools import lines

HERE = pathlib.Path(__file__).parent
PAGE, RESULTS = HERE.parent / "docs" / "guides" / "deadlines.md", HERE / "results"
BEGIN, END = "<!-- deadlines: python -m benchmarks.deadline_records -->", "<!-- end of deadlines -->"
#: what is the same of two records of one run
IDENTITY = (
    *("environment", "commit", "networks", "side", "twins", "threads", "epsilon", "search"),
    *("tasks", "load", "background", "seed", "policy", "seconds", "bound"),
)

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


# -- one record a run ---------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The records of a file, one a run; none where it is not there. Raises `LinesError` for other lines."""
    return lines.load(path, (*IDENTITY, "missing"))


def one_run(record: Mapping[str, Any]) -> tuple[str, ...]:
    """By what a run is known."""
    return tuple(repr(record[k]) for k in IDENTITY)


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """Deadlines missed in Markdown: a line for each machine, set of networks, number of tasks and load, with the runs'
    mean and, of several, the least and the most; the paper's baselines first, then ours. Runs shorter than the paper's
    120 s say so.
    """
    if not records:
        return "No runs are kept.\n"
    here = sorted({r["policy"] for r in records}, key=lambda p: (p not in PAPER, [*PAPER, p].index(p), p))
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for r in records:
        load = "periods as deadlines" if r["load"] is None else f"{r['load']:g}"
        what = f"{', '.join(r['networks'])} for {r['side']} x {r['side']}, {r['twins']} twins"
        seconds = f"{r['seconds']:g}" + ("" if r["as_long_as_the_papers"] else " (the paper: 120)")
        key = (machine(r["environment"]), r["commit"], what, str(r["tasks"]), load, r["background"], seconds)
        groups.setdefault(key, []).append(r)
    head = ("machine", "commit", "networks", "tasks", "load", "beside", "s a run", *(f"`{p}`" for p in here), "bound")
    body = [
        [*key, *(_missed([r for r in found if r["policy"] == p]) for p in here), _bound(found)]
        for key, found in groups.items()
    ]
    line = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([line(head), "|---" * len(head) + "|", *map(line, body)]) + "\n"


def _missed(runs: Sequence[Mapping[str, Any]]) -> str:
    if not runs:
        return "-"
    found = [100 * r["missing"] for r in runs]
    spread = f" ({min(found):.1f} to {max(found):.1f})" if len(found) > 1 else ""
    return f"{np.mean(found):.1f}{spread}"


def _bound(runs: Sequence[Mapping[str, Any]]) -> str:
    """What no schedule can miss less than, by the seconds and the pace of the run with the least of it."""
    return f"{100 * min(r['at_least'] for r in runs):.1f}"


def written(text: str, records: Sequence[Mapping[str, Any]]) -> str:
    """A text with the table between its two comments. Raises `ValueError` for one without them."""
    return between(text, BEGIN, END, table(records))


def between(text: str, begin: str, end: str, made: str) -> str:
    """A text with what was made between its two comments. Raises `ValueError` for one without them."""
    if begin not in text or end not in text:
        raise ValueError(
            f"benchmarks.deadline_records: got a text without {begin!r}; valid is docs/guides/deadlines.md."
        )
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n\n{made}\n{end}{rest.partition(end)[2]}"


def kept() -> list[dict[str, Any]]:
    """The records that the repository keeps."""
    return [r for file in sorted(RESULTS.glob("*-deadlines.jsonl")) for r in load(file)]


def main() -> None:
    PAGE.write_text(written(PAGE.read_text(), kept()))


if __name__ == "__main__":
    main()
