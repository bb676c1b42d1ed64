"""Call sites of a device program: what of an operand the host reads, where its results go, and the mapped memory for
both.
"""

from __future__ import annotations

import ctypes
import dataclasses
import math
import weakref
from collections.abc import Mapping, Sequence

import numpy as np

from ..native import call_layout as abi
from ..program import Value
from ..segment.assembly import Segment
from ..segment.descriptor import allocate
from .driver import Memory
from .faults import Faults
from .host import function
from .pages import in_large_pages
from .relay import Relay


@dataclasses.dataclass(frozen=True)
class Window:
    """`start:stop` along `axis` of an operand; the segment's input. `copied`: by a copy engine, not by a kernel.
    `behind`: indices of the segment's input that the host has already; this comes behind them.
    """

    shape: tuple[int, ...]
    axis: int
    start: int
    stop: int
    copied: bool = False
    behind: int = 0

    @classmethod
    def whole(cls, shape: tuple[int, ...], copied: bool = False) -> Window:
        """All of an operand of that shape; one without axes counts as [1]."""
        return cls(shape or (1,), 0, 0, (shape or (1,))[0], copied)

    @property
    def before(self) -> int:
        """Elements of 4 bytes that lie before it in the memory where it goes."""
        return self.behind * _inner(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the segment's input, without what the host has already."""
        return 4 * math.prod(self.words()[:2])

    def words(self) -> tuple[int, int, int, int]:
        """(outer, inner, stride, offset) in elements of 4 bytes: `outer` runs of `inner`, `stride` apart."""
        inner = _inner(self)
        return (
            math.prod(self.shape[: self.axis]),
            (self.stop - self.start) * inner,
            self.shape[self.axis] * inner,
            self.start * inner,
        )


@dataclasses.dataclass(frozen=True)
class Merge:
    """A result of `shape` whose first `at` indices along `axis` the host half makes, the others the device half;
    `copied` as above. `skipped`: indices that the host half makes before those, which stay there; `room`: indices for
    which its memory has room at least.
    """

    shape: tuple[int, ...]
    axis: int
    at: int
    copied: bool = False
    skipped: int = 0
    room: int = 0

    @classmethod
    def whole(cls, shape: tuple[int, ...], copied: bool = False) -> Merge:
        """A result of that shape that the host half makes alone; one without axes counts as [1]."""
        return cls(shape or (1,), 0, (shape or (1,))[0], copied)

    @property
    def before(self) -> int:
        """Elements of 4 bytes that lie before it in the memory where it is made."""
        return self.skipped * _inner(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the memory in which the host half makes it."""
        inner = _inner(self)
        return 4 * math.prod(self.shape[: self.axis]) * max(self.skipped + self.at, self.room) * inner

    def words(self) -> tuple[int, int, int]:
        """(outer, the host's, the device's) in elements of 4 bytes: each of `outer` runs is theirs in turn."""
        inner = _inner(self)
        return math.prod(self.shape[: self.axis]), self.at * inner, (self.shape[self.axis] - self.at) * inner


def _inner(part: Window | Merge) -> int:
    """Elements of one index along a part's axis, within one run."""
    return math.prod(part.shape[part.axis + 1 :])


def _filled(count: int, words: Mapping[int, int]) -> np.ndarray:
    """A block of int64 words, given by their byte offsets. It is the C library's: executables have its address, and
    XLA takes some down after Python's last objects have gone. Raises `MemoryError` when there is none.
    """
    block = np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(allocate(8 * count)))
    block[:] = 0
    for at, value in words.items():
        block[at // 8] = value
    return block


class Site:
    """One segment inside a device program: its weights in host memory, its operands and results in mapped memory.

    `address` is what the FFI attribute carries. `inputs`: what of each operand the segment reads; `outputs`: where its
    results go. `consts`: the segment's constants by value, of their shapes. `faults`: those of its program (none given:
    of its own). `kept`: operand -> (another site of the same program, the result there in whose memory the operand
    lies), by their numbers. `leader`: the site that is joined right behind this one's start: its results and these
    operands go by one kernel. Raises `MemoryError` when there is none for the segment's intermediates, `RuntimeError`
    when the driver refuses some or the relay has been stopped.
    """

    def __init__(
        self,
        relay: Relay,
        segment: Segment,
        inputs: Sequence[Window],
        outputs: Sequence[Merge],
        consts: Mapping[Value, np.ndarray],
        faults: Faults | None = None,
        kept: Mapping[int, tuple[Site, int]] | None = None,
        leader: Site | None = None,
    ):
        relay.collect()
        kept, self.leader = kept or {}, leader
        self.segment, self.faults = segment, Faults() if faults is None else faults
        if not function("reserve", 1, "serving")(segment.address):
            raise MemoryError(
                f"xcoexec: no memory is left for the {segment.arena_bytes} bytes of a host segment's intermediates."
            )
        self._keep = [*(np.ascontiguousarray(consts[v]) for v in segment.raw), segment.pack(consts)]
        in_large_pages((x.ctypes.data, x.nbytes) for x in self._keep)
        parts: list[Window | Merge] = [*inputs, *outputs]
        n = len(inputs)
        sizes = [0 if i in kept else p.nbytes for i, p in enumerate(parts)]
        places = np.cumsum([abi.PAGE_BYTES, *(-(-size // 256) * 256 for size in sizes)]).tolist()
        memory = Memory(relay.driver, places[-1], 256, 2 if any(p.copied for p in parts) else 0)
        self._host = memory.host
        ctypes.memset(self._host, 0, abi.PAGE_BYTES)
        own = [(self._host + place, memory.device + place) for place in places[:-1]]
        self._results = own[n:]
        lie = [kept[i][0]._results[kept[i][1]] if i in kept else place for i, place in enumerate(own)]
        hosts = [host for host, _ in lie]
        self._bufs = np.array([*hosts[:n], *(a.ctypes.data for a in self._keep), *hosts[n:]], np.int64)
        rows = [self._row(p, device) for p, (_, device) in zip(parts, lie, strict=True)]
        self._ins, self._outs = self._table(rows[:n]), self._table(rows[n:])
        sources = [*dict.fromkeys(site for site, _ in kept.values())]
        addresses: list[int] = [site.address for site in sources]
        self._sources = np.array(addresses, np.int64)
        words = {
            **self._described(memory),
            abi.Site.RELAY: relay.address,
            abi.Site.OPERAND_COUNT: n,
            abi.Site.RESULT_COUNT: len(outputs),
            abi.Site.COPIES: sum(w.copied for w in inputs),
            abi.Site.SOURCES: self._sources.ctypes.data,
            abi.Site.SOURCE_COUNT: len(sources),
            abi.Site.LEADER: leader.address if leader is not None else 0,
        }
        self._words = _filled(abi.SITE_WORDS, words)
        self.address: int = self._words.ctypes.data
        for site in sources:
            site._words[abi.Site.KEEPERS // 8] += 1
        if leader is not None:
            leader._words[abi.Site.FOLLOWER // 8] = self.address
        keep = (self._keep, self._bufs, self._ins, self._outs, segment, self.faults, sources, self._sources, leader)
        weakref.finalize(self, relay.retire, self._words, memory, keep)
        relay.start()

    def _described(self, memory: Memory) -> dict[int, int]:
        """Where the site's own memory lies."""
        return {
            abi.Site.SEGMENT: self.segment.address,
            abi.Site.PAGE: memory.host,
            abi.Site.WORK: memory.work,
            abi.Site.BUFFERS: self._bufs.ctypes.data,
            abi.Site.BUFFER_COUNT: len(self._bufs),
            abi.Site.OPERANDS: self._ins.ctypes.data,
            abi.Site.RESULTS: self._outs.ctypes.data,
            abi.Site.FAULTS: self.faults.address,
            **dict(zip((abi.Site.BEFORE, abi.Site.AFTER), memory.events, strict=False)),
        }

    @staticmethod
    def _table(rows: Sequence[Sequence[int]]) -> np.ndarray:
        return np.array([list(r) + [0] * (abi.PART_WORDS - len(r)) for r in rows], np.int64).reshape(-1)

    @staticmethod
    def _row(part: Window | Merge, address: int) -> list[int]:
        """A part's words, and whether all of them are whole elements of 16 bytes."""
        outer, *sizes = part.words()
        wide = all(s % 4 == 0 for s in (*sizes, part.before))
        return [address + 4 * part.before, outer, *sizes, int(wide), int(part.copied)]

    @property
    def calls(self) -> int:
        """Calls that the host has served."""
        return int(self._words[abi.Site.SERVED // 8])

    def stamps(self, last: int | None = None) -> np.ndarray:
        """[calls kept, 6] nanoseconds of the device's clock, oldest call first: start began, ended; join began, asked
        for the host, left, ended. `last`: number of the last call that counts (none given: the last one that the host
        has served)."""
        last = self.calls if last is None else last
        rows = [seq % abi.SITE_RING for seq in range(max(1, last - abi.SITE_RING + 1), last + 1)]
        raw = np.ctypeslib.as_array(
            ctypes.cast(self._host + abi.Page.STAMPS, ctypes.POINTER(ctypes.c_int64)),
            (abi.SITE_RING, abi.STAMP_BYTES // 8),
        )
        return raw[rows, :6]

    def phases(self, last: int | None = None) -> np.ndarray:
        """As `stamps`, one behind the other on the device's stream: operands that have gone before the results of the
        call before were put together are behind that, for as long as they took.
        """
        own = self.stamps(last)
        if self.leader is None or not len(own):
            return own
        before = self.leader.stamps(self.calls if last is None else last)[-len(own) :, 5]
        shift = np.maximum(before - own[-len(before) :, 0], 0)
        own = own[-len(before) :].copy()
        own[:, :2] += shift[:, None]
        return own


class Fetch:
    """Weights of any shape in mapped host memory that a device program takes at every call; `address` is what the FFI
    attribute carries, `nbytes` the bytes of a call.

    `faults`: those of the program (none given: of its own). Raises `RuntimeError` when the driver refuses the memory.
    """

    def __init__(self, relay: Relay, weights: np.ndarray, faults: Faults | None = None):
        relay.collect()
        self.faults = Faults() if faults is None else faults
        self.nbytes = weights.nbytes
        behind = -(-weights.nbytes // 8) * 8  # where the stamps are
        memory = Memory(relay.driver, behind + 16, 0, 2)
        raw = np.ctypeslib.as_array(ctypes.cast(memory.host, ctypes.POINTER(ctypes.c_uint8)), (behind + 16,))
        raw[: weights.nbytes].view(weights.dtype).reshape(weights.shape)[...] = weights
        self._stamps, self._stamped = raw[behind:].view(np.int64), memory.device + behind
        self._stamps[:] = 0
        words: dict[int, int] = {
            abi.Fetch.RELAY: relay.address,
            abi.Fetch.SOURCE: memory.device,
            abi.Fetch.BYTES: weights.nbytes,
            abi.Fetch.BEFORE: memory.events[0],
            abi.Fetch.AFTER: memory.events[1],
            abi.Fetch.FAULTS: self.faults.address,
        }
        self._words = _filled(abi.FETCH_WORDS, words)
        self.address = self._words.ctypes.data
        weakref.finalize(self, relay.retire, self._words, memory, self.faults)

    def trace(self, on: bool) -> None:
        """Whether the copies of the calls from now on leave stamps; two more kernels each."""
        self._words[abi.Fetch.STAMPS // 8] = self._stamped if on else 0

    def stamps(self) -> tuple[int, int]:
        """(began, ended) of the last traced copy in nanoseconds of the device's clock; zeros where none was traced."""
        return int(self._stamps[0]), int(self._stamps[1])


__all__ = ["Fetch", "Merge", "Site", "Window"]
