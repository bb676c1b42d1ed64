"""`xcoexec.jit` in the place of `jax.jit`, with a count of what it does: nothing that falls back counts as a success."""

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
REASON = 160  # characters of a reason that are kept

#: what happened since it was last cleared; "why ..." is the reason of a fallback, or of a layer without kernels
seen: Counter[str] = Counter()


def _options(mode: str) -> dict[str, Any]:
    """The options of `xcoexec.jit` for a mode. "host" is a forced plan: kernels wherever they exist, nothing is measured."""
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

    @functools.wraps(original)
    def jit(*args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("xcoexec"):
            return original(*args, **kwargs)
        seen["functions"] += 1
        return ours(*args, **kwargs)

    jax.jit = jit
    _observe()


def _observe() -> None:
    """Counts what is planned and called. The library's own warnings are counted too, and not shown: no suite expects them."""
    from xcoexec.api import CoFunction
    from xcoexec.compat import is_tracer
    from xcoexec.compiled import Compiled
    from xcoexec.errors import CoexecWarning

    def planned(self: Compiled, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        seen["planned"] += 1
        if _kernels(self):
            seen["planned with kernels"] += 1
        else:
            for why in {p.note for p in self.plan().placements if p.note} or {self.plan().chosen}:
                seen["why " + _short(why)] += 1

    def called(self: CoFunction, *args: Any, **kwargs: Any) -> Any:
        seen["calls"] += 1
        seen["calls traced"] += any(map(is_tracer, jax.tree_util.tree_leaves((args, kwargs))))
        return call(self, *args, **kwargs)

    def ran(self: Compiled, leaves: Any) -> Any:
        seen["calls with kernels"] += _kernels(self)
        return run(self, leaves)

    def warn(message: Any, category: Any = None, stacklevel: int = 1, **rest: Any) -> None:
        if category is CoexecWarning:
            seen["fell back"] += 1
            seen["why " + _short(str(message))] += 1
        else:
            warnings.warn(message, category, stacklevel + 1, **rest)

    made, call, run = Compiled.__init__, CoFunction.__call__, Compiled.call
    Compiled.__init__, CoFunction.__call__, Compiled.call = planned, called, ran  # type: ignore[method-assign, assignment]
    quiet = types.ModuleType("warnings")
    quiet.__dict__.update(vars(warnings), warn=warn)
    for module in [m for name, m in sys.modules.items() if name.startswith("xcoexec")]:
        if getattr(module, "warnings", None) is warnings:
            module.warnings = quiet  # type: ignore[attr-defined]


def _kernels(compiled: Any) -> bool:
    lowered = compiled.current.lowered
    return lowered is not None and bool(lowered.segments)


def _short(why: str) -> str:
    """A reason without the names and numbers of one case, so that equal causes count together."""
    why = re.sub(r"^xcoexec: .{0,200}? runs ", "runs ", why.splitlines()[0])
    return re.sub(r"\d+", "N", why)[:REASON]
