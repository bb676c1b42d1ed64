"""Which code a record speaks of: the revision, and a hash of a module with all of the project that it imports."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import pathlib
import subprocess
from collections.abc import Iterable, Iterator

from .. import _WHERE, __version__

TOP = "xcoexec"
#: what keeps records and makes no number
KEEPERS = tuple(f"{TOP}.{m}" for m in ("papers.cells", "papers.source", "papers.steps", "tools.lines"))
HERE = pathlib.Path(__file__).parent.parent


@functools.cache
def commit() -> str:
    """The revision of the checkout that this package lies in, with "+" where files have changed since; else the
    package's version.
    """
    if _git(HERE, "ls-files", "--error-unmatch", "__init__.py") is None:
        return f"version {__version__}"
    changed = _git(HERE, "status", "--porcelain", "--untracked-files=no")
    return f"{_git(HERE, 'rev-parse', '--short=12', 'HEAD')}{'+' if changed else ''}"


def _git(folder: pathlib.Path, *args: str) -> str | None:
    """What git prints; None where it is not there, or fails."""
    try:
        done = subprocess.run(("git", "-C", str(folder), *args), capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def digest(module: str) -> str:
    """A hash of a module's file, of all modules of the project that it imports (inside functions too, but not for
    type checkers alone), and of the data files beside them; the same wherever the package lies.
    """
    total = hashlib.sha256()
    for _, path in sorted(_files(module).items()):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def _files(module: str) -> dict[str, pathlib.Path]:
    """Module, or module and name of a data file -> the file."""
    seen: set[str] = set()
    todo = [module]
    files: dict[str, pathlib.Path] = {}
    while todo:
        name = todo.pop()
        if name in seen or name in KEEPERS:
            continue
        seen.add(name)
        found = _found(name)
        if found is None:
            continue
        path, imports = found
        files[name] = path
        if path.name == "__init__.py":
            files |= {f"{name}/{data.name}": data for data in path.parent.glob("*.toml")}
        todo += imports
    return files


@functools.cache
def _found(name: str) -> tuple[pathlib.Path, tuple[str, ...]] | None:
    """A module's file, and the names of modules that it may import; None for what is no module."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    path = pathlib.Path(spec.origin)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    own = name.partition(".")[0]
    out: list[str] = []
    lazy: Iterable[str]
    for node in _run(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            out += [a.name for a in node.names]
            lazy = _WHERE.values() if TOP in out else ()
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            out += [base, *(f"{base}.{a.name}" for a in node.names)]
            lazy = [_WHERE[a.name] for a in node.names if base == TOP and a.name in _WHERE]
        else:
            continue
        out += [f"{TOP}.{m}" for m in lazy]  # what the package's own names load
    return path, tuple(n for n in out if n.partition(".")[0] in (TOP, own))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    if isinstance(tree, ast.If) and isinstance(tree.test, ast.Name) and tree.test.id == "TYPE_CHECKING":
        return
    yield tree
    for node in ast.iter_child_nodes(tree):
        yield from _run(node)


__all__ = ["commit", "digest"]
