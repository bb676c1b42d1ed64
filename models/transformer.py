"""Transformer encoders: ViT (Dosovitskiy et al., 2021) and BERT (Devlin et al., 2019)."""

from __future__ import annotations

import functools
import math

import flax.linen as nn
import jax
import jax.numpy as jnp

gelu = functools.partial(nn.gelu, approximate=False)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """softmax(q k' / sqrt(d)) v (Vaswani et al., 2017, equation 1); q has the shape [N, T, H, D], k and v [N, S,
    H, D].
    """
    scores = jnp.einsum("nthd,nshd->nhts", q, k) / math.sqrt(q.shape[-1])
    return jnp.einsum("nhts,nshd->nthd", nn.softmax(scores), v)


class SelfAttention(nn.Module):
    """Queries, keys and values from one dense layer each, heads side by side."""

    heads: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        n, t, width = x.shape
        q, k, v = (nn.Dense(width, name=name)(x).reshape(n, t, self.heads, -1) for name in ("query", "key", "value"))
        return nn.Dense(width, name="out")(attention(q, k, v).reshape(n, t, width))


class MLP(nn.Module):
    """A dense layer, GELU, and a dense layer back to the width of the input [N, T, width]."""

    hidden: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x, width = nn.Dense(self.hidden, name="inner")(x), x.shape[-1]
        return nn.Dense(width, name="outer")(gelu(x))


class ViT(nn.Module):
    """ViT-S/16: 22.05 M parameters on 224 x 224 x 3."""

    patch: int = 16
    width: int = 384
    depth: int = 12
    heads: int = 6
    classes: int = 1000

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        norm = functools.partial(nn.LayerNorm, epsilon=1e-6)
        x = nn.Conv(self.width, (self.patch,) * 2, (self.patch,) * 2, padding="VALID")(x)
        x = x.reshape(x.shape[0], -1, self.width)
        token = self.param("token", nn.initializers.zeros, (1, 1, self.width))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, self.width)), x], 1)
        x = x + self.param("position", nn.initializers.normal(0.02), (1, x.shape[1], self.width))
        for _ in range(self.depth):
            x = x + SelfAttention(self.heads)(norm()(x))
            x = x + MLP(4 * self.width)(norm()(x))
        return nn.Dense(self.classes)(norm()(x[:, 0]))


class BERT(nn.Module):
    """BERT-base uncased: token ids s32 [N, T] -> (states [N, T, 768], pooled [N, 768]); 109.48 M parameters."""

    vocabulary: int = 30522
    positions: int = 512
    width: int = 768
    depth: int = 12
    heads: int = 12

    @nn.compact
    def __call__(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        norm = functools.partial(nn.LayerNorm, epsilon=1e-12)
        position = self.param("position", nn.initializers.normal(0.02), (self.positions, self.width))
        kind = self.param("kind", nn.initializers.normal(0.02), (2, self.width))
        x = nn.Embed(self.vocabulary, self.width)(tokens) + position[: tokens.shape[1]] + kind[0]
        x = norm()(x)
        for _ in range(self.depth):
            x = norm()(x + SelfAttention(self.heads)(x))
            x = norm()(x + MLP(4 * self.width)(x))
        return x, jnp.tanh(nn.Dense(self.width)(x[:, 0]))
