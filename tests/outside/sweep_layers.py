"""Every layer of flax.linen and flax.nnx: forward (training and inference), gradient, pullback, bound weights.

The classes are found by walking the modules; LINEN and NNX say how to make each and what to call it with. A class that
they lack is listed as not swept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

from .sweep_args import Given
from .sweep_cases import Case, Made, gradient, pullback

Maker = Callable[[Any], Any]
Inputs = Callable[[Given], Sequence[Any]]
IMAGE: Inputs = lambda g: [g(2, 9, 8, 6)]
ROWS: Inputs = lambda g: [g(3, 6)]
SEQUENCE: Inputs = lambda g: [g(2, 5, 8)]
IDS: Inputs = lambda g: [g.ints(2, 5, high=7)]
#: abstract bases and operations that only work as a part of another layer
NOT_LAYERS = {"Module", "RNNCellBase", "Dict", "List"}


class Setting:
    """One way to make and call a layer. `train`: the call draws random numbers or changes statistics."""

    def __init__(self, label: str, make: Maker, inputs: Inputs, train: bool = False, **call: Any):
        self.label, self.make, self.inputs, self.train, self.call = label, make, inputs, train, call


def _cell(name: str) -> list[Setting]:
    def inputs(g: Given) -> Sequence[Any]:
        carry = (g(2, 8), g(2, 8)) if "LSTM" in name else g(2, 8)
        return [carry, g(2, 6)]

    def rnn(d: Any) -> Any:
        return nn.RNN(getattr(nn, name)(8, dtype=d))

    return [Setting("step", lambda d: getattr(nn, name)(8, dtype=d), inputs), Setting("rnn", rnn, SEQUENCE)]


class _Pair(nn.Module):
    """A layer around another one, as SpectralNorm and WeightNorm want it."""

    wrap: Any
    dtype: Any = None

    @nn.compact
    def __call__(self, x: Any) -> Any:
        inner = nn.Dense(5, dtype=self.dtype)
        return self.wrap(inner)(x, update_stats=True) if self.wrap is nn.SpectralNorm else self.wrap(inner)(x)


class _Masked(nn.Module):
    dtype: Any = None

    @nn.compact
    def __call__(self, x: Any) -> Any:
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        return nn.MultiHeadDotProductAttention(2, dtype=self.dtype)(x, mask=mask)


def _fp8(op: Any) -> Maker:
    return lambda d: nn.Dense(16, dtype=d, dot_general_cls=op)


def _conv_settings(cls: Any) -> list[Setting]:
    out = [
        Setting("3x3", lambda d: cls(5, (3, 3), dtype=d), IMAGE),
        Setting("stride 2 valid", lambda d: cls(5, (3, 2), (2, 2), padding="VALID", dtype=d), IMAGE),
        Setting("1x1 no bias", lambda d: cls(5, (1, 1), use_bias=False, dtype=d), IMAGE),
        Setting("1d", lambda d: cls(5, (3,), dtype=d), SEQUENCE),
        Setting("3d", lambda d: cls(4, (2, 3, 2), dtype=d), lambda g: [g(1, 4, 5, 6, 3)]),
        Setting("no batch", lambda d: cls(5, (3, 3), dtype=d), lambda g: [g(9, 8, 6)]),
    ]
    if cls is nn.Conv:
        out += [
            Setting("groups 3", lambda d: cls(6, (3, 3), feature_group_count=3, dtype=d), IMAGE),
            Setting("depthwise", lambda d: cls(6, (3, 3), feature_group_count=6, dtype=d), IMAGE),
            Setting("dilated", lambda d: cls(5, (3, 3), kernel_dilation=2, dtype=d), IMAGE),
            Setting("circular", lambda d: cls(5, (3, 3), padding="CIRCULAR", dtype=d), IMAGE),
            Setting("causal", lambda d: cls(5, (3,), padding="CAUSAL", dtype=d), SEQUENCE),
        ]
    return out


LINEN: dict[str, list[Setting]] = {
    "BatchNorm": [
        Setting("inference", lambda d: nn.BatchNorm(True, dtype=d), IMAGE),
        Setting("training", lambda d: nn.BatchNorm(False, dtype=d), IMAGE, True),
        Setting("training rows", lambda d: nn.BatchNorm(False, use_scale=False, dtype=d), ROWS, True),
    ],
    "Bidirectional": [
        Setting("lstm", lambda d: nn.Bidirectional(nn.RNN(nn.LSTMCell(4)), nn.RNN(nn.LSTMCell(4))), SEQUENCE)
    ],
    "Conv": _conv_settings(nn.Conv),
    "ConvLSTMCell": [
        Setting(
            "step",
            lambda d: nn.ConvLSTMCell(4, (3, 3), dtype=d),
            lambda g: [(g(2, 6, 6, 4), g(2, 6, 6, 4)), g(2, 6, 6, 3)],
        )
    ],
    "ConvLocal": [Setting("3x3", lambda d: nn.ConvLocal(5, (3, 3), padding="VALID", dtype=d), IMAGE)],
    "ConvTranspose": _conv_settings(nn.ConvTranspose)[:5],
    "Dense": [
        Setting("rows", lambda d: nn.Dense(5, dtype=d), ROWS),
        Setting("sequence", lambda d: nn.Dense(5, use_bias=False, dtype=d), SEQUENCE),
        Setting("vector", lambda d: nn.Dense(5, dtype=d), lambda g: [g(6)]),
        Setting("no rows", lambda d: nn.Dense(5, dtype=d), lambda g: [g(0, 6)]),
    ],
    "DenseGeneral": [Setting("two axes", lambda d: nn.DenseGeneral((2, 3), axis=(-2, -1), dtype=d), SEQUENCE)],
    "Dropout": [
        Setting("off", lambda d: nn.Dropout(0.3, deterministic=True), IMAGE),
        Setting("on", lambda d: nn.Dropout(0.3, deterministic=False), IMAGE, True),
        Setting("broadcast", lambda d: nn.Dropout(0.3, broadcast_dims=(1, 2), deterministic=False), IMAGE, True),
    ],
    "Einsum": [Setting("bij", lambda d: nn.Einsum((8, 5), "btd,df->btf", dtype=d), SEQUENCE)],
    "Embed": [
        Setting("ids", lambda d: nn.Embed(7, 5, dtype=d), IDS),
        Setting("scalar", lambda d: nn.Embed(7, 5, dtype=d), lambda g: [g.ints(high=7)]),
    ],
    "Fp8DotGeneralOp": [Setting("dense", _fp8(nn.Fp8DotGeneralOp), lambda g: [g(16, 16)], True)],
    "Fp8DirectDotGeneralOp": [Setting("dense", _fp8(nn.Fp8DirectDotGeneralOp), lambda g: [g(16, 16)], True)],
    "Fp8DotGeneral": [Setting("dense", _fp8(nn.Fp8DotGeneral), lambda g: [g(16, 16)], True)],
    "Fp8Einsum": [
        Setting("einsum", lambda d: nn.Fp8Einsum(), lambda g: ["btd,df->btf", g(2, 16, 16), g(16, 16)], True)
    ],
    "NANOOFp8DotGeneralOp": [Setting("dense", _fp8(nn.NANOOFp8DotGeneralOp), lambda g: [g(16, 16)], True)],
    **{n: _cell(n) for n in ("GRUCell", "LSTMCell", "MGUCell", "OptimizedLSTMCell", "SimpleCell")},
    "GroupNorm": [
        Setting("3 groups", lambda d: nn.GroupNorm(3, dtype=d), IMAGE),
        Setting("size 1", lambda d: nn.GroupNorm(None, 1, dtype=d), IMAGE),
    ],
    "InstanceNorm": [Setting("image", lambda d: nn.InstanceNorm(dtype=d), IMAGE)],
    "LayerNorm": [
        Setting("sequence", lambda d: nn.LayerNorm(dtype=d), SEQUENCE),
        Setting("two axes", lambda d: nn.LayerNorm(reduction_axes=(-2, -1), feature_axes=-1, dtype=d), SEQUENCE),
        Setting("slow variance", lambda d: nn.LayerNorm(use_fast_variance=False, dtype=d), ROWS),
    ],
    "MultiHeadAttention": [Setting("self", lambda d: nn.MultiHeadAttention(2, dtype=d), SEQUENCE)],
    "MultiHeadDotProductAttention": [
        Setting("self", lambda d: nn.MultiHeadDotProductAttention(2, dtype=d), SEQUENCE),
        Setting("cross", lambda d: nn.MultiHeadDotProductAttention(2, dtype=d), lambda g: [g(2, 5, 8), g(2, 4, 8)]),
        Setting("causal", lambda d: _Masked(d), SEQUENCE),
        Setting(
            "dropout",
            lambda d: nn.MultiHeadDotProductAttention(2, dropout_rate=0.2, deterministic=False, dtype=d),
            SEQUENCE,
            True,
        ),
        Setting(
            "decode", lambda d: nn.MultiHeadDotProductAttention(2, decode=True, dtype=d), lambda g: [g(2, 1, 8)], True
        ),
    ],
    "PReLU": [Setting("rows", lambda d: nn.PReLU(), ROWS)],
    "RMSNorm": [Setting("sequence", lambda d: nn.RMSNorm(dtype=d), SEQUENCE)],
    "RNN": [
        Setting("reverse", lambda d: nn.RNN(nn.GRUCell(6, dtype=d), reverse=True, keep_order=True), SEQUENCE),
        Setting("carry", lambda d: nn.RNN(nn.LSTMCell(6, dtype=d), return_carry=True), SEQUENCE),
        Setting(
            "lengths",
            lambda d: nn.RNN(nn.GRUCell(6, dtype=d), return_carry=True),
            lambda g: [g(2, 5, 8)],
            seq_lengths=jnp.asarray([2, 5]),
        ),
    ],
    "SelfAttention": [Setting("self", lambda d: nn.SelfAttention(2, dtype=d), SEQUENCE)],
    "Sequential": [
        Setting(
            "mlp", lambda d: nn.Sequential([nn.Dense(8, dtype=d), nn.relu, nn.Dense(3, dtype=d), nn.log_softmax]), ROWS
        )
    ],
    "SpectralNorm": [Setting("dense", lambda d: _Pair(nn.SpectralNorm, d), ROWS, True)],
    "WeightNorm": [Setting("dense", lambda d: _Pair(nn.WeightNorm, d), ROWS)],
}

LINEN_FUNCTIONS: dict[str, tuple[Callable[..., Any], Inputs]] = {
    "avg_pool": (lambda x: nn.avg_pool(x, (2, 3), (2, 1), "SAME"), IMAGE),
    "avg_pool exclude": (lambda x: nn.avg_pool(x, (3, 3), (2, 2), "SAME", count_include_pad=False), IMAGE),
    "max_pool": (lambda x: nn.max_pool(x, (3, 3), (2, 2), "SAME"), IMAGE),
    "max_pool relu": (lambda x: nn.max_pool(nn.relu(x), (2, 2), (2, 2)), IMAGE),
    "min_pool": (lambda x: nn.pooling.min_pool(x, (2, 2), (1, 2)), IMAGE),
    "max_pool 1d": (lambda x: nn.max_pool(x, (3,), (2,)), SEQUENCE),
    "max_pool 3d": (lambda x: nn.max_pool(x, (2, 2, 2), (1, 2, 2)), lambda g: [g(1, 4, 5, 6, 3)]),
    "pool": (lambda x: nn.pool(x, 0.0, jax.lax.add, (2, 2), (1, 1), "VALID"), IMAGE),
    "dot_product_attention": (lambda q, k, v: nn.dot_product_attention(q, k, v), lambda g: [g(2, 5, 2, 4)] * 3),
    "dot_product_attention_weights": (
        lambda q, k: nn.dot_product_attention_weights(q, k),
        lambda g: [g(2, 5, 2, 4)] * 2,
    ),
    "combine_masks": (lambda a, b: nn.combine_masks(a > 0, b > 0), lambda g: [g(2, 1, 5, 5)] * 2),
    "make_attention_mask": (lambda a, b: nn.make_attention_mask(a > 0, b > 0), lambda g: [g(2, 5)] * 2),
    "make_causal_mask": (lambda a: nn.make_causal_mask(a), lambda g: [g(2, 5)]),
}


def _rngs() -> nnx.Rngs:
    return nnx.Rngs(0, dropout=1, params=2, carry=3)


def _nnx_conv(cls: Any) -> list[Setting]:
    out = [
        Setting("3x3", lambda d: cls(6, 5, (3, 3), dtype=d, rngs=_rngs()), IMAGE),
        Setting("stride 2 valid", lambda d: cls(6, 5, (3, 2), (2, 2), padding="VALID", dtype=d, rngs=_rngs()), IMAGE),
        Setting("1d", lambda d: cls(8, 5, (3,), dtype=d, rngs=_rngs()), SEQUENCE),
    ]
    if cls is nnx.Conv:
        out.append(
            Setting("depthwise", lambda d: cls(6, 6, (3, 3), feature_group_count=6, dtype=d, rngs=_rngs()), IMAGE)
        )
    return out


def _nnx_cell(name: str) -> list[Setting]:
    cls = getattr(nnx, name)
    carry = lambda g: (g(2, 8), g(2, 8)) if "LSTM" in name else g(2, 8)
    return [
        Setting("step", lambda d: cls(6, 8, dtype=d, rngs=_rngs()), lambda g: [carry(g), g(2, 6)]),
        Setting("rnn", lambda d: nnx.RNN(cls(8, 8, dtype=d, rngs=_rngs()), rngs=_rngs()), SEQUENCE, True),
    ]


NNX: dict[str, list[Setting]] = {
    "BatchNorm": [
        Setting("inference", lambda d: nnx.BatchNorm(6, use_running_average=True, dtype=d, rngs=_rngs()), IMAGE),
        Setting("training", lambda d: nnx.BatchNorm(6, dtype=d, rngs=_rngs()), IMAGE, True),
    ],
    "Bidirectional": [
        Setting(
            "gru",
            lambda d: nnx.Bidirectional(
                nnx.RNN(nnx.GRUCell(8, 4, rngs=_rngs())), nnx.RNN(nnx.GRUCell(8, 4, rngs=_rngs())), rngs=_rngs()
            ),
            SEQUENCE,
            True,
        )
    ],
    "Conv": _nnx_conv(nnx.Conv),
    "ConvTranspose": _nnx_conv(nnx.ConvTranspose),
    "Dropout": [
        Setting("off", lambda d: nnx.Dropout(0.3, deterministic=True, rngs=_rngs()), IMAGE),
        Setting("on", lambda d: nnx.Dropout(0.3, rngs=_rngs()), IMAGE, True),
    ],
    "Einsum": [Setting("btd", lambda d: nnx.Einsum("btd,df->btf", (8, 5), (5,), dtype=d, rngs=_rngs()), SEQUENCE)],
    "Embed": [Setting("ids", lambda d: nnx.Embed(7, 5, dtype=d, rngs=_rngs()), IDS)],
    **{n: _nnx_cell(n) for n in ("GRUCell", "LSTMCell", "OptimizedLSTMCell", "SimpleCell")},
    "GroupNorm": [Setting("3 groups", lambda d: nnx.GroupNorm(6, 3, dtype=d, rngs=_rngs()), IMAGE)],
    "InstanceNorm": [Setting("image", lambda d: nnx.InstanceNorm(6, dtype=d, rngs=_rngs()), IMAGE)],
    "LayerNorm": [Setting("sequence", lambda d: nnx.LayerNorm(8, dtype=d, rngs=_rngs()), SEQUENCE)],
    "Linear": [
        Setting("rows", lambda d: nnx.Linear(6, 5, dtype=d, rngs=_rngs()), ROWS),
        Setting("vector", lambda d: nnx.Linear(6, 5, dtype=d, rngs=_rngs()), lambda g: [g(6)]),
    ],
    "LinearGeneral": [
        Setting("two axes", lambda d: nnx.LinearGeneral((5, 8), (2, 3), axis=(-2, -1), dtype=d, rngs=_rngs()), SEQUENCE)
    ],
    "LoRA": [Setting("rank 2", lambda d: nnx.LoRA(6, 2, 5, rngs=_rngs()), ROWS)],
    "LoRALinear": [Setting("rank 2", lambda d: nnx.LoRALinear(6, 5, lora_rank=2, rngs=_rngs()), ROWS)],
    "MultiHeadAttention": [
        Setting("self", lambda d: nnx.MultiHeadAttention(2, 8, dtype=d, decode=False, rngs=_rngs()), SEQUENCE),
        Setting(
            "dropout",
            lambda d: nnx.MultiHeadAttention(
                2, 8, dropout_rate=0.2, deterministic=False, decode=False, dtype=d, rngs=_rngs()
            ),
            SEQUENCE,
            True,
        ),
    ],
    "PReLU": [Setting("rows", lambda d: nnx.PReLU(), ROWS)],
    "RMSNorm": [Setting("sequence", lambda d: nnx.RMSNorm(8, dtype=d, rngs=_rngs()), SEQUENCE)],
    "RNN": [
        Setting(
            "reverse", lambda d: nnx.RNN(nnx.GRUCell(8, 6, rngs=_rngs()), reverse=True, rngs=_rngs()), SEQUENCE, True
        )
    ],
    "Sequential": [
        Setting(
            "mlp",
            lambda d: nnx.Sequential(nnx.Linear(6, 8, rngs=_rngs()), nnx.relu, nnx.Linear(8, 3, rngs=_rngs())),
            ROWS,
        )
    ],
    "SpectralNorm": [
        Setting("linear", lambda d: nnx.SpectralNorm(nnx.Linear(6, 5, rngs=_rngs()), rngs=_rngs()), ROWS, True)
    ],
    "WeightNorm": [Setting("linear", lambda d: nnx.WeightNorm(nnx.Linear(6, 5, rngs=_rngs()), rngs=_rngs()), ROWS)],
}


def layers(kind: str) -> list[str]:
    """The names of all layer classes of flax.linen or flax.nnx."""
    module: Any = nn if kind == "linen" else nnx
    base = module.Module
    classes = {n: getattr(module, n) for n in sorted(dir(module))}
    return [n for n, c in classes.items() if isinstance(c, type) and issubclass(c, base) and n not in NOT_LAYERS]


def cases(kind: str) -> Iterator[Case]:
    table, made = (LINEN, _linen) if kind == "linen" else (NNX, _nnx)
    modes = ("fwd", "bind", "grad", "vjp", *(("module",) if kind == "nnx" else ()))
    for dtype in ("float32", "bfloat16", "float16"):
        for name in layers(kind):
            if name not in table:
                yield Case(f"{kind}.{name}", lambda: None)
                continue
            for setting in table[name]:
                for mode in modes if dtype == "float32" else ("fwd", "grad"):
                    yield Case(
                        f"{kind}.{name}/{setting.label}/{dtype}/{mode}", functools.partial(made, setting, dtype, mode)
                    )
    if kind == "linen":
        yield from _functions()


def _functions() -> Iterator[Case]:
    for name, (fn, inputs) in LINEN_FUNCTIONS.items():
        for mode, of in (("fwd", lambda f, a: f), ("grad", gradient), ("vjp", pullback)):
            yield Case(f"linen.{name}/{mode}", functools.partial(_function, fn, inputs, of))


def _function(fn: Any, inputs: Inputs, of: Any) -> Made:
    args = list(inputs(Given(seed=5)))
    return Made(of(fn, args), args, {})


def _linen(s: Setting, dtype: str, mode: str) -> Made:
    g = Given(dtype, seed=3)
    module, args = s.make(jnp.dtype(dtype)), list(s.inputs(g))
    texts = [a for a in args if isinstance(a, str)]
    args = [a for a in args if not isinstance(a, str)]
    rngs = {"params": jax.random.key(0), "dropout": jax.random.key(1), "carry": jax.random.key(2)}
    variables = (
        jax.jit(functools.partial(module.init, **s.call), static_argnums=())(rngs, *texts, *args)
        if not texts
        else module.init(rngs, *texts, *args)
    )

    def apply(made: Any) -> Callable[..., Any]:
        def run(variables: Any, key: Any, *xs: Any) -> Any:
            how = {"rngs": {"dropout": key, "params": key, "carry": key}, "mutable": True} if s.train else {}
            return made.apply(variables, *texts, *xs, **how, **s.call)

        return run

    made = functools.partial(_mode, args=[variables, jax.random.key(4), *args], mode=mode, params_of=_params_of)
    return made(apply(module))._replace(wide=made(apply(s.make(jnp.float64))).fn)


def _params_of(variables: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(what is differentiated, a function that puts it back)."""
    rest = {k: v for k, v in variables.items() if k != "params"}
    return variables.get("params", {}), lambda p: {**rest, "params": p} if p else rest


