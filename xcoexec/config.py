"""Environment knobs, validated in one place.

XCOEXEC_THREADS: host threads when `threads=` is not given (default: the cores this process may use).
XCOEXEC_ADAPT: 0 switches the re-planning at run time off.
XCOEXEC_DISABLE: with 1 functions made from now on are plain `jax.jit`.
XCOEXEC_WAIT: with 1 first calls wait for their plans where `wait=` is not given.
XCOEXEC_PLAN_SECONDS: the most seconds that a first planning takes (default: as many as it needs).
XCOEXEC_LOG: info or debug: what is planned and decided is logged on standard error (default: warnings alone).
XCOEXEC_TRACEBACK: with 1 errors of the user's function keep the library's own frames.

`codegen/environment.py` reads those of the kernels:
XCOEXEC_ISA: avx512, avx2, neon or portable (default: the widest this CPU runs).
XCOEXEC_CACHE_DIR: where kernels, plans and profiles are kept (default ~/.cache/xcoexec; empty: nowhere).
"""

from __future__ import annotations

import logging
import math
import operator
import os
from collections.abc import Iterable

MAX_THREADS = 256
THREADS = "XCOEXEC_THREADS"
LEVELS = {"info": logging.INFO, "debug": logging.DEBUG}


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable() -> tuple[int, ...]:
    """The numbers of these cores; only how many there are where the system does not tell."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else tuple(range(cores()))


def threads(requested: int | None = None, spare: int = 0) -> int:
    """Host threads to use; `spare`: cores left alone when nobody says how many. Raises `ValueError` for anything but 1
    to 256.
    """
    where = "threads"
    got: object = requested
    if requested is None:
        got, where = os.environ.get(THREADS) or max(1, cores() - spare), THREADS
    try:
        n = int(got)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        n = 0
    if isinstance(got, (bool, float)) or not 1 <= n <= MAX_THREADS:
        raise ValueError(f"xcoexec: got {where}={got!r}; valid is a whole number from 1 to {MAX_THREADS}.")
    return n


def threads_set() -> bool:
    """Whether the environment says how many host threads there are."""
    return bool(os.environ.get(THREADS))


def settings() -> dict[str, str]:
    """The environment's variables that are this library's, by name."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("XCOEXEC_")}


def xla_flags() -> str:
    """The flags that XLA was given ("" for none)."""
    return os.environ.get("XLA_FLAGS", "")


def environment_with(**changes: str) -> dict[str, str]:
    """The environment of this process with changes, for a process to be started."""
    return {**os.environ, **changes}


def affinity(requested: Iterable[int] | None) -> tuple[int, ...]:
    """Cores to pin host threads to, sorted; () for none. Raises `ValueError` for cores that this process may not
    use.
    """
    if requested is None:
        return ()
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        cpus = tuple(sorted({operator.index(c) for c in requested}))
    except TypeError:
        cpus = ()
    if not cpus or not set(cpus) <= allowed:
        raise ValueError(
            f"xcoexec: got affinity={requested!r}; "
            f"valid are some of the cores {sorted(allowed)} that this process may use."
        )
    return cpus


def _switch(name: str, default: str) -> bool:
    value = os.environ.get(name, default)
    if value not in ("0", "1"):
        raise ValueError(f"xcoexec: got {name}={value!r}; valid is 0 or 1.")
    return value == "1"


def adapt() -> bool:
    """Whether bound functions watch their times and plan again. Raises `ValueError` for anything but 0 or 1."""
    return _switch("XCOEXEC_ADAPT", "1")


def disabled() -> bool:
    """Whether new functions are plain `jax.jit`. Raises `ValueError` for anything but 0 or 1."""
    return _switch("XCOEXEC_DISABLE", "0")


def wait() -> bool:
    """Whether first calls wait for their plans. Raises `ValueError` for anything but 0 and 1."""
    return _switch("XCOEXEC_WAIT", "0")


def plan_seconds() -> float:
    """The most seconds that a first planning takes. Raises `ValueError` for anything but a number above 0."""
    got = os.environ.get("XCOEXEC_PLAN_SECONDS") or "inf"
    try:
        found = float(got)
    except ValueError:
        found = math.nan
    if not found > 0:
        raise ValueError(f"xcoexec: got XCOEXEC_PLAN_SECONDS={got!r}; valid are seconds above 0.")
    return found


def whole_tracebacks() -> bool:
    """Whether tracebacks keep the library's own frames. Raises `ValueError` for anything but 0 or 1."""
    return _switch("XCOEXEC_TRACEBACK", "0")


def listen() -> None:
    """Logs to standard error what XCOEXEC_LOG asks for. Raises `ValueError` for anything but info and debug."""
    got = os.environ.get("XCOEXEC_LOG", "")
    if not got:
        return
    if got not in LEVELS:
        raise ValueError(f"xcoexec: got XCOEXEC_LOG={got!r}; valid are {' and '.join(LEVELS)}.")
    log = logging.getLogger("xcoexec")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s xcoexec %(levelname)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)
        log.propagate = False
    log.setLevel(LEVELS[got])
