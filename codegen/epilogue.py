"""Elementwise programs as data: what they mean, which arrays they read and how, and their vector code.

An expression is a tuple of nodes in order of evaluation; the last is the result:
    ("in", k)             operand k
    ("lit", x)            a scalar
    (prim, a, b, ...)     an elementwise primitive of nodes a, b, ...  ("integer_pow:3" carries its parameter)
Movement (broadcast, transpose, slice, reverse) is pushed down to the operands: it becomes a `View`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .program import Literal, Op, Unsupported, Value, kind
from .simd import Builder

Expr = tuple[tuple[Any, ...], ...]
COPY: Expr = (("in", 0),)  # the operand itself

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


# -- vector code, one entry a primitive -------------------------------------------------------------


def _erf_parts(v: Builder, x: Any) -> tuple[Any, Any]:
    """erf below 1 by its Taylor series (12 terms), erfc of |x| above by Abramowitz & Stegun 7.1.26 (abs. error 1.5e-7)."""
    z = v.b.fmul(x, x)
    series = [2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(12)]
    t = v.b.fdiv(v.const(1.0), v.fma(v.unary("fabs", x), v.const(0.3275911), v.const(1.0)))
    q = v.poly(t, [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0])
    return v.b.fmul(v.poly(z, series[::-1]), x), v.b.fmul(q, v.exp(v.b.fneg(z)))


def _erf(v: Builder, x: Any) -> Any:
    small, rest = _erf_parts(v, x)
    big = v.call(f"llvm.copysign.v{v.vl}f32", v.vec, v.b.fsub(v.const(1.0), rest), x)
    return v.select("<", v.unary("fabs", x), v.const(1.0), small, big)


def _erfc(v: Builder, x: Any) -> Any:
    small, rest = _erf_parts(v, x)
    big = v.select("<", x, v.const(0.0), v.b.fsub(v.const(2.0), rest), rest)
    return v.select("<", v.unary("fabs", x), v.const(1.0), v.b.fsub(v.const(1.0), small), big)


def _log1p(v: Builder, x: Any) -> Any:
    """Kahan: log(u) x/(u-1) with u = 1+x rounded."""
    u = v.b.fadd(v.const(1.0), x)
    d = v.b.fsub(u, v.const(1.0))
    exact = v.b.fdiv(v.b.fmul(v.log(u), x), d)
    exact = v.select("<", v.unary("fabs", x), v.const(1e30), exact, v.log(u))
    return v.select("==", d, v.const(0.0), x, exact)


def _expm1(v: Builder, x: Any) -> Any:
    """Kahan near 0: (u-1) x/log(u) with u = exp(x) rounded; u-1 elsewhere."""
    u = v.exp(x)
    d = v.b.fsub(u, v.const(1.0))
    near = v.select("==", d, v.const(0.0), x, v.b.fdiv(v.b.fmul(d, x), v.log(u)))
    return v.select("<", v.unary("fabs", x), v.const(0.5), near, d)


def _integer_pow(v: Builder, x: Any, y: str) -> Any:
    n = abs(int(y))
    result = None
    while n:
        if n & 1:
            result = x if result is None else v.b.fmul(result, x)
        n >>= 1
        x = v.b.fmul(x, x) if n else x
    result = v.const(1.0) if result is None else result
    return v.b.fdiv(v.const(1.0), result) if int(y) < 0 else result


def _sign(v: Builder, x: Any) -> Any:
    one = v.call(f"llvm.copysign.v{v.vl}f32", v.vec, v.const(1.0), x)
    return v.b.select(v.b.fcmp_unordered("==", x, v.const(0.0)), x, one)


def _compare(op: str) -> Callable[..., Any]:
    if op == "!=":
        return lambda v, a, b: v.b.fcmp_unordered("!=", a, b)
    return lambda v, a, b: v.b.fcmp_ordered(op, a, b)


def _compare_int(op: str) -> Callable[..., Any]:
    return lambda v, a, b: v.b.icmp_signed(op, a, b)


EMIT: dict[str, Callable[..., Any]] = {
    "add": lambda v, a, b: v.b.fadd(a, b),
    "add_any": lambda v, a, b: v.b.fadd(a, b),
    "sub": lambda v, a, b: v.b.fsub(a, b),
    "mul": lambda v, a, b: v.b.fmul(a, b),
    "div": lambda v, a, b: v.b.fdiv(a, b),
    "max": lambda v, a, b: v.maximum(a, b),
    "min": lambda v, a, b: v.maximum(a, b, "<"),
    "neg": lambda v, a: v.b.fneg(a),
    "abs": lambda v, a: v.unary("fabs", a),
    "sqrt": lambda v, a: v.unary("sqrt", a),
    "rsqrt": lambda v, a: v.b.fdiv(v.const(1.0), v.unary("sqrt", a)),
    "square": lambda v, a: v.b.fmul(a, a),
    "integer_pow": _integer_pow,
    "exp": lambda v, a: v.exp(a),
    "log": lambda v, a: v.log(a),
    "tanh": lambda v, a: v.tanh(a),
    "logistic": lambda v, a: v.logistic(a),
    "erf": _erf,
    "erfc": _erfc,
    "log1p": _log1p,
    "expm1": _expm1,
    "floor": lambda v, a: v.unary("floor", a),
    "ceil": lambda v, a: v.unary("ceil", a),
    "sign": _sign,
    "eq": _compare("=="),
    "ne": _compare("!="),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare(">"),
    "ge": _compare(">="),
    "and": lambda v, a, b: v.b.and_(a, b),
    "or": lambda v, a, b: v.b.or_(a, b),
    "not": lambda v, a: v.b.not_(a),
    "select_n": lambda v, p, no, yes: v.b.select(p, yes, no),
    "clamp": lambda v, lo, x, hi: v.maximum(v.maximum(x, lo), hi, "<"),
    "stop_gradient": lambda v, a: a,
    "copy": lambda v, a: a,
}

#: the same on s32 (its nodes are named "add@i", ...)
EMIT_INT: dict[str, Callable[..., Any]] = {
    "add": lambda v, a, b: v.b.add(a, b),
    "sub": lambda v, a, b: v.b.sub(a, b),
    "mul": lambda v, a, b: v.b.mul(a, b),
    "max": lambda v, a, b: v.b.select(v.b.icmp_signed(">", a, b), a, b),
    "min": lambda v, a, b: v.b.select(v.b.icmp_signed("<", a, b), a, b),
    "neg": lambda v, a: v.b.neg(a),
    **{name: _compare_int(op) for name, op in dict(eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">=").items()},
    "select_n": EMIT["select_n"],
    "clamp": lambda v, lo, x, hi: EMIT_INT["min"](v, EMIT_INT["max"](v, x, lo), hi),
    "stop_gradient": lambda v, a: a,
    "copy": lambda v, a: a,
}

#: (kind before, kind after) of a conversion -> its vector code; operands and results are vectors of f32 or their bits
CONVERT: dict[str, Callable[..., Any]] = {
    "ff": lambda v, a: a,
    "ii": lambda v, a: a,
    "bb": lambda v, a: a,
    "if": lambda v, a: v.b.sitofp(a, v.vec),
    "fi": lambda v, a: v.b.fptosi(a, v.ivec),
    "bf": lambda v, a: v.b.select(a, v.const(1.0), v.const(0.0)),
    "bi": lambda v, a: v.b.select(a, v.iconst(1), v.iconst(0)),
    "fb": lambda v, a: v.b.fcmp_unordered("!=", a, v.const(0.0)),
    "ib": lambda v, a: v.b.icmp_signed("!=", a, v.iconst(0)),
}
LOAD = {"f": None, "i": "bits", "b": "fb"}  # what makes a loaded vector of f32 a value of its kind
STORE = {"f": None, "i": "floats", "b": "bf"}  # and back


def emit(v: Builder, expr: Expr, operand: Callable[[int], Any], known: Mapping[Any, Any] = MappingProxyType({})) -> Any:
    """Vector code of `expr`; `operand(k)` gives the vector of operand k, `known[j]` that of a ("red", j) node."""
    env: list[Any] = []
    for head, *args in expr:
        if head == "in":
            env.append(operand(args[0]))
        elif head == "red":
            env.append(known[args[0]])
        elif head == "lit":
            env.append(v.iconst(args[0]) if isinstance(args[0], int) else v.const(args[0]))
        elif head in CONVERT:
            env.append(CONVERT[head](v, env[args[0]]))
        elif head in ("bits", "floats"):
            env.append(getattr(v, head)(env[args[0]]))
        else:
            prim, *extra = head.split(":")
            table = EMIT_INT if prim.endswith("@i") else EMIT
            env.append(table[prim.removesuffix("@i")](v, *(env[a] for a in args), *extra))
    return env[-1]


# -- from operations to expressions -----------------------------------------------------------------


def is_elementwise(op: Op) -> bool:
    """Whether `op` works element by element in a way that `EMIT` knows (the dtype is checked later)."""
    return op.prim in EMIT or (op.prim == "convert_element_type" and kind(op.ins[0].dtype) + kind(op.out.dtype) in CONVERT)


def _reshape_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """A reshape that only adds or drops dimensions of size 1, as a view."""
    shape, out = op.value_ins[0].shape, op.out.shape
    if [n for n in shape if n != 1] != [n for n in out if n != 1]:
        raise Unsupported(f"reshape {shape} -> {out} regroups dimensions inside an elementwise group")
    kept = iter(a for a, n in zip(axes, out, strict=True) if n != 1)
    return tuple(next(kept) if n != 1 else (None, 0, 0) for n in shape)


def _rev_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    flip = op.params["dimensions"]
    return tuple((d, -s, n - 1 - o) if i in flip else (d, s, o) for i, ((d, s, o), n) in enumerate(zip(axes, op.out.shape, strict=True)))


def _slice_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    steps = op.params["strides"] or (1,) * len(axes)
    return tuple((d, s * k, start + k * o) for (d, s, o), start, k in zip(axes, op.params["start_indices"], steps, strict=True))


def _broadcast_axes(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    dims, source = op.params["broadcast_dimensions"], op.ins[0].shape
    return tuple(axes[d] if n == op.out.shape[d] and n != 1 else (None, 0, 0) for d, n in zip(dims, source, strict=True))


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


def expression(ops: tuple[Op, ...], result: Value, anchor: Value | None = None, reductions: bool = False) -> tuple[Expr, tuple[View, ...]]:
    """The expression of `result` over the values that `ops` read from outside, and its operand views.

    With `anchor`, operand 0 is that value at the very output index (an epilogue on accumulators). With
    `reductions`, reductions over the last dimension are nodes of their own, whose operand is over the whole row.
    Raises `Unsupported` for a primitive, dtype or movement that has no vector code.
    """
    made = {v: op for op in ops for v in op.outs if v is not anchor}
    nodes: dict[tuple[Any, ...], int] = {}
    views: dict[View, int] = {}
    if anchor is not None:
        views[View(anchor, identity_axes(anchor.shape))] = 0

    def node(*n: Any) -> int:
        return nodes.setdefault(n, len(nodes))

    def build(v: Value | Literal, axes: tuple[Axis, ...]) -> int:
        if isinstance(v, Literal):
            if not kind(v.dtype):
                raise Unsupported(f"a literal of type {v.dtype}; kernels know f32, s32 and bool")
            return node("lit", int(v.val)) if kind(v.dtype) == "i" else as_kind(LOAD["b"] if kind(v.dtype) == "b" else None, node("lit", float(v.val)))
        op = made.get(v)
        if op is None:
            if not kind(v.dtype):
                raise Unsupported(f"an operand of type {v.dtype}; kernels know f32, s32 and bool")
            if v is anchor and axes != identity_axes(v.shape):
                raise Unsupported("the tail moves the anchor's elements")
            return as_kind(LOAD[kind(v.dtype)], node("in", views.setdefault(View(v, axes), len(views))))
        if not kind(v.dtype):
            raise Unsupported(f"{op.prim} on {v.dtype}; kernels know f32, s32 and bool")
        if reductions and op.prim.startswith("reduce_"):
            row = identity_axes(result.shape)
            if (*axes, row[-1]) != row:
                raise Unsupported("a reduction that is moved before it is used")
            return node(op.prim, build(op.ins[0], row))
        if op.prim in MOVE:
            if isinstance(op.ins[0], Literal):
                return build(op.ins[0], ())
            return build(op.ins[0], MOVE[op.prim](op, axes))
        if not is_elementwise(op):
            raise Unsupported(f"{op.prim} has no vector code")
        args = [build(a, _operand_axes(a, v, axes)) for a in op.ins]
        if op.prim == "convert_element_type":
            change = kind(op.ins[0].dtype) + kind(v.dtype)
            return args[0] if change[0] == change[1] else node(change, *args)
        head = f"integer_pow:{op.params['y']}" if op.prim == "integer_pow" else op.prim
        if any(kind(a.dtype) == "i" for a in op.ins):
            if head not in EMIT_INT:
                raise Unsupported(f"{op.prim} on s32 has no vector code")
            head += "@i"
        return node(head, *args)

    def as_kind(head: str | None, n: int) -> int:
        return n if head is None else node(head, n)

    if not kind(result.dtype):
        raise Unsupported(f"a result of type {result.dtype}; kernels know f32, s32 and bool")
    last = as_kind(STORE[kind(result.dtype)], build(result, identity_axes(result.shape)))
    if last != len(nodes) - 1:
        raise Unsupported("the result is an operand")
    return tuple(nodes), tuple(views)


def _operand_axes(a: Value | Literal, out: Value, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    if isinstance(a, Literal) or not a.shape:
        return ()
    return tuple(axis if n != 1 or m == 1 else (None, 0, 0) for axis, n, m in zip(axes, a.shape, out.shape, strict=True))
