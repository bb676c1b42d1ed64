"""BlastNet's task sets on its machines as numbers, and what a run of them shows.

Periods are as long as deadlines (section 5.2 allows it; four tasks then need all of one processor, eight need two). A
twin takes `TWIN` times what its block takes on its faster processor. Of the execution paths the share that Figure 14(a)
prints is within the accuracy bound, those with the fewest twins first.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.words import DEVICE, HALVES, HOST
from xcoexec.papers import steps
from xcoexec.planning import profiles
from xcoexec.planning.spans import Span, crossing
from xcoexec.streams.blocks import blocks, deserving, fastest, seconds
from xcoexec.streams.edf import Start
from xcoexec.streams.jobs import Accuracy, Block, Task, Way
from xcoexec.streams.virtual import Load, Schedule, releases, simulate
from xcoexec.tools.zoo_graphs import model_graph

DESKTOP, XAVIER, TX2 = "desktop-rtx-2080", "jetson-agx-xavier", "jetson-tx2"
NAMES = {DESKTOP: "desktop", XAVIER: "Xavier", TX2: "TX2", HOST: "CPU", DEVICE: "GPU"}  # as the paper has them
#: printed in section 6.4.1, and Figure 14(a)'s share of paths above the bound
DEADLINE, SPREAD, PATHS = 4.0, 0.02, 0.8125
EPSILON = 1.0  # the lower one of the two that section 5.1.1 prints
TWIN = 1.0  # supposed: times a block's seconds on its primary processor that its twin takes on the other one
SEEDS = 3  # of deadlines and first releases
PERIODS, FULL_SECONDS = 100, 120.0  # of a run; the paper's run in seconds


@dataclasses.dataclass(frozen=True)
class Setting:
    """A task set on a board. `slow`: by which factor a load beside it slows a half down; `others`: how many times as
    long a block without a twin takes on its slower half (None: as the board's profile has it).
    """

    board: str
    networks: tuple[str, ...]
    slow: Mapping[str, float] = dataclasses.field(default_factory=dict)
    full: bool = False
    twin: float = TWIN
    others: float | None = None

    @property
    def words(self) -> str:
        """How many tasks, on which board, beside which load: what tells a figure's settings apart."""
        beside = (f"a load on the {NAMES[half]}" for half in self.slow)
        return ", ".join((f"{len(self.networks)} tasks", NAMES[self.board], *beside))

    def load(self, start: Start) -> float:
        return max(self.slow.get(half, 1.0) for half in start.way.halves)


@functools.cache
def on(board: str, network: str) -> tuple[LayerGraph, Costs]:
    graph = model_graph(network)
    return graph, profiles.load(board).costs(graph)


def _blocks(
    board: str, network: str, spans: Sequence[Span], twins: Mapping[Span, float], others: float | None = None
) -> tuple[Block, ...]:
    """Blocks of these layers; `twins`: seconds on the half that is not the block's faster one; `others`: as `Setting`
    has it.
    """
    graph, costs = on(board, network)
    made = []
    for span in spans:
        own = {h: t for h in HALVES if (t := seconds(span, h, costs)) < float("inf")}
        if others is not None and span not in twins:
            own = {h: min(t, others * min(own.values())) for h, t in own.items()}
        ways = [Way(h, t) for h, t in own.items()]
        if span in twins:
            ways.append(Way(next(h for h in HALVES if h != min(own, key=lambda h: own[h])), twins[span], twin=True))
        moved = costs.exchange(sum(v.nbytes for v in crossing(graph, span.start)))
        made.append(Block(graph.layers[span.start].name, tuple(ways), moved))
    return tuple(made)


@functools.cache
def network(board: str, name: str, epsilon: float = EPSILON, twin: float = TWIN, others: float | None = None) -> Task:
    """A network in blocks and in layers (section 5.1.1 on the board's profile), with paths within the bound (accuracy
    1) and below it (0). Its deadline is printed: four times its inference time.
    """
    graph, costs = on(board, name)
    spans = blocks(graph, costs, None, 0.0)
    slower = {w.span: twin * w.primary for w in deserving(spans, graph, costs, epsilon)}
    layers = [Span(i, i + 1) for i in range(len(graph.layers))]
    in_blocks = _blocks(board, name, spans, slower, others)
    own = sum(fastest(span, costs) for span in spans)
    allowed = paths([i for i, span in enumerate(spans) if span in slower])
    return Task(name, in_blocks, DEADLINE * own, None, allowed, 0.5, _blocks(board, name, layers, {}))


def paths(twins: Sequence[int], share: float = PATHS) -> Accuracy:
    """Of all paths the share that is within the bound (1), those with the fewest twins first; the others are below it
    (0).
    """
    every = [frozenset(c) for n in range(len(twins) + 1) for c in itertools.combinations(twins, n)]
    within = max(1, round(share * len(every)))
    return Accuracy({path: float(i < within) for i, path in enumerate(every)})


def tasks(setting: Setting, seed: int) -> list[Task]:
    """Deadlines within +-2 % of four times a single inference, periods as long."""
    rng = np.random.default_rng(seed)
    found = []
    for i, name in enumerate(setting.networks):
        made = network(setting.board, name, twin=setting.twin, others=setting.others)
        deadline = made.deadline * float(rng.uniform(1 - SPREAD, 1 + SPREAD))
        found.append(dataclasses.replace(made, name=f"{name} {i + 1}", deadline=deadline, period=deadline))
    return found


Outcome = Mapping[str, Any]  # what a run shows: percents, by task where a name says so


@functools.cache
def _run(given: tuple[Any, ...], policy: str, seed: int) -> Outcome:
    *values, slow = given
    setting = Setting(*values[:2], dict(slow), *values[2:])
    mine = tasks(setting, seed)
    longest = max(t.deadline for t in mine)
    first = np.random.default_rng(seed).uniform(0, longest, len(mine))
    run = FULL_SECONDS if setting.full else PERIODS * longest
    beside: Load | None = setting.load if slow else None
    return shown(simulate(releases(mine, run, [float(x) for x in first]), policy, beside))


def shown(schedule: Schedule) -> Outcome:
    """Of a schedule: the mean over tasks of Equation 3 and each task's, jobs that ended on paths with twins and on
    paths below the accuracy bound, and the share of the run in which each half was at work.
    """
    counts = [(path, n) for of in schedule.paths.values() for path, n in of.items()]
    ended = max(end for _, end in schedule.blocks)
    return {
        "missed": 100 * float(np.mean(list(schedule.missing_rates.values()))),
        "missed_by_task": {name: 100 * rate for name, rate in schedule.missing_rates.items()},
        "with_twins": 100 * sum(n for path, n in counts if path) / max(sum(n for _, n in counts), 1),
        "below_bound": 100 * (1 - schedule.accuracy),
        "busy": {half: 100 * schedule.busy(half) / ended for half in HALVES},
    }


def runs(setting: Setting, policy: str) -> tuple[Outcome, ...]:
    """A setting under a policy, once for each seed; a step each where the runs are long. Raises `KeyboardInterrupt`
    where an interrupt left one out.
    """
    makes = _makes(setting, policy)
    found = [steps.once(__name__, name, make) if setting.full else make() for name, make in makes.items()]
    if None in found:
        raise KeyboardInterrupt
    return tuple(found)


def ahead(settings: Iterable[Setting], policies: Iterable[str]) -> None:
    """Makes the long runs of settings under policies, on all cores, that `runs` is going to be asked for."""
    every = itertools.product((s for s in settings if s.full), policies)
    steps.together(__name__, {name: make for s, p in every for name, make in _makes(s, p).items()})


def _makes(setting: Setting, policy: str) -> dict[str, Callable[[], Outcome]]:
    """A run for each seed, by the name of its step."""
    slow = tuple(sorted(setting.slow.items()))
    given = (setting.board, setting.networks, setting.full, setting.twin, setting.others, slow)
    return {f"{policy}, seed {seed}, {given}": functools.partial(_run, given, policy, seed) for seed in range(SEEDS)}
