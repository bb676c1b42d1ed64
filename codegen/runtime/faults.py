"""Faults of host calls: their texts, and what one device program has had."""

from __future__ import annotations

import ctypes

import numpy as np

from ..native import call_layout as abi
from ..native.ptx import REFUSED

TEXTS = (  # in the order of `abi.Text`
    REFUSED,
    "a host call was joined that nobody had started",
    "another execution of this program has begun a host call and never joins it",
    "no host call is taken any more: the process ends, or the device is lost",
    "no memory was left for the intermediates of a host call, which had to wait for some",
    "the thread that serves host calls was gone; another one has taken its place",
    "a host call was not begun in time; another thread has taken it over",
    "a host call never ended; the device was stopped, because its result cannot be had",
)


def word(address: int) -> ctypes.c_int64:
    """The int64 at an address, to read and to write."""
    return ctypes.c_int64.from_address(address)


class Faults:
    """What went wrong in the host calls of one device program; `address` is what its call sites carry."""

    def __init__(self) -> None:
        self._words = np.zeros(abi.FAULTS_WORDS, np.int64)
        self.address = self._words.ctypes.data

    def __len__(self) -> int:
        return int(self._words[abi.Faults.COUNT // 8])

    @property
    def text(self) -> str:
        """What the first one was ("" without any)."""
        return TEXTS[int(self._words[abi.Faults.FIRST // 8]) // 8] if len(self) else ""

    @property
    def code(self) -> int:
        """The driver's error code of the first one (0: none)."""
        return int(self._words[abi.Faults.CODE // 8])

    @property
    def failed(self) -> bool:
        """Whether a handler has returned an error, so that the program runs no more."""
        return bool(self._words[abi.Faults.FAILED // 8])


def noted(relay: int, faults: int, which: int) -> None:
    """As the native `note`, from Python (addresses)."""
    count = word(faults + abi.Faults.COUNT)
    if count.value == 0:
        word(faults + abi.Faults.FIRST).value = which
    count.value += 1
    word(relay + abi.Relay.ERRORS).value += 1


__all__ = ["TEXTS", "Faults", "noted", "word"]
