"""One word for one idea: what is defined once, and packages in which no name hides a module."""

from __future__ import annotations

import ast
import functools
import importlib
import pathlib
import pkgutil
import types
from collections.abc import Iterator

import pytest

import xcoexec

ROOT = pathlib.Path(__file__).parent.parent
ONCE = ("Accuracy", "Halves", "Model", "Network", "Part", "Piece", "measured", "shares", "simulate")


def _packages(package: types.ModuleType) -> Iterator[types.ModuleType]:
    """A package and all packages in it."""
    yield package
    for found in pkgutil.iter_modules(package.__path__):
        if found.ispkg:
            yield from _packages(importlib.import_module(f"{package.__name__}.{found.name}"))


def _all_packages() -> list[types.ModuleType]:
    inside = [importlib.import_module(f"xcoexec.{name}") for name in ("codegen", "models")]
    return [p for top in (xcoexec, *inside) for p in _packages(top)]


@pytest.mark.parametrize("package", _all_packages(), ids=lambda p: p.__name__)
def test_no_name_hides_a_module(package: types.ModuleType) -> None:
    """What a package has under the name of one of its modules is that module, before and behind the module's import."""
    modules = [m.name for m in pkgutil.iter_modules(package.__path__)]
    assert modules or package.__name__ in ("xcoexec.planning.profiles", "xcoexec.papers.quoted")  # data alone
    for name in modules:
        found = getattr(package, name, None)
        if found is not None:
            assert isinstance(found, types.ModuleType), f"{package.__name__}.{name} is {found!r}"
            assert found.__name__ == f"{package.__name__}.{name}"
    hidden = {n for n in dir(package) if not isinstance(getattr(package, n), types.ModuleType)}
    assert hidden.isdisjoint(modules)


@functools.cache
def _defined() -> dict[pathlib.Path, frozenset[str]]:
    """What each module of the project defines."""
    folders = ("xcoexec", "codegen", "models", "benchmarks")
    return {p: frozenset(_definitions(p)) for folder in folders for p in sorted((ROOT / folder).rglob("*.py"))}


def _definitions(path: pathlib.Path) -> Iterator[str]:
    """Names of a module's classes, functions and values."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@pytest.mark.parametrize("word", ONCE)
def test_a_word_is_defined_once(word: str) -> None:
    where = [str(p.relative_to(ROOT)) for p, names in _defined().items() if word in names]
    assert len(_defined()) > 100 and len(where) <= 1, where
