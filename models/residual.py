"""ResNet-18 (He et al., 2016) and MobileNetV2 (Sandler et al., 2018)."""

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


class ResNet(nn.Module):
    """ResNet of basic blocks; (2, 2, 2, 2) is ResNet-18 with 11.69 M parameters."""

    blocks: tuple[int, ...] = (2, 2, 2, 2)
    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = max_pool(ConvNorm(64, 7, 2)(x), 3, 2, ((1, 1), (1, 1)))
        for stage, count in enumerate(self.blocks):
            for i in range(count):
                x = BasicBlock(64 << stage, 2 if i == 0 and stage else 1)(x)
        return nn.Dense(self.classes)(x.mean((1, 2)))


class InvertedResidual(nn.Module):
    """1x1 expansion, depthwise 3x3, linear 1x1 projection."""

    features: int
    stride: int
    expansion: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        wide = x.shape[-1] * self.expansion
        y = x if self.expansion == 1 else ConvNorm(wide, 1, activation=nn.relu6)(x)
        y = ConvNorm(wide, 3, self.stride, groups=wide, activation=nn.relu6)(y)
        y = ConvNorm(self.features, 1, activation=None)(y)
        return x + y if y.shape == x.shape else y


class MobileNetV2(nn.Module):
    """MobileNetV2 1.0: 3.50 M parameters on 224 x 224 x 3."""

    #: expansion, features, repeats, stride of the first (Table 2 of the paper)
    stages: tuple[tuple[int, int, int, int], ...] = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = ConvNorm(32, 3, 2, activation=nn.relu6)(x)
        for expansion, features, repeats, stride in self.stages:
            for i in range(repeats):
                x = InvertedResidual(features, stride if i == 0 else 1, expansion)(x)
        x = ConvNorm(1280, 1, activation=nn.relu6)(x)
        return nn.Dense(self.classes)(x.mean((1, 2)))
