"""Narrow forms of arrays, as products read them, written by the step that makes the array: readers need no pass.

    conv -> y (f32)                        narrow y -> words            conv of words
    conv -> y (f32) and words of y                                      conv of words
    conv -> words of y                     where nobody reads y itself

A pass over the result of a product (`convert(round(y / scale))` of a network in whole numbers, say) is a form of that
result too, and so is each form of the pass's own result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ..program import Unsupported, Value
from ..rules.expressions import Expr
from ..segment.context import Context
from ..segment.makers import Form, Read, Result, Walk
from ..segment.steps import Ref
from ..segment.storage import APART, Operand, Storage, temporary
from .epilogue import Written
from .vectors import ROUNDED, STORED_BYTES

MOST = 12  # operands of an epilogue with forms
PASSED_ON = ("factor", "copy", "bfloat")  # heads of nodes that bf16 is the same of as of what they read


def composed(first: Expr, root: int, second: Expr, operands: int) -> tuple[Expr, int]:
    """The nodes of `first`, and behind them those of `second`, whose operand 0 is node `root` of `first` and whose
    others follow `operands` ones: all nodes, and the number of the result of `second`.
    """
    out, number = list(first), list[int]()
    for head, *args in second:
        if head == "in" and args[0] == 0:
            number.append(root)
            continue
        if head == "bfloat" and out[number[args[0]]][0] == head:  # is rounded
            number.append(number[args[0]])
            continue
        number.append(len(out))
        if head == "in":
            out.append((head, operands + args[0]))
        else:
            out.append((head, *args) if head == "lit" else (head, *(number[a] for a in args)))
    return tuple(out), number[-1]


def rounded_once(expr: Expr, node: int, dtype: str) -> tuple[Expr, int]:
    """An expression and the node that is stored as `dtype`: what the store rounds is not rounded before."""
    at, heads = node, []
    while dtype == ROUNDED and expr[at][0] in PASSED_ON:
        heads.append(expr[at][0])
        at = expr[at][1]
    if "bfloat" not in heads:
        return expr, node
    return (*expr, ("factor" if "factor" in heads else "copy", at)), len(expr)


def ending(expr: Expr, root: int) -> Expr:
    """The expression with node `root` as its last one."""
    return expr if root == len(expr) - 1 else (*expr, ("copy", root))


def written(
    expr: Expr, results: tuple[int, ...], outs: Sequence[Operand], forms: tuple[str, ...]
) -> tuple[Expr, tuple[Written, ...], tuple[Operand, ...]]:
    """What an epilogue writes that has one result and forms of it, from what `PassMaker.again` is given: its
    expression, the forms, and their places.
    """
    first = len(results) - len(forms)
    kept = first > 0
    found = tuple((t, node, kept) for t, node in zip(forms, results[first:], strict=True))
    return ending(expr, results[0]) if kept else expr, found, tuple(outs[first:])


@dataclasses.dataclass
class PassMaker:
    """An elementwise step over a shape. `source`: number of the step whose result it reads as operand number `operand`
    at the very same index, where one is known. `again(expr, results, outs)` appends one that writes nodes `results` of
    the expression; the last ones are `forms`.
    """

    ctx: Context
    number: int
    expr: Expr
    root: int
    out: Operand
    operands: tuple[Operand, ...]
    shape: tuple[int, ...]
    again: Callable[[Expr, tuple[int, ...], Sequence[Operand], tuple[str, ...]], None]
    source: int = -1
    operand: int = 0
    forms: tuple[tuple[int, Operand, str], ...] = ()  # node, where, type of its elements

    @property
    def result(self) -> Result:
        s, strides, offset = self.out
        return Result.of(Ref(s.buffer, s.offset + offset), self.shape, strides)

    def also(self, form: Form) -> bool:
        """As `Maker` has it: the source's step writes the form, or else this one."""
        return self._by_source(form) or self._by_itself(form)

    def forms_only(self) -> None:
        """As `Maker` has it."""
        if self.forms:
            self._replace(False)

    def _by_source(self, form: Form) -> bool:
        maker, walk = self.ctx.makers.steps.get(self.source), self._walk
        if maker is None:
            return False
        others = [o for i, o in enumerate(self.operands) if i != self.operand]
        same, beside = self.operands[self.operand][1] == self.out[1], any(o[1][-1] for o in others)
        rows = {form.row, 0 if same and not beside else self.shape[-1]} - {0}
        if len(rows) > 1 or any(o[1][-1] not in (0, 4) for o in others):
            return False
        read = [Read(Ref(s.buffer, s.offset + at), walk(strides), strides[-1]) for s, strides, at in others]
        places = [i for i in range(len(self.operands)) if i != self.operand]
        number = {self.operand: 0, **{k: 1 + i for i, k in enumerate(places)}}
        renumbered = tuple(("in", number[n[1]]) if n[0] == "in" else n for n in self.expr[: self.root + 1])
        expr, _ = composed(renumbered, self.root, form.expr, len(read))
        along = walk(self.out[1])
        on = lambda w: w if same else _then(along, w)
        operands = (*read, *(dataclasses.replace(r, walk=on(r.walk)) for r in form.operands))
        return maker.also(Form(expr, operands, form.dtype, form.ref, on(form.walk), max(rows, default=0)))

    def _walk(self, strides: Sequence[int]) -> Walk:
        """A step of the source along one axis in an operand of those strides; one that does not move has all steps."""

        def walk(nbytes: int, count: int) -> int | None:
            axes = zip(self.shape, self.operands[self.operand][1], strides, strict=True)
            there = [to for n, at, to in axes if (n, at) == (count, nbytes)]
            return 0 if not any(strides[:-1]) else there[0] if len(there) == 1 else None

        return walk

    def _by_itself(self, form: Form) -> bool:
        each = STORED_BYTES[form.dtype]
        whole = form.row in (0, self.shape[-1]) and self.out[1][-1] == 4 and not form.operands
        steps = [form.walk(s, n) if n > 1 else 0 for s, n in zip(self.out[1][:-1], self.shape[:-1], strict=True)]
        if not whole or None in steps or len(self.operands) + len(self.forms) > MOST:
            return False
        expr, node = rounded_once(*composed(self.expr, self.root, form.expr, 0), form.dtype)
        to = (Storage(form.ref.buffer, form.ref.offset, (), (), ()), (*(s or 0 for s in steps), each), 0)
        made = dataclasses.replace(self, expr=expr, forms=(*self.forms, (node, to, form.dtype)))
        try:
            made._replace(True)
        except Unsupported:
            return False
        return True

    def _replace(self, kept: bool) -> None:
        nodes, outs = [n for n, _, _ in self.forms], [o for _, o, _ in self.forms]
        results, places = ((self.root, *nodes), [self.out, *outs]) if kept else (tuple(nodes), outs)
        types = tuple(t for _, _, t in self.forms)
        self.ctx.again(self.number, lambda: self.again(self.expr, results, places, types))
        self.ctx.makers.steps[self.number] = self


