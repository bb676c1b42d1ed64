"""Training a decoder with the optimizer's state in host memory, against all of it on the GPU and JAX's own ways.

    python -m benchmarks.offload [FOLDER] [--params 0.5e9] [--tokens 8192 32768 ...] [--budget 120]

Every variant trains the same decoder (parameters of bf16, AdamW with master weights of f32) in one process, in turn:
`resident` keeps all states on the GPU; `pinned_host` keeps them in JAX's host memory, brings them over in the step and
sends them back; `compute_on` computes the update with JAX's host compute; `offload` is `xcoexec.optim.offload` with
nothing on the GPU, `balanced` the same after `balance` has chosen by measurement what stays there (`--device-memory`).

Each number of tokens gets `--budget` seconds. A variant takes part from when it is compiled; one whose turn comes late
does not begin. A record is written after each round, so that a run that is cut off leaves what it has measured: of
records with the same `began`, tokens and clip the last one counts.

The bound of a step: no gradient is there before the forward pass is over, and the host's update takes at least what its
bytes take at the rate of a kernel that reads and writes memory in place, measured beside copies in both directions; so
max(forward and backward, forward + update). Where gradients are clipped by their global norm, the update begins when
all of them are there. Of `balanced` the bytes are those that the host has.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import optax
from rich.console import Console

import xcoexec
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate
from xcoexec.papers.source import commit
from xcoexec.tools.lines import append

from .gpu import where
from .offload_bound import bound, rates, seconds_of
from .offload_decoder import Shape, loss_of, parameters, shape_of
from .offload_ways import WAYS, Run, balanced

SLOW = 2.5  # times the fastest step, beyond which a variant is measured once
LATE, LATER = 0.6, 0.75  # of the budget, after which no variant is compiled, and nothing of the bound
IN_FLIGHT = 4  # steps that nobody waits for in between
Record = dict[str, Any]


class Measured:
    """What is known of all ways at so many tokens a step. `until`: seconds of the budget."""

    def __init__(self, args: argparse.Namespace, shape: Shape, params: Any, tokens: int, clip: bool):
        self.args, self.params, self.clip = args, params, clip
        rows = max(1, tokens // shape.sequence)
        self.batch = jax.random.randint(jax.random.key(1), (rows, shape.sequence), 0, shape.vocabulary)
        self.shape, self.tokens = shape, rows * shape.sequence
        self.runs: dict[str, Run] = {}
        self.failed: dict[str, str] = {}
        self.samples: dict[str, list[float]] = {}
        self.flight: dict[str, list[float]] = {}
        self.parts: dict[str, float] = {}  # seconds of the forward pass, and with the backward one
        self._start, self.began = time.perf_counter(), time.strftime("%Y-%m-%dT%H:%M:%S")

    def spent(self) -> float:
        """Of the budget."""
        return (time.perf_counter() - self._start) / self.args.budget

    def begin(self, name: str) -> bool:
        """Compiles a way and runs its first step; whether it takes part from now on."""
        if self.spent() > LATE:
            self.failed[name] = f"not begun: {self.spent():.0%} of the budget were over"
            return False
        try:
            way = functools.partial(balanced, device_memory=self.args.device_memory)
            self.runs[name] = Run(way if name == "balanced" else WAYS[name], self.params, self.batch, self.clip)
            self.runs[name]()
        except Exception as e:  # a way of JAX's that this version, or this memory, does not have
            self.failed[name] = f"{type(e).__name__}: {str(e)[:200]}"
            self.runs.pop(name, None)
        return name in self.runs

    def bounds(self) -> None:
        """Measures the parts of a step, as far as time is left."""
        for name, fn in (("forward", loss_of), ("forward_backward", jax.grad(loss_of))):
            if self.spent() < LATER:
                self.parts[name] = seconds_of(fn, self.params, self.batch, 2)

    def round(self) -> None:
        """A block of each way in turn, also in flight; of a slow one only the first time."""
        known = {k: float(np.median(v)) for k, v in self.samples.items()}
        slow = {k for k, s in known.items() if s > SLOW * min(known.values())}
        found: dict[str, list[float]] = {}
        alternate({k: r for k, r in self.runs.items() if k not in slow}, 1, self.args.seconds, samples=found)
        for k, seconds in found.items():
            self.samples.setdefault(k, []).extend(seconds)
        least = min(float(np.median(v)) for v in found.values())
        for k, seconds in found.items():
            if float(np.median(seconds)) <= SLOW * least:
                self.flight.setdefault(k, []).append(self.runs[k].burst(IN_FLIGHT))

    def record(self, rate: dict[str, float], rounds: int) -> Record:
        """What is known so far."""
        n = sum(x.size for x in jax.tree_util.tree_leaves(self.params))
        seconds = {k: float(np.median(v)) for k, v in self.samples.items()}
        return {
            **{"params": n, "shape": self.shape._asdict(), "tokens": self.tokens, "clip": self.clip},
            **{"machine": where(), "commit": commit(), "xcoexec": xcoexec.__version__, "optax": optax.__version__},
            **{"began": self.began, "rounds": rounds, "spent": self.spent() * self.args.budget, "seconds": seconds},
            "spread": {k: [float(x) for x in np.quantile(v, (0.25, 0.75))] for k, v in self.samples.items()},
            "in_flight": {k: float(np.median(v)) for k, v in self.flight.items()},
            "compile_seconds": {k: r.compile_seconds for k, r in self.runs.items()},
            "step_bytes": {k: r.bytes for k, r in self.runs.items()},
            "state_bytes": {k: r.state_bytes for k, r in self.runs.items()},
            "losses": {k: r.losses[:4] for k, r in self.runs.items()},
            **{"failed": self.failed, "rates": rate, **self.parts, **self._least(n, rate)},
        }

    def _least(self, n: int, rate: dict[str, float]) -> Record:
        """The bound, of each way that updates on the host."""
        moved = 2 * 12 * n  # moments and master weights, read and written
        wire = 2 * n  # gradients of bf16 down; parameters of bf16 up
        host = {k: r.host_bytes for k, r in self.runs.items() if r.host_bytes}
        shares = {k: b / max(host.values()) if "offload" in host else b / (12 * n) for k, b in host.items()}
        update = bound(moved + 2 * wire, wire, rate)
        found = {"update_bound": update, "host_bytes": {k: r.host_bytes for k, r in self.runs.items()}}
        if len(self.parts) < 2:
            return {**found, "bounds": {}}
        whole, first = self.parts["forward_backward"], self.parts["forward_backward" if self.clip else "forward"]
        least = lambda share: max(whole, first + share * update)
        return {**found, "bound": least(1.0), "bounds": {k: least(share) for k, share in shares.items()}}


HEAD = (
    *("tokens", "way", "ms a step", "in flight", "over resident", "GB of a step", "state GB", "on host"),
    *("bound ms", "reached"),
)


def rows_of(r: Record) -> list[list[str]]:
    """The table's rows of a record."""
    out = []
    for k, s in r["seconds"].items():
        low, high = r["spread"][k]
        least, flight = r["bounds"].get(k), r["in_flight"].get(k)
        row = [str(r["tokens"]), k, f"{s * 1e3:.1f} ({low * 1e3:.1f} to {high * 1e3:.1f})"]
        row += [f"{flight * 1e3:.1f}" if flight else "-"]
        row += [f"{s / r['seconds']['resident']:.2f}x" if "resident" in r["seconds"] else "-"]
        row += [f"{r[part][k] / 1e9:.2f}" for part in ("step_bytes", "state_bytes")]
        row += [f"{r['host_bytes'][k] / 1e9:.2f}" if r["host_bytes"][k] else ""]
        out.append([*row, *([f"{least * 1e3:.1f}", f"{least / s:.0%}"] if least else ["", ""])])
    return out + [[str(r["tokens"]), k, why[:60], *[""] * 7] for k, why in r["failed"].items()]


