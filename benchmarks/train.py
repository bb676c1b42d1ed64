"""`python -m benchmarks.train [folder] [model ...]`: whole training steps against `jax.jit` and PyTorch.

A line a network. `jax.jit`, `xcoexec.jit` as users call it, and our own forward pass in training mode run in one
process, PyTorch in another; their blocks take turns. The first step's seconds and the peak of memory are those of
processes that do nothing else, with an empty cache and once more with what it holds then. The losses of the first steps
are compared with `jax.jit`'s, and the first gradients with those in float64: the largest error of a leaf, of its scale
(behind it that of `jax.jit`; where a value lies on a kink, as of ReLU, rounding decides).

    python -m benchmarks.train out mobilenet_v2 --batch 16 --donate
    python -m benchmarks.train out resnet18 --layers      # what each layer of the step takes on both halves
    python -m benchmarks.train out --table                # the table of the guide to training, of the folder's records
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from xcoexec import config
from xcoexec.codegen.environment import CACHE_DIR
from xcoexec.ir.text import columns
from xcoexec.papers.source import commit

from .block_processes import BlockProcess
from .train_cases import CASES, WAYS

ROUNDS, BLOCK_SECONDS = 11, 0.5
TOLERANCE = 2e-3  # of the losses of the first steps, of `jax.jit`'s
PARTS = ("first", "gradients", "forward", "torch")
Record = dict[str, Any]


def record(
    name: str,
    batch: int,
    donate: bool = False,
    parts: Sequence[str] = PARTS,
    rounds: int = ROUNDS,
    ways: Sequence[str] = WAYS,
) -> Record:
    """A line: seconds of each contestant's step by round, and what is known of its processes. `parts`: which of `PARTS`
    are measured; `ways`: which of PyTorch's.
    """
    began, load = time.strftime("%Y-%m-%dT%H:%M:%S"), os.getloadavg()[0]
    found: Record = {"model": name, "batch": batch, "donate": donate, "commit": commit(), "began": began, "load": load}
    more = ["--donate"] if donate else []
    with tempfile.TemporaryDirectory() as cache:
        env = config.environment_with(**{CACHE_DIR: cache})
        if "first" in parts:
            runs = {"jit": "jit", "cold": "ours", "warm": "ours"}
            found |= {f"{k}_process": _alone(what, name, batch, more, env) for k, what in runs.items()}
        if "gradients" in parts:
            found["gradients"] = _alone("gradients", name, batch, [], env)
        more += ["--forward"] if "forward" in parts else []
        jax = BlockProcess("benchmarks.train_steps", "timed", name, str(batch), *more, env=env)
        found |= jax.hello
        places = {k: jax for k in ("jit", "ours", *(("forward",) if "forward" in parts else ()))}
        torch = _torch(name, batch, parts, ways, found)
        places |= {k: torch for k in found["torch"].get("ways", ()) if torch is not None}
        found["seconds"] = _in_turn(places, rounds)
        for process in filter(None, (jax, torch)):
            process.close()
    return found


def _alone(what: str, name: str, batch: int, more: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    process = BlockProcess("benchmarks.train_steps", what, name, str(batch), *more, env=env)
    process.close()
    return process.hello


def _torch(name: str, batch: int, parts: Sequence[str], ways: Sequence[str], found: Record) -> BlockProcess | None:
    """PyTorch's process; what it says of itself, or why there is none, is put into the record."""
    if "torch" not in parts or find_spec("torch") is None:
        found["torch"] = {"why": "not installed" if "torch" in parts else "not asked"}
        return None
    more = ("--threads", str(config.threads(None)), "--ways", *ways)
    process = BlockProcess("benchmarks.torch_steps", name, str(batch), *more)
    found["torch"] = process.hello
    return process


def _in_turn(places: Mapping[str, BlockProcess], rounds: int) -> dict[str, list[float]]:
    """Median seconds of a step by round; every round begins at the other end."""
    found: dict[str, list[float]] = {k: [] for k in places}
    for r in range(rounds):
        for k in list(places)[:: 1 if r % 2 else -1]:
            found[k].append(float(np.median(places[k].block(k, BLOCK_SECONDS))))
    return found


# -- tables ------------------------------------------------------------------------------------------

HEAD = (
    *("model", "batch", "jax.jit ms", "xcoexec ms", "times faster", "3 x own forward ms", "PyTorch ms", "its way"),
    *(
        "kernels/XLA layers",
        "ran",
        "losses apart",
        "gradients' error",
        "first step s",
        "planned s",
        "again s",
        "memory",
        "first",
    ),
)


def ratio(of: Record, over: str = "jit") -> tuple[float, float, float]:
    """How many times ours is as fast: median over rounds, and both quartiles."""
    low, middle, high = np.percentile(np.array(of["seconds"][over]) / np.array(of["seconds"]["ours"]), (50, 25, 75))
    return low, middle, high


def ms(of: Record, name: str, times: float = 1.0) -> str:
    """Median milliseconds of a contestant's step; "-" where it did not run."""
    return f"{1e3 * times * np.median(of['seconds'][name]):.2f}" if name in of["seconds"] else "-"


