"""What the suite asks of itself."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import warnings

import pytest

from xcoexec import CoexecWarning

TESTS = pathlib.Path(__file__).parent


def test_an_unexpected_warning_is_an_error() -> None:
    with pytest.raises(CoexecWarning, match="made up"):
        warnings.warn("made up", CoexecWarning, stacklevel=1)


@pytest.mark.parametrize(("ci", "said"), [({}, "False"), ({"CI": "1"}, "True")])
def test_examples_are_the_same_at_every_run_in_ci(ci: dict[str, str], said: str) -> None:
    code = "import tests.conftest, hypothesis; print(hypothesis.settings(max_examples=3).derandomize)"
    env = {k: v for k, v in os.environ.items() if k not in ("CI", "GITHUB_ACTIONS", "TF_BUILD")} | ci
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=TESTS.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == said
