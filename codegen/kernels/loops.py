"""Steps of a loop (`scan`, `while`): the steps of one turn, and where each turn finds its buffers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from ..native.layout import LOOP_BUFFERS, UNENDING
from ..program import Body, Group, Literal, Op, Program, Unsupported, Value, kind
from ..rules.loops import parts
from ..segment.assembly import lifetimes
from ..segment.context import Context, Packer
from ..segment.makers import Makers
from ..segment.steps import Looped, Ref, Step, Word
from ..segment.storage import Buffer, Storage, dense, dense_strides, place
from . import elementwise

#: who runs the steps of a turn: all threads together, some of them (where steps are short, waiting for many costs more
#: than they do), or one of them all turns
NAMES = ("together", "alone")
FEW = {"eight": 8, "four": 4, "two": 2}


def scan(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """One step for all turns of a loop of known length.

    Raises `Unsupported` for a loop without turns, one whose body kernels cannot run, and for too many arrays.
    """
    if not op.params["length"]:
        raise Unsupported("a loop without turns")
    _Scan(ctx, op).append()
    return rest


def while_(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """One step for all turns of a loop that goes on as long as a condition holds.

    Raises `Unsupported` for a loop whose condition or body kernels cannot run, and for too many arrays.
    """
    _While(ctx, op).append()
    return rest


# -- a turn ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class _Own:
    """A buffer of a turn's own: where it lies in the first turn, in other even and in odd ones; `stride` bytes from a
    turn to the next.
    """

    buffer: Buffer
    places: tuple[Ref, Ref, Ref]
    stride: int = 0


class _Read(Mapping[Value, np.ndarray]):
    """Constants as those of turn number `at`, whose part of an array it is that a value of the turn stands for;
    `asked` is set once such a part is read.
    """

    def __init__(self, consts: Mapping[Value, np.ndarray], part_of: Mapping[Value, Value], at: int):
        self.consts, self.part_of, self.at, self.asked = consts, part_of, at, False

    def __getitem__(self, v: Value) -> np.ndarray:
        if v in self.part_of:
            self.asked = True
            return self.consts[self.part_of[v]][self.at]
        return self.consts[v]

    def __iter__(self) -> Iterator[Value]:
        yield from (*self.consts, *self.part_of)

    def __len__(self) -> int:
        return len(self.consts) + len(self.part_of)


class _Shapes(Mapping[Value, np.ndarray]):
    """Any value as zeroes of its shape, without memory."""

    def __getitem__(self, v: Value) -> np.ndarray:
        return np.broadcast_to(np.zeros((), v.dtype if v.dtype != "bfloat16" else np.float32), v.shape)

    def __iter__(self) -> Iterator[Value]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Turn(Context):
    """What the rules see of one turn: its constants are those of the program around it, and the turn's parts of arrays
    of constants (`part_of`: which), such as the weights of layers of one shape.
    """

    def __init__(self, loop: _Loop, program: Program, threads: int, part_of: Mapping[Value, Value]):
        self.loop, self.outer, self.part_of = loop, loop.ctx, part_of
        # the arrays of a turn are those of the program around it, which holds them in 4 bytes an element
        rules = dataclasses.replace(loop.ctx.rules, cut=None, convert=None)
        super().__init__(program, loop.ctx.target, threads, rules)
        self._parts: dict[Hashable, Ref] = {}

    def pack(self, nbytes: int, packer: Packer, key: Hashable) -> Ref:
        probe = _Read(_Shapes(), self.part_of, 0)
        if key not in self._parts and self.part_of:
            packer(probe)
        if not probe.asked and key not in self._parts:
            return self.outer.pack(nbytes, packer, key)
        if key not in self._parts:
            self._parts[key] = self._pack_all(-(-nbytes // 64) * 64, packer, key)
        return self._parts[key]

    def _pack_all(self, nbytes: int, packer: Packer, key: Hashable) -> Ref:
        """Packs the parts of all turns one behind the other."""
        length, part_of = self.loop.length, self.part_of

        def all_turns(consts: Mapping[Value, np.ndarray]) -> np.ndarray:
            arrays = _Kept(consts)
            out = np.zeros((length, nbytes // 4), np.float32)
            for t in range(length):
                part = np.ascontiguousarray(packer(_Read(arrays, part_of, t)), np.float32).ravel()
                out[t, : part.size] = part
            return out

        ref = self.outer.pack(nbytes * length, all_turns, (key, "of all turns"))
        return Ref(self.loop.by_turn(ref, nbytes), 0)

    def raw_const(self, v: Value) -> Buffer:
        if v not in self.part_of:
            return self.outer.raw_const(v)
        if v not in self.raw:
            self.raw[v] = self.loop.by_turn(Ref(self.outer.raw_const(self.part_of[v]), 0), v.nbytes)
        return self.raw[v]


class _Kept(dict[Value, np.ndarray]):
    """Constants, each computed once."""

    def __init__(self, consts: Mapping[Value, np.ndarray]):
        super().__init__()
        self.consts = consts

    def __missing__(self, v: Value) -> np.ndarray:
        self[v] = self.consts[v]
        return self[v]


# -- loops -------------------------------------------------------------------------------------------


class _Loop:
    """A loop on its way into a step."""

    length, back = UNENDING, False

    def __init__(self, ctx: Context, op: Op):
        if op.body is None or not op.body.groups:
            raise Unsupported("a loop whose body only JAX knows")
        self.ctx, self.op, self.body, self.parts = ctx, op, op.body, parts(op)
        self.threads = 1 if isinstance(ctx, _Turn) or ctx.threads < 2 else self._sharers()
        self.own: list[_Own] = []
        self.outside: set[Buffer] = set()  # what lies around the loop
        self.late: list[tuple[Storage, Storage]] = []  # results that are copied when the loop is over
        self.turn = self._turn(self.body)

    def _sharers(self) -> int:
        """Threads that share the steps of a turn."""
        few = {name: n for name, n in FEW.items() if n < self.ctx.threads}
        known = {NAMES[0]: self.ctx.threads, **few, NAMES[1]: 1}
        return known[self.ctx.choose([Group.of(self.op)], tuple(known))]

    def _turn(self, body: Body) -> _Turn:
        inputs = zip(self.parts.of(self.op.ins)[2], self.parts.of(body.inputs)[2], strict=True)
        part_of = {x: v for v, x in inputs if isinstance(v, Value) and v in self.ctx.consts}
        known = (*(v for v in dict.fromkeys(self.op.reads) if v in self.ctx.consts), *part_of)
        made = tuple(v for v in body.outputs if isinstance(v, Value))
        given = tuple(x for x in body.inputs if x not in part_of)
        return _Turn(self, Program(given, known, body.all_groups, made), self.threads, part_of)

    def append(self) -> None:
        """Appends the step, and copies of what had to be made elsewhere."""
        for outer, inner in zip(self.parts.of(self.op.ins)[0], self.parts.of(self.body.inputs)[0], strict=True):
            if self.turn.readers(inner):  # what is constant around the loop has kept its name inside of it
                self.turn.place(inner, self.source(outer))
        for outer, inner, out, result in zip(
            self.parts.of(self.op.ins)[1],
            self.parts.of(self.body.inputs)[1],
            self.parts.made(self.body.outputs)[0],
            self.parts.made(self.op.outs)[0],
            strict=True,
        ):
            assert isinstance(out, Value)
            self.carry(self.source(outer), inner, out, self.target(result))
        self._sliced()
        self._add(*self.steps())
        for source, target in self.late:
            elementwise.copy(self.ctx, source, target)

    def carry(self, source: Storage, inner: Value, out: Value, target: Storage) -> None:
        """Places what a turn reads of the one before (`inner`) and hands on (`out`)."""
        raise NotImplementedError

    def steps(self) -> tuple[int, Ref]:
        """Makes the steps of a turn: how many of them come before the condition is asked, and where it is then."""
        raise NotImplementedError

    def source(self, v: Value | Literal) -> Storage:
        """Where an operand lies, its elements side by side."""
        if not kind(v.dtype):
            raise Unsupported(f"a loop over {v}")
        if isinstance(v, Value):
            s = elementwise.dense(self.ctx, self.ctx.storage(v))
        else:
            ref = self.ctx.pack(4, lambda consts: _bits(v), ("literal", v.dtype, str(v.val)))
            s = dense(ref.buffer, (), ref.offset)
        self.outside.add(s.buffer)
        return s

    def target(self, v: Value) -> Storage:
        """Where a result is made: in its place, if its elements lie side by side there."""
        s = self.ctx.output(v)
        if not s.dense:
            made = self.ctx.scratch(v.shape)
            self.late.append((made, s))
            s = made
        self.outside.add(s.buffer)
        return s

    def spare(self, v: Value) -> Storage:
        """A place for a value, for as long as the loop runs."""
        s = dense(Buffer("temp", max(4 * v.size, 8)), v.shape)
        self.outside.add(s.buffer)
        return s

    def by_turn(self, ref: Ref, stride: int) -> Buffer:
        """A buffer that begins at `ref` in the first turn, and `stride` bytes further on in each later one."""
        if self.back:
            ref, stride = Ref(ref.buffer, ref.offset + stride * (self.length - 1)), -stride
        self.own.append(_Own(Buffer("turn", abs(stride)), (ref, ref, ref), stride))
        return self.own[-1].buffer

    def _sliced(self) -> None:
        """Arrays of which each turn reads or writes its part."""
        reads = zip(self.parts.of(self.op.ins)[2], self.parts.of(self.body.inputs)[2], strict=True)
        writes = zip(self.parts.made(self.op.outs)[1], self.parts.made(self.body.outputs)[1], strict=True)
        pairs = [(self.source(v), x) for v, x in reads if x not in self.turn.part_of]
        for s, x in (*pairs, *((self.target(v), x) for v, x in writes)):
            assert isinstance(x, Value)
            buffer = self.by_turn(Ref(s.buffer, s.offset), dense_strides(s.shape)[0])
            self.turn.place(x, dense(buffer, x.shape))

    def lower(self, groups: tuple[Group, ...]) -> None:
        """Appends the steps of some of a turn's groups, which come next."""
        for group in groups:
            self.turn.rules.lower(self.turn, group)
            self.turn.group += 1

    def chain(self, first: int) -> None:
        """Makes one step of neighbouring steps of one item each, from number `first` of the turn on: whoever takes the
        first of them does them all, and nobody waits in between.
        """
        steps, made = self.turn.steps[first:], []
        for alone, run in itertools.groupby(steps, lambda s: s.items == 1):
            group = list(run)
            made += [_chained(group)] if alone and len(group) > 1 and self.threads > 1 else group
        self.turn.steps[first:] = made
        self.turn.makers = Makers()  # whose steps have other numbers now

    def _add(self, check: int, flag: Ref) -> None:
        """Appends the loop's step, of the turn's steps."""
        turn, ctx = self.turn, self.ctx
        if not turn.steps:
            raise Unsupported("a loop that does nothing")
        offsets, _, nbytes = place([x for x in lifetimes(turn.steps) if x.buffer not in self.outside])
        scratch = Buffer("temp", max(nbytes, 64), geometry=("loop", object()))
        buffers = len(self.own) + len(ctx.program.inputs) + len(ctx.program.outputs) + len(ctx.raw)
        if buffers > LOOP_BUFFERS // 2:
            raise Unsupported(f"{buffers} arrays in a loop")
        word = Looped(tuple(turn.steps), tuple(o.buffer for o in self.own), offsets, scratch)
        rows: list[Word] = [x for o in self.own for x in (*o.places, o.stride)]
        often = 1 if self.length == UNENDING else self.length
        touched = [*self.outside, scratch]
        ctx.add(
            "loop",
            [self.length, word, len(self.own), check, flag, self.threads, *rows],
            1,
            touched,
            touched,
            calls=often * sum(s.calls for s in turn.steps),
            units=often * sum(s.units for s in turn.steps),
            shared=self.threads > 1,
        )


