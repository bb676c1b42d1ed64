"""A call that somebody waits for, of a network that is divided by channel over devices that exist as numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..cost.features import flops, nbytes
from ..ir.layers import LayerGraph
from ..ir.text import columns, milliseconds
from ..partition.divided_network import CHANNEL, DividedNetwork, Exchange, Seconds, divided
from .device_cuts import WORTH
from .profiles import Profile


@dataclasses.dataclass(frozen=True)
class WaitedCall:
    """`seconds` of a call over so many `devices`, on which `layers` are divided."""

    devices: int
    layers: int
    seconds: float


def by_rates(flop_rate: float, byte_rate: float) -> Seconds:
    """Seconds by the roofline of a device's FLOP and bytes a second."""
    return lambda op: max(flops(op) / flop_rate, nbytes([op]) / byte_rate)


def over(graph: LayerGraph, device: Profile, count: int) -> DividedNetwork:
    """A graph's layers divided by channel over `count` devices, which are linked as each is with its host. What begins
    a layer is not divided.
    """
    seconds = {x.group.anchor: device.device.seconds(x) - device.device.launch.value for x in graph.layers}
    ops = [op for x in graph.layers for op in x.ops]
    exchange = Exchange(device.sync.value, device.copy_rate.value)
    share = lambda op: seconds.get(op, 0.0)
    return divided(ops, graph.program.consts, graph.program.outputs, count, CHANNEL, share, exchange)


def waited_calls(graph: LayerGraph, device: Profile, most: int) -> list[WaitedCall]:
    """Calls over 1, 2, ... devices, `most` at most, without those that are not clearly faster than one over fewer."""
    alone = sum(map(device.device.seconds, graph.layers))
    found = [WaitedCall(1, 0, alone)]
    for count in range(2, most + 1):
        network = over(graph, device, count)
        seconds = alone - network.saved
        if found[-1].seconds > WORTH * seconds:
            found.append(WaitedCall(count, len(network.layers), seconds))
    return found


def text(calls: Sequence[WaitedCall], name: str, most: int, width: int = 0) -> str:
    """What a call takes that is waited for, and behind how many devices more do not pay."""
    table = [[f"devices {name}", "divided layers", "calculated ms a waiting call", "times one"]]
    for c in calls:
        times = f"{calls[0].seconds / c.seconds:.2f}x"
        table.append([str(c.devices), str(c.layers), milliseconds(c.seconds), times])
    used = calls[-1].devices
    end = f"More than {used} do not pay for it." if used < most else f"All of {most} pay for it."
    return f"Layers divided by channel:\n{columns(table, range(4), width)}\n{end}"


__all__ = ["WaitedCall", "by_rates", "over", "text", "waited_calls"]
