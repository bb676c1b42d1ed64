"""A traced function with its weights -> what calls use: all stages, with plain jax.jit where one fails."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from ..api.options import Options
from ..codegen.runtime import host
from ..codegen.runtime.relay import Relay
from ..devices.cuda import relay
from ..errors import BindError
from ..frontend.trace import Traced
from ..guard import Asked, Failed, asked, stage, warn
from ..ir.records import Plan
from ..planning.strategies import strategy_name
from .compiled import Compiled, Fallback
from .contest import choose
from .executable import Executable
from .stages import Stages, stages

CPU_ALONE = "on the CPU alone, because its weights do not fit the device's memory"


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """What has to be compiled: which of the example `leaves` are weights and which inputs, the inputs that are given
    away, plain jax.jit of the inputs, and the parameters of `jax.jit` as the caller named them. `sibling`: the same
    function is planned already for other shapes. `compile_plain`: what plain jax.jit compiles for the example; raises
    what it raises."""

    traced: Traced
    index: tuple[int, ...]
    inputs: tuple[int, ...]
    leaves: Sequence[Any]
    donated: tuple[int, ...]
    plain: Callable[[Sequence[Any]], Sequence[Any]]
    given: Mapping[str, Any]
    sibling: bool
    compile_plain: Callable[[], Any]

    @property
    def weights(self) -> list[Any]:
        return [self.leaves[i] for i in self.index]

    @property
    def example(self) -> list[Any]:
        """The inputs; of those that are given away a copy, as the call that follows takes them."""
        found = [self.leaves[i] for i in self.inputs]
        return [jax.numpy.array(x, copy=True) if i in self.donated else x for i, x in enumerate(found)]


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    task: Task
    compiled: Compiled


def prepared(
    name: str, options: Options, make: Callable[[], Task], refuse: Callable[[Sequence[Any]], str]
) -> Prepared | Fallback:
    """Compiles a task. Whatever fails on the way, but for what the caller asked for, ends in plain jax.jit with one
    warning (an error when strict).

    Where plain jax.jit cannot compile the function either, its exception is raised.

    `refuse`: of the weights, why they cannot be used ("" where they can).
    """
    task: Task | None = None
    try:
        task = make()
        why = refuse(task.weights)
        return refused(name, options, why) if why else Prepared(task, _compiled(name, options, task))
    except Asked as e:
        raise e.error from None
    except BindError:
        raise
    except Failed as e:
        why, cause = e.why, e.__cause__
    except Exception as e:
        why, cause = Failed("preparing", e).why, e
    if task is not None:
        task.compile_plain()
    try:
        return refused(name, options, why)
    except BindError as e:
        raise e from cause


def refused(name: str, options: Options, why: str) -> Fallback:
    """Plain jax.jit, with one warning that says why. Raises `BindError` when strict."""
    warn(name, why, options.strict)
    return Fallback(strategy_name(options.strategy), why)


def device_relay(cpus: tuple[int, ...]) -> Relay | None:
    """What connects the host half to the device half; None where both are on the CPU. Raises where there is no such
    connection.
    """
    backend = jax.default_backend()
    if backend not in ("cpu", "gpu"):
        raise NotImplementedError(
            f"the default backend is {backend!r}, and this version's device half is XLA:CPU or a CUDA GPU"
        )
    return relay(cpus) if backend == "gpu" else None


def device_limit(given: float | int | None, relay: Relay | None) -> int | None:
    """Bytes that a plan may keep on the device for `device_memory=`; a share is of the memory that the device has."""
    if given is None or relay is None:
        return None
    nbytes = int(given * relay.driver.memory()[1]) if isinstance(given, float) else given
    if nbytes <= relay.driver.workspace:
        raise ValueError(
            f"xcoexec.jit: got device_memory={given!r}; valid is more than {relay.driver.workspace} bytes, which XLA's libraries need."
        )
    return nbytes - relay.driver.workspace


def _compiled(name: str, options: Options, task: Task) -> Compiled:
    """All stages of one function for its weights and example inputs."""
    host.prefetch(options.apart)
    with stage("building the graph"):
        settings = {
            "threads": options.threads,
            "cpus": options.cpus,
            "donated": task.donated,
            "plain": task.plain,
            "progress": options.progress,
        }
        s = stages(task.traced, task.index, task.weights, task.example, **settings)
        s.sibling, s.memory, s.compiler_options = task.sibling, options.memory, task.given.get("compiler_options")
    with stage("connecting the device"):
        s.relay = device_relay(options.cpus)
    s.limit = asked(device_limit, options.device_memory, s.relay)
    try:
        exe = _planned(s, options)
    except Failed as e:
        if s.limit is None or not s.bounded:
            raise
        warn(name, e.why, options.strict, CPU_ALONE)
        exe = s.fallback(strategy_name(options.strategy), e.why)
    s.forget()
    return Compiled(s, exe, options.strategy, functools.partial(_retired, name, options.strict))


def _planned(s: Stages, options: Options) -> Executable:
    """The executable of a plan, after its first call."""
    with stage("planning"):
        if options.predicted:
            from ..measure.training import stored

            s.predictor = asked(stored, s.relay, options.threads)
        exe = choose(s, options.strategy, options.plan)
    with stage("the first call"):
        if exe.lowered is not None:
            s.run(exe)
    return exe


def _retired(name: str, strict: bool, why: str, plan: Plan) -> None:
    """Tells that a function left its plan at run time."""
    warn(name, why, strict, CPU_ALONE if plan.engine == "local" else "with plain jax.jit")
