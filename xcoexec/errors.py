"""Errors and warnings that users see. Each text names the public function, what was got and what is valid."""

from __future__ import annotations

import reprlib

from .codegen.program import Unsupported


class XcoexecError(Exception):
    """Base of the library's errors."""


class BindError(XcoexecError, TypeError):
    """A bound function was called with another structure, shape or dtype than it was bound for."""


class PlanError(XcoexecError, ValueError):
    """A plan is malformed or does not fit the function."""


class SplitError(XcoexecError, ValueError):
    """A layer cannot be split along the dimension that was asked for; the text says why."""


class ProfileError(XcoexecError, ValueError):
    """A device profile is unknown or malformed; the text names the entry."""


class SuiteError(XcoexecError, ValueError):
    """A suite of the bench is unknown, or its file is not one; the text says what is valid."""


class CoexecWarning(UserWarning):
    """A function fell back to plain `jax.jit`; the text says why."""


class SkippedError(XcoexecError):
    """A job of `xcoexec.Scheduler` that was not run to its end: too late, or more jobs than there is room for."""


_short = reprlib.Repr()
_short.maxother = _short.maxstring = 80


def brief(x: object) -> str:
    """A value as messages show it: arrays by type and shape, everything else in few characters."""
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"an array {x.dtype}[{','.join(map(str, x.shape))}]"
    if isinstance(x, (tuple, list)) and any(hasattr(v, "shape") for v in x):
        shown = ", ".join(map(brief, x[:4])) + ", ..." * (len(x) > 4)
        return f"({shown})" if isinstance(x, tuple) else f"[{shown}]"
    return _short.repr(x)


__all__ = [
    "BindError",
    "CoexecWarning",
    "PlanError",
    "ProfileError",
    "SkippedError",
    "SplitError",
    "SuiteError",
    "Unsupported",
    "XcoexecError",
    "brief",
]
