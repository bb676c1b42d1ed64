"""The same promises on a real GPU: `make test-gpu` (skipped elsewhere).

Every layer kind x ratio x way of crossing, streamed weights, memory bounds, calls across swaps of the plan, and every
call of the driver failing in turn.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec import models
from xcoexec.codegen.native import call_layout as abi
from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices.cuda import RECORD as cuda_record
from xcoexec.devices.cuda import CudaError, cuda
from xcoexec.errors import BindError, CoexecWarning
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.planning.memory import usage
from xcoexec.session import experts, prepare
from xcoexec.session.race import Race

from . import test_offload as offloads
from . import test_training as steps
from .outside import plans
from .standin import sleeping
from .support import LAYERS, array, build_on, dense, error, moved, oracle, streaming
from .test_codl import BLOCK, TOKENS, block, up_to
from .test_faults import MEMORY, _kill, _refusing, _segment, _without_arenas
from .test_in_turn import W, float64, residual
from .test_in_turn import X as ROWS
from .test_relay import OPERATIONS, WEIGHTS, X, _chain, _residual

pytestmark = pytest.mark.skipif(not os.environ.get("XCOEXEC_TEST_GPU"), reason="needs a CUDA GPU: make test-gpu")
TOLERANCE = 1e-5


@pytest.fixture(scope="module", autouse=True)
def exact() -> Iterator[None]:
    with jax.default_matmul_precision("highest"):
        yield


@functools.cache
def _shared() -> Relay:
    return Relay(cuda())


@pytest.fixture
def relay() -> Relay:
    return _shared()


def _same(exe: Any, fn: Any, w: Any, x: Any, calls: int = 3, tolerance: float = TOLERANCE) -> None:
    want = oracle(fn, w, x)
    for _ in range(calls):
        assert error(np.asarray(exe.call([x])[0]), want) < tolerance
    assert exe.lowered.sites or exe.lowered.fetches
    assert all(s.calls >= calls for s in exe.lowered.sites.values())


@pytest.mark.parametrize("way", [("mapped", "mapped"), ("copy", "copy"), ("copy", "mapped"), ("mapped", "copy")])
@pytest.mark.parametrize("dim", ["channel", "rows"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_layer_ratio_and_way(relay: Relay, name: str, dim: str, way: tuple[str, str]) -> None:
    fn, w, x = OPERATIONS[name]
    ran = 0
    for p in (0.2, 0.5, 0.8, 1.0):
        exe = build_on(relay, fn, w, x, moved(Plan.uniform(p, dim), *way))
        if exe.lowered is not None and exe.lowered.sites:
            _same(exe, fn, w, x, tolerance=2e-2 if name == "bf16" else TOLERANCE)
            ran += 1
    assert ran


@pytest.mark.parametrize("halves", [("device", "host"), ("split", "host"), ("split", "device")])
def test_host_calls_that_read_slices(relay: Relay, halves: tuple[str, str]) -> None:
    """Of which XLA would make further calls, in kernels that read what the slices are taken of."""

    def fn(w: Any, x: Any) -> Any:
        y = x[4:12].reshape(8, 6, 4)
        return jnp.tanh(y * w) + y[::-1]

    def plan(graph: LayerGraph) -> Plan:
        half = lambda y: halves[0] if y.kind in ("slice", "reshape") and "rows" in y.dims else halves[1]
        share = {"device": 0.0, "host": 1.0, "split": 0.5}
        return Plan("test", tuple(Placement(y.name, half(y), share[half(y)], "rows") for y in graph.layers))

    _same(build_on(relay, fn, array(4), array(16, 24, seed=1), plan), fn, array(4), array(16, 24, seed=1))


@pytest.mark.parametrize("seed", range(400, 412))
def test_random_plans(relay: Relay, seed: int) -> None:
    found = plans.check(seed, relay)
    assert not found or found.startswith("- ") or "Unsupported convs" in found  # of int8, which XLA:GPU refuses


@pytest.mark.parametrize("way", [("mapped", "mapped"), ("copy", "copy")])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.7])
def test_chains_through_residual_blocks(relay: Relay, p: float, way: tuple[str, str]) -> None:
    def make(graph: Any) -> Plan:
        plan = _chain(0, 3, p)(graph)
        return dataclasses.replace(
            plan, placements=tuple(dataclasses.replace(q, reads=way[0], writes=way[1]) for q in plan.placements)
        )

    _same(build_on(relay, _residual, WEIGHTS, X, make), _residual, WEIGHTS, X)


@pytest.mark.parametrize("p", [0.0, 0.4])
def test_kernels_launched_as_graphs(relay: Relay, p: float) -> None:
    """Under calls of two threads whose arguments lie elsewhere each time: graphs are recorded for addresses."""
    plain = xcoexec.jit(_residual, plan=Plan.uniform(p), strict=True).bind(WEIGHTS)
    plan = dataclasses.replace(plain.plan(X), graphs=True)
    fast = xcoexec.jit(_residual, plan=plan, strict=True).bind(WEIGHTS)
    given = [X * (1 + k / 16) for k in range(8)]
    want = [oracle(_residual, WEIGHTS, x) for x in given]
    assert cuda_record.graphs(plain.session(X).graph.program.ops)

    def calls(_: int) -> float:
        with jax.default_matmul_precision("highest"):  # holds for one thread
            kept = [(k % 8, fast(given[k % 8])) for k in range(64)]
        return max(error(np.asarray(y), want[k]) for k, y in kept)

    with ThreadPoolExecutor(2) as pool:
        assert max(pool.map(calls, range(2))) < TOLERANCE
    assert fast.plan().graphs and fast.report().ran == "xco"


@pytest.mark.parametrize("p", [0.04, 0.3, 0.97])
def test_a_chain_may_have_several_results(relay: Relay, p: float) -> None:
    exe = build_on(relay, block, BLOCK, TOKENS, lambda g: up_to(g, (1, 21, 4, 12), p))
    assert exe.lowered is not None and [len(u.joins) for u in exe.lowered.segments] == [3]
    _same(exe, block, BLOCK, TOKENS)


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.4])
def test_several_programs_in_a_row(relay: Relay, p: float, graphs: bool) -> None:
    """Under calls of two threads, of which each gets the results of its own inputs."""
    plan = xcoexec.jit(residual, plan=Plan.uniform(p), strict=True).bind(W).plan(ROWS)
    fast = xcoexec.jit(residual, plan=dataclasses.replace(plan, programs=3, graphs=graphs), strict=True).bind(W)
    given = [ROWS * (1 + k / 16) for k in range(8)]
    want = [np.asarray(float64(W, x)[1]["last"]) for x in given]

    def calls(_: int) -> float:
        with jax.default_matmul_precision("highest"):  # holds for one thread
            kept = [(k % 8, fast(given[k % 8])[1]["last"]) for k in range(64)]
        return max(error(np.asarray(y), want[k]) for k, y in kept)

    with ThreadPoolExecutor(2) as pool:
        assert max(pool.map(calls, range(2))) < TOLERANCE
    assert fast.plan().programs == 3 and fast.report().ran == "xco"


@pytest.mark.parametrize("p, streamed", [(0.0, 1.0), (0.0, 0.5), (0.5, 0.5), (0.4, 0.3), (0.25, 0.75)])
def test_streamed_weights(relay: Relay, p: float, streamed: float) -> None:
    x = array(1, 160)
    _same(build_on(relay, dense, LAYERS, x, streaming(p, streamed)), dense, LAYERS, x)


def test_experts_move_under_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder of experts of which the device may hold some: right while every round exchanges them."""
    for name, value in (("EVERY", 1), ("CALLS", 1), ("OFTEN", 0.0), ("MORE", -2.0)):
        monkeypatch.setattr(experts, name, value)
    routing = models.moe.Routing(experts=16, chosen=2, hidden=512)
    module = models.decoder.Decoder(512, 256, 2, 4, 2, 256, 64, routing=routing)
    step = models.decoder.Step(jnp.full((1, 1), 7, jnp.int32), module.empty_cache(1), jnp.int32(5))
    weights = jax.tree_util.tree_map(np.asarray, jax.jit(module.init)(jax.random.key(0), step))
    limit = int(0.5 * sum(w.nbytes for w in jax.tree_util.tree_leaves(weights)))
    fast = xcoexec.jit(module.apply, device_memory=limit, strict=True).bind(weights)
    steps = [step._replace(tokens=jnp.full((1, 1), t, jnp.int32)) for t in range(0, 512, 4)]
    for _ in range(3):
        outs = [fast(s)[0] for s in steps]  # in flight
        for s, out in zip(steps, outs, strict=True):
            assert error(out, module.apply(weights, s)[0]) < TOLERANCE
    found = fast.report().experts
    assert found is not None and 0 < found.slots < 16 and found.moved > 20, found


