"""Gradients of a function with no `jax.jit` around: its forward and its backward pass, each a program of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.tree_util import PyTreeDef

from ..compat import (
    NOTHING,
    TRACED,
    Jaxpr,
    Var,
    at_once,
    gradient_is_asked,
    is_tracer,
    jit_is_disabled,
    looks_for_nans,
    mesh_here,
    primal_of,
    trace_of,
)
from ..frontend.worth import small
from ..lowering.executable import Stale
from .entry import Entry
from .function import Function
from .plain import Args, Call, Kwargs, Plain
from .resident import ResidentFunction
from .signature import Signature
from .traced_call import unfit
from .where import typed_by_mesh

Context = Callable[[], contextlib.AbstractContextManager[None]]

#: the parameters of `jax.jit` that a pass alone may do without
HARMLESS = frozenset({"static_argnums", "static_argnames", "keep_unused", "inline"})


@dataclasses.dataclass(frozen=True)
class Saved:
    """What a forward pass leaves to the backward pass.

    `results`: the structure of the function's results; `linked`: those that depend on what is differentiated.
    `linear`: the structure of the linear map at this point; of each of its leaves in `parts` where it comes from: the
    call's leaves (0, i), the results (1, i), the pass's further results (2, i), or itself, a constant (3, x).
    """

    results: PyTreeDef
    linked: tuple[int, ...]
    linear: PyTreeDef
    parts: tuple[tuple[int, Any], ...]

    def residuals(self, leaves: Sequence[Any], outs: Sequence[Any], further: Sequence[Any]) -> list[Any]:
        """The map's leaves that are no constants."""
        of = (leaves, outs, further)
        return [of[kind][at] for kind, at in self.parts if kind < len(of)]

    def rebuilt(self, residuals: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        """The linear map: tangents of what is differentiated -> tangents of all results."""
        rest = iter(residuals)
        leaves = [at if kind == 3 else next(rest) for kind, at in self.parts]
        found: Callable[..., Sequence[Any]] = jax.tree_util.tree_unflatten(self.linear, leaves)
        return found


class Gradient:
    """Both passes of calls of one signature. `wanted`: the leaves that are differentiated."""

    def __init__(self, function: Function, call: Call, wanted: tuple[int, ...]):
        self._function, self._call, self._wanted = function, call.without_arrays(), wanted
        with at_once():  # traced once: what is saved fits for good
            closed, (outs, _) = jax.make_jaxpr(self._forward, return_shape=True)(call.leaves)
        self._many = len(outs)
        self._run = jax.extend.core.jaxpr_as_fun(closed)
        self.forward = self._program(lambda leaves: self._run(*leaves), "forward")
        self.backward: dict[tuple[int, ...], ResidentFunction[list[jax.Array]]] = {}

    def _program(self, run: Callable[..., Any], name: str) -> ResidentFunction[Any]:
        """A pass, co-executed as the function is, without weights: all arrays are inputs. It never raises where the
        plain function would not.
        """

        def whole(*args: Any) -> Any:
            return run(*args)

        whole.__name__ = f"{self._function.name}_{name}"
        options = dataclasses.replace(self._function.options, strict=False)
        return ResidentFunction(Function(Plain(whole, {}), options), ())

    @property
    def entries(self) -> list[Entry]:
        """The programs of both passes."""
        return [e for p in (self.forward, *tuple(self.backward.values())) for e in tuple(p._entries.values())]

    @property
    def settled(self) -> bool:
        """Whether plain `jax.jit` is to run both passes for good."""
        return bool(self.backward) and all(e.settled for e in self.entries)

    def __call__(self, leaves: Sequence[Any], traced: Sequence[Any]) -> Any:
        """The function's results. `leaves`: a call's, concrete; `traced`: the same leaves as the caller gave them."""
        with at_once():
            found = list(self.forward(list(leaves)))
        saved, outs, further = self._saved, found[: self._many], found[self._many :]
        residuals = saved.residuals(leaves, outs, further)
        values = tuple(outs[i] for i in saved.linked)
        if values:
            link = jax.custom_vjp(lambda *_: values)
            mesh = mesh_here()
            link.defvjp(lambda *_: (values, residuals), lambda r, cts: self._back(mesh, r, cts), symbolic_zeros=True)
            for i, value in zip(saved.linked, link(*(traced[i] for i in self._wanted)), strict=True):
                outs[i] = value
        return jax.tree_util.tree_unflatten(saved.results, outs)

    def _forward(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The function's results, and what else the backward pass needs."""
        results: PyTreeDef | None = None

        def run(*chosen: Any) -> list[Any]:
            nonlocal results
            given = dict(zip(self._wanted, chosen, strict=True))
            args, kwargs = self._function.plain.rebuilt(self._call, [given.get(i, x) for i, x in enumerate(leaves)])
            outs, results = jax.tree_util.tree_flatten(self._function.plain.run(*args, **kwargs))
            return outs

        outs, linear = jax.linearize(run, *(leaves[i] for i in self._wanted))
        assert results is not None
        known = {id(x): (kind, i) for kind, xs in ((1, outs), (0, leaves)) for i, x in enumerate(xs)}
        further: list[Any] = []
        parts: list[tuple[int, Any]] = []
        found, tree = jax.tree_util.tree_flatten(linear)
        for x in found:
            if is_tracer(x) and id(x) not in known:
                known[id(x)] = 2, len(further)
                further.append(x)
            parts.append(known[id(x)] if is_tracer(x) else (3, x))
        self._tangents = [
            jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in map(leaves.__getitem__, self._wanted)
        ]
        self._saved = Saved(results, self._linked(linear, outs), tree, tuple(parts))
        return outs, further

    def _linked(self, linear: Callable[..., Sequence[Any]], outs: Sequence[Any]) -> tuple[int, ...]:
        """The results that depend on what is differentiated."""
        smooth = [i for i, x in enumerate(outs) if jnp.issubdtype(x.dtype, jnp.inexact)]
        jaxpr = jax.make_jaxpr(lambda *ts: [linear(*ts)[i] for i in smooth])(*self._tangents).jaxpr
        return tuple(i for i, reached in zip(smooth, reaches(jaxpr), strict=True) if reached)

    def _back(self, mesh: Context, residuals: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of what is differentiated, from those results that have any. `mesh`: of the forward pass."""
        some = tuple(i for i, ct in enumerate(cotangents) if not isinstance(ct, SymbolicZero))
        if not some:
            return (None,) * len(self._wanted)
        program = self.backward.get(some)
        if program is None:
            program = self.backward.setdefault(some, self._program(self._backward(some), "backward"))
        args = list(residuals), [cotangents[i] for i in some]
        if TRACED.trace is not NOTHING:
            return tuple(program(*args))
        try:
            with mesh():
                return tuple(program(*args))
        except Stale:  # JAX transposes under another configuration
            return tuple(program._function.plain.run(*args))

    def _backward(self, some: tuple[int, ...]) -> Callable[..., list[Any]]:
        """The backward pass from these of the linked results."""

        def run(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            linear = self._saved.rebuilt(residuals)

            def chosen(*tangents: Any) -> list[Any]:
                outs = linear(*tangents)
                return [outs[self._saved.linked[i]] for i in some]

            return list(jax.linear_transpose(chosen, *self._tangents)(list(cotangents)))

        return run


class Gradients:
    """The gradients of one function, by what is asked: those that are not co-executed are None."""

    def __init__(self, function: Function):
        self._function = function
        self._known: dict[tuple[Signature, tuple[int, ...]], Gradient | None] = {}
        self._lock = threading.RLock()
        options, given = function.options, function.plain.given
        named = {k for k, v in given.items() if v is not None}
        bound = options.plan is not None or options.device_memory is not None
        self._off = options.off or bound or not named <= HARMLESS

    def entries(self) -> Iterator[Entry]:
        """All programs."""
        for known in tuple(self._known.values()):
            yield from known.entries if known is not None else ()

    def find(self, args: Args, kwargs: Kwargs) -> Callable[[], Any] | None:
        """What answers a call, if its gradient is asked for and both passes may be co-executed. Raises what the
        function raises.
        """
        if self._off or not gradient_is_asked() or jit_is_disabled() or looks_for_nans():
            return None
        call = self._function.plain.call(args, kwargs)
        pairs = [primal_of(x) for x in call.leaves]
        leaves = [x for x, _ in pairs]
        wanted = tuple(i for i, (_, moves) in enumerate(pairs) if moves)
        if not wanted or any(map(is_tracer, leaves)):
            return None
        args, kwargs = self._function.plain.rebuilt(call, leaves)
        gradient = self._of(Call(args, kwargs, leaves, call.tree, call.static), wanted)
        if gradient is None or gradient.settled:
            return None
        return lambda: gradient(leaves, call.leaves)

    def _of(self, call: Call, wanted: tuple[int, ...]) -> Gradient | None:
        key = Signature.of(call), wanted
        if key in self._known:
            return self._known[key]
        with self._lock:
            if key not in self._known:
                self._known[key] = Gradient(self._function, call, wanted) if self._fit(call, wanted) else None
            return self._known[key]

    def _fit(self, call: Call, wanted: Collection[int]) -> bool:
        """Whether calls like this one may be co-executed: what is made up of tangents has no mesh in its type."""
        if typed_by_mesh(call.leaves):
            return False
        made = trace_of(self._function.plain.ask("trace", call.args, call.kwargs))
        if unfit(made, self._function.plain.given) or made.donated:
            return False
        smooth = all(jnp.issubdtype(jax.typeof(call.leaves[i]).dtype, jnp.inexact) for i in wanted)
        return smooth and (self._function.options.waits or not small(made.closed))


def reaches(jaxpr: Jaxpr) -> list[bool]:
    """Of each result whether it depends on an argument."""
    moving = set(jaxpr.invars)
    at = lambda v: isinstance(v, Var) and v in moving
    for eqn in jaxpr.eqns:
        if any(map(at, eqn.invars)):
            moving.update(eqn.outvars)
    return [at(v) for v in jaxpr.outvars]


__all__ = ["Gradients"]
