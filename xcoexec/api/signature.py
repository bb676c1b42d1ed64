"""What tells one call's program from another's: the one key that `jit`, `bind` and `compile` share."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from typing import NamedTuple, cast

import jax
import numpy as np
from jax.sharding import Sharding
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ..compat import Array, SingleDevice, configuration, meshes
from ..devices.registry import device_half
from ..frontend.places import lies_on
from .plain import Call

NUMBERS = (bool, int, float, complex)
TYPE_AND_PLACE = operator.attrgetter("aval", "sharding")
#: of an array on one device; JAX may make a new sharding for each array
KIND_TYPE_AND_DEVICE = operator.attrgetter("__class__", "aval", "sharding._device")
KIND_TYPE_AND_PLACE = operator.attrgetter("__class__", "aval", "sharding")


class Away(NamedTuple):
    """The key of an array that lies on another device than the default one, on several, or on a mesh."""

    type: Hashable
    sharding: Sharding


class Signature(NamedTuple):
    """All that `jax.jit` compiles another program for: structure, the leaves' types (weak ones are types of their own)
    and places, static values, and JAX's configuration. `near`: of each leaf, whether it is an array of JAX's, and
    `committed`, whether it is committed to where it lies (None where that makes no difference: to which device results
    are committed is that of the inputs, unless a mesh is set).
    """

    tree: PyTreeDef
    leaves: tuple[Hashable, ...]
    static: Hashable
    configuration: Hashable
    near: tuple[bool, ...] | None = None
    committed: tuple[bool, ...] | None = None

    @classmethod
    def of(cls, call: Call, places: bool = False) -> Signature:
        """The signature of a call. `places`: arrays in host memory and JAX's own are planned for apart."""
        near = tuple([isinstance(x, jax.Array) for x in call.leaves]) if places else None
        committed = tuple(map(_is_committed, call.leaves)) if meshes() else None
        return cls(call.tree, tuple(map(leaf_key, call.leaves)), call.static, configuration(), near, committed)

    def holds(self, call: Call, inputs: Sequence[int]) -> bool:
        """Whether a call, whose leaves other than `inputs` are known to be the same, has this signature."""
        if call.tree != self.tree or call.static != self.static or configuration() != self.configuration:
            return False
        committed = self.committed
        if committed is not None and any(_is_committed(call.leaves[i]) != committed[i] for i in inputs):
            return False
        return all(leaf_key(call.leaves[i]) == self.leaves[i] for i in inputs)

    @property
    def types(self) -> tuple[Hashable, ...]:
        """The leaves' types (shape, dtype, weak) alone, without where they lie."""
        return tuple(k.type if isinstance(k, Away) else k for k in self.leaves)


@functools.lru_cache
def home() -> jax.Device:
    """The device that co-executed programs run on."""
    return jax.local_devices()[0]


@functools.lru_cache
def single() -> bool:
    """Whether JAX has one device of the kind that it uses; beside a GPU arrays may lie on the CPU still."""
    return jax.local_device_count() == 1


@functools.lru_cache
def alone() -> bool:
    """Whether there is no other device, so that every array on one device lies on this one."""
    return not device_half().apart and single()


def is_away(x: object) -> bool:
    """Whether a leaf is an array that lies on another device than the default one, or on several."""
    return type(x) is Array and not (_plainly_home(x.sharding) or _at_home(x.sharding))


def _is_committed(x: object) -> bool:
    return isinstance(x, jax.Array) and x.committed


def _plainly_home(s: Sharding) -> bool:
    return type(s) is SingleDevice and s._device is home()


@functools.lru_cache(maxsize=1024)
def _at_home(s: Sharding) -> bool:
    """Whether all of an array lies on the default device, be it as that of a mesh."""
    return lies_on(s, home())


def leaf_key(x: object) -> Hashable:
    """What a program depends on of a leaf: its type (shape, dtype, weak), and where it lies unless that is the default
    device.
    """
    if type(x) is Array:
        s = x.sharding
        kind = (x.shape, x.dtype, x.weak_type)
        return kind if _plainly_home(s) else Away(kind, s)
    if isinstance(x, (np.ndarray, np.generic)):
        return x.shape, x.dtype, False
    if type(x) in NUMBERS:
        return _number_key(cast("Hashable", type(x)), bool(jax.config.read("jax_enable_x64")))
    return type(x), getattr(x, "shape", None), getattr(x, "dtype", None), getattr(x, "weak_type", False)


@functools.lru_cache
def _number_key(kind: Hashable, wide: bool) -> Hashable:
    """The key of Python's own numbers: that of the arrays that `jax.jit` makes of them, with or without 64 bits."""
    return (), np.dtype(jax.dtypes.canonicalize_dtype(kind)), kind is not bool  # type: ignore[arg-type]


class Usual(NamedTuple):
    """The leaves of a call, and what its program depends on beside them: calls that are made over and over have the
    very types and places of those before them, which are compared as they are.
    """

    tree: PyTreeDef
    leaves: list[Hashable]
    static: Hashable
    configuration: Hashable

    @classmethod
    def of(cls, call: Call) -> Usual | None:
        """Those of a call; None where a leaf is no array of JAX's."""
        if not all(type(x) is Array for x in call.leaves):
            return None
        return cls(call.tree, list(map(TYPE_AND_PLACE, call.leaves)), call.static, configuration())

    def has(self, call: Call) -> bool:
        """Whether a call is one of these."""
        if call.tree != self.tree or call.static != self.static or not all([type(x) is Array for x in call.leaves]):
            return False
        return list(map(TYPE_AND_PLACE, call.leaves)) == self.leaves and configuration() == self.configuration


class Keys:
    """What tells the leaves of calls with the same program (`leaf_key` of each). Calls that are made over and over have
    leaves of the very types and places of those before them, which are compared as they are.
    """

    __slots__ = ("_usual", "committed", "keys")

    def __init__(self, keys: Sequence[Hashable], committed: Sequence[bool] | None = None):
        self.keys = tuple(keys)
        self.committed = None if committed is None else list(committed)  # as in `Signature`
        self._usual: list[object] | None = None

    def fit(self, leaves: Sequence[object]) -> bool:
        """Whether leaves have these keys."""
        if self.committed is not None and list(map(_is_committed, leaves)) != self.committed:
            return False
        found: list[object] | None
        try:
            found = list(map(KIND_TYPE_AND_DEVICE, leaves))
        except AttributeError:  # some are no arrays of JAX's, or lie on a mesh
            found = _kinds_on_meshes(leaves)
        if found is not None and found == self._usual:
            return True
        if len(leaves) != len(self.keys) or not all(map(operator.eq, map(leaf_key, leaves), self.keys)):
            return False
        self._usual = found
        return True


def _kinds_on_meshes(leaves: Sequence[object]) -> list[object] | None:
    """As `Keys` compares leaves of which some lie on meshes; None where some are no arrays of JAX's."""
    try:
        return list(map(KIND_TYPE_AND_PLACE, leaves))
    except AttributeError:
        return None


def array_key(x: object) -> Hashable:
    """A shorter signature, of a call with one array and nothing else: shape, type, kind and place of the array; None
    for what is no array.
    """
    if type(x) is Array:
        return leaf_key(x)
    return (np.ndarray, x.shape, x.dtype) if type(x) is np.ndarray else None


def described(x: ArrayLike) -> tuple[tuple[int, ...], str]:
    """Shape and type of a leaf, as messages show them."""
    weak = " of a weak type" if getattr(x, "weak_type", False) else ""
    return tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__)) + weak


__all__ = ["Away", "Signature", "Usual", "array_key", "described", "home", "is_away", "leaf_key"]
