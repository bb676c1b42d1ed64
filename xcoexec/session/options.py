"""What `jit`, `compile` and `bind` may be told, validated once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax

from .. import config
from ..devices.registry import device_half
from ..errors import brief
from ..ir.plan import Plan, UniformPlan
from ..measure.profile import Progress, silent
from ..planning.memory import POLICIES, amount
from ..planning.strategies import STRATEGIES, Strategy

COSTS = ("measured", "predicted")
SPARE = 2  # cores left to the caller and the driver on a machine with a device


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """See `jit` for what the user says. `cpus`, `threads`: the host half's; `threads_given`: somebody said how many;
    `device_memory`: bytes (an int) or a share of the device's (a float); `apart`: inputs in host memory and on the
    device are planned for on their own; `off`: everything is plain `jax.jit`.
    """

    strategy: str | Strategy
    strict: bool
    plan: Plan | UniformPlan | None
    memory: str
    predicted: bool
    device_memory: int | float | None
    cpus: tuple[int, ...]
    apart: bool
    threads: int
    threads_given: bool
    progress: Progress
    off: bool

    @classmethod
    def checked(
        cls,
        *,
        strategy: str | Strategy = "auto",
        threads: int | None = None,
        affinity: Iterable[int] | None = None,
        strict: bool = False,
        plan: Plan | UniformPlan | None = None,
        device: Any = None,
        progress: Progress | None = None,
        memory: str = "auto",
        device_memory: object = None,
        costs: str = "measured",
    ) -> Options:
        """Raises `ValueError` or `TypeError` that says what is valid."""
        _check_strategy(strategy)
        _check_plan(plan)
        if not isinstance(strict, bool):
            raise TypeError(f"xcoexec.jit: got strict={brief(strict)}; valid is True or False.")
        if device is not None and getattr(device, "platform", device) != jax.default_backend():
            backend = jax.default_backend()
            raise ValueError(
                f"xcoexec.compile: got device={brief(device)}; valid is JAX's default backend, here {backend!r}."
            )
        _check_word("memory", memory, POLICIES)
        _check_word("costs", costs, COSTS)
        if progress is not None and not callable(progress):
            raise TypeError(
                f"xcoexec.jit: got progress={brief(progress)}; valid is a function of (stage, done, total)."
            )
        share, cpus = amount(device_memory), config.affinity(affinity)
        apart = device_half().apart
        count = config.threads(len(cpus) if cpus and threads is None else threads, SPARE if apart else 0)
        if cpus and count > len(cpus):
            raise ValueError(
                f"xcoexec: got threads={count} for affinity={cpus}; valid are as many threads as cores, or fewer."
            )
        given = threads is not None or bool(cpus) or config.threads_set()
        return cls(
            strategy,
            strict,
            plan,
            memory,
            costs == "predicted",
            share,
            cpus,
            apart,
            count,
            given,
            progress or silent,
            config.disabled(),
        )


def _check_strategy(strategy: object) -> None:
    names = (*STRATEGIES, "auto")
    if not callable(strategy) and strategy not in names:
        known = f"{', '.join(names)}, or a function of graph and costs that returns a Plan"
        raise ValueError(f"xcoexec.jit: got strategy={brief(strategy)}; valid are {known}.")


def _check_plan(plan: object) -> None:
    if plan is not None and not isinstance(plan, (Plan, UniformPlan)):
        raise TypeError(
            f"xcoexec.jit: got plan={brief(plan)}; "
            "valid is a Plan (Plan.from_json, Plan.uniform, or what .plan returned)."
        )


def _check_word(name: str, got: object, valid: tuple[str, ...]) -> None:
    if got not in valid:
        raise ValueError(f"xcoexec.jit: got {name}={brief(got)}; valid are {', '.join(valid)}.")
