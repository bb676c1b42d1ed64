"""Every branch on a JAX version, and the few names that come from outside JAX's promised API."""

from __future__ import annotations

from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.extend.core import Literal as JaxLiteral

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


def body(eqn: JaxprEqn) -> tuple[Jaxpr, list[Any]] | None:
    """The (open jaxpr, constants) of an equation that is inlined, or None."""
    for key in INLINE.get(eqn.primitive.name, ()):
        inner = eqn.params.get(key)
        if isinstance(inner, ClosedJaxpr):
            return inner.jaxpr, list(inner.consts)
        if isinstance(inner, Jaxpr):
            return inner, []
    return None


def bind(primitive: Any, args: list[Any], params: dict[str, Any]) -> list[Any]:
    """Applies a primitive, one with function parameters (scan, while, cond) too; always a list."""
    out = primitive.bind(*args, **primitive.get_bind_params(params))
    return list(out) if primitive.multiple_results else [out]


def is_tracer(x: Any) -> bool:
    return isinstance(x, jax.core.Tracer)


def ffi_call(target: str, results: list[jax.ShapeDtypeStruct], segment: Any, args: list[Any]) -> list[Any]:
    """One call of the native handler; `segment` is the address of its descriptor."""
    return list(jax.ffi.ffi_call(target, results)(*args, segment=segment))


__all__ = ["ClosedJaxpr", "JaxLiteral", "Jaxpr", "JaxprEqn", "bind", "body", "ffi_call", "is_tracer"]
