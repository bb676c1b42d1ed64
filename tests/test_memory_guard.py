"""No kernel reads or writes beyond an array: a part of the sweep of `tests.guard`, and what that tool finds."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.program import Program, Value
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.storage import temporary

from . import guard
from .support import array, stages_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
PART = (  # every kernel family, with odd sizes
    "tests/test_ops.py::test_convolution[odd-1]",
    "tests/test_ops.py::test_convolution[depthwise odd strided-1]",
    "tests/test_ops.py::test_convolution[groups of 2 strided-1]",
    "tests/test_ops.py::test_convolution[groups of 8 dilated-1]",
    "tests/test_storage.py::test_pixels_that_would_share_sets_of_the_caches[1x1-1-False]",
    "tests/test_storage.py::test_pixels_that_would_share_sets_of_the_caches[residual-2-True]",
    "tests/test_storage.py::test_what_a_pool_reads_lies_apart",
    "tests/test_ops.py::test_epilogue[residual-odd]",
    "tests/test_ops.py::test_dot[attention-neither]",
    "tests/test_ops.py::test_pool[max same-(2, 9, 7, 5)]",
    "tests/test_ops.py::test_reductions_and_movement[concatenate-(2, 5, 6, 19)]",
    "tests/test_ops.py::test_embedding[fill]",
    "tests/test_algorithms.py::test_rows[shape3-softmax-portable]",
    "tests/test_algorithms.py::test_winograd_residual_and_chain[winograd4]",
    "tests/test_algorithms.py::test_winograd_along_planes[3-options0-1-winograd4-portable]",
    "tests/test_algorithms.py::test_separable_and_chain_by_strips[5-2]",
    "tests/test_algorithms.py::test_attention_by_strips[2-7-2-8]",
    "tests/test_algorithms.py::test_dynamic_slices[3]",
    "tests/test_algorithms.py::test_bf16_products[7-301-65]",
    "tests/test_algorithms.py::test_transposed_convolutions_in_other_dimensions[1]",
    "tests/test_ops.py::test_dot[large row-right]",
    "tests/test_algorithms.py::test_a_row_reads_weights_as_they_are_stored[700-513-bfloat16]",
    "tests/test_algorithms.py::test_a_row_reads_weights_as_they_are_stored[700-513-float16]",
    "tests/test_algorithms.py::test_a_row_reads_weights_as_they_are_stored[700-513-int8]",
    "tests/test_edges.py::test_turns_of_a_loop_read_what_came_in_for_all_of_them[False-bfloat16-portable]",
)


def _python(text: str, *arguments: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    command = [sys.executable, *(("-c", text) if text else ()), *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=seconds)


def test_a_part_of_the_sweep() -> None:
    done = _python("", "-m", "tests.guard", "-n", "1", *PART, seconds=600)
    found = re.search(r"guard: (\d+) programs, (\d+) variants, 0 workers died", done.stdout)
    assert done.returncode == 0 and found, done.stdout[-3000:] + done.stderr[-1000:]
    assert int(found[1]) >= len(PART) and int(found[2]) >= 12 * int(found[1])


_WRONG = """
import contextlib, os
from unittest import mock
import numpy as np
from tests import guard
from tests.support import array, stages_of
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment import assembly as segment
from xcoexec.codegen.segment import storage
from xcoexec.codegen.target import target

guard.PACK = segment.Segment.pack
w, x = array(48, 32), array(7, 48, seed=1)  # whole vectors: the last weight is read on any machine
folded, graph = stages_of(lambda w, x: abs(x @ w) @ w.T, w, x, weights=1)
consts, program = folded.constants([w]), graph.program
plain, _ = guard.build(program, guard.Variant(target(), 1, "direct", "", False), set())
want = [o.copy() for o in host.Call.on(plain, guard.arguments(plain, consts))()]
MEANT = {
    "input": lambda a: a.shape == (7, 48) and not np.isnan(a).any(),
    "result": lambda a: a.shape == (7, 48) and np.isnan(a).all(),
    "blob": lambda a: a.ndim == 1,
}

def short(what):
    class Short(guard.Array):
        def __init__(self, like, side):
            super().__init__(like.ravel()[:-1] if MEANT[what](like) else like, side)
            if side == "start":
                self.array = self.memory.view(self.at, like.nbytes, like.dtype).reshape(like.shape)
    return mock.patch.object(guard, "Array", Short)

class Less(storage.Buffer):
    def __init__(self, kind, nbytes, *rest, **named):
        super().__init__(kind, nbytes - 4 * (kind == "temp"), *rest, **named)

ways = {"nothing": contextlib.nullcontext, "temporary": lambda: mock.patch.object(storage, "Buffer", Less)}
ways.update({what: (lambda what=what: short(what)) for what in MEANT})
for what, way in ways.items():
    for side in guard.SIDES:
        pid = os.fork()
        if pid == 0:
            with way():
                problems = guard.run(program, consts, guard.Variant(target(), 1, "direct", side, False), want, set())
            os._exit(3 if any("was written" in p for p in problems) else 4 if problems else 0)
        print(what, side, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def test_one_element_too_few_is_found() -> None:
    """The guard itself: memory that is one element too short ends the process (-11), or is written beside (3)."""
    done = _python(_WRONG)
    got = {(what, side): int(code) for what, side, code in map(str.split, done.stdout.splitlines())}
    assert done.returncode == 0, done.stderr[-2000:]
    assert got["nothing", "end"] == got["nothing", "start"] == 0
    ended = {what for (what, side), code in got.items() if side == "end" and code == -signal.SIGSEGV}
    assert ended == {"input", "result", "blob", "temporary"}
    assert got["result", "start"] == got["temporary", "start"] == 3


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5, 33)])
@pytest.mark.parametrize("halo", [0, 1])
def test_a_temporary_takes_what_its_elements_take(shape: tuple[int, ...], halo: int) -> None:
    """No room behind the last element, where a read beyond it would go unseen."""
    s = temporary(Value(shape, "float32"), ((halo, halo),) * len(shape))
    assert s.buffer.nbytes == 4 * int(np.prod([n + 2 * halo for n in shape]))


def test_an_arena_ends_with_its_last_temporary() -> None:
    segment = host.build(_program(), 1)
    assert segment._descriptor[host.abi.Segment.ARENA_BYTES // 8] == segment.arena_bytes


def _program() -> Program:
    _, graph = stages_of(lambda w, x: jnp.tanh(x @ w) @ w.T, array(33, 21), array(7, 33), weights=1)
    return graph.program


def test_arrays_beside_which_something_was_written() -> None:
    a = guard.Array(np.ones(5, np.float32), "start")
    assert [*a.problems("it", True)] == []
    a.memory.view(20, 4, np.uint32)[:] = 7
    a.array[2] = 3.0
    assert [*a.problems("it", True)] == ["what lies beside it was written", "it was written"]
    a.memory.close()
