"""Settings of the suite: a cache of its own, golden text with an update flag."""

from __future__ import annotations

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("XCOEXEC_CACHE_DIR", str(ROOT / ".pytest_cache" / "xcoexec"))
if not os.environ.get("XCOEXEC_TEST_GPU"):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XCOEXEC_ADAPT", "0")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Compares a text with tests/golden/NAME; with --update-golden it is written."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text, f"{name} changed; run pytest --update-golden and read the difference"

    return check
