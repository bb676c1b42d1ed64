"""A traced function with its weights -> what calls use: all stages, with plain jax.jit where they fail."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .codegen import host
from .codegen.relay import Relay
from .compiled import Compiled
from .errors import BindError, CoexecWarning
from .ir import Plan
from .runtime.cuda import relay
from .select import choose
from .stages import stages
from .strategies import strategy_name
from .trace import Traced

if TYPE_CHECKING:
    from .api import CoFunction


def check(leaves: Sequence[Any]) -> None:
    for x in leaves:
        if not (hasattr(x, "dtype") or isinstance(x, (int, float, complex, bool, np.generic))):
            raise TypeError(f"xcoexec.jit: got an argument of type {type(x).__name__}; valid are arrays and numbers (name others in static_argnums).")


def warn(owner: CoFunction, why: str, plan: Plan | None = None) -> None:
    name = getattr(owner._fn, "__name__", "function")
    if owner._options.strict:
        raise BindError(f"xcoexec.jit(strict=True): {name} cannot be co-executed: {why}.")
    how = "on the CPU alone, because its weights do not fit the device's memory" if plan is not None and plan.engine == "local" else "with plain jax.jit"
    warnings.warn(f"xcoexec: {name} runs {how}: {why}.", CoexecWarning, stacklevel=5)


def device_relay(cpus: tuple[int, ...]) -> Relay | None:
    """What connects the host half to the device half; None where both are on the CPU. Raises where there is no such connection."""
    backend = jax.default_backend()
    if backend not in ("cpu", "gpu"):
        raise NotImplementedError(f"the default backend is {backend!r}, and this version's device half is XLA:CPU or a CUDA GPU")
    return relay(cpus) if backend == "gpu" else None


def device_limit(given: float | int | None, relay: Relay | None) -> int | None:
    """Bytes that a plan may keep on the device for `device_memory=`; a share is of the memory that the device has."""
    if given is None or relay is None:
        return None
    nbytes = int(given * relay.driver.memory()[1]) if isinstance(given, float) else given
    if nbytes <= relay.driver.workspace:
        raise ValueError(f"xcoexec.jit: got device_memory={given!r}; valid is more than {relay.driver.workspace} bytes, which XLA's libraries need.")
    return nbytes - relay.driver.workspace


def compile_stages(
    owner: CoFunction,
    traced: Traced,
    index: Sequence[int],
    weights: Sequence[Any],
    values: Sequence[Any],
    donated: tuple[int, ...],
    plain: Callable[..., Any],
    sibling: bool = False,
) -> Compiled:
    """All stages for one function, its weights and example inputs; falls back to plain jax.jit with one warning."""
    options = owner._options
    host.prefetch(options.apart)
    example = [x for i, x in enumerate(values) if i not in set(index)]
    s = stages(traced, index, weights, example, threads=options.threads, cpus=options.cpus, donated=donated, plain=plain, progress=options.progress)
    s.sibling, s.memory = sibling, options.memory
    try:
        s.relay = device_relay(options.cpus)
        s.limit = device_limit(options.device_memory, s.relay)
        if options.predicted:
            from .training import stored

            s.predictor = stored(s.relay, options.threads)
        if traced.effects:
            raise NotImplementedError("it has side effects (printing, callbacks), which must keep their order")
        exe = choose(s, options.strategy, options.plan)
    except (ValueError, TypeError):
        raise
    except Exception as e:
        exe = s.fallback(strategy_name(options.strategy), str(e))
        warn(owner, f"{type(e).__name__}: {e}", exe.plan)
    s.forget()
    return Compiled(s, exe, options.strategy, functools.partial(warn, owner))
