"""Devices that exist as numbers: one TOML file each, so that a plan for them can be made and judged on any machine."""

from __future__ import annotations

import dataclasses
import importlib.resources
import os
import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any

from ...codegen.rules.convolution import convolution
from ...codegen.rules.primitives import primitive
from ...codegen.store import schema
from ...codegen.store.disk import Refused, contents
from ...errors import ProfileError
from ...ir.costs import Costs
from ...ir.layers import Layer, LayerGraph
from ...ir.watts import Watts
from ...ir.words import DEVICE, HOST

RATES = ("flops", "bandwidth", "launch")  # of a half: FLOP/s, bytes/s, seconds before a layer begins
MOST = 1 << 16  # bytes of a file
LEAST, MOST_VALUE = 1e-15, 1e24
STEPS = 32  # clocks that a half can have, from a STEPS-th of its highest one on: ours, makers publish a few modes
LINK = ("sync", "copy_rate")  # seconds of a synchronisation, bytes/s between the halves
ELECTRIC = ("active", "now", "most")  # of a half: watts at work, Hz of the clock as it is, Hz of the highest one
KINDS = ("conv", "winograd", "depthwise", "dense", "other")  # efficiency: the share of the roofline that kernels reach


@dataclasses.dataclass(frozen=True)
class Number:
    """A figure and where it comes from ("estimated" where nobody has published or measured it)."""

    value: float
    source: str


@dataclasses.dataclass(frozen=True)
class Half:
    """One half of a device: peak FLOP/s, bytes/s, seconds of a launch, and the share of the roofline that each kind of
    layer reaches.
    """

    flops: Number
    bandwidth: Number
    launch: Number
    efficiency: Mapping[str, Number]

    def seconds(self, layer: Layer) -> float:
        """Seconds of a layer: a launch and the roofline (Williams et al., 2009), at the efficiency of the layer's
        kind.
        """
        share = self.efficiency[kind(layer)].value
        return self.launch.value + max(layer.flops / self.flops.value, layer.nbytes / self.bandwidth.value) / share


@dataclasses.dataclass(frozen=True)
class Electric:
    """What a device draws and how it is clocked: `idle` watts, watts more of each half at work (`active`) at its clock
    of `now`, and its highest one (`most`, Hz).
    """

    idle: Number
    active: Mapping[str, Number]
    now: Mapping[str, Number]
    most: Mapping[str, Number]

    @property
    def watts(self) -> Watts:
        """The same without its sources."""
        return Watts(self.idle.value, {half: n.value for half, n in self.active.items()})

    def levels(self, half: str) -> tuple[float, ...]:
        """Clocks that a half can have, in Hz, ascending: `STEPS` evenly spaced ones and that of `now`."""
        most = self.most[half].value
        return tuple(sorted({self.now[half].value, *(most * i / STEPS for i in range(1, STEPS + 1))}))


@dataclasses.dataclass(frozen=True)
class Profile:
    """A device as numbers. `contention`: factor by which both halves slow down together; `electric`: None where nothing
    of it is known.
    """

    name: str
    title: str
    host: Half
    device: Half
    sync: Number
    copy_rate: Number
    contention: Number
    electric: Electric | None = None

    def costs(self, graph: LayerGraph) -> Costs:
        """The costs of a graph's layers, in seconds; what kernels cannot run stays on the device half."""
        on_host = tuple(None if x.host_error else self.host.seconds(x) for x in graph.layers)
        on_device = tuple(self.device.seconds(x) for x in graph.layers)
        link = (self.sync.value, self.copy_rate.value, self.contention.value)
        return Costs.of_halves(on_host, on_device, *link, shared_cores=False)


def kind(layer: Layer) -> str:
    """Which kernels a layer runs."""
    op = layer.group.anchor
    conv = convolution(op)
    if conv is None:
        return "dense" if primitive(op).contraction else "other"
    if conv.depthwise or conv.window_sums:
        return "depthwise"
    return "winograd" if conv.window[-2:] == (3, 3) and set(conv.strides[-2:]) == {1} else "conv"


def names() -> tuple[str, ...]:
    """The profiles that come with the package."""
    return tuple(
        sorted(
            p.name.removesuffix(".toml")
            for p in importlib.resources.files(__name__).iterdir()
            if p.name.endswith(".toml")
        )
    )


