"""Products of one or a few rows with weights that the model keeps in fewer bits, against float64 NumPy."""

from __future__ import annotations

import dataclasses
import pathlib
import platform
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.codegen.kernels.digits import FOURS, Fours, packed_of
from xcoexec.codegen.runtime import host, pages
from xcoexec.codegen.segment.sharing import shareable
from xcoexec.codegen.target import Target, target
from xcoexec.frontend.graph import graph_of
from xcoexec.frontend.trace import paths, trace, weight_leaves

from .oracle import error
from .support import array, targets

pytestmark = pytest.mark.usefixtures("quick_xla")

FORMS = (
    "float32",
    "bfloat16",
    "float16",
    "int8",
    "int8 by channel",
    "int8 by group",
    "int8 by group, float16",
    "int4",
    "int4 by channel",
    "int4 by group",
    "int4 by group, bfloat16",
)


def _weights(form: str, k: int, n: int) -> Any:
    """Weights [k, n]; of whole numbers with scales by channel, or by channel and group of rows, perhaps of a type of
    fewer bits.
    """
    form, _, narrow = form.partition(", ")
    dtype, _, scaled = form.partition(" ")
    if not dtype.startswith("int"):
        return array(k, n).astype(dtype)
    most, groups = (7 if dtype == "int4" else 127), (k // 40 if scaled == "by group" else 1)
    q = jnp.round(array(groups, k // groups, n, low=-most - 1, high=most)).astype(dtype)
    scale = array(groups, 1, n, seed=1, low=0.01, high=0.02).astype(narrow or "float32")
    return {"q": q, "scale": scale} if groups > 1 else {"q": q[0], "scale": scale[0]}


def _dense(form: str, w: Any, x: Any) -> Any:
    if not isinstance(w, dict):
        return jax.nn.relu(x @ w.astype(x.dtype)) + 1
    q, scale = w["q"].astype(x.dtype), w["scale"].astype(x.dtype)
    y = (x @ q) * scale if " " not in form else x @ (q * scale).reshape(x.shape[1], -1)
    return jax.nn.relu(y) + 1


def _wanted(w: Any, x: Any) -> np.ndarray:
    wide = lambda a: np.asarray(a, np.float64)
    whole = wide(w) if not isinstance(w, dict) else (wide(w["q"]) * wide(w["scale"])).reshape(x.shape[1], -1)
    return np.maximum(wide(x) @ whole, 0) + 1


def _of_one_row(form: str, threads: int) -> str:
    """The kernels of one row."""
    if form.startswith("int") and packed_of(target(), form.split()[0]) is not None:
        return "digits+digit_gemv+parts"
    return "gemv" if threads == 1 else "gemv+parts"


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("k", "n"), [(1000, 537), (520, 1040), (1160, 1025)])
@pytest.mark.parametrize("form", FORMS)
def test_a_few_rows(form: str, k: int, n: int, threads: int) -> None:
    """What is read is what the model keeps: no weights in f32 are packed for one row."""
    w = _weights(form, k, n)
    for rows in (1, 2, 5, 16):
        x = array(rows, k, seed=2)
        folded, graph = graph_of(lambda w, x: _dense(form, w, x), (w, x), 1)
        segment = host.build(graph.program, threads)
        known = folded.constants(jax.tree_util.tree_leaves(w))
        raw = [np.ascontiguousarray(known[v]) for v in segment.raw]
        (got,) = host.Call.on(segment, [np.asarray(x), *raw, segment.pack(known)])()
        assert error(got, _wanted(w, x)) < 1e-5, rows
        if rows == 1:
            assert segment.algorithms == (_of_one_row(form, threads),)
            packed = form.startswith("int4") or "digits" in segment.algorithms[0]  # a byte holds one or two weights
            size = k * -(-n // 64) * 64 // (2 if form.startswith("int4") else 1) if packed else 0
            assert sum(r.nbytes for r in raw) == (0 if size else k * n * raw[0].itemsize)
            assert segment.blob_bytes <= size * 1.05 + 4 * n * (k // 40) + 256


def _row(w: Any, x: Any, isa: Target | None, form: str = "int4 by group") -> tuple[str, np.ndarray]:
    """The kernels of x @ w by an instruction set, and what they compute."""
    folded, graph = graph_of(lambda w, x: _dense(form, w, x), (w, x), 1)
    segment = host.build(graph.program, 1, isa)
    known = folded.constants(jax.tree_util.tree_leaves(w))
    raw = [np.ascontiguousarray(known[v]) for v in segment.raw]
    (got,) = host.Call.on(segment, [np.asarray(x), *raw, segment.pack(known)])()
    return segment.algorithms[0], got


def test_int4_without_whole_products() -> None:
    """Instruction sets without such products, and groups of rows that have no blocks, take products of f32."""
    x = array(1, 520, seed=2)
    w = _weights("int4 by group", 520, 1041)
    others = {"q": w["q"].reshape(-1, 20, 1041), "scale": jnp.repeat(w["scale"], 2, 0)}  # groups of 20 rows
    for isa, given in ((None, others), (target("portable"), w)):
        algorithm, got = _row(given, x, isa)
        assert algorithm == "gemv"
        assert error(got, _wanted(given, x)) < 1e-5


@pytest.mark.parametrize("form", ["int4 by group", "int8 by group", "int8"])
def test_whole_products_of_every_instruction_set(form: str) -> None:
    """Digits and weights as large as they become: pairs of products have room in 16 bits."""
    w, x, kind = _weights(form, 520, 1041), np.array(array(1, 520, seed=2)), form.split()[0]
    q = np.array(w["q"].astype(jnp.int8))
    q.reshape(520, -1)[:, :3] = {"int4": (-8, 7, 0), "int8": (-128, 127, 0)}[kind]
    w = {**w, "q": jnp.asarray(q).astype(w["q"].dtype)}
    for isa in [t for f in (None, *FOURS) for t in _with(f)]:
        for value in (1.0, -1.0, 127.0, 255.5, 1 - 2**-23):
            x[0, :260] = value
            algorithm, got = _row(w, x, isa, form)
            assert algorithm == ("digits+digit_gemv+parts" if packed_of(isa, kind) else "gemv")
            assert error(got, _wanted(w, x)) < 1e-5, (isa.name, value)


def _with(fours: Fours | None) -> list[Target]:
    """This machine's instruction sets; of a way of whole products those that have it, without the better ones."""
    if fours is None:
        return targets()
    better = [f"+{f.feature}" for f in FOURS[: FOURS.index(fours)] if f.vl == fours.vl]
    return [
        dataclasses.replace(t, features=",".join(x for x in t.features.split(",") if x not in better))
        for t in targets()
        if t.vl == fours.vl and f"+{fours.feature}" in t.features.split(",")
    ]


@pytest.mark.parametrize("form", ["int4 by group", "int8 by group", "int8 by channel", "int8"])
@pytest.mark.parametrize("power", [-120, -30, 0, 30])
def test_rows_of_unlike_elements(power: int, form: str) -> None:
    """Elements far smaller than others of their block, zeroes, blocks of zeroes, and what is not finite."""
    w = _weights(form, 520, 1041)
    x = np.array(array(1, 520, seed=2)) * np.exp2(np.arange(520) % 23 - 11, dtype=np.float32) * np.float32(2.0**power)
    x[0, 40:80], x[0, ::7] = 0, 0
    x[0, 80:120] *= np.float32(1e-3)
    algorithm, got = _row(w, x, None, form)
    assert algorithm == _of_one_row(form, 1)
    assert error(got - 1, _wanted(w, x) - 1) < 1e-5 or power < 0
    assert error(got, _wanted(w, x)) < 1e-5
    if algorithm != "gemv":
        for bad in (np.nan, np.inf, -np.inf):
            x[0, 90] = bad
            assert np.isnan(_row(w, x, None, form)[1]).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "k"), [(537, 1000), (1040, 520), (277, 1025)])
@pytest.mark.parametrize("form", ["float32", "bfloat16", "float16", "int8", "int8 by channel"])
def test_a_few_rows_by_channels(form: str, n: int, k: int, threads: int) -> None:
    """Weights [out, in], as a tied embedding or a PyTorch file has them, are read as they lie."""
    w = _weights(form.removesuffix(" by channel"), n, k)
    if "by channel" in form:
        w = {"q": w["q"], "scale": array(n, 1, seed=1, low=0.01, high=0.02)}
    elif isinstance(w, dict):
        w = w["q"]
    whole = np.asarray(w["q"], np.float64) * np.asarray(w["scale"]) if isinstance(w, dict) else np.asarray(w, float)

    def fn(w: Any, x: Any) -> Any:
        w = w["q"].astype(x.dtype) * w["scale"] if isinstance(w, dict) else w.astype(x.dtype)
        return jax.nn.relu(jax.lax.dot_general(x, w, (((1,), (1,)), ((), ())))) + 1

    for rows in (1, 2, 5, 11, 16):
        x = array(rows, k, seed=2)
        folded, graph = graph_of(fn, (w, x), 1)
        segment = host.build(graph.program, threads)
        known = folded.constants(jax.tree_util.tree_leaves(w))
        raw = [np.ascontiguousarray(known[v]) for v in segment.raw]
        (got,) = host.Call.on(segment, [np.asarray(x), *raw, segment.pack(known)])()
        assert error(got, np.maximum(np.asarray(x, np.float64) @ whole.T, 0) + 1) < 1e-5, rows
        if rows <= 4 or form != "float32":
            assert segment.algorithms == ("row_gemv+parts",)
            assert sum(r.nbytes for r in raw) == k * n * raw[0].itemsize
            assert segment.blob_bytes <= 4 * n + 64


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 5, 8, 16])
def test_a_few_rows_of_bf16(rows: int, turned: bool) -> None:
    """From two rows on the instructions for bf16 multiply them, where there are some."""
    w, x = array(520, 537).astype("bfloat16"), array(rows, 520, seed=2)
    given = jnp.asarray(w.T) if turned else w

    def fn(w: Any, x: Any) -> Any:
        return jax.nn.relu(x.astype("bfloat16") @ (w.T if turned else w)).astype(jnp.float32)

    folded, graph = graph_of(fn, (given, x), 1)
    segment = host.build(graph.program, 2)
    known = folded.constants([given])
    raw = [np.ascontiguousarray(known[v]) for v in segment.raw]
    (got,) = host.Call.on(segment, [np.asarray(x), *raw, segment.pack(known)])()
    assert error(got, np.maximum(np.asarray(x.astype("bfloat16"), np.float64) @ np.asarray(w, np.float64), 0)) < 1e-2
    ran = {name for names in segment.algorithms for name in names.split("+")}
    assert (not ran & {"gemv", "row_gemv"}) == (rows > 1 and target().unit("bfloat16") is not None), ran


