"""Elementwise programs over arrays as they are stored: several results in one pass, also of bf16 and f16.

Other kernels see every element in 4 bytes. An optimizer's pass over memory is bound by its bytes, so that a gradient of
bf16 is read and a parameter of bf16 is written in 2.

    g (bf16), m, v, p  ->  m', v', p', p' (bf16)        one pass, results over what was read
"""

from __future__ import annotations

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..program import Group, Unsupported, itemsize
from ..rules.expressions import expressions, identity_axes
from ..segment.context import Context
from ..segment.steps import Kernel
from ..target import Target
from .elementwise import INNER, ITEM, nest
from .expressions import emit_nodes
from .nests import LAST, minimum, vectors
from .simd import Builder
from .vectors import i64

STORED = ("float32", "bfloat16", "float16", "int32")


@family("stored")
def stored(name: str, key: Spec, target: Target) -> str:
    """("stored", expr, results, types): the first operands are the results, one for each node of `results`; `types`:
    how each operand is stored, "" for one scalar of 4 bytes. A result may lie where an operand of its size does.

    Words: total, chunk (elements).
    """
    _, expr, results, types = key
    made = len(results)
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    total, chunk = v.ld64(words, 0), v.ld64(words, 1)
    n = minimum(v, chunk, v.b.sub(total, v.b.mul(v.ld64(index, LAST), chunk)))
    shift = v.b.mul(v.ld64(index, LAST), v.mul(chunk, 4))
    bases = [v.ld64(where, k) for k in range(len(types))]

    def body(offset: ir.Value) -> None:
        def at(k: int) -> ir.Value:
            return v.add(bases[k], v.b.sdiv(v.add(shift, offset), i64(4 // itemsize(types[k]))))

        def read(k: int) -> ir.Value:
            held = "float32" if types[made + k] == "int32" else types[made + k]  # kernels hold s32 by its bits
            return v.load_stored(at(made + k), held) if held else v.broadcast(bases[made + k])

        nodes = emit_nodes(v, expr, read)
        for k, node in enumerate(results):
            v.store_as(nodes[node], at(k), types[k])

    vectors(v, n, body)
    return v.finish()


def lower_stored(ctx: Context, group: Group) -> None:
    """Appends the one step of a group over flat arrays of one length and scalars. Raises `Unsupported` for what has no
    vector code, for types that are not in `STORED`, and for more operands than a nest has.
    """
    expr, nodes, views = expressions(group.ops, (), group.outs)
    operands = [view.value for view in views]
    (n,) = group.out.shape
    for v, axes in ((view.value, view.axes) for view in views):
        if v.shape and axes != identity_axes(v.shape):
            raise Unsupported("elements that are not read in their order")
    if any(v.dtype not in STORED for v in (*group.outs, *operands)):
        raise Unsupported(f"arrays of other types than {', '.join(STORED)}")
    if any(not v.shape and v.dtype not in ("float32", "int32") for v in operands):
        raise Unsupported("a scalar that has not 4 bytes")
    types = (*(v.dtype for v in group.outs), *(v.dtype if v.shape else "" for v in operands))
    places = [*map(ctx.output, group.outs), *map(ctx.storage, operands)]
    inner = min(n, INNER)
    loops = [-(-n // inner)]
    kernel = Kernel(("stored", expr, nodes, types))
    views_of = [(s, (0,), 0) for s in places]
    work = -(-inner // ctx.target.vl) * len(expr)
    nest(ctx, kernel, [n, inner], loops, views_of, 0, max(1, ITEM // inner), work, len(group.outs))


__all__ = ["lower_stored"]
