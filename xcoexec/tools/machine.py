"""What a record says of where it was made: versions, and the machine in general terms."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TypedDict

import jax

from .. import __version__
from ..codegen.target import target
from ..config import cores, xla_flags
from ..devices.registry import device_half


class Environment(TypedDict):
    """Versions, processor, instruction set, device, precision and XLA's flags."""

    xcoexec: str
    jax: str
    llvmlite: str
    python: str
    cpu: str
    isa: str
    device: str
    precision: str
    xla_flags: str


def environment() -> Environment:
    """Versions, processor, instruction set, device, precision and XLA's flags, by name."""
    precision: str | None = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    return {
        "xcoexec": __version__,
        "jax": version("jax"),
        "llvmlite": version("llvmlite"),
        "python": platform.python_version(),
        "cpu": f"{cores()}-core {target().cpu}",
        "isa": target().name,
        "device": device_half().title(),
        "precision": str(precision or "default"),
        "xla_flags": xla_flags(),
    }


__all__ = ["Environment", "environment"]
