"""Networks that are no part of the package, written as users of Flax write them: nobody tuned anything for them."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from xcoexec import models
from xcoexec.models.zoo import Entry

IMAGE = (224, 224, 3)


class DenseNet(nn.Module):
    """DenseNet-121 (Huang et al., 2017): every layer of a block reads all results before it."""

    blocks: tuple[int, ...] = (6, 12, 24, 16)
    growth: int = 32

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        active = lambda x: nn.relu(nn.BatchNorm(use_running_average=True)(x))
        x = nn.Conv(64, (7, 7), (2, 2), padding=3, use_bias=False)(x)
        x = nn.max_pool(active(x), (3, 3), (2, 2), padding=((1, 1), (1, 1)))
        for i, layers in enumerate(self.blocks):
            for _ in range(layers):
                y = nn.Conv(4 * self.growth, (1, 1), use_bias=False)(active(x))
                y = nn.Conv(self.growth, (3, 3), padding=1, use_bias=False)(active(y))
                x = jnp.concatenate([x, y], axis=-1)
            if i + 1 < len(self.blocks):
                x = nn.Conv(x.shape[-1] // 2, (1, 1), use_bias=False)(active(x))
                x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.Dense(1000)(jnp.mean(active(x), axis=(1, 2)))


class ConvNeXt(nn.Module):
    """ConvNeXt-T (Liu et al., 2022): depthwise 7x7 convolutions, layer norm, dense layers with GELU."""

    blocks: tuple[int, ...] = (3, 3, 9, 3)
    widths: tuple[int, ...] = (96, 192, 384, 768)

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for stage, (count, width) in enumerate(zip(self.blocks, self.widths, strict=True)):
            if stage:
                x = nn.Conv(width, (2, 2), (2, 2), padding="VALID")(nn.LayerNorm(epsilon=1e-6)(x))
            else:
                x = nn.LayerNorm(epsilon=1e-6)(nn.Conv(width, (4, 4), (4, 4), padding="VALID")(x))
            for i in range(count):
                y = nn.Conv(width, (7, 7), padding=3, feature_group_count=width)(x)
                y = nn.Dense(4 * width)(nn.LayerNorm(epsilon=1e-6)(y))
                y = nn.Dense(width)(nn.gelu(y, approximate=False))
                x = x + self.param(f"scale_{stage}_{i}", nn.initializers.constant(1e-6), (width,)) * y
        return nn.Dense(1000)(nn.LayerNorm(epsilon=1e-6)(jnp.mean(x, axis=(1, 2))))


class EfficientNet(nn.Module):
    """EfficientNet-B0 (Tan and Le, 2019): inverted bottlenecks with squeeze and excitation."""

    #: expansion, width, layers, stride and kernel of each stage
    stages: tuple[tuple[int, int, int, int, int], ...] = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        norm = lambda x: nn.BatchNorm(use_running_average=True, epsilon=1e-3)(x)
        x = nn.swish(norm(nn.Conv(32, (3, 3), (2, 2), padding=1, use_bias=False)(x)))
        for expansion, width, layers, stride, kernel in self.stages:
            for i in range(layers):
                before, wide, step = x, x.shape[-1] * expansion, stride if i == 0 else 1
                y = nn.swish(norm(nn.Conv(wide, (1, 1), use_bias=False)(x))) if expansion > 1 else x
                around = {"padding": kernel // 2, "feature_group_count": wide, "use_bias": False}
                y = nn.swish(norm(nn.Conv(wide, (kernel, kernel), (step, step), **around)(y)))
                squeezed = nn.swish(nn.Conv(max(1, before.shape[-1] // 4), (1, 1))(y.mean((1, 2), keepdims=True)))
                y = y * nn.sigmoid(nn.Conv(wide, (1, 1))(squeezed))
                y = norm(nn.Conv(width, (1, 1), use_bias=False)(y))
                x = y + before if y.shape == before.shape else y
        x = nn.swish(norm(nn.Conv(1280, (1, 1), use_bias=False)(x)))
        return nn.Dense(1000)(x.mean((1, 2)))


class ResNeXt(nn.Module):
    """ResNeXt-50, 32 groups of 4 (Xie et al., 2017)."""

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    groups: int = 32

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        norm = lambda x: nn.BatchNorm(use_running_average=True)(x)
        x = nn.relu(norm(nn.Conv(64, (7, 7), (2, 2), padding=3, use_bias=False)(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), padding=((1, 1), (1, 1)))
        for stage, count in enumerate(self.blocks):
            width = 128 << stage
            for i in range(count):
                step, before = (2, 2) if stage and not i else (1, 1), x
                y = nn.relu(norm(nn.Conv(width, (1, 1), use_bias=False)(x)))
                groups = {"feature_group_count": self.groups, "use_bias": False}
                y = nn.relu(norm(nn.Conv(width, (3, 3), step, padding=1, **groups)(y)))
                y = norm(nn.Conv(2 * width, (1, 1), use_bias=False)(y))
                if before.shape != y.shape:
                    before = norm(nn.Conv(2 * width, (1, 1), step, use_bias=False)(before))
                x = nn.relu(y + before)
        return nn.Dense(1000)(x.mean((1, 2)))


class Video(nn.Module):
    """A residual network of 3-D convolutions of 18 layers (Tran et al., 2018): [N, frames, rows, columns, 3]."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        norm = lambda x: nn.BatchNorm(use_running_average=True)(x)
        x = nn.relu(norm(nn.Conv(64, (3, 7, 7), (1, 2, 2), padding=((1, 1), (3, 3), (3, 3)), use_bias=False)(x)))
        for stage in range(4):
            for i in range(2):
                step, before = (2, 2, 2) if stage and not i else (1, 1, 1), x
                y = nn.relu(norm(nn.Conv(64 << stage, (3, 3, 3), step, padding=1, use_bias=False)(x)))
                y = norm(nn.Conv(64 << stage, (3, 3, 3), padding=1, use_bias=False)(y))
                if before.shape != y.shape:
                    before = norm(nn.Conv(64 << stage, (1, 1, 1), step, use_bias=False)(before))
                x = nn.relu(y + before)
        return nn.Dense(400)(x.mean((1, 2, 3)))


