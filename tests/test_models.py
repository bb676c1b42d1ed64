"""The zoo: parameter counts, shapes, and the equality sweep over every split dim and ratio."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

from xcoexec import models
from xcoexec.compat import as_array
from xcoexec.cost.features import flops
from xcoexec.frontend.trace import paths, trace
from xcoexec.ir.plan import Plan
from xcoexec.models.decoder import Decoder, Step
from xcoexec.models.detect import YOLOv3
from xcoexec.models.inception import GoogLeNet
from xcoexec.models.transformer import BERT, ViT

from .oracle import oracles, worst
from .support import QUICK, TOLERANCE, array, assert_on_host, co, error, oracle

pytestmark = pytest.mark.usefixtures("quick_xla")

#: shares of every layer at once (tests/test_layers.py has all eighths of every kind of layer); the whole halves are the
#: same along either dimension
RATIOS = {"channel": (0.25, 1.0), "rows": (0.625,)}
ONE = {"channel": (0.25,), "rows": (0.625,)}  # of those that are another one with more layers
#: the same networks on smaller inputs (AlexNet's windows need 63 pixels), or with fewer and narrower layers, so that
#: the sweep stays quick
SMALL: dict[str, tuple[Any, tuple[int, ...]]] = {
    "fcnn": (None, (28, 28, 1)),
    "lenet": (None, (28, 28, 1)),
    "alexnet": (None, (64, 64, 3)),
    "vgg11": (None, (32, 32, 3)),
    "vgg16": (None, (32, 32, 3)),
    "squeezenet": (None, (48, 48, 3)),
    "googlenet": (None, (64, 64, 3)),
    "resnet18": (None, (48, 48, 3)),
    "resnet50": (None, (40, 40, 3)),
    "mobilenet_v1": (None, (48, 48, 3)),
    "mobilenet_v2": (None, (48, 48, 3)),
    "yolov2": (None, (64, 64, 3)),
    "yolov3": (YOLOv3(3, (1, 1, 1, 1, 1)), (64, 64, 3)),
    "mlp": (None, (784,)),
    "fcn8s": (None, (32, 32, 3)),
    "posenet": (None, (49, 49, 3)),
    "fast_style": (None, (24, 24, 3)),
    "retinaface_mobile": (None, (64, 64, 3)),
    "retinaface_resnet50": (None, (32, 32, 3)),
    "vit_s16": (ViT(16, 96, 2, 3, 10), (48, 64, 3)),
    "bert_base": (BERT(100, 32, 48, 2, 4), (11,)),
    "decoder": (Decoder(100, 64, 2, 4, 2, 88, 24), (3,)),
}
#: so many numbers are drawn for a network's weights, and repeated: a prime, so that rows of weights differ
PERIOD = 1_000_003
TWICE = ("vgg16", "retinaface_resnet50", "mlp")  # vgg11, retinaface_mobile with resnet50, and fcnn have their layers
NOTHING = ("lenet", "resnet18", "decoder")  # with no share for the host half too: XLA's program of the whole network


@functools.cache
def _shapes(name: str) -> tuple[models.Entry, Any, Any]:
    """An entry of the zoo, its weights' shapes and those of one example."""
    entry = models.get(name)
    x = jax.eval_shape(entry.example)
    return entry, jax.eval_shape(entry.module.init, jax.random.key(0), x), x


@pytest.mark.parametrize("name", models.NAMES)
def test_parameters(name: str) -> None:
    entry, shapes, _ = _shapes(name)
    assert sum(x.size for x in jax.tree_util.tree_leaves(shapes["params"])) == entry.parameters


@pytest.mark.parametrize("name", [n for n in models.NAMES if models.get(n).macs])
def test_multiply_adds_are_the_published_ones(name: str) -> None:
    entry, shapes, x = _shapes(name)
    leaves, tree = jax.tree_util.tree_flatten(((shapes, x), {}))
    traced = trace(entry.module.apply, leaves, tree, paths(tree))
    macs = sum(flops(op) for op in traced.ops if op.prim in ("conv_general_dilated", "dot_general")) / 2
    assert macs == pytest.approx(entry.macs, rel=0.01)


RESULTS = {
    "yolov2": [(2, 13, 13, 425)],
    "yolov3": [(2, 13, 13, 255), (2, 26, 26, 255), (2, 52, 52, 255)],
    "fcn8s": [(2, 224, 224, 21)],
    "posenet": [(2, 17, 17, 17), (2, 17, 17, 34), (2, 17, 17, 32), (2, 17, 17, 32)],
    "fast_style": [(2, 256, 256, 3)],
    "retinaface_mobile": [(2, 4200, 4), (2, 4200, 2), (2, 4200, 10)],
    "retinaface_resnet50": [(2, 4200, 4), (2, 4200, 2), (2, 4200, 10)],
    "bert_base": [(2, 128, 768), (2, 768)],
    "decoder": [(2, 1, 8192), *[(2, 256, 4, 64)] * 16],
    "fcnn": [(2, 10)],
    "lenet": [(2, 10)],
    "mlp": [(2, 10)],
}


