"""Where native code finds what of a device's host calls: relay, call sites, mapped pages, parameters of device kernels.

As `layout.py`: `calls.py` and `serving.py` share these numbers with `relay.py`, `sites.py` and `clocks.py`.
"""

from __future__ import annotations

import enum
from enum import auto

from .layout import LINE, Lines, Words


class Relay(Lines):
    """The threads that serve host calls of a device, and what they need."""

    LOCK = auto()
    HEAD = auto()  # calls served
    TAIL = auto()  # calls begun
    ENTRIES = auto()  # address of the ring of calls
    SLEEPS = auto()
    MUTEX = auto()
    COND = auto()
    SERVER = auto()  # number of the thread that is to serve (0: none)
    TEAM = auto()
    LIBC = auto()
    SPIN_NS = auto()
    LAUNCH = auto()  # the driver's cuLaunchKernel
    STREAM = auto()  # where to launch (0: on XLA's stream)
    CROSS4 = auto()  # device kernels
    CROSS16 = auto()
    BLOCKS = auto()  # most blocks of a launch
    LIMIT_NS = auto()  # until a device that nobody answers stops
    CODE = auto()  # the driver's last error
    MESSAGES = auto()  # address of the texts
    ERRORS = auto()  # faults of all programs
    CLAIMED = auto()  # calls that a thread has begun with
    STAMP = auto()  # a device kernel
    COPY = auto()  # the driver's calls for copies
    COPY2D = auto()
    RECORD = auto()
    FOLLOW = auto()
    AWAIT = auto()  # the device kernel that waits
    OUT = auto()  # streams beside XLA's: operands out, results in, weights in
    IN = auto()
    FETCH = auto()
    WAITERS = auto()  # most blocks that wait
    SYNC = auto()  # the driver's cuStreamSynchronize
    CLOSED = auto()  # no call is taken any more; where it is LOST, none that is open will ever be ready
    HELD_NS = auto()  # until a site that nobody joins is given up
    STATE_TYPE = auto()  # address of the number of XLA's type of holds on sites


RELAY_BYTES = LINE * len(Relay)
LOST = 2
RELAY_CAPACITY = 4096  # host calls that may wait


class Entry(Words):
    """A call in the ring of a relay."""

    SITE = auto()
    SEQ = auto()


ENTRY_WORDS = len(Entry)


class Text(Words):
    """Texts of faults, in this order (see `faults.TEXTS`)."""

    DRIVER = auto()
    ORDER = auto()
    HELD = auto()
    CLOSED = auto()
    MEMORY = auto()
    GONE = auto()
    LATE = auto()
    LOST = auto()


class Faults(Words):
    """The faults of one device program, which all its sites share."""

    COUNT = auto()
    FIRST = auto()  # the text of the first
    CODE = auto()  # the driver's
    FAILED = auto()  # it may run no more


FAULTS_WORDS = len(Faults)


class Site(Words):
    """A call site: one host segment inside a device program."""

    HOLDS = auto()  # of XLA's executables; the first four words are those of `Fetch` too
    RELAY = auto()
    SEQ = auto()  # number of the last call
    SERVED = auto()  # number of the last call that the host has answered
    SEGMENT = auto()
    TAKEN = auto()
    PAGE = auto()  # address of its mapped page
    WORK = auto()  # device words
    BUFFERS = auto()
    BUFFER_COUNT = auto()
    OPERAND_COUNT = auto()
    OPERANDS = auto()
    RESULT_COUNT = auto()
    RESULTS = auto()
    COPIES = auto()  # operands that copy engines bring
    BEFORE = auto()  # events around copies
    AFTER = auto()
    FAULTS = auto()
    SKIPPED = auto()  # the last call whose operands never came
    KEEPERS = auto()  # sites of the same program whose operands lie in this one's results
    SOURCES = auto()  # addresses of the sites in whose results operands of this one lie
    SOURCE_COUNT = auto()
    LEADER = auto()  # the site with whose results this one's operands go to the host, in one kernel (0: alone)
    FOLLOWER = auto()  # the site whose operands go with this one's results
    DEFERRED = auto()  # its operands wait for that
    JOINED = auto()  # number of the last call that has been joined


SITE_WORDS = len(Site)


class Operand(Words):
    """An operand of a call site, in elements of 4 bytes."""

    MAPPED = auto()
    OUTER = auto()
    INNER = auto()
    STRIDE = auto()
    OFFSET = auto()
    WIDE = auto()  # all of that in whole elements of 16 bytes
    COPY = auto()
    SOURCE = auto()  # where this call's array lies


