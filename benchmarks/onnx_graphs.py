"""Networks as ONNX graphs: what ONNX Runtime and OpenVINO read.

jax2onnx exports the function, and its folded trace. Each comes as it is and with the operations that runtimes have
kernels for (`onnx_idioms`). A runtime runs the one that is fastest of those that it takes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import flax.linen as nn
import jax
import jax.extend.core
import numpy as np

from xcoexec.frontend.fold import fold
from xcoexec.frontend.trace import paths, trace
from xcoexec.lowering.emit import run_ops
from xcoexec.measure.timing import alternate
from xcoexec.models import layers
from xcoexec.tools import bench
from xcoexec.tools.oracle import worst

from . import networks
from .onnx_idioms import idiomatic

Made = TypeVar("Made")
WRONG = 0.1  # a graph whose result is so far from JAX's, relative to its scale, is not the network


def fastest(
    name: str,
    batch: int,
    make: Callable[[bytes], Made],
    run: Callable[[Made, Sequence[Any]], Sequence[np.ndarray]],
) -> Made:
    """What `make` makes of the graph of a network that `run` takes the fewest seconds for. Raises what `make` raises of
    all graphs, or `ValueError` where no graph is right.
    """
    entry = networks.get(name)
    x = entry.example(batch, bench.SEED)
    leaves = jax.tree_util.tree_leaves(x)
    want = [
        np.asarray(v) for v in jax.tree_util.tree_leaves(jax.jit(entry.module.apply)(entry.variables(bench.SEED), x))
    ]
    calls: dict[str, Callable[[], object]] = {}
    made: dict[str, Made] = {}
    why: Exception = ValueError(f"no graph of {name} has JAX's result")
    for label, graph in graphs(name, batch):
        try:
            candidate = make(graph())
            if worst(run(candidate, leaves), want) > WRONG:
                continue
        except Exception as e:  # what a runtime refuses has no common type
            why = e
            continue
        made[label], calls[label] = candidate, functools.partial(run, candidate, leaves)
    if not made:
        raise why
    seconds = alternate(calls, 3, 0.1)
    return made[min(seconds, key=lambda k: seconds[k])]


def graphs(name: str, batch: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """What can be tried, made when called."""
    for replay in (False, True):
        yield f"plain {replay}", functools.partial(exported, name, batch, replay)
        yield f"idiomatic {replay}", lambda replay=replay: idiomatic(exported(name, batch, replay))


@functools.lru_cache(maxsize=2)
def exported(name: str, batch: int, replay: bool = False) -> bytes:
    """The model as jax2onnx exports it; with `replay` the operations of its trace, batch norm folded. Raises what the
    exporter raises.
    """
    from jax2onnx import to_onnx

    entry = networks.get(name)
    weights, x = entry.variables(bench.SEED), entry.example(batch, bench.SEED)
    leaves, tree = jax.tree_util.tree_flatten(x)
    shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in leaves]

    def flat(*xs: Any) -> Any:
        return jax.tree_util.tree_leaves(entry.module.apply(weights, jax.tree_util.tree_unflatten(tree, xs)))

    with _exportable():
        model = to_onnx(_replayed(entry.module.apply, weights, x) if replay else flat, shapes)
    return bytes(model.SerializeToString())


class _Pooling:
    """flax.linen with a max pool whose explicit padding is an operation of its own: the exporter gets the fused form
    wrong.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(nn, name)

    def max_pool(self, x: Any, window_shape: Any, strides: Any, padding: Any) -> Any:
        if not isinstance(padding, str) and any(map(any, padding)):
            x = jax.numpy.pad(x, ((0, 0), *padding, (0, 0)), constant_values=-np.inf)
        padding = padding if isinstance(padding, str) else "VALID"
        return nn.max_pool(x, window_shape=window_shape, strides=strides, padding=padding)


@contextlib.contextmanager
def _exportable() -> Iterator[None]:
    """The zoo and this version of JAX as the exporter expects them."""
    core = jax._src.core
    missing = [name for name in ("ClosedJaxpr", "Jaxpr") if not hasattr(core, name)]
    for name in missing:
        setattr(core, name, getattr(jax.extend.core, name))
    layers.nn = _Pooling()
    try:
        yield
    finally:
        layers.nn = nn
        for name in missing:
            delattr(core, name)


def _replayed(apply: Any, weights: Any, x: Any) -> Callable[..., list[Any]]:
    """The folded trace as a function of the input's leaves, primitive by primitive."""
    leaves, tree = jax.tree_util.tree_flatten(((weights, x), {}))
    n = len(jax.tree_util.tree_leaves(weights))
    folded = fold(trace(apply, leaves, tree, paths(tree)), range(n))
    known = folded.constants(leaves[:n])

    def call(*inputs: Any) -> list[Any]:
        env: dict[Any, Any] = dict(zip(folded.inputs, inputs, strict=True))
        env.update({v: jax.numpy.asarray(known[v]) for op in folded.ops for v in op.value_ins if v in known})
        for op in folded.ops:
            if op.prim == "reduce_window_max":  # as the exporter knows it
                p = op.params
                pads = p["padding"][1:-1]
                env[op.out] = _Pooling().max_pool(
                    env[op.ins[0]], p["window_dimensions"][1:-1], p["window_strides"][1:-1], pads
                )
            else:
                run_ops((op,), env)
        return [env[v] for v in folded.outputs]

    return call
