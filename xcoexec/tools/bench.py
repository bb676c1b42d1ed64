"""Measures a model of the zoo against `jax.jit`: alternating in one process, checked against float64 NumPy."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NotRequired, TypeVar

import jax

from .. import config, models
from ..api.functions import jit
from ..codegen.environment import CACHE_DIR
from ..ir.text import columns
from ..measure.timing import alternate
from .machine import Environment, environment
from .oracle import oracles, worst

T = TypeVar("T")
SEED = 0


class Record(Environment):
    """What `measure` finds of a model: seconds, errors relative to the output's scale; peaks, where they were
    measured, are those of `peak_memory`.
    """

    model: str
    batch: int
    strategy: str
    threads: int
    seed: int
    jit_seconds: float
    xco_seconds: float
    speedup: float
    first_call_seconds: float
    jit_first_call_seconds: float
    error: float
    jit_error: float
    ran: str
    chosen: str
    host_layers: int
    layers: int
    jit_peak_bytes: NotRequired[int]
    xco_peak_bytes: NotRequired[int]
    xco_first_peak_bytes: NotRequired[int]


def measure(
    name: str, batch: int = 1, strategy: str = "auto", threads: int | None = None, rounds: int = 8, block: float = 0.2
) -> Record:
    """One record of a model: median seconds of `jax.jit` and of ours, their ratio, seconds of the first calls, errors
    against float64, and whether the plan's executable ran.

    `threads` of the host half (default: the cores that this process may use); `rounds` of blocks of `block` seconds.
    Raises `ValueError` for an unknown model, strategy or number of threads.
    """
    entry = models.get(name)
    n = config.threads(threads)
    weights, x = entry.variables(SEED), entry.example(batch, SEED)
    apply = entry.module.apply
    plain = jax.jit(apply)
    fast = jit(apply, strategy=strategy, threads=n, wait=True).bind(weights)
    calls = {"jit": lambda: jax.block_until_ready(plain(weights, x)), "xco": lambda: jax.block_until_ready(fast(x))}
    ours, first_seconds = _first(calls["xco"])
    theirs, plain_first = _first(calls["jit"])
    seconds = alternate(calls, rounds, block)
    want = oracles(apply, weights, x)
    placements = fast.plan().placements
    return {
        "model": name,
        "batch": batch,
        "strategy": strategy,
        "threads": n,
        "seed": SEED,
        "jit_seconds": seconds["jit"],
        "xco_seconds": seconds["xco"],
        "speedup": seconds["jit"] / seconds["xco"],
        "first_call_seconds": first_seconds,
        "jit_first_call_seconds": plain_first,
        "error": worst(ours, want),
        "jit_error": worst(theirs, want),
        "ran": fast.report().ran,
        "chosen": fast.plan().chosen,
        "host_layers": sum(p.half == "host" for p in placements),
        "layers": len(placements),
        **environment(),
    }


def _first(call: Callable[[], T]) -> tuple[T, float]:
    """What a first call returns, and its seconds."""
    start = time.perf_counter()
    out = call()
    return out, time.perf_counter() - start


_MEMORY = """
import jax
from xcoexec import models
import xcoexec
entry = models.get({name!r})
weights, x = entry.variables(), entry.example({batch})
fn = xcoexec.jit(entry.module.apply, threads={threads}).bind(weights) if {xco} else jax.jit(entry.module.apply)
args = (x,) if {xco} else (weights, x)
for _ in range(3):
    jax.block_until_ready(fn(*args))
# not getrusage: that figure starts from the size of the process that forked this one
print([1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


def peak_memory(name: str, batch: int = 1, threads: int | None = None) -> Mapping[str, int]:
    """Peak resident bytes of a process that runs the model: with jax.jit, with xcoexec, and with xcoexec when it plans
    for the first time.
    """
    out = {}
    with tempfile.TemporaryDirectory() as empty:
        runs = {"jit_peak_bytes": (False, None), "xco_peak_bytes": (True, None), "xco_first_peak_bytes": (True, empty)}
        for key, (xco, cache) in runs.items():
            code = _MEMORY.format(name=name, batch=batch, threads=threads, xco=xco)
            env = config.environment_with(**{CACHE_DIR: cache}) if cache else None
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
            out[key] = int(done.stdout.split()[-1])
    return out


HEAD = (
    "model",
    "batch",
    "threads",
    "jax.jit",
    "xcoexec",
    "gain",
    "ran",
    "error",
    "first s",
    "memory",
    "at first",
)


def text(records: Sequence[Record]) -> str:
    """Records as a table, seconds in ms; at least one."""
    e = records[0]
    rows = [list(HEAD), *map(_row, records)]
    known = [i for i in range(len(HEAD)) if any(r[i] != "-" for r in rows[1:])]
    words = [i for i, name in enumerate(HEAD) if name in ("model", "ran")]
    table = columns([[r[i] for i in known] for r in rows], [k for k, i in enumerate(known) if i not in words])
    machine = f"{e['cpu']}, {e['isa']}, jax {e['jax']}, Python {e['python']}"
    return f"{table}\n{machine};\nmedians in milliseconds, alternating in one process; memory: peak over jax.jit's"


def _row(r: Record) -> list[str]:
    plain = r.get("jit_peak_bytes")
    peaks = (r.get("xco_peak_bytes"), r.get("xco_first_peak_bytes"))
    memory = ["-" if peak is None or plain is None else f"{peak / plain:.2f}x" for peak in peaks]
    return [
        r["model"],
        str(r["batch"]),
        str(r["threads"]),
        f"{r['jit_seconds'] * 1e3:.3f}",
        f"{r['xco_seconds'] * 1e3:.3f}",
        f"{r['speedup']:.2f}x",
        r["ran"],
        f"{r['error']:.1e}",
        f"{r['first_call_seconds']:.2f}",
        *memory,
    ]


__all__ = ["SEED", "Record", "measure", "peak_memory", "text"]
