"""A call as several XLA programs, one behind the other: a device works on the first one while the next is prepared.

XLA prepares all kernels of a program before it launches the first one (CUDA graphs get the call's addresses, one kernel
after the other). A device waits for that, and so does a caller who waits for each result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..codegen.program import Literal, Value, external
from .emit import Asynchronous, turned_back
from .kept import kept
from .lower import Lowered
from .work_units import HostUnit, Unit

Flat = Callable[[Sequence[ArrayLike]], Sequence[jax.Array]]  # the inputs' leaves in, the results' leaves out
Program = Callable[..., Sequence[jax.Array]]
LEAST = 8  # of the device's layers, whole ones or parts, that a program has at least


@dataclasses.dataclass(frozen=True, eq=False)
class Section:
    """Units that are one program. It takes `consts` and `reads`, which are inputs of the call and what sections before
    give, has the constants `inside`, and returns what it `gives` to later ones, then `results`: (place among the
    function's, what is there, whether it is of weak type).
    """

    units: tuple[Unit, ...]
    consts: tuple[Value, ...]
    inside: tuple[Value, ...]
    reads: tuple[Value, ...]
    gives: tuple[Value, ...]
    results: tuple[tuple[int, Value | Literal, bool], ...]

    def __call__(self, lowered: Lowered, flat: Sequence[jax.Array]) -> list[jax.Array]:
        """The computation as JAX traces it: constants and what it reads in, what it gives and results out."""
        env = {v: jnp.asarray(lowered.inside[v]) for v in self.inside}
        env.update(zip((*self.consts, *self.reads), flat, strict=True))
        turned_back(env, lowered.turned)
        halves = Asynchronous(env, lowered.sites, {}, None)
        halves.run(self.units)
        return [*map(halves.get, self.gives), *(halves.result(v, weak) for _, v, weak in self.results)]


def divided(lowered: Lowered, count: int) -> Lowered:
    """The same as up to `count` programs of about as many layers; fewer where the plan cannot be cut so often. Programs
    that stream weights, or run on the caller's own cores, are one. In each, halves keep what the other does not read.
    """
    if not lowered.device.apart:
        return lowered
    streams = any(not isinstance(u, HostUnit) and u.streamed for u in lowered.units)
    ends = [] if streams or count == 1 else _cuts(lowered.units, count)
    runs = _runs(lowered.units, ends)
    reads = [{v for u in run for v in _reads(u)} for run in runs]
    results = {v for v, _ in lowered.results if isinstance(v, Value)}
    behind = [results.union(*(reads[k] for k in range(len(runs)) if k != i)) for i in range(len(runs))]
    units = tuple(u for run, b in zip(runs, behind, strict=True) for u in kept(run, b))
    return dataclasses.replace(lowered, units=units, ends=tuple(ends))


def _runs(units: Sequence[Unit], ends: Sequence[int]) -> list[Sequence[Unit]]:
    return [units[a:b] for a, b in zip([0, *ends], [*ends, len(units)], strict=True)]


def sections(lowered: Lowered) -> tuple[Section, ...]:
    """The programs of a plan that is `divided` into several; none where it is one."""
    if not lowered.ends:
        return ()
    runs = _runs(lowered.units, lowered.ends)
    made = [{v for u in run for v in _made(u)} for run in runs]
    known = {*lowered.consts, *lowered.inside}
    reads = [tuple(_read(run, known)) for run in runs]
    last = len(runs) - 1
    home = lambda v: next((i for i, there in enumerate(made) if v in there), last)
    found = []
    for i, run in enumerate(runs):
        mine = tuple((at, v, weak) for at, (v, weak) in enumerate(lowered.results) if home(v) == i)
        outside = [v for _, v, _ in mine if isinstance(v, Value) and v not in made[i]]
        wanted = dict.fromkeys(v for later in reads[i + 1 :] for v in later if home(v) == i)
        needs = {v for u in run if not isinstance(u, HostUnit) for v in external(u.ops)} | set(outside)
        consts, inside = (tuple(v for v in some if v in needs) for some in (lowered.consts, lowered.inside))
        inputs = dict.fromkeys((*reads[i], *(v for v in outside if v not in known)))
        found.append(Section(tuple(run), consts, inside, tuple(inputs), tuple(wanted), mine))
    return tuple(found)


def in_turn(parts: Sequence[Section], lowered: Lowered, programs: Sequence[Program]) -> Flat:
    """The function's leaves in, its results out: `programs` are the sections', with their constants."""
    slots = {v: i for i, v in enumerate(lowered.folded.inputs)}
    steps = []
    for part, program in zip(parts, programs, strict=True):
        steps.append((program, [slots[v] for v in part.reads], len(part.gives), [at for at, _, _ in part.results]))
        slots |= {v: len(slots) + i for i, v in enumerate(part.gives)}
    count = sum(len(part.results) for part in parts)

    def call(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
        values, results = [*leaves], dict[int, jax.Array]()
        for program, reads, given, places in steps:
            out = program(*[values[i] for i in reads])
            values += out[:given]
            results.update(zip(places, out[given:], strict=True))
        return [results[i] for i in range(count)]

    return call


def _cuts(units: Sequence[Unit], count: int) -> list[int]:
    """Where programs end: between units of which none waits for a host call, near equal numbers of the device's layers,
    where the fewest bytes go on.
    """
    sizes = [0 if isinstance(u, HostUnit) else len(u.layers) for u in units]
    total = sum(sizes)
    count = min(count, total // LEAST)
    clean, alive = _clean(units), _bytes_behind(units)
    found: list[int] = []
    for i in range(1, count):
        low, high = (total * (2 * i - 1) / (2 * count), total * (2 * i + 1) / (2 * count))
        near = [k for k in clean if low <= sum(sizes[:k]) < high and k > (found[-1] if found else 0)]
        if near:
            found.append(min(near, key=lambda k: (alive[k], abs(sum(sizes[:k]) - total * i / count))))
    return found


def _clean(units: Sequence[Unit]) -> list[int]:
    """Numbers of units before which no host call is under way."""
    busy: set[int] = set()
    for i, unit in enumerate(units):
        if isinstance(unit, HostUnit):
            wanted = {j.parts[1] for j in unit.joins} or set(unit.segment.program.outputs)
            uses = _made if unit.joins else _reads
            end = next((k for k in range(i + 1, len(units)) if wanted & set(uses(units[k]))), len(units))
            busy.update(range(i + 1, end + 1))
    return [k for k in range(1, len(units)) if k not in busy]


def _bytes_behind(units: Sequence[Unit]) -> list[int]:
    """Bytes of what units make that are read behind a cut before each unit."""
    home = {v: i for i, u in enumerate(units) for v in reversed(list(_made(u)))}
    last = {v: i for i, u in enumerate(units) for v in _reads(u) if v in home}
    return [sum(v.nbytes for v, end in last.items() if home[v] < k <= end) for k in range(len(units) + 1)]


def _made(unit: Unit) -> Iterator[Value]:
    """What is there behind a unit: of a host unit whose results are parts, these are put together elsewhere."""
    if isinstance(unit, HostUnit):
        yield from ((j.out for j in unit.joins) if unit.joins else unit.segment.program.outputs)
    else:
        yield from (v for op in unit.ops for v in op.outs)


def _reads(unit: Unit) -> Iterator[Value]:
    """What a unit reads, of whole values, constants too."""
    outside = unit.segment.program.inputs if isinstance(unit, HostUnit) else external(unit.ops)
    yield from map(unit.source, outside)


def _read(run: Sequence[Unit], consts: set[Value]) -> Iterator[Value]:
    """What units in their order read and none of them makes before, without constants."""
    made, seen = set[Value](), set[Value]()
    for unit in run:
        for v in _reads(unit):
            if v not in made | seen | consts:
                seen.add(v)
                yield v
        made.update(_made(unit))


__all__ = ["Flat", "Section", "divided", "in_turn", "sections"]
