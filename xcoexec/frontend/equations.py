"""Equations of a jaxpr: what they read, how large it is, and evaluating them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax

from ..codegen.rules.primitives import PRIMITIVES
from ..compat import JaxLiteral, JaxprEqn, Var, bind, primitives, shape_of

Env = dict[Var, jax.Array]


def reads(eqn: JaxprEqn) -> list[Var]:
    """The variables that an equation reads."""
    return [v for v in eqn.invars if not isinstance(v, JaxLiteral)]


def contracts(eqn: JaxprEqn) -> bool:
    """Whether an equation, or one inside of it, is a product or a convolution."""
    inner = (n for v in eqn.params.values() if hasattr(v, "eqns") for n in primitives(v))
    return any(n in PRIMITIVES and PRIMITIVES[n].contraction for n in (eqn.primitive.name, *inner))


def nbytes(v: Var) -> int:
    """Bytes of a variable's array."""
    dtype = getattr(v.aval, "dtype", None)
    return math.prod(getattr(v.aval, "shape", ())) * getattr(dtype, "itemsize", 4)


def run(eqns: Sequence[JaxprEqn], env: Env) -> None:
    """Evaluates equations in order; `env` has what they read, and gets their results."""
    for e in eqns:
        args = [v.val if isinstance(v, JaxLiteral) else env[v] for v in e.invars]
        with jax.named_scope(str(e.source_info.name_stack) or e.primitive.name):
            env.update(zip(e.outvars, bind(e.primitive, args, dict(e.params)), strict=True))


def read(v: Var | JaxLiteral, env: Env) -> jax.Array:
    """The array of a variable, or of a literal."""
    return jax.numpy.asarray(v.val, shape_of(v).dtype) if isinstance(v, JaxLiteral) else env[v]


__all__ = ["Env", "contracts", "nbytes", "read", "reads", "run"]