def test_a_bound_on_device_memory_is_kept() -> None:
    """What XLA really holds while a stack runs whose weights are four times the bound."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((2048, 2048), np.float32) for _ in range(16)]
    limit = sum(w.nbytes for w in weights) // 4
    stats = jax.devices()[0].memory_stats()
    before = stats["bytes_in_use"]
    fast = xcoexec.jit(dense, device_memory=limit, strategy="capacity", strict=True).bind(weights)
    x = array(1, 2048)
    got = np.asarray(fast(x))
    plan, graph = fast.plan(), fast.graph()
    assert usage(graph, plan.placements).total <= limit
    exe = fast.session().current
    compiled = jax.jit(lambda c, x: exe.lowered(c, [x])).lower(exe.lowered.arguments(weights), x).compile()  # type: ignore[union-attr]
    held = compiled.memory_analysis()
    assert held.argument_size_in_bytes + held.temp_size_in_bytes + held.output_size_in_bytes <= limit
    assert jax.devices()[0].memory_stats()["bytes_in_use"] - before <= 2 * limit
    want = np.asarray(x, np.float64)
    for i, w in enumerate(weights):
        want = want @ w.astype(np.float64)
        want = np.tanh(want / 16) if i < len(weights) - 1 else want
    assert error(got, want) < 1e-4


def test_ten_thousand_calls_across_swaps(relay: Relay) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, xs = array(64, 64), [array(8, 64, seed=i) for i in range(8)]
    want = [oracle(fn, w, x) for x in xs]
    exes = [
        build_on(relay, fn, w, xs[0], moved(Plan.uniform(p), *way))
        for p, way in ((0.25, ("mapped",) * 2), (0.5, ("copy",) * 2), (0.75, ("mapped", "copy")))
    ]
    fast = xcoexec.jit(fn, plan=Plan.uniform(0.5), strict=True).bind(w)
    fast(xs[0])
    monitor, done = fast.session().monitor, threading.Event()

    def swap() -> None:
        i = 0
        while not done.wait(0.01):
            monitor.current = exes[i % len(exes)]
            i += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    wrong = 0
    for _ in range(1250):
        outs = [fast(x) for x in xs]
        wrong += sum(not error(np.asarray(o), m) < TOLERANCE for o, m in zip(outs, want, strict=True))
    done.set()
    swapper.join()
    assert wrong == 0 and all(sum(s.calls for s in e.lowered.sites.values()) > 0 for e in exes)  # type: ignore[union-attr]


def test_inside_scan(relay: Relay) -> None:
    w, x = [array(192, 192, seed=1), array(192, 192, seed=2)], array(2, 192)
    exe = build_on(relay, dense, w, x, streaming(0.5, 0.5))
    lowered = exe.lowered
    assert lowered is not None
    consts = lowered.arguments(w)
    got, _ = jax.jit(lambda c, x: jax.lax.scan(lambda s, _: (lowered(c, [s])[0], None), x, None, length=7))(consts, x)
    want: Any = x
    for _ in range(7):
        want = dense(w, want)
    assert error(np.asarray(got), np.asarray(want)) < TOLERANCE


def test_several_threads_without_waiting(relay: Relay) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, xs = array(64, 64), [array(4, 64, seed=i) for i in range(6)]
    want = [oracle(fn, w, x) for x in xs]
    for way in (("mapped", "mapped"), ("copy", "copy")):
        exe = build_on(relay, fn, w, xs[0], moved(Plan.uniform(0.5), *way))

        def work(i: int, exe: Any = exe) -> bool:
            outs = [exe.call([xs[(i + k) % 6]])[0] for k in range(50)]
            return all(error(np.asarray(o), want[(i + k) % 6]) < TOLERANCE for k, o in enumerate(outs))

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(8)))


def test_executables_that_are_freed_in_flight(own: Relay) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(512, 512), array(32, 512)
    want = oracle(fn, w, x)
    for k in range(6):
        exe = build_on(own, fn, w, x, moved(Plan.uniform(0.5), *(("mapped", "mapped"), ("copy", "copy"))[k % 2]))
        outs = [exe.call([x])[0] for _ in range(4)]
        del exe
        gc.collect()
        assert all(error(np.asarray(o), want) < TOLERANCE for o in outs)
    own.collect()


# -- steps


@pytest.mark.parametrize("donate", [{}, dict(donate_argnums=0)])
def test_a_training_step_is_decided_by_its_callers_calls(
    donate: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Calls in flight, of plain jax.jit and of a plan in turn: states are those of `jax.jit`."""
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("xcoexec.session.planner.stages", lambda attempt: iter([attempt.all_host]))
    step, state, values = xcoexec.jit(steps.adam_step, wait=True, **donate), steps.adam_state(), []
    for _ in range(4000):
        state, value = step(state, steps.BATCH)
        values.append(value)
        (session,) = steps.sessions(step)
        assert isinstance(session.choice, Race)
        if not session.choice.races:
            break
    assert "in the caller's own calls" in session.current.plan.chosen
    want = steps.trained(jax.jit, steps.adam_step, steps.adam_state(), len(values))
    steps.same((state, values), want[:2], rtol=1e-3, atol=1e-4)


