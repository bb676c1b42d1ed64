"""The zoo: parameter counts, shapes, and the equality sweep over every split dim and ratio."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec import models
from xcoexec.ir import Plan

from .support import TOLERANCE, array, assert_on_host, co, error, oracle

RATIOS = [i / 8 for i in range(9)]
#: the same networks on smaller images (AlexNet's windows need 63 pixels), so that the sweep stays quick
SMALL = {
    "fcnn": (28, 28, 1),
    "lenet": (28, 28, 1),
    "alexnet": (64, 64, 3),
    "vgg16": (32, 32, 3),
    "squeezenet": (48, 48, 3),
    "resnet18": (48, 48, 3),
    "mobilenet_v2": (48, 48, 3),
}


@pytest.mark.parametrize("name", models.NAMES)
def test_parameters_and_output(name: str) -> None:
    entry = models.get(name)
    shapes = jax.eval_shape(entry.module.init, jax.random.key(0), jnp.zeros((2, *entry.shape)))
    count = sum(x.size for x in jax.tree_util.tree_leaves(shapes["params"]))
    assert entry.parameters is None or count == entry.parameters
    out = jax.eval_shape(entry.module.apply, shapes, jnp.zeros((2, *entry.shape)))
    assert out.shape == (2, entry.classes) and out.dtype == jnp.float32


def test_unknown_model() -> None:
    with pytest.raises(ValueError, match="valid are fcnn, lenet"):
        models.get("lenet5")


@functools.lru_cache(maxsize=2)
def _case(name: str) -> tuple[Any, Any, Any, np.ndarray]:
    entry = models.get(name)
    module = entry.module
    x = array(1, *SMALL[name])
    shapes = jax.eval_shape(module.init, jax.random.key(0), x)
    rng = np.random.default_rng(0)

    def draw(s: Any) -> jax.Array:
        scale = np.sqrt(2.0 / max(1, int(np.prod(s.shape[:-1])))) if len(s.shape) > 1 else 1.0
        return jnp.asarray((rng.standard_normal(s.shape) * scale if len(s.shape) > 1 else rng.uniform(0.5, 1.0, s.shape)).astype(np.float32))

    weights = jax.tree_util.tree_map(draw, shapes)
    return module.apply, weights, x, oracle(module.apply, weights, x)


@pytest.mark.parametrize("dim", ["channel", "rows"])
@pytest.mark.parametrize("name", models.NAMES)
def test_equality_sweep(name: str, dim: str) -> None:
    """Every ratio 0, 1/8 .. 1 of every layer at once, against float64."""
    apply, weights, x, want = _case(name)
    for p in RATIOS if name != "mobilenet_v2" else RATIOS[::2]:
        fast = co(apply, weights, plan=Plan.uniform(p, dim), threads=2)
        assert error(fast(x), want) < TOLERANCE, p
        halves = {q.half for q in fast.plan().placements}
        splittable = any(dim in x.dims for x in fast.graph().layers)
        assert ("split" in halves or not splittable) if 0 < p < 1 else halves == ({"device"} if p == 0 else {"host"})
        if p == 1 or (p > 0 and splittable):
            assert_on_host(fast)


@pytest.mark.parametrize("batch", [1, 3])
def test_batches(batch: int) -> None:
    apply, weights, _, _ = _case("resnet18")
    x = array(batch, *SMALL["resnet18"], seed=batch)
    fast = co(apply, weights, strategy="host", threads=2)
    assert error(fast(x), oracle(apply, weights, x)) < TOLERANCE
    assert_on_host(fast)


@pytest.mark.parametrize("name", ["lenet", "squeezenet", "mobilenet_v2"])
def test_full_size_on_the_host_half(name: str) -> None:
    entry = models.get(name)
    weights, x = entry.variables(), entry.example()
    fast = co(entry.module.apply, weights, strategy="host")
    assert error(fast(x), oracle(entry.module.apply, weights, x)) < TOLERANCE
    assert all(p.half == "host" for p in fast.plan().placements)
    assert fast.report().segments == 1
