"""Trains LeNet-5 on scikit-learn's digits with Flax linen and optax, once with `jax.jit` and once with `xcoexec.jit`.

    pip install 'xcoexec[demo]'
    python examples/train_digits.py

The whole step is one function: forward pass, gradients and optimizer. Nothing else differs between the two runs.
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
from flax.training.train_state import TrainState
from sklearn.datasets import load_digits

import xcoexec
from xcoexec import models

BATCH, TRAINED = 64, 1437  # of 1797 digits
#: without `wait` the first steps are jax.jit's, while the plan is made beside them: this run is too short for that
JITS: dict[str, Callable[..., Any]] = {"jax.jit": jax.jit, "xcoexec.jit": functools.partial(xcoexec.jit, wait=True)}


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images [1797, 28, 28, 1] from 0 to 1, in random order, and their labels."""
    data = load_digits()
    images = np.pad(np.kron(data.images, np.ones((1, 3, 3))) / 16, ((0, 0), (2, 2), (2, 2)))
    order = np.random.default_rng(0).permutation(len(images))
    return images[order, ..., None].astype(np.float32), data.target[order].astype(np.int32)


def first_state(x: np.ndarray) -> TrainState:
    """LeNet-5 with random weights, and its optimizer."""
    module = models.get("lenet").module
    params = jax.jit(module.init)(jax.random.key(0), x[:1])["params"]
    return TrainState.create(apply_fn=module.apply, params=params, tx=optax.sgd(0.02, momentum=0.9))


def step(state: TrainState, x: jax.Array, y: jax.Array) -> tuple[TrainState, jax.Array]:
    """(next state, loss)."""

    def loss(params: Any) -> jax.Array:
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value


def train(jitted: Callable[..., Any], state: TrainState, x: np.ndarray, y: np.ndarray, steps: int) -> Any:
    """(last state, last loss, milliseconds of a step: the median)."""
    rng, times = np.random.default_rng(1), []
    for _ in range(steps):
        pick = rng.integers(0, len(x), BATCH)
        began = time.perf_counter()
        state, loss = jitted(state, jnp.asarray(x[pick]), jnp.asarray(y[pick]))
        loss.block_until_ready()
        times.append(time.perf_counter() - began)
    return state, float(loss), 1e3 * float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    x, y = digits()
    state = first_state(x)
    for name, jit in JITS.items():
        jitted = jit(step, donate_argnums=0)
        # the state is given away: each run gets a copy
        last, loss, ms = train(jitted, jax.tree.map(jnp.copy, state), x[:TRAINED], y[:TRAINED], steps)
        right = last.apply_fn({"params": last.params}, x[TRAINED:]).argmax(-1) == y[TRAINED:]
        print(f"{name}: {ms:.2f} ms a step, loss {loss:.4f}, accuracy {float(right.mean()):.1%}")


if __name__ == "__main__":
    main()
