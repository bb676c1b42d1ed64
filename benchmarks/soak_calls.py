"""Calls from many threads while functions are dropped and made anew, plans change and memory runs out.

    python -m benchmarks.soak_calls [--calls 1000000] [--threads 8] [--seconds S] [--faults 0.05] [--plain]
    python -m benchmarks.soak_calls --build 600 [--plain]

Every result is compared with float64 NumPy: none may be wrong. Beside the callers one thread drops functions (from
`jit` and `bind`) and makes them anew, and one makes functions plan again or swaps their executables. Now and then the
memory for a call is refused, which has to end in plain `jax.jit` or in an error that says so; now and then a function
is called with new weights. Memory, threads and file descriptors are sampled after a warm-up and must not grow.
`--plain`: the same with `jax.jit` alone. `--build`: makes, calls and drops so many functions one after the other.
Ends with 1 if a result is wrong or something grows.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import gc
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("XCOEXEC_ADAPT", "1")

import jax
import numpy as np

import xcoexec
from xcoexec.codegen.native import layout
from xcoexec.codegen.runtime import host
from xcoexec.ir.plan import Plan
from xcoexec.session import adaptive
from xcoexec.session.contest import forced
from xcoexec.session.session import Session
from xcoexec.tools.oracle import oracle

from .soak import resident

TOLERANCE = 1e-4  # of the largest absolute value of a result
SAMPLE, DROP, CHANGE = 2.0, 1.0, 0.3  # seconds between samples, drops, changes of plan
OTHER = 2e-4  # share of the calls of a function from jit with other weights: each is packed anew
WARM = 0.25  # share of the calls before the first sample that counts
GROWTH, MORE = 0.10, 3  # of resident memory, and threads or descriptors more, that count as growth
NO_MEMORY = "no memory left"
ENOMEM = 12
STRATEGIES = ("auto", "host", "edgenn")


# -- functions -------------------------------------------------------------------------------------------------------


def _dense(w: Any, x: Any) -> Any:
    return jax.nn.softmax(jax.nn.relu(x @ w[0] + w[1]) @ w[2])


def _conv(w: Any, x: Any) -> Any:
    x = jax.nn.relu(jax.lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x.mean((1, 2)) @ w[1]


def _norm(w: Any, x: Any) -> Any:
    x = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    return jax.numpy.tanh(x * w[0] + w[1]) @ w[2]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A function, the shapes of its weights, and those of the inputs that it is called with."""

    fn: Callable[..., Any]
    weights: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[int, ...], ...]


