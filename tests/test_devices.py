"""Devices that exist as numbers, every strategy on them, and the simulator."""

from __future__ import annotations

import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys

import jax
import pytest

from xcoexec import models
from xcoexec.errors import PlanError, ProfileError
from xcoexec.frontend.fold import fold
from xcoexec.frontend.graph import build_graph
from xcoexec.frontend.trace import paths, trace
from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.planning import profiles
from xcoexec.planning.memory import usage
from xcoexec.planning.simulate import BACK, OUT, ROWS, STREAM, TEAM, replay
from xcoexec.planning.strategies import STRATEGIES
from xcoexec.session.contest import forced

NAMES = ("lenet", "alexnet", "squeezenet", "googlenet", "resnet18", "mobilenet_v2")


@functools.cache
def graph_of(name: str) -> LayerGraph:
    entry = models.get(name)
    weights = jax.eval_shape(entry.variables)
    values, tree = jax.tree_util.tree_flatten(((weights, entry.example()), {}))
    return build_graph(
        fold(trace(entry.module.apply, values, tree, paths(tree)), range(len(jax.tree_util.tree_leaves(weights))))
    )


@pytest.mark.parametrize("device", profiles.names())
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_on_every_device(device: str, strategy: str) -> None:
    for name in NAMES:
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
    costs = Costs.of_halves((1e-3,) * n, (1e-3,) * n, 1e-5, 1e12, 1.0, True)
    run = replay(graph, forced(graph, Plan.uniform(0.5)), costs)
    assert run.seconds >= n * 1e-3 - 1e-9


def test_a_bound_on_a_device_of_numbers() -> None:
    import dataclasses

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
        (('conv = [0.5, "estimated"]', 'conv = [7, "estimated"]'), "got conv=.*up to 1.5"),
        (('sync = [0.0001, "estimated"]', 'sync = [0.0001, " "]'), "got sync="),
        (("[link]", "[link"), "not TOML"),
    ],
)
def test_malformed_profiles(change: tuple[str, str], text: str) -> None:
    broken = GOOD.replace("1.0e-4", "0.0001").replace(*change)
    with pytest.raises(ProfileError, match=text):
        profiles.parse("mine", broken)


def test_unknown_devices(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProfileError, match=r"got device 'ps5'; valid are h200, .*snapdragon-855, or a path"):
        profiles.load("ps5")
    with pytest.raises(ProfileError, match="which is not there"):
        profiles.load(str(tmp_path / "no.toml"))
    (tmp_path / "mine.toml").write_text(GOOD)
    assert profiles.load(str(tmp_path / "mine.toml")).costs(graph_of("lenet")).device


@pytest.mark.parametrize("device", ["h200-slice-8", "khadas-vim3", "snapdragon-855"])
def test_codls_ablations(device: str) -> None:
    """Both dims are never predicted worse than one, chains never worse than none, the exact way never worse than
    growing.
    """
    import functools

    from xcoexec.planning.strategies.codl import codl

    for name in NAMES:
        graph, costs = graph_of(name), profiles.load(device).costs(graph_of(name))
        full = codl(graph, costs)
        for options in (dict(dims=("channel",)), dict(dims=("rows",)), dict(chain=False), dict(greedy=True)):
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
