"""Why more deadlines are missed than `bound` says: the tasks of `benchmarks.deadlines` on a clock of numbers, with one
cause after the other taken away.

    python -m benchmarks.deadline_causes

writes the table between its two comments in docs/guides/deadlines.md. The blocks take together what one core of the
recorded machine took for a network, in shares as a busy machine measured them (`SECONDS`), times the pace at which both
halves ran in the recorded runs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from xcoexec.ir.words import DEVICE, HALVES, HOST
from xcoexec.streams.demand import least_missing
from xcoexec.streams.jobs import Block, Task, Way
from xcoexec.streams.virtual import releases, simulate

from .deadline_records import PAGE, between
from .deadlines import DEADLINE, SPREAD

BEGIN, END = "<!-- causes: python -m benchmarks.deadline_causes -->", "<!-- end of causes -->"
#: network -> seconds of each of its blocks on one core: the host half's kernels, XLA's
SECONDS: Mapping[str, Sequence[tuple[float, float]]] = {
    "alexnet": ((1.59e-3, 3.02e-3), (1.49e-3, 2.84e-3), (1.73e-3, 2.95e-3)),
    "vgg11": ((3.10e-3, 6.20e-3), (1.90e-3, 2.47e-3)),
    "yolo": ((0.37e-3, 0.93e-3),),
}
PACE = 1.45  # times as long as alone: both halves at work on the same memory, and the scheduler beside them
TASKS, RUN = 8, 10.0  # seconds
PIECES = 8
RULES = ("mono_sched", "layer_sched", "blastnet", "slack_fair", "slack", "foresight")


@dataclasses.dataclass(frozen=True)
class Setting:
    """`pace`: times as long as alone; `pieces`: of each block, at any of which another job may go on."""

    words: str
    pace: float = PACE
    pieces: int = 1


SETTINGS = (
    Setting("as recorded"),
    Setting(f"each block in {PIECES} pieces", pieces=PIECES),
    Setting("blocks as fast as alone", pace=1.0),
    Setting("both", pace=1.0, pieces=PIECES),
)


def tasks(setting: Setting, count: int = TASKS) -> list[Task]:
    """Deadlines of four times a network's own time, periods as long."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(count):
        name = list(SECONDS)[i % len(SECONDS)]
        deadline = DEADLINE * sum(host for host, _ in SECONDS[name]) * float(rng.uniform(1 - SPREAD, 1 + SPREAD))
        found.append(Task(f"{name} {i}", _blocks(name, setting.pieces), deadline, deadline))
    return found


def _blocks(name: str, pieces: int) -> tuple[Block, ...]:
    ways = [(Way(HOST, host / pieces), Way(DEVICE, device / pieces)) for host, device in SECONDS[name]]
    return tuple(Block(f"{k}.{i}", w) for k, w in enumerate(ways) for i in range(pieces))


@functools.cache
def missed(setting: Setting, rule: str, seconds: float = RUN) -> float:
    """The share (0..1) of deadlines that a rule misses."""
    given = tasks(setting)
    first = [t.deadline / 4 * i / len(given) for i, t in enumerate(given)]
    return simulate(releases(given, seconds, first), rule, lambda _: setting.pace).missing_rate


def bound(setting: Setting) -> float:
    """The share (0..1) that no schedule can go below."""
    return least_missing(tasks(setting), dict.fromkeys(HALVES, setting.pace))


def table(seconds: float = RUN) -> str:
    """Percent missed in Markdown: a line for each setting."""
    head = ("simulated", *(f"`{r}`" for r in RULES), "bound")
    body = [
        [s.words, *(f"{100 * missed(s, r, seconds):.1f}" for r in RULES), f"{100 * bound(s):.1f}"] for s in SETTINGS
    ]
    line = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([line(head), "|---" * len(head) + "|", *map(line, body)]) + "\n"


def main() -> None:
    PAGE.write_text(between(PAGE.read_text(), BEGIN, END, table()))


if __name__ == "__main__":
    main()
