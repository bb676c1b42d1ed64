"""The native runtime of this process: the team of threads, the libc table, the handler."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NotRequired, TypedDict

import numpy as np

from ..kernels.elementwise import convert, rounded
from ..kernels.families import lower_group
from ..kernels.stored import lower_stored
from ..kernels.winograd import spare
from ..native import layout as abi
from ..native.build import CALLS, NATIVE, native_address, start_native
from ..native.frame import call_frame, sets_state, type_info
from ..program import Group, Program, Unsupported, Value, external, kind
from ..rules.convolution import convolution
from ..rules.primitives import is_anchor
from ..segment.assembly import Segment, compile_segment
from ..segment.choice import default, measured
from ..segment.context import Context, Groups, Pick, Rules
from ..segment.cuts import Cut
from ..segment.descriptor import Runtime
from ..segment.items import NAMES as ITEMS
from ..segment.items import by_item
from ..segment.patterns import fused
from ..segment.steps import Step
from ..target import SECOND_CACHE, Target, cache_bytes
from ..target import target as host_target

SPIN_SECONDS = 50e-6
USUAL_CACHE = 1 << 20  # bytes of a second cache, where the system does not tell
MAX_WORKERS = 255
GROWN = 4  # weights that Winograd's larger tiles transform become so many times as large
TRACED = 1 << 14  # entries of a trace: 64 threads in 256 steps


_libc = ctypes.CDLL(None)


def libc(name: str) -> int:
    """Address of a function of the C library. Raises `AttributeError` for a name that it lacks."""
    address = ctypes.cast(getattr(_libc, name), ctypes.c_void_p).value
    assert address is not None
    return address


def function(name: str, arguments: int, module: str = "team") -> Callable[..., int]:
    """A native function of so many int64, callable from Python (the GIL is released meanwhile).

    Raises what `native_address` raises.
    """
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arguments)(native_address(module, name, host_target()))


def wake(mutex: int, cond: int) -> None:
    """Wakes every thread that is parked on a condition (addresses)."""
    _libc.pthread_mutex_lock(ctypes.c_void_p(mutex))
    _libc.pthread_cond_broadcast(ctypes.c_void_p(cond))
    _libc.pthread_mutex_unlock(ctypes.c_void_p(mutex))


def second_cache() -> int:
    """Bytes of a core's second cache; a common size where the system does not tell."""
    return cache_bytes(SECOND_CACHE) or USUAL_CACHE


