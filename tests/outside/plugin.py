"""A pytest plugin that replaces `jax.jit` by `xcoexec.jit` before any test is imported, and writes down what happens.

It is loaded by `-p tests.outside.plugin`, so that it is imported before the packages under test: decorators run at
import. The environment says what it does, since options are parsed too late for that:

XCOEXEC_OUTSIDE_JIT      plain (the reference), host, auto or device
XCOEXEC_OUTSIDE_RESULTS  the file that gets one JSON line for each test
XCOEXEC_OUTSIDE_DONE     a file of tests to leave out, one a line: they ran before
XCOEXEC_OUTSIDE_ONLY     a file of tests to run, one a line; the others are left out
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import jax
import pytest

MODE = os.environ.get("XCOEXEC_OUTSIDE_JIT", "plain")
UNDER_TEST = ("chex", "optax", "flax")
SEEN, CPU = "xcoexec", "cpu seconds"  # what travels with a report
REASON = 160  # characters of a reason that are kept

#: what happened since the last test ended; keys as in `KEYS`, or "why ..." for the reason of a fallback
seen: Counter[str] = Counter()
clock = [time.process_time()]  # when the last test ended, in seconds of this process's cores


def _options(mode: str) -> dict[str, Any]:
    """The options of `xcoexec.jit` for a mode. "host" is a forced plan: kernels wherever they exist, nothing is measured."""
    from xcoexec import Plan

    modes: Mapping[str, Callable[[], dict[str, Any]]] = {
        "host": lambda: {"plan": Plan.uniform(1.0)},
        "auto": lambda: {"strategy": "auto"},
        "device": lambda: {"strategy": "device"},
    }
    if mode not in modes:
        raise pytest.UsageError(f"XCOEXEC_OUTSIDE_JIT: got {mode!r}; valid are plain, {', '.join(modes)}.")
    return modes[mode]()


def replace(mode: str) -> None:
    """Puts `xcoexec.jit` in the place of `jax.jit` for all that is imported from now on."""
    early = [name for name in UNDER_TEST if name in sys.modules]
    if early:
        raise pytest.UsageError(f"tests.outside.plugin: got {', '.join(early)} imported already; load the plugin first.")
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
    from xcoexec.compiled import Compiled
    from xcoexec.compat import is_tracer
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


if MODE != "plain":
    replace(MODE)


def _listed(variable: str) -> frozenset[str] | None:
    path = os.environ.get(variable)
    return frozenset(pathlib.Path(path).read_text().splitlines()) if path else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    done, only = _listed("XCOEXEC_OUTSIDE_DONE") or frozenset(), _listed("XCOEXEC_OUTSIDE_ONLY")
    keep = [x for x in items if x.nodeid not in done and (only is None or x.nodeid in only)]
    if len(keep) < len(items):
        kept = set(map(id, keep))
        config.hook.pytest_deselected(items=[x for x in items if id(x) not in kept])
        items[:] = keep


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """The counts of a test travel with its last report: with several processes, only reports reach the one that writes."""
    report = yield
    if report.when == "teardown":
        now = time.process_time()
        report.user_properties += [(SEEN, dict(seen)), (CPU, round(now - clock[0], 3))]
        seen.clear()
        clock[0] = now
    return report


class Results:
    """Writes one line for each test, when its last report has come."""

    RANK = ("passed", "skipped", "xfailed", "failed")  # a test is what its worst report is

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", buffering=1)  # noqa: SIM115
        self._open: dict[str, dict[str, Any]] = {}
        self._broken: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        line = self._open.setdefault(report.nodeid, {"test": report.nodeid, "outcome": "passed", "seconds": 0.0})
        outcome = "xfailed" if hasattr(report, "wasxfail") and report.outcome == "skipped" else report.outcome
        if self.RANK.index(outcome) > self.RANK.index(line["outcome"]):
            line["outcome"] = outcome
            if outcome == "failed":
                line["error"], line["trace"] = _error(report), report.longreprtext[-6000:]
        line["seconds"] = round(line["seconds"] + getattr(report, "duration", 0.0), 4)
        if report.when in ("setup", "call"):
            return
        sent = dict(report.user_properties)
        line["seen"], line["cpu"] = sent.get(SEEN, {}), sent.get(CPU, 0.0)
        self._write(self._open.pop(report.nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and report.nodeid not in self._broken:
            self._broken.add(report.nodeid)
            self._write({"test": report.nodeid, "outcome": "failed", "error": _error(report), "seconds": 0.0, "seen": {}})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")


def _error(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text.strip()[:1000]


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("XCOEXEC_OUTSIDE_RESULTS")
    if path and not hasattr(config, "workerinput"):  # one process writes
        config.pluginmanager.register(Results(path), "xcoexec-outside-results")
