"""A bound network as stages of a stream: cut for the shapes of each item, every stage on its half."""

from __future__ import annotations

import dataclasses
import functools
import numbers
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ..api.resident import ResidentFunction
from ..config import cores
from ..devices.registry import device_half
from ..errors import CoexecWarning
from ..ir.words import HALVES
from ..measure.timing import median_seconds
from ..session.session import Session
from .neuropipe import MOST_STAGES, Around, Cut, best, busiest, front_and_rear, neuropipe
from .spans import Part, Span, crossing, divisible, finish, part, start
from .trial import Trial, Turn
from .valid import Rule, checked, shown

CUTS = ("auto", "none", "neuropipe", "neuropipe, printed")
CUT = Rule(
    f"{', '.join(map(repr, CUTS))}, or a Cut of stages (half, first layer, last + 1) that follow one another from layer 0 on",
    lambda x: isinstance(x, (str, Cut)),
    lambda x: _stages(x) if isinstance(x, Cut) else x in CUTS,
)
PROBES = 4  # items that the parts of a cut are measured on, as the paper measures on about four
PROBE_SECONDS = 0.02
DISTURBED = 1.5  # times longer that a team takes on cores that others use too (measured: 1.3 to 2.6)
CORRECTED = 2  # cuts that are made and measured, the second with what the first one's stages took beside their layers


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """A way of computing items of one shape: by parts in turn, or by the bound function as a whole. `busy`: seconds an
    item on the host half and on a device of its own; `threads` of the host half."""

    bound: ResidentFunction | None
    stages: Session
    parts: tuple[Part, ...] = ()
    cut: Cut | None = None
    busy: tuple[float, float] = (0.0, 0.0)
    threads: int = 1

    def period(self, around: Around) -> float:
        """Seconds between results by the model."""
        return busiest(*self.busy, around, cores(), self.threads)

    @property
    def count(self) -> int:
        """Parts that are computed in turn."""
        return len(self.parts) or 1

    def run(self, part: int, value: Any) -> Any:
        """What a part makes of an item."""
        if self.bound is not None:
            return jax.block_until_ready(self.bound(value))
        env = self.parts[part](start(self.stages, jax.tree_util.tree_leaves(value)) if part == 0 else value)
        return finish(self.stages, env) if part == self.count - 1 else env


@dataclasses.dataclass(frozen=True, eq=False)
class Partly:
    """An item between two parts of its network, with the way in which it is computed."""

    trial: Trial[Network]
    turn: Turn[Network]
    value: Any


class Networks:
    """Cuts a bound function anew for every shape of item that comes."""

    def __init__(
        self, bound: ResidentFunction, cut: str | Cut, host_operations: Callable[[], Around], prepared: bool = False
    ):
        self.bound, self.wanted, self.host_operations, self._prepared = bound, cut, host_operations, prepared
        self.known: dict[Any, Trial[Network]] = {}
        self._fewer: ResidentFunction | None = None
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """Parts that an item may need."""
        if isinstance(self.wanted, Cut):
            return len(self.wanted.stages)
        return 1 if self.wanted == "none" or (self.wanted == "auto" and device_half().shares_cores) else MOST_STAGES

    @property
    def decided(self) -> bool:
        """Whether it is known for every shape seen so far which way its items come out of fastest."""
        return all(t.decided for t in self.known.values())

    def periods(self, around: Around) -> tuple[float, ...]:
        """Seconds between results by the model, for each shape seen so far."""
        return tuple(min(w.period(around) for w in t.ways) for t in self.known.values())

    def again(self) -> None:
        """A stream begins."""
        for trial in self.known.values():
            trial.again()

    def first(self, value: Any) -> Trial[Network]:
        """The ways of computing items of a shape."""
        leaves, tree = jax.tree_util.tree_flatten(value)
        key = (tree, tuple((np.shape(x), str(getattr(x, "dtype", type(x)))) for x in leaves))
        with self._lock:
            if key not in self.known:
                around = self.host_operations()
                ways = sorted(self._ways(value, around), key=lambda n: n.period(around))
                self.known[key] = Trial(ways, ways[0].period(around), around.workers)
            return self.known[key]

    def _ways(self, value: Any, around: Around) -> list[Network]:
        wholes = self._wholes(value, around)
        s = wholes[-1].stages
        if self.wanted == "none":
            return wholes
        if self.wanted == "auto":
            return (
                [*wholes, *_there_is_room_for(_best_cuts(s, value, around))]
                if self.count > 1 and s.machine.limit is None and divisible(s)
                else wholes
            )
        if not divisible(s):
            raise ValueError(
                f"xcoexec.pipeline: got cut={self.wanted!r} for a function whose results are not made by its layers; valid is cut='none'."
            )
        cut = self.wanted if isinstance(self.wanted, Cut) else planned(s, self.wanted, around)
        _check(cut, len(s.graph.layers))
        return [_measured(s, cut, value, around)]

    def _wholes(self, value: Any, around: Around) -> list[Network]:
        """The network in one piece: as it is, and with threads left to those who prepare items, where that may be
        quicker.
        """
        found = [_whole(self.bound, value)]
        if self._prepared and leaves_room(around, max(found[0].busy), self.bound.function.options.threads, cores()):
            if self._fewer is None:  # once for all shapes: it packs the weights anew
                self._fewer = beside(self.bound, around.workers)
            if self._fewer is not self.bound:
                found.append(_whole(self._fewer, value))
        return found


