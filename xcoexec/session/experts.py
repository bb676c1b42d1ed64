"""Which matrices lie in the caches on the device: those that calls choose the most, exchanged while calls go on."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import logging
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from ..codegen.program import Value
from ..compat import Jitted, as_array, is_tracer, plain_jit, settings
from ..frontend.experts import Bank, choices, kept
from ..lowering.lower import Lowered
from .usage import there

log = logging.getLogger("xcoexec")

EVERY = 8  # of so many calls one is looked at: to read its choices takes the caller's time
CALLS = 4  # whose choices are counted together
MOST = 64  # that are kept while calls in flight are not over
MEMORY = 64  # such rounds, behind which a choice counts 1/e
#: a matrix comes in the place of another one when it is chosen so many times as often, and so many choices more: else
#: chance alone would move matrices that are chosen alike
OFTEN, MORE = 1.2, 4.0


class Uses:
    """How often calls have chosen each matrix of each bank; later choices count more. All executables of a function
    share it, so that a new one begins with what its calls have chosen. `matrices`: how many each bank has; `counting`:
    are calls the caller's, not those of a planning.
    """

    def __init__(self, matrices: Sequence[int]):
        self.counting = False
        self._lock = threading.Lock()
        self._counts = [np.zeros(n) for n in matrices]

    def saw(self, chosen: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Counts the choices of a round, by bank; returns all counts."""
        with self._lock:
            self._counts = [
                c * (1 - 1 / MEMORY) + np.bincount(x, minlength=len(c))
                for c, x in zip(self._counts, chosen, strict=True)
            ]
            return self._counts

    @property
    def counts(self) -> list[np.ndarray]:
        """Choices of each matrix, by bank."""
        return self._counts

    def order(self, bank: int, slots: int) -> np.ndarray:
        """The numbers of the matrices that are chosen the most, those with the least numbers where it is the same."""
        return np.argsort(-self._counts[bank], kind="stable")[:slots]


@dataclasses.dataclass(frozen=True)
class Resident:
    """Of `matrices` experts in each of `banks` layers `slots` lie on the device. `hits` of `choices` choices, later
    ones counting more, were of those; `moved`: exchanges so far, of `nbytes` bytes each.
    """

    banks: int
    matrices: int
    slots: int
    hits: float
    choices: float
    moved: int
    nbytes: int

    @property
    def text(self) -> str:
        """One sentence for reports."""
        share = f"{self.hits / self.choices:.0%} of the choices" if self.choices else "no choices yet"
        return (
            f"Experts: {self.slots} of {self.matrices} lie on the device in each of {self.banks} layers, "
            f"for {share}; {self.moved} of {self.nbytes / 1e6:.1f} MB were exchanged for others."
        )


@functools.cache
def _workers() -> concurrent.futures.Executor:
    return concurrent.futures.ThreadPoolExecutor(1, "xcoexec-experts")


def _put(cache: jax.Array, matrix: jax.Array, place: np.int32) -> jax.Array:
    """The cache with a matrix at a place."""
    return lax.dynamic_update_index_in_dim(cache, matrix, place, 0)


