"""Where native code finds what: one record of words for each thing that lies in memory shared with it.

The native side (`team.py`, `drivers.py`, `calls.py`, `serving.py`) and the side that writes the tables (`assembly.py`,
`host.py`, `relay.py`, `product.py`, ...) share these numbers; this file needs neither Numba nor LLVM. Members are plain
integers to both: Numba freezes `Relay.SERVER` as the constant that it is.
"""

from __future__ import annotations

import enum
from enum import auto


class Words(enum.IntEnum):
    """Byte offsets of int64 words that follow each other."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return 8 * count


class Lines(enum.IntEnum):
    """Byte offsets of int64 words, each on a cache line of its own."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return LINE * count


class Numbers(enum.IntEnum):
    """Numbers of int64 words in a step's parameters, where others of a length of their own lie in between."""


LINE = 64

# -- segments, steps and teams -----------------------------------------------------------------------


class Segment(Words):
    """The descriptor of a segment."""

    STEPS = auto()  # address of the step table
    STEP_COUNT = auto()
    ARENA_BYTES = auto()
    ZERO_BYTES = auto()  # of the arena's data, cleared once
    DATA = auto()  # offset of the arena's data
    ARGUMENTS = auto()  # how many
    RESULTS = auto()
    THREADS = auto()
    TEAM = auto()
    TIMES = auto()  # address of the stamps of recent calls
    CALLS = auto()
    LIBC = auto()
    APART = auto()  # the calling thread leaves the work to the team
    HOLDS = auto()  # Python's and those of XLA's executables; who gives up the last one frees the descriptor
    STATE_TYPE = auto()  # address of the number of XLA's type of such holds
    SLOTS = auto()  # idle arenas, from here on


ARENA_SLOTS = 8  # idle arenas kept at SLOTS
DESCRIPTOR_WORDS = len(Segment) - 1 + ARENA_SLOTS
CALL_RING = 32  # calls whose stamps are kept


class Step(Words):
    """A row of a step table."""

    DRIVER = auto()  # address of the native function
    PARAMS = auto()  # address of its parameters
    ITEMS = auto()


STEP_WORDS = len(Step)


class Libc(Words):
    """Addresses of functions of the C library, and of a text."""

    MEMALIGN = auto()
    FREE = auto()
    CLOCK = auto()
    YIELD = auto()
    LOCK = auto()
    UNLOCK = auto()
    WAIT = auto()
    BROADCAST = auto()
    MESSAGE = auto()  # what is said when memory is out


#: the C functions of the words above, in their order
LIBC_NAMES = (
    "posix_memalign",
    "free",
    "clock_gettime",
    "sched_yield",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
)


class Team(Lines):
    """The worker threads and the call that they help with."""

    SEQ = auto()  # number of the last call
    OPEN = auto()  # number of the call that may be joined
    INSIDE = auto()  # workers in it
    BUSY = auto()
    JOB = auto()
    SLEEPERS = auto()  # workers that are parked
    STOP = auto()
    MUTEX = auto()
    COND = auto()
    LIBC = auto()
    SPIN_NS = auto()
    WORKERS = auto()  # that the last call has a use for
    ALIVE = auto()
    PENDING = auto()  # host calls of devices that are announced
    TRACE = auto()  # address of a trace (0: nobody wants to know)
    SPARE = auto()  # parked workers beyond WORKERS
    SPARE_COND = auto()


TEAM_BYTES = LINE * len(Team)


class Trace(enum.IntEnum):
    """What each thread did, while somebody wants to know."""

    NEXT = 0  # entries so far
    CAPACITY = 8
    ENTRIES = LINE  # from here on


class Traced(Words):
    """An entry of a trace."""

    SEGMENT = auto()
    STEP = auto()
    THREAD = auto()
    BEGAN = auto()
    ENDED = auto()


TRACED_WORDS = len(Traced)


class Job(Words):
    """One call in flight, at the head of its arena; behind it buffers, stamps, counters, data."""

    SEGMENT = auto()
    BUFFERS = auto()
    TIMES = auto()
    COUNTERS = auto()


JOB_WORDS = 8
COUNTER_BYTES = 2 * LINE


