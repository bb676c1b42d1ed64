"""Llama and its relatives (Mistral, Qwen2, Qwen3, Mixtral, Qwen3-MoE) from Transformers' configurations and files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from flax.typing import VariableDict

from .decoder import Decoder, Rope, Step
from .moe import Routing
from .weights import load as load_weights

#: model_type -> layers that always have a bias
KINDS = {"llama": (), "mistral": (), "qwen2": ("query", "key", "value"), "qwen3": (), "mixtral": (), "qwen3_moe": ()}
ATTENTION, MLP = ("query", "key", "value", "out"), ("gate", "up", "down")
LENGTH = 2048  # positions of a cache, where nobody says how many

Config = Mapping[str, object]
Path = str | os.PathLike[str]


def from_config(config: Config | Path, length: int | None = None, rows: bool = False) -> Decoder:
    """The module of a Transformers configuration: its dict, its config.json, or the folder with that.

    `length`: positions of the cache; what the model was trained for, but at most 2048, by default. `rows`: kernels are
    [out, in] as in the files (see `load`). Raises `ValueError` that names the first entry that is missing or unknown.
    """
    config = config if isinstance(config, Mapping) else read_config(config)
    kind = config.get("model_type")
    if kind not in KINDS:
        raise ValueError(f"models.llama: got a configuration of model_type {kind!r}; valid are {', '.join(KINDS)}.")
    if config.get("hidden_act", "silu") != "silu":
        raise ValueError(f"models.llama: got hidden_act {config['hidden_act']!r}; valid is 'silu'.")
    trained = _whole(config, "max_position_embeddings", LENGTH)
    length = _length(config, min(trained, LENGTH) if length is None else length, trained)
    heads = _whole(config, "num_attention_heads")
    width, groups = _whole(config, "hidden_size"), _whole(config, "num_key_value_heads", heads)
    dim = _whole(config, "head_dim", width // heads)
    if heads % groups or dim % 2:
        raise ValueError(
            f"models.llama: got {heads} heads of {dim} channels and {groups} groups of keys; valid is a number of heads"
            " that the groups divide, and an even number of channels."
        )
    attention = ATTENTION if config.get("attention_bias") else KINDS[kind]  # type: ignore[index]
    return Decoder(
        vocabulary=_whole(config, "vocab_size"),
        width=width,
        depth=_whole(config, "num_hidden_layers"),
        heads=heads,
        groups=groups,
        hidden=_whole(config, "intermediate_size"),
        length=length,
        dim=dim,
        rope=_rope(config),
        epsilon=_number(config, "rms_norm_eps", 1e-6),
        biases=(*attention, *(MLP if config.get("mlp_bias") else ())),
        tied=bool(config.get("tie_word_embeddings", False)),
        normed=kind in ("qwen3", "qwen3_moe"),
        routing=_routing(config),
        rows=rows,
    )


def load(folder: Path, length: int | None = None, rows: bool = False) -> tuple[Decoder, VariableDict]:
    """(module, its variables) of a folder with config.json and model.safetensors, or its parts and their index.

    The variables are NumPy views of the mapped files in the files' types: nothing is read before it is used, as by
    `jax.device_put`. Kernels are transposed views, which a device gets in Flax's order; with `rows` they lie as in the
    file, so that one that begins at a multiple of 64 bytes is not copied on the CPU either. Raises `ValueError` that
    says what does not fit (see `models.load` and `from_config`).
    """
    module = from_config(folder, length, rows)
    return module, load_weights(module, folder, example(module), mapped=True)


def example(module: Decoder) -> Step:
    """Shapes and types of a step of one token."""
    return jax.eval_shape(lambda: Step(jnp.zeros((1, 1), jnp.int32), module.empty_cache(1, 1), jnp.int32(0)))


def read_config(path: Path) -> Config:
    """What config.json says: the file, or one in a folder. Raises `ValueError` that names a file that is none."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"models.llama: got a configuration of type {type(path).__name__}; valid is a dict or a path.")
    name = os.fspath(path)
    name = os.path.join(name, "config.json") if os.path.isdir(name) else name
    try:
        with open(name, encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError, RecursionError) as e:
        raise ValueError(
            f"models.llama: got {name!r}, which cannot be read ({e}); valid is Transformers' config.json."
        ) from None
    if not isinstance(config, dict):
        raise ValueError(f"models.llama: got {name!r}, which holds no JSON object; valid is Transformers' config.json.")
    return config


def _whole(config: Config, key: str, default: int | None = None) -> int:
    """A whole number above 0."""
    value = config.get(key)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"models.llama: got {key} {value!r} in the configuration; valid is a whole number above 0.")
    return value


def _number(config: Config, key: str, default: float | None = None) -> float:
    """A finite number above 0."""
    value = config.get(key)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"models.llama: got {key} {value!r} in the configuration; valid is a number above 0.")
    return float(value)


def _length(config: Config, length: int, trained: int) -> int:
    """Checks the cache's positions. A window that is as long as the cache sees all of it."""
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= trained:
        raise ValueError(f"models.llama: got length={length!r}; valid are 1 to {trained} positions, as it was trained.")
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    if window is not None and _whole(config, "sliding_window") < length:
        raise ValueError(f"models.llama: got length={length} and sliding_window {window}; valid is at most the window.")
    return length


def _rope(config: Config) -> Rope:
    """Periods by Transformers' rope_theta and rope_scaling, or rope_parameters, which has both."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(scaling, Mapping):
        raise ValueError(f"models.llama: got rope_scaling of type {type(scaling).__name__}; valid is a JSON object.")
    theta = _number(scaling if "rope_theta" in scaling else config, "rope_theta", 10000.0)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return Rope(theta)
    if kind == "linear":
        return Rope(theta, _number(scaling, "factor"))
    if kind == "llama3":
        factor, low, high = (_number(scaling, key) for key in ("factor", "low_freq_factor", "high_freq_factor"))
        rope = Rope(theta, factor, low, high, _whole(scaling, "original_max_position_embeddings"))
        if rope.low < rope.high:
            return rope
    raise ValueError(
        f"models.llama: got rope_scaling {dict(scaling)!r}; valid are the types default, linear and llama3, the last"
        " with low_freq_factor below high_freq_factor."
    )


def _routing(config: Config) -> Routing | None:
    kind = config["model_type"]
    if kind not in ("mixtral", "qwen3_moe"):
        return None
    if config.get("mlp_only_layers") or _whole(config, "decoder_sparse_step", 1) != 1:
        raise ValueError(
            "models.llama: got layers without experts (mlp_only_layers); valid are experts in every layer."
        )
    mixtral = kind == "mixtral"
    count = "num_local_experts" if mixtral or "num_experts" not in config else "num_experts"  # by Transformers' version
    experts, chosen = _whole(config, count), _whole(config, "num_experts_per_tok")
    if chosen > experts:
        raise ValueError(f"models.llama: got {chosen} experts a token of {experts}; valid are 1 to {experts}.")
    hidden = _whole(config, "intermediate_size" if mixtral else "moe_intermediate_size")
    return Routing(experts, chosen, hidden, mixtral or bool(config.get("norm_topk_prob", False)))
