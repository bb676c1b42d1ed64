"""One program of a function: recognises its weights, and keeps what was compiled for them."""

from __future__ import annotations

import dataclasses
import functools
import threading
import weakref
from collections.abc import Sequence

import jax
import numpy as np
from jax.typing import ArrayLike

from ..compat import (
    Array,
    JitTrace,
    is_tracer,
    jit_is_disabled,
    looks_for_nans,
    no_mesh,
    settings,
    trace_of,
)
from ..errors import SplitError
from ..frontend.places import unplaced
from ..frontend.state import whole
from ..frontend.trace import flattened, paths, weight_leaves
from ..frontend.worth import small
from ..guard import Failed, stage, warn
from ..measure.timing import clock_goes, measured_in
from ..planning.strategies import strategy_name
from ..session.begin import Beginning
from ..session.gate import Gate
from ..session.pending import PendingSession, shown, within
from ..session.plain_session import PlainSession
from ..session.prepare import PLAIN, Absent, Manner, Task, ahead, prepared, refused
from ..session.session import Session, deleted
from .function import Function
from .kept import Kept
from .look import Elsewhere, Look
from .plain import Args, Call, Kwargs
from .signature import Signature
from .traced_call import coming_back, commits, types, unfit
from .where import Where, lies_apart

MISSES = 3  # calls in a row with new weights before what has changed counts as inputs
NUMPY_WEIGHTS = (
    "weights are NumPy arrays, which may change between calls; pass jax arrays, or use .bind, which copies them"
)
OFF = "XCOEXEC_DISABLE=1, or jax_disable_jit is on"
NANS = "jax_debug_nans or jax_debug_infs is on, and nothing was planned before"
STILL = "the clock stands still, as a library for tests has it, and nothing can be measured"
EMPTY = "an argument has a shape and a type alone"
ENDED = "an argument belongs to a trace that has ended"
GONE = "an array of the call has been deleted or given away"
SMALL = "it is over within microseconds, of which no plan can win any"


def _not_now(call: Call) -> str:
    """Why plain `jax.jit` is to have this very call, which says what is wrong with it ("": it need not)."""
    if looks_for_nans():  # a planning would meet them
        return NANS
    if any(map(is_tracer, call.leaves)):
        return ENDED
    if any(isinstance(x, jax.ShapeDtypeStruct) for x in call.leaves):
        return EMPTY
    return "" if clock_goes() else STILL


NOBODY = PlainSession("", "it is only looked up")


