"""One network of which all devices compute a part of each layer: results are those of `jax.jit`, what is divided lies
so, and what does not pay stays on one device.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.program import Indivisible, Op, Value
from xcoexec.frontend.trace import paths, trace
from xcoexec.partition.divided_network import DividedNetwork, Exchange, divided
from xcoexec.partition.equal_parts import equal_parts
from xcoexec.planning import profiles
from xcoexec.planning.several import MOST, Several
from xcoexec.planning.waiting_calls import WaitedCall, by_rates, over, waited_calls
from xcoexec.planning.waiting_calls import text as waiting_text
from xcoexec.tools.zoo_graphs import model_graph

from .test_cli import _xcoexec
from .test_sharded import FOUR, begin, ended

pytestmark = pytest.mark.usefixtures("quick_xla")

EXACT, ROUGH = 3e-6, 2e-2  # of f32, and of bf16, whose sums are rounded on each device
OUT, IN = "channels out", "channels in"


@functools.cache
def seen() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended(begin("-m", "tests.divided_cases", XLA_FLAGS=FOUR))[0])
    return found


def test_results_are_those_of_jit() -> None:
    for name, found in seen()["networks"].items():
        assert max(found["errors"]) < (ROUGH if "bf16" in name else EXACT), name
        assert found["types"] and found["home"] and found["width"] <= 80, name


@pytest.mark.parametrize(
    "name, along, weights, operations",
    [
        ("linen channel 2", {OUT, IN}, 6, {"all-gather", "all-reduce"}),
        ("linen channel 3", {OUT, IN}, 7, {"all-gather", "all-reduce"}),  # three groups, 33 channels
        ("linen rows 2", {"rows"}, 0, {"collective-permute", "all-reduce"}),  # borders, and a mean over rows
        ("linen rows 4", {"rows"}, 0, {"collective-permute", "all-reduce"}),
        ("bf16 channel 2", {OUT, IN}, 6, {"all-reduce"}),
        ("bf16 rows 2", {"rows"}, 0, {"collective-permute"}),
        ("nnx channel 2", {OUT}, 2, {"all-gather"}),
        ("nnx rows 2", {"rows"}, 0, {"collective-permute"}),
        ("transformer channel 4", {OUT, IN}, 12, {"all-reduce"}),
        ("transformer channel 3", {OUT, IN}, 12, {"all-reduce"}),
        ("mlp channel 2", {OUT, IN}, 2, {"all-reduce"}),
        ("mlp channel 4", {OUT, IN}, 2, {"all-reduce"}),
        ("scan channel 2", {OUT, IN}, 3, {"all-reduce"}),
        ("mixed channel 2", {OUT}, 2, {"all-gather"}),
    ],
)
def test_what_is_divided_and_what_xla_makes_of_it(
    name: str, along: set[str], weights: int, operations: set[str]
) -> None:
    found = seen()["networks"][name]
    assert found["ran"] == name.split()[1] and set(found["along"]) == along
    assert found["weights"] == weights and operations <= set(found["operations"])


def test_a_transformer_has_two_exchanges_a_block() -> None:
    """Heads are computed where they lie; what follows them, and what follows a wide layer, is added up."""
    for count in (3, 4):
        assert seen()["networks"][f"transformer channel {count}"]["operations"] == ["all-reduce"] * 4


def test_a_cache_stays_divided() -> None:
    found = seen()["state"]
    assert found["apart"] < EXACT and found["in parts"] == ["k0", "k1", "v0", "v1"]
    assert found["programs"] == found["signatures"] == 1  # wherever the cache lies at first


def test_what_is_around_a_call() -> None:
    found = seen()["around"]
    error, home, shown = found["backwards"]
    assert error < EXACT and home == [3] and shown.endswith("over 2 devices: layers divided by channel: 2>")
    for name in ("copies", "flight", "inside", "gradient", "committed"):
        assert found[name] < EXACT, name
    assert found["high"][0] < EXACT and found["high"][1] == 3  # another precision is another program
    assert found["plan"] == [0, True]
    assert found["parts"].startswith("BindError: parts: got layers divided by channel; valid is dim='layers'")


NOTHING = "no layer is divided by channel over 4 devices, as that would not pay (calculated)"


def test_what_does_not_pay_runs_on_one_device() -> None:
    found = seen()["around"]
    error, ran, report, shown, plans = found["dear"]
    assert error < EXACT and ran == "xco" and plans == 1 and found["dear parts"] == [0]
    assert f"On cpu:0 alone: {NOTHING}." in " ".join(report.split()) and shown.endswith(
        f"one of them runs it, {NOTHING}>"
    )
    assert found["dear elsewhere"][0] < EXACT and found["dear elsewhere"][1] == [2]
    assert found["strict"] == f"BindError: xcoexec.jit(strict=True): mlp: {NOTHING}."


def test_auto_takes_what_is_fastest() -> None:
    found = seen()["auto"]
    assert found["asked"] == [["one device", "channel", "rows"]] * 3
    for name, ran in (("one device", "xco"), ("channel", "channel"), ("rows", "rows")):
        error, it_ran, measured, told, _ = found[name]
        assert error < EXACT and it_ran == ran and told and min(measured, key=measured.get) == name
    assert found["one device"][4].endswith("one of them runs it, which was the fastest>")
    way, measured, seconds, shape = found["really"]
    assert way in measured and measured == ["channel", "one device"] and 0 < seconds < 1 and shape == [3, 31]


def test_what_xla_cannot_run_is_no_candidate() -> None:
    error, way, measured = seen()["auto"]["no way"]
    assert error < EXACT and way == "one device" and measured == ["one device"]


@pytest.mark.parametrize(
    "name, start, end",
    [
        ("dim", "ValueError: spread: got dim='depth';", "valid are 'layers', 'channel', 'rows' and 'auto'."),
        ("kind", "ValueError: spread: got dim=3;", "valid are 'layers', 'channel', 'rows' and 'auto'."),
        ("memory", "ValueError: spread: got device_memory with dim='rows';", "which keeps such bounds."),
        ("devices", "ValueError: spread: got devices=9;", "different ones of jax.local_devices()."),
        ("given away", "BindError: spread: got mlp: it gives its inputs away;", "valid is a function without that."),
        ("too soon", "BindError: report: the function has not been called yet;", "its shapes are known."),
        ("traced", "BindError: bind: got traced arrays;", "bind outside of jax.jit)."),
        ("shape", "TypeError: dot_general", "got (4,) and (48,)."),
    ],
)
def test_bad_input(name: str, start: str, end: str) -> None:
    said = seen()["refused"][name]
    assert said.startswith(start) and said.endswith(end)


# -- what is divided, without any device


def network(fn: Any, ws: Any, x: Any, exchange: Exchange, dim: str = "channel", count: int = 2) -> DividedNetwork:
    leaves, tree = jax.tree_util.tree_flatten(((ws, x), {}))
    traced = trace(fn, leaves, tree, paths(tree))
    known = (*traced.inputs[:-1], *(v for v, _ in traced.consts))
    return divided(traced.ops, known, traced.outputs, count, dim, by_rates(1e9, 1e9), exchange)


WIDE = {"a": np.zeros((64, 256), np.float32), "b": np.zeros((256, 64), np.float32), "c": np.zeros((64, 4), np.float32)}


def wide(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w["a"]) @ w["b"] @ w["c"]


@pytest.mark.parametrize(
    "hop, along", [(0.0, [OUT, IN, OUT]), (1e-5, [OUT, IN]), (6e-5, [OUT, IN]), (1e-3, []), (1e9, [])]
)
def test_layers_that_do_not_pay_stay_whole(hop: float, along: list[str]) -> None:
    found = network(wide, WIDE, np.zeros((1, 64), np.float32), Exchange(hop, 1e12))
    assert [x.along for x in found.layers] == along
    assert found.saved >= 0 and (found.exchanges > 0) == bool(along)
    assert bool(found.axes) == bool(found.weights) == bool(along)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_only_equal_parts(count: int) -> None:
    found = network(wide, WIDE, np.zeros((1, 64), np.float32), Exchange(0.0, 1e12), count=count)
    assert bool(found.layers) == (256 % count == 0)
    assert all(v.shape[a] % count == 0 for v, a in (*found.axes.items(), *found.weights.items()))


def test_a_weight_that_is_read_as_a_whole_lies_whole() -> None:
    fn = lambda w, x: (x @ w["a"], w["a"] * 2)
    assert not network(fn, WIDE, np.zeros((1, 64), np.float32), Exchange(0.0, 1e12)).layers
    tied = lambda w, x: jnp.tanh(x @ w["a"]) @ w["a"].T  # its channels out, which the second one has as channels in
    found = network(tied, WIDE, np.zeros((1, 64), np.float32), Exchange(0.0, 1e12))
    assert [x.along for x in found.layers] == [OUT, IN] and list(found.weights.values()) == [1]


@pytest.mark.parametrize(
    "shape, target, axis, want",
    [
        ((2, 5, 48), (2, 5, 12, 4), 2, 2),
        ((2, 5, 12, 4), (2, 5, 48), 2, 2),
        ((2, 5, 12, 4), (10, 48), 1, 2),
        ((2, 8, 8, 3), (2, 64, 3), 1, 1),
        ((2, 5, 3, 16), (2, 5, 48), 2, None),
        ((4, 6), (6, 4), 1, None),
    ],
)
def test_axes_that_begin_together(shape: tuple[int, ...], target: tuple[int, ...], axis: int, want: int | None) -> None:
    op = Op(
        "reshape", (Value(shape, "float32"),), (Value(target, "float32"),), {"new_sizes": target, "dimensions": None}
    )
    if want is None:
        with pytest.raises(Indivisible):
            equal_parts(op, axis, 2)
    else:
        assert equal_parts(op, axis, 2) == (want,)
        x = np.arange(np.prod(shape)).reshape(shape)
        halves = [h.reshape(*target[:axis], -1, *target[axis + 1 :]) for h in np.split(x, 2, want)]
        np.testing.assert_array_equal(np.concatenate(halves, axis), x.reshape(target))


# -- devices that are numbers


def test_waiting_calls_on_numbers() -> None:
    graph, device = model_graph("vgg16", 1), profiles.load("h100")
    calls = waited_calls(graph, device, 4)
    assert calls[0] == WaitedCall(1, 0, sum(map(device.device.seconds, graph.layers)))
    assert [c.devices for c in calls] == [1, 2, 4]  # channels are no multiples of three
    assert all(a.seconds > b.seconds > 0 for a, b in zip(calls, calls[1:], strict=False))
    assert len(over(graph, device, 2).layers) == calls[1].layers > 3


def test_far_devices_do_not_pay() -> None:
    far = dataclasses.replace(profiles.load("h100"), sync=profiles.Number(1.0, "estimated"))
    calls = waited_calls(model_graph("vgg16", 1), far, 3)
    assert len(calls) == 1 and waiting_text(calls, "far", 3, 80).endswith("More than 1 do not pay for it.")


def test_text_of_waiting_calls() -> None:
    shown = _xcoexec("plan", "vgg16", "--device=h100,h100", "--batch=1").stdout.rstrip()
    assert max(map(len, shown.splitlines())) <= 80
    behind = shown[shown.index("Layers divided by channel") :]
    times = [float(t) for t in re.findall(r"(\d\.\d\d)x$", behind, re.M)]
    assert times == sorted(times) and times[0] == 1.0 < times[1]
    assert behind.endswith(("do not pay for it.", f"All of {MOST} pay for it."))
    assert behind == Several.of(model_graph("vgg16", 1), [profiles.load("h100")] * 2).waited(80)
