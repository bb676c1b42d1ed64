"""What the trace of a call says of it: whether it may be co-executed, the types of its leaves, and which come back."""

from __future__ import annotations

from collections.abc import Mapping

import jax

from ..compat import JitTrace, primitives, shape_of
from ..frontend.state import returned
from .plain import Call
from .signature import placed_apart

EFFECTS = "it has side effects (printing, callbacks), which must keep their order"
CALLS_BACK = "it calls back to Python, and planning would do so many times"
CLOSED_OVER = "it reads values of a transformation around it"


def unfit(made: JitTrace, call: Call, given: Mapping[str, object]) -> str:
    """Why calls like this one are never co-executed ("" where they may be). `given`: the parameters of `jax.jit`."""
    if made.closed_over:
        return CLOSED_OVER
    if made.closed.effects:
        return EFFECTS
    if "pure_callback" in primitives(made.closed):
        return CALLS_BACK
    return placed_apart(call, given)


def types(made: JitTrace, call: Call) -> list[jax.ShapeDtypeStruct]:
    """Shapes and types of a call's leaves; where they lie is part of it if their caller has said so."""
    found = []
    for var, x in zip(made.closed.jaxpr.invars, call.leaves, strict=True):
        known = shape_of(var)
        found.append(known.update(sharding=x.sharding) if isinstance(x, jax.Array) and x.committed else known)
    return found


def coming_back(made: JitTrace, call: Call) -> frozenset[int]:
    """Positions of the leaves of a call that come back as results."""
    pairs = lambda xs: [(tuple(x.aval.shape), str(x.aval.dtype)) if hasattr(x.aval, "shape") else () for x in xs]
    jaxpr = made.closed.jaxpr
    return returned(call.tree, pairs(jaxpr.invars), made.out_tree, pairs(jaxpr.outvars))


__all__ = ["coming_back", "types", "unfit"]
