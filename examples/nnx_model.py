"""Runs a network of Flax nnx: the state is bound, the module is put together inside of the function.

python examples/nnx_model.py
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import xcoexec


class Net(nnx.Module):
    """A convolution, an average over the image, and a dense layer."""

    def __init__(self, rngs: nnx.Rngs):
        self.conv = nnx.Conv(3, 32, (3, 3), rngs=rngs)
        self.head = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.head(nnx.relu(self.conv(x)).mean((1, 2)))


def main() -> None:
    """Prints how far the results are from `jax.jit`'s, and the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=20, help="calls before the report")
    given = parser.parse_args()
    graph, state = nnx.split(Net(nnx.Rngs(0)))

    def predict(state: nnx.State, x: jax.Array) -> jax.Array:
        return nnx.merge(graph, state)(x)

    x = jax.random.normal(jax.random.key(1), (4, 32, 32, 3), jnp.float32)
    fast = xcoexec.jit(predict, wait=True).bind(state)
    for _ in range(given.steps):
        got = fast(x)
    print(f"largest difference: {float(np.abs(np.asarray(got) - np.asarray(jax.jit(predict)(state, x))).max()):.1e}")
    print(fast.report())


if __name__ == "__main__":
    main()