def shown(r: Record) -> None:
    """Prints a record as a table."""
    about = f"{r['params'] / 1e9:.2f}e9 parameters{', clipped' * r['clip']}, {r['rounds']} rounds, {r['machine']}"
    Console(width=160).print(table(about, HEAD, rows_of(r), right=range(2, len(HEAD))))
    parts = {k: round(r[k] * 1e3, 1) for k in ("forward", "forward_backward", "update_bound") if k in r}
    print(parts, {k: round(v / 1e9, 1) for k, v in r["rates"].items()}, r["losses"], r["failed"], flush=True)


def all_rounds(found: Measured, rate: dict[str, float], kept: pathlib.Path | None) -> Record:
    """The last record of all ways at so many tokens; each one goes into the file `kept`."""
    rounds = 0

    def noted() -> None:
        nonlocal rounds
        rounds += 1
        found.round()
        if kept is not None:
            append(kept, found.record(rate, rounds))
        print({k: f"{1e3 * np.median(v):.1f} ms" for k, v in found.samples.items()}, f"{found.spent():.0%}", flush=True)

    ways = [w for w in found.args.ways if w != "compute_on"]
    for name in ways:
        if found.begin(name):
            noted()
    found.bounds()
    for name in [w for w in found.args.ways if w not in ways]:  # whose single step may take the rest of the budget
        if found.begin(name):
            noted()
    while found.runs and rounds < found.args.rounds + len(found.runs) and found.spent() < 1.0:
        noted()
    return found.record(rate, rounds)


CLIPS = {"no": (False,), "yes": (True,), "both": (False, True)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.offload", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--params", type=float, default=0.5e9)
    parser.add_argument("--tokens", type=int, nargs="+", default=[16384, 32768, 65536])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=5, help="behind the last way that takes part")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a way in a round")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of a number of tokens")
    parser.add_argument("--clip", nargs="?", default="no", const="yes", choices=CLIPS, help="by the global norm first")
    parser.add_argument("--device-memory", type=float, default=0.5, help="share of the states for `balanced`")
    args = parser.parse_args(argv)
    shape = shape_of(args.params)
    params = jax.block_until_ready(jax.jit(lambda: parameters(shape))())
    rate = rates()
    if args.folder:
        args.folder.mkdir(parents=True, exist_ok=True)
    for clip, tokens in itertools.product(CLIPS[args.clip], args.tokens):
        found = Measured(args, shape, params, tokens, clip)
        last = all_rounds(found, rate, args.folder and args.folder / "offload.jsonl")
        if args.folder:
            append(args.folder / "offload.jsonl", last)
        shown(last)


if __name__ == "__main__":
    main()
