"""The package's metadata that depend on where the repository is published: README's links, and the URLs.

Links in README are relative, so that they work in each checkout and on each host. A package index knows no
neighbouring files: there they are absolute, under the address of the remote "origin". Where there is no address, links
are their words alone, and pictures are left out. All else is in pyproject.toml.
"""

from __future__ import annotations

import pathlib
import re
import subprocess

from setuptools import setup

ROOT = pathlib.Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s:]+)\)")  # with a relative target
REMOTE = re.compile(r"(?:https?://|ssh://|git@)(?:[^@/]+@)?([\w.-]+)[:/](?:\d+/)?([\w./-]+?)(?:\.git)?/?$")


def web(remote: str) -> str:
    """The address of a git remote for a browser, without names and words of who pushes; "" for a folder."""
    found = REMOTE.fullmatch(remote.strip())
    return f"https://{found.group(1)}/{found.group(2)}" if found else ""


def address() -> str:
    """Where the repository is published: what a source distribution says, else the remote; "" for nowhere."""
    info = ROOT / "PKG-INFO"
    if info.is_file():
        said = re.search(r"^Project-URL: Repository, (\S+)$", info.read_text("utf-8"), re.M)
        return said.group(1) if said else ""
    if not (ROOT / ".git").exists():
        return ""
    asked = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
    try:
        return web(subprocess.run(asked, capture_output=True, text=True).stdout)
    except OSError:  # no git
        return ""


def published(text: str, where: str) -> str:
    """README as a package index shows it, for a repository at the address `where`."""

    def replaced(link: re.Match[str]) -> str:
        picture, words, path = link.groups()
        if path.startswith("#"):
            return link.group()
        if not where:
            return "" if picture else words
        kind = "raw" if picture else "tree" if (ROOT / path).is_dir() else "blob"
        return f"{picture}[{words}]({where}/{kind}/HEAD/{path})"

    return LINK.sub(replaced, text)


def urls(where: str) -> dict[str, str]:
    """What the package index links to."""
    if not where:
        return {}
    files = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
    pages = {name: f"{where}/blob/HEAD/{path}" for name, path in files.items()}
    return {"Homepage": where, "Repository": where, "Issues": f"{where}/issues", **pages}


if __name__ == "__main__":
    setup(
        long_description=published((ROOT / "README.md").read_text("utf-8"), address()),
        long_description_content_type="text/markdown",
        project_urls=urls(address()),
    )
