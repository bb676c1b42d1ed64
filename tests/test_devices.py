"""Devices that exist as numbers, every strategy on them, and the simulator."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

from xcoexec import compat, models
from xcoexec.cost.terms import Blocks
from xcoexec.devices import null, registry
from xcoexec.devices.record import Device
from xcoexec.errors import PlanError, ProfileError
from xcoexec.frontend.fold import fold
from xcoexec.frontend.graph import build_graph
from xcoexec.frontend.trace import paths, trace
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.measure.training import device_blocks, record_name
from xcoexec.planning import profiles
from xcoexec.planning.memory import usage
from xcoexec.planning.simulate import BACK, OUT, ROWS, STREAM, TEAM, replay
from xcoexec.planning.strategies import STRATEGIES
from xcoexec.session.contest import forced

from .support import LAYERS, array, build_on, dense, error, oracle, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

X = array(8, 160)
NAMES = ("lenet", "alexnet", "squeezenet", "googlenet", "resnet18", "mobilenet_v2")
#: where the two with most layers are planned too; the other devices have the same code and other numbers
DEEP = ("khadas-vim3",)


def nets(device: str) -> tuple[str, ...]:
    return NAMES if device in DEEP else tuple(n for n in NAMES if n not in ("googlenet", "mobilenet_v2"))


@functools.cache
def graph_of(name: str) -> LayerGraph:
    entry = models.get(name)
    weights = entry.shapes()
    values, tree = jax.tree_util.tree_flatten(((weights, entry.example()), {}))
    return build_graph(
        fold(trace(entry.module.apply, values, tree, paths(tree)), range(len(jax.tree_util.tree_leaves(weights))))
    )


def some(device: str, strategy: str) -> tuple[str, ...]:
    """Every second network, in turn: each is planned for every device and by every strategy."""
    turn = profiles.names().index(device) + list(STRATEGIES).index(strategy)
    return nets(device)[turn % 2 :: 2]


@pytest.mark.parametrize("device", profiles.names())
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_on_every_device(device: str, strategy: str) -> None:
    for name in some(device, strategy):
        graph, costs = graph_of(name), profiles.load(device).costs(graph_of(name))
        plan = STRATEGIES[strategy](graph, costs)
        check_plan(plan, graph)
        assert [p.layer for p in plan.placements] == [x.name for x in graph.layers]
        single = min(
            sum(costs.device), sum(t or 0 for t in costs.host) if all(t is not None for t in costs.host) else 1e9
        )
        moved = 2 * costs.sync + (graph.program.inputs[0].nbytes + graph.layers[-1].out.nbytes) / costs.copy_rate
        assert plan.predicted is not None
        if strategy not in ("device", "host", "capacity"):
            assert plan.predicted <= single + moved + 1e-9
        run = replay(graph, plan, costs)
        for row in range(len(ROWS)):
            events = sorted((e for e in run.events if e.row == row), key=lambda e: e.start)
            assert all(b.start >= a.end - 1e-12 for a, b in itertools.pairwise(events))
        assert run.events
        assert run.seconds >= max(run.busy(TEAM), run.busy(STREAM)) - 1e-12


@pytest.mark.parametrize("device", profiles.names())
def test_the_simulator_agrees_with_sums(device: str) -> None:
    graph, costs = graph_of("resnet18"), profiles.load(device).costs(graph_of("resnet18"))
    assert replay(graph, STRATEGIES["device"](graph, costs), costs).seconds == pytest.approx(sum(costs.device))
    on_host = replay(graph, STRATEGIES["host"](graph, costs), costs)
    moved = graph.program.inputs[0].nbytes + graph.layers[-1].out.nbytes
    assert on_host.seconds == pytest.approx(
        sum(t or 0 for t in costs.host) + costs.sync + moved / costs.copy_rate, rel=1e-6
    )
    assert on_host.busy(STREAM) == 0 and on_host.busy(OUT) > 0 and on_host.busy(BACK) > 0
    for name in ("codl", "layer_switch"):
        plan = STRATEGIES[name](graph, costs)
        assert replay(graph, plan, costs).seconds == pytest.approx(plan.predicted, rel=0.1)


def test_shared_cores_overlap_nothing() -> None:
    graph = graph_of("squeezenet")
    n = len(graph.layers)
    costs = null.costs(graph, 1e-3, 1e-3, sync=1e-5, shared_cores=True)
    run = replay(graph, forced(graph, Plan.uniform(0.5)), costs)
    assert run.seconds >= n * 1e-3 - 1e-9


def test_a_bound_on_a_device_of_numbers() -> None:
    graph = graph_of("alexnet")
    costs = dataclasses.replace(profiles.load("khadas-vim3").costs(graph), capacity=4e7, stream_rate=2e9)
    plan = STRATEGIES["capacity"](graph, costs)
    assert usage(graph, plan.placements).total <= 4e7
    assert replay(graph, plan, costs).seconds == pytest.approx(plan.predicted, rel=0.15)
    roomy = STRATEGIES["capacity"](graph, profiles.load("khadas-vim3").costs(graph))
    assert not any(p.streamed for p in roomy.placements) and "room for all" in roomy.chosen


def test_the_timeline_is_a_real_runs_file(tmp_path: pathlib.Path) -> None:
    from xcoexec.session.timeline import write

    graph, costs = graph_of("squeezenet"), profiles.load("h200-slice-8").costs(graph_of("squeezenet"))
    run = replay(graph, STRATEGIES["codl"](graph, costs), costs)
    write(tmp_path / "t.json", run.trace())
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X"} and len(events) == len(run.events) + len(ROWS)
    with pytest.raises(PlanError, match="for another function"):
        replay(graph_of("lenet"), STRATEGIES["codl"](graph, costs), costs)


def test_numbers_name_their_sources() -> None:
    for name in profiles.names():
        p = profiles.load(name)
        for half in (p.host, p.device):
            for number in (half.flops, half.bandwidth, half.launch, *half.efficiency.values()):
                assert number.value > 0 and number.source


GOOD = (pathlib.Path(profiles.__file__).parent / "khadas-vim3.toml").read_text()


@pytest.mark.parametrize(
    "change, text",
    [
        (("[link]\n", "[links]\n"), r"without the table \[link\]"),
        (('bandwidth = [8.0e9, "estimated"]\n', ""), r"got bandwidth=None in \[host\]"),
        (("[8.0e9,", "[-8.0e9,"), "got bandwidth=.-8000000000.0, 'estimated'.*valid is a pair"),
        (('[8.0e9, "estimated"]', "8.0e9"), "got bandwidth=8000000000.0"),
        (("\nconv = [0.73,", "\nconv = [7,"), "got conv=.*up to 1.5"),
        (('sync = [0.0001, "estimated"]', 'sync = [0.0001, " "]'), "got sync="),
        (("[link]", "[link"), "not TOML"),
    ],
)
def test_malformed_profiles(change: tuple[str, str], text: str) -> None:
    broken = GOOD.replace("1.0e-4", "0.0001").replace(*change)
    with pytest.raises(ProfileError, match=text):
        profiles.parse("mine", broken)


def test_unknown_devices(tmp_path: pathlib.Path) -> None:
    with pytest.raises(
        ProfileError, match=r"got device 'ps5'; valid are desktop-rtx-2080, h100, h200, .*snapdragon-855, or a path"
    ):
        profiles.load("ps5")
    with pytest.raises(ProfileError, match="which is not there"):
        profiles.load(str(tmp_path / "no.toml"))
    (tmp_path / "mine.toml").write_text(GOOD)
    assert profiles.load(str(tmp_path / "mine.toml")).costs(graph_of("lenet")).device


@pytest.mark.parametrize("device", ["h200-slice-8", "khadas-vim3", "snapdragon-855"])
def test_codls_ablations(device: str) -> None:
    """Both dims are never predicted worse than one, chains never worse than none."""

    from xcoexec.planning.strategies.codl import codl

    for name in nets(device):
        if name == "mobilenet_v2":
            continue  # the slowest one, whose plan by codl is looked at above
        graph, costs = graph_of(name), profiles.load(device).costs(graph_of(name))
        full = codl(graph, costs)
        for options in (dict(dims=("channel",)), dict(dims=("rows",)), dict(chain=False)):
            plan = functools.partial(codl, **options)(graph, costs)  # type: ignore[arg-type]
            check_plan(plan, graph)
            assert full.predicted <= plan.predicted * (1 + 1e-9)
            split = [p for p in plan.placements if p.half == "split"]
            assert all(p.dim in options.get("dims", ("channel", "rows")) for p in split)
            assert options.get("chain", True) or not any(p.chain for p in split)
    with pytest.raises(ValueError, match="got dims="):
        codl(graph, costs, dims=("depth",))


@pytest.mark.parametrize(
    "number", ["inf", "-inf", "nan", "0", "true", "1" + "0" * 400, '"8.0e9"', "[8.0e9]", "1e-300", "1e300"]
)
def test_numbers_that_are_none(number: str) -> None:
    with pytest.raises(
        ProfileError, match=r"devices: got bandwidth=.* in \[host\] of the profile 'mine'; valid is a pair"
    ):
        profiles.parse("mine", GOOD.replace("[8.0e9,", f"[{number},", 1))


@pytest.mark.parametrize(
    "text",
    ["x = " + "[" * 100_000, "x = " + "9" * 5000, "a." * 1000 + "b = 1", "\0", "x = 1\nx = 2", None, b"x = 1"],
    ids=lambda x: str(x)[:12],
)
def test_texts_that_are_no_profile(text: object) -> None:
    with pytest.raises(ProfileError, match="devices: got "):
        profiles.parse("mine", text)  # type: ignore[arg-type]


def test_titles_are_texts() -> None:
    with pytest.raises(ProfileError, match=r"got title=\[1, 2\]"):
        profiles.parse("mine", "title = [1, 2]\n" + "\n".join(GOOD.splitlines()[1:]))


def test_files_that_are_no_profile(tmp_path: pathlib.Path) -> None:
    (tmp_path / "latin.toml").write_bytes("title = 'é'".encode("latin-1"))
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with open(tmp_path / "giant.toml", "wb") as f:
        f.truncate(1 << 40)
    says = {
        "latin": "not in UTF-8",
        "folder": "no regular file",
        "pipe": "no regular file",
        "zero": "no regular file",
        "giant": "more than",
        "no": "not there",
    }
    code = """
