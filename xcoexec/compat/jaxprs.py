"""Equations of a jaxpr, whatever JAX's version calls their parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, Var
from jax.extend.core import Literal as JaxLiteral
from jax.typing import ArrayLike

# outside of JAX's promised API, and so without types
_core: Any = jax._src.core  # type: ignore[attr-defined]
_mesh: Any = jax._src.mesh  # type: ignore[attr-defined]


#: primitives whose body is inlined -> parameter that holds it. `jit` was `pjit` in older traces.
INLINE: dict[str, tuple[str, ...]] = {
    "jit": ("jaxpr",),
    "pjit": ("jaxpr",),
    "closed_call": ("call_jaxpr",),
    "core_call": ("call_jaxpr",),
    "custom_jvp_call": ("call_jaxpr",),
    "custom_vjp_call": ("call_jaxpr", "fun_jaxpr"),
    "custom_vjp_call_jaxpr": ("fun_jaxpr", "call_jaxpr"),
    "remat": ("jaxpr",),
    "remat2": ("jaxpr",),
    "checkpoint": ("jaxpr",),
}


def body(eqn: JaxprEqn) -> tuple[Jaxpr, list[ArrayLike]] | None:
    """The (open jaxpr, constants) of an equation that is inlined, or None."""
    for key in INLINE.get(eqn.primitive.name, ()):
        inner = eqn.params.get(key)
        if isinstance(inner, ClosedJaxpr):
            return inner.jaxpr, list(inner.consts)
        if isinstance(inner, Jaxpr):
            return inner, []
    return None


def loop_body(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What a loop repeats; None for other equations, and for a loop with effects."""
    closed = eqn.params.get({"scan": "jaxpr", "while": "body_jaxpr"}.get(eqn.primitive.name, ""))
    known = isinstance(closed, ClosedJaxpr) and not closed.effects and not eqn.effects
    return cast(ClosedJaxpr, closed) if known else None


def loop_condition(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What a loop asks before each turn; None for one of known length, and for other equations."""
    return cast(ClosedJaxpr, eqn.params["cond_jaxpr"]) if eqn.primitive.name == "while" else None


def loop_parts(eqn: JaxprEqn) -> tuple[int, int]:
    """How many operands of a loop are the same in every turn (those of a condition first), and how many a turn hands on
    to the next.
    """
    p = eqn.params
    if eqn.primitive.name == "while":
        same = p["cond_nconsts"] + p["body_nconsts"]
        return same, len(eqn.invars) - same
    if "num_consts" in p:
        return p["num_consts"], p["num_carry"]
    same, carried, _ = map(len, p["ft_in"].unpack())
    return same, carried


def shape_of(atom: Var | JaxLiteral) -> jax.ShapeDtypeStruct:
    """Shape and type of a variable or a literal; whether its type is weak is part of it."""
    aval = cast(jax.core.ShapedArray, atom.aval)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def bodies(eqn: JaxprEqn) -> list[Jaxpr]:
    """The jaxprs inside of an equation: of loops, branches and calls."""
    program = lambda x: isinstance(x, (Jaxpr, ClosedJaxpr))
    found = jax.tree_util.tree_leaves(list(eqn.params.values()), is_leaf=program)
    return [x.jaxpr if isinstance(x, ClosedJaxpr) else x for x in found if program(x)]


def equations(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[JaxprEqn]:
    """All equations of a jaxpr, inside of loops, branches and calls too."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in bodies(eqn):
            yield from equations(inner)


def numberless(jaxpr: Jaxpr) -> bool:
    """Whether an argument or a result is of type float0, or one of a loop, branch or call inside. What is made and read
    nowhere is not looked at.
    """
    empty = any(getattr(v.aval, "dtype", None) == jax.dtypes.float0 for v in (*jaxpr.invars, *jaxpr.outvars))
    return empty or any(numberless(inner) for eqn in jaxpr.eqns for inner in bodies(eqn))


def primitives(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[str]:
    """The names of all primitives of a jaxpr, inside of loops, branches and calls too."""
    return (eqn.primitive.name for eqn in equations(jaxpr))


#: primitives of operations that no trace made
MADE = {"slice": jax.lax.slice_p, "concatenate": jax.lax.concatenate_p, "add": jax.lax.add_p}


def bind(primitive: Primitive, args: Sequence[ArrayLike], params: dict[str, object]) -> list[jax.Array]:
    """Applies a primitive, one with function parameters (scan, while, cond) too; always a list. Raises what JAX does,
    for shapes and types that do not belong together.
    """
    out = primitive.bind(*args, **primitive.get_bind_params(params))
    return list(out) if primitive.multiple_results else [out]


#: parameters of a jitted function inside of a program: nothing is said of where an operand lies, and no mesh is set
UNSPECIFIED: Any = jax._src.sharding_impls.UNSPECIFIED  # type: ignore[attr-defined]
EMPTY_MESH: jax.sharding.Mesh = _mesh.empty_concrete_mesh
#: the effect of what computes with all devices along an axis of a mesh
AlongAxis: type = _core.NamedAxisEffect


__all__ = ["EMPTY_MESH", "MADE", "UNSPECIFIED", "AlongAxis", "bind", "bodies", "body", "equations"]
__all__ += ["loop_body", "loop_condition", "loop_parts", "numberless", "primitives", "shape_of"]
