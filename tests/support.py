"""What the tests share: the float64 oracle and calls that assert the fast path ran."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xcoexec
from xcoexec.api.function import Function
from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.codegen.target import ISAS, Target, target
from xcoexec.compat import as_array
from xcoexec.frontend.fold import Folded
from xcoexec.frontend.graph import graph_of
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.lowering.executable import Executable, executable
from xcoexec.lowering.lower import lower
from xcoexec.partition.split import split
from xcoexec.session.contest import forced

from .oracle import error, oracle

TOLERANCE = 1e-4
#: what XLA adds to a program is compiled three times as fast
QUICK = {"xla_backend_optimization_level": 0}


def quick_process() -> dict[str, str]:
    """The environment of a process in which what XLA adds is compiled without LLVM's optimisations."""
    return {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}


def array(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> jax.Array:
    return as_array(np.asarray(np.random.default_rng(seed).uniform(low, high, shape), np.float32))


def until(holds: Callable[[], Any], seconds: float = 120.0) -> None:
    """Waits until something holds, however slow the machine is; fails where it never does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"does not hold after {seconds} s"
        time.sleep(0.002)


def given_back(relay: Relay) -> None:
    """Waits until a relay has given all memory of its device back. XLA gives an executable up after its last results
    are there.
    """

    def none() -> bool:
        relay.collect()
        return relay.driver.allocations == 0  # type: ignore[attr-defined]

    until(none)


def stages_of(fn: Callable[..., Any], *args: Any, weights: int = 0) -> tuple[Folded, LayerGraph]:
    """Folded trace and graph of `fn`, with the first `weights` arguments known at bind."""
    return graph_of(fn, args, weights)


def targets() -> list[Target]:
    """Every instruction set that runs here, and NEON's shape (vectors of 4, 32 registers) as this machine has it."""
    found = []
    for name in ISAS:
        try:
            found.append(target(name))
        except ValueError:
            continue
    if (4, 32) not in {(t.vl, t.registers) for t in found}:
        found.append(dataclasses.replace(target("portable"), name="neon-width", registers=32))
    return found


def multiplies(dtype: str, algorithm: str) -> bool:
    """Whether a layer's algorithm multiplies elements of a narrow type as they are."""
    return bool({f"gemm({dtype})", "tiles"} & set(algorithm.split("+")))


def run_host(fn: Callable[..., Any], *args: Any, weights: int = 0, threads: int = 1) -> list[np.ndarray]:
    """`fn` on kernels alone, without XLA; fails if any layer cannot run there."""
    folded, graph = stages_of(fn, *args, weights=weights)
    errors = [f"{x.name}: {x.host_error}" for x in graph.layers if x.host_error]
    assert not errors, errors
    leaves = jax.tree_util.tree_leaves(args)
    n = len(jax.tree_util.tree_leaves(args[:weights]))
    consts = folded.constants(leaves[:n])
    segment = host.build(graph.program, threads)
    call = host.Call(segment, [carried(x) for x in leaves[n:]], [consts[v] for v in graph.program.consts])
    return [o.copy() for o in call()]


def carried(x: Any) -> np.ndarray:
    """An array as kernels hold it: s32, and anything else as f32."""
    x = np.asarray(x)
    return x if x.dtype == np.int32 else x.astype(np.float32)


def check_host(
    fn: Callable[..., Any], *args: Any, weights: int = 0, threads: int = 1, tolerance: float = TOLERANCE
) -> None:
    """Kernels against the float64 oracle."""
    got = run_host(fn, *args, weights=weights, threads=threads)[0]
    want = oracle(fn, *args)
    assert got.shape == want.shape
    assert error(got, want) < tolerance


def co(fn: Callable[..., Any], *weights: Any, **options: Any) -> Any:
    """`fn` bound with strict=True, so that a fallback is an error."""
    return xcoexec.jit(fn, strict=True, **options).bind(*weights)


def assert_on_host(bound: Any) -> None:
    """The host half really computed something in the last plan."""
    report = bound.report()
    assert report.ran == "xco" and report.segments > 0
    assert any(x.measured is not None for x in report.layers)


def build_on(
    relay: Relay | None, fn: Any, weights: Any, x: Any, plan: Any, threads: int = 2, inside: int = 0
) -> Executable:
    """`fn` on a device behind `relay`: a forced plan, or a function that makes one of the graph; `inside`: as in
    `executable`.
    """
    folded, graph = stages_of(fn, weights, x, weights=1)
    made = plan(graph) if callable(plan) else forced(graph, plan)
    lowered = lower(graph, folded, made.placements, lambda p: host.build(p, threads, cut=split), relay)
    return executable(made, lowered, jax.tree_util.tree_leaves(weights), (), inside=inside)


def moved(plan: Plan, reads: str, writes: str) -> Callable[[LayerGraph], Plan]:
    """A forced plan whose arrays cross in the given ways."""

    def make(graph: LayerGraph) -> Plan:
        made = forced(graph, plan)
        places = [
            p if p.half == "device" else dataclasses.replace(p, reads=reads, writes=writes) for p in made.placements
        ]
        return dataclasses.replace(made, placements=tuple(places))

    return make


LAYERS = [array(160, 256, seed=1), array(256, 192, seed=2), array(192, 320, seed=3), array(320, 24, seed=4)]


def dense(w: Any, x: Any) -> Any:
    for i, m in enumerate(w):
        x = jnp.tanh(x @ m / 16) if i < len(w) - 1 else x @ m
    return x


def streaming(p: float, streamed: float, pieces: int = 1) -> Callable[[LayerGraph], Plan]:
    def make(graph: LayerGraph) -> Plan:
        half = "split" if p else "device"
        places = tuple(
            Placement(x.name, half, p, streamed=streamed, pieces=pieces)
            if "channel" in x.dims
            else Placement(x.name, "device", 0.0)
            for x in graph.layers
        )
        plan = Plan("test", places, graph.key)
        check_plan(plan, graph)
        return plan

    return make


__all__ = [
    "LAYERS",
    "QUICK",
    "Plan",
    "array",
    "assert_on_host",
    "build_on",
    "check_host",
    "co",
    "dense",
    "error",
    "moved",
    "oracle",
    "run_host",
    "stages_of",
    "streaming",
    "targets",
    "until",
]


def beside_a_device(function: Function) -> Function:
    """The same function on a machine with a GPU, as far as its options say."""
    options = dataclasses.replace(function.options)
    vars(options)["apart"] = True
    return dataclasses.replace(function, options=options)