# -- faults


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Relay:
    """A relay of its own, with a short watchdog, for the public API."""
    mine = Relay(cuda(), limit_seconds=0.5)
    monkeypatch.setattr(prepare, "device_relay", lambda cpus: mine)
    return mine


_refuse = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 11)(lambda *a: 700)
SITES = {"launch": abi.Relay.LAUNCH, "copy": abi.Relay.COPY, "record": abi.Relay.RECORD, "follow": abi.Relay.FOLLOW}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("call", SITES)
def test_a_driver_call_that_fails(own: Relay, call: str, strict: bool) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(64, 64), array(1, 64)
    want = oracle(fn, w, x)
    fast = xcoexec.jit(fn, plan=Plan.uniform(0.5), memory="copy", strict=strict).bind(w)
    assert error(np.asarray(fast(x)), want) < TOLERANCE
    word = own._word(SITES[call])
    good, word.value = word.value, ctypes.cast(_refuse, ctypes.c_void_p).value
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if strict:
            with pytest.raises((BindError, jax.errors.JaxRuntimeError), match=r"refused|cannot be co-executed"):
                np.asarray(fast(x))
        else:
            assert error(np.asarray(fast(x)), want) < TOLERANCE
            assert error(np.asarray(fast(x)), want) < TOLERANCE
            assert len([s for s in seen if issubclass(s.category, CoexecWarning)]) == 1
            assert fast.report().ran == "jit"
    word.value = good


