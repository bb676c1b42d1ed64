"""`python -m benchmarks.matrix_units [folder]`: products of bf16 and int8 beside a bare loop of the CPU's instruction.

A line for each number of rows: a chain of dense layers as a language model has them, [width, hidden] and back with an
activation between, sums rounded to the type again. Operations a second on kernels, by `jax.jit` on the CPU and by
PyTorch (bf16 alone), where that is installed, in turn in one process, and the share of what a loop of nothing but the
unit's products reaches with as many threads in the same run; "products": the same of the products' own steps.

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

SUMS = {"bfloat16": jnp.float32, "int8": jnp.int32}
DEPTH = 4  # pairs of layers
PRODUCTS = ("gemm", "tiles")
SCALE = 2.0**-9  # of whole numbers' sums
ROUNDS, SECONDS = 7, 0.3
HEAD = (
    *("type", "rows", "width", "hidden", "unit"),
    *("bare loop", "kernels", "share", "products", "jax.jit", "PyTorch", "ran"),
)


@dataclasses.dataclass(frozen=True)
class Line:
    """Operations a second of a chain; None where a contestant did not run. `spread`: quartiles of `kernels`."""

    dtype: str
    rows: int
    width: int
    hidden: int
    unit: str
    loop: float
    kernels: float
    spread: tuple[float, float]
    products: float
    jit: float | None
    torch: float | None
    ran: str

    def row(self) -> list[str]:
        """Under `HEAD`, in GFLOP/s (of int8 GOP/s)."""
        giga = lambda x: "-" if x is None else f"{x / 1e9:.0f}"
        share = lambda x: f"{x / self.loop:.0%}"
        shape = [self.dtype, *map(str, (self.rows, self.width, self.hidden)), self.unit]
        mine = [giga(self.loop), giga(self.kernels), share(self.kernels), share(self.products)]
        return [*shape, *mine, giga(self.jit), giga(self.torch), self.ran]


def chain(ws: Sequence[Any], x: Any) -> Any:
    """The layers' results, of the type of x."""
    dtype = str(x.dtype)
    for i, w in enumerate(ws):
        sums = lax.dot(x, w, preferred_element_type=SUMS[dtype])
        sums = jnp.maximum(sums, 0) if i % 2 == 0 else sums
        x = sums.astype(dtype) if dtype == "bfloat16" else _bytes(sums)
    return x


def _bytes(sums: Any) -> Any:
    return jnp.clip(jnp.round(sums.astype(jnp.float32) * SCALE), -127, 127).astype(jnp.int8)


def line_of(dtype: str, rows: int, width: int, hidden: int, threads: int, loop: float) -> Line:
    """A line of the table, of medians."""
    rng, unit = np.random.default_rng(0), target().unit(dtype)
    assert unit is not None
    scale = width**-0.5 if dtype == "bfloat16" else 1.0
    numbers = lambda *shape, by=1.0: jnp.asarray((by * rng.integers(-8, 9, shape)).astype(dtype))
    shapes = DEPTH * [(width, hidden), (hidden, width)]
    x, ws = numbers(rows, width), [numbers(*shape, by=scale / 8) for shape in shapes]
    ours = xcoexec.jit(chain, strategy="host", threads=threads, strict=True).bind(ws)
    plain = jax.jit(chain)
    calls: dict[str, Callable[[], object]] = {
        "kernels": lambda: ours(x).block_until_ready(),
        "jit": lambda: plain(ws, x).block_until_ready(),
    }
    if dtype == "bfloat16" and find_spec("torch"):
        calls["torch"] = _torch(x, ws, threads)
    samples: dict[str, list[float]] = {}
    seconds = alternate(calls, ROUNDS, SECONDS, samples=samples, slow=4.0)
    work = 4.0 * DEPTH * rows * width * hidden
    low, high = np.percentile(samples["kernels"], (25, 75))
    rates = {k: work / s for k, s in seconds.items()}
    report = ours.report()
    ran = sorted({x.algorithm for x in report.layers})
    mine = (rates["kernels"], (work / high, work / low), work / _product_seconds(ours))
    return Line(dtype, rows, width, hidden, unit.name, loop, *mine, rates.get("jit"), rates.get("torch"), " ".join(ran))


def _product_seconds(ours: Any) -> float:
    """Median seconds of the steps that multiply, of the last calls."""
    lowered = ours.session().current.lowered
    total = 0.0
    for unit in lowered.segments:
        seconds = np.median(np.diff(unit.segment.stamps(), axis=1), axis=0) * 1e-9
        total += sum(s for s, step in zip(seconds, unit.segment.steps, strict=True) if step.kernel in PRODUCTS)
    return total


def _torch(x: jax.Array, ws: Sequence[jax.Array], threads: int) -> Callable[[], object]:
    """The same chain by PyTorch."""
    import torch

    torch.set_num_threads(threads)
    narrow = lambda v: torch.from_numpy(np.array(v, np.float32)).to(torch.bfloat16)
    given, weights = narrow(x), [narrow(w.T) for w in ws]

    def call() -> object:
        y = given
        with torch.inference_mode():
            for i, w in enumerate(weights):
                y = torch.nn.functional.linear(y, w)
                y = y.relu() if i % 2 == 0 else y
        return y

    return call


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table; appends records to `matrix_units.jsonl` in the folder."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.matrix_units", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="out", type=pathlib.Path)
    parser.add_argument("--dtypes", nargs="*", default=list(SUMS), choices=list(SUMS))
    parser.add_argument("--rows", nargs="*", type=int, default=[32, 128, 512])
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--hidden", type=int, default=5632)
    parser.add_argument("--threads", type=int, default=config.threads(None))
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = [list(HEAD)]
    for dtype in given.dtypes:
        if target().unit(dtype) is None:
            print(f"{dtype}: this CPU has no products of it")
            continue
        loop = peaks.products(dtype, given.threads)
        for n in given.rows:
            line = line_of(dtype, n, given.width, given.hidden, given.threads, loop)
            rows.append(line.row())
            print(" ".join(rows[-1]), flush=True)
            about = {"commit": commit(), "began": time.strftime("%Y-%m-%dT%H:%M:%S"), "threads": given.threads}
            append(given.folder / "matrix_units.jsonl", {**dataclasses.asdict(line), **environment(), **about})
    print(columns(rows, (*range(1, 4), *range(5, 11))))


if __name__ == "__main__":
    main()
