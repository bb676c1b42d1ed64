"""The networks of `benchmarks.deadlines`: small ones, trained, in blocks with twins."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import numpy as np
import optax

import xcoexec
from xcoexec.models.classic import VGG
from xcoexec.models.mobile import MobileNetV1
from xcoexec.models.residual import ResNet
from xcoexec.streams import duo
from xcoexec.streams.block_model import Model, model
from xcoexec.streams.datasets import Data, coloured_shapes
from xcoexec.streams.duo import Duo
from xcoexec.streams.twin_search import Search, descend

#: after the paper's Table 2, for small images: MobileNetV1 instead of V3, a tiny YOLO instead of YOLOv3
NETWORKS: Mapping[str, Any] = {
    "vgg11": partial(VGG, ((1, 32), (1, 64), (2, 128), (2, 256)), 10),
    "resnet18": partial(ResNet, classes=10),
    "mobilenet": partial(MobileNetV1, classes=10),
    "alexnet": lambda: Small(),
    "yolo": lambda: TinyYOLO(),
}
PARAMETERS_SEED, RATE = 0, 1e-3


class Small(nn.Module):
    """AlexNet's layers for small images."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width, kernel, stride in ((64, 7, 2), (192, 5, 2), (384, 3, 1), (256, 3, 1), (256, 3, 2)):
            x = nn.relu(nn.Conv(width, (kernel, kernel), (stride, stride))(x))
        x = x.reshape(x.shape[0], -1)
        return nn.Dense(10)(nn.relu(nn.Dense(1024)(x)))


class TinyYOLO(nn.Module):
    """Tiny YOLO's layers, a class and an objectness for every cell; the image's class is that of its cells, each as
    much as it holds an object.
    """

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width in (16, 32, 64, 128):
            x = nn.max_pool(nn.leaky_relu(nn.Conv(width, (3, 3))(x), 0.1), (2, 2), (2, 2))
        for width in (256, 512):
            x = nn.leaky_relu(nn.Conv(width, (3, 3))(x), 0.1)
        cells = nn.Conv(11, (1, 1))(x).reshape(x.shape[0], -1, 11)
        return (nn.softmax(cells[..., :1], axis=1) * cells[..., 1:]).sum(1)


def images(count: int, side: int) -> Data:
    """Coloured shapes of `side` x `side` (a multiple of 32)."""
    found = coloured_shapes(count)
    large = lambda d: (d[0].repeat(side // 32, 1).repeat(side // 32, 2), d[1])
    return Data(large(found.train), large(found.test))


def trained(module: nn.Module, data: Data, steps: int, batch: int = 32) -> Any:
    """Weights after some steps of Adam. Running statistics are those of the initial state: batch norm is affine then,
    and deep networks begin with He's variance, so that they can be trained without."""
    variables = dict(module.init(jax.random.key(PARAMETERS_SEED), data.train[0][:1]))
    params = jax.tree_util.tree_map(lambda w: w * 2**0.5 if w.ndim == 4 else w, variables.pop("params"))

    def loss(p: Any, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(module.apply({"params": p, **variables}, x), y).mean()

    params = descend(loss, params, steps, RATE, data.batches(batch)) if steps else params
    return {"params": params, **variables}


def prepared(
    folder: pathlib.Path,
    names: Sequence[str],
    steps: int,
    search: Search,
    data: Data,
    threads: int | None,
    epsilon: float,
    twinned: Sequence[str],
) -> dict[str, Model]:
    """Every network in blocks, those named with twins, compiled and timed on this machine."""
    out = {}
    for name in names:
        module = NETWORKS[name]()
        where_it_is = folder / f"{name}.npz"
        if where_it_is.is_file():
            tree = jax.tree_util.tree_structure(jax.eval_shape(module.init, jax.random.key(0), data.test[0][:1]))
            with np.load(where_it_is) as f:
                weights = jax.tree_util.tree_unflatten(tree, [f[f"arr_{i}"] for i in range(tree.num_leaves)])
        else:
            weights = jax.tree_util.tree_map(np.asarray, trained(module, data, steps))
            np.savez(where_it_is, *jax.tree_util.tree_leaves(weights))
        resident = xcoexec.jit(module.apply, threads=threads, wait=True).bind(weights)
        x = data.test[0][:1]
        if search.finetune and name in twinned:
            kept = folder / f"{name}-duo"
            if not (kept / "duo.json").is_file():
                duo.generate(module.apply, weights, data, threads=threads, most=6, epsilon=epsilon, search=search).save(
                    kept
                )
            out[name] = Duo.load(kept).model(resident, x)
        else:
            out[name] = model(resident, x)
    return out
