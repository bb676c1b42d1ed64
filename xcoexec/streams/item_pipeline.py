"""A stream of inputs through stages that overlap: each stage has a thread, works on the items in order, and hands them
on.

After NeuroPipe (Kim et al., IEEE Access 2020): while the network computes item i, item i + 1 is prepared and item i - 1
is finished; on a machine with a device of its own the network itself is cut into stages on both halves (see
`neuropipe`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence

import jax
import numpy as np

from ..api.resident import ResidentFunction
from ..api.spread import SpreadFunction
from .arguments import RULES, Rule, checked, optional
from .cuts import CutNetworks, functions, named, stage_names
from .neuropipe import Around, Cut
from .power import Power
from .stage_threads import Work
from .stream import WHERE, Stage, Stream, inputs

TIMEOUT_SECONDS = 600.0
REMEMBERED = 32  # items whose seconds the user's functions are judged by
QUIET = 25  # the percentile of these: some were disturbed by compilation
POWER = Rule("a Power (xcoexec.streams.Power)", lambda x: isinstance(x, Power))
AROUND = Rule("an Around (xcoexec.streams.neuropipe.Around)", lambda x: isinstance(x, Around))


class Pipeline:
    """What `pipeline` returns: call it with an iterable of inputs to get a `Stream` of results. `networks`: how the
    network is cut.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        depth: int,
        timeout: float,
        networks: CutNetworks | None = None,
        power: Power | None = None,
    ):
        self._stages = stages
        self._depth = depth
        self._timeout = timeout
        self.networks = networks
        self._power = power

    def __call__(self, items: Iterable[object]) -> Stream:
        """The results of these inputs, in order. Raises `TypeError` for what is not iterable."""
        items = inputs(items)
        if self.networks is not None:
            self.networks.again()
        halves = self.networks.halves if self.networks is not None else dict
        return Stream(self._stages, self._depth, self._timeout, items, self._power, halves)

    @property
    def cuts(self) -> tuple[Cut | None, ...]:
        """The cut for each shape of item seen so far; None where the network is one stage."""
        return tuple(t.chosen.cut for t in self.networks.known.values()) if self.networks else ()

    @property
    def decided(self) -> bool:
        """Whether it is known for every shape of item seen so far which way of computing gives results fastest: the
        stream tries them.
        """
        return self.networks is None or self.networks.decided

    def periods(self, around: Around | None = None) -> tuple[float, ...]:
        """Seconds between results that the model predicts for each shape of item seen so far; `around`: the user's
        work, as measured by default. Raises `TypeError` for anything else.
        """
        checked(f"{WHERE}: periods()", "around", around, optional(AROUND))
        if self.networks is None:
            return ()
        return self.networks.periods(around or self.networks.host_operations())


class _Timed:
    """A user's function that remembers what it takes."""

    def __init__(self, fn: Work):
        self.fn = fn
        self.seconds = deque[float](maxlen=REMEMBERED)

    def __call__(self, x: object) -> object:
        begin = time.perf_counter()
        out = self.fn(x)
        self.seconds.append(time.perf_counter() - begin)
        return out

    @property
    def usual(self) -> float:
        return float(np.percentile(self.seconds, QUIET)) if self.seconds else 0.0


def pipeline(
    fn: Work,
    *,
    preprocess: Work | None = None,
    postprocess: Work | None = None,
    depth: int = 2,
    workers: int = 1,
    cut: str | Cut | None = None,
    timeout: float = TIMEOUT_SECONDS,
    power: Power | None = None,
) -> Pipeline:
    """A stream of inputs through `preprocess`, `fn` and `postprocess`, which work on consecutive items at the same
    time.

    Args:
      fn: the network, such as what `xcoexec.jit(...).bind(weights)` returns; its results are waited for in its own
        thread. What `.spread(weights)` returns has a stage for each of its devices.
      preprocess, postprocess: the user's work on the host around it (decode, resize, label); each has a thread of its
        own.
      depth: items that may wait in front of each stage; the input iterator is not asked for more.
      workers: threads that prepare items (different ones at the same time; results stay in order). The network's host
        half gets as many threads fewer where that is quicker, unless `threads=` said how many.
      cut: how a network with resident weights is cut into stages on both halves: "auto" (the best cuts by measured
        seconds, the device alone and the network as a whole, which may have split layers: the stream tries them on its
        first items), "neuropipe" (the paper's rule, section III-C, with the N_opt that its Equation 1 follows from),
        "neuropipe, printed" (with N_opt as printed there), "none", or a `Cut`. Without a device of its own nothing is
        cut by "auto".
      power: clocks that are just high enough (`xcoexec.streams.Power`), set after the first items and put back at the
        end.
      timeout: seconds (inf: none) after which a result that does not come is a `TimeoutError` that names the stage that
        is busy.

    An exception in one of the functions comes up at its own item (StopIteration as a `RuntimeError`, as in generators),
    one in the iterator of inputs behind the items before it.

    Raises `TypeError` or `ValueError` that says what is valid.
    """
    checked(WHERE, "network", fn, "callable")
    for name, stage in (("preprocess", preprocess), ("postprocess", postprocess)):
        checked(WHERE, name, stage, optional(RULES["callable"]))
    depth = checked(WHERE, "depth", depth, "count")
    workers = checked(WHERE, "workers", workers, "count")
    timeout = checked(WHERE, "timeout", timeout, "limit")
    checked(WHERE, "power", power, optional(POWER))
    wanted = named(cut, fn)
    before = _Timed(preprocess) if preprocess is not None else None
    behind = _Timed(postprocess) if postprocess is not None else None
    around = lambda: Around(before.usual if before else 0.0, behind.usual if behind else 0.0, workers)
    networks = CutNetworks(fn, wanted, around, before is not None) if isinstance(fn, ResidentFunction) else None
    stages = _network(fn, networks)
    if before:
        stages.insert(0, Stage("preprocess", before, workers))
    if behind:
        stages.append(Stage("postprocess", behind))
    return Pipeline(stages, depth, timeout, networks, power)


def _network(fn: Work, networks: CutNetworks | None) -> list[Stage]:
    """The stages of the network itself."""
    if isinstance(fn, SpreadFunction):
        return [Stage(name, run) for name, run in zip(stage_names(len(fn.devices)), fn.stages(), strict=True)]
    if networks is None:
        return [Stage("network", lambda x: jax.block_until_ready(fn(x)))]
    (name, run), *further = functions(networks)
    return [Stage(name, run, further=tuple(further))]


__all__ = ["Pipeline", "pipeline"]
