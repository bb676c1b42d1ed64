"""What comes into a segment and goes out of it in its own narrow type, on every instruction set."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator
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
from xcoexec.codegen.segment.steps import Kernel, Looped, Nested, Step
from xcoexec.codegen.target import Target, target
from xcoexec.partition.split import split

from .support import array, error, stages_of, targets

pytestmark = pytest.mark.usefixtures("quick_xla")

EVERY = pytest.mark.parametrize("isa", targets(), ids=lambda t: t.name)
TYPES = pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8"])
SHAPES = pytest.mark.parametrize("shape", [(2,), (17,), (3, 5, 7), (1, 9, 8, 16), (2, 4099)], ids=str)


def called(
    fn: Any, weights: Any, x: Any, isa: Target, threads: int = 2, how: str = ""
) -> tuple[list[np.ndarray], Segment]:
    """The results of `fn(weights, x)` on kernels, and the segment, whose arguments are as they are stored."""
    folded, graph = stages_of(fn, weights, x, weights=1)
    assert not [layer.host_error for layer in graph.layers if layer.host_error]
    consts = folded.constants(jax.tree_util.tree_leaves(weights))
    first = lambda groups, names, threads: how if how in names else names[0]
    segment = host.build(graph.program, threads, isa, pick=first, cut=split, as_stored=True)
    call = host.Call(segment, [np.asarray(x)], [consts[v] for v in graph.program.consts])
    return [y.copy() for y in call()], segment


def some(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "int8":
        return np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    x = np.array(array(*shape).astype(dtype))
    x.ravel()[:2] = [np.inf, np.nan]
    return x


@EVERY
@TYPES
@SHAPES
def test_every_element_comes_and_goes(isa: Target, dtype: str, shape: tuple[int, ...]) -> None:
    x = some(shape, dtype)
    (got,), segment = called(lambda w, x: jnp.maximum(x, w[0]), [np.zeros((), dtype)], x, isa)
    assert got.dtype == x.dtype and {v.shape for v in segment.as_stored} == {shape}
    np.testing.assert_array_equal(got.astype(np.float64), np.maximum(x, 0).astype(np.float64))


@EVERY
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_result_is_rounded_to_the_nearest(isa: Target, dtype: str) -> None:
    """What kernels hold may have more digits than its type; ties go to the even number."""
    x, w = np.asarray(array(7, 203).astype(dtype)), np.asarray(array(203, seed=1).astype(dtype))
    (got,), _ = called(lambda w, x: x * w[0], [w], x, isa)
    want = (x.astype(np.float32) * w.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


@EVERY
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_image_gets_its_border_on_the_way_in(isa: Target, dtype: str) -> None:
    """No pass but the one that reads it, and none that pads it."""
    w, x = array(3, 3, 5, 24, seed=1).astype(dtype), array(2, 11, 13, 5).astype(dtype)
    nhwc = ("NHWC", "HWIO", "NHWC")
    fn = lambda w, x, out=None: lax.conv_general_dilated(
        x, w[0], (2, 1), "SAME", dimension_numbers=nhwc, preferred_element_type=out
    )
    (got,), segment = called(lambda w, x: fn(w, x, jnp.float32), [w], x, isa)
    with jax.enable_x64(True):
        want = np.asarray(fn([jnp.asarray(w.astype(np.float64))], jnp.asarray(x.astype(np.float64))))
    assert error(got, want) < 1e-5
    assert [s.kernel for s in segment.steps].count("elementwise_rows") == 1


@EVERY
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("k", [64, 66, 7])
def test_rows_that_are_words_already_are_read_where_they_lie(isa: Target, dtype: str, k: int) -> None:
    make = lambda *shape, seed: (array(*shape, seed=seed) * (40 if dtype == "int8" else 1)).astype(dtype)
    w, x = np.asarray(make(k, 40, seed=1)), np.asarray(make(3, 11, k, seed=2))
    out = jnp.int32 if dtype == "int8" else jnp.float32
    fn = lambda w, x: lax.dot_general(x, w[0], (((2,), (0,)), ((), ())), preferred_element_type=out)
    (got,), segment = called(fn, [w], x, isa)
    assert error(got, x.astype(np.float64) @ w.astype(np.float64)) < 1e-5
    unit = isa.unit(dtype)
    ready = unit is not None and not unit.shift and unit.per == 4 // x.itemsize and k % (unit.per * unit.step) == 0
    assert (len(segment.steps) == 1) is ready


@EVERY
@TYPES
@pytest.mark.parametrize("reverse", [False, True])
def test_turns_of_a_loop_read_what_came_in_for_all_of_them(isa: Target, dtype: str, reverse: bool) -> None:
    """A turn has no arguments of its own, whatever types its arrays have."""
    w, x = np.asarray((8 * array(6, 5, seed=1)).astype(dtype)), np.asarray((8 * array(4, 3, 7, 6)).astype(dtype))
    wide = jnp.int32 if dtype == "int8" else jnp.float32

    def fn(w: Any, x: Any) -> Any:
        def turn(c: Any, x: Any) -> Any:
            rows = jnp.where(c > 0, x[:, 2], x[:, 3])
            y = lax.dot_general(rows, w[0], (((1,), (0,)), ((), ())), preferred_element_type=wide)
            return y.sum() - c, y

        return lax.scan(turn, jnp.ones((), wide), x, reverse=reverse)

    (carried, got), segment = called(fn, [w], x, isa)
    c, want = 1.0, np.zeros((4, 3, 5))
    for i in range(4)[:: -1 if reverse else 1]:
        want[i] = x.astype(np.float64)[i, :, 2 if c > 0 else 3] @ w.astype(np.float64)
        c = want[i].sum() - c
    assert error(carried, np.asarray(c)) < 1e-5 and error(got, want) < 1e-5
    (word,) = (word for step in segment.steps for word in step.words if isinstance(word, Looped))
    read = {b for step in word.steps for b in step.reads if b.kind == "arg"}
    assert {b.nbytes for b in read} <= {segment.blob_bytes}, "only the packed weights are arguments of a turn"


@EVERY
@pytest.mark.parametrize("how", [items.BATCH, items.ITEMS])
@pytest.mark.parametrize(("wide", "channels", "stride"), [(3, 3, 2), (5, 1, 1), (7, 3, 2), (2, 3, 1), (3, 2, 1)])
def test_pixels_of_few_channels_are_no_f32(
    isa: Target, how: str, wide: int, channels: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of bf16 are read from the argument with its border, in its own type, or made of it where they begin at any
    element; of each item where that is taken alone. What lies beside a window does not count.
    """
    for name, value in (("LEAST_SHARE", 0), ("READ_AGAIN_BY_ALL", 100), ("READ_AGAIN", 1000)):
        monkeypatch.setattr(items, name, value)
    narrow = lambda *shape, seed: np.asarray(array(*shape, seed=seed).astype(jnp.bfloat16))
    ws = [narrow(3, wide, channels, 20, seed=1), *(narrow(1, 1, 20, 20, seed=2 + i) for i in range(3))]
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def fn(ws: Any, x: Any) -> Any:
        y = conv(x, ws[0], (2, stride), [(0, 1), (1, 0)], preferred_element_type=jnp.float32)
        for w in ws[1:]:
            y = conv(jax.nn.relu(y).astype(w.dtype), w, (1, 1), "VALID", preferred_element_type=jnp.float32)
        return y

    x = narrow(4, 12, 11, channels, seed=0).copy()
    x[1, 4, 5, -1] = np.nan
    (got,), segment = called(fn, ws, x, isa, how=how)
    want = np.asarray(fn([w.astype(np.float32) for w in ws], x.astype(np.float32)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert 2 <= np.isnan(want).any((0, 3)).sum() <= 10 and error(np.nan_to_num(got), np.nan_to_num(want)) < 2e-2
    kernels = set(kernels_of(segment.steps))
    assert any("items" in names for names in segment.algorithms) == (how == items.ITEMS)
    assert ("narrow", "float32") not in kernels
    if (unit := isa.unit("bfloat16")) is not None and unit.kernel == "gemm":
        n = wide * channels
        assert (("narrow", "bfloat16") in kernels) == (n % 2 == 0 and channels * stride % 2 == 1)
        assert ("odd" in {k[8] for k in kernels if k[0] == "gemm"}) == n % 2 and ("v", "bfloat16") not in {
            k[2] for k in kernels if len(k) > 2
        }


@EVERY
@pytest.mark.parametrize("channels", [24, 33])
@pytest.mark.parametrize("how", ["max", "sum"])
def test_a_pool_between_products_of_bf16(isa: Target, channels: int, how: str) -> None:
    """It reads what the one writes, and writes what the other multiplies, as bf16; NaN stays where it is."""
    isa = dataclasses.replace(isa, kept=1 << 18)  # of which the image is more
    ws = [np.asarray(array(1, 1, 16, n, seed=n).astype(jnp.bfloat16)) for n in (channels,)]
    ws += [np.asarray(array(1, 1, channels, 8, seed=1).astype(jnp.bfloat16))]
    x = np.asarray(array(1, 131, 129, 16).astype(jnp.bfloat16)).copy()
    x[0, 7, 8, 3] = np.nan
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    start, combine = (-np.inf, lax.max) if how == "max" else (0.0, lax.add)

    def fn(ws: Any, x: Any) -> Any:
        y = jax.nn.relu(conv(x, ws[0], (1, 1), "VALID"))
        y = lax.reduce_window(
            y, y.dtype.type(start), combine, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (0, 1), (0, 0)]
        )
        return conv(y, ws[1], (1, 1), "VALID", preferred_element_type=jnp.float32)

    (got,), segment = called(fn, ws, x, isa)
    want = np.asarray(fn([w.astype(np.float32) for w in ws], x.astype(np.float32)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert np.isnan(want).any() and error(np.nan_to_num(got), np.nan_to_num(want)) < 2e-2
    (pool,) = (k for k in kernels_of(segment.steps) if k[0] == "pool")
    unit = isa.unit("bfloat16")
    assert pool[3] == ("bfloat16" if channels % 2 == 0 else "float32")
    assert bool(pool[5]) == (unit is not None)


@EVERY
@pytest.mark.parametrize("columns", [2, 15, 16, 33, 128, 197, 300, 2048, 2049])
def test_what_softmax_holds_without_a_row_of_its_own(isa: Target, columns: int) -> None:
    """A product reads bf16 alone, so that there is no row of f32; exp is computed once all the same."""
    w, x = np.asarray(array(columns, 40, seed=1).astype(jnp.bfloat16)), np.array(3 * array(21, columns))
    x[1, -1], x[2, 0] = np.inf, np.nan
    x[3] = -np.inf

    def fn(w: Any, x: Any) -> Any:
        p = jax.nn.softmax(x).astype(w.dtype)
        return lax.dot_general(p, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)

    (got,), segment = called(fn, w, x.astype(np.float32), isa)
    want = np.asarray(fn(w.astype(np.float32), x))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert np.isnan(want).all(1).nonzero()[0].tolist() == [1, 2, 3]
    assert error(got[4:], want[4:]) < 1e-2
    (row,) = (k for k in kernels_of(segment.steps) if k[0] == "rowwise")
    asked = row[3][0] != "v"
    assert asked == (isa.unit("bfloat16") is not None)
    assert bool(row[6]) == (asked and columns <= 2048)


@pytest.mark.skipif(target().unit("bfloat16", "gemm") is None, reason="a CPU without instructions for bf16")
def test_bf16_is_rounded_once() -> None:
    """By the instruction that stores it; where the result itself is there too, it is what is rounded."""
    x, w = array(7, 48).astype(jnp.bfloat16), array(48, 48, seed=1).astype(jnp.bfloat16)

    def fn(w: Any, x: Any) -> Any:
        y = jnp.tanh(lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32))
        return (y.astype(jnp.bfloat16) @ w).astype(jnp.float32)

    (got,), segment = called(fn, np.asarray(w), np.asarray(x), target())
    made = next(k for k in kernels_of(segment.steps) if k[0] in ("gemm", "tiles") and "rounded bfloat16" in str(k[5]))
    (dtype, node, _) = made[5][-1]
    assert dtype == "rounded bfloat16" and made[4][node][0] == "factor"
    assert made[4][made[4][node][1]][0].startswith("tanh")
    assert error(got, np.asarray(fn(w.astype(jnp.float32), x.astype(jnp.float32)))) < 1e-2


def kernels_of(steps: Iterable[Step]) -> Iterator[Any]:
    """The kernels of steps, and of those inside of them."""
    for word in (word for step in steps for word in step.words):
        if isinstance(word, Kernel):
            yield word.spec
        elif isinstance(word, Nested):
            yield from kernels_of(word.steps)


def test_one_element_and_whole_numbers_are_left_to_xla() -> None:
    """A pass would take longer than XLA's own; s32 has 4 bytes."""
    fn = lambda w, x: (x[0] * w, x[1] + 1)
    one, many = np.ones((), jnp.bfloat16), np.arange(9, dtype=np.int32)
    fast = xcoexec.jit(fn, strategy="host", strict=True).bind(np.asarray(2.0, jnp.bfloat16))
    got = fast((one, many))
    assert float(got[0]) == 2.0 and got[0].dtype == jnp.bfloat16
    np.testing.assert_array_equal(got[1], many + 1)
    (unit,) = fast.session().current.lowered.segments
    assert not unit.segment.as_stored


def test_xla_converts_nothing() -> None:
    """The compiled program hands the argument to the segment, and its result to the caller."""
    w, x = array(64, 40, seed=1).astype(jnp.bfloat16), array(12, 64).astype(jnp.bfloat16)
    fast = xcoexec.jit(lambda w, x: jax.nn.gelu(x @ w), strategy="host", strict=True, wait=True).bind(w)
    got = fast(x)
    want = np.asarray(jax.nn.gelu(x.astype(np.float32) @ w.astype(np.float32)))
    assert got.dtype == jnp.bfloat16 and error(np.asarray(got, np.float32), want) < 1e-2
    exe = fast.session().current
    (unit,) = exe.lowered.segments
    assert len(unit.segment.as_stored) == 2
    text = exe.compiled([x]).as_text()
    assert "custom-call(" in text and " convert(" not in text


def test_a_state_that_is_given_away() -> None:
    """A cache of bf16 that comes back changed, in the same memory."""
    made = xcoexec.jit(
        lambda cache, row: (lax.dynamic_update_slice(cache, row, (2, 0)), (cache * row).sum()),
        donate_argnums=0,
        strategy="host",
        strict=True,
        wait=True,
    )
    cache, want = jnp.zeros((7, 33), jnp.bfloat16), np.zeros((7, 33), np.float32)
    for seed in range(4):
        row = array(1, 33, seed=seed).astype(jnp.bfloat16)
        total = (want * row.astype(np.float32)).sum()
        given = cache.unsafe_buffer_pointer()
        cache, found = made(cache, row)
        assert cache.unsafe_buffer_pointer() == given and made.report(cache, row).ran == "xco"
        want[2] = row.astype(np.float32)
        assert abs(float(found) - total) <= 1e-2 * max(1.0, abs(total))
        # a copy: memory that NumPy sees cannot be given away
        np.testing.assert_array_equal(jnp.array(cache, np.float32), want)


# -- images of bf16 and int8 between steps


@EVERY
@pytest.mark.parametrize("channels", [48, 34, 130, 8], ids=lambda c: f"{c} channels")
@pytest.mark.parametrize("how", [(1, 1), (2, 1), (1, 2)], ids=["", "stride 2", "dilation 2"])
def test_a_depthwise_convolution_reads_halves(isa: Target, channels: int, how: tuple[int, int]) -> None:
    """Where the image as f32 is more than caches keep: it is rounded to its type, border and last channels too."""
    stride, dilation = how
    eighths = lambda *s, seed: np.round(np.asarray(array(*s, seed=seed), np.float64) * 16) / 8  # f32 has their sums
    ws = [eighths(1, 1, 6, channels, seed=1), eighths(3, 3, 1, channels, seed=2)]
    x = eighths(2, 11, 9, 6, seed=3)
    nhwc = ("NHWC", "HWIO", "NHWC")
    wide = {"rhs_dilation": (dilation, dilation), "feature_group_count": channels, "dimension_numbers": nhwc}
    first = lambda w, x: jnp.clip(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=nhwc), -9, 9)
    second = lambda w, y: lax.conv_general_dilated(y, w, (stride, stride), "SAME", **wide)
    fn = lambda ws, x: second(ws[1], first(ws[0], x)).astype(jnp.float32)
    with jax.enable_x64(True):
        y = np.asarray(first(ws[0], x))
        want = [np.asarray(second(ws[1], y.astype(t).astype(np.float64))) for t in (np.float64, jnp.bfloat16)]
    assert error(*want) > 1e-4
    given = [w.astype(jnp.bfloat16) for w in ws], x.astype(jnp.bfloat16)
    for kept, stored, exact in ((1 << 30, "float32", want[0]), (1, "bfloat16", want[1])):
        (got,), segment = called(fn, *given, dataclasses.replace(isa, kept=kept), threads=1)
        specs = [w.spec for s in segment.steps for w in s.words if hasattr(w, "spec")]
        assert {k[8] for k in specs if k[0] == "depthwise"} == {stored}
        assert error(got, exact) < 1e-6


@EVERY
@pytest.mark.parametrize("channels", [48, 34, 132, 8], ids=lambda c: f"{c} channels")
@pytest.mark.parametrize("how", [(1, 1), (2, 1), (1, 2)], ids=["", "stride 2", "dilation 2"])
def test_a_depthwise_convolution_reads_bytes(isa: Target, channels: int, how: tuple[int, int]) -> None:
    """Of int8, where the image as f32 is more than caches keep; exactly, with border and last channels, in any case."""
    stride, dilation = how
    ws = [some((1, 1, 6, channels), "int8"), some((3, 3, 1, channels), "int8")]
    x, nhwc, whole = some((2, 11, 9, 6), "int8"), ("NHWC", "HWIO", "NHWC"), jnp.int32

    def fn(ws: Any, x: Any) -> Any:
        conv = functools.partial(lax.conv_general_dilated, dimension_numbers=nhwc, preferred_element_type=whole)
        y = jnp.clip(jnp.round(conv(x, ws[0], (1, 1), "SAME").astype(jnp.float32) / 512), -128, 127).astype(jnp.int8)
        wide = {"rhs_dilation": (dilation, dilation), "feature_group_count": channels}
        return conv(y, ws[1], (stride, stride), "SAME", **wide)

    want = np.asarray(fn([jnp.asarray(w) for w in ws], x))
    for kept in (1 << 30, 1):
        (got,), segment = called(fn, ws, x, dataclasses.replace(isa, kept=kept), threads=1)
        specs = [w.spec for s in segment.steps for w in s.words if hasattr(w, "spec")]
        stored = "int8" if kept == 1 and channels % 4 == 0 else "float32"
        unit = isa.unit("int8", "gemm")
        if unit is not None and unit.shift and channels % 4 == 0 and channels >= 16 and dilation == 1:
            assert {k[0] for k in specs if k[0].startswith("depthwise")} == {"depthwise_bytes"}
        else:
            assert {k[8] for k in specs if k[0] == "depthwise"} == {stored}
        np.testing.assert_array_equal(got, want)


@EVERY
def test_an_odd_number_of_channels_stays_f32(isa: Target) -> None:
    w, x = array(3, 3, 1, 33).astype(jnp.bfloat16), array(1, 9, 9, 33).astype(jnp.bfloat16)
    fn = lambda w, x: lax.conv_general_dilated(
        x * w[0][0, 0, 0], w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=33
    )
    (got,), _ = called(fn, [w], x, dataclasses.replace(isa, kept=1), threads=1)
    with jax.enable_x64(True):
        want = np.asarray(fn([jnp.asarray(w, jnp.float64)], jnp.asarray(x, jnp.float64)))
    assert error(got.astype(np.float32), want) < 2e-2
