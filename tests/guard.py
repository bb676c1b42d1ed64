"""Kernels between inaccessible pages: every segment whose weights are packed runs again with all its memory guarded.

    python -m tests.guard [pytest's arguments]       (none: all kernel families and odd sizes)

As a pytest plugin it runs each segment on every instruction set that this CPU has, by every algorithm that its groups
can choose, on one thread and on two. Every input, constant, packed blob, result and temporary lies at the end (or the
beginning) of pages of its own, with an inaccessible page behind (or before) it; what is left of its pages holds a
pattern. Temporaries and results begin as NaN. A read or write beyond an array ends the worker, which pytest-xdist
reports with the test's name and replaces; a pattern that is not as it was, an input that was written or another result
than the plain segment's fails the test.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import math
import mmap
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest

PAGE = mmap.PAGESIZE
POISON = 0x7FC0A5A5  # a NaN
SIDES = ("end", "start")
HOW = ("direct", "winograd4", "winograd2", "strips")
FILES = ("tests/test_ops.py", "tests/test_algorithms.py")
LOG = "XCOEXEC_GUARD_LOG"  # folder for what each worker does at the moment
Consts = Mapping[Any, np.ndarray]
Holes = list[tuple[int, int]]  # (offset, bytes) of pages

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def pages(nbytes: int) -> int:
    """Bytes of the pages that hold `nbytes`, one at least."""
    return max(1, -(-nbytes // PAGE)) * PAGE


class Memory:
    """Pages full of `POISON` between two inaccessible ones; holes among them are inaccessible once they are `shut`."""

    def __init__(self, nbytes: int):
        self.size = pages(nbytes)
        self._base = _libc.mmap(None, self.size + 2 * PAGE, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if self._base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"mmap of {self.size} bytes: error {ctypes.get_errno()}")
        self.address = self._base + PAGE
        for at in (self._base, self.address + self.size):
            self._protect(at, PAGE)
        self.words = self.view(0, self.size, np.uint32)
        self.words[:] = POISON

    def _protect(self, at: int, nbytes: int) -> None:
        if _libc.mprotect(at, nbytes, 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def shut(self, holes: Holes) -> None:
        for at, nbytes in holes:
            self._protect(self.address + at, nbytes)

    def view(self, at: int, nbytes: int, dtype: Any) -> np.ndarray:
        memory = (ctypes.c_char * nbytes).from_address(self.address + at)
        return np.frombuffer(memory, dtype)

    def intact(self, at: int, nbytes: int) -> bool:
        """Whether bytes still hold the pattern."""
        want = np.full(self.size // 4, POISON, np.uint32).view(np.uint8)[at % 4 : at % 4 + nbytes]
        return bool((self.view(at, nbytes, np.uint8) == want).all())

    def close(self) -> None:
        _libc.munmap(self._base, self.size + 2 * PAGE)


class Array:
    """An array at one side of pages of its own."""

    def __init__(self, like: np.ndarray, side: str):
        self.memory, self.like = Memory(like.nbytes), like
        self.at = self.memory.size - like.nbytes if side == "end" else 0
        self.array = self.memory.view(self.at, like.nbytes, np.uint8).view(like.dtype).reshape(like.shape)
        self.array[...] = like

    def problems(self, name: str, constant: bool) -> Iterator[str]:
        end = self.at + self.like.nbytes
        if not (self.memory.intact(0, self.at) and self.memory.intact(end, self.memory.size - end)):
            yield f"what lies beside {name} was written"
        if constant and self.array.tobytes() != self.like.tobytes():
            yield f"{name} was written"


# -- temporaries -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Layout:
    """Temporaries on pages of their own: (offset, bytes, geometry) of each, in `nbytes`."""

    parts: tuple[tuple[int, int, Any], ...]
    nbytes: int

    @property
    def covered(self) -> list[tuple[int, int]]:
        """(first, end) of the pages of each part, in order."""
        return sorted((at // PAGE * PAGE, at // PAGE * PAGE + pages(at % PAGE + n)) for at, n, _ in self.parts)

    @property
    def holes(self) -> Holes:
        edges = [(0, 0), *self.covered, (self.nbytes, self.nbytes)]
        return [(a, b - a) for (_, a), (b, _) in itertools.pairwise(edges) if b > a]

    def slack(self) -> Iterator[tuple[int, int]]:
        """(offset, bytes) of what is left of the pages."""
        for at, n, _ in self.parts:
            first, end = at // PAGE * PAGE, at // PAGE * PAGE + pages(at % PAGE + n)
            yield from ((first, at - first), (at + n, end - at - n))


def apart(side: str) -> Callable[[Iterable[Any]], tuple[dict[Any, int], int, int]]:
    """As `storage.place`: every temporary on pages of its own between holes; nothing has to be cleared."""

    def place(lifetimes: Iterable[Any]) -> tuple[dict[Any, int], int, int]:
        offsets, top = {}, PAGE
        for b in (x.buffer for x in lifetimes):
            offsets[b] = top + (pages(b.nbytes) - b.nbytes if side == "end" else 0)
            top += pages(b.nbytes) + PAGE
        return offsets, 0, top

    return place


def layout(segment: Any, offsets: Mapping[Any, int], nbytes: int) -> Layout:
    """Where a segment's temporaries lie, those inside of strips' scratch memory (one part a thread) too."""
    from xcoexec.codegen.segment.steps import Nested

    strips = [s for s in segment.steps if s.driver == "strips"]
    nested = {s.writes[-1] for s in strips}  # their scratch memory, with temporaries of its own
    parts = [(at, b.nbytes, b.geometry) for b, at in offsets.items() if b not in nested]
    for step in strips:
        scratch = offsets[step.writes[-1]]
        stride = step.words[4]
        inner = {id(w): w for w in step.words if isinstance(w, Nested)}.values()
        starts = [scratch + who * stride for who in range(segment.threads + 1)]
        parts += [(at + o, b.nbytes, b.geometry) for at in starts for w in inner for b, o in w.offsets.items()]
    return Layout(tuple(parts), nbytes)


def fill(memory: Memory, start: int, parts: Iterable[tuple[int, int, Any]]) -> None:
    """Zeroes in the borders of temporaries that have one, and in all of a loop's, which are not told apart."""
    from xcoexec.codegen.program import itemsize

    for at, n, geometry in parts:
        if geometry is not None and geometry[0] == "loop":
            memory.view(start + at, n, np.uint8)[:] = 0
        elif geometry is not None:
            shape, halo, free, narrow = geometry
            outer = tuple(lo + m + hi for m, (lo, hi) in zip(shape, halo, strict=True))
            outer = (*outer[:-1], outer[-1] + free)
            element = np.dtype(f"u{itemsize(narrow or 'float32')}")
            whole, poison = memory.view(start + at, n, element), POISON >> 32 - 8 * element.itemsize
            image = whole[: math.prod(outer)].reshape(outer)
            image[:] = 0
            image[tuple(slice(lo, lo + m) for m, (lo, _) in zip(shape, halo, strict=True))] = poison
            image[..., outer[-1] - free :] = poison


