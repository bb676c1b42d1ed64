"""Blocks that several models share (NHWC, inference)."""

from __future__ import annotations

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

Activation = Callable[[jax.Array], jax.Array] | None
Padding = str | tuple[tuple[int, int], tuple[int, int]]  # Flax's name of one, or (before, behind) of rows and columns


class ConvNorm(nn.Module):
    """Convolution without bias, batch norm with running statistics, activation (None: linear)."""

    features: int
    kernel: int = 3
    stride: int = 1
    groups: int = 1
    activation: Activation = nn.relu
    padding: Padding | None = None
    dilation: int = 1
    epsilon: float = 1e-5

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.Conv(
            self.features,
            (self.kernel, self.kernel),
            (self.stride, self.stride),
            padding=around(self.kernel // 2 * self.dilation) if self.padding is None else self.padding,
            kernel_dilation=(self.dilation, self.dilation),
            feature_group_count=self.groups,
            use_bias=False,
        )(x)
        x = nn.BatchNorm(use_running_average=True, epsilon=self.epsilon)(x)
        return x if self.activation is None else self.activation(x)


def max_pool(x: jax.Array, window: int, stride: int, padding: Padding = "VALID") -> jax.Array:
    """The largest values in windows over an image of shape [N, H, W, C]; `padding` as in Flax."""
    return nn.max_pool(x, window_shape=(window, window), strides=(stride, stride), padding=padding)


def flatten(x: jax.Array) -> jax.Array:
    """From the shape [N, ...] to [N, product of the rest]."""
    return x.reshape(x.shape[0], -1)


def around(n: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """n pixels of padding on every side of an image: (before, behind) along the axis of rows and that of columns."""
    return (n, n), (n, n)


def upsample(x: jax.Array, factor: int) -> jax.Array:
    """Nearest neighbour: every pixel of an image of shape [N, H, W, C] `factor` x `factor` times."""
    n, h, w, c = x.shape
    return jnp.broadcast_to(x[:, :, None, :, None, :], (n, h, factor, w, factor, c)).reshape(
        n, h * factor, w * factor, c
    )
