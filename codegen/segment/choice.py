"""Which algorithm a group of operations (or several) gets: measured once on this machine, alone and on made data, and
kept on disk.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..native.build import source_hash
from ..program import Literal, Op, Value, format_params
from ..rules.convolution import CONVOLUTION
from ..store.disk import LONGEST, Record
from ..store.schema import MEASURED, Fields, Number, Text
from ..target import Target
from ..target import target as host_target
from .context import Groups

# (groups, algorithm, threads, target) -> a call of them, bytes of packed weights and of what is between them
Alone = Callable[[Groups, str, int, Target], tuple[Callable[[], object], int]]
CALLS = 3  # of one algorithm in each round; one where caches are emptied before it
COLD_ROUNDS, LONG_ROUNDS, COLD_SECONDS = 6, 3, 0.4  # where caches are emptied; fewer of calls that take so long
SECONDS = 0.012  # of an algorithm's calls where they are not: longer than another process has a core for
MOST_CALLS = 600  # of an algorithm, where they are that short
COLD_BYTES = 1 << 22  # of weights and what is between groups, from which on caches have lost them when their turn comes
FLUSH_BYTES = 1 << 26  # more than the last-level cache holds
#: another algorithm than the first replaces it when it takes less than this share of its time; of the time of calls of
#: so many seconds, which are further from a clock's and a scheduler's noise
GAIN, LONG_GAIN, LONG_SECONDS = 0.93, 0.97, 5e-3
_known: dict[str, str] = {}  # by the signature, which names all that a choice depends on


def default(groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """The first algorithm, without a measurement."""
    return names[0]


def measured(alone: Alone, target: Target, groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """The algorithm that takes the fewest seconds for operations of these shapes; the first one, unless another takes
    less than `GAIN` of its seconds (`LONG_GAIN` of long ones), and where a loop might never end on made data. Raises
    what `alone` raises.
    """
    if any(op.unbounded for group, _ in groups for op in group.ops):
        return names[0]
    key = signature(groups, names, threads, target)
    if key not in _known:
        stored = _record(names).load(key)
        _known[key] = stored["chosen"] if stored else _measure(alone, target, groups, names, threads, key)
        _keep_for_kin(groups, names, threads, target, key)
    return _known[key]


def _record(names: tuple[str, ...]) -> Record:
    """What is kept of a choice among algorithms."""
    return Record("pick", Fields({"chosen": Text(names), "seconds": Fields(dict.fromkeys(names, MEASURED))}))


def _kin_record(names: tuple[str, ...]) -> Record:
    """What is kept for layers that differ in the sizes that a split changes: the choice of the largest of them."""
    return Record("kin", Fields({"chosen": Text(names), "size": Number(1, whole=True), "of": Text(most=LONGEST)}))


def _keep_for_kin(groups: Groups, names: tuple[str, ...], threads: int, target: Target, key: str) -> None:
    """Keeps a choice for layers of the same kin, unless that of a larger one is there: the order of measurements does
    not matter.
    """
    name, record = kinship(groups, names, threads, target), _kin_record(names)
    mine = {
        "chosen": _known[key],
        "size": max(1, sum(v.size for group, _ in groups for op in group.ops for v in op.outs)),
        "of": key,
    }
    there = record.load(name)
    if there is None or (there["size"], there["of"]) < (mine["size"], mine["of"]):
        record.store(name, mine)


def likely(groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """What is kept on disk, without a measurement: for plans that are needed at once. The first algorithm where nothing
    is kept.
    """
    return kept(groups, names, threads) or names[0]


def kept(groups: Groups, names: tuple[str, ...], threads: int) -> str:
    """What is kept on disk for the same operations or for nearly the same shapes; "" where nothing is."""
    machine = host_target()
    stored = _record(names).load(signature(groups, names, threads, machine))
    stored = stored or _kin_record(names).load(kinship(groups, names, threads, machine))
    return str(stored["chosen"]) if stored else ""


def kinship(groups: Groups, names: tuple[str, ...], threads: int, target: Target) -> str:
    """As `signature`, but without the sizes that a split changes: of the shapes of constants and of a convolution's
    weights the last axis, of others all.
    """
    text = [f"{names} {threads} {target} {source_hash()}"]
    for group, consts in groups:
        text += [
            f"{op.prim}{[v.shape[:-1] for v in op.ins if v in consts or v in _weights(op)]}"
            f"{op.params.get('window_strides')}"
            for op in group.ops
        ]
    return f"kin-{_digest(text)}"


def _weights(op: Op) -> tuple[Value | Literal, ...]:
    return op.ins[1:] if op.prim == CONVOLUTION else ()


def signature(groups: Groups, names: tuple[str, ...], threads: int, target: Target) -> str:
    """The name of a choice: operations, shapes, algorithms, threads, machine and the sources of this package."""
    ids: dict[Value, int] = {}
    text = [f"{names} {threads} {target} {source_hash()}"]
    for group, consts in groups:
        text += _described(group.ops, consts, ids)
    return f"pick-{_digest(text)}"


def _described(ops: Sequence[Op], consts: frozenset[Value], ids: dict[Value, int]) -> Iterator[str]:
    """A line for each operation, those inside of loops too; `ids`: the numbers of the values so far."""
    for op in ops:
        ins = [f"{ids.setdefault(v, len(ids))}:{v}:{v in consts}" if isinstance(v, Value) else repr(v) for v in op.ins]
        outs = [f"{ids.setdefault(v, len(ids))}:{v}" for v in op.outs]
        yield f"{outs}={op.prim}{ins}[{format_params(op.params)},{op.params.get('dimension_numbers')}]"
        if op.body is not None:
            yield from _described([o for group in op.body.all_groups for o in group.ops], consts, ids)


def _digest(lines: list[str]) -> str:
    return hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:24]


def _measure(alone: Alone, target: Target, groups: Groups, names: tuple[str, ...], threads: int, key: str) -> str:
    made = {name: alone(groups, name, threads, target) for name in names}
    flush = np.zeros(FLUSH_BYTES // 8) if any(nbytes >= COLD_BYTES for _, nbytes in made.values()) else None
    times: dict[str, list[float]] = {name: [] for name in names}
    warm = lambda t: len(t) > CALLS and (sum(t) >= SECONDS or len(t) >= MOST_CALLS)
    cold = lambda t: len(t) >= COLD_ROUNDS or (len(t) >= LONG_ROUNDS and sum(t) >= COLD_SECONDS)
    enough = warm if flush is None else cold
    while not all(map(enough, times.values())):
        for name, (call, _) in made.items():  # in turn, so that a change of the machine's speed meets all of them
            if flush is None or not times[name]:
                call()
            for _ in range(CALLS if flush is None else 1):
                if flush is not None:
                    flush += 1
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    seconds = {name: min(t) for name, t in times.items()}  # what disturbs a call makes it longer
    best = min(names, key=lambda n: seconds[n])
    first = seconds[names[0]]
    chosen = best if seconds[best] < (LONG_GAIN if first > LONG_SECONDS else GAIN) * first else names[0]
    _record(names).store(key, {"chosen": chosen, "seconds": seconds})
    return chosen
