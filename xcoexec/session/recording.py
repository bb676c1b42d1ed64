"""When XLA may record convolutions as graphs: while no other thread of the process can use the device.

XLA records a convolution by having cuDNN launch it on a stream that is there for this alone: at the first call, and
again where a call's arrays lie at other addresses than before. All programs share a device's one handle of cuDNN. A
thread that takes the handle meanwhile makes its own stream follow the one that is recorded, and the process ends in
`cuEventRecord` (on an H200 within a second of two threads that call a network of ten convolutions).
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

OTHERS = "; plain jax.jit has its calls while another thread may use the device"
SETTLE_SECONDS, POLL_SECONDS = 0.5, 0.001
PLANNERS = ("xcoexec-plan", "xcoexec-replan")  # names of threads
#: modules whose threads compute nothing on a device: those of the host half, of notebooks, of what watches a program
HARMLESS = (
    *("xcoexec.codegen.", "xcoexec-relay.", "xcoexec.session.listeners.", "xcoexec.optim."),
    *("ipykernel.", "IPython.", "zmq.", "debugpy.", "pydevd", "_pydevd_bundle."),
    *("tqdm.", "rich.", "wandb.", "tensorboard.", "tensorboardX.", "torch.utils.", "pytest_timeout."),
)


def origin(thread: threading.Thread) -> str:
    """The module of what a thread does, or its name where that is no function of Python's, with a point behind it."""
    kind = type(thread).__module__
    does = getattr(thread, "_target", None) or getattr(thread, "function", None)  # a timer has the latter
    module = kind if kind != "threading" else getattr(does, "__module__", None)
    return f"{thread.name if module == 'ctypes' else module}."


class Recording:
    """`call` of an executable from `only` is the plan's while its thread is the only one that may use the device."""

    def __init__(self) -> None:
        self._known: list[threading.Thread] = []  # all threads, as they were seen last
        self._users: list[threading.Thread] = []  # those of them that may use the device
        self._lender: threading.Thread | None = None

    @property
    def others(self) -> list[threading.Thread]:
        """Other threads that may use the device now, but for the one that waits for what this one was `lent` for."""
        known = threading.enumerate()
        if known != self._known:
            self._users = [t for t in known if not origin(t).startswith(HARMLESS)]
            self._known = known
        me = threading.get_ident()
        return [t for t in self._users if t.ident != me and t is not self._lender]

    def may(self) -> bool:
        """Whether an executable whose convolutions are recorded may be called by this thread now."""
        return not self.others

    def soon(self) -> bool:
        """Whether it may when the plannings are over that go on."""
        return all(t.name in PLANNERS for t in self.others)

    def settles(self) -> bool:
        """Waits for plannings that are as good as over, `SETTLE_SECONDS` at most: where plain `jax.jit` is not compiled
        yet, calls that take it wait longer. Whether an executable may be called then.
        """
        end = time.monotonic() + SETTLE_SECONDS
        while not self.may() and self.soon() and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        return self.may()

    @contextlib.contextmanager
    def lent(self, lender: threading.Thread) -> Iterator[None]:
        """This thread does what another one waits for."""
        self._lender = lender
        try:
            yield
        finally:
            self._lender = None

    def only(self, exe: Executable, plain: Flat) -> Executable:
        """An executable whose convolutions are recorded, with `plain` for calls during which that may not be."""

        def call(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
            return plain(leaves) if self.others else exe.call(leaves)

        return dataclasses.replace(exe, call=call, program=None, may=self.may)


recording = Recording()


__all__ = ["OTHERS", "PLANNERS", "Recording", "recording"]
