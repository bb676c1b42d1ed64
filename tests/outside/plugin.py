"""A pytest plugin that replaces `jax.jit` by `xcoexec.jit` before any test is imported, and writes down what happens.

It is loaded by `-p tests.outside.plugin`, so that it is imported before the packages under test: decorators run at
import. The environment says what it does, since options are parsed too late for that:

XCOEXEC_OUTSIDE_JIT      plain (the reference), host, auto or device
XCOEXEC_OUTSIDE_RESULTS  the file that gets one JSON line for each test
XCOEXEC_OUTSIDE_DONE     a file of tests to leave out, one a line: they ran before
XCOEXEC_OUTSIDE_ONLY     a file of tests to run, one a line; the others are left out
"""

from __future__ import annotations

import json
import os
import pathlib
import time
from typing import Any

import pytest

from . import replaced

SEEN, CPU = "xcoexec", "cpu seconds"  # what travels with a report

clock = [time.process_time()]  # when the last test ended, in seconds of this process's cores


if os.environ.get("XCOEXEC_OUTSIDE_JIT", "plain") != "plain":
    replaced.replace(os.environ["XCOEXEC_OUTSIDE_JIT"])


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
    """The counts of a test travel with its last report: only reports reach the process that writes."""
    report = yield
    if report.when == "teardown":
        now = time.process_time()
        report.user_properties += [(SEEN, dict(replaced.seen)), (CPU, round(now - clock[0], 3))]
        replaced.seen.clear()
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
            self._write({"test": report.nodeid, "outcome": "failed", "error": _error(report), "seen": {}})

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
