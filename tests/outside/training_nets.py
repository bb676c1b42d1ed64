"""Random networks as data, made from a seed, and their training steps in Flax linen and nnx."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training import train_state

NETS = 4  # the version of what a seed means
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
    "adagrad": lambda: optax.adagrad(0.01, eps=1e-3),
    "nadam": lambda: optax.nadam(0.01, eps=1e-3),
    "adamax": lambda: optax.adamax(0.01, eps=1e-3),
    "radam": lambda: optax.radam(0.01, eps=1e-3),
    "accumulate": lambda: optax.MultiSteps(
        optax.sgd(0.05), 2, accumulator_dtype=jnp.result_type(float)
    ).gradient_transformation(),
}
#: they divide by, or take the sign of, gradients however small: behind these blocks some are zero up to rounding
SIGNED = ("lion", "adafactor", "lamb")
INVARIANT = ("attention", "gpt", "softmax", "norm", "group norm", "layer norm", "rms norm")
SMOOTH = {"relu": "silu", "max pool": "avg pool"}
IMAGE_BLOCKS = (
    "conv",
    "conv stride",
    "conv dilated",
    "conv grouped",
    "depthwise",
    "depthwise stride",
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
TOKEN_BLOCKS = ("attention", "gpt", "layer norm", "rms norm", "residual", "dense", "gelu", "dropout", "gru", "softmax")


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
    chosen = (first, *(pick(blocks) for _ in range(int(rng.integers(1, 4)))))
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
            case "conv dilated":
                return nn.Conv(w, (3, 3), kernel_dilation=2, dtype=d)(x)
            case "conv grouped":
                return nn.Conv(w, (3, 3), feature_group_count=groups(x.shape[-1]), dtype=d)(x)
            case "depthwise":
                return nn.Conv(x.shape[-1], (3, 3), feature_group_count=x.shape[-1], dtype=d)(x)
            case "depthwise stride":
                return nn.Conv(2 * x.shape[-1], (5, 5), (2, 2), feature_group_count=x.shape[-1], dtype=d)(x)
            case "transpose":
                return nn.ConvTranspose(w, (2, 2), (2, 2), dtype=d)(x) if x.shape[1] < 12 else x
            case "norm":
                return nn.BatchNorm(use_running_average=not train, momentum=0.9, dtype=d)(x)
            case "group norm":
                return nn.GroupNorm(groups(x.shape[-1]), dtype=d)(x)
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
            case "gpt":
                x = self.block("attention", nn.LayerNorm(dtype=d)(x), train, d)
                y = nn.Dense(4 * w, dtype=d)(nn.LayerNorm(dtype=d)(x))
                return x + nn.Dense(x.shape[-1], dtype=d)(nn.gelu(y))
            case "gru":
                return nn.RNN(nn.GRUCell(w, dtype=d, param_dtype=kept_as(d)))(x)
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


def groups(channels: int) -> int:
    """Groups of channels: 2 where that divides them."""
    return 2 if channels % 2 == 0 else 1


def kept_as(d: Any) -> Any:
    """The type of a recurrent layer's state: f32, and f64 for the oracle."""
    return jnp.promote_types(d, jnp.float32)


class State(train_state.TrainState):
    batch_stats: Any
    key: Any


def linen(net: Net) -> tuple[Callable[..., Any], Callable[[], Any]]:
    """(step, what makes the first state); step: (state, batch) -> (state, loss)."""
    cls = nn.remat(LinenNet, static_argnums=(2,)) if net.remat else LinenNet
    module = cls(net, jnp.dtype(net.dtype))
    x, _ = batch(net, 0)
    shapes = jax.eval_shape(lambda k: module.init({"params": k, "dropout": k}, x, False), jax.random.key(1))
    variables = filled(net, shapes)
    tx, stats = OPTIMIZERS[net.optimizer](), variables.get("batch_stats", {})
    create = lambda params, key: State.create(apply_fn=module.apply, params=params, tx=tx, batch_stats=stats, key=key)
    created = jax.jit(create)
    make = lambda: created(variables["params"], jax.random.key(2)).replace(step=0)

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

    return step, make


