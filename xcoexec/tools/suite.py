"""Suites: cases as data, every strategy on every case, alternating in one process; records that can be resumed and
compared.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NotRequired, TypedDict

import jax
import numpy as np

from .. import models
from ..api.functions import jit
from ..api.resident import ResidentFunction
from ..config import cores
from ..errors import SuiteError
from ..ir.costs import Costs
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.plan import Plan
from ..ir.text import WIDTH, columns
from ..measure.timing import Progress, alternate, empty_call, silent
from ..papers.source import commit
from ..planning.baselines import device_plan
from ..planning.simulate import replay
from ..session.rebalance import sharing
from .machine import Environment, environment
from .oracle import oracles, worst
from .variants import VARIANTS


class Simulated(TypedDict):
    """What the simulator makes of what was measured, by variant.

    `simulated`: seconds of a call. `layers`: name, kind, FLOP, bytes and seconds on the host and the device half of
    each layer. `timelines`: row, name, start and end (seconds) of each event.
    """

    simulated: dict[str, float | None]
    layers: list[list[Any]]
    timelines: dict[str, list[list[Any]]]
    costs: dict[str, object] | None


class Record(Simulated):
    """A case of a suite, as the lines of its file have it. By variant: quartiles of `seconds`, `predicted` seconds, and
    what its plan is; `stands_for`: the variant that was measured for it.
    """

    suite: str
    model: str
    batch: int
    seconds: dict[str, list[float]]
    predicted: dict[str, float | None]
    plans: dict[str, dict[str, object]]
    stands_for: dict[str, str]
    sharing: dict[str, list[float | None]]
    errors: dict[str, float]
    ran: dict[str, str]
    halves: dict[str, dict[str, int]]
    cores: int
    affinity: list[int]
    clock_mhz: float | str
    environment: Environment
    commit: NotRequired[str]  # of the code; lines that were written without it are read too


DRAWN = ("auto", "codl", "edgenn")  # variants whose timelines are kept
NOISE = 1.05  # medians that differ by less are never called a change


@dataclasses.dataclass(frozen=True)
class Suite:
    """Models of the zoo at batch sizes; rounds and seconds of a variant's blocks."""

    title: str
    models: tuple[str, ...]
    batches: tuple[int, ...] = (1,)
    variants: tuple[str, ...] = tuple(VARIANTS)
    rounds: int = 6
    block: float = 0.1


SUITES: Mapping[str, Suite] = {
    "smoke": Suite("The quickest look at every strategy", ("lenet", "squeezenet"), rounds=5, block=0.05),
    "edgenn": Suite(
        "EdgeNN (Zhang et al., ICDE 2023): its six networks",
        ("fcnn", "lenet", "alexnet", "vgg16", "squeezenet", "resnet18"),
    ),
    "codl": Suite(
        "CoDL (Jia et al., MobiSys 2022): its five networks",
        ("retinaface_resnet50", "yolov2", "vgg16", "posenet", "fast_style"),
    ),
    "layer_switch": Suite(
        "Layer-switched inference (Aghapour et al., DSD 2022): its five networks",
        ("alexnet", "googlenet", "mobilenet_v1", "resnet50", "squeezenet"),
    ),
}


def get(name: str) -> Suite:
    """The suite of that name. Raises `SuiteError` that lists the valid names."""
    if name not in SUITES:
        raise SuiteError(f"bench: got suite {name!r}; valid are {', '.join(SUITES)}.")
    return SUITES[name]


