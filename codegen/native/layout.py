"""Where native code finds what: one record of words for each thing that lies in memory shared with it.

The native side (`team.py`, `drivers.py`) and the side that writes the tables (`assembly.py`, `host.py`, `product.py`,
...) share these numbers; this file needs no LLVM. Members are plain integers to both: in native code
`Segment.STEPS` is the constant that it is. `call_layout.py` has what host calls of devices need besides.
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
    COUNTER_COUNT = auto()  # of the steps, and of those inside of loops
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
    ALONE_NS = auto()  # what a call took of late that left parked workers parked (0: there was none)
    WOKEN_NS = auto()  # and one that woke them
    SLOTS = auto()  # idle arenas, from here on


ARENA_SLOTS = 8  # idle arenas kept at SLOTS
DESCRIPTOR_WORDS = len(Segment) - 1 + ARENA_SLOTS
CALL_RING = 32  # calls whose stamps are kept


class Step(Words):
    """A row of a step table."""

    DRIVER = auto()  # address of the native function
    PARAMS = auto()  # address of its parameters
    ITEMS = auto()
    INNER = auto()  # a loop whose steps are the team's: number of the first one's counters (0: any other step)
    EARLY = auto()  # address of what its items read that may be asked for early (0: nothing)
    NEXT = auto()  # number of the next step that has such
    MORE = auto()  # steps of one item behind this one, of one item too: who takes it goes on with them


STEP_WORDS = len(Step)


class Early(Words):
    """What the items of a step read that is there before the step begins: they lie one behind the other, and each is
    read in streams.
    """

    BUFFER = auto()
    OFFSET = auto()
    STRIDE = auto()  # bytes of an item
    BYTES = auto()  # of all items
    STREAMS = auto()
    APART = auto()  # bytes from one stream to the next


class Ahead(Words):
    """What a thread reads next, as `Early` has it, and how far it has asked for that."""

    STEP = auto()  # number of the step that reads it
    NEXT = auto()  # of the one after it
    ITEMS = auto()
    BEGIN = auto()  # address
    STRIDE = auto()
    BYTES = auto()
    STREAMS = auto()
    APART = auto()
    ITEM = auto()
    AT = auto()  # bytes of each stream of the item
    SUM = auto()  # bytes asked for since such a step began


AHEAD_WORDS = len(Ahead)


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
    AHEAD = auto()  # bytes that a thread may ask for before it needs them
    COMING = auto()  # number of the host call of a device that comes next (0: none is known)
    SITE = auto()  # its site
    LOOKING = auto()  # workers that look at it
    ENDED = auto()  # when the last call was over


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
COUNTER_BYTES = 2 * LINE  # what is claimed (of a loop: behind it the turn that ended it), and how many items are over
RANGES = LINE // 8  # of a step's items, each with a count of its own of what is claimed
TAKEN = 16  # offset of the claims of items that have owners, a bit each
MOST_OWNED = 8 * (LINE - TAKEN)  # items of a step that may have owners


def arena_data_offset(nsteps: int, nbufs: int, ncounters: int) -> int:
    """Bytes before the data of an arena: job, buffer table, stamps, counters (aligned to 64)."""
    words = JOB_WORDS + nbufs + nsteps + 2
    return -(-(8 * words + COUNTER_BYTES * ncounters) // 64) * 64


# -- parameters of steps -----------------------------------------------------------------------------

ROWS = 32  # as epilogue.ROWS
MAX_RANK = 6  # loops of a nest
MAX_OPERANDS = 16
OPERAND_ROWS = ROWS * MAX_OPERANDS


class Walk(Numbers):
    """What a call of a product's kernel is told about its tiles."""

    LINES = 0  # rows of the image
    TILES = 1  # of each row
    BEFORE = 2  # tiles before these that read the same weights, of this work item or of neighbouring ones
    STEPS = 3  # of X, of Y and of each operand, from here on: bytes from a row, and from a tile, to the next


WALK_WORDS = Walk.STEPS + 2 * (2 + MAX_OPERANDS)


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
    ELEMENT = 31  # bytes from one element of a run to the next
    PARTS = 32  # of the pixels of a block that are neighbouring items: one, or all
    VIEWS = 33  # the operands', from here on


class Block(Words):
    """A row of a product's block table."""

    CHANNEL = auto()
    LANES = auto()
    WEIGHTS = auto()  # offset
    BIG = auto()  # kernel of tiles with a row more
    SMALL = auto()
    ROW = auto()  # bytes of the weights of one element of the reduction


BLOCK_WORDS = len(Block)


class Reduction(Words):
    """A row of a product's reduction table."""

    TAPS = auto()  # number of the first word of the tap table
    TAP_COUNT = auto()
    RUN = auto()
    FIRST = auto()  # elements of the reduction before it


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


class Loop(Numbers):
    """Parameters of a loop."""

    LENGTH = 0  # turns
    STEPS = 1  # address of the step table of a turn
    STEP_COUNT = 2
    OUTSIDE = 3  # buffers of the table around it, which a turn has too
    BUFFERS = 4  # buffers of a turn's own, behind them
    CHECK = 5  # steps of a turn before its condition is asked (0: there is none)
    FLAG = 6  # buffer and offset of the condition, 4 bytes
    SHARERS = 8  # threads that share the turns' steps; the others wait for the end
    ROWS = 9  # one for each of a turn's own buffers, from here on


class LoopRow(Numbers):
    """Where a buffer of a turn's own lies: buffer and offset among those around the loop."""

    FIRST = 0  # in the first turn
    EVEN = 2  # in other even ones
    ODD = 4
    STRIDE = 6  # bytes from one turn to the next


LOOP_ROW = 7
LOOP_BUFFERS = 4096  # of a turn, those around it included
UNENDING = 1 << 62  # turns of a loop that a condition ends


class StripRow(Words):
    """A strip: its steps; behind them the shift of each buffer."""

    STEPS = auto()
    STEP_COUNT = auto()
    SHIFTS = auto()
