"""Tries what the library needs on this machine, and says what is slow and why: `xcoexec doctor`."""

from __future__ import annotations

import dataclasses
import functools
import os
import textwrap
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..api.functions import jit
from ..codegen.environment import cache_folder, isa
from ..codegen.runtime.peaks import peaks
from ..codegen.store.disk import folder
from ..codegen.target import ISAS, target
from ..compat import jit_is_disabled
from ..config import cores, disabled, xla_flags
from ..config import threads as host_threads
from ..ir.plan import Plan, UniformPlan
from ..ir.text import WIDTH, columns, duration, number
from ..session.options import Words

GOOD, SLOW, FAILED = "good", "look", "FAILED"
CLOSE = 1e-4  # of the output's scale, against float64 NumPy
MARGIN = 22  # columns left of what was found
SHAPES = ((37, 129), (129, 65))  # odd, so that remainders run too


@dataclasses.dataclass(frozen=True)
class Check:
    """What was looked at, how it is (`good`, `look` or `FAILED`), and what was found or is to be done."""

    what: str
    state: str
    found: str


def _product(threads: int, strategy: str = "auto", plan: UniformPlan | None = None) -> Check:
    """A product and an activation, compared with float64 NumPy."""
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in SHAPES)
    begin = time.perf_counter()
    options = Words(threads=threads, strategy=strategy, plan=plan, strict=True, wait=True)
    fast = jit(lambda w, x: jnp.tanh(x @ w), **options).bind(w)
    got = np.asarray(fast(x))
    seconds = time.perf_counter() - begin
    want = np.tanh(np.asarray(x, np.float64) @ np.asarray(w, np.float64))
    error = float(np.abs(got - want).max())
    where = ", ".join(sorted({p.half for p in fast.plan().placements}))
    state = GOOD if error < CLOSE else FAILED
    return Check("", state, f"ran on {where}; error {error:.0e}; first call {duration(seconds)}")


def _kernel(threads: int) -> Check:
    return _product(threads, strategy="host")


def _split(threads: int) -> Check:
    return _product(threads, plan=Plan.uniform(0.5))


def _device(threads: int) -> Check:
    if jax.default_backend() == "cpu":
        return Check("", GOOD, "JAX sees no GPU: XLA:CPU is the device half")
    return _product(threads)


def _cores(threads: int) -> Check:
    if threads > cores():
        found = f"{threads} threads on {cores()} cores wait for each other: lower XCOEXEC_THREADS or --threads"
        return Check("", SLOW, found)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5 * cores():
        return Check("", SLOW, f"load {load:.1f} on {cores()} cores: other programs slow measurements down")
    return Check("", GOOD, f"{threads} threads on {cores()} cores, load {load:.1f}")


def _instructions(threads: int) -> Check:
    widest = "" if not isa() else f"XCOEXEC_ISA={isa()} is set: kernels may be narrower than the CPU"
    if widest or target().name == list(ISAS)[-1]:
        return Check("", SLOW, widest or "portable vectors: this CPU has none of " + ", ".join(list(ISAS)[:-1]))
    return Check("", GOOD, f"{target().name} on {target().cpu}")


def _speed(threads: int) -> Check:
    found = peaks(threads)
    flops, read = number(found.flops / 1e9), number(found.bandwidth / 1e9)
    return Check("", GOOD, f"{flops} GFLOP/s of f32, {read} GB/s from memory")


def _cache(threads: int) -> Check:
    if not cache_folder():
        return Check("", SLOW, "XCOEXEC_CACHE_DIR is empty: every process plans anew")
    if folder() is None:
        return Check("", SLOW, f"{cache_folder()} is not used: make it yours alone (chmod 700)")
    return Check("", GOOD, str(folder()))


def _settings(threads: int) -> Check:
    if disabled():
        return Check("", SLOW, "XCOEXEC_DISABLE=1 is set: everything is plain jax.jit")
    if jit_is_disabled():
        return Check("", SLOW, "jax_disable_jit is on: everything runs operation by operation")
    return Check("", GOOD, f"XLA_FLAGS: {xla_flags() or 'none'}")


CHECKS: dict[str, Callable[[int], Check]] = {
    "settings": _settings,
    "cores": _cores,
    "instructions": _instructions,
    "cache": _cache,
    "speed": _speed,
    "a kernel": _kernel,
    "a split": _split,
    "GPU": _device,
}


def examined(threads: int | None = None) -> list[Check]:
    """All checks in turn; what raises is `FAILED` and says what it raised."""
    return [_tried(name, functools.partial(check, host_threads(threads))) for name, check in CHECKS.items()]


def _tried(name: str, check: Callable[[], Check]) -> Check:
    try:
        return dataclasses.replace(check(), what=name)
    except Exception as e:  # a doctor reports whatever is wrong
        return Check(name, FAILED, f"{type(e).__name__}: {e}")


def text(checks: list[Check]) -> str:
    """The checks as rows, and what they come to."""
    count = sum(c.state != GOOD for c in checks)
    sums = "All is well." if not count else f"{count} of {len(checks)} need a look."
    wide = textwrap.TextWrapper(WIDTH - MARGIN, break_long_words=False).wrap
    rows = [
        ["" if i else c.what, "" if i else c.state, line]
        for c in checks
        for i, line in enumerate(wide(c.found) or [""])
    ]
    return f"{columns(rows)}\n{sums}"


__all__ = ["CHECKS", "FAILED", "GOOD", "SLOW", "Check", "examined", "text"]
