"""The predictor: block counts, regression, plans from predictions, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec import models
from xcoexec.codegen.runtime import host
from xcoexec.cost.accuracy import accuracy, by_flops
from xcoexec.cost.predictor import Predictor, trained
from xcoexec.cost.regress import Regression, fit, linear, share_that_helps, surprise
from xcoexec.cost.terms import Blocks, Work, device_work
from xcoexec.devices.xla_cpu import RECORD as XLA_CPU
from xcoexec.ir.layers import Layer
from xcoexec.ir.validate import check_plan
from xcoexec.measure import training
from xcoexec.measure.host_work import KERNELS, host_work
from xcoexec.measure.sample_layers import made_layers
from xcoexec.planning.strategies import STRATEGIES

from .support import array, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

RNG = np.random.default_rng(0)
AROUND = {"sync": 1e-6, "copy_rate": 1e10, "contention": 1.1, "shared_cores": False, "moves": {}}


def _conv(channels: int, out: int, size: int = 20):  # type: ignore[no-untyped-def]
    fn = lambda w, x: jax.nn.relu(
        lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    )
    graph = stages_of(fn, array(3, 3, channels, out), array(1, size, size, channels), weights=1)[1]
    return graph, graph.layers[0]


def test_a_device_computes_whole_tiles_in_whole_waves() -> None:
    blocks = Blocks(((64, 32), (16, 16)), 8)
    for out in (32, 33, 64, 65):
        work = device_work(_conv(16, out)[1].group, blocks)
        inner = 3 * 3 * 16
        assert work.kind == "conv" and work.terms[1] == 400 * inner * out
        waves = [math.ceil(math.ceil(400 / a) * math.ceil(out / b) / 8) * a * b * inner for a, b in blocks.tiles]
        assert list(work.terms[2:4]) == waves


@pytest.mark.parametrize("name", ["lenet", "squeezenet", "mobilenet_v2", "googlenet"])
def test_predicted_steps_are_those_that_a_segment_has(name: str) -> None:
    """The step tables that the predictor reads, without compiling, are what a segment of all layers runs."""
    entry = models.get(name)
    _, graph = stages_of(entry.module.apply, entry.variables(), entry.example(), weights=1)
    segment = host.build(graph.program, 2, pick=lambda groups, names, threads: names[0])
    edge = {*graph.program.inputs, *graph.program.outputs}

    def facts(steps: Any, x: Layer) -> list[tuple[str, int, int, float]]:
        """What is predicted of a layer; moving data at the network's ends is not its own."""
        found = [(s.kernel, s.items, s.calls, s.units) for s in steps]
        return [f for f in found if not f[0].startswith("elementwise")] if edge & {*x.ins, *x.outs} else found

    for x in graph.layers:
        dry = host.steps(x.group, set(graph.program.consts), 2)
        assert facts((s for s in segment.steps if s.group == x.index), x) == facts(dry, x), x.name


def test_every_algorithm_of_a_convolution_is_predicted() -> None:
    graph, layer = _conv(32, 32)
    found = host_work(layer.group, set(graph.program.consts), 2, 1e6)
    assert list(found) == ["direct", "winograd4", "winograd2"]
    assert [w.kind for w in found["direct"]] == ["gemm"]
    assert [w.kind for w in found["winograd4"]] == [
        "winograd_input winograd4",
        "gemm winograd4",
        "winograd_output winograd4",
    ]


def test_more_threads_leave_the_busiest_one_whole_items() -> None:
    graph, layer = _conv(32, 32)
    consts = set(graph.program.consts)
    for threads in (1, 2, 3, 5):
        (step,) = host.steps(layer.group, consts, threads)
        (work,) = host_work(layer.group, consts, threads, 0.0)["direct"]
        assert work.terms[2] == pytest.approx(step.units * math.ceil(step.items / threads) / step.items)


def test_coefficients_are_found_and_never_negative() -> None:
    terms = np.stack([np.ones(200), RNG.uniform(0, 1e6, 200), RNG.uniform(0, 1e6, 200)], 1)
    true = np.array([2e-6, 3e-10, 0.0])
    seconds = terms @ true * np.exp(RNG.normal(0, 0.02, 200))
    seconds[::17] *= 3  # disturbed measurements do not move the others
    found = linear(terms, seconds)
    assert (found >= 0).all() and found[:2] == pytest.approx(true[:2], rel=0.05) and found[2] < 1e-11


