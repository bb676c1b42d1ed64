"""Classifies scikit-learn's photographs with a network of the zoo, and compares the answers with `jax.jit`'s.

    pip install 'xcoexec[demo]'
    python examples/classify.py --model mobilenet_v2 --weights mobilenet_v2.safetensors

Without a file the weights are random: then only speed and agreement mean something.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

import xcoexec
from xcoexec import models
from xcoexec.tools.demo import photographs


def main() -> None:
    """Prints each photograph's class, whether `jax.jit` agrees, and milliseconds of a call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="mobilenet_v2")
    parser.add_argument("--weights", default="", help="a safetensors file with PyTorch's names")
    parser.add_argument("--steps", type=int, default=50, help="calls that are timed")
    given = parser.parse_args()
    entry = models.get(given.model)
    weights = models.load(given.model, given.weights) if given.weights else entry.variables()
    fast = xcoexec.jit(entry.module.apply, wait=True).bind(weights)
    plain = jax.jit(entry.module.apply)
    for name, image in zip(("china", "flower"), photographs(), strict=True):
        mine, theirs = int(np.argmax(fast(image))), int(np.argmax(plain(weights, image)))
        print(f"{name}: class {mine}, jax.jit says {theirs}")
    for name, call in (("jax.jit", lambda: plain(weights, image)), ("xcoexec", lambda: fast(image))):
        begin = time.perf_counter()
        for _ in range(given.steps):
            jax.block_until_ready(call())
        print(f"{name}: {1e3 * (time.perf_counter() - begin) / given.steps:.3g} ms a call")


if __name__ == "__main__":
    main()
