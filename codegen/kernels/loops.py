"""Steps of a loop of known length (`scan`): the steps of one turn, and where each turn finds its buffers."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..native.layout import LOOP_BUFFERS
from ..program import Body, Group, Literal, Op, Program, Unsupported, Value, kind
from ..rules.loops import Parts, parts
from ..segment.assembly import Context, Packer, lifetimes
from ..segment.steps import Looped, Ref, Word
from ..segment.storage import Buffer, Storage, dense, dense_strides, place
from . import elementwise

#: who runs the steps of a turn: all threads together, or one of them all turns
NAMES = ("together", "alone")


@dataclasses.dataclass(frozen=True, eq=False)
class _Own:
    """A buffer of a turn's own: where it lies in the first turn, in other even and in odd ones; `stride` bytes from a
    turn to the next.
    """

    buffer: Buffer
    places: tuple[Ref, Ref, Ref]
    stride: int = 0


class _Turn(Context):
    """What the rules see of one turn: its constants are those of the program around it."""

    def __init__(self, outer: Context, program: Program, threads: int):
        self.outer = outer
        super().__init__(program, outer.target, threads, dataclasses.replace(outer.rules, cut=None))

    def pack(self, nbytes: int, packer: Packer, key: object) -> Ref:
        return self.outer.pack(nbytes, packer, key)  # type: ignore[arg-type]

    def raw_const(self, v: Value) -> Buffer:
        return self.outer.raw_const(v)


def scan(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """One step for all turns.

    Raises `Unsupported` for a loop without turns, one whose body kernels cannot run, and for too many arrays.
    """
    body = op.body
    if body is None or not body.groups:
        raise Unsupported("a loop whose body only JAX knows")
    if not op.params["length"]:
        raise Unsupported("a loop without turns")
    alone = isinstance(ctx, _Turn) or ctx.threads < 2 or ctx.choose([Group.of(op)], NAMES) == "alone"
    _Loop(ctx, op, body, 1 if alone else ctx.threads).append()
    return rest


class _Loop:
    """A loop on its way into a step."""

    def __init__(self, ctx: Context, op: Op, body: Body, threads: int):
        self.ctx, self.op, self.body, self.parts = ctx, op, body, parts(op)
        self.length, self.threads = int(op.params["length"]), threads
        self.own: list[_Own] = []
        self.outside: set[Buffer] = set()  # what lies around the loop
        self.alternate: list[Buffer] = []
        self.late: list[tuple[Storage, Storage]] = []  # results that are copied when the loop is over
        known = tuple(v for v in dict.fromkeys((*op.reads,)) if v in ctx.consts)
        made = tuple(v for v in body.outputs if isinstance(v, Value))
        self.turn = _Turn(ctx, Program(body.inputs, known, body.groups, made), threads)

    def append(self) -> None:
        """Appends the step, and copies of what had to be made elsewhere."""
        p = self.parts
        for outer, inner in zip(p.of(self.op.ins)[0], p.of(self.body.inputs)[0], strict=True):
            self._same(outer, inner)
        self._carried(p)
        self._sliced(p)
        self._steps()
        for source, target in self.late:
            elementwise.copy(self.ctx, source, target)

    def _source(self, v: Value | Literal) -> Storage:
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

    def _target(self, v: Value) -> Storage:
        """Where a result is made: in its place, if its elements lie side by side there."""
        s = self.ctx.output(v)
        if not s.dense:
            made = self.ctx.scratch(v.shape)
            self.late.append((made, s))
            s = made
        self.outside.add(s.buffer)
        return s

    def _same(self, outer: Value | Literal, inner: Value) -> None:
        """An operand that is the same in every turn; a constant is read as the program around has it."""
        if not (isinstance(outer, Value) and outer in self.ctx.consts):
            self.turn.place(inner, self._source(outer))

    def _mine(self, v: Value, first: Ref, even: Ref, odd: Ref, stride: int = 0) -> None:
        """A value of the turn in a buffer of its own."""
        buffer = Buffer("turn", 4 * v.size)
        self.own.append(_Own(buffer, (first, even, odd), stride))
        self.turn.place(v, dense(buffer, v.shape))

    def _carried(self, p: Parts) -> None:
        """What a turn hands on alternates between two places, so that the last turn writes the loop's result."""
        for outer, inner, out, result in zip(
            p.of(self.op.ins)[1],
            p.of(self.body.inputs)[1],
            p.made(self.body.outputs)[0],
            p.made(self.op.outs)[0],
            strict=True,
        ):
            assert isinstance(out, Value)
            source, target = self._source(outer), self._target(result)
            other = Buffer("temp", max(4 * out.size, 4))
            self.alternate.append(other)
            places = (Ref(target.buffer, target.offset), Ref(other, 0))
            even, odd = places if self.length % 2 else places[::-1]  # of the turn that writes
            self._mine(inner, Ref(source.buffer, source.offset), odd, even)
            self._mine(out, even, even, odd)

    def _sliced(self, p: Parts) -> None:
        """Arrays of which each turn reads or writes its part."""
        pairs = [
            *(
                (self._source(v), inner)
                for v, inner in zip(p.of(self.op.ins)[2], p.of(self.body.inputs)[2], strict=True)
            ),
            *(
                (self._target(v), inner)
                for v, inner in zip(p.made(self.op.outs)[1], p.made(self.body.outputs)[1], strict=True)
            ),
        ]
        for s, inner in pairs:
            assert isinstance(inner, Value)
            step = dense_strides(s.shape)[0]
            back = bool(self.op.params["reverse"])
            ref = Ref(s.buffer, s.offset + (step * (self.length - 1) if back else 0))
            self._mine(inner, ref, ref, ref, -step if back else step)

    def _steps(self) -> None:
        """Makes the steps of a turn, and the loop's step of them."""
        turn, ctx = self.turn, self.ctx
        while turn.group < len(turn.program.groups):
            turn.rules.lower(turn, turn.program.groups[turn.group])
            turn.group += 1
        if not turn.steps:
            raise Unsupported("a loop that does nothing")
        mine = [x for x in lifetimes(turn.steps) if x.buffer not in self.outside]
        offsets, _, nbytes = place(mine)
        scratch = Buffer("temp", max(nbytes, 64), geometry=("loop", object()))
        word = Looped(tuple(turn.steps), tuple(o.buffer for o in self.own), offsets, scratch)
        rows: list[Word] = [x for o in self.own for x in (*o.places, o.stride)]
        if len(self.own) + len(ctx.program.inputs) + len(ctx.program.outputs) + len(ctx.raw) > LOOP_BUFFERS // 2:
            raise Unsupported(f"{len(self.own)} arrays in a loop")
        temps = [b for b in self.outside if b.kind == "temp"]
        around = [*self.outside, *temps]
        ctx.add(
            "loop",
            [self.length, word, len(self.own), *rows],
            1,
            [*around, *self.alternate, scratch],
            [*around, *self.alternate, scratch],
            calls=self.length * sum(s.calls for s in turn.steps),
            units=self.length * sum(s.units for s in turn.steps),
            shared=self.threads > 1,
        )


def _bits(v: Literal) -> np.ndarray:
    """A literal in 4 bytes as kernels hold it, [1] f32."""
    return np.full(1, v.val, np.int32).view(np.float32) if kind(v.dtype) == "i" else np.full(1, v.val, np.float32)


__all__ = ["NAMES", "scan"]
