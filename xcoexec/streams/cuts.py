"""A network with resident weights as stages of a stream: cut for the shapes of each item, every stage on its half."""

from __future__ import annotations

import dataclasses
import functools
import numbers
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

import jax
import numpy as np

from ..api.resident import ResidentFunction
from ..config import cores
from ..devices.registry import device_half
from ..errors import CoexecWarning
from ..ir.words import HALVES, HOST
from ..measure.timing import median_seconds
from ..planning.spans import Span, crossing_bytes
from ..session.session import Session
from .arguments import Rule, checked, shown
from .compiled_spans import CompiledSpan, Env, Shapes, begin, compile_span, divisible, finish
from .fastest_way import Trial, Turn
from .neuropipe import MOST_STAGES, Around, Cut, best, busiest, front_and_rear, neuropipe

CUTS = ("auto", "none", "neuropipe", "neuropipe, printed")
CUT = Rule(
    f"{', '.join(map(repr, CUTS))}, or a Cut of stages (half, first layer, last + 1) that follow one another from layer"
    " 0 on",
    lambda x: isinstance(x, (str, Cut)),
    lambda x: _follow_one_another(x) if isinstance(x, Cut) else x in CUTS,
)
PROBES = 4  # items that the parts of a cut are measured on: NeuroPipe's are about four (section III-C)
PROBE_SECONDS = 0.02
DISTURBED = 1.5  # times longer that a team takes on cores that others use too (measured: 1.3 to 2.6)
CORRECTED = 2  # cuts that are made and measured, the second with what the first one's stages took beside their layers


@dataclasses.dataclass(frozen=True, eq=False)
class CutNetwork:
    """A way of computing items of one shape: by parts in turn, or (`resident`) by the function as a whole.

    `busy`: seconds an item on the host half and on a device of its own; `threads` of the host half.
    """

    resident: ResidentFunction | None
    session: Session
    parts: tuple[CompiledSpan, ...] = ()
    cut: Cut | None = None
    busy: tuple[float, float] = (0.0, 0.0)
    threads: int = 1

    def period(self, around: Around) -> float:
        """Seconds between results by the model; `around`: seconds of the user's work."""
        return busiest(*self.busy, around, cores(), self.threads)

    @property
    def count(self) -> int:
        """Parts that are computed in turn."""
        return len(self.parts) or 1

    @property
    def halves(self) -> tuple[tuple[str, ...], ...]:
        """The halves that are at work in each part: both of a whole network that has layers on both."""
        if self.parts:
            return tuple((p.half,) if p.half in HALVES else HALVES for p in self.parts)
        if not self.session.machine.apart:
            return ((HOST,),)
        assert self.resident is not None
        placed = {p.half for p in self.resident.plan().placements}
        return (tuple(h for h in HALVES if h in placed) if placed <= set(HALVES) else HALVES,)

    def run(self, part: int, value: object) -> object:
        """What a part makes of an item: the function's result, or (of another part than the last) the values that the
        next one reads.
        """
        if self.resident is not None:
            return jax.block_until_ready(self.resident(value))
        env = begin(self.session, jax.tree_util.tree_leaves(value)) if part == 0 else cast(Env, value)
        env = self.parts[part](env)
        return finish(self.session, env) if part == self.count - 1 else env


@dataclasses.dataclass(frozen=True, eq=False)
class Partly:
    """An item between two parts of its network, with the way in which it is computed."""

    trial: Trial[CutNetwork]
    turn: Turn[CutNetwork]
    value: object