@pytest.mark.parametrize("what", ["mapped", "words", "event"])
def test_memory_that_is_refused(own: Relay, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise CudaError("xcoexec: the driver refused: out of memory (code 2).")

    monkeypatch.setattr(own.driver, what, refuse)
    fn = lambda w, x: jnp.tanh(x @ w)
    fast = xcoexec.jit(fn, plan=Plan.uniform(0.5), memory="copy").bind(array(64, 64))
    with pytest.warns(CoexecWarning, match="out of memory"):
        got = fast(array(1, 64))
    assert error(np.asarray(got), oracle(fn, array(64, 64), array(1, 64))) < TOLERANCE


def test_more_memory_than_the_gpu_has() -> None:
    for allocate in (cuda().mapped, cuda().words):
        with pytest.raises(CudaError, match=r"out of memory|invalid"):
            allocate(1 << 50)


@pytest.mark.parametrize("memory", MEMORY)
def test_a_serving_thread_that_died(own: Relay, memory: str) -> None:
    """Another one serves the call: right results, then plain jax.jit for this function, and co-execution for others."""
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(64, 64), array(1, 64)
    fast = xcoexec.jit(fn, plan=Plan.uniform(0.5), memory=memory).bind(w)
    other = xcoexec.jit(fn, plan=Plan.uniform(0.5), memory=memory, strict=True).bind(w)
    assert (
        error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE
        and error(np.asarray(other(x)), oracle(fn, w, x)) < TOLERANCE
    )
    _kill(own)
    with pytest.warns(CoexecWarning, match="was gone"):
        for _ in range(3):
            assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE
    assert fast.report().ran == "jit" and own.served
    for _ in range(3):
        assert error(np.asarray(other(x)), oracle(fn, w, x)) < TOLERANCE
    assert other.report().ran == "xco"
    own.stop()
    with pytest.raises(BindError, match="no host call is taken"):
        for _ in range(3):
            np.asarray(_raising(other, x))


def _raising(fast: Any, x: Any) -> Any:
    """A call whose own error may also come when its results are read."""
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        return fast(x)
    return 0.0


@pytest.mark.parametrize("memory", MEMORY)
def test_memory_for_intermediates_that_is_refused(own: Relay, memory: str) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(64, 64), array(1, 64)
    fast = xcoexec.jit(fn, plan=Plan.uniform(0.5), memory=memory).bind(w)
    assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE
    _without_arenas(_segment(fast))
    with _refusing(20), pytest.warns(CoexecWarning, match="no memory was left"):
        for _ in range(3):
            assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE
    assert fast.report().ran == "jit"


@pytest.mark.parametrize("memory", MEMORY)
def test_a_slow_host_is_no_fault(own: Relay, memory: str) -> None:
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(64, 64), array(1, 64)
    fast = xcoexec.jit(fn, plan=Plan.uniform(0.5), memory=memory, strict=True).bind(w)
    assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE
    with sleeping(_segment(fast), 1.5):
        assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE
    assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE and fast.report().ran == "xco"


_LOST = """
import sys, warnings; warnings.simplefilter("ignore")
import numpy as np, jax, jax.numpy as jnp, xcoexec
from xcoexec.session import experts, prepare
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.devices.cuda import cuda
from tests.support import array
from tests.standin import sleeping
from tests.test_faults import _segment
relay = Relay(cuda(), limit_seconds=0.3, last_seconds=0.6)
prepare.device_relay = lambda cpus: relay
fast = xcoexec.jit(lambda w, x: jnp.tanh(x @ w), plan=Plan.uniform(0.5), memory=sys.argv[1]).bind(array(64, 64))
want = np.asarray(fast(array(1, 64)))
with sleeping(_segment(fast), 30.0):
    try:
        got = np.asarray(fast(array(1, 64)))
        print("right" if np.allclose(got, want) else "wrong", flush=True)
    except (jax.errors.JaxRuntimeError, ValueError, RuntimeError) as e:
        print("raised", flush=True)
"""


@pytest.mark.parametrize("memory", MEMORY)
def test_a_segment_that_never_ends_stops_the_device(memory: str) -> None:
    """In a process of its own, whose context is lost: an exception where the result is read, and the process ends."""
    root = os.path.dirname(os.path.dirname(__file__))
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", _LOST, memory], timeout=180, capture_output=True, text=True, cwd=root, env=env
    )
    assert done.stdout.split() == ["raised"], done.stderr[-2000:]


