"""`jax.jit` itself, what it makes of a call, and what is traced in this thread."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol, cast

import jax
from jax.extend.core import ClosedJaxpr, JaxprEqn
from jax.interpreters.ad import Zero
from jax.tree_util import PyTreeDef

from .arrays import is_tracer
from .jaxprs import equations

# outside of JAX's promised API, and so without types
_core: Any = jax._src.core  # type: ignore[attr-defined]


class Jitted(Protocol):
    """What `jax.jit` returns: it takes and returns what the function does."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered: ...

    def trace(self, *args: Any, **kwargs: Any) -> jax.stages.Traced: ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...

    def clear_cache(self) -> None: ...

    def _cache_size(self) -> int:
        """How many programs it keeps: one for each signature that it was called with."""
        ...


#: JAX's own, also where a program has put `xcoexec.jit` in the place of `jax.jit`, before or after this is loaded
plain_jit = cast("Callable[..., Jitted]", jax._src.api.jit)  # type: ignore[attr-defined]


@functools.lru_cache
def xla_knows(option: str, value: object = False) -> bool:
    """Whether XLA's compiler has an option (a switch, if nothing else is said) that takes a value."""
    shape = jax.ShapeDtypeStruct((8,), "float32")
    try:
        plain_jit(lambda x: x + 1, compiler_options={option: value}).lower(shape).compile()
    except Exception:  # JAX says so in several ways
        return False
    return True


#: what is traced in this thread (`.trace`), and what stands there while nothing is, so that a call computes with arrays
#: at once
TRACED, NOTHING = _core.trace_ctx, _core.eval_trace


def gradient_is_asked() -> bool:
    """Whether what is computed now is differentiated backwards (`grad`, `vjp`), with nothing else around."""
    trace = TRACED.trace
    return bool(getattr(trace, "is_vjp", False)) and trace.parent_trace is NOTHING


def primal_of(x: object) -> tuple[Any, bool]:
    """Of a leaf of a call that is differentiated: the array itself, and whether a gradient is asked of it."""
    tracer: Any = x
    if not is_tracer(x) or tracer._trace is not TRACED.trace:
        return x, False
    primal, tangent = tracer._trace.to_primal_tangent_pair(x)
    return primal, not isinstance(tangent, Zero)


def at_once() -> contextlib.AbstractContextManager[object]:
    """Within it calls with arrays compute at once, whatever is traced around them."""
    found: contextlib.AbstractContextManager[object] = _core.eval_context()
    return found


@dataclasses.dataclass(frozen=True)
class JitTrace:
    """What `jax.jit` makes of a call: its jaxpr, the results' structure, and which input leaves are given away."""

    closed: ClosedJaxpr
    out_tree: PyTreeDef
    donated: tuple[int, ...]
    closed_over: bool  # the function reads values of a transformation around it
    calls_back: bool  # its program calls back to Python (or may); not looked for where it has effects or closes over


def trace_of(traced: jax.stages.Traced) -> JitTrace:
    """What a jitted function's trace says. It is that of its first call too: a function is traced once."""
    donated = tuple(i for i, given in enumerate(_given_away(traced)) if given)
    closed_over = bool(getattr(traced, "_num_consts", 0))
    pure = not (closed_over or traced.jaxpr.effects)  # else it stays with plain jax.jit anyway
    return JitTrace(traced.jaxpr, traced.out_tree, donated, closed_over, pure and _calls_back(traced))


def _given_away(traced: jax.stages.Traced) -> list[bool]:
    """Which leaves of the arguments are given away. `args_info` has it in the user's own structures, which may look at
    what they are made of.
    """
    flags = getattr(traced, "_params", {}).get("donated_invars")
    if flags is None:
        return [info.donated for info in jax.tree_util.tree_leaves(traced.args_info)]
    return list(flags)[getattr(traced, "_num_consts", 0) :]


def _calls_back(traced: jax.stages.Traced) -> bool:
    """Whether a program calls back to Python. What another library's primitive does only its lowered text says."""
    made = tuple(equations(traced.jaxpr))
    if any(eqn.primitive.name == "pure_callback" for eqn in made):
        return True
    if not any(map(_foreign, made)):
        return False
    try:
        text = traced.lower().as_text()
    except Exception:  # another library's lowering, apart from a call: nobody knows
        return True
    return "python" in text and "callback" in text


def _foreign(eqn: JaxprEqn) -> bool:
    """Whether a primitive is another library's, by where it is evaluated."""
    impl = eqn.primitive.impl
    return not (getattr(getattr(impl, "func", impl), "__module__", None) or "jax").startswith("jax")


__all__ = ["NOTHING", "TRACED", "JitTrace", "Jitted", "at_once", "gradient_is_asked", "plain_jit"]
__all__ += ["primal_of", "trace_of", "xla_knows"]
