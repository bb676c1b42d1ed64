"""Layers, folding, chains, regions, FLOP and bytes."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec import models
from xcoexec.codegen.program import Group, Op, Value

from .support import array, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")


def test_batch_norm_is_folded_into_the_convolution() -> None:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(8, (3, 3))(x)))

    x = array(1, 6, 6, 4)
    weights = jax.tree_util.tree_map(lambda a: a + 0.3, Block().init(jax.random.key(0), x))
    _, graph = stages_of(Block().apply, weights, x, weights=1)
    assert [op.prim for op in graph.layers[0].ops] == ["conv_general_dilated", "add", "max"]
    assert len(graph.program.consts) == 2


def test_known_counts() -> None:
    entry = models.get("vgg16")
    shapes = jax.eval_shape(entry.module.init, jax.random.key(0), entry.example())
    weights = jax.tree_util.tree_map(lambda s: np.zeros(s.shape, np.float32), shapes)
    _, graph = stages_of(entry.module.apply, weights, entry.example(), weights=1)
    assert abs(sum(x.flops for x in graph.layers) / 30.95e9 - 1) < 0.01  # 15.47 G multiply-adds
    assert len([x for x in graph.layers if x.kind == "conv_general_dilated"]) == 13


def test_residual_joins_the_later_branch() -> None:
    _, graph = stages_of(lambda w, x: jax.nn.relu(x @ w + jnp.tanh(x @ w) @ w), array(8, 8), array(4, 8), weights=1)
    assert [x.kind for x in graph.layers].count("dot_general") == 3
    assert not any(x.kind == "add" for x in graph.layers)


def test_regions_and_chains_of_squeezenet() -> None:
    entry = models.get("squeezenet")
    shapes = jax.eval_shape(entry.module.init, jax.random.key(0), entry.example())
    weights = jax.tree_util.tree_map(lambda s: np.zeros(s.shape, np.float32), shapes)
    _, graph = stages_of(entry.module.apply, weights, entry.example(), weights=1)
    assert len(graph.regions) == 8 and all(len(r.branches) == 2 for r in graph.regions)


def test_two_readers_keep_a_value_visible() -> None:
    """It is computed once, as a layer of its own that both read."""

    def fn(w: Any, x: Any) -> Any:
        y = x @ w
        return jax.nn.relu(y), y + 1

    _, graph = stages_of(fn, array(8, 8), array(4, 8), weights=1)
    assert [[op.prim for op in x.ops] for x in graph.layers] == [["dot_general"], ["max"], ["add"]]
    assert all(graph.layers[0].out in x.ins for x in graph.layers[1:])


def test_swish_is_one_layer() -> None:
    _, graph = stages_of(lambda w, x: jax.nn.gelu(jax.nn.swish(x @ w)), array(8, 8), array(4, 8), weights=1)
    assert len(graph.layers) == 1


def test_a_group_is_in_program_order_and_knows_its_anchor() -> None:
    """A softmax over a scaled product: the constant that the scale spreads stands before its reader."""
    scale = array(6, seed=3)
    fn = lambda w, x: jax.nn.softmax(jnp.tanh(x * jnp.broadcast_to(scale, (4, 6))) @ w, -1)
    folded, graph = stages_of(fn, array(6, 8), array(4, 6, seed=1), weights=1)
    position = {op: i for i, op in enumerate(folded.ops)}
    for x in graph.layers:
        assert list(x.ops) == sorted(x.ops, key=position.__getitem__)
        assert x.group.anchor in x.ops and x.out is x.ops[-1].out
    assert [op.prim for op in graph.layers[0].ops] == ["broadcast_in_dim", "mul", "tanh"]
    assert [x.group.anchor.prim for x in graph.layers] == ["mul", "dot_general", "reduce_max"]
    assert [x.kind for x in graph.layers] == ["mul", "dot_general", "reduce_max"]


def test_a_group_in_another_order_is_refused() -> None:
    x, y, z = (Value((4,), "float32") for _ in range(3))
    first, second = Op("exp", (x,), (y,), {}), Op("neg", (y,), (z,), {})
    assert Group((first, second), first).out is z
    with pytest.raises(ValueError, match="neg '' stands before"):
        Group((second, first), first)
    with pytest.raises(ValueError, match="anchor exp '' is not among"):
        Group((second,), first)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint8", "int16", "uint16"])
def test_short_weights_are_widened_and_moved_at_bind_bit_by_bit(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of their values, as JAX has them, without a program of JAX's for each shape."""
    kind = np.dtype(getattr(jnp, dtype))
    w = np.arange(1 << 8 * kind.itemsize, dtype=f"u{kind.itemsize}").view(kind).reshape(2, -1)
    fn = lambda w, x: x * jnp.asarray(w.reshape(-1), jnp.float32)[None] + w.T.astype(jnp.float32).reshape(1, -1)
    folded, _ = stages_of(fn, w, np.ones((1, w.size), np.float32), weights=1)
    monkeypatch.setattr("xcoexec.frontend.fold.bind", lambda *_: pytest.fail("by JAX"))
    constants = folded.constants([w])
    found = [constants[v] for v in constants if v.dtype == "float32" and v not in folded.weights]
    wide = np.asarray(jnp.asarray(w).astype(jnp.float32))
    assert any(np.array_equal(x.reshape(-1), wide.reshape(-1), equal_nan=True) for x in found)
    assert any(np.array_equal(x.reshape(-1), wide.T.reshape(-1), equal_nan=True) for x in found)