def load(name: str | os.PathLike[str]) -> Profile:
    """A profile that comes with the package, or one in a file (a path that ends with .toml). Raises `ProfileError` for
    another name, and for a file that cannot be read or is no profile.
    """
    if not isinstance(name, (str, os.PathLike)) or not isinstance(os.fspath(name), str):
        raise ProfileError(
            f"devices: got a device of type {type(name).__name__}; "
            f"valid are {', '.join(names())}, or a path to a TOML file."
        )
    name = os.fspath(name)
    if name.endswith(".toml"):
        return parse(pathlib.Path(name).stem, _text(name))
    if name not in names():
        raise ProfileError(
            f"devices: got device {schema.short(name)}; valid are {', '.join(names())}, or a path to a TOML file."
        )
    return parse(name, (importlib.resources.files(__name__) / f"{name}.toml").read_text("utf-8"))


def _text(path: str) -> str:
    """The text of a user's file."""
    try:
        return contents(path, MOST).decode()
    except (FileNotFoundError, NotADirectoryError):
        why = "which is not there"
    except Refused as e:
        why = f"which {e}"
    except UnicodeDecodeError:
        why = "which is not in UTF-8"
    except (OSError, ValueError) as e:
        why = f"which cannot be read ({e})"
    raise ProfileError(f"devices: got the file {path!r}, {why}; valid is a TOML file.")


def parse(name: str, text: str) -> Profile:
    """A profile from TOML; every number is a pair `[value, "source"]`. Raises `ProfileError` that names the first wrong
    entry.
    """
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ProfileError(
            f"devices: got a profile {name!r} that is not TOML that can be read (nested too deeply)."
        ) from None
    except (ValueError, TypeError, AttributeError) as e:
        raise ProfileError(f"devices: got a profile {name!r} that is not TOML ({e}).") from None
    title = data.get("title", name)
    if not isinstance(title, str):
        raise ProfileError(f"devices: got title={schema.short(title)} in the profile {name!r}; valid is a text.")
    halves = {}
    for half in (HOST, DEVICE):
        part = _table(name, data, half)
        efficiency = _table(name, part, "efficiency", half)
        rates = {k: _number(name, part, k, half) for k in RATES}
        halves[half] = Half(
            **rates, efficiency={k: _number(name, efficiency, k, f"{half}.efficiency", 1.5) for k in KINDS}
        )
    link = _table(name, data, "link")
    numbers = {k: _number(name, link, k, "link") for k in (*LINK, "contention")}
    return Profile(name, title, halves[HOST], halves[DEVICE], **numbers, electric=_electric(name, data))


def _electric(name: str, data: Mapping[str, object]) -> Electric | None:
    if "power" not in data:
        return None
    power = _table(name, data, "power")
    halves = {half: _table(name, power, half, "power") for half in (HOST, DEVICE)}
    rows = {k: {h: _number(name, part, k, f"power.{h}") for h, part in halves.items()} for k in ELECTRIC}
    return Electric(_number(name, power, "idle", "power"), **rows)


def _table(name: str, data: Mapping[str, object], key: str, inside: str = "") -> Mapping[str, object]:
    found = data.get(key)
    if not isinstance(found, dict):
        where = f"{inside}.{key}" if inside else key
        raise ProfileError(
            f"devices: got the profile {name!r} without the table [{where}]; valid is a table of numbers."
        )
    return found


def _number(name: str, table: Mapping[str, object], key: str, where: str, most: float = MOST_VALUE) -> Number:
    got: Any = table.get(key)  # whatever a file says
    try:
        schema.Row((schema.Number(LEAST, most), schema.Text())).check(got)
        sound = bool(got[1].strip())
    except schema.Misfit:
        sound = False
    if not sound:
        limit = f" up to {most:g}" if most < MOST_VALUE else ""
        valid = f'a pair [positive number, "source"]{limit}'
        raise ProfileError(
            f"devices: got {key}={schema.short(got)} in [{where}] of the profile {name!r}; valid is {valid}."
        )
    return Number(float(got[0]), got[1])


__all__ = ["KINDS", "Electric", "Half", "Number", "Profile", "kind", "load", "names", "parse"]
