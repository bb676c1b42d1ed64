"""What the disk cache holds: `xcoexec cache`, and `xcoexec cache clear`."""

from __future__ import annotations

import pathlib
from collections import Counter

from ..codegen.environment import cache_folder
from ..codegen.store.disk import folder
from ..ir.text import columns

KINDS = {".o": "kernels", ".json": "plans and measurements"}
OURS = ".v*"  # every file that the cache writes carries its format's version


def _files(root: pathlib.Path) -> list[pathlib.Path]:
    """The cache's own files; what else lies in the folder is not touched."""
    return sorted(p for end in KINDS for p in root.glob(f"*{OURS}{end}") if p.is_file() and not p.is_symlink())


def facts() -> dict[str, str]:
    """The folder, whether it is used, and files and megabytes by kind."""
    if not cache_folder():
        return {"folder": "none (XCOEXEC_CACHE_DIR is empty): every process plans anew"}
    root = folder()
    if root is None:
        return {"folder": cache_folder(), "used": "no: it cannot be written to, or others may write to it"}
    found = _files(root)
    count = Counter(KINDS[p.suffix] for p in found)
    size = sum(p.stat().st_size for p in found)
    kinds = {kind: f"{count[kind]} files" for kind in KINDS.values()}
    return {"folder": str(root), "size": f"{size / 1e6:.1f} MB", **kinds}


def text() -> str:
    """The facts as rows."""
    return columns([[k, v] for k, v in facts().items()])


def clear() -> str:
    """Removes the cache's files, and says how many. Programs that run keep what they have loaded."""
    root = folder()
    found = _files(root) if root else []
    size = sum(p.stat().st_size for p in found)
    for path in found:
        path.unlink(missing_ok=True)
    return f"{len(found)} files removed, {size / 1e6:.1f} MB. The next call of each function is planned anew."


__all__ = ["clear", "facts", "text"]
