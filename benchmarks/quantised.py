"""`python -m benchmarks.quantised [model ...]`: networks of the zoo as qwix quantises them, int8 by int8.

Weights are int8 with a scale by channel. Activations are int8 with one scale, known before the call (static) or
found in each call (dynamic). All alternate in one process: this library on the quantised network and on the one of f32,
and `jax.jit` on both. Errors are those against `jax.jit`'s result of the quantised network.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import xcoexec
from xcoexec import config, models
from xcoexec.measure.timing import alternate
from xcoexec.tools import bench
from xcoexec.tools.oracle import error

MODELS = ("resnet50", "mobilenet_v2", "vit_s16", "bert_base")
Apply = Callable[[Any, Any], Any]


def quantised(module: Any, x: Any, static: bool) -> tuple[Apply, Any]:
    """A module of Flax as qwix quantises it: the function of (weights, input), and weights as the module draws them,
    with scales of activations as `x` has them.
    """
    import qwix

    rule = qwix.QuantizationRule(weight_qtype="int8", act_qtype="int8", act_static_scale=static)
    narrow = qwix.quantize_model(module, qwix.PtqProvider([rule]))
    return narrow.apply, narrow.init(jax.random.key(bench.SEED), x)


def measure(name: str, batch: int, threads: int, static: bool, rounds: int) -> dict[str, Any]:
    """Seconds of each contestant, by name, and how far the two quantised results are apart."""
    entry = models.get(name)
    variables, x = entry.variables(bench.SEED), entry.example(batch, bench.SEED)
    apply, narrow = quantised(entry.module, x, static)
    ours, wide = (
        xcoexec.jit(fn, threads=threads, wait=True).bind(w)
        for fn, w in ((apply, narrow), (entry.module.apply, variables))
    )
    plain = [(jax.jit(fn), w) for fn, w in ((apply, narrow), (entry.module.apply, variables))]
    calls: dict[str, Callable[[], Any]] = {
        "int8": lambda: jax.block_until_ready(ours(x)),
        "f32": lambda: jax.block_until_ready(wide(x)),
        "jax.jit int8": lambda: jax.block_until_ready(plain[0][0](plain[0][1], x)),
        "jax.jit f32": lambda: jax.block_until_ready(plain[1][0](plain[1][1], x)),
    }
    first = lambda tree: np.asarray(jax.tree_util.tree_leaves(tree)[0])
    apart = error(first(calls["int8"]()), first(calls["jax.jit int8"]()))
    seconds = alternate(calls, rounds, 0.2)
    return {"model": name, "batch": batch, "static": static, "apart": apart, "seconds": seconds}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, default=config.threads(None, 0))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dynamic", action="store_true", help="scales of activations are found in each call")
    args = parser.parse_args(argv)
    for name in args.models:
        for batch in args.batch:
            found = measure(name, batch, args.threads, not args.dynamic, args.rounds)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
