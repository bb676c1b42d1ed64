"""Which algorithm an operation gets: measured once on this machine, alone and on made data, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable

import numpy as np

from .build import read_cache, source_hash, write_cache
from .program import Op, Value, format_params
from .target import Target

Alone = Callable[[Op, str, int, Target], Callable[[], object]]  # (operation, algorithm, threads, target) -> a call of it
SECONDS = 0.01  # of one algorithm in one round
ROUNDS = 3
GAIN = 0.93  # another algorithm than the first replaces it when it takes less than this share of its time
_known: dict[str, str] = {}


def default(op: Op, names: tuple[str, ...], threads: int) -> str:
    """The first algorithm, without a measurement."""
    return names[0]


def measured(alone: Alone, target: Target, op: Op, names: tuple[str, ...], threads: int) -> str:
    """The fastest algorithm for an operation of these shapes."""
    key = signature(op, names, threads, target)
    if key not in _known:
        stored = read_cache(f"{key}.json")
        _known[key] = json.loads(stored)["chosen"] if stored else _measure(alone, target, op, names, threads, key)
    return _known[key]


def signature(op: Op, names: tuple[str, ...], threads: int, target: Target) -> str:
    shapes = [v.shape if isinstance(v, Value) else v.val for v in op.ins]
    text = f"{op.prim} {shapes} {format_params(op.params)} {op.params.get('dimension_numbers')} {names} {threads} {target} {source_hash()}"
    return f"pick-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _measure(alone: Alone, target: Target, op: Op, names: tuple[str, ...], threads: int, key: str) -> str:
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names:  # one at a time: only one algorithm's packed weights are there
        call = alone(op, name, threads, target)
        call()
        for _ in range(ROUNDS):
            end = time.perf_counter() + SECONDS
            while True:
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
                if time.perf_counter() > end:
                    break
    seconds = {name: float(np.median(t)) for name, t in times.items()}
    best = min(names, key=lambda n: seconds[n])
    chosen = best if seconds[best] < GAIN * seconds[names[0]] else names[0]
    write_cache(f"{key}.json", json.dumps({"chosen": chosen, "seconds": seconds}).encode())
    return chosen
