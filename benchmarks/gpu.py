"""Co-execution on a GPU: device-only `jax.jit`, host only and every strategy, alternating in one process.

    python -m benchmarks.gpu FOLDER [MODEL...] [--precision default highest] [--variants ...] [--input device host]
                             [--batch 1 8] [--type f32 bf16]

Run it under `benchmarks/edge_slice` to let a small part of a large GPU stand for an edge GPU; the records say so.
Variants beside the strategies leave out parts of EdgeNN: arrays always mapped or always copied, without intra- or
inter-kernel co-running.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import os
import pathlib
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import track

import xcoexec
from xcoexec import models
from xcoexec.codegen.target import target
from xcoexec.config import cores
from xcoexec.cost.edgenn import bound
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate
from xcoexec.papers.source import commit
from xcoexec.session.budget import Budget
from xcoexec.tools import suite
from xcoexec.tools.oracle import oracles, worst

from . import networks
from .energy import joules
from .settled import settle

MODELS = ("fcnn", "lenet", "alexnet", "vgg16", "squeezenet", "resnet18", "resnet50", "mobilenet_v2")
PRECISIONS = ("highest", "default")
VARIANTS = {**suite.VARIANTS, "edgenn, mapped": {"strategy": "edgenn", "memory": "mapped"}}
USUAL = ("host", "edgenn", "codl", "auto")
ROUNDS, FLOWS = 6, 4  # of calls that wait, and in flight: even, so that each comes as often behind as before another
BLOCK_SECONDS = 0.06
IN_FLIGHT = 10


def gpu_parser(name: str, doc: str | None) -> argparse.ArgumentParser:
    """The arguments that every bench of a GPU takes."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    return parser


