"""A stream of frames, as of a camera: frames are prepared, run and drawn upon at the same time.

python examples/camera.py --frames 100
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import xcoexec
from xcoexec import models

SIDE = 480


def camera(frames: int) -> Iterator[np.ndarray]:
    """Made frames of shape [480, 480, 3], u8: a bright square that moves."""
    for i in range(frames):
        frame = np.random.default_rng(i).integers(0, 64, (SIDE, SIDE, 3), np.uint8)
        at = 7 * i % (SIDE - 64)
        frame[at : at + 64, at : at + 64] = 255
        yield frame


def prepared(frame: np.ndarray) -> np.ndarray:
    """A frame as the network takes it: f32, [1, 224, 224, 3]."""
    rows = np.linspace(0, SIDE - 1, 224).astype(int)
    return (frame[rows][:, rows][None].astype(np.float32) / 255.0 - 0.45) / 0.225


def main() -> None:
    """Prints a class for each frame, and what the stages took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="squeezenet")
    parser.add_argument("--frames", type=int, default=50)
    given = parser.parse_args()
    entry = models.get(given.model)
    fast = xcoexec.jit(entry.module.apply).bind(entry.variables())
    pipe = xcoexec.pipeline(fast, preprocess=prepared, postprocess=lambda scores: int(scores.argmax()), depth=2)
    with pipe(camera(given.frames)) as stream:
        classes = list(stream)
        print(f"{len(classes)} frames; the last one is of class {classes[-1]}")
        print(stream.stats())


if __name__ == "__main__":
    main()
