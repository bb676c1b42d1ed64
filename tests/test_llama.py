"""Llama and its relatives from Transformers' files: scores and tokens against a plain float64 NumPy decoder."""

from __future__ import annotations

import functools
import json
import pathlib
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec import models
from xcoexec.codegen.kernels.kept_weights import as_cast
from xcoexec.models import generate, moe
from xcoexec.models.decoder import Decoder, Step
from xcoexec.tools.zoo_graphs import model_graph

from .support import quick_process

pytestmark = pytest.mark.usefixtures("quick_xla")

ROOT = pathlib.Path(__file__).parent.parent
HOST = functools.partial(xcoexec.jit, strategy="host")
SMALL = {
    **{"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5},
}
LLAMA3 = {
    **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "original_max_position_embeddings": 16,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**SMALL, "model_type": "llama", "rope_theta": 5e5, "rope_scaling": LLAMA3},
    "qwen2": {**SMALL, "model_type": "qwen2", "rope_theta": 1e6, "tie_word_embeddings": True},
    "qwen3": {
        **{**SMALL, "model_type": "qwen3", "head_dim": 12, "attention_bias": True},
        "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4},
    },
    "mixtral": {**SMALL, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {
        **{**SMALL, "model_type": "qwen3_moe", "num_experts": 9, "num_experts_per_tok": 3},
        "moe_intermediate_size": 24,
    },
}
PARTS = ("qwen2", "mixtral")  # files in two parts with an index
PROMPT = [5, 63, 0, 17, 17, 42, 8, 30, 1]

# -- the slow way: a Llama in float64, straight from a file's tensors -----------------------------------------------

Tensors = dict[str, np.ndarray]


def _shapes(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of Transformers' tensors."""
    width, kind = config["hidden_size"], config["model_type"]
    dim = config.get("head_dim", width // config["num_attention_heads"])
    q, kv = dim * config["num_attention_heads"], dim * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    yield "model.norm.weight", (width,)
    if not config.get("tie_word_embeddings"):
        yield "lm_head.weight", (config["vocab_size"], width)
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{at}{name}.weight", (width,)
        for name, out, k in (("q", q, width), ("k", kv, width), ("v", kv, width), ("o", width, q)):
            yield f"{at}self_attn.{name}_proj.weight", (out, k)
            if config.get("attention_bias") or (kind == "qwen2" and name != "o"):
                yield f"{at}self_attn.{name}_proj.bias", (out,)
        if kind.startswith("qwen3"):
            yield from ((f"{at}self_attn.{name}_norm.weight", (dim,)) for name in ("q", "k"))
        count, router, names, hidden = _mlps(config)
        if router:
            yield at + router, (count, width)
        for name in (name.format(e) for e in range(count) for name in names[:2]):
            yield at + name, (hidden, width)
        for e in range(count):
            yield at + names[2].format(e), (width, hidden)


def _mlps(config: dict[str, Any]) -> tuple[int, str, tuple[str, ...], int]:
    """Networks of a layer: how many, the router's name, their gate's, up's and down's names, and their channels."""
    if config["model_type"] == "mixtral":
        at = "block_sparse_moe."
        names = tuple(f"{at}experts.{{}}.{w}.weight" for w in ("w1", "w3", "w2"))
        return config["num_local_experts"], f"{at}gate.weight", names, config["intermediate_size"]
    sparse = config["model_type"] == "qwen3_moe"
    at = "mlp.experts.{}." if sparse else "mlp."
    names = tuple(f"{at}{p}_proj.weight" for p in ("gate", "up", "down"))
    if sparse:
        return config["num_experts"], "mlp.gate.weight", names, config["moe_intermediate_size"]
    return 1, "", names, config["intermediate_size"]


def _tensors(config: dict[str, Any], dtype: Any = np.float32) -> Tensors:
    rng = np.random.default_rng(1)
    return {
        name: (rng.uniform(0.5, 1.5, shape) if "norm" in name else rng.normal(0, 0.3, shape)).astype(dtype)
        for name, shape in _shapes(config)
    }


def _norm(x: np.ndarray, scale: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * scale


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _frequencies(config: dict[str, Any], dim: int) -> np.ndarray:
    """Radians a position, as Transformers' `modeling_rope_utils` computes them."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = scaling.get("rope_theta", config.get("rope_theta", 10000.0))
    f = theta ** -(np.arange(0, dim, 2) / dim)
    if scaling.get("rope_type") == "linear":
        return f / scaling["factor"]
    if scaling.get("rope_type") == "llama3":
        low, high, old = (scaling[k] for k in list(LLAMA3)[2:])
        for i, wave in enumerate(2 * np.pi / f):
            if wave > old / low:
                f[i] /= scaling["factor"]
            elif wave >= old / high:
                smooth = (old / wave - low) / (high - low)
                f[i] = (1 - smooth) * f[i] / scaling["factor"] + smooth * f[i]
    return f


def slow(config: dict[str, Any], tensors: Tensors, tokens: list[int]) -> np.ndarray:
    """Scores [T, vocabulary] of all tokens at once, without a cache."""
    t = {name: x.astype(np.float64) for name, x in tensors.items()}
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config.get("head_dim", config["hidden_size"] // heads)
    turned = np.arange(len(tokens))[:, None, None] * _frequencies(config, dim)

    def rotated(x: np.ndarray) -> np.ndarray:
        z = (x[..., : dim // 2] + 1j * x[..., dim // 2 :]) * np.exp(1j * turned)
        return np.concatenate([z.real, z.imag], -1)

    x = t["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        y = _norm(x, t[f"{at}input_layernorm.weight"], config)
        q, k, v = (
            (y @ t[f"{at}self_attn.{n}_proj.weight"].T + t.get(f"{at}self_attn.{n}_proj.bias", 0)).reshape(
                len(tokens), -1, dim
            )
            for n in "qkv"
        )
        if config["model_type"].startswith("qwen3"):
            q, k = (_norm(z, t[f"{at}self_attn.{n}_norm.weight"], config) for n, z in (("q", q), ("k", k)))
        q, k, v = rotated(q), *(np.repeat(z, heads // groups, 1) for z in (rotated(k), v))
        scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(dim)
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
        y = np.einsum("hts,shd->thd", _softmax(scores), v).reshape(len(tokens), -1)
        x = x + y @ t[f"{at}self_attn.o_proj.weight"].T + t.get(f"{at}self_attn.o_proj.bias", 0)
        x = x + _mlp(config, t, at, _norm(x, t[f"{at}post_attention_layernorm.weight"], config))
    head = t["model.embed_tokens.weight" if config.get("tie_word_embeddings") else "lm_head.weight"]
    return _norm(x, t["model.norm.weight"], config) @ head.T


def _mlp(config: dict[str, Any], t: Tensors, at: str, x: np.ndarray) -> np.ndarray:
    _, router, names, _ = _mlps(config)
    out = np.zeros_like(x)
    for row, y in zip(out, x, strict=True):
        shares = _softmax(y @ t[at + router].T) if router else np.ones(1)
        best = np.argsort(-shares)[: config.get("num_experts_per_tok", 1)]
        total = 1.0 if config["model_type"] == "qwen3_moe" else shares[best].sum()
        for e in best:
            gate, up, down = (t[at + name.format(e)] for name in names)
            g = gate @ y
            row += shares[e] / total * (down @ (g / (1 + np.exp(-g)) * (up @ y)))
    return out


# -- files ------------------------------------------------------------------------------------------------------------


def _write(folder: pathlib.Path, kind: str, dtype: Any = np.float32) -> Tensors:
    """A folder as Transformers saves it, by the format's own writer."""
    from safetensors.numpy import save_file

    folder.mkdir()
    tensors = _tensors(CONFIGS[kind], dtype)
    (folder / "config.json").write_text(json.dumps(CONFIGS[kind]))
    if kind not in PARTS:
        save_file(tensors, folder / "model.safetensors")
        return tensors
    names = sorted(tensors)
    where = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
    for part in set(where.values()):
        save_file({name: tensors[name] for name in names if where[name] == part}, folder / part)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return tensors


def _scores(kind: str, module: Decoder, variables: Any, jit: Callable[..., Any], tokens: list[int]) -> np.ndarray:
    step = Step(jnp.asarray([tokens]), module.empty_cache(1), jnp.int32(0))
    return np.asarray(jit(module.apply)(variables, step)[0][0])


def _error(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize("kind", CONFIGS)
def test_scores_and_tokens_are_those_of_float64(kind: str, tmp_path: pathlib.Path) -> None:
    """A file's scores at once, and greedy tokens step by step, from `jax.jit` and with all that has kernels on the
    host half.
    """
    tensors = _write(tmp_path / kind, kind)
    module, variables = models.llama.load(tmp_path / kind, rows=kind == "qwen3")
    assert module.length == 128
    tokens = list(PROMPT)
    for _ in range(12):
        tokens.append(int(slow(CONFIGS[kind], tensors, tokens)[-1].argmax()))
    want, variables = slow(CONFIGS[kind], tensors, tokens), jax.device_put(variables)
    for jit in (jax.jit, HOST):
        assert _error(_scores(kind, module, variables, jit, tokens), want) < 2e-5
    for jit in (jax.jit, HOST) if kind == "llama" else (HOST,):
        generator = models.Generator(module, variables, length=24, jit=jit, chunk=4)
        assert list(generator(PROMPT, 12)) == tokens[len(PROMPT) :]


def test_files_are_mapped(tmp_path: pathlib.Path) -> None:
    """bf16 tensors stay views of the file, in its type; a device gets their values, in either order of the kernels."""
    tensors = _write(tmp_path / "m", "llama", jnp.bfloat16)
    config = CONFIGS["llama"]
    want = slow(config, tensors, PROMPT)
    for rows in (False, True):
        module, variables = models.llama.load(tmp_path / "m", rows=rows)
        leaves = jax.tree_util.tree_leaves(variables)
        assert len(leaves) == len(tensors) and all(x.dtype == jnp.bfloat16 for x in leaves)
        assert all(_mapped(x) and not x.flags.writeable for x in leaves)
        assert _error(_scores("llama", module, jax.device_put(variables), HOST, PROMPT), want) < 2e-5


def _mapped(x: Any) -> bool:
    while x is not None and not isinstance(x, np.memmap):
        x = x.base
    return x is not None


@pytest.mark.parametrize("rows", [False, True])
def test_dense_layers_may_narrow_what_they_multiply(rows: bool, tmp_path: pathlib.Path) -> None:
    """With a `dtype` of bf16 scores keep its digits; without one those of f32, from the same weights of bf16."""
    tensors = _write(tmp_path / "m", "qwen2", jnp.bfloat16)
    module, variables = models.llama.load(tmp_path / "m", rows=rows)
    want, variables = slow(CONFIGS["qwen2"], tensors, PROMPT), jax.device_put(variables)
    for dtype, least, most in ((None, 0.0, 2e-5), (jnp.bfloat16, 1e-4, 3e-2)):
        narrow = module.copy(dtype=dtype)
        for jit in (jax.jit, HOST):
            assert least <= _error(_scores("qwen2", narrow, variables, jit, PROMPT), want) < most


def test_a_tied_head_may_lie_in_the_file_too(tmp_path: pathlib.Path) -> None:
    config = CONFIGS["qwen2"]
    tensors = _tensors(config)
    module = models.llama.from_config(config, length=16)
    step = models.llama.example(module)
    both = [models.convert(module, t, step) for t in (tensors, {**tensors, "lm_head.weight": np.ones((64, 32))})]
    assert jax.tree_util.tree_all(jax.tree_util.tree_map(np.array_equal, *both))


# -- bad input --------------------------------------------------------------------------------------------------------


def _sealed(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _entry(begin: int, end: int, shape: Any = (4,), dtype: Any = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


HOSTILE = {
    "its header claims 1152921504606846976 bytes of a file of 10": struct.pack("<Q", 1 << 60) + b"{}",
    "its header claims 64 bytes of a file of 12": struct.pack("<Q", 64) + b"{}{}",
    "it has 3 bytes, fewer than the 8": b"abc",
    r"'b' from 8 on overlap another tensor's, which end at 16": _sealed(
        {"a": _entry(0, 16), "b": _entry(8, 24)}, bytes(24)
    ),
    r"'a' is at \[0, 16\] of 7 bytes": _sealed({"a": _entry(0, 16)}, bytes(7)),
    r"'a' is at \[16, 0\] of 16 bytes": _sealed({"a": _entry(16, 0)}, bytes(16)),
    r"'a' has the data_offsets \[-8, 8\]": _sealed({"a": _entry(-8, 8)}, bytes(16)),
    r"'a' has 16 bytes for F32\[1099511627776\]": _sealed({"a": _entry(0, 16, [1 << 40])}, bytes(16)),
    r"'a' has the shape \[True\]": _sealed({"a": _entry(0, 16, [True])}, bytes(16)),
    "'a' has the shape 4": _sealed({"a": _entry(0, 16, 4)}, bytes(16)),
    r"'a' is of type \['F32'\]": _sealed({"a": _entry(0, 16, dtype=["F32"])}, bytes(16)),
    "'a' has no entry": _sealed({"a": None}),
    "its header is no JSON object": _sealed([1]),
    "its header has a name twice": _sealed(b'{"a": {}, "a": {}}'),
    "cannot be read": _sealed(b"[" * 200_000),
    "codec can't decode": _sealed(b"\xff\xfe"),
}


@pytest.mark.parametrize("text", HOSTILE)
def test_headers_that_lie(text: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(HOSTILE[text])
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"]))
    with pytest.raises(ValueError, match=rf"models\.load: got .*{text}") as caught:
        models.llama.load(tmp_path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_an_index_that_lies(tmp_path: pathlib.Path) -> None:
    _write(tmp_path / "m", "mixtral")
    index = tmp_path / "m" / "model.safetensors.index.json"
    where = json.loads(index.read_text())["weight_map"]
    for change, text in (
        ({"lm_head.weight": "../m/model.safetensors"}, "got a part '../m/model.safetensors'"),
        ({"lm_head.weight": 3}, "cannot be read"),
        ({"lm_head.weight": "other.safetensors"}, r"other\.safetensors'; there is no such file"),
        ({"lm_head.bias": where["lm_head.weight"]}, r"by which 'lm_head\.bias' is in"),
    ):
        index.write_text(json.dumps({"weight_map": {**where, **change}}))
        with pytest.raises(ValueError, match=rf"models\.load: .*{text}"):
            models.llama.load(tmp_path / "m")
    del where["model.layers.1.block_sparse_moe.experts.3.w2.weight"]
    index.write_text(json.dumps({"weight_map": where}))
    with pytest.raises(ValueError, match=r"got no tensor of 'model\.layers\.1' for params/experts_1/down"):
        models.llama.load(tmp_path / "m")
    index.write_text("[]")
    with pytest.raises(ValueError, match="valid is an index with a weight_map"):
        models.llama.load(tmp_path / "m")


def test_tensors_that_do_not_fit() -> None:
    module = models.llama.from_config(CONFIGS["llama"], length=8)
    step, tensors = models.llama.example(module), _tensors(CONFIGS["llama"])
    name = "model.layers.1.self_attn.k_proj"
    for change, text in (
        ({f"{name}.weight": None}, rf"got no tensor of '{name}' for params/Attention_1/key/kernel"),
        ({f"{name}.weight": np.ones((8, 32))}, rf"got '{name}' of shape \(32, 8\) .* valid is \(32, 16\)"),
        ({f"{name}.bias": np.ones(16)}, rf"got '{name}' with a bias; this model has none there"),
        ({"model.layers.2.mlp.up_proj.weight": np.ones(3)}, r"got a tensor 'model\.layers\.2\.mlp\.up_proj\.weight'"),
    ):
        changed = {k: x for k, x in {**tensors, **change}.items() if x is not None}
        with pytest.raises(ValueError, match=rf"models\.convert: {text}"):
            models.convert(module, changed, step, mapped=True)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2'; valid are llama, mistral"),
        ({"hidden_size": None}, "hidden_size None in the configuration; valid is a whole number"),
        ({"num_hidden_layers": 2.5}, "num_hidden_layers 2.5"),
        ({"rms_norm_eps": 0}, "rms_norm_eps 0 "),
        ({"num_key_value_heads": 3}, "4 heads of 8 channels and 3 groups"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'; valid is 'silu'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "valid are the types default, linear and llama3"),
        ({"rope_scaling": {**LLAMA3, "high_freq_factor": 1.0}}, "low_freq_factor below high_freq_factor"),
        ({"rope_scaling": 3}, "rope_scaling of type int"),
        ({"model_type": "mistral", "sliding_window": 64}, "length=128 and sliding_window 64"),
        ({"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 3}, "3 experts a token of 2"),
    ],
)
def test_configurations_that_are_none(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=rf"models\.llama: got .*{text}"):
        models.llama.from_config({**CONFIGS["llama"], **change})


def test_configurations_from_files(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS["llama"]))
    assert (
        models.llama.from_config(path)
        == models.llama.from_config(tmp_path)
        == models.llama.from_config(CONFIGS["llama"])
    )
    with pytest.raises(ValueError, match="got length=129; valid are 1 to 128 positions"):
        models.llama.from_config(path, length=129)
    for text in ("[]", "{", "[" * 200_000):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"models\.llama: got .*valid is Transformers' config\.json"):
            models.llama.from_config(path)
    for bad in (3, str(tmp_path / "nowhere")):
        with pytest.raises(ValueError, match=r"models\.llama: got .*valid is"):
            models.llama.from_config(bad)  # type: ignore[arg-type]


# -- experts ----------------------------------------------------------------------------------------------------------


def test_both_ways_of_experts_are_the_same_sum() -> None:
    rng = np.random.default_rng(2)
    routing = moe.Routing(5, 2, 12)
    matrices = [rng.standard_normal(s).astype(np.float32) for s in ((5, 8, 12), (5, 8, 12), (5, 12, 8))]
    x, scores = (rng.standard_normal(s).astype(np.float32) for s in ((7, 8), (7, 5)))
    weights, index = moe.route(jnp.asarray(scores), routing)
    want = np.zeros((7, 8))
    for m in range(7):
        best = np.argsort(-scores[m])[:2]
        assert list(index[m]) == list(best)
        for e, share in zip(best, _softmax(scores[m][best].astype(np.float64)), strict=True):
            gate, up, down = (w[e].astype(np.float64) for w in matrices)
            g = x[m] @ gate
            want[m] += share * (g / (1 + np.exp(-g)) * (x[m] @ up) @ down)
    given = (jnp.asarray(x), weights, index, tuple(map(jnp.asarray, matrices)))
    for way in (moe.gathered, moe.one_by_one):
        for jit in (jax.jit, HOST):
            assert _error(np.asarray(jit(way)(*given)), want) < 1e-5


# -- the loop ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> tuple[Decoder, Any]:
    """A module and its variables."""
    config = CONFIGS["llama"]
    module = models.llama.from_config(config, length=48)
    return module, models.convert(module, _tensors(config), models.llama.example(module))


def test_a_prompt_that_begins_the_same_is_not_computed_again(small: tuple[Decoder, Any]) -> None:
    module, variables = small
    generator, fresh = (models.Generator(module, variables, chunk=4) for _ in range(2))
    short = list(fresh([*PROMPT[:4], 3], 5))
    first = list(generator(PROMPT, 8))
    assert generator.stats.reused == 0 and generator.stats.prompt == 9 and generator.stats.tokens == 8
    assert generator.stats.first_seconds > 0 and generator.stats.tokens_per_second > 0
    steps = []
    inner, generator._step = generator._step, lambda *a: (steps.append(a[1].shape), inner(*a))[1]
    again = [*PROMPT, *first, 7, 9]
    got = list(generator(again, 5))
    assert generator.stats.reused == len(PROMPT) + 7  # the last token of a stream has no keys yet
    assert steps[0] == (1, 4) and len(steps) == 1 + 4
    assert got == list(fresh(again, 5)) and fresh.stats.reused == 4
    assert list(generator([*PROMPT[:4], 3], 5)) == short
    assert generator.stats.reused == 4


def test_prompts_up_to_the_end_of_the_cache(small: tuple[Decoder, Any]) -> None:
    """Pieces that reach beyond the last position change nothing."""
    module, variables = small
    tokens = [int(t) for t in np.random.default_rng(3).integers(0, 64, 47)]
    want = int(slow(CONFIGS["llama"], _tensors(CONFIGS["llama"]), tokens)[-1].argmax())
    for chunk in (5, 32, 64):
        assert list(models.Generator(module, variables, chunk=chunk)(tokens, 1)) == [want]


def test_streams_end_at_a_stop_token_and_with_a_newer_one(small: tuple[Decoder, Any]) -> None:
    generator = models.Generator(*small, chunk=4)
    tokens = list(generator(PROMPT, 10))
    stop = tokens[4]
    assert list(generator(PROMPT, 10, stop=[stop])) == tokens[: tokens.index(stop) + 1]
    one = generator(PROMPT, 10)
    assert next(one) == tokens[0]
    assert list(generator(PROMPT, 3)) == tokens[:3]
    with pytest.raises(RuntimeError, match=r"models\.Generator: got a stream whose cache a newer one has taken"):
        next(one)


def test_a_step_that_begins_ahead_changes_no_token(small: tuple[Decoder, Any]) -> None:
    """Nor what the cache is known to hold, where a stream ends by itself, at a stop token, or is left by its caller."""
    plain, ahead = models.Generator(*small, chunk=4, ahead=False), models.Generator(*small, chunk=4, ahead=True)
    assert models.Generator(*small)._ahead == (jax.default_backend() != "cpu")
    tokens = list(plain(PROMPT, 10))
    steps = []
    inner, ahead._step = ahead._step, lambda *a: (steps.append(a[1].shape), inner(*a))[1]
    assert list(ahead(PROMPT, 10)) == tokens
    assert len(steps) == 3 + 9, "none behind the last token"
    given: dict[str, Any] = {"temperature": 1.5, "key": jax.random.key(5)}
    assert list(ahead(PROMPT, 10, **given)) == list(plain(PROMPT, 10, **given))
    stop = tokens[4]
    ended = tokens[: tokens.index(stop) + 1]
    assert list(ahead(PROMPT, 10, stop=[stop])) == ended and ahead._held == [*PROMPT, *ended]
    left = ahead(PROMPT, 10)
    assert [next(left), next(left)] == tokens[:2] and ahead._held == [*PROMPT, *tokens[:2]]
    again = [*PROMPT, *tokens[:2], 7]
    assert list(ahead(again, 5)) == list(models.Generator(*small, chunk=4)(again, 5))
    assert ahead.stats.reused == len(again) - 1
    with pytest.raises(RuntimeError, match="a newer one has taken"):
        next(left)


def test_a_step_that_fails_costs_the_cache_alone(small: tuple[Decoder, Any]) -> None:
    generator = models.Generator(*small, chunk=4)
    tokens = list(generator(PROMPT, 5))
    inner = generator._step

    def fails(*_: object) -> None:
        raise MemoryError

    generator._step = fails
    with pytest.raises(MemoryError):
        list(generator(PROMPT, 5))
    generator._step = inner
    assert list(generator(PROMPT, 5)) == tokens and generator.stats.reused == 0


def test_many_tokens_leave_no_arrays(small: tuple[Decoder, Any]) -> None:
    generator = models.Generator(*small, chunk=4)
    stream = generator(PROMPT, 39)
    for _ in range(8):
        next(stream)
    before = len(jax.live_arrays())
    assert len(list(stream)) == 31 and len(jax.live_arrays()) <= before


def test_sampling(small: tuple[Decoder, Any]) -> None:
    """Draws repeat with their key, keep to the likeliest tokens, and follow the probabilities."""
    generator, key = models.Generator(*small, chunk=4), jax.random.key(5)
    drawn = list(generator(PROMPT, 20, temperature=1.5, key=key))
    assert drawn == list(generator(PROMPT, 20, temperature=1.5, key=key))
    assert drawn != list(generator(PROMPT, 20, temperature=1.5, key=jax.random.key(6)))
    greedy = list(generator(PROMPT, 20))
    for given in ({"top_k": 1}, {"top_p": 1e-6}):
        assert greedy == list(generator(PROMPT, 20, temperature=2.0, key=key, **given))
    chances = np.array([0.05, 0.4, 0.25, 0.3])
    scores = jnp.log(jnp.asarray(chances, jnp.float32))
    for given, kept in (({}, [0, 1, 2, 3]), ({"top_k": 3}, [1, 2, 3]), ({"top_p": 0.65}, [1, 3])):
        pick = jax.jit(functools.partial(generate._pick, generate.Sampling(1.0, key=key, **given)))
        counts = np.bincount([pick(scores, i).item() for i in range(600)], minlength=4) / 600
        want = np.where(np.isin(range(4), kept), chances, 0)
        assert np.abs(counts - want / want.sum()).max() < 0.08 and not counts[want == 0].any()


@pytest.mark.parametrize(
    ("prompt", "tokens", "given", "text"),
    [
        ([1, 64], 3, {}, "got token 64; valid are 0 to 63"),
        ([-1], 3, {}, "got token -1; valid are 0 to 63"),
        ([], 3, {}, r"got a prompt of type list and shape \(0,\)"),
        ("text", 3, {}, "got a prompt of type str"),
        ([1.5], 3, {}, "valid is a sequence of one or more token ids"),
        ([1] * 40, 9, {}, "got a prompt of 40 tokens and 9 more for a cache of 48 positions"),
        ([1], 0, {}, "got tokens=0"),
        ([1], 3, {"temperature": -1.0}, "got temperature=-1.0"),
        ([1], 3, {"temperature": 1.0}, "got temperature=1.0 and no key"),
        ([1], 3, {"top_p": 0.0}, "got top_p=0.0"),
        ([1], 3, {"top_k": -2}, "got top_k=-2"),
    ],
)
def test_requests_that_are_none(small: Any, prompt: Any, tokens: int, given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=rf"models\.Generator: .*{text}"):
        models.Generator(*small)(prompt, tokens, **given)


def test_steps_that_do_not_fit_their_cache(small: tuple[Decoder, Any]) -> None:
    module, variables = small
    for cache, text in (
        (module.empty_cache(1, 2), "got 3 tokens for a cache of 2 positions"),
        (module.empty_cache(1)[:1], "got a cache of 1 layers; valid is one of 2"),
    ):
        with pytest.raises(ValueError, match=rf"models\.Decoder: {text}"):
            module.apply(variables, Step(jnp.zeros((1, 3), jnp.int32), cache, jnp.int32(0)))
    with pytest.raises(ValueError, match=r"models\.Generator: got chunk=0"):
        models.Generator(module, variables, chunk=0)


def test_the_example_writes() -> None:
    """With random weights: the same text from both."""
    command = [sys.executable, str(ROOT / "examples" / "generate.py"), "--steps", "4", "--length", "64"]
    done = subprocess.run(command, env=quick_process(), capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "tokens a second" in line]
    assert [line.split(":")[0] for line in lines] == ["jax.jit", "xcoexec.jit"]
    plain, ours = done.stdout.split("xcoexec.jit: Once", 1)
    assert plain.split("\njax.jit: first")[0] == "jax.jit: Once" + ours.split("\nxcoexec.jit: first")[0]


def test_a_plan_of_a_configuration_alone(tmp_path: pathlib.Path) -> None:
    config = {"model_type": "llama", "vocab_size": 512, "hidden_size": 256, "intermediate_size": 704}
    config |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "torch_dtype": "bfloat16"}
    config["max_position_embeddings"] = 64
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    graph = model_graph(str(tmp_path), 2)
    matrices = [as_cast(v) for v in graph.program.consts if v.size >= 256 * 704]
    assert len(matrices) == 3 * 2 and {v.dtype for v in matrices} == {"bfloat16"}
    assert graph.program.inputs[0].shape == (2, 1)
    model_graph.cache_clear()
    file.write_text(json.dumps(config | {"torch_dtype": "int3"}))
    with pytest.raises(ValueError, match="got weights of type 'int3'; valid are float32, bfloat16, float16"):
        model_graph(str(tmp_path))
