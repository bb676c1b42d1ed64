"""How a function's callers and what is measured behind them make room for each other."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import jax
from jax.typing import ArrayLike

from ..codegen.native.children import closing
from ..compat import plain_jit, settings
from ..devices.registry import device_half
from ..lowering.executable import Flat
from ..measure.timing import NotCalled
from .listeners import Listeners
from .recording import recording
from .usage import held, there

T = TypeVar("T")

# times as long as a measurement takes calls are left alone after it: they lose a tenth at most beside a device, and a
# quarter where all is done on the same cores
OPEN_APART, OPEN_SHARED = 12, 3
MOST_OPEN_SECONDS, SLEEP_SECONDS = 3.0, 0.1
HOLD_SECONDS = 1.0  # a call waits no longer than this for measured ones
LEND_SECONDS = 3.0  # measured calls that a caller makes wait no longer than this for him
END_SECONDS, POLL_SECONDS = 0.5, 0.001  # measured calls wait no longer than this for the end of others


class Gate:
    """Lets a measurement have the halves for itself for a block of calls at a time, while the function is in use.

    `active`: measurements may come, and calls tell where they are. `closes`: who wants to know that calls have to pass
    it again, because a measurement comes, or news.
    """

    def __init__(self, active: bool = False) -> None:
        self.active = active
        self._inside = set[int]()  # threads whose call goes on
        self._given: weakref.ref[jax.Array] | None = None  # a result of the last call
        self._open = threading.Event()
        self._open.set()
        self._nothing = plain_jit(lambda x: x + 1)
        self._called = self._news = self._late = False
        #: what a caller's thread is to do, and for whom
        self._lent: tuple[Callable[[], Any], Future[Any], threading.Thread] | None = None
        self.closes = Listeners()

    def passes(self) -> bool:
        """Whether a call that begins now needs no look: it need not wait, and there is no news."""
        self._called = True
        return self._open.is_set() and not self._news and self._lent is None

    def tell(self) -> None:
        """There is news for the next call."""
        self._news = True
        self.closes.tell()

    def through(self, call: Flat, leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
        """Makes a call, which may be through when it returns."""
        me = threading.get_ident()
        self._inside.add(me)
        try:
            return call(leaves)
        finally:
            self._inside.discard(me)

    def gave(self, results: Sequence[object]) -> None:
        """Notes what a call has returned; nothing is kept alive."""
        self._given = held(results)

    def _wait_for_calls(self) -> None:
        """Until the calls that were begun are over, at most `END_SECONDS`: who shares its cores with one takes twice as
        long.
        """
        end = time.perf_counter() + (0.0 if self._late else END_SECONDS)
        while self._inside or self._computes():
            if time.perf_counter() >= end:
                self._late = True  # calls take too long to wait for each
                return
            time.sleep(POLL_SECONDS)

    def _computes(self) -> bool:
        given = self._given
        array = given() if given is not None else None
        return array is not None and not there(array)

    def wait(self) -> None:
        """Waits while measured calls run, at most `HOLD_SECONDS` seconds, or makes those that it is lent for."""
        self._called, self._news = True, False
        self.help()
        if not self._open.is_set():
            self._open.wait(HOLD_SECONDS)

    def help(self) -> None:
        """Does what another thread waits for that plans, if there is something."""
        lent, self._lent = self._lent, None
        if lent is None or not lent[1].set_running_or_notify_cancel():
            return
        block, future, lender = lent
        try:
            with recording.lent(lender):
                self._nothing(0.0).block_until_ready()
                began = time.perf_counter()
                found = block()
                future.set_result((found, time.perf_counter() - began))
        except Exception as e:
            future.set_exception(e)
        except BaseException:
            future.set_exception(InterruptedError("the caller was interrupted"))
            raise

    def lend(self, block: Callable[[], T]) -> T:
        """What a block of calls gives that the caller makes, in the place where the next one of his own begins: his
        thread does nothing else then. Time is left open after it as after `alone`. Raises `NotCalled` where no call
        comes within `LEND_SECONDS`, and what the block raises.
        """
        future: Future[tuple[T, float]] = Future()
        self._lent = _under(settings(), block), future, threading.current_thread()
        self.closes.tell()
        concurrent.futures.wait((future,), LEND_SECONDS)
        self._lent = None
        if future.cancel():
            raise NotCalled
        found, seconds = future.result()
        self._leave_open(seconds)
        return found

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nothing of this function is begun inside, and what was begun before is over; when calls have come since the
        last time, a multiple of that time, at most `MOST_OPEN_SECONDS`, is left open after it.
        """
        self._open.clear()
        self.closes.tell()
        began = time.perf_counter()
        try:
            self._wait_for_calls()
            self._nothing(0.0).block_until_ready()
            began = time.perf_counter()
            yield
        finally:
            self._open.set()
            self._leave_open(time.perf_counter() - began)

    def _leave_open(self, seconds: float) -> None:
        """Measures nothing for a multiple of so many seconds, if calls have come since the last time."""
        called, self._called = self._called, False
        if called:
            times = OPEN_APART if device_half().apart else OPEN_SHARED
            _rest(min(times * seconds, MOST_OPEN_SECONDS))


def _under(same: Callable[[], contextlib.AbstractContextManager[object]], block: Callable[[], T]) -> Callable[[], T]:
    """A block under JAX's settings of the thread that plans."""

    def under() -> T:
        with same():
            return block()

    return under


def _rest(seconds: float) -> None:
    """Sleeps for so long, or until the interpreter ends: it waits for this thread."""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0 and not closing():
        time.sleep(min(left, SLEEP_SECONDS))


__all__ = ["Gate"]
