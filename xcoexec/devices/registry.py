"""The kinds of devices: one file each, a table line each, and which of them JAX computes on."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import jax

from . import other
from .link import SAME_MEMORY, Link, RelayLink
from .record import Device
from .xla_cpu import RECORD as XLA_CPU

if TYPE_CHECKING:
    from ..codegen.runtime.relay import Relay

#: JAX's default backend -> the module of the device half (".name" in this folder); loaded when it is first asked for
FILES = {"cpu": ".xla_cpu", "gpu": ".cuda"}
_kinds: dict[str, Device] = {}


def register(device: Device) -> Device:
    """Makes a kind known by its name; returns it."""
    _kinds[device.name] = device
    return device


def device_half() -> Device:
    """What the device half computes on: JAX's default backend. One without a file of its own cannot be connected: its
    `connect` raises `NotImplementedError`.
    """
    backend = jax.default_backend()
    if backend not in FILES:
        return other.record(backend)
    record: Device = importlib.import_module(FILES[backend], __package__).RECORD
    return record


def device_of(relay: Relay | None) -> Device:
    """The kind of device behind a relay; XLA:CPU, which needs none, where there is none. Raises `KeyError` for a driver
    whose kind is not registered.
    """
    return XLA_CPU if relay is None else _kinds[relay.driver.platform]


def link_of(relay: Relay | None, *others: Relay | None) -> Link:
    """The link to the devices behind relays; without a relay the one within the CPU's memory."""
    return SAME_MEMORY if relay is None else RelayLink(relay, *filter(None, others))


def connected(relay: Relay | None) -> Relay:
    """The relay of a device that is apart. Raises `RuntimeError` where there is none."""
    if relay is None:
        raise RuntimeError("xcoexec: a device of its own is used without a relay.")
    return relay


__all__ = ["FILES", "connected", "device_half", "device_of", "link_of", "register"]
