"""Several networks with deadlines: the missing rate of every policy, side by side (after BlastNet, Figures 15, 16 and
18 and Table 3).

    python -m benchmarks.deadlines FOLDER [--smoke | --seconds 120] [--tasks 4 8] [--loads 0.8 1.6 2.4] [--background
    none cpu gpu] [--rounds 3] [--networks vgg11] [--most 4]

Networks are trained on the coloured shapes first, twins searched for the blocks that deserve one on this machine (kept
in FOLDER for the next run). A task's deadline is 4 times the measured mean time of one inference of its network, +-2 %
(section 6.4.1); its period is as long, which the paper allows and does not print. `--loads` sets periods instead: a
load of 1 keeps one half busy with all blocks where they are fastest. Paths keep an accuracy of 70 % (section 6.4) where
the policy has a bound. Runs last 120 s as the paper's; shorter ones say so in their records. Each run is a record of
its own in FOLDER/deadlines.jsonl and is not run again; `--most` ends a call after so many. `python -m
benchmarks.deadline_records` makes the table of docs/guides/deadlines.md. Background: as many busy
processes as half of the cores, or a loop of products on the GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import multiprocessing
import os
import pathlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xcoexec
from xcoexec.config import cores
from xcoexec.papers.source import commit
from xcoexec.session.timeline import write
from xcoexec.streams import Scheduler
from xcoexec.streams.block_model import Model
from xcoexec.streams.demand import least_missing
from xcoexec.streams.jobs import Task, utilisation
from xcoexec.streams.policies import POLICIES
from xcoexec.streams.twin_search import BLASTNET, Search
from xcoexec.streams.virtual import releases, simulate
from xcoexec.tools.lines import append
from xcoexec.tools.machine import environment

from .deadline_networks import NETWORKS, images, prepared
from .deadline_records import histogram, load, one_run, table, words
from .gpu import where

BOUND = 0.70  # the accuracy that a path has at least (section 6.4)
#: times the mean inference time, how much the tasks' deadlines differ (section 6.4.1), and seconds of a run (6.4)
DEADLINE, SPREAD, RUN = 4.0, 0.02, 120.0
SEARCHES = {"ours": Search(), "blastnet": BLASTNET}
ALONE = 30  # inferences that the mean time is of


def alone(network: Model) -> float:
    """The mean of some inferences with nothing beside them, each block where it is fastest, in seconds."""
    x = np.zeros(network.shape[0][0], network.shape[0][1])
    took = []
    for _ in range(ALONE + 1):
        begun = time.perf_counter()
        state = network.begin(x)
        for i, block in enumerate(network.blocks):
            state = network.run(i, block.primary, state)
        jax.block_until_ready(network.result(state))
        took.append(time.perf_counter() - begun)
    return float(np.mean(took[1:]))


def tasks(
    models: Mapping[str, Model],
    count: int,
    load: float | None,
    seed: int,
    mean: Mapping[str, float],
    bound: float = BOUND,
) -> list[tuple[Model, Task]]:
    """So many tasks over the networks in turn. `mean`: seconds of one inference of each network; `load`: of one half
    (None: periods are as long as deadlines); `bound`: the least accuracy, or what the network has where that is less.
    """
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        name = list(models)[i % len(models)]
        network = models[name]
        deadline = DEADLINE * mean[name] * float(rng.uniform(1 - SPREAD, 1 + SPREAD))
        period = deadline if load is None else sum(b.primary.seconds for b in network.blocks) * count / load
        least = min(bound, network.accuracy.of(frozenset()))
        found.append((network, Task(f"{name} {i}", network.blocks, deadline, period, network.accuracy, least)))
    return found


def _burn(until: float) -> None:
    while time.time() < until:
        sum(i * i for i in range(10_000))


@contextlib.contextmanager
def background(kind: str, seconds: float) -> Iterator[None]:
    """Keeps half of the cores ("cpu"), all of them ("cpus"), or the GPU ("gpu") busy with something else."""
    if count := {"cpu": max(1, cores() // 2), "cpus": cores()}.get(kind):
        context = multiprocessing.get_context("spawn")
        busy = [context.Process(target=_burn, args=(time.time() + seconds,)) for _ in range(count)]
        for p in busy:
            p.start()
        time.sleep(0.5)
        try:
            yield
        finally:
            for p in busy:
                p.terminate()
                p.join()
    elif kind == "gpu":
        ended = threading.Event()
        a = jnp.ones((2048, 2048))
        product = jax.jit(lambda a: a @ a * 1e-3)

        def loop() -> None:
            while not ended.is_set():
                product(a).block_until_ready()

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
    else:
        yield


def once(
    given: Sequence[tuple[Model, Task]], policy: str, kind: str, seconds: float, timeline: pathlib.Path | None
) -> dict[str, Any]:
    """One run of tasks under a policy; shares, seconds, and jobs by outcome, path and accuracy."""
    offsets = [t.deadline / 4 * i / len(given) for i, (_, t) in enumerate(given)]
    with Scheduler(given, policy) as s, background(kind, seconds + 2):
        s.run(seconds, {t.name: np.zeros(m.shape[0][0], m.shape[0][1]) for m, t in given}, offsets)
        got = s.served()
        placed = list(s.tasks.values())
        if timeline is not None:
            write(timeline, s.events())
    virtual = simulate(
        releases(placed, seconds, offsets), policy, lambda start: max(got.pace[h] for h in start.way.halves)
    )
    accuracy = {t.name: t.accuracy for t in placed}
    ended = [(name, path, n) for name, of in got.paths.items() for path, n in of.items()]
    lost = sum(n * (accuracy[name].of(frozenset()) - accuracy[name].of(path)) for name, path, n in ended)
    return {
        "missing": got.missing_rate,
        "missing_by_task": dict(got.missing_rates),
        "simulated": virtual.missing_rate,
        "outcomes": dict(got.outcomes),
        "accuracy_lost": lost / max(sum(n for _, _, n in ended), 1),
        "histogram": histogram(accuracy, ended),
        "paths": {name: {words(path): n for path, n in of.items()} for name, of in got.paths.items()},
        "busy": {h: t / got.seconds for h, t in got.busy.items()},
        "cost": got.cost,
        "pace": dict(got.pace),
        "needed": utilisation(placed),
        "at_least": least_missing([t for _, t in given], got.pace),
    }


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.deadlines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    some = lambda name, valid: parser.add_argument(name, nargs="+", default=list(valid), choices=list(valid))
    parser.add_argument("folder", type=pathlib.Path)
    some("--networks", NETWORKS)
    parser.add_argument("--seconds", type=float, default=RUN, help="of a run; the paper's are 120")
    parser.add_argument("--smoke", action="store_true", help="runs of 20 s")
    parser.add_argument("--tasks", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--loads", nargs="+", type=float, default=[None], help="instead of periods as deadlines")
    parser.add_argument("--bound", type=float, default=BOUND, help="the least accuracy of a path")
    parser.add_argument("--background", nargs="+", default=["none"], choices=["none", "cpu", "cpus", "gpu"])
    some("--policies", POLICIES)  # the paper's five come first
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, help="runs of this call; the next one goes on behind them")
    parser.add_argument(
        "--threads",
        type=int,
        help="of the host half; 1, with XLA_FLAGS=--xla_cpu_multi_thread_eigen=false, makes two halves of two cores",
    )
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--side", type=int, default=64, help="of an image; kept networks have to be for the same")
    parser.add_argument(
        "--steps", type=int, default=400, help="0: weights as they begin, where only the scheduler is of interest"
    )
    least = "least times that a block with a twin is slower on its other half"
    parser.add_argument("--epsilon", type=float, default=1.0, help=f"{least}: 1 or 10 in the paper")
    parser.add_argument("--search", default="ours", choices=list(SEARCHES), help="how twins are found")
    some("--twins", NETWORKS).help = "networks whose blocks may get twins"
    parser.add_argument("--finetune", type=int, default=600, help="0: no twins")
    return parser.parse_args()


@dataclasses.dataclass(frozen=True)
class Case:
    """One run: so many tasks under a policy, beside a background."""

    tasks: int
    load: float | None
    background: str
    seed: int
    policy: str
    seconds: float
    bound: float


def cases(args: argparse.Namespace) -> list[Case]:
    """The runs that the command line asks for; policies alternate."""
    seconds = 20.0 if args.smoke else args.seconds
    every = itertools.product(args.tasks, args.loads, args.background, range(args.rounds), args.policies)
    return [Case(*c, seconds, args.bound) for c in every]


def run(case: Case, models: Mapping[str, Model], folder: pathlib.Path) -> dict[str, Any]:
    """A case's record, without what it was made by."""
    mean = {name: alone(m) for name, m in models.items()}
    given = tasks(models, case.tasks, case.load, case.seed, mean, case.bound)
    timeline = folder / f"deadlines-{case.policy}-{case.tasks}-{case.load}.json" if case.seed == 0 else None
    said = {**dataclasses.asdict(case), "as_long_as_the_papers": case.seconds >= RUN, "alone": mean}
    return {
        **said,
        "busy_machine": os.getloadavg()[0],
        **once(given, case.policy, case.background, case.seconds, timeline),
    }


