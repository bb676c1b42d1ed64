"""`python -m benchmarks.plain_calls [--out FILE]`: calls of functions that stay with plain `jax.jit`, beside `jax.jit`.

What no kernel can make faster must not become slower either. Blocks of calls that wait for their results, by
`xcoexec.jit` and `jax.jit` in turn, in one process, once nothing is planned any more. A line a function: microseconds
of a call of both, and the median of the blocks' ratios with its quartiles.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

import xcoexec
from xcoexec.papers.source import commit
from xcoexec.tools import lines
from xcoexec.tools.machine import environment

ROUNDS, CALLS = 300, 50  # blocks of each function, and calls of a block
SETTLING = 3000  # calls before

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def suppressed() -> Case:
    """The boxes of 300 that a detector keeps: the best 100, less those that cover a better one."""

    def kept(boxes: jax.Array, scores: jax.Array) -> jax.Array:
        b = boxes[jnp.argsort(-scores)[:100]]
        low, high = jnp.maximum(b[:, None, :2], b[None, :, :2]), jnp.minimum(b[:, None, 2:], b[None, :, 2:])
        area, common = jnp.prod(b[:, 2:] - b[:, :2], 1), jnp.prod(jnp.clip(high - low, 0), 2)
        covers = common / (area[:, None] + area[None] - common + 1e-6) > 0.5
        step = lambda keep, i: (keep.at[i].set(~jnp.any(covers[i] & keep & (jnp.arange(100) < i))), None)
        return lax.scan(step, jnp.ones(100, bool), jnp.arange(100))[0]

    sides = np.abs(np.random.default_rng(0).standard_normal((2, 300, 2))).astype(np.float32)
    boxes = jnp.asarray(np.concatenate([sides[0], sides[0] + sides[1]], 1))
    return kept, (boxes, jnp.arange(300.0) % 37)


def augmented() -> Case:
    """64 images of 32 x 32, turned around, moved and made brighter at random."""

    def one(key: jax.Array, x: jax.Array) -> jax.Array:
        a, b, c = random.split(key, 3)
        x = jnp.where(random.bernoulli(a), x[:, ::-1], x)
        row, column = random.randint(b, (2,), 0, 8)
        x = lax.dynamic_slice(jnp.pad(x, ((4, 4), (4, 4), (0, 0))), (row, column, 0), (32, 32, 3))
        return x * random.uniform(c, minval=0.8, maxval=1.2)

    def batch(key: jax.Array, x: jax.Array) -> jax.Array:
        return jax.vmap(one)(random.split(key, x.shape[0]), x)

    return batch, (random.PRNGKey(0), random.normal(random.PRNGKey(1), (64, 32, 32, 3)))


def sampled() -> Case:
    """20 steps of Hamiltonian Monte Carlo of 50 numbers, 10 leaps each."""

    def log_density(q: jax.Array) -> jax.Array:
        return -0.5 * (q**2).sum() - jnp.log1p(jnp.exp(q)).sum()

    def leap(state: Any, _: None) -> tuple[Any, None]:
        q, p = state
        p = p + 0.05 * jax.grad(log_density)(q)
        q = q + 0.1 * p
        return (q, p + 0.05 * jax.grad(log_density)(q)), None

    def step(q: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        a, b = random.split(key)
        p = random.normal(a, q.shape)
        (new, end), _ = lax.scan(leap, (q, p), None, length=10)
        gain = log_density(new) - 0.5 * (end**2).sum() - log_density(q) + 0.5 * (p**2).sum()
        return jnp.where(jnp.log(random.uniform(b)) < gain, new, q), gain

    return lambda key, q: lax.scan(step, q, random.split(key, 20)), (random.PRNGKey(0), jnp.ones(50))


CASES = {"suppressed boxes": suppressed, "augmented images": augmented, "sampled numbers": sampled}


def record_of(name: str) -> dict[str, Any]:
    """The record of a function."""
    fn, args = CASES[name]()
    calls = {"ours": xcoexec.jit(fn), "jit": jax.jit(fn)}
    for call in calls.values():
        jax.block_until_ready(call(*args))
    calls["ours"].ready()
    for _ in range(SETTLING):
        jax.block_until_ready(calls["ours"](*args))
    turns: dict[str, list[float]] = {k: [] for k in calls}
    for turn in range(ROUNDS):
        for k in list(calls)[:: 1 if turn % 2 else -1]:
            turns[k].append(_seconds(calls[k], args))
    ratios = np.array(turns["ours"]) / np.array(turns["jit"])
    found = {f"{k}_us": 1e6 * float(np.median(t)) for k, t in turns.items()}
    low, median, high = (float(x) for x in np.percentile(ratios, (25, 50, 75)))
    plan = calls["ours"].plan(*args)
    return {"function": name, **found, "ratio": median, "quartiles": [low, high], "plan": plan.summary()}


def _seconds(call: Callable[..., Any], args: Sequence[Any]) -> float:
    jax.block_until_ready(call(*args))
    began = time.perf_counter()
    for _ in range(CALLS):
        jax.block_until_ready(call(*args))
    return (time.perf_counter() - began) / CALLS


def main(argv: Sequence[str] | None = None) -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(prog="benchmarks.plain_calls", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, help="a file of lines to which the records are added")
    given = parser.parse_args(argv)
    for name in CASES:
        r = record_of(name)
        low, high = r["quartiles"]
        print(f"{name}: {r['ours_us']:.1f} us, jax.jit {r['jit_us']:.1f}; {r['ratio']:.3f} ({low:.3f} to {high:.3f})")
        print(f"  {r['plan']}", flush=True)
        if given.out is not None:
            lines.append(given.out, {**r, "commit": commit(), **environment()})


if __name__ == "__main__":
    main()
