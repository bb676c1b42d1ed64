"""How long the memory of host segments lives: as long as an executable that refers to it, and no longer."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest

import xcoexec
from xcoexec.codegen.native import layout as abi
from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.codegen.segment import descriptor
from xcoexec.codegen.segment.assembly import Segment
from xcoexec.compat import ffi_header
from xcoexec.devices.registry import device_of
from xcoexec.ir.plan import Plan
from xcoexec.lowering import emit

from .standin import StandIn
from .support import array, build_on, error, given_back, oracle, until

pytestmark = pytest.mark.usefixtures("quick_xla")

W, X = array(16, 24), array(4, 16, seed=1)
ROOT = pathlib.Path(__file__).parents[1]
FUNCTIONS, WARM, COLLECT = 300, 40, 20
WINDOWS = 3  # in each of which a leak shows; what threads and heaps of a busy machine take, they take once
GROWTH_BYTES = 4 << 20  # of the process, over all functions after the first ones
_callbacks: list[Any] = []  # a native call may still be on its way out


def _relu(w: Any, x: Any) -> Any:
    return jax.nn.relu(x @ w)


WANT = oracle(_relu, W, X)


class Blocks:
    """Descriptors: made, and freed by whoever gave up the last hold."""

    def __init__(self) -> None:
        self.count = 0
        self.made: set[int] = set()
        self.freed: set[int] = set()

    @property
    def alive(self) -> set[int]:
        gc.collect()
        return self.made - self.freed

    @property
    def known(self) -> set[int]:
        """Those that an object of Python still has."""
        return self.made & {x.address for x in gc.get_objects() if type(x) is Segment}


@contextlib.contextmanager
def _instead(word: int, arguments: int, fn: Callable[..., int]) -> Iterator[None]:
    """While it lasts `fn(the C function, its arguments)` stands in the table of C functions that native code uses."""
    table, kind = host.team().libc, ctypes.CFUNCTYPE(*[ctypes.c_int64] * (arguments + 1))
    good = int(table[word // 8])
    callback = kind(lambda *args: fn(kind(good), *args))
    _callbacks.append(callback)
    table[word // 8] = ctypes.cast(callback, ctypes.c_void_p).value
    try:
        yield
    finally:
        table[word // 8] = good


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocks]:
    gc.collect()  # what other tests left
    seen, allocate = Blocks(), descriptor.allocate

    def noted(nbytes: int) -> int:
        address = allocate(nbytes)
        seen.count += 1
        seen.made.add(address)
        seen.freed.discard(address)
        return address

    def free(real: Callable[[int], int], address: int) -> int:
        seen.freed.add(address)
        return real(address)

    monkeypatch.setattr(descriptor, "allocate", noted)
    with _instead(abi.Libc.FREE, 1, free):
        yield seen


def _resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def _by_jit() -> Any:
    return xcoexec.jit(lambda w, x: _relu(w, x), strategy="host")(W, X)


def _by_bind() -> Any:
    return xcoexec.jit(lambda w, x: _relu(w, x), strategy="host").bind(W)(X)


def _by_plan() -> Any:
    """What every further plan of a function makes: another executable."""
    return build_on(None, _relu, W, X, Plan.uniform(1.0)).call([X])[0]


def made(count: int) -> int:
    """So many functions, each made by `jit` or `bind`, or one more plan of a function; bytes of the process then."""
    ways = [_by_jit, _by_bind, *[_by_plan] * 8]
    for i in range(count):
        assert error(ways[i % len(ways)](), WANT) < 1e-5
        if i % COLLECT == COLLECT - 1:  # when Python would do so by itself is not what is tested
            gc.collect()
    return _resident()


def test_functions_that_are_dropped_leave_nothing(blocks: Blocks) -> None:
    made(COLLECT)
    threads, count = set(threading.enumerate()), blocks.count
    made(WARM)
    until(lambda: not blocks.alive)  # XLA gives a call's hold back after its result
    assert blocks.count >= count + WARM
    assert set(threading.enumerate()) <= threads


_GROWTH = """
import jax
jax.config.update("jax_disable_most_optimizations", True)
from tests import test_lifetime as t
sizes = [t.made(t.WARM), *(t.made(t.FUNCTIONS // t.WINDOWS) for _ in range(t.WINDOWS))]
print(t.WINDOWS * min(b - a for a, b in zip(sizes, sizes[1:])))
"""


def test_functions_that_are_dropped_leave_memory_flat() -> None:
    """In a process of its own: the heap of one that has run other tests grows by what they have left between."""
    command = [sys.executable, "-c", _GROWTH]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < GROWTH_BYTES


def test_an_executable_of_another_function_keeps_the_segment(blocks: Blocks) -> None:
    """The address is in the program of a function that called this one; it is good until that program goes."""
    exe = [build_on(None, _relu, W, X, Plan.uniform(1.0))]
    outer = jax.jit(lambda x: exe[0].call([x])[0] + 1)
    waiting = jax.jit(lambda x: exe[0].call([x])[0] + 2).lower(X)
    outer(X)
    exe.clear()
    assert len(blocks.alive) == 1
    assert error(outer(X) - 1, WANT) < 1e-5
    del outer
    assert len(blocks.alive) == 1
    made = waiting.compile()
    del waiting
    assert len(blocks.alive) == 1
    assert error(made(X) - 2, WANT) < 1e-5
    del made
    until(lambda: not blocks.alive)


def _slowly() -> Any:
    """The operand, while XLA still computes it: a call that takes it returns before it has begun."""
    big = array(1200, 1200)
    return jax.jit(lambda a: X + 0 * (a @ a @ a @ a)[0, 0])(big)


def _freeing_arenas(segment: Segment) -> None:
    swap, free = host.function("swap", 2), ctypes.CDLL(None).free
    for i in range(abi.ARENA_SLOTS):
        free(ctypes.c_void_p(swap(segment.address + abi.Segment.SLOTS + 8 * i, 0)))


def test_a_call_in_flight_keeps_the_segment(blocks: Blocks) -> None:
    """Everything in Python is gone while XLA is inside of the call, on a thread of its own."""
    inside, go_on, mine = threading.Event(), threading.Event(), threading.get_ident()

    def wait(real: Callable[..., int], *args: int) -> int:
        if threading.get_ident() != mine:
            inside.set()
            assert go_on.wait(60)
        return real(*args)

    for _ in range(20):  # XLA calls at once where the operand is there by then: once more
        exe = build_on(None, _relu, W, X, Plan.uniform(1.0))
        exe.call([X])
        _freeing_arenas(exe.lowered.segments[0].segment)  # so that the next call takes memory
        with _instead(abi.Libc.MEMALIGN, 3, wait):
            result = exe.call([_slowly()])[0]
            del exe
            jax.clear_caches()
            while not inside.wait(0.01) and not result.is_ready():
                pass
            if inside.is_set():
                assert len(blocks.alive) == 1 and not blocks.known
                go_on.set()
        assert error(result, WANT) < 1e-5
        if inside.is_set():
            break
    assert inside.is_set()
    until(lambda: not blocks.alive)


def test_plans_on_a_device_leave_nothing(blocks: Blocks) -> None:
    """A call site goes when nothing of it is in flight, and its segment with it."""
    relay = Relay(StandIn())
    for _ in range(10):
        assert error(build_on(relay, _relu, W, X, Plan.uniform(0.5)).call([X])[0], WANT) < 1e-5
    gc.collect()
    given_back(relay)
    relay.stop()
    assert blocks.count == 10 and not blocks.alive


def test_a_segment_that_no_executable_can_hold_lives_to_the_end(
    blocks: Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where jaxlib's API takes states in another way, segments that a program may call are never freed."""
    emit.register(device_of(None))  # for the other tests of this process too
    monkeypatch.setattr(emit, "ffi_header", lambda: "struct XLA_FFI_State_Set_Args { size_t struct_size; };")
    monkeypatch.setattr(emit, "_for_good", [])
    _by_plan()
    assert len(blocks.alive) == 1
    monkeypatch.undo()
    assert host.holds(ffi_header())


def test_plannings_leave_no_arrays_behind() -> None:
    """A step that gives its cache away: however often it is planned again, weights are packed once for each placement,
    and nobody but the caller holds a cache.
    """
    w, cache, x = array(61, 61), array(509, 61, seed=1), array(4, 61, seed=2)

    def step(w: Any, cache: Any, x: Any) -> Any:
        y = jax.nn.relu(x @ w)
        return y, jax.lax.dynamic_update_slice(cache, y, (0, 0))

    def held() -> tuple[int, int]:
        """Bytes of all arrays, and how many caches are among them."""
        gc.collect()
        arrays = jax.live_arrays()
        return sum(a.nbytes for a in arrays), sum(a.shape == (509, 61) for a in arrays)

    fast = xcoexec.jit(step, strategy="host", strict=True, wait=True, donate_argnums=1, threads=2).bind(w)
    y, cache = fast(cache, x)
    session, before = fast.session(), held()
    assert before[1] == 1
    for _ in range(3):
        session.monitor.swap(session._again(), 0.0, False)
        y, cache = fast(cache, x)
    assert session.history and not session.monitor.past
    assert held() == before
    assert error(y, oracle(lambda w, x: jax.nn.relu(x @ w), w, x)) < 1e-5
