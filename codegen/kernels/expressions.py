"""Elementwise programs as data: what they mean, which arrays they read and how, and their vector code.

An expression is a tuple of nodes in order of evaluation; the last is the result:
    ("in", k)             operand k
    ("lit", kind, text)   a scalar
    (prim, a, b, ...)     an elementwise primitive of nodes a, b, ...; "add@i" is on s32, "and@b" on bool,
                          "integer_pow:3" carries its parameter
Movement (broadcast, transpose, slice, reverse) is pushed down to the operands: it becomes a `View`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..program import Literal, Op, Unsupported, Value, kind
from . import elementary
from .simd import Builder

Expr = tuple[tuple[Any, ...], ...]
COPY: Expr = (("in", 0),)  # the operand itself
MOST_OPS = 256  # operations of one expression

#: One dimension of an operand, as a function of the output index: `start + step * index[dim]`.
Axis = tuple[int | None, int, int]


@dataclasses.dataclass(frozen=True)
class View:
    """How an operand is read: one `Axis` (output dim or None, step, start) for each of its dimensions."""

    value: Value
    axes: tuple[Axis, ...]

    def strides(self, rank: int, element_strides: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """(stride for each output dim, offset), in the unit of `element_strides`."""
        out = [0] * rank
        offset = 0
        for (dim, step, start), s in zip(self.axes, element_strides, strict=True):
            offset += start * s
            if dim is not None:
                out[dim] += step * s
        return tuple(out), offset


# -- vector code, one entry a primitive and kind -----------------------------------------------------


Rule = Callable[..., Any]  # (builder, operands) -> vector


#: XLA:CPU lets LLVM make one fused operation of a product and a sum; so do kernels where the target has one (never
#: inside elementary functions)
FUSED = ("contract",)


def _add(v: Builder, a: Any, b: Any) -> Any:
    return v.b.fadd(a, b, flags=FUSED)


def _sub(v: Builder, a: Any, b: Any) -> Any:
    return v.b.fsub(a, b, flags=FUSED)


def _mul(v: Builder, a: Any, b: Any) -> Any:
    return v.b.fmul(a, b, flags=FUSED)


def _integer_pow(one: Rule, times: Rule, over: Rule | None) -> Rule:
    """x**y by squaring, in JAX's own order; `over` divides (None: y is never negative)."""

    def rule(v: Builder, x: Any, y: str) -> Any:
        n = abs(int(y))
        result = None
        while n:
            if n & 1:
                result = x if result is None else times(v, result, x)
            n >>= 1
            x = times(v, x, x) if n else x
        result = one(v) if result is None else result
        return over(v, one(v), result) if int(y) < 0 and over else result

    return rule


def _sign(v: Builder, x: Any) -> Any:
    return v.b.select(v.b.fcmp_unordered("==", x, v.const(0.0)), x, v.copysign(v.const(1.0), x))


def _sign_int(v: Builder, x: Any) -> Any:
    return v.b.select(v.b.icmp_signed(">", x, v.iconst(0)), v.iconst(1), v.b.ashr(x, v.iconst(31)))


def _select_int(v: Builder, which: Any, first: Any, *cases: Any) -> Any:
    """The case that an s32 names; one outside takes the nearest."""
    for k, case in enumerate(cases, 1):
        first = v.b.select(v.b.icmp_signed(">=", which, v.iconst(k)), case, first)
    return first


def _compare(op: str) -> Rule:
    if op == "!=":
        return lambda v, a, b: v.b.fcmp_unordered("!=", a, b)
    return lambda v, a, b: v.b.fcmp_ordered(op, a, b)


def _compare_int(op: str) -> Rule:
    return lambda v, a, b: v.b.icmp_signed(op, a, b)


def _compare_bool(op: str) -> Rule:
    return lambda v, a, b: v.b.icmp_unsigned(op, a, b)


