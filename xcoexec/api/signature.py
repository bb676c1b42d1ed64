"""What tells one call's program from another's: the one key that `jit`, `bind` and `compile` share."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, cast

import jax
import numpy as np
from jax.sharding import Sharding
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ..compat import Array, SingleDevice, configuration, default_device, mesh_is_set
from ..devices.registry import device_half
from .plain import Call

NUMBERS = (bool, int, float, complex)
TYPE_AND_PLACE = operator.attrgetter("aval", "sharding")
#: of an array on one device; JAX may make a new sharding for each array
KIND_TYPE_AND_DEVICE = operator.attrgetter("__class__", "aval", "sharding._device")
#: the parameters of `jax.jit` that place arrays: co-executed programs run on the default device alone
PLACING = ("in_shardings", "out_shardings", "device", "backend")


class Away(NamedTuple):
    """The key of an array that lies on another device than the default one, or on several."""

    type: Hashable
    sharding: Sharding


class Signature(NamedTuple):
    """All that `jax.jit` compiles another program for: structure, the leaves' types (weak ones are types of their own)
    and places, static values, and JAX's configuration. `near`: of each leaf, whether it is an array of JAX's (None
    where that makes no difference).
    """

    tree: PyTreeDef
    leaves: tuple[Hashable, ...]
    static: Hashable
    configuration: Hashable
    near: tuple[bool, ...] | None = None

    @classmethod
    def of(cls, call: Call, places: bool = False) -> Signature:
        """The signature of a call. `places`: arrays in host memory and JAX's own are planned for apart."""
        near = tuple([isinstance(x, jax.Array) for x in call.leaves]) if places else None
        return cls(call.tree, tuple(map(leaf_key, call.leaves)), call.static, configuration(), near)

    def holds(self, call: Call, inputs: Sequence[int]) -> bool:
        """Whether a call, whose leaves other than `inputs` are known to be the same, has this signature."""
        if call.tree != self.tree or call.static != self.static or configuration() != self.configuration:
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
    """Whether there is no other device, so that every array lies on this one."""
    return not device_half().apart and single()


def is_away(x: object) -> bool:
    """Whether a leaf is an array that lies on another device than the default one, or on several."""
    if type(x) is not Array:
        return False
    s = x.sharding
    return type(s) is not SingleDevice or s._device is not home()


def leaf_key(x: object) -> Hashable:
    """What a program depends on of a leaf: its type (shape, dtype, weak), and where it lies unless that is the default
    device.
    """
    if type(x) is Array:
        if is_away(x):
            return Away((x.shape, x.dtype, x.weak_type), x.sharding)
        return x.shape, x.dtype, x.weak_type
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

    __slots__ = ("_usual", "keys")

    def __init__(self, keys: Sequence[Hashable]):
        self.keys = tuple(keys)
        self._usual: list[object] | None = None

    def fit(self, leaves: Sequence[object]) -> bool:
        """Whether leaves have these keys."""
        found: list[object] | None
        try:
            found = list(map(KIND_TYPE_AND_DEVICE, leaves))
        except AttributeError:  # some are no arrays of JAX's, or lie on several devices
            found = None
        if found is not None and found == self._usual:
            return True
        if len(leaves) != len(self.keys) or not all(map(operator.eq, map(leaf_key, leaves), self.keys)):
            return False
        self._usual = found
        return True


def array_key(x: object) -> Hashable:
    """A shorter signature, of a call with one array and nothing else: shape, type, kind and place of the array; None
    for what is no array.
    """
    if type(x) is Array:
        return (x.shape, x.dtype, x.weak_type) if alone() else leaf_key(x)
    return (np.ndarray, x.shape, x.dtype) if type(x) is np.ndarray else None


def described(x: ArrayLike) -> tuple[tuple[int, ...], str]:
    """Shape and type of a leaf, as messages show them."""
    weak = " of a weak type" if getattr(x, "weak_type", False) else ""
    return tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__)) + weak


def placed_apart(call: Call, given: Mapping[str, object]) -> str:
    """Why a call's program does not run on the default device alone ("" where it does). `given`: the parameters of
    `jax.jit` as the caller named them.
    """
    named = [name for name in PLACING if _means_something(name, given.get(name))]
    if named:
        return f"it is given {' and '.join(named)}, which plain jax.jit keeps"
    if mesh_is_set():
        return "a mesh is set around the call, and co-executed programs run on one device"
    chosen = default_device()
    if chosen is not None and chosen not in (home(), home().platform):
        return f"jax_default_device is {chosen}, and co-executed programs run on {home()}"
    return ""


def lies_apart(call: Call) -> str:
    """Which argument of a call lies on another device than the default one, or on several ("": none)."""
    away = next((k for k in map(leaf_key, call.leaves) if isinstance(k, Away)), None)
    return "" if away is None else f"an argument lies on {away.sharding}"


def names_home(given: Mapping[str, object]) -> bool:
    """Whether the parameters of `jax.jit` name the default device, or its platform."""
    return given.get("device") is not None or given.get("backend") is not None


def _means_something(name: str, value: object) -> bool:
    """Whether a parameter that places arrays asks for another place than the default one."""
    if name == "backend":
        return value is not None and value != home().platform
    if name == "device":
        return value is not None and value != home()
    leaves = jax.tree_util.tree_leaves(value, is_leaf=lambda x: x is None)
    return any(x is not None and type(x).__name__ != "UnspecifiedValue" for x in leaves)


__all__ = ["Signature", "Usual", "array_key", "described", "is_away", "lies_apart", "names_home", "placed_apart"]
