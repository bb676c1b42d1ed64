"""What the package says of itself, and what importing it loads."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys
import tomllib
import types

import pytest

import xcoexec

ROOT = pathlib.Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_said_once() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited is not None and PROJECT["version"] == xcoexec.__version__ == cited.group(1)


def test_the_newest_changes_are_this_version_s_and_begin_with_what_breaks() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    heads = re.findall(r"^## (.+)$", text, re.M)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", h) for h in heads), heads
    released = re.search(r"^date-released: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert released is not None and heads[0] == f"{xcoexec.__version__} ({released.group(1)})"
    assert re.findall(r"^### (.+)$", text, re.M)[0] == "Breaking changes"


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


def _setup() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("package_setup", ROOT / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_package_index_shows_readme_with_links_that_lead_to_files_of_the_repository() -> None:
    where = "https://host.example/owner/name"
    text = _setup().published((ROOT / "README.md").read_text(), where)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", text)
    assert len(links) > 8 and any(picture for picture, _ in links)
    for picture, link in links:
        found = re.fullmatch(rf"{where}/(raw|blob|tree)/HEAD/([^#]+)(?:#.*)?", link)
        assert found is not None, link
        path = ROOT / found.group(2)
        assert path.is_dir() if found.group(1) == "tree" else path.is_file(), link
        assert (found.group(1) == "raw") == bool(picture)
    for link in _setup().urls(where).values():
        path = link.partition("/HEAD/")[2]
        assert link.startswith(where) and (ROOT / path).exists(), link


def test_the_package_index_shows_no_dead_link_where_no_address_is_known() -> None:
    text = _setup().published("See [a guide](docs/index.md), [JAX](https://jax.dev), ![a plot](a.png) [x](#x).", "")
    assert text == "See a guide, [JAX](https://jax.dev),  [x](#x)."
    assert _setup().urls("") == {}


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://host.example/owner/name.git\n", "https://host.example/owner/name"),
        ("https://user:word@host.example/owner/name", "https://host.example/owner/name"),
        ("git@host.example:owner/name.git", "https://host.example/owner/name"),
        ("ssh://git@host.example:2222/owner/name.git", "https://host.example/owner/name"),
        ("/srv/git/name.git", ""),
        ("../name", ""),
        ("", ""),
    ],
)
def test_the_repository_s_address_is_that_of_its_remote(remote: str, address: str) -> None:
    assert _setup().web(remote) == address
