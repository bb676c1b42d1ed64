"""The plans of "auto", one after the other: more is measured for each than for the one before it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..codegen.native.children import hurrying
from ..codegen.runtime.peaks import likely_seconds
from ..ir.layers import LayerGraph
from ..ir.plan import Plan, fields, made
from ..ir.plan_json import REMEMBERED
from ..ir.validate import check_plan
from ..lowering.executable import Executable
from ..measure import kept as disk
from ..measure.kept import read, store
from ..measure.timing import alone
from .attempt import Attempt
from .bursts import streamed
from .contest import CLEAR, WORTH, best_of, contest, quick_candidates, times, whole_halves, why, with_own_kernels

EARLY = 0.9  # of plain jax.jit's seconds, below which a plan is in use while layers are measured
HURRY = 0.7  # of plain jax.jit's seconds: what is expected to take less is worth more of the cores until it is there


class Kept(NamedTuple):
    """The plans that are kept for a graph: for callers who wait, and for calls in flight where that is another one;
    `whole`: everything was measured for them.
    """

    waiting: Plan
    in_flight: Plan | None
    whole: bool


def record_name(s: Attempt) -> str:
    """The name under which an attempt's plans are kept on disk."""
    half = s.machine.device.suffix + "-host" * s.problem.on_host if s.machine.apart else ""
    half += f"-{s.machine.memory}" if s.machine.apart and s.machine.memory != "auto" else ""
    half += f"-{s.machine.limit}" if s.machine.apart and s.machine.limit is not None else ""
    half += f"-of-{len(s.problem.shards.devices)}" if s.problem.shards is not None else ""
    return f"plan-{s.graph.key}-{s.machine.threads}{half}" + "".join(f"-{c}" for c in s.machine.cpus)


def remembered(name: str, graph: LayerGraph) -> Kept | None:
    """The plans that are kept for a graph; None where there is none, or where it does not fit (one line in the log says
    so).
    """

    def fitting(data: Mapping[str, Any]) -> Kept:
        kept = Kept(made(data["waiting"]), made(data["in_flight"]) if data["in_flight"] else None, data["whole"])
        for plan in filter(None, kept[:2]):
            check_plan(plan, graph)
        return kept

    return read(REMEMBERED, name, fitting)


def forget(s: Attempt) -> None:
    """Remembers the plans for a graph no longer."""
    disk.forget(REMEMBERED, record_name(s))


def stages(s: Attempt) -> Iterator[Executable]:
    """The fastest of all strategies' plans and plain jax.jit, by measurement; remembered on disk for this machine. Of
    an `early` attempt first what can be had sooner.
    """
    kept = remembered(record_name(s), s.graph)
    s.hasty = s.early and not (kept is not None and kept.whole)
    if kept is not None and (kept.whole or s.early):
        yield _again(s, kept)
        if kept.whole:
            return
    elif s.early and not (s.too_large or s.problem.hostless) and (exe := clear_winner(s) or quick(s)) is not None:
        keep(s, exe, whole=False)
        yield exe
    s.unhurried()
    found = contest(s)
    if s.early:
        yield found.exe
    exe = streamed(s, with_own_kernels(s, found))
    if exe.plan.measured:
        # a step's plan has yet to win in its caller's calls
        whole = not s.problem.step or (exe.lowered is None and exe.in_flight is None)
        keep(s, exe, whole=whole and not s.untried)
    if not s.early or exe is not found.exe:
        yield exe


def recalled(s: Attempt) -> Executable | None:
    """What has won in a process before, as it is remembered on disk; None where more has to be measured."""
    kept = remembered(record_name(s), s.graph)
    return _again(s, kept) if kept is not None and kept.whole else None


def _again(s: Attempt, kept: Kept) -> Executable:
    told = lambda p: dataclasses.replace(p, chosen=p.chosen.removesuffix(" (remembered)") + " (remembered)")
    exe = s.executable(told(kept.waiting))
    return exe if kept.in_flight is None else dataclasses.replace(exe, in_flight=s.executable(told(kept.in_flight)))


def keep(s: Attempt, exe: Executable, whole: bool = True) -> None:
    """Remembers the plans of a comparison's winner; `whole`: everything was measured for them. Of a draw, which is
    measured again next time, nothing is remembered, nor what won before it was one.
    """
    others = [v for k, v in exe.plan.measured.items() if k != "jit"]
    wins = "jit" in exe.plan.measured and others and exe.plan.measured["jit"] < WORTH * min(others)
    if s.too_large or exe.plan.engine != "jit" or wins:
        in_flight = fields(exe.in_flight.plan) if exe.in_flight is not None else None
        store(REMEMBERED, record_name(s), {"waiting": fields(exe.plan), "in_flight": in_flight, "whole": whole})
    else:
        forget(s)


def clear_winner(s: Attempt) -> Executable | None:
    """A plan of one half that wins against plain jax.jit before any layer is measured; None where there is none. On a
    device it has to win clearly: else a plan of both halves, which costs a compilation, may be the better one.
    """
    with hurrying(_promises(s)):
        candidates = whole_halves(s)
    seconds = times(s, candidates, early=True)
    best = min(seconds, key=seconds.__getitem__)
    if seconds[best] > (CLEAR if s.machine.apart else EARLY) * seconds["jit"]:
        return None
    others = ", ".join(k for k in seconds if k != best)
    return why(candidates[best], seconds, f"faster than {others}; layers are still being measured")


def _promises(s: Attempt) -> bool:
    """Whether the host half is likely to need a far smaller part of the cores' time than plain jax.jit: by what layers
    compute and read, at a rate that kernels reach anywhere.
    """
    if s.machine.apart:
        return False
    flops, nbytes = sum(x.flops for x in s.graph.layers), sum(x.nbytes for x in s.graph.layers)
    seconds = likely_seconds(flops, nbytes, s.machine.threads)
    with alone():
        began = time.perf_counter()
        s.stream(s.plain)
        s.seen["jit"] = time.perf_counter() - began
        return seconds < HURRY * s.seen["jit"]


def quick(s: Attempt) -> Executable | None:
    """On a device: what wins against plain jax.jit of the plans that can be had before layers are measured there; None
    where there is none.
    """
    if not s.machine.apart:
        return None
    candidates = quick_candidates(s)
    if len(candidates) == 1:
        return None
    seconds = times(s, candidates, early=True)
    best = best_of(s, seconds)
    if best == "jit":
        return None
    reason = f"fastest of {', '.join(seconds)} by measurement; layers are still being measured"
    return why(candidates[best], seconds, reason)


__all__ = ["Kept", "clear_winner", "forget", "keep", "quick", "recalled", "record_name", "remembered", "stages"]