# -- one segment -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to run a program; `side` "": temporaries lie as they do in use, with the guard right behind the last.
    `stored`: arguments and results are of their own types.
    """

    isa: Any
    threads: int
    how: str
    side: str
    stored: bool

    def __str__(self) -> str:
        return f"{self.isa.name}, {self.threads} threads, {self.how}, {self.side or 'as in use'}"


def arguments(segment: Any, consts: Mapping[Any, np.ndarray]) -> list[np.ndarray]:
    """Made inputs (numbers that are valid indices, and ones that are not), the raw constants, the packed blob."""
    rng = np.random.default_rng(0)

    def made(v: Any) -> np.ndarray:
        from xcoexec.codegen.program import kind

        if kind(v.dtype) == "i":
            return np.asarray(rng.integers(-3, 9, v.shape), np.int32)
        values = rng.integers(0, 2, v.shape) if kind(v.dtype) == "b" else rng.integers(-100, 101, v.shape)
        values = values if v.dtype in ("bool", "int8") else values / 64.0  # in half precision too
        return np.asarray(values, v.dtype if v in segment.as_stored else np.float32)

    raw = [np.ascontiguousarray(consts[v]) for v in segment.raw]
    return [*(made(v) for v in segment.program.inputs), *raw, PACK(segment, consts)]


def build(program: Any, way: Variant, asked: set[str]) -> tuple[Any, Any]:
    """A segment whose temporaries are placed as the variant says, and where; `asked` receives the algorithms that it
    could choose among."""
    from xcoexec.codegen.runtime import host
    from xcoexec.codegen.segment import assembly, storage, strips
    from xcoexec.partition.split import split

    placed: list[Any] = []

    def pick(groups: Any, names: tuple[str, ...], threads: int) -> str:
        asked.update(names)
        return way.how if way.how in names else names[0]

    place = apart(way.side) if way.side else storage.place

    def noting(lifetimes: Iterable[Any]) -> Any:
        placed.append(place(lifetimes))
        return placed[-1]

    with mock.patch.object(assembly, "place", noting), mock.patch.object(strips, "place", place):
        made = host.build(program, way.threads, way.isa, pick=pick, cut=split, as_stored=way.stored)
    return made, placed[-1]


def run(program: Any, consts: Consts, way: Variant, want: Sequence[np.ndarray], asked: set[str]) -> list[str]:
    """What is wrong with a program run in one way."""
    from xcoexec.codegen.runtime import host

    segment, (offsets, zeroed, nbytes) = build(program, way, asked)
    side = way.side or "end"
    args = [Array(a, side) for a in arguments(segment, consts)]
    outs = [Array(poisoned(w), side) for w in want]
    head = int(segment._descriptor[host.abi.Segment.DATA // 8])
    arena = Memory(pages(head) + nbytes)
    try:
        base = arena.size - nbytes  # of the data in the arena's pages
        where = layout(segment, offsets, nbytes) if way.side else None
        if where is None:
            arena.view(base, zeroed, np.uint8)[:] = 0
        else:
            fill(arena, base, where.parts)
            arena.shut([(base + at, n) for at, n in where.holes])
        slots = segment._descriptor.ctypes.data + host.abi.Segment.SLOTS
        swap = host.function("swap", 2)
        swap(slots, arena.address + base - head)
        got = host.Call.on(segment, [a.array for a in args], [o.array for o in outs])()
        taken = [swap(slots + 8 * i, 0) for i in range(host.abi.ARENA_SLOTS)]
        found = [] if any(taken) else ["the arena was not given back"]
        for k, a in enumerate(args):
            found += a.problems(f"argument {k} of {len(args)}", True)
        for k, (o, g, w) in enumerate(zip(outs, got, want, strict=True)):
            found += o.problems(f"result {k}", False)
            if not alike(g, w, 2e-2 if half(program) else 2e-4):
                found.append(f"result {k} is not that of the plain segment")
        for at, n in where.slack() if where is not None else ():
            if not arena.intact(base + at, n):
                found.append(f"what lies beside the temporary at {at} was written")
        return [f"{way}: {f}" for f in found]
    finally:
        for memory in (arena, *(a.memory for a in (*args, *outs))):
            memory.close()


def poisoned(like: np.ndarray) -> np.ndarray:
    """An array of that shape and type full of the pattern."""
    words = np.full(-(-like.nbytes // 4), POISON, np.uint32).view(np.uint8)
    return words[: like.nbytes].view(like.dtype).reshape(like.shape)


def half(program: Any) -> bool:
    """Whether kernels may narrow numbers on the way, which not every instruction set does."""
    return any(v.dtype in ("bfloat16", "float16") for op in program.ops for v in op.value_ins)


def alike(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    """Equal but for rounding; NaN and infinities in the same places."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    scale = float(np.abs(want[finite]).max(initial=1e-30))
    same = np.array_equal(got[~finite], want[~finite], equal_nan=True)
    return same and bool((np.abs(got[finite] - want[finite]) <= tolerance * scale).all())


