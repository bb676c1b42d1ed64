"""A kernel family: sums along the last dimension, one row at a time."""

from __future__ import annotations

import math

from xcoexec.codegen.kernels import elementwise
from xcoexec.codegen.kernels.simd import Builder
from xcoexec.codegen.native.build import Spec, family
from xcoexec.codegen.program import Op, Unsupported, Value, kind
from xcoexec.codegen.segment.context import Context
from xcoexec.codegen.segment.steps import Kernel
from xcoexec.codegen.segment.storage import Operand
from xcoexec.codegen.target import Target


def cumsum(ctx: Context, op: Op, rest: tuple[Op, ...]) -> tuple[Op, ...]:
    """Appends the step of a cumulative sum; what follows it is left as it is."""
    x = op.ins[0]
    if not isinstance(x, Value) or kind(x.dtype) != "f" or op.params["axis"] != len(x.shape) - 1:
        raise Unsupported("a cumulative sum of a type other than f32, or not along the last dimension")
    if op.params["reverse"]:
        raise Unsupported("a cumulative sum from the end")
    source, target = elementwise.dense(ctx, ctx.storage(x)), ctx.scratch(x.shape)
    n, rows = x.shape[-1], math.prod(x.shape[:-1])
    operands: list[Operand] = [(source, (4 * n,), 0), (target, (4 * n,), 0)]
    elementwise.nest(ctx, Kernel(("toy_cumsum",)), [n], (rows,), operands, 1, 1)
    elementwise.copy(ctx, target, ctx.output(op.out))
    return rest


@family("toy_cumsum")
def kernel(name: str, key: Spec, target: Target) -> str:
    """("toy_cumsum",): one row. Operands: x, y. Words: elements."""
    v = Builder(name, 3, 1)
    where, _, words = v.args
    x, y, n = v.ld64(where, 0), v.ld64(where, 1), v.ld64(words, 0)
    with v.carry(n, [v.const(0.0)]) as (i, (total,), done):
        at = v.mul(i, 4)
        total = v.b.fadd(total, v.load(v.add(x, at)))
        v.store(total, v.add(y, at))
        done([total])
    return v.finish()