def origin() -> dict[str, Any]:
    """What every record says of where it was made: the machine in words and as data, versions, the revision."""
    return {
        "suite": "blastnet",
        "machine": where(),
        "environment": environment(),
        "commit": commit(),
        "xcoexec": xcoexec.__version__,
    }


def networks(args: argparse.Namespace) -> dict[str, Model]:
    """The networks in blocks, kept in the folder."""
    search = dataclasses.replace(SEARCHES[args.search], steps=60, finetune=args.finetune)
    data = images(args.images, args.side)
    return prepared(args.folder, args.networks, args.steps, search, data, args.threads, args.epsilon, args.twins)


def main() -> None:
    args = arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    models = networks(args)
    for name, m in models.items():
        paths = {",".join(map(str, sorted(p))): round(a, 4) for p, a in m.accuracy.of_paths.items()}
        print(name, [[f"{w.half}{' twin' * w.twin} {w.seconds * 1e6:.0f} us" for w in b.ways] for b in m.blocks], paths)
    print(f"prepared in {time.perf_counter() - began:.0f} s")
    twins = sum(w.twin for m in models.values() for b in m.blocks for w in b.ways)
    what = {**origin(), "networks": args.networks, "side": args.side, "twins": twins, "threads": args.threads}
    what |= {"epsilon": args.epsilon, "search": args.search}
    file = args.folder / "deadlines.jsonl"
    known = [one_run(r) for r in load(file)]
    left = [c for c in cases(args) if one_run({**what, **dataclasses.asdict(c)}) not in known]
    for case in left[: args.most]:
        append(file, {**what, **run(case, models, args.folder)})
    print(f"{len(left[: args.most])} runs, {len(left[args.most :]) if args.most is not None else 0} left\n")
    print(table(load(file)))


if __name__ == "__main__":
    main()
