"""Three training steps of random networks: `xcoexec.jit` of the step against `jax.jit` of it, and against float64.

A network is data (`Net`), made from a seed: linen or nnx, dense or convolutional, with norms (in training mode, with
statistics that change), pools, dropout, attention, residuals; an optimizer of optax with schedule and clipping. The
step is `value_and_grad` and the update inside one jitted function, with a linen TrainState or an nnx state, donated or
not. After three steps all leaves of both states agree to TOLERANCE of each leaf's scale, or are nearer to float64.

    python -m tests.outside.training --examples 60 --seconds 1200 --out out/training.jsonl
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training import train_state

import xcoexec

STEPS = 3
TOLERANCE = {"float32": 2e-4, "bfloat16": 6e-2}  # of a leaf's scale, after STEPS steps
FACTOR = 4.0
# leaves that are smaller than this share of the largest in float64 are zero but for rounding (a bias in front of a
# norm):
ZERO = 1e-9
NOISE = 0.02  # they are measured by this share of the largest
OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": lambda: optax.sgd(0.05),
    "momentum": lambda: optax.sgd(0.05, momentum=0.9),
    "nesterov": lambda: optax.sgd(optax.cosine_decay_schedule(0.05, 10), momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(0.01, eps=1e-3),
    "adamw": lambda: optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 0.01, 2, 10), eps=1e-3, weight_decay=1e-3),
    "lion": lambda: optax.lion(1e-3),
    "adafactor": lambda: optax.adafactor(0.01, min_dim_size_to_factor=4),
    "rmsprop": lambda: optax.rmsprop(0.01, eps=1e-3),
    "clip adam": lambda: optax.chain(
        optax.clip_by_global_norm(0.5), optax.adam(optax.exponential_decay(0.01, 2, 0.5), eps=1e-3)
    ),
    "clip sgd decay": lambda: optax.chain(
        optax.clip(0.1), optax.add_decayed_weights(1e-3), optax.sgd(optax.linear_schedule(0.1, 0.01, 5))
    ),
    "lamb": lambda: optax.lamb(0.01, eps=1e-3),
    "accumulate": lambda: optax.MultiSteps(optax.sgd(0.05), 2).gradient_transformation(),
}
#: they divide by, or take the sign of, gradients however small: behind these blocks some are zero up to rounding
SIGNED = ("lion", "adafactor", "lamb")
INVARIANT = ("attention", "softmax", "norm", "group norm", "layer norm", "rms norm")
SMOOTH = {"relu": "silu", "max pool": "avg pool"}
IMAGE_BLOCKS = (
    "conv",
    "conv stride",
    "depthwise",
    "norm",
    "group norm",
    "max pool",
    "avg pool",
    "residual",
    "relu",
    "gelu",
    "dropout",
    "transpose",
)
ROW_BLOCKS = ("dense", "norm", "layer norm", "residual", "relu", "tanh", "silu", "dropout", "rms norm")
TOKEN_BLOCKS = ("attention", "layer norm", "residual", "dense", "gelu", "dropout", "gru", "softmax")


@dataclasses.dataclass(frozen=True)
class Net:
    """`kind`: "image", "rows" or "tokens" (integer inputs); `api`: "linen" or "nnx"; `loss`: "labels" or "squares"."""

    api: str
    kind: str
    blocks: tuple[str, ...]
    width: int
    batch: int
    optimizer: str
    loss: str = "labels"
    dtype: str = "float32"
    donate: bool = False
    remat: bool = False
    smooth: bool = False  # no kinks: half of the bits of a type decide on which side of one a small number lies


def random_net(seed: int) -> Net:
    rng = np.random.default_rng(seed)
    pick = lambda xs: xs[int(rng.integers(len(xs)))]
    kind = pick(("image", "rows", "tokens"))
    blocks = {"image": IMAGE_BLOCKS, "rows": ROW_BLOCKS, "tokens": TOKEN_BLOCKS}[kind]
    first = {"image": "conv", "rows": "dense", "tokens": "attention"}[kind]
    chosen = (first, *(pick(blocks) for _ in range(int(rng.integers(1, 6)))))
    api = pick(("linen", "linen", "nnx"))
    optimizers = sorted(set(OPTIMIZERS) - set(SIGNED if set(INVARIANT) & set(chosen) else ()))
    width, size, optimizer, loss = (
        int(pick((4, 6, 8, 16))),
        int(pick((1, 2, 3, 8))),
        pick(optimizers),
        pick(("labels", "squares")),
    )
    dtype = pick(("float32",) * 5 + ("bfloat16",))
    smooth = dtype == "bfloat16"
    if smooth:
        chosen = tuple(SMOOTH.get(b, b) for b in chosen)
    donate, remat = bool(rng.integers(2)), bool(rng.integers(4) == 0) and api == "linen"
    return Net(api, kind, chosen, width, size, optimizer, loss, dtype, donate, remat, smooth)


# -- linen -------------------------------------------------------------------------------------------


class LinenNet(nn.Module):
    net: Net
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        n, d = self.net, self.dtype
        if n.kind == "tokens":
            x = nn.Embed(11, n.width, dtype=d)(x)
        for block in n.blocks:
            x = self.block(block, x, train, d)
        x = x.mean(tuple(range(1, x.ndim - 1))) if x.ndim > 2 else x
        return nn.Dense(5, dtype=d)(x)

    def block(self, name: str, x: Any, train: bool, d: Any) -> Any:
        w = self.net.width
        match name:
            case "conv":
                return nn.Conv(w, (3, 3), dtype=d)(x)
            case "conv stride":
                return nn.Conv(w, (3, 3), (2, 2), dtype=d)(x)
            case "depthwise":
                return nn.Conv(x.shape[-1], (3, 3), feature_group_count=x.shape[-1], dtype=d)(x)
            case "transpose":
                return nn.ConvTranspose(w, (2, 2), (2, 2), dtype=d)(x) if x.shape[1] < 12 else x
            case "norm":
                return nn.BatchNorm(use_running_average=not train, momentum=0.9, dtype=d)(x)
            case "group norm":
                return nn.GroupNorm(None, 2 if x.shape[-1] % 2 == 0 else 1, dtype=d)(x)
            case "layer norm":
                return nn.LayerNorm(dtype=d)(x)
            case "rms norm":
                return nn.RMSNorm(dtype=d)(x)
            case "max pool":
                return nn.max_pool(x, (2, 2), (2, 2), "SAME")
            case "avg pool":
                return nn.avg_pool(x, (2, 2), (1, 1), "SAME")
            case "dense":
                return nn.Dense(w, dtype=d)(x)
            case "residual":
                inner = nn.Dense(x.shape[-1], dtype=d)
                return x + (nn.silu if self.net.smooth else nn.relu)(inner(x))
            case "attention":
                # a key bias changes nothing: its gradient is rounding alone
                return x + nn.MultiHeadDotProductAttention(2, dtype=d, use_bias=False)(
                    x, mask=nn.make_causal_mask(jnp.ones(x.shape[:2]))
                )
            case "gru":
                return nn.RNN(nn.GRUCell(w, dtype=d))(x)
            case "dropout":
                return nn.Dropout(0.3, deterministic=not train)(x)
        return ACTIVATIONS[name](x)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
    "softmax": jax.nn.softmax,
}


class State(train_state.TrainState):
    batch_stats: Any
    key: Any


def linen(net: Net) -> tuple[Callable[..., Any], Any]:
    """(step, first state); step: (state, batch) -> (state, loss)."""
    cls = nn.remat(LinenNet, static_argnums=(2,)) if net.remat else LinenNet
    module = cls(net, jnp.dtype(net.dtype))
    x, _ = batch(net, 0)
    variables = jax.jit(lambda k, x: module.init({"params": k, "dropout": k}, x, False))(jax.random.key(1), x)
    state = State.create(
        apply_fn=module.apply,
        params=variables["params"],
        tx=OPTIMIZERS[net.optimizer](),
        batch_stats=variables.get("batch_stats", {}),
        key=jax.random.key(2),
    )

    def step(state: State, data: Any) -> tuple[State, Any]:
        x, y = data
        key = jax.random.fold_in(state.key, state.step)

        def loss(params: Any) -> Any:
            given = {"params": params, "batch_stats": state.batch_stats}
            out, changed = state.apply_fn(given, x, True, rngs={"dropout": key}, mutable=["batch_stats"])
            return measure(net, out, y), changed

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        state = state.apply_gradients(grads=grads)
        return state.replace(batch_stats=changed.get("batch_stats", state.batch_stats)), value

    return step, state


# -- nnx ---------------------------------------------------------------------------------------------


class NnxNet(nnx.Module):
    def __init__(self, net: Net, rngs: nnx.Rngs):
        d, self.net = jnp.dtype(net.dtype), net
        c = net.width if net.kind == "tokens" else 3 if net.kind == "image" else 7
        self.embed = nnx.Embed(11, net.width, dtype=d, rngs=rngs) if net.kind == "tokens" else None
        parts = []
        for block in net.blocks:
            made, c = self.block(block, c, d, rngs)
            parts.append(made)
        self.parts = nnx.List(parts)
        self.head = nnx.Linear(c, 5, dtype=d, rngs=rngs)

    def block(self, name: str, c: int, d: Any, rngs: nnx.Rngs) -> tuple[Any, int]:
        w = self.net.width
        match name:
            case "conv" | "conv stride":
                return nnx.Conv(c, w, (3, 3), (2, 2) if "stride" in name else 1, dtype=d, rngs=rngs), w
            case "depthwise":
                return nnx.Conv(c, c, (3, 3), feature_group_count=c, dtype=d, rngs=rngs), c
            case "transpose":
                return nnx.ConvTranspose(c, w, (2, 2), dtype=d, rngs=rngs), w
            case "norm":
                return nnx.BatchNorm(c, momentum=0.9, dtype=d, rngs=rngs), c
            case "group norm":
                return nnx.GroupNorm(c, 2 if c % 2 == 0 else 1, dtype=d, rngs=rngs), c
            case "layer norm":
                return nnx.LayerNorm(c, dtype=d, rngs=rngs), c
            case "rms norm":
                return nnx.RMSNorm(c, dtype=d, rngs=rngs), c
            case "dense":
                return nnx.Linear(c, w, dtype=d, rngs=rngs), w
            case "residual":
                return nnx.Linear(c, c, dtype=d, rngs=rngs), c
            case "attention":
                return nnx.MultiHeadAttention(2, c, dtype=d, decode=False, use_bias=False, rngs=rngs), c
            case "gru":
                return nnx.RNN(nnx.GRUCell(c, w, dtype=d, rngs=rngs), rngs=rngs), w
            case "dropout":
                return nnx.Dropout(0.3, rngs=rngs), c
        return None, c

    def __call__(self, x: Any) -> Any:
        if self.embed is not None:
            x = self.embed(x)
        for name, part in zip(self.net.blocks, self.parts, strict=True):
            if name == "residual":
                x = x + (jax.nn.silu if self.net.smooth else jax.nn.relu)(part(x))
            elif name == "attention":
                x = x + part(x)
            elif part is not None:
                x = part(x)
            elif name == "max pool":
                x = nnx.max_pool(x, (2, 2), (2, 2), "SAME")
            elif name == "avg pool":
                x = nnx.avg_pool(x, (2, 2), (1, 1), "SAME")
            else:
                x = ACTIVATIONS[name](x)
        x = x.mean(tuple(range(1, x.ndim - 1))) if x.ndim > 2 else x
        return self.head(x)


def nnx_net(net: Net) -> tuple[Callable[..., Any], Any]:
    """As `linen`: the state is that of the model and of its optimizer."""
    model = NnxNet(net, nnx.Rngs(0, dropout=1))
    optimizer = nnx.Optimizer(model, OPTIMIZERS[net.optimizer](), wrt=nnx.Param)
    graph, state = nnx.split((model, optimizer))

    def step(state: Any, data: Any) -> tuple[Any, Any]:
        x, y = data
        model, optimizer = nnx.merge(graph, state)
        value, grads = nnx.value_and_grad(lambda m: measure(net, m(x), y))(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    return step, state


# -- both --------------------------------------------------------------------------------------------


def batch(net: Net, i: int) -> tuple[Any, Any]:
    """The i-th batch: inputs and labels."""
    rng = np.random.default_rng([7, i])
    n = net.batch
    x = {
        "image": lambda: rng.normal(size=(n, 8, 7, 3)).astype(np.float32),
        "rows": lambda: rng.normal(size=(n, 7)).astype(np.float32),
        "tokens": lambda: rng.integers(0, 11, (n, 6)).astype(np.int32),
    }[net.kind]()
    return jnp.asarray(x), jnp.asarray(rng.integers(0, 5, n).astype(np.int32))


def measure(net: Net, out: Any, y: Any) -> Any:
    out = out.astype(jnp.promote_types(out.dtype, jnp.float32))
    if net.loss == "labels":
        return optax.softmax_cross_entropy_with_integer_labels(out, y).mean()
    return ((out - jax.nn.one_hot(y, 5)) ** 2).mean()


def train(net: Net, jit: Callable[..., Any], wide: bool = False) -> tuple[Any, list[Any], Any]:
    """(last state, losses, the jitted step) after STEPS steps; `wide`: states and data in float64 (under x64)."""
    step, state = (linen if net.api == "linen" else nnx_net)(net)
    jitted = jit(step, donate_argnums=0) if net.donate else jit(step)
    state = jax.tree.map(_widened if wide else lambda x: x, state)
    losses = []
    for i in range(STEPS):
        data = jax.tree.map(_widened if wide else lambda x: x, batch(net, i))
        state, loss = jitted(state, data)
        losses.append(loss)
    return jax.block_until_ready(state), losses, jitted


def _widened(x: Any) -> Any:
    inexact = hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
    return jnp.asarray(np.asarray(x).astype(np.float64)) if inexact else x


def check(net: Net, strategy: str = "kernels") -> dict[str, Any]:
    """Three steps of a network both ways: {"status", "detail", "error" (of the worst leaf's scale), "segments",
    "why"}.
    """
    from .sweep_compare import STRATEGIES, properties

    want, their_losses, _ = train(net, jax.jit)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            got, losses, step = train(net, lambda f, **kw: xcoexec.jit(f, **kw, **STRATEGIES[strategy]()))
        except Exception as e:
            return {
                "status": "raises",
                "detail": f"{type(e).__name__}: {str(e)[:200]}",
                "error": None,
                "segments": 0,
                "why": "",
            }
    said = [str(w.message) for w in seen if issubclass(w.category, xcoexec.CoexecWarning)]
    segments = _segments(step, net, got)
    out = {"segments": segments, "why": said[0] if said else ""}
    if different := properties(jax.tree.leaves((want, their_losses)), jax.tree.leaves((got, losses))):
        return {"status": "type", "detail": different, "error": None, **out}
    leaves = [_flat(s) for s in ((want, their_losses), (got, losses))]
    allowed = TOLERANCE[net.dtype]
    errors = _errors(leaves[1], leaves[0])
    worst = max(errors, default=0.0)
    if worst <= allowed:
        return {"status": "same", "detail": "", "error": worst, **out}
    return {**_by_oracle(net, *leaves, errors, allowed), "error": worst, **out}


def _segments(step: Any, net: Net, state: Any) -> int:
    """Host segments of the step in use; 0 where plain jax.jit runs."""
    try:
        copied = jax.tree.map(lambda x: jnp.array(x, copy=True) if isinstance(x, jax.Array) else x, state)
        return int(step.report(copied, batch(net, 0)).segments)
    except Exception:
        return 0


def _flat(tree: Any) -> list[np.ndarray]:
    key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return [
        np.asarray(jax.random.key_data(x) if isinstance(x, jax.Array) and key(x) else x) for x in jax.tree.leaves(tree)
    ]


def _errors(
    got: Sequence[np.ndarray], want: Sequence[np.ndarray], truth: Sequence[np.ndarray] | None = None
) -> list[float]:
    """Of each leaf the largest difference, of its scale; infinite where NaN or integers differ. See ZERO for the use of
    `truth`.
    """
    scales = [_scale(t) for t in (truth or want)]
    largest = max([*scales, 1e-30])
    least = [NOISE * largest if truth and s < ZERO * largest else 1e-30 for s in scales]
    return [_error(g, w, max(s, m)) for g, w, s, m in zip(got, want, scales, least, strict=True)]


def _scale(x: np.ndarray) -> float:
    return float(np.abs(x[np.isfinite(x)].astype(np.float64)).max(initial=0)) if x.dtype.kind not in "iub" else 0.0


def _error(got: np.ndarray, want: np.ndarray, scale: float) -> float:
    if want.dtype.kind in "iub":
        return 0.0 if np.array_equal(got, want) else float("inf")
    g, w = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(g), np.isfinite(w)):
        return float("inf")
    return float(np.abs(np.where(np.isfinite(w), g - w, 0)).max(initial=0) / scale)


def _by_oracle(
    net: Net, want: Sequence[np.ndarray], got: Sequence[np.ndarray], errors: Sequence[float], allowed: float
) -> dict[str, Any]:
    i = int(np.argmax(errors))
    text = f"leaf {i} {want[i].dtype}{list(want[i].shape)}: error {errors[i]:.3g}"
    try:
        with jax.enable_x64(True):
            state, losses, _ = train(dataclasses.replace(net, dtype="float64", donate=False), jax.jit, wide=True)
            truth = _flat((state, losses))
    except Exception as e:
        return {"status": "wrong", "detail": f"{text}; no float64 oracle ({type(e).__name__}: {str(e)[:80]})"}
    ours, theirs = _errors(got, truth, truth), _errors(want, truth, truth)
    fine = all(a <= max(FACTOR * b, allowed) for a, b in zip(ours, theirs, strict=True))
    return {
        "status": "nearer" if fine else "wrong",
        "detail": f"{text}; from float64 ours {max(ours):.3g}, jax.jit's {max(theirs):.3g}",
    }


def main(argv: list[str] | None = None) -> int:
    from .sweep import environment

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--examples", type=int, default=60)
    p.add_argument("--first", type=int, default=0, help="the first seed")
    p.add_argument("--seconds", type=float, default=float("inf"))
    p.add_argument("--strategy", default="kernels")
    p.add_argument("--out", default="out/training.jsonl")
    args = p.parse_args(argv)
    out, end, where, bad = pathlib.Path(args.out), time.monotonic() + args.seconds, environment(), 0
    out.parent.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    for seed in range(args.first, args.first + args.examples):
        if time.monotonic() > end:
            break
        net = random_net(seed)
        try:
            record = check(net, args.strategy)
        except Exception as e:  # plain jax.jit cannot train it
            record = {
                "status": "plain",
                "detail": f"{type(e).__name__}: {str(e)[:200]}",
                "error": None,
                "segments": 0,
                "why": "",
            }
        counts[record["status"]] = counts.get(record["status"], 0) + 1
        counts["with kernels"] = counts.get("with kernels", 0) + (record["segments"] > 0)
        bad += record["status"] not in ("same", "nearer", "plain")
        with out.open("a") as f:
            f.write(json.dumps({"seed": seed, **record, "net": repr(net), "strategy": args.strategy, **where}) + "\n")
        if record["status"] != "same":
            print(seed, record, net, flush=True)
        jax.clear_caches()
    print(counts)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
