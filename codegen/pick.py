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

Alone = Callable[[Op, str, int, Target], tuple[Callable[[], object], int]]  # (operation, algorithm, threads, target) -> a call of it, packed bytes
CALLS = 15  # of one algorithm
COLD_BYTES = 1 << 22  # packed weights from this size on come from memory, not from a cache, when their turn comes
FLUSH_BYTES = 1 << 26  # more than the last-level cache holds
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
    seconds: dict[str, float] = {}
    for name in names:  # one at a time: only one algorithm's packed weights are there
        call, packed = alone(op, name, threads, target)
        flush = np.zeros(FLUSH_BYTES // 8) if packed >= COLD_BYTES else None
        times = []
        for _ in range(CALLS + 1):
            if flush is not None:
                flush += 1
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        seconds[name] = float(np.median(times[1:]))
    best = min(names, key=lambda n: seconds[n])
    chosen = best if seconds[best] < GAIN * seconds[names[0]] else names[0]
    write_cache(f"{key}.json", json.dumps({"chosen": chosen, "seconds": seconds}).encode())
    return chosen