#: appends what writes an expression, and forms of it at places
Ending = Callable[[Expr, tuple[Written, ...], Sequence[Operand]], None]


def with_forms(ctx: Context, y: Storage, expr: Expr, operands: tuple[Operand, ...], ending: Ending) -> None:
    """Appends what `ending` appends, which writes `expr` of a result and the operands to y, and, where that is one
    step, forms of it where readers ask for them.
    """
    before, root, out = len(ctx.steps), len(expr) - 1, (y, y.strides, 0)
    again = lambda expr, results, outs, forms: ending(*written(expr, results, outs, forms))
    again(expr, (root,), [out], ())
    if len(ctx.steps) == before + 1:
        ctx.makers.note(before, PassMaker(ctx, before, expr, root, out, operands, y.shape, again))


def _then(first: Walk, second: Walk) -> Walk:
    """One walk behind the other."""
    return lambda nbytes, count: None if (to := first(nbytes, count)) is None else second(to, count)


def followed(ctx: Context, expr: Expr, operands: Sequence[Operand], shape: tuple[int, ...]) -> tuple[int, int]:
    """(number of the step, number of the operand) of what a pass over a shape reads at the very same index of a known
    step's result; (-1, 0) for nothing.
    """
    for k, (s, strides, offset) in enumerate(operands):
        maker = ctx.makers.of(s.buffer)
        if maker is None or strides[-1:] != (4,) or ("in", k) not in expr:
            continue
        if maker.result == Result.of(Ref(s.buffer, s.offset + offset), shape, strides):
            return ctx.makers.last[s.buffer], k
    return -1, 0


def written_by_maker(ctx: Context, x: Storage, expr: Expr, dtype: str, words: int) -> Storage | None:
    """The form `expr` of f32 [..., n] as elements of `dtype`, `words` words of 4 bytes a row with the halo of x, from
    the step that makes x; zeroes fill up a row. None where that step cannot write it.
    """
    maker, (*outer, n) = ctx.makers.of(x.buffer), x.shape
    each = STORED_BYTES[dtype]
    if maker is None or x.strides[-1] != 4:
        return None
    own = n * each // 4  # whole ones; of one more a part may be written, in what is zero
    filled = words != own
    apart = APART * each // 4 if outer and x.strides[-2] == 4 * (n + APART) and not filled else 0
    out = temporary(Value((*outer, own), "float32"), (*x.halo[:-1], (0, words - own)), apart)
    rows = [(s, t) for m, s, t in zip(outer, x.strides, out.strides, strict=False) if m > 1]
    whole = maker.result == Result.of(Ref(x.buffer, x.offset), x.shape, x.strides)
    if not whole or any(s % (4 * n) or s // n * words != t if filled else s * each != 4 * t for s, t in rows):
        return None

    def walk(nbytes: int, count: int) -> int | None:
        if not filled:
            return nbytes * each // 4
        return nbytes // n * words if nbytes % (4 * n) == 0 else None

    form = Form(expr, (), dtype, Ref(out.buffer, out.offset), walk, n if filled else 0)
    return dataclasses.replace(out, shape=(*outer, words), halo=(*x.halo[:-1], (0, 0))) if maker.also(form) else None
