"""Made layers, with the sizes that layers of networks have: what the predictor is trained on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LAYERS = 408
#: sizes of images and the channels that networks have there
STAGES: Mapping[int, tuple[int, ...]] = {
    112: (3, 16, 24, 32, 48, 64, 96),
    56: (16, 24, 32, 48, 64, 96, 128, 192, 256),
    28: (32, 48, 64, 96, 128, 192, 256, 384, 512),
    20: (32, 64, 128, 256, 512),
    14: (64, 96, 128, 160, 192, 256, 384, 512, 768, 1024),
    13: (96, 192, 256, 384),
    7: (96, 160, 192, 256, 320, 512, 832, 1024, 2048),
}
MOST_FLOPS, MOST_BYTES = 8e8, 1.2e7
NHWC = ("NHWC", "HWIO", "NHWC")

Apply = Callable[[Sequence[jax.Array], jax.Array], jax.Array]


@dataclasses.dataclass(frozen=True)
class Made:
    """A layer: its function of (weights, input), and their shapes."""

    name: str
    apply: Apply
    weights: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]


def conv(rng: np.random.Generator, window: int, stride: int, depthwise: bool = False) -> Made:
    """A convolution of an image of shape [1, rows, size, c] with bias and activation; of some only a part of the rows
    or channels, as halves have them.
    """
    while True:
        size = int(rng.choice(list(STAGES)))
        into = int(rng.choice(STAGES[size]))
        behind = size if stride == 1 else size // 2 if size // 2 in STAGES else 14
        # nobody asks for an image of three channels
        out = into if depthwise else int(rng.choice(STAGES[behind][behind == 112 :]))
        if not depthwise and out >= 32 and rng.random() < 0.2:
            out = max(16, int(rng.integers(1, out // 16 + 1)) * 16)
        rows = size if rng.random() < 0.75 else int(rng.integers(max(window, size // 4), size + 1))
        inner = window * window * (1 if depthwise else into)
        flops = 2 * (rows // stride) * (size // stride) * inner * out
        if 1e6 < flops < MOST_FLOPS and 4 * inner * out < MOST_BYTES and not (into == 3 and (depthwise or window == 1)):
            break
    groups = into if depthwise else 1

    def apply(w: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        y = lax.conv_general_dilated(
            x, w[0], (stride, stride), "SAME", dimension_numbers=NHWC, feature_group_count=groups
        )
        return jax.nn.relu(y + w[1])

    name = f"{'depthwise' if depthwise else 'conv'} {rows}x{size}x{into} {window}x{window}/{stride} {out}"
    return Made(name, apply, ((window, window, into // groups, out), (out,)), (1, rows, size, into))


def dense(rng: np.random.Generator, rows: int) -> Made:
    """A product of arrays of shapes [rows, inner] and [inner, out] with bias and ReLU."""
    inner, out = (
        int(rng.choice((64, 128, 256, 400, 512, 768, 1024, 1280, 1500, 2048, 2500, 3072, 4096))) for _ in range(2)
    )
    while 4 * inner * out > 2 * MOST_BYTES or 2 * rows * inner * out > MOST_FLOPS:
        inner, out = inner // 2, max(10, out // 2)
    out = int(rng.choice((out, out, 10, 1000))) if rows == 1 else out
    return Made(
        f"dense {rows}x{inner} {out}", lambda w, x: jax.nn.relu(x @ w[0] + w[1]), ((inner, out), (out,)), (rows, inner)
    )


def window(rng: np.random.Generator) -> Made:
    """Pooling, by maximum or sum, of an image of shape [1, size, size, channels] with stride 2."""
    size = int(rng.choice(list(STAGES)))
    channels, side = int(rng.choice(STAGES[size][1:])), int(rng.choice((2, 3)))
    largest = bool(rng.random() < 0.6)

    def apply(w: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        return lax.reduce_window(
            x, -jnp.inf if largest else 0.0, lax.max if largest else lax.add, (1, side, side, 1), (1, 2, 2, 1), "SAME"
        )

    return Made(
        f"window {size}x{size}x{channels} {side}x{side} {'max' if largest else 'sum'}",
        apply,
        (),
        (1, size, size, channels),
    )


def add(rng: np.random.Generator) -> Made:
    """The sum of two images of shape [1, size, size, channels] with ReLU."""
    size = int(rng.choice(list(STAGES)))
    channels = int(rng.choice(STAGES[size][1:]))
    return Made(
        f"add {size}x{size}x{channels}", lambda w, x: jax.nn.relu(x[0] + x[1]), (), (2, 1, size, size, channels)
    )


def mean(rng: np.random.Generator) -> Made:
    """The mean over all places of an image of shape [1, size, size, channels]."""
    size = int(rng.choice((7, 14, 28)))
    channels = int(rng.choice(STAGES[size][1:]))
    return Made(
        f"mean {size}x{size}x{channels}", lambda w, x: jnp.sum(x, (1, 2)) * (1 / size**2), (), (1, size, size, channels)
    )


def softmax(rng: np.random.Generator) -> Made:
    """Softmax over the last axis of an array of shape [rows, columns]."""
    rows, columns = int(rng.choice((1, 16, 64, 196, 512))), int(rng.choice((10, 64, 196, 512, 768, 1000)))
    return Made(f"softmax {rows}x{columns}", lambda w, x: jax.nn.softmax(x), (), (rows, columns))


#: how often each kind is made
KINDS: tuple[tuple[int, Callable[[np.random.Generator], Made]], ...] = (
    (17, lambda rng: conv(rng, 1, 1)),
    (20, lambda rng: conv(rng, 3, 1)),
    (8, lambda rng: conv(rng, 3, 2)),
    (4, lambda rng: conv(rng, 1, 2)),
    (4, lambda rng: conv(rng, 5, 1)),
    (3, lambda rng: conv(rng, 7, 2)),
    (8, lambda rng: conv(rng, 3, 1, True)),
    (4, lambda rng: conv(rng, 3, 2, True)),
    (9, lambda rng: dense(rng, 1)),
    (11, lambda rng: dense(rng, int(rng.choice((2, 4, 8, 16, 32, 64, 128, 196, 197))))),
    (9, window),
    (5, add),
    (4, mean),
    (3, softmax),
)


def made_layers(count: int = LAYERS, seed: int = 0) -> list[Made]:
    """So many different layers, each kind as often as `KINDS` says; the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    odds = np.array([often for often, _ in KINDS], float)
    found: dict[str, Made] = {}
    while len(found) < count:
        layer = KINDS[int(rng.choice(len(KINDS), p=odds / odds.sum()))][1](rng)
        found.setdefault(layer.name, layer)
    return list(found.values())


__all__ = ["LAYERS", "Made", "made_layers"]