def test_a_team_without_workers(own: Relay) -> None:
    """The serving thread does the work of workers that are gone."""
    fn = lambda w, x: jnp.tanh(x @ w)
    w, x = array(512, 512), array(32, 512)
    fast = xcoexec.jit(fn, plan=Plan.uniform(0.5), strict=True).bind(w)
    assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE
    host.team().stop()
    assert error(np.asarray(fast(x)), oracle(fn, w, x)) < TOLERANCE


# -- optimizers in host memory
@pytest.mark.parametrize("name", ["adamw", "clipped", "finite", "two kinds"])
def test_an_optimizer_in_host_memory(name: str) -> None:
    state = offloads._same_as_optax(offloads.OPTIMIZERS[name](), "float32")
    assert [leaf.index for leaf in state.home.division.leaves] == [0, 2]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_steps_of_it_in_flight(dtype: str) -> None:
    """Nobody waits for fifty steps of arrays that are given away; what they make is what awaited steps make."""
    step = lambda tx: offloads.stepper(tx, functools.partial(jax.jit, donate_argnums=(0, 1)))
    results = []
    for awaited in (False, True):
        tx = offloads.offload(offloads.OPTIMIZERS["adamw"]())
        params = offloads.tree(dtype)
        state, run = tx.init(params), step(tx)
        for i in range(50):
            params, state = run(params, state, float(i))
            if awaited:
                jax.block_until_ready(params)
        results.append((params, tx.fetch(state)))
    offloads.close(*results, 0.0)


def test_a_state_of_it_that_is_used_twice() -> None:
    offloads.test_a_state_that_is_used_twice()


# -- planning behind calls
def test_stages_of_a_planning_behind_calls(monkeypatch: pytest.MonkeyPatch, own_cache: None) -> None:
    """Plain jax.jit answers first; the plan that can be had without measured layers is in use next, then the others.
    Results are right all along.
    """
    monkeypatch.setenv("XCOEXEC_WAIT", "0")
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((3, 3, 256, 256), np.float32) / 48 for _ in range(3)]

    def fn(ws: list[Any], x: Any) -> Any:
        for w in ws:
            x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return x

    x = array(1, 28, 28, 256)
    want, fast = oracle(fn, weights, x), xcoexec.jit(fn)
    args = jax.tree.map(jnp.asarray, (weights, x))
    near = lambda: error(np.asarray(fast(*args)), want) < TOLERANCE
    whys: list[str] = []
    assert near()
    while not fast.ready(0):
        assert near()
        why = fast.report(*args).why
        whys += [why] if why not in whys else []
    assert near()
    assert fast.plan(*args).measured and "by measurement" in " ".join(whys), whys
    assert any("planning" in why for why in whys)
