"""The host half: generated kernels on CPU cores."""

from __future__ import annotations

import platform

from ..codegen.target import target
from ..config import cores
from ..ir.words import HOST
from .record import Device

RECORD = Device(
    name="host",
    half=HOST,
    apart=False,
    shares_cores=True,
    handlers="cpu",
    title=lambda: f"{platform.machine()} {target()} {cores()}",
    connect=lambda cores: None,
    tiles=(),  # the kernels' own step tables say what they compute
    processors=lambda threads: threads,
)
