"""A decoder language model in the Llama layout (Touvron et al., 2023): RMS norm, rotary positions, grouped queries,
SwiGLU.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

Cache = tuple[tuple[jax.Array, jax.Array], ...]


class Step(NamedTuple):
    """What one step takes: `tokens` s32 [N, T], `cache` keys and values of every layer f32 [N, S, kv heads, D],
    `position` s32 of the first token.
    """

    tokens: jax.Array
    cache: Cache
    position: jax.Array


def rotate(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Rotary position embedding (Su et al., 2021) by the halves of x, of shape [N, T, H, D]; cos, sin: [T, D / 2]."""
    a, b = jnp.split(x, 2, -1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def angles(
    position: jax.Array, tokens: int, length: int, dim: int, base: float = 10000.0
) -> tuple[jax.Array, jax.Array]:
    """cos and sin, of shape [tokens, dim / 2], of the positions from `position` on, read from tables for `length`
    positions.
    """
    table = jnp.arange(length)[:, None] / base ** (jnp.arange(0, dim, 2) / dim)
    return tuple(jax.lax.dynamic_slice_in_dim(f(table), position, tokens) for f in (jnp.cos, jnp.sin))  # type: ignore[return-value]


class Attention(nn.Module):
    """Grouped-query attention (Ainslie et al., 2023) over the cache; returns the result and the cache with this step's
    keys and values.
    """

    heads: int
    groups: int

    @nn.compact
    def __call__(
        self, x: jax.Array, cache: tuple[jax.Array, jax.Array], position: jax.Array, cos: jax.Array, sin: jax.Array
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        n, t, width = x.shape
        dim = width // self.heads
        dense = functools.partial(nn.Dense, use_bias=False)
        q = rotate(dense(width, name="query")(x).reshape(n, t, self.heads, dim), cos, sin)
        k, v = (dense(self.groups * dim, name=name)(x).reshape(n, t, self.groups, dim) for name in ("key", "value"))
        keys = jax.lax.dynamic_update_slice(cache[0], rotate(k, cos, sin), (0, position, 0, 0))
        values = jax.lax.dynamic_update_slice(cache[1], v, (0, position, 0, 0))
        q = q.reshape(n, t, self.groups, self.heads // self.groups, dim)
        scores = jnp.einsum("ntgrd,nsgd->ngrts", q, keys) / math.sqrt(dim)
        seen = jnp.arange(keys.shape[1])[None, :] <= position + jnp.arange(t)[:, None]
        scores = nn.softmax(jnp.where(seen, scores, -1e30))
        y = jnp.einsum("ngrts,nsgd->ntgrd", scores, values)
        return dense(width, name="out")(y.reshape(n, t, width)), (keys, values)


class Decoder(nn.Module):
    """Next-token scores [N, T, vocabulary] and the new cache; 31.6 M parameters as it stands."""

    vocabulary: int = 8192
    width: int = 512
    depth: int = 8
    heads: int = 8
    groups: int = 4
    hidden: int = 1376
    length: int = 256

    @nn.compact
    def __call__(self, step: Step) -> tuple[jax.Array, Cache]:
        norm = functools.partial(nn.RMSNorm, epsilon=1e-5)
        dense = functools.partial(nn.Dense, use_bias=False)
        x = nn.Embed(self.vocabulary, self.width)(step.tokens)
        cos, sin = angles(step.position, x.shape[1], self.length, self.width // self.heads)
        caches = []
        for i, old in enumerate(step.cache):
            y, new = Attention(self.heads, self.groups)(norm()(x), old, step.position, cos, sin)
            caches.append(new)
            x = x + y
            y = norm()(x)
            x = x + dense(self.width, name=f"down_{i}")(
                nn.silu(dense(self.hidden, name=f"gate_{i}")(y)) * dense(self.hidden, name=f"up_{i}")(y)
            )
        return dense(self.vocabulary, name="head")(norm()(x)), tuple(caches)

    def empty_cache(self, batch: int) -> Cache:
        """Zeros: keys and values of every layer, each of shape [batch, length, groups, width / heads]."""
        shape = (batch, self.length, self.groups, self.width // self.heads)
        return tuple((jnp.zeros(shape), jnp.zeros(shape)) for _ in range(self.depth))