def _there_is_room_for(ways: Iterator[Network]) -> Iterator[Network]:
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


def _best_cuts(s: Session, value: Any, around: Around) -> Iterator[Network]:
    """The best cut by the layers' seconds, the best one by those and what its stages took beside their layers, and the
    device alone.
    """
    costs, n = s.costs(), len(s.graph.layers)
    known: set[tuple[tuple[str, int, int], ...]] = set()
    beside = dict.fromkeys(HALVES[:2], 0.0)
    for _ in range(CORRECTED):
        cut = best(costs, crossed(s), around, cores(), s.machine.threads, each=beside)
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


def _measured(s: Session, cut: Cut, value: Any, around: Around) -> Network:
    """A cut's parts, compiled, with the seconds that each of them takes alone."""
    parts = [part(s, Span(a, b), half) for half, a, b in cut.stages]
    parts = [
        dataclasses.replace(p, handed=q.half != p.half) for p, q in zip(parts, [*parts[1:], parts[-1]], strict=True)
    ]
    took = []
    for _ in range(1 + PROBES):
        env: Any = start(s, jax.tree_util.tree_leaves(value))
        ends = [time.perf_counter()]
        for p in parts:
            env = p(env)
            ends.append(time.perf_counter())
        took.append(np.diff(ends))
    seconds = tuple(float(t) for t in np.median(took[1:], axis=0))
    cut = dataclasses.replace(cut, seconds=seconds)
    busy = cut.busy(not s.machine.apart)
    return Network(
        None,
        s,
        tuple(parts),
        dataclasses.replace(cut, period=busiest(*busy, around, cores(), s.machine.threads)),
        busy,
        s.machine.threads,
    )


def _whole(bound: ResidentFunction, value: Any) -> Network:
    seconds = _seconds(bound, value)
    s = bound.session()
    on_host = not s.machine.apart or any(p.half != "device" for p in bound.plan().placements)
    return Network(bound, s, busy=(seconds, 0.0) if on_host else (0.0, seconds), threads=s.machine.threads)


def _seconds(bound: ResidentFunction, value: Any) -> float:
    jax.block_until_ready(bound(value))
    return median_seconds(lambda: jax.block_until_ready(bound(value)), PROBE_SECONDS)


def leaves_room(around: Around, seconds: float, threads: int, cores: int) -> bool:
    """Whether a network of so many seconds on so many threads may be better off with fewer: sharing cores costs its
    team more than it seems.
    """
    left = max(1, threads - around.workers)
    apart = max(around.before / around.workers, seconds * threads / left)
    shared = max(around.before / around.workers, seconds, (around.before + seconds * threads) / cores)
    return apart < DISTURBED * shared