def run(
    name: str, path: str | os.PathLike[str], progress: Progress = silent, variants: Sequence[str] = ()
) -> list[Record]:
    """Measures the cases of a suite that `path` (JSON lines) does not hold yet, and returns all of its records;
    `variants`: only these.

    Each case is written when it is finished, so that an interrupted run goes on where it was. Raises `SuiteError` while
    another process writes the same file.
    """
    suite = get(name)
    file = pathlib.Path(path)
    if unknown := [v for v in variants if v not in VARIANTS]:
        raise SuiteError(f"bench: got variant {unknown[0]!r}; valid are {'; '.join(VARIANTS)}.")
    suite = dataclasses.replace(suite, variants=tuple(variants)) if variants else suite
    file.parent.mkdir(parents=True, exist_ok=True)
    cases = [(m, b) for m in suite.models for b in suite.batches]
    here = environment()
    with _alone(file) as out:
        done = {
            (r["model"], r["batch"]): r
            for r in _finished(file)
            if r["suite"] == name and r["environment"] == here and set(suite.variants) <= set(r["seconds"])
        }
        for i, (model, batch) in enumerate(cases):
            progress("suite", i, len(cases))
            if (model, batch) not in done:
                done[model, batch] = record = measure(name, suite, model, batch)
                out.write(json.dumps(record) + "\n")
                out.flush()
        progress("suite", len(cases), len(cases))
    return [done[c] for c in cases]


@contextlib.contextmanager
def _alone(file: pathlib.Path) -> Iterator[IO[str]]:
    """The file, open for appending, locked, without a line that a killed process left half written."""
    with file.open("a+") as out:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SuiteError(
                f"bench: got the file {str(file)!r}, which another bench is writing; valid is a file of its own."
            ) from None
        out.seek(0)
        text = out.read()
        out.truncate(len(text[: text.rfind("\n") + 1].encode()))
        yield out


def _finished(file: pathlib.Path) -> list[Record]:
    records: list[Record] = []
    for i, line in enumerate(file.read_text().splitlines(), 1):
        try:
            records.append(json.loads(line))
            records[-1]["suite"], records[-1]["seconds"]
        except (json.JSONDecodeError, KeyError, TypeError):
            raise SuiteError(
                f"bench: got line {i} of {str(file)!r}, which is no record of a suite; valid is a file that bench"
                " wrote."
            ) from None
    return records


