"""What is logged is text. A handler may keep its records (pytest's does, those of services that collect errors do), and
an exception in one keeps the frames that it passed, with all that they hold of a device's memory.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = [p for package in ("xcoexec", "codegen", "models") for p in sorted((ROOT / package).rglob("*.py"))]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log", "warn"}


def _exceptions_logged(text: str) -> Iterator[int]:
    """The lines of calls of a log that are given an exception that was caught."""
    for handler in ast.walk(ast.parse(text)):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        for call in ast.walk(handler):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS):
                continue
            given = [*call.args, *(k.value for k in call.keywords)]
            if call.func.attr == "exception" or any(isinstance(a, ast.Name) and a.id == handler.name for a in given):
                yield call.lineno


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('log.warning("failed (%s)", e)', [4]),
        ('log.warning("failed", exc_info=e)', [4]),
        ('log.exception("failed")', [4]),
        ('log.warning("failed (%s)", str(e))', []),
        ('log.warning("failed (%s)", type(e).__name__)', []),
    ],
)
def test_exceptions_in_logs_are_found(call: str, found: list[int]) -> None:
    assert list(_exceptions_logged(f"try:\n    f()\nexcept ValueError as e:\n    {call}\n")) == found


def test_logs_are_given_text_alone() -> None:
    found = {str(p.relative_to(ROOT)): lines for p in SOURCES if (lines := list(_exceptions_logged(p.read_text())))}
    assert len(SOURCES) > 200 and not found
