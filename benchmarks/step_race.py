"""`python -m benchmarks.step_race [model ...]`: what callers of a training step see while its plan is compared.

A loop of steps as users write it, whose loss is read every `READ` steps. Printed for each network: milliseconds of a
step with `jax.jit`, and of `xcoexec.jit` while it plans behind the calls, while the plan and `jax.jit` take the calls
in turn, and afterwards, beside `jax.jit` in blocks that take turns; what has won, and why.

    benchmarks/edge_slice 6 python -m benchmarks.step_race lenet resnet18
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec.ir.text import columns
from xcoexec.session.race import GOES_ON

from .train_cases import BATCHES, CASES
from .train_steps import Training, copied

READ = 20  # steps between two looks at the loss
BLOCK_SECONDS, ROUNDS = 1.0, 9
HEAD = ("model", "batch", "jax.jit ms", "planning", "racing", "steps", "afterwards", "times faster", "ran", "why")


class Loop:
    """Steps from a first state on; `seconds(least)`: seconds of a step, of a loop that takes `least` seconds."""

    def __init__(self, call: Callable[..., Any], training: Training):
        self._call, self._state, self.steps = call, copied(training.state()), 0
        self._data = [training.data(i) for i in range(BATCHES)]

    def seconds(self, least: float = 0.0) -> float:
        """At least `READ` steps."""
        began, before = time.perf_counter(), self.steps
        while True:
            for _ in range(READ):
                self._state, loss = self._call(self._state, self._data[self.steps % BATCHES])
                self.steps += 1
            float(loss)
            if time.perf_counter() - began >= least:
                return (time.perf_counter() - began) / (self.steps - before)

    def why(self) -> str:
        """What the report says of the step."""
        return str(self._call.report(self._state, self._data[0]).why)


def line(name: str, batch: int) -> list[str]:
    """A row under `HEAD`."""
    training = Training(name, batch)
    plain, ours = jax.jit(training.step, donate_argnums=0), xcoexec.jit(training.step, donate_argnums=0)
    jit, mine = Loop(plain, training), Loop(ours, training)
    jit.seconds(BLOCK_SECONDS)
    alone = jit.seconds(BLOCK_SECONDS)
    mine.seconds()
    planning = [mine.seconds()]
    while not ours.ready(0.0):
        planning.append(mine.seconds())
    racing, first = list[float](), mine.steps
    while GOES_ON in mine.why():
        racing.append(mine.seconds())
    raced = mine.steps - first
    pairs = [[loop.seconds(BLOCK_SECONDS) for loop in (jit, mine)[:: 1 if r % 2 else -1]] for r in range(ROUNDS)]
    seconds = np.array([pair if r % 2 else pair[::-1] for r, pair in enumerate(pairs)])
    ms = lambda xs: f"{1e3 * float(np.median(xs)):.3f}" if len(xs) else "-"
    row = [name, str(batch), ms([alone]), ms(planning), f"{1e3 * np.mean(racing):.3f}" if racing else "-", str(raced)]
    times = np.percentile(seconds[:, 0] / seconds[:, 1], (50, 25, 75))
    row += [ms(seconds[:, 1]), "{:.3f} ({:.3f}-{:.3f})".format(*times)]
    report = ours.report(mine._state, mine._data[0])
    return [*row, report.ran, report.why]


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.step_race", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["lenet", "resnet18"])
    parser.add_argument("--batch", type=int, help="instead of each network's own")
    given = parser.parse_args(argv)
    rows = [list(HEAD), *(line(name, given.batch or CASES.get(name, 8)) for name in given.models)]
    print(columns(rows, range(2, 8)))


if __name__ == "__main__":
    main()