COMPARE = dict(eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">=")
SAME: dict[str, Rule] = {"stop_gradient": lambda v, a: a, "copy": lambda v, a: a}
BITWISE: dict[str, Rule] = {
    "and": lambda v, a, b: v.b.and_(a, b),
    "or": lambda v, a, b: v.b.or_(a, b),
    "xor": lambda v, a, b: v.b.xor(a, b),
    "not": lambda v, a: v.b.not_(a),
}
EMIT_FLOAT: dict[str, Rule] = {
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
    "div": lambda v, a, b: v.b.fdiv(a, b),
    "max": lambda v, a, b: v.maximum_signed(a, b),
    "min": lambda v, a, b: v.maximum_signed(a, b, "<"),
    "neg": lambda v, a: v.b.fneg(a),
    "abs": lambda v, a: v.unary("fabs", a),
    "sqrt": lambda v, a: v.unary("sqrt", a),
    "rsqrt": lambda v, a: v.b.fdiv(v.const(1.0), v.unary("sqrt", a)),
    "square": lambda v, a: _mul(v, a, a),
    "integer_pow": _integer_pow(lambda v: v.const(1.0), _mul, lambda v, a, b: v.b.fdiv(a, b)),
    "exp": elementary.exp,
    "log": elementary.log,
    "tanh": elementary.tanh,
    "logistic": elementary.logistic,
    "erf": elementary.erf,
    "erfc": elementary.erfc,
    "log1p": elementary.log1p,
    "expm1": elementary.expm1,
    "floor": lambda v, a: v.unary("floor", a),
    "ceil": lambda v, a: v.unary("ceil", a),
    "sign": _sign,
    "clamp": lambda v, lo, x, hi: v.maximum_signed(v.maximum_signed(x, lo), hi, "<"),
    **{name: _compare(op) for name, op in COMPARE.items()},
    **SAME,
}
EMIT_INT: dict[str, Rule] = {
    "add": lambda v, a, b: v.b.add(a, b),
    "add_any": lambda v, a, b: v.b.add(a, b),
    "sub": lambda v, a, b: v.b.sub(a, b),
    "mul": lambda v, a, b: v.b.mul(a, b),
    "max": lambda v, a, b: v.b.select(v.b.icmp_signed(">", a, b), a, b),
    "min": lambda v, a, b: v.b.select(v.b.icmp_signed("<", a, b), a, b),
    "neg": lambda v, a: v.b.neg(a),
    "abs": lambda v, a: v.b.select(v.b.icmp_signed("<", a, v.iconst(0)), v.b.neg(a), a),
    "sign": _sign_int,
    "square": lambda v, a: v.b.mul(a, a),
    "integer_pow": _integer_pow(lambda v: v.iconst(1), lambda v, a, b: v.b.mul(a, b), None),
    "select_n": _select_int,
    "clamp": lambda v, lo, x, hi: EMIT_INT["min"](v, EMIT_INT["max"](v, x, lo), hi),
    **{name: _compare_int(op) for name, op in COMPARE.items()},
    **BITWISE,
    **SAME,
}
EMIT_BOOL: dict[str, Rule] = {
    "max": BITWISE["or"],
    "min": BITWISE["and"],
    "select_n": lambda v, p, no, yes: v.b.select(p, yes, no),
    "clamp": lambda v, lo, x, hi: v.b.and_(v.b.or_(x, lo), hi),
    **{name: _compare_bool(op) for name, op in COMPARE.items()},
    **BITWISE,
    **SAME,
}
#: head of a node -> its vector code: "add" on f32, "add@i" on s32, "and@b" on bool, by the kind of the first operand
EMIT: dict[str, Rule] = {
    **EMIT_FLOAT,
    **{f"{name}@i": rule for name, rule in EMIT_INT.items()},
    **{f"{name}@b": rule for name, rule in EMIT_BOOL.items()},
}
NAMES = frozenset(head.partition("@")[0] for head in EMIT)
#: their results on values of f16 are of f16 without a rounding
EXACT = frozenset(("max", "min", "neg", "abs", "floor", "ceil", "sign", "clamp", "select_n", *SAME))

#: (kind before, kind after) of a conversion, or another form of a value -> its vector code
CONVERT: dict[str, Rule] = {
    "if": lambda v, a: v.b.sitofp(a, v.vec),
    "fi": lambda v, a: v.call(f"llvm.fptosi.sat.v{v.vl}i32.v{v.vl}f32", v.ivec, a),  # NaN: 0; outside: the nearest
    "bf": lambda v, a: v.b.select(a, v.const(1.0), v.const(0.0)),
    "bi": lambda v, a: v.b.select(a, v.iconst(1), v.iconst(0)),
    "fb": lambda v, a: v.b.fcmp_unordered("!=", a, v.const(0.0)),
    "ib": lambda v, a: v.b.icmp_signed("!=", a, v.iconst(0)),
    "bits": lambda v, a: v.bits(a),
    "floats": lambda v, a: v.floats(a),
    "bfloat": lambda v, a: v.floats(v.bfloat(a)),
    "half": lambda v, a: v.half(a),
}
LOAD = {"f": None, "i": "bits", "b": "fb"}  # what makes a loaded vector of f32 a value of its kind
STORE = {"f": None, "i": "floats", "b": "bf"}  # and back
LITERAL: dict[str, Callable[[Builder, str], Any]] = {
    "f": lambda v, x: v.const(float(x)),
    "i": lambda v, x: v.iconst(int(x)),
    "b": lambda v, x: v.bconst(x == "True"),
}


