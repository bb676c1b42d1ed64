"""What `jit`, `compile` and `bind` may be told, validated once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import TypedDict, TypeVar, Unpack

import jax

from .. import config
from ..devices.registry import device_half
from ..errors import brief
from ..ir.plan import Plan, UniformPlan
from ..measure.profile import Progress, silent
from ..planning.memory import POLICIES, amount
from ..planning.strategies import STRATEGIES, Strategy

R = TypeVar("R")
COSTS = ("measured", "predicted")
#: what products may be computed in -> JAX's name of it
PRECISIONS = {"bf16": "BF16_BF16_F32", "bf16x3": "BF16_BF16_F32_X3"}
SPARE = 2  # cores left to the caller and the driver on a machine with a device


class Words(TypedDict, total=False):
    """What the user says: the parameters of `jit` but for the function and those of `jax.jit`."""

    strategy: str | Strategy
    threads: int | None
    affinity: Iterable[int] | None
    strict: bool
    plan: Plan | UniformPlan | None
    memory: str
    device_memory: str | int | float | None
    costs: str
    progress: Progress | None
    wait: bool | None
    precision: str | None


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """See `jit` for what the user says. `cpus`: cores of the host half; `count`: the most threads that it has, and as
    many as it has where somebody has said so (`threads_given`); `device_memory`: bytes (an int) or a share of the
    device's (a float); `off`: everything is plain `jax.jit`; `waits`: a first call waits for its plan; `plan_seconds`:
    the most that a first planning takes.

    What depends on JAX's backend is found when it is first asked for: a decorator must not start one, since programs
    say behind their decorators how many devices there are (`jax.distributed.initialize`, `jax.config`).
    """

    strategy: str | Strategy
    strict: bool
    plan: Plan | UniformPlan | None
    memory: str
    predicted: bool
    device_memory: int | float | None
    cpus: tuple[int, ...]
    count: int
    threads_given: bool
    progress: Progress
    off: bool
    waits: bool
    plan_seconds: float

    @classmethod
    def checked(cls, device: object = None, **words: Unpack[Words]) -> Options:
        """What the user says, with what is valid where they say nothing; `device`: None, or JAX's default backend.
        Raises `ValueError` or `TypeError` that says what is valid.
        """
        words = {**DEFAULTS, **words}
        _check(words, device)
        threads, progress = words["threads"], words["progress"]
        memory, cpus = amount(words["device_memory"]), config.affinity(words["affinity"])
        return cls(
            strategy=words["strategy"],
            strict=words["strict"],
            plan=words["plan"],
            memory=words["memory"],
            predicted=words["costs"] == "predicted",
            device_memory=memory,
            cpus=cpus,
            count=_count(threads, cpus),
            threads_given=threads is not None or bool(cpus) or config.threads_set(),
            progress=progress or silent,
            off=config.disabled(),
            waits=_waits(words),
            plan_seconds=config.plan_seconds(),
        )

    @functools.cached_property
    def apart(self) -> bool:
        """Whether inputs in host memory and on the device are planned for on their own."""
        return device_half().apart

    @functools.cached_property
    def threads(self) -> int:
        """Threads of the host half; a machine with a device keeps some cores for others where nobody has said how
        many.
        """
        return self.count if self.threads_given or not self.apart else max(1, self.count - SPARE)

    def with_threads(self, threads: int) -> Options:
        """The same with so many threads."""
        return dataclasses.replace(self, count=threads, threads_given=True)


#: of what the user does not say
DEFAULTS = Words(
    strategy="auto",
    threads=None,
    affinity=None,
    strict=False,
    plan=None,
    memory="auto",
    device_memory=None,
    costs="measured",
    progress=None,
    wait=None,
    precision=None,
)


def rounding(fn: Callable[..., R], precision: str | None) -> Callable[..., R]:
    """`fn` with products in that precision where it does not name one itself."""
    if precision is None:
        return fn

    @functools.wraps(fn)
    def rounded(*args: object, **kwargs: object) -> R:
        with jax.default_matmul_precision(PRECISIONS[precision]):
            return fn(*args, **kwargs)

    return rounded


def _check(words: Words, device: object) -> None:
    """Raises `ValueError` or `TypeError` for the first word that is not valid."""
    _check_strategy(words["strategy"])
    _check_plan(words["plan"])
    strict, progress = words["strict"], words["progress"]
    if not isinstance(strict, bool):
        raise TypeError(f"xcoexec.jit: got strict={brief(strict)}; valid is True or False.")
    if not isinstance(words["wait"], (bool, type(None))):
        raise TypeError(f"xcoexec.jit: got wait={brief(words['wait'])}; valid is True or False.")
    if device is not None and getattr(device, "platform", device) != jax.default_backend():
        backend = jax.default_backend()
        raise ValueError(
            f"xcoexec.compile: got device={brief(device)}; valid is JAX's default backend, here {backend!r}."
        )
    _check_word("memory", words["memory"], POLICIES)
    _check_word("costs", words["costs"], COSTS)
    if words["precision"] is not None:
        _check_word("precision", words["precision"], tuple(PRECISIONS))
    if progress is not None and not callable(progress):
        raise TypeError(f"xcoexec.jit: got progress={brief(progress)}; valid is a function of (stage, done, total).")


def _waits(words: Words) -> bool:
    """Whether a first call waits for its plan: where that is asked for, and where plain `jax.jit` is no answer (another
    plan is, errors are to be raised, or there is no room for it).
    """
    asked = words["strategy"] != "auto" or words["plan"] is not None
    bound = words["strict"] or words["device_memory"] is not None
    wanted = words["wait"]
    return asked or bound or (config.wait() if wanted is None else wanted)


def _count(threads: int | None, cpus: tuple[int, ...]) -> int:
    """Threads of the host half: as many as are asked for, else one for each of its cores `cpus`, else for each core.
    Raises `ValueError` for more threads than `cpus`.
    """
    count = config.threads(len(cpus) if cpus and threads is None else threads)
    if cpus and count > len(cpus):
        raise ValueError(
            f"xcoexec: got threads={count} for affinity={cpus}; valid are as many threads as cores, or fewer."
        )
    return count


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