def on_gpu(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments given, with the folder made; ends with one sentence where there is no GPU."""
    args = parser.parse_args()
    if jax.default_backend() != "gpu":
        raise SystemExit(
            f"{parser.prog.removeprefix('python -m ')}: got the backend {jax.default_backend()!r}; this needs a CUDA"
            " GPU that JAX sees."
        )
    args.folder.mkdir(parents=True, exist_ok=True)
    return args


def slice_percent() -> int:
    """Share of the GPU that this process was given by CUDA MPS (100: all of it)."""
    return int(os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100"))


def where() -> str:
    """The machine in words."""
    if jax.default_backend() != "gpu":
        return f"{cores()}-core CPU; jax {jax.__version__}"
    from xcoexec.devices.cuda import cuda

    part = cuda().multiprocessors
    share = f", limited to {part} multiprocessors by CUDA MPS (stands for an edge GPU)" if slice_percent() < 100 else ""
    return f"{jax.devices()[0].device_kind}{share}; {cores()}-core {target().cpu}; jax {jax.__version__}"


def run(
    name: str, precision: str, variants: Sequence[str], place: str, batch: int = 1, dtype: str = "f32"
) -> dict[str, Any]:
    """One record: seconds of every variant on the same weights and input, their errors against float64, the plans.
    `dtype`: of weights and input, f32 or bf16.
    """
    entry = networks.get(name)
    with jax.default_matmul_precision(precision):
        apply = entry.module.apply
        weights, x = (networks.rounded if dtype == "bf16" else lambda v: v)((entry.variables(), entry.example(batch)))
        given = x if place == "device" else jax.tree_util.tree_map(np.asarray, x)
        plain = jax.jit(apply)
        finish: Callable[[Any], Any] = (
            jax.block_until_ready if place == "device" else functools.partial(jax.tree_util.tree_map, np.asarray)
        )
        calls = {"jit": lambda: finish(plain(weights, given))}
        bound_functions = {v: xcoexec.jit(apply, **VARIANTS[v], strict=True).bind(weights) for v in variants}
        for v, f in bound_functions.items():
            calls[v] = lambda f=f: finish(f(given))
        outs = {k: jax.tree_util.tree_leaves(c()) for k, c in calls.items()}
        if "auto" in bound_functions:
            settle(calls["auto"])
        waits, flows = dict[str, list[float]](), dict[str, list[float]]()
        seconds = _in_turn(calls, ROUNDS, waits)
        many = {
            k: functools.partial(_many, c)
            for k, c in {
                "jit": lambda: plain(weights, given),
                **{v: functools.partial(f, given) for v, f in bound_functions.items()},
            }.items()
        }
        if "auto" in bound_functions:
            settle(functools.partial(bound_functions["auto"], given), IN_FLIGHT)
        pipelined = {k: t / IN_FLIGHT for k, t in _in_turn(many, FLOWS, flows).items()}
        energy = {k: joules(calls[k]) for k in ("jit", *list(bound_functions)[-1:])}
        want = [np.asarray(v) for v in outs["jit"]]
        exact = oracles(apply, weights, x)
    plans = {v: json.loads(f.plan().to_json()) for v, f in bound_functions.items()}
    known = [f.session().known_costs for f in bound_functions.values()]
    costs = next((c.fields() for c in known if c is not None), None)
    reports = {v: f.report() for v, f in bound_functions.items()}
    budgets = {v: dataclasses.asdict(_timed(r.budget, seconds[v])) for v, r in reports.items() if r.budget is not None}
    return {
        "model": name,
        "precision": precision,
        "type": dtype,
        "input": place,
        "batch": batch,
        "machine": where(),
        "slice_percent": slice_percent(),
        "seconds": seconds,
        "seconds_in_flight": pipelined,
        "spread": _quartiles(waits),
        "spread_in_flight": {k: (a / IN_FLIGHT, b / IN_FLIGHT) for k, (a, b) in _quartiles(flows).items()},
        "joules_a_call": energy,
        "difference_to_jit": {k: worst(out, want) for k, out in outs.items()},
        "error": {k: worst(out, exact) for k, out in outs.items()},
        "plans": plans,
        "costs": costs,
        "budgets": budgets,
        "commit": commit(),
        "xcoexec": xcoexec.__version__,
    }


def _in_turn(calls: Mapping[str, Callable[[], Any]], rounds: int, samples: dict[str, list[float]]) -> dict[str, float]:
    """Median seconds of each, in turn; `samples` receives all. The host half comes by itself: a device that has waited
    for it lowers its clock, which whoever comes next would pay for.
    """
    there = {k: c for k, c in calls.items() if k != "host"}
    found = alternate(there, rounds, BLOCK_SECONDS, samples=samples)
    if "host" in calls:
        alone = dict[str, list[float]]()
        found |= alternate({"host": calls["host"]}, rounds, BLOCK_SECONDS, samples=alone)
        samples |= alone
    return {k: found[k] for k in calls}


def _quartiles(samples: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """Between which seconds half of all calls lie."""
    return {k: (float(np.percentile(s, 25)), float(np.percentile(s, 75))) for k, s in samples.items()}


def _timed(found: Budget, seconds: float) -> Budget:
    """The budget of calls that take so many seconds: what their own stamps do not explain is launch."""
    return dataclasses.replace(found, call=seconds, launch=found.launch + seconds - found.call)


def _many(call: Callable[[], Any]) -> None:
    """Calls without waiting in between: what a stream of requests sees."""
    outs = [call() for _ in range(IN_FLIGHT)]
    jax.block_until_ready(outs)


def summary(records: Sequence[dict[str, Any]], variants: Sequence[str]) -> list[list[str]]:
    """Rows of the table: milliseconds, then ratios."""
    rows = []
    for r in records:
        s = r["seconds"]
        best = min(v for k, v in s.items() if k not in ("jit", "host"))
        auto = s.get("auto", best)
        single = min(s["jit"], s.get("host", math.inf))
        limit = bound(s["jit"], s["host"]) if "host" in s else math.nan
        times = [f"{s[k] * 1e3:.3f}" if k in s else "-" for k in ("jit", *variants)]
        flow = r["seconds_in_flight"]
        ratios = (s["jit"] / auto, single / auto, limit / auto, flow["jit"] / flow.get("auto", math.nan))
        case = [r["model"], r["type"], r["precision"], str(r["batch"]), r["input"]]
        rows.append([*case, *times, *(f"{x:.2f}" for x in ratios)])
    return rows


BUDGET = ("model", "precision", "a call", "ideal", "% ideal", "% attainable", "parts", "not split", "slower")
BUDGET += ("of it waits", "operands", "merges", "launch")


def spent(records: Sequence[dict[str, Any]], variant: str) -> list[list[str]]:
    """Rows of milliseconds: what a call's seconds are lost to (see `xcoexec.session.budget`)."""
    rows = []
    for r in records:
        b = r["budgets"].get(variant)
        if b is None:
            rows.append([r["model"], r["precision"], *["-"] * (len(BUDGET) - 2)])
            continue
        shares = [f"{100 * s / b['call']:.0f}" for s in (b["ideal"], b["ideal"] + b["parts"])]
        lost = [b[k] for k in ("parts", "placement", "work", "waits", "operands", "merges", "launch")]
        ms = [f"{1e3 * s:.3f}" for s in (b["call"], b["ideal"], *lost)]
        rows.append([r["model"], r["precision"], *ms[:2], *shares, *ms[2:]])
    return rows


RATIOS = ("jit/auto", "better half/auto", "bound/auto", "jit/auto in flight")


def picture(records: Sequence[dict[str, Any]], path: pathlib.Path) -> None:
    """Times faster than jax.jit, one group of bars a model and precision."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [f"{r['model']} x{r['batch']} ({r['precision']}, {r['input']})" for r in records]
    variants = [k for k in records[0]["seconds"] if k != "jit"]
    height = 0.8 / len(variants)
    fig, ax = plt.subplots(figsize=(8, 0.3 * len(variants) * len(records) + 1.5))
    for i, v in enumerate(variants):
        values = [r["seconds"]["jit"] / r["seconds"][v] for r in records]
        ax.barh([len(records) - j - i * height for j in range(len(records))], values, height, label=v)
    ax.set_yticks([len(records) - j - 0.4 + height / 2 for j in range(len(records))], names)
    ax.axvline(1.0, color="#888888", linewidth=1)
    ax.set_xlabel("times faster than jax.jit (calls that wait for their result)")
    ax.set_title(textwrap.fill(records[0]["machine"], 90), fontsize=8)
    ax.margins(y=0.01)
    ax.legend()
    fig.tight_layout()
    fig.savefig(path, dpi=150)


def main() -> None:
    parser = gpu_parser("gpu", __doc__)
    parser.add_argument("models", nargs="*", default=[], choices=[*models.NAMES, *networks.NETWORKS, []])
    parser.add_argument("--precision", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--variants", nargs="+", default=USUAL, choices=tuple(VARIANTS))
    parser.add_argument("--input", nargs="+", default=("device",), choices=("device", "host"))
    parser.add_argument("--batch", nargs="+", type=int, default=(1,))
    parser.add_argument("--type", nargs="+", default=("f32",), choices=("f32", "bf16"))
    args = on_gpu(parser)
    cases = [
        (m, p, args.variants, place, n, t)
        for t in args.type
        for p in args.precision
        for n in args.batch
        for place in args.input
        for m in args.models or MODELS
    ]
    records = []
    with (args.folder / "gpu.jsonl").open("a") as out:
        for case in track(cases, "gpu", console=Console(stderr=True)):
            records.append(run(*case))
            out.write(json.dumps(records[-1]) + "\n")
            out.flush()
    head = ("model", "type", "precision", "batch", "input", "jit", *args.variants, *RATIOS)
    console = Console(width=200, record=True)
    console.print(table(where(), head, summary(records, args.variants), right=range(5, len(head))))
    title = f"where a call of {args.variants[-1]} goes (ms)"
    console.print(table(title, BUDGET, spent(records, args.variants[-1]), right=range(2, len(BUDGET))))
    for p in args.precision:
        ratios = [r["seconds"]["jit"] / r["seconds"][args.variants[-1]] for r in records if r["precision"] == p]
        console.print(f"{p}: geometric mean of jit/{args.variants[-1]}: {float(np.exp(np.mean(np.log(ratios)))):.2f}")
    (args.folder / "gpu.txt").write_text(console.export_text())
    picture(records, args.folder / "gpu.png")


if __name__ == "__main__":
    main()