def _nnx(s: Setting, dtype: str, mode: str) -> Made:
    g = Given(dtype, seed=3)
    model, args = s.make(jnp.dtype(dtype)), list(s.inputs(g))
    if mode == "module":
        return Made(lambda m, *xs: m(*xs), [model, *args], {})
    _, params, rest = nnx.split(model, nnx.Param, ...)

    def apply(made: Any) -> Callable[..., Any]:
        graph = nnx.graphdef(made)

        def run(state: Any, key: Any, *xs: Any) -> Any:
            m = nnx.merge(graph, *state)
            out = m(*xs)
            return (out, nnx.state(m)) if s.train else out

        return run

    made = functools.partial(_mode, args=[(params, rest), jax.random.key(4), *args], mode=mode, params_of=_state_of)
    return made(apply(model))._replace(wide=made(apply(s.make(jnp.float64))).fn)


def _state_of(state: Any) -> tuple[Any, Callable[[Any], Any]]:
    """As `_params_of`; the variables are made anew where they are put back, so that they belong to the inner trace."""
    params, rest = state
    return params, lambda p: (p, jax.tree.map(lambda v: v, rest))


def _mode(run: Callable[..., Any], args: list[Any], mode: str, params_of: Callable[[Any], tuple[Any, Any]]) -> Made:
    """`args`: the weights, a key, then inputs."""
    if mode == "fwd":
        return Made(run, args, {})
    if mode == "bind":
        return Made(run, args, {"bound": 1})
    of = gradient if mode == "grad" else pullback

    def inner(state: Any, key: Any, *xs: Any) -> Any:
        params, put = params_of(state)
        call = lambda p, *ys: run(put(p), key, *ys)
        return of(call, [params, *xs])(params, *xs)

    return Made(inner, args, {})
