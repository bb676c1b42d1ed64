"""Where native code finds what: layouts of descriptors, jobs, teams and step parameters (int64 words).

The native side (`team.py`, `drivers.py`) and the side that writes the tables (`segment.py`, `host.py`,
`product.py`, `elementwise.py`) share these numbers; this file needs neither Numba nor LLVM.
"""

from __future__ import annotations

# segment descriptor
STEPS, NSTEPS, ARENA_BYTES, ZERO_BYTES, DATA, ARGS, RETS, THREADS, TEAM, TIMES, CALLS, LIBC, APART, SLOTS = (8 * i for i in range(14))
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
SEQ, OPEN, INSIDE, BUSY, JOB, SLEEPERS, STOP, MUTEX, COND, TEAM_LIBC, SPIN_NS, WORKERS, ALIVE = (64 * i for i in range(13))
TEAM_BYTES = 64 * 15
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

# strip parameters (words): buffers, word of their sources (buffer, offset), word of the rows (one a strip), scratch, its bytes a thread
S_BUFFERS, S_SOURCES, S_ROWS, S_SCRATCH, S_STRIDE, S_WORDS = 0, 1, 2, 3, 5, 6
STRIP_BUFFERS = 64
