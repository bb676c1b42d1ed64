"""What a device has to provide for host calls, and the memory that a call site takes from it.

`xcoexec.devices` has the drivers.
"""

from __future__ import annotations

import contextlib
from typing import Protocol


class Driver(Protocol):
    """A device as the relay sees it. Addresses and handles are integers."""

    platform: str  # the name of its kind among devices
    launch: int  # address of cuLaunchKernel, or of a function with its signature
    functions: tuple[int, ...]  # as ptx.KERNELS
    workspace: int  # bytes of device memory that XLA's libraries use beside a program's own
    blocks: int  # most blocks of one launch
    waiters: int  # most blocks of a kernel that waits: another kernel still has room beside it on every multiprocessor
    stream: int  # 0: the stream on which XLA launches
    # addresses of cuMemcpyAsync, cuMemcpy2DAsync, cuEventRecord, cuStreamWaitEvent, cuStreamSynchronize
    copies: tuple[int, ...]
    sides: tuple[int, ...]  # streams beside XLA's: operands to the host, results from it, weights from it

    def mapped(self, nbytes: int) -> tuple[int, int]:
        """Host-mapped memory of so many bytes: (host address, device address). Raises `RuntimeError` when refused."""
        ...

    def free_mapped(self, host: int) -> None: ...

    def words(self, nbytes: int) -> int:
        """Zeroed device memory of so many bytes: its address. Raises `RuntimeError` when refused."""
        ...

    def free_words(self, address: int) -> None: ...

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes of the device."""
        ...

    def event(self) -> int:
        """A new event: its handle. Raises `RuntimeError` when refused."""
        ...

    def free_event(self, event: int) -> None: ...

    def synchronize(self) -> None:
        """Waits until the device has nothing to do. Raises `RuntimeError` when it cannot say that any more."""
        ...

    def describe(self, code: int) -> str:
        """The driver's words for an error code."""
        ...


class Memory:
    """`mapped` bytes of mapped memory, `words` bytes of device memory (0: none) and events of one site; given back
    together, also when only a part could be had. Raises `RuntimeError` when the driver refuses one.
    """

    def __init__(self, driver: Driver, mapped: int, words: int, events: int):
        self._driver = driver
        self.host = self.device = self.work = 0
        self.events: list[int] = []
        with contextlib.ExitStack() as back:
            back.callback(self.free)
            self.host, self.device = driver.mapped(mapped)
            self.work = driver.words(words) if words else 0
            for _ in range(events):
                self.events.append(driver.event())
            back.pop_all()  # all of it is there, and stays

    def free(self) -> None:
        """Gives all of it back; a second time nothing happens."""
        if self.host:
            self._driver.free_mapped(self.host)
        if self.work:
            self._driver.free_words(self.work)
        for event in self.events:
            self._driver.free_event(event)
        self.host = self.work = 0
        self.events.clear()


__all__ = ["Driver", "Memory"]