def _law(n: int, seed: int) -> tuple[list[Work], list[float]]:
    """Times that the terms alone do not explain: every third doubling of the second trait costs more."""
    rng = np.random.default_rng(seed)
    works, seconds = [], []
    for _ in range(n):
        a, b = 2 ** rng.uniform(10, 20), 2 ** rng.uniform(4, 10)
        works.append(Work("made", (1.0, a, a / b), (math.log(a), math.log(b))))
        seconds.append(
            (3e-6 + 2e-10 * a + 5e-10 * a / b) * (1 + 0.3 * math.sin(math.log2(b))) * math.exp(rng.normal(0, 0.01))
        )
    return works, seconds


def test_the_correction_learns_what_the_terms_leave() -> None:
    model = fit(*_law(150, 0))
    works, seconds = _law(60, 1)
    errors = np.array([model.seconds(w) / t - 1 for w, t in zip(works, seconds, strict=True)])
    plain = np.array([np.dot(model.coefficients, w.terms) / t - 1 for w, t in zip(works, seconds, strict=True)])
    assert np.mean(np.abs(errors) < 0.1) > 0.9 > np.mean(np.abs(plain) < 0.1)
    again = Regression.of(model.record())
    assert [again.seconds(w) for w in works] == pytest.approx([model.seconds(w) for w in works], rel=0.05)


def test_a_correction_that_learns_noise_is_left_out() -> None:
    """Of noise nothing helps at other points, of a smooth function nearly all does."""
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 3, (80, 2))
    noise = rng.standard_normal(80) * 0.1
    assert share_that_helps(points, noise, 0.1, 0.01) <= 0.2
    assert share_that_helps(points, np.sin(points).sum(1), 1.0, 0.01) >= 0.9


def test_accuracy_counts_what_is_close() -> None:
    found = accuracy("host", "conv", [1.0, 1.0, 1.0, 2.0], {"a": [1.05, 0.89, 1.0, 2.3], "b": None})
    assert found.within == {"a": 0.5, "b": None} and found.layers == 4
    assert by_flops([(1e6, 2e-3), (2e6, 3e-3), (4e6, 5e-3)], [3e6]) == pytest.approx([4e-3])


@pytest.fixture(scope="module")
def samples() -> list[training.Sample]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SECONDS", 0.0), ("LEAST_ROUNDS", 2), ("HOST_CALLS", 3), ("DEVICE_CALLS", 2)):
            patch.setattr(training, name, value)
        return training.sampled(None, 2, layers=made_layers(48, 3))


def test_training_measures_every_layer_on_both_halves(samples: list[training.Sample]) -> None:
    layers = {m.name for m in made_layers(48, 3)}
    for half in ("host", "device"):
        assert {s.layer for s in samples if s.half == half} == layers
    assert all(s.seconds > 0 for s in samples) and {s.algorithm for s in samples} >= {
        "direct",
        "winograd4",
        "winograd2",
    }
    out = training.held_out(samples)
    assert len(out) == 12
    judged = training.judged(samples, None, 2)
    assert {(a.half, a.kind) for a in judged} >= {("host", "all"), ("device", "all")} and all(
        0 <= (a.within["predictor"] or 0) <= 1 for a in judged
    )
    assert "median error" in training.text(judged)


@pytest.fixture(scope="module")
def predictor(samples: list[training.Sample]) -> Predictor:
    found = trained([(s.half, s.work, s.seconds) for s in samples], Blocks(XLA_CPU.tiles, 2), 2, AROUND, KERNELS)
    return Predictor.from_json(found.to_json(), KERNELS)


NETS = ("lenet", "squeezenet", "resnet18", "mobilenet_v2", "googlenet")


@pytest.mark.parametrize("name", NETS)
def test_plans_from_predictions_are_plans(predictor: Predictor, name: str) -> None:
    entry = models.get(name)
    weights = entry.shapes()
    _, graph = stages_of(entry.module.apply, weights, entry.example(), weights=1)
    costs = predictor.costs(graph)
    assert all((h is None) == bool(x.host_error) for h, x in zip(costs.host, graph.layers, strict=True))
    assert all(t is None or t >= 0 for t in costs.host) and all(t > 0 for t in costs.device)
    # every second strategy, in turn: each plans two networks at least, as it does on numbers in tests/test_devices.py
    for strategy in list(STRATEGIES.values())[NETS.index(name) % 2 :: 2]:
        check_plan(strategy(graph, costs), graph)