class _Scan(_Loop):
    """A loop of known length. What a turn hands on alternates between two places, so that the last turn writes the
    loop's result.
    """

    def __init__(self, ctx: Context, op: Op):
        self.length, self.back = int(op.params["length"]), bool(op.params["reverse"])
        super().__init__(ctx, op)

    def carry(self, source: Storage, inner: Value, out: Value, target: Storage) -> None:
        first, other = Ref(source.buffer, source.offset), Ref(self.spare(out).buffer, 0)
        last = Ref(target.buffer, target.offset)
        even, odd = (last, other) if self.length % 2 else (other, last)  # of the turn that writes
        for v, places in ((inner, (first, odd, even)), (out, (even, even, odd))):
            self.own.append(_Own(Buffer("turn", 4 * v.size), places))
            self.turn.place(v, dense(self.own[-1].buffer, v.shape))

    def steps(self) -> tuple[int, Ref]:
        self.lower(self.body.groups)
        self.turn.prune(self.outside)
        self.chain(0)
        return 0, Ref(next(iter(self.outside)), 0)


class _While(_Loop):
    """A loop that asks before each turn. What a turn hands on is copied over what it has read, in the place of the
    loop's result.
    """

    def __init__(self, ctx: Context, op: Op):
        self.back_copies: list[tuple[Storage, Storage]] = []
        super().__init__(ctx, op)

    def carry(self, source: Storage, inner: Value, out: Value, target: Storage) -> None:
        elementwise.copy(self.ctx, source, target)
        self.turn.place(inner, target)
        if out is not inner:
            self.turn.place(out, self.spare(out))
            self.back_copies.append((self.turn.storage(out), target))

    def steps(self) -> tuple[int, Ref]:
        condition = self.body.condition
        assert condition is not None
        flag = self.spare(condition.value)
        self.turn.place(condition.value, flag)
        self.lower(condition.groups)
        if self.turn.steps[-1].items != 1:  # who runs its only item is the one who looks at it
            asked = self.spare(condition.value)
            elementwise.copy(self.turn, flag, asked)
            flag = asked
        self.chain(0)
        check = len(self.turn.steps)
        self.lower(self.body.groups)
        for made, target in self.back_copies:
            elementwise.copy(self.turn, made, target)
        self.chain(check)
        return check, Ref(flag.buffer, flag.offset)


def _chained(steps: list[Step]) -> Step:
    """Steps of one item each as one: a loop of one turn on one thread."""
    touched = tuple(dict.fromkeys(b for s in steps for b in (*s.reads, *s.writes)))
    word = Looped(tuple(steps), (), {}, touched[0])
    return dataclasses.replace(
        steps[0],
        driver="loop",
        words=(1, word, 0, 0, Ref(touched[0], 0), 1),
        reads=touched,
        writes=touched,
        calls=sum(s.calls for s in steps),
        units=sum(s.units for s in steps),
    )


def _bits(v: Literal) -> np.ndarray:
    """A literal in 4 bytes as kernels hold it, [1] f32."""
    return np.full(1, v.val, np.int32).view(np.float32) if kind(v.dtype) == "i" else np.full(1, v.val, np.float32)


__all__ = ["NAMES", "scan", "while_"]