def beside(bound: ResidentFunction, workers: int) -> ResidentFunction:
    """The same function with as many threads fewer as prepare items on the host's cores, unless somebody said how many
    it gets.

    A team that has to wait for one of its threads, which the system has put behind somebody else's work, waits for all
    of it.
    """
    options = bound.function.options
    return bound if options.threads_given else bound.with_threads(max(1, options.threads - workers))


def planned(s: Session, way: str, around: Around) -> Cut:
    """A cut by the paper's rule ("neuropipe", or "neuropipe, printed") or the best one there is ("auto")."""
    costs, n = s.costs(), len(s.graph.layers)
    nbytes = crossed(s)
    if way == "auto":
        return best(costs, nbytes, around, cores(), s.machine.threads)
    k = neuropipe(costs, around.before + around.behind, way != "neuropipe")
    return front_and_rear(k, n)


def crossed(s: Session) -> list[int]:
    """Bytes that are needed behind a cut before each layer."""
    return [sum(v.nbytes for v in crossing(s.graph, k)) for k in range(len(s.graph.layers) + 1)]


def _check(cut: Cut, layers: int) -> None:
    ends = [0, *(stop for _, _, stop in cut.stages)]
    valid = all(half in HALVES[:2] for half, _, _ in cut.stages) and all(
        a == start < stop for (_, start, stop), a in zip(cut.stages, ends, strict=False)
    )
    if not cut.stages or not valid or ends[-1] != layers:
        raise ValueError(
            f"xcoexec.pipeline: got cut={cut.stages!r}; valid are stages (half, first layer, last + 1) that cover layers 0 to {layers} in order."
        )


def named(cut: object, fn: object) -> str | Cut:
    """A `cut=` as the user gave it, checked; without one "auto" for a bound function and "none" for any other."""
    if cut is None:
        return "auto" if isinstance(fn, ResidentFunction) else "none"
    wanted: str | Cut = checked("xcoexec.pipeline", "cut", cut, CUT)
    if wanted != "none" and not isinstance(fn, ResidentFunction):
        raise TypeError(
            f"xcoexec.pipeline: got cut={shown(cut)} with {type(fn).__name__}; valid is what xcoexec.jit(...).bind(weights) returns."
        )
    return wanted


def _stages(cut: Cut) -> bool:
    """Whether a cut's stages follow one another from layer 0 on; whether they end with the last one, the first item
    tells.
    """
    if (
        not isinstance(cut.stages, tuple)
        or not cut.stages
        or not all(isinstance(x, tuple) and len(x) == 3 for x in cut.stages)
    ):
        return False
    starts = [start for _, start, _ in cut.stages]
    ends = [stop for _, _, stop in cut.stages]
    whole = all(isinstance(k, numbers.Integral) for k in (*starts, *ends)) and all(
        half in HALVES[:2] for half, _, _ in cut.stages
    )
    return whole and starts == [0, *ends[:-1]] and all(a < b for a, b in zip(starts, ends, strict=True))


def stage_names(count: int) -> Iterable[str]:
    return ("network",) if count == 1 else tuple(f"network {i + 1}" for i in range(count))


def functions(networks: Networks) -> Sequence[tuple[str, Callable[[Any], Any]]]:
    """The network's parts for a stream: each makes a result of an item, or something `Partly` computed for the next
    one.
    """

    def compute(part: int, value: Any) -> Any:
        if part == 0:
            trial = networks.first(value)
            value = Partly(trial, trial.next(), value)
        trial, turn = value.trial, value.turn
        try:
            out = turn.way.run(part, value.value)
        except BaseException:
            trial.left(turn)
            raise
        if part + 1 < turn.way.count:
            return Partly(trial, turn, out)
        trial.left(turn)
        return out

    return [(name, functools.partial(compute, i)) for i, name in enumerate(stage_names(networks.count))]


__all__ = ["CUTS", "Network", "Networks", "Partly", "crossed", "functions", "named", "planned"]
