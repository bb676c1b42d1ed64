"""Calls on several devices are those of `jax.jit`: values, shardings, committed or not, errors."""

from __future__ import annotations

import ast
import functools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("quick_xla")

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = os.environ.get("XLA_FLAGS", "")
OWN_FOUR = "--xla_force_host_platform_device_count=4"
FOUR = f"{FLAGS} {OWN_FOUR}"
#: stand-ins of devices hold threads of XLA's, which is as users have it
AS_USED = {"XLA_FLAGS": OWN_FOUR, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}


def begin(*args: str, **env: str) -> subprocess.Popen[str]:
    """A Python process of its own."""
    return subprocess.Popen(
        [sys.executable, *args],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore", "PYTHONFAULTHANDLER": "1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a process has written, when it has ended well."""
    try:
        out, errors = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # its threads say where they are
        out, errors = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 0, errors[-9000:]
    return out, errors


@functools.cache
def seen() -> tuple[dict[str, Any], str]:
    out, errors = ended(begin("-m", "tests.sharded_cases", XLA_FLAGS=FOUR))
    return json.loads(out), errors


def names() -> list[str]:
    """What the other process has compared, at least: the names of its functions that are cases."""
    tree = ast.parse((ROOT / "tests" / "sharded_cases.py").read_text())
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    return [f.name for f in functions if any(ast.unparse(d) == "case" for d in f.decorator_list)]


def test_calls_on_several_devices_are_those_of_jit() -> None:
    found = seen()[0]["differences"]
    assert {name: said for name, said in found.items() if said} == {}
    assert len(found) > 120 and set(names()) <= set(found)


def test_nothing_is_compiled_that_fails() -> None:
    """What says itself where arrays lie is seen before a plan is made."""
    assert "Side-effect HLO" not in seen()[1] and "planning went no further" not in seen()[1]


def test_what_is_co_executed() -> None:
    names = ("free", "committed", "second", "by batch", "in parts", "own", "constraint")
    jit = {"in parts", "constraint"}
    assert seen()[0]["engines"] == {name: "jit" if name in jit else "xco" for name in names}


def test_no_closer_look_at_calls_on_other_devices() -> None:
    assert all(seen()[0]["quick"].values()), seen()[0]["quick"]


PROCESS = """
import sys, warnings
import jax, jax.numpy as jnp, numpy as np
warnings.simplefilter("ignore")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import xcoexec
from jax.sharding import NamedSharding, PartitionSpec as P
me = jax.process_index()
assert jax.device_count() == 4 and jax.local_device_count() == 2
mesh = jax.make_mesh((4,), ("d",))
x = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
w = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)
f = lambda w, x: jnp.tanh(x @ w)
total = lambda w, x: jnp.sum(jnp.tanh(x @ w))
by_batch, everywhere = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
xs = jax.make_array_from_callback(x.shape, by_batch, lambda i: x[i])
ws = jax.make_array_from_callback(w.shape, everywhere, lambda i: w[i])
for fn in (f, total):
    plain, fast = jax.jit(fn), xcoexec.jit(fn, strategy="host")
    bound = fast.bind(ws)
    for _ in range(3):
        theirs, ours, held = plain(ws, xs), fast(ws, xs), bound(xs)
        for got in (ours, held):
            assert got.sharding == theirs.sharding and not got.is_deleted()
            for a, b in zip(theirs.addressable_shards, got.addressable_shards, strict=True):
                assert a.index == b.index and a.device == b.device
                np.testing.assert_allclose(np.asarray(a.data), np.asarray(b.data), rtol=1e-5, atol=1e-5)
    assert fast.plan(ws, xs).engine == bound.plan().engine == ("xco" if fn is f else "jit")
# each process on its own: the first of its devices, where plans are made
mine = xcoexec.jit(f, strategy="host")
got = mine(jnp.asarray(w), x * (me + 1))
assert got.devices() == {jax.local_devices()[0]} and mine.plan(jnp.asarray(w), x).engine == "xco"
np.testing.assert_allclose(np.asarray(got), np.tanh(x.astype(float) * (me + 1) @ w), atol=1e-5)
there = jax.device_put(x, jax.local_devices()[1])
assert mine(w, there).devices() == {jax.local_devices()[1]}
jax.distributed.shutdown()
print("fine")
"""


def test_programs_of_two_processes() -> None:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        address = f"localhost:{s.getsockname()[1]}"
    flags = {"XLA_FLAGS": f"{FLAGS} --xla_force_host_platform_device_count=2", "XCOEXEC_WAIT": "0"}
    processes = [begin("-c", PROCESS, address, str(i), **flags) for i in range(2)]
    for process in processes:
        try:
            assert "fine" in ended(process)[0]
        except BaseException:
            for other in processes:
                other.kill()
            pytest.fail("a process of two failed")
