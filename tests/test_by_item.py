"""Batches that go through many layers item by item, against float64 NumPy and against the batch layer by layer."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xcoexec
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment import items
from xcoexec.codegen.segment.assembly import Segment
from xcoexec.codegen.target import Target, target
from xcoexec.partition.split import split

from .support import TOLERANCE, array, error, oracle, stages_of, targets
from .test_whole_numbers import whole

pytestmark = pytest.mark.usefixtures("quick_xla", "small_networks")

WAYS = [items.ITEMS, items.WHOLE]


@pytest.fixture
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of small networks are worth it, as if caches held nothing, and weights were small beside an item."""
    monkeypatch.setattr(items, "LEAST_SHARE", 0)
    monkeypatch.setattr(items, "READ_AGAIN_BY_ALL", 100)


def build(fn: Any, ws: Any, x: Any, how: str, isa: Target | None = None, threads: int = 2) -> Any:
    """A segment of a function and a call of it; `how`, or as `items.ITEMS` where that is no other way."""
    folded, graph = stages_of(fn, ws, x, weights=1)
    assert not [layer.host_error for layer in graph.layers if layer.host_error]
    ways = (how,) if how == items.BATCH else (how, items.ITEMS)
    pick = lambda groups, names, t: next((w for w in ways if w in names), names[0])
    segment = host.build(graph.program, threads, isa or target(), pick=pick, cut=split)
    consts = folded.constants(jax.tree_util.tree_leaves(ws))
    call = host.Call(segment, [np.asarray(x, np.float32)], [consts[v] for v in graph.program.consts])
    return segment, lambda: call()[0].copy()


def inside(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    """The layers of an item are computed so, where they can be."""
    monkeypatch.setattr(items, "likely", lambda groups, names, t: algorithm if algorithm in names else names[0])


def by_item(segment: Segment) -> int:
    """How many groups a step takes item by item."""
    return sum("items" in names for names in segment.algorithms)


def conv(x: Any, w: Any, stride: int = 1, groups: int = 1, **more: Any) -> Any:
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=dims, feature_group_count=groups, **more
    )


def residual(ws: Any, x: Any) -> Any:
    """A first convolution, a pool, a block with a sum, one that halves the image beside a projection, means and a dense
    layer.
    """
    x = jax.nn.relu(conv(x, ws["first"], 2))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    y = jax.nn.relu(conv(x, ws["a"]))
    x = jax.nn.relu(x + conv(y, ws["b"]))
    y = jax.nn.relu(conv(x, ws["c"], 2))
    x = jax.nn.relu(conv(y, ws["d"]) + conv(x, ws["e"], 2))
    return jnp.mean(x, axis=(1, 2)) @ ws["f"]


RESIDUAL = {
    "first": array(5, 5, 3, 12, seed=1),
    "a": array(3, 3, 12, 12, seed=2),
    "b": array(3, 3, 12, 12, seed=3),
    "c": array(3, 3, 12, 20, seed=4),
    "d": array(3, 3, 20, 20, seed=5),
    "e": array(1, 1, 12, 20, seed=6),
    "f": array(20, 7, seed=7),
}


def inverted(ws: Any, x: Any) -> Any:
    """Expansions and depthwise convolutions, which may be cut into strips, and a concatenation."""
    for a, b, c in ws:
        y = jax.nn.relu(conv(x, a))
        y = jax.nn.swish(conv(y, b, groups=b.shape[-1]))
        x = x + conv(y, c)
    return jnp.concatenate([x, jnp.tanh(x)], axis=-1).sum(axis=(1, 2))


