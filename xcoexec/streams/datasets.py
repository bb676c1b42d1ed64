"""Small data to search twins with: scikit-learn's digits, a generated set of coloured shapes, and folders of CIFAR-10
and GTSRB.
"""

from __future__ import annotations

import dataclasses
import pathlib
import pickle
from collections.abc import Iterator

import numpy as np

COLOURS = ((0.9, 0.2, 0.2), (0.2, 0.5, 0.9))
SHAPES = 5  # disc, square, triangle, cross, ring: with two colours ten classes
SIZE = 32


@dataclasses.dataclass(frozen=True)
class Data:
    """Images [n, height, width, channels] f32 in 0..1 and labels [n] i32, to train with and to judge by."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    def batches(self, size: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Training batches (images of shape [size, height, width, channels], labels [size]) without end, shuffled anew
        every time round. Raises `ValueError` for a size that there are no images for.
        """
        x, y = self.train
        if not 0 < size <= len(x):
            raise ValueError(
                f"xcoexec.streams.datasets: got batches of {size}; valid is 1 to {len(x)}, the images that there are."
            )
        rng = np.random.default_rng(seed)
        while True:
            order = rng.permutation(len(x))
            for i in range(0, len(x) - size + 1, size):
                yield x[order[i : i + size]], y[order[i : i + size]]


def _divided(x: np.ndarray, y: np.ndarray, test: float = 0.25, seed: int = 0) -> Data:
    """Images and labels in random order, the share `test` of them to judge by."""
    order = np.random.default_rng(seed).permutation(len(x))
    at = int(len(x) * test)
    images = x.astype(np.float32)[order]
    labels = y.astype(np.int32)[order]
    return Data((images[at:], labels[at:]), (images[:at], labels[:at]))


def digits(size: int = 28) -> Data:
    """scikit-learn's 1797 handwritten digits as images of shape [n, size, size, 1]: 8x8 in the middle of a frame, each
    pixel three wide. Raises `ValueError` for a size below 24, `ImportError` that names the extra where scikit-learn is
    missing.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError(
            'xcoexec.streams.datasets: got digits() without scikit-learn; valid after pip install "xcoexec[demo]".'
        ) from None
    found = load_digits()
    images = np.kron(found.images / 16.0, np.ones((3, 3)))
    margin = size - images.shape[1]
    if margin < 0:
        raise ValueError(f"xcoexec.streams.datasets: got size={size}; valid is from 24 on.")
    images = np.pad(images, ((0, 0), (margin // 2, margin - margin // 2), (margin // 2, margin - margin // 2)))
    return _divided(images[..., None], found.target)


def coloured_shapes(count: int = 2000, seed: int = 0) -> Data:
    """Ten classes: five shapes in two colours, at random places and sizes on noise; images of shape [n, 32, 32, 3]."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, SHAPES * len(COLOURS), count)
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    x = rng.uniform(0.2, 0.8, (count, SIZE, SIZE, 3))
    for i, label in enumerate(y):
        r = rng.uniform(5, 10)
        cy, cx = rng.uniform(r, SIZE - r, 2)
        dy, dx = np.abs(rows - cy), np.abs(columns - cx)
        far = np.hypot(dy, dx)
        inside = (
            far < r,
            np.maximum(dy, dx) < 0.85 * r,
            (rows - cy < 0.7 * r) & (rows - cy > 2.2 * dx - r),
            (np.minimum(dy, dx) < 0.3 * r) & (np.maximum(dy, dx) < r),
            (far < r) & (far > 0.6 * r),
        )[label % SHAPES]
        x[i][inside] = np.asarray(COLOURS[label // SHAPES]) + rng.normal(0, 0.08, (int(inside.sum()), 3))
    return _divided(np.clip(x + rng.normal(0, 0.05, x.shape), 0, 1), y, seed=seed)


def cifar10(folder: str | pathlib.Path) -> Data:
    """CIFAR-10, images of shape [n, 32, 32, 3], from the folder of its Python version (data_batch_1 .. 5, test_batch).
    Raises `FileNotFoundError` that names what is missing.

    The files are pickles, which can run code: only read what comes from its authors.
    """
    where = pathlib.Path(folder)

    def read(name: str) -> tuple[np.ndarray, np.ndarray]:
        file = where / name
        if not file.is_file():
            raise FileNotFoundError(
                f"xcoexec.streams.datasets: got the folder {str(where)!r} without {name}; valid is that of CIFAR-10's"
                " Python version."
            )
        with file.open("rb") as f:
            found = pickle.load(f, encoding="bytes")
        images = np.asarray(found[b"data"], np.float32).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) / 255
        return images, np.asarray(found[b"labels"], np.int32)

    parts = [read(f"data_batch_{i}") for i in range(1, 6)]
    x, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Data((x, y), read("test_batch"))


def gtsrb(folder: str | pathlib.Path, size: int = SIZE) -> Data:
    """German traffic signs from folders of images by class (00000, 00001, ...), resized to the shape [n, size, size,
    3]. Raises `FileNotFoundError` where there are none.
    """
    from PIL import Image

    where = pathlib.Path(folder)
    files = sorted(f for f in where.glob("[0-9]*/*") if f.suffix.lower() in (".ppm", ".png", ".jpg"))
    if not files:
        raise FileNotFoundError(
            f"xcoexec.streams.datasets: got the folder {str(where)!r} without images; valid is one with folders of"
            " classes (00000, 00001, ...)."
        )
    x = np.stack([np.asarray(Image.open(f).convert("RGB").resize((size, size)), np.float32) / 255 for f in files])
    return _divided(x, np.array([int(f.parent.name) for f in files]))


__all__ = ["Data", "cifar10", "coloured_shapes", "digits", "gtsrb"]
