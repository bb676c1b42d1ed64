"""Functions of a batch that lies in parts on four devices of the host: run as a program, it writes what ran each of
them, how far its results are from those of `jax.jit` and of NumPy, and whether they lie as `jax.jit`'s do.
"""

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import xcoexec
from xcoexec.lowering.shards import Shards

RANDOM = np.random.default_rng(0)
AUTO = AxisType.Auto
EXPLICIT = jax.make_mesh((4,), ("d",))  # whose axes are part of types
MESH = jax.make_mesh((4,), ("d",), axis_types=(AUTO,))
GRID = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AUTO, AUTO))
BACK = jax.sharding.Mesh(np.array(jax.devices()[::-1]), ("d",))
LAST = jax.sharding.Mesh(np.array(jax.devices()[2:]), ("d",))
BATCH, WHOLE = NamedSharding(MESH, P("d")), NamedSharding(MESH, P())
put = jax.device_put


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


X, IMAGES = normal(16, 24), normal(8, 10, 10, 3)
W = {"a": normal(24, 40) / 5, "b": normal(40, 8) / 6, "c": normal(40)}
FILTERS = {"f": normal(3, 3, 3, 8) / 5, "g": normal(3, 3, 1, 8) / 3, "w": normal(8, 5)}


def mlp(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["a"] + p["c"]) @ p["b"]


def images(p: Any, x: Any) -> Any:
    """A convolution, a depthwise one, a mean over the image, a product, a softmax."""
    dims = ("NHWC", "HWIO", "NHWC")
    y = jax.nn.relu(lax.conv_general_dilated(x, p["f"], (1, 1), "SAME", dimension_numbers=dims))
    y = lax.conv_general_dilated(y, p["g"], (2, 2), "SAME", dimension_numbers=dims, feature_group_count=8)
    return jax.nn.softmax(y.mean((1, 2)) @ p["w"])


def attention(p: Any, x: Any) -> Any:
    """Rows of an item attend to one another."""
    q = x.reshape(16, 4, 6)
    return jax.nn.softmax(jnp.einsum("bid,bjd->bij", q, q)) @ q @ p["a"][:6] + p["c"]


def by_numpy(p: Any, x: np.ndarray) -> np.ndarray:
    """`mlp` in double precision."""
    q = {k: v.astype(np.float64) for k, v in p.items()}
    return np.tanh(x.astype(np.float64) @ q["a"] + q["c"]) @ q["b"]


Case = tuple[Callable[..., Any], Sequence[Any]]
there = lambda sharding: put(W, sharding)
#: what is divisible by item, and lies so
APART: dict[str, Case] = {
    "weights everywhere": (mlp, (there(WHOLE), put(X, BATCH))),
    "free weights": (mlp, (jax.tree.map(jnp.asarray, W), put(X, BATCH))),
    "images": (images, (put(FILTERS, WHOLE), put(IMAGES, BATCH))),
    "attention within items": (attention, (there(WHOLE), put(X, BATCH))),
    "two results, one of them of the weights alone": (
        lambda p, x: {"y": mlp(p, x), "sum": p["a"].sum(), "x": x},
        (there(WHOLE), put(X, BATCH)),
    ),
    "a token of its own for each item": (
        lambda p, x: jnp.concatenate([jnp.broadcast_to(p["c"], (16, 1, 40)), (x @ p["a"])[:, None]], 1) @ p["b"],
        (there(WHOLE), put(X, BATCH)),
    ),
    "the batch's size is a number": (lambda p, x: mlp(p, x) / x.shape[0], (there(WHOLE), put(X, BATCH))),
    "a second input everywhere": (
        lambda p, x, s: mlp(p, x) * s,
        (there(WHOLE), put(X, BATCH), put(np.float32(2.5), WHOLE)),
    ),
    "a second input of NumPy": (lambda p, x, s: mlp(p, x) * s, (there(WHOLE), put(X, BATCH), normal(8))),
    "two inputs in parts": (
        lambda p, x, z: mlp(p, x) + mlp(p, z * 2),
        (there(WHOLE), put(X, BATCH), put(normal(16, 24), BATCH)),
    ),
    "items on the second axis": (
        lambda p, x: mlp(p, x.T),
        (there(WHOLE), put(normal(24, 16), NamedSharding(MESH, P(None, "d")))),
    ),
    "both axes of a grid": (
        mlp,
        (put(W, NamedSharding(GRID, P())), put(X, NamedSharding(GRID, P(("a", "b"))))),
    ),
    "one axis of a grid": (mlp, (put(W, NamedSharding(GRID, P())), put(X, NamedSharding(GRID, P("a"))))),
    "axes that are part of types": (
        mlp,
        (put(W, NamedSharding(EXPLICIT, P())), put(X, NamedSharding(EXPLICIT, P("d")))),
    ),
    "images, axes that are part of types": (
        images,
        (put(FILTERS, NamedSharding(EXPLICIT, P())), put(IMAGES, NamedSharding(EXPLICIT, P("d")))),
    ),
    "free weights, axes that are part of types": (
        mlp,
        (jax.tree.map(jnp.asarray, W), put(X, NamedSharding(EXPLICIT, P("d")))),
    ),
    "devices from the last to the first": (
        mlp,
        (put(W, NamedSharding(BACK, P())), put(X, NamedSharding(BACK, P("d")))),
    ),
    "without the first device": (mlp, (put(W, NamedSharding(LAST, P())), put(X, NamedSharding(LAST, P("d"))))),
    "all on the third device": (mlp, (put(W, jax.devices()[2]), put(X, jax.devices()[2]))),
    "a mesh of the first device alone": (
        mlp,
        tuple(put(v, NamedSharding(jax.make_mesh((1,), ("d",), axis_types=(AUTO,)), P())) for v in (W, X)),
    ),
    "a result of a weak type": (lambda p, x: (mlp(p, x), jnp.where(True, 1.0, 2.0)), (there(WHOLE), put(X, BATCH))),
}
#: what is not
TOGETHER: dict[str, Case] = {
    "a mean over the batch": (lambda p, x: mlp(p, x - x.mean(0)), (there(WHOLE), put(X, BATCH))),
    "a sum of all": (lambda p, x: mlp(p, x).sum(), (there(WHOLE), put(X, BATCH))),
    "the batch backwards": (lambda p, x: mlp(p, x)[::-1], (there(WHOLE), put(X, BATCH))),
    "items are numbered": (lambda p, x: mlp(p, x) + jnp.arange(16.0)[:, None], (there(WHOLE), put(X, BATCH))),
    "items of an array everywhere": (
        lambda p, x, z: mlp(p, x) + z,
        (there(WHOLE), put(X, BATCH), put(normal(16, 8), WHOLE)),
    ),
    "items attend to one another": (lambda p, x: jax.nn.softmax(x @ x.T) @ mlp(p, x), (there(WHOLE), put(X, BATCH))),
    "sorted items": (lambda p, x: jnp.sort(mlp(p, x), 0), (there(WHOLE), put(X, BATCH))),
    "rows of images": (images, (put(FILTERS, WHOLE), put(normal(8, 12, 10, 3), NamedSharding(MESH, P(None, "d"))))),
    "weights in parts": (
        mlp,
        (put(W, {"a": NamedSharding(MESH, P(None, "d")), "b": NamedSharding(MESH, P("d")), "c": BATCH}), put(X, WHOLE)),
    ),
    "all everywhere": (mlp, (there(WHOLE), put(X, WHOLE))),
    "two axes in parts": (mlp, (put(W, NamedSharding(GRID, P())), put(X, NamedSharding(GRID, P("a", "b"))))),
}


