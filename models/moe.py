"""Sparse layers of experts (Shazeer et al., 2017), each a SwiGLU network, as Mixtral and Qwen's mixtures have them."""

from __future__ import annotations

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp


class Routing(NamedTuple):
    """`chosen` of `experts` networks of `hidden` channels compute a token. `normed`: their weights sum to 1."""

    experts: int
    chosen: int
    hidden: int
    normed: bool = True


class Experts(nn.Module):
    """x [N, T, width] -> [N, T, width]: the weighted sum of the chosen experts' results.

    Few tokens read the chosen experts' weights alone. A matrix that is gathered is read, written and read again: where
    more than a third of the experts is chosen, all of them compute all tokens.
    """

    routing: Routing

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        n, hidden = self.routing.experts, self.routing.hidden
        width, init = x.shape[-1], nn.initializers.lecun_normal(batch_axis=0)
        gate = self.param("gate", init, (n, width, hidden))
        up = self.param("up", init, (n, width, hidden))
        down = self.param("down", init, (n, hidden, width))
        flat = x.reshape(-1, width)
        weights, index = route(nn.Dense(n, use_bias=False, name="router")(flat), self.routing)
        way = gathered if 3 * index.size <= n else one_by_one
        return way(flat, weights, index, (gate, up, down)).reshape(x.shape)


Matrices = tuple[jax.Array, jax.Array, jax.Array]


def route(scores: jax.Array, routing: Routing) -> tuple[jax.Array, jax.Array]:
    """Weights f32 and numbers s32 of the chosen experts, each [M, chosen], from the router's scores [M, experts]."""
    weights, index = jax.lax.top_k(nn.softmax(scores), routing.chosen)
    return (weights / weights.sum(-1, keepdims=True) if routing.normed else weights), index


def gathered(x: jax.Array, weights: jax.Array, index: jax.Array, matrices: Matrices) -> jax.Array:
    """The experts' sum for x [M, width], from the chosen experts' matrices [M * chosen, ...]."""
    gate, up, down = (jnp.take(m, index.reshape(-1), axis=0).astype(x.dtype) for m in matrices)
    each = jnp.repeat(x, index.shape[1], 0)[:, None]
    y = nn.silu(each @ gate) * (each @ up) @ down
    return jnp.sum(y.reshape(*index.shape, -1) * weights[..., None], 1)


def one_by_one(x: jax.Array, weights: jax.Array, index: jax.Array, matrices: Matrices) -> jax.Array:
    """The same, with every expert computing every token: each matrix is read once, as it lies."""
    rows = jnp.arange(len(x))[:, None]
    shares = jnp.zeros((len(x), len(matrices[0])), x.dtype).at[rows, index].set(weights)

    def add(total: jax.Array, expert: tuple[Matrices, jax.Array]) -> tuple[jax.Array, None]:
        (gate, up, down), share = expert
        gate, up, down = (m.astype(x.dtype) for m in (gate, up, down))
        return total + (nn.silu(x @ gate) * (x @ up) @ down) * share[:, None], None

    return jax.lax.scan(add, jnp.zeros_like(x), (matrices, shares.T))[0]