def load(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a file. Raises `SuiteError` where it is missing or something else."""
    file = pathlib.Path(path)
    if not file.is_file():
        raise SuiteError(f"bench: got the file {str(path)!r}, which is not there; valid is a file that bench wrote.")
    return _finished(file)


def measure(name: str, suite: Suite, model: str, batch: int) -> Record:
    """One record: quartiles of every variant's seconds, errors against float64, what each plan is. Raises `ValueError`
    for a model that the zoo does not have.
    """
    entry = models.get(model)
    weights = entry.variables()
    x = entry.example(batch)
    plain = jax.jit(entry.module.apply)
    resident = {v: jit(entry.module.apply, **VARIANTS[v], wait=True).bind(weights) for v in suite.variants}
    outs = {"jit": jax.block_until_ready(plain(weights, x))}
    outs |= {v: jax.block_until_ready(f(x)) for v, f in resident.items()}
    stands_for = _measured_once({v: f.plan() for v, f in resident.items()})
    calls: dict[str, Callable[[], object]] = {"jit": lambda: jax.block_until_ready(plain(weights, x))}
    calls |= {v: functools.partial(_wait, f, x) for v, f in resident.items() if stands_for[v] == v}
    samples: dict[str, list[float]] = {}
    alternate(calls, suite.rounds, suite.block, samples=samples)
    quartiles = {k: [float(q) for q in np.percentile(t, (25, 50, 75))] for k, t in samples.items()}
    want = oracles(entry.module.apply, weights, x)
    plans = {v: f.plan() for v, f in resident.items()}
    return {
        "suite": name,
        "model": model,
        "batch": batch,
        "seconds": {"jit": quartiles["jit"], **{v: quartiles[stands_for[v]] for v in resident}},
        "predicted": {v: p.predicted for v, p in plans.items()},
        "plans": {v: _brief(p) for v, p in plans.items() if stands_for[v] == v},
        "stands_for": stands_for,
        **_simulated(resident, {k: q[1] for k, q in quartiles.items()}),
        "sharing": {v: _sharing(f) for v, f in resident.items()},
        "errors": {k: worst(out, want) for k, out in outs.items()},
        "ran": {v: f.report().ran for v, f in resident.items()},
        "halves": {v: _counted(p) for v, p in plans.items()},
        "cores": cores(),
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "clock_mhz": _clock(),
        "environment": environment(),
        "commit": commit(),
    }


def _measured_once(plans: Mapping[str, Plan]) -> dict[str, str]:
    """Variant -> the first variant with the same plan: what is the same is measured once."""
    first: dict[tuple[str, tuple[Placement, ...]], str] = {}
    found = {}
    for variant, plan in plans.items():
        places = tuple(dataclasses.replace(p, predicted=None, note="") for p in plan.placements)
        found[variant] = first.setdefault((plan.engine, places), variant)
    return found


def _counted(plan: Plan) -> dict[str, int]:
    """How many layers are where."""
    return {half: sum(p.half == half for p in plan.placements) for half in ("device", "split", "host")}


def _simulated(resident: Mapping[str, ResidentFunction], seconds: Mapping[str, float]) -> Simulated:
    """What was measured of the layers, and the simulator's seconds and events of each plan from it (None: nothing had
    to be measured).

    A call takes an empty call's time more than its layers, so that much is added. The layers of each half are scaled to
    what all of them together took in this run (variants "host" and "device"), as machines are faster at one time than
    at another.
    """
    sessions = {v: f.session() for v, f in resident.items()}
    known = [(s.known_costs, s.graph) for s in sessions.values() if s.known_costs is not None]
    if not known:
        return {"simulated": dict.fromkeys(sessions), "layers": [], "timelines": {}, "costs": None}
    costs, graph = known[0]
    assert costs is not None
    call = empty_call()
    for half in {"host", "device"} & seconds.keys():
        costs = _as_in(seconds[half] - call, half, graph, sessions[half].plan(), costs)
    runs = {}
    for v, s in sessions.items():
        plan = device_plan(graph) if s.plan().engine == "jit" else s.plan()
        if plan.engine != "local" and plan.placements:
            runs[v] = replay(graph, plan, costs)
    layers = [[x.name, x.kind, x.flops, x.nbytes, costs.host[x.index], costs.device[x.index]] for x in graph.layers]
    events = {v: [[e.row, e.name, e.start, e.end] for e in run.events] for v, run in runs.items() if v in DRAWN}
    return {
        "simulated": {v: runs[v].seconds + call if v in runs else None for v in sessions},
        "layers": layers,
        "timelines": events,
        "costs": json.loads(json.dumps(costs.fields())),
    }


def _as_in(seconds: float, half: str, graph: LayerGraph, plan: Plan, costs: Costs) -> Costs:
    """The costs with a half's layers scaled so that a plan of these alone takes so many seconds."""
    if any(p.half != half for p in plan.placements):
        return costs
    layers = sum(t or 0.0 for t in getattr(costs, half))
    around = replay(graph, plan, costs).seconds - layers
    return costs.scaled(**{half: max(seconds - around, 0.1 * layers) / layers})


def _brief(plan: Plan) -> dict[str, object]:
    """A plan without what is as usual."""
    usual = {f.name: f.default for f in dataclasses.fields(Placement)}
    places = [
        {k: v for k, v in dataclasses.asdict(p).items() if v != usual[k] and k not in ("note", "predicted")}
        for p in plan.placements
    ]
    return {"engine": plan.engine, "placements": places}


def _sharing(f: ResidentFunction) -> list[float | None]:
    """(host calls, seconds in which the device's stream hands over and merges) of a call; no seconds where the halves
    share a memory.
    """
    lowered = f.session().current.lowered
    if lowered is None:
        return [0, 0.0]
    return [len(lowered.segments), sharing(lowered) if lowered.sites else None]


