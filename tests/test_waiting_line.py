"""What people see of a wait that takes long, by where they are."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest

from xcoexec.session import waiting_line
from xcoexec.session.waiting_line import Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notebook:
    """Stands for a notebook's display: what it shows now, and how often that was drawn."""

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}
        self.drawn = 0

    def display(self, both: dict[str, str], *, raw: bool, display_id: bool) -> Notebook:
        assert raw and display_id and not self.drawn
        self.update(both, raw=raw)
        return self

    def update(self, both: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown, self.drawn = both, self.drawn + 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(waiting_line, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    there = Notebook()
    module: Any = types.ModuleType("IPython.display")
    module.display = there.display
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return there


def test_a_short_wait_says_nothing(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    line = Line()
    clock[0] = 1.9
    line.show("planning")
    line.end()
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_a_terminal_has_one_line_that_is_taken_away(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    line = Line()
    clock[0] = 2.1
    line.show("planning: a long text", 1, 4)
    line.show("planning")
    line.end()
    text = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "\n" not in text and text.split("\r")[1:3] == [
        "xcoexec: planning: a long text",
        "xcoexec: planning".ljust(30),
    ]
    assert text.endswith("\r" + " " * 17 + "\r")


def test_a_notebook_has_a_bar_that_is_taken_away(
    clock: list[float], notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    line = Line()
    clock[0] = 2.1
    line.show("building <kernels>", 1, 4)
    assert notebook.shown["text/plain"] == "xcoexec: building <kernels>"
    assert 'value="0.250"' in notebook.shown["text/html"] and "&lt;kernels&gt;" in notebook.shown["text/html"]
    clock[0] = 2.2
    line.show("building <kernels>", 2, 4)
    assert notebook.drawn == 1  # not for each look
    clock[0] = 2.7
    line.show("comparing plans")
    assert notebook.drawn == 2 and "value=" not in notebook.shown["text/html"]
    line.end()
    line.end()
    assert notebook.shown == {"text/plain": "", "text/html": ""} and notebook.drawn == 3
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_nobody_reads_a_file(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    line = Line()
    clock[0] = 10.0
    line.show("planning", 1, 2)
    line.end()
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
