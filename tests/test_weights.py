"""Weights of PyTorch layouts: small files made here, read by name."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec import models
from xcoexec.models.classic import VGG
from xcoexec.models.decoder import Decoder, Step
from xcoexec.models.dense import FastStyle
from xcoexec.models.detect import RetinaFace
from xcoexec.models.mobile import MobileNetV2
from xcoexec.models.residual import Bottleneck, ResNet
from xcoexec.models.transformer import BERT, ViT
from xcoexec.models.weights import TABLES, convert, load

pytestmark = pytest.mark.usefixtures("quick_xla")

IMAGE = jnp.zeros((1, 64, 64, 3))
SMALL: dict[str, tuple[Any, Any]] = {
    "vgg": (VGG(((1, 8), (2, 512)), 10), jnp.zeros((1, 8, 8, 3))),
    "resnet": (ResNet((1, 2), classes=10), IMAGE),
    "bottleneck": (ResNet((1, 1), Bottleneck, 10), IMAGE),
    "mobilenet_v2": (MobileNetV2(((1, 16, 1, 1), (6, 24, 2, 2)), 10), IMAGE),
    "retinaface": (RetinaFace(), IMAGE),
    "fast_style": (FastStyle(), jnp.zeros((1, 16, 16, 3))),
    "vit": (ViT(16, 24, 2, 3, 10), IMAGE),
    "bert": (BERT(50, 16, 24, 2, 3), jnp.zeros((1, 5), jnp.int32)),
}


def _tensors(module: Any, example: Any) -> dict[str, np.ndarray]:
    """A file of random weights in PyTorch's layout, as another library would write it: shapes from the Flax side, names
    from the table.
    """
    shapes = jax.eval_shape(module.init, jax.random.key(0), example)
    rng = np.random.default_rng(0)
    out: dict[str, np.ndarray] = {}
    fused: dict[str, int] = {}

    def leaf(collection: str, path: str, name: str) -> Any:
        node = shapes.get(collection, {})
        for key in [*(path.split("/") if path else []), name]:
            node = node.get(key, {})
        return getattr(node, "shape", None)

    for path, name, layout in TABLES[type(module).__name__](module):
        if layout.startswith("raw:"):
            out[name] = rng.standard_normal(leaf("params", path, layout[4:])).astype(np.float32)
            continue
        kernel = leaf("params", path, "kernel") or leaf("params", path, "embedding") or leaf("params", path, "scale")
        order = {"conv": (3, 2, 0, 1), "norm": (0,), "embed": (0, 1)}.get(layout, (1, 0))
        shape = tuple(kernel[d] for d in order)
        if layout in ("query", "key", "value") and "qkv" in name:
            fused[name] = 3
            shape = (3 * shape[0], *shape[1:])
        out.setdefault(f"{name}.weight", rng.standard_normal(shape).astype(np.float32))
        if leaf("params", path, "bias") is not None:
            out.setdefault(f"{name}.bias", rng.standard_normal(shape[0]).astype(np.float32))
        if leaf("batch_stats", path, "mean") is not None:
            out[f"{name}.running_mean"], out[f"{name}.running_var"] = rng.standard_normal((2, shape[0])).astype(
                np.float32
            )
            out[f"{name}.num_batches_tracked"] = np.asarray(7)
    return out


@pytest.mark.parametrize("name", SMALL)
def test_a_file_fills_every_leaf(name: str, tmp_path: pathlib.Path) -> None:
    from safetensors.numpy import save_file

    module, example = SMALL[name]
    tensors = _tensors(module, example)
    save_file(tensors, tmp_path / "model.safetensors")
    variables = load(module, tmp_path / "model.safetensors", example)
    shapes = jax.eval_shape(module.init, jax.random.key(0), example)
    assert jax.tree_util.tree_map(lambda x: x.shape, variables) == jax.tree_util.tree_map(lambda x: x.shape, shapes)
    total = sum(np.size(t) for k, t in tensors.items() if not k.endswith("num_batches_tracked"))
    assert total == sum(x.size for x in jax.tree_util.tree_leaves(variables))
    out = jax.eval_shape(module.apply, variables, example)
    assert jax.tree_util.tree_leaves(out) == jax.tree_util.tree_leaves(jax.eval_shape(module.apply, shapes, example))


def test_layouts() -> None:
    """Convolutions, fused queries and the flattened image come out in Flax's order."""
    module, example = SMALL["vgg"]
    t = _tensors(module, example)
    v = convert(module, t, example)["params"]
    assert np.array_equal(v["Conv_1"]["kernel"][1, 2, 3, 4], t["features.3.weight"][4, 3, 1, 2])
    dense = t["classifier.0.weight"]  # [out, 512 * 2 * 2] over [C, H, W]
    image = np.random.default_rng(1).standard_normal((2, 2, 512)).astype(np.float32)
    want = dense @ image.transpose(2, 0, 1).ravel()
    assert np.allclose(image.ravel() @ v["Dense_0"]["kernel"], want, rtol=1e-4, atol=1e-3)
    module, example = SMALL["vit"]
    t = _tensors(module, example)
    v = convert(module, t, example)["params"]
    assert np.array_equal(v["SelfAttention_1"]["key"]["kernel"], t["blocks.1.attn.qkv.weight"][24:48].T)
    assert np.array_equal(v["SelfAttention_0"]["value"]["bias"], t["blocks.0.attn.qkv.bias"][48:])
    module, example = SMALL["mobilenet_v2"]
    t = _tensors(module, example)
    v = convert(module, t, example)
    assert np.array_equal(
        v["batch_stats"]["InvertedResidual_1"]["ConvNorm_1"]["BatchNorm_0"]["var"], t["features.2.conv.1.1.running_var"]
    )