class CutNetworks:
    """Cuts a function with resident weights anew for every shape of item that comes.

    `cut`: how, as the user named it; `host_operations`: the user's work around it, as measured so far; `prepared`:
    items are prepared by threads of their own.
    """

    def __init__(
        self,
        resident: ResidentFunction,
        cut: str | Cut,
        host_operations: Callable[[], Around],
        prepared: bool = False,
    ):
        self.resident = resident
        self.wanted = cut
        self.host_operations = host_operations
        self._prepared = prepared
        self.known: dict[tuple[jax.tree_util.PyTreeDef, Shapes], Trial[CutNetwork]] = {}
        self._fewer: ResidentFunction | None = None
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """Parts that an item may need."""
        if isinstance(self.wanted, Cut):
            return len(self.wanted.stages)
        whole = self.wanted == "none" or (self.wanted == "auto" and device_half().shares_cores)
        return 1 if whole else MOST_STAGES

    @property
    def decided(self) -> bool:
        """Whether it is known for every shape seen so far which way its items come out of fastest."""
        return all(t.decided for t in self.known.values())

    def periods(self, around: Around) -> tuple[float, ...]:
        """Seconds between results by the model, for each shape seen so far."""
        return tuple(min(w.period(around) for w in t.ways) for t in self.known.values())

    def halves(self) -> dict[str, tuple[str, ...]]:
        """Name of each part -> the halves at work in it, of the way that items are computed by; parts that no item
        needs have none.
        """
        found = next((t.chosen.halves for t in self.known.values()), ())
        return {name: found[i] if i < len(found) else () for i, name in enumerate(stage_names(self.count))}

    def again(self) -> None:
        """A stream begins."""
        for trial in self.known.values():
            trial.again()

    def first(self, value: object) -> Trial[CutNetwork]:
        """The ways of computing items like `value`, made when the first one with its shapes comes. Raises `ValueError`
        for a cut that does not fit the network.
        """
        leaves, tree = jax.tree_util.tree_flatten(value)
        key = (tree, tuple((np.shape(x), str(getattr(x, "dtype", type(x)))) for x in leaves))
        with self._lock:
            if key not in self.known:
                around = self.host_operations()
                ways = sorted(self._ways(value, around), key=lambda n: n.period(around))
                self.known[key] = Trial(ways, ways[0].period(around), around.workers)
            return self.known[key]

    def _ways(self, value: object, around: Around) -> list[CutNetwork]:
        wholes = self._wholes(value, around)
        s = wholes[-1].session
        if self.wanted == "none":
            return wholes
        if self.wanted == "auto":
            if self.count == 1 or s.machine.limit is not None or not divisible(s):
                return wholes
            return [*wholes, *_there_is_room_for(_best_cuts(s, value, around))]
        if not divisible(s):
            raise ValueError(
                f"xcoexec.pipeline: got cut={self.wanted!r} for a function whose results are not made by its layers;"
                " valid is cut='none'."
            )
        cut = self.wanted if isinstance(self.wanted, Cut) else planned(s, self.wanted, around)
        _check(cut, len(s.graph.layers))
        return [_measured(s, cut, value, around)]

    def _wholes(self, value: object, around: Around) -> list[CutNetwork]:
        """The network in one piece: as it is, and with threads left to those who prepare items, where that may be
        quicker.
        """
        found = [_whole(self.resident, value)]
        if self._prepared and leaves_room(around, max(found[0].busy), self.resident._function.options.threads, cores()):
            if self._fewer is None:  # once for all shapes: it packs the weights anew
                self._fewer = beside(self.resident, around.workers)
            if self._fewer is not self.resident:
                found.append(_whole(self._fewer, value))
        return found


def _there_is_room_for(ways: Iterator[CutNetwork]) -> Iterator[CutNetwork]:
    """Ways until the device has no memory left: each brings weights of its own there until the stream has decided."""
    try:
        yield from ways
    except jax.errors.JaxRuntimeError as e:
        why = str(e).splitlines()[0]
        warnings.warn(
            f"xcoexec.pipeline: not every way of cutting the network is tried, the device refused one: {why}",
            CoexecWarning,
            stacklevel=2,
        )


def _best_cuts(s: Session, value: object, around: Around) -> Iterator[CutNetwork]:
    """The best cut by the layers' seconds, the best one by those and what its stages took beside their layers, and the
    device alone.
    """
    nbytes, n = crossing_bytes(s.graph), len(s.graph.layers)
    known: set[tuple[tuple[str, int, int], ...]] = set()
    beside = dict.fromkeys(HALVES, 0.0)
    for _ in range(CORRECTED):
        cut = best(s.costs(), nbytes, around, cores(), s.machine.threads, each=beside)
        if cut.stages in known:
            break
        known.add(cut.stages)
        made = _measured(s, cut, value, around)
        yield made
        assert made.cut is not None
        for half in beside:
            over = [t - u for (h, *_), t, u in zip(cut.stages, made.cut.seconds, cut.seconds, strict=True) if h == half]
            beside[half] = max(beside[half] + sum(over) / max(len(over), 1), 0.0)
    whole = front_and_rear(n, n)
    if whole.stages not in known:
        yield _measured(s, whole, value, around)


def _measured(s: Session, cut: Cut, value: object, around: Around) -> CutNetwork:
    """A cut's parts, compiled, with the seconds that each of them takes alone."""
    made = [compile_span(s, Span(start, stop), half) for half, start, stop in cut.stages]
    parts = [dataclasses.replace(p, handed=q.half != p.half) for p, q in zip(made, [*made[1:], made[-1]], strict=True)]
    took = []
    for _ in range(1 + PROBES):
        env: Env = begin(s, jax.tree_util.tree_leaves(value))
        ends = [time.perf_counter()]
        for p in parts:
            env = p(env)
            ends.append(time.perf_counter())
        took.append(np.diff(ends))
    seconds = tuple(float(t) for t in np.median(took[1:], axis=0))
    timed = dataclasses.replace(cut, seconds=seconds)
    busy = timed.busy(not s.machine.apart)
    timed = dataclasses.replace(timed, period=busiest(*busy, around, cores(), s.machine.threads))
    return CutNetwork(None, s, tuple(parts), timed, busy, s.machine.threads)


