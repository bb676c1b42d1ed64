"""Arrays of JAX's: where their buffers are, and what is made of these without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import numpy as np
from jax.sharding import Sharding
from jax.sharding import SingleDeviceSharding as SingleDevice
from jax.typing import ArrayLike

# outside of JAX's promised API, and so without types
_core: Any = jax._src.core  # type: ignore[attr-defined]


#: the class of concrete arrays (an array made here would start XLA at import)
Array: type[jax.Array] = jax._src.array.ArrayImpl  # type: ignore[attr-defined]


def as_array(x: ArrayLike) -> jax.Array:
    """`jax.numpy.asarray` with a copy of a NumPy array, for which that compiles a program at each new shape."""
    return jax.device_put(x, may_alias=False) if type(x) is np.ndarray else jax.numpy.asarray(x)


def local_arrays(x: jax.Array) -> Sequence[jax.Array]:
    """The arrays of an array on the devices of this process, one each, in the order of its sharding. Raises
    `RuntimeError` for one that has been deleted.
    """
    found: Sequence[jax.Array] | None = x._arrays  # type: ignore[attr-defined]
    if found is None:
        x._check_if_deleted()  # type: ignore[attr-defined]
    return cast("Sequence[jax.Array]", found)


def alone(x: ArrayLike) -> ArrayLike:
    """An array on a mesh of one device as one on that device, with the same buffer, or shape and type of such a one;
    anything else as it is. Raises `RuntimeError` for an array that has been deleted.
    """
    if isinstance(x, jax.ShapeDtypeStruct) and x.sharding is not None:
        (device,) = x.sharding.device_set
        return cast(ArrayLike, x.update(sharding=SingleDevice(device)))
    return local_arrays(x)[0] if type(x) is Array and type(x.sharding) is not SingleDevice else x


def uncommitted(x: ArrayLike) -> ArrayLike:
    """An array with the same buffers that `jax.jit` may move: what a function closes over does not say where results
    of it lie, nor does a mesh of one device.
    """
    if type(x) is not Array or not x.committed:
        return x
    arrays = local_arrays(x)
    one = cast(jax.Array, arrays[0]) if len(arrays) == 1 and x.is_fully_addressable else x
    return Array(one.aval, one.sharding, arrays, committed=False, _skip_checks=True)  # type: ignore[call-arg]


def put_together(shape: tuple[int, ...], dtype: object, weak: bool, sharding: Sharding) -> Callable[..., jax.Array]:
    """As `jax.make_array_from_single_device_arrays`, for arrays that are known to be of this sharding: its checks take
    longer than a call of a small program.
    """
    aval = _core.update_aval_with_sharding(_core.ShapedArray(shape, dtype, weak_type=weak), sharding)
    return lambda arrays: Array(aval, sharding, arrays, committed=True, _skip_checks=True)  # type: ignore[call-arg]


def is_tracer(x: object) -> bool:
    """Whether a leaf is an array of a trace, without elements."""
    return isinstance(x, jax.core.Tracer)


def as_weak(x: jax.Array) -> jax.Array:
    """The same array, of the same shape and of a weak type."""
    out: jax.Array = jax.lax.convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=True, sharding=None)
    return out


__all__ = ["Array", "alone", "as_array", "as_weak", "is_tracer", "local_arrays", "put_together", "uncommitted"]
