"""What this installation and machine are: `xcoexec info`, for people and for bug reports."""

from __future__ import annotations

import importlib.metadata as metadata
import platform
import re

import jax

from .. import __version__
from ..codegen.target import target
from ..config import cores, settings, threads
from ..devices.registry import device_half
from ..ir.text import columns
from . import cache_folder

LIBRARIES = ("jax", "jaxlib", "flax", "llvmlite", "numpy", "scipy", "optax")
KEY = 14  # characters of a row's name
Facts = dict[str, str]


def gathered() -> dict[str, Facts]:
    """What there is to know, by section; nothing is compiled or measured. JAX's backend is started."""
    unit = target().unit("bfloat16")
    return {
        "versions": {"xcoexec": __version__, "python": platform.python_version(), **_versions()},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cpu": f"{target().cpu}, {cores()} cores for this process",
            "instructions": f"{target().name}, {target().vl} f32 lanes, {target().registers} registers",
            "bf16 products": f"by instructions, {unit.name}" if unit is not None else "as f32",
            "threads": str(threads()),
            "device": device_half().title(),
            **_gpu(),
        },
        "cache": cache_folder.facts(),
        "settings": settings() or {"XCOEXEC_*": "none is set"},
        "extras": _extras(),
    }


def _versions() -> Facts:
    found = ((name, version(name)) for name in LIBRARIES)
    return {name: known for name, known in found if known}


def version(package: str) -> str:
    """The version of an installed package; "" where it is not there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _gpu() -> Facts:
    """The GPU and its driver, as far as JAX knows them."""
    if jax.default_backend() == "cpu":
        return {"gpu": "none that JAX sees"}
    first = jax.devices()[0]
    return {"gpu": f"{len(jax.devices())} x {first.device_kind}", "driver": first.client.platform_version}


def _extras() -> Facts:
    """Each extra, and which of its packages are not installed."""
    missing: dict[str, list[str]] = {}
    try:
        needed = metadata.requires("xcoexec") or []
    except metadata.PackageNotFoundError:
        return {"xcoexec": "runs from a folder, without an installation"}
    for line in needed:
        found = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", line)
        if found:
            package, extra = found.groups()
            missing.setdefault(extra, []).extend([] if version(package) else [package])
    return {e: "installed" if not without else "lacks " + ", ".join(without) for e, without in missing.items()}


def text(found: dict[str, Facts]) -> str:
    """The sections as text of at most 80 columns."""
    lines = []
    for section, facts in found.items():
        lines += [section, columns([["", k.ljust(KEY), v] for k, v in facts.items()], width=80), ""]
    return "\n".join(lines).rstrip()


__all__ = ["gathered", "text", "version"]
