"""Networks of which four devices of the host compute a part of each layer: run as a program, it writes how far results
are from those of `jax.jit`, what is divided, what XLA made of it, and what bad input is told.
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

import xcoexec
from xcoexec.api import divided
from xcoexec.lowering.divided_run import Exchange

from .spread_cases import apart, normal, told

FREE, DEAR = Exchange(0.0, 1e30), Exchange(1.0, 1e9)
COLLECTIVE = re.compile(r"= \S+ (all-gather|all-reduce|collective-permute|all-to-all|reduce-scatter)(?:-start)?\(")


class Cnn(linen.Module):
    """Convolutions of all kinds: strided, depthwise, grouped, pointwise, with odd counts of channels, and a pool."""

    dtype: Any = jnp.float32

    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        conv = lambda n, k, **given: linen.Conv(n, (k, k), dtype=self.dtype, **given)
        x = linen.relu(linen.BatchNorm(use_running_average=True, dtype=self.dtype)(conv(24, 3, strides=2)(x)))
        y = linen.relu6(conv(24, 3, feature_group_count=24)(conv(24, 1)(x)))
        x = x + conv(24, 1)(y)
        x = linen.max_pool(linen.relu(conv(33, 3)(x)), (2, 2), (2, 2))
        x = linen.relu(conv(48, 3, feature_group_count=3)(x))
        return linen.Dense(10, dtype=self.dtype)(x.mean((1, 2)))


class NnxCnn(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.conv = nnx.Conv(3, 12, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(12, use_running_average=True, rngs=rngs)
        self.dense = nnx.Linear(12 * 16 * 16, 36, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.relu(self.norm(self.conv(x)))
        return self.dense(nnx.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1))


class Transformer(linen.Module):
    """Embeddings that are tied to the last layer, attention and a wide layer, each with a path around it."""

    @linen.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        table = linen.Embed(60, 48)
        x = table(tokens)
        for _ in range(2):
            x = x + linen.MultiHeadDotProductAttention(12)(linen.LayerNorm()(x))
            x = x + linen.Dense(48)(linen.gelu(linen.Dense(96)(linen.LayerNorm()(x))))
        return table.attend(x)


def mlp(ws: Any, x: Any) -> Any:
    for w, b in ws:
        x = jax.nn.gelu(x @ w + b)
    return x


def stacked(ws: Any, x: Any) -> Any:
    """A loop over layers whose weights lie in one array."""
    turn = lambda y, w: (y + jnp.tanh(y @ w["up"]) @ w["down"], y.mean())
    x, means = jax.lax.scan(turn, x, ws["layers"])
    return {"out": x @ ws["head"], "means": means}


def mixed(ws: Any, x: Any) -> Any:
    """What has no parts, beside what has: a sort, a while loop, a branch, a random key, turned and scaled weights."""
    y = jnp.sort(x @ (ws["a"].T * ws["scale"][:, None]).T, -1)
    y = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.tanh(c[1] @ ws["b"])), (0, y))[1]
    y = jax.lax.cond(y[0, 0] > 0, lambda v: v * 2, lambda v: v - 1, y)
    y = y + jax.random.normal(jax.random.key(0), y.shape)
    return (jnp.einsum("bi,oi->bo", y, ws["c"]), y.argmax(-1), 2.5, ws["scale"] * 1, x)


def decode(ws: Any, x: Any, cache: Any) -> tuple[Any, Any]:
    """A step of attention over what steps before have left: heads of keys and values, and how many there are."""
    at, kept = cache["at"], {}
    for i, w in enumerate(ws):
        heads = lambda name, x=x, w=w: (x @ w[name]).reshape(x.shape[0], 1, 12, 4)  # type: ignore[misc]
        for name in ("k", "v"):
            kept[f"{name}{i}"] = jax.lax.dynamic_update_slice(cache[f"{name}{i}"], heads(name), (0, at, 0, 0))
        scores = jnp.einsum("bqhd,bkhd->bhqk", heads("q"), kept[f"k{i}"])
        scores = jax.nn.softmax(jnp.where(jnp.arange(8) <= at, scores, -1e30))
        seen = jnp.einsum("bhqk,bkhd->bqhd", scores, kept[f"v{i}"]).reshape(x.shape[0], 48)
        x = x + seen @ w["o"]
    return x, {**kept, "at": at + 1}


IMAGE, TOKENS = normal(3, 32, 32, 3), np.arange(36, dtype=np.int32).reshape(3, 12)
MLP = [(normal(48, 96) / 7, normal(96)), (normal(96, 96) / 10, normal(96)), (normal(96, 31) / 10, normal(31))]
STACK = {"layers": {"up": normal(5, 48, 96) / 9, "down": normal(5, 96, 48) / 9}, "head": normal(48, 12)}
MIXED = {**{name: normal(48, 48) / 7 for name in "abc"}, "scale": normal(48)}
STEPS = [{name: normal(48, 48) / 7 for name in "qkvo"} for _ in range(2)]
Case = tuple[Callable[..., Any], Any, np.ndarray]


def filled(tree: Any) -> Any:
    """Weights of the shapes and types of a tree; variances are positive."""

    def one(path: Any, s: Any) -> np.ndarray:
        x = normal(*s.shape) / max(np.prod(s.shape[:-1]), 1.0) ** 0.5
        return (np.abs(x) + 1 if "var" in jax.tree_util.keystr(path) else x).astype(s.dtype)

    return jax.tree_util.tree_map_with_path(one, tree)


def of_linen(module: linen.Module, x: np.ndarray) -> Case:
    return module.apply, filled(jax.eval_shape(module.init, jax.random.key(0), x)), x


NNX, NNX_STATE = nnx.split(nnx.eval_shape(lambda: NnxCnn(nnx.Rngs(0))))
NETWORKS: dict[str, Case] = {
    "linen": of_linen(Cnn(), IMAGE),
    "bf16": of_linen(Cnn(jnp.bfloat16), IMAGE),
    "nnx": (lambda state, x: nnx.merge(NNX, state)(x), filled(NNX_STATE), IMAGE),
    "transformer": of_linen(Transformer(), TOKENS),
    "mlp": (mlp, MLP, normal(3, 48)),
    "scan": (stacked, STACK, normal(3, 48)),
    "mixed": (mixed, MIXED, normal(3, 48)),
}
#: network, axis, devices, whether with one item too
RUNS = (
    ("linen", "channel", 2, True),
    ("linen", "channel", 3, False),
    ("linen", "rows", 2, True),
    ("linen", "rows", 4, False),
    ("bf16", "channel", 2, False),
    ("bf16", "rows", 2, False),
    ("nnx", "channel", 2, False),
    ("nnx", "rows", 2, False),
    ("transformer", "channel", 4, True),
    ("transformer", "channel", 3, False),
    ("mlp", "channel", 2, True),
    ("mlp", "channel", 4, False),
    ("scan", "channel", 2, False),
    ("mixed", "channel", 2, False),
)


def furthest(got: Any, want: Any) -> float:
    leaves = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    return max(apart(a, b) for a, b in leaves)


def made_of(fast: Any, *args: Any) -> dict[str, Any]:
    """What XLA has made of the last call, and how many of the weights lie in parts."""
    calls = fast._last.calls
    text = calls.run.lower(calls.known, jax.device_put(list(args), calls.places)).compile().as_text()
    in_parts = sum(not x.sharding.is_fully_replicated for x in calls.known)
    return {"operations": sorted(COLLECTIVE.findall(text)), "weights": in_parts}


def network(name: str, dim: str, count: int, one: bool) -> dict[str, Any]:
    fn, weights, x = NETWORKS[name]
    fast, plain = xcoexec.jit(fn).spread(weights, devices=count, dim=dim), jax.jit(fn)
    found: dict[str, Any] = {"errors": []}
    for given in (x[:1], x) if one else (x,):
        got, want = fast(given), plain(weights, given)
        found["errors"].append(furthest(got, want))
        pairs = list(zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True))
        found["types"] = all((a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type) for a, b in pairs)
        found["home"] = all(a.devices() == {jax.devices()[0]} for a, _ in pairs)
    report = fast.report()
    found |= {
        "ran": report.ran,
        "along": [x.along for x in report.layers],
        "width": max(map(len, str(report).split("\n"))),
    }
    return found | (made_of(fast, x) if report.layers else {})


def networks() -> dict[str, Any]:
    return {f"{name} {dim} {count}": network(name, dim, count, one) for name, dim, count, one in RUNS}


def state() -> dict[str, Any]:
    """A cache that comes back: it stays on all devices, each with its own heads."""
    fast, plain = xcoexec.jit(decode).spread(STEPS, devices=4, dim="channel"), jax.jit(decode)
    start = {f"{name}{i}": jnp.zeros((1, 8, 12, 4)) for name in "kv" for i in range(2)} | {"at": jnp.int32(0)}
    mine, theirs, errors = start, start, list[float]()
    for k in range(4):
        x = normal(1, 48) + k
        got, mine = fast(x, mine)
        want, theirs = plain(STEPS, x, theirs)
        errors += [furthest(got, want), furthest(mine, theirs)]
    in_parts = [k for k, v in mine.items() if not v.sharding.is_fully_replicated]
    calls = fast._last.calls
    return {
        "apart": max(errors),
        "in parts": in_parts,
        "programs": calls.run._cache_size(),
        "signatures": len(fast._chosen),
    }


def around() -> dict[str, Any]:
    """Other devices, contexts, calls in flight, inside of jit, weights that somebody writes to, and no gain."""
    x, want = normal(3, 48), jax.jit(mlp)
    back = xcoexec.jit(mlp).spread(MLP, devices=jax.devices()[:1:-1], dim="channel")
    y = back(x)
    own = jax.tree.map(np.array, MLP)
    kept = xcoexec.jit(mlp).spread(own, dim="channel")
    before = kept(x)
    for w, b in own:
        w[:], b[:] = 0, 0
    flight = [kept(x + np.float32(i)) for i in range(20)]
    with jax.default_matmul_precision("highest"):
        high = kept(x)
    found = {
        "backwards": [furthest(y, want(MLP, x)), [d.id for d in y.devices()], repr(back)],
        "copies": max(furthest(before, want(MLP, x)), furthest(kept(x[:1]), want(MLP, x[:1]))),
        "flight": max(furthest(y, want(MLP, x + np.float32(i))) for i, y in enumerate(flight)),
        "inside": furthest(jax.jit(lambda x: kept(x) * 2)(x), 2 * want(MLP, x)),
        "gradient": furthest(jax.grad(lambda x: kept(x).sum())(x), jax.grad(lambda x: want(MLP, x).sum())(x)),
        "high": [furthest(high, want(MLP, x)), len(kept._chosen)],
        "committed": furthest(kept(jax.device_put(x, jax.devices()[3])), want(MLP, x)),
        "plan": [len(kept.plan()), kept.ready(1)],
    }
    found["parts"] = told(lambda: kept.parts)
    divided.EXCHANGES[False] = DEAR
    dear = xcoexec.jit(mlp, strategy="host").spread(MLP, dim="channel")
    found["dear"] = [
        furthest(dear(x), want(MLP, x)),
        dear.report().ran,
        str(dear.report()),
        repr(dear),
        len(dear.plan()),
    ]
    found["dear parts"] = [d.id for d, _ in dear.parts]
    dear_elsewhere = xcoexec.jit(mlp, strategy="device").spread(MLP, devices=jax.devices()[2:], dim="rows")
    found["dear elsewhere"] = [furthest(dear_elsewhere(x), want(MLP, x)), [d.id for d in dear_elsewhere(x).devices()]]
    found["strict"] = told(lambda: xcoexec.jit(mlp, strict=True, strategy="host").spread(MLP, dim="channel")(x))
    divided.EXCHANGES[False] = FREE
    return found


def auto() -> dict[str, Any]:
    """What is fastest by measurement is used; what takes how long is told to it here."""
    fn, weights, x = NETWORKS["nnx"]
    found: dict[str, Any] = {}
    asked: list[list[str]] = []
    for best in ("one device", "channel", "rows"):

        def timed(calls: Any, best: str = best, **_: Any) -> dict[str, float]:
            for call in calls.values():
                call()
            asked.append(list(calls))
            return {name: 1e-3 if name == best else 2e-3 for name in calls}

        kept, divided.alternate = divided.alternate, timed  # type: ignore[assignment]
        fast = xcoexec.jit(fn, strategy="device").spread(weights, devices=2, dim="auto")
        error = furthest(fast(x), jax.jit(fn)(weights, x))
        divided.alternate = kept
        report = fast.report()
        found[best] = [error, report.ran, report.measured, "Measured: " in str(report), repr(fast)]
    fast = xcoexec.jit(mlp, strategy="host").spread(MLP, devices=2, dim="auto")
    y = fast(normal(3, 48))
    found["really"] = [
        fast.report().way,
        sorted(fast.report().measured),
        fast.report().measured[fast.report().way],
        y.shape,
    ]
    kept_call = divided.DividedCalls.__call__
    divided.DividedCalls.__call__ = no_way  # type: ignore[method-assign]
    fast = xcoexec.jit(mlp, strategy="host").spread(MLP, devices=2, dim="auto")
    x = normal(3, 48)
    error = furthest(fast(x), jax.jit(mlp)(MLP, x))
    divided.DividedCalls.__call__ = kept_call  # type: ignore[method-assign]
    found["no way"] = [error, fast.report().way, sorted(fast.report().measured)]
    return found | {"asked": asked}


def no_way(self: Any, leaves: Any) -> Any:
    """What XLA says of devices that have no way to one another."""
    raise jax.errors.JaxRuntimeError("no way between the devices")


def refused() -> dict[str, str]:
    spread = xcoexec.jit(mlp).spread
    gone = xcoexec.jit(mlp, donate_argnums=(1,)).spread(MLP, dim="channel")
    return {
        "dim": told(lambda: spread(MLP, dim="depth")),
        "kind": told(lambda: spread(MLP, dim=3)),  # type: ignore[arg-type]
        "memory": told(lambda: xcoexec.jit(mlp, device_memory="1GiB").spread(MLP, dim="rows")),
        "devices": told(lambda: spread(MLP, devices=9, dim="auto")),
        "given away": told(lambda: gone(jnp.ones((3, 48)))),
        "too soon": told(lambda: spread(MLP, dim="channel").report()),
        "traced": told(lambda: jax.jit(lambda w: spread(w, dim="channel")(normal(3, 48)))(MLP)),
        "shape": told(lambda: spread(MLP, dim="channel")(normal(3, 4))),
    }


def main() -> None:
    """All of it as one text."""
    divided.EXCHANGES[False] = FREE
    json.dump({f.__name__: f() for f in (networks, state, around, auto, refused)}, sys.stdout)


if __name__ == "__main__":
    main()