# -- nnx ---------------------------------------------------------------------------------------------


class GptBlock(nnx.Module):
    """Causal attention and two dense layers, each behind a norm and beside a shortcut."""

    def __init__(self, c: int, width: int, d: Any, rngs: nnx.Rngs):
        self.norms = nnx.List([nnx.LayerNorm(c, dtype=d, rngs=rngs) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(2, c, dtype=d, decode=False, use_bias=False, rngs=rngs)
        self.inner = nnx.Linear(c, 4 * width, dtype=d, rngs=rngs)
        self.outer = nnx.Linear(4 * width, c, dtype=d, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        y = self.norms[0](x)
        x = x + self.attention(y, mask=nnx.make_causal_mask(jnp.ones(x.shape[:2])))
        return x + self.outer(nnx.gelu(self.inner(self.norms[1](x))))


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
            case "conv dilated":
                return nnx.Conv(c, w, (3, 3), kernel_dilation=2, dtype=d, rngs=rngs), w
            case "conv grouped":
                return nnx.Conv(c, w, (3, 3), feature_group_count=groups(c), dtype=d, rngs=rngs), w
            case "depthwise":
                return nnx.Conv(c, c, (3, 3), feature_group_count=c, dtype=d, rngs=rngs), c
            case "depthwise stride":
                return nnx.Conv(c, 2 * c, (5, 5), (2, 2), feature_group_count=c, dtype=d, rngs=rngs), 2 * c
            case "transpose":
                return nnx.ConvTranspose(c, w, (2, 2), dtype=d, rngs=rngs), w
            case "norm":
                return nnx.BatchNorm(c, momentum=0.9, dtype=d, rngs=rngs), c
            case "group norm":
                return nnx.GroupNorm(c, groups(c), dtype=d, rngs=rngs), c
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
            case "gpt":
                return GptBlock(c, w, d, rngs), c
            case "gru":
                return nnx.RNN(nnx.GRUCell(c, w, dtype=d, param_dtype=kept_as(d), rngs=rngs), rngs=rngs), w
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


def nnx_net(net: Net) -> tuple[Callable[..., Any], Callable[[], Any]]:
    """As `linen`: the state is that of the model and of its optimizer."""
    tx = OPTIMIZERS[net.optimizer]()
    bare, shapes = nnx.split(nnx.eval_shape(lambda: NnxNet(net, nnx.Rngs(0, dropout=1))))

    def parts(state: Any) -> Any:
        model = nnx.merge(bare, state)
        return nnx.split((model, nnx.Optimizer(model, tx, wrt=nnx.Param)))

    split, given = jax.jit(parts), filled(net, shapes)
    graph, _ = split(given)

    def step(state: Any, data: Any) -> tuple[Any, Any]:
        x, y = data
        model, optimizer = nnx.merge(graph, state)
        value, grads = nnx.value_and_grad(lambda m: measure(net, m(x), y))(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    return step, lambda: split(given)[1]


# -- both --------------------------------------------------------------------------------------------


def filled(net: Net, shapes: Any) -> Any:
    """Arrays in the place of shapes: numbers of a usual first state, which no program has to be compiled for. In
    float64 they are the same.
    """
    rng = np.random.default_rng(1)

    def made(path: Any, x: Any) -> Any:
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            return jax.random.key(1)
        if not jnp.issubdtype(x.dtype, jnp.floating):
            return jnp.asarray(np.zeros(x.shape, x.dtype))
        ones = any(word in jax.tree_util.keystr(path) for word in ("scale", "var"))
        wide = (
            rng.normal(size=x.shape) / np.sqrt(np.prod(x.shape[:-1])) if x.ndim > 1 else np.full(x.shape, float(ones))
        )
        return jnp.asarray(wide.astype(np.float32).astype(np.float64 if net.dtype == "float64" else x.dtype))

    return jax.tree_util.tree_map_with_path(made, shapes)


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