KINDS = (
    Kind(_dense, ((40, 64), (64,), (64, 24)), ((1, 40), (3, 40), (17, 40))),
    Kind(_conv, ((3, 3, 5, 12), (12, 7)), ((1, 8, 8, 5), (2, 7, 9, 5))),
    Kind(_norm, ((48,), (48,), (48, 19)), ((1, 48), (5, 48))),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A kind with two sets of weights, inputs, and the results that are right (by set, then by input)."""

    kind: Kind
    weights: list[list[Any]]
    inputs: list[Any]
    wants: list[list[np.ndarray]]


def case(kind: Kind, seed: int) -> Case:
    rng = np.random.default_rng(seed)
    made = lambda shape: jax.numpy.asarray((rng.standard_normal(shape) * 0.3).astype(np.float32))
    weights, inputs = [[made(s) for s in kind.weights] for _ in range(2)], [made(s) for s in kind.inputs]
    return Case(kind, weights, inputs, [[oracle(kind.fn, w, x) for x in inputs] for w in weights])


def function(c: Case, rng: random.Random, plain: bool) -> tuple[Callable[[int, Any], Any], Any]:
    """A new function object, as a function of (set of weights, input); and the one with resident weights, if it is one.

    One with resident weights has the first set of weights alone.
    """
    fn = lambda w, x: c.kind.fn(w, x)
    made = jax.jit(fn) if plain else xcoexec.jit(fn, strategy=rng.choice(STRATEGIES), threads=rng.choice((1, 2, 3)))
    if plain or rng.random() < 0.5:
        return lambda k, x: made(c.weights[k], x), None
    fast = made.bind(c.weights[0])
    return lambda k, x: fast(x), fast


# -- what disturbs the calls -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def refused(share: float) -> Iterator[Counter[str]]:
    """Inside, this share of all requests for the memory of a call is refused."""
    count: Counter[str] = Counter()
    table = host.team().libc
    real, rng = int(table[layout.Libc.MEMALIGN // 8]), random.Random(1)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    memalign = kind(real)

    def request(out: int, align: int, size: int) -> int:
        no = rng.random() < share
        count["refused" if no else "given"] += 1
        return ENOMEM if no else memalign(out, align, size)

    hook = kind(request)
    table[layout.Libc.MEMALIGN // 8] = ctypes.cast(hook, ctypes.c_void_p).value
    try:
        yield count
    finally:
        table[layout.Libc.MEMALIGN // 8] = real


def change(fast: Any, rng: random.Random) -> str:
    """Makes a function with resident weights plan again, or swaps its executable for one of another plan; says
    which.
    """
    session = fast.session()
    if not isinstance(session, Session):
        return "nothing to change"
    monitor, planner = session.monitor, session.planner
    what = rng.choice(("quick", "full", "split", "host", "plain"))
    if what in ("quick", "full"):
        monitor._begin(monitor._steps if what == "full" else monitor._steps[:1])
        return what
    plan = Plan.uniform(1.0 if what == "host" else 0.5, "channel")
    other = {"plain": lambda: planner.fallback("auto", "asked for")}
    new = other.get(what, lambda: planner.executable(forced(session.graph, plan)))()
    monitor._swap(new, 0.0, True)
    return f"swap to {what}"


# -- the soak --------------------------------------------------------------------------------------------------------


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


class Soak:
    """The state that callers and disturbers share. `slots`: (function, its case, the one with resident weights or
    None).
    """

    def __init__(self, calls: int, seconds: float, plain: bool):
        self.plain, self.most, self.end = plain, calls, time.monotonic() + seconds
        self.cases = [case(kind, seed) for seed in range(3) for kind in KINDS]
        self.slots = [(*function(c, random.Random(i), plain), c) for i, c in enumerate(self.cases)]
        self.outcomes: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.samples: list[tuple[int, float, int, int]] = []
        self.wrong: list[str] = []
        self.done = 0
        self._lock = threading.Lock()

    def over(self) -> bool:
        return self.done >= self.most or time.monotonic() > self.end

    def call(self, seed: int) -> None:
        """One caller's life."""
        rng, outcomes, n = random.Random(seed), Counter[str](), 0
        while not self.over():
            fn, fast, c = rng.choice(self.slots)
            k = int(fast is None and rng.random() < OTHER)
            outcomes[self._one(fn, c, k, rng.randrange(len(c.inputs)))] += 1
            n += 1
            if n % 64 == 0:
                with self._lock:
                    self.done += 64
        with self._lock:
            self.outcomes += outcomes

    def _one(self, fn: Callable[[int, Any], Any], c: Case, k: int, i: int) -> str:
        try:
            got = np.asarray(fn(k, c.inputs[i]), np.float64)
        except Exception as e:
            if NO_MEMORY in str(e):
                return "refused"
            self.wrong.append(f"{type(e).__name__}: {str(e)[:300]}")
            return "RAISED"
        want = c.wants[k][i]
        if got.shape == want.shape and np.abs(got - want).max() <= TOLERANCE * np.abs(want).max():
            return "right"
        name = f"{c.kind.fn.__name__} of {c.inputs[i].shape} with weights {k}"
        self.wrong.append(f"{name}: {got.ravel()[:4]} where {want.ravel()[:4]} is right")
        return "WRONG"

    def drop(self) -> None:
        rng = random.Random("drop")
        while not self.over():
            k = rng.randrange(len(self.slots))
            c = self.cases[k]
            fn, fast = function(c, rng, self.plain)
            fn(0, c.inputs[0])
            self.slots[k] = (fn, fast, c)
            self.events["dropped"] += 1
            time.sleep(DROP)

    def disturb(self) -> None:
        rng = random.Random("change")
        while not self.over():
            fast = rng.choice(self.slots)[1]
            if fast is not None:
                self.events[change(fast, rng)] += 1
            time.sleep(CHANGE)

    def guarded(self, work: Callable[[], None]) -> None:
        """A disturber may meet a refused request as well, and goes on."""
        while not self.over():
            try:
                work()
            except Exception as e:
                if NO_MEMORY not in str(e):
                    self.wrong.append(f"{work.__name__}: {type(e).__name__}: {str(e)[:300]}")
                self.events[f"{work.__name__} met {type(e).__name__}"] += 1

    def sample(self) -> None:
        while not self.over():
            time.sleep(SAMPLE)
            gc.collect()
            self.samples.append((self.done, resident(), threads(), open_files()))

    def run(self, count: int) -> None:
        work: list[Callable[[], None]] = [lambda s=s: self.call(s) for s in range(count)]  # type: ignore[misc]
        work += [lambda: self.guarded(self.drop), self.sample]
        if not self.plain:
            work.append(lambda: self.guarded(self.disturb))
        all_threads = [threading.Thread(target=w) for w in work]
        for t in all_threads:
            t.start()
        for t in all_threads:
            t.join()

    def growth(self) -> list[str]:
        """One line for each of memory, threads and descriptors; those that grow say so."""
        kept = [s for s in self.samples if s[0] >= WARM * self.done]
        lines = []
        columns = (("memory", " MB", 0.0), ("threads", "", MORE), ("descriptors", "", MORE))
        for column, (name, unit, most) in enumerate(columns, 1):
            at, values = np.array([s[0] for s in kept], float), np.array([s[column] for s in kept], float)
            if len(kept) < 4 or at[0] == at[-1]:
                lines.append(f"{name}: too few samples")
                continue
            slope = float(np.polyfit(at / 1e5, values, 1)[0])
            grown = slope * (at[-1] - at[0]) / 1e5
            bad = bool(grown > (most or GROWTH * values[0]))
            text = f"{values[0]:.0f} to {values[-1]:.0f}{unit}, slope {slope:+.3f}{unit} per 100,000 calls"
            lines.append(f"{name}: {text}{' GROWS' * bad}")
        return lines


def build(count: int, plain: bool) -> None:
    """Makes, calls and drops different functions one after the other."""
    rng, before = random.Random(0), None
    cases = [case(kind, 0) for kind in KINDS]
    for i in range(count):
        c = cases[i % len(cases)]
        fn, fast = function(c, rng, plain)
        for x, want in zip(c.inputs, c.wants[0], strict=True):
            assert np.abs(np.asarray(fn(0, x)) - want).max() <= TOLERANCE * np.abs(want).max()
        del fn, fast
        if i % 50 == 49:
            gc.collect()
            held = f"{resident():.0f} MB, {threads()} threads, {open_files()} descriptors"
            print(f"{i + 1} functions: {held}", flush=True)
            before = before or resident()
    print(f"{count} functions built and dropped, {resident() - (before or 0):+.0f} MB since the 50th")


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks.soak_calls", description=__doc__, formatter_class=raw)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--faults", type=float, default=0.05, help="share of the requests for memory that are refused")
    parser.add_argument("--build", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.setswitchinterval(1e-4)  # threads take turns often
    adaptive.SETTLE_SECONDS = 0.2
    if args.build:
        return build(args.build, args.plain)
    began, soak = time.monotonic(), Soak(args.calls, args.seconds, args.plain)
    with refused(0.0 if args.plain else args.faults) as memory:
        soak.run(args.threads)
    took = time.monotonic() - began
    lines = soak.growth()
    print(f"{sum(soak.outcomes.values())} calls from {args.threads} threads in {took:.0f} s: {dict(soak.outcomes)}")
    print(f"meanwhile: {dict(soak.events)}; memory {dict(memory)}")
    print("\n".join((*lines, *(f"BAD: {w}" for w in soak.wrong[:20]))))
    sys.exit(1 if soak.wrong or any("GROWS" in x for x in lines) else 0)


if __name__ == "__main__":
    main()
