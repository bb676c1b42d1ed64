"""Weights larger than the GPU's share of memory: a stack of dense layers, and a decoder token by token.

    python -m benchmarks.weights FOLDER [CASE...] [--share 0.25]

Every variant holds the same weights in host memory: streamed by XLA from `pinned_host`, on the host half alone, and
divided by `xcoexec.jit(device_memory=...)`, which may keep a share of them (`--share` of the weights' bytes) on the
GPU; where there are several GPUs also spread over all, with that share on each. The limit is what the CPU reads and the
bus delivers at the same time, measured in the same run. `moe` computes tokens as often as words occur in text (Zipf's
law), `moe_even` all tokens as often.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

import xcoexec
from xcoexec import models
from xcoexec.devices.cuda import cuda
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate
from xcoexec.papers.source import commit
from xcoexec.planning.memory import usage, weight_shares
from xcoexec.tools.oracle import error

from .gpu import gpu_parser, on_gpu, where

ROUNDS, BLOCK_SECONDS = 5, 0.1
COPY_BYTES = 1 << 27
TOKENS, ZIPF = 4096, 1.2  # of a decoder of experts: how many, and by which power of its rank a token is rarer
SETTLES = 6000  # calls in which a decoder's experts find their places


@dataclasses.dataclass(frozen=True)
class Case:
    """A function, its weights, the inputs of the calls in turn, and how many calls come before those that are timed."""

    fn: Callable[..., Any]
    weights: Any
    inputs: Sequence[Any]
    before: int = 0

    def calls(self, bound: Callable[[Any], Any]) -> Callable[[], Any]:
        """The next call, to its end."""
        turn = itertools.cycle(self.inputs)
        return lambda: jax.block_until_ready(bound(next(turn)))


def stack() -> Case:
    """Four dense layers of 8192 x 16384 (2.1 GB), batch 1."""
    rng = np.random.default_rng(0)
    weights = [(rng.random(shape, np.float32) - 0.5) / 64 for shape in ((8192, 16384), (16384, 8192)) * 2]

    def fn(w: Any, x: Any) -> Any:
        for m in w:
            x = jnp.tanh(x @ m)
        return x

    return Case(fn, weights, [jnp.asarray(rng.random((1, 8192), np.float32))])


def decoder() -> Case:
    """The zoo's decoder, 2048 wide and 10 deep (2.0 GB), one token."""
    module = models.decoder.Decoder(vocabulary=8192, width=2048, depth=10, heads=16, groups=8, hidden=5504)
    step = models.decoder.Step(jnp.full((1, 1), 7, jnp.int32), module.empty_cache(1), jnp.int32(0))
    shapes = jax.eval_shape(module.init, jax.random.key(0), step)
    rng = np.random.default_rng(0)
    weights = jax.tree_util.tree_map(
        lambda s: ((rng.random(s.shape, np.float32) - 0.5) * 2 / s.shape[0] ** 0.5).astype(s.dtype), shapes
    )
    return Case(module.apply, weights, [step])


def llama() -> Case:
    """A Llama-like decoder in bf16, 2048 wide and 22 deep (2.1 GB), one token."""
    module = models.decoder.Decoder(
        vocabulary=32000, width=2048, depth=22, heads=32, groups=4, hidden=5632, dtype=jnp.bfloat16
    )
    weights, step = _narrow(module)
    return Case(module.apply, weights, [step])


def moe(zipf: float = ZIPF) -> Case:
    """A decoder of 6 layers, each with 64 experts of which 4 compute a token, in bf16 (2.5 GB), one token a call.
    `zipf`: the power of a token's rank by which it is rarer.
    """
    routing = models.moe.Routing(experts=64, chosen=4, hidden=1024)
    module = models.decoder.Decoder(
        vocabulary=8192, width=1024, depth=6, heads=16, groups=4, routing=routing, dtype=jnp.bfloat16
    )
    weights, step = _narrow(module)
    often = np.arange(1.0, module.vocabulary + 1) ** -zipf
    tokens = np.random.default_rng(1).choice(module.vocabulary, (TOKENS, 1, 1), p=often / often.sum())
    steps = [step._replace(tokens=jnp.asarray(t, jnp.int32)) for t in tokens]
    return Case(module.apply, weights, steps, SETTLES)


