"""`jit`, `compile` and bound functions: the only file that wires the stages."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from . import config
from .codegen import host
from .codegen.relay import Relay
from .compat import is_tracer
from .compiled import Compiled
from .errors import BindError, CoexecWarning
from .ir import LayerGraph, Plan, UniformPlan
from .memory import POLICIES, amount
from .profile import Progress, silent
from .report import Report
from .runtime.cuda import relay
from .select import choose, stages
from .strategies import NAMES, Strategy, strategy_name
from .trace import Traced, paths, trace, weight_leaves

SPARE = 2  # cores left to the caller and the driver on a machine with a device
MISSES = 3  # calls in a row with new weights before a function stays with plain jax.jit


class Options:
    """What `jit`, `compile` and `bind` share, validated once."""

    def __init__(
        self,
        strategy: str | Strategy,
        threads: int | None,
        affinity: Iterable[int] | None,
        strict: bool,
        plan: Plan | UniformPlan | None,
        device: Any,
        progress: Progress | None,
        memory: str = "auto",
        device_memory: object = None,
    ):
        if not callable(strategy) and strategy not in NAMES:
            raise ValueError(f"xcoexec.jit: got strategy={strategy!r}; valid are {', '.join(NAMES)}, or a function of graph and costs that returns a Plan.")
        if not isinstance(strict, bool):
            raise TypeError(f"xcoexec.jit: got strict={strict!r}; valid is True or False.")
        if plan is not None and not isinstance(plan, (Plan, UniformPlan)):
            raise TypeError(f"xcoexec.jit: got plan={plan!r}; valid is a Plan (Plan.from_json, Plan.uniform, or what .plan returned).")
        if device is not None and getattr(device, "platform", device) != jax.default_backend():
            raise ValueError(f"xcoexec.compile: got device={device!r}; valid is JAX's default backend, here {jax.default_backend()!r}.")
        if memory not in POLICIES:
            raise ValueError(f"xcoexec.jit: got memory={memory!r}; valid are {', '.join(POLICIES)}.")
        self.strategy, self.strict, self.plan, self.memory = strategy, strict, plan, memory
        self.device_memory = amount(device_memory)
        self.cpus = config.affinity(affinity)
        self.apart = jax.default_backend() != "cpu"  # inputs in host memory and on the device are planned for on their own
        self.threads = config.threads(len(self.cpus) if self.cpus and threads is None else threads, SPARE * self.apart)
        if self.cpus and self.threads > len(self.cpus):
            raise ValueError(f"xcoexec: got threads={self.threads} for affinity={self.cpus}; valid are as many threads as cores, or fewer.")
        self.progress = progress or silent


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
    progress: Progress | None = None,
) -> Any:
    """Like `jax.jit`: the same arguments, results and tolerance; behind it the layers run on both halves.

    Weights are recognised by where they flow (the weight operand of a convolution or product) and kept
    packed while the same `jax.Array`s are passed. Inside `jax.jit`, `jax.vmap`, `jax.grad` or `lax.scan`
    the plain function is used.

    Args:
      fn: the function; without it a decorator is returned.
      strategy: "auto", "device", "host", "edgenn", "codl", or a function (LayerGraph, Costs) -> Plan.
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
            progress=progress,
        )
    if not callable(fn):
        raise TypeError(f"xcoexec.jit: got {fn!r}; valid is a callable.")
    options = Options(strategy, threads, affinity, strict, plan, None, progress, memory, device_memory)
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
        """Writes the last call with such arguments as a trace for Perfetto."""
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


def _check(leaves: Sequence[Any]) -> None:
    for x in leaves:
        if not (hasattr(x, "dtype") or isinstance(x, (int, float, complex, bool, np.generic))):
            raise TypeError(f"xcoexec.jit: got an argument of type {type(x).__name__}; valid are arrays and numbers (name others in static_argnums).")


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
                _check(leaves)
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
        _warn(self._owner, why)  # raises when strict, and does so at every call
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


