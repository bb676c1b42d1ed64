"""Frozen records of what is computed: values, operations, straight-line programs.

`xcoexec.frontend.trace` makes them from a jaxpr; kernels, the partitioner and the lowering read them. An `Op`
keeps JAX's primitive name and parameters, so the meaning of every operation is JAX's own.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Params = Mapping[str, Any]  # parameters of an operation by name, whose types are JAX's and differ by primitive
WHILE = "while"
Scalar = bool | int | float | np.number | np.bool_ | np.ndarray  # an array of shape ()


class Unsupported(NotImplementedError):
    """The kernels cannot express an operation; the text says which and why."""


class Indivisible(ValueError):
    """A range of an operation's result is no operation on parts of its operands; the text says why."""


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """One array of a program; identity is its name. `dtype` is NumPy's name of the type.

    `source`: the array of a narrower type that this one is a cast of, with the same elements in the same order; kernels
    may read that instead. `scale`: what the cast is multiplied with, an array of as many axes as the source, each as
    long or 1.
    """

    shape: tuple[int, ...]
    dtype: str
    source: Value | None = None
    scale: Value | None = None

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements, each in its own type."""
        return self.size * itemsize(self.dtype)

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclasses.dataclass(frozen=True, eq=False)
class Literal:
    """A scalar that is part of the program text; `shape` is always ()."""

    val: Scalar
    dtype: str
    shape: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"{self.val}"


@dataclasses.dataclass(frozen=True, eq=False)
class Op:
    """One equation: `outs = prim(*ins, **params)`. `primitive` is the JAX object (None in tests), `body` what a loop
    repeats (None for other operations, and for loops that only JAX can run).
    """

    prim: str
    ins: tuple[Value | Literal, ...]
    outs: tuple[Value, ...]
    params: Params
    name: str = ""
    primitive: Any = None  # of JAX, which nothing here may import
    body: Body | None = None

    @property
    def out(self) -> Value:
        """The first result, the only one of most operations."""
        return self.outs[0]

    @property
    def value_ins(self) -> tuple[Value, ...]:
        """The operands that are arrays, in order: literals are left out."""
        return tuple(v for v in self.ins if isinstance(v, Value))

    @functools.cached_property
    def unbounded(self) -> bool:
        """Whether its operands say how often something in it is done: it is a `while` loop, or has one inside. On other
        operands than its own it may never end.
        """
        inside = self.body.all_ops if self.body is not None else ()
        return self.prim == WHILE or any(op.unbounded for op in inside) or any(map(_loops, self.params.values()))

    @property
    def operands(self) -> tuple[Value | Literal, ...]:
        """Its operands, and behind them the constants inside of a loop."""
        return (*self.ins, *self.body.consts) if self.body is not None else self.ins

    @property
    def reads(self) -> tuple[Value, ...]:
        """The arrays among its operands, and the constants inside of a loop."""
        return (*self.value_ins, *self.body.consts) if self.body is not None else self.value_ins


def _loops(parameter: object) -> bool:
    """Whether a parameter of an operation is a program of JAX's, or several, with a `while` loop somewhere inside."""
    if isinstance(parameter, (tuple, list)):
        return any(map(_loops, parameter))
    equations = getattr(getattr(parameter, "jaxpr", parameter), "eqns", ())
    return any(eqn.primitive.name == WHILE or any(map(_loops, eqn.params.values())) for eqn in equations)


@dataclasses.dataclass(frozen=True, eq=False)
class Body:
    """One turn of a loop. `inputs` stand for the operands, one each: `same` of them as they are, then `carried` ones as
    the turn before left them, then the turn's part of arrays. `consts` are arrays of its own; `outputs` what it hands
    on, then its part of arrays.

    `groups` are its operations once the program around it is known, and so which of its inputs are constants (none
    before). `condition`: what is asked before each turn (None: there are so many turns as a parameter says).
    """

    inputs: tuple[Value, ...]
    same: int
    carried: int
    consts: tuple[Value, ...]
    ops: tuple[Op, ...]
    outputs: tuple[Value | Literal, ...]
    groups: tuple[Group, ...] = ()
    condition: Condition | None = None

    @property
    def all_ops(self) -> tuple[Op, ...]:
        """The operations of the condition, then those of the turn."""
        return (*self.condition.ops, *self.ops) if self.condition is not None else self.ops

    @property
    def all_groups(self) -> tuple[Group, ...]:
        """The groups of the condition, then those of the turn."""
        return (*self.condition.groups, *self.groups) if self.condition is not None else self.groups


