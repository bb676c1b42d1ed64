"""A program -> a segment: steps, weight packing and arena, ready to be called by XLA."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ..native import layout as abi
from ..native.build import Spec, kernel_address, prepare
from ..program import Program, Value
from ..target import Target
from .context import Context, Packer, Rules
from .descriptor import Put, Runtime, describe, held_by, ring
from .steps import Early, Kernel, Looped, Nested, Ref, Step, Word
from .storage import Buffer, Lifetime, place


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """A callable host part. Arguments of the call: `program.inputs`, `raw` constants, the packed blob. Inputs and
    outputs that are `as_stored` come and go in their own type, all others in 4 bytes an element.

    `address` is the descriptor that the FFI attribute carries. It lives as long as this object, and as any executable
    that refers to it (see `descriptor.py`).
    """

    program: Program
    target: Target
    steps: tuple[Step, ...]
    raw: tuple[Value, ...]
    packs: tuple[tuple[int, Packer], ...]
    as_stored: frozenset[Value]
    blob_bytes: int
    arena_bytes: int
    address: int
    _descriptor: np.ndarray
    _ring: np.ndarray

    def pack(self, consts: Mapping[Value, np.ndarray]) -> np.ndarray:
        """The packed weights, [blob_bytes / 4] f32 (at least 64 bytes), for constants given by value."""
        n = max(self.blob_bytes, 64) // 4
        padded = np.zeros(n + 16, np.float32)
        blob = padded[-padded.ctypes.data % 64 // 4 :][:n]  # aligned, so that JAX can take it without a copy
        for offset, packer in self.packs:
            part = np.ascontiguousarray(packer(consts), np.float32).ravel()
            blob[offset // 4 : offset // 4 + part.size] = part
        return blob

    @functools.cached_property
    def algorithms(self) -> tuple[str, ...]:
        """The kernel families that each group of the program runs, in order ("view": no work at all)."""
        names: list[dict[str, None]] = [{} for _ in self.program.groups]
        for step in self.steps:
            _name(names, step)
        return tuple("+".join(n) or "view" for n in names)

    @property
    def threads(self) -> int:
        return int(self._descriptor[abi.Segment.THREADS // 8])

    @property
    def calls(self) -> int:
        """Calls so far."""
        return int(self._descriptor[abi.Segment.CALLS // 8])

    def stamps(self) -> np.ndarray:
        """[calls kept, steps + 1] nanoseconds of the monotonic clock, int64: start, then the end of each step. A thread
        that is put aside while it stamps makes a step late; those behind it are over no earlier.
        """
        n = min(self.calls, abi.CALL_RING)
        return np.maximum.accumulate(self._ring[:n], axis=1)


def compile_segment(program: Program, target: Target, threads: int, runtime: Runtime, rules: Rules) -> Segment:
    """Steps and native code for `program`.

    Raises `Unsupported` when a group cannot be expressed, `MemoryError` when there is none for the descriptor.
    """
    ctx = Context(program, target, threads, rules)
    lower_all(ctx)
    ctx.leave()
    ctx.prune()
    ctx.blob.index = len(program.inputs) + len(ctx.raw)
    return _assemble(ctx, runtime)


def _name(names: list[dict[str, None]], step: Step, first: int = 0) -> None:
    """Notes the families of a step, and of steps inside of it, at its groups; `first`: the one that it counts from."""
    at = first + step.group
    for group in names[at : at + step.span]:
        group.update(dict.fromkeys(step.families))
    for word in step.words:
        for inner in word.steps if isinstance(word, Nested) else ():
            _name(names, inner, at)


def lower_all(ctx: Context) -> None:
    """Appends the steps of all groups, of several at once where these are fused. Raises `Unsupported`."""
    groups = ctx.program.groups
    while ctx.group < len(groups):
        fused = ctx.rules.fuse(ctx, ctx.group)
        if not fused:
            ctx.rules.lower(ctx, groups[ctx.group])
        ctx.group += max(fused, 1)
    ctx.group = max(len(groups) - 1, 0)


def lifetimes(steps: list[Step]) -> list[Lifetime]:
    """First and last use of every temporary."""
    spans: dict[Buffer, tuple[int, int]] = {}
    for i, step in enumerate(steps):
        for b in (*step.reads, *step.writes):
            if b.kind == "temp":
                spans[b] = (spans.get(b, (i, i))[0], i)
    return [Lifetime(b, first, last) for b, (first, last) in spans.items()]


def _assemble(ctx: Context, runtime: Runtime) -> Segment:
    offsets, zeroed, total = place(lifetimes(ctx.steps))
    nargs, nrets = len(ctx.program.inputs) + len(ctx.raw) + 1, len(ctx.program.outputs)

    def number(b: Buffer) -> tuple[int, int]:
        if b.kind == "temp":
            return nargs + nrets, offsets[b]
        return b.index + (nargs if b.kind == "ret" else 0), 0

    prepare(_specs(ctx.steps), ctx.target)
    counters = len(ctx.steps) + sum(len(s.inner) for s in ctx.steps)
    data = abi.arena_data_offset(len(ctx.steps), nargs + nrets + 1, counters)
    words: dict[int, int] = {
        abi.Segment.COUNTER_COUNT: counters,
        abi.Segment.ARENA_BYTES: data + total,
        abi.Segment.ZERO_BYTES: zeroed,
        abi.Segment.DATA: data,
        abi.Segment.ARGUMENTS: nargs,
        abi.Segment.RESULTS: nrets,
        abi.Segment.THREADS: ctx.threads,
    }
    known = nargs + nrets + 1
    table = lambda put: _table(ctx.steps, number, known, ctx.target, runtime.drivers, put, {})
    block = describe(words, len(ctx.steps), table, runtime)
    segment = Segment(
        ctx.program,
        ctx.target,
        tuple(ctx.steps),
        tuple(ctx.raw),
        tuple(ctx.packs),
        ctx.as_stored,
        ctx.blob.nbytes,
        data + total,
        block.ctypes.data,
        block[: abi.DESCRIPTOR_WORDS],
        ring(block, len(ctx.steps)),
    )
    held_by(segment, segment.address, runtime)
    return segment


def _table(
    steps: Sequence[Step],
    number: Callable[[Buffer], tuple[int, int]],
    known: int,
    target: Target,
    drivers: Mapping[str, int],
    put: Put,
    tables: dict[Nested, int],
) -> int:
    """Address of the step table; `number`: a buffer's number and what is added to offsets in it, `known`: how many
    buffers there are. `put` keeps words, `tables` those of nested steps that are there: many strips share one.
    """

    def resolve(word: Word) -> list[int]:
        if isinstance(word, Kernel):
            return [kernel_address(word.spec, target)]
        if isinstance(word, Nested):
            if word not in tables:
                inner = lambda b: (word.scratch, word.offsets[b]) if b.kind == "temp" else (b.index, 0)
                tables[word] = _table(word.steps, inner, word.scratch + 1, target, drivers, put, tables)
            return [tables[word], len(word.steps)]
        if isinstance(word, Looped):
            turn, buffers = functools.partial(_in_turn, word, number, known), known + len(word.own)
            return [_table(word.steps, turn, buffers, target, drivers, put, tables), len(word.steps), known]
        if isinstance(word, Ref):
            index, shift = number(word.buffer)
            return [index, word.offset + shift]
        return [word]

    def early(e: Early) -> int:
        return put([*resolve(e.ref), e.stride, e.nbytes, e.streams, e.apart])

    rows: list[int] = []
    counters = len(steps)
    for step, after, more in zip(steps, _following(steps), _in_a_row(steps), strict=True):
        params = put([w for word in step.words for w in resolve(word)])
        first = early(step.early) if step.early else 0
        rows += [drivers[step.driver], params, step.items, counters if step.inner else 0, first, after, more]
        counters += len(step.inner)
    return put(rows)


def _following(steps: Sequence[Step]) -> list[int]:
    """For each step the number of the next one that reads something which may be asked for early (behind the last one:
    how many steps there are).
    """
    found, after = [], len(steps)
    for i in reversed(range(len(steps))):
        found.append(after)
        if steps[i].early:
            after = i
    return found[::-1]


def _in_a_row(steps: Sequence[Step]) -> list[int]:
    """For each step how many behind it are done by whoever takes it, as all of them have one item; nobody else waits
    in between.
    """
    found, more = [], -1
    for step in reversed(steps):
        more = more + 1 if step.items == 1 and not step.inner and not step.early else -1
        found.append(max(more, 0))
    return found[::-1]


def _in_turn(word: Looped, number: Callable[[Buffer], tuple[int, int]], known: int, b: Buffer) -> tuple[int, int]:
    """A buffer's number in the table of a loop's turns, and what is added to offsets in it."""
    if b in word.offsets:
        at, shift = number(word.scratch)
        return at, shift + word.offsets[b]
    return (known + word.own.index(b), 0) if b in word.own else number(b)


def _specs(steps: Sequence[Step]) -> Iterator[Spec]:
    for step in steps:
        for word in dict.fromkeys(step.words):  # strips share what is nested in them
            if isinstance(word, Kernel):
                yield word.spec
            elif isinstance(word, (Nested, Looped)):
                yield from _specs(word.steps)