INVERTED = [
    (array(1, 1, 8, 24, seed=i), array(3, 3, 1, 24, seed=i + 1), array(1, 1, 24, 8, seed=i + 2)) for i in range(2)
]


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("inner", ["direct", "winograd4", "strips"])
@pytest.mark.parametrize(("fn", "ws", "channels"), [(residual, RESIDUAL, 3), (inverted, INVERTED, 8)])
def test_networks(
    isa: Target, how: str, inner: str, fn: Any, ws: Any, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside(monkeypatch, inner)
    x = array(4, 17, 13, channels)
    segment, call = build(fn, ws, x, how, isa)
    assert by_item(segment) > 6
    ran = {family for names in segment.algorithms for family in names.split("+")}
    assert ("strips" in ran) == (inner == "strips" and fn is inverted and how == items.ITEMS)
    assert ("winograd(4x4)" in ran) == (inner == "winograd4" and fn is residual)
    want = oracle(fn, ws, x)
    for _ in range(3):  # what borders hold stays
        assert error(call(), want) < TOLERANCE


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("batch", [2, 3, 4, 9, 12])
def test_batches_and_threads(threads: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips inside of an item are in memory of the item's own, whoever computes it."""
    inside(monkeypatch, "strips")
    x = array(batch, 9, 6, 8)
    segment, call = build(inverted, INVERTED, x, items.ITEMS, threads=threads)
    even = -(-batch // threads) * threads <= items.UNEVEN * batch
    assert (by_item(segment) > 0) == even
    if even:
        assert any({"items", "strips"} <= set(names.split("+")) for names in segment.algorithms)
    want = oracle(inverted, INVERTED, x)
    for _ in range(3):
        assert error(call(), want) < TOLERANCE


def bytes_network(ws: Any, x: Any) -> Any:
    """Products of int8 with roundings between them."""
    narrow = lambda v: jnp.clip(jnp.round(v), -128, 127).astype(jnp.int8)
    product = functools.partial(conv, preferred_element_type=jnp.int32)
    y = narrow(x)
    for i, w in enumerate(ws):
        groups = w.shape[-1] // w.shape[-2] if w.shape[-2] == 1 else 1
        y = narrow(jax.nn.relu(product(y, w, 1 + i % 2, groups).astype(jnp.float32) * np.float32(0.01)) - 3)
    return y.astype(jnp.float32)


@pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
def test_int8_is_exact(isa: Target) -> None:
    shapes = [(3, 3, 8, 32), (3, 3, 1, 32), (1, 1, 32, 48), (3, 3, 48, 16), (3, 3, 1, 16)]
    ws, x = [whole(*s, seed=i) for i, s in enumerate(shapes)], 40 * array(4, 15, 9, 8)
    together, apart = (build(bytes_network, ws, x, how, isa) for how in (items.ITEMS, items.BATCH))
    assert by_item(together[0]) > 4 and not by_item(apart[0])
    want = apart[1]()
    assert len(np.unique(want)) > 20
    for _ in range(3):
        np.testing.assert_array_equal(together[1](), want)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_narrow_types(kind: str) -> None:
    narrow = lambda tree: jax.tree.map(lambda v: jnp.asarray(v, kind), tree)
    ws, x = narrow(RESIDUAL), narrow(array(4, 17, 13, 3))
    fn = lambda ws, x: residual(ws, x).astype(jnp.float32)
    (together, items_call), (_, batch_call) = (build(fn, ws, x, how) for how in (items.ITEMS, items.BATCH))
    assert by_item(together) > 6
    np.testing.assert_allclose(items_call(), batch_call(), rtol=0.02, atol=0.02 * np.abs(batch_call()).max())


def test_early_layers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where weights are large beside an item, layers are the batch's again."""
    monkeypatch.setattr(items, "READ_AGAIN_EARLY", 4)
    real = items._run
    early = lambda ctx, at, n, again: real(ctx, at, n, again)[: 4 if again == items.READ_AGAIN_EARLY else None]
    monkeypatch.setattr(items, "_run", early)
    x = array(4, 17, 13, 3)
    segment, call = build(residual, RESIDUAL, x, items.EARLY)
    assert by_item(segment) == 4 < len(segment.algorithms) - 2
    for _ in range(2):
        assert error(call(), oracle(residual, RESIDUAL, x)) < TOLERANCE


def test_items_write_what_the_next_layer_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As bf16, where the step behind reads that: no pass narrows the whole batch, and no f32 is written."""
    real = items._run
    early = lambda ctx, at, n, again: real(ctx, at, n, again)[: 4 if again == items.READ_AGAIN_EARLY else None]
    monkeypatch.setattr(items, "READ_AGAIN_EARLY", 4)
    monkeypatch.setattr(items, "_run", early)
    inside(monkeypatch, "direct")
    ws = [jnp.asarray(array(3, 3, *s, seed=i), jnp.bfloat16) for i, s in enumerate([(16, 24), *[(24, 24)] * 7])]
    x = jnp.asarray(array(4, 11, 9, 16), jnp.bfloat16)

    def fn(ws: Any, x: Any) -> Any:
        for w in ws:
            x = jax.nn.relu(conv(x, w, preferred_element_type=jnp.float32) * 0.1).astype(x.dtype)
        return x.astype(jnp.float32)

    (together, by_items), (apart, by_batch) = (build(fn, ws, x, how) for how in (items.EARLY, items.BATCH))
    assert by_item(together) == 4 < len(together.algorithms) and not by_item(apart)
    np.testing.assert_array_equal(by_items(), by_batch())
    if target().unit("bfloat16") is not None:
        assert not any("narrow" in names for names in together.algorithms[4:])
        (step,) = (step for step in together.steps if step.driver == "strips")
        images = [b for b in step.writes if b.geometry is not None and b.geometry[0] != "strips"]
        assert [b.geometry[0] for b in images] == [(4, 11, 9, 12)], "words of two, with a border"


def test_weights_bound_a_run() -> None:
    """Each item reads them again: layers that have far more weights than an item has values are the batch's."""
    fn = lambda ws, x: functools.reduce(lambda y, w: jnp.tanh(y @ w), [*ws] * 2, x)
    small, large = ([array(n, n, seed=i) for i in range(3)] for n in (2, 200))
    for ws, few in ((small, False), (large, True)):
        segment, _ = build(fn, ws, array(4, len(ws[0])), items.ITEMS)
        assert (by_item(segment) == 0) == few


def test_what_is_read_later_ends_a_run() -> None:
    """A value from inside that others read too is made by the batch."""

    def fn(ws: Any, x: Any) -> Any:
        y = jax.nn.relu(conv(x, ws["first"]))
        x = jax.nn.relu(conv(y, ws["a"]))
        x = jax.nn.relu(conv(x, ws["b"]))
        total = jnp.sum(x, axis=0, keepdims=True)  # over all items
        for _ in range(4):
            x = jax.nn.relu(conv(x, ws["a"])) * 0.1
        return x + y + total

    x = array(4, 11, 7, 3)
    segment, call = build(fn, RESIDUAL, x, items.ITEMS)
    names = segment.algorithms
    assert error(call(), oracle(fn, RESIDUAL, x)) < TOLERANCE
    assert by_item(segment) in (0, *range(4, len(names)))


def test_sums_over_the_batch_stay_whole() -> None:
    """Norms as in training mix all items."""

    def fn(ws: Any, x: Any) -> Any:
        for name in ("first", "a", "b", "a", "b"):
            x = conv(x, ws[name])
            mean = x.mean(axis=(0, 1, 2))
            x = jax.nn.relu((x - mean) * lax.rsqrt(((x - mean) ** 2).mean(axis=(0, 1, 2)) + 1e-3))
        return x

    x = array(4, 9, 7, 3)
    segment, call = build(fn, RESIDUAL, x, items.ITEMS)
    assert not by_item(segment) and error(call(), oracle(fn, RESIDUAL, x)) < TOLERANCE


@pytest.mark.parametrize("batch", [1, 5000])
def test_one_item_or_very_many(batch: int) -> None:
    fn = lambda ws, x: functools.reduce(lambda y, _: jnp.tanh(y @ ws), range(6), x)
    w, x = array(8, 8, seed=1), array(batch, 8)
    segment, call = build(fn, w, x, items.ITEMS)
    assert not by_item(segment) and error(call(), oracle(fn, w, x)) < TOLERANCE


def test_the_choice_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all ways that differ; what a report says of each layer is how it is computed."""
    seen: list[tuple[str, ...]] = []
    choose = items.Context.choose

    def chosen(self: Any, groups: Any, names: tuple[str, ...]) -> str:
        found = choose(self, groups, names)
        if items.BATCH in names:
            seen.append(names)
            return items.ITEMS
        return found

    monkeypatch.setattr(items.Context, "choose", chosen)
    x = array(4, 17, 13, 3)
    fast = xcoexec.jit(residual, strategy="host", strict=True, wait=True, threads=2).bind(RESIDUAL)
    assert error(fast(x), oracle(residual, RESIDUAL, x)) < TOLERANCE
    assert seen and seen[0][:2] == (items.BATCH, items.ITEMS)
    ran = [layer.algorithm for layer in fast.report().layers]
    assert sum(name.startswith("items") and "gemm" in name for name in ran) > 4, ran


def test_items_end_in_another_shape_inside_a_border(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels are shuffled by the last layer of the items, and the next layer reads the image with zeroes around it:
    an item's part of that is seen in the other shape where it lies.
    """
    last = "reshape"

    def run(ctx: Any, at: int, n: int, again: float) -> Any:
        groups = ctx.program.groups[at:]
        ends = [i for i, g in enumerate(groups) if g.ops[-1].prim == last]
        return groups[: ends[-1] + 1] if ends else ()

    def fn(ws: Any, x: Any) -> Any:
        for w in ws[:-1]:
            x = jax.nn.relu(conv(x, w))
        n, h, w_, c = x.shape
        x = x.reshape(n, h, w_, 2, c // 2).swapaxes(3, 4).reshape(x.shape)
        return conv(x, ws[-1])

    monkeypatch.setattr(items, "_run", run)
    ws = [array(3, 3, 8, 8, seed=i) for i in range(4)]
    x = array(4, 9, 7, 8)
    segment, call = build(fn, ws, x, items.ITEMS)
    assert by_item(segment) > 3
    for _ in range(2):
        assert error(call(), oracle(fn, ws, x)) < TOLERANCE


@pytest.mark.parametrize("groups", [1, 2])
def test_a_form_of_what_several_layers_write(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items end in a concatenation, whose parts two layers write: none of them writes its bf16 form."""
    ws = [jnp.asarray(array(3, 3, 16, n, seed=n), jnp.bfloat16) for n in (16, 8)]
    last = jnp.asarray(array(3, 3, 24 // groups, 8, seed=3), jnp.bfloat16)

    def run(ctx: Any, at: int, n: int, again: float) -> Any:
        joins = [i for i, g in enumerate(ctx.program.groups[at:]) if g.anchor.prim == "concatenate"]
        return ctx.program.groups[at : at + joins[0] + 1] if joins else ()

    def fn(ws: Any, x: Any) -> Any:
        x = jnp.tanh(x).astype(jnp.bfloat16)
        x = jax.nn.relu(conv(x, ws[0]))
        x = jnp.concatenate([x, jax.nn.relu(conv(x, ws[1]))], -1)
        return conv(x, ws[2], groups=groups).astype(jnp.float32)

    monkeypatch.setattr(items, "_run", run)
    inside(monkeypatch, "direct")
    x = array(4, 9, 7, 16)
    segment, call = build(fn, [*ws, last], x, items.ITEMS)
    assert by_item(segment) > 3
    assert error(call(), oracle(fn, [*ws, last], x)) < 0.02