class ConvMixer(nn.Module):
    """ConvMixer-256/8 for images of 32x32 (Trockman and Kolter, 2022): depthwise 9x9 and dense layers with GELU."""

    width: int = 256
    depth: int = 8

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        norm = lambda x: nn.BatchNorm(use_running_average=True)(nn.gelu(x, approximate=False))
        x = norm(nn.Conv(self.width, (1, 1))(x))
        for _ in range(self.depth):
            x = x + norm(nn.Conv(self.width, (9, 9), feature_group_count=self.width)(x))
            x = norm(nn.Conv(self.width, (1, 1))(x))
        return nn.Dense(10)(x.mean((1, 2)))


class DQN(nn.Module):
    """The network that plays Atari games (Mnih et al., 2015): four frames of 84x84 -> values of 18 actions."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width, kernel, step in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = nn.relu(nn.Conv(width, (kernel, kernel), (step, step), padding="VALID")(x))
        return nn.Dense(18)(nn.relu(nn.Dense(512)(x.reshape(x.shape[0], -1))))


class Denoiser(nn.Module):
    """A U-Net of a diffusion model (Ho et al., 2020), small: group norm and SiLU before each convolution, attention at
    a quarter of the size, the step's embedding a parameter. An image -> one of its size.
    """

    widths: tuple[int, ...] = (64, 128, 256)

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        step = nn.silu(self.param("step", nn.initializers.normal(1.0), (1, 256)))

        def residual(x: jax.Array, width: int) -> jax.Array:
            y = nn.Conv(width, (3, 3))(nn.silu(nn.GroupNorm(32)(x))) + nn.Dense(width)(step)[:, None, None]
            y = nn.Conv(width, (3, 3))(nn.silu(nn.GroupNorm(32)(y)))
            return y + (x if x.shape == y.shape else nn.Conv(width, (1, 1))(x))

        def attention(x: jax.Array) -> jax.Array:
            rows = nn.GroupNorm(32)(x).reshape(x.shape[0], -1, x.shape[-1])
            return x + nn.MultiHeadDotProductAttention(4)(rows).reshape(x.shape)

        x, kept = nn.Conv(self.widths[0], (3, 3))(x), []
        for i, width in enumerate(self.widths):
            if i:
                x = nn.Conv(width, (3, 3), (2, 2))(x)
            for _ in range(2):
                x = residual(x, width)
                kept.append(x)
        x = residual(attention(residual(x, self.widths[-1])), self.widths[-1])
        for i, width in enumerate(self.widths[::-1]):
            if i:
                x = nn.Conv(width, (3, 3))(x.repeat(2, 1).repeat(2, 2))
            for _ in range(2):
                x = residual(jnp.concatenate([x, kept.pop()], axis=-1), width)
        return nn.Conv(3, (3, 3))(nn.silu(nn.GroupNorm(32)(x)))


class GPT(nn.Module):
    """A decoder of GPT-2's kind (Radford et al., 2019), small: token ids s32 [N, T] -> logits [N, T, vocabulary]."""

    vocabulary: int = 5000
    length: int = 128
    width: int = 384
    depth: int = 6
    heads: int = 6

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        position = self.param("position", nn.initializers.normal(0.02), (self.length, self.width))
        x = nn.Embed(self.vocabulary, self.width)(tokens) + position[: tokens.shape[1]]
        mask = nn.make_causal_mask(tokens)
        for _ in range(self.depth):
            x = x + nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
            x = x + nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x))))
        return nn.Dense(self.vocabulary, use_bias=False)(nn.LayerNorm()(x))


