"""A jaxpr whose branches are choices element by element: both are computed, as the host's passes know no branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax import lax
from jax.typing import ArrayLike

from ..compat import ClosedJaxpr, JaxLiteral, Jaxpr, JaxprEqn, Var, bind, body


def without_branches(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same function with calls inlined, and with `select_n` over the results of all branches in the place of each
    `cond` without effects. Values are the same, as what is not chosen does not count.
    """

    def fn(*args: jax.Array) -> list[Any]:
        return _run(closed.jaxpr, closed.consts, args)

    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in closed.in_avals]
    made: ClosedJaxpr = jax.make_jaxpr(fn)(*shapes)
    return made


def _run(jaxpr: Jaxpr, consts: Sequence[ArrayLike], args: Sequence[ArrayLike]) -> list[Any]:
    env: dict[Var, ArrayLike] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda v: v.val if isinstance(v, JaxLiteral) else env[v]
    for eqn in jaxpr.eqns:
        given = [read(v) for v in eqn.invars]
        env.update(zip(eqn.outvars, _results(eqn, given), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _results(eqn: JaxprEqn, given: Sequence[Any]) -> list[Any]:
    inner = body(eqn)
    if inner is not None:
        return _run(*inner, given)
    if eqn.primitive.name != "cond" or eqn.effects:
        return bind(eqn.primitive, given, eqn.params)
    which, *operands = given
    cases = [_run(branch.jaxpr, branch.consts, operands) for branch in eqn.params["branches"]]
    if len(cases) == 1:
        return cases[0]
    index = lax.clamp(0, which, len(cases) - 1)
    chosen = index != 0 if len(cases) == 2 else index
    return [lax.select_n(chosen, *values) for values in zip(*cases, strict=True)]


__all__ = ["without_branches"]
