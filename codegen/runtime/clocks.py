"""Where a program's clock is read: stamps of a device's stream, and of the CPU."""

from __future__ import annotations

import ctypes

import numpy as np

from ..native import call_layout as abi
from .faults import Faults
from .host import libc
from .relay import Relay


class Clock:
    """Places in a device program where the device's clock is read: `address(i)` is what the FFI attribute of the i-th
    carries.

    Raises `RuntimeError` when the driver refuses the memory.
    """

    def __init__(self, relay: Relay, count: int):
        self._relay, self._faults = relay, Faults()
        self._host, device = relay.driver.mapped(8 * count)
        self._rows = np.array([[relay.address, device + 8 * i, self._faults.address] for i in range(count)], np.int64)
        self._times = np.ctypeslib.as_array(ctypes.cast(self._host, ctypes.POINTER(ctypes.c_int64)), (count,))

    def address(self, i: int) -> int:
        """What the FFI attribute of the i-th place carries."""
        return int(self._rows.ctypes.data) + 8 * abi.TICK_WORDS * i

    def times(self) -> np.ndarray:
        """[count] nanoseconds of the device's clock, int64: at each place in the last finished run."""
        return self._times.copy()

    def close(self) -> None:
        """Gives the memory back; no program that uses it may run any more."""
        self._relay.driver.synchronize()
        self._relay.driver.free_mapped(self._host)


class HostClock:
    """As `Clock`, of a program on the CPU."""

    def __init__(self, count: int):
        self._times = np.zeros(count, np.int64)
        self._rows = np.array(
            [[libc("clock_gettime"), self._times.ctypes.data + 8 * i, 0] for i in range(count)], np.int64
        )

    def address(self, i: int) -> int:
        """What the FFI attribute of the i-th place carries."""
        return int(self._rows.ctypes.data) + 8 * abi.TICK_WORDS * i

    def times(self) -> np.ndarray:
        """[count] nanoseconds of the CPU's clock, int64: at each place in the last finished run."""
        return self._times.copy()

    def close(self) -> None:
        """Nothing to give back."""


__all__ = ["Clock", "HostClock"]
