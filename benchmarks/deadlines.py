"""Several networks with deadlines: the missing rate of every policy, side by side (after BlastNet, Figures 15, 16 and
18 and Table 3).

    python -m benchmarks.deadlines FOLDER [--smoke | --seconds 120] [--tasks 4 8] [--loads 0.8 1.6 2.4] [--background
    none cpu gpu] [--rounds 3]

Networks are trained on the coloured shapes first, twins searched for the blocks that deserve one on this machine (kept
in FOLDER for the next run). Deadlines are 4 times the mean inference time, +-2 %; a load of 1 keeps one half busy with
all blocks where they are fastest. Background: as many busy processes as half of the cores, or a loop of products on the
GPU.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import multiprocessing
import pathlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console

import xcoexec
from xcoexec.config import cores
from xcoexec.ir.text import table
from xcoexec.models.classic import VGG
from xcoexec.models.mobile import MobileNetV1
from xcoexec.models.residual import ResNet
from xcoexec.session.timeline import write
from xcoexec.streams import Scheduler, duo
from xcoexec.streams.block_model import Model, model
from xcoexec.streams.blocks import EPSILON
from xcoexec.streams.datasets import Data, coloured_shapes
from xcoexec.streams.demand import least_missing
from xcoexec.streams.duo import Duo
from xcoexec.streams.jobs import Task, utilisation
from xcoexec.streams.policies import POLICIES
from xcoexec.streams.scheduler import Ended
from xcoexec.streams.twin_search import Search, descend
from xcoexec.streams.virtual import releases, simulate

from .gpu import where

#: after the paper's Table 2, for small images: MobileNetV1 instead of V3, a tiny YOLO instead of YOLOv3
NETWORKS: Mapping[str, Any] = {
    "vgg11": partial(VGG, ((1, 32), (1, 64), (2, 128), (2, 256)), 10),
    "resnet18": partial(ResNet, classes=10),
    "mobilenet": partial(MobileNetV1, classes=10),
    "alexnet": lambda: Small(),
    "yolo": lambda: TinyYOLO(),
}
#: accuracy that a path may lose: the mean that the paper loses with eight tasks (section 6.4.1; its own bound is an
#: accuracy of 70 %)
BOUND = 0.0163
#: times the mean inference time, and how much the tasks' deadlines differ (section 6.4.1)
DEADLINE, SPREAD = 4.0, 0.02
PARAMETERS_SEED, RATE = 0, 1e-3


class Small(nn.Module):
    """AlexNet's layers for small images."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width, kernel, stride in ((64, 7, 2), (192, 5, 2), (384, 3, 1), (256, 3, 1), (256, 3, 2)):
            x = nn.relu(nn.Conv(width, (kernel, kernel), (stride, stride))(x))
        x = x.reshape(x.shape[0], -1)
        return nn.Dense(10)(nn.relu(nn.Dense(1024)(x)))


class TinyYOLO(nn.Module):
    """Tiny YOLO's layers, a class and an objectness for every cell; the image's class is that of its cells, each as
    much as it holds an object.
    """

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width in (16, 32, 64, 128):
            x = nn.max_pool(nn.leaky_relu(nn.Conv(width, (3, 3))(x), 0.1), (2, 2), (2, 2))
        for width in (256, 512):
            x = nn.leaky_relu(nn.Conv(width, (3, 3))(x), 0.1)
        cells = nn.Conv(11, (1, 1))(x).reshape(x.shape[0], -1, 11)
        return (nn.softmax(cells[..., :1], axis=1) * cells[..., 1:]).sum(1)


