"""Detectors: YOLOv2 (Redmon and Farhadi, 2017), YOLOv3 (2018) and RetinaFace (Deng et al., 2020)."""

from __future__ import annotations

import functools
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from .layers import ConvNorm, max_pool, upsample
from .mobile import Separable
from .residual import Bottleneck, ResNetStages

leaky = functools.partial(nn.leaky_relu, negative_slope=0.1)

#: Darknet-19 as (features, kernel); None: a 2x2 max pool (Table 6 of the paper, without the classifier)
DARKNET19 = (
    *((32, 3), None, (64, 3), None, (128, 3), (64, 1), (128, 3), None, (256, 3), (128, 1), (256, 3), None),
    *((512, 3), (256, 1), (512, 3), (256, 1), (512, 3), None, (1024, 3), (512, 1), (1024, 3), (512, 1), (1024, 3)),
)


class YOLOv2(nn.Module):
    """Darknet-19, the passthrough layer and five anchors for `classes` classes; [N, 13, 13, 5 * (5 + classes)] on 416 x
    416.
    """

    classes: int = 80
    anchors: int = 5

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        conv = functools.partial(ConvNorm, activation=leaky)
        fine = x
        for layer in DARKNET19:
            if layer is None:
                fine, x = x, max_pool(x, 2, 2)
            else:
                x = conv(*layer)(x)
        x = conv(1024, 3)(conv(1024, 3)(x))
        x = jnp.concatenate([space_to_depth(conv(64, 1)(fine), 2), x], -1)
        return nn.Conv(self.anchors * (5 + self.classes), (1, 1))(conv(1024, 3)(x))


class YOLOv3(nn.Module):
    """Darknet-53 and three scales, 75 convolutions: [N, S, S, 3 * (5 + classes)] for S = 13, 26, 52 on 416 x 416."""

    classes: int = 80
    repeats: tuple[int, ...] = (1, 2, 8, 8, 4)

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, ...]:
        conv = functools.partial(ConvNorm, activation=leaky)
        x, width, scales = conv(32, 3)(x), 32, []
        for count in self.repeats:
            width *= 2
            x = conv(width, 3, 2)(x)
            for _ in range(count):
                x = x + conv(width, 3)(conv(width // 2, 1)(x))
            scales.append(x)
        outs = []
        for i, y in enumerate(reversed(scales[-3:])):
            x = y if i == 0 else jnp.concatenate([upsample(conv(width // 2, 1)(x), 2), y], -1)
            width = 512 >> i
            for _ in range(2):
                x = conv(2 * width, 3)(conv(width, 1)(x))
            x = conv(width, 1)(x)
            outs.append(nn.Conv(3 * (5 + self.classes), (1, 1))(conv(2 * width, 3)(x)))
        return tuple(outs)


def space_to_depth(x: jax.Array, block: int) -> jax.Array:
    """From the shape [N, H, W, C] to [N, H / block, W / block, block * block * C]."""
    n, h, w, c = x.shape
    return (
        x.reshape(n, h // block, block, w // block, block, c)
        .transpose(0, 1, 3, 2, 4, 5)
        .reshape(n, h // block, w // block, block * block * c)
    )


class MobileNetQuarter(nn.Module):
    """MobileNetV1 of a quarter of the width; returns the results of its three stages."""

    @nn.compact
    def __call__(self, x: jax.Array) -> list[jax.Array]:
        stages = (((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)), ((128, 2), *((128, 1),) * 5), ((256, 2), (256, 1)))
        x = ConvNorm(8, 3, 2, activation=leaky)(x)
        results = []
        for stage in stages:
            for features, stride in stage:
                x = Separable(features, stride, activation=leaky)(x)
            results.append(x)
        return results


class Context(nn.Module):
    """The context module: 3x3, 5x5 and 7x7 as stacks of 3x3, side by side."""

    features: int
    activation: Callable[[jax.Array], jax.Array]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        quarter = self.features // 4
        three = ConvNorm(self.features // 2, 3, activation=None)(x)
        narrow = ConvNorm(quarter, 3, activation=self.activation)(x)
        five = ConvNorm(quarter, 3, activation=None)(narrow)
        seven = ConvNorm(quarter, 3, activation=None)(ConvNorm(quarter, 3, activation=self.activation)(narrow))
        return nn.relu(jnp.concatenate([three, five, seven], -1))


class RetinaFace(nn.Module):
    """Faces at three scales: boxes [N, A, 4], class scores [N, A, 2], landmarks [N, A, 10] of A anchors.

    `wide=False`: MobileNet0.25 backbone, 64 channels, 0.43 M parameters; `wide=True`: ResNet-50, 256 channels, 27.3 M.
    """

    wide: bool = False

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, ...]:
        features = ResNetStages((3, 4, 6, 3), Bottleneck)(x)[1:] if self.wide else MobileNetQuarter()(x)
        width = 256 if self.wide else 64
        activation = functools.partial(nn.leaky_relu, negative_slope=0.1 if width <= 64 else 0.0)
        conv = functools.partial(ConvNorm, activation=activation)
        low, middle, high = (conv(width, 1)(f) for f in features)
        middle = conv(width, 3)(middle + upsample(high, 2))
        low = conv(width, 3)(low + upsample(middle, 2))
        levels = [Context(width, activation)(f) for f in (low, middle, high)]

        def head(size: int) -> jax.Array:
            parts = [nn.Conv(2 * size, (1, 1))(f).reshape(f.shape[0], -1, size) for f in levels]
            return jnp.concatenate(parts, 1)

        boxes, scores, landmarks = (head(n) for n in (4, 2, 10))
        return boxes, nn.softmax(scores), landmarks