@pytest.mark.parametrize("rows", [2, 8])
def test_a_few_rows_of_bf16_read_int8_where_it_lies(rows: int) -> None:
    """Packed as bf16, weights of fewer bits would be twice as large."""
    q, x = _weights("int8", 520, 537)["q"], array(rows, 520, seed=2)
    fn = lambda q, x: jax.nn.relu(x.astype("bfloat16") @ q.astype("bfloat16")).astype(jnp.float32)
    _, graph = graph_of(fn, (q, x), 1)
    segment = host.build(graph.program, 2)
    assert any("gemv" in names.split("+") for names in segment.algorithms), segment.algorithms


@pytest.mark.parametrize("form", ["int8 by channel", "int8 by group", "int4 by channel"])
def test_quantised_layers_end_to_end(form: str) -> None:
    """Two layers in a program of XLA, with a bias, which must not be folded into weights of f32."""
    ws, bias, x = [_weights(form, 640, 640), _weights(form, 640, 640)], array(640, seed=3), array(1, 640, seed=2)

    def fn(weights: Any, x: Any) -> Any:
        ws, bias = weights
        return _dense(form, ws[1], _dense(form, ws[0], x) / 100 + bias)

    fast = xcoexec.jit(fn, strategy="host", strict=True, threads=2).bind((ws, bias))
    want = _wanted(ws[1], _wanted(ws[0], x) / 100 + np.asarray(bias, np.float64))
    assert error(fast(x), want) < 1e-5
    assert _of_one_row(form, 2) in {r.algorithm for r in fast.report().layers}


