"""The language of native functions, and its translation to LLVM IR: the part of Python that whole numbers need.

Every value is an int64; what is true is 1, what is false 0, and a function without a result returns 0. There are
assignments to names, `if`, `while`, `for` over a `range`, `break`, `continue` and `return`; arithmetic, comparisons,
`and`, `or`, `not` and conditional expressions; `min` and `max` of two; calls of other functions of the language, and of
words (`words.py`). Names that a function does not assign are constants of its module. Division rounds down, as
Python's; by zero it gives 0, and so does the rest: nothing is raised.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import pathlib
import types
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

I64 = ir.IntType(64)
ZERO = ir.Constant(I64, 0)
Function = Callable[..., int]
Lazy = Callable[[], ir.Value]


@dataclasses.dataclass(frozen=True)
class Word:
    """An operation of the language that stands for instructions: `emit` writes them, given the builder and the values,
    and returns the result, or None.
    """

    emit: Callable[..., ir.Value | None]

    def __call__(self, *values: int) -> int:
        """Only native functions can use a word. Raises `TypeError`."""
        raise TypeError("A word of native functions has no meaning in Python.")


def inline(fn: Function) -> Function:
    """Marks a function whose instructions go wherever it is called."""
    fn.inline = True  # type: ignore[attr-defined]
    return fn


def translate(fn: Function, name: str) -> str:
    """LLVM IR of a function and of what it calls; `name` is the only one that is exported, `int64 name(int64...)`.

    Raises `SyntaxError` for what the language does not have.
    """
    program = _Program(name)
    program.define(fn, name)
    return str(program.module)


class _Program:
    """A module; a function that is called becomes a part of it once."""

    def __init__(self, name: str) -> None:
        self.module = ir.Module(name)
        self._inner: dict[Function, ir.Function] = {}

    def define(self, fn: Function, name: str, linkage: str = "") -> ir.Function:
        tree = _tree(fn)
        made = ir.Function(self.module, ir.FunctionType(I64, [I64] * len(tree.args.args)), name)
        made.linkage = linkage
        made.attributes.add("nounwind")  # objects carry no unwinding tables
        if getattr(fn, "inline", False):
            made.attributes.add("alwaysinline")
        if linkage:
            self._inner[fn] = made
        _Translator(self, fn, tree, made).all()
        return made

    def inner(self, fn: Function) -> ir.Function:
        """The function of the module that a call of `fn` calls."""
        return self._inner.get(fn) or self.define(fn, f"{fn.__module__}.{fn.__name__}", "internal")


@functools.cache
def _trees(file: str) -> dict[str, ast.FunctionDef]:
    """The functions of a source file."""
    body = ast.parse(pathlib.Path(file).read_text(encoding="utf-8"), file).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def _tree(fn: Function) -> ast.FunctionDef:
    return _trees(fn.__code__.co_filename)[fn.__name__]


def _divide(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Quotient and rest as Python has them; both 0 where y is 0."""
    zero = b.icmp_signed("==", y, ZERO)
    divisor = b.select(zero, ir.Constant(I64, 1), y)
    quotient, rest = b.sdiv(x, divisor), b.srem(x, divisor)
    other = b.and_(b.icmp_signed("!=", rest, ZERO), b.icmp_signed("<", b.xor(rest, divisor), ZERO))  # of other signs
    quotient = b.select(zero, ZERO, b.sub(quotient, b.zext(other, I64)))
    return quotient, b.add(rest, b.select(other, divisor, ZERO))