class UNet(nn.Module):
    """U-Net (Ronneberger et al., 2015) with padded convolutions, half as wide: an image -> two maps of its size."""

    widths: tuple[int, ...] = (32, 64, 128, 256, 512)

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        kept = []
        for i, width in enumerate(self.widths):
            if i:
                kept.append(x)
                x = nn.max_pool(x, (2, 2), (2, 2))
            for _ in range(2):
                x = nn.relu(nn.Conv(width, (3, 3))(x))
        for width, before in zip(self.widths[-2::-1], reversed(kept), strict=True):
            x = nn.relu(nn.ConvTranspose(width, (2, 2), (2, 2))(x))
            x = jnp.concatenate([before, x], axis=-1)
            for _ in range(2):
                x = nn.relu(nn.Conv(width, (3, 3))(x))
        return nn.Conv(2, (1, 1))(x)


NETWORKS = {
    e.name: e
    for e in (
        Entry("densenet121", DenseNet, IMAGE, 7_978_856, 2.87e9),
        Entry("convnext_t", ConvNeXt, IMAGE, 28_589_128, 4.46e9),
        Entry("efficientnet_b0", EfficientNet, IMAGE, 5_288_548, 0.39e9),
        Entry("resnext50", ResNeXt, IMAGE, 25_028_904, 4.23e9),
        Entry("r3d_18", Video, (8, 112, 112, 3), 33_371_472, 20.4e9),
        Entry("unet", UNet, (192, 192, 3), 7_760_130, 6.6e9),
        Entry("convmixer", ConvMixer, (32, 32, 3), 706_570, 0.70e9),
        Entry("dqn", DQN, (84, 84, 4), 1_693_362, 9.4e6),
        Entry("denoiser", Denoiser, (32, 32, 3), 12_058_883),
        Entry("gpt", GPT, (128,), 14_536_704, vocabulary=5000),
    )
}


def get(name: str) -> Entry:
    """A network of these, or a model of the package. Raises `ValueError` that lists the package's."""
    return NETWORKS.get(name) or models.get(name)


def rounded(tree: Any) -> Any:
    """The same arrays, those of f32 as bf16."""
    return jax.tree_util.tree_map(lambda v: v.astype(jnp.bfloat16) if v.dtype == jnp.float32 else v, tree)
