"""`jit` and `compile`: what users call."""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .bound import Bound
from .compat import is_tracer
from .compiled import Compiled
from .errors import BindError
from .ir import LayerGraph, Plan, UniformPlan
from .options import Options
from .prepare import check, compile_stages, warn
from .profile import Progress
from .report import Report
from .strategies import Strategy
from .trace import Traced, paths, trace, weight_leaves

MISSES = 3  # calls in a row with new weights before a function stays with plain jax.jit


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    strategy: str | Strategy = "auto",
    threads: int | None = None,
    affinity: Iterable[int] | None = None,
    strict: bool = False,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    plan: Plan | UniformPlan | None = None,
    memory: str = "auto",
    device_memory: str | int | float | None = None,
    costs: str = "measured",
    progress: Progress | None = None,
) -> Any:
    """Like `jax.jit`: the same arguments, results and tolerance; behind it the layers run on both halves.

    Weights are recognised by where they flow (the weight operand of a convolution or product) and kept
    packed while the same `jax.Array`s are passed. Inside `jax.jit`, `jax.vmap`, `jax.grad` or `lax.scan`
    the plain function is used.

    Args:
      fn: the function; without it a decorator is returned.
      strategy: "auto", "device", "host", "edgenn", "codl", "layer_switch", "capacity", or a function (LayerGraph, Costs) -> Plan.
      threads: host threads (default: the cores this process may use, or XCOEXEC_THREADS).
      affinity: cores for the host half's threads, one each; the calling thread then does none of its work.
      strict: raise where xcoexec would otherwise warn once and use plain `jax.jit`.
      static_argnums, static_argnames, donate_argnums: as in `jax.jit`.
      plan: a forced plan instead of a strategy.
      memory: how arrays cross to a GPU: "mapped" (kernels in host-mapped memory), "copy" (copy engines), or "auto" (for each
        array what costs less). Without a GPU nothing crosses.
      device_memory: the most that may lie on a GPU: bytes, "16GiB", or a share of its memory (0.5). Weights beyond that stay
        in host memory, where the host half computes with them or from where they are streamed; pass them as NumPy arrays to
        `bind`, which then does not copy them (do not write to them). Without a GPU there is no such bound.
      costs: "measured" (every layer on both halves) or "predicted" by what `xcoexec profile` has learned of this machine.
      progress: called with (stage, done, total) while planning.
    """
    if fn is None:
        return functools.partial(
            jit,
            strategy=strategy,
            threads=threads,
            affinity=affinity,
            strict=strict,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            plan=plan,
            memory=memory,
            device_memory=device_memory,
            costs=costs,
            progress=progress,
        )
    if not callable(fn):
        raise TypeError(f"xcoexec.jit: got {fn!r}; valid is a callable.")
    options = Options(strategy, threads, affinity, strict, plan, None, progress, memory, device_memory, costs)
    return CoFunction(fn, options, _ints(static_argnums, "static_argnums"), _names(static_argnames), _ints(donate_argnums, "donate_argnums"))


def _ints(x: int | Iterable[int], what: str) -> tuple[int, ...]:
    out = (x,) if isinstance(x, int) else tuple(x)
    if not all(isinstance(i, int) for i in out):
        raise TypeError(f"xcoexec.jit: got {what}={x!r}; valid is an int or several.")
    return out


def _names(x: str | Iterable[str]) -> tuple[str, ...]:
    return (x,) if isinstance(x, str) else tuple(x)


