"""Blocks that several models share (NHWC, inference)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax


class ConvNorm(nn.Module):
    """Convolution without bias, batch norm with running statistics, activation (None: linear)."""

    features: int
    kernel: int = 3
    stride: int = 1
    groups: int = 1
    activation: Callable[[jax.Array], jax.Array] | None = nn.relu
    padding: Any = None

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        half = self.kernel // 2
        padding = ((half, half), (half, half)) if self.padding is None else self.padding
        x = nn.Conv(self.features, (self.kernel, self.kernel), (self.stride, self.stride), padding=padding, feature_group_count=self.groups, use_bias=False)(x)
        x = nn.BatchNorm(use_running_average=True, epsilon=1e-5)(x)
        return x if self.activation is None else self.activation(x)


def max_pool(x: jax.Array, window: int, stride: int, padding: Any = "VALID") -> jax.Array:
    return nn.max_pool(x, window_shape=(window, window), strides=(stride, stride), padding=padding)


def flatten(x: jax.Array) -> jax.Array:
    return x.reshape(x.shape[0], -1)