def _whole(resident: ResidentFunction, value: object) -> CutNetwork:
    """A function as a whole, with the seconds that an item takes alone."""
    seconds = _seconds(resident, value)
    s = cast("Session", resident.session())  # a plain one raises when it is asked for layers
    on_host = not s.machine.apart or any(p.half != "device" for p in resident.plan().placements)
    return CutNetwork(resident, s, busy=(seconds, 0.0) if on_host else (0.0, seconds), threads=s.machine.threads)


def _seconds(resident: ResidentFunction, value: object) -> float:
    jax.block_until_ready(resident(value))
    return median_seconds(lambda: jax.block_until_ready(resident(value)), PROBE_SECONDS)


def leaves_room(around: Around, seconds: float, threads: int, cores: int) -> bool:
    """Whether a network of so many `seconds` on so many `threads` may be better off with fewer: sharing cores costs its
    team more than it seems.
    """
    left = max(1, threads - around.workers)
    apart = max(around.before / around.workers, seconds * threads / left)
    shared = max(around.before / around.workers, seconds, (around.before + seconds * threads) / cores)
    return apart < DISTURBED * shared


def beside(resident: ResidentFunction, workers: int) -> ResidentFunction:
    """The same function with as many threads fewer as prepare items on the host's cores, unless somebody said how many
    it gets.

    A team that has to wait for one of its threads, which the system has put behind somebody else's work, waits for all
    of it.
    """
    options = resident._function.options
    return resident if options.threads_given else resident.with_threads(max(1, options.threads - workers))


def planned(s: Session, way: str, around: Around) -> Cut:
    """A cut by the paper's rule ("neuropipe", or "neuropipe, printed": section III-C) or the one with the least seconds
    between results ("auto").
    """
    if way == "auto":
        return best(s.costs(), crossing_bytes(s.graph), around, cores(), s.machine.threads)
    counts = [x.flops for x in s.graph.layers]
    k = neuropipe(s.costs(), counts, around.before + around.behind, printed=way == "neuropipe, printed")
    return front_and_rear(k, len(s.graph.layers))


def _check(cut: Cut, layers: int) -> None:
    """Raises `ValueError` where a cut does not cover all layers of a network."""
    if not _follow_one_another(cut) or cut.stages[-1][2] != layers:
        raise ValueError(
            f"xcoexec.pipeline: got cut={cut.stages!r}; valid are stages (half, first layer, last + 1) that cover"
            f" layers 0 to {layers} in order."
        )


def named(cut: str | Cut | None, fn: object) -> str | Cut:
    """A `cut=` as the user gave it, checked; without one "auto" for a function with resident weights and "none" for any
    other. Raises `TypeError` or `ValueError`.
    """
    if cut is None:
        return "auto" if isinstance(fn, ResidentFunction) else "none"
    wanted: str | Cut = checked("xcoexec.pipeline", "cut", cut, CUT)
    if wanted != "none" and not isinstance(fn, ResidentFunction):
        raise TypeError(
            f"xcoexec.pipeline: got cut={shown(cut)} with {type(fn).__name__}; valid is what"
            " xcoexec.jit(...).bind(weights) returns."
        )
    return wanted


def _follow_one_another(cut: Cut) -> bool:
    """Whether a cut's stages follow one another from layer 0 on; whether they end with the last one, the first item
    tells.
    """
    stages = cut.stages
    if not isinstance(stages, tuple) or not stages or not all(isinstance(x, tuple) and len(x) == 3 for x in stages):
        return False
    if not all(half in HALVES for half, _, _ in stages):
        return False
    starts = [start for _, start, _ in stages]
    ends = [stop for _, _, stop in stages]
    if not all(isinstance(k, numbers.Integral) for k in (*starts, *ends)):
        return False
    return starts == [0, *ends[:-1]] and all(a < b for a, b in zip(starts, ends, strict=True))


def stage_names(count: int) -> Iterable[str]:
    """Names of a network's parts, as statistics and timelines show them."""
    return ("network",) if count == 1 else tuple(f"network {i + 1}" for i in range(count))


def functions(networks: CutNetworks) -> Sequence[tuple[str, Callable[[object], object]]]:
    """The network's parts for a stream: each makes a result of an item, or something `Partly` computed for the next
    one.
    """

    def compute(part: int, value: object) -> object:
        given = value if isinstance(value, Partly) else _begun(networks, value)
        trial, turn = given.trial, given.turn
        try:
            out = turn.way.run(part, given.value)
        except BaseException:  # whatever the network raises (Ctrl-C too), its item has left
            trial.left(turn)
            raise
        if part + 1 < turn.way.count:
            return Partly(trial, turn, out)
        trial.left(turn)
        return out

    return [(name, functools.partial(compute, i)) for i, name in enumerate(stage_names(networks.count))]


def _begun(networks: CutNetworks, value: object) -> Partly:
    """An item in front of its network."""
    trial = networks.first(value)
    return Partly(trial, trial.next(), value)


__all__ = ["CUTS", "CutNetwork", "CutNetworks", "Partly", "functions", "named", "planned", "stage_names"]