def _narrow(module: Any) -> tuple[Any, Any]:
    """Random weights of a decoder, its matrices in bf16, and a step of one token behind 64 positions."""
    step = models.decoder.Step(jnp.full((1, 1), 7, jnp.int32), module.empty_cache(1), jnp.int32(64))
    shapes = jax.eval_shape(module.init, jax.random.key(0), step)
    rng = np.random.default_rng(0)

    def one(s: Any) -> Any:
        if len(s.shape) < 2:
            return np.ones(s.shape, np.float32)
        return ((rng.random(s.shape, np.float32) - 0.5) * (3.4 / s.shape[-2] ** 0.5)).astype(jnp.bfloat16)

    return jax.tree_util.tree_map(one, shapes), step


CASES: dict[str, Callable[[], Case]] = {
    "stack": stack,
    "decoder": decoder,
    "llama": llama,
    "moe": moe,
    "moe_even": functools.partial(moe, 0.0),
}


def pinned(fn: Callable[..., Any], weights: Any) -> Callable[[Any], Any]:
    """What JAX offers: weights in pinned_host, brought over by XLA in the program."""
    device = jax.devices()[0]
    there, here = (jax.sharding.SingleDeviceSharding(device, memory_kind=kind) for kind in ("pinned_host", "device"))
    kept = jax.device_put(weights, there)
    jitted = jax.jit(lambda w, x: fn(jax.tree_util.tree_map(lambda m: jax.device_put(m, here), w), x))
    return lambda x: jitted(kept, x)


def rates(host_call: Callable[[], Any], nbytes: int) -> dict[str, float]:
    """Bytes/s that the host half reads and that the bus delivers, alone and at the same time."""
    driver, stop, moved = cuda(), threading.Event(), [0]
    source, _ = driver.mapped(COPY_BYTES)
    target, side = driver.words(COPY_BYTES), driver.sides[2]

    def copy() -> None:
        with driver:
            while not stop.is_set():
                driver.call(
                    "cuMemcpyHtoDAsync_v2",
                    ctypes.c_uint64(target),
                    ctypes.c_void_p(source),
                    ctypes.c_size_t(COPY_BYTES),
                    ctypes.c_void_p(side),
                )
                driver.call("cuStreamSynchronize", ctypes.c_void_p(side))
                moved[0] += COPY_BYTES

    def during(work: Callable[[], Any], seconds: float = 1.0) -> tuple[float, float]:
        work()
        begin, before, calls = time.perf_counter(), moved[0], 0
        while time.perf_counter() < begin + seconds:
            work()
            calls += 1
        spent = time.perf_counter() - begin
        return calls * nbytes / spent, (moved[0] - before) / spent

    cpu_alone, _ = during(host_call)
    thread = threading.Thread(target=copy)
    thread.start()
    _, bus_alone = during(lambda: time.sleep(0.1), 0.5)
    cpu, bus = during(host_call)
    stop.set()
    thread.join()
    driver.free_mapped(source)
    driver.free_words(target)
    return {"cpu_alone": cpu_alone, "bus_alone": bus_alone, "cpu": cpu, "bus": bus}


def from_host(graph: LayerGraph, plan: xcoexec.Plan) -> float:
    """Bytes of weights that a call takes from host memory by this plan; of a table those that indices name."""
    consts, total = set(graph.program.consts), 0.0
    for layer, place in zip(graph.layers, plan.placements, strict=True):
        host, _, streamed = weight_shares(layer, place)
        inside = [v for v in layer.ins if v in consts]
        passing = sum(v.nbytes for v in (*layer.ins, *layer.outs) if v not in consts)
        total += streamed * sum(v.nbytes for v in inside) + host * max(layer.nbytes - passing, 0) * bool(inside)
    return total


def spread(fast: Any, seconds: float, rate: dict[str, float]) -> dict[str, Any]:
    """What a function over several GPUs has where, and its share of the rate of the CPU and of all buses at once, where
    each bus is as fast as the first one beside the CPU.
    """
    parts = [(run.graph(), run.plan()) for _, run in fast.parts]
    over = sum(from_host(graph, plan) for graph, plan in parts)
    return {
        "resident_bytes": [usage(graph, plan.placements).resident for graph, plan in parts],
        "from_host_bytes": over,
        "cut": str(fast.report().cut),
        "share_of_limit": over / seconds / (rate["cpu"] + len(parts) * rate["bus"]),
    }


