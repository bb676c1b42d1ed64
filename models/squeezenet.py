"""SqueezeNet 1.0 (Iandola et al., 2016): 1.25 M parameters on 224 x 224 x 3."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from .layers import max_pool

CEIL = ((0, 1), (0, 1))  # sizes of pooled images are rounded up, as the paper has them


class Fire(nn.Module):
    """A squeeze 1x1 whose result two expansions (1x1 and 3x3) read; their results lie side by side."""

    squeeze: int
    expand: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.Conv(self.squeeze, (1, 1))(x))
        small = nn.relu(nn.Conv(self.expand, (1, 1))(x))
        large = nn.relu(nn.Conv(self.expand, (3, 3), padding=((1, 1), (1, 1)))(x))
        return jnp.concatenate([small, large], -1)


class SqueezeNet(nn.Module):
    """Eight fire modules between two convolutions."""

    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = max_pool(nn.relu(nn.Conv(96, (7, 7), (2, 2), padding="VALID")(x)), 3, 2, CEIL)
        for fires in (((16, 64), (16, 64), (32, 128)), ((32, 128), (48, 192), (48, 192), (64, 256)), ((64, 256),)):
            for squeeze, expand in fires:
                x = Fire(squeeze, expand)(x)
            if fires != ((64, 256),):
                x = max_pool(x, 3, 2, CEIL)
        x = nn.relu(nn.Conv(self.classes, (1, 1))(x))
        return x.mean((1, 2))
