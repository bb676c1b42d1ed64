"""Blocks of random networks: images [n, h, w, c] in, images out, of shapes and layers that a network's draws choose."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

CHANNELS = (4, 6, 8, 12, 16, 20, 24, 32)
ACTS: tuple[Callable[[Any], Any], ...] = (
    jax.nn.relu, jax.nn.silu, jax.nn.gelu, jnp.tanh, jax.nn.sigmoid, jax.nn.hard_swish, jax.nn.relu6, lambda x: x,
    jax.nn.leaky_relu, jnp.abs, jnp.square, lambda x: jnp.maximum(x, 0.25), jax.nn.softplus,
)  # fmt: skip


class Draws:
    """One network while it is traced: its random choices, and its weights in their order (made by the first trace)."""

    def __init__(self, seed: int, weights: list[np.ndarray] | None = None, given: Any = ()):
        self.rng = random.Random(seed)
        self.made = weights
        self._given: Iterator[Any] = iter(given)

    def weight(self, *shape: int) -> Any:
        if self.made is None:
            return next(self._given)
        scale = np.prod(shape[:-1]) ** -0.5 if len(shape) > 1 else 0.3
        w = np.random.default_rng(len(self.made)).normal(size=shape).astype(np.float32) * np.float32(scale)
        self.made.append(w)
        return jnp.asarray(w)

    def act(self, x: Any) -> Any:
        return self.rng.choice(ACTS)(x)


def conv(d: Draws, x: Any, out: int, k: int = 3, stride: int = 1, groups: int = 1, **more: Any) -> Any:
    w = d.weight(k, k, x.shape[-1] // groups, out).astype(x.dtype)
    dims = ("NHWC", "HWIO", "NHWC")
    padding = more.pop("padding", "SAME")
    y = lax.conv_general_dilated(
        x, w, (stride, stride), padding, dimension_numbers=dims, feature_group_count=groups, **more
    )
    return y + d.weight(out).astype(x.dtype) if d.rng.random() < 0.7 else y


def dense(d: Draws, x: Any, out: int) -> Any:
    y = x @ d.weight(x.shape[-1], out).astype(x.dtype)
    return y + d.weight(out).astype(x.dtype) if d.rng.random() < 0.7 else y


def _conv(d: Draws, x: Any) -> Any:
    k, dilation = d.rng.choice((1, 1, 3, 3, 5)), d.rng.choice((1, 1, 1, 2))
    stride = d.rng.choice((1, 1, 1, 2)) if min(x.shape[1:3]) > 2 else 1
    padding = d.rng.choice(("SAME", "SAME", ((1, 0), (0, 1)))) if min(x.shape[1:3]) > k * dilation else "SAME"
    return d.act(conv(d, x, d.rng.choice(CHANNELS), k, stride, padding=padding, rhs_dilation=(dilation,) * 2))


def _grouped(d: Draws, x: Any) -> Any:
    g = next(g for g in (4, 3, 2, 1) if x.shape[-1] % g == 0)
    return d.act(conv(d, x, g * d.rng.choice((2, 3, 4, 8)), 3, groups=g))


def _depthwise(d: Draws, x: Any) -> Any:
    c, stride = x.shape[-1], d.rng.choice((1, 1, 2)) if min(x.shape[1:3]) > 2 else 1
    return d.act(conv(d, x, c * d.rng.choice((1, 1, 1, 2)), d.rng.choice((3, 3, 5, 7)), stride, c))


def _inverted(d: Draws, x: Any) -> Any:
    c = x.shape[-1]
    y = d.act(conv(d, x, 2 * c, 1))
    y = d.act(conv(d, y, 2 * c, 3, groups=2 * c))
    if d.rng.random() < 0.5:
        y = y * jax.nn.sigmoid(dense(d, d.act(dense(d, jnp.mean(y, (1, 2), keepdims=True), 4)), 2 * c))
    y = conv(d, y, c, 1)
    return x + y if d.rng.random() < 0.7 else y


def _residual(d: Draws, x: Any) -> Any:
    y = conv(d, d.act(conv(d, x, x.shape[-1])), x.shape[-1])
    return d.act(x + y)


def _joined(d: Draws, x: Any) -> Any:
    y = d.act(conv(d, x, d.rng.choice(CHANNELS), d.rng.choice((1, 3))))
    both = [x, y] if d.rng.random() < 0.5 else [y, x]
    return jnp.concatenate(both, -1)[..., :48]


def _shuffled(d: Draws, x: Any) -> Any:
    n, h, w, c = x.shape
    if c < 2:
        return x
    a, b = x[..., : c // 2], x[..., c // 2 :]
    b = d.act(conv(d, b, c // 2, d.rng.choice((1, 3))))
    y = jnp.concatenate([a, b], -1)
    return y.reshape(n, h, w, 2, y.shape[-1] // 2).swapaxes(3, 4).reshape(y.shape)


def _pooled(d: Draws, x: Any) -> Any:
    k, s = d.rng.choice((2, 3)), d.rng.choice((1, 2)) if min(x.shape[1:3]) > 2 else 1
    window, strides = (1, k, k, 1), (1, s, s, 1)
    if d.rng.random() < 0.5:
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME")
    return lax.reduce_window(x, 0.0, lax.add, window, strides, "SAME") / (k * k)


def _layer_norm(d: Draws, x: Any) -> Any:
    axes = d.rng.choice(((-1,), (1, 2), (1, 2, 3)))
    m = jnp.mean(x, axes, keepdims=True)
    v = jnp.mean(jnp.square(x - m), axes, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-3) * d.weight(x.shape[-1]).astype(x.dtype)


def _group_norm(d: Draws, x: Any) -> Any:
    n, h, w, c = x.shape
    groups = 2 if c % 2 == 0 else 1
    y = x.reshape(n, h * w, groups, c // groups)
    m = jnp.mean(y, (1, 3), keepdims=True)
    v = jnp.mean(y * y, (1, 3), keepdims=True) - m * m
    return d.act(((y - m) * lax.rsqrt(jnp.maximum(v, 0) + 1e-2)).reshape(x.shape))


def _attention(d: Draws, x: Any) -> Any:
    n, h, w, c = x.shape
    heads = 2
    q, k, v = (dense(d, x.reshape(n, h * w, c), 16).reshape(n, h * w, heads, 8) for _ in range(3))
    p = jax.nn.softmax(jnp.einsum("nqhd,nkhd->nhqk", q, k) / 8**0.5, -1)
    y = jnp.einsum("nhqk,nkhd->nqhd", p, v).reshape(n, h, w, 16)
    return x + dense(d, y, c)


def _windows(d: Draws, x: Any) -> Any:
    n, h, w, c = x.shape
    y = x[:, : h // 2 * 2, : w // 2 * 2]
    y = y.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5)
    y = d.act(dense(d, y.reshape(-1, 4, c), c))
    y = y.reshape(n, h // 2, w // 2, 2, 2, c).transpose(0, 1, 3, 2, 4, 5)
    return y.reshape(n, h // 2 * 2, w // 2 * 2, c)


def _mlp(d: Draws, x: Any) -> Any:
    return x + dense(d, d.act(dense(d, x, 2 * x.shape[-1])), x.shape[-1])


def _mixed(d: Draws, x: Any) -> Any:
    n, h, w, c = x.shape
    y = x.reshape(n, h * w, c).swapaxes(1, 2)
    return x + d.act(dense(d, y, h * w)).swapaxes(1, 2).reshape(x.shape)


def _pixels(d: Draws, x: Any) -> Any:
    n, h, w, c = x.shape
    if h > 8 or c % 4:
        y = x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c)
        return y.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)[..., :40]
    return x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


def _moved(d: Draws, x: Any) -> Any:
    how = d.rng.randrange(7)
    if how == 0:
        return jnp.roll(x, (1, -1), (1, 2))
    if how == 1:
        return x[:, ::-1]
    if how == 2:
        return jnp.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)))
    if how == 3:
        return x[:, 1:, :-1] if min(x.shape[1:3]) > 2 else x
    if how == 4:
        return jnp.swapaxes(x, 1, 2)
    if how == 5:
        return jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect") if min(x.shape[1:3]) > 2 else x
    return jnp.repeat(x[:, :6, :6], 2, 1)


def _pyramid(d: Draws, x: Any) -> Any:
    if min(x.shape[1:3]) < 4:
        return x
    y = d.act(conv(d, x, x.shape[-1], 3, 2))
    up = jnp.repeat(jnp.repeat(y, 2, 1), 2, 2)[:, : x.shape[1], : x.shape[2]]
    return x + up if d.rng.random() < 0.5 else jnp.concatenate([x, up], -1)[..., :40]


def _transposed(d: Draws, x: Any) -> Any:
    if x.shape[1] > 8:
        return x
    k = d.rng.choice((2, 3, 4))
    w = d.weight(k, k, x.shape[-1], 8).astype(x.dtype)
    return d.act(lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))


def _gated(d: Draws, x: Any) -> Any:
    a, b = jnp.split(dense(d, x, 2 * x.shape[-1]), 2, -1)
    return a * jax.nn.sigmoid(b)


def _scaled(d: Draws, x: Any) -> Any:
    top = jnp.max(jnp.abs(x), axis=d.rng.choice(((1, 2), (3,), (1,))), keepdims=True)
    return x / (top + 1)


def _scan(d: Draws, x: Any) -> Any:
    """A gated recurrence along the rows."""
    n, h, w, c = x.shape
    a, b = d.weight(c, 2 * c).astype(x.dtype), d.weight(c, 2 * c).astype(x.dtype)

    def step(state: Any, now: Any) -> tuple[Any, Any]:
        gate, new = jnp.split(now @ a + state @ b, 2, -1)
        gate = jax.nn.sigmoid(gate)
        state = gate * state + (1 - gate) * jnp.tanh(new)
        return state, state

    rows = x.reshape(n * h, w, c).swapaxes(0, 1)
    return lax.scan(step, jnp.zeros((n * h, c), x.dtype), rows)[1].swapaxes(0, 1).reshape(x.shape)


def _causal(d: Draws, x: Any) -> Any:
    """Causal attention of grouped heads, with positions turned into the queries."""
    n, h, w, c = x.shape
    t = x.reshape(n, h * w, c)
    q, k, v = (dense(d, t, m * 8).reshape(n, h * w, m, 8) for m in (4, 2, 2))
    angle = jnp.arange(h * w)[:, None] / 100.0 ** (jnp.arange(4) / 4)
    cos, sin = (f(angle)[:, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    turned = lambda y: jnp.concatenate([y[..., :4] * cos - y[..., 4:] * sin, y[..., 4:] * cos + y[..., :4] * sin], -1)
    q, k = turned(q).reshape(n, h * w, 2, 2, 8), turned(k)
    scores = jnp.einsum("nqgmd,nkgd->ngmqk", q, k) / 8**0.5
    scores = jnp.where(jnp.tril(jnp.ones((h * w, h * w), bool)), scores, -1e4)
    y = jnp.einsum("ngmqk,nkgd->nqgmd", jax.nn.softmax(scores, -1), v)
    return x + dense(d, y.reshape(n, h, w, 32), c)


def _rows(d: Draws, x: Any) -> Any:
    """A causal, dilated convolution of one dimension."""
    n, h, w, c = x.shape
    k, far = d.weight(3, c, c).astype(x.dtype), d.rng.choice((1, 2))
    y = lax.conv_general_dilated(
        x.reshape(n * h, w, c), k, (1,), [(2 * far, 0)], rhs_dilation=(far,), dimension_numbers=("NWC", "WIO", "NWC")
    )
    return d.act(y).reshape(x.shape)


def _volume(d: Draws, x: Any) -> Any:
    """A convolution of three dimensions, the batch one of them."""
    k = d.weight(2, 3, 3, x.shape[-1], 12).astype(x.dtype)
    dims = ("NDHWC", "DHWIO", "NDHWC")
    return d.act(lax.conv_general_dilated(x[None], k, (1, 1, 1), "SAME", dimension_numbers=dims)[0])


def _swiglu(d: Draws, x: Any) -> Any:
    y = x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-3) * d.weight(x.shape[-1]).astype(x.dtype)
    return x + dense(d, jax.nn.silu(dense(d, y, 24)) * dense(d, y, 24), x.shape[-1])


def _quantised(d: Draws, x: Any) -> Any:
    """int8 by int8 as int32, by a window or a product."""
    small = jnp.clip(jnp.round(x.astype(jnp.float32) * 16), -127, 127).astype(jnp.int8)
    k, out = d.rng.choice((1, 3)), d.rng.choice(CHANNELS)
    w = d.weight(k, k, x.shape[-1], out)
    w = jnp.clip(jnp.round(w * 64), -127, 127).astype(jnp.int8)
    how: dict[str, Any] = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "preferred_element_type": jnp.int32}
    y = lax.conv_general_dilated(small, w, (1, 1), "SAME", **how)
    return d.act((y.astype(jnp.float32) / 1024).astype(x.dtype))


def _taken(d: Draws, x: Any) -> Any:
    """Rows in another order, and what is larger than the largest of each but a little."""
    order = np.random.default_rng(x.shape[1]).permutation(x.shape[1])
    return jnp.maximum(x[:, order], jnp.max(x, 2, keepdims=True) * 0.3)


BLOCKS = (
    _conv, _conv, _conv, _grouped, _depthwise, _inverted, _inverted, _residual, _joined, _shuffled, _pooled,
    _layer_norm, _group_norm, _attention, _windows, _mlp, _mixed, _pixels, _moved, _moved, _pyramid, _transposed,
    _gated, _scaled, _scan, _causal, _rows, _volume, _swiglu, _quantised, _taken,
)  # fmt: skip