def _warn(owner: CoFunction, why: str, plan: Plan | None = None) -> None:
    name = getattr(owner._fn, "__name__", "function")
    if owner._options.strict:
        raise BindError(f"xcoexec.jit(strict=True): {name} cannot be co-executed: {why}.")
    how = "on the CPU alone, because its weights do not fit the device's memory" if plan is not None and plan.engine == "local" else "with plain jax.jit"
    warnings.warn(f"xcoexec: {name} runs {how}: {why}.", CoexecWarning, stacklevel=5)


def device_relay(cpus: tuple[int, ...]) -> Relay | None:
    """What connects the host half to the device half; None where both are on the CPU. Raises where there is no such connection."""
    backend = jax.default_backend()
    if backend not in ("cpu", "gpu"):
        raise NotImplementedError(f"the default backend is {backend!r}, and this version's device half is XLA:CPU or a CUDA GPU")
    return relay(cpus) if backend == "gpu" else None


def device_limit(given: float | int | None, relay: Relay | None) -> int | None:
    """Bytes that a plan may keep on the device for `device_memory=`; a share is of the memory that the device has."""
    if given is None or relay is None:
        return None
    nbytes = int(given * relay.driver.memory()[1]) if isinstance(given, float) else given
    if nbytes <= relay.driver.workspace:
        raise ValueError(f"xcoexec.jit: got device_memory={given!r}; valid is more than {relay.driver.workspace} bytes, which XLA's libraries need.")
    return nbytes - relay.driver.workspace


def compile_stages(
    owner: CoFunction,
    traced: Traced,
    index: Sequence[int],
    weights: Sequence[Any],
    values: Sequence[Any],
    donated: tuple[int, ...],
    plain: Callable[..., Any],
    sibling: bool = False,
) -> Compiled:
    """All stages for one function, its weights and example inputs; falls back to plain jax.jit with one warning."""
    options = owner._options
    host.prefetch(options.apart)
    example = [x for i, x in enumerate(values) if i not in set(index)]
    s = stages(traced, index, weights, example, threads=options.threads, cpus=options.cpus, donated=donated, plain=plain, progress=options.progress)
    s.sibling, s.memory = sibling, options.memory
    try:
        s.relay = device_relay(options.cpus)
        s.limit = device_limit(options.device_memory, s.relay)
        if traced.effects:
            raise NotImplementedError("it has side effects (printing, callbacks), which must keep their order")
        exe = choose(s, options.strategy, options.plan)
    except (ValueError, TypeError):
        raise
    except Exception as e:
        exe = s.fallback(strategy_name(options.strategy), str(e))
        _warn(owner, f"{type(e).__name__}: {e}", exe.plan)
    s.forget()
    return Compiled(s, exe, options.strategy, functools.partial(_warn, owner))


