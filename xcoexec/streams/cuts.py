"""A bound network as stages of a stream: cut for the shapes of each item, every stage on its half."""

from __future__ import annotations

import copy
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from ..bound import Bound
from ..config import cores
from ..ir import HALVES
from ..parts import Part, Span, crossing, divisible, finish, part, start
from ..select import Stages
from ..timing import empty_call, median_seconds
from .neuropipe import MOST_STAGES, Around, Cut, best, busiest, front_and_rear, neuropipe, timed

CUTS = ("auto", "none", "neuropipe", "neuropipe, printed")
PROBES = 4  # items that a choice between a cut and the whole network is made on, as the paper measures on about four
PROBE_SECONDS = 0.02
DISTURBED = 1.5  # times longer that a team takes on cores that others use too (measured: 1.3 to 2.6)
TRIED, SETTLED = 24, 6  # items that a way of computing gets in a turn of a trial, and those of them that are not counted
GAIN = 0.97  # a cut has to shorten the period by this much


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """How items of one shape are computed: by the parts in turn, or, without any, by the bound function as a whole. `busy`: seconds an
    item on the host half and on a device of its own; `threads` of the host half."""

    bound: Bound
    stages: Stages | None = None
    parts: tuple[Part, ...] = ()
    cut: Cut | None = None
    busy: tuple[float, float] = (0.0, 0.0)
    threads: int = 1

    def period(self, around: Around) -> float:
        """Seconds between results by the model."""
        return busiest(*self.busy, around, cores(), self.threads)

    def run(self, stage: int, value: Any) -> Any:
        """What a stage makes of an item; stages behind the last part let it pass."""
        if not self.parts or self.stages is None:
            return jax.block_until_ready(self.bound(value)) if stage == 0 else value
        if stage >= len(self.parts):
            return value
        env = start(self.stages, jax.tree_util.tree_leaves(value)) if stage == 0 else value
        env = self.parts[stage](env)
        return finish(self.stages, env) if stage == len(self.parts) - 1 else env

    def serial(self, value: Any) -> Any:
        for stage in range(max(1, len(self.parts))):
            value = self.run(stage, value)
        return value