_OPERATORS: dict[type[ast.operator], Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]] = {
    ast.Add: lambda b, x, y: b.add(x, y),
    ast.Sub: lambda b, x, y: b.sub(x, y),
    ast.Mult: lambda b, x, y: b.mul(x, y),
    ast.FloorDiv: lambda b, x, y: _divide(b, x, y)[0],
    ast.Mod: lambda b, x, y: _divide(b, x, y)[1],
    ast.BitAnd: lambda b, x, y: b.and_(x, y),
    ast.BitOr: lambda b, x, y: b.or_(x, y),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<"},
    **{ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
}
_BUILTINS = {
    "min": Word(lambda b, x, y: b.select(b.icmp_signed("<", y, x), y, x)),
    "max": Word(lambda b, x, y: b.select(b.icmp_signed(">", y, x), y, x)),
}


class _Translator:
    """Writes the instructions of one function; its variables lie on the stack until LLVM puts them into registers."""

    def __init__(self, program: _Program, fn: Function, tree: ast.FunctionDef, made: ir.Function) -> None:
        self.program, self.fn, self.tree = program, fn, tree
        self.b = ir.IRBuilder(made.append_basic_block("entry"))
        names = [a.arg for a in tree.args.args]
        stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.variables = {name: self._slot() for name in dict.fromkeys([*names, *stored])}
        self.loops: list[tuple[ir.Block, ir.Block]] = []  # where `continue` and `break` go
        for name, value in zip(names, made.args, strict=True):
            self.b.store(value, self.variables[name])

    def all(self) -> None:
        """The whole function."""
        self.run(self.tree.body)
        if not self.b.block.is_terminated:
            self.b.ret(ZERO)

    def _slot(self) -> ir.Value:
        with self.b.goto_entry_block():
            return self.b.alloca(I64)

    def _unknown(self, node: ast.AST) -> SyntaxError:
        where = f"{self.fn.__module__}.{self.fn.__name__}, line {getattr(node, 'lineno', '?')}"
        return SyntaxError(f"{where}: the language of native functions has no {ast.unparse(node)!r}.")

    # -- statements
    def run(self, body: Sequence[ast.stmt]) -> None:
        """Statements, up to one that leaves them."""
        for node in body:
            if self.b.block.is_terminated:
                return
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant(str())):
                pass
            case ast.Expr(expression):
                self.value(expression)
            case ast.Assign([target], expression):
                self._assign(target, expression)
            case ast.AugAssign(ast.Name(name), op, expression):
                self._assign(node.target, ast.BinOp(ast.Name(name), op, expression))
            case ast.If(test, body, []):
                with self.b.if_then(self._truth(test)):
                    self.run(body)
            case ast.If(test, body, otherwise):
                with self.b.if_else(self._truth(test)) as (then, other):
                    with then:
                        self.run(body)
                    with other:
                        self.run(otherwise)
            case ast.While(test, body, []):
                self._loop(lambda: self._truth(test), lambda: self.run(body), lambda: None)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds, []), body, []):
                self._count(name, bounds, body)
            case ast.Return(expression):
                self.b.ret(self.value(expression) if expression else ZERO)
            case ast.Break() | ast.Continue():
                self.b.branch(self.loops[-1][isinstance(node, ast.Break)])
            case _:
                raise self._unknown(node)

    def _assign(self, target: ast.expr, expression: ast.expr) -> None:
        match target, expression:
            case ast.Name(name), _:
                self.b.store(self.value(expression), self.variables[name])
            case ast.Tuple(targets), ast.Tuple(expressions) if len(targets) == len(expressions):
                values = [self.value(x) for x in expressions]
                for one, value in zip(targets, values, strict=True):
                    if not isinstance(one, ast.Name):
                        raise self._unknown(target)
                    self.b.store(value, self.variables[one.id])
            case _:
                raise self._unknown(target)

    def _loop(self, test: Lazy, body: Callable[[], None], step: Callable[[], None]) -> None:
        b = self.b
        head, inside, after, end = (b.append_basic_block(n) for n in ("head", "inside", "after", "end"))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(test(), inside, end)
        b.position_at_end(inside)
        self.loops.append((after, end))
        body()
        self.loops.pop()
        if not b.block.is_terminated:
            b.branch(after)
        b.position_at_end(after)
        step()
        b.branch(head)
        b.position_at_end(end)

    def _count(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """A loop over a range, whose bounds are known before the first turn, and whose step is a constant."""
        b, values = self.b, [self.value(x) for x in bounds]
        start, stop, by = (ZERO, *values, ZERO)[:3] if len(values) == 1 else (*values, ZERO)[:3]
        step = by if len(values) == 3 else ir.Constant(I64, 1)
        if not isinstance(step, ir.Constant):
            raise self._unknown(bounds[-1])
        counter = self._slot()
        b.store(start, counter)

        def turn() -> None:
            b.store(b.load(counter), self.variables[name])
            self.run(body)

        self._loop(
            lambda: b.icmp_signed("<" if step.constant > 0 else ">", b.load(counter), stop),
            turn,
            lambda: b.store(b.add(b.load(counter), step, flags=["nsw"]), counter),
        )

    # -- expressions
    def value(self, node: ast.expr) -> ir.Value:
        """The int64 that an expression gives."""
        b = self.b
        match node:
            case ast.Constant(int(n)):
                return ir.Constant(I64, int(n))
            case ast.UnaryOp(ast.USub(), ast.Constant(int(n))):
                return ir.Constant(I64, -n)
            case ast.Name(name) if name in self.variables:
                return b.load(self.variables[name])
            case ast.Name() | ast.Attribute():
                return ir.Constant(I64, self._constant(node))
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](b, self.value(left), self.value(right))
            case ast.UnaryOp(ast.Not(), operand):
                return b.zext(b.not_(self._truth(operand)), I64)
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARISONS:
                return b.zext(b.icmp_signed(_COMPARISONS[type(op)], self.value(left), self.value(right)), I64)
            case ast.BoolOp(op, [first, *more]):
                rest = ast.BoolOp(op, more) if len(more) > 1 else more[0]
                known, others = self.value(first), lambda: self.value(rest)
                ways = (others, lambda: known) if isinstance(op, ast.And) else (lambda: known, others)
                return self._either(b.icmp_signed("!=", known, ZERO), *ways)
            case ast.IfExp(test, body, otherwise):
                return self._either(self._truth(test), lambda: self.value(body), lambda: self.value(otherwise))
            case ast.Call(ast.Name(name), args, []):
                return self._call(node, name, [self.value(x) for x in args])
        raise self._unknown(node)

    def _truth(self, node: ast.expr) -> ir.Value:
        return self.b.icmp_signed("!=", self.value(node), ZERO)

    def _either(self, condition: ir.Value, yes: Lazy, no: Lazy) -> ir.Value:
        """One of two values; the other is not computed."""
        found = []
        with self.b.if_else(condition) as ways:
            for way, value in zip(ways, (yes, no), strict=True):
                with way:
                    found.append((value(), self.b.block))
        result = self.b.phi(I64)
        for value, block in found:
            result.add_incoming(value, block)
        return result

    def _constant(self, node: ast.expr) -> int:
        """A constant of the function's module, or a member of one of its records."""
        match node:
            case ast.Name(name):
                found = self.fn.__globals__.get(name)
            case ast.Attribute(ast.Name(record), name):
                found = getattr(self.fn.__globals__.get(record), name, None)
            case _:
                found = None
        if not isinstance(found, int):
            raise self._unknown(node)
        return int(found)

    def _call(self, node: ast.expr, name: str, values: Sequence[ir.Value]) -> ir.Value:
        match self.fn.__globals__.get(name, _BUILTINS.get(name)):
            case Word(emit):
                return emit(self.b, *values) or ZERO
            case types.FunctionType() as fn:
                return self.b.call(self.program.inner(fn), values)
        raise self._unknown(node)


__all__ = ["I64", "ZERO", "Function", "Word", "inline", "translate"]
