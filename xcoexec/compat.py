"""Every branch on a JAX version, and the few names that come from outside JAX's promised API."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import pathlib
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive
from jax.extend.core import Literal as JaxLiteral
from jax.interpreters import mlir
from jax.sharding import SingleDeviceSharding as SingleDevice

#: kept, so that a program which puts `xcoexec.jit` in the place of `jax.jit` does not put it in here too
plain_jit = jax.jit
#: the class of concrete arrays (an array made here would start XLA at import)
Array: Any = jax._src.array.ArrayImpl  # type: ignore[attr-defined]

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


def primitives(jaxpr: Any) -> Iterator[str]:
    """The names of all primitives of a jaxpr, inside of loops, branches and calls too."""
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for value in jax.tree_util.tree_leaves(
            list(eqn.params.values()), is_leaf=lambda x: isinstance(x, (Jaxpr, ClosedJaxpr))
        ):
            if isinstance(value, (Jaxpr, ClosedJaxpr)):
                yield from primitives(value)


#: primitives of operations that no trace made
MADE = {"slice": jax.lax.slice_p, "concatenate": jax.lax.concatenate_p}


def bind(primitive: Any, args: list[Any], params: dict[str, Any]) -> list[Any]:
    """Applies a primitive, one with function parameters (scan, while, cond) too; always a list."""
    out = primitive.bind(*args, **primitive.get_bind_params(params))
    return list(out) if primitive.multiple_results else [out]


_config: Any = jax._src.config  # type: ignore[attr-defined]
_core: Any = jax._src.core  # type: ignore[attr-defined]


def versions() -> str:
    """What an error report should name."""
    return f"xcoexec {importlib.metadata.version('xcoexec')}, jax {jax.__version__}, Python {platform.python_version()}"


#: what `jax.jit` keys its programs by, besides their arguments
configuration: Callable[[], Any] = _config.trace_context


#: what is traced in this thread (`.trace`), and what stands there while nothing is, so that a call computes with arrays
#: at once
TRACED, NOTHING = _core.trace_ctx, _core.eval_trace


def default_device() -> Any:
    """The device that `jax_default_device` names; None where it names none."""
    return _config.default_device.value


def jit_is_disabled() -> bool:
    return bool(_config.disable_jit.value)


def mesh_is_set() -> bool:
    """Whether a mesh of devices is set around the call."""
    mesh: Any = jax._src.mesh  # type: ignore[attr-defined]
    return not (jax.sharding.get_abstract_mesh().empty and mesh.thread_resources.env.physical_mesh.empty)


def settings() -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """A context like the caller's own: what `with jax.default_matmul_precision(...)` and its like set holds for one
    thread only.
    """
    wanted = {name: state.value for name, state in _config.config_states.items()}

    @contextlib.contextmanager
    def same() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for name, value in wanted.items():
                state = _config.config_states[name]
                if state.value != value:  # what is the same anyway stays unset: JAX compiles anew for what is set
                    stack.enter_context(state(value))
            yield

    return same


def worker(target: Callable[..., None], args: Sequence[Any] = (), name: str = "xcoexec") -> threading.Thread:
    """A daemon thread under its maker's JAX settings: what it traces computes as it would have there."""
    same = settings()

    def run() -> None:
        with same():
            target(*args)

    return threading.Thread(target=run, name=name, daemon=True)


def is_tracer(x: Any) -> bool:
    return isinstance(x, jax.core.Tracer)


@dataclasses.dataclass(frozen=True)
class JitTrace:
    """What `jax.jit` makes of a call: its jaxpr, the results' structure, and which input leaves are given away."""

    closed: ClosedJaxpr
    out_tree: Any
    donated: tuple[int, ...]
    closed_over: bool  # the function reads values of a transformation around it


def trace_of(jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JitTrace:
    """Traces a jitted function, as its first call would, and for that call too: a function is traced once."""
    traced = jitted.trace(*args, **kwargs)
    infos = jax.tree_util.tree_leaves(traced.args_info)
    donated = tuple(i for i, info in enumerate(infos) if info.donated)
    return JitTrace(traced.jaxpr, traced.out_tree, donated, bool(getattr(traced, "_num_consts", 0)))


def as_weak(x: Any) -> Any:
    """The same array, of a weak type."""
    return jax.lax.convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=True, sharding=None)