@dataclasses.dataclass(frozen=True, eq=False)
class Condition:
    """What a loop asks before each turn: the bool `value`, which `ops` make; `groups` as those of the body."""

    value: Value
    ops: tuple[Op, ...]
    groups: tuple[Group, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """One anchor with its elementwise tail: `ops` in program order, every one after what it reads.

    The last operation makes the group's result, `also` are values of earlier ones that others read; `anchor` is the one
    whose kernels do the work. Raises `ValueError` for operations in another order, and for an anchor that is not among
    them.
    """

    ops: tuple[Op, ...]
    anchor: Op
    also: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        later = {v for op in self.ops for v in op.outs}
        for op in self.ops:
            if any(v in later for v in op.value_ins):
                raise ValueError(f"Group: {op.prim} {op.name!r} stands before an operation that it reads.")
            later -= set(op.outs)
        if self.anchor not in self.ops:
            raise ValueError(f"Group: the anchor {self.anchor.prim} {self.anchor.name!r} is not among its operations.")

    @classmethod
    def of(cls, op: Op) -> Group:
        """An operation on its own."""
        return cls((op,), op)

    @property
    def result(self) -> Op:
        """The operation that makes the group's result."""
        return self.ops[-1]

    @property
    def out(self) -> Value:
        return self.result.out

    @property
    def outs(self) -> tuple[Value, ...]:
        """What others read: of its last operation, and `also`."""
        return (*self.result.outs, *self.also)

    @property
    def tail(self) -> tuple[Op, ...]:
        """The operations beside the anchor."""
        return tuple(op for op in self.ops if op is not self.anchor)

    @property
    def leader(self) -> Op:
        """The operation that the group is named after: one that does more than spread a constant, the anchor first."""
        return next((op for op in (self.anchor, *self.ops) if op.prim != "broadcast_in_dim"), self.anchor)


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """`groups` of operations, in order.

    `consts` are weights (known when the program is bound), `inputs` arrive with every call.
    """

    inputs: tuple[Value, ...]
    consts: tuple[Value, ...]
    groups: tuple[Group, ...]
    outputs: tuple[Value, ...]

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(op for group in self.groups for op in group.ops)


def itemsize(dtype: str) -> int:
    """Bytes of one element; extended types (keys, tokens) count as 4."""
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        return 2 if dtype in ("bfloat16",) else 4


def bits(dtype: str) -> int:
    """Bits of an element as kernels read it from memory: two of int4 lie in a byte."""
    return 4 if dtype == "int4" else 8 * itemsize(dtype)


_KINDS = {**dict.fromkeys(("float32", "bfloat16", "float16", "int8"), "f"), "int32": "i", "bool": "b"}


def kind(dtype: str) -> str:
    """How kernels hold a type, always in 4 bytes: "f" as f32, "i" as s32, "b" (bool) as f32 0 or 1; "" not at all."""
    return _KINDS.get(dtype, "")


def consumers(ops: Iterable[Op]) -> dict[Value, list[Op]]:
    """Value -> the operations that read it, in program order."""
    table: dict[Value, list[Op]] = {}
    for op in ops:
        for v in dict.fromkeys(op.value_ins):
            table.setdefault(v, []).append(op)
    return table


def external(ops: Iterable[Op]) -> tuple[Value, ...]:
    """Values that `ops` read but do not make, in order of first use."""
    ops = tuple(ops)
    made = {v for op in ops for v in op.outs}
    return tuple(dict.fromkeys(v for op in ops for v in op.reads if v not in made))


def format_params(params: Params) -> str:
    """The parameters that say something, in a stable order (golden text)."""
    skip = {"sharding", "out_sharding", "precision", "preferred_element_type", "accuracy", "name"}
    shown = {
        k: v
        for k, v in sorted(params.items())
        if k not in skip and v is not None and isinstance(v, (int, str, tuple, bool))
    }
    return ", ".join(f"{k}={v}" for k, v in shown.items()).replace(" ", "")


def format_program(program: Program) -> str:
    """Readable text: one line an operation, values numbered in order of appearance."""
    ids: dict[Value, str] = {}

    def name(v: Value | Literal) -> str:
        return repr(v) if isinstance(v, Literal) else ids.setdefault(v, f"v{len(ids)}")

    head = [f"input {name(v)}: {v}" for v in program.inputs] + [f"const {name(v)}: {v}" for v in program.consts]
    lines = []
    for group in program.groups:
        for op in group.ops:
            ins = ", ".join(name(v) for v in op.ins)
            outs = ", ".join(f"{name(v)}: {v}" for v in op.outs)
            params = format_params(op.params)
            lines.append(f"  {outs} = {op.prim}({ins})" + (f" [{params}]" if params else ""))
        lines.append("  --")
    return "\n".join([*head, *lines, "return " + ", ".join(name(v) for v in program.outputs)])
