"""Elementwise programs as data: what they mean, which arrays they read and how, and their vector code.

An expression is a tuple of nodes in order of evaluation; the last is the result:
    ("in", k)             operand k
    ("lit", kind, text)   a scalar
    (prim, a, b, ...)     an elementwise primitive of nodes a, b, ...; "add@i" is on s32, "and@b" on bool,
                          "exp@bf16" makes f32 that is bf16 by its type, "integer_pow:3" carries its parameter
Movement (broadcast, transpose, slice, reverse) is pushed down to the operands: it becomes a `View`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..program import Literal, Op, Scalar, Unsupported, Value, kind
from .movement import Axis
from .primitives import is_elementwise, is_reduction, primitive

Node = tuple[Any, ...]  # a head (text), then what it says: numbers of nodes, or texts
Expr = tuple[Node, ...]
COPY: Expr = (("in", 0),)  # the operand itself
TO_BF16: Expr = (("in", 0), ("bfloat", 0))  # the operand rounded to bf16, as f32
MOST_OPS = 256  # operations of one expression
LOAD = {"f": None, "i": "bits", "b": "fb"}  # what makes a loaded vector of f32 a value of its kind
STORE = {"f": None, "i": "floats", "b": "bf"}  # and back

WRAPS = frozenset(("add", "add_any", "sub", "mul", "square", "neg", "abs"))  # what may leave the range of s8
SHORTER = frozenset(("exp", "exp2", "logistic", "tanh", "erf", "erfc"))  # take less where a result is bf16
PARAMETER = {"integer_pow": "y", "round": "rounding_method"}  # whole numbers that are a part of what is computed


def primitive_of(node: Node) -> str:
    """The name of the primitive that a node computes, without what its head says besides."""
    return str(node[0]).split("@")[0].split(":")[0]


@dataclasses.dataclass(frozen=True)
class View:
    """How an operand is read: one `Axis` (output dim or None, step, start) for each of its dimensions."""

    value: Value
    axes: tuple[Axis, ...]

    def strides(self, rank: int, element_strides: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """(stride for each output dim, offset), in the unit of `element_strides` (bytes or elements), one an axis of
        the value.
        """
        out = [0] * rank
        offset = 0
        for (dim, step, start), s in zip(self.axes, element_strides, strict=True):
            offset += start * s
            if dim is not None:
                out[dim] += step * s
        return tuple(out), offset


def literal(value: Scalar, dtype: str = "float32") -> Node:
    """The node of a scalar: as text, because 2, 2.0 and True, or 0.0 and -0.0, are the same key of a dictionary."""
    k = kind(dtype)
    number = int(value) if k == "i" else bool(value) if k == "b" else float(np.asarray(value).astype(dtype))
    return ("lit", k, repr(number))


def identity_axes(shape: tuple[int, ...]) -> tuple[Axis, ...]:
    """The axes of an array of that shape that is read at the very output index."""
    return tuple((i, 1, 0) if n != 1 else (None, 0, 0) for i, n in enumerate(shape))


def expression(
    ops: tuple[Op, ...],
    result: Value,
    anchor: Value | None = None,
) -> tuple[Expr, tuple[View, ...]]:
    """The expression of `result` over the values that `ops` read from outside, and its operand views.

    With `anchor`, operand 0 is that value at the very output index (an epilogue on accumulators). Values of bf16, f16
    and s8 are f32: a cast to them rounds, and so does every operation on f16, whose range is small; one on s8 wraps
    around. Raises `Unsupported` for a primitive, dtype or movement that has no vector code.
    """
    draft = _Draft(ops, anchor)
    if draft.stored(result) != len(draft.nodes) - 1:
        raise Unsupported("the result is an operand")
    return tuple(draft.nodes), tuple(draft.views)


def expressions(
    ops: tuple[Op, ...], operands: tuple[Value, ...], stored: tuple[Value, ...]
) -> tuple[Expr, tuple[int, ...], tuple[View, ...]]:
    """One list of nodes for several values of one shape, as `expression` makes them: the nodes, the number of each of
    `operands` and then of each of `stored`, as a vector of f32, and the views that are read. Raises as `expression`.
    """
    draft = _Draft(ops)
    numbers = [draft.build(v, identity_axes(v.shape)) for v in operands]
    numbers += [draft.stored(v) for v in stored]
    return tuple(draft.nodes), tuple(numbers), tuple(draft.views)


def rows_expression(
    ops: tuple[Op, ...], stored: tuple[Value, ...], shape: tuple[int, ...]
) -> tuple[Expr, tuple[int, ...], tuple[View, ...]]:
    """As `expressions`, where reductions over the last axis of rows of a `shape` are nodes of their own, whose operand
    is over the whole row. What is stored are rows, or one number a row.
    """
    draft, row, one = _Draft(ops, shape=shape), identity_axes(shape), ((None, 0, 0),)
    places = {shape: row, shape[:-1]: row[:-1], (*shape[:-1], 1): (*row[:-1], *one)}
    numbers = tuple(draft.stored(v, row if v.shape == shape else places[v.shape]) for v in stored)
    return tuple(draft.nodes), numbers, tuple(draft.views)


class _Draft:
    """An expression in the making: its nodes and views in order, each with its number, and what has been built."""

    def __init__(self, ops: tuple[Op, ...], anchor: Value | None = None, shape: tuple[int, ...] | None = None):
        if len(ops) > MOST_OPS:
            raise Unsupported(f"{len(ops)} operations in one group; an expression has at most {MOST_OPS}")
        self.anchor, self.shape = anchor, shape
        self.made = {v: op for op in ops for v in op.outs if v is not anchor}
        self.nodes: dict[Node, int] = {}
        self.views: dict[View, int] = {}
        self.built: dict[tuple[Value, tuple[Axis, ...]], int] = {}
        if anchor is not None:
            self.views[View(anchor, identity_axes(anchor.shape))] = 0

    def node(self, head: str, *args: int | str) -> int:
        return self.nodes.setdefault((head, *args), len(self.nodes))

    def changed(self, head: str | None, n: int) -> int:
        """A node over node `n`; without a head `n` itself."""
        return n if head is None else self.node(head, n)

    def stored(self, v: Value, axes: tuple[Axis, ...] | None = None) -> int:
        """The node of a result as it is stored, at the output index that `axes` say (none given: the very same)."""
        if not kind(v.dtype):
            raise Unsupported(f"a result of type {v.dtype}; kernels know f32, s32 and bool")
        return self.changed(STORE[kind(v.dtype)], self.build(v, identity_axes(v.shape) if axes is None else axes))

    def build(self, v: Value | Literal, axes: tuple[Axis, ...]) -> int:
        """The node of a value whose dimensions follow from the output index as `axes` say."""
        if not kind(v.dtype):
            raise Unsupported(f"a value of type {v.dtype}; kernels know f32, s32 and bool")
        if isinstance(v, Literal):
            return self.node(*literal(v.val, v.dtype))
        if (v, axes) not in self.built:
            op = self.made.get(v)
            rounding = "half" if v.dtype == "float16" and (op is None or not primitive(op).exact) else None
            plain = self._read(v, axes) if op is None else self._compute(op, axes)
            if v.dtype == "int8" and op is not None and op.prim in WRAPS:
                plain = self._around(plain)
            self.built[v, axes] = self.changed(rounding, plain)
        return self.built[v, axes]

    def _read(self, v: Value, axes: tuple[Axis, ...]) -> int:
        if v is self.anchor and axes != identity_axes(v.shape):
            raise Unsupported("the tail moves the anchor's elements")
        operand = self.node("in", self.views.setdefault(View(v, axes), len(self.views)))
        return self.changed(LOAD[kind(v.dtype)], operand)

    def _compute(self, op: Op, axes: tuple[Axis, ...]) -> int:
        if self.shape is not None and is_reduction(op):
            row = identity_axes(self.shape)
            if (*axes, row[-1]) != row or op.ins[0].shape != self.shape:
                raise Unsupported("a reduction that is moved before it is used")
            return self.node(op.prim, self.build(op.ins[0], row))
        moved = primitive(op).axes
        if moved is not None:
            return self.build(op.ins[0], () if isinstance(op.ins[0], Literal) else moved(op, axes))
        if not is_elementwise(op):
            raise Unsupported(f"{op.prim} has no vector code")
        converts = op.prim == "convert_element_type"
        if converts and op.out.dtype == "int8" and (near := self._unrounded(op.ins[0], axes)) is not None:
            return self.node("nearest", near)
        args = [self.build(a, _operand_axes(a, op.out, axes)) for a in op.ins]
        if converts:
            return self._converted(op.ins[0].dtype, op.out.dtype, args[0])
        return self.node(_head(op), *args)

    def _unrounded(self, x: Value | Literal, axes: tuple[Axis, ...]) -> int | None:
        """The node of numbers of which `x` has the nearest whole ones (ties to even), between bounds that are whole, so
        that it does not matter whether numbers are rounded before; None where x is no such thing.
        """
        made = self.made.get(x) if isinstance(x, Value) else None
        if made is None or x.dtype != "float32":
            return None
        if made.prim == "round":
            source, even = made.ins[0], int(made.params["rounding_method"]) == 1
            return self.build(source, axes) if even and isinstance(source, Value) else None
        if made.prim not in ("max", "min"):
            return None
        for k, side in enumerate(made.ins):
            bound = made.ins[1 - k]
            if isinstance(bound, Literal) and float(bound.val).is_integer():
                inner = self._unrounded(side, axes)
                return None if inner is None else self.node(_head(made), inner, self.build(bound, ()))
        return None

    def _around(self, n: int) -> int:
        """A whole number as the s8 that is the same but for a multiple of 256."""
        return self.node("if", self.node("wrapped", self.node("fi", n)))

    def _converted(self, before: str, after: str, n: int) -> int:
        """A conversion; f32 and s32 are rounded to bf16 here (`build` rounds to f16)."""
        change = kind(before) + kind(after)
        if after == "int8" and before in ("int32", "float32", "bfloat16", "float16"):
            return self.changed("if", self.node("wrapped", n)) if before == "int32" else self.node("byte", n)
        n = self.changed(None if change[0] == change[1] else change, n)
        return self.changed("bfloat" if after == "bfloat16" and before not in ("bfloat16", "bool") else None, n)


def _head(op: Op) -> str:
    """The node of an elementwise operation: its name, the kind of its first operand, its parameter."""
    k = kind(op.ins[0].dtype)
    head = op.prim + ("" if k == "f" else f"@{k}")
    whole = op.out.dtype != "int8" or op.prim in WRAPS or primitive(op).exact
    if not k or k not in primitive(op).vector or not whole:
        raise Unsupported(f"{op.prim} on {op.ins[0].dtype} has no vector code")
    if op.prim in SHORTER and op.out.dtype == "bfloat16":
        return f"{op.prim}@bf16"
    parameter = PARAMETER.get(op.prim)
    return f"{head}:{int(op.params[parameter])}" if parameter else head


def _operand_axes(a: Value | Literal, out: Value, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    if isinstance(a, Literal) or not a.shape:
        return ()
    return tuple(
        axis if n != 1 or m == 1 else (None, 0, 0) for axis, n, m in zip(axes, a.shape, out.shape, strict=True)
    )
