"""Blocks and their twins: which deserve one, that training one changes nothing else, paths' accuracy, and data from
folders.
"""

from __future__ import annotations

import inspect
import pathlib
import pickle
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcoexec
from xcoexec.api.resident import ResidentFunction
from xcoexec.ir.costs import Costs
from xcoexec.planning.spans import Span, crossing
from xcoexec.session.session import Session
from xcoexec.streams import datasets, duo
from xcoexec.streams.blocks import Worth, blocks, deserving, fastest, replaceable, worth
from xcoexec.streams.datasets import Data
from xcoexec.streams.twin_search import Frozen, Place, Search, best_block, loss_of
from xcoexec.streams.twins import OPERATIONS, Shape, initial, twin_of
from xcoexec.tools.zoo_graphs import model_graph

from .oracle import worst
from .support import array

pytestmark = pytest.mark.usefixtures("quick_xla")

NHWC = ("NHWC", "HWIO", "NHWC")


def _net(w: Any, x: Any) -> Any:
    for i in range(3):
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, w[i], (2, 2), "SAME", dimension_numbers=NHWC))
    return x.reshape(x.shape[0], -1) @ w[3]


SHAPES = ((3, 3, 1, 8), (3, 3, 8, 12), (3, 3, 12, 12), (2 * 2 * 12, 10))


@pytest.fixture(scope="module")
def trained() -> tuple[Any, Data]:
    """A small network that knows the digits."""
    optax = pytest.importorskip("optax")
    found = datasets.digits(24)
    small = lambda d: (d[0][:, 4:20, 4:20], d[1])  # the digits alone
    found = Data(small(found.train), small(found.test))
    weights = [array(*s, seed=i) * 0.3 for i, s in enumerate(SHAPES)]
    adam = optax.adam(5e-3)
    state = adam.init(weights)

    @jax.jit
    def step(w: Any, state: Any, x: Any, y: Any) -> Any:
        loss = lambda w: optax.softmax_cross_entropy_with_integer_labels(_net(w, x), y).mean()
        updates, state = adam.update(jax.grad(loss)(w), state)
        return optax.apply_updates(w, updates), state

    for _, (x, y) in zip(range(300), found.batches(64), strict=False):
        weights, state = step(weights, state, x, y)
    return weights, found


def _accuracy(weights: Any, d: Data) -> float:
    return float((np.argmax(_net(weights, d.test[0]), 1) == d.test[1]).mean())


# -- blocks ---------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_blocks_are_closed_where_moving_pays(draw: st.DataObject) -> None:
    graph = model_graph("lenet")
    n = len(graph.layers)
    times = st.lists(st.floats(1e-6, 1e-3), min_size=n, max_size=n)
    costs = Costs.of_halves(
        tuple(draw.draw(times)), tuple(draw.draw(times)), draw.draw(st.floats(0, 3e-4)), 1e9, 1.0, False
    )
    least = draw.draw(st.floats(0, 2e-3))
    spans = blocks(graph, costs, least=least)
    assert (
        spans[0].start == 0
        and spans[-1].stop == n
        and all(a.stop == b.start for a, b in zip(spans, spans[1:], strict=False))
    )
    moved = lambda x: costs.sync + sum(v.nbytes for v in crossing(graph, x.stop)) / costs.copy_rate
    closed = lambda x: max(moved(x), least) <= fastest(x, costs)
    assert len(spans) == 1 or all(map(closed, spans[:-1]))
    ends = [k for k in range(1, n) if len(crossing(graph, k)) == 1]
    assert not [
        (x, k) for x in spans[:-1] for k in ends if x.start < k < x.stop and closed(Span(x.start, k))
    ]  # none could have ended before
    assert len(blocks(graph, costs, 3, least)) <= 3


