"""FCNN, LeNet-5, AlexNet and VGG-16: chains of convolutions and large dense layers."""

from __future__ import annotations

import flax.linen as nn
import jax

from .layers import flatten, max_pool


class FCNN(nn.Module):
    """Fully connected network with three hidden layers (28 x 28 inputs, 10 classes)."""

    hidden: tuple[int, ...] = (1024, 1024, 1024)
    classes: int = 10

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = flatten(x)
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(self.classes)(x)


class LeNet5(nn.Module):
    """LeNet-5 (LeCun et al., 1998) with ReLU and max pooling: 61,706 parameters on 28 x 28 x 1."""

    classes: int = 10

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = max_pool(nn.relu(nn.Conv(6, (5, 5), padding="SAME")(x)), 2, 2)
        x = max_pool(nn.relu(nn.Conv(16, (5, 5), padding="VALID")(x)), 2, 2)
        x = flatten(x)
        x = nn.relu(nn.Dense(120)(x))
        x = nn.relu(nn.Dense(84)(x))
        return nn.Dense(self.classes)(x)


class AlexNet(nn.Module):
    """AlexNet in one column (Krizhevsky, 2014): 61.1 M parameters on 224 x 224 x 3."""

    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = max_pool(nn.relu(nn.Conv(64, (11, 11), (4, 4), padding=((2, 2), (2, 2)))(x)), 3, 2)
        x = max_pool(nn.relu(nn.Conv(192, (5, 5), padding=((2, 2), (2, 2)))(x)), 3, 2)
        for width in (384, 256, 256):
            x = nn.relu(nn.Conv(width, (3, 3), padding=((1, 1), (1, 1)))(x))
        x = flatten(max_pool(x, 3, 2))
        for _ in range(2):
            x = nn.relu(nn.Dense(4096)(x))
        return nn.Dense(self.classes)(x)


class VGG(nn.Module):
    """VGG (Simonyan and Zisserman, 2015); configuration D is VGG-16 with 138.36 M parameters."""

    stages: tuple[tuple[int, int], ...] = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))
    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for convs, width in self.stages:
            for _ in range(convs):
                x = nn.relu(nn.Conv(width, (3, 3), padding=((1, 1), (1, 1)))(x))
            x = max_pool(x, 2, 2)
        x = flatten(x)
        for _ in range(2):
            x = nn.relu(nn.Dense(4096)(x))
        return nn.Dense(self.classes)(x)
