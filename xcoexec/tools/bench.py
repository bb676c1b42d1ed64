"""Measures a model of the zoo against `jax.jit`: alternating in one process, checked against float64 NumPy."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from .. import __version__, config, models
from ..api.functions import jit
from ..codegen.program import Literal, Value
from ..codegen.rules import reference
from ..devices.registry import device_half
from ..frontend.graph import graph_of
from ..frontend.trace import paths, trace
from ..ir.layers import LayerGraph
from ..ir.text import columns
from ..session.contest import alternate

Record = dict[str, Any]
SEED = 0


def environment() -> Record:
    """Versions and the machine in general terms."""
    import llvmlite
    import numba

    from ..codegen.target import target

    settings: Any = jax.config
    return {
        "xcoexec": __version__,
        "jax": jax.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "python": platform.python_version(),
        "cpu": f"{config.cores()}-core {target().cpu}",
        "isa": target().name,
        "device": device_half().title(),
        "precision": str(settings.jax_default_matmul_precision or "default"),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def model_graph(name: str, batch: int = 1) -> LayerGraph:
    """The layer graph of a model of the zoo, from shapes alone."""
    entry = models.get(name)
    return graph_of(entry.module.apply, (jax.eval_shape(entry.variables), entry.example(batch)), 1)[1]


def oracle(fn: Any, *args: Any) -> np.ndarray:
    """The first result of `oracles`."""
    return oracles(fn, *args)[0]


def oracles(fn: Any, *args: Any) -> list[np.ndarray]:
    """The leaves of `fn(*args)` in float64, by the NumPy meaning of every primitive."""
    values, tree = jax.tree_util.tree_flatten((args, {}))
    traced = trace(fn, values, tree, paths(tree))

    def wide(a: Any) -> Any:
        a = np.asarray(a)
        return a.astype(np.float64) if a.dtype == np.float32 else a

    env: dict[Value, Any] = {v: wide(x) for v, x in zip(traced.inputs, values, strict=True)} | {
        v: wide(x) for v, x in traced.consts
    }
    reference.run_ops(traced.ops, env, wide)
    return [np.asarray(out.val if isinstance(out, Literal) else env[out]) for out in traced.outputs]


def error(got: Any, want: np.ndarray) -> float:
    """Largest difference, relative to the output's scale (its largest absolute value)."""
    return float(np.max(np.abs(np.asarray(got, np.float64) - want)) / max(float(np.max(np.abs(want))), 1e-30))


def worst(got: Any, want: Sequence[np.ndarray]) -> float:
    """The largest `error` of all leaves."""
    return max(error(a, b) for a, b in zip(jax.tree_util.tree_leaves(got), want, strict=True))


def measure(
    name: str, batch: int = 1, strategy: str = "auto", threads: int | None = None, rounds: int = 8, block: float = 0.2
) -> Record:
    """Median seconds of both, their ratio, first-call seconds, errors against float64, and whether the plan's
    executable ran.
    """
    entry = models.get(name)
    n = config.threads(threads)
    weights, x = entry.variables(SEED), entry.example(batch, SEED)
    apply = entry.module.apply
    plain = jax.jit(apply)
    fast = jit(apply, strategy=strategy, threads=n).bind(weights)
    start = time.perf_counter()
    first = jax.block_until_ready(fast(x))
    first_seconds = time.perf_counter() - start
    start = time.perf_counter()
    reference_out = jax.block_until_ready(plain(weights, x))
    plain_first = time.perf_counter() - start
    calls = {"jit": lambda: jax.block_until_ready(plain(weights, x)), "xco": lambda: jax.block_until_ready(fast(x))}
    seconds = alternate(calls, rounds, block)
    want = oracles(apply, weights, x)
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
        "error": worst(first, want),
        "jit_error": worst(reference_out, want),
        "ran": fast.report().ran,
        "chosen": fast.plan().chosen,
        "host_layers": sum(p.half == "host" for p in fast.plan().placements),
        "layers": len(fast.plan().placements),
        **environment(),
    }


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
            env = {**os.environ, "XCOEXEC_CACHE_DIR": cache} if cache else None
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
            out[key] = int(done.stdout.split()[-1])
    return out


def text(records: Sequence[Record]) -> str:
    """Records as a table."""
    head = [
        "model",
        "batch",
        "threads",
        "jax.jit ms",
        "xcoexec ms",
        "speed-up",
        "ran",
        "error",
        "first call s",
        "memory",
        "memory, first",
    ]
    rows = [head]
    for r in records:
        memory = [
            f"{r[k] / r['jit_peak_bytes']:.2f}x" if k in r else "-" for k in ("xco_peak_bytes", "xco_first_peak_bytes")
        ]
        rows.append(
            [
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
        )
    e = records[0]
    return (
        columns(rows, (1, 2, 3, 4, 5, 7, 8, 9, 10))
        + f"\n{e['cpu']}, {e['isa']}, jax {e['jax']}, Python {e['python']}; medians, alternating in one process"
    )
