"""What several threads have summed apart, added up, and a product's epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..rules.expressions import Expr
from ..segment.context import Context
from ..segment.steps import Kernel, Ref
from ..segment.storage import Operand, Storage
from ..target import Target
from .elementwise import nest
from .expressions import emit
from .lanes import Lane
from .nests import LAST, chunk_of, vectors
from .simd import Builder

LINE = 64  # bytes of a cache line


def walked(ref: Ref, *steps: int) -> Operand:
    """An operand of a nest by the bytes from one iteration of each loop to the next."""
    return Storage(ref.buffer, ref.offset, (), (), ()), steps, 0


def add_up(ctx: Context, y: Storage, lanes: Sequence[Lane], expr: Expr) -> None:
    """Appends lanes[0] = `expr` of the sum of the parts y [parts, m, n] and of the other lanes."""
    parts, m, n = y.shape
    kinds = tuple({4: "v", 0: "s"}[lane.channel] for lane in lanes[1:])
    runs = -(-ctx.threads // m)
    chunk = max(LINE, -(-n // runs // LINE) * LINE)
    operands = [walked(Ref(y.buffer, y.offset), y.strides[1], 4 * chunk)]
    operands += [walked(z.ref, z.pixels[3], z.channel * chunk) for z in lanes]
    units = -(-chunk // ctx.target.vl) * (parts + len(expr))
    words = [n, chunk, parts, y.strides[0]]
    nest(ctx, Kernel(("parts", expr, kinds)), words, (m, -(-n // chunk)), operands, 1, -(-m // ctx.threads), units)


@family("parts")
def parts(name: str, key: Spec, target: Target) -> str:
    """("parts", expr, kinds): y = epilogue(the sum of some rows of f32), for a range of columns.

    Operands: the rows, y, the epilogue's ("v" or "s"). Words: N, columns of a run, rows, bytes from one to the next.
    """
    _, expr, kinds = key
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    n = chunk_of(v, v.ld64(index, LAST), v.ld64(words, 0), v.ld64(words, 1))
    rows, step = v.ld64(words, 2), v.ld64(words, 3)
    x, bases = v.ld64(where, 0), [v.ld64(where, 1 + i) for i in range(1 + len(kinds))]

    def total(o: ir.Value) -> ir.Value:
        with v.carry(rows, [v.const(0.0)]) as (r, acc, done):
            done([v.b.fadd(acc[0], v.load(v.add(x, v.b.mul(r, step), o)))])
        return v.carried[0]

    finished(v, n, expr, kinds, bases, total)
    return v.finish()


def finished(
    v: Builder,
    n: ir.Value,
    expr: Expr,
    kinds: tuple[str, ...],
    bases: Sequence[ir.Value],
    total: Callable[[ir.Value], ir.Value],
) -> None:
    """Writes the epilogue of the sums that `total(offset)` gives to n columns at bases[0]; the other bases are of what
    it reads.
    """

    def body(o: ir.Value) -> None:
        def operand(i: int) -> ir.Value:
            if i == 0:
                return acc
            return v.load(v.add(bases[i], o)) if kinds[i - 1] == "v" else v.broadcast(bases[i])

        acc = total(o)
        v.store(emit(v, expr, operand), v.add(bases[0], o))

    vectors(v, n, body)


__all__ = ["LINE", "add_up", "finished", "walked"]
