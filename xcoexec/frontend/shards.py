"""A program whose arguments lie in parts on several devices -> the program of one part, where each is one of its own.

    ops of f(w, x[0:16])          shard 0: x[0:4]      shard 1: x[4:8]     ...
    ---------------------   ->    ops of f(w, x[0:4]), the same for all shards

What a part needs is followed backwards from its results by the partitioner. Nothing is traced again: a function that
divides by its batch's size would then divide by another number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ..codegen.program import Literal, Op, Value, external
from ..codegen.rules.splits import Request
from ..errors import SplitError
from ..partition.split import Slice, split_all
from .fold import Def, Folded

Ranges = tuple[Request | None, ...]  # of each array what a shard has of it; None: all


def shard(folded: Folded, shards: Sequence[tuple[Ranges, Ranges]], constants: Mapping[Value, np.ndarray]) -> Folded:
    """The program of one shard. `shards`: of each what it has of the inputs, and of the results; `constants`: the
    program's, of which an array that is the same for every item (a vision transformer's class token) is read in part.
    Raises `SplitError` where a shard needs more of an input than it has, or where shards are not computed alike.
    """
    if all(request is None for both in shards for ranges in both for request in ranges):
        return folded
    found = [_part(folded, inputs, outputs, constants) for inputs, outputs in dict.fromkeys(shards)]
    texts = map(_text, found)
    first = next(texts)
    if any(other != first for other in texts):
        raise SplitError("shards of the arguments are not computed alike; such a function has no program for each.")
    return found[0]


def _part(folded: Folded, inputs: Ranges, outputs: Ranges, constants: Mapping[Value, np.ndarray]) -> Folded:
    held = dict(zip(folded.inputs, inputs, strict=True))
    made = {v for op in folded.ops for v in op.outs}
    wanted: dict[Value, Request | None] = {}
    for v, request in zip(folded.outputs, outputs, strict=True):
        there = wanted.get(v, request) if v in made else held.get(v) if isinstance(v, Value) else None
        if there != request:
            raise SplitError(f"a result {v} is wanted in another part than it is there.")
        if isinstance(v, Value) and v in made:
            wanted[v] = request
    new: dict[Value, Value] = {}
    ops, defs = tuple[Op, ...](), list[Def]()
    if wanted:
        part, results = split_all(folded.ops, wanted)
        for s in part.slices:
            if s.source in constants and _alike(constants[s.source], s.axis):
                defs.append(_Rows.of(s))
            elif held.get(s.source) != (s.axis, s.start, s.stop):
                raise SplitError(f"a shard needs {s.start}:{s.stop} along axis {s.axis} of {s.source}, and has not it.")
            else:
                new[s.source] = s.value
        whole = next((v for v in external(part.ops) if held.get(v) is not None), None)
        if whole is not None:
            raise SplitError(f"a shard needs all of an argument {whole} of which it has a part.")
        ops, new = part.ops, {**new, **results}
    new |= {v: _sized(v, r) for v, r in held.items() if r is not None and v not in new}
    read = lambda v: new.get(v, v) if isinstance(v, Value) else v
    inputs_, outputs_ = tuple(map(read, folded.inputs)), tuple(map(read, folded.outputs))
    return dataclasses.replace(folded, inputs=inputs_, ops=ops, outputs=outputs_, prologue=(*folded.prologue, *defs))


def _alike(array: np.ndarray, axis: int) -> bool:
    """Whether all of an array's elements along an axis are the same."""
    return bool(np.array_equal(array, np.broadcast_to(array.take([0], axis), array.shape)))


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows(Def):
    """A part of a constant that is the same for every item: `size` of them along `axis`."""

    axis: int
    size: int

    @classmethod
    def of(cls, s: Slice) -> _Rows:
        """The slice as a constant of its own."""
        size = s.stop - s.start
        return cls(s.value, (s.source,), lambda x: x.take(range(size), s.axis), s.axis, size)


def _sized(v: Value, request: Request) -> Value:
    """A value of the size of a range of another one."""
    axis, start, stop = request
    return Value((*v.shape[:axis], stop - start, *v.shape[axis + 1 :]), v.dtype)


def _text(folded: Folded) -> list[object]:
    """What a program computes, whatever its values are called."""
    numbers: dict[Value, object] = {v: i for i, v in enumerate(folded.inputs)}
    numbers |= {d.value: (id(d.args[0]), d.axis, d.size) for d in folded.prologue if isinstance(d, _Rows)}

    def name(v: Value | Literal) -> object:
        if isinstance(v, Literal):
            return repr(v.val), v.dtype
        return (numbers[v], v.shape) if v in numbers else id(v)

    lines: list[object] = []
    for op in folded.ops:
        lines.append((op.prim, _params(op.params), tuple(map(name, op.ins)), tuple(v.shape for v in op.outs)))
        numbers.update((v, len(numbers)) for v in op.outs)
    return [*lines, *map(name, folded.outputs)]


def _params(params: Mapping[str, object]) -> str:
    return repr(sorted(params.items(), key=lambda item: item[0]))


__all__ = ["Ranges", "shard"]
