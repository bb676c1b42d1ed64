"""Training a decoder with the optimizer's state in host memory, against all of it on the GPU and JAX's own ways.

    python -m benchmarks.offload [FOLDER] [--params 0.5e9] [--tokens 8192 32768 ...]

Every variant trains the same decoder (parameters of bf16, AdamW with master weights of f32) in one process, in turn:
`resident` keeps all states on the GPU; `pinned_host` keeps them in JAX's host memory, brings them over in the step and
sends them back; `compute_on` computes the update with JAX's host compute; `offload` is `xcoexec.optim.offload` with
nothing on the GPU, `balanced` the same after `balance` has chosen by measurement what stays there (`--device-memory`).

The bound of a step: no gradient is there before the forward pass is over, and the host's update takes at least what its
bytes take at the rate of a kernel that reads and writes memory in place, measured beside copies in both directions; so
max(forward and backward, forward + update). Where gradients are clipped by their global norm, the update begins when
all of them are there. Of `balanced` the bytes are those that the host has.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console

import xcoexec
from xcoexec import config
from xcoexec.codegen.program import Group, Op, Program, Value
from xcoexec.codegen.runtime import host
from xcoexec.devices.queues import queues
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate
from xcoexec.papers.source import commit

from .gpu import where

SEQUENCE, VOCABULARY, HEAD_WIDTH = 2048, 32000, 128
RATE, DECAY = 1e-4, 0.1
COPY_BYTES = 1 << 26
SLOW = 2.5  # times the fastest step, beyond which a variant is measured once
BALANCING, BALANCED_STEPS = 2, 4  # turns of `balance`, and steps before each
State = tuple[Any, Any]


class Shape(NamedTuple):
    """A decoder: width, layers, tokens of a sequence, and its vocabulary."""

    width: int
    depth: int
    sequence: int = SEQUENCE
    vocabulary: int = VOCABULARY


def shape_of(params: float) -> Shape:
    """A decoder of about so many parameters: 12 width^2 a layer, and the embedding."""
    depth = 12 if params >= 1e8 else 2
    vocabulary = VOCABULARY if params >= 1e8 else 256
    width = max((w for w in range(128, 8192, 128) if 12 * w * w * depth + vocabulary * w <= params * 1.03), default=128)
    return Shape(width, depth, SEQUENCE if params >= 1e8 else 64, vocabulary)


def parameters(shape: Shape, seed: int = 0) -> Any:
    """Weights of bf16: an embedding that is the last layer's too, attention, and gated dense layers."""
    d, hidden = shape.width, 8 * shape.width // 3 // 128 * 128 or 128
    rng = jax.random.key(seed)

    def dense(i: int, *size: int) -> jax.Array:
        made = jax.random.normal(jax.random.fold_in(rng, i), size, jnp.float32) * size[0] ** -0.5
        return made.astype(jnp.bfloat16)

    layers = []
    for k in range(shape.depth):
        i = 10 * k + 10
        one = {"qkv": dense(i, d, 3 * d), "out": dense(i + 1, d, d), "up": dense(i + 2, d, 2 * hidden)}
        one |= {"down": dense(i + 3, hidden, d), "norm1": jnp.ones(d, jnp.bfloat16), "norm2": jnp.ones(d, jnp.bfloat16)}
        layers.append(one)
    return {"embedding": dense(0, shape.vocabulary, d), "layers": layers}


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def _layer(x: jax.Array, w: Any) -> jax.Array:
    b, t, d = x.shape
    q, k, v = jnp.split((_norm(x, w["norm1"]) @ w["qkv"]).reshape(b, t, -1, min(HEAD_WIDTH, d)), 3, axis=2)
    way = "cudnn" if jax.default_backend() == "gpu" else "xla"
    attended = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=way)
    x = x + attended.reshape(b, t, d) @ w["out"]
    gate, up = jnp.split(_norm(x, w["norm2"]) @ w["up"], 2, axis=-1)
    return x + (jax.nn.silu(gate) * up) @ w["down"]


