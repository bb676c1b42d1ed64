"""Functions with loops and indices against plain `jax.jit`, alternating in one process: `python -m benchmarks.loops`.

A line a function: median milliseconds of both, their ratio with its quartiles over rounds, and what ran.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

import xcoexec

ROUNDS, CALLS = 15, 5
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def _array(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


def recurrent(cell: type[nn.RNNCellBase], features: int, batch: int, turns: int) -> Case:
    """A recurrent layer over a sequence [batch, turns, features]."""
    module = nn.RNN(cell(features))  # type: ignore[call-arg]
    x = _array(batch, turns, features)
    return module.apply, (module.init(jax.random.key(0), x), x)


def decoder(features: int, vocabulary: int, most: int) -> Case:
    """An LSTM that feeds the token of the largest score back, until it is the last one of the vocabulary."""
    cell = nn.OptimizedLSTMCell(features)
    carry = cell.initialize_carry(jax.random.key(0), (1, features))
    cells = cell.init(jax.random.key(1), carry, jnp.zeros((1, features)))
    weights = (cells, _array(vocabulary, features), _array(features, vocabulary, seed=1) * 0.1)

    def decode(weights: Any, token: jax.Array) -> jax.Array:
        params, table, out = weights

        def turn(state: Any) -> Any:
            i, carry, token, written = state
            carry, h = cell.apply(params, carry, table[token][None])
            token = jnp.argmax((h @ out)[0]).astype(jnp.int32)
            return i + 1, carry, token, written.at[i].set(token)

        start = (jnp.int32(0), cell.initialize_carry(jax.random.key(0), (1, features)), token)
        going = lambda s: (s[0] < most) & (s[2] != vocabulary - 1)
        return jax.lax.while_loop(going, turn, (*start, jnp.zeros(most, jnp.int32)))[3]

    return decode, (weights, jnp.int32(1))


def sampler(channels: int, size: int, steps: int) -> Case:
    """Steps of a diffusion sampler: a small convolutional network that takes noise away."""
    net = nn.Sequential([nn.Conv(channels, (3, 3)), nn.swish, nn.Conv(channels, (3, 3)), nn.swish, nn.Conv(3, (3, 3))])
    x = _array(1, size, size, 3)
    params = net.init(jax.random.key(0), x)

    def sample(params: Any, x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, steps, lambda i, x: x - 0.1 * net.apply(params, x) / (1.0 + i), x)

    return sample, (params, x)


def layers(features: int, depth: int, tokens: int) -> Case:
    """Blocks of one shape, whose weights lie in one array a kind (`nn.scan` over layers)."""
    weights = tuple(
        _array(depth, *s, seed=i) * 0.05 for i, s in enumerate(((features, 4 * features), (4 * features, features)))
    )

    def apply(weights: Any, x: jax.Array) -> jax.Array:
        def block(h: jax.Array, w: Any) -> Any:
            y = (h - h.mean(-1, keepdims=True)) * jax.lax.rsqrt(h.var(-1, keepdims=True) + 1e-6)
            return h + jax.nn.gelu(y @ w[0]) @ w[1], None

        return jax.lax.scan(block, x, weights)[0]

    return apply, (weights, _array(tokens, features))


def graph(nodes: int, edges: int, sizes: Sequence[int]) -> Case:
    """A graph convolutional network (Kipf and Welling, 2017) on a random graph: two layers of gather, scale and sum."""
    rng = np.random.default_rng(0)
    source, target = (jnp.asarray(rng.integers(0, nodes, edges), jnp.int32) for _ in range(2))
    weights = [_array(a, b, seed=i) * 0.1 for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False))]

    def gcn(weights: Any, x: jax.Array, source: jax.Array, target: jax.Array) -> jax.Array:
        degree = jax.ops.segment_sum(jnp.ones_like(source, jnp.float32), target, nodes) + 1
        norm = jax.lax.rsqrt(degree[source]) * jax.lax.rsqrt(degree[target])
        for i, w in enumerate(weights):
            x = jax.ops.segment_sum((x @ w)[source] * norm[:, None], target, nodes)
            x = jax.nn.relu(x) if i + 1 < len(weights) else jax.nn.log_softmax(x)
        return x

    return gcn, (weights, _array(nodes, sizes[0]), source, target)


CASES: dict[str, Callable[[], Case]] = {
    "GRU, 64 steps of 256": lambda: recurrent(nn.GRUCell, 256, 1, 64),
    "GRU, batch 16, 64 steps of 256": lambda: recurrent(nn.GRUCell, 256, 16, 64),
    "LSTM, 64 steps of 256": lambda: recurrent(nn.OptimizedLSTMCell, 256, 1, 64),
    "LSTM, batch 8, 100 steps of 128": lambda: recurrent(nn.OptimizedLSTMCell, 128, 8, 100),
    "LSTM decoder, 32 tokens": lambda: decoder(256, 1000, 32),
    "diffusion sampler, 10 steps": lambda: sampler(32, 32, 10),
    "8 layers in a scan": lambda: layers(256, 8, 16),
    "GCN, 2708 nodes, 10556 edges": lambda: graph(2708, 10556, (1433, 16, 7)),
    "GCN, 20000 nodes, 200000 edges": lambda: graph(20000, 200000, (64, 64, 16)),
}


def _seconds(fn: Callable[..., Any], args: Sequence[Any]) -> float:
    """Median seconds of a few calls, each awaited."""
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        jax.block_until_ready(fn(*args))
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _round(a: Callable[..., Any], b: Callable[..., Any], args: Sequence[Any], swapped: bool) -> tuple[float, float]:
    """Seconds of both, one after the other; `swapped`: the second one first."""
    if swapped:
        later, first = _round(b, a, args, False)
        return first, later
    return _seconds(a, args), _seconds(b, args)


def compared(case: Case) -> dict[str, Any]:
    """Seconds of both, the quartiles of the ratio over rounds, the largest difference, and what ran."""
    fn, args = case
    ours, plain = xcoexec.jit(fn, wait=True), jax.jit(fn)
    pairs = zip(*(jax.tree_util.tree_leaves(f(*args)) for f in (ours, plain)), strict=True)
    worst = max(float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)))) for a, b in pairs)
    rounds = np.array([_round(ours, plain, args, swapped=bool(r % 2)) for r in range(ROUNDS)])
    report = ours.report(*args)
    return {
        "ours": float(np.median(rounds[:, 0])),
        "jit": float(np.median(rounds[:, 1])),
        "ratio": tuple(np.percentile(rounds[:, 1] / rounds[:, 0], (50, 25, 75))),
        "difference": worst,
        "ran": f"{report.ran}, {report.segments} segments, {_families(report)}",
    }


def _families(report: Any) -> str:
    """The kernel families beside products that ran."""
    found = {word for x in report.layers for word in x.algorithm.split("+")}
    return " ".join(sorted(found & {"loop", "gather", "scatter"})) or "no loop or rows"


def lines(names: Sequence[str]) -> Iterator[str]:
    """The table, a line at a time."""
    yield "| function | ours ms | jax.jit ms | times faster (quartiles) | largest difference | ran |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in names:
        r = compared(CASES[name]())
        middle, low, high = r["ratio"]
        yield (
            f"| {name} | {r['ours'] * 1e3:.3f} | {r['jit'] * 1e3:.3f} | {middle:.2f} ({low:.2f} to {high:.2f}) "
            f"| {r['difference']:.1e} | {r['ran']} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="words that names have to contain")
    only = parser.parse_args().only
    for line in lines([n for n in CASES if not only or any(w.lower() in n.lower() for w in only)]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
