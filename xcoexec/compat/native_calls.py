"""Calls of native handlers, as primitives of JAX's."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Sequence
from typing import Any, Protocol

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

Avals = tuple[tuple[tuple[int, ...], str], ...]  # (shape, NumPy's name of the type) of each result
Pairs = tuple[tuple[int, int], ...]  # (operand, result) that share a buffer


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
def _(*args: object, results: Avals, **_: object) -> list[jax.core.ShapedArray]:
    return [jax.core.ShapedArray(shape, np.dtype(dtype)) for shape, dtype in results]


def _lower_host_call(
    ctx: mlir.LoweringRuleContext,
    *args: object,
    target: str,
    results: Avals,
    segment: int,
    aliases: Pairs,
    effect: bool,
    owner: Owner,
) -> Sequence[mlir.ir.Value | Sequence[mlir.ir.Value]]:
    ctx.module_context.add_keepalive(owner)
    return jax.ffi.ffi_lowering(target, operand_output_aliases=dict(aliases) or None, has_side_effect=effect)(
        ctx, *args, segment=np.int64(segment)
    )


mlir.register_lowering(_host_call, _lower_host_call)


@_host_call.def_impl
def _(*args: jax.Array, **params: object) -> list[jax.Array]:
    """One by one, as JAX computes a program again in which it has found a NaN (`jax_debug_nans`)."""
    out: list[jax.Array] = jax._src.dispatch.apply_primitive(_host_call, *args, **params)  # type: ignore[attr-defined]
    return out


class Addressed(Protocol):
    """What native code knows by the address of its words."""

    @property
    def address(self) -> int: ...


def ffi_call(
    target: str,
    results: Sequence[jax.ShapeDtypeStruct],
    segment: Addressed,
    args: Sequence[jax.Array],
    aliases: Pairs = (),
) -> list[jax.Array]:
    """One call of a native handler: a function of its operands alone. `results`: shapes and types of what it returns;
    `segment` has the address of its descriptor. `aliases`: pairs (operand, result) that share a buffer.
    """
    return _bind_call(target, results, segment.address, args, aliases, False, segment)


def host_call(
    target: str,
    results: Sequence[jax.ShapeDtypeStruct],
    segment: int,
    args: Sequence[jax.Array],
    alias: bool | Pairs,
    owner: object = None,
) -> list[jax.Array]:
    """As `ffi_call`, with an effect that XLA sees and JAX does not: one that JAX knows of takes every call off its fast
    path.

    `segment`: the address of its descriptor. `alias`: pairs (operand, result) that share a buffer; True: all results
    are the operands' own buffers. `owner`: what the address lies in.
    """
    pairs = alias if isinstance(alias, tuple) else tuple((i, i) for i in range(len(results)) if alias)
    return _bind_call(target, results, segment, args, pairs, True, owner)


def _bind_call(
    target: str,
    results: Sequence[jax.ShapeDtypeStruct],
    segment: int,
    args: Sequence[jax.Array],
    aliases: Pairs,
    effect: bool,
    owner: object,
) -> list[jax.Array]:
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


__all__ = ["Pairs", "ffi_call", "ffi_header", "host_call"]
