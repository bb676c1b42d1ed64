"""`xcoexec.jit` in the place of `jax.jit`, with a count of what it does, so that no fallback counts as a success."""

from __future__ import annotations

import functools
import re
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import jax

UNDER_TEST = ("chex", "optax", "flax")
REASON = 200  # characters of a reason that are kept
WHY, OURS = "why ", "(an error of xcoexec)"
NOTHING = "nothing is computed: results are arguments and constants"

#: what happened since it was last cleared; "why ..." is the reason of a fallback, or of a layer without kernels
seen: Counter[str] = Counter()


def _options(mode: str) -> dict[str, Any]:
    """The options of `xcoexec.jit` for a mode. "host" is a forced plan: kernels wherever they exist, no measurement."""
    from xcoexec import Plan

    modes: Mapping[str, Callable[[], dict[str, Any]]] = {
        "host": lambda: {"plan": Plan.uniform(1.0)},
        "auto": lambda: {"strategy": "auto"},
        "device": lambda: {"strategy": "device"},
    }
    if mode not in modes:
        raise RuntimeError(f"XCOEXEC_OUTSIDE_JIT: got {mode!r}; valid are plain, {', '.join(modes)}.")
    return modes[mode]()


def replace(mode: str) -> None:
    """Puts `xcoexec.jit` in the place of `jax.jit` for all that is imported from now on."""
    early = [name for name in UNDER_TEST if name in sys.modules]
    if early:
        raise RuntimeError(f"tests.outside.plugin: got {', '.join(early)} imported already; load the plugin first.")
    import xcoexec

    original, ours = jax.jit, functools.partial(xcoexec.jit, **_options(mode))

    @functools.wraps(original, updated=())
    def jit(*args: Any, **kwargs: Any) -> Any:
        seen["functions"] += 1
        return ours(*args, **kwargs)

    del jit.__wrapped__
    jax.jit = jit
    _observe()
    _hush()


def _observe() -> None:
    """Counts what is planned and called, where the library does it."""
    from xcoexec.api.functions import CoPjitFunction
    from xcoexec.compat import NOTHING as NO_TRACE
    from xcoexec.compat import TRACED
    from xcoexec.session.plain_session import PlainSession
    from xcoexec.session.session import Session

    def called(self: CoPjitFunction, *args: Any, **kwargs: Any) -> Any:
        seen["calls"] += 1
        seen["calls traced"] += TRACED.trace is not NO_TRACE
        return call(self, *args, **kwargs)

    def planned(self: Session, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        seen["programs"] += 1
        if _kernels(self):
            seen["programs with kernels"] += 1
        else:
            places = self.plan().placements
            notes = {p.note for p in places if p.note} or {self.plan().chosen if places else NOTHING}
            seen.update(WHY + _short(why) for why in notes)

    def refused(self: PlainSession, strategy: str, why: str) -> None:
        fallback(self, strategy, why)
        seen.update(("programs", "programs that fell back", WHY + _short(why)))

    def ran(self: Session, leaves: Any, *exe: Any) -> Any:
        seen["calls with kernels"] += _kernels(self)
        return run(self, leaves, *exe)

    call, made, fallback, run = CoPjitFunction.__call__, Session.__init__, PlainSession.__init__, Session.call
    for owner, name, watched in (
        (CoPjitFunction, "__call__", called),
        (Session, "__init__", planned),
        (PlainSession, "__init__", refused),
        (Session, "call", ran),
    ):
        setattr(owner, name, watched)


def _hush() -> None:
    """The library's own warnings are not shown: no suite expects them, and some turn every warning into an error."""
    from xcoexec.errors import CoexecWarning

    def warn(message: Any, category: Any = None, stacklevel: int = 1, **rest: Any) -> None:
        if category is CoexecWarning:
            seen["warnings"] += 1
        else:
            warnings.warn(message, category, stacklevel + 1, **rest)

    quiet = types.ModuleType("warnings")
    quiet.__dict__.update(vars(warnings), warn=warn)
    for module in [m for name, m in sys.modules.items() if name.startswith("xcoexec")]:
        if getattr(module, "warnings", None) is warnings:
            module.warnings = quiet  # type: ignore[attr-defined]


def _kernels(session: Any) -> bool:
    lowered = session.current.lowered
    return lowered is not None and bool(lowered.segments)


def _short(why: str) -> str:
    """A reason without the names and numbers of one case, so that equal causes count together."""
    text, mark, _ = why.splitlines()[0].partition(" (this is an error of xcoexec")
    return (OURS + " ") * bool(mark) + re.sub(r"\d+", "N", text)[:REASON]
