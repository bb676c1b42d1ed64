"""Layers, folding, chains, regions, FLOP and bytes."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from xcoexec import models

from .support import array, stages_of


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
    _, graph = stages_of(lambda w, x: (jax.nn.relu(x @ w), (x @ w) + 1), array(8, 8), array(4, 8), weights=1)
    assert len(graph.program.outputs) == 2


def test_swish_is_one_layer() -> None:
    _, graph = stages_of(lambda w, x: jax.nn.gelu(jax.nn.swish(x @ w)), array(8, 8), array(4, 8), weights=1)
    assert len(graph.layers) == 1