def test_blocks_that_deserve_a_twin() -> None:
    graph = model_graph("lenet")
    n = len(graph.layers)
    device = tuple(1e-5 * (1 + 9 * (i in (0, 2))) for i in range(n))
    costs = Costs.of_halves(
        tuple(t * (4 if i == 0 else 1.1) for i, t in enumerate(device)), device, 0.0, 1e12, 1.0, False
    )
    spans = tuple(Span(i, i + 1) for i in range(n))
    by_hand = worth(spans, costs)
    assert by_hand[0].degree == pytest.approx(4) and sum(w.share for w in by_hand) == pytest.approx(1)
    assert [w.span.start for w in deserving(spans, graph, costs)] == [
        0
    ]  # the other long one is nearly as fast on the other half
    assert all(replaceable(graph, w.span) for w in deserving(spans, graph, costs, 1.0))


# -- twins ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["host", "device"])
@pytest.mark.parametrize("convolved", [False, True])
@pytest.mark.parametrize(
    ("given_shape", "made"),
    [
        ((1, 8, 8, 8), (1, 4, 4, 12)),
        ((1, 6, 6, 3), (1, 6, 6, 5)),
        ((1, 40), (1, 7)),
        ((1, 4, 4, 6), (1, 9)),
        ((1, 32, 24, 3), (1, 9)),
    ],
)
def test_twins_have_their_blocks_shape(
    half: str, given_shape: tuple[int, ...], made: tuple[int, ...], convolved: bool
) -> None:
    shape = Shape(half, given_shape, made, 16, ("any", "any"), convolved)
    assert shape.image == (len(given_shape) == 4 and (convolved or len(made) == 4))
    x = array(*given_shape)
    choice = np.zeros((2, 3), np.float32) if shape.image else None
    out = twin_of(shape, True, initial(shape), x, choice)
    assert out.shape == made and float(out.min()) >= 0
    batch = twin_of(shape, False, initial(shape), np.repeat(x, 3, 0), choice)
    np.testing.assert_allclose(batch[2], twin_of(shape, False, initial(shape), x, choice)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operation", ["separable 3x3", "separable 5x5"])
def test_twins_are_the_same_while_they_learn(operation: str) -> None:
    """Values and gradients, on odd sizes; the form for learning has no grouped convolution."""
    shape = Shape("host", (1, 7, 9, 5), (1, 7, 9, 6), 11, (operation,) * 2)
    params = initial(shape, 3)
    x = np.random.default_rng(0).standard_normal((3, 7, 9, 5)).astype(np.float32)
    loss = lambda learning: lambda p, x: (twin_of(shape, True, p, x, learning=learning) ** 2).sum()
    learned, own = (jax.grad(loss(learning), (0, 1))(params, x) for learning in (True, False))
    for a, b in zip(*map(jax.tree_util.tree_leaves, (learned, own)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    grouped = lambda learning: "feature_group_count=11" in str(jax.make_jaxpr(loss(learning))(params, x))
    assert grouped(False) and not grouped(True)


def test_a_span_of_a_frozen_network_is_the_network(trained: tuple[Any, Data]) -> None:
    weights, d = trained
    net = Frozen.of(_net, weights, d.test[0][:8])
    n = len(net.graph.layers)
    for spans in ([Span(0, n)], [Span(i, i + 1) for i in range(n)]):
        np.testing.assert_allclose(
            net.logits(d.test[0][:8], spans, {}), _net(weights, d.test[0][:8]), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(("by", "space"), [("darts", "operations"), ("darts", "blocks"), ("similarity", "blocks")])
def test_a_twin_is_found_and_every_path_is_measured(
    by: str, space: str, trained: tuple[Any, Data], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Block 1 gets a twin whatever it takes; its path is nearly as good, and the scheduler's model computes just these
    paths.
    """
    monkeypatch.setattr(duo, "WIDTHS", (32, 16))
    monkeypatch.setattr(duo, "DEPTHS", {"host": (3, 2)})
    weights, d = trained
    before = [np.array(w) for w in weights]
    fast = xcoexec.jit(_net, strategy="host").bind(weights)
    n = len(fast.graph(d.test[0][:1]).layers)
    spans = (Span(0, 1), Span(1, 2), Span(2, n))
    near = 1.0 if space == "operations" else 0.0
    search = Search(24, 200, 64, 1e-2, by=by, space=space, near=near, depths=(1, 2), widths=(8, 16))
    net = Frozen.of(_net, weights, np.zeros((search.batch, *d.test[0].shape[1:]), np.float32))
    found = duo.twin(net, spans, 1, Worth(spans[1], "device", 1.0, 2.0, 0.5), d, search)  # any takes less than 2 s
    assert found is not None
    (shape, nonlinear), params = found
    assert (
        shape.half == "host"
        and nonlinear
        and shape.given == (1, 8, 8, 8)
        and shape.made == (1, 4, 4, 12)
        and "any" not in shape.layers
    )
    made = duo.Duo(spans, {1: (shape, nonlinear)}, {1: params}, xcoexec.streams.jobs.Accuracy())
    accuracy = duo.measured_paths(net, made, d, search)
    assert abs(accuracy.of(frozenset()) - _accuracy(weights, d)) < 0.005 and accuracy.of(frozenset()) > 0.9
    untrained = duo.Duo(spans, made.shapes, {1: initial(shape, 5)}, accuracy)
    blind = duo.measured_paths(net, untrained, d, search).of(frozenset({1}))
    assert accuracy.of(frozenset({1})) > max(0.85, blind + 0.2)
    assert all(np.array_equal(a, b) for a, b in zip(before, weights, strict=True))  # everything else is frozen
    duo.Duo(spans, made.shapes, made.params, accuracy).save(tmp_path / "duo")
    again = duo.Duo.load(tmp_path / "duo")
    assert again.accuracy == accuracy and again.spans == spans and again.shapes == made.shapes
    model, x = again.model(fast, d.test[0][:1]), d.test[0][:1]
    twin_way = next(w for w in model.blocks[1].ways if w.twin)
    state = model.begin(x)
    for i, block in enumerate(model.blocks):
        state = model.run(i, twin_way if i == 1 else block.primary, state)
    want = net.logits(np.repeat(x, search.batch, 0), spans, {1: lambda h: twin_of(shape, nonlinear, params, h)})[:1]
    assert worst(model.result(state), [np.asarray(want, np.float64)]) < 1e-4


def test_blocks_without_twins_are_joined(trained: tuple[Any, Data], monkeypatch: pytest.MonkeyPatch) -> None:
    """Layer 1 is slow on the host half and gets a twin; those behind it are short and become one block, those in front
    are one alone.
    """
    weights, d = trained
    n = len(xcoexec.jit(_net, strategy="host").bind(weights).graph(d.test[0][:1]).layers)
    costs = Costs.of_halves((2e-3, 2e-2, *[1.1e-3] * (n - 2)), (2e-3, 4e-3, *[1.1e-3] * (n - 2)), 0.0, 1e12, 1.0, False)
    measured = Session.costs
    monkeypatch.setattr(Session, "costs", lambda self: costs if len(self.graph.layers) == n else measured(self))
    monkeypatch.setattr(duo, "WIDTHS", (16, 8))
    monkeypatch.setattr(duo, "DEPTHS", {"host": (2,)})
    made = duo.generate(_net, weights, d, search=Search(steps=2, finetune=2, batch=64))
    assert (
        made.spans == (Span(0, 1), Span(1, 2), Span(2, n)) and n > 3 and list(made.shapes) == [1] == list(made.params)
    )
    assert set(made.accuracy.of_paths) == {frozenset(), frozenset({1})}
    assert abs(made.accuracy.of(frozenset()) - _accuracy(weights, d)) < 0.005


def test_a_twin_is_the_deepest_then_widest_that_is_fast_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def latency(shape: Shape, nonlinear: bool) -> float:
        asked.append(shape)
        return len(shape.layers) * shape.width * 1e-6

    monkeypatch.setattr(duo, "latency", latency)
    shape = Shape("host", (1, 8, 8, 8), (1, 8, 8, 8), 0, ())
    for seconds in (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 1e-2):
        found = duo.fitting(shape, False, seconds)
        all_of_them = [(d, w) for d in duo.DEPTHS["host"] for w in duo.WIDTHS if d * w * 1e-6 <= seconds]
        assert (found is None) == (not all_of_them) and (
            found is None or (len(found.layers), found.width) == max(all_of_them)
        )
    assert {s.layers[0] for s in asked} == {"separable 3x3"}
    assert duo.fitting(Shape("host", (1, 7, 7, 8), (1, 3, 3, 8), 0, ()), False, 9.0) is None  # sides that do not divide


def test_the_pool_has_every_depth_and_width_that_is_faster_than_the_old_block() -> None:
    """Figure 8 and the constraint of Equation 2: up to 10 layers of 32 to 512 channels, strictly below the block's
    seconds there.
    """
    takes = lambda shape, nonlinear: len(shape.layers) * shape.width * 1e-6
    image = Shape("host", (1, 8, 8, 8), (1, 8, 8, 8), 0, ())
    every = duo.candidates(image, True, 1.0, Search(), takes)
    assert {(len(s.layers), s.width) for s in every} == {
        (d, w) for d in range(1, 11) for w in (32, 64, 128, 256, 512)
    } and {x for s in every for x in s.layers} == {"separable 3x3"}
    some = duo.candidates(image, True, 128e-6, Search(), takes)
    assert {(len(s.layers), s.width) for s in some} == {(1, 32), (2, 32), (3, 32), (1, 64)}
    on_gpu = duo.candidates(Shape("device", (1, 8, 8, 8), (1, 8, 8, 8), 0, ()), True, 1.0, Search(), takes)
    assert {x for s in on_gpu for x in s.layers} == {"convolution 3x3"}
    dense = duo.candidates(Shape("host", (1, 40), (1, 7), 0, ()), True, 1.0, Search(depths=(1, 2)), takes)
    assert {s.layers for s in dense} == {("dense",), ("dense", "dense")} and len(dense) == 10
    assert not duo.candidates(image, True, 1e-6, Search(), takes)
    assert not duo.candidates(Shape("host", (1, 7, 7, 8), (1, 3, 3, 8), 0, ()), True, 9.0, Search(), takes)


def test_the_search_finds_the_candidate_that_can_learn(trained: tuple[Any, Data]) -> None:
    """Of two candidates one is a channel wide: too narrow for what the block makes."""
    weights, d = trained
    search = Search(60, 0, 64, 1e-2, space="blocks", near=0.0)
    net = Frozen.of(_net, weights, np.zeros((search.batch, *d.test[0].shape[1:]), np.float32))
    spans = (Span(0, 1), Span(1, 2), Span(2, len(net.graph.layers)))
    shape = lambda width: Shape("host", (1, 8, 8, 8), (1, 4, 4, 12), width, ("separable 3x3",))
    for pool in ((shape(1), shape(32)), (shape(32), shape(1))):
        place = Place(net, spans, 1, True)
        assert best_block(place, pool, search, d.batches(64)).width == 32


def test_losses_are_what_they_are_called(trained: tuple[Any, Data]) -> None:
    """Equation 2's is the network's cross-entropy alone; ours adds the distance; similarity is the distance alone."""
    weights, d = trained
    x, y = d.test[0][:8], d.test[1][:8]
    net = Frozen.of(_net, weights, x)
    spans = (Span(0, 1), Span(1, 2), Span(2, len(net.graph.layers)))
    given, made = net.ends(spans[1])
    env = net.before(x, spans, 1)
    want = np.asarray(net.run(spans[1], env)[made])
    logits = np.asarray(_net(weights, x), np.float64)
    entropy = np.mean(np.log(np.exp(logits).sum(1)) - logits[np.arange(8), y])
    same = lambda params, choice, h: net.run(spans[1], {given: h})[made]
    off = lambda params, choice, h: same(params, choice, h) + 1.0
    value = lambda candidate, **how: float(loss_of(net, spans, 1, candidate, Search(**how))({}, None, x, y))
    assert value(same, near=0.0) == pytest.approx(entropy, rel=1e-4)
    assert value(same, by="similarity") == pytest.approx(0.0, abs=1e-5)
    assert value(off, by="similarity") == pytest.approx(np.sqrt(want[0].size), rel=1e-4)
    assert value(off, near=1.0) - value(off, near=0.0) == pytest.approx(1 / np.mean(want**2), rel=1e-3)


@pytest.mark.parametrize("half", ["host", "device"])
def test_latency_is_measured_on_the_half(half: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed is a call of the twin, all of whose layers are where it is to run."""
    seen = []

    def timed(call: Any) -> float:
        call()
        known = inspect.getclosurevars(call).nonlocals.values()
        seen.extend(v for v in known if isinstance(v, ResidentFunction))
        return 7e-3

    monkeypatch.setattr(duo, "median_seconds", timed)
    shape = Shape(half, (1, 8, 8, 8), (1, 8, 8, 8), 32, (next(iter(OPERATIONS[half])),))
    assert duo.latency.__wrapped__(shape, True) == 7e-3  # and nothing of it is kept
    (resident,) = seen
    assert {p.half for p in resident.plan().placements} == {half} and resident.report().ran == "xco"


def test_bad_searches_are_named(trained: tuple[Any, Data], tmp_path: pathlib.Path) -> None:
    weights, d = trained
    with pytest.raises(ValueError, match="got by='luck'; valid are 'darts', 'similarity'"):
        Search(by="luck")
    with pytest.raises(ValueError, match="got space='all'; valid are 'operations', 'blocks'"):
        Search(space="all")
    with pytest.raises(ValueError, match="several inputs or results"):
        duo.generate(lambda w, x: (_net(w, x), x), weights, d)
    with pytest.raises(FileNotFoundError, match=r"without duo\.json"):
        duo.Duo.load(tmp_path)


# -- data -----------------------------------------------------------------------------------------------


def test_generated_shapes_are_the_same_again_and_balanced() -> None:
    a, b = datasets.coloured_shapes(300), datasets.coloured_shapes(300)
    assert np.array_equal(a.train[0], b.train[0]) and a.train[0].shape == (225, 32, 32, 3) and len(a.test[0]) == 75
    assert set(a.train[1]) == set(range(10)) and a.train[0].min() >= 0 and a.train[0].max() <= 1
    with pytest.raises(ValueError, match="valid is 1 to 225"):
        next(a.batches(300))


def test_folders_of_cifar10(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        images = rng.integers(0, 256, (4, 3072), np.uint8)
        (tmp_path / name).write_bytes(pickle.dumps({b"data": images, b"labels": [0, 1, 2, 9]}))
    found = datasets.cifar10(tmp_path)
    assert found.train[0].shape == (20, 32, 32, 3) and list(found.test[1]) == [0, 1, 2, 9]
    np.testing.assert_allclose(found.test[0][0, 2, 5, 1] * 255, images[0].reshape(3, 32, 32)[1, 2, 5], rtol=1e-5)
    (tmp_path / "data_batch_3").unlink()
    with pytest.raises(FileNotFoundError, match="without data_batch_3"):
        datasets.cifar10(tmp_path)


def test_folders_of_traffic_signs(tmp_path: pathlib.Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for label in (0, 14):
        (tmp_path / f"{label:05d}").mkdir()
        for i in range(4):
            image.new("RGB", (20 + i, 30), (10 * label, 100, 200)).save(tmp_path / f"{label:05d}" / f"{i}.ppm")
    found = datasets.gtsrb(tmp_path)
    assert (
        len(found.train[0]) == 6
        and found.train[0].shape[1:] == (32, 32, 3)
        and set(found.train[1]) | set(found.test[1]) == {0, 14}
    )
    with pytest.raises(FileNotFoundError, match="without images"):
        datasets.gtsrb(tmp_path / "00000")