def test_decoder_and_prefixes() -> None:
    module = Decoder(50, 32, 2, 4, 2, 40, 8)
    example = Step(jnp.zeros((1, 1), jnp.int32), module.empty_cache(1), jnp.int32(0))
    t = _tensors(module, example)
    v = convert(module, {f"module.{k}": x for k, x in t.items()}, example)["params"]
    assert np.array_equal(v["Attention_1"]["out"]["kernel"], t["model.layers.1.self_attn.o_proj.weight"].T)
    assert np.array_equal(v["Embed_0"]["embedding"], t["model.embed_tokens.weight"])


def test_bad_files() -> None:
    module, example = SMALL["resnet"]
    t = _tensors(module, example)
    with pytest.raises(ValueError, match=r"got no tensor of 'layer2\.1\.bn2' for params/ResNetStages_0/BasicBlock_2"):
        convert(module, {k: x for k, x in t.items() if k != "layer2.1.bn2.weight"}, example)
    with pytest.raises(ValueError, match=r"got a tensor 'layer9\.weight'"):
        convert(module, {**t, "layer9.weight": np.zeros(3)}, example)
    with pytest.raises(ValueError, match=r"got 'fc' of shape \(64, 10\) .* valid is \(128, 10\)"):
        convert(module, {**t, "fc.weight": np.zeros((10, 64), np.float32)}, example)
    with pytest.raises(ValueError, match="got 'lenet'; models with PyTorch layouts"):
        models.convert("lenet", {})
    with pytest.raises(ValueError, match="no such file"):
        models.load("resnet18", "/nowhere.safetensors")


# -- files that are no weights ------------------------------------------------------------------------