@functools.lru_cache
def ffi_header() -> str:
    """The text of XLA's C API for handlers, as this jaxlib has it ("" where it is not shipped)."""
    try:
        return pathlib.Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    except OSError:
        return ""


class Owner:
    """Whose memory the address of a call is in: it lives as long as a jaxpr or a program that has the address."""

    def __init__(self, owner: object):
        self.owner = owner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owner) and self.owner is other.owner

    def __hash__(self) -> int:
        return id(self.owner)

    def __repr__(self) -> str:
        return f"<{type(self.owner).__name__}>"


# JAX's cache of abstract evaluations keeps the parameters of calls: an owner has to go with its last jaxpr
_weak_keys: Any = getattr(jax._src.util, "weakref_cache_key_types", set())  # type: ignore[attr-defined]
_weak_keys.add(Owner)

_host_call = Primitive("xcoexec_host_call")
_host_call.multiple_results = True


@_host_call.def_abstract_eval
def _(*args: Any, results: tuple[tuple[tuple[int, ...], str], ...], **_: Any) -> list[Any]:
    return [jax.core.ShapedArray(shape, np.dtype(dtype)) for shape, dtype in results]


def _lower_host_call(
    ctx: Any, *args: Any, target: str, results: Any, segment: int, aliases: Any, effect: bool, owner: Owner
) -> Any:
    ctx.module_context.add_keepalive(owner)
    return jax.ffi.ffi_lowering(target, operand_output_aliases=dict(aliases) or None, has_side_effect=effect)(
        ctx, *args, segment=np.int64(segment)
    )


mlir.register_lowering(_host_call, _lower_host_call)


@_host_call.def_impl
def _(*args: Any, **params: Any) -> Any:
    """One by one, as JAX computes a program again in which it has found a NaN (`jax_debug_nans`)."""
    return jax._src.dispatch.apply_primitive(_host_call, *args, **params)  # type: ignore[attr-defined]


def ffi_call(target: str, results: list[jax.ShapeDtypeStruct], segment: Any, args: list[Any]) -> list[Any]:
    """One call of a native handler: a function of its operands alone. `segment` has the address of its descriptor."""
    return _bind_call(target, results, segment.address, args, (), False, segment)


def host_call(
    target: str,
    results: list[jax.ShapeDtypeStruct],
    segment: int,
    args: list[Any],
    alias: bool | tuple[tuple[int, int], ...],
    owner: object = None,
) -> list[Any]:
    """As `ffi_call`, with an effect that XLA sees and JAX does not: one that JAX knows of takes every call off its fast
    path.

    `alias`: pairs (operand, result) that share a buffer; True: all results are the operands' own buffers. `owner`: what
    the address lies in.
    """
    pairs = alias if isinstance(alias, tuple) else tuple((i, i) for i in range(len(results)) if alias)
    return _bind_call(target, results, segment, args, pairs, True, owner)


def _bind_call(
    target: str,
    results: list[jax.ShapeDtypeStruct],
    segment: int,
    args: list[Any],
    aliases: tuple[tuple[int, int], ...],
    effect: bool,
    owner: object,
) -> list[Any]:
    shapes = tuple((tuple(r.shape), np.dtype(r.dtype).name) for r in results)
    return list(
        _host_call.bind(
            *args,
            target=target,
            results=shapes,
            segment=int(segment),
            aliases=aliases,
            effect=effect,
            owner=Owner(owner),
        )
    )


__all__ = [
    "MADE",
    "NOTHING",
    "TRACED",
    "Array",
    "ClosedJaxpr",
    "JaxLiteral",
    "Jaxpr",
    "JaxprEqn",
    "JitTrace",
    "SingleDevice",
    "as_weak",
    "bind",
    "body",
    "configuration",
    "default_device",
    "ffi_call",
    "ffi_header",
    "host_call",
    "is_tracer",
    "jit_is_disabled",
    "mesh_is_set",
    "plain_jit",
    "primitives",
    "settings",
    "trace_of",
    "versions",
]
