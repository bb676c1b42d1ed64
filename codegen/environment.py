"""The environment variables that this package reads, all of them here."""

from __future__ import annotations

import os

ISA = "XCOEXEC_ISA"
CACHE_DIR = "XCOEXEC_CACHE_DIR"


def isa() -> str:
    """The instruction set that kernels shall be made for ("" where none is named)."""
    return os.environ.get(ISA, "")


def usual_cache_folder() -> str:
    """Where kernels, plans and profiles are kept when nobody says otherwise."""
    return os.path.join(os.path.expanduser("~"), ".cache", "xcoexec")


def cache_folder() -> str:
    """Where kernels, plans and profiles are kept; "" for nowhere."""
    return os.environ.get(CACHE_DIR, usual_cache_folder())


__all__ = ["CACHE_DIR", "ISA", "cache_folder", "isa", "usual_cache_folder"]
