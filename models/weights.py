"""Weights of PyTorch models for the zoo, read by name: what is missing, unknown or of another shape is an error."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping

import flax.linen as nn
import jax
import numpy as np
from flax.typing import MutableCollection, MutableVariableDict, VariableDict

from .mapped import tensors as tensors_of
from .torch_layouts import TABLES, Array, Leaves, Line, Take, layout_of
from .zoo import Entry, get

#: leaves of these ends carry nothing that inference needs
IGNORED = ("num_batches_tracked", "position_ids", "rotary_emb.inv_freq")
TRAINING = ("aux1.", "aux2.", "cls.")  # heads that are only there for training
#: prefixes that some files put before every name
PREFIXES = ("", "module.", "bert.")


def convert(
    model: str | nn.Module, tensors: Mapping[str, object], example: object = None, mapped: bool = False
) -> VariableDict:
    """Flax variables from PyTorch tensors by name.

    `model`: a name of the zoo, or a module of the zoo's classes with an `example` input. `mapped`: the variables are
    NumPy views of the tensors, in their types, wherever one is the other in another order; else arrays of JAX in the
    module's types. Raises `ValueError` that names the first tensor that is missing, unknown, or of another shape or
    type (valid are floating-point numbers).
    """
    if not isinstance(tensors, Mapping) or not all(isinstance(name, str) for name in tensors):
        raise ValueError(
            f"models.convert: got tensors of type {type(tensors).__name__}; valid is a mapping from names to arrays."
        )
    entry = get(model) if isinstance(model, str) else Entry(type(model).__name__, lambda: model, (), 0)
    module = entry.module
    lines = _lines(entry.name, module)
    shapes = jax.eval_shape(module.init, jax.random.key(0), entry.example() if example is None else example)
    prefix = next((p for p in PREFIXES if any(t.startswith(p + lines[0][1]) for t in tensors)), "")
    found = _Tensors(tensors, prefix)
    variables: MutableVariableDict = {}
    for path, name, layout in lines:
        for leaf, value in _arranged(layout, functools.partial(found.take, name), prefix + name).items():
            collection, last = leaf.split("/")
            where = [collection, *(path.split("/") if path else []), last]
            _put(variables, shapes, where, value, prefix + name, mapped)
    if unknown := found.unknown():
        raise ValueError(
            f"models.convert: got a tensor {unknown[0]!r} (and {len(unknown) - 1} more) that {entry.name} does not"
            " have."
        )
    return variables


def _lines(name: str, module: nn.Module) -> list[Line]:
    """The table of a module's class."""
    table = TABLES.get(type(module).__name__)
    if table is None:
        raise ValueError(
            f"models.convert: got {name!r}; models with PyTorch layouts are of {', '.join(sorted(TABLES))}."
        )
    return list(table(module))


@dataclasses.dataclass(frozen=True)
class _Tensors:
    """PyTorch tensors by name, and the names that were asked for; `prefix`: what the file puts before every name."""

    tensors: Mapping[str, object]
    prefix: str
    used: set[str] = dataclasses.field(default_factory=set)

    def take(self, name: str, leaf: str) -> Array | None:
        """A module's tensor; None where there is none."""
        key = self.prefix + (f"{name}.{leaf}" if leaf else name)
        self.used.add(key)
        return _array(key, self.tensors[key]) if key in self.tensors else None

    def unknown(self) -> list[str]:
        """The names that nobody asked for, but for what inference does not need."""
        rest = [t for t in self.tensors if t not in self.used]
        return sorted(t for t in rest if not t.endswith(IGNORED) and not t.startswith(TRAINING))


def _array(name: str, tensor: object) -> Array:
    """A tensor as an array of floating-point numbers."""
    try:
        array = np.asarray(tensor)
    except Exception as e:  # a tensor is of any library, whose `__array__` may raise errors of its own
        raise ValueError(
            f"models.convert: got {name!r} of type {type(tensor).__name__}, which is no array ({e})."
        ) from None
    if not jax.numpy.issubdtype(array.dtype, jax.numpy.floating):
        raise ValueError(f"models.convert: got {name!r} of type {array.dtype}; valid are floating-point numbers.")
    return array


def _arranged(layout: str, take: Take, name: str) -> Leaves:
    """The leaves of one module in Flax's order."""
    shapes: list[tuple[int, ...]] = []

    def taken(leaf: str) -> Array | None:
        array = take(leaf)
        shapes.extend([] if array is None else [array.shape])
        return array

    try:
        return layout_of(layout)(taken)
    except (ValueError, IndexError) as e:
        if str(e).startswith("models."):
            raise
        raise ValueError(
            f"models.convert: got {name!r} of shape {shapes[0]}, which is not that of a layer of the kind {layout!r}."
        ) from None


def _put(
    variables: MutableVariableDict, shapes: object, where: list[str], value: Array | None, name: str, mapped: bool
) -> None:
    """Stores a leaf if the model has it; checks its shape."""
    wanted = shapes
    for key in where:
        wanted = wanted.get(key) if isinstance(wanted, Mapping) else None
    if not isinstance(wanted, jax.ShapeDtypeStruct):
        if value is not None and where[0] == "params":
            raise ValueError(f"models.convert: got {name!r} with a {where[-1]}; this model has none there.")
        return
    if value is None:
        raise ValueError(
            f"models.convert: got no tensor of {name!r} for {'/'.join(where)}; valid is a file with all weights of the"
            " model."
        )
    if value.ndim > len(wanted.shape):
        value = value.reshape(wanted.shape) if value.size == int(np.prod(wanted.shape)) else value
    if value.shape != wanted.shape:
        raise ValueError(
            f"models.convert: got {name!r} of shape {value.shape} for {'/'.join(where)}; valid is {wanted.shape}."
        )
    node: MutableCollection = variables
    for key in where[:-1]:
        node = node.setdefault(key, {})
    node[where[-1]] = value if mapped else jax.numpy.asarray(np.ascontiguousarray(value), wanted.dtype)


def load(
    model: str | nn.Module, path: str | os.PathLike[str], example: object = None, mapped: bool = False
) -> VariableDict:
    """Flax variables from a safetensors file of a PyTorch model, from the index of one in parts, or from a folder with
    either; `mapped` as in `convert`: nothing of the files is read but their headers.

    Raises `ValueError` where a file is none, cannot be read, or does not fit the model (see `convert`).
    """
    return convert(model, tensors_of(path), example, mapped)
