"""What the trace of a call says of it: whether it may be co-executed, the types of its leaves, and which come back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import jax

from ..compat import JitTrace, numberless, shape_of
from ..frontend.places import elsewhere
from ..frontend.state import returned
from .plain import Call
from .signature import home, is_away
from .where import names_home, placed_apart, typed_by_mesh

EFFECTS = "it has side effects (printing, callbacks), which must keep their order"
CALLS_BACK = "it calls back to Python, and planning would do so many times"
CLOSED_OVER = "it reads values of a transformation around it"
NUMBERLESS = "it has arrays without numbers among its arguments, results or loops (float0: derivatives of integers)"
ELSEWHERE = "it reads arrays of its own that lie on other devices or on axes of a mesh that are part of their type"


def unfit(made: JitTrace, given: Mapping[str, object]) -> str:
    """Why calls like this one are never co-executed ("" where they may be). `given`: the parameters of `jax.jit`."""
    if made.closed_over:
        return CLOSED_OVER
    if made.closed.effects:
        return EFFECTS
    if made.calls_back:
        return CALLS_BACK
    if numberless(made.closed.jaxpr):
        return NUMBERLESS
    if any(map(is_away, made.closed.consts)) or typed_by_mesh(made.closed.consts):
        return ELSEWHERE
    said = elsewhere(made.closed, home())
    return f"it says itself where arrays lie ({said}), which plain jax.jit keeps" if said else placed_apart(given)


def types(made: JitTrace, call: Call) -> list[jax.ShapeDtypeStruct]:
    """Shapes and types of a call's leaves; where they lie is part of it if their caller has said so."""
    found = []
    for var, x in zip(made.closed.jaxpr.invars, call.leaves, strict=True):
        place = getattr(x, "sharding", None) if getattr(x, "committed", True) else None
        found.append(shape_of(var).update(sharding=place))
    return found


def commits(made: JitTrace, call: Call, positions: Collection[int], given: Mapping[str, object]) -> bool:
    """Whether `jax.jit` commits a call's results to the default device whatever lies where of the other leaves: one of
    those at `positions` that the function reads is committed there, or the caller has named the device.
    """
    jaxpr = made.closed.jaxpr
    read = {id(v) for v in (*jaxpr.outvars, *(v for eqn in jaxpr.eqns for v in eqn.invars))}
    held = lambda i: isinstance(x := call.leaves[i], jax.Array) and x.committed and id(jaxpr.invars[i]) in read
    return names_home(given) or any(map(held, positions))


def coming_back(made: JitTrace, call: Call) -> frozenset[int]:
    """Positions of the leaves of a call that come back as results."""
    pairs = lambda xs: [(tuple(x.aval.shape), str(x.aval.dtype)) if hasattr(x.aval, "shape") else () for x in xs]
    jaxpr = made.closed.jaxpr
    return returned(call.tree, pairs(jaxpr.invars), made.out_tree, pairs(jaxpr.outvars))


__all__ = ["coming_back", "commits", "types", "unfit"]
