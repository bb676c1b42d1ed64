"""Where native code finds what: layouts of descriptors, jobs, teams and step parameters (int64 words).

The native side (`team.py`, `drivers.py`) and the side that writes the tables (`segment.py`, `host.py`,
`product.py`, `elementwise.py`) share these numbers; this file needs neither Numba nor LLVM.
"""

from __future__ import annotations

# segment descriptor
STEPS, NSTEPS, ARENA_BYTES, ZERO_BYTES, DATA, ARGS, RETS, THREADS, TEAM, TIMES, CALLS, LIBC, APART, SLOTS = (
    8 * i for i in range(14)
)
ARENA_SLOTS = 8  # idle arenas kept at SLOTS
DESCRIPTOR_WORDS = 13 + ARENA_SLOTS
RING = 32  # calls whose stamps are kept
# a step
DRIVER, PARAMS, ITEMS = 0, 8, 16
STEP_WORDS = 3
# libc table: (word, C function)
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
MEMALIGN, FREE, CLOCK, YIELD, LOCK, UNLOCK, WAIT, BROADCAST, MESSAGE = (8 * i for i in range(9))
# team (each word on its own cache line)
(
    SEQ,
    OPEN,
    INSIDE,
    BUSY,
    JOB,
    SLEEPERS,
    STOP,
    MUTEX,
    COND,
    TEAM_LIBC,
    SPIN_NS,
    WORKERS,
    ALIVE,
    PENDING,
    TRACE,
    SPARE,
    SPARE_COND,
) = (64 * i for i in range(17))
TEAM_BYTES = 64 * 17
# what each thread did, while somebody wants to know: entries so far, room for; then (segment, step, thread, began,
# ended)
TRACE_NEXT, TRACE_CAPACITY, TRACE_ENTRIES, TRACE_WORDS = 0, 8, 64, 5
# a job: one call in flight, at the head of its arena; then buffers, stamps, counters, data
JOB_DESC, JOB_BUFS, JOB_TIMES, JOB_COUNTERS = 0, 8, 16, 24
JOB_WORDS = 8
COUNTER_BYTES = 128


