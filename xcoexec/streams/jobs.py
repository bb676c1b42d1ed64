"""Tasks with deadlines, and their jobs: networks in blocks, each of which can be run in several ways."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence

from ..ir.text import columns, duration, html_table, number
from ..ir.words import HALVES
from .arguments import RULES, Rule, checked, optional

BOTH = "both"
WHERE = "xcoexec.task"
_NEVER = float("inf")


@dataclasses.dataclass(frozen=True)
class Way:
    """How a block can be run: on a half (or divided over "both"), seconds, and whether by its twin instead of its own
    layers.
    """

    half: str
    seconds: float
    twin: bool = False

    @functools.cached_property
    def halves(self) -> tuple[str, ...]:
        return HALVES if self.half == BOTH else (self.half,)


@dataclasses.dataclass(frozen=True)
class Block:
    """Layers that run without interruption. `moved`: seconds to bring its input to the other half."""

    name: str
    ways: tuple[Way, ...]
    moved: float = 0.0

    @functools.cached_property
    def own(self) -> Mapping[str, Way]:
        """Its own layers, by half."""
        return {w.half: w for w in self.ways if not w.twin}

    @functools.cached_property
    def undivided(self) -> tuple[Way, ...]:
        """Its own layers and twins on one half each, twins last."""
        return tuple(sorted((w for w in self.ways if w.half != BOTH), key=lambda w: w.twin))

    @functools.cached_property
    def primary(self) -> Way:
        """Its own layers on the half where they take fewer seconds."""
        return min((w for w in self.undivided if not w.twin), key=lambda w: w.seconds)

    @functools.cached_property
    def others(self) -> tuple[Way, ...]:
        """On the half that is not its primary one."""
        return tuple(w for w in self.undivided if w.half != self.primary.half)

    @functools.cached_property
    def degree(self) -> float:
        """By how much its own layers are slower there: a ratio of seconds, infinite where they cannot run (CD of
        BlastNet's Equation 1).
        """
        return min((w.seconds for w in self.others if not w.twin), default=float("inf")) / self.primary.seconds

    @functools.cached_property
    def fastest(self) -> float:
        """Seconds in the fastest of its ways."""
        return min(w.seconds for w in self.ways)


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """What each execution path of a duo-model was measured to reach (a share): twins used (their blocks' numbers) ->
    accuracy.
    """

    of_paths: Mapping[frozenset[int], float] = dataclasses.field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the path without twins, from which all others are bounded, is among those measured; none at all stand
        for any.
        """
        return not self.of_paths or frozenset() in self.of_paths

    def of(self, twins: frozenset[int]) -> float:
        """The accuracy (a share) of a path; of one that was not measured: the losses of the largest measured parts of
        it and of each other twin alone added, the worst sum.
        """
        if not self.of_paths:
            return 1.0
        if twins in self.of_paths:
            return self.of_paths[twins]
        full = self.of_paths[frozenset()]
        alone = {k: max(full - self.of_paths.get(frozenset({k}), 0.0), 0.0) for k in twins}
        parts = [p for p in self.of_paths if p <= twins]
        most = max(map(len, parts))
        return min(self.of_paths[p] - sum(alone[k] for k in twins - p) for p in parts if len(p) == most)

    def highest(self, twins: frozenset[int], at: int) -> float:
        """The highest accuracy (a share) that a path can still reach whose twins up to block `at` are these: the best
        of the paths measured that begin so, and of the one whose further blocks run their own layers (what BlastNet
        asks of its table before it runs a twin, section 5.2).
        """
        begun = (a for path, a in self.of_paths.items() if {k for k in path if k <= at} == twins)
        return max(self.of(twins), *begun, 0.0)


def terms(name: str, deadline: float, period: float | None, bound: float) -> tuple[float, float | None, float]:
    """A task's deadline and period (seconds) and accuracy bound (a share) as numbers. Raises `TypeError` or
    `ValueError` for a name or numbers that are not valid.
    """
    checked(WHERE, "name", name, "name")
    given = (
        ("deadline", deadline, "deadline"),
        ("period", period, optional(RULES["seconds"])),
        ("bound", bound, "share"),
    )
    of = f" for the task {name!r}"
    return tuple(checked(WHERE, what, value, rule, of) for what, value, rule in given)  # type: ignore[return-value]


def _runs(block: object) -> bool:
    """Whether a block can be run by its own layers on a half, and all its ways are ones."""
    if not isinstance(block, Block) or not all(isinstance(w, Way) and w.half in (*HALVES, BOTH) for w in block.ways):
        return False
    return any(not w.twin and w.half != BOTH for w in block.ways) and all(
        0 < w.seconds < float("inf") for w in block.ways
    )


BLOCKS = Rule(
    "a tuple of blocks (xcoexec.streams.jobs.Block), at least one, each with its own layers on a half and with positive"
    " seconds",
    lambda x: isinstance(x, tuple),
    lambda x: bool(x) and all(map(_runs, x)),
)
ACCURACY = Rule(
    "an Accuracy of paths as sets of blocks, the empty one among them",
    lambda x: isinstance(x, Accuracy),
    lambda x: x.complete,
)


@dataclasses.dataclass(frozen=True)
class Task:
    """Blocks that are run for every job. `period` seconds between releases (None: jobs come when they are submitted),
    `deadline` seconds after the release (inf: none); `bound`: the least accuracy (a share) that a job's path may have;
    `layers`: the same network, each layer a block of its own, for policies that place single layers (empty: its blocks
    are its layers). Raises `TypeError` or `ValueError` for what is not valid.
    """

    name: str
    blocks: tuple[Block, ...]
    deadline: float
    period: float | None = None
    accuracy: Accuracy = dataclasses.field(default_factory=Accuracy)
    bound: float = 0.0
    layers: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        terms(self.name, self.deadline, self.period, self.bound)
        of = f" for the task {self.name!r}"
        checked(WHERE, "blocks", self.blocks, BLOCKS, of)
        if self.layers:
            checked(WHERE, "layers", self.layers, BLOCKS, of)
        reached = checked(WHERE, "accuracy", self.accuracy, ACCURACY, of).of(frozenset())
        if reached < self.bound:
            raise ValueError(f"{WHERE}: got the accuracy bound {self.bound:g}{of}; valid is up to {reached:g}.")

    def _rows(self) -> list[list[str]]:
        """The task's terms, and what its blocks take at best on each half."""
        halves = sorted({w.half for b in self.blocks for w in b.ways})
        alone = {
            h: [min((w.seconds for w in b.ways if w.half == h), default=None) for b in self.blocks] for h in halves
        }
        times = [[f"whole on {h}", duration(sum(s for s in of if s))] for h, of in alone.items() if None not in of]
        twins = sum(any(w.twin for w in b.ways) for b in self.blocks)
        period = "when submitted" if self.period is None else f"every {duration(self.period)}"
        rows = [["task", self.name], ["deadline", duration(self.deadline)], ["jobs come", period]]
        rows += [["blocks", f"{len(self.blocks)}, {twins} with twins"], *times]
        return rows + ([["least accuracy", number(self.bound)]] if self.bound else [])

    def __repr__(self) -> str:
        return f"<xcoexec task: {', '.join(' '.join(row) for row in self._rows()[:4])}>".replace("task: task", "task")

    def __str__(self) -> str:
        return columns(self._rows())

    def _repr_html_(self) -> str:
        return html_table([["", ""], *self._rows()])

    @functools.cached_property
    def monolithic(self) -> Mapping[str, tuple[Way, ...]]:
        """The whole network's own layers, by the halves that run every block, the faster one first."""
        return _on_one_half([{w.half: w for w in b.undivided if not w.twin} for b in self.blocks])

    @functools.cached_property
    def adapted(self) -> Mapping[str, tuple[Way, ...]]:
        """The whole network with all its optimised blocks, by halves, the faster one first: on each half a block's twin
        where it has one there, else its own layers (twins stand last in `undivided`).

        The paper says "the whole model with all the optimized blocks" (BlastNet, section 6.4); it optimises a block for
        its secondary processor only, so that a network on one half can hold the twins of that half.
        """
        return _on_one_half([{w.half: w for w in b.undivided} for b in self.blocks])

    @functools.cached_property
    def by_layer(self) -> Task:
        """The same task with its layers for blocks, without twins."""
        own = Accuracy({frozenset(): self.accuracy.of(frozenset())})
        return dataclasses.replace(self, blocks=self.layers or self.blocks, accuracy=own, layers=())

    @functools.cached_property
    def least(self) -> tuple[float, ...]:
        """Seconds that the blocks from each one on take at least (0 behind the last)."""
        return tuple(itertools.accumulate((b.fastest for b in reversed(self.blocks)), initial=0.0))[::-1]

    @functools.cached_property
    def on_half(self) -> Mapping[str, float]:
        """Seconds of all blocks on each half, each by its fastest way there within the accuracy bound; infinite where
        one cannot run.
        """
        may = lambda k, w: not w.twin or self.permits(frozenset({k}))
        least = lambda k, b, half: min((w.seconds for w in b.undivided if w.half == half and may(k, w)), default=_NEVER)
        return {half: sum(least(k, b, half) for k, b in enumerate(self.blocks)) for half in HALVES}

    @functools.cached_property
    def duo(self) -> tuple[Mapping[str, Way], ...]:
        """Of each block: its own layers on its primary half and its twin on the other one, by half, the primary one
        first. A block that was not optimised has the same layers for both (its two blocks of section 4.1 are one).
        """
        others = [[w for w in b.others if w.twin] or b.others for b in self.blocks]
        return tuple(
            {b.primary.half: b.primary, **{w.half: w for w in ways}}
            for b, ways in zip(self.blocks, others, strict=True)
        )

    @functools.cached_property
    def _permitted(self) -> dict[frozenset[int], bool]:
        return {}

    def permits(self, twins: frozenset[int]) -> bool:
        """Whether a path stays within the accuracy bound."""
        known = self._permitted.get(twins)
        if known is None:
            known = self._permitted[twins] = self.accuracy.of(twins) >= self.bound
        return known


def _on_one_half(ways: Sequence[Mapping[str, Way]]) -> Mapping[str, tuple[Way, ...]]:
    """A way for each block, by the halves that have one for every block, the faster one first."""
    able = {h: tuple(by[h] for by in ways) for h in HALVES if all(h in by for by in ways)}
    return dict(sorted(able.items(), key=lambda item: sum(w.seconds for w in item[1])))


@dataclasses.dataclass(eq=False)
class Job:
    """One release of a task. `within`: seconds after the release instead of the task's deadline; `at`: its next block;
    `where`: the half that its values lie on; `twins`: blocks that their twins ran."""

    task: Task
    number: int
    release: float
    within: float | None = None
    at: int = 0
    where: str = ""
    twins: frozenset[int] = frozenset()
    running: bool = False
    end: float | None = None
    skipped: bool = False

    def __post_init__(self) -> None:
        self.deadline = self.release + (self.within or self.task.deadline)
        self.key = (self.deadline, self.task.name, self.number)

    @property
    def block(self) -> Block:
        return self.task.blocks[self.at]

    @property
    def missed(self) -> bool:
        """Whether it was skipped or ended behind its deadline."""
        return self.skipped or (self.end is not None and self.end > self.deadline)

    def moving(self, way: Way) -> float:
        """Seconds until its values are where a way needs them."""
        return self.task.blocks[self.at].moved if self.where and self.where not in way.halves else 0.0

    def due(self, way: Way) -> float:
        """Seconds that its next block was measured to take in a way, its values' move included."""
        return way.seconds + self.moving(way) if self.where else way.seconds

    def permits(self, way: Way) -> bool:
        """Whether the path stays within the accuracy bound, if all further blocks run their own layers."""
        return not way.twin or self.task.permits(self.twins | {self.at})

    def can_reach(self, way: Way) -> bool:
        """Whether the path can still stay within the accuracy bound, whatever further blocks run (Figure 10)."""
        path = self.twins | {self.at}
        return not way.twin or self.task.accuracy.highest(path, self.at) >= self.task.bound


def utilisation(tasks: Sequence[Task]) -> float:
    """The share of both halves' time that the tasks need at least, every block where it is fastest (above 1: they
    cannot all be met).
    """
    return sum(t.least[0] / t.period for t in tasks if t.period) / len(HALVES)


__all__ = ["BOTH", "Accuracy", "Block", "Job", "Task", "Way", "terms", "utilisation"]
