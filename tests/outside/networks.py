"""Random networks of image blocks through kernels alone, by algorithms picked at random, against float64 NumPy.

A seed is a network: blocks of a table in a row, their sizes, the batch and the number type. The segment's choices (of a
layer's algorithm, whether strips or items of a batch go through several layers) are drawn too, so that what is seldom
the fastest is computed as well. What cannot be planned, and what is wrong, is said with its seed.

    python -m tests.outside.networks --networks 500 --seconds 3600 --seed 0
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment import items
from xcoexec.codegen.target import Target
from xcoexec.partition.split import split

from ..oracle import error, oracles
from ..support import stages_of, targets
from .network_blocks import BLOCKS, CHANNELS, Draws, dense

LARGEST = {"float32": 2e-4, "bfloat16": 6e-2, "float16": 2e-2}
LEAST = 1e-2  # the largest result below which errors are no longer relative to it
BESIDE = 8  # times plain `jax.jit`'s error
TINY = 1e-30  # threads may have other ways with numbers next to nothing
BATCHES = (1, 2, 2, 3, 4, 8)
SIDES = (4, 6, 7, 8, 12, 16, 17)


@dataclasses.dataclass(frozen=True)
class Network:
    """A network: `fn(weights, x)`, its weights, its input and what it is made of; `given`: each call brings weights."""

    fn: Callable[..., Any]
    weights: list[np.ndarray]
    x: np.ndarray
    dtype: str
    text: str
    given: bool = False

    @property
    def allowed(self) -> float:
        """The largest error, beside the largest result: what is rounded to whole numbers may be the next one."""
        return max(LARGEST[self.dtype], LARGEST["bfloat16"] if "quantised" in self.text else 0.0)


def network(seed: int) -> Network:
    """The network of a seed."""
    rng = random.Random(f"network {seed}")
    batch, side, c = rng.choice(BATCHES), rng.choice(SIDES), rng.choice((3, *CHANNELS))
    dtype = rng.choice(("float32", "float32", "float32", "bfloat16", "bfloat16", "float16"))
    blocks = [rng.choice(BLOCKS) for _ in range(rng.randint(2, 8))]
    side_result, head = rng.random() < 0.2, rng.choice(("mean", "dense", "none", "flat", "first", "corner"))
    given, gradient = rng.random() < 0.2, rng.random() < 0.2

    def body(d: Draws, x: Any) -> Any:
        x, kept = x.astype(dtype), []
        for block in blocks:
            x = block(d, x)
            kept.append(x)
        if head == "mean":
            x = dense(d, jnp.mean(x, (1, 2)), 10)
        elif head == "dense":
            x = dense(d, x, 5)
        elif head == "first":
            x = dense(d, x[:, 0, 0], 5)
        elif head == "corner":
            x = jnp.concatenate([x[:, -1:], x[:, :1, ::2]], 2)
        elif head == "flat":
            x = x.reshape(x.shape[0], -1)
        side = kept[len(kept) // 2].astype(jnp.float32) * 0.5
        return (x.astype(jnp.float32), side) if side_result else (x.astype(jnp.float32),)

    x = np.random.default_rng(seed).normal(size=(batch, side, side, c)).astype(np.float32)
    made: list[np.ndarray] = []
    jax.eval_shape(lambda x: body(Draws(seed, made), x), x)
    names = " ".join(b.__name__.strip("_") for b in blocks)
    more = [", and one inside"] * side_result + [", gradients"] * gradient + [", given weights"] * given
    forward = lambda ws, x: body(Draws(seed, None, ws), x)
    loss = lambda ws, x: sum(jnp.mean(jnp.tanh(y)) for y in forward(ws, x))
    by_all = lambda ws, x: tuple(jax.tree.leaves(jax.grad(loss, (0, 1))(ws, x)))
    return Network(
        by_all if gradient else forward, made, x, dtype, f"{dtype} {x.shape} {names}, {head}{''.join(more)}", given
    )


def computed(net: Network, seed: int, isa: Target, threads: int) -> list[np.ndarray] | str:
    """The results by kernels with choices of a seed; or why a layer of it has none."""
    rng = random.Random(f"choices {seed}")
    folded, graph = stages_of(net.fn, net.weights, net.x, weights=0 if net.given else 1)
    errors = [f"{layer.name}: {layer.host_error}" for layer in graph.layers if layer.host_error]
    if errors:
        return errors[0]
    if len(graph.program.outputs) != len(jax.eval_shape(net.fn, net.weights, net.x)):
        return "results that are arguments, or known beforehand"
    pick = lambda groups, names, t: rng.choice(names)
    kept = dataclasses.replace(isa, kept=1 << rng.choice((12, 14, 18)))
    with (
        mock.patch.object(items, "LEAST_SHARE", 0),
        mock.patch.object(items, "READ_AGAIN_BY_ALL", 100),
        mock.patch.object(items, "likely", lambda groups, names, t: rng.choice(names)),
    ):
        segment = host.build(graph.program, threads, kept, pick=pick, cut=split)
    consts = folded.constants([] if net.given else net.weights)
    inputs = [*net.weights, net.x] if net.given else [net.x]
    call = host.Call(segment, inputs, [consts[v] for v in graph.program.consts])
    first = [y.copy() for y in call()]
    again = call()
    same = all(np.allclose(a, b, 0, TINY, equal_nan=True) for a, b in zip(first, again, strict=True))
    assert same, "calls differ"
    return first


def _apart(got: np.ndarray, want: np.ndarray) -> float:
    """As `error`; where all of a result is next to nothing, so is what may be wrong with it."""
    return error(got, want) if np.abs(want).max(initial=0.0) > LEAST else float(np.abs(got - want).max(initial=0.0))


def worst(got: Any, want: Any) -> float:
    """The largest error of several results, each beside its largest element."""
    return max(_apart(np.asarray(a), b) for a, b in zip(got, want, strict=True))


def allowed_for(net: Network, want: Any, most: float) -> float:
    """The largest error that a network may have, where it has `most`: some make much of little, by so much plain
    `jax.jit` is wrong.
    """
    if most <= net.allowed:
        return net.allowed
    return max(net.allowed, BESIDE * worst(jax.jit(net.fn)(net.weights, net.x), want))


def check(seed: int) -> str:
    """ "": the network of a seed is right; "-...": why no kernel computes a layer of it; else what is wrong with it."""
    net, rng = network(seed), random.Random(f"machine {seed}")
    isas = targets()
    isa = isas[-1] if rng.random() < 0.1 else rng.choice(isas) if rng.random() < 0.3 else targets()[0]
    try:
        got = computed(net, seed, isa, rng.choice((1, 2, 3)))
        if isinstance(got, str):
            return f"- {got}"
        want = oracles(net.fn, net.weights, net.x)
        most = worst(got, want)
        right = most <= allowed_for(net, want, most)
    except Exception:
        return f"{net.text} on {isa.name}\n{traceback.format_exc(limit=-6)}"
    return "" if right else f"{net.text} on {isa.name}: {most} of the largest result"


def parser(about: str | None, what: str) -> argparse.ArgumentParser:
    """Of a command that checks as many seeds as it is told."""
    p = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument(f"--{what}", dest="count", type=int, default=500)
    p.add_argument("--seconds", type=float, default=float("inf"))
    p.add_argument("--seed", type=int, default=0, help="the first one")
    return p


def checked(args: argparse.Namespace, look: Callable[[int], str], none: str) -> int:
    """Looks at one seed after the other and prints what is found; 1 if something is wrong. `none`: what "-..." is."""
    end, count = time.monotonic() + args.seconds, {"right": 0, none: 0, "wrong": 0}
    for seed in range(args.seed, args.seed + args.count):
        if time.monotonic() > end:
            break
        found = look(seed)
        count["right" if not found else none if found.startswith("- ") else "wrong"] += 1
        if found:
            print(f"seed {seed}: {found}", flush=True)
    print(count)
    return int(count["wrong"] > 0)


def main(argv: list[str] | None = None) -> int:
    return checked(parser(__doc__, "networks").parse_args(argv), check, "no kernel")


if __name__ == "__main__":
    sys.exit(main())