def loss_of(params: Any, tokens: jax.Array) -> jax.Array:
    """Mean cross entropy of the next token; `tokens`: [sequences, tokens] s32. Backward computes layers again."""
    x = params["embedding"][tokens]
    for w in params["layers"]:
        x = jax.checkpoint(_layer)(x, w)
    rows = x.reshape(-1, x.shape[-1])
    targets = jnp.roll(tokens, -1, 1).reshape(-1)

    @jax.checkpoint
    def part(x: jax.Array, y: jax.Array) -> jax.Array:
        logits = (x @ params["embedding"].T).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).sum()

    parts = max(1, len(rows) // SEQUENCE)
    total = sum(part(x, y) for x, y in zip(jnp.split(rows, parts), jnp.split(targets, parts), strict=True))
    return total / len(rows)


# -- the ways
def with_masters(tx: optax.GradientTransformation) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(init, update) that keep master weights of f32 beside the states: what `offload` computes, in plain optax."""
    wide = lambda tree: jax.tree_util.tree_map(lambda x: x.astype(jnp.float32), tree)

    def init(params: Any) -> State:
        masters = wide(params)
        return masters, tx.init(masters)

    def update(grads: Any, state: State) -> tuple[Any, State]:
        masters, states = state
        updates, states = tx.update(wide(grads), states, masters)
        masters = optax.apply_updates(masters, updates)
        return jax.tree_util.tree_map(lambda m: m.astype(jnp.bfloat16), masters), (masters, states)

    return init, update


def _optimizer(clip: bool) -> optax.GradientTransformation:
    adamw = optax.adamw(optax.cosine_decay_schedule(RATE, 10000), weight_decay=DECAY)
    return optax.chain(optax.clip_by_global_norm(1.0), adamw) if clip else adamw


def _kind(tree: Any, kind: str) -> Any:
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind=kind)
    return jax.tree_util.tree_map(lambda x: place if x.ndim else None, tree)


def _moved(tree: Any, kind: str) -> Any:
    """Arrays in another kind of memory; numbers stay."""
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind=kind)
    return jax.tree_util.tree_map(lambda x: jax.device_put(x, place) if x.ndim else x, tree)


def resident(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """All on the GPU."""
    init, update = with_masters(_optimizer(clip))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: State, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        params, state = update(grads, state)
        return params, state, loss

    return jax.jit(init)(params), step


def pinned_host(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """States in `pinned_host`: to the GPU and back in every step."""
    init, update = with_masters(_optimizer(clip))
    state = _moved(jax.jit(init)(params), "pinned_host")

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=(None, _kind(state, "pinned_host"), None))
    def step(params: Any, state: State, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        params, state = update(grads, _moved(state, "device"))
        return params, state, loss

    return state, step


def compute_on(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """States in `pinned_host`, and the update by JAX's host compute."""
    from jax.experimental import compute_on as on

    init, update = with_masters(_optimizer(False))
    state = _moved(jax.jit(init)(params), "pinned_host")
    host_place = jax.memory.Space.Host
    count = lambda tree: jax.tree_util.tree_map(lambda x: jax.device_put(x, host_place), tree)

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=(None, _kind(state, "pinned_host"), None))
    def step(params: Any, state: State, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        if clip:
            grads = optax.clip_by_global_norm(1.0).update(grads, optax.EmptyState())[0]
        call = getattr(on, "compute_on2", on.compute_on)  # as jax 0.11 calls the former
        on_host = call(update, compute_type="device_host", out_memory_spaces=host_place)
        params, state = on_host(_moved(grads, "pinned_host"), count(state))
        back = jax.tree_util.tree_map(lambda x: x if x.ndim else jax.device_put(x, jax.memory.Space.Device), state)
        return _moved(params, "device"), back, loss

    return state, step


def offloaded(tx: Any) -> Callable[..., Any]:
    """A step with such a transformation."""

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: Any, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return step


def offload(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """`xcoexec.optim.offload`, everything in host memory."""
    tx = xcoexec.optim.offload(_optimizer(clip))
    return tx.init(params), offloaded(tx)


def balanced(params: Any, clip: bool, device_memory: float = 0.5) -> tuple[Any, Callable[..., Any], Any]:
    """As `offload`, with a share of its bytes that may stay on the GPU; and what chooses how much of it does."""
    tx = xcoexec.optim.offload(_optimizer(clip), device_memory=device_memory)
    return tx.init(params), offloaded(tx), tx.balance


Way = Callable[..., tuple[Any, ...]]
WAYS: dict[str, Way] = {"resident": resident, "pinned_host": pinned_host, "compute_on": compute_on}
WAYS |= {"offload": offload, "balanced": balanced}


class Run:
    """One way at work: it keeps its parameters and its state, and a call is one step."""

    def __init__(self, way: Way, params: Any, tokens: jax.Array, clip: bool):
        self.params = jax.tree_util.tree_map(jnp.copy, params)
        self._before = _in_use()
        self.state, step, *balance = way(self.params, clip)
        self.tokens, self.losses = tokens, list[float]()
        self._compile(step)
        for _ in range(BALANCING * len(balance)):
            for _ in range(BALANCED_STEPS):
                self()
            before, self.state = self.state, balance[0](self.params, self.state)
            if self.state is before:
                break
            self._compile(step)

    def _compile(self, step: Any) -> None:
        jax.block_until_ready(self.state)
        self.state_bytes = _in_use() - self._before
        home = getattr(self.state, "home", None)
        self.host_bytes = home.store.nbytes if home is not None else 0
        start = time.perf_counter()
        self.step = step.lower(self.params, self.state, self.tokens).compile()
        self.compile_seconds = time.perf_counter() - start
        memory = self.step.memory_analysis()
        self.bytes = (
            memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
        ) - memory.alias_size_in_bytes

    def __call__(self) -> None:
        self.params, self.state, loss = self.step(self.params, self.state, self.tokens)
        self.losses.append(float(loss))
        jax.block_until_ready(self.params)

    def burst(self, n: int) -> float:
        """Seconds a step of n steps that nobody waits for in between."""
        jax.block_until_ready(self.params)
        start = time.perf_counter()
        for _ in range(n):
            self.params, self.state, _ = self.step(self.params, self.state, self.tokens)
        jax.block_until_ready((self.params, self.state))
        return (time.perf_counter() - start) / n


def _in_use() -> int:
    stats = jax.devices()[0].memory_stats()
    return int(stats["bytes_in_use"]) if stats else 0


# -- the bound
def _in_place(n: int, threads: int) -> Callable[[], object]:
    """Reads and writes n f32 where they lie, with all threads."""
    x, y = Value((n,), "float32"), Value((n,), "float32")
    program = Program((x,), (), (Group.of(Op("neg", (x,), (y,), {})),), (y,))
    segment = host.build_stored(program, threads)
    data = np.ones(n, np.float32)
    return host.Call.on(segment, [data, segment.pack({})], [data])


def rates() -> dict[str, float]:
    """Bytes/s: of memory that is read and written in place, and of copies in both directions at once (each)."""
    n = 1 << 28 if jax.default_backend() == "gpu" else 1 << 23
    call = _in_place(n, config.threads(spare=1 if jax.default_backend() == "gpu" else 0))
    q, device = queues(jax.default_backend()), jnp.zeros(2 * COPY_BYTES, jnp.uint8).block_until_ready()
    here, there = q.memory(2 * COPY_BYTES), device.unsafe_buffer_pointer()

    def best(seconds: Callable[[], float]) -> float:
        return min(seconds() for _ in range(5))

    def touched() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def copied(times: int = 4) -> float:
        start = time.perf_counter()
        for _ in range(times):
            q.up(there + COPY_BYTES, here + COPY_BYTES, COPY_BYTES)
            event = q.down(here, there, COPY_BYTES)
            q.wait(event)
        return (time.perf_counter() - start) / times

    call()
    found = {"memory": 8 * n / best(touched), "bus": COPY_BYTES / best(copied)}
    q.free(here)
    return found


def bound(tx_bytes: float, wire: float, rate: dict[str, float]) -> float:
    """Least seconds of the host's update: its bytes in memory, those of the bus among them, or the bus alone."""
    return max((tx_bytes + 2 * wire) / rate["memory"], wire / rate["bus"])


def seconds_of(fn: Callable[..., Any], params: Any, tokens: jax.Array, rounds: int) -> float:
    """Median seconds of a program that changes nothing."""
    compiled = jax.jit(fn).lower(params, tokens).compile()
    return alternate({"": lambda: jax.block_until_ready(compiled(params, tokens))}, rounds, 0.3)[""]


def _runs(args: argparse.Namespace, params: Any, batch: jax.Array, clip: bool) -> tuple[dict[str, Run], dict[str, str]]:
    """All ways after their first step, and why some are not among them."""
    runs: dict[str, Run] = {}
    failed: dict[str, str] = {}
    for name in args.ways:
        try:
            way = functools.partial(balanced, device_memory=args.device_memory) if name == "balanced" else WAYS[name]
            runs[name] = Run(way, params, batch, clip)
            runs[name]()
        except Exception as e:  # a way of JAX's that this version, or this memory, does not have
            failed[name] = f"{type(e).__name__}: {str(e)[:200]}"
            runs.pop(name, None)
    return runs, failed


def record(
    args: argparse.Namespace, shape: Shape, params: Any, tokens: int, clip: bool, rate: dict[str, float]
) -> dict[str, Any]:
    """One record of all ways at so many tokens a step; `clip`: gradients are clipped first."""
    n = sum(x.size for x in jax.tree_util.tree_leaves(params))
    rows = max(1, tokens // shape.sequence)
    batch = jax.random.randint(jax.random.key(1), (rows, shape.sequence), 0, shape.vocabulary)
    runs, failed = _runs(args, params, batch, clip)
    samples: dict[str, list[float]] = {}
    seconds = alternate(runs, args.rounds, args.seconds, samples=samples, slow=SLOW)
    quick = {k for k, s in seconds.items() if s <= SLOW * min(seconds.values())}
    flight = {k: [runs[k].burst(4) for _ in range(args.rounds)] for k in quick}
    moved = 2 * 12 * n  # moments and master weights, read and written
    wire = 2 * n  # gradients of bf16 down; parameters of bf16 up
    host = {k: r.host_bytes for k, r in runs.items() if r.host_bytes}
    shares = {k: b / max(host.values()) if "offload" in host else b / (12 * n) for k, b in host.items()}
    update = bound(moved + 2 * wire, wire, rate)
    forward = seconds_of(loss_of, params, batch, 2)
    backward = seconds_of(jax.grad(loss_of), params, batch, 2)
    least = lambda share: max(backward, (backward if clip else forward) + share * update)
    return {
        "params": n,
        "shape": shape._asdict(),
        "tokens": rows * shape.sequence,
        "clip": clip,
        "machine": where(),
        "commit": commit(),
        "xcoexec": xcoexec.__version__,
        "optax": optax.__version__,
        "seconds": seconds,
        "spread": {k: [float(x) for x in np.quantile(v, (0.25, 0.75))] for k, v in samples.items()},
        "in_flight": {k: float(np.median(v)) for k, v in flight.items()},
        "compile_seconds": {k: r.compile_seconds for k, r in runs.items()},
        "step_bytes": {k: r.bytes for k, r in runs.items()},
        "state_bytes": {k: r.state_bytes for k, r in runs.items()},
        "losses": {k: r.losses[:4] for k, r in runs.items()},
        "failed": failed,
        "rates": rate,
        "forward": forward,
        "forward_backward": backward,
        "update_bound": update,
        "host_bytes": {k: r.host_bytes for k, r in runs.items()},
        "bound": least(1.0),
        "bounds": {k: least(share) for k, share in shares.items()},
    }


HEAD = (
    *("tokens", "way", "ms a step", "in flight", "over resident", "GB of a step", "state GB", "on host"),
    *("bound ms", "reached"),
)


def rows_of(r: dict[str, Any]) -> list[list[str]]:
    """The table's rows of a record."""
    out = []
    for k, s in r["seconds"].items():
        low, high = r["spread"][k]
        least = r["bounds"].get(k)
        flight = r["in_flight"].get(k)
        out.append(
            [
                str(r["tokens"]),
                k,
                f"{s * 1e3:.1f} ({low * 1e3:.1f} to {high * 1e3:.1f})",
                f"{flight * 1e3:.1f}" if flight else "-",
                f"{s / r['seconds']['resident']:.2f}x" if "resident" in r["seconds"] else "-",
                f"{r['step_bytes'][k] / 1e9:.2f}",
                f"{r['state_bytes'][k] / 1e9:.2f}",
                f"{r['host_bytes'][k] / 1e9:.2f}" if least else "",
                f"{least * 1e3:.1f}" if least else "",
                f"{least / s:.0%}" if least else "",
            ]
        )
    return out + [[str(r["tokens"]), k, why[:60], *[""] * 7] for k, why in r["failed"].items()]


CLIPS = {"no": (False,), "yes": (True,), "both": (False, True)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.offload", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--params", type=float, default=0.5e9)
    parser.add_argument("--tokens", type=int, nargs="+", default=[16384, 32768, 65536])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--clip", nargs="?", default="no", const="yes", choices=CLIPS, help="by the global norm first")
    parser.add_argument("--device-memory", type=float, default=0.5, help="share of the states for `balanced`")
    args = parser.parse_args(argv)
    shape = shape_of(args.params)
    params = jax.block_until_ready(jax.jit(lambda: parameters(shape))())
    rate = rates()
    records = []
    for clip, tokens in itertools.product(CLIPS[args.clip], args.tokens):
        records.append(record(args, shape, params, tokens, clip, rate))
        if args.folder:
            args.folder.mkdir(parents=True, exist_ok=True)
            with (args.folder / "offload.jsonl").open("a") as out:
                out.write(json.dumps(records[-1]) + "\n")
        last = records[-1]
        about = f"{last['params'] / 1e9:.2f}e9 parameters{', clipped' * clip}, {where()}"
        Console(width=160).print(table(about, HEAD, rows_of(last), right=range(2, len(HEAD))))
        shown = {k: round(last[k] * 1e3, 1) for k in ("forward", "forward_backward", "update_bound")}
        print(shown, {k: round(v / 1e9, 1) for k, v in rate.items()}, last["losses"], last["failed"], flush=True)


if __name__ == "__main__":
    main()