def images(count: int, side: int) -> Data:
    """Coloured shapes of `side` x `side` (a multiple of 32)."""
    found = coloured_shapes(count)
    large = lambda d: (d[0].repeat(side // 32, 1).repeat(side // 32, 2), d[1])
    return Data(large(found.train), large(found.test))


def trained(module: nn.Module, data: Data, steps: int, batch: int = 32) -> Any:
    """Weights after some steps of Adam. Running statistics are those of the initial state: batch norm is affine then,
    and deep networks begin with He's variance, so that they can be trained without."""
    variables = dict(module.init(jax.random.key(PARAMETERS_SEED), data.train[0][:1]))
    params = jax.tree_util.tree_map(lambda w: w * 2**0.5 if w.ndim == 4 else w, variables.pop("params"))

    def loss(p: Any, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(module.apply({"params": p, **variables}, x), y).mean()

    params = descend(loss, params, steps, RATE, data.batches(batch)) if steps else params
    return {"params": params, **variables}


def prepared(
    folder: pathlib.Path,
    names: Sequence[str],
    steps: int,
    search: Search,
    data: Data,
    threads: int | None,
    epsilon: float,
    twinned: Sequence[str],
) -> dict[str, Model]:
    """Every network in blocks, those named with twins, compiled and timed on this machine."""
    out = {}
    for name in names:
        module = NETWORKS[name]()
        where_it_is = folder / f"{name}.npz"
        if where_it_is.is_file():
            tree = jax.tree_util.tree_structure(jax.eval_shape(module.init, jax.random.key(0), data.test[0][:1]))
            with np.load(where_it_is) as f:
                weights = jax.tree_util.tree_unflatten(tree, [f[f"arr_{i}"] for i in range(tree.num_leaves)])
        else:
            weights = jax.tree_util.tree_map(np.asarray, trained(module, data, steps))
            np.savez(where_it_is, *jax.tree_util.tree_leaves(weights))
        resident = xcoexec.jit(module.apply, threads=threads, wait=True).bind(weights)
        x = data.test[0][:1]
        if search.finetune and name in twinned:
            kept = folder / f"{name}-duo"
            if not (kept / "duo.json").is_file():
                duo.generate(module.apply, weights, data, threads=threads, most=6, epsilon=epsilon, search=search).save(
                    kept
                )
            out[name] = Duo.load(kept).model(resident, x)
        else:
            out[name] = model(resident, x)
    return out


def tasks(models: Mapping[str, Model], count: int, load: float, seed: int) -> list[tuple[Model, Task]]:
    """So many tasks over the networks in turn, with periods for a load of one half."""
    rng = np.random.default_rng(seed)
    own = {n: sum(b.primary.seconds for b in m.blocks) for n, m in models.items()}
    names = [list(models)[i % len(models)] for i in range(count)]
    mean = float(np.mean([own[n] for n in names]))
    found = []
    for i, n in enumerate(names):
        deadline = DEADLINE * mean * float(rng.uniform(1 - SPREAD, 1 + SPREAD))
        accuracy = models[n].accuracy
        found.append(
            (
                models[n],
                Task(
                    f"{n} {i}",
                    models[n].blocks,
                    deadline,
                    own[n] * count / load,
                    accuracy,
                    max(0.0, accuracy.of(frozenset()) - BOUND),
                ),
            )
        )
    return found


def _burn(until: float) -> None:
    while time.time() < until:
        sum(i * i for i in range(10_000))


@contextlib.contextmanager
def background(kind: str, seconds: float) -> Iterator[None]:
    """Keeps half of the cores, or the GPU, busy with something else."""
    if kind == "cpu":
        context = multiprocessing.get_context("spawn")
        busy = [context.Process(target=_burn, args=(time.time() + seconds,)) for _ in range(max(1, cores() // 2))]
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
    models: Mapping[str, Model],
    policy: str,
    count: int,
    load: float,
    kind: str,
    seconds: float,
    seed: int,
    timeline: pathlib.Path | None,
) -> dict[str, Any]:
    given = tasks(models, count, load, seed)
    offsets = [t.deadline / 4 * i / count for i, (_, t) in enumerate(given)]
    with Scheduler(given, policy) as s, background(kind, seconds + 2):
        s.run(seconds, {t.name: np.zeros(m.shape[0][0], np.float32) for m, t in given}, offsets)
        got = s.served()
        ended = list(s.ended)
        if timeline is not None:
            write(timeline, s.events())
    virtual = simulate(
        releases([t for _, t in given], seconds, offsets),
        policy,
        lambda start: max(got.pace[h] for h in start.way.halves),
    )
    whole = {t.name: m.accuracy.of(frozenset()) for m, t in given}
    lost = [whole[e.task] - e.accuracy for e in ended if e.seconds is not None]
    return {
        "missing": got.missing_rate,
        "simulated": virtual.missing_rate,
        "outcomes": dict(got.outcomes),
        "accuracy_lost": float(np.mean(lost)) if lost else 0.0,
        "histogram": histogram(ended),
        "by_task": {t.name: histogram([e for e in ended if e.task == t.name]) for _, t in given},
        "busy": {h: t / got.seconds for h, t in got.busy.items()},
        "cost": got.cost,
        "pace": dict(got.pace),
        "needed": utilisation([t for _, t in given]),
        "at_least": least_missing([t for _, t in given], got.pace),
    }


def histogram(ended: Sequence[Ended]) -> dict[str, int]:
    """Accuracy of the path -> jobs that ended on such a path."""
    return {
        str(k): v
        for k, v in sorted(collections.Counter(round(e.accuracy, 3) for e in ended if e.seconds is not None).items())
    }


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.deadlines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    some = lambda name, valid: parser.add_argument(name, nargs="+", default=list(valid), choices=list(valid))
    parser.add_argument("folder", type=pathlib.Path)
    some("--networks", NETWORKS)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--smoke", action="store_true", help="runs of 20 s")
    parser.add_argument("--tasks", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--loads", nargs="+", type=float, default=[0.8, 1.6, 2.4])
    parser.add_argument("--background", nargs="+", default=["none"], choices=["none", "cpu", "gpu"])
    some("--policies", POLICIES)
    parser.add_argument("--rounds", type=int, default=3)
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
    parser.add_argument("--epsilon", type=float, default=EPSILON, help=least)
    some("--twins", NETWORKS).help = "networks whose blocks may get twins"
    parser.add_argument("--finetune", type=int, default=600, help="0: no twins")
    return parser.parse_args()


def case(args: argparse.Namespace, models: Mapping[str, Model], count: int, load: float, kind: str) -> dict[str, Any]:
    """One load under every policy: the records of its runs, in which policies alternate."""
    runs: dict[str, list[dict[str, Any]]] = {p: [] for p in args.policies}
    seconds = 20.0 if args.smoke else args.seconds
    for seed in range(args.rounds):
        for p in args.policies:
            timeline = args.folder / f"deadlines-{p}-{count}-{load}.json" if seed == 0 else None
            runs[p].append(once(models, p, count, load, kind, seconds, seed, timeline))
    return {"tasks": count, "load": load, "background": kind, "seconds": seconds, "runs": runs}


def row(record: Mapping[str, Any]) -> list[str]:
    """A case as cells."""
    runs = record["runs"]
    least = 100 * float(np.mean([r["at_least"] for r in list(runs.values())[-1]]))
    first = [str(record["tasks"]), f"{record['load']:g}", record["background"]]
    return [*first, *(_cell(r) for r in runs.values()), f"{least:.1f}"]


def main() -> None:
    args = arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    machine, began = where(), time.perf_counter()
    search, data = Search(steps=60, finetune=args.finetune), images(args.images, args.side)
    models = prepared(args.folder, args.networks, args.steps, search, data, args.threads, args.epsilon, args.twins)
    for name, m in models.items():
        paths = {",".join(map(str, sorted(p))): round(a, 4) for p, a in m.accuracy.of_paths.items()}
        print(name, [[f"{w.half}{' twin' * w.twin} {w.seconds * 1e6:.0f} us" for w in b.ways] for b in m.blocks], paths)
    print(f"prepared in {time.perf_counter() - began:.0f} s")
    twins = sum(w.twin for m in models.values() for b in m.blocks for w in b.ways)
    what = {"suite": "blastnet", "machine": machine, "networks": args.networks, "side": args.side, "twins": twins}
    rows = []
    with (args.folder / "deadlines.jsonl").open("a") as out:
        for count, load, kind in itertools.product(args.tasks, args.loads, args.background):
            record = case(args, models, count, load, kind)
            out.write(json.dumps({**what, **record, "xcoexec": xcoexec.__version__}) + "\n")
            out.flush()
            rows.append(row(record))
    head = ("tasks", "load", "background", *args.policies, "no schedule below, at the last one's pace")
    title = f"missing rate % (spread), accuracy lost %, scheduler's cost %; {machine}"
    Console(width=240).print(table(title, head, rows, right=range(len(head))))


def _cell(runs: Sequence[dict[str, Any]]) -> str:
    m = [100 * r["missing"] for r in runs]
    lost = 100 * np.mean([r["accuracy_lost"] for r in runs])
    cost = 100 * np.mean([r["cost"] for r in runs])
    return f"{np.mean(m):.1f} ({min(m):.1f}..{max(m):.1f}) -{lost:.2f} {cost:.1f}"


if __name__ == "__main__":
    main()
