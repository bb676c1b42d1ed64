"""Loads the weights of a PyTorch model from a safetensors file.

python examples/pretrained.py --weights resnet18.safetensors    # as torchvision names its tensors
python examples/pretrained.py                                   # a file of random weights is written first
"""

from __future__ import annotations

import argparse
import json
import pathlib
import tempfile
from collections.abc import Mapping

import numpy as np

import xcoexec
from xcoexec import models


def written(path: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> pathlib.Path:
    """Writes f32 arrays as safetensors: a header of JSON with its length before it, then the bytes."""
    header, end = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [end, end + x.nbytes]}
        end += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(x.tobytes() for x in tensors.values()))
    return path


def resnet18(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random tensors with the names and shapes of torchvision's ResNet-18."""
    out: dict[str, np.ndarray] = {}

    def conv(name: str, norm: str, o: int, i: int, k: int) -> None:
        out[f"{name}.weight"] = rng.normal(0, (i * k * k) ** -0.5, (o, i, k, k)).astype(np.float32)
        for word, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            out[f"{norm}.{word}"] = np.full(o, value, np.float32)

    conv("conv1", "bn1", 64, 3, 7)
    width = 64
    for stage, wide in enumerate((64, 128, 256, 512), 1):
        for block in range(2):
            at = f"layer{stage}.{block}"
            conv(f"{at}.conv1", f"{at}.bn1", wide, width, 3)
            conv(f"{at}.conv2", f"{at}.bn2", wide, wide, 3)
            if width != wide:
                conv(f"{at}.downsample.0", f"{at}.downsample.1", wide, width, 1)
            width = wide
    out["fc.weight"] = rng.normal(0, 0.05, (1000, 512)).astype(np.float32)
    out["fc.bias"] = np.zeros(1000, np.float32)
    return out


def main() -> None:
    """Prints the likeliest classes of an image."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--weights", type=pathlib.Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = lambda: written(pathlib.Path(folder) / "resnet18.safetensors", resnet18(np.random.default_rng(0)))
        weights = models.load("resnet18", given.weights or made())
    entry = models.get("resnet18")
    fast = xcoexec.jit(entry.module.apply).bind(weights)
    scores = np.asarray(fast(entry.example()))[0]
    print("the likeliest classes:", np.argsort(scores)[::-1][:5].tolist())


if __name__ == "__main__":
    main()
