"""JPEG files to stream through networks, and the user's work around a network."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

MEAN, DEVIATION = np.float32((0.485, 0.456, 0.406)), np.float32((0.229, 0.224, 0.225))


def files() -> list[bytes]:
    """The sample photographs of scikit-learn as JPEG files, four crops each so that no two neighbours are the same."""
    out = []
    for image in load_sample_images().images:
        for dy, dx in itertools.product((0, 16), (0, 24)):
            file = io.BytesIO()
            Image.fromarray(image[dy : dy + 400, dx : dx + 600]).save(file, "JPEG", quality=90)
            out.append(file.getvalue())
    return out


def decoder(shape: tuple[int, ...]) -> Callable[[bytes], np.ndarray]:
    """Decode, resize and normalise for a network's input: an image, or a square of grey values in a row."""

    def image(data: bytes) -> np.ndarray:
        x = np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize(shape[1::-1]), np.float32)
        return ((x / 255 - MEAN) / DEVIATION)[None]

    def row(data: bytes) -> np.ndarray:
        side = round(shape[0] ** 0.5)
        return (np.asarray(Image.open(io.BytesIO(data)).convert("L").resize((side, side)), np.float32) / 255).reshape(
            1, -1
        )

    return image if len(shape) == 3 else row


def label(out: Any) -> Any:
    """The user's work behind the network: results on the host."""
    return [np.asarray(x).argmax(-1) for x in jax.tree_util.tree_leaves(out)]