def _wait(call: Callable[..., object], x: object) -> object:
    return jax.block_until_ready(call(x))


def _clock() -> float | str:
    """The mean clock of the cores now, where the machine tells it."""
    try:
        rates = [
            float(line.split(":")[1])
            for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("cpu MHz")
        ]
    except OSError:
        rates = []
    return float(np.mean(rates)) if rates else "not measured"


def table(records: Sequence[Record]) -> str:
    """For each case medians and quartiles (seconds, shown in ms) and the gain over jax.jit, within 80 columns; a
    variant that shares another one's plan says whose.
    """
    e = records[0]["environment"]
    machine = f"{e['cpu']}, {e['isa']}, jax {e['jax']}, Python {e['python']}"
    blocks = "\n\n".join(map(_block, records))
    return f"{blocks}\n\n{machine}\nMedians and quartiles of blocks that alternate in one process."


def _block(r: Record) -> str:
    """The table of one case."""
    rows = [[f"{r['model']}, batch {r['batch']}", "ms", "quartiles", "gain"]]
    for v, (low, median, high) in r["seconds"].items():
        first = r.get("stands_for", {}).get(v, v)
        if first != v:
            rows.append([v, f"as {first}", "", ""])
            continue
        quartiles = f"{low * 1e3:.3f} to {high * 1e3:.3f}"
        rows.append([v, f"{median * 1e3:.3f}", quartiles, f"{r['seconds']['jit'][1] / median:.2f}x"])
    return columns(rows, range(1, len(rows[0])), WIDTH)


def compare(new: Sequence[Record], old: Sequence[Record]) -> str:
    """What got slower or faster than in an older run, beyond the spread of both. Raises `SuiteError` where no case is
    in both.

    Seconds are compared relative to plain jax.jit's in the same run (whose own change is shown): what makes everything
    slower is the machine.
    """
    before = {_case(r): r for r in old}
    rows = [["model", "batch", "variant", "was ms", "is ms", "ratio", ""]]
    common = 0
    for r in new:
        then = before.get(_case(r))
        if then is None:
            continue
        for v in [v for v in r["seconds"] if v in then["seconds"]]:
            common += 1
            was = then["seconds"][v]
            now = r["seconds"][v] if v == "jit" else _on_the_old_machine(r["seconds"][v], r, then)
            word = _change(was, now)
            if word:
                times = [f"{was[1] * 1e3:.3f}", f"{r['seconds'][v][1] * 1e3:.3f}", f"{now[1] / was[1]:.2f}"]
                rows.append([r["model"], str(r["batch"]), v, *times, word])
    if not common:
        raise SuiteError("bench: got an older run without any case of this one; valid is a file of the same suite.")
    return columns(rows, (1, 3, 4, 5)) if len(rows) > 1 else f"no change beyond the spread in {common} measurements"


def _case(r: Record) -> tuple[str, str, int]:
    """What two runs have in common."""
    return r["suite"], r["model"], r["batch"]


def _on_the_old_machine(quartiles: Sequence[float], new: Record, old: Record) -> list[float]:
    """Quartiles as they would be if the machine had not changed since an older run, by what jax.jit takes in both; the
    outer ones as far apart as its own allow.
    """
    was = old["seconds"]["jit"]
    now = new["seconds"]["jit"]
    least, machine, most = now[0] / was[2], now[1] / was[1], now[2] / was[0]
    return [quartiles[0] / most, quartiles[1] / machine, quartiles[2] / least]


def _change(was: Sequence[float], now: Sequence[float]) -> str:
    """What became of a variant whose quartiles were and are these; "" where it stayed within the spread."""
    if now[0] > was[2] and now[1] > NOISE * was[1]:
        return "slower"
    if now[2] < was[0] and was[1] > NOISE * now[1]:
        return "faster"
    return ""


__all__ = ["SUITES", "VARIANTS", "Record", "Suite", "compare", "get", "load", "measure", "run", "table"]
