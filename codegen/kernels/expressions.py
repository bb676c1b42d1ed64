"""The vector code of an expression's nodes, one entry a primitive and kind (see `rules.expressions`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import llvmlite.ir as ir

from ..rules.expressions import Expr, Node
from . import elementary, elementary_bf16, whole_bytes, wide
from .simd import Builder

Rule = Callable[..., ir.Value]  # (builder, operands) -> vector


#: XLA:CPU lets LLVM make one fused operation of a product and a sum; so do kernels where the target has one (never
#: inside elementary functions)
FUSED = ("contract",)


def _add(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    return v.b.fadd(a, b, flags=FUSED)


def _sub(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    return v.b.fsub(a, b, flags=FUSED)


def _mul(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    return v.b.fmul(a, b, flags=FUSED)


def _integer_pow(one: Rule, times: Rule, over: Rule | None) -> Rule:
    """x**y by squaring, in JAX's own order; `over` divides (None: y is never negative)."""

    def rule(v: Builder, x: ir.Value, y: str) -> ir.Value:
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


def _sign(v: Builder, x: ir.Value) -> ir.Value:
    """What counts as zero, which smaller numbers than the normal ones do in XLA's threads, comes to a zero."""
    zero = v.b.fmul(x, v.const(0.0))  # NaN stays
    return v.b.select(v.b.fcmp_unordered("==", x, v.const(0.0)), zero, v.copysign(v.const(1.0), x))


def _sign_int(v: Builder, x: ir.Value) -> ir.Value:
    return v.b.select(v.b.icmp_signed(">", x, v.iconst(0)), v.iconst(1), v.b.ashr(x, v.iconst(31)))


def _select_int(v: Builder, which: ir.Value, first: ir.Value, *cases: ir.Value) -> ir.Value:
    """The case that an s32 names; one outside takes the nearest."""
    for k, case in enumerate(cases, 1):
        first = v.b.select(v.b.icmp_signed(">=", which, v.iconst(k)), case, first)
    return first


def _round(v: Builder, x: ir.Value, method: str) -> ir.Value:
    """To the nearest whole number; ties to even (method 1) or away from zero, with the sign of x."""
    a, most = v.unary("fabs", x), v.const(2.0**23)  # from there on all numbers are whole
    if method == "1":
        whole = v.b.fsub(v.b.fadd(a, most), most)
    else:
        low = v.unary("floor", a)
        whole = v.select(">=", v.b.fsub(a, low), v.const(0.5), v.b.fadd(low, v.const(1.0)), low)
    return v.select("<", a, most, v.copysign(whole, x), x)


