"""Functions with resident weights: what `.bind` returns."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .compat import is_tracer
from .compiled import Compiled
from .errors import BindError
from .ir import LayerGraph, Plan
from .prepare import check, compile_stages
from .report import Report
from .trace import paths, trace

if TYPE_CHECKING:
    from .api import CoFunction


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
        check(values)
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
        """Writes a call (made now, with inputs like the last call's) as a trace for Perfetto: halves, waits, every thread of the team."""
        self._used("timeline").timeline(path)

    def history(self) -> list[str]:
        """What the runtime noticed and decided since the first call."""
        return list(self._used("history").monitor.history)
