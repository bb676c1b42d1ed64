"""One program of a function: recognises its weights, and keeps what was compiled for them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..compat import JitTrace, configuration, jit_is_disabled, primitives, trace_of
from ..frontend.trace import flattened, paths, weight_leaves
from ..guard import stage
from ..planning.strategies import strategy_name
from ..session.compiled import Compiled, Fallback, deleted
from ..session.prepare import Task, prepared, refused
from .options import Options
from .signature import Call, Plain, leaf_key, placed_apart

MISSES = 3  # calls in a row with new weights before a function stays with plain jax.jit
NUMPY_WEIGHTS = (
    "weights are NumPy arrays, which may change between calls; pass jax arrays, or use .bind, which copies them"
)
NEW_WEIGHTS = "weights changed at every call; use .bind, or plain jax.jit for training"
OFF = "XCOEXEC_DISABLE=1, or jax_disable_jit is on"
EFFECTS = "it has side effects (printing, callbacks), which must keep their order"
CALLS_BACK = "it calls back to Python, and planning would do so many times"
CLOSED_OVER = "it reads values of a transformation around it"


class Kept(NamedTuple):
    """What runs calls with these very weights: which leaves they are, which the inputs, and what was compiled.

    One record, replaced as a whole: a thread that calls with other weights never sees a part of it.
    """

    where: tuple[int, ...]
    inputs: tuple[int, ...]
    weights: list[Any]
    compiled: Compiled | Fallback

    def serves(self, leaves: Sequence[Any], known: bool) -> bool:
        """Whether leaves hold these weights; `known`: they always do."""
        return known or all(leaves[i] is w for i, w in zip(self.where, self.weights, strict=True))

    def gone(self) -> bool:
        """Whether a weight has been deleted or given away."""
        return deleted(self.weights)


class Entry:
    """`known`: how many of a call's first leaves are weights that never change (None: weights are recognised by where
    they flow).
    """

    def __init__(self, plain: Plain, options: Options, call: Call, known: int | None = None, sibling: bool = False):
        self._plain, self._options, self._known, self._sibling = plain, options, known, sibling
        self._call, self._context = call.without_arrays(), configuration()
        self._keys = tuple(map(leaf_key, call.leaves))
        self._lock = threading.RLock()
        self._misses = 0
        self._made: JitTrace | None = None
        self._current: Kept | None = None
        self._refused = ""

    def fits(self, call: Call) -> bool:
        """Whether a call is one of these, with the same weights as the last one."""
        if call.tree != self._call.tree or call.static != self._call.static or configuration() != self._context:
            return False
        kept = self._serving(call.leaves)
        return kept is not None and all(leaf_key(call.leaves[i]) == self._keys[i] for i in kept.inputs)

    def compiled(self, call: Call) -> Compiled | Fallback:
        """As `kept`, without the weights."""
        return self.kept(call).compiled

    def kept(self, call: Call) -> Kept:
        """What runs such calls with these very weights; made now if need be. Errors of the user's function are raised
        as they are.
        """
        kept = self._serving(call.leaves)
        if kept is not None:
            self._misses = 0
            return kept
        with self._lock:
            kept = self._serving(call.leaves)
            if kept is not None:
                return kept
            if self._refused:
                return self._refuse(self._refused)
            if self._options.off or jit_is_disabled():
                return self._keep_plain(Fallback(strategy_name(self._options.strategy), OFF))
            if self._made is None:
                self._made = trace_of(self._plain.jitted, call.args, call.kwargs)
            why = self._unfit(self._made, call)
            return self._refuse(why) if why else self._prepare(self._made, call)

    @property
    def current(self) -> Compiled | Fallback | None:
        """What runs these calls; None before it is made."""
        return self._current.compiled if self._current is not None else None

    def _serving(self, leaves: Sequence[Any]) -> Kept | None:
        """What is kept, if it is for these weights."""
        kept = self._current
        return kept if kept is not None and kept.serves(leaves, self._known is not None) else None

    def _unfit(self, made: JitTrace, call: Call) -> str:
        """Why calls like this one are never co-executed ("" where they may be)."""
        if made.closed_over:
            return CLOSED_OVER
        if made.closed.effects:
            return EFFECTS
        return CALLS_BACK if "pure_callback" in primitives(made.closed) else placed_apart(call, self._plain.given)

    def _prepare(self, made: JitTrace, call: Call) -> Kept:
        def compile_plain() -> Any:
            return self._plain.jitted.lower(*call.args, **call.kwargs).compile()

        def task() -> Task:
            with stage("reading the jaxpr"):
                traced = flattened(made.closed, made.out_tree, paths(self._call.tree))
                many = range(len(call.leaves))
                index = weight_leaves(traced, made.donated) if self._known is None else tuple(range(self._known))
                inputs = tuple(i for i in many if i not in set(index))
                donated = tuple(position for position, leaf in enumerate(inputs) if leaf in set(made.donated))
                plain = self._as_plain(index, call.leaves)
                return Task(
                    traced, index, inputs, call.leaves, donated, plain, self._plain.given, self._sibling, compile_plain
                )

        found = prepared(self._name, self._options, task, self._not_admitted)
        if isinstance(found, Fallback):
            return self._keep_plain(found)
        kept = Kept(found.task.index, found.task.inputs, [call.leaves[i] for i in found.task.index], found.compiled)
        self._current = kept
        return kept

    @property
    def _name(self) -> str:
        return str(getattr(self._plain.fn, "__name__", "function"))

    def _not_admitted(self, weights: Sequence[Any]) -> str:
        """New weights are packed again; mutable ones, or ones that change at every call, are left to jax.jit."""
        if self._known is not None:
            return ""
        if any(isinstance(w, np.ndarray) for w in weights):
            return NUMPY_WEIGHTS
        self._misses += self._current is not None
        return NEW_WEIGHTS if self._misses >= MISSES else ""

    def _refuse(self, why: str) -> Kept:
        self._refused = why if self._options.strict else ""  # strict: every call raises
        return self._keep_plain(refused(self._name, self._options, why))

    def _keep_plain(self, fallback: Fallback) -> Kept:
        """From now on calls like these are plain jax.jit's, whatever their weights."""
        kept = self._current = Kept((), tuple(range(len(self._keys))), [], fallback)
        return kept

    def _as_plain(self, index: Sequence[int], leaves: Sequence[Any]) -> Any:
        """Plain jax.jit as a function of the inputs' leaves."""
        weights = {i: leaves[i] for i in index}
        many, call, plain = len(leaves), self._call, self._plain

        def run(inputs: Sequence[Any]) -> Sequence[Any]:
            rest = iter(inputs)
            args, kwargs = plain.rebuilt(call, [weights[i] if i in weights else next(rest) for i in range(many)])
            return jax.tree_util.tree_leaves(plain.jitted(*args, **kwargs))

        return run


__all__ = ["Entry"]
