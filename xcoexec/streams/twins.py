"""What a twin can be: for the CPU depthwise-separable layers between two 1x1 convolutions, for the GPU dense ones; for
vectors dense layers.

Where a block makes its image smaller, the first convolution has the window and stride for that; where it makes a vector
of an image with convolutions of its own, the last one is a dense layer behind the mean over all places.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .compiled_spans import Array

WIDTHS = (512, 384, 256, 192, 128, 96, 64, 48, 32)
GRID = 8  # places along a side of what the layers of a twin from an image to a vector work on, about
DEPTHS = {"host": (10, 7, 5, 3, 2, 1), "device": (4, 3, 2, 1)}
#: name -> (window, depthwise-separable); "none" hands its input on
OPERATIONS: Mapping[str, Mapping[str, tuple[int, bool]]] = {
    "host": {"separable 3x3": (3, True), "separable 5x5": (5, True), "none": (0, True)},
    "device": {"convolution 3x3": (3, False), "convolution 1x1": (1, False), "none": (0, False)},
}
NHWC = ("NHWC", "HWIO", "NHWC")

Layer = tuple[Array, Array]  # weights [..., outputs], bias [outputs]


class Params(TypedDict, total=False):
    """A twin's weights: "dense" alone for a stack of dense layers, else the three others. "layers": of each layer its
    operations' arrays by name.
    """

    dense: list[Layer]
    head: Layer
    layers: list[dict[str, dict[str, Array]]]
    tail: Layer


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a twin is: for [h, w, c] values a head, `layers` of `width` channels, a tail; for vectors a stack of dense
    layers. `convolved`: the block has convolutions, which matters where it makes a vector of an image."""

    half: str
    given: tuple[int, ...]
    made: tuple[int, ...]
    width: int
    layers: tuple[str, ...]
    convolved: bool = False

    @property
    def image(self) -> bool:
        """Whether the layers are convolutions."""
        return len(self.given) == 4 and (len(self.made) == 4 or self.convolved)

    @property
    def stride(self) -> tuple[int, int]:
        """Of the head, which is its window too: along the image's two axes, rows and columns."""
        sides = self.given[1:3]
        made = self.made[1:3] if len(self.made) == 4 else tuple(GRID if g % GRID == 0 else g for g in sides)
        return (sides[0] // made[0], sides[1] // made[1])


def replaced(shape: Shape) -> bool:
    """Whether a twin of this kind can make the block's values: images of NHWC whose sides divide, or arrays of shape
    [n, c].
    """
    a, b = shape.given, shape.made
    if len(a) == len(b) == 4:
        return all(m and g % m == 0 for g, m in zip(a[1:3], b[1:3], strict=True))
    return len(a) >= 2 and len(b) == 2


def _he(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random weights [..., outputs] f32 whose variance is 2 / inputs (He et al., ICCV 2015, equation 10)."""
    inner = int(np.prod(shape[:-1]))
    return (rng.standard_normal(shape) * np.sqrt(2 / inner)).astype(np.float32)


def initial(shape: Shape, seed: int = 0) -> Params:
    """Random f32 weights of every operation of every layer."""
    rng = np.random.default_rng(seed)
    if not shape.image:
        sizes = [int(np.prod(shape.given[1:])), *[shape.width] * len(shape.layers), shape.made[-1]]
        return {"dense": [(_he(rng, a, b), np.zeros(b, np.float32)) for a, b in itertools.pairwise(sizes)]}
    width, made = shape.width, shape.made[-1]
    layers: list[dict[str, dict[str, Array]]] = [
        {name: _operation(rng, shape.half, name, width) for name in _names(shape.half, layer)} for layer in shape.layers
    ]
    bias = lambda n: np.zeros(n, np.float32)
    tail = (1, 1, width, made) if len(shape.made) == 4 else (width, made)
    return {
        "head": (_he(rng, *shape.stride, shape.given[-1], width), bias(width)),
        "layers": layers,
        "tail": (_he(rng, *tail), bias(made)),
    }


def _names(half: str, layer: str) -> Sequence[str]:
    return tuple(OPERATIONS[half]) if layer == "any" else (layer,)


def _operation(rng: np.random.Generator, half: str, name: str, width: int) -> dict[str, Array]:
    window, separable = OPERATIONS[half][name]
    if not window:
        return {}
    if separable:
        return {
            "depthwise": _he(rng, window, window, 1, width),
            "w": _he(rng, 1, 1, width, width),
            "b": np.zeros(width, np.float32),
        }
    return {"w": _he(rng, window, window, width, width), "b": np.zeros(width, np.float32)}


def _conv(x: jax.Array, w: Array, groups: int = 1, stride: tuple[int, ...] = (1, 1)) -> jax.Array:
    return lax.conv_general_dilated(x, w, stride, "SAME", dimension_numbers=NHWC, feature_group_count=groups)  # type: ignore[arg-type]


def _depthwise(x: jax.Array, w: Array) -> jax.Array:
    """The same convolution as a sum over the places of its window [k, k, 1, channels]: XLA:CPU takes a tenth of the
    time for its gradients, but no kernel knows it.
    """
    rows, columns = w.shape[:2]
    padded = jnp.pad(x, ((0, 0), *(((n - 1) // 2, n // 2) for n in (rows, columns)), (0, 0)))
    height, width = x.shape[1:3]
    places = itertools.product(range(rows), range(columns))
    return sum(padded[:, i : i + height, j : j + width] * w[i, j, 0] for i, j in places)  # type: ignore[return-value]


def _apply_operation(p: Mapping[str, Array], x: jax.Array, learning: bool) -> jax.Array:
    if not p:
        return x
    y = x
    if "depthwise" in p:
        y = _depthwise(x, p["depthwise"]) if learning else _conv(x, p["depthwise"], groups=x.shape[-1])
    return x + jax.nn.relu(_conv(y, p["w"]) + p["b"])


def apply(params: Params, x: jax.Array, choice: jax.Array | None = None, learning: bool = False) -> jax.Array:
    """A twin's values, of the shape `made`, from an array of the shape `given`; `choice`, of shape [layers,
    operations]: how much of each operation while it is not chosen yet; `learning`: in the form with fast gradients.
    """
    if "dense" in params:
        y = x.reshape(x.shape[0], -1)
        for w, b in params["dense"][:-1]:
            y = jax.nn.relu(y @ w + b)
        w, b = params["dense"][-1]
        return y @ w + b
    (head, bias), (tail, last) = params["head"], params["tail"]
    y = jax.nn.relu(_conv(x, head, stride=head.shape[:2]) + bias)
    for i, layer in enumerate(params["layers"]):
        outs = [_apply_operation(p, y, learning) for p in layer.values()]
        y = outs[0] if choice is None else _mixed(outs, choice[i])
    return (_conv(y, tail) if tail.ndim == 4 else y.mean((1, 2)) @ tail) + last


def _mixed(outs: Sequence[jax.Array], choice: jax.Array) -> jax.Array:
    """What a layer makes while its operation is not chosen yet: all operations' results by their shares."""
    return sum(jax.nn.softmax(choice)[k] * o for k, o in enumerate(outs))  # type: ignore[return-value]


def twin_of(
    shape: Shape,
    nonlinear: bool,
    params: Params,
    x: jax.Array,
    choice: jax.Array | None = None,
    learning: bool = False,
) -> jax.Array:
    """`apply` (arrays of the shapes `given` and `made`); `nonlinear`: the block ends with ReLU, so its values are never
    negative.
    """
    y = apply(params, x, choice, learning)
    return jax.nn.relu(y) if nonlinear else y


__all__ = ["DEPTHS", "OPERATIONS", "WIDTHS", "Params", "Shape", "apply", "initial", "replaced", "twin_of"]
