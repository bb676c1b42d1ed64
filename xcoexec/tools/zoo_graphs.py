"""Layer graphs of models, for planning without weights: the zoo's, and those that a configuration describes."""

from __future__ import annotations

import functools
import os
from typing import Any

import jax
import jax.numpy as jnp

from .. import models
from ..frontend.graph import graph_of
from ..ir.layers import LayerGraph

TYPES = ("float32", "bfloat16", "float16")


@functools.cache
def model_graph(name: str, batch: int = 1) -> LayerGraph:
    """The layer graph of a model of the zoo, or of a token of the decoder that a folder with Transformers' config.json
    describes, from shapes alone. Raises `ValueError` for a name that is neither, and as `models.llama.from_config`.
    """
    if os.path.isfile(os.path.join(name, "config.json")):
        return _decoder_graph(name, batch)
    entry = models.get(name)
    return graph_of(entry.module.apply, (entry.shapes(), entry.example(batch)), 1)[1]


def _decoder_graph(folder: str, batch: int) -> LayerGraph:
    """The graph of one token a row; matrices are of the type that the configuration names."""
    config = models.llama.read_config(folder)
    module = models.llama.from_config(config)
    dtype = config.get("torch_dtype") or config.get("dtype") or TYPES[0]
    if dtype not in TYPES:
        raise ValueError(f"models.llama: got weights of type {dtype!r}; valid are {', '.join(TYPES)}.")
    empty = lambda: models.decoder.Step(jnp.zeros((batch, 1), jnp.int32), module.empty_cache(batch), jnp.int32(0))
    step = jax.eval_shape(empty)

    def kept(s: Any) -> Any:
        return jax.ShapeDtypeStruct(s.shape, dtype if len(s.shape) > 1 else s.dtype)

    weights = jax.tree_util.tree_map(kept, jax.eval_shape(module.init, jax.random.key(0), step))
    return graph_of(module.apply, (weights, step), 1)[1]


__all__ = ["model_graph"]