import sys
from xcoexec.planning import profiles
from xcoexec.errors import ProfileError
for path in sys.argv[1:]:
    try:
        profiles.load(path)
    except ProfileError as e:
        print(e)
"""
    paths = [str(tmp_path / f"{name}.toml") for name in says]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(says) and all(
        why in line and "valid is a TOML file" in line for why, line in zip(says.values(), lines, strict=True)
    ), lines


@pytest.mark.parametrize("name", [None, 7, b"x.toml", ["h200"], "nul\0.toml", "h200\0"], ids=repr)
def test_names_that_are_none(name: object) -> None:
    with pytest.raises(ProfileError, match="devices: got "):
        profiles.load(name)  # type: ignore[arg-type]


# -- kinds of devices --------------------------------------------------------------------------------


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A kind of one file and one table line, which JAX's default backend is made to be."""
    monkeypatch.setitem(registry.FILES, "toys", "tests.toys.device_kind")
    monkeypatch.setattr(jax, "default_backend", lambda: "toys")
    return registry.device_half()


def test_a_kind_is_one_file_and_one_table_line(toy: Device) -> None:
    """Its handlers run, its measurements have names of their own, and a predictor counts its tiles."""
    relay = toy.connect(())
    assert relay is not None and registry.device_of(relay) is toy
    exe = build_on(relay, dense, LAYERS, X, Plan.uniform(0.5))
    assert exe.lowered is not None and exe.lowered.device is toy and exe.lowered.segments
    assert error(np.asarray(exe.call([X])[0]), oracle(dense, LAYERS, X)) < 1e-5
    assert relay.driver.launches > 0  # type: ignore[attr-defined]
    assert record_name(relay, 4) == "predictor-4-toy" and device_blocks(relay, 4) == Blocks(((8, 8),), 3)


