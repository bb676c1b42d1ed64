"""`jit` and `compile`: what users call."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import threading
import time
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import jax
from jax.typing import ArrayLike

from ..compat import NOTHING, TRACED
from ..config import listen
from ..errors import BindError, brief
from ..guard import boundary, outside
from ..ir.layers import LayerGraph
from ..ir.plan import Plan, UniformPlan
from ..measure.profile import Progress
from ..planning.strategies import Strategy
from ..session.options import Options, Words, rounding
from ..session.plain_session import PlainSession
from ..session.report import Report
from ..session.session import Session
from .direct import CALLED, Directly, signature_of
from .divided import DividedFunction
from .entry import Entry
from .function import Function
from .gradients import Gradients
from .kept import Kept, ready
from .plain import NOT_GIVEN, Args, Call, Kwargs, NotGiven, Plain
from .resident import ResidentFunction
from .rest import Rest
from .signature import Signature, described
from .spread import SpreadFunction
from .stretch import Stretch

P = ParamSpec("P")
R = TypeVar("R")
OWN_CLASS = cast(Any, object.__dict__["__class__"])  # what an object of it has set

listen()


@overload
def jit(
    fn: Callable[P, R],
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
    wait: bool | None = None,
    precision: str | None = None,
    **given: object,
) -> CoPjitFunction[P, R]: ...


@overload
def jit(
    fn: NotGiven = NOT_GIVEN,
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
    wait: bool | None = None,
    precision: str | None = None,
    **given: object,
) -> Callable[[Callable[P, R]], CoPjitFunction[P, R]]: ...


def jit(
    fn: Callable[P, R] | NotGiven = NOT_GIVEN,
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
    wait: bool | None = None,
    precision: str | None = None,
    **given: object,
) -> CoPjitFunction[P, R] | Callable[[Callable[P, R]], CoPjitFunction[P, R]]:
    """Like `jax.jit`: the same arguments, results and tolerance; behind it the layers run on both halves.

    Weights are recognised by where they flow (the weight operand of a convolution or product) and kept
    packed while the same `jax.Array`s are passed. Inside `jax.jit`, `jax.vmap`, `jax.grad`, `lax.scan` and
    other transformations, and wherever co-execution is not possible, plain `jax.jit` is used.

    Args:
      fn: the function; without it a decorator is returned.
      strategy: "auto", "device", "host", "edgenn", "codl", "codl_measured", "layer_switch", "items", "capacity", or a
        function (LayerGraph, Costs) -> Plan.
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
      wait: the first call waits until its plan is made. Else plain `jax.jit` answers the first calls while the plan is
        made in the background; `ready()` waits for it. A named strategy, a plan, strict and device_memory wait always
        (default: False, or XCOEXEC_WAIT).
      precision: "bf16" rounds the operands of products of f32 to bf16 and sums in f32, "bf16x3" takes each as the sum
        of two bf16; `jax.default_matmul_precision` around `fn`, so that a product that names a precision keeps it.
        Where plain `jax.jit` runs, it does what XLA makes of that (default: JAX's own).
      given: the parameters of `jax.jit` (static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused,
        inline, compiler_options, in_shardings, out_shardings, device, backend), which mean the same. With shardings
        over several devices, or a device other than the default one, plain `jax.jit` is used.

    Raises `TypeError` or `ValueError` that says what is valid, and `BindError` at a call when strict.
    """
    words = Words(strategy=strategy, threads=threads, affinity=affinity, strict=strict, plan=plan)
    words |= Words(memory=memory, device_memory=device_memory, costs=costs, progress=progress, wait=wait)
    words |= Words(precision=precision)
    if isinstance(fn, NotGiven):
        return functools.partial(jit, **words, **given)  # type: ignore[return-value]
    if not callable(fn):
        raise TypeError(f"xcoexec.jit: got {brief(fn)}; valid is a callable.")
    options = Options.checked(**words)
    return CoPjitFunction(Function(Plain(rounding(fn, precision), given), options), words)


class CoPjitFunction(Directly, Generic[P, R]):
    """What `jit` returns: call it like the function it wraps. Libraries tell jitted functions by `PjitFunction` in
    their type's name, or ask whether they are instances of the class of what `jax.jit` returns: so are these.
    """

    __slots__ = ()
    __wrapped__: Callable[P, R]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._plain.jitted)

    @__class__.setter
    def __class__(self, value: type) -> None:
        OWN_CLASS.__set__(self, value)

    def __init__(self, function: Function, words: Words | None = None):
        self._function, self._words = function, words
        self._plain = function.plain
        self._gradients = Gradients(function)
        self._entries: dict[Signature, Entry] = {}
        self._last: Entry | None = None
        self._rest: Rest | None = None  # in which plain jax.jit answers calls without a look
        self._stretch: Stretch | None = None  # the same of a plan
        self._lock = threading.RLock()
        functools.update_wrapper(self, function.plain.jitted, updated=())  # a partial has no name of its own
        self.__wrapped__ = cast(Callable[P, R], function.plain.fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            rest = self._rest
            if rest is not None and TRACED.trace is NOTHING:
                if rest.free or rest.takes(args, kwargs):
                    out = rest.run(*args, **kwargs)
                    if rest.count() != rest.programs:
                        self._rest = None
                    elif rest.counts and rest.over():
                        self._over(rest)
                    return out
                if rest.ends:
                    self._rest = None
            if self._function.stays_plain():
                gradient = self._gradients.find(args, kwargs)
                if gradient is not None:
                    return gradient()  # type: ignore[no-any-return]
                return self._transformed(lambda: self._plain.run(*args, **kwargs))  # type: ignore[no-any-return]
            began, last = time.perf_counter(), self._last
            found = last.look(args, kwargs) if last is not None else None
            kept, inputs = found if found is not None else self._found(self._call(args, kwargs))
            session = kept.session
            exe = session.takes(began)
            if exe.lowered is None or kept.gone():
                session.tick()
                session.looked(time.perf_counter() - began)
                before = self._plain.jitted._cache_size()
                out = self._plain.run(*args, **kwargs)
                session.ran(out)
                if session.rest:
                    self._rests(session, before, kept.look)
                return out
            out = session.call(inputs, exe)  # type: ignore[union-attr]
            self._goes_on(session, exe, inputs, kwargs, kept)
            return out
        except Exception as e:  # the user's function may raise anything; it passes with a shorter traceback
            e.__traceback__ = outside(e.__traceback__)
            raise

    def _classes(self) -> tuple[type, type]:
        return CoPjitFunction, _DirectPjitFunction

    @property
    def _differentiated(self) -> bool:
        return any(self._gradients.entries())

    def _found(self, call: Call) -> tuple[Kept, Sequence[ArrayLike]]:
        """What runs a call, made now if need be, and the leaves of the call's inputs."""
        kept = self._last.hit(call) if self._last is not None else None
        if kept is None:
            kept = self._entry(call).kept(call)
        return kept, [call.leaves[i] for i in kept.inputs]

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> CoPjitFunction[P, R]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> CoPjitFunction[P, R] | Callable[..., R]:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        return signature_of(self._plain.fn)

    def __getattr__(self, name: str) -> Any:
        """What else a function that `jax.jit` returns has: attributes of the user's function too."""
        if name.startswith("__") or "_plain" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        own = getattr(self._plain.fn, "__dict__", {})
        return own[name] if name in own else getattr(self._plain.jitted, name)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        if self._words is None:
            raise TypeError(
                "xcoexec.compile: got a function made for one set of shapes to copy; valid is the function itself."
            )
        return _again, (self._plain.fn, self._words, self._plain.given)

    def __repr__(self) -> str:
        return f"<xcoexec.jit of {self._plain.fn!r}>"

    def bind(self, *weights: object) -> ResidentFunction[R]:
        """A function of the remaining arguments, with `weights` (the first ones) resident and packed.

        NumPy arrays among them are copied: writing to them later changes nothing. Raises `BindError` for traced ones.
        """
        return ResidentFunction(self._function, weights)

    def spread(
        self, *weights: object, devices: int | Sequence[jax.Device] | None = None, dim: str = "layers"
    ) -> SpreadFunction[R] | DividedFunction[R]:
        """A function of the remaining arguments, over several devices.

        `dim="layers"`: its layers lie in order over them, each with the weights of its own part, planned with the host
        half for itself; `device_memory` is that of each. For networks that one device does not hold, and for calls in
        flight, which follow one another. "channel", "rows": each device computes a part of every large layer, for a
        call that somebody waits for; XLA runs it. "auto": "channel", "rows" or one device, by measurement at the first
        call.

        `devices`: how many, or which (default: all of this process). Results lie on the first one. Raises `TypeError`
        or `ValueError` for others, and `BindError` for traced weights.
        """
        if dim != "layers":
            return DividedFunction(self._function, weights, devices, dim)
        return SpreadFunction(self._function, weights, devices)

    @boundary
    def lower(self, *args: object, **kwargs: object) -> jax.stages.Lowered:
        """As `jax.jit(fn).lower`: the plain program, for XLA alone. Raises what `fn` raises."""
        return self._plain.ask("lower", args, kwargs)

    @boundary
    def trace(self, *args: object, **kwargs: object) -> jax.stages.Traced:
        """As `jax.jit(fn).trace`. Raises what `fn` raises."""
        return self._plain.ask("trace", args, kwargs)

    @boundary
    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """As `jax.jit(fn).eval_shape`: shapes and types of the results. Raises what `fn` raises."""
        return self._plain.ask("eval_shape", args, kwargs)

    def clear_cache(self) -> None:
        """Forgets all programs, `jax.jit`'s too."""
        with self._lock:
            self._looks()
            self._forgets_stretch()
            self._entries, self._last = {}, None
            self._programs = self._missing = self._looked_at = self._unknown = 0
            self._gradients = Gradients(self._function)
        self._plain.jitted.clear_cache()

    def ready(self, timeout: float | None = None) -> bool:
        """Waits until the functions that were called are planned, for at most `timeout` seconds; whether all are."""
        return ready((*self._entries.values(), *self._gradients.entries()), timeout)

    @boundary
    def plan(self, *args: object, **kwargs: object) -> Plan:
        """The plan for these arguments (made now if need be). Raises `BindError` when strict, where there is none."""
        return self._planned(args, kwargs).plan()

    @boundary
    def graph(self, *args: object, **kwargs: object) -> LayerGraph:
        """The layer graph for these arguments. Raises `BindError` where plain `jax.jit` is all there is."""
        return self._planned(args, kwargs).graph

    @boundary
    def report(self, *args: object, **kwargs: object) -> Report:
        """Where each layer ran for these arguments, and how long (seconds); what the planning does while it goes on.
        Raises `BindError` when strict, where plain `jax.jit` is all there is.
        """
        call = self._call(args, kwargs)
        session = self._entry(call).session(call)
        session.ran(None)
        return session.report()

    def timeline(self, path: str | os.PathLike[str], *args: object, **kwargs: object) -> None:
        """Writes a call (made now) with such arguments as a trace for Perfetto. Raises `OSError` where the file cannot
        be written.
        """
        self._planned(args, kwargs).timeline(path)

    def _planned(self, args: Args, kwargs: Kwargs) -> Session | PlainSession:
        call = self._call(args, kwargs)
        return self._entry(call).planned(call)

    def _call(self, args: Args, kwargs: Kwargs) -> Call:
        call, options = self._plain.call(args, kwargs), self._function.options
        if options.device_memory is not None and options.apart:
            raise BindError(
                "xcoexec.jit(device_memory=...): got a call with its weights; "
                "valid is .bind(weights), so that they can stay in host memory."
            )
        return call

    def _entry(self, call: Call) -> Entry:
        last = self._last
        if last is not None and last.fits(call):
            return last
        signature = Signature.of(call)
        entry = self._entries.get(signature)
        if entry is None:
            with self._lock:
                entry = self._entries.setdefault(signature, Entry(self._function, call, signature, self))
        self._last = entry
        return entry


class _DirectPjitFunction(CoPjitFunction[P, R]):
    """The same while Python calls what plain `jax.jit` has made, or what asks a plan at once."""

    __slots__ = ()
    __call__ = CALLED


def _again(fn: Callable[P, R], words: Words, given: Kwargs) -> CoPjitFunction[P, R]:
    return jit(fn, **words, **given)


def compile(
    fn: Callable[..., R],
    *args: object,
    strategy: str | Strategy = "auto",
    plan: Plan | UniformPlan | None = None,
    threads: int | None = None,
    affinity: Iterable[int] | None = None,
    device: object = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> FixedFunction[R]:
    """`fn` planned and built now, for arguments of these shapes and types; the explicit form of `jit`.

    Returns a function that takes arguments like `args` (of which shapes and types count) and raises `BindError` for
    others. `device`: "cpu" or "gpu", as JAX's default backend. Raises `TypeError` or `ValueError` that says what is
    valid, and `BindError` when strict, where the function cannot be co-executed.
    """
    if not callable(fn):
        raise TypeError(f"xcoexec.compile: got {brief(fn)}; valid is a callable.")
    words = Words(strategy=strategy, threads=threads, affinity=affinity, strict=strict, plan=plan, progress=progress)
    words["wait"] = True
    options = Options.checked(device=device, **words)
    return FixedFunction(CoPjitFunction(Function(Plain(fn, {}), options)), args)


class FixedFunction(Generic[R]):
    """What `compile` returns: one structure, one set of shapes."""

    def __init__(self, owner: CoPjitFunction[..., R], args: Args):
        self._owner, self._args = owner, args
        call = self._call(args)
        self._signature, self._described = Signature.of(call), [described(x) for x in call.leaves]
        owner._planned(args, {})

    def _call(self, args: Args) -> Call:
        return self._owner._function.plain.call(args, {})

    def __call__(self, *args: object) -> R:
        call = self._call(args)
        got, known = Signature.of(call), self._signature
        if (got.tree, got.types) != (known.tree, known.types):
            leaves = [described(x) for x in call.leaves]
            pairs = ((a, b) for a, b in zip(leaves, self._described, strict=False) if a != b)
            what, where = next(pairs, (got.tree, known.tree))
            raise BindError(f"xcoexec.compile: got an argument {what} where {where} was compiled for.")
        return self._owner(*args)

    def session(self) -> Session | PlainSession:
        """What runs the calls: its problem, plan, costs (seconds), report and history."""
        return self._owner._planned(self._args, {})

    def plan(self) -> Plan:
        """The plan in use."""
        return self.session().plan()

    def graph(self) -> LayerGraph:
        """The layer graph. Raises `BindError` where plain `jax.jit` is all there is."""
        return self.session().graph

    def report(self, all: bool = False) -> Report:
        """Where each layer ran, and how long (seconds). `all`: its text shows all layers, not the slowest alone."""
        return dataclasses.replace(self.session().report(), whole=all)

    def __repr__(self) -> str:
        types = (f"{dtype}[{','.join(map(str, shape))}]" for shape, dtype in self._described)
        return f"<xcoexec.compile of {self._owner._plain.fn!r} for {', '.join(types)}>"

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes a call (made now) as a trace for Perfetto. Raises `OSError` where the file cannot be written."""
        self.session().timeline(path)
