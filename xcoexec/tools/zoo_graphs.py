"""Layer graphs of the zoo's models, for planning without weights."""

from __future__ import annotations

import functools

from .. import models
from ..frontend.graph import graph_of
from ..ir.layers import LayerGraph


@functools.cache
def model_graph(name: str, batch: int = 1) -> LayerGraph:
    """The layer graph of a model of the zoo, from shapes alone. Raises `ValueError` for a name that is not there."""
    entry = models.get(name)
    return graph_of(entry.module.apply, (entry.shapes(), entry.example(batch)), 1)[1]


__all__ = ["model_graph"]
