"""One program of a function: recognises its weights, and keeps what was compiled for them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from ..compat import JitTrace, jit_is_disabled, primitives, trace_of
from ..frontend.trace import flattened, paths, weight_leaves
from ..guard import stage
from ..planning.strategies import strategy_name
from ..session.prepare import Task, prepared, refused
from ..session.session import PlainSession, Session, deleted
from .function import Function
from .plain import Call
from .signature import Signature, placed_apart

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
    weights: list[ArrayLike]
    session: Session | PlainSession

    def serves(self, leaves: Sequence[ArrayLike], known: bool) -> bool:
        """Whether leaves hold these weights; `known`: they always do."""
        return known or all(leaves[i] is w for i, w in zip(self.where, self.weights, strict=True))

    def gone(self) -> bool:
        """Whether a weight has been deleted or given away."""
        return deleted(self.weights)


class Entry:
    """`known`: how many of a call's first leaves are weights that never change (None: weights are recognised by where
    they flow). `sibling`: the function is planned already for other shapes.
    """

    def __init__(
        self, function: Function, call: Call, signature: Signature, known: int | None = None, sibling: bool = False
    ):
        self._function, self._known, self._sibling = function, known, sibling
        self._call, self._signature = call.without_arrays(), signature
        self._lock = threading.RLock()
        self._misses = 0
        self._made: JitTrace | None = None
        self._current: Kept | None = None
        self._refused = ""

    def fits(self, call: Call) -> bool:
        """Whether a call is one of these, with the same weights as the last one."""
        kept = self._serving(call)
        return kept is not None and self._signature.holds(call, kept.inputs)

    def session(self, call: Call) -> Session | PlainSession:
        """As `kept`, without the weights; raises what `kept` raises."""
        return self.kept(call).session

    def kept(self, call: Call) -> Kept:
        """What runs such calls with these very weights; made now if need be. Errors of the user's function are raised
        as they are; raises `BindError` when strict, where calls like these cannot be co-executed.
        """
        kept = self._serving(call)
        if kept is not None:
            self._misses = 0
            return kept
        with self._lock:
            kept = self._serving(call)
            if kept is not None:
                return kept
            if self._refused:
                return self._refuse(self._refused)
            if self._function.options.off or jit_is_disabled():
                return self._keep_plain(PlainSession(strategy_name(self._function.options.strategy), OFF))
            if self._made is None:
                self._made = trace_of(self._function.plain.jitted, call.args, call.kwargs)
            why = self._unfit(self._made, call)
            return self._refuse(why) if why else self._prepare(self._made, call)

    @property
    def current(self) -> Session | PlainSession | None:
        """What runs these calls; None before it is made."""
        return self._current.session if self._current is not None else None

    def _serving(self, call: Call) -> Kept | None:
        """What is kept, if it is for a call with these leaves and weights."""
        kept = self._current
        if kept is None or len(call.leaves) != len(self._signature.leaves):
            return None
        return kept if kept.serves(call.leaves, self._known is not None) else None

    def _unfit(self, made: JitTrace, call: Call) -> str:
        """Why calls like this one are never co-executed ("" where they may be)."""
        if made.closed_over:
            return CLOSED_OVER
        if made.closed.effects:
            return EFFECTS
        if "pure_callback" in primitives(made.closed):
            return CALLS_BACK
        return placed_apart(call, self._function.plain.given)

    def _prepare(self, made: JitTrace, call: Call) -> Kept:
        def task() -> Task:
            with stage("reading the jaxpr"):
                return self._task(made, call)

        found = prepared(self._function.name, self._function.options, task, self._not_admitted)
        if isinstance(found, PlainSession):
            return self._keep_plain(found)
        weights = [call.leaves[i] for i in found.task.index]
        kept = self._current = Kept(found.task.index, found.task.inputs, weights, found.session)
        return kept

    def _task(self, made: JitTrace, call: Call) -> Task:
        """What is to be compiled for a call: its weights and inputs told apart."""
        function = self._function
        traced = flattened(made.closed, made.out_tree, paths(self._call.tree))
        index = weight_leaves(traced, made.donated) if self._known is None else tuple(range(self._known))
        inputs = tuple(i for i in range(len(call.leaves)) if i not in set(index))
        donated = tuple(position for position, leaf in enumerate(inputs) if leaf in set(made.donated))
        plain = function.on_inputs(self._call, index, call.leaves)
        compile_plain = lambda: function.plain.jitted.lower(*call.args, **call.kwargs).compile()
        given = function.plain.given
        return Task(traced, index, inputs, call.leaves, donated, plain, given, self._sibling, compile_plain)

    def _not_admitted(self, weights: Sequence[ArrayLike]) -> str:
        """New weights are packed again; mutable ones, or ones that change at every call, are left to jax.jit."""
        if self._known is not None:
            return ""
        if any(isinstance(w, np.ndarray) for w in weights):
            return NUMPY_WEIGHTS
        self._misses += self._current is not None
        return NEW_WEIGHTS if self._misses >= MISSES else ""

    def _refuse(self, why: str) -> Kept:
        options = self._function.options
        self._refused = why if options.strict else ""  # strict: every call raises
        return self._keep_plain(refused(self._function.name, options, why))

    def _keep_plain(self, session: PlainSession) -> Kept:
        """From now on calls like these are plain jax.jit's, whatever their weights."""
        kept = self._current = Kept((), tuple(range(len(self._signature.leaves))), [], session)
        return kept


__all__ = ["Entry"]