def test_parts_of_layers_are_predicted(predictor: Predictor) -> None:
    from xcoexec.measure.device_layers import to_predict

    graph, layer = _conv(64, 64)
    costs = predictor.costs(graph, lambda x: to_predict(x, graph.program.consts))
    for points in (costs.parts["device"][layer.index], costs.parts["host"][layer.index]):
        assert set(points) == {"channel", "rows"}
        assert all(
            [p for p, _ in ps] == sorted(p for p, _ in ps) and all(t > 0 for _, t in ps) for ps in points.values()
        )


def test_a_function_is_planned_from_predictions(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "load", lambda record, name: json.loads(predictor.to_json()))
    w, x = array(256, 128), array(4, 256)
    fast = xcoexec.jit(
        lambda w, x: jnp.tanh(x @ w), strategy="layer_switch", costs="predicted", threads=2, strict=True
    ).bind(w)
    assert np.asarray(fast(x)) == pytest.approx(np.tanh(np.asarray(x) @ np.asarray(w)), abs=1e-4)
    assert fast.session().known_costs == predictor.costs(fast.graph(x))


def test_what_was_not_profiled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "load", lambda record, name: None)
    with pytest.raises(ValueError, match="not profiled for 2 threads; run `xcoexec profile` first"):
        xcoexec.jit(lambda w, x: x @ w, strategy="codl", costs="predicted", threads=2).bind(array(8, 8))(array(2, 8))
    with pytest.raises(ValueError, match="got costs='guessed'; valid are measured, predicted"):
        xcoexec.jit(lambda x: x, costs="guessed")


def test_a_class_that_was_not_measured_gets_the_general_model(predictor: Predictor) -> None:
    work = Work("never seen", (1.0,) * 11, (0.0,) * 7)
    assert predictor.seconds("host", work) > 0
    assert predictor.seconds("device", dataclasses.replace(work, terms=(1.0, 1e6, 1e5, 1e5, 0.0, 0.0))) > 0


def test_a_part_is_no_slower_than_a_larger_one() -> None:
    from xcoexec.measure.part_seconds import no_slower_than_more

    assert no_slower_than_more(((0.25, 4.0), (0.5, 1.9)), 3.4) == ((0.25, 1.9), (0.5, 1.9))
    assert no_slower_than_more(((0.25, 1.0), (0.5, 4.0)), 3.4) == ((0.25, 1.0), (0.5, 3.4))
    assert no_slower_than_more(((0.25, 1.0), (0.5, 2.0)), None) == ((0.25, 1.0), (0.5, 2.0))


def test_the_slopes_of_the_likelihood_are_its_differences() -> None:
    rng = np.random.default_rng(0)
    traits, ratio = rng.standard_normal((25, 3)), rng.standard_normal(25) * 0.2
    squares = (traits[:, None] - traits[None]) ** 2
    for logs in (np.array([0.5, 1.0, -0.3, math.log(0.2), math.log(0.05)]), np.array([2.0, 0.1, 3.0, -1.0, -2.0])):
        steps = np.eye(5) * 1e-5
        differences = [
            (surprise(logs + h, squares, ratio)[0] - surprise(logs - h, squares, ratio)[0]) / 2e-5 for h in steps
        ]
        np.testing.assert_allclose(surprise(logs, squares, ratio)[1], differences, rtol=1e-4, atol=1e-5)


def test_what_was_trained_fits_its_record(predictor: Predictor) -> None:
    """And with terms, traits or models missing it does not: it would fail where it is asked."""
    from xcoexec.codegen.store.schema import Misfit
    from xcoexec.measure.records import PREDICTOR

    text = predictor.to_json()
    PREDICTOR.schema.check(json.loads(text))

    def broken(change: Any) -> Any:
        data = json.loads(text)
        change(data)
        return data

    for change in (
        lambda d: d["models"][0][2]["coefficients"].pop(),
        lambda d: d["models"][0][2]["points"][0].pop(),
        lambda d: d["models"][0][2]["lengths"].append(1.0),
        lambda d: d["models"][0][2]["values"].pop(),
        lambda d: d["models"][0][2].update(lengths=[0.0] * len(d["models"][0][2]["lengths"])),
        lambda d: d.update(models=[m for m in d["models"] if m[:2] != ["device", "rest"]]),
        lambda d: d["blocks"][0].append([8, 8]),
        lambda d: d["around"].update(contention=0.5),
        lambda d: d["around"].update(extra=1.0),
        lambda d: d.pop("threads"),
    ):
        with pytest.raises(Misfit):
            PREDICTOR.schema.check(broken(change))