class Trial:
    """A network as a whole in several ways, of which the stream itself shows the fastest: what the user's threads do to the host half's
    team beside them, no model knows. Each way gets some items in turn, twice; the one that items came out of faster (by 3 % at least, if
    it is not the first) gets all others."""

    cut, parts = None, ()

    def __init__(self, ways: Sequence[Network]):
        self.ways = tuple(ways)
        self.chosen = self.ways[0]
        self._ends: list[float] = []

    def run(self, stage: int, value: Any) -> Any:
        if stage or self.decided:
            return self.chosen.run(stage, value)
        out = self.ways[len(self._ends) // TRIED % len(self.ways)].run(stage, value)
        self._ends.append(time.perf_counter())
        if self.decided:
            first, *others = self.seconds()
            fastest = min(range(len(others)), key=others.__getitem__)
            self.chosen = self.ways[fastest + 1] if others[fastest] < GAIN * first else self.ways[0]
        return out

    @property
    def decided(self) -> bool:
        return len(self._ends) >= TRIED * len(self.ways) * 2

    def seconds(self) -> list[float]:
        """Between items, by way; those that a way finds waiting are not counted."""
        turns = [self._ends[i : i + TRIED] for i in range(0, TRIED * len(self.ways) * 2, TRIED)]
        took = [turn[-1] - turn[SETTLED] for turn in turns]
        return [a + b for a, b in zip(took[: len(self.ways)], took[len(self.ways) :], strict=True)]

    def period(self, around: Around) -> float:
        return self.chosen.period(around) if self.decided else min(w.period(around) for w in self.ways)


class Networks:
    """Cuts a bound function anew for every shape of item that comes."""

    def __init__(self, bound: Bound, cut: str | Cut, host_operations: Callable[[], Around], prepared: bool = False):
        self.bound, self.wanted, self.host_operations, self._prepared = bound, cut, host_operations, prepared
        self.known: dict[Any, Network | Trial] = {}
        self._fewer: Bound | None = None
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """Stages that an item may need."""
        if isinstance(self.wanted, Cut):
            return len(self.wanted.stages)
        return 1 if self.wanted == "none" or (self.wanted == "auto" and jax.default_backend() == "cpu") else MOST_STAGES

    def first(self, value: Any) -> Network | Trial:
        """The network for an item's shape."""
        leaves, tree = jax.tree_util.tree_flatten(value)
        key = (tree, tuple((np.shape(x), str(getattr(x, "dtype", type(x)))) for x in leaves))
        with self._lock:
            if key not in self.known:
                self.known[key] = self._made(value)
            return self.known[key]

    def _made(self, value: Any) -> Network | Trial:
        around = self.host_operations()
        wholes = self._wholes(value, around)
        bound, s = wholes[-1].bound, wholes[-1].bound._used("pipeline").stages
        whole = Trial(wholes) if len(wholes) > 1 else wholes[0]
        if self.count == 1 and not isinstance(self.wanted, Cut):
            return whole
        if not divisible(s):
            if self.wanted == "auto":
                return whole
            raise ValueError(f"xcoexec.pipeline: got cut={self.wanted!r} for a function whose results are not made by its layers; valid is cut='none'.")
        cut = self.wanted if isinstance(self.wanted, Cut) else planned(s, self.wanted, around)
        _check(cut, len(s.graph.layers))
        cut = timed(cut, s.measured_costs(), crossed(s), around, cores(), s.threads)
        made = Network(bound, s, tuple(part(s, Span(a, b), half) for half, a, b in cut.stages), cut, cut.busy(s.relay is None), s.threads)
        return made if self.wanted != "auto" or _wins(made, wholes[-1], value) else whole

    def _wholes(self, value: Any, around: Around) -> list[Network]:
        """The network in one piece: as it is, and with threads left to those who prepare items, where that may be quicker."""
        found = [_whole(self.bound, value)]
        if self._prepared and leaves_room(around, max(found[0].busy), self.bound._owner._options.threads, cores()):
            if self._fewer is None:  # once for all shapes: it packs the weights anew
                self._fewer = beside(self.bound, around.workers)
            if self._fewer is not self.bound:
                found.append(_whole(self._fewer, value))
        return found


def _whole(bound: Bound, value: Any) -> Network:
    seconds = _seconds(bound, value)
    s = bound._used("pipeline").stages
    on_host = s.relay is None or any(p.half != "device" for p in bound.plan().placements)
    return Network(bound, busy=(seconds, 0.0) if on_host else (0.0, seconds), threads=s.threads)


def _seconds(bound: Bound, value: Any) -> float:
    jax.block_until_ready(bound(value))
    return median_seconds(lambda: jax.block_until_ready(bound(value)), PROBE_SECONDS)


def leaves_room(around: Around, seconds: float, threads: int, cores: int) -> bool:
    """Whether a network of so many seconds on so many threads may be better off with fewer: sharing cores costs its team more than it seems."""
    left = max(1, threads - around.workers)
    apart = max(around.before / around.workers, seconds * threads / left)
    shared = max(around.before / around.workers, seconds, (around.before + seconds * threads) / cores)
    return apart < DISTURBED * shared


def beside(bound: Bound, workers: int) -> Bound:
    """The same function with as many threads fewer as prepare items on the host's cores, unless somebody said how many it gets.

    A team that has to wait for one of its threads, which the system has put behind somebody else's work, waits for all of it.
    """
    owner = bound._owner
    if owner._options.threads_given:
        return bound
    options = copy.copy(owner._options)
    options.threads = max(1, options.threads - workers)
    return type(owner)(owner._fn, options, tuple(owner._static_nums), tuple(owner._static_names), owner._donate).bind(*bound._weights)


def planned(s: Stages, way: str, around: Around) -> Cut:
    """A cut by the paper's rule ("neuropipe", or "neuropipe, printed") or the best one there is ("auto")."""
    costs, n = s.measured_costs(), len(s.graph.layers)
    nbytes = crossed(s)
    if way == "auto":
        return best(costs, nbytes, around, cores(), s.threads)
    k = neuropipe(costs, around.before + around.behind, way != "neuropipe")
    return front_and_rear(k, n)


def crossed(s: Stages) -> list[int]:
    """Bytes that are needed behind a cut before each layer."""
    return [sum(v.nbytes for v in crossing(s.graph, k)) for k in range(len(s.graph.layers) + 1)]


def _check(cut: Cut, layers: int) -> None:
    ends = [0, *(stop for _, _, stop in cut.stages)]
    valid = all(half in HALVES[:2] for half, _, _ in cut.stages) and all(a == start < stop for (_, start, stop), a in zip(cut.stages, ends, strict=False))
    if not cut.stages or not valid or ends[-1] != layers:
        raise ValueError(f"xcoexec.pipeline: got cut={cut.stages!r}; valid are stages (half, first layer, last + 1) that cover layers 0 to {layers} in order.")


def _wins(cut: Network, whole: Network, value: Any) -> bool:
    """Whether items come faster out of a cut's stages, run at the same time, than out of the whole network."""
    for network in (cut, whole):
        network.serial(value)
    seconds = [min(_period(network, value) for _ in range(2)) for network in (cut, whole)]
    return seconds[0] < GAIN * seconds[1]


def _period(network: Network, value: Any) -> float:
    """Seconds between items, with a thread for each stage."""
    from .pipeline import Stage, Stream

    stages = [Stage(str(i), functools.partial(network.run, i)) for i in range(max(1, len(network.parts)))]
    began = time.perf_counter()
    count = max(PROBES, min(50, int(0.1 / max(empty_call(), 1e-4))))
    with Stream(stages, 2, 600.0, [value] * count) as stream:
        done = sum(1 for _ in stream)
    return (time.perf_counter() - began) / done


def named(cut: object, fn: object) -> str | Cut:
    """A `cut=` as the user gave it, checked; without one "auto" for a bound function and "none" for any other."""
    if cut is None:
        return "auto" if isinstance(fn, Bound) else "none"
    if isinstance(cut, Cut):
        pass
    elif not isinstance(cut, str) or cut not in CUTS:
        raise ValueError(f"xcoexec.pipeline: got cut={cut!r}; valid are {', '.join(map(repr, CUTS))}, or a Cut.")
    if cut != "none" and not isinstance(fn, Bound):
        raise TypeError(f"xcoexec.pipeline: got cut={cut!r} with {type(fn).__name__}; valid is what xcoexec.jit(...).bind(weights) returns.")
    return cut


def stage_names(count: int) -> Iterable[str]:
    return ("network",) if count == 1 else tuple(f"network {i + 1}" for i in range(count))


def functions(networks: Networks) -> Sequence[tuple[str, Callable[[Any], Any]]]:
    """The network's stages for a stream; what passes between them carries the network that its shape belongs to."""

    def stage(i: int, value: Any) -> Any:
        network, held = (networks.first(value), value) if i == 0 else value
        out = network.run(i, held)
        return out if i == networks.count - 1 else (network, out)

    return [(name, functools.partial(stage, i)) for i, name in enumerate(stage_names(networks.count))]


__all__ = ["CUTS", "Network", "Networks", "crossed", "functions", "named", "planned"]
