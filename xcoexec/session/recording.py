"""When XLA may record convolutions as graphs: while no other thread of the process uses the device.

XLA records a convolution by having cuDNN launch it on a stream that is there for this alone: at the first call, and
again where a call's arrays lie at other addresses than before. All programs share a device's one handle of cuDNN. A
thread that takes the handle meanwhile makes its own stream follow the one that is recorded, and the process ends in
`cuEventRecord` (on an H200 within a second of two threads that call a network of ten convolutions), or loses kernels.
While one of the two launches nothing, all is right.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence

import jax
from jax.typing import ArrayLike

from ..lowering.executable import Executable, Flat
from .listeners import Listeners

SEVERAL = "; plain jax.jit has its calls, as several threads use the device"
LOOK_SECONDS = 1.0  # between two looks at which threads have ended
COMPILED = "/jax/core/compile/backend_compile_duration"  # JAX's name of what a thread does that has a new program


class Recording:
    """`working`: threads that plan. `used`: there are executables whose convolutions are recorded; `closes` tells that
    to who calls plain `jax.jit` without a look, because from then on each call has to show its thread (`passes`).
    """

    def __init__(self) -> None:
        self.working = set[threading.Thread]()
        self.used, self.closes = False, Listeners()
        self._threads = set[int]()  # of callers
        self._lent = self._listens = False
        self._lock = threading.RLock()
        self._looked = 0.0

    def after_fork(self) -> None:
        """A child has none of its parent's threads."""
        self.working.clear()
        self._threads.clear()
        self._lent, self._lock = False, threading.RLock()

    def passes(self) -> bool:
        """Notes the thread of a call that begins now; always true."""
        me = threading.get_ident()
        if me not in self._threads and threading.current_thread() not in self.working:
            with self._lock:  # behind what is being launched
                self._threads.add(me)
        return True

    @property
    def several(self) -> bool:
        """Whether calls come from several threads, which all are still there."""
        if len(self._threads) > 1 and time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            self._threads &= {t.ident for t in threading.enumerate() if t.ident is not None}
        return len(self._threads) > 1

    def may(self) -> bool:
        """Whether an executable whose convolutions are recorded may be called by its caller now."""
        return (not self.working or (self._lent and len(self.working) == 1)) and not self.several

    @contextlib.contextmanager
    def planning(self) -> Iterator[None]:
        """This thread plans, behind its callers' backs."""
        me = threading.current_thread()
        with self._lock:
            self.working.add(me)
        try:
            yield
        finally:
            self.working.discard(me)

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """A caller's thread does what one that plans waits for."""
        self.passes()
        self._lent = True
        try:
            yield
        finally:
            self._lent = False

    def only(self, exe: Executable, plain: Flat) -> Executable:
        """An executable whose convolutions are recorded, with `plain` for calls during which that may not be."""
        self._begin()

        def call(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
            with self._lock:
                if self.may():
                    return exe.call(leaves)
            return plain(leaves)

        return dataclasses.replace(exe, call=call, program=None, may=self.may)

    def _begin(self) -> None:
        """Calls show their threads from now on, and so does what compiles for itself."""
        if not self._listens:
            self._listens = True
            jax.monitoring.register_event_duration_secs_listener(self._compiled)
        self.used = True
        self.closes.tell()

    def _compiled(self, event: str, duration_secs: float, **about: str | int) -> None:
        if event == COMPILED:
            self.passes()


recording = Recording()


__all__ = ["SEVERAL", "Recording", "recording"]
