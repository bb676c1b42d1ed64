"""ResNet-18 and ResNet-50 (He et al., 2016)."""

from __future__ import annotations

import flax.linen as nn
import jax

from .layers import ConvNorm, max_pool


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    features: int
    stride: int = 1

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = ConvNorm(self.features, 3, self.stride)(x)
        y = ConvNorm(self.features, 3, activation=None)(y)
        if y.shape != x.shape:
            x = ConvNorm(self.features, 1, self.stride, activation=None)(x)
        return nn.relu(x + y)


class Bottleneck(nn.Module):
    """1x1, 3x3 (with the stride, as in version 1.5), 1x1 to four times the width, and a shortcut."""

    features: int
    stride: int = 1

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = ConvNorm(self.features, 1)(x)
        y = ConvNorm(self.features, 3, self.stride)(y)
        y = ConvNorm(4 * self.features, 1, activation=None)(y)
        if y.shape != x.shape:
            x = ConvNorm(4 * self.features, 1, self.stride, activation=None)(x)
        return nn.relu(x + y)


class ResNetStages(nn.Module):
    """The convolutional part; returns the result of every stage."""

    blocks: tuple[int, ...]
    block: type[nn.Module]

    @nn.compact
    def __call__(self, x: jax.Array) -> list[jax.Array]:
        x = max_pool(ConvNorm(64, 7, 2)(x), 3, 2, ((1, 1), (1, 1)))
        results = []
        for stage, count in enumerate(self.blocks):
            for i in range(count):
                x = self.block(64 << stage, 2 if i == 0 and stage else 1)(x)
            results.append(x)
        return results


class ResNet(nn.Module):
    """(2, 2, 2, 2) basic blocks are ResNet-18 with 11.69 M parameters, (3, 4, 6, 3) bottlenecks ResNet-50 with
    25.56 M.
    """

    blocks: tuple[int, ...] = (2, 2, 2, 2)
    block: type[nn.Module] = BasicBlock
    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = ResNetStages(self.blocks, self.block)(x)[-1]
        return nn.Dense(self.classes)(x.mean((1, 2)))
