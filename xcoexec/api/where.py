"""Where the calls of one program run: on the default device, be it that of a mesh, or where their arrays lie."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from ..compat import UNSPECIFIED, Array, JitTrace, default_device, mesh_here, meshes
from ..errors import SplitError
from ..frontend.places import lies_on, placing
from ..lowering.shards import Placed
from .plain import Call
from .signature import Away, home, is_away, leaf_key

#: the parameters of `jax.jit` that place arrays: co-executed programs run on the default device alone
SHARDINGS = ("in_shardings", "out_shardings")
PLACING = (*SHARDINGS, "device", "backend")


@dataclasses.dataclass(frozen=True)
class Where:
    """`placed`: where arrays lie, if not on the default device. `on_mesh`: that device is said to be one of a mesh, on
    which results may lie. `around`: a context with the meshes that are set around calls (None: there is none). `typed`:
    a mesh is part of the arrays' types.
    """

    placed: Placed | None = None
    on_mesh: bool = False
    around: Callable[[], contextlib.AbstractContextManager[None]] | None = None
    typed: bool = False

    @classmethod
    def of(cls, made: JitTrace, call: Call, given: Mapping[str, object], stays: bool, bounded: bool) -> Where:
        """Where calls like this one run. `given`: the parameters of `jax.jit`; `stays`: no array is given away or comes
        back as a result; `bounded`: there is a bound of a device's memory. Raises `SplitError` that says why they
        cannot be co-executed there.
        """
        said, apart = names_mesh(made, given), lies_apart(call)
        if not apart:
            around = mesh_here() if meshes() else None
            return cls(None, said or lies_on_mesh(call.leaves), around, typed_by_mesh(call.leaves))
        if said:
            raise SplitError(f"{apart}, and the program is one of a mesh")
        if not stays:
            raise SplitError(f"{apart}, and the call gives arrays away or has a state")
        try:
            placed = Placed.of(call.leaves)
        except SplitError as e:
            raise SplitError(f"{apart}: {e}") from None
        if bounded and len(placed.devices) > 1:
            raise SplitError(f"{apart}, and device_memory is that of one device")
        return cls(placed)

    @property
    def meshed(self) -> bool:
        """Whether calls have a mesh that programs of ours know nothing of: around them, or in arrays' types."""
        return self.around is not None or self.typed

    @property
    def divided(self) -> tuple[int, ...]:
        """The positions of the leaves of which no device has all."""
        return () if self.placed is None else self.placed.divided_leaves

    @property
    def devices(self) -> int:
        """How many devices of this process compute."""
        return 1 if self.placed is None else len(self.placed.local)

    def as_called(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """What a thread without a mesh calls, under those that are set around calls."""
        around = self.around
        if around is None:
            return run

        def called(*args: object) -> Any:
            with around():
                return run(*args)

        return called


def placed_apart(given: Mapping[str, object]) -> str:
    """Why a call's program does not run on the default device alone ("" where it does). `given`: the parameters of
    `jax.jit` as the caller named them.
    """
    named = [name for name in PLACING if _means_something(name, given.get(name))]
    if named:
        return f"it is given {' and '.join(named)}, which plain jax.jit keeps"
    if not all(lies_on(m, home()) for m in meshes()):
        return "a mesh is set around the call, and co-executed programs run on one device"
    chosen = default_device()
    if chosen is not None and chosen not in (home(), home().platform):
        return f"jax_default_device is {chosen}, and co-executed programs run on {home()}"
    return ""


def lies_apart(call: Call) -> str:
    """Which argument of a call lies on another device than the default one, or on several ("": none)."""
    away = next((x for x in call.leaves if is_away(x)), None)
    return "" if away is None else f"an argument lies on {cast(jax.Array, away).sharding}"


def names_mesh(made: JitTrace, given: Mapping[str, object]) -> bool:
    """Whether a mesh is set around the call, or the parameters of `jax.jit` or the program name places."""
    named = bool(meshes()) or any(_given(given.get(name)) for name in SHARDINGS)
    return named or next(placing(made.closed), None) is not None


def lies_on_mesh(leaves: Iterable[object]) -> bool:
    """Whether one of these lies on a mesh, or on another device than the default one."""
    return any(isinstance(leaf_key(x), Away) for x in leaves)


def typed_by_mesh(leaves: Iterable[object]) -> bool:
    """Whether a mesh is part of the type of one of these."""
    where = [x.sharding for x in leaves if type(x) is Array]
    return any(isinstance(s, NamedSharding) and AxisType.Explicit in s.mesh.axis_types for s in where)


def names_home(given: Mapping[str, object]) -> bool:
    """Whether the parameters of `jax.jit` name the default device, or its platform."""
    return given.get("device") is not None or given.get("backend") is not None


def _means_something(name: str, value: object) -> bool:
    """Whether a parameter that places arrays asks for another place than the default one."""
    if name == "backend":
        return value is not None and value != home().platform
    if name == "device":
        return value is not None and value != home()
    return not all(lies_on(x, home()) or (isinstance(x, PartitionSpec) and meshes()) for x in _given(value))


def _given(value: object) -> list[object]:
    """The places that a parameter names."""
    leaves = jax.tree_util.tree_leaves(value, is_leaf=lambda x: x is None or isinstance(x, PartitionSpec))
    return [x for x in leaves if x is not None and x is not UNSPECIFIED]


__all__ = ["Where", "lies_apart", "names_home", "names_mesh", "placed_apart", "typed_by_mesh"]