def literal(value: Any, dtype: str = "float32") -> tuple[Any, ...]:
    """The node of a scalar: as text, because 2, 2.0 and True, or 0.0 and -0.0, are the same key of a dictionary."""
    k = kind(dtype)
    number: Any = {"i": int, "b": bool}.get(k, lambda x: float(np.asarray(x).astype(dtype)))(value)
    return ("lit", k, repr(number))


def emit(v: Builder, expr: Expr, operand: Callable[[int], Any], known: Mapping[Any, Any] = MappingProxyType({})) -> Any:
    """Vector code of `expr`; `operand(k)` gives the vector of operand k, `known[j]` that of a ("red", j) node."""
    env: list[Any] = []
    for head, *args in expr:
        if head == "in":
            env.append(operand(args[0]))
        elif head == "red":
            env.append(known[args[0]])
        elif head == "lit":
            env.append(LITERAL[args[0]](v, args[1]))
        elif head in CONVERT:
            env.append(CONVERT[head](v, env[args[0]]))
        else:
            name, *extra = head.split(":")
            env.append(EMIT[name](v, *(env[a] for a in args), *extra))
    return env[-1]


# -- from operations to expressions -----------------------------------------------------------------


def is_elementwise(op: Op) -> bool:
    """Whether `op` works element by element in a way that `EMIT` knows (types are checked later)."""
    if op.prim == "convert_element_type":
        return bool(kind(op.ins[0].dtype)) and bool(kind(op.out.dtype))
    return op.prim in NAMES


def _reshape_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """A reshape that only adds or drops dimensions of size 1, as a view."""
    shape, out = op.value_ins[0].shape, op.out.shape
    if [n for n in shape if n != 1] != [n for n in out if n != 1]:
        raise Unsupported(f"reshape {shape} -> {out} regroups dimensions inside an elementwise group")
    kept = iter(a for a, n in zip(axes, out, strict=True) if n != 1)
    return tuple(next(kept) if n != 1 else (None, 0, 0) for n in shape)


def _rev_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    flip = op.params["dimensions"]
    return tuple(
        (d, -s, n - 1 - o) if i in flip else (d, s, o)
        for i, ((d, s, o), n) in enumerate(zip(axes, op.out.shape, strict=True))
    )


def _slice_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    steps = op.params["strides"] or (1,) * len(axes)
    return tuple(
        (d, s * k, start + k * o) for (d, s, o), start, k in zip(axes, op.params["start_indices"], steps, strict=True)
    )


def _broadcast_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    dims, source = op.params["broadcast_dimensions"], op.ins[0].shape
    return tuple(
        axes[d] if n == op.out.shape[d] and n != 1 else (None, 0, 0) for d, n in zip(dims, source, strict=True)
    )


def _squeeze_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    rest = iter(axes)
    return tuple((None, 0, 0) if i in op.params["dimensions"] else next(rest) for i in range(len(op.ins[0].shape)))


def _transpose_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    perm = op.params["permutation"]
    return tuple(axes[perm.index(i)] for i in range(len(perm)))


#: movement primitive -> the axes of its operand, given the axes of its result.
MOVE: dict[str, Callable[[Op, tuple[Axis, ...]], tuple[Axis, ...]]] = {
    "broadcast_in_dim": _broadcast_axes,
    "transpose": _transpose_axes,
    "slice": _slice_axes,
    "rev": _rev_axes,
    "squeeze": _squeeze_axes,
    "reshape": _reshape_axes,
}


def is_view(op: Op) -> bool:
    """Whether `op` only moves elements in a way that a `View` can express."""
    if op.prim == "reshape":
        return [n for n in op.ins[0].shape if n != 1] == [n for n in op.out.shape if n != 1]
    return op.prim in MOVE


def identity_axes(shape: tuple[int, ...]) -> tuple[Axis, ...]:
    return tuple((i, 1, 0) if n != 1 else (None, 0, 0) for i, n in enumerate(shape))


