"""A kind of device: the stand-in under another name, with other tiles."""

from __future__ import annotations

from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices.record import Device
from xcoexec.devices.registry import register
from xcoexec.ir.words import DEVICE

from ..standin import StandIn


class Toy(StandIn):
    platform = "toy"


RECORD = register(
    Device(
        name=Toy.platform,
        half=DEVICE,
        apart=True,
        shares_cores=False,
        handlers="cpu",
        title=lambda: "toy 3",
        connect=lambda cores: Relay(Toy(), cores),
        tiles=((8, 8),),
        processors=lambda threads: 3,
    )
)