class Entry:
    """`known`: how many of a call's first leaves are weights that never change (None: weights are recognised by where
    they flow, but for a state, which comes back as a result, and for what has changed at `MISSES` calls). `sibling`:
    the function is planned already for other shapes. `owner`: whose calls these are; without it nothing is planned any
    more.
    """

    def __init__(
        self,
        function: Function,
        call: Call,
        signature: Signature,
        owner: object,
        known: int | None = None,
        sibling: bool = False,
    ):
        self._function, self._known, self._sibling = function, known, sibling
        self._owner = weakref.ref(owner, self._abandoned)
        self._call, self._signature = call.without_arrays(), signature
        self._lock = threading.RLock()
        self._misses = 0
        self._made: JitTrace | None = None
        self._moving: frozenset[int] = frozenset()  # leaves that are others at every call
        self._current: Kept | None = None
        self._refused = ""
        self._pending: PendingSession | None = None  # plans, or has planned
        self._planned: Kept | None = None  # the weights that are planned with, as soon as they are known
        self._where = Where()
        self._told: list[tuple[str, str, bool, str]] = []  # warnings of the background, for the next call

    def _abandoned(self, _: object) -> None:
        if self._pending is not None:
            self._pending.stop()

    def look(self, args: Args, kwargs: Kwargs) -> tuple[Kept, Sequence[ArrayLike]] | None:
        """As `hit`, with the leaves of the inputs, for arguments that nobody has taken apart; None also where only
        `hit` can tell.
        """
        kept = self._current
        if kept is None or self._told:
            return None
        pending = kept.session if isinstance(kept.session, PendingSession) else None
        planned = kept if pending is None else self._planned
        if planned is None or planned.look is None or planned.session is not kept.session:
            return None
        inputs = planned.look.inputs(args, kwargs)
        if inputs is None:
            return None
        self._misses = 0
        if pending is not None:
            pending.misses = 0
        return kept, inputs

    def hit(self, call: Call) -> Kept | None:
        """What runs a call if it is one of these, with the same weights as the last one, and nothing is to be said or
        planned; None else.
        """
        kept = self._current
        if kept is None or self._told:
            return None
        if isinstance(kept.session, PendingSession):
            return kept if self._planned_with(call, kept.session) else None
        if not self._holds(call, kept):
            return None
        self._misses = 0
        return kept

    def _planned_with(self, call: Call, pending: PendingSession) -> bool:
        """Whether what is being planned is for calls like this one with these weights: a look at the inputs instead of
        one at all leaves.
        """
        planned = self._planned
        if planned is None or planned.session is not pending or not self._holds(call, planned):
            return False
        pending.misses = 0
        return True

    def _holds(self, call: Call, kept: Kept) -> bool:
        """Whether a call has these weights, and inputs like those that were planned for."""
        return self._serves(call, kept) and self._signature.holds(call, kept.inputs)

    def _serves(self, call: Call, kept: Kept) -> bool:
        """Whether a call has as many leaves as these, and these weights."""
        return len(call.leaves) == len(self._signature.leaves) and kept.serves(call.leaves, self._known is not None)

    def fits(self, call: Call) -> bool:
        """Whether a call is one of these, with the same weights as the last one."""
        kept = self._current
        return kept is not None and self._holds(call, kept)

    def session(self, call: Call) -> Session | PlainSession:
        """As `kept`, without the weights; raises what `kept` raises."""
        return self.kept(call).session

    def planned(self, call: Call) -> Session | PlainSession:
        """As `session`; waits until a plan is made. Raises what `kept` raises."""
        session = self.session(call)
        while session.wait() and isinstance(session, PendingSession):
            found = self.session(call)
            if found is session:  # its planning has ended without a word, with the interpreter
                return PlainSession(strategy_name(self._function.options.strategy), "its planning was cut short")
            session = found
        return session

    def wait(self, timeout: float | None) -> bool:
        """Waits for a planning that goes on, for at most `timeout` seconds; whether there is none any more."""
        session = self.current
        return session is None or session.wait(timeout)

    @property
    def settled(self) -> bool:
        """Whether calls like these are plain jax.jit's for good."""
        kept = self._current
        return kept is not None and kept.session.settled and not self._refused

    @property
    def rest(self) -> float:
        """Calls like these to come that plain jax.jit may answer without a look at them."""
        kept = self._current
        return kept.session.rest if kept is not None and not self._refused else 0

    @property
    def gate(self) -> Gate | None:
        """What such calls pass where they may have to wait for a measurement; None where there is none any more."""
        kept = self._current
        return kept.session.gate if kept is not None and not kept.session.settled else None

    def kept(self, call: Call) -> Kept:
        """What runs such calls with these very weights; made now if need be. Errors of the user's function are raised
        as they are; raises `BindError` when strict, where calls like these cannot be co-executed.
        """
        self.tell()
        kept = self._serving(call)
        if kept is not None:
            return self._served(kept, call)
        with self._lock:
            kept = self._serving(call)
            if kept is not None:
                return kept
            if self._refused:
                return self._refuse(self._refused, call)
            if self._function.options.off or jit_is_disabled():
                return self._keep_plain(PlainSession(strategy_name(self._function.options.strategy), OFF))
            if self._made is None:
                self._made = trace_of(self._function.plain.ask("trace", call.args, call.kwargs))
                self._moving = coming_back(self._made, call) if self._known is None else frozenset()
            why = unfit(self._made, self._function.plain.given) or self._place(self._made, call)
            now = "" if why else _not_now(call)
            if now:
                return self._plainly(PlainSession(strategy_name(self._function.options.strategy), now))
            return self._refuse(why, call) if why else self._planning(self._made, call)

    def _place(self, made: JitTrace, call: Call) -> str:
        """Notes where such calls run; why they are not co-executed there ("" where they may be)."""
        stays, bounded = not (made.donated or self._moving), self._function.options.device_memory is not None
        try:
            self._where = Where.of(made, call, self._function.plain.given, stays, bounded)
        except SplitError as e:
            return str(e)
        return ""

    def tell(self) -> None:
        """Warns of what the planning in the background met, once."""
        while self._told:
            warn(*self._told.pop(0))

    def _served(self, kept: Kept, call: Call) -> Kept:
        """What is kept for a call; a planning whose weights do not come again begins anew without them."""
        if not isinstance(kept.session, PendingSession):
            self._misses = 0
            return kept
        planned = self._planned
        if planned is None or planned.session is not kept.session or planned.serves(call.leaves, False):
            kept.session.misses = 0
        else:
            kept.session.misses += 1
        if kept.session.misses < MISSES:
            return kept
        with self._lock:
            if self._current is not kept:
                return self.kept(call)
            self._move(planned, call)
            assert self._made is not None
            return self._planning(self._made, call)

    def _move(self, kept: Kept | None, call: Call) -> None:
        """From now on weights that are others than those kept count as inputs."""
        if kept is not None:
            pairs = zip(kept.where, kept.weights, strict=True)
            self._moving |= {i for i, w in pairs if call.leaves[i] is not w}
        self._misses = 0

    @property
    def current(self) -> Session | PlainSession | None:
        """What runs these calls; None before it is made."""
        kept = self._current
        return kept.session if kept is not None else None

    def _serving(self, call: Call) -> Kept | None:
        """What is kept, if it is for a call with these leaves and weights."""
        kept = self._current
        return kept if kept is not None and self._serves(call, kept) else None

    def _planning(self, made: JitTrace, call: Call) -> Kept:
        """Plans: now, in the background, or not at all where nothing can be won."""
        options = self._function.options
        if deleted(call.leaves):  # `jax.jit` raises what it raises for one that is gone; the next call is planned for
            return self._plainly(PlainSession(strategy_name(options.strategy), GONE))
        self._misses += self._current is not None
        if self._misses >= MISSES and self._known is None:
            self._move(self._current, call)
        if self._pending is not None:  # what it still plans has other weights
            self._pending.stop()
            self._pending = None
        if self._where.placed is not None and self._moving:
            return self._refuse(f"{lies_apart(call)}, and weights are others at every call", call)
        call = self._to_plan(made, call)
        if not options.waits:
            if small(made.closed):
                return self._keep_plain(PlainSession(strategy_name(options.strategy), SMALL))
            return self._later(made, call)
        progress, line = shown(options.progress)
        try:
            with settings()():
                kept = self._current = self._compiled(made, call, Manner(within(progress, options.plan_seconds)))
        finally:
            line.end()
        return kept

    def _to_plan(self, made: JitTrace, call: Call) -> Call:
        """What a planning keeps of a call: of a step's state, and of what the call gives away, nothing but shapes and
        types, so that nobody's memory is held.
        """
        given = {*self._moving, *made.donated}
        if not given:
            return call
        return call.described(whole(call.tree, given) if self._moving else given, types(made, call))

    def _later(self, made: JitTrace, call: Call) -> Kept:
        """Plain jax.jit, while a plan is made in the background; at once what has won in a process before, where that
        is there sooner.
        """
        options, same = self._function.options, settings()
        beginning = Beginning(made.closed, options.threads, self._where.devices)
        new = self._current is None and not self._moving and not self._function.plain.often
        if new and beginning.with_plan():
            try:
                return self._recalled(made, call)
            except Absent:
                beginning.forget()

        def job(session: PendingSession) -> None:
            told: list[tuple[str, str, bool, str]] = []

            def progress(stage: str, done: int, total: int) -> None:
                session.at(stage, done, total)
                options.progress(stage, done, total)

            manner = Manner(within(progress, options.plan_seconds), session.gate, lambda *warning: told.append(warning))
            try:
                with same(), measured_in(session.gate.alone, session.gate.lend):
                    session.settle()
                    found = self._compiled(made, call, manner, session)
            except Exception as e:  # no caller is there to raise it to
                why = Failed("planning", e).why
                manner.warn(self._function.name, why, False, PLAIN)
                found = self._plainly(PlainSession(strategy_name(options.strategy), why))
            finally:
                self._planned = None  # it holds the call's arrays
            if self._take(found, kept, call, session):
                self._told += told
                self._note(beginning, found.session, session)  # the process may end before all is measured
                first = found.session.current
                with same(), measured_in(session.gate.alone, session.gate.lend):
                    found.session.finish(manner.progress)
                if found.session.current is not first:
                    self._note(beginning, found.session, session)

        ahead(options)
        self._pending = PendingSession(strategy_name(options.strategy), job)
        kept = self._current = self._plainly(self._pending)
        return kept

    def _note(self, beginning: Beginning, found: Session | PlainSession, pending: PendingSession) -> None:
        """Has the next process begin with what is in use now."""
        if isinstance(found, Session) and not self._moving:
            beginning.note(found, pending.plain_seconds)

    def _recalled(self, made: JitTrace, call: Call) -> Kept:
        """What has won in a process before; what was not measured yet is measured behind it. Raises `Absent`."""
        options, same = self._function.options, settings()

        def job(pending: PendingSession) -> None:
            progress = within(pending.at, options.plan_seconds)
            with same(), measured_in(pending.gate.alone, pending.gate.lend):
                found.session.finish(progress)

        pending = self._pending = PendingSession(strategy_name(options.strategy), job)
        found = self._compiled(made, call, Manner(options.progress, pending.gate, recalls=True))
        if isinstance(found.session, Session):
            found.session.ends, pending.became = pending.wait, found.session
            pending.ran()
        self._current = found
        return found

    def _take(self, found: Kept, instead: Kept, call: Call, pending: PendingSession) -> bool:
        """Whether calls take from now on what was planned behind them, if calls like `call` still do what they did."""
        with self._lock:
            if self._current is not instead:
                return False
            if isinstance(found.session, PlainSession) and deleted(call.leaves):
                self._current, self._misses = None, self._misses + 1  # with what the next call brings
                return False
            if isinstance(found.session, Session):
                found.session.ends = pending.wait
            self._current = found
            pending.became = found.session
            pending.gate.tell()
            return True

    def _compiled(self, made: JitTrace, call: Call, manner: Manner, pending: PendingSession | None = None) -> Kept:
        """What runs such calls, when it is planned; `pending`: what runs them meanwhile."""

        look: Look | None = None

        def task() -> Task:
            nonlocal look
            with stage("reading the jaxpr"):
                found, look = self._task(made, call)
            if pending is not None and self._known is None:
                weights = [call.leaves[i] for i in found.index]
                self._planned = Kept(found.index, found.inputs, weights, pending, look=look)
            return found

        with no_mesh():
            found = prepared(self._function.name, self._function.options, task, self._not_admitted, manner)
        if isinstance(found, PlainSession):
            elsewhere = Elsewhere.of(call) if self._where.placed is not None and self._known is None else None
            return self._plainly(found)._replace(look=elsewhere)
        weights = [call.leaves[i] for i in found.task.index]
        arrays = [w for w in weights if isinstance(w, jax.Array)]
        numbers, others = (tuple(w for w in arrays if (type(w) is Array) is kind) for kind in (True, False))
        return Kept(found.task.index, found.task.inputs, weights, found.session, numbers, others, look)

    def _task(self, made: JitTrace, call: Call) -> tuple[Task, Look | None]:
        """What is to be compiled for a call, its weights and inputs told apart, and how such calls are known."""
        function, where = self._function, self._where
        closed = unplaced(made.closed) if where.on_mesh else made.closed
        traced = flattened(closed, made.out_tree, paths(self._call.tree))
        moving = {*made.donated, *self._moving, *where.divided}
        index = weight_leaves(traced, moving) if self._known is None else tuple(range(self._known))
        inputs = tuple(i for i in range(len(call.leaves)) if i not in set(index))
        donated = tuple(position for position, leaf in enumerate(inputs) if leaf in set(made.donated))
        plain = where.as_called(function.on_inputs(self._call, index, call.leaves))
        look = Look.of(call, self._signature, index) if self._known is None else None
        if self._moving:
            call = call.described(inputs, types(made, call))
        compile_plain = where.as_called(lambda: function.plain.ask("lower", call.args, call.kwargs).compile())
        about = (traced, index, inputs, call.leaves, donated, plain, function.plain.given, self._sibling, compile_plain)
        committed = where.placed is None and commits(made, call, index, function.plain.given)
        task = Task(*about, step=bool(self._moving), committed=committed, placed=where.placed)
        task = dataclasses.replace(task, on_mesh=where.on_mesh, meshed=where.meshed)
        if self._moving or made.donated or any(isinstance(call.leaves[i], np.ndarray) for i in index):
            return task, look  # no call can be made twice, or as its caller makes it
        called = where.as_called(lambda: function.plain.run(*call.args, **call.kwargs))
        if self._known is not None:
            return dataclasses.replace(task, called=called), look
        if look is not None:
            looked_up = where.as_called(functools.partial(look.inputs, call.args, call.kwargs))
            return dataclasses.replace(task, called=called, looked_up=looked_up), look
        kept = Kept(index, inputs, [call.leaves[i] for i in index], NOBODY)
        looked_up = where.as_called(lambda: self._holds(function.plain.call(call.args, call.kwargs), kept))
        return dataclasses.replace(task, called=called, looked_up=looked_up), look

    def _not_admitted(self, weights: Sequence[ArrayLike]) -> str:
        """New weights are packed again; mutable ones are left to jax.jit."""
        return NUMPY_WEIGHTS if self._known is None and any(isinstance(w, np.ndarray) for w in weights) else ""

    def _refuse(self, why: str, call: Call) -> Kept:
        options = self._function.options
        self._refused = why if options.strict else ""  # strict: every call raises
        kept = self._keep_plain(refused(self._function.name, options, why))
        kept = self._current = kept._replace(look=Elsewhere.of(call) if self._known is None else None)
        return kept

    def _keep_plain(self, session: PlainSession) -> Kept:
        """From now on calls like these are plain jax.jit's, whatever their weights."""
        kept = self._current = self._plainly(session)
        return kept

    def _plainly(self, session: PlainSession) -> Kept:
        """Plain jax.jit, whatever the weights."""
        return Kept((), tuple(range(len(self._signature.leaves))), [], session)


__all__ = ["Entry"]
