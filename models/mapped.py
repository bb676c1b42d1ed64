"""Safetensors files, mapped: each tensor is a NumPy view of its place in the file. Every claim of a header is checked
before it is used (the format: https://huggingface.co/docs/safetensors).
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping

import jax.numpy as jnp
import numpy as np

INDEX, WHOLE = "model.safetensors.index.json", "model.safetensors"
HEADER = 100_000_000  # bytes of a header, at most, as in the format's own reader
INDEX_BYTES = 100_000_000
TYPES = {
    **{"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": jnp.bfloat16, "BOOL": np.bool_},
    **{f"I{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"U{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    **{"F8_E4M3": jnp.float8_e4m3fn, "F8_E5M2": jnp.float8_e5m2},
}
VALID = "valid is a safetensors file; a file that PyTorch has pickled is never read, because pickles can run code"


def tensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Tensors by name: read-only views of a safetensors file, of the parts that an index (`.json`) lists, or of what
    a folder has of both. Raises `ValueError` that says what is wrong with the file.
    """
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise ValueError(f"models.load: got a path of type {type(path).__name__}; valid is a str or a path.")
    name = os.fspath(path)
    if "\0" not in name and os.path.isdir(name):
        inside = [n for n in (INDEX, WHOLE) if os.path.exists(os.path.join(name, n))]
        if not inside:
            raise ValueError(
                f"models.load: got {name!r}, which is no regular file; valid is a folder with {WHOLE} or {INDEX}."
            )
        name = os.path.join(name, inside[0])
    return _parts(name) if name.endswith(".json") else dict(_tensors(name))


def _parts(index: str) -> dict[str, np.ndarray]:
    """The tensors that an index names, each from the part that it names."""
    size = _size(index)
    try:
        if size > INDEX_BYTES:
            raise ValueError(f"{size} bytes")
        with open(index, encoding="utf-8") as file:
            listed = json.load(file)["weight_map"]
        pairs = sorted((part, tensor) for tensor, part in listed.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(
            f"models.load: got {index!r}, which cannot be read ({e}); valid is an index with a weight_map."
        ) from None
    opened: dict[str, dict[str, np.ndarray]] = {}
    found = {}
    for part, tensor in pairs:
        if not isinstance(part, str) or os.path.basename(part) != part or part in ("", ".", ".."):
            raise ValueError(
                f"models.load: got a part {part!r} in {index!r}; valid are names of files beside the index."
            )
        if part not in opened:
            opened[part] = dict(_tensors(os.path.join(os.path.dirname(index), part)))
        if tensor not in opened[part]:
            raise ValueError(f"models.load: got {index!r}, by which {tensor!r} is in {part!r}, where it is not.")
        found[tensor] = opened[part][tensor]
    return found


def _size(name: str) -> int:
    """Bytes of a regular file; a pipe would hold the reader up."""
    try:
        status = os.stat(name)
    except (OSError, ValueError):
        raise ValueError(f"models.load: got {name!r}; there is no such file.") from None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"models.load: got {name!r}, which is no regular file; {VALID}.")
    return status.st_size


def _tensors(name: str) -> Iterator[tuple[str, np.ndarray]]:
    """The tensors of one file."""
    size = _size(name)
    try:
        if size < 8:
            raise ValueError(f"it has {size} bytes, fewer than the 8 of a header's length")
        whole = np.memmap(name, np.uint8, "r")
        length = int(whole[:8].view("<u8")[0])
        if length > min(size - 8, HEADER):
            raise ValueError(f"its header claims {length} bytes of a file of {size}")
        header = json.loads(whole[8 : 8 + length].tobytes().decode(), object_pairs_hook=_distinct)
        yield from _views(header, whole[8 + length :])
    except (OSError, ValueError, RecursionError) as e:
        raise ValueError(f"models.load: got {name!r}, which cannot be read ({e}); {VALID}.") from None


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("its header has a name twice")
    return dict(pairs)


def _views(header: object, data: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Views by name of the bytes behind a header."""
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    entries = [(name, *_entry(name, x, len(data))) for name, x in header.items() if name != "__metadata__"]
    end = 0
    for name, _, _, (begin, stop) in sorted(entries, key=lambda e: e[3]):
        if begin < end:
            raise ValueError(f"the bytes of {name!r} from {begin} on overlap another tensor's, which end at {end}")
        end = stop
    for name, dtype, shape, (begin, stop) in entries:
        yield name, data[begin:stop].view(dtype).reshape(shape)


def _entry(name: str, entry: object, size: int) -> tuple[np.dtype, tuple[int, ...], tuple[int, int]]:
    """(type, shape, bytes from and to) of a tensor, as its header says and as the file can hold it."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"{name!r} has no entry with a dtype, a shape and data_offsets")
    shape, offsets = (_numbers(name, key, entry.get(key)) for key in ("shape", "data_offsets"))
    kind = entry.get("dtype")
    if not isinstance(kind, str) or kind not in TYPES:
        raise ValueError(f"{name!r} is of type {kind!r}, and not one of {', '.join(TYPES)}")
    dtype = np.dtype(TYPES[kind])
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= size:
        raise ValueError(f"{name!r} is at {list(offsets)} of {size} bytes")
    if math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
        raise ValueError(f"{name!r} has {offsets[1] - offsets[0]} bytes for {kind}{list(shape)}")
    return dtype, shape, (offsets[0], offsets[1])


def _numbers(name: str, key: str, value: object) -> tuple[int, ...]:
    """Whole numbers from 0 on, few enough for a shape."""
    if not isinstance(value, list) or len(value) > 32 or any(type(n) is not int or n < 0 for n in value):
        raise ValueError(f"{name!r} has the {key} {str(value)[:80]}, which are no whole numbers from 0 on")
    return tuple(value)