@pytest.mark.parametrize("name", models.NAMES)
def test_results(name: str) -> None:
    entry, shapes, _ = _shapes(name)
    out = jax.tree_util.tree_leaves(
        jax.eval_shape(entry.module.apply, shapes, jax.eval_shape(lambda: entry.example(2)))
    )
    assert [o.shape for o in out] == RESULTS.get(name, [(2, 1000)])
    assert all(o.dtype == jnp.float32 for o in out)


def test_googlenet_as_pytorch_users_know_it() -> None:
    module = GoogLeNet(norm=True, wide=3)
    shapes = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, 224, 224, 3)))
    assert sum(x.size for x in jax.tree_util.tree_leaves(shapes["params"])) == 6_624_904


def test_unknown_model() -> None:
    with pytest.raises(ValueError, match="valid are fcnn, lenet"):
        models.get("lenet5")


def _input(name: str, batch: int) -> Any:
    module, shape = SMALL[name]
    entry = models.get(name)
    if not entry.vocabulary:
        return array(batch, *shape)
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 100, (batch, *shape)), jnp.int32)
    if not entry.step:
        return tokens
    cache = jax.tree_util.tree_map(lambda c: array(*c.shape, seed=c.size), module.empty_cache(batch))
    return Step(tokens, cache, jnp.int32(9))


@functools.lru_cache(maxsize=2)
def _case(name: str) -> tuple[Any, Any, Any, list[np.ndarray]]:
    module = SMALL[name][0] or models.get(name).module
    x = _input(name, 1)
    shapes = jax.eval_shape(module.init, jax.random.key(0), x)
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(PERIOD, np.float32)

    def draw(s: Any) -> jax.Array:
        if len(s.shape) < 2:
            return as_array(rng.uniform(0.5, 1.0, s.shape).astype(np.float32))
        scale = np.sqrt(2.0 / max(1, int(np.prod(s.shape[:-1]))))
        start = rng.integers(PERIOD)
        return as_array(np.resize(np.roll(normal, -start), s.shape) * np.float32(scale))

    weights = jax.tree_util.tree_map(draw, shapes)
    apply = _traced(module.apply, weights, x)
    return apply, weights, x, oracles(apply, weights, x)


def _traced(fn: Any, *args: Any) -> Any:
    """A function that is what another one is for arguments of these shapes: Flax's layers are walked through once."""
    closed = jax.make_jaxpr(fn)(*args)
    return lambda *args: jaxpr_as_fun(closed)(*jax.tree_util.tree_leaves(args))


def _ratios(name: str, dim: str) -> tuple[float, ...]:
    some = ONE if name in TWICE else RATIOS
    return (0.0, *some[dim]) if name in NOTHING and dim == "channel" else some[dim]


@pytest.mark.parametrize("dim", ["channel", "rows"])
@pytest.mark.parametrize("name", models.NAMES)
def test_equality_sweep(name: str, dim: str) -> None:
    """Every layer split at once, against float64."""
    apply, weights, x, want = _case(name)
    for p in _ratios(name, dim):
        fast = co(apply, weights, plan=Plan.uniform(p, dim), threads=2, compiler_options=QUICK)
        assert worst(fast(x), want) < TOLERANCE, p
        halves = {q.half for q in fast.plan().placements}
        splittable = any(dim in x.dims for x in fast.graph().layers)
        assert ("split" in halves or not splittable) if 0 < p < 1 else halves == ({"device"} if p == 0 else {"host"})
        if p == 1 or (p > 0 and splittable):
            assert_on_host(fast)


@pytest.mark.parametrize("name", ["resnet18", "bert_base", "decoder"])
def test_batches(name: str) -> None:
    _, weights, _, _ = _case(name)
    x = _input(name, 3)
    apply = _traced((SMALL[name][0] or models.get(name).module).apply, weights, x)
    fast = co(apply, weights, plan=Plan.uniform(1.0), threads=2)
    assert worst(fast(x), oracles(apply, weights, x)) < TOLERANCE
    assert_on_host(fast)


@pytest.mark.parametrize("name", ["lenet", "squeezenet", "mobilenet_v2"])
def test_full_size_on_the_host_half(name: str) -> None:
    entry = models.get(name)
    weights, x = entry.variables(), entry.example()
    fast = co(entry.module.apply, weights, strategy="host")
    assert error(fast(x), oracle(entry.module.apply, weights, x)) < TOLERANCE
    assert all(p.half == "host" for p in fast.plan().placements)
    assert fast.report().segments == 1
