"""What the rules of the kernel families see while a program is turned into steps: places of values, packed weights and
the steps themselves. How a primitive is computed is not known here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..native import layout as abi
from ..program import Group, Op, Program, Unsupported, Value, consumers, kind
from ..rules.convolution import around, convolution, phases
from ..rules.rounding import rounded, unrounded
from ..target import Target
from .cuts import Cut
from .makers import Makers, needed
from .steps import Early, Ref, Step, Word
from .storage import APART, Buffer, Storage, dense, temporary

SAME_SETS = 256  # bytes between pixels, whose multiples leave few sets of the caches to a vector of channels
AS_STORED = ("bfloat16", "float16", "int8")  # types of arguments and results that a pass converts
TWO_BYTES = ("bfloat16", "float16")  # those of them that stay as they are where nobody reads them otherwise
RAW_BYTES = 1 << 18  # constants from this size on are read where they lie, unless a rule packs them


Packer = Callable[[Mapping[Value, np.ndarray]], np.ndarray]
Groups = tuple[tuple[Group, frozenset[Value]], ...]  # groups and which of the values they read are constants
Pick = Callable[[Groups, tuple[str, ...], int], str]


@dataclasses.dataclass(frozen=True)
class Rules:
    """What the kernel families contribute: `lower` appends a group's steps, `fuse(ctx, i)` those of several groups from
    number i on (it returns how many), `spare(op)` tells the zeroes that an algorithm of a convolution reads beyond its
    padding, `pick(groups, names, threads)` chooses among algorithms, `cut` takes a range of a group's result.
    `convert(ctx, source, target)` appends a copy of an array of narrow elements, or to one: arguments and results of
    `AS_STORED` come and go in their own type (None: in 4 bytes an element, as kernels hold them). `round(ctx, x,
    dtype)` rounds an array where it lies, for results that go in 4 bytes (None: they go as kernels hold them)."""

    lower: Callable[[Context, Group], None]
    fuse: Callable[[Context, int], int]
    spare: Callable[[Op], Mapping[int, int]]
    pick: Pick
    cut: Cut | None
    convert: Callable[[Context, Storage, Storage], None] | None = None
    round: Callable[[Context, Storage, str], None] | None = None


@dataclasses.dataclass(frozen=True)
class Arrived:
    """An argument as it is stored; its copy begins at byte `first`, inside of a `halo`, its runs `apart` (see
    `temporary`).
    """

    stored: Storage
    first: int
    halo: tuple[tuple[int, int], ...]
    apart: int


Mark = tuple[list[Step], dict[Value, Storage], dict[Value, Storage], dict[Hashable, Ref], Makers]


class Context:
    """What the rules see while a program is turned into steps."""

    def __init__(self, program: Program, target: Target, threads: int, rules: Rules):
        edges = (*program.inputs, *program.outputs)
        self.as_stored = frozenset(v for v in edges if rules.convert and v.dtype in AS_STORED and v.size > 1)
        if rules.round is not None:
            program = rounded(program, {*program.outputs} - self.as_stored)
        self.program, self.target, self.threads = program, target, threads
        self.rules, self.spare = rules, rules.spare
        self.steps: list[Step] = []
        self.group = 0
        self.consts = set(program.consts)
        self.packs: list[tuple[int, Packer]] = []
        self._packed: dict[Hashable, Ref] = {}
        self.kept: dict[Hashable, Ref] = {}  # what steps have made that others may read too
        self.makers = Makers()
        self.arrived: dict[Buffer, Arrived] = {}  # copies of arguments -> these as they are stored
        self.blob = Buffer("arg", 0)
        self.raw: dict[Value, Buffer] = {}
        self._readers = consumers(program.ops)
        self._walked = frozenset(_walked(program, target.vl))
        self._places: dict[Value, Storage] = {}
        self._stored: dict[Value, Storage] = {}  # what lies in its own type alone, until somebody reads it otherwise
        own = _states(program, self.as_stored) | self._multiplied()
        for i, v in enumerate(program.inputs):
            buffer = Buffer("arg", v.nbytes, i)
            if v in own:
                self._stored[v] = dense(buffer, v.shape, narrow=v.dtype)
            else:
                self._places[v] = self._arriving(v, buffer)
        for i, v in enumerate(program.outputs):
            if v not in self.as_stored:
                self._places.setdefault(v, dense(Buffer("ret", v.nbytes, i), v.shape))
            elif v not in self._places and v not in own:
                self._places[v] = dense(Buffer("temp", 4 * v.size), v.shape)

    # -- values
    def _multiplied(self) -> set[Value]:
        """Large inputs of bf16 and f16 that products read, which may do so where these lie."""
        inputs = (v for v in self.program.inputs if v in self.as_stored and v not in self.program.outputs)
        large = (v for v in inputs if v.dtype in TWO_BYTES and v.nbytes >= RAW_BYTES)
        return {v for v in large if any(op.prim == "dot_general" for op in self.readers(v))}

    def _arriving(self, v: Value, buffer: Buffer) -> Storage:
        """Where an input is read: where it lies, or a copy as kernels hold it."""
        if v not in self.as_stored:
            return dense(buffer, v.shape)
        return self._widened(v, dense(buffer, v.shape, narrow=v.dtype))

    def _widened(self, v: Value, stored: Storage) -> Storage:
        """Appends the copy of an array in its own type as kernels hold it."""
        assert self.rules.convert is not None
        place = temporary(v, self._halo(v), self._apart(v))
        self.arrived[place.buffer] = Arrived(stored, place.offset, place.halo, self._apart(v))
        self.rules.convert(self, stored, place)
        return place

    def stored(self, v: Value) -> Storage:
        """Where a value lies in its own type, where it does so without a copy; else as `storage` has it."""
        return self._stored.get(v) or self.storage(v)

    def state(self, op: Op) -> tuple[Storage, Storage] | None:
        """Where a state that an operation updates lies in its own type, and where the result goes; None for what is no
        state. The result lies there from here on.
        """
        x, outputs = op.ins[0], self.program.outputs
        if not isinstance(x, Value) or x not in self._stored or op.out in self._places or op.out not in outputs:
            return None
        self._stored[op.out] = dense(Buffer("ret", op.out.nbytes, outputs.index(op.out)), op.out.shape, narrow=x.dtype)
        return self._stored[x], self._stored[op.out]

    def leave(self) -> None:
        """Appends the copies of results that go in their own type, and rounds others to theirs."""
        if (narrow := self.rules.round) is not None:
            for v in unrounded(self.program):
                if v not in self.as_stored:
                    narrow(self, self._places[v], v.dtype)
        for i, v in enumerate(self.program.outputs):
            if v in self.as_stored and v not in self._stored:
                assert self.rules.convert is not None
                target = dense(Buffer("ret", v.nbytes, i), v.shape, narrow=v.dtype)
                self.rules.convert(self, self._places[v], target)

    def readers(self, v: Value) -> list[Op]:
        """The operations that read a value, in program order."""
        return self._readers.get(v, [])

    def storage(self, v: Value) -> Storage:
        """Where a value is read: a place given earlier, or a constant's. Raises `Unsupported` before it is made."""
        if v not in self._places:
            if v in self._stored:
                self._places[v] = self._widened(v, self._stored[v])
            elif v in self.consts:
                self._places[v] = self._constant(v)
            else:
                raise Unsupported(f"a value {v} is read before it is made")
        return self._places[v]

    def _constant(self, v: Value) -> Storage:
        if v.dtype == "int32" or (v.dtype == "float32" and v.nbytes >= RAW_BYTES):
            return dense(self.raw_const(v), v.shape)
        ref = self.pack(4 * v.size, lambda consts: consts[v], v)
        return dense(ref.buffer, v.shape, ref.offset)

    def yields(self, v: Value, op: Op) -> bool:
        """Whether an operation may write its result over a value: a temporary of its own that nobody else reads, for a
        result that has no place yet.
        """
        if v in self.program.inputs or v not in self._places or op.out in self._places or self.readers(v) != [op]:
            return False
        buffer = self._places[v].buffer
        alone = buffer.kind == "temp" and sum(s.buffer is buffer for s in self._places.values()) == 1
        return alone and self._wanted_at(op.out) is None and not any(map(any, self._halo(op.out)))

    def raw_const(self, v: Value) -> Buffer:
        """The argument that brings a constant as it is, in its own type and shape."""
        return self.raw.setdefault(v, Buffer("arg", v.nbytes, len(self.program.inputs) + len(self.raw)))

    def pack(self, nbytes: int, packer: Packer, key: Hashable) -> Ref:
        """Reserves packed bytes, filled by `packer` when weights are bound; once for each `key`, which names all that
        `packer` depends on.
        """
        if key not in self._packed:
            offset = self.blob.nbytes
            self.packs.append((offset, packer))
            self.blob.nbytes += -(-nbytes // 64) * 64
            self._packed[key] = Ref(self.blob, offset)
        return self._packed[key]

    def choose(self, groups: Sequence[Group], names: tuple[str, ...]) -> str:
        """The algorithm for some groups of this program."""
        known = tuple((g, frozenset(v for op in g.ops for v in op.reads if v in self.consts)) for g in groups)
        return self.rules.pick(known, names, self.threads)

    def place(self, v: Value, storage: Storage) -> None:
        """Says where a value lies, in the place of what would be chosen."""
        self._places[v] = storage

    def mark(self) -> Mark:
        """The steps and the places of values, for `back`."""
        return list(self.steps), dict(self._places), dict(self._stored), dict(self.kept), self.makers.copy()

    def back(self, mark: Mark) -> None:
        """Takes steps and places since a `mark` back. What was packed since stays, and nobody reads it."""
        self.steps, self._places, self._stored, self.kept, self.makers = mark

    def made(self, values: Iterable[Value]) -> None:
        """Places values as if earlier steps had made them: with the halo that their readers need, or where a result
        wants them.
        """
        for v in values:
            self.place(v, self._wanted_at(v) or temporary(v, self._halo(v), self._apart(v)))

    def output(self, v: Value) -> Storage:
        """Where a value is written: an output, in another shape too, a part of a concatenation, or a temporary with the
        halo its readers need. Raises `Unsupported` for a type that kernels do not know.
        """
        if not kind(v.dtype):
            raise Unsupported(f"a result of type {v.dtype}; kernels know f32, s32 and bool")
        if v not in self._places:
            self._places[v] = self._wanted_at(v) or temporary(v, self._halo(v), self._apart(v))
        return self._places[v]

    def scratch(self, shape: tuple[int, ...]) -> Storage:
        """A temporary of f32 of that shape, for work inside a step."""
        return temporary(Value(shape, "float32"), ((0, 0),) * len(shape))

    def _wanted_at(self, v: Value) -> Storage | None:
        """Where a value may lie so that nobody has to move it; None where that is nowhere in particular."""
        return self._inside_concatenation(v) or self._as_output(v)

    def _as_output(self, v: Value) -> Storage | None:
        """An output that is a value in another shape. One with a border cannot lie there."""
        if any(map(any, self._halo(v))):
            return None
        shapes = [op.out for op in self.readers(v) if op.prim == "reshape" and op.params.get("dimensions") is None]
        places = (self._places[x] if x in self.program.outputs else self._as_output(x) for x in shapes)
        found = next((s for s in places if s is not None), None)
        return found and found.seen_as(v.shape)

    def _inside_concatenation(self, v: Value) -> Storage | None:
        readers = self.readers(v)
        if len(readers) != 1 or readers[0].prim != "concatenate" or readers[0].ins.count(v) != 1:
            return None
        op = readers[0]
        start = sum(x.shape[op.params["dimension"]] for x in op.ins[: op.ins.index(v)])
        return self.output(op.out).part(op.params["dimension"], start, v.shape[op.params["dimension"]])

    def _apart(self, v: Value) -> int:
        """Elements to leave free behind each pixel of an image that is walked pixel by pixel, a vector of channels at a
        time, where pixels would lie a multiple of `SAME_SETS` bytes apart.
        """
        return APART if v in self._walked and 4 * v.shape[-1] % SAME_SETS == 0 else 0

    def _halo(self, v: Value) -> tuple[tuple[int, int], ...]:
        halo = [(0, 0)] * len(v.shape)
        for op in self.readers(v):
            for d, (lo, hi) in conv_padding(op, v, self.spare(op)).items():
                halo[d] = (max(halo[d][0], lo, 0), max(halo[d][1], hi, 0))
        return tuple(halo)

    # -- steps
    def add(
        self,
        driver: str,
        words: list[Word],
        items: int,
        reads: list[Buffer],
        writes: list[Buffer],
        span: int = 1,
        calls: int = 0,
        units: float = 0.0,
        shared: bool = False,
        early: Early | None = None,
    ) -> None:
        """Appends a step as `Step` has it; one without items is none."""
        if items:
            buffers, early = (tuple(reads), tuple(writes)), early if items <= abi.MOST_OWNED else None
            self.steps.append(
                Step(driver, tuple(words), items, *buffers, self.group, span, calls, units, shared, early)
            )
            self.makers.written(writes)

    def again(self, number: int, append: Callable[[], None]) -> None:
        """Puts the one step that `append()` appends in the place of step `number`, whose results it makes too. Where
        `append` raises before it appends anything, all stays as it is.
        """
        old, makers = self.steps[number], self.makers
        self.makers = makers.copy()
        try:
            append()
        finally:
            self.makers = makers
        self.steps[number] = dataclasses.replace(self.steps.pop(), group=old.group, span=old.span)

    def prune(self, kept: Iterable[Buffer] = ()) -> None:
        """Takes away what nobody reads: arrays of which only other forms are read, and steps. `kept`: what is read
        elsewhere.
        """
        alive, read = needed(self.steps, kept)
        for number, maker in list(self.makers.steps.items()):
            buffer = maker.result.ref.buffer
            if alive[number] and buffer.kind == "temp" and buffer not in read:
                maker.forms_only()
        self.steps = [step for step, used in zip(self.steps, alive, strict=True) if used]
        self.makers = Makers()


def _states(program: Program, as_stored: frozenset[Value]) -> set[Value]:
    """States of bf16 and f16 that come and go with some rows renewed, key-value caches for example: what comes, and
    what goes. Rows have an even number of elements, so that they lie in words of 4 bytes.
    """
    found = set[Value]()
    for op in program.ops:
        if op.prim != "dynamic_update_slice":
            continue
        x, update = op.ins[:2]
        if not isinstance(x, Value) or not isinstance(update, Value) or x.dtype not in TWO_BYTES:
            continue
        whole = update.size > 1 and update.shape[-1] == x.shape[-1] and x.shape[-1] % 2 == 0
        comes, goes = x in program.inputs and x not in program.outputs, op.out in program.outputs
        if whole and comes and goes and {x, op.out} <= as_stored:
            found.update((x, op.out))
    return found


def _walked(program: Program, lanes: int) -> Iterator[Value]:
    """The images that convolutions by vectors of so many channels and their gradients read and make, and those that
    pools read.
    """
    for group in program.groups:
        op, conv = group.anchor, convolution(group.anchor)
        if conv is not None and conv.window_sums:
            yield from op.value_ins
        elif conv is not None and conv.in_vectors(lanes):
            yield from (*op.value_ins[:1], group.out)
        elif op.prim.startswith("reduce_window"):
            yield from op.value_ins[:1]


def conv_padding(op: Op, v: Value, spare: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Axis of `v` -> (padding before, padding behind with what is `spare` there), for a convolution that reads `v` as
    its image and has its channels, or its batch, last; nothing for any other operation.
    """
    conv = convolution(op)
    if conv is None or op.ins[0] is not v or op.ins[1] is v or len(v.shape) - 1 not in conv.image[:2]:
        return {}
    if conv.transposed and not phases(conv):  # its image is grown first
        return {}
    axes = zip(conv.image[2:], around(conv, tuple(v.shape[d] for d in conv.image[2:])), strict=True)
    return {d: (lo, hi + spare.get(i, 0)) for i, (d, (lo, hi)) in enumerate(axes)}
