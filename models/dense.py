"""Image to image: FCN-8s (Long et al., 2015) and the fast style transfer network (Johnson et al., 2016)."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from .layers import around, max_pool, upsample


class FCN8s(nn.Module):
    """VGG-16 made convolutional, with skips from pool3 and pool4: class scores for every pixel, 134.5 M parameters.

    Input sides are multiples of 32; padding is even all around instead of the published 100 pixels with a crop.
    """

    classes: int = 21

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        pooled = []
        for count, width in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
            for _ in range(count):
                x = nn.relu(nn.Conv(width, (3, 3), padding=around(1))(x))
            x = max_pool(x, 2, 2)
            pooled.append(x)
        x = nn.relu(nn.Conv(4096, (7, 7), padding=around(3))(x))
        x = nn.relu(nn.Conv(4096, (1, 1))(x))
        x = self.up(nn.Conv(self.classes, (1, 1))(x), 2) + nn.Conv(self.classes, (1, 1))(pooled[3])
        x = self.up(x, 2) + nn.Conv(self.classes, (1, 1))(pooled[2])
        return self.up(x, 8)

    def up(self, x: jax.Array, factor: int) -> jax.Array:
        """A transposed convolution: from the shape [N, H, W, C] to [N, H * factor, W * factor, classes]."""
        return nn.ConvTranspose(self.classes, (2 * factor, 2 * factor), (factor, factor), use_bias=False)(x)


class InstanceNorm(nn.Module):
    """Normalises each channel of each image, with scale and bias."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        mean = x.mean((1, 2), keepdims=True)
        variance = jnp.square(x - mean).mean((1, 2), keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + bias


class FastStyle(nn.Module):
    """An image in another style: three convolutions down, five residual blocks, nearest-neighbour upsampling: 1.68 M
    parameters.
    """

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for features, kernel, stride in ((32, 9, 1), (64, 3, 2), (128, 3, 2)):
            x = nn.relu(InstanceNorm()(self.conv(x, features, kernel, stride)))
        for _ in range(5):
            y = nn.relu(InstanceNorm()(self.conv(x, 128, 3)))
            x = x + InstanceNorm()(self.conv(y, 128, 3))
        for features in (64, 32):
            x = nn.relu(InstanceNorm()(self.conv(upsample(x, 2), features, 3)))
        return self.conv(x, 3, 9)

    def conv(self, x: jax.Array, features: int, kernel: int, stride: int = 1) -> jax.Array:
        """Convolution over a reflected border: from the shape [N, H, W, C] to [N, H / stride, W / stride, features],
        rounded up.
        """
        n = kernel // 2
        return nn.Conv(features, (kernel, kernel), (stride, stride), padding="VALID")(
            jnp.pad(x, ((0, 0), (n, n), (n, n), (0, 0)), mode="reflect")
        )
