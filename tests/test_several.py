"""A network over devices that are numbers: their stages cover it, and what they take is what a replay takes."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from xcoexec.planning import profiles
from xcoexec.planning.device_cuts import DeviceCut
from xcoexec.planning.several import Several, replay, text, weight_bytes
from xcoexec.tools.zoo_graphs import model_graph

from .test_cli import _xcoexec

pytestmark = pytest.mark.usefixtures("quick_xla")


@pytest.mark.parametrize("devices", [["h100"] * 2, ["h100", "h200", "h100"], ["jetson-tx2"] * 4])
def test_stages_cover_the_network(devices: list[str]) -> None:
    graph = model_graph("vgg16", 4)
    several = Several.of(graph, [profiles.load(d) for d in devices])
    cut = several.cut
    assert [a for _, a, _ in cut.stages] == [0, *(b for _, _, b in cut.stages[:-1])]
    assert cut.stages[-1][2] == len(graph.layers)
    used = [name for name, _, _ in cut.stages]
    assert all(used.count(d) <= devices.count(d) for d in set(devices)) and used.count("host") <= 1
    assert cut.period <= Several.of(graph, [profiles.load(devices[0])]).cut.period


def test_bytes_of_weights_are_those_of_the_model() -> None:
    graph = model_graph("vgg16", 1)
    assert sum(weight_bytes(graph)) == pytest.approx(4 * 138_357_544, rel=1e-3)


def test_a_bound_of_memory_divides_weights() -> None:
    graph = model_graph("vgg16", 1)
    bound = Several.of(graph, [profiles.load("h100")] * 2, 3e8)
    free = Several.of(graph, [profiles.load("h100")] * 2)
    assert bound.cut.period > 2 * free.cut.period  # one layer alone has 411 MB
    assert Several.of(graph, [profiles.load("h100")] * 2, 1e9).cut == free.cut


@pytest.mark.parametrize("seed", range(8))
def test_a_replay_takes_what_the_slowest_stage_takes(seed: int) -> None:
    seconds = tuple(map(float, np.random.default_rng(seed).uniform(1, 5, 1 + seed % 5)))
    cut = DeviceCut(tuple(("d", i, i + 1) for i in range(len(seconds))), seconds)
    period, latency = replay(cut)
    assert period == pytest.approx(max(seconds)) and latency >= sum(seconds) - 1e-9


def test_more_devices_are_told_as_long_as_they_pay() -> None:
    shown = text(Several.of(model_graph("resnet50", 16), [profiles.load("h100")] * 2), 80)
    assert max(map(len, shown.splitlines())) <= 80
    times = [float(t) for t in re.findall(r"(\d\.\d\d)x$", shown, re.M)]
    assert times == sorted(times) and times[0] == 1.0 and len(times) >= 3
    assert re.search(r"More than \d do not pay\.$", shown)


def test_devices_of_one_name() -> None:
    one = profiles.load("h100")
    other = dataclasses.replace(one, title="another")
    with pytest.raises(ValueError, match="got devices of one name with other numbers; valid are names that differ"):
        Several.of(model_graph("lenet", 1), [one, other])


def test_from_the_command_line() -> None:
    assert "A call that is waited for takes" in _xcoexec("plan", "vgg16", "--device=h100,h100").stdout
    found = json.loads(_xcoexec("plan", "vgg16", "--device=h100,h200", "--json").stdout)
    share = _xcoexec("plan", "vgg16", "--device=h100,h200", "--device_memory=0.5")
    assert share.returncode == 2 and "valid for a device of numbers are bytes" in " ".join(share.stderr.split())
    assert found["period"] == max(found["seconds"]) and len(found["stages"]) == len(found["seconds"])
