"""Trains a small network of Flax nnx on scikit-learn's digits, once with `jax.jit` and once with `xcoexec.jit`.

    pip install 'xcoexec[demo]'
    python examples/train_nnx.py

A step takes the state of the model and of its optimizer, as `nnx.split` gives it, and returns the next one.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

import xcoexec

BATCH, TRAINED = 64, 1437  # of 1797 digits
#: without `wait` the first steps are jax.jit's, while the plan is made beside them: this run is too short for that
JITS: dict[str, Callable[..., Any]] = {"jax.jit": jax.jit, "xcoexec.jit": functools.partial(xcoexec.jit, wait=True)}


class Net(nnx.Module):
    """Two convolutions with batch norm, and a dense layer."""

    def __init__(self, rngs: nnx.Rngs):
        self.convs = nnx.List([nnx.Conv(a, b, (3, 3), b // 16, rngs=rngs) for a, b in ((1, 16), (16, 32))])
        self.norms = nnx.List([nnx.BatchNorm(n, rngs=rngs) for n in (16, 32)])
        self.head = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = nnx.relu(norm(conv(x)))
        return self.head(x.mean((1, 2)))


def loss_of(model: Net, x: jax.Array, y: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


def stepper(graph: Any) -> Callable[..., Any]:
    """(state, images, labels) -> (next state, loss), for the model and optimizer of `graph`."""

    def step(state: nnx.State, x: jax.Array, y: jax.Array) -> tuple[nnx.State, jax.Array]:
        model, optimizer = nnx.merge(graph, state)
        loss, grads = nnx.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.images))
    x, y = data.images[order, ..., None].astype(np.float32) / 16, data.target[order].astype(np.int32)
    for name, jit in JITS.items():
        model = Net(nnx.Rngs(0))
        graph, state = nnx.split((model, nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)))
        jitted, rng, times = jit(stepper(graph), donate_argnums=0), np.random.default_rng(1), []
        for _ in range(steps):
            pick = rng.integers(0, TRAINED, BATCH)
            began = time.perf_counter()
            state, loss = jitted(state, jnp.asarray(x[pick]), jnp.asarray(y[pick]))
            loss.block_until_ready()
            times.append(time.perf_counter() - began)
        model, _ = nnx.merge(graph, state)
        model.eval()
        right = np.asarray(model(jnp.asarray(x[TRAINED:])).argmax(-1)) == y[TRAINED:]
        print(f"{name}: {1e3 * np.median(times):.2f} ms a step, loss {float(loss):.4f}, accuracy {right.mean():.1%}")


if __name__ == "__main__":
    main()
