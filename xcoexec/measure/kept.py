"""What was measured of this machine, in the disk cache: of other machines, versions and kernels nothing is read."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from ..codegen.native.build import source_hash
from ..codegen.store.disk import Record, folder
from ..devices.host import RECORD as HOST_CORES
from ..devices.registry import device_half

T = TypeVar("T")


@functools.lru_cache
def machine() -> str:
    """Fingerprint of CPU, cores, instruction set, JAX and this library's kernels."""
    text = f"{HOST_CORES.title()} {jax.__version__} {device_half().title()} {source_hash()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def tuning() -> dict[str, str]:
    """Options of XLA's compiler for programs on this device, by which it times no kernel that it has timed before, in
    this process or another one; none where there is nothing to keep, or no folder to keep it in.
    """
    option, root = device_half().tuning, folder()
    if not option or root is None:
        return {}
    path = root / f"kernels-{machine()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError:  # the disk is full, or somebody else's file has this name
        return {}
    return {option: str(path)}


def load(record: Record, name: str) -> Any:
    """A record of this machine from the disk cache; None where there is none, or where it does not fit."""
    return record.load(f"{name}-{machine()}")


def read(record: Record, name: str, make: Callable[[Any], T]) -> T | None:
    """`make` of such a record; also None where `make` raises `ValueError`."""
    found: T | None = record.read(f"{name}-{machine()}", make)
    return found


def store(record: Record, name: str, value: object) -> None:
    """Keeps a record of this machine in the disk cache."""
    record.store(f"{name}-{machine()}", value)


def forget(record: Record, name: str) -> None:
    """Keeps a record of this machine no longer."""
    record.forget(f"{name}-{machine()}")


__all__ = ["forget", "load", "machine", "read", "store", "tuning"]