def _sealed(header: object, data: bytes = b"") -> bytes:
    """A safetensors file by hand, whatever its header says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


FILES = {
    "empty": b"",
    "text": b"these are no weights",
    "pickle": pickle.dumps({"fc.weight": [1.0]}),
    "zip": b"PK\x03\x04" + bytes(60),
    "huge header": struct.pack("<Q", 1 << 60) + b"{}",
    "header that is not JSON": _sealed(b"{" * 5000),
    "truncated": _sealed({"fc.weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, bytes(7)),
    "offsets that lie": _sealed(
        {"fc.weight": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 16]}}, bytes(16)
    ),
    "unknown type": _sealed({"fc.weight": {"dtype": "F7", "shape": [4], "data_offsets": [0, 16]}}, bytes(16)),
    "type that NumPy lacks": _sealed(
        {"fc.weight": {"dtype": "F8_E8M0", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_that_cannot_be_read(kind: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(FILES[kind])
    with pytest.raises(ValueError, match=r"models\.(load|convert): got .*") as caught:
        models.load("resnet18", path)
    assert type(caught.value) is ValueError and "\n" not in str(caught.value)
    if kind == "pickle":
        assert "never read, because pickles can run code" in str(caught.value)


@pytest.mark.parametrize("path", [None, 0, 3.5, b"bytes", ["a"], "null\0byte"], ids=repr)
def test_paths_that_are_none(path: Any) -> None:
    with pytest.raises(ValueError, match=r"models\.load: got .*"):
        models.load("resnet18", path)


def test_pipes_folders_and_devices_are_no_files(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code = """
import sys
from xcoexec import models
for path in sys.argv[1:]:
    try:
        models.load("resnet18", path)
    except ValueError as e:
        assert str(e).startswith("models.load: got") and "no regular file" in str(e), e
    else:
        raise SystemExit("loaded")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "pipe"), str(tmp_path), "/dev/zero"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_tensors_of_other_types() -> None:
    module, example = SMALL["resnet"]
    t = _tensors(module, example)
    for bad, text in (
        (t["fc.weight"].astype(np.int8), "of type int8; valid are floating-point"),
        (t["fc.weight"].astype(np.complex64), "of type complex64"),
        (np.full(t["fc.weight"].shape, "x"), "valid are floating-point"),
        (None, "of type object"),
        ([[1.0], [2.0, 3.0]], "which is no array"),
    ):
        with pytest.raises(ValueError, match=r"models\.convert: got 'fc\.weight'.*" + text):
            convert(module, {**t, "fc.weight": bad}, example)
    for dtype in (np.float64, np.float16, jnp.bfloat16):
        assert (
            convert(module, {**t, "fc.weight": t["fc.weight"].astype(dtype)}, example)["params"]["Dense_0"][
                "kernel"
            ].dtype
            == np.float32
        )
    for tensors in (None, [("fc.weight", 1)], {3: np.zeros(3)}):
        with pytest.raises(ValueError, match=r"models\.convert: got tensors of type"):
            convert(module, tensors, example)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["vgg", "resnet", "vit", "bert", "fast_style"])
def test_every_tensor_of_another_rank_is_named(name: str) -> None:
    """A scalar, a vector or a batch of what is right, in turn: one sentence of the library, no NumPy error."""
    module, example = SMALL[name]
    t = _tensors(module, example)
    bad = [np.float32(1.0), np.ones(7, np.float32), np.ones((2, 3, 5), np.float32), np.zeros((0, 3), np.float32)]
    keys = [k for k in t if not k.endswith("num_batches_tracked")][:12]
    assert len(keys) == 12 or name == "vgg"
    for i, key in enumerate(keys):
        with pytest.raises(ValueError, match=r"models\.convert: got '"):
            convert(module, {**t, key: bad[i % len(bad)]}, example)


def test_half_precision_files(tmp_path: pathlib.Path) -> None:
    """bfloat16 is a type of safetensors that NumPy knows through JAX alone."""
    from safetensors.numpy import save_file

    module, example = SMALL["resnet"]
    t = {k: np.asarray(jnp.asarray(x, jnp.bfloat16)) for k, x in _tensors(module, example).items()}
    save_file(t, tmp_path / "w.safetensors")
    got = load(module, tmp_path / "w.safetensors", example)["params"]["Dense_0"]["kernel"]
    assert np.array_equal(got, np.asarray(t["fc.weight"], np.float32).T)
