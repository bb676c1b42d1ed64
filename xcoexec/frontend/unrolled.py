"""Loops written out turn by turn, where their caller asks for it (`scan` with `unroll`)."""

from __future__ import annotations

import jax
from jax import lax
from jax.extend.core import jaxpr_as_fun

from ..compat import ClosedJaxpr, JaxprEqn, loop_body, loop_parts, shape_of
from .equations import contracts

MOST_EQUATIONS = 400  # that all turns have together; a longer loop stays one


def unrolled(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What a `scan` computes, without a loop, where as many turns are to be unrolled as it has; None for any other
    equation, for a loop of one turn, with effects, or with products, which a loop computes for all turns at once.
    """
    closed = loop_body(eqn) if eqn.primitive.name == "scan" else None
    length = eqn.params.get("length", 0)
    if closed is None or not 1 < length <= eqn.params.get("unroll", 1):
        return None
    if any(map(contracts, closed.jaxpr.eqns)) or length * len(closed.jaxpr.eqns) > MOST_EQUATIONS:
        return None
    same, carried = loop_parts(eqn)
    turn, turns = jaxpr_as_fun(closed), range(length)

    def fn(*args: jax.Array) -> list[jax.Array]:
        first, carry, arrays = args[:same], list(args[same : same + carried]), args[same + carried :]
        made: list[list[jax.Array]] = []
        for t in reversed(turns) if eqn.params["reverse"] else turns:
            out = turn(*first, *carry, *(lax.index_in_dim(x, t, keepdims=False) for x in arrays))
            carry = list(out[:carried])
            made.append(list(out[carried:]))
        each = zip(*(reversed(made) if eqn.params["reverse"] else made), strict=True)
        return [*carry, *(jax.numpy.stack(xs) for xs in each)]

    return jax.make_jaxpr(fn)(*[shape_of(v) for v in eqn.invars])


__all__ = ["MOST_EQUATIONS", "unrolled"]
