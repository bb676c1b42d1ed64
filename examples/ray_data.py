"""Runs a network over the batches of a data set, with Ray Data where it is installed.

    pip install 'xcoexec[ray]'
    python examples/ray_data.py --images 256

Each actor has cores of its own; plan and weights travel to it. Without Ray the same class runs over the batches in this
process.
"""

from __future__ import annotations

import argparse
import importlib.util

import numpy as np

from xcoexec import fleet, models

BATCH = 32


def classifier(images: np.ndarray) -> type[fleet.Predictor]:
    """A network with resident weights, planned for batches like these images; a batch is a dict of arrays."""
    entry = models.get("lenet")
    finish = lambda y: np.asarray(y).argmax(-1)
    return fleet.predictor(
        entry.module.apply, entry.variables(), reads="image", writes="class", finish=finish, example=images[:BATCH]
    )


def main() -> None:
    """Prints how many images of each class there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--images", type=int, default=256)
    given = parser.parse_args()
    images = np.random.default_rng(0).normal(size=(given.images, 28, 28, 1)).astype(np.float32)
    if importlib.util.find_spec("ray") is not None:
        import ray

        ray.init()
        made = classifier(images)
        data = ray.data.from_numpy(images).rename_columns({"data": "image"})
        rows = data.map_batches(made, batch_size=BATCH, concurrency=(1, 2), **made.resources).take_all()
        classes = np.array([row["class"] for row in rows])
    else:
        run = classifier(images)()
        classes = np.concatenate([run({"image": images[i : i + BATCH]})["class"] for i in range(0, len(images), BATCH)])
    print(f"{len(classes)} images:", np.bincount(classes, minlength=10).tolist())


if __name__ == "__main__":
    main()