class CoFunction:
    """What `jit` returns: call it like the function it wraps."""

    def __init__(self, fn: Callable[..., Any], options: Options, static_nums: tuple[int, ...], static_names: tuple[str, ...], donate: tuple[int, ...]):
        self._fn, self._options = fn, options
        self._static_nums, self._static_names = _static(fn, static_nums, static_names)
        self._donate = donate
        self._plain = jax.jit(fn, static_argnums=static_nums or None, static_argnames=static_names or None, donate_argnums=donate or None)
        self._entries: dict[Any, _Entry] = {}
        self._lock = threading.RLock()
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._split(args, kwargs)
        if any(map(is_tracer, call.leaves)):
            return self._plain(*args, **kwargs)
        if self._options.device_memory is not None and self._options.apart:
            raise BindError("xcoexec.jit(device_memory=...): got a call with its weights; valid is .bind(weights), so that they can stay in host memory.")
        entry = self._entry(call)
        try:
            compiled = entry.compiled(call.leaves)
        except _Fallback:
            return self._plain(*args, **kwargs)
        return compiled.call([call.leaves[i] for i in compiled.stages.folded.input_index])

    def bind(self, *weights: Any) -> Bound:
        """A function of the remaining arguments, with `weights` (the first ones) resident and packed.

        NumPy arrays among them are copied: writing to them later changes nothing.
        """
        return Bound(self, weights)

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """The plan for these arguments (made now if need be)."""
        return self._compiled(args, kwargs).plan()

    def graph(self, *args: Any, **kwargs: Any) -> LayerGraph:
        """The layer graph for these arguments."""
        return self._compiled(args, kwargs).stages.graph

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Where each layer ran for these arguments, and how long."""
        return self._compiled(args, kwargs).report()

    def timeline(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Writes a call (made now) with such arguments as a trace for Perfetto."""
        self._compiled(args, kwargs).timeline(path)

    def _compiled(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Compiled:
        call = self._split(args, kwargs)
        try:
            return self._entry(call).compiled(call.leaves)
        except _Fallback as e:
            raise BindError(f"xcoexec.jit: there is no plan for these arguments, they go to plain jax.jit: {e}.") from None

    def _split(self, args: Sequence[Any], kwargs: dict[str, Any]) -> _Call:
        static = {i: a for i, a in enumerate(args) if i in self._static_nums}
        named = {k: v for k, v in kwargs.items() if k in self._static_names}
        dynamic = (tuple(a for i, a in enumerate(args) if i not in static), {k: v for k, v in kwargs.items() if k not in named})
        leaves, tree = jax.tree_util.tree_flatten(dynamic)
        return _Call(len(args), static, named, leaves, tree)

    def _entry(self, call: _Call) -> _Entry:
        key = (call.tree, tuple(map(_aval, call.leaves)), tuple(sorted(call.static.items())), tuple(sorted(call.named.items())))
        try:
            entry = self._entries.get(key)
        except TypeError:
            raise TypeError(f"xcoexec.jit: got static arguments {(*call.static.values(), *call.named.values())!r}; valid are hashable values.") from None
        if entry is None:
            with self._lock:
                entry = self._entries.setdefault(key, _Entry(self, call))
        return entry


class _Call(NamedTuple):
    """The arguments of one call: how many there were, the static ones, and the leaves of the others."""

    nargs: int
    static: dict[int, Any]
    named: dict[str, Any]
    leaves: list[Any]
    tree: Any


def _static(fn: Callable[..., Any], nums: tuple[int, ...], names: tuple[str, ...]) -> tuple[frozenset[int], frozenset[str]]:
    """As in jax.jit, a static position names its parameter and a static name its position."""
    try:
        parameters = [p.name for p in inspect.signature(fn).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        parameters = []
    positions = {i % len(parameters) if parameters else i for i in nums} | {i for i, p in enumerate(parameters) if p in names}
    return frozenset(positions), frozenset(names) | {parameters[i] for i in positions if i < len(parameters)}


def _aval(x: Any) -> Any:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return tuple(x.shape), x.dtype, bool(getattr(x, "weak_type", False))
    return type(x).__name__


class _Entry:
    """One structure and set of shapes of a `CoFunction`: recognises weights, keeps the compiled function for them."""

    def __init__(self, owner: CoFunction, call: _Call):
        self._owner, self._nargs, self._static, self._named, self._tree = owner, call.nargs, call.static, call.named, call.tree
        self._lock = threading.RLock()
        self._current: tuple[list[Any], Compiled] | None = None
        self._misses = 0
        self._weights: tuple[int, ...] = ()
        self._traced: Traced | None = None
        self._fallback = ""

    def compiled(self, leaves: list[Any]) -> Compiled:
        """The compiled function whose weights are these very arrays. Raises `_Fallback` where plain jax.jit is used."""
        if self._fallback:
            raise _Fallback(self._fallback)
        with self._lock:
            if self._traced is None:
                check(leaves)
                self._traced = trace(self._pure, leaves, self._tree, paths(self._tree))
                self._weights = weight_leaves(self._traced)
            weights = [leaves[i] for i in self._weights]
            if self._current is not None and all(a is b for a, b in zip(weights, self._current[0], strict=True)):
                self._misses = 0
                return self._current[1]
            self._admit(weights)
            compiled = compile_stages(self._owner, self._traced, self._weights, weights, leaves, self._donated(), self._plain_call(leaves))
            self._current = (weights, compiled)
            return compiled

    def _admit(self, weights: Sequence[Any]) -> None:
        """New weights are packed again; mutable ones, or ones that change at every call, are left to jax.jit."""
        if any(isinstance(w, np.ndarray) for w in weights):
            raise self._give_up("weights are NumPy arrays, which may change between calls; pass jax arrays, or use .bind, which copies them")
        self._misses += self._current is not None
        if self._misses >= MISSES:
            raise self._give_up("weights changed at every call; use .bind, or plain jax.jit for training")

    def _give_up(self, why: str) -> Exception:
        warn(self._owner, why)  # raises when strict, and does so at every call
        self._fallback = why
        return _Fallback(why)

    def _full(self, dynamic: Sequence[Any]) -> list[Any]:
        """The positional arguments with the static ones in their places."""
        rest = iter(dynamic)
        return [self._static[i] if i in self._static else next(rest) for i in range(self._nargs)]

    def _pure(self, *args: Any, **kwargs: Any) -> Any:
        return self._owner._fn(*self._full(args), **kwargs, **self._named)

    def _plain_call(self, leaves: Sequence[Any]) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Plain jax.jit as a function of the inputs' leaves."""
        weights = {i: leaves[i] for i in self._weights}
        n = len(leaves)

        def call(inputs: Sequence[Any]) -> Sequence[Any]:
            rest = iter(inputs)
            flat = [weights[i] if i in weights else next(rest) for i in range(n)]
            args, kwargs = jax.tree_util.tree_unflatten(self._tree, flat)
            return jax.tree_util.tree_leaves(self._owner._plain(*self._full(args), **kwargs, **self._named))

        return call

    def _donated(self) -> tuple[int, ...]:
        """Positions among the inputs of the leaves that the caller gives away."""
        args, _ = jax.tree_util.tree_unflatten(self._tree, range(self._tree.num_leaves))
        dynamic = [i for i in range(self._nargs) if i not in self._static]
        given = {leaf for i, a in zip(dynamic, args, strict=True) if i in self._owner._donate for leaf in jax.tree_util.tree_leaves(a)}
        inputs = [leaf for leaf in range(self._tree.num_leaves) if leaf not in set(self._weights)]
        return tuple(position for position, leaf in enumerate(inputs) if leaf in given)


class _Fallback(Exception):
    """This call goes to plain jax.jit."""


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

    Returns a function that takes arguments like `args` and raises `BindError` for others. `device`: "cpu" or "gpu", as JAX's
    default backend.
    """
    if not callable(fn):
        raise TypeError(f"xcoexec.compile: got {fn!r}; valid is a callable.")
    owner = CoFunction(fn, Options(strategy, threads, affinity, strict, plan, device, progress), (), (), ())
    return FixedFunction(owner, args)


class FixedFunction:
    """What `compile` returns: one structure, one set of shapes."""

    def __init__(self, owner: CoFunction, args: tuple[Any, ...]):
        self._owner, self._args = owner, args
        self._key = self._describe(args)
        owner._compiled(args, {})

    @staticmethod
    def _describe(args: Sequence[Any]) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(tuple(args))
        return tree, [(tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__))) for x in leaves]

    def __call__(self, *args: Any) -> Any:
        got = self._describe(args)
        if got != self._key:
            different = next(((a, b) for a, b in zip(got[1], self._key[1], strict=False) if a != b), (got[0], self._key[0]))
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
