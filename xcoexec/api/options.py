"""What `jit`, `compile` and `bind` may be told, validated once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import jax

from .. import config
from ..errors import brief
from ..ir.records import Plan, UniformPlan
from ..measure.profile import Progress, silent
from ..planning.memory import POLICIES, amount
from ..planning.strategies import NAMES, Strategy

COSTS = ("measured", "predicted")
SPARE = 2  # cores left to the caller and the driver on a machine with a device


class Options:
    """See `jit`. Raises `ValueError` or `TypeError` that says what is valid."""

    def __init__(
        self,
        strategy: str | Strategy,
        threads: int | None,
        affinity: Iterable[int] | None,
        strict: bool,
        plan: Plan | UniformPlan | None,
        device: Any,
        progress: Progress | None,
        memory: str = "auto",
        device_memory: object = None,
        costs: str = "measured",
    ):
        if not callable(strategy) and strategy not in NAMES:
            known = f"{', '.join(NAMES)}, or a function of graph and costs that returns a Plan"
            raise ValueError(f"xcoexec.jit: got strategy={brief(strategy)}; valid are {known}.")
        if not isinstance(strict, bool):
            raise TypeError(f"xcoexec.jit: got strict={brief(strict)}; valid is True or False.")
        if plan is not None and not isinstance(plan, (Plan, UniformPlan)):
            raise TypeError(
                f"xcoexec.jit: got plan={brief(plan)}; valid is a Plan (Plan.from_json, Plan.uniform, or what .plan returned)."
            )
        if device is not None and getattr(device, "platform", device) != jax.default_backend():
            raise ValueError(
                f"xcoexec.compile: got device={brief(device)}; valid is JAX's default backend, here {jax.default_backend()!r}."
            )
        if memory not in POLICIES:
            raise ValueError(f"xcoexec.jit: got memory={brief(memory)}; valid are {', '.join(POLICIES)}.")
        if costs not in COSTS:
            raise ValueError(f"xcoexec.jit: got costs={brief(costs)}; valid are {', '.join(COSTS)}.")
        if progress is not None and not callable(progress):
            raise TypeError(
                f"xcoexec.jit: got progress={brief(progress)}; valid is a function of (stage, done, total)."
            )
        self.strategy, self.strict, self.plan, self.memory, self.predicted = (
            strategy,
            strict,
            plan,
            memory,
            costs == "predicted",
        )
        self.device_memory = amount(device_memory)
        self.cpus = config.affinity(affinity)
        self.apart = (
            jax.default_backend() != "cpu"
        )  # inputs in host memory and on the device are planned for on their own
        self.threads = config.threads(len(self.cpus) if self.cpus and threads is None else threads, SPARE * self.apart)
        if self.cpus and self.threads > len(self.cpus):
            raise ValueError(
                f"xcoexec: got threads={self.threads} for affinity={self.cpus}; valid are as many threads as cores, or fewer."
            )
        self.threads_given = threads is not None or bool(self.cpus) or config.THREADS in os.environ
        self.progress = progress or silent
        self.off = config.disabled()
