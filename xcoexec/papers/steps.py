"""Steps of rows that take long: a network, a run with deadlines. A folder keeps what each gave, so that a run that was
cut off goes on behind the last one; after an interrupt no step begins any more, and rows show what they have.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from ..config import cores
from ..tools import lines
from . import source
from .cells import plain


@dataclasses.dataclass
class Steps:
    """The steps of a run. `file`: JSON lines of what is known (None: nothing is kept); `here`: the machine; `ended`:
    whether an interrupt has come; `left`: steps that were asked for since and are not known; `seconds`: that steps took
    which were known before.
    """

    file: pathlib.Path | None = None
    here: Mapping[str, object] = dataclasses.field(default_factory=dict)
    known: dict[str, tuple[Any, float]] = dataclasses.field(default_factory=dict)
    ended: bool = False
    left: int = 0
    seconds: float = 0.0


_now = Steps()


@contextlib.contextmanager
def kept(path: str | os.PathLike[str], here: Mapping[str, object]) -> Iterator[Steps]:
    """While it lasts, steps are looked up in a file and added to it; `here`: versions and machine."""
    global _now
    before = _now
    file = pathlib.Path(path)
    found = {r["step"]: (r["value"], r["seconds"]) for r in lines.load(file, ("step", "value", "seconds"))}
    _now = Steps(file, here, found)
    try:
        yield _now
    finally:
        _now = before


def once(module: str, name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives, as JSON has it: the known value of a step of this name, by the same code (`module` with all
    that it imports) on this machine; else made now. None where an interrupt ended the run before the step or in it.
    """
    steps = _now
    step = _known_as(module, name)
    if step in steps.known:
        value, seconds = steps.known[step]
        steps.seconds += seconds
        return value
    if not steps.ended:
        began = time.perf_counter()
        try:
            value = plain(make())
        except KeyboardInterrupt:
            steps.ended = True
        else:
            _keep(step, value, time.perf_counter() - began)
            return value
    steps.left += 1
    return None


def together(module: str, named: Mapping[str, Callable[[], Any]]) -> None:
    """Makes those of some steps that are not known, by name, in processes of their own, one a core, so that `once`
    finds them: for steps that compute and measure no time. Nothing is made where no file keeps steps.
    """
    left = {step: make for name, make in named.items() if (step := _known_as(module, name)) not in _now.known}
    if _now.file is None or _now.ended or len(left) < 2:
        return
    with ProcessPoolExecutor(cores(), multiprocessing.get_context("spawn")) as pool:
        flying = {pool.submit(_timed, make): step for step, make in left.items()}
        try:
            for done in as_completed(flying):
                _keep(flying[done], *done.result())
        except KeyboardInterrupt:
            _now.ended = True
            pool.shutdown(wait=False, cancel_futures=True)


def _timed(make: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return plain(make()), time.perf_counter() - began


def _known_as(module: str, name: str) -> str:
    return json.dumps([module, name, source.digest(module), dict(_now.here)])


def _keep(step: str, value: Any, seconds: float) -> None:
    if _now.file:
        _now.known[step] = value, round(seconds, 3)
        lines.append(_now.file, {"step": step, "value": value, "seconds": round(seconds, 3)})


__all__ = ["Steps", "kept", "once", "together"]