def test_the_cpu_needs_no_connection() -> None:
    here = registry.device_half()
    assert here.shares_cores and not here.apart and here.connect(()) is None and here is registry.device_of(None)
    assert here.suffix == "" and here.processors(7) == 7


def test_a_backend_that_no_file_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    found = registry.device_half()
    assert found.title() == "tpu" and not found.shares_cores
    with pytest.raises(
        NotImplementedError, match="default backend is 'tpu', and this version's device half is XLA:CPU"
    ):
        found.connect(())


def test_the_null_device_runs_nothing() -> None:
    with pytest.raises(RuntimeError, match="numbers only"):
        null.RECORD.connect(())
    with pytest.raises(RuntimeError, match="without a relay"):
        registry.connected(None)
    graph = graph_of("lenet")
    costs = null.costs(graph, host=2e-3, device=lambda x: 1e-3 * (1 + x.index))
    assert costs.host[1] == 2e-3 and costs.device[1] == 2e-3 and not costs.shared_cores
    assert replay(graph, STRATEGIES["device"](graph, costs), costs).seconds == pytest.approx(sum(costs.device))


def test_costs_of_more_than_two_devices() -> None:
    """Parts and factors belong to a device by its name; the two halves' figures stay as they are."""
    parts = {"second": {0: {"rows": ((0.5, 3e-3),)}}}
    costs = Costs.of_halves((None, 2e-3), (1e-3, 1e-3), 0.0, 1e9, 1.0, False, parts=parts)
    more = dataclasses.replace(costs, seconds={**costs.seconds, "second": (4e-3, 6e-3)})
    assert more.part("second", 0, "rows", 0.5) == pytest.approx(3e-3)
    assert more.part("second", 0, "rows", 0.75) == pytest.approx(3.5e-3)
    twice = more.scaled(second=2.0)
    assert twice.seconds["second"] == pytest.approx((8e-3, 12e-3)) and twice.device == more.device
    assert twice.part("second", 0, "rows", 0.5) == pytest.approx(6e-3)
    assert more.of_layers(1, 2).seconds == {"host": (2e-3,), "device": (1e-3,), "second": (6e-3,)}
    assert more.of_layers(0, 1).parts == parts and more.of_layers(1, 2).parts == {"second": {}}