class Result(Words):
    """A result of a call site, in elements of 4 bytes."""

    MAPPED = auto()
    OUTER = auto()
    HOST = auto()
    DEVICE = auto()
    WIDE = auto()
    COPY = auto()


PART_WORDS = 8  # of an operand's and of a result's row


class Fetch(Words):
    """A fetch site: weights in host memory that a device program takes."""

    HOLDS = auto()
    RELAY = auto()
    SEQ = auto()  # the host answers nothing: 0, as the next one
    SERVED = auto()
    SOURCE = auto()
    BYTES = auto()
    BEFORE = auto()  # events around the copy
    AFTER = auto()
    STAMPS = auto()  # where its begin and end are stamped (0: nowhere)
    FAULTS = auto()


FETCH_WORDS = len(Fetch)


class Tick(Words):
    """A clock site: where a program writes the time."""

    RELAY = auto()
    TARGET = auto()
    FAULTS = auto()
    CLOCK = RELAY  # on the CPU: address of clock_gettime


TICK_WORDS = len(Tick)


class Page(enum.IntEnum):
    """The mapped page of a call site: flags, then stamps of recent calls."""

    READY = 0
    DONE = LINE
    STAMPS = 4 * LINE


class Stamps(Words):
    """When a call's kernels ran (the device's clock, nanoseconds)."""

    START_BEGAN = auto()
    START_ENDED = auto()
    JOIN_BEGAN = auto()
    JOIN_ASKED = auto()
    JOIN_LEFT = auto()
    JOIN_ENDED = auto()


ABANDONED = 1 << 62  # in DONE: the host will never answer, and the device stops with an error
STAMP_BYTES, SITE_RING = LINE, 32
PAGE_BYTES = Page.STAMPS + STAMP_BYTES * SITE_RING


# -- parameters of device kernels, and of the CUDA driver --------------------------------------------


PARTS = 2  # operands, and results, of one launch of the device kernel `cross`


class Sent(Words):
    """Parameters of `cross` for one operand; of none where OUTER is 0."""

    SOURCE = auto()
    MAPPED = auto()
    OUTER = auto()
    INNER = auto()
    STRIDE = auto()
    OFFSET = auto()


class Brought(Words):
    """Parameters of `cross` for one result; of none where OUTER is 0."""

    OUT = auto()
    MAPPED = auto()
    PART = auto()
    OUTER = auto()
    HOST = auto()
    DEVICE = auto()


SENT_BYTES, BROUGHT_BYTES = 8 * len(Sent), 8 * len(Brought)
_ASK = PARTS * SENT_BYTES
_RESULTS = _ASK + 24


class Cross(enum.IntEnum):
    """Parameters of the device kernels `cross`: `PARTS` operands, whose flag they raise, and `PARTS` results, for whose
    flag they wait. Behind them what native code counts while it collects them.
    """

    OPERANDS = 0
    READY_PAGE = _ASK
    READY_WORK = _ASK + 8
    READY_SEQ = _ASK + 16  # 0: no flag is raised
    RESULTS = _RESULTS
    PAGE = _RESULTS + PARTS * BROUGHT_BYTES
    WORK = PAGE + 8
    SEQ = PAGE + 16  # 0: nothing is waited for
    LIMIT_NS = PAGE + 24
    FIRST = PAGE + 32  # whether a site's results begin with these
    SENT = PAGE + 40  # operands that are collected
    BROUGHT = PAGE + 48  # results
    NARROW = PAGE + 56  # some of them have no whole elements of 16 bytes
    ELEMENTS = PAGE + 64


CROSS_PARAMETERS, CROSS_WORDS = Cross.SENT // 8, Cross.ELEMENTS // 8 + 1


class AwaitArgs(Words):
    """Parameters of the device kernel `await`."""

    PAGE = auto()
    WORK = auto()
    SEQ = auto()
    LIMIT_NS = auto()


class Copy2D(enum.IntEnum):
    """CUDA_MEMCPY2D of the CUDA driver's API."""

    SOURCE_TYPE = 16
    SOURCE = 32  # srcDevice
    SOURCE_PITCH = 48
    TARGET_TYPE = 72
    TARGET = 88  # dstDevice
    TARGET_PITCH = 104
    WIDTH = 112  # WidthInBytes
    HEIGHT = 120


COPY2D_WORDS = 16
UNIFIED = 4  # CU_MEMORYTYPE_UNIFIED
