"""How a function with resident weights follows its machine: other processes take half the cores, and give them back.

    python -m benchmarks.drift FOLDER [MODEL...] [--precision highest]

Calls go on all the time; the record holds their times, what the runtime noticed and decided, and how long it took until
calls were back within 10 % of the best plan for the new situation (found afterwards, by planning again in peace).
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import time
from typing import Any

import jax
import numpy as np
from rich.console import Console

import xcoexec
from xcoexec import models
from xcoexec.config import cores
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate
from xcoexec.tools.oracle import error

from .gpu import gpu_parser, on_gpu, where

SECONDS = 14.0
WINDOW = 0.2
NEAR = 1.10


def burn() -> None:
    """Keeps one core busy."""
    x = 1.0
    while True:
        x = x * 1.0000001 + 1e-9


def watch(fast: Any, x: Any, want: np.ndarray, seconds: float) -> tuple[list[tuple[float, float]], int, int]:
    """((time, seconds of a call), ...) of calls one after the other, how many there were, and how many were wrong."""
    times, wrong, begin = [], 0, time.perf_counter()
    while (now := time.perf_counter()) < begin + seconds:
        out = jax.block_until_ready(fast(x))
        times.append((now - begin, time.perf_counter() - now))
        if len(times) % 16 == 0:
            wrong += not error(np.asarray(jax.tree_util.tree_leaves(out)[0]), want) < 1e-2
    return times, len(times), wrong


def medians(times: list[tuple[float, float]]) -> list[float]:
    """Median seconds of the calls that began in each whole window (infinite where none did)."""
    return [
        float(np.median([s for t, s in times if w <= t < w + WINDOW] or [np.inf]))
        for w in np.arange(0, times[-1][0] - WINDOW, WINDOW)
    ]


def back(windows: list[float], best: float) -> float | None:
    """Seconds until the median of a window stays within 10 % of the best plan's time for three windows; None when it
    never does.
    """
    good = [m <= NEAR * best for m in windows]
    return next((i * WINDOW for i in range(len(good) - 2) if all(good[i : i + 3])), None)


def run(name: str, precision: str) -> dict[str, Any]:
    entry = models.get(name)
    with jax.default_matmul_precision(precision):
        x, weights = entry.example(), entry.variables()
        fast = xcoexec.jit(entry.module.apply, strict=True).bind(weights)
        want = np.asarray(jax.tree_util.tree_leaves(fast(x))[0])
        quiet, _, _ = watch(fast, x, want, 3.0)
        session = fast.session()
        burners = [multiprocessing.get_context("spawn").Process(target=burn, daemon=True) for _ in range(cores() // 2)]
        phases = {}
        for phase in ("burning", "quiet again"):
            for b in burners:
                b.start() if phase == "burning" else b.terminate()
            time.sleep(0.5)
            noticed = len(fast.history())
            times, calls, wrong = watch(fast, x, want, SECONDS)
            windows = medians(times)
            both = {"used": session.current, "fresh": session.planner.again()}
            timed = {k: functools.partial(session.problem.run, exe) for k, exe in both.items()}
            seconds = alternate(timed, 5, 0.1)
            best = min(seconds.values())
            phases[phase] = {
                "calls": calls,
                "wrong": wrong,
                "median_start": float(np.median([s for t, s in times if t < 0.5])),
                "median_end": float(np.median([s for t, s in times if t > SECONDS - 3])),
                "used_and_fresh": seconds,
                "back_after": back(windows, best),
                "history": fast.history()[noticed:],
                "windows": [w if np.isfinite(w) else 0.0 for w in windows],
            }
    return {
        "model": name,
        "precision": precision,
        "machine": where(),
        "quiet": float(np.median([s for _, s in quiet])),
        "phases": phases,
    }


HEAD = (
    "model",
    "phase",
    "quiet ms",
    "at first ms",
    "at the end ms",
    "best plan ms",
    "back within 10 % after s",
    "calls",
    "wrong",
)


def rows(r: dict[str, Any]) -> list[list[str]]:
    out = []
    for phase, p in r["phases"].items():
        times = (r["quiet"], p["median_start"], p["median_end"], min(p["used_and_fresh"].values()))
        after = "never" if p["back_after"] is None else f"{p['back_after']:.1f}"
        out.append([r["model"], phase, *(f"{t * 1e3:.3f}" for t in times), after, str(p["calls"]), str(p["wrong"])])
    return out


def main() -> None:
    parser = gpu_parser("drift", __doc__)
    parser.add_argument("models", nargs="*", default=["resnet18", "squeezenet"])
    parser.add_argument("--precision", default="highest")
    args = on_gpu(parser)
    records = [run(m, args.precision) for m in args.models]
    (args.folder / "drift.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    Console(width=160).print(table(where(), HEAD, [row for r in records for row in rows(r)], right=range(2, len(HEAD))))
    for r in records:
        for phase, p in r["phases"].items():
            print(r["model"], phase, *p["history"], sep="\n  ")


if __name__ == "__main__":
    main()