class Bound:
    """A function with its weights resident: `fast(x)`. New shapes are planned when they come."""

    def __init__(self, owner: CoFunction, weights: tuple[Any, ...]):
        if any(map(is_tracer, jax.tree_util.tree_leaves(weights))):
            raise BindError("bind: got traced arrays; valid are concrete weights (bind outside of jax.jit, and call the function itself inside).")
        options = owner._options

        def keep(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return np.asarray(x) if options.apart and isinstance(x, jax.Array) and x.devices() != {jax.devices()[0]} else x
            if options.device_memory is not None:  # there may be no room for a second copy
                return x
            return np.array(x) if options.apart else jax.numpy.array(x)  # the host half's weights need no device memory

        self._weights = jax.tree_util.tree_map(keep, weights)
        self._owner = owner
        self._compiled: dict[Any, Compiled] = {}
        self._quick: dict[Any, Compiled] = {}
        self._last: Compiled | None = None
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:  # one array, as most calls are: its type tells it from pytrees and tracers
            x = args[0]
            quick = self._quick.get((type(x), getattr(x, "shape", None), getattr(x, "dtype", None)))
            if quick is not None:
                self._last = quick
                return self._run_plain(quick, args, kwargs) if quick.plain else quick.call((x,))
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if any(map(is_tracer, leaves)):
            return self._owner._plain(*self._weights, *args, **kwargs)
        self._last = compiled = self._find(args, kwargs, leaves, tree)
        if len(args) == 1 and not kwargs and isinstance(args[0], (jax.Array, np.ndarray)):
            self._quick[type(args[0]), args[0].shape, args[0].dtype] = compiled
        return self._run_plain(compiled, args, kwargs) if compiled.plain else compiled.call(leaves)

    def _run_plain(self, compiled: Compiled, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        compiled.tick()
        return self._owner._plain(*self._resident, *args, **kwargs)

    @functools.cached_property
    def _resident(self) -> tuple[Any, ...]:
        """The weights where plain jax.jit wants them."""
        return tuple(jax.tree_util.tree_map(lambda x: jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x, self._weights))

    def _find(self, args: Sequence[Any], kwargs: dict[str, Any], leaves: Sequence[Any], tree: Any) -> Compiled:
        """The compiled function for these shapes, made now if need be."""
        key: Any = (tree, tuple([(x.shape, x.dtype) if hasattr(x, "dtype") else type(x) for x in leaves]))
        if self._owner._options.apart:
            key = (key, tuple([isinstance(x, jax.Array) for x in leaves]))
        compiled = self._compiled.get(key)
        if compiled is None:
            with self._lock:
                compiled = self._compiled.get(key)
                if compiled is None:
                    compiled = self._compiled[key] = self._build(args, kwargs)
        return compiled

    def _build(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Compiled:
        owner = self._owner
        if owner._static_nums or (owner._static_names & set(kwargs)):
            raise BindError("bind: got a function with static arguments; bind functools.partial(fn, ...) with them instead.")
        full = (*self._weights, *args)
        values, tree = jax.tree_util.tree_flatten((full, kwargs))
        _check(values)
        n = len(jax.tree_util.tree_leaves(self._weights))
        traced = trace(owner._fn, values, tree, paths(tree))
        donate = {i - len(self._weights) for i in owner._donate}
        sizes = [len(jax.tree_util.tree_leaves(a)) for a in args]
        donated = tuple(j for i, m in enumerate(sizes) if i in donate for j in range(sum(sizes[:i]), sum(sizes[:i]) + m))

        def plain(leaves: Sequence[Any]) -> Sequence[Any]:
            whole, named = jax.tree_util.tree_unflatten(tree, [*jax.tree_util.tree_leaves(self._resident), *leaves])
            return jax.tree_util.tree_leaves(owner._plain(*whole, **named))

        return compile_stages(owner, traced, range(n), values[:n], values, donated, plain, bool(self._compiled))

    def _used(self, what: str) -> Compiled:
        if self._last is None:
            raise BindError(f"{what}: the bound function has not been called yet; call it once, so that its shapes are known.")
        return self._last

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """The plan for these arguments; without any, that of the last call."""
        return self._for("plan", args, kwargs).plan()

    def graph(self, *args: Any, **kwargs: Any) -> LayerGraph:
        """The layer graph for these arguments; without any, that of the last call."""
        return self._for("graph", args, kwargs).stages.graph

    def _for(self, what: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Compiled:
        if not args and not kwargs:
            return self._used(what)
        leaves, tree = jax.tree_util.tree_flatten((tuple(args), kwargs))
        self._last = self._find(args, kwargs, leaves, tree)
        return self._last

    def report(self) -> Report:
        """Where each layer of the last call's plan ran, how long, and against which bound."""
        return self._used("report").report()

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes the last call as a trace for Perfetto."""
        self._used("timeline").timeline(path)

    def history(self) -> list[str]:
        """What the runtime noticed and decided since the first call."""
        return list(self._used("history").monitor.history)


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