class Team:
    """Worker threads that help with every call; they spin for `SPIN_SECONDS` after one, or longer behind a long one,
    then park.

    Threads are made when a segment first wants them. A forked child starts without any and makes its own.
    With `cpus` every worker is pinned to one of these cores, and the calling thread does none of the work.
    """

    def __init__(self, cpus: tuple[int, ...] = ()) -> None:
        self.cpus = cpus
        self._memory = np.zeros(abi.TEAM_BYTES + 64, np.uint8)
        self.address = -(-self._memory.ctypes.data // 64) * 64
        self._message = ctypes.create_string_buffer(b"xcoexec: no memory left for the intermediates of a host segment")
        self.libc = np.array([*(libc(n) for n in abi.LIBC_NAMES), ctypes.addressof(self._message)], np.int64)
        self._locks = np.zeros(768, np.uint8)
        self._lock, self._tracing = threading.Lock(), threading.Lock()
        self._trace: np.ndarray | None = None
        self.reset()

    def reset(self) -> None:
        """The state of a team without threads (also of a forked child, where no thread is left)."""
        self._memory[:] = self._locks[:] = 0
        c = _libc
        c.pthread_mutex_init(ctypes.c_void_p(self._word(abi.Team.MUTEX, self._locks.ctypes.data)), None)
        for i, cond in enumerate((abi.Team.COND, abi.Team.SPARE_COND), 1):
            c.pthread_cond_init(ctypes.c_void_p(self._word(cond, self._locks.ctypes.data + 256 * i)), None)
        self._word(abi.Team.LIBC, self.libc.ctypes.data)
        self._word(abi.Team.SPIN_NS, int(SPIN_SECONDS * 1e9))
        self._word(abi.Team.AHEAD, second_cache() // 2)
        self._threads: list[threading.Thread] = []

    def _word(self, at: int, value: int) -> int:
        ctypes.c_int64.from_address(self.address + at).value = value
        return value

    def spin(self, seconds: float) -> None:
        """Sets for how many seconds workers spin before they park."""
        self._word(abi.Team.SPIN_NS, int(seconds * 1e9))

    def want(self, threads: int) -> None:
        """Workers for calls of so many threads; without `cpus` the caller is one of them."""
        with self._lock:
            while len(self._threads) < min(threads if self.cpus else threads - 1, MAX_WORKERS):
                counted = threading.Event()
                threading.Thread(target=self._live, args=(counted,), daemon=True).start()
                counted.wait()
            self._word(abi.Team.ALIVE, len(self._threads))

    def _live(self, counted: threading.Event) -> None:
        """A worker counts itself: an interrupt of whoever starts it must not lead to two of one number, which would
        share their part of a call's memory."""
        me = threading.current_thread()
        self._threads.append(me)
        index = self._threads.index(me)
        me.name = f"xcoexec-{index}"
        counted.set()
        if self.cpus:
            os.sched_setaffinity(0, {self.cpus[index % len(self.cpus)]})
        with contextlib.suppress(InterruptedError):  # the interpreter ends before there is native code to run
            function("worker", 2)(self.address, index)

    @contextlib.contextmanager
    def traced(self) -> Iterator[Callable[[], np.ndarray]]:
        """While it lasts every thread notes its work; gives a function that returns it, [entries, 5] int64: address of
        the segment, step, thread (0: who called), began, ended in nanoseconds. One at a time.
        """
        with self._tracing:
            if self._trace is None:  # kept for good: a thread may still write into it
                self._trace = np.zeros(abi.Trace.ENTRIES // 8 + abi.TRACED_WORDS * TRACED, np.int64)
            self._trace[:] = 0
            self._trace[abi.Trace.CAPACITY // 8] = TRACED
            self._word(abi.Team.TRACE, self._trace.ctypes.data)
            try:
                yield self._traced
            finally:
                self._word(abi.Team.TRACE, 0)

    def _traced(self) -> np.ndarray:
        assert self._trace is not None
        count = min(int(self._trace[abi.Trace.NEXT // 8]), TRACED)
        rows = self._trace[abi.Trace.ENTRIES // 8 :].reshape(-1, abi.TRACED_WORDS)[:count].copy()
        return np.asarray(rows[rows[:, 4] > 0])

    def stop(self) -> None:
        """Ends the threads; a call that still comes runs on its own thread."""
        with self._lock:
            self._word(abi.Team.ALIVE, 0)
            self._word(abi.Team.STOP, 1)
            for cond in (abi.Team.COND, abi.Team.SPARE_COND):
                wake(*(ctypes.c_int64.from_address(self.address + w).value for w in (abi.Team.MUTEX, cond)))
            for t in self._threads:
                t.join(timeout=1.0)


def team(cpus: tuple[int, ...] = ()) -> Team:
    """The process's team; with `cpus` the one that is pinned to these cores."""
    return _team(cpus)


@functools.lru_cache(maxsize=64)
def _team(cpus: tuple[int, ...]) -> Team:
    t = Team(cpus)
    atexit.register(t.stop)
    os.register_at_fork(after_in_child=t.reset)
    return t


@functools.lru_cache(maxsize=64)
def runtime(cpus: tuple[int, ...]) -> Runtime:
    """Native addresses for segments that `team(cpus)` runs."""
    t = team(cpus)
    names = ("gemm", "nest", "strips", "loop")
    table = {name: native_address("drivers", f"{name}_driver", host_target()) for name in names}
    return Runtime(table, t.libc.ctypes.data, t.address, bool(cpus), function("release", 1), _hold_number.ctypes.data)


def build(
    program: Program,
    threads: int,
    target: Target | None = None,
    cpus: tuple[int, ...] = (),
    pick: Pick | None = None,
    cut: Cut | None = None,
    as_stored: bool = False,
) -> Segment:
    """A segment of `program` for `threads` threads.

    `cpus`: the cores that may be used (none given: the caller's thread and the process's team). `pick` chooses among
    algorithms (none given: by measurement). `cut` takes a range of a group's result (none given: no layers are fused).
    `as_stored`: arguments and results come and go in their own types.
    Raises `Unsupported` for what kernels cannot express, `MemoryError` when there is none for the segment.
    """
    if threads > 1 or cpus:
        team(cpus).want(threads)
    chosen = target or host_target()
    pick = pick or functools.partial(measured, functools.partial(_alone, cpus, cut), chosen)
    rules = Rules(lower_group, _together, spare, pick, cut, convert if as_stored else None, rounded)
    return compile_segment(program, chosen, threads, runtime(cpus), rules)


def _together(ctx: Context, at: int) -> int:
    """Appends one step for several groups from number `at` on, where that is faster; returns how many (0: none)."""
    return (by_item(ctx, at) or fused(ctx, at)) if ctx.rules.cut is not None else 0


def build_stored(program: Program, threads: int) -> Segment:
    """A segment of an elementwise program over flat arrays as they are stored (see `kernels.stored`), for so many
    threads of the process's team. Its calls take bf16 arrays, and results may lie where operands of their size do.
    Raises as `build`.
    """
    team().want(threads)
    rules = Rules(lower_stored, lambda ctx, i: 0, spare, default, None)
    return compile_segment(program, host_target(), threads, runtime(()), rules)


def give_freed_back() -> None:
    """Has the C library give the system what is freed, where it can: large arrays of a planning that are made and
    freed among small ones stay with the process otherwise.
    """
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


def give_idle_back(segment: Segment) -> None:
    """Frees the memory of a segment's intermediates that no call uses now; its next call takes some anew."""
    swap, free = function("swap", 2), ctypes.CDLL(None).free
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    for i in range(abi.ARENA_SLOTS):
        idle = swap(segment.address + abi.Segment.SLOTS + 8 * i, 0)
        if idle:
            free(idle)


def _alone(
    cpus: tuple[int, ...], cut: Cut | None, groups: Groups, how: str, threads: int, target: Target
) -> tuple[Callable[[], object], int]:
    """A call of some groups by one algorithm, on made data, and the bytes of its packed weights (of those that arrive:
    as many as they become where they are packed at the call) and of what is between the groups.
    """
    ops = tuple(op for group, _ in groups for op in group.ops)
    consts = {v for _, known in groups for v in known}
    inputs = tuple(v for v in external(ops) if v not in consts)
    program = Program(
        inputs,
        tuple(v for v in external(ops) if v in consts),
        tuple(group for group, _ in groups),
        groups[-1][0].outs,
    )
    pick = functools.partial(measured, functools.partial(_alone, cpus, cut), target) if how in ITEMS else default
    chosen = lambda g, names, t: how if how in names else pick(g, names, t)
    segment = build(program, threads, target, cpus, chosen, cut)
    args = [np.full(v.shape, 0.5, np.float32) if kind(v.dtype) != "i" else np.zeros(v.shape, np.int32) for v in inputs]
    raw = [
        np.full(v.shape, 1e-3, np.float32) if v.dtype == "float32" else np.zeros(v.shape, v.dtype) for v in segment.raw
    ]
    if any(op.body is not None for op in ops):  # how often a loop turns is up to its literals, which are packed
        blob = segment.pack({v: np.full(v.shape, 1e-3 if kind(v.dtype) != "i" else 0, np.float32) for v in consts})
    else:
        blob = np.full(max(segment.blob_bytes, 64) // 4, 1e-3, np.float32)
    arriving = {v for op in ops if convolution(op) is not None for v in op.value_ins[1:] if v not in consts}
    between = sum(4 * group.out.size for group, _ in groups[:-1])
    nbytes = segment.blob_bytes + GROWN * sum(v.nbytes for v in arriving) + between
    return Call.on(segment, [*args, *raw, blob]), nbytes


def prefetch(calls: bool = False) -> None:
    """Begins to compile what every segment needs, in the background; with `calls` also what device programs need."""
    for specs in (NATIVE, CALLS)[: 1 + calls]:
        start_native(host_target(), specs)


def _capsule(address: int) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)


def handler_capsule(module: str = "team", name: str = "handler") -> object:
    """An XLA FFI handler as the capsule that `jax.ffi.register_ffi_target` takes.

    Raises what `native_address` raises.
    """
    return _capsule(native_address(module, name, host_target()))


_hold_number = np.zeros(1, np.int64)  # of the type below; XLA gives it when the type is registered


@functools.lru_cache
def site_number(device: str) -> np.ndarray:
    """[1] int64: the number of the type of holds on sites of a kind of device (its name), which XLA gives when the
    type is registered; 0 before.
    """
    return np.zeros(1, np.int64)


@functools.lru_cache
def _hold_info(module: str, name: str) -> np.ndarray:
    return type_info(native_address(module, name, host_target()))


def holds(header: str) -> bool:
    """Whether XLA's executables can hold the segments and sites that they call, by the text of the header of XLA's C
    API.
    """
    return sets_state(header)


class HoldType(TypedDict):
    """As `jax.ffi.register_ffi_type` has it: capsules."""

    type_id: object
    type_info: NotRequired[object]


def hold_type() -> HoldType:
    """The type of an executable's hold on a segment, as `jax.ffi.register_ffi_type` takes it."""
    return _hold_type(_hold_number, "team", "release")


def site_hold_type(device: str) -> HoldType:
    """The type of an executable's hold on a site of a kind of device (its name), as `jax.ffi.register_ffi_type` takes
    it.
    """
    return _hold_type(site_number(device), "calls", "leave")


def _hold_type(number: np.ndarray, module: str, name: str) -> HoldType:
    return {"type_id": _capsule(number.ctypes.data), "type_info": _capsule(_hold_info(module, name).ctypes.data)}


def unsupported(group: Group, consts: Sequence[Value]) -> str:
    """Why kernels cannot run a group of operations ("" when they can)."""
    if len(group.result.outs) != 1 and not is_anchor(group.result):
        return "its operations have several results"
    if any(0 in v.shape for v in (*external(group.ops), *(v for op in group.ops for v in op.outs))):
        return "an array without elements"
    try:
        steps(group, set(consts), 1, inside=False)
    except Unsupported as e:
        return str(e)
    return ""


def steps(
    group: Group, consts: Collection[Value], threads: int, pick: Pick = default, inside: bool = True
) -> tuple[Step, ...]:
    """The steps of a group; nothing is compiled. Raises `Unsupported` for what kernels cannot express.

    `inside`: as it is in a network, where operands are made with the border that it needs or in their part of a
    concatenation, and a result in another shape is no work.
    """
    outside = external(group.ops)
    inputs = tuple(v for v in outside if v not in consts)
    program = Program(inputs, tuple(v for v in outside if v in consts), (group,), () if inside else group.outs)
    ctx = Context(program, host_target(), threads, Rules(lower_group, _together, spare, pick, None))
    if inside:
        ctx.made(inputs)
    lower_group(ctx, group)
    return tuple(ctx.steps)


def _unwritten(v: Value, as_stored: bool) -> np.ndarray:
    if as_stored:
        return np.full(v.shape, -1, v.dtype)
    return np.full(v.shape, -1, np.int32) if kind(v.dtype) == "i" else np.full(v.shape, np.nan, np.float32)


class Call:
    """A segment with its buffers, called without XLA: for tests and measurements.

    `inputs` and `consts` are f32 (or s32) NumPy arrays of the program's shapes, in the order of its inputs and
    constants; inputs that the segment takes as they are stored are of their own type. A call returns the results in the
    order of its outputs: the same arrays every time. Raises `ValueError` for another number of constants.
    """

    def __init__(self, segment: Segment, inputs: Sequence[np.ndarray], consts: Sequence[np.ndarray]):
        known = dict(zip(segment.program.consts, consts, strict=True))
        raw = [np.ascontiguousarray(known[v]) for v in segment.raw]
        self._prepare(segment, [*(np.ascontiguousarray(x) for x in inputs), *raw, segment.pack(known)], None)

    @classmethod
    def on(cls, segment: Segment, args: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Call:
        """A call with its arguments as the segment takes them (inputs, raw constants, the packed blob), C-contiguous.

        `outputs`: arrays of the outputs' shapes where results go (none given: arrays of the call's own).
        """
        call = object.__new__(cls)
        call._prepare(segment, args, outputs)
        return call

    def _prepare(self, segment: Segment, args: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None) -> None:
        self.segment = segment
        new = (_unwritten(v, v in segment.as_stored) for v in segment.program.outputs)
        self.outputs = [*(outputs if outputs is not None else new)]
        self._keep: list[np.ndarray] = [*args]
        given, made = ([a.ctypes.data for a in arrays] for arrays in (args, self.outputs))
        self._frame, keep = call_frame(given, made, segment.address)
        self._keep += keep
        self._handler = function("handler", 1)

    def __call__(self) -> list[np.ndarray]:
        self._handler(self._frame)
        return self.outputs