def compared(fn: Callable[..., Any], args: Sequence[Any], strategy: str = "host") -> dict[str, Any]:
    """What ran a function three times, called and bound, and what its results are beside those of `jax.jit`."""
    jit = jax.jit(lambda *a: fn(*a))
    fast = xcoexec.jit(fn, strategy=strategy)
    bound = fast.bind(args[0])
    pairs = [
        pair
        for got in (*(fast(*args) for _ in range(3)), *(bound(*args[1:]) for _ in range(3)))
        for pair in zip(jax.tree.leaves(jit(*args)), jax.tree.leaves(got), strict=True)
    ]
    about = lambda x: (x.shape, str(x.dtype), x.weak_type, x.sharding, x.committed, jax.typeof(x))
    shards = lambda x: [(s.device, s.index) for s in x.addressable_shards]
    return {
        "engines": [fast.plan(*args).engine, bound.plan().engine],
        "alike": all(about(a) == about(b) and shards(a) == shards(b) for a, b in pairs),
        "error": max(float(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)).max()) for a, b in pairs),
    }


def double() -> float:
    """How far results are from those in double precision."""
    y = xcoexec.jit(mlp, strategy="host")(there(WHOLE), put(X, BATCH))
    return float(np.abs(np.asarray(y, np.float64) - by_numpy(W, X)).max())


def in_turn() -> dict[str, Any]:
    """One function, called with arrays in several places, other weights, and in the background."""
    f, jit = xcoexec.jit(mlp, strategy="host"), jax.jit(mlp)
    calls = [(there(s), put(X * i, t)) for i in range(1, 4) for s, t in ((WHOLE, BATCH), (WHOLE, WHOLE))]
    calls += [(W, X), (jax.tree.map(lambda v: v * 2, there(WHOLE)), put(X, BATCH))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        errors = [float(np.abs(np.asarray(f(*a)) - np.asarray(jit(*a))).max()) for a in calls]
    g, args = xcoexec.jit(images), (put(FILTERS, WHOLE), put(np.tile(IMAGES, (8, 4, 4, 1)), BATCH))
    before = g(*args)
    ready = g.ready(120)
    return {
        "errors": max(errors),
        "ready": ready,
        "behind calls": float(np.abs(np.asarray(before) - np.asarray(g(*args))).max()),
        "same place": before.sharding == g(*args).sharding,
    }


def deleted() -> str:
    """What a call says whose batch has been deleted."""
    f, x, w = xcoexec.jit(mlp, strategy="host"), put(X, BATCH), there(WHOLE)
    f(w, x)
    x.delete()
    try:
        f(w, x)
    except RuntimeError as e:
        return str(e)
    return ""


def on_device(case: Case) -> dict[str, Any]:
    """The same on the device half alone, and whether it ran as one program over all devices."""
    made, together = [], Shards.together

    def noted(*args: Any) -> Any:
        made.append(together(*args))
        return made[-1]

    with mock.patch.object(Shards, "together", noted):
        found = compared(*case, "device")
    return found | {"as one": any(exe is not None for exe in made)}


def strict() -> str:
    """What a function says that has to be co-executed and cannot be."""
    fn, args = TOGETHER["a mean over the batch"]
    try:
        xcoexec.jit(fn, strict=True)(*args)
    except xcoexec.BindError as e:
        return str(e)
    return ""


def main() -> None:
    """All of it as one text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        apart = {name: compared(*case) for name, case in APART.items()}
        alone = {name: on_device(case) for name, case in APART.items()}
        together = {name: compared(*case) for name, case in TOGETHER.items()}
    others = {"double": double(), "in turn": in_turn(), "deleted": deleted(), "strict": strict()}
    json.dump({"apart": apart, "on device": alone, "together": together, **others}, sys.stdout)


if __name__ == "__main__":
    main()