def test_production_code_does_not_know_the_tests_double() -> None:
    root = pathlib.Path(registry.__file__).parents[2]
    for path in (*(root / "xcoexec").rglob("*.py"), *(root / "codegen").rglob("*.py")):
        assert '"stand-in' not in path.read_text(), path


def test_exact_convolutions_of_a_gpu_have_channels_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all of them may not be rounded to TF32, and XLA has the option."""
    from xcoexec.devices import cuda

    nhwc = ("NHWC", "HWIO", "NHWC")
    conv = lambda x, w, precision: jax.lax.conv_general_dilated(
        x, w.astype(x.dtype), (1, 1), "SAME", dimension_numbers=nhwc, precision=precision
    )

    def options(*precisions: str | None, dtype: str = "float32") -> object:
        fn = lambda w, x: (
            functools.reduce(lambda x, p: jax.nn.relu(conv(x, w, p)), precisions, x.astype(dtype)) @ w[0, 0]
        )
        _, graph = stages_of(fn, array(3, 3, 8, 8), array(1, 6, 6, 8), weights=1)
        return cuda.RECORD.compiling(graph.program.ops)

    first = {cuda.CHANNELS_FIRST: True}
    assert options("highest") == options("highest", "highest") == first
    assert options() == options(None) == options("high") == options("highest", None) == {}
    assert options("highest", dtype="bfloat16") == {}
    with jax.default_matmul_precision("highest"):
        assert options(None, None) == first
    assert compat.xla_knows(cuda.CHANNELS_FIRST) and not compat.xla_knows("xla_has_no_such_option")
    _, graph = stages_of(lambda w, x: conv(x, w, None), array(3, 3, 8, 6), array(1, 6, 6, 8), weights=1)
    (w,) = graph.program.consts
    for given, order in (({}, (3, 0, 1, 2)), (first, (3, 2, 0, 1))):
        assert cuda.RECORD.filters(graph.program.ops, given) == {w: order}
    monkeypatch.setattr(cuda, "xla_knows", lambda option: False)
    assert options("highest") == {}
