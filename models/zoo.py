"""The models by name, with what is known of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from .classic import FCNN, VGG, AlexNet, LeNet5
from .residual import MobileNetV2, ResNet
from .squeezenet import SqueezeNet


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model: its module, the shape of one input (without the batch) and its parameter count (None: our own design)."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    classes: int
    parameters: int | None

    @property
    def module(self) -> nn.Module:
        return self.make()

    def variables(self, seed: int = 0) -> Any:
        """Random weights, and running statistics that are not trivial (so that folding is seen to matter)."""
        module = self.module
        shapes = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, *self.shape)))
        rng = np.random.default_rng(seed)
        return jax.tree_util.tree_map_with_path(lambda path, s: _draw(rng, jax.tree_util.keystr(path), s), shapes)

    def example(self, batch: int = 1, seed: int = 0) -> jax.Array:
        """A random input, f32 [batch, *shape]."""
        return jnp.asarray(np.random.default_rng(seed).standard_normal((batch, *self.shape), np.float32))


def _draw(rng: np.random.Generator, path: str, s: Any) -> jax.Array:
    if path.endswith("['kernel']"):
        scale = np.sqrt(2.0 / max(1, int(np.prod(s.shape[:-1]))))
        return jnp.asarray(rng.standard_normal(s.shape, np.float32) * np.float32(scale))
    if path.endswith("['var']") or path.endswith("['scale']"):
        return jnp.asarray(rng.uniform(0.5, 1.5, s.shape).astype(np.float32))
    return jnp.asarray(rng.standard_normal(s.shape, np.float32) * np.float32(0.1))


_ENTRIES = (
    Entry("fcnn", FCNN, (28, 28, 1), 10, None),
    Entry("lenet", LeNet5, (28, 28, 1), 10, 61_706),
    Entry("alexnet", AlexNet, (224, 224, 3), 1000, 61_100_840),
    Entry("vgg16", VGG, (224, 224, 3), 1000, 138_357_544),
    Entry("squeezenet", SqueezeNet, (224, 224, 3), 1000, 1_248_424),
    Entry("resnet18", ResNet, (224, 224, 3), 1000, 11_689_512),
    Entry("mobilenet_v2", MobileNetV2, (224, 224, 3), 1000, 3_504_872),
)
_BY_NAME = {e.name: e for e in _ENTRIES}
NAMES = tuple(_BY_NAME)


def get(name: str) -> Entry:
    """The model of that name. Raises `ValueError` that lists the valid names."""
    if name not in _BY_NAME:
        raise ValueError(f"xcoexec.models.get: got {name!r}; valid are {', '.join(NAMES)}.")
    return _BY_NAME[name]