class Caches:
    """The arguments of one executable whose caches change: `arguments` are those of the constants of `lowered`, in
    order. `tables`: the arrays of tables in host memory. Where parts of the host half have copies of a cache, nothing
    is exchanged.

    Calls and exchanges are begun one at a time, and the device takes them in that order: each call sees caches that
    agree with where matrices lie.
    """

    def __init__(
        self,
        banks: Sequence[Bank],
        uses: Uses,
        lowered: Lowered,
        arguments: Sequence[jax.Array],
        tables: Mapping[Value, np.ndarray],
    ):
        self.banks, self._uses, self._tables = banks, uses, tables
        self._at = {v: i for i, v in enumerate(lowered.consts)}
        copied = {v for unit in lowered.segments for v in unit.segment.program.consts}
        own = {v for b in banks for v in (b.where, *b.caches.values())}
        self._fixed = bool(own & copied) or not own <= set(self._at)
        self._lock = threading.Lock()
        self._arguments = list(arguments)
        self._there = [np.array(b.order()) for b in banks]
        self._seen: list[jax.Array] = []
        self._calls = 0
        self._moves, self.settings = False, settings()
        self._puts: dict[object, jax.stages.Compiled] = {}
        self.moved = 0

    @property
    def arguments(self) -> list[jax.Array]:
        """What the next call is given."""
        return self._arguments

    def call(self, jitted: Jitted, leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
        """The results of a call, but for the choices that it tells."""
        with self._lock:
            *out, seen = jitted(*self._arguments, *leaves)
            looks = self._uses.counting and not self._fixed and not is_tracer(seen) and self._looks(seen)
        if looks:
            self._count(looks)
        return out

    def _looks(self, seen: jax.Array) -> list[jax.Array]:
        """Keeps what some calls have chosen; what is to be counted now: nobody has to wait for it."""
        self._calls += 1
        if self._calls % EVERY:
            return []
        self._seen = [*self._seen[-MOST:], seen]
        ready = len(list(itertools.takewhile(there, self._seen)))
        if ready < CALLS:
            return []
        found, self._seen = self._seen[:ready], self._seen[ready:]
        return found

    def _count(self, seen: Sequence[jax.Array]) -> None:
        """Counts what calls have chosen. Another thread exchanges at most one matrix of each bank for one that is
        chosen more often.
        """
        flat = np.stack([np.asarray(s) for s in seen])
        ends = np.cumsum([choices(b) for b in self.banks])[:-1]
        counts = self._uses.saw([x.ravel() for x in np.split(flat, ends, axis=1)])
        wanted = [(i, *found) for i, c in enumerate(counts) if (found := self._wanted(i, c))]
        if wanted and not self._moves:
            self._moves = True
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                _workers().submit(_move, weakref.ref(self), wanted)

    def _wanted(self, number: int, counts: np.ndarray) -> tuple[int, int] | None:
        """Of a bank (the matrix that is chosen the most of those elsewhere, the place of the one that is chosen the
        least); None where that is about the same.
        """
        there = self._there[number]
        elsewhere = counts.copy()
        elsewhere[there] = -1.0
        new, place = int(np.argmax(elsewhere)), int(np.argmin(counts[there]))
        return (new, place) if elsewhere[new] > OFTEN * counts[there[place]] + MORE else None

    def exchange(self, number: int, new: int, place: int) -> None:
        """Matrix `new` comes to a place in a bank's caches, if it is in none."""
        bank, there = self.banks[number], self._there[number].copy()
        if new in there:
            return
        there[place] = new
        caches = [(self._at[c], as_array(self._tables[kept(t)][new])) for t, c in bank.caches.items()]
        where, at = as_array(bank.places(there)), np.int32(place)
        jax.block_until_ready([x for _, x in caches])  # what comes over the bus is waited for here, not by a call
        puts = [self._compiled(self._arguments[i], matrix, at) for i, matrix in caches]
        with self._lock:
            for (i, matrix), put in zip(caches, puts, strict=True):
                self._arguments[i] = put(self._arguments[i], matrix, at)
            self._arguments[self._at[bank.where]] = where
        self._there[number] = there
        self.moved += 1

    def move(self, wanted: Sequence[tuple[int, int, int]]) -> None:
        """Exchanges, one after the other."""
        try:
            for found in wanted:
                self.exchange(*found)
        finally:
            self._moves = False

    def _compiled(self, *args: Any) -> jax.stages.Compiled:
        """`_put` in the memory of the cache that it is given, for arguments of these shapes."""
        key = tuple((x.shape, str(x.dtype)) for x in args)
        if key not in self._puts:
            self._puts[key] = plain_jit(_put, donate_argnums=0).lower(*args).compile()
        return self._puts[key]

    def resident(self) -> Resident:
        """What lies there, and how much of what calls choose."""
        counts = self._uses.counts
        hits = sum(float(c[t].sum()) for c, t in zip(counts, self._there, strict=True))
        first = self.banks[0]
        return Resident(
            len(self.banks),
            first.region.matrices,
            first.slots,
            hits,
            float(sum(c.sum() for c in counts)),
            self.moved,
            first.region.nbytes,
        )


def _move(caches: weakref.ref[Caches], wanted: Sequence[tuple[int, int, int]]) -> None:
    """Exchanges, where somebody still calls."""
    mine = caches()
    if mine is None:
        return
    try:
        with mine.settings():
            mine.move(wanted)
    except Exception as e:  # what lies there stays
        log.warning("xcoexec: experts were not exchanged (%s: %s).", type(e).__name__, str(e))


__all__ = ["Caches", "Resident", "Uses"]
