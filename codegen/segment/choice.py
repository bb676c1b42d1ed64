"""Which algorithm a group of operations (or several) gets: measured once on this machine, alone and on made data, and
kept on disk.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import numpy as np

from ..native.build import source_hash
from ..program import Value, format_params
from ..store.disk import Record
from ..store.schema import MEASURED, Fields, Text
from ..target import Target
from .assembly import Groups

Alone = Callable[
    [Groups, str, int, Target], tuple[Callable[[], object], int]
]  # (groups, algorithm, threads, target) -> a call of them, packed bytes
ROUNDS, CALLS = 4, 3  # calls of one algorithm in each round
COLD_BYTES = 1 << 22  # packed weights from this size on come from memory, not from a cache, when their turn comes
FLUSH_BYTES = 1 << 26  # more than the last-level cache holds
GAIN = 0.93  # another algorithm than the first replaces it when it takes less than this share of its time
_known: dict[str, str] = {}
_kin: dict[str, str] = {}  # what operations of nearly the same shapes got


def default(groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """The first algorithm, without a measurement."""
    return names[0]


def measured(alone: Alone, target: Target, groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """The fastest algorithm for operations of these shapes."""
    key = signature(groups, names, threads, target)
    if key not in _known:
        stored = _record(names).load(key)
        _known[key] = stored["chosen"] if stored else _measure(alone, target, groups, names, threads, key)
    _kin[kinship(groups, names)] = _known[key]
    return _known[key]


def _record(names: tuple[str, ...]) -> Record:
    """What is kept of a choice among algorithms."""
    return Record("pick", Fields({"chosen": Text(names), "seconds": Fields(dict.fromkeys(names, MEASURED))}))


def likely(groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """What nearly the same operations got, without a measurement: for plans that are needed at once."""
    return _kin.get(kinship(groups, names), names[0])


def kinship(groups: Groups, names: tuple[str, ...]) -> str:
    """As `signature`, but for the sizes that a split changes."""
    text = [str(names)]
    for group, consts in groups:
        text += [
            f"{op.prim}{[v.shape[:-1] for v in op.ins if v in consts]}{op.params.get('window_strides')}"
            for op in group.ops
        ]
    return "|".join(text)


def signature(groups: Groups, names: tuple[str, ...], threads: int, target: Target) -> str:
    ids: dict[Value, int] = {}
    text = [f"{names} {threads} {target} {source_hash()}"]
    for group, consts in groups:
        for op in group.ops:
            ins = [
                f"{ids.setdefault(v, len(ids))}:{v}:{v in consts}" if isinstance(v, Value) else repr(v) for v in op.ins
            ]
            outs = [f"{ids.setdefault(v, len(ids))}:{v}" for v in op.outs]
            text.append(f"{outs}={op.prim}{ins}[{format_params(op.params)},{op.params.get('dimension_numbers')}]")
    return f"pick-{hashlib.sha256(chr(10).join(text).encode()).hexdigest()[:24]}"


def _measure(alone: Alone, target: Target, groups: Groups, names: tuple[str, ...], threads: int, key: str) -> str:
    made = {name: alone(groups, name, threads, target) for name in names}
    flush = np.zeros(FLUSH_BYTES // 8) if any(packed >= COLD_BYTES for _, packed in made.values()) else None
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        for name, (call, _) in made.items():  # in turn, so that a change of the machine's speed meets all of them
            call()
            for _ in range(CALLS):
                if flush is not None:
                    flush += 1
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    seconds = {name: float(np.percentile(t, 25)) for name, t in times.items()}
    best = min(names, key=lambda n: seconds[n])
    chosen = best if seconds[best] < GAIN * seconds[names[0]] else names[0]
    _record(names).store(key, {"chosen": chosen, "seconds": seconds})
    return chosen