def arena_data_offset(nsteps: int, nbufs: int) -> int:
    """Bytes before the data of an arena: job, buffer table, stamps, counters (aligned to 64)."""
    words = JOB_WORDS + nbufs + nsteps + 2
    return -(-(8 * words + COUNTER_BYTES * nsteps) // 64) * 64


ROWS = 16  # as gemm.ROWS
MAX_RANK = 6  # loops of a nest
MAX_OPERANDS = 12
OPERAND_ROWS = ROWS * MAX_OPERANDS

# a pixel view: buffer, offset, then byte strides of N, D, H, W
VIEW_WORDS = 6
# gemm parameters (words)
G_PIX, G_OD, G_OH, G_OW, G_TILES, G_EXTRA, G_ROWS, G_CHUNK, G_GROUPS, G_BLOCKS, G_RBLOCKS, G_OPERANDS = range(12)
G_RTABLE, G_BTABLE, G_X, G_XG, G_YG, G_W, G_WG, G_Y, G_VIEWS = 12, 13, 14, 20, 21, 22, 24, 25, 31
G_VIEW = VIEW_WORDS + 2  # an operand's view, its byte step per group and per channel
B_WORDS = 6  # block table row: channel, lanes, weight offset, kernel (big rows), kernel (small rows), vectors
R_WORDS = 4  # reduction table row: tap table word, taps, run, weight offset

# nest parameters (words): kernel, address of the words that the kernel reads itself, then loops and operands
N_KERNEL, N_EXTRA, N_TOTAL, N_CHUNK, N_OPERANDS, N_DIMS, N_VIEWS = 0, 1, 2, 3, 4, 5, 5 + MAX_RANK
NEST_VIEW = 2 + MAX_RANK  # buffer, offset, byte stride of each loop

# strip parameters (words): buffers, word of their sources (buffer, offset), word of the rows (one a strip), scratch,
# its bytes a thread
S_BUFFERS, S_SOURCES, S_ROWS, S_SCRATCH, S_STRIDE, S_WORDS = 0, 1, 2, 3, 5, 6
STRIP_BUFFERS = 64

# the relay: the threads that serve host calls of a device, and what they need (each word on its own cache line).
# `R_SERVER`: number of the thread that is to serve (0: none); `R_CLAIMED`: entries that a thread has begun with;
# `R_CLOSED`: no call is taken any more, and where it is LOST none that is open will ever be ready
R_LOCK, R_HEAD, R_TAIL, R_ENTRIES, R_SLEEPS, R_MUTEX, R_COND, R_SERVER, R_TEAM, R_LIBC, R_SPIN_NS = (
    64 * i for i in range(11)
)
(
    R_LAUNCH,
    R_STREAM,
    R_START4,
    R_START16,
    R_JOIN4,
    R_JOIN16,
    R_BLOCKS,
    R_LIMIT_NS,
    R_CODE,
    R_MESSAGES,
    R_ERRORS,
    R_CLAIMED,
    R_STAMP,
) = (64 * i for i in range(11, 24))
# for copies: the driver's calls, the kernel that waits, the streams beside XLA's (operands out, results in, weights
# in); blocks that may wait
R_COPY, R_COPY2D, R_RECORD, R_FOLLOW, R_AWAIT, R_OUT, R_IN, R_FETCH, R_WAITERS = (64 * i for i in range(24, 33))
R_SYNC, R_CLOSED, R_HELD_NS = (64 * i for i in range(33, 36))
RELAY_BYTES = 64 * 36
LOST = 2
R_CAPACITY = 4096  # host calls that may wait
ENTRY_WORDS = 2  # call site, sequence number
# texts of faults, in this order (see `relay.TEXTS`)
M_DRIVER, M_ORDER, M_HELD, M_CLOSED, M_MEMORY, M_GONE, M_LATE, M_LOST = (8 * i for i in range(8))
# the faults of one device program, which all its sites share: how many, the text of the first, the driver's code,
# whether it may run no more
P_COUNT, P_FIRST, P_CODE, P_FAILED = (8 * i for i in range(4))
PROGRAM_WORDS = 4

# a call site: one host segment inside a device program. `SITE_SKIPPED`: the last call whose operands never came
(
    SITE_DESC,
    SITE_RELAY,
    SITE_SEQ,
    SITE_TAKEN,
    SITE_FLAGS,
    SITE_WORK,
    SITE_BUFS,
    SITE_NBUFS,
    SITE_NIN,
    SITE_INS,
    SITE_NOUT,
    SITE_OUTS,
    SITE_SERVED,
    SITE_COPIES,
    SITE_BEFORE,
    SITE_AFTER,
    SITE_FAULTS,
    SITE_SKIPPED,
) = (8 * i for i in range(18))
SITE_WORDS = 18
IN_MAPPED, IN_OUTER, IN_INNER, IN_STRIDE, IN_OFFSET, IN_WIDE, IN_COPY = (8 * i for i in range(7))
OUT_MAPPED, OUT_OUTER, OUT_HOST, OUT_DEVICE, OUT_WIDE, OUT_COPY = (8 * i for i in range(6))
IN_WORDS = OUT_WORDS = 8
# a fetch site: weights in host memory that a device program takes, the events around the copy, where its begin and end
# are stamped (0: nowhere)
FETCH_RELAY, FETCH_SOURCE, FETCH_BYTES, FETCH_BEFORE, FETCH_AFTER, FETCH_STAMPS, FETCH_FAULTS = (
    8 * i for i in range(7)
)
FETCH_WORDS = 8
# a clock site: where the device writes its clock; on the CPU the first word is the address of clock_gettime
TICK_RELAY, TICK_TARGET, TICK_FAULTS = 0, 8, 16
TICK_CLOCK = TICK_RELAY
TICK_WORDS = 3
# the mapped page of a call site: flags, then stamps of recent calls: start began, ended; join began, asked, left, ended
# (device clock, ns)
FLAG_READY, FLAG_DONE, FLAG_STAMPS = 0, 64, 256
ABANDONED = 1 << 62  # in FLAG_DONE: the host will never answer, and the device stops with an error
STAMP_BYTES, SITE_RING = 64, 32
FLAG_BYTES = FLAG_STAMPS + STAMP_BYTES * SITE_RING