def variants(asked: set[str], stored: bool) -> Iterator[Variant]:
    """All ways to run a program; `asked` (the algorithms that it can choose among) grows while it is run."""
    from .support import targets

    for isa, threads in itertools.product(targets(), (1, 2)):
        for how in HOW:
            if how in asked or how == HOW[0]:
                yield from (Variant(isa, threads, how, side, stored) for side in (*SIDES, ""))


# -- the plugin ------------------------------------------------------------------------------------------------------

PACK: Callable[..., np.ndarray]
_found: list[str] = []
_seen: set[str] = set()
_state = {"inside": False, "programs": 0, "variants": 0}
_log: int | None = None


def note(text: str) -> None:
    """What this process does now, for whoever finds it dead."""
    if _log is not None:
        os.pwrite(_log, f"{text[:500]:500}\n".encode(), 0)


def check(segment: Any, consts: Mapping[Any, np.ndarray], test: str) -> None:
    """Runs a segment's program in all ways; notes what is wrong."""
    from xcoexec.codegen.program import Unsupported, format_program
    from xcoexec.codegen.runtime import host

    text = format_program(segment.program)
    if text in _seen:
        return
    _seen.add(text)
    asked: set[str] = set()
    program, stored = segment.program, bool(segment.as_stored)
    try:
        plain, _ = build(program, Variant(host.host_target(), 1, "direct", "", stored), asked)
    except Unsupported:  # a program with a family of its own (machine measurements)
        return
    want = [o.copy() for o in host.Call.on(plain, arguments(plain, consts))()]
    _state["programs"] += 1
    for way in variants(asked, stored):
        note(f"{test}: {way}")
        try:
            _found.extend(run(program, consts, way, want, asked))
        except Unsupported:  # on another instruction set
            continue
        _state["variants"] += 1
    note(f"done: {_state['programs']} programs, {_state['variants']} variants")


