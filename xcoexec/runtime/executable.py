"""One plan as one XLA executable with its weights resident."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..ir import Plan
from ..lower import Lowered


@dataclasses.dataclass(frozen=True, eq=False)
class Executable:
    """`call(leaves)`: the inputs' leaves in, flat results out. `lowered` is None for plain `jax.jit`."""

    plan: Plan
    call: Callable[[Sequence[Any]], Sequence[Any]]
    lowered: Lowered | None


def executable(plan: Plan, lowered: Lowered, weights: Sequence[Any], donated: Sequence[int]) -> Executable:
    """Packs the weights and wraps the lowered function in `jax.jit`; `donated`: positions among the inputs."""
    args = tuple(lowered.arguments(weights))
    n = len(args)

    def fn(*flat: Any) -> list[Any]:
        return lowered(flat[:n], flat[n:])

    jitted = jax.jit(fn, donate_argnums=tuple(n + i for i in donated))
    return Executable(plan, lambda leaves: jitted(*args, *leaves), lowered)
