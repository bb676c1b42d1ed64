"""Gradients of maxima compare elements with the greatest one: halves, kernels and XLA have to have the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.runtime.relay import Relay
from xcoexec.frontend.sweeps import swept
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.lowering.emit import _rounded

from .oracle import error, oracle
from .standin import StandIn
from .support import array, build_on, check_host, given_back, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

W, X = array(16, 12), array(2, 20, 16, seed=1)


def loss(w: Any, x: Any) -> Any:
    """Each channel beside its greatest element, in bf16; a softplus is a few operations that end in different bits."""
    y = jnp.abs(jax.nn.softplus((x @ w).astype(jnp.bfloat16)))
    return jnp.mean((y / jnp.max(y, (0, 1))).astype(jnp.float32) ** 2)


def gradient(w: Any, x: Any) -> Any:
    return jax.grad(loss, 1)(w, x)


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    made = Relay(StandIn())
    yield made
    given_back(made)


@pytest.mark.parametrize("host", [lambda i: i % 2 == 0, lambda i: i % 2 == 1, lambda i: i < 4, lambda i: i >= 4])
def test_halves_have_the_same_elements(relay: Relay, host: Callable[[int], bool]) -> None:
    """Elements are made once, and rounded for whom reads them: no maximum is without an element."""

    def plan(graph: LayerGraph) -> Plan:
        half = lambda x: "host" if host(x.index) and not x.host_error else "device"
        places = (Placement(x.name, half(x), float(half(x) == "host")) for x in graph.layers)
        return Plan("test", tuple(places), graph.key)

    exe = build_on(relay, gradient, W, X, plan)
    assert exe.lowered is not None and exe.lowered.segments
    assert error(np.asarray(exe.call([X])[0]), oracle(gradient, W, X)) < 3e-2


@pytest.mark.parametrize("kind", ["reduce_max", "eq"])
def test_what_xla_makes_is_rounded_for_whom_compares_it(relay: Relay, kind: str) -> None:
    """XLA:CPU keeps more bits than bf16 has where it makes and reads a value; the other half has to have the same."""

    def fn(w: Any, x: Any) -> Any:
        y = jnp.tanh((x @ w).astype(jnp.bfloat16) * 1.7 + 0.3)
        return (y == jnp.max(y, 1, keepdims=True)).astype(jnp.float32)

    def plan(graph: LayerGraph) -> Plan:
        on_host = [any(op.prim == kind for op in x.ops) for x in graph.layers]
        assert any(on_host)
        places = zip(graph.layers, on_host, strict=True)
        return Plan("test", tuple(Placement(x.name, "host" if h else "device", float(h)) for x, h in places))

    exe = build_on(relay, fn, W, X, plan)
    assert (np.asarray(exe.call([X])[0]).sum(1) >= 1).all()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_every_number_of_a_type_stays(dtype: Any) -> None:
    """Those below the normal ones, infinite ones and signs of zero too; between two the rounding is NumPy's."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(jnp.dtype(dtype))
    same = np.asarray(jax.jit(_rounded)(x)).view(np.uint16) == bits
    assert (same | np.isnan(x.astype(np.float32))).all()
    rng = np.random.default_rng(0)
    wide = np.float32(rng.normal(size=1 << 15) * np.exp(rng.uniform(-25, 8, 1 << 15)))
    got = jax.jit(lambda y: _rounded(y.astype(dtype)).astype(jnp.float32))(wide)
    np.testing.assert_array_equal(got, wide.astype(jnp.dtype(dtype)).astype(np.float32))


def test_what_is_compared_is_made_once() -> None:
    folded, _ = stages_of(gradient, W, X, weights=1)
    ops, _ = swept(folded.ops, set(folded.inputs) | {v for op in folded.ops for v in op.outs}, folded.outputs)
    greatest = [op for op in ops if op.prim == "reduce_max"]
    assert greatest and all(sum(op.out is r.ins[0] for op in ops) == 1 for r in greatest)
    compared = {v for op in ops if op.prim == "eq" for v in op.value_ins}
    assert any(r.ins[0] in compared for r in greatest)


@pytest.mark.parametrize("how", [jnp.max, jnp.min, jnp.sum])
def test_parts_of_one_channel(relay: Relay, how: Callable[..., Any]) -> None:
    """Kernels that reduce over leading axes know no single channel; its operations are computed one by one."""

    def fn(x: Any) -> Any:
        return how(jnp.abs(x), (1, 2)) + jnp.tanh(x).sum((0, 1, 2))

    x = array(2, 4, 4, 4)

    def plan(graph: LayerGraph) -> Plan:
        assert any(len(y.ops) > 1 and y.group.result.prim.startswith("reduce") for y in graph.layers)
        return Plan("test", tuple(Placement(y.name, "split", 0.25, "channel", chain=1) for y in graph.layers))

    exe = build_on(relay, lambda w, x: fn(x) + w, jnp.zeros(4), x, plan)
    assert exe.lowered is not None and exe.lowered.segments[0].joins[0].parts[0].shape[-1] == 1
    assert error(np.asarray(exe.call([x])[0]), oracle(fn, x)) < 1e-6
    check_host(fn, x)
    check_host(fn, x[..., :1])
