"""The native side of a segment: one block of memory with its descriptor, the stamps of recent calls and its step table.

The block belongs to whoever holds it: the Python object `Segment`, and each executable of XLA that calls it (see
`team.adopt`). An executable may outlive every Python object that refers to it, and a call may be in flight when the
last of them goes; the block is freed by the one who gives up the last hold.
"""

from __future__ import annotations

import ctypes
import dataclasses
import weakref
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..native import layout as abi

Put = Callable[[Sequence[int]], int]  # keeps words and tells their address


@dataclasses.dataclass(frozen=True)
class Runtime:
    """Addresses that a segment needs: drivers by name, the libc table, the team (0: none), the number of XLA's type.

    `apart`: the calling thread leaves the work to the team. `release`: gives up a hold on a descriptor.
    """

    drivers: Mapping[str, int]
    libc: int
    team: int
    apart: bool
    release: Callable[[int], int]
    state_type: int


def allocate(nbytes: int) -> int:
    """Address of `nbytes` bytes of the C library, which `release` gives back. Raises `MemoryError` when
    there are none.
    """
    out = ctypes.c_void_p()
    if ctypes.CDLL(None).posix_memalign(ctypes.byref(out), ctypes.c_size_t(64), ctypes.c_size_t(nbytes)) or not out:
        raise MemoryError(f"xcoexec: no memory is left for the {nbytes} bytes that describe a host segment.")
    return int(out.value or 0)


def describe(words: Mapping[int, int], steps: int, table: Callable[[Put], int], runtime: Runtime) -> np.ndarray:
    """A descriptor with the given words, held once: the whole block, [words] int64.

    `table` puts the step table of so many `steps` together and tells its address. It is asked twice: for the size, and
    for where it lies then. Raises `MemoryError` when there is none for the block.
    """
    ahead = abi.DESCRIPTOR_WORDS + abi.CALL_RING * (steps + 1)
    rows: list[int] = []
    table(_put(rows, 0))
    count = ahead + len(rows)
    address = allocate(8 * count)
    rows.clear()
    known = {
        **words,
        abi.Segment.STEPS: table(_put(rows, address + 8 * ahead)),
        abi.Segment.STEP_COUNT: steps,
        abi.Segment.TIMES: address + 8 * abi.DESCRIPTOR_WORDS,
        abi.Segment.TEAM: runtime.team,
        abi.Segment.LIBC: runtime.libc,
        abi.Segment.APART: int(runtime.apart),
        abi.Segment.HOLDS: 1,
        abi.Segment.STATE_TYPE: runtime.state_type,
    }
    block = np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))
    block[:ahead], block[ahead:] = 0, rows
    for at, word in known.items():
        block[at // 8] = word
    return block


def _put(rows: list[int], base: int) -> Put:
    def put(words: Sequence[int]) -> int:
        rows.extend(words)
        return base + 8 * (len(rows) - len(words))

    return put


def ring(block: np.ndarray, steps: int) -> np.ndarray:
    """The stamps of recent calls in a block, [calls kept, steps + 1] nanoseconds."""
    count = abi.CALL_RING * (steps + 1)
    return block[abi.DESCRIPTOR_WORDS : abi.DESCRIPTOR_WORDS + count].reshape(abi.CALL_RING, steps + 1)


def held_by(owner: object, address: int, runtime: Runtime) -> None:
    """Ties the first hold on a descriptor to a Python object's life; at the end of the process it stays."""
    weakref.finalize(owner, runtime.release, address).atexit = False


__all__ = ["Put", "Runtime", "allocate", "describe", "held_by", "ring"]
