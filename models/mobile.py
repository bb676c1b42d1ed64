"""MobileNetV1 (Howard et al., 2017), MobileNetV2 (Sandler et al., 2018) and PoseNet on a MobileNetV1."""

from __future__ import annotations

import flax.linen as nn
import jax

from .layers import Activation, ConvNorm

#: features and stride of MobileNetV1's separable blocks (Table 1 of the paper)
SEPARABLE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


class Separable(nn.Module):
    """Depthwise 3x3, then 1x1."""

    features: int
    stride: int = 1
    dilation: int = 1
    activation: Activation = nn.relu

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = ConvNorm(
            x.shape[-1], 3, self.stride, groups=x.shape[-1], activation=self.activation, dilation=self.dilation
        )(x)
        return ConvNorm(self.features, 1, activation=self.activation)(x)


class MobileNetV1(nn.Module):
    """MobileNet 1.0: 4.23 M parameters on 224 x 224 x 3."""

    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = ConvNorm(32, 3, 2)(x)
        for features, stride in SEPARABLE:
            x = Separable(features, stride)(x)
        return nn.Dense(self.classes)(x.mean((1, 2)))


class PoseNet(nn.Module):
    """Keypoints of people: a MobileNetV1 of output stride 16 (the last stride becomes a dilation) and four 1x1 heads.

    Returns heatmaps (17), offsets (34), forward and backward displacements (32 each).
    """

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = ConvNorm(32, 3, 2, activation=nn.relu6)(x)
        total, dilation = 2, 1
        for features, stride in SEPARABLE:
            if total * stride > 16:
                dilation, stride = dilation * stride, 1
            total *= stride
            x = Separable(features, stride, dilation, nn.relu6)(x)
        heatmaps = nn.sigmoid(nn.Conv(17, (1, 1))(x))
        return heatmaps, *(nn.Conv(c, (1, 1))(x) for c in (34, 32, 32))


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
