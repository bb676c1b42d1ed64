"""A program whose arguments lie in parts on several devices -> the program of one part, where each is one of its own.

    ops of f(w, x[0:16])          shard 0: x[0:4]      shard 1: x[4:8]     ...
    ---------------------   ->    ops of f(w, x[0:4]), the same for all shards

What a part needs is followed backwards from its results by the partitioner. Nothing is traced again: a function that
divides by its batch's size would then divide by another number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..codegen.program import Literal, Op, Value, external
from ..codegen.rules.splits import Request
from ..errors import SplitError
from ..partition.split import split_all
from .fold import Folded

Ranges = tuple[Request | None, ...]  # of each array what a shard has of it; None: all


def shard(folded: Folded, shards: Sequence[tuple[Ranges, Ranges]]) -> Folded:
    """The program of one shard. `shards`: of each what it has of the inputs, and of the results. Raises `SplitError`
    where a shard needs more of an input than it has, or where shards are not computed alike.
    """
    if all(request is None for both in shards for ranges in both for request in ranges):
        return folded
    found = [_part(folded, inputs, outputs) for inputs, outputs in dict.fromkeys(shards)]
    texts = map(_text, found)
    first = next(texts)
    if any(other != first for other in texts):
        raise SplitError("shards of the arguments are not computed alike; such a function has no program for each.")
    return found[0]


def _part(folded: Folded, inputs: Ranges, outputs: Ranges) -> Folded:
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
    ops: tuple[Op, ...] = ()
    if wanted:
        part, results = split_all(folded.ops, wanted)
        for s in part.slices:
            if held.get(s.source) != (s.axis, s.start, s.stop):
                raise SplitError(f"a shard needs {s.start}:{s.stop} along axis {s.axis} of {s.source}, and has not it.")
            new[s.source] = s.value
        whole = next((v for v in external(part.ops) if held.get(v) is not None), None)
        if whole is not None:
            raise SplitError(f"a shard needs all of an argument {whole} of which it has a part.")
        ops, new = part.ops, {**new, **results}
    new |= {v: _sized(v, r) for v, r in held.items() if r is not None and v not in new}
    read = lambda v: new.get(v, v) if isinstance(v, Value) else v
    return dataclasses.replace(
        folded, inputs=tuple(map(read, folded.inputs)), ops=ops, outputs=tuple(map(read, folded.outputs))
    )


def _sized(v: Value, request: Request) -> Value:
    """A value of the size of a range of another one."""
    axis, start, stop = request
    return Value((*v.shape[:axis], stop - start, *v.shape[axis + 1 :]), v.dtype)


def _text(folded: Folded) -> list[object]:
    """What a program computes, whatever its values are called."""
    numbers: dict[Value, int] = {v: i for i, v in enumerate(folded.inputs)}

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
