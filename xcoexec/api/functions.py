"""`jit` and `compile`: what users call."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from ..compat import NOTHING, TRACED
from ..errors import BindError, brief
from ..guard import boundary, outside
from ..ir.records import LayerGraph, Plan, UniformPlan
from ..measure.profile import Progress
from ..planning.strategies import Strategy
from ..session.compiled import Compiled, Fallback
from ..session.report import Report
from .entry import Entry
from .options import Options
from .resident import Bound
from .signature import Call, Plain, key_of


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    strategy: str | Strategy = "auto",
    threads: int | None = None,
    affinity: Iterable[int] | None = None,
    strict: bool = False,
    plan: Plan | UniformPlan | None = None,
    memory: str = "auto",
    device_memory: str | int | float | None = None,
    costs: str = "measured",
    progress: Progress | None = None,
    **given: Any,
) -> Any:
    """Like `jax.jit`: the same arguments, results and tolerance; behind it the layers run on both halves.

    Weights are recognised by where they flow (the weight operand of a convolution or product) and kept
    packed while the same `jax.Array`s are passed. Inside `jax.jit`, `jax.vmap`, `jax.grad`, `lax.scan` and
    other transformations, and wherever co-execution is not possible, plain `jax.jit` is used.

    Args:
      fn: the function; without it a decorator is returned.
      strategy: "auto", "device", "host", "edgenn", "codl", "layer_switch", "capacity", or a function (LayerGraph,
        Costs) -> Plan.
      threads: host threads (default: the cores this process may use, or XCOEXEC_THREADS).
      affinity: cores for the host half's threads, one each; the calling thread then does none of its work.
      strict: raise where xcoexec would otherwise warn once and use plain `jax.jit`.
      plan: a forced plan instead of a strategy.
      memory: how arrays cross to a GPU: "mapped" (kernels in host-mapped memory), "copy" (copy engines), or "auto" (for
        each array what costs less). Without a GPU nothing crosses.
      device_memory: the most that may lie on a GPU: bytes, "16GiB", or a share of its memory (0.5). Weights beyond that
        stay in host memory, where the host half computes with them or from where they are streamed; pass them as NumPy
        arrays to `bind`, which then does not copy them (do not write to them). Without a GPU there is no such bound.
      costs: "measured" (every layer on both halves) or "predicted" by what `xcoexec profile` has learned of this
        machine.
      progress: called with (stage, done, total) while planning.
      given: the parameters of `jax.jit` (static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused,
        inline, compiler_options, in_shardings, out_shardings, device, backend), which mean the same. With shardings, or
        a device other than the default one, plain `jax.jit` is used.
    """
    words: dict[str, Any] = dict(
        strategy=strategy, threads=threads, affinity=affinity, strict=strict, plan=plan, memory=memory
    )
    words |= dict(device_memory=device_memory, costs=costs, progress=progress)
    if fn is None:
        return functools.partial(jit, **words, **given)
    if not callable(fn):
        raise TypeError(f"xcoexec.jit: got {brief(fn)}; valid is a callable.")
    return CoPjitFunction(fn, Options(device=None, **words), given, words)


class CoPjitFunction:
    """What `jit` returns: call it like the function it wraps. (Libraries tell jitted functions by `PjitFunction` in
    their type's name.)
    """

    __wrapped__: Callable[..., Any]

    def __init__(
        self, fn: Callable[..., Any], options: Options, given: dict[str, Any], words: dict[str, Any] | None = None
    ):
        self._fn, self._options, self._given, self._words = fn, options, given, words
        self._plain = Plain(fn, given)
        self._entries: dict[Any, Entry] = {}
        self._last: Entry | None = None
        self._lock = threading.RLock()
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._options.off or TRACED.trace is not NOTHING:
                return self._plain(*args, **kwargs)
            call = self._call(args, kwargs)
            entry = self._entry(call)
            kept = entry.kept(call)
            if kept.compiled.plain or kept.gone():
                kept.compiled.tick()
                return self._plain.jitted(*call.args, **call.kwargs)
            return kept.compiled.call([call.leaves[i] for i in kept.inputs])  # type: ignore[union-attr]
        except Exception as e:
            e.__traceback__ = outside(e.__traceback__)
            raise

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        try:
            return inspect.signature(self._fn)
        except (TypeError, ValueError) as e:
            raise AttributeError(f"{self!r} has no signature: {e}") from None

    def __getattr__(self, name: str) -> Any:
        """What else a function that `jax.jit` returns has."""
        if name.startswith("__") or "_plain" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._plain.jitted, name)

    def __reduce__(self) -> Any:
        if self._words is None:
            raise TypeError(
                "xcoexec.compile: got a function made for one set of shapes to copy; valid is the function itself."
            )
        return _again, (self._fn, self._words, self._given)

    def __repr__(self) -> str:
        return f"<xcoexec.jit of {self._fn!r}>"

    def bind(self, *weights: Any) -> Bound:
        """A function of the remaining arguments, with `weights` (the first ones) resident and packed.

        NumPy arrays among them are copied: writing to them later changes nothing.
        """
        return Bound(self, weights)

    @boundary
    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As `jax.jit(fn).lower`: the plain program, for XLA alone."""
        return self._plain.ask("lower", args, kwargs)

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """As `jax.jit(fn).trace`."""
        return self._plain.ask("trace", args, kwargs)

    @boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """As `jax.jit(fn).eval_shape`: shapes and types of the results."""
        return self._plain.ask("eval_shape", args, kwargs)

    def clear_cache(self) -> None:
        """Forgets all programs, `jax.jit`'s too."""
        with self._lock:
            self._entries, self._last = {}, None
        self._plain.jitted.clear_cache()

    @boundary
    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """The plan for these arguments (made now if need be)."""
        return self._compiled(args, kwargs).plan()

    @boundary
    def graph(self, *args: Any, **kwargs: Any) -> LayerGraph:
        """The layer graph for these arguments. Raises `BindError` where plain `jax.jit` is all there is."""
        return self._compiled(args, kwargs).graph

    @boundary
    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Where each layer ran for these arguments, and how long."""
        return self._compiled(args, kwargs).report()

    def timeline(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Writes a call (made now) with such arguments as a trace for Perfetto."""
        self._compiled(args, kwargs).timeline(path)

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled | Fallback:
        call = self._call(args, kwargs)
        return self._entry(call).compiled(call)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        call = self._plain.call(args, kwargs)
        if self._options.device_memory is not None and self._options.apart:
            raise BindError(
                "xcoexec.jit(device_memory=...): got a call with its weights; valid is .bind(weights), so that they can stay in host memory."
            )
        return call

    def _entry(self, call: Call) -> Entry:
        last = self._last
        if last is not None and last.fits(call):
            return last
        key = key_of(call)
        entry = self._entries.get(key)
        if entry is None:
            with self._lock:
                entry = self._entries.setdefault(key, Entry(self._plain, self._options, call))
        self._last = entry
        return entry


def _again(fn: Callable[..., Any], words: dict[str, Any], given: dict[str, Any]) -> Any:
    return jit(fn, **words, **given)


def compile(
    fn: Callable[..., Any],
    *args: Any,
    strategy: str | Strategy = "auto",
    plan: Plan | UniformPlan | None = None,
    threads: int | None = None,
    affinity: Iterable[int] | None = None,
    device: Any = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> FixedFunction:
    """`fn` planned and built now, for arguments of these shapes and types; the explicit form of `jit`.

    Returns a function that takes arguments like `args` and raises `BindError` for others. `device`: "cpu" or "gpu", as
    JAX's default backend.
    """
    if not callable(fn):
        raise TypeError(f"xcoexec.compile: got {brief(fn)}; valid is a callable.")
    return FixedFunction(
        CoPjitFunction(fn, Options(strategy, threads, affinity, strict, plan, device, progress), {}), args
    )


class FixedFunction:
    """What `compile` returns: one structure, one set of shapes."""

    def __init__(self, owner: CoPjitFunction, args: tuple[Any, ...]):
        self._owner, self._args = owner, args
        self._key = _described(args)
        owner._compiled(args, {})

    def __call__(self, *args: Any) -> Any:
        got = _described(args)
        if got != self._key:
            different = next(
                ((a, b) for a, b in zip(got[1], self._key[1], strict=False) if a != b), (got[0], self._key[0])
            )
            raise BindError(f"xcoexec.compile: got an argument {different[0]} where {different[1]} was compiled for.")
        return self._owner(*args)

    def plan(self) -> Plan:
        return self._owner.plan(*self._args)

    def graph(self) -> LayerGraph:
        return self._owner.graph(*self._args)

    def report(self) -> Report:
        return self._owner.report(*self._args)

    def timeline(self, path: str | os.PathLike[str]) -> None:
        self._owner.timeline(path, *self._args)


def _described(args: Sequence[Any]) -> Any:
    """Structure, and shape and type of every leaf, as messages show them."""
    leaves, tree = jax.tree_util.tree_flatten(tuple(args))
    weak = lambda x: bool(getattr(x, "weak_type", False))
    return tree, [
        (tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__)) + " of a weak type" * weak(x)) for x in leaves
    ]
