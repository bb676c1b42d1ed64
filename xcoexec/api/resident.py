"""Functions with resident weights: what `.bind` returns."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..compat import NOTHING, TRACED, Array, is_tracer
from ..errors import BindError
from ..guard import boundary, outside
from ..ir.records import LayerGraph, Plan
from ..session.compiled import Compiled, Fallback
from ..session.executable import Stale
from ..session.report import Report
from .entry import Entry
from .signature import Away, Call, alone, key_of, leaf_key

if TYPE_CHECKING:
    from .functions import CoPjitFunction


class Bound:
    """A function with its weights resident: `fast(x)`. New shapes are planned when they come."""

    def __init__(self, owner: CoPjitFunction, weights: tuple[Any, ...]):
        if any(map(is_tracer, jax.tree_util.tree_leaves(weights))):
            raise BindError(
                "bind: got traced arrays; valid are concrete weights (bind outside of jax.jit, and call the function itself inside)."
            )
        options = owner._options

        def keep(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return (
                    np.asarray(x)
                    if options.apart and isinstance(x, jax.Array) and x.devices() != {jax.devices()[0]}
                    else x
                )
            if options.device_memory is not None:  # there may be no room for a second copy
                return x
            return np.array(x) if options.apart else jax.numpy.array(x)  # the host half's weights need no device memory

        self._weights = jax.tree_util.tree_map(keep, weights)
        self._resident: tuple[Any, ...] | None = None
        self._owner, self._off = owner, options.off
        self._plain = owner._plain.keeping(len(weights))
        self._entries: dict[Any, Entry] = {}
        self._quick: dict[Any, Compiled | Fallback] = {}  # by the one array of a call
        self._last: Compiled | Fallback | None = None
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if TRACED.trace is not NOTHING or self._off:
                return self._as_jit(args, kwargs)
            if (
                len(args) == 1 and not kwargs
            ):  # one array, as most calls are: its type tells it from pytrees and tracers
                quick = self._quick.get(_quick_key(args[0]))
                if quick is not None:
                    self._last = quick
                    if quick.monitor.current.lowered is None:
                        return self._run_plain(quick, args, kwargs)
                    try:
                        return quick.call(args)  # type: ignore[union-attr]
                    except Stale:  # JAX's configuration has changed: another program
                        self._quick.clear()
            call = self._plain.call(args, kwargs, len(self._weights))
            self._last = compiled = self._find(args, kwargs, call)
            if len(args) == 1 and not kwargs and (key := _quick_key(args[0])) is not None:
                self._quick[key] = compiled
            return self._run_plain(compiled, args, kwargs) if compiled.plain else compiled.call(call.leaves)  # type: ignore[union-attr]
        except Exception as e:
            e.__traceback__ = outside(e.__traceback__)
            raise

    def _run_plain(self, compiled: Compiled | Fallback, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        compiled.tick()
        return self._as_jit(args, kwargs)

    def _as_jit(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Plain jax.jit, with the weights where it wants them."""
        if self._resident is None:
            with jax.ensure_compile_time_eval():  # also inside of a transformation the weights are arrays
                self._resident = tuple(
                    jax.tree_util.tree_map(
                        lambda x: jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x, self._weights
                    )
                )
        return self._plain(*self._resident, *args, **kwargs)

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call) -> Compiled | Fallback:
        """What runs these calls, made now if need be."""
        key: Any = key_of(call)
        if self._owner._options.apart:
            key = (key, tuple([isinstance(x, jax.Array) for x in call.leaves]))
        entry = self._entries.get(key)
        if entry is not None and entry.current is not None:
            return entry.current
        whole = self._plain.call((*self._weights, *args), kwargs)
        with self._lock:
            if key not in self._entries:
                known = len(jax.tree_util.tree_leaves(self._weights))
                self._entries[key] = Entry(self._plain, self._owner._options, whole, known, bool(self._entries))
            return self._entries[key].compiled(whole)

    def _used(self, what: str) -> Compiled | Fallback:
        if self._last is None:
            raise BindError(
                f"{what}: the bound function has not been called yet; call it once, so that its shapes are known."
            )
        return self._last

    @boundary
    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """The plan for these arguments; without any, that of the last call."""
        return self._for("plan", args, kwargs).plan()

    @boundary
    def graph(self, *args: Any, **kwargs: Any) -> LayerGraph:
        """The layer graph for these arguments; without any, that of the last call."""
        return self._for("graph", args, kwargs).graph

    def _for(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled | Fallback:
        if not args and not kwargs:
            return self._used(what)
        self._last = self._find(args, kwargs, self._plain.call(args, kwargs, len(self._weights)))
        return self._last

    def report(self) -> Report:
        """Where each layer of the last call's plan ran, how long, and against which bound."""
        return self._used("report").report()

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes a call (made now, with inputs like the last call's) as a trace for Perfetto: halves, waits, every
        thread of the team.
        """
        self._used("timeline").timeline(path)

    def history(self) -> list[str]:
        """What the runtime noticed and decided since the first call."""
        return list(self._used("history").history)


def _quick_key(x: Any) -> Any:
    """The key of a call with one array; None for anything else."""
    kind = type(x)
    if kind is Array:
        return (x.shape, x.dtype, x.weak_type) if alone() or type(leaf_key(x)) is not Away else None
    return (np.ndarray, x.shape, x.dtype) if kind is np.ndarray else None
