"""The rooms: what each may import stands in its `__init__`; no circles; planning is pure."""

from __future__ import annotations

import ast
import functools
import pathlib
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard

import pytest

import xcoexec

ROOT = pathlib.Path(__file__).parent.parent
TOPS = {"xcoexec": "xcoexec", "codegen": "xcoexec.codegen", "models": "xcoexec.models"}
#: libraries that a room has to name; NumPy and the standard library are everybody's
LIBRARIES = {"jax", "jaxlib", "flax", "llvmlite", "scipy"}
#: files that are rooms of their own -> what they may import
ALONE: Mapping[str, set[str]] = {
    "": {
        "api",
        "errors",
        "fleet",
        "ir",
        "models",
        "optim",
        "strategies",
        "streams",
    },  # the public names, and when they are asked for
    "__main__": {"cli"},
    "cli": {"anything"},
    "strategies": {"planning"},
    "config": set(),
    "errors": {"codegen.program"},
    "guard": {"compat", "config", "errors"},
    "models": {"flax", "jax"},
    "codegen.environment": set(),
    "codegen.program": set(),
    "codegen.target": {"codegen.environment", "llvmlite"},
}
#: what planning loads, in a fresh process and by reading the imports
PURE = (
    "planning.strategies",
    "planning.simulate",
    "planning.memory",
    "planning.baselines",
    "planning.profiles",
    *(f"cost.{m}" for m in ("accuracy", "edgenn", "features", "predictor", "regress", "terms")),
    *(f"ir.{m}" for m in ("costs", "geometry", "layers", "placement", "plan", "plan_json", "streaming", "text")),
    *(f"ir.{m}" for m in ("trace_events", "validate", "words")),
    "partition.split",
    *(f"streams.{m}" for m in ("policies", "jobs", "edf", "virtual", "demand", "blocks")),
)
NATIVE = ("codegen.native", "codegen.segment", "codegen.kernels", "codegen.runtime", "codegen.target")
HEAVY = {"jax", "jaxlib", "flax", "llvmlite"}


def _name(path: pathlib.Path) -> str:
    """A file's module below `xcoexec`: xcoexec/ir/plan.py is ir.plan, codegen/target.py is codegen.target."""
    top, *rest = path.relative_to(ROOT).with_suffix("").parts
    parts = [*TOPS[top].split(".")[1:], *rest]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {_name(p): p for top in TOPS for p in sorted((ROOT / top).rglob("*.py"))}
PACKAGES = {name for name, path in FILES.items() if path.name == "__init__.py"}


@functools.cache
def _imports(name: str, typing: bool = True) -> frozenset[str]:
    """The modules of this project, and the libraries, that a module imports, inside functions too. A name that is
    imported from a package counts as its module, where there is one of that name. `typing`: also what only type
    checkers see.
    """
    found: set[str] = set()
    tree = ast.parse(FILES[name].read_text())
    unseen = {id(n) for test in ast.walk(tree) if _for_types(test) for b in test.body for n in ast.walk(b)}
    for node in ast.walk(tree):
        if id(node) in unseen and not typing:
            continue
        if isinstance(node, ast.Import):
            found |= set(_absolute(a.name for a in node.names))
        elif isinstance(node, ast.ImportFrom):
            base = _base(name, node)
            found |= set(_absolute([node.module or ""])) if base is None else _from(base, node)
    return frozenset(found - {name})


def _for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _base(name: str, node: ast.ImportFrom) -> str | None:
    """The module that names are imported from; None where it is not of this project."""
    if node.level == 0:
        module = node.module or ""
        return module.removeprefix("xcoexec").removeprefix(".") if module.split(".")[0] == "xcoexec" else None
    here = ["xcoexec", *filter(None, name.split("."))]
    package = here if name in PACKAGES else here[:-1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *filter(None, [node.module])]).removeprefix("xcoexec").removeprefix(".")


def _from(base: str, node: ast.ImportFrom) -> set[str]:
    inner = {f"{base}.{a.name}".removeprefix(".") for a in node.names}
    modules = {m for m in inner if m in FILES}
    return modules if modules == inner else modules | {base}


def _absolute(names: Iterable[str]) -> Iterator[str]:
    for module in names:
        top, _, rest = module.partition(".")
        if top == "xcoexec":
            yield rest
        elif top in LIBRARIES:
            yield top


def _room(module: str) -> str:
    """The room of a module: its first folder, or of codegen's the second; a file that stands alone is its own."""
    if module in ALONE or module in LIBRARIES:
        return module
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "codegen" else parts[0]


ROOMS = sorted({_room(m) for m in FILES} - set(ALONE))


@functools.cache
def _allowed(room: str) -> frozenset[str]:
    """What a room's line says."""
    if room in ALONE:
        return frozenset(ALONE[room])
    says = ast.get_docstring(ast.parse(FILES[room].read_text())) or ""
    what, _, rest = says.partition("\n\n")
    assert len(what) > 20 and what.endswith("."), f"{room}: the docstring's first line says what belongs there"
    line = " ".join(rest.split())
    assert line.startswith("Imports: ") and line.endswith("."), f"{room}: the second line says what it may import"
    names = frozenset(line.removeprefix("Imports: ").removesuffix(".").split(", "))
    return frozenset() if names == {"nothing"} else names


