"""What the package says of itself, and what importing it loads."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tomllib

import xcoexec

ROOT = pathlib.Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_said_once() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited is not None and PROJECT["version"] == xcoexec.__version__ == cited.group(1)
    number = xcoexec.__version__.partition(".dev")[0]
    assert re.search(rf"^## {re.escape(number)} ", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_metadata_is_whole() -> None:
    assert PROJECT["license"] == "Apache-2.0" and PROJECT["authors"] and PROJECT["keywords"]
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11"} <= set(PROJECT["classifiers"])
    assert not any(c.startswith("License ::") for c in PROJECT["classifiers"]), "the SPDX expression says it"
    assert {"plot", "train", "llm", "serve", "ray", "docs"} <= set(PROJECT["optional-dependencies"])
    assert (ROOT / "xcoexec" / "py.typed").exists()


def test_extras_that_are_named_exist() -> None:
    named = set()
    for folder in ("xcoexec", "models", "docs", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md") and "generated" not in path.parts:
                named |= set(re.findall(r"xcoexec\[([\w-]+)\]", path.read_text()))
    assert named and named <= set(PROJECT["optional-dependencies"])


def test_importing_loads_no_optimizer_and_no_drawing() -> None:
    code = (
        "import sys, xcoexec; xcoexec.jit; xcoexec.Plan; xcoexec.Scheduler\n"
        "heavy = {'scipy.optimize', 'matplotlib', 'optax', 'sklearn', 'pytest'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_readme_is_a_screen_and_a_bit() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 60 and all(len(line) <= 120 for line in lines)
