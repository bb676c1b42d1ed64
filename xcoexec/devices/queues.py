"""Arrays on their way between a device and host memory, as an optimizer in host memory needs them: down, up, and flags.

Down and up are streams of their own, so that both directions of the bus and the device's work go on at the same time.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from .cuda import Cuda

_BLOCKING, _NO_TIMING = 1, 2  # of an event: who waits for it sleeps
_AT_LEAST = 0
FLAG_BYTES = 64


class Queues(Protocol):
    """Copies between a device and host memory. Addresses and handles are integers; every method but `wait` and
    `wait_flag` returns at once where the device is apart.
    """

    def memory(self, nbytes: int) -> int:
        """The address of so many bytes of host memory that the device copies from and to."""
        ...

    def free(self, address: int) -> None:
        """Gives back what `memory` gave. Whoever says so may be a garbage collection in a thread that the device waits
        for, so that the memory is freed later.
        """
        ...

    def after(self, stream: int) -> None:
        """Later copies down wait for what a stream of the device has been given so far."""
        ...

    def down(self, target: int, source: int, nbytes: int) -> int:
        """Copies from the device to host memory; an event for `wait`."""
        ...

    def wait(self, event: int) -> None:
        """Until the copy of an event is done. An event is waited for once."""
        ...

    def done(self, event: int) -> bool:
        """Whether the copy of an event, for which nobody has waited yet, is done."""
        ...

    def up(self, target: int, source: int, nbytes: int) -> None:
        """Copies from host memory to the device."""
        ...

    def raise_flag(self, number: int) -> None:
        """The flag becomes `number` once all copies up so far are done."""
        ...

    def wait_flag(self, stream: int, number: int) -> None:
        """What a stream of the device is given from now on waits until the flag is `number` or more."""
        ...


class SameMemoryQueues:
    """Where both halves share memory: copies are done when they return, and who waits for a flag stands still."""

    def __init__(self) -> None:
        self._raised = threading.Condition()
        self._flag = 0
        self._memory: dict[int, np.ndarray] = {}

    def memory(self, nbytes: int) -> int:
        """The address of so many bytes, aligned to 64."""
        raw = np.empty(nbytes + 64, np.uint8)
        address = -(-raw.ctypes.data // 64) * 64
        self._memory[address] = raw
        return address

    def free(self, address: int) -> None:
        """Frees what `memory` gave."""
        self._memory.pop(address)

    def after(self, stream: int) -> None:
        """Nothing: what a call reads is there when it is made."""

    def down(self, target: int, source: int, nbytes: int) -> int:
        """Copies; the event says nothing."""
        ctypes.memmove(target, source, nbytes)
        return 0

    def wait(self, event: int) -> None:
        """Nothing: the copy is done."""

    def done(self, event: int) -> bool:
        """It is."""
        return True

    def up(self, target: int, source: int, nbytes: int) -> None:
        """Copies."""
        ctypes.memmove(target, source, nbytes)

    def raise_flag(self, number: int) -> None:
        """Sets the flag, and wakes who waits for it."""
        with self._raised:
            self._flag = number
            self._raised.notify_all()

    def wait_flag(self, stream: int, number: int) -> None:
        """Stands still until the flag is `number` or more."""
        with self._raised:
            self._raised.wait_for(lambda: self._flag >= number)


class CudaQueues:
    """Copies by the copy engines of a CUDA device on two streams; the flag lies in mapped memory, where streams see it.

    Raises `CudaError` for whatever the driver refuses.
    """

    def __init__(self, driver: Cuda):
        self._driver = driver
        with driver:
            self._down, self._up = driver.new_stream(), driver.new_stream()
        self._begun = self._event()
        self._flag, self._flag_there = driver.mapped(FLAG_BYTES)
        ctypes.c_uint32.from_address(self._flag).value = 0
        self._events: list[int] = []
        self._given_back: list[int] = []

    def _event(self) -> int:
        handle = ctypes.c_void_p()
        with self._driver:
            self._driver.call("cuEventCreate", ctypes.byref(handle), ctypes.c_uint(_BLOCKING | _NO_TIMING))
        return handle.value or 0

    def memory(self, nbytes: int) -> int:
        """The host address of so many bytes of mapped memory; what was given back is freed first."""
        if self._given_back:
            self._driver.synchronize()
        while self._given_back:
            self._driver.free_mapped(self._given_back.pop())
        return self._driver.mapped(nbytes)[0]

    def free(self, address: int) -> None:
        """Notes that memory is to be freed."""
        self._given_back.append(address)

    def after(self, stream: int) -> None:
        """Copies down wait for the stream by an event."""
        with self._driver:
            self._driver.call("cuEventRecord", ctypes.c_void_p(self._begun), ctypes.c_void_p(stream))
            self._driver.call(
                "cuStreamWaitEvent", ctypes.c_void_p(self._down), ctypes.c_void_p(self._begun), ctypes.c_uint(0)
            )

    def down(self, target: int, source: int, nbytes: int) -> int:
        """Enqueues a copy; its event is one that nobody waits for any more, or a new one."""
        event = self._events.pop() if self._events else self._event()
        with self._driver:
            self._driver.call(
                "cuMemcpyDtoHAsync_v2",
                ctypes.c_void_p(target),
                ctypes.c_uint64(source),
                ctypes.c_size_t(nbytes),
                ctypes.c_void_p(self._down),
            )
            self._driver.call("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(self._down))
        return event

    def wait(self, event: int) -> None:
        """Sleeps until the event has come."""
        with self._driver:
            self._driver.call("cuEventSynchronize", ctypes.c_void_p(event))
        self._events.append(event)

    def done(self, event: int) -> bool:
        """Asks the driver; what it refuses to say counts as not yet."""
        with self._driver:
            try:
                self._driver.call("cuEventQuery", ctypes.c_void_p(event))
            except RuntimeError:
                return False
        return True

    def up(self, target: int, source: int, nbytes: int) -> None:
        """Enqueues a copy."""
        with self._driver:
            self._driver.call(
                "cuMemcpyHtoDAsync_v2",
                ctypes.c_uint64(target),
                ctypes.c_void_p(source),
                ctypes.c_size_t(nbytes),
                ctypes.c_void_p(self._up),
            )

    def raise_flag(self, number: int) -> None:
        """The stream of copies up writes the flag; where it refuses, the host does: a device must not wait in vain."""
        try:
            self._memory_operation("cuStreamWriteValue32_v2", self._up, number)
        except RuntimeError:
            ctypes.c_uint32.from_address(self._flag).value = number
            raise

    def wait_flag(self, stream: int, number: int) -> None:
        """The stream waits for the flag; the device does other work meanwhile."""
        self._memory_operation("cuStreamWaitValue32_v2", stream, number, _AT_LEAST)

    def _memory_operation(self, name: str, stream: int, number: int, how: int = 0) -> None:
        with self._driver:
            self._driver.call(
                name,
                ctypes.c_void_p(stream),
                ctypes.c_uint64(self._flag_there),
                ctypes.c_uint32(number),
                ctypes.c_uint(how),
            )


@functools.lru_cache
def queues(platform: str) -> Queues:
    """Those of this process for JAX's default backend, "cpu" or "gpu". Raises `CudaError` where the driver cannot be
    had.
    """
    if platform == "cpu":
        return SameMemoryQueues()
    from .cuda import cuda

    return CudaQueues(cuda())


__all__ = ["CudaQueues", "Queues", "SameMemoryQueues", "queues"]
