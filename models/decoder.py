"""A decoder language model in the Llama layout (Touvron et al., 2023): RMS norm (Zhang and Sennrich, 2019), rotary
positions, grouped queries, SwiGLU (Shazeer, 2020); with the biases, norms of queries and keys, scaled positions, tied
embeddings and experts of its relatives.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from .moe import Experts, Routing

Cache = tuple[tuple[jax.Array, jax.Array], ...]


class Step(NamedTuple):
    """What one step takes: `tokens` s32 [N, T], `cache` keys and values of every layer f32 [N, S, kv heads, D],
    `position` s32 of the first token.
    """

    tokens: jax.Array
    cache: Cache
    position: jax.Array


class Rope(NamedTuple):
    """Periods of the rotary embedding: `theta` ** (2 i / D), times `factor`. With `low` and `high` as in Llama 3.1
    only periods that fit less than `low` times into `original` positions are stretched in full, and those that fit
    more than `high` times not at all; between them the frequencies are interpolated.
    """

    theta: float = 10000.0
    factor: float = 1.0
    low: float = 0.0
    high: float = 0.0
    original: int = 0

    def periods(self, dim: int) -> jax.Array:
        """f32 [dim / 2]: positions that a turn takes, over 2 pi."""
        plain = self.theta ** (jnp.arange(0, dim, 2) / dim)
        if not self.original:
            return plain if self.factor == 1.0 else plain * self.factor
        turns = self.original / (2 * math.pi * plain)
        share = jnp.clip((turns - self.low) / (self.high - self.low), 0.0, 1.0)
        return plain / (share + (1.0 - share) / self.factor)


def rotate(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Rotary position embedding (Su et al., 2021) by the halves of x, of shape [N, T, H, D]; cos, sin: [T, D / 2]."""
    a, b = jnp.split(x, 2, -1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def angles(position: jax.Array, tokens: int, periods: jax.Array) -> tuple[jax.Array, jax.Array]:
    """cos and sin, of shape [tokens, D / 2], of the positions from `position` on."""
    turned = (position + jnp.arange(tokens))[:, None] / periods
    return jnp.cos(turned), jnp.sin(turned)


def row_product(x: jax.Array, w: jax.Array) -> jax.Array:
    """x [..., K] times the rows of w [M, K]: [..., M], in x's type."""
    return jax.lax.dot_general(x, w.astype(x.dtype), (((x.ndim - 1,), (1,)), ((), ())))


class RowDense(nn.Module):
    """A dense layer whose kernel is [out, in], as PyTorch's files hold it: a mapped file is used as it lies."""

    features: int
    use_bias: bool = False
    dtype: DTypeLike | None = None

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = x if self.dtype is None else x.astype(self.dtype)
        init = nn.initializers.lecun_normal(in_axis=-1, out_axis=-2)
        y = row_product(x, self.param("kernel", init, (self.features, x.shape[-1])))
        if not self.use_bias:
            return y
        return y + self.param("bias", nn.initializers.zeros_init(), (self.features,)).astype(y.dtype)


class Attention(nn.Module):
    """Grouped-query attention (Ainslie et al., 2023) over the cache; returns the result and the cache with this step's
    keys and values. `dim`: of a head, 0 for width / heads. `biases`: which of query, key, value and out have one.
    `normed`: queries and keys of each head go through an RMS norm. `rows`: kernels are [out, in].
    """

    heads: int
    groups: int
    dim: int = 0
    biases: tuple[str, ...] = ()
    normed: bool = False
    rows: bool = False
    epsilon: float = 1e-5
    dtype: DTypeLike | None = None

    @nn.compact
    def __call__(
        self, x: jax.Array, cache: tuple[jax.Array, jax.Array], position: jax.Array, cos: jax.Array, sin: jax.Array
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        n, t, width = x.shape
        dim = self.dim or width // self.heads
        dense = functools.partial(named_dense, self.rows, self.biases, self.dtype)
        q = dense(self.heads * dim, "query")(x).astype(x.dtype).reshape(n, t, self.heads, dim)
        k, v = (
            dense(self.groups * dim, name)(x).astype(x.dtype).reshape(n, t, self.groups, dim)
            for name in ("key", "value")
        )
        if self.normed:
            q, k = (nn.RMSNorm(epsilon=self.epsilon, name=f"{m}_norm")(y) for m, y in (("query", q), ("key", k)))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        keys, values = (
            jax.lax.dynamic_update_slice(old, new.astype(old.dtype), (0, position, 0, 0))
            for old, new in zip(cache, (k, v), strict=True)
        )
        q = q.reshape(n, t, self.groups, self.heads // self.groups, dim)
        scores = jnp.einsum("ntgrd,nsgd->ngrts", q, keys.astype(q.dtype)) / math.sqrt(dim)
        seen = jnp.arange(keys.shape[1])[None, :] <= position + jnp.arange(t)[:, None]
        scores = nn.softmax(jnp.where(seen, scores, -1e30))
        y = jnp.einsum("ngrts,nsgd->ntgrd", scores, values.astype(q.dtype))
        return dense(width, "out")(y.reshape(n, t, self.heads * dim)), (keys, values)


def named_dense(
    rows: bool, biases: tuple[str, ...], dtype: DTypeLike | None, features: int, name: str, layer: str = ""
) -> nn.Module:
    """The dense layer of that name: `name` tells whether it has a bias, `name` + `layer` names its parameters."""
    kind = RowDense if rows else nn.Dense
    return kind(features, use_bias=name in biases, dtype=dtype, name=name + layer)


class Decoder(nn.Module):
    """Next-token scores [N, T, vocabulary] f32 and the new cache; 31.6 M parameters as it stands.

    `length`: positions of the cache that `empty_cache` makes. `dim`: of a head, 0 for width / heads. `biases`: which of
    query, key, value, out, gate, up and down have one. `tied`: the head is the embedding. `normed`: queries and keys
    go through an RMS norm. `routing`: experts in place of gate, up and down. `rows`: kernels are [out, in]. Weights of
    any floating-point type are read as they are, sums are f32. A token outside of the vocabulary gives NaN. `dtype`: to
    which dense layers narrow what they multiply, and their results (None: they take it as it is).
    """

    vocabulary: int = 8192
    width: int = 512
    depth: int = 8
    heads: int = 8
    groups: int = 4
    hidden: int = 1376
    length: int = 256
    dim: int = 0
    rope: Rope = Rope()
    epsilon: float = 1e-5
    biases: tuple[str, ...] = ()
    tied: bool = False
    normed: bool = False
    routing: Routing | None = None
    rows: bool = False
    dtype: DTypeLike | None = None

    @nn.compact
    def __call__(self, step: Step, last: jax.Array | None = None) -> tuple[jax.Array, Cache]:
        """`last`: s32, the one token of the step whose scores are wanted: [N, 1, vocabulary]."""
        self._check(step)
        norm = functools.partial(nn.RMSNorm, epsilon=self.epsilon)
        embed = nn.Embed(self.vocabulary, self.width)
        x = embed(step.tokens).astype(jnp.float32)
        cos, sin = angles(step.position, x.shape[1], self.rope.periods(self.head_dim))
        caches = []
        for i, old in enumerate(step.cache):
            attention = Attention(
                self.heads, self.groups, self.head_dim, self.biases, self.normed, self.rows, self.epsilon, self.dtype
            )
            y, new = attention(norm()(x), old, step.position, cos, sin)
            caches.append(new)
            x = x + y
            x = x + self._mlp(norm()(x), f"_{i}")
        x = norm()(x if last is None else jax.lax.dynamic_slice_in_dim(x, last, 1, 1))
        scores = row_product(x, embed.embedding) if self.tied else self._dense(self.vocabulary, "head")(x)
        return scores.astype(jnp.float32), tuple(caches)

    def _check(self, step: Step) -> None:
        if len(step.cache) != self.depth:
            raise ValueError(f"models.Decoder: got a cache of {len(step.cache)} layers; valid is one of {self.depth}.")
        tokens, positions = step.tokens.shape[1], step.cache[0][0].shape[1]
        if tokens > positions:
            raise ValueError(
                f"models.Decoder: got {tokens} tokens for a cache of {positions} positions; valid is a cache that is as"
                " long as all tokens."
            )

    def _mlp(self, x: jax.Array, layer: str) -> jax.Array:
        if self.routing is not None:
            return Experts(self.routing, name="experts" + layer)(x)
        gate, up = (self._dense(self.hidden, name, layer)(x) for name in ("gate", "up"))
        return self._dense(self.width, "down", layer)(nn.silu(gate) * up)

    def _dense(self, features: int, name: str, layer: str = "") -> nn.Module:
        return named_dense(self.rows, self.biases, self.dtype, features, name, layer)

    @property
    def head_dim(self) -> int:
        return self.dim or self.width // self.heads

    def empty_cache(self, batch: int, length: int | None = None, dtype: jnp.dtype = jnp.float32) -> Cache:
        """Zeros: keys and values of every layer, each of shape [batch, length, groups, dim]."""
        shape = (batch, self.length if length is None else length, self.groups, self.head_dim)
        return tuple((jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)) for _ in range(self.depth))
