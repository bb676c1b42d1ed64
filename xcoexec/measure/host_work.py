"""The work of a layer's kernels on the host half, read from the step tables that their rules make without compiling."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence

from ..codegen.kernels.conv import ALGORITHMS
from ..codegen.program import Group, Value
from ..codegen.runtime import host
from ..codegen.segment.choice import GAIN, default
from ..codegen.segment.context import Groups
from ..codegen.segment.steps import Step
from ..cost.terms import Kernels, Work, cache_bytes, cold


def host_work(group: Group, consts: Collection[Value], threads: int, footprint: float) -> dict[str, tuple[Work, ...]]:
    """Algorithm -> the work of its steps, for each algorithm that a layer may get, in a program of `footprint` bytes.
    Raises `Unsupported` where kernels cannot express the group.
    """
    offered: list[tuple[str, ...]] = []

    def pick(groups: Groups, names: tuple[str, ...], n: int) -> str:
        offered.append(names)
        return default(groups, names, n)

    first = host.steps(group, consts, threads, pick)
    names = offered[0] if offered else ALGORITHMS[:1]
    found = {names[0]: _works(first, group, names[0], threads, footprint)}
    for name in names[1:]:
        found[name] = _works(
            host.steps(group, consts, threads, functools.partial(_always, name)), group, name, threads, footprint
        )
    return found


def _always(name: str, groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """A choice among algorithms that is made already."""
    return name


def _works(steps: Sequence[Step], group: Group, algorithm: str, threads: int, footprint: float) -> tuple[Work, ...]:
    return tuple(step_work(s, group, algorithm, threads, footprint) for s in steps)


def step_work(step: Step, group: Group, algorithm: str, threads: int, footprint: float) -> Work:
    """A step's fixed cost, kernel calls and units of work of the thread with the most items, bytes, and bytes beyond
    the L2 and the L3 cache, in a program of `footprint` bytes.
    """
    kind = step.kernel if algorithm == ALGORITHMS[0] else f"{step.kernel} {algorithm}"
    share = -(-step.items // threads) / step.items
    weights = sum(b.nbytes for b in set(step.reads) if b.kind == "arg") / threads
    read = sum(b.nbytes for b in set(step.reads) if b.kind != "arg") / threads
    written = sum(b.nbytes for b in set(step.writes)) / threads
    beyond = [max(0.0, n - cache_bytes() / 2) for n in (read, weights, written)]
    calls, units = step.calls * share, step.units * share
    shape = group.anchor.out.shape
    ragged = float(shape[-1] % host.host_target().vl > 0) if shape else 0.0
    far = weights * cold(footprint)
    traits = (*(math.log(max(x, 1.0)) for x in (calls, units, read, weights, written)), math.log(max(far, 1e5)), ragged)
    return Work(kind, (1.0, calls, units, read, weights, written, *beyond, far, units * ragged), traits)


#: what a predictor asks
KERNELS = Kernels(host_work, GAIN)

__all__ = ["KERNELS", "host_work", "step_work"]