def test_a_scale_and_a_bias_behind_the_product_stay_there() -> None:
    w, bias, x = _weights("int8", 640, 520), array(520, seed=3), array(1, 640, seed=2)
    fn = lambda p, x: (x @ p[0]["q"].astype(x.dtype)) * p[0]["scale"] + p[1]
    fast = xcoexec.jit(fn, strategy="host", strict=True, threads=2).bind((w, bias))
    whole = np.asarray(w["q"], np.float64) * np.asarray(w["scale"], np.float64)
    assert error(fast(x), np.asarray(x, np.float64) @ whole + np.asarray(bias, np.float64)) < 1e-5
    (unit,) = fast.session().current.lowered.segments
    assert {v.dtype for v in unit.segment.raw} <= {"int8"}
    read = sum(v.nbytes for v in unit.segment.raw) + unit.segment.blob_bytes
    assert read <= 640 * -(-520 // 64) * 64 + 4 * 2 * 520 + 256, "a byte for each weight"


def test_copies_of_weights_are_read_as_they_are_stored() -> None:
    w, x = _weights("int8 by channel", 640, 520), array(1, 640, seed=2)
    copied = lambda w, x: _dense("int8 by channel", {k: jnp.array(v) for k, v in w.items()}, x)
    fast = xcoexec.jit(copied, strategy="host", strict=True, threads=2).bind(w)
    assert error(fast(x), _wanted(w, x)) < 1e-5


def test_scaled_weights_are_weights() -> None:
    w, x = _weights("int8 by group", 80, 24), array(1, 80)
    values, tree = jax.tree_util.tree_flatten(((w, x), {}))
    traced = trace(lambda w, x: _dense("int8 by group", w, x), values, tree, paths(tree))
    assert weight_leaves(traced) == (0, 1)


@pytest.mark.parametrize(
    ("form", "kept"), [("bfloat16", 2), ("int8", 1), ("int8 by group", 1), ("int4 by channel", 0.5)]
)
def test_bytes_of_a_layer_are_those_that_are_kept(form: str, kept: float) -> None:
    w, x = _weights(form, 80, 24), array(3, 80)
    (layer,) = (n for n in graph_of(lambda w, x: _dense(form, w, x), (w, x), 1)[1].layers if n.flops > 2 * 3 * 80 * 24)
    scales = w["scale"].nbytes if isinstance(w, dict) else 0  # also where they stand behind the product
    assert layer.nbytes == kept * 80 * 24 + scales + 4 * 3 * (80 + 24)


def test_bytes_of_a_gather_are_those_of_its_rows() -> None:
    fn = lambda w, i: jnp.take(w, i, axis=0)
    layers = graph_of(fn, (array(1000, 24), jnp.zeros(3, jnp.int32)), 1)[1].layers
    (layer,) = (x for x in layers if any(op.prim == "gather" for op in x.group.ops))
    assert 4 * 2 * 3 * 24 <= layer.nbytes < 4 * 3 * (2 * 24 + 8)


def test_a_cache_that_is_given_away_is_written_where_it_lies() -> None:
    """Also where it is read behind the update; a cache that is kept stays as it is."""
    w, x = array(320, 5 * 13), array(1, 320, seed=2)

    def fn(w: Any, cache: Any, x: Any, position: Any) -> Any:
        cache = jax.lax.dynamic_update_slice(cache, (x @ w).reshape(1, 5, 13), (position, 0, 0))
        return jnp.sum(cache, 0) + 1, cache

    new, plan = np.asarray(x, np.float64) @ np.asarray(w, np.float64), xcoexec.Plan.uniform(1.0)
    for given in (True, False):
        fast = xcoexec.jit(fn, plan=plan, strict=True, wait=True, donate_argnums=(1,) if given else ()).bind(w)
        fast(jnp.array(array(37, 5, 13, seed=3)), x, jnp.int32(0))
        (unit,) = fast.session().current.lowered.segments
        (at,) = (i for i, v in enumerate(unit.segment.program.inputs) if v.shape == (37, 5, 13))
        assert at in {i for i, _ in shareable(unit.segment)}
        cache, want = jnp.asarray(array(37, 5, 13, seed=3) + 0), np.asarray(array(37, 5, 13, seed=3), np.float64)
        for position in (0, 7, 36):
            before, place = cache, cache.unsafe_buffer_pointer()
            total, cache = fast(before, x, jnp.int32(position))
            assert (cache.unsafe_buffer_pointer() == place) == given
            if not given:
                assert error(before, want) < 1e-6
            want[position] = new.reshape(5, 13)
            assert error(cache, want) < 1e-5
            assert error(total, want.sum(0) + 1) < 1e-5


def test_large_weights_lie_in_large_pages() -> None:
    """Where the system gives them to who asks; what lies there stays as it is."""
    setting = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists() or "[never]" in setting.read_text() or not _collapses():
        pytest.skip("this system does not give such pages")
    w, x = jax.block_until_ready(array(2048, 4096).astype(jnp.bfloat16) + 0), array(1, 2048, seed=2)
    fn = lambda w, x: x @ w.astype(x.dtype)
    fast = xcoexec.jit(fn, plan=xcoexec.Plan.uniform(1.0), strict=True, wait=True).bind(w)
    address = w.unsafe_buffer_pointer()
    assert error(fast(x), np.asarray(x, np.float64) @ np.asarray(w, np.float64)) < 1e-5
    pages.settle()
    assert _huge(address + w.nbytes // 2)


def _collapses() -> bool:
    """Whether Linux is new enough to make such pages of memory that is in use (6.1)."""
    return tuple(int(n) for n in platform.release().split(".")[:2]) >= (6, 1)


def _huge(address: int) -> bool:
    """Whether the mapping of an address has pages of 2 MiB."""
    inside = False
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(n, 16) for n in first.split("-"))
            inside = low <= address < high
        elif inside and first == "AnonHugePages:":
            return int(line.split()[1]) > 0
    return False
