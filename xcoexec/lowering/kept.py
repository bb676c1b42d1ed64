"""What halves keep of divided results: of a result that both make, only the indices cross that the other half reads.

    host half    rows 0:at of a  ---------------------->  rows 0:at of b, which read a few more of a
                                  ^ border                 ^ border
    device half  rows at: of a   ---------------------->  rows at: of b, which read a few of the host half's a

A host call's result stays in the memory in which it was made. The next call that reads it finds it there, with room
behind it for what comes from the device half; that one puts together no more than it reads itself. What the host half
makes alone is kept in the same way.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Container, Iterator, Mapping, Sequence

from ..codegen.program import Value, external
from ..partition.split import Slice
from .work_units import DeviceUnit, HostUnit, Join, Kept, Unit


@dataclasses.dataclass(frozen=True)
class _Read:
    """A value that a unit reads as its own `value`; `window`: only that range of it."""

    unit: Unit
    value: Value
    window: Slice | None


@dataclasses.dataclass(frozen=True)
class _Found:
    """How a result of a host unit is read: by host units that keep it, up to index `room`, and by the device half from
    index `begin` on (`wanted`: it does read it).
    """

    join: Join
    begin: int
    room: int
    keepers: frozenset[tuple[Unit, Value]]
    wanted: bool


def kept(units: Sequence[Unit], outputs: Container[object]) -> tuple[Unit, ...]:
    """The units of one program, in which host units take what the host half has already, and the device half no more of
    a result of both than it reads. `outputs`: what is read behind the program, whole.
    """
    reads: dict[Value, list[_Read]] = {}
    for unit in units:
        for v in _outside(unit):
            reads.setdefault(unit.source(v), []).append(_Read(unit, v, unit.windows.get(v)))
    found: dict[Value, _Found] = {}
    for unit in units:
        if isinstance(unit, HostUnit) and not unit.partial:
            mine = [_found(unit, j, reads.get(j.out, []), j.out in outputs) for j in _results(unit)]
            if not unit.joins or any(f.wanted for f in mine):  # somebody waits for the unit to end
                found.update((f.join.out, f) for f in mine)
    return tuple(_rewritten(units, found))


def _outside(unit: Unit) -> Sequence[Value]:
    return unit.segment.program.inputs if isinstance(unit, HostUnit) else external(unit.ops)


def _results(unit: HostUnit) -> Iterator[Join]:
    """The results of a host unit as those that halves put together; the host half makes all of one without a join."""
    yield from unit.joins or (Join((v, v), v, 0) for v in unit.segment.program.outputs)


def _found(unit: HostUnit, join: Join, reads: Sequence[_Read], whole: bool) -> _Found:
    """How a result is read; `whole`: behind the program too."""
    size, at = join.out.shape[join.axis] if join.out.shape else 1, join.parts[0].shape[join.axis] if unit.joins else 0
    beside = math.prod(join.out.shape[: join.axis]) == 1 and join.parts[0] not in unit.copied
    keepers = [r for r in reads if beside and isinstance(r.unit, HostUnit) and _keeps(r, r.unit, join, unit)]
    others = [r for r in reads if r not in keepers]
    starts = [r.window.start if r.window is not None and r.window.axis == join.axis else 0 for r in others]
    begin = min((*starts, at - 1)) if beside and unit.joins and not whole else 0
    room = max((r.window.stop if r.window is not None else size for r in keepers), default=0)
    return _Found(join, begin, room, frozenset((r.unit, r.value) for r in keepers), bool(others) or whole)


def _keeps(read: _Read, reader: HostUnit, join: Join, unit: HostUnit) -> bool:
    """Whether a host unit can take an operand where the result was made: from its first index on."""
    s = read.window
    fits = s is None or (s.start == 0 and (s.axis == join.axis or not unit.joins))
    leads = s is None or math.prod(join.out.shape[: s.axis]) == 1
    return fits and leads and read.value not in reader.copied and bool(join.out.shape)


def _rewritten(units: Sequence[Unit], found: Mapping[Value, _Found]) -> Iterator[Unit]:
    """The units in their order, with what `found` says of their operands and results."""
    narrow = {v: Value(_shape(f), v.dtype) if f.begin else v for v, f in found.items()}
    makers: dict[Value, HostUnit] = {}  # result -> the new unit that makes it, or the host half's part of it
    for i, unit in enumerate(units):
        windows = {
            v: Slice(v, narrow[s.source], s.axis, s.start - found[s.source].begin, s.stop - found[s.source].begin)
            if s.source in found
            else s
            for v, s in unit.windows.items()
        }
        if isinstance(unit, DeviceUnit):
            yield dataclasses.replace(unit, windows=windows) if windows != unit.windows else unit
            continue
        taken = {}
        for v in unit.segment.program.inputs:
            f = found.get(unit.source(v))
            if f is not None and (unit, v) in f.keepers:
                taken[v] = _kept(makers[f.join.out], f, unit.windows.get(v))
        joins = tuple(
            dataclasses.replace(j, out=narrow[j.out], begin=found[j.out].begin) if j.out in found else j
            for j in unit.joins
        )
        rooms = {j.parts[0]: found[j.out].room for j in _results(unit) if j.out in found and found[j.out].room}
        rest = {v: s for v, s in windows.items() if v not in taken}
        same = not (taken or rooms) and (rest, joins) == (unit.windows, unit.joins)
        changed = dataclasses.replace(unit, windows=rest, joins=joins, kept=taken, rooms=rooms)
        leader = next((k.unit for k in taken.values() if _leads(units[:i], k.unit, changed)), None)
        new = unit if same else dataclasses.replace(changed, leader=leader)
        makers.update((j.out, new) for j in _results(unit))
        yield new


def _leads(before: Sequence[Unit], maker: HostUnit, unit: HostUnit) -> bool:
    """Whether a unit that has made an operand of `unit` can be joined right behind its start: nothing but the device
    half's part of it lies between them, none of its results has to be put together for it, and kernels move all that
    crosses.
    """
    beside, whole = before[-1], {j.out for j in maker.joins}
    made = isinstance(beside, DeviceUnit) and any(j.parts[1] in beside.outs for j in maker.joins)
    waits = any(unit.source(v) in whole for v in unit.segment.program.inputs)
    return made and not (waits or maker.copied or unit.copied)


def _kept(maker: HostUnit, found: _Found, window: Slice | None) -> Kept:
    mine, rest = found.join.parts
    axis = found.join.axis if window is None else window.axis
    there = mine.shape[axis]
    stop = found.join.out.shape[axis] if window is None else window.stop
    return Kept(maker, mine, rest, axis, min(there, stop), max(stop - there, 0))


def _shape(found: _Found) -> tuple[int, ...]:
    out, axis = found.join.out, found.join.axis
    return (*out.shape[:axis], out.shape[axis] - found.begin, *out.shape[axis + 1 :])
