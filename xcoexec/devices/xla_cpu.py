"""XLA:CPU as the device half: on the host half's own cores, without a connection."""

from __future__ import annotations

from ..ir.words import DEVICE
from .record import Device

RECORD = Device(
    name="cpu",
    half=DEVICE,
    apart=False,
    shares_cores=True,
    handlers="cpu",
    title=lambda: "cpu",
    connect=lambda cores: None,
    connect_at=lambda cores, ordinal: None,
    tiles=((48, 8), (16, 16)),  # of Eigen's kernels
    processors=lambda threads: threads,
)
