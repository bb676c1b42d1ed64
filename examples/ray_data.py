"""Runs a network over the batches of a data set, with Ray Data where it is installed.

    pip install 'xcoexec[ray]' 'ray[data]'
    python examples/ray_data.py --images 256

Each worker makes its own bound function. Without Ray the same class runs over the batches in this process.
"""

from __future__ import annotations

import argparse
import importlib.util

import numpy as np

import xcoexec
from xcoexec import models

BATCH = 32


class Classifier:
    """A network with resident weights; a batch is a dict of arrays, as Ray Data has it."""

    def __init__(self) -> None:
        entry = models.get("lenet")
        self.fast = xcoexec.jit(entry.module.apply).bind(entry.variables())

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"class": np.asarray(self.fast(batch["image"])).argmax(-1)}


def main() -> None:
    """Prints how many images of each class there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--images", type=int, default=256)
    given = parser.parse_args()
    images = np.random.default_rng(0).normal(size=(given.images, 28, 28, 1)).astype(np.float32)
    if importlib.util.find_spec("ray") is not None:
        import ray

        data = ray.data.from_numpy(images).rename_columns({"data": "image"})
        rows = data.map_batches(Classifier, batch_size=BATCH, concurrency=1).take_all()
        classes = np.array([row["class"] for row in rows])
    else:
        run = Classifier()
        classes = np.concatenate([run({"image": images[i : i + BATCH]})["class"] for i in range(0, len(images), BATCH)])
    print(f"{len(classes)} images:", np.bincount(classes, minlength=10).tolist())


if __name__ == "__main__":
    main()
