"""What keeps the library's own failures from the caller: stages with names, one warning, tracebacks without inner
frames.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from . import config
from .compat import versions
from .errors import BindError, CoexecWarning, Unsupported, XcoexecError

#: the kernels' sources may lie in another folder
_FOLDERS = (__file__, sys.modules[Unsupported.__module__].__file__ or __file__)
_ROOTS = tuple({os.path.dirname(os.path.abspath(f)) + os.sep for f in _FOLDERS})
P = ParamSpec("P")
R = TypeVar("R")
REPORT = "this is an error of xcoexec: please report it, with the function and these versions"


class Failed(Exception):
    """A stage failed: `why` says which and how. What the library refuses says why by itself."""

    def __init__(self, stage: str, cause: Exception):
        self.why = _one_line(cause) if isinstance(cause, (Unsupported, InterruptedError, XcoexecError)) else ""
        if not self.why:
            asks = "" if isinstance(cause, NotImplementedError) else f" ({REPORT}: {versions()})"  # of another library
            self.why = f"{stage}: {type(cause).__name__}: {_one_line(cause)}{asks}"
        super().__init__(self.why)


class Asked(Exception):
    """What the caller asked for is wrong: the `error` is meant for them."""

    def __init__(self, error: Exception):
        self.error = error
        super().__init__(str(error))


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Names the stage in which an exception is raised: raises `Failed` from it, `Asked` and `Failed` as they are."""
    try:
        yield
    except (Failed, Asked):
        raise
    except Exception as e:  # whatever a stage raises is the library's own failure
        raise Failed(name, e) from e


def asked(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls what the caller is responsible for: a planner or a plan of theirs. Raises `Asked` with what that raises."""
    try:
        return fn(*args, **kwargs)
    except Exception as e:  # a user's planner may raise anything, and they are to see it
        raise Asked(e) from e


def warn(name: str, why: str, strict: bool, how: str = "with plain jax.jit") -> None:
    """One warning that a function runs in another way than planned. Raises `BindError` when strict."""
    if strict:
        raise BindError(f"xcoexec.jit(strict=True): {name} cannot be co-executed: {why}.")
    warnings.warn(f"xcoexec: {name} runs {how}: {why}.", CoexecWarning, stacklevel=_depth())


def _one_line(e: Exception) -> str:
    text = (str(e).splitlines() or [""])[0].removesuffix(".")  # a sentence goes on behind it
    return text if len(text) <= 300 else f"{text[:300]}..."


def _inner(frame: types.FrameType | types.TracebackType) -> bool:
    code = frame.f_code if isinstance(frame, types.FrameType) else frame.tb_frame.f_code
    return code.co_filename.startswith(_ROOTS)


def _depth() -> int:
    """How far from `warn` the first frame outside of the library is, as `stacklevel` counts."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and (_inner(frame) or frame.f_code.co_filename == contextlib.__file__):
        depth, frame = depth + 1, frame.f_back
    return depth


def outside(tb: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the library's own frames, unless XCOEXEC_TRACEBACK=1. Raises `ValueError` where that is
    neither 0 nor 1.
    """
    if config.whole_tracebacks():
        return tb
    kept = []
    while tb is not None:
        if not _inner(tb):
            kept.append(tb)
        tb = tb.tb_next
    out = None
    for t in reversed(kept):
        out = types.TracebackType(out, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return out


def boundary(fn: Callable[P, R]) -> Callable[P, R]:
    """Leaves the library's frames out of the tracebacks of a method that calls the user's function."""

    @functools.wraps(fn)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except Exception as e:  # the user's function may raise anything; it passes with a shorter traceback
            e.__traceback__ = outside(e.__traceback__)
            raise

    return inside


__all__ = ["Asked", "Failed", "asked", "boundary", "outside", "stage", "warn"]