def expression(
    ops: tuple[Op, ...],
    result: Value,
    anchor: Value | None = None,
    reductions: bool = False,
) -> tuple[Expr, tuple[View, ...]]:
    """The expression of `result` over the values that `ops` read from outside, and its operand views.

    With `anchor`, operand 0 is that value at the very output index (an epilogue on accumulators). With
    `reductions`, reductions over the last dimension are nodes of their own, whose operand is over the whole row.
    Values of bf16 and f16 are f32: a cast to them rounds, and so does every operation on f16, whose range is small.
    Raises `Unsupported` for a primitive, dtype or movement that has no vector code.
    """
    if len(ops) > MOST_OPS:
        raise Unsupported(f"{len(ops)} operations in one group; an expression has at most {MOST_OPS}")
    made = {v: op for op in ops for v in op.outs if v is not anchor}
    nodes: dict[tuple[Any, ...], int] = {}
    views: dict[View, int] = {}
    built: dict[tuple[Value, tuple[Axis, ...]], int] = {}
    if anchor is not None:
        views[View(anchor, identity_axes(anchor.shape))] = 0

    def node(head: str | None, *args: Any) -> int:
        return args[0] if head is None else nodes.setdefault((head, *args), len(nodes))

    def build(v: Value | Literal, axes: tuple[Axis, ...]) -> int:
        if not kind(v.dtype):
            raise Unsupported(f"a value of type {v.dtype}; kernels know f32, s32 and bool")
        if isinstance(v, Literal):
            return node(*literal(v.val, v.dtype))
        if (v, axes) not in built:
            op = made.get(v)
            rounding = "half" if v.dtype == "float16" and (op is None or op.prim not in EXACT) else None
            built[v, axes] = read(v, axes) if op is None else compute(op, axes)
            built[v, axes] = node(rounding, built[v, axes])
        return built[v, axes]

    def read(v: Value, axes: tuple[Axis, ...]) -> int:
        if v is anchor and axes != identity_axes(v.shape):
            raise Unsupported("the tail moves the anchor's elements")
        return node(LOAD[kind(v.dtype)], node("in", views.setdefault(View(v, axes), len(views))))

    def compute(op: Op, axes: tuple[Axis, ...]) -> int:
        if reductions and op.prim.startswith("reduce_"):
            row = identity_axes(result.shape)
            if (*axes, row[-1]) != row:
                raise Unsupported("a reduction that is moved before it is used")
            return node(op.prim, build(op.ins[0], row))
        if op.prim in MOVE:
            return build(op.ins[0], () if isinstance(op.ins[0], Literal) else MOVE[op.prim](op, axes))
        if not is_elementwise(op):
            raise Unsupported(f"{op.prim} has no vector code")
        args = [build(a, _operand_axes(a, op.out, axes)) for a in op.ins]
        if op.prim == "convert_element_type":
            return _converted(node, op.ins[0].dtype, op.out.dtype, args[0])
        return node(_head(op), *args)

    if not kind(result.dtype):
        raise Unsupported(f"a result of type {result.dtype}; kernels know f32, s32 and bool")
    last = node(STORE[kind(result.dtype)], build(result, identity_axes(result.shape)))
    if last != len(nodes) - 1:
        raise Unsupported("the result is an operand")
    return tuple(nodes), tuple(views)


def _head(op: Op) -> str:
    """The key of `EMIT` for an operation, with its parameter."""
    k = kind(op.ins[0].dtype)
    head = op.prim + ("" if k == "f" else f"@{k}")
    if head not in EMIT:
        raise Unsupported(f"{op.prim} on {op.ins[0].dtype} has no vector code")
    return f"{head}:{op.params['y']}" if op.prim == "integer_pow" else head


def _converted(node: Callable[..., int], before: str, after: str, n: int) -> int:
    """A conversion; f32 and s32 are rounded to bf16 here (`build` rounds to f16)."""
    change = kind(before) + kind(after)
    n = node(None if change[0] == change[1] else change, n)
    return node("bfloat" if after == "bfloat16" and before not in ("bfloat16", "bool") else None, n)


def _operand_axes(a: Value | Literal, out: Value, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    if isinstance(a, Literal) or not a.shape:
        return ()
    return tuple(
        axis if n != 1 or m == 1 else (None, 0, 0) for axis, n, m in zip(axes, a.shape, out.shape, strict=True)
    )