def arena_data_offset(nsteps: int, nbufs: int) -> int:
    """Bytes before the data of an arena: job, buffer table, stamps, counters (aligned to 64)."""
    words = JOB_WORDS + nbufs + nsteps + 2
    return -(-(8 * words + COUNTER_BYTES * nsteps) // 64) * 64


# -- parameters of steps -----------------------------------------------------------------------------

ROWS = 16  # as gemm.ROWS
MAX_RANK = 6  # loops of a nest
MAX_OPERANDS = 12
OPERAND_ROWS = ROWS * MAX_OPERANDS


class View(Numbers):
    """Pixels of an operand; an operand of the epilogue has steps besides."""

    BUFFER = 0
    OFFSET = 1
    N = 2  # byte strides
    D = 3
    H = 4
    W = 5
    GROUP = 6  # byte steps per group and per channel
    CHANNEL = 7


VIEW_WORDS = 6
OPERAND_WORDS = len(View)


class Gemm(Numbers):
    """Parameters of a matrix product over pixels."""

    PIXELS = 0
    OD = 1
    OH = 2
    OW = 3
    TILES = 4
    EXTRA = 5  # tiles that have a row more
    ROWS = 6
    CHUNK = 7  # tiles of an item
    GROUPS = 8
    BLOCKS = 9
    REDUCTIONS = 10  # rows of the reduction table
    OPERANDS = 11
    REDUCTION_TABLE = 12  # number of its first word
    BLOCK_TABLE = 13
    X = 14  # a view
    X_GROUP = 20  # byte steps per group
    Y_GROUP = 21
    WEIGHTS = 22  # buffer and offset
    WEIGHT_GROUP = 24
    Y = 25  # a view
    VIEWS = 31  # the operands', from here on


class Block(Words):
    """A row of a product's block table."""

    CHANNEL = auto()
    LANES = auto()
    WEIGHTS = auto()  # offset
    BIG = auto()  # kernel of tiles with a row more
    SMALL = auto()
    VECTORS = auto()


BLOCK_WORDS = len(Block)


class Reduction(Words):
    """A row of a product's reduction table."""

    TAPS = auto()  # number of the first word of the tap table
    TAP_COUNT = auto()
    RUN = auto()
    WEIGHTS = auto()  # offset


REDUCTION_WORDS = len(Reduction)


class Nest(Numbers):
    """Parameters of a loop nest around one kernel."""

    KERNEL = 0
    EXTRA = 1  # number of the words that the kernel reads itself
    TOTAL = 2  # iterations
    CHUNK = 3  # of an item
    OPERANDS = 4
    DIMS = 5  # loops, from here on
    VIEWS = 5 + MAX_RANK  # operands, from here on


NEST_VIEW = 2 + MAX_RANK  # buffer, offset, byte stride of each loop


class Strip(Numbers):
    """Parameters of a group of layers that is computed strip by strip."""

    BUFFERS = 0  # how many
    SOURCES = 1  # number of their first word: (buffer, offset) each
    ROWS = 2  # number of the first word of the rows, one a strip
    SCRATCH = 3  # buffer and offset
    STRIDE = 5  # bytes of scratch memory a thread


STRIP_WORDS = 6
STRIP_BUFFERS = 64


class StripRow(Words):
    """A strip: its steps; behind them the shift of each buffer."""

    STEPS = auto()
    STEP_COUNT = auto()
    SHIFTS = auto()


# -- host calls of devices ---------------------------------------------------------------------------


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
    START4 = auto()  # device kernels
    START16 = auto()
    JOIN4 = auto()
    JOIN16 = auto()
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


RELAY_BYTES = LINE * len(Relay)
LOST = 2
RELAY_CAPACITY = 4096  # host calls that may wait


class Entry(Words):
    """A call in the ring of a relay."""

    SITE = auto()
    SEQ = auto()


ENTRY_WORDS = len(Entry)


class Text(Words):
    """Texts of faults, in this order (see `relay.TEXTS`)."""

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

    SEGMENT = auto()
    RELAY = auto()
    SEQ = auto()  # number of the last call
    TAKEN = auto()
    PAGE = auto()  # address of its mapped page
    WORK = auto()  # device words
    BUFFERS = auto()
    BUFFER_COUNT = auto()
    OPERAND_COUNT = auto()
    OPERANDS = auto()
    RESULT_COUNT = auto()
    RESULTS = auto()
    SERVED = auto()  # number of the last call that the host has answered
    COPIES = auto()  # operands that copy engines bring
    BEFORE = auto()  # events around copies
    AFTER = auto()
    FAULTS = auto()
    SKIPPED = auto()  # the last call whose operands never came


SITE_WORDS = len(Site)


class Operand(Words):
    """An operand of a call site, in elements."""

    MAPPED = auto()
    OUTER = auto()
    INNER = auto()
    STRIDE = auto()
    OFFSET = auto()
    WIDE = auto()  # elements of 16 bytes, not 4
    COPY = auto()


class Result(Words):
    """A result of a call site, in elements."""

    MAPPED = auto()
    OUTER = auto()
    HOST = auto()
    DEVICE = auto()
    WIDE = auto()
    COPY = auto()


PART_WORDS = 8  # of an operand's and of a result's row


class Fetch(Words):
    """A fetch site: weights in host memory that a device program takes."""

    RELAY = auto()
    SOURCE = auto()
    BYTES = auto()
    BEFORE = auto()  # events around the copy
    AFTER = auto()
    STAMPS = auto()  # where its begin and end are stamped (0: nowhere)
    FAULTS = auto()


FETCH_WORDS = 8


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


class StartArgs(Words):
    """Parameters of the device kernels `start`."""

    SOURCE = auto()
    MAPPED = auto()
    OUTER = auto()
    INNER = auto()
    STRIDE = auto()
    OFFSET = auto()
    PAGE = auto()
    WORK = auto()
    SEQ = auto()


class JoinArgs(Words):
    """Parameters of the device kernels `join`."""

    OUT = auto()
    MAPPED = auto()
    PART = auto()
    OUTER = auto()
    HOST = auto()
    DEVICE = auto()
    PAGE = auto()
    WORK = auto()
    SEQ = auto()
    LIMIT_NS = auto()


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