def _quotient(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Cut towards zero; -1 where the divisor is 0."""
    by_zero, by_minus = v.b.icmp_signed("==", b, v.iconst(0)), v.b.icmp_signed("==", b, v.iconst(-1))
    whole = v.b.sdiv(a, v.b.select(v.b.or_(by_zero, by_minus), v.iconst(1), b))
    return v.b.select(by_zero, v.iconst(-1), v.b.select(by_minus, v.b.neg(a), whole))


def _remainder(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    """With the sign of the dividend, which it is where the divisor is 0."""
    by_zero, by_minus = v.b.icmp_signed("==", b, v.iconst(0)), v.b.icmp_signed("==", b, v.iconst(-1))
    rest = v.b.srem(a, v.b.select(v.b.or_(by_zero, by_minus), v.iconst(1), b))
    return v.b.select(by_zero, a, rest)


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
    "pow": wide.power,
    "sin": wide.sine,
    "cos": wide.cosine,
    "exp": elementary.exp,
    "exp2": elementary.exp2,
    "log": elementary.log,
    "tanh": elementary.tanh,
    "logistic": elementary.logistic,
    "erf": elementary.erf,
    "erfc": elementary.erfc,
    "log1p": elementary.log1p,
    "expm1": elementary.expm1,
    "floor": lambda v, a: v.unary("floor", a),
    "ceil": lambda v, a: v.unary("ceil", a),
    "round": _round,
    "is_finite": lambda v, a: v.b.fcmp_ordered("<", v.unary("fabs", a), v.const(float("inf"))),
    "sign": _sign,
    "clamp": lambda v, lo, x, hi: v.maximum_signed(v.maximum_signed(x, lo), hi, "<"),
    "bfloat": lambda v, a: v.floats(v.bfloat(a)),
    "half": lambda v, a: v.half(a),
    **{name: _compare(op) for name, op in COMPARE.items()},
    **SAME,
}
EMIT_INT: dict[str, Rule] = {
    "add": lambda v, a, b: v.b.add(a, b),
    "add_any": lambda v, a, b: v.b.add(a, b),
    "sub": lambda v, a, b: v.b.sub(a, b),
    "mul": lambda v, a, b: v.b.mul(a, b),
    "div": _quotient,
    "rem": _remainder,
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
#: head of a node -> its vector code: "add" on f32, "add@i" on s32, "and@b" on bool, by the kind of the first operand;
#: "exp@bf16" is on f32, to what bf16 needs
EMIT: dict[str, Rule] = {
    **EMIT_FLOAT,
    **{f"{name}@i": rule for name, rule in EMIT_INT.items()},
    **{f"{name}@b": rule for name, rule in EMIT_BOOL.items()},
    **{f"{name}@bf16": rule for name, rule in elementary_bf16.FUNCTIONS.items()},
}

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
    "byte": whole_bytes.cut,
    "nearest": whole_bytes.nearest,
    "shifted": whole_bytes.shifted,
    "between": whole_bytes.between,
    "factor": lambda v, a: a,
    "wrapped": lambda v, a: v.wrapped(a),
}
#: heads of nodes that make the same of +0 and -0, and those that make of them two zeroes, or the same
SAME_OF_ZEROES = frozenset(("nearest", "byte", "fi", "factor"))
ZERO_OF_ZERO = frozenset(("add", "add_any", "sub", "mul", "neg", "max", "min", "copy", "bfloat", "half", "shifted"))
#: vector code where it does not matter which zero comes out
EITHER_ZERO: dict[str, Rule] = {"max": lambda v, a, b: v.maximum(a, b), "min": lambda v, a, b: v.maximum(a, b, "<")}
LITERAL: dict[str, Callable[[Builder, str], ir.Value]] = {
    "f": lambda v, x: v.const(float(x)),
    "i": lambda v, x: v.iconst(int(x)),
    "b": lambda v, x: v.bconst(x == "True"),
}


def emit(v: Builder, expr: Expr, operand: Callable[[int], ir.Value]) -> ir.Value:
    """Vector code of `expr`; `operand(k)` gives the vector of operand k."""
    return emit_nodes(v, expr, operand)[-1]


def emit_nodes(
    v: Builder,
    expr: Expr,
    operand: Callable[[int], ir.Value],
    results: Sequence[int] | None = None,
    shared: frozenset[int] = frozenset(),
) -> list[ir.Value]:
    """As `emit`, the vector of each node. `results`: the nodes that are read (None: any); where these do not tell +0
    from -0, either is made. `shared`: operands of an epilogue that many sums have in common.
    """
    env: list[ir.Value] = []
    alike = _alike(expr, results) if results is not None else (False,) * len(expr)
    normed = _normed(expr, shared) if shared else {}
    for number, (node, either) in enumerate(zip(expr, alike, strict=True)):
        if number in normed:
            env.append(_norm(v, *(env[a] for a in normed[number])))
        elif either and node[0] in EITHER_ZERO:
            env.append(EITHER_ZERO[node[0]](v, *(env[a] for a in node[1:])))
        else:
            env.append(emit_node(v, node, operand, env))
    return env


def _norm(v: Builder, x: ir.Value, mean: ir.Value, scale: ir.Value, bias: ir.Value) -> ir.Value:
    """(x - mean) * scale + bias, in one operation for each x."""
    return _add(v, _mul(v, x, scale), _sub(v, bias, _mul(v, mean, scale)))


@functools.lru_cache(256)
def _normed(expr: Expr, shared: frozenset[int]) -> dict[int, tuple[int, int, int, int]]:
    """Nodes that are (sum - mean) * scale + bias, of operand 0 and what sums have in common -> the nodes of the four.

    What a sum has been rounded by already is as much as what its mean times the scale is rounded by.
    """
    same: list[bool] = []
    for head, *args in expr:
        same.append(args[0] in shared if head == "in" else head == "lit" or all(same[a] for a in args))
    found = {}
    for number in range(len(expr)):
        scaled, bias = _sides(expr, number, "add", same) or (0, 0)
        shifted, scale = _sides(expr, scaled, "mul", same) or (0, 0)
        if expr[shifted][0] == "sub" and expr[expr[shifted][1]] == ("in", 0) and same[expr[shifted][2]]:
            found[number] = (expr[shifted][1], expr[shifted][2], scale, bias)
    return found


def _sides(expr: Expr, number: int, name: str, same: Sequence[bool]) -> tuple[int, int] | None:
    """Of a node of that name, the operand that differs between sums and the one that does not."""
    head, *args = expr[number]
    if head != name or same[args[0]] == same[args[1]]:
        return None
    return (args[1], args[0]) if same[args[0]] else (args[0], args[1])


def _alike(expr: Expr, results: Sequence[int]) -> list[bool]:
    """Of which nodes +0 and -0 come to the same results."""
    alike = [i not in results for i in range(len(expr))]
    for i in reversed(range(len(expr))):
        head, *args = expr[i]
        if head not in ("in", "lit") and head not in SAME_OF_ZEROES and not (head in ZERO_OF_ZERO and alike[i]):
            for a in args:
                alike[a] = False
    return alike


def emit_node(
    v: Builder, node: Node, operand: Callable[[int], ir.Value], env: Sequence[ir.Value] | Mapping[int, ir.Value]
) -> ir.Value:
    """Vector code of one node; `env` has the vectors of those that it reads."""
    head, *args = node
    if head == "in":
        return operand(args[0])
    if head == "lit":
        return LITERAL[args[0]](v, args[1])
    if head in CONVERT:
        return CONVERT[head](v, *(env[a] for a in args))
    name, *extra = head.split(":")
    return EMIT[name](v, *(env[a] for a in args), *extra)