def guarded_pack(segment: Any, consts: Mapping[Any, np.ndarray]) -> np.ndarray:
    """`Segment.pack`, which is called wherever a segment gets its weights; the first time, its program is checked."""
    if not _state["inside"]:
        _state["inside"] = True
        try:
            check(segment, consts, os.environ.get("PYTEST_CURRENT_TEST", "?"))
        except Exception as e:  # of this tool: it must not become a fallback of the code under test
            _found.append(f"the check itself failed: {type(e).__name__}: {e}")
        finally:
            _state["inside"] = False
    return PACK(segment, consts)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        from xcoexec.codegen.segment.assembly import Segment

        global PACK, _log
        PACK, Segment.pack = Segment.pack, guarded_pack  # type: ignore[method-assign]
        if LOG in os.environ:
            _log = os.open(pathlib.Path(os.environ[LOG]) / str(os.getpid()), os.O_CREAT | os.O_WRONLY)


@pytest.fixture(autouse=True)
def guarded() -> Iterator[None]:
    """Fails a test whose segments touched what is not theirs."""
    yield
    problems, _found[:] = [*_found], []
    assert not problems, "\n".join(problems)


def main(arguments: Sequence[str]) -> int:
    """Runs pytest with the plugin; says what each worker that died was doing, and how much was checked."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.guard", "--tb=short", *(arguments or FILES)]
        code = subprocess.run(command, env={**os.environ, LOG: folder}).returncode
        texts = [p.read_text().strip() for p in pathlib.Path(folder).iterdir()]
    for text in texts:
        if not text.startswith("done"):
            print(f"guard: a worker died in {text}")
    done = [t.split() for t in texts if t.startswith("done")]
    programs, ways = (sum(int(t[i]) for t in done) for i in (1, 3))
    print(f"guard: {programs} programs, {ways} variants, {len(texts) - len(done)} workers died")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
