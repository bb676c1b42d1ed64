"""`python -m benchmarks.step_race [model ...]`: what callers of a training step see while its plan is compared.

A loop of steps as users write it, whose loss is read now and then. A line for each network, as soon as it is known:
milliseconds of a step with `jax.jit`, and of `xcoexec.jit` while it plans behind the calls, while the plan and
`jax.jit` take the calls in turn, and afterwards, beside `jax.jit` in blocks that take turns; what has won, and why.

A network gets `--seconds`, of which planning may take `--plan`; it ends there as with XCOEXEC_PLAN_SECONDS, and a step
stays with `jax.jit`. "until" says what the blocks of the last columns were measured in: "settled", or what still went
on when the time was over ("planning", "racing"). With `--out` each line is a record too.

    python -m benchmarks.step_race --batch 2 --out steps.jsonl
    benchmarks/edge_slice 6 python -m benchmarks.step_race lenet resnet18
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental.compilation_cache.compilation_cache import reset_cache

import xcoexec
from xcoexec.ir.text import columns, milliseconds
from xcoexec.papers.source import commit
from xcoexec.session.race import GOES_ON
from xcoexec.tools.lines import append
from xcoexec.tools.machine import environment

from .train_cases import BATCHES, CASES
from .train_steps import Training, copied

MODELS = (
    *("lenet", "mlp", "gpt", "resnet18", "squeezenet", "vit_s16"),
    *("mobilenet_v2", "resnet50", "convnext_t", "efficientnet_b0"),
)
READ, READ_SECONDS = 20, 0.25  # most steps, and about the most seconds, between two looks at the loss
BLOCK_SECONDS, ROUNDS, LEAST_ROUNDS = 0.5, 9, 3
HEAD = (
    *("model", "batch", "jax.jit ms", "planning", "racing", "steps", "afterwards", "times faster"),
    *("until", "took s", "ran", "why"),
)


class Loop:
    """Steps from a first state on; `seconds(least)`: seconds of a step, of a loop that takes `least` seconds."""

    def __init__(self, call: Callable[..., Any], training: Training):
        self._call, self._state, self.steps = call, copied(training.state()), 0
        self._data = [training.data(i) for i in range(BATCHES)]
        self._read = 1

    def seconds(self, least: float = 0.0) -> float:
        """One look at the loss at least."""
        began, before = time.perf_counter(), self.steps
        while True:
            for _ in range(self._read):
                self._state, loss = self._call(self._state, self._data[self.steps % BATCHES])
                self.steps += 1
            float(loss)
            one = (time.perf_counter() - began) / (self.steps - before)
            self._read = min(max(int(READ_SECONDS / one), 1), READ)
            if time.perf_counter() - began >= least:
                return one

    def report(self) -> Any:
        """What the report says of the step."""
        return self._call.report(self._state, self._data[0])


@dataclasses.dataclass
class Seen:
    """What a network's caller has seen so far: seconds of a step by phase; `pairs`: of (`jax.jit`, ours) by round."""

    model: str
    batch: int
    alone: float = float("nan")
    planning: list[float] = dataclasses.field(default_factory=list)
    racing: list[float] = dataclasses.field(default_factory=list)
    raced: int = 0  # steps while racing
    pairs: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    until: str = "settled"
    took: float = 0.0
    ran: str = "-"
    why: str = "-"

    def row(self) -> list[str]:
        """Under `HEAD`."""
        found = np.array(self.pairs or [(np.nan, np.nan)])
        times = "{:.3f} ({:.3f}-{:.3f})".format(*np.percentile(found[:, 0] / found[:, 1], (50, 25, 75)))
        one = lambda xs, mean=np.median: milliseconds(float(mean(xs))) if len(xs) else "-"
        row = [self.model, str(self.batch), milliseconds(self.alone), one(self.planning), one(self.racing, np.mean)]
        row += [str(self.raced), one(found[:, 1]), times if self.pairs else "-"]
        return [*row, self.until, f"{self.took:.0f}", self.ran, self.why]


def watched(name: str, batch: int, seconds: float) -> Seen:
    """What a caller sees of a network's step; no phase begins when so many seconds are over."""
    began, seen = time.perf_counter(), Seen(name, batch)
    left = lambda share: time.perf_counter() - began < share * seconds
    training = Training(name, batch)
    plain, ours = jax.jit(training.step, donate_argnums=0), xcoexec.jit(training.step, donate_argnums=0)
    jit, mine = Loop(plain, training), Loop(ours, training)
    jit.seconds()
    jit.seconds(BLOCK_SECONDS)
    seen.alone = jit.seconds(BLOCK_SECONDS)
    mine.seconds()
    seen.planning.append(mine.seconds())
    while (plans := not ours.ready(0.0)) and left(0.7):
        seen.planning.append(mine.seconds())
    first, races = mine.steps, False
    while not plans and (races := GOES_ON in mine.report().why) and left(0.8):
        seen.racing.append(mine.seconds())
    seen.raced = mine.steps - first
    seen.until = "planning" if plans else "racing" if races else "settled"
    seen.pairs += _rounds(jit, mine, left)
    report = mine.report()
    seen.ran, seen.why, seen.took = report.ran, report.why, time.perf_counter() - began
    return seen


def _rounds(jit: Loop, mine: Loop, left: Callable[[float], bool]) -> Iterator[tuple[float, float]]:
    """Seconds of a step of both, whose blocks take turns; every round begins with the other one."""
    for r in range(ROUNDS):
        if r >= LEAST_ROUNDS and not left(1.0):
            return
        pair = [loop.seconds(BLOCK_SECONDS) for loop in (jit, mine)[:: 1 if r % 2 else -1]]
        yield (pair[0], pair[1]) if r % 2 else (pair[1], pair[0])


@contextlib.contextmanager
def compiled_once() -> Iterator[None]:
    """What one of the two has compiled the other one reads."""
    before = jax.config.jax_compilation_cache_dir
    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        try:
            yield
        finally:
            jax.config.update("jax_compilation_cache_dir", before)
            reset_cache()  # JAX goes on with the folder that it has begun with


def main(argv: Sequence[str] | None = None) -> None:
    """Prints each line as it comes, then the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.step_race", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=MODELS, help=f"default: {', '.join(MODELS)}")
    parser.add_argument("--batch", type=int, help="instead of each network's own")
    parser.add_argument("--seconds", type=float, default=40.0, help="about the most that a network takes")
    parser.add_argument("--plan", type=float, default=15.0, help="the most seconds of a planning")
    parser.add_argument("--out", type=pathlib.Path, help="a file to which records are appended")
    given = parser.parse_args(argv)
    os.environ["XCOEXEC_PLAN_SECONDS"] = str(given.plan)
    rows = [list(HEAD)]
    with compiled_once():
        for name in given.models:
            seen = watched(name, given.batch or CASES.get(name, 8), given.seconds)
            rows.append(seen.row())
            print(", ".join(f"{k} {v}" for k, v in zip(HEAD, rows[-1], strict=True)), flush=True)
            if given.out:
                append(given.out, {**dataclasses.asdict(seen), **environment(), "commit": commit(), "plan": given.plan})
    print(columns(rows, range(2, 8)))


if __name__ == "__main__":
    main()
