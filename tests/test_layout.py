"""Rooms import only what lies below them."""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).parent.parent

#: module -> what it must not import; the flow of data points one way
FORBIDDEN = {
    "codegen": ("xcoexec", "jax", "flax"),
    "models": ("xcoexec",),
    "xcoexec/strategies": ("..lower", "..runtime", "..api", "..profile", "..codegen", "jax"),
    "xcoexec/cost": ("..lower", "..runtime", "..api", "..profile", "..strategies", "jax"),
    "xcoexec/split.py": (".lower", ".graph", ".api", ".strategies", ".profile", "jax"),
    "xcoexec/trace.py": (".graph", ".fold", ".lower", ".api"),
    "xcoexec/graph.py": (".lower", ".profile", ".api", ".strategies"),
    "xcoexec/lower.py": (".api", ".strategies", ".profile", ".select", ".runtime"),
    "xcoexec/runtime": ("..api", "..select", "..strategies"),
}


def _imports(path: pathlib.Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def test_import_directions() -> None:
    for room, banned in FORBIDDEN.items():
        files = [ROOT / room] if room.endswith(".py") else sorted((ROOT / room).glob("*.py"))
        assert files
        for path in files:
            for name in _imports(path):
                assert not any(name == b or name.startswith(b + ".") for b in banned), f"{path.name} imports {name}"


def test_strategies_do_not_import_each_other() -> None:
    for path in (ROOT / "xcoexec/strategies").glob("[a-z]*.py"):
        assert not any(n.startswith(".") and not n.startswith("..") for n in _imports(path)), path.name


def test_only_compat_looks_at_jax_versions() -> None:
    for path in (ROOT / "xcoexec").rglob("*.py"):
        text = path.read_text()
        if path.name not in ("compat.py", "profile.py", "bench.py"):
            assert "jax.__version__" not in text, path.name
        if path.name != "compat.py":
            assert "jax._src" not in text, path.name
