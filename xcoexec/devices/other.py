"""A backend of JAX's that no file here knows: functions stay with plain `jax.jit` there."""

from __future__ import annotations

from typing import NoReturn

from ..ir.words import DEVICE
from .record import Device


def record(backend: str) -> Device:
    """The record of such a backend, by JAX's name of it. Its `connect` raises `NotImplementedError`."""

    def connect(cores: tuple[int, ...]) -> NoReturn:
        raise NotImplementedError(
            f"the default backend is {backend!r}, and this version's device half is XLA:CPU or a CUDA GPU"
        )

    return Device(
        name=backend,
        half=DEVICE,
        apart=True,
        shares_cores=False,
        handlers="",
        title=lambda: backend,
        connect=connect,
        tiles=(),
        processors=lambda threads: 1,
    )
