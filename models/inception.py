"""GoogLeNet (Szegedy et al., 2015) without its training heads."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from .layers import ConvNorm, around, max_pool

#: channels of the branches 1x1, (1x1, 3x3), (1x1, 5x5), pool projection; None: a max pool (Table 1 of the paper)
MODULES = (
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    None,
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    None,
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
)


class Convolution(nn.Module):
    """Convolution with bias and ReLU, or (`norm`) without bias and with batch norm."""

    features: int
    kernel: int
    stride: int = 1
    norm: bool = False

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        if self.norm:
            return ConvNorm(self.features, self.kernel, self.stride, epsilon=1e-3)(x)
        return nn.relu(
            nn.Conv(self.features, (self.kernel,) * 2, (self.stride,) * 2, padding=around(self.kernel // 2))(x)
        )


class GoogLeNet(nn.Module):
    """The paper's network: 7.0 M parameters on 224 x 224 x 3.

    `norm=True, wide=3` is the variant that PyTorch users know (batch norm, 3x3 in place of 5x5): 6.62 M parameters.
    """

    norm: bool = False
    wide: int = 5
    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        def conv(x: jax.Array, features: int, kernel: int = 1, stride: int = 1) -> jax.Array:
            return Convolution(features, kernel, stride, self.norm)(x)

        x = max_pool(conv(x, 64, 7, 2), 3, 2, ((0, 1), (0, 1)))
        x = max_pool(conv(conv(x, 64), 192, 3), 3, 2, ((0, 1), (0, 1)))
        for module in MODULES:
            if module is None:
                x = max_pool(x, 3, 2, ((0, 1), (0, 1))) if x.shape[1] > 14 else max_pool(x, 2, 2)
                continue
            one, three_in, three, five_in, five, pool = module
            branches = [
                conv(x, one),
                conv(conv(x, three_in), three, 3),
                conv(conv(x, five_in), five, self.wide),
                conv(max_pool(x, 3, 1, around(1)), pool),
            ]
            x = jnp.concatenate(branches, -1)
        return nn.Dense(self.classes)(x.mean((1, 2)))
