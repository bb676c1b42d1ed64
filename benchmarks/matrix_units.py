"""`python -m benchmarks.matrix_units [folder]`: products of bf16 and int8 beside a bare loop of the CPU's instruction.

A line for each shape [rows, inputs, outputs] of a language model's layers: operations a second on kernels, by `jax.jit`
on the CPU and by PyTorch (bf16 alone), where that is installed, in turn in one process, and the share of what a loop of
nothing but the unit's products reaches with as many threads in the same run. Kernels have packed weights, and so has
PyTorch where it packs them; sums are f32, of int8 s32.

    python -m benchmarks.matrix_units out --rows 512 --threads 16
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xcoexec
from xcoexec import config
from xcoexec.codegen.runtime import peaks
from xcoexec.codegen.target import target
from xcoexec.ir.text import columns
from xcoexec.measure.timing import alternate
from xcoexec.papers.source import commit
from xcoexec.tools.lines import append
from xcoexec.tools.machine import environment

SHAPES = ((2048, 2048), (2048, 5632), (5632, 2048))
SUMS = {"bfloat16": jnp.float32, "int8": jnp.int32}
ROUNDS, SECONDS = 7, 0.3
HEAD = ("type", "rows", "inputs", "outputs", "unit", "bare loop", "kernels", "share", "jax.jit", "PyTorch", "ran")


@dataclasses.dataclass(frozen=True)
class Line:
    """Operations a second of a product [rows, inputs] x [inputs, outputs]; None where a contestant did not run."""

    dtype: str
    rows: int
    inputs: int
    outputs: int
    unit: str
    loop: float
    kernels: float
    spread: tuple[float, float]
    jit: float | None
    torch: float | None
    ran: str

    def row(self) -> list[str]:
        """Under `HEAD`, in GFLOP/s (of int8 GOP/s)."""
        giga = lambda x: "-" if x is None else f"{x / 1e9:.0f}"
        shape = [self.dtype, *map(str, (self.rows, self.inputs, self.outputs)), self.unit]
        mine = [giga(self.loop), giga(self.kernels), f"{self.kernels / self.loop:.0%}"]
        return [*shape, *mine, giga(self.jit), giga(self.torch), self.ran]


def measured(dtype: str, rows: int, inputs: int, outputs: int, threads: int, loop: float) -> Line:
    """A line of the table; the fastest of each contestant's calls does not count more than the others: medians."""
    rng, unit = np.random.default_rng(0), target().unit(dtype)
    assert unit is not None
    numbers = lambda *shape: rng.integers(-8, 8, shape).astype(dtype)
    x, w = jnp.asarray(numbers(rows, inputs)), jnp.asarray(numbers(inputs, outputs))
    fn: Callable[..., Any] = lambda w, x: lax.dot(x, w, preferred_element_type=SUMS[dtype])
    ours = xcoexec.jit(fn, strategy="host", threads=threads, strict=True).bind(w)
    plain = jax.jit(fn)
    calls: dict[str, Callable[[], object]] = {
        "kernels": lambda: ours(x).block_until_ready(),
        "jit": lambda: plain(w, x).block_until_ready(),
    }
    if dtype == "bfloat16" and find_spec("torch"):
        calls["torch"] = _torch(x, w, threads)
    samples: dict[str, list[float]] = {}
    seconds = alternate(calls, ROUNDS, SECONDS, samples=samples, slow=4.0)
    work = 2.0 * rows * inputs * outputs
    low, high = np.percentile(samples["kernels"], (25, 75))
    rates = {k: work / s for k, s in seconds.items()}
    (layer,) = ours.report().layers
    shape = (dtype, rows, inputs, outputs, unit.name, loop, rates["kernels"], (work / high, work / low))
    return Line(*shape, rates.get("jit"), rates.get("torch"), layer.algorithm)


def _torch(x: jax.Array, w: jax.Array, threads: int) -> Callable[[], object]:
    """The same product by PyTorch."""
    import torch

    torch.set_num_threads(threads)
    made = [torch.from_numpy(np.array(v, np.float32)).to(torch.bfloat16) for v in (x, w.T)]
    return lambda: torch.nn.functional.linear(*made)


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table; appends records to `matrix_units.jsonl` in the folder."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.matrix_units", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="out", type=pathlib.Path)
    parser.add_argument("--dtypes", nargs="*", default=list(SUMS), choices=list(SUMS))
    parser.add_argument("--rows", nargs="*", type=int, default=[32, 128, 512])
    parser.add_argument("--threads", type=int, default=config.threads(None))
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = [list(HEAD)]
    for dtype in given.dtypes:
        if target().unit(dtype) is None:
            print(f"{dtype}: this CPU has no products of it")
            continue
        loop = peaks.products(dtype, given.threads)
        for n, (k, m) in ((n, shape) for n in given.rows for shape in SHAPES):
            line = measured(dtype, n, k, m, given.threads, loop)
            rows.append(line.row())
            print(" ".join(rows[-1]), flush=True)
            about = {"commit": commit(), "began": time.strftime("%Y-%m-%dT%H:%M:%S"), "threads": given.threads}
            append(given.folder / "matrix_units.jsonl", {**dataclasses.asdict(line), **environment(), **about})
    print(columns(rows, (*range(1, 4), *range(5, 10))))


if __name__ == "__main__":
    main()