def _behind(name: str) -> set[str]:
    """All that importing a module may load: what it imports, what these import, and the packages that they are in."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        module = todo.pop()
        if module in seen:
            continue
        seen.add(module)
        if module in FILES:
            parents = [module.rsplit(".", i)[0] for i in range(1, module.count(".") + 1)]
            todo += [*parents, *_imports(module, typing=False)]
    return seen


def _circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The nodes on circles: of those that are left once all that lead to no other node are taken away."""
    left = {n: set(to) - {n} for n, to in edges.items()}
    while True:
        ends = {n for n, to in left.items() if not to & left.keys()}
        if not ends:
            break
        left = {n: to for n, to in left.items() if n not in ends}
    inside = {n for n, to in left.items() if _reaches(left, to, n)}
    return [sorted(inside)] if inside else []


def _reaches(edges: Mapping[str, Iterable[str]], begin: Iterable[str], end: str) -> bool:
    seen, todo = set[str](), list(begin)
    while todo:
        n = todo.pop()
        if n == end:
            return True
        if n not in seen:
            seen.add(n)
            todo += edges.get(n, ())
    return False


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_its_line_says(room: str) -> None:
    allowed = _allowed(room)
    known = {_room(m) for m in FILES} | LIBRARIES | {"anything"}
    assert allowed <= known, f"{room}: {allowed - known} are no rooms"
    for module in (m for m in FILES if _room(m) == room):
        others = {_room(m) for m in _imports(module)} - {room}
        assert "anything" in allowed or others <= allowed, f"{module} imports {sorted(others - allowed)}"


@pytest.mark.parametrize("module", sorted(set(ALONE) & set(FILES)))
def test_a_file_that_stands_alone_imports_little(module: str) -> None:
    others = {_room(m) for m in _imports(module)} - {module}
    assert "anything" in ALONE[module] or others <= ALONE[module], f"{module} imports {sorted(others - ALONE[module])}"


def test_no_circle_between_modules() -> None:
    edges = {m: {i for i in _imports(m) if i in FILES and m not in ("", i)} for m in FILES}
    assert _circles(edges) == []


def test_no_circle_between_rooms() -> None:
    """None in what the lines allow; tools, the papers, the command line and the public names come last."""
    last = {"", "__main__", "cli", "papers", "tools", "strategies"}
    rooms = {_room(m) for m in FILES} - last
    lines = {r: {a for a in _allowed(r) if a in rooms} for r in rooms}
    assert _circles(lines) == []
    for room in rooms:
        assert not _allowed(room) & last, f"{room} may import {_allowed(room) & last}"


def test_circles_are_found() -> None:
    assert _circles({"a": ["b"], "b": ["c"], "c": []}) == []
    assert _circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}) == [["b", "c"]]


def test_codegen_and_models_know_nothing_of_the_library() -> None:
    for module in FILES:
        top = module.split(".")[0]
        if top in ("codegen", "models"):
            assert all(m.split(".")[0] == top or m in LIBRARIES for m in _imports(module)), module
            assert top != "codegen" or not _imports(module) & {"jax", "jaxlib", "flax"}, module


def test_strategies_do_not_import_each_other() -> None:
    files = [m for m in FILES if m.startswith("planning.strategies.")]
    assert len(files) >= 5
    for module in files:
        assert not any(m.startswith("planning.strategies") for m in _imports(module)), module


@pytest.mark.parametrize("module", PURE)
def test_planning_is_pure_in_what_it_imports(module: str) -> None:
    behind = _behind(module)
    assert not behind & HEAVY, f"{module} loads {sorted(behind & HEAVY)}"
    assert not [m for m in behind if m.startswith(NATIVE)], f"{module} loads native code"


def test_planning_is_pure_in_a_fresh_process() -> None:
    code = f"""
import importlib, sys
for name in {PURE!r}:
    importlib.import_module("xcoexec." + name)
    heavy = {sorted(HEAVY)!r}
    native = tuple("xcoexec." + n for n in {NATIVE!r})
    found = [m for m in sys.modules if m.split(".")[0] in heavy or m.startswith(native)]
    assert not found, (name, found[:5])
assert "scipy.optimize" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_public_names_and_nothing_else() -> None:
    assert dir(xcoexec) == sorted(xcoexec.__all__)
    for name in xcoexec.__all__:
        assert getattr(xcoexec, name) is not None


def test_every_folder_is_a_package_that_ships() -> None:
    found = {".".join(filter(None, ("xcoexec", name))) for name in PACKAGES}
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted({*found, "xcoexec.benchmarks"})  # whose modules rerun rows of the papers' page


def test_only_compat_looks_at_jax_versions() -> None:
    """Others may write the version down, as part of a record of where something was measured."""
    for module, path in FILES.items():
        text = path.read_text()
        if _room(module) != "compat" and module not in ("measure.kept", "tools.bench"):
            assert "jax.__version__" not in text, module
        if _room(module) != "compat":
            assert "jax._src" not in text, module