def fastest(of: Record) -> str:
    """PyTorch's fastest way; "" where none ran."""
    return min(of["torch"].get("ways", ()), key=lambda k: np.median(of["seconds"][k]), default="")


def cells(of: Record) -> list[str]:
    """A record as a row under `HEAD`."""
    middle, low, high = ratio(of)
    way, apart = fastest(of), of["loss_error"]
    said = f"{apart:.1e}" + ("" if apart <= TOLERANCE else " (WRONG)")
    row = [of["model"] + (" donated" if of["donate"] else ""), str(of["batch"]), ms(of, "jit"), ms(of, "ours")]
    row += [f"{middle:.2f} ({low:.2f}-{high:.2f})", ms(of, "forward", 3.0), ms(of, way) if way else "-"]
    row += [way or of["torch"].get("why", "fails"), f"{of['on_kernels']}/{of['layers'] - of['on_kernels']}"]
    errors = [f"{of['gradients'][k]['leaf']:.1e}" for k in ("ours", "jit")] if "gradients" in of else ["-", "-"]
    row += [of["ran"], said, "{} ({})".format(*errors)]
    if "jit_process" not in of:
        return row + ["-"] * (len(HEAD) - len(row))
    jit, cold, warm = (of[f"{k}_process"] for k in ("jit", "cold", "warm"))
    row += [f"{cold['first_seconds']:.2f} ({jit['first_seconds']:.2f})", f"{cold['planned_seconds']:.1f}"]
    row += [f"{warm['planned_seconds']:.2f}"]
    return row + [f"{p['peak_bytes'] / jit['peak_bytes']:.2f}x" for p in (warm, cold)]


def latest(path: pathlib.Path) -> list[Record]:
    """The last record of each network, batch and donation, in the order of `CASES`."""
    found = {(r["model"], r["batch"], r["donate"]): r for r in map(json.loads, path.read_text().splitlines())}
    order = list(CASES)
    return sorted(found.values(), key=lambda r: (order.index(r["model"]) if r["model"] in CASES else 99, r["batch"]))


def readme(records: Sequence[Record]) -> str:
    """The table of the guide to training."""
    head = ("step", "batch", "xcoexec", "jax.jit", "PyTorch", "jax.jit / xcoexec", "PyTorch / xcoexec", "memory")
    rows = [head, ("---", *["---:"] * (len(head) - 1))]
    for r in records:
        way, (middle, low, high) = fastest(r), ratio(r)
        theirs = f"{ratio(r, way)[0]:.2f}x" if way else "-"
        peaks = [r[f"{k}_process"]["peak_bytes"] if f"{k}_process" in r else math.nan for k in ("warm", "jit")]
        row = [r["model"] + (" donated" if r["donate"] else ""), str(r["batch"]), ms(r, "ours"), ms(r, "jit")]
        row += [f"{ms(r, way)} ({way})" if way else "-", f"{middle:.2f}x ({low:.2f} to {high:.2f})", theirs]
        rows.append((*row, f"{peaks[0] / peaks[1]:.2f}x" if not math.isnan(sum(peaks)) else "-"))
    e = records[0]
    machine = f"{e['cpu']}, jax {e['jax']}, PyTorch {e['torch'].get('version', '-')}, commit {e['commit']}"
    return "\n".join("| " + " | ".join(r) + " |" for r in rows) + f"\n\n{machine}"


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the lines, appends JSONL, and prints a table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="out", type=pathlib.Path)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(CASES)}, or any other image network of the zoo")
    parser.add_argument("--batch", type=int, help="instead of each network's own")
    parser.add_argument("--donate", action="store_true", help="the state is given away at every step")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--without", nargs="*", default=[], choices=PARTS, help="what is not measured")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS, help="PyTorch's that are tried")
    parser.add_argument("--layers", action="store_true", help="only a list of the step's layers, slowest first")
    parser.add_argument("--both", action="store_true", help="the list with each layer alone on both halves")
    parser.add_argument("--table", action="store_true", help="only the guide's table of the folder's records")
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    kept = given.folder / "train.jsonl"
    if given.table:
        print(readme(latest(kept)))
        return
    parts, rows, wrong = [p for p in PARTS if p not in given.without], [list(HEAD)], []
    for name in track(given.models or CASES, "training", console=Console(stderr=True)):
        batch = given.batch or CASES.get(name, 8)
        if given.layers or given.both:
            from .train_layers import listed

            print(listed(name, batch, given.both))
            continue
        found = record(name, batch, given.donate, parts, given.rounds, given.ways)
        rows.append(cells(found))
        wrong += [name] if not found["loss_error"] <= TOLERANCE else []
        with open(kept, "a") as f:
            f.write(json.dumps(found) + "\n")
    if len(rows) > 1:
        print(columns(rows, (*range(1, 7), *range(11, len(HEAD)))))
    if wrong:
        raise SystemExit(f"benchmarks.train: losses differ from jax.jit's: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
