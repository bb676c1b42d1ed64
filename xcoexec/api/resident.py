"""Functions with resident weights: what `.bind` returns."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import jax
import numpy as np
from jax.typing import ArrayLike

from ..compat import NOTHING, TRACED, as_array, is_tracer, meshes
from ..errors import BindError
from ..guard import boundary, outside
from ..ir.layers import LayerGraph
from ..ir.plan import Plan
from ..ir.text import html_text
from ..lowering.executable import Executable, Stale
from ..session.pending import PendingSession
from ..session.plain_session import PlainSession
from ..session.report import Report
from ..session.session import Session
from .direct import CALLED, Directly, signature_of
from .entry import Entry
from .function import Function
from .kept import ready
from .look import kinds
from .plain import Args, Call, Kwargs
from .rest import Rest
from .signature import Signature, Usual, array_key
from .stretch import Stretch

R = TypeVar("R")


class ResidentFunction(Directly, Generic[R]):
    """A function with its weights resident: `fast(x)`. New shapes are planned when they come.

    `weights`: the first arguments, trees of arrays. Raises `BindError` for traced ones.
    """

    __slots__ = ()

    def __init__(self, function: Function, weights: Args):
        if any(map(is_tracer, jax.tree_util.tree_leaves(weights))):
            raise BindError(
                "bind: got traced arrays; "
                "valid are concrete weights (bind outside of jax.jit, and call the function itself inside)."
            )
        self._function, self._off, self._apart = function, function.options.off, function.options.apart
        self.weights: Args = jax.tree_util.tree_map(self._kept, weights)
        self._keeping = function.keeping(len(weights))
        self._plain = self._keeping.plain
        self._known = len(jax.tree_util.tree_leaves(self.weights))
        self._on_device: Args | None = None
        self._entries: dict[Signature, Entry] = {}
        self._quick: dict[Hashable, Session | PlainSession] = {}  # by the one array of a call
        self._last: Session | PlainSession | None = None
        self._rest: Rest | None = None  # in which plain jax.jit answers calls without a look
        self._resting: list[type] = []  # beside a device, of which kinds: where arrays lie is part of a plan
        self._stretch: Stretch | None = None  # in which a plan answers calls without a look
        self._usual: tuple[Usual, Session | PlainSession] | None = None  # the last call that was looked at
        self._lock = threading.RLock()

    def _kept(self, x: ArrayLike) -> ArrayLike:
        """A weight as it is kept: NumPy arrays are copied, unless there may be no room for a second copy."""
        options = self._function.options
        if not isinstance(x, np.ndarray):
            elsewhere = options.apart and isinstance(x, jax.Array) and {d.platform for d in x.devices()} == {"cpu"}
            return np.asarray(x) if elsewhere else x
        if options.device_memory is not None:
            return x
        return np.array(x) if options.apart else as_array(x)  # the host half's weights need no device memory

    def __call__(self, *args: object, **kwargs: object) -> R:
        try:
            if TRACED.trace is not NOTHING or self._off:  # `stays_plain`, without a call
                return self._transformed(lambda: self._as_jit(args, kwargs))
            rest = self._rest
            if rest is not None and (not self._apart or kinds(args, kwargs) == self._resting):
                if rest.free or rest.takes(args, kwargs):
                    out = rest.run(*self._on_device, *args, **kwargs)  # type: ignore[misc]
                    if rest.count() != rest.programs:
                        self._rest = None
                    elif rest.counts and rest.over():
                        self._over(rest)
                    return out
                if rest.ends:
                    self._rest = None
            # one array, as most calls are: its type tells it from pytrees and tracers
            if len(args) == 1 and not kwargs:
                quick = self._quick.get(array_key(args[0]))
                if quick is not None:
                    self._last = quick
                    exe = quick.takes()
                    if exe.lowered is None:
                        return self._run_plain(quick, args, kwargs)
                    try:
                        return self._answered(quick, exe, args, kwargs)
                    except Stale:  # JAX's configuration has changed: another program
                        self._quick.clear()
            call = self._call(args, kwargs)
            usual = self._usual
            if usual is not None and usual[0].has(call):
                self._last = session = usual[1]
            else:
                self._last = session = self._find(args, kwargs, call)
                self._keep(args, kwargs, call, session)
            exe = session.takes()
            if exe.lowered is None:
                return self._run_plain(session, args, kwargs)
            return self._answered(session, exe, call.leaves, kwargs)
        except Exception as e:  # the user's function may raise anything; it passes with a shorter traceback
            e.__traceback__ = outside(e.__traceback__)
            raise

    @property
    def __signature__(self) -> inspect.Signature:
        """The function's, of the arguments that are not bound."""
        return signature_of(self._function.plain.fn, *self.weights)

    def _classes(self) -> tuple[type, type]:
        return ResidentFunction, _DirectResidentFunction

    def _answering(self, rest: Rest) -> Callable[..., Any]:
        return functools.partial(rest.run, *self._on_device)  # type: ignore[misc]

    def _answered(self, session: Session | PlainSession, exe: Executable, leaves: Sequence[Any], kwargs: Kwargs) -> R:
        """The results of a call that a plan takes; whether the next ones need no look."""
        out: R = session.call(leaves, exe)  # type: ignore[union-attr]
        self._goes_on(session, exe, leaves, kwargs)
        return out

    def _keep(self, args: Args, kwargs: Kwargs, call: Call, session: Session | PlainSession) -> None:
        """Has the next call of this kind find its session at once, where nothing will take that one's place."""
        if isinstance(session, PendingSession) or meshes():  # which only a signature tells
            return
        if len(args) == 1 and not kwargs and (key := array_key(args[0])) is not None:
            self._quick[key] = session
        elif (usual := Usual.of(call)) is not None:
            self._usual = usual, session

    def _call(self, args: Args, kwargs: Kwargs) -> Call:
        return self._plain.call(args, kwargs, len(self.weights))

    def _run_plain(self, session: Session | PlainSession, args: Args, kwargs: Kwargs) -> R:
        session.tick()
        before = self._plain.jitted._cache_size()
        out = self._as_jit(args, kwargs)
        session.ran(out)
        if session.rest:
            self._resting = kinds(args, kwargs)
            self._rests(session, before)
        return out

    def _as_jit(self, args: Args, kwargs: Kwargs) -> R:
        """Plain jax.jit, with the weights where it wants them."""
        if self._on_device is None:
            there = lambda x: as_array(x) if isinstance(x, np.ndarray) else x
            with jax.ensure_compile_time_eval():  # also inside of a transformation the weights are arrays
                self._on_device = tuple(jax.tree_util.tree_map(there, self.weights))
        return self._plain.run(*self._on_device, *args, **kwargs)

    def _find(self, args: Args, kwargs: Kwargs, call: Call) -> Session | PlainSession:
        """What runs these calls, made now if need be."""
        signature = Signature.of(call, places=self._function.options.apart)
        entry = self._entries.get(signature)
        current = entry.current if entry is not None else None
        if entry is not None and current is not None:
            entry.tell()
            return current
        whole = self._plain.call((*self.weights, *args), kwargs)
        with self._lock:
            if signature not in self._entries:
                first = Signature.of(whole)
                about = (self._known, bool(self._entries))
                self._entries[signature] = Entry(self._keeping, whole, first, self, *about)
            return self._entries[signature].session(whole)

    def ready(self, timeout: float | None = None) -> bool:
        """Waits until what was called is planned, for at most `timeout` seconds; whether all of it is. Raises
        `ValueError` for a timeout that is no number of seconds.
        """
        return ready(self._entries.values(), timeout)

    @boundary
    def session(self, *args: object, **kwargs: object) -> Session | PlainSession:
        """What runs calls with these arguments, planned now if need be; without any, what ran the last call: its
        problem, plan, costs, report and history. Raises `BindError` before the first call.
        """
        return self._for("session", args, kwargs)

    @boundary
    def plan(self, *args: object, **kwargs: object) -> Plan:
        """The plan for these arguments; without any, the last call's. Raises `BindError` before the first call."""
        return self._for("plan", args, kwargs).plan()

    @boundary
    def graph(self, *args: object, **kwargs: object) -> LayerGraph:
        """The layer graph for these arguments; without any, that of the last call. Raises `BindError` where plain
        `jax.jit` is all there is, and before the first call.
        """
        return self._for("graph", args, kwargs).graph

    def _for(self, what: str, args: Args, kwargs: Kwargs, wait: bool = True) -> Session | PlainSession:
        """What runs such calls, or ran the last one; with `wait`, when its plan is made."""
        if args or kwargs:
            self._last = self._find(args, kwargs, self._call(args, kwargs))
        else:
            self._last = self._latest
        if self._last is None:
            raise BindError(
                f"{what}: the bound function has not been called yet; call it once, so that its shapes are known."
            )
        if isinstance(self._last, PendingSession):
            self._last = self._last.found(wait)
        elif wait:
            self._last.wait()
        return self._last

    @property
    def _latest(self) -> Session | PlainSession | None:
        """What ran the last call."""
        return self._stretch.session if self._stretch is not None and self._stretch.latest else self._last

    def report(self, all: bool = False) -> Report:
        """Where each layer of the last call's plan ran, how long (seconds), and against which bound; what the planning
        does while it goes on. `all`: its text shows all layers, not the slowest alone. Raises `BindError` before the
        first call.
        """
        found = self._for("report", (), {}, wait=False).report()
        return dataclasses.replace(found, whole=all)

    def __repr__(self) -> str:
        """The function, how much its weights take, and what runs."""
        leaves = jax.tree_util.tree_leaves(self.weights)
        nbytes = sum(getattr(x, "nbytes", 0) for x in leaves)
        name = getattr(self._function.plain.fn, "__qualname__", repr(self._function.plain.fn))
        latest = self._latest
        last = "not called yet" if latest is None else latest.plan().summary()
        return f"<xcoexec bound {name}: {len(leaves)} weights, {nbytes / 1e6:.1f} MB; {last}>"

    def _repr_html_(self) -> str:
        return html_text(repr(self))

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes a call (made now, with inputs like the last call's) as a trace for Perfetto: halves, waits, every
        thread of the team. Raises `BindError` before the first call.
        """
        self._for("timeline", (), {}).timeline(path)

    def history(self) -> list[str]:
        """What the runtime noticed and decided since the first call. Raises `BindError` before it."""
        return list(self._for("history", (), {}).history)

    def with_threads(self, threads: int) -> ResidentFunction[R]:
        """The same function on another number of host threads; its weights are packed anew."""
        return ResidentFunction(self._function.with_threads(threads), self.weights)


class _DirectResidentFunction(ResidentFunction[R]):
    """The same while Python calls what plain `jax.jit` has made, with the weights, or what asks a plan at once."""

    __slots__ = ()
    __call__ = CALLED


__all__ = ["ResidentFunction"]
