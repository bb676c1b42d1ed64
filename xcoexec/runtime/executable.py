"""One plan as one XLA executable with its weights resident."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..compat import plain_jit
from ..ir import Plan
from ..lower import Lowered


@dataclasses.dataclass(frozen=True, eq=False)
class Executable:
    """`call(leaves)`: the inputs' leaves in, flat results out. `lowered` is None for plain `jax.jit`."""

    plan: Plan
    call: Callable[[Sequence[Any]], Sequence[Any]]
    lowered: Lowered | None


def executable(plan: Plan, lowered: Lowered, weights: Sequence[Any], donated: Sequence[int], compiler_options: Mapping[str, Any] | None = None) -> Executable:
    """Packs the weights and wraps the lowered function in `jax.jit`; `donated`: positions among the inputs."""
    args = tuple(lowered.arguments(weights))
    n = len(args)

    def fn(*flat: Any) -> list[Any]:
        return lowered(flat[:n], flat[n:])

    jitted = plain_jit(fn, donate_argnums=tuple(n + i for i in donated), compiler_options=dict(compiler_options) if compiler_options else None)
    return Executable(plan, lambda leaves: jitted(*args, *leaves), lowered)


def local(plan: Plan, lowered: Lowered, weights: Sequence[Any]) -> Executable:
    """A plan on XLA:CPU on a machine whose default backend is a device: for inputs in host memory.

    Nothing in it is committed to a device, so results mix with the device's arrays as NumPy arrays would.
    """
    cpu = jax.local_devices(backend="cpu")[0]
    with jax.default_device(cpu):
        args = tuple(a if a.devices() == {cpu} else jax.numpy.asarray(np.asarray(a)) for a in lowered.arguments([np.asarray(w) for w in weights]))
        n = len(args)
        jitted = plain_jit(lambda *flat: lowered(flat[:n], flat[n:]))

    def call(leaves: Sequence[Any]) -> Sequence[Any]:
        near = [np.asarray(x) if isinstance(x, jax.Array) and x.devices() != {cpu} else x for x in leaves]
        with jax.default_device(cpu):
            return jitted(*args, *near)

    return Executable(plan, call, lowered)
