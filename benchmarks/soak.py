"""Eight tasks with bursts for a long time: no job is lost or answered twice, memory does not grow, the end comes at
once.

    python -m benchmarks.soak [--seconds 1800] [--load 0.3]

Every few seconds a burst of jobs comes on top of the periodic ones, some jobs are cancelled while they wait or run, and
one task's inputs are now and then of the wrong shape. Ends with 1 if anything is not as promised.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import time
from collections import Counter
from concurrent.futures import CancelledError, Future
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec import SkippedError, models
from xcoexec.streams import Scheduler, model
from xcoexec.streams.jobs import Task

NETWORKS = ("lenet", "mlp", "squeezenet", "mobilenet_v1")
TASKS, BURST, EVERY = 8, 40, 5.0  # jobs of a burst, seconds between bursts
LEAST_PERIOD = 0.02  # seconds: more jobs would only measure how fast they can be released
MOST_JOBS = 2000  # a second
GROWTH = 1.05  # of resident memory between the first quarter and the last


def resident() -> float:
    """Megabytes."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return float(line.split()[1]) / 1e3
    return float("nan")


class Answers:
    """How often each job was answered, and with what. All memory for it is there from the beginning: it must not look
    like growth.
    """

    def __init__(self, most: int) -> None:
        self.count = np.ones(most, np.uint8) - 1
        self.kinds: Counter[str] = Counter()
        self.asked = 0

    def watch(self, future: Future[Any], want: Any) -> None:
        number, self.asked = self.asked, self.asked + 1

        def done(f: Future[Any]) -> None:
            self.count[number] += 1
            try:
                got = jax.tree_util.tree_leaves(f.result())[0]
                right = float(np.abs(np.asarray(got) - want).max()) <= 1e-3 * float(np.abs(want).max()) + 1e-6
                self.kinds["right" if right else "WRONG"] += 1
            except CancelledError:
                self.kinds["cancelled"] += 1
            except SkippedError:
                self.kinds["skipped"] += 1
            except Exception as e:
                self.kinds[type(e).__name__] += 1

        future.add_done_callback(done)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--load", type=float, default=0.3)
    args = parser.parse_args()
    rng, nets = random.Random(0), {}
    for name in NETWORKS:
        entry = models.get(name)
        fast = xcoexec.jit(entry.module.apply, wait=True).bind(entry.variables())
        x = np.asarray(entry.example())
        want = np.asarray(jax.tree_util.tree_leaves(fast(x))[0])
        nets[name] = (model(fast, x), x, want)
    own = {n: sum(b.primary.seconds for b in m.blocks) for n, (m, _, _) in nets.items()}
    names = [NETWORKS[i % len(NETWORKS)] for i in range(TASKS)]
    deadline, tasks = 20 * max(own.values()), []
    for i, n in enumerate(names):
        made = nets[n][0]
        tasks.append(
            (
                made,
                Task(f"{n} {i}", made.blocks, deadline, max(own[n] * TASKS / args.load, LEAST_PERIOD), made.accuracy),
            )
        )
    answers, memory = Answers(int(args.seconds * MOST_JOBS)), []
    s = Scheduler(tasks, queue=32)
    begin = time.perf_counter()
    due = {t.name: begin + rng.random() * (t.period or 1) for _, t in tasks}
    burst = begin + EVERY
    while (now := time.perf_counter()) - begin < args.seconds:
        if now >= burst:
            burst += EVERY
            memory.append(resident())
            for _ in range(BURST):
                release(s, rng.choice(tasks)[1], nets, answers, rng)
        for _, t in tasks:
            if now >= due[t.name]:
                due[t.name] += t.period or 1
                release(s, t, nets, answers, rng)
        time.sleep(max(0.0, min(min(due.values()), burst) - time.perf_counter()))
    ended = time.perf_counter()
    s.stop()
    stopped = time.perf_counter() - ended
    served, quarter = s.served(), max(1, len(memory) // 4)
    grown = float(np.median(memory[-quarter:]) / np.median(memory[:quarter]))
    asked = answers.count[: answers.asked]
    lost, twice = int((asked == 0).sum()), int((asked > 1).sum())
    print(
        f"{answers.asked} jobs in {args.seconds:.0f} s: {dict(answers.kinds)}; lost {lost}, answered twice {twice};"
        f" counted {served.outcomes}"
    )
    print(
        f"missing rate {served.missing_rate:.2%}, cost {served.cost:.2%} of a core, memory x{grown:.3f}"
        f" ({memory[-1]:.0f} MB), stopped in {stopped:.3f} s"
    )
    bad = (
        lost
        or twice
        or answers.kinds["WRONG"]
        or grown > GROWTH
        or stopped > 1.0
        or sum(served.outcomes.values()) != answers.asked
    )
    sys.exit(1 if bad else 0)


def release(s: Scheduler, t: Task, nets: Any, answers: Answers, rng: random.Random) -> None:
    _, x, want = nets[t.name.split()[0]]
    future = s.release(t.name, x if rng.random() > 0.01 else x[:, :-1])
    answers.watch(future, want)
    if rng.random() < 0.02:
        future.cancel()


if __name__ == "__main__":
    main()