def run(name: str, share: float) -> dict[str, Any]:
    """One record: seconds of every variant, the rates of the machine, what the plan keeps where."""
    case = CASES[name]()
    fn, weights = case.fn, case.weights
    nbytes = sum(w.nbytes for w in jax.tree_util.tree_leaves(weights))
    limit = int(nbytes * share)
    variants = {
        "pinned_host": pinned(fn, weights),
        "host": xcoexec.jit(fn, strategy="host", strict=True).bind(weights),
        "xcoexec": xcoexec.jit(fn, strategy="capacity", device_memory=limit, strict=True).bind(weights),
    }
    if len(jax.local_devices()) > 1:
        variants["spread"] = xcoexec.jit(fn, strategy="capacity", device_memory=limit, strict=True).spread(weights)
    calls = {k: case.calls(f) for k, f in variants.items()}
    outs = {k: np.asarray(jax.tree_util.tree_leaves(c())[0]) for k, c in calls.items()}
    for _ in range(case.before):
        calls["xcoexec"]()
    seconds = alternate(calls, ROUNDS, BLOCK_SECONDS)
    fast = variants["xcoexec"]
    experts = fast.report().experts
    plan, graph = fast.plan(), fast.graph()
    on_host = from_host(variants["host"].graph(), variants["host"].plan())
    rate = rates(calls["host"], int(on_host))
    kept = usage(graph, plan.placements)
    over = from_host(graph, plan)
    reached = over / seconds["xcoexec"] / (rate["cpu"] + rate["bus"])
    return {
        "case": name,
        "machine": where(),
        "weight_bytes": nbytes,
        "from_host_bytes": over,
        "device_memory": limit,
        "resident_bytes": kept.resident,
        "seconds": seconds,
        "rates": rate,
        "share_of_limit": reached,
        "difference_to_pinned": {k: error(o, outs["pinned_host"]) for k, o in outs.items()},
        "device_bytes_in_use": jax.devices()[0].memory_stats()["bytes_in_use"],
        "spread": spread(variants["spread"], seconds["spread"], rate) if "spread" in variants else None,
        "experts": dataclasses.asdict(experts) if experts is not None else None,
        "plan": json.loads(plan.to_json()),
        "commit": commit(),
        "xcoexec_version": xcoexec.__version__,
    }


HEAD = (
    "case",
    "weights GB",
    "of them on the GPU",
    "pinned_host ms",
    "host ms",
    "xcoexec ms",
    "gain over pinned_host",
    "over host",
    "CPU + bus GB/s",
    "share of it reached",
    "resident choices",
    "over all GPUs ms",
    "gain over one",
)


def row(r: dict[str, Any]) -> list[str]:
    s, rate = r["seconds"], r["rates"]
    both = (rate["cpu"] + rate["bus"]) / 1e9
    times = [f"{s[k] * 1e3:.2f}" for k in ("pinned_host", "host", "xcoexec")]
    gains = [f"{s[k] / s['xcoexec']:.2f}x" for k in ("pinned_host", "host")]
    return [
        r["case"],
        f"{r['weight_bytes'] / 1e9:.2f}",
        f"{r['resident_bytes'] / r['weight_bytes']:.0%}",
        *times,
        *gains,
        f"{rate['cpu'] / 1e9:.0f} + {rate['bus'] / 1e9:.0f} = {both:.0f}",
        f"{r['share_of_limit']:.0%}",
        f"{r['experts']['hits'] / r['experts']['choices']:.0%}" if r["experts"] else "",
        f"{s['spread'] * 1e3:.2f}" if "spread" in s else "",
        f"{s['xcoexec'] / s['spread']:.2f}x" if "spread" in s else "",
    ]


def main() -> None:
    parser = gpu_parser("weights", __doc__)
    parser.add_argument("cases", nargs="*", default=[], choices=[*CASES, []])
    parser.add_argument("--share", type=float, nargs="+", default=[0.25])
    args = on_gpu(parser)
    records = []
    with (args.folder / "weights.jsonl").open("a") as out:
        for name in args.cases or CASES:
            for share in args.share:
                records.append(run(name, share))
                out.write(json.dumps(records[-1]) + "\n")
    Console(width=180).print(table(where(), HEAD, [row(r) for r in records], right=range(1, len(HEAD))))


if __name__ == "__main__":
    main()
