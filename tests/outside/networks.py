"""Random networks of image blocks through kernels alone, by algorithms picked at random, against float64 NumPy.

A seed is a network: blocks of a table in a row, their sizes, the batch and the number type. The segment's choices (of a
layer's algorithm, whether strips or items of a batch go through several layers) are drawn too, so that what is seldom
the fastest is computed as well. What cannot be planned, and what is wrong, is said with its seed.

    python -m tests.outside.networks --networks 500 --seconds 3600 --seed 0
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment import items
from xcoexec.codegen.target import Target
from xcoexec.partition.split import split

from ..oracle import error, oracles
from ..support import stages_of, targets

LARGEST = {"float32": 2e-4, "bfloat16": 6e-2}
LEAST = 1e-2  # the largest result below which errors are no longer relative to it
TINY = 1e-30  # threads may have other ways with numbers next to nothing
BATCHES = (1, 2, 2, 3, 4, 8)
SIDES = (4, 6, 7, 8, 12, 16, 17)
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


BLOCKS = (
    _conv, _conv, _conv, _grouped, _depthwise, _inverted, _inverted, _residual, _joined, _shuffled, _pooled,
    _layer_norm, _group_norm, _attention, _windows, _mlp, _mixed, _pixels, _moved, _moved, _pyramid, _transposed,
    _gated, _scaled,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Network:
    """A network: `fn(weights, x)`, its weights, its input and what it is made of."""

    fn: Callable[..., Any]
    weights: list[np.ndarray]
    x: np.ndarray
    dtype: str
    text: str


def network(seed: int) -> Network:
    """The network of a seed."""
    rng = random.Random(f"network {seed}")
    batch, side, c = rng.choice(BATCHES), rng.choice(SIDES), rng.choice((3, *CHANNELS))
    dtype = rng.choice(("float32", "float32", "bfloat16"))
    blocks = [rng.choice(BLOCKS) for _ in range(rng.randint(2, 8))]
    side_result, head = rng.random() < 0.2, rng.choice(("mean", "dense", "none", "flat"))

    def body(d: Draws, x: Any) -> Any:
        x, kept = x.astype(dtype), []
        for block in blocks:
            x = block(d, x)
            kept.append(x)
        if head == "mean":
            x = dense(d, jnp.mean(x, (1, 2)), 10)
        elif head == "dense":
            x = dense(d, x, 5)
        elif head == "flat":
            x = x.reshape(x.shape[0], -1)
        side = kept[len(kept) // 2].astype(jnp.float32) * 0.5
        return (x.astype(jnp.float32), side) if side_result else (x.astype(jnp.float32),)

    x = np.random.default_rng(seed).normal(size=(batch, side, side, c)).astype(np.float32)
    made: list[np.ndarray] = []
    jax.eval_shape(lambda x: body(Draws(seed, made), x), x)
    names = " ".join(b.__name__.strip("_") for b in blocks)
    text = f"{dtype} {x.shape} {names}, {head}{', and one inside' if side_result else ''}"
    return Network(lambda ws, x: body(Draws(seed, None, ws), x), made, x, dtype, text)


def computed(net: Network, seed: int, isa: Target, threads: int) -> list[np.ndarray] | str:
    """The results by kernels with choices of a seed; or why a layer of it has none."""
    rng = random.Random(f"choices {seed}")
    folded, graph = stages_of(net.fn, net.weights, net.x, weights=1)
    errors = [f"{layer.name}: {layer.host_error}" for layer in graph.layers if layer.host_error]
    if errors:
        return errors[0]
    pick = lambda groups, names, t: rng.choice(names)
    kept = dataclasses.replace(isa, kept=1 << rng.choice((12, 14, 18)))
    with (
        mock.patch.object(items, "LEAST_SHARE", 0),
        mock.patch.object(items, "READ_AGAIN_BY_ALL", 100),
        mock.patch.object(items, "likely", lambda groups, names, t: rng.choice(names)),
    ):
        segment = host.build(graph.program, threads, kept, pick=pick, cut=split)
    consts = folded.constants(net.weights)
    call = host.Call(segment, [net.x], [consts[v] for v in graph.program.consts])
    first = [y.copy() for y in call()]
    again = call()
    same = all(np.allclose(a, b, 0, TINY, equal_nan=True) for a, b in zip(first, again, strict=True))
    assert same, "calls differ"
    return first


def _apart(got: np.ndarray, want: np.ndarray) -> float:
    """As `error`; where all of a result is next to nothing, so is what may be wrong with it."""
    return error(got, want) if np.abs(want).max(initial=0.0) > LEAST else float(np.abs(got - want).max(initial=0.0))


def check(seed: int) -> str:
    """ "": the network of a seed is right; "-...": why no kernel computes a layer of it; else what is wrong with it."""
    net, rng = network(seed), random.Random(f"machine {seed}")
    isas = targets()
    isa = isas[-1] if rng.random() < 0.1 else rng.choice(isas) if rng.random() < 0.3 else targets()[0]
    try:
        got = computed(net, seed, isa, rng.choice((1, 2, 3)))
        if isinstance(got, str):
            return f"- {got}"
        want = oracles(net.fn, net.weights, net.x)
        worst = max(_apart(a, b) for a, b in zip(got, want, strict=True))
    except Exception:
        return f"{net.text} on {isa.name}\n{traceback.format_exc(limit=-6)}"
    return "" if worst <= LARGEST[net.dtype] else f"{net.text} on {isa.name}: {worst} of the largest result"


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--networks", type=int, default=500)
    p.add_argument("--seconds", type=float, default=float("inf"))
    p.add_argument("--seed", type=int, default=0, help="of the first network")
    args = p.parse_args(argv)
    end, count = time.monotonic() + args.seconds, {"right": 0, "no kernel": 0, "wrong": 0}
    for seed in range(args.seed, args.seed + args.networks):
        if time.monotonic() > end:
            break
        found = check(seed)
        count["right" if not found else "no kernel" if found.startswith("- ") else "wrong"] += 1
        if found:
            print(f"seed {seed}: {found}", flush=True)
    print(count)
    return int(count["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
