"""The decoder that `benchmarks.offload` trains: parameters of bf16, layers that backward computes again."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

SEQUENCE, VOCABULARY, HEAD_WIDTH = 2048, 32000, 128


class Shape(NamedTuple):
    """A decoder: width, layers, tokens of a sequence, and its vocabulary."""

    width: int
    depth: int
    sequence: int = SEQUENCE
    vocabulary: int = VOCABULARY


def shape_of(params: float) -> Shape:
    """A decoder of about so many parameters: 12 width^2 a layer, and the embedding."""
    depth = 12 if params >= 1e8 else 2
    vocabulary = VOCABULARY if params >= 1e8 else 256
    width = max((w for w in range(128, 8192, 128) if 12 * w * w * depth + vocabulary * w <= params * 1.03), default=128)
    return Shape(width, depth, SEQUENCE if params >= 1e8 else 64, vocabulary)


def parameters(shape: Shape, seed: int = 0) -> Any:
    """Weights of bf16: an embedding that is the last layer's too, attention, and gated dense layers."""
    d, hidden = shape.width, 8 * shape.width // 3 // 128 * 128 or 128
    rng = jax.random.key(seed)

    def dense(i: int, *size: int) -> jax.Array:
        made = jax.random.normal(jax.random.fold_in(rng, i), size, jnp.float32) * size[0] ** -0.5
        return made.astype(jnp.bfloat16)

    layers = []
    for k in range(shape.depth):
        i = 10 * k + 10
        one = {"qkv": dense(i, d, 3 * d), "out": dense(i + 1, d, d), "up": dense(i + 2, d, 2 * hidden)}
        one |= {"down": dense(i + 3, hidden, d), "norm1": jnp.ones(d, jnp.bfloat16), "norm2": jnp.ones(d, jnp.bfloat16)}
        layers.append(one)
    return {"embedding": dense(0, shape.vocabulary, d), "layers": layers}


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def _layer(x: jax.Array, w: Any) -> jax.Array:
    b, t, d = x.shape
    q, k, v = jnp.split((_norm(x, w["norm1"]) @ w["qkv"]).reshape(b, t, -1, min(HEAD_WIDTH, d)), 3, axis=2)
    way = "cudnn" if jax.default_backend() == "gpu" else "xla"
    attended = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=way)
    x = x + attended.reshape(b, t, d) @ w["out"]
    gate, up = jnp.split(_norm(x, w["norm2"]) @ w["up"], 2, axis=-1)
    return x + (jax.nn.silu(gate) * up) @ w["down"]


def loss_of(params: Any, tokens: jax.Array) -> jax.Array:
    """Mean cross entropy of the next token; `tokens`: [sequences, tokens] s32. Backward computes layers again."""
    x = params["embedding"][tokens]
    for w in params["layers"]:
        x = jax.checkpoint(_layer)(x, w)
    rows = x.reshape(-1, x.shape[-1])
    targets = jnp.roll(tokens, -1, 1).reshape(-1)

    @jax.checkpoint
    def part(x: jax.Array, y: jax.Array) -> jax.Array:
        logits = (x @ params["embedding"].T).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).sum()

    parts = max(1, len(rows) // SEQUENCE)
    total = sum(part(x, y) for x, y in zip(jnp.split(rows, parts), jnp.split(targets, parts), strict=True))
    return total / len(rows)
