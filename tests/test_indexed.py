"""Gathers and scatters of whole rows on kernels: every mode, rows of one element, several indices and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcoexec
from xcoexec.codegen.kernels.indexed import LISTED
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.steps import Looped, Step

from .oracle import oracles
from .support import array, run_host, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

X = array(13, 7)


def index(limit: int, *shape: int, seed: int = 0) -> jax.Array:
    """Indices of which some lie outside on either side."""
    return jnp.asarray(np.random.default_rng(seed).integers(-2, limit + 3, shape), jnp.int32)


SOME = index(13, 29)
MODES = ("clip", "fill")


def summed(x: Any, i: Any) -> Any:
    return jax.ops.segment_sum(x, i, 13)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f"rows, {m}": (lambda x, i, m=m: x.at[i].get(mode=m), (X, SOME)) for m in MODES},
    **{f"elements, {m}": (lambda x, i, m=m: x.at[i].get(mode=m), (X[:, 0], SOME)) for m in MODES},
    "a promise": (lambda x, i: x.at[i].get(mode="promise_in_bounds"), (X, jnp.clip(SOME, 0, 12))),
    "two indices": (lambda x, i, j: x[i, j], (array(13, 7, 5), index(13, 4, 9), index(7, 4, 9, seed=1))),
    "all indices": (lambda x, i, j: x[i, j], (X, index(13, 33), index(7, 33, seed=1))),
    "integers": (lambda x, i: x[i], (index(50, 13, 3), SOME)),
    "bools": (lambda x, i: x[i], (X > 0, SOME)),
    "wide rows": (lambda x, i: x[i], (array(5, 4099), index(5, 11))),
    "many rows": (lambda x, i: x[i], (array(9, 3), index(9, 9001))),
    "along an axis": (lambda x, i: jnp.take_along_axis(x, i, 1, mode="clip"), (X, index(7, 13, 4))),
    "along the last of three": (lambda x, i: jnp.take_along_axis(x, i, -1), (array(3, 5, 7), index(7, 3, 5, 1))),
    "tables": (jax.vmap(lambda x, i: x[i]), (array(5, 13, 7), index(13, 5, 29))),
    "segment_sum": (summed, (array(29, 7), SOME)),
    "segment_sum of elements": (summed, (array(29), SOME)),
    "segment_sum of tables": (jax.vmap(summed), (array(5, 29, 7), index(13, 5, 29))),
    "segment_max": (lambda x, i: jax.ops.segment_max(x, i, 13), (array(29, 7), SOME)),
    "segment_min": (lambda x, i: jax.ops.segment_min(x, i, 13), (array(29, 17), SOME)),
    "segment_prod": (lambda x, i: jax.ops.segment_prod(x, i, 13), (array(29, 17), SOME)),
    "set": (lambda x, i, u: x.at[i].set(u), (X, jnp.asarray([3, 5, 1, 20]), array(4, 7, seed=1))),
    "subtract": (lambda x, i, u: x.at[i].subtract(u), (X, SOME, array(29, 7, seed=1))),
    "added at two indices": (
        lambda x, i, j, u: x.at[i, j].add(u),
        (X, index(13, 40), index(7, 40, seed=1), array(40, seed=2)),
    ),
    "added with clipping": (lambda x, i, u: x.at[i].add(u, mode="clip"), (X, SOME, array(29, 7, seed=1))),
    "counted": (lambda i: jnp.zeros(13, jnp.int32).at[i].add(1), (SOME,)),
    "gradient of an embedding": (lambda x, i: jax.grad(lambda x: (x[i] ** 2).sum())(x), (X, SOME)),
    "cross entropy": (
        lambda x, i: jax.grad(lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x), i[:, None], 1).mean())(x),
        (X, jnp.arange(13, dtype=jnp.int32) % 7),
    ),
    "a tail": (lambda x, i: jax.nn.relu(jax.ops.segment_sum(x, i, 13)) * 2, (array(29, 7), SOME)),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_rows_on_kernels(name: str, threads: int) -> None:
    fn, args = CASES[name]
    assert any(op.prim.startswith(("gather", "scatter")) for op in stages_of(fn, *args)[1].program.ops)
    got = run_host(fn, *args, threads=threads)
    plain = jax.tree_util.tree_leaves(jax.jit(fn)(*args))
    # the oracle has no rule for tables; there XLA's sums are the same additions in the same order
    want = (
        plain
        if name in ("tables", "segment_sum of tables") or "along" in name or "entropy" in name
        else oracles(fn, *args)
    )
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-6)


@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 200), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_sums_of_any_size(segments: int, width: int, edges: int, threads: int) -> None:
    """Every update is in one part, whatever the number of parts."""
    i = index(segments, edges, seed=edges)
    x = array(edges, width, seed=width)
    want = np.zeros((segments, width))
    for at, row in zip(np.asarray(i), np.asarray(x, np.float64), strict=True):
        if 0 <= at < segments:
            want[at] += row
    got = run_host(lambda x, i: jax.ops.segment_sum(x, i, segments), x, i, threads=threads)[0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_graph_convolution_runs_on_kernels() -> None:
    def gcn(w: Any, x: Any, source: Any, target: Any) -> Any:
        degree = jax.ops.segment_sum(jnp.ones_like(source, jnp.float32), target, len(x)) + 1
        norm = jax.lax.rsqrt(degree[source]) * jax.lax.rsqrt(degree[target])
        h = jax.nn.relu(jax.ops.segment_sum((x @ w)[source] * norm[:, None], target, len(x)))
        return jax.nn.log_softmax(h)

    rng = np.random.default_rng(0)
    edges = [jnp.asarray(rng.integers(0, 57, 211), jnp.int32) for _ in range(2)]
    args = (array(33, 16), array(57, 33, seed=1), *edges)
    fast = xcoexec.jit(gcn, strategy="host", strict=True)
    np.testing.assert_allclose(fast(*args), oracles(gcn, *args)[0], rtol=1e-4, atol=1e-5)
    algorithms = [x.algorithm for x in fast.report(*args).layers]
    assert sum("scatter" in a for a in algorithms) == 1 and sum("gather" in a for a in algorithms) == 2
    assert sum("sum" in a.split("+") for a in algorithms) == 1  # the rows in between are never stored


def message(x: Any, s: Any, t: Any, *args: Any) -> Any:
    """A sum over edges of an expression of the source's row, numbers of the edge and rows of the edge."""
    norm, rows = args
    return jax.ops.segment_sum(jax.nn.relu(x[s] * norm[:, None] + rows) * 2, t, 11)


EDGES = (index(13, 53), index(11, 53, seed=1))
SUMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f"{w} columns": (message, (array(13, w), *EDGES, array(53), array(53, w, seed=2))) for w in (1, 7, 16, 33, 97)},
    "as they are": (lambda x, s, t: jax.ops.segment_sum(x[s], t, 11), (X, *EDGES)),
    "numbers": (lambda x, n, s, t: jax.ops.segment_sum(x[s] * n, t, 11), (X[:, 0], array(53), *EDGES)),
    "greatest": (lambda x, s, t: jax.ops.segment_max(x[s] * 3 - 1, t, 11), (X, *EDGES)),
    "least, with tail": (lambda x, s, t: jnp.tanh(jax.ops.segment_min(-x[s], t, 11)), (X, *EDGES)),
    "clipped": (lambda x, y, s, t: y.at[t].add(jnp.exp(x[s]), mode="clip"), (X, array(11, 7, seed=3), *EDGES)),
    "images": (lambda x, s, t: jax.ops.segment_sum(x[s] ** 2, t, 11), (array(13, 3, 5, 4), *EDGES)),
    "a loop": (
        lambda x, s, t: jax.lax.fori_loop(0, 3, lambda _, x: x.at[t].add(0.1 * x[s], mode="clip"), x),
        (X, index(13, 53), index(13, 53, seed=1)),
    ),
}  # fmt: skip


def flat(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps, and those inside of loops."""
    for step in steps:
        yield step
        for word in step.words:
            if isinstance(word, Looped):
                yield from flat(word.steps)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_rows(name: str, threads: int) -> None:
    fn, args = SUMS[name]
    _, graph = stages_of(fn, *args)
    segment = host.build(graph.program, threads)
    found = [s.kernel for s in flat(segment.steps)]
    assert [k for k in found if k in ("sum", "gather", "scatter")] == ["sum"]
    for a, b in zip(run_host(fn, *args, threads=threads), oracles(fn, *args), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("pairs", [1, LISTED - 1, LISTED, LISTED + 1, 2 * LISTED + 37])
@pytest.mark.parametrize("width", [1, 7, 20])
def test_lists_of_pairs(width: int, pairs: int, threads: int) -> None:
    """Pairs are listed a block at a time; indices outside and negative ones among them."""
    x = array(300, width) if width > 1 else array(300)
    source, target = index(300, pairs), index(410, pairs, seed=1)
    sums = lambda x, s, t: jax.ops.segment_sum(x[s] * 2, t, 400)
    joins = lambda x, u, t: x.at[t].add(u, mode="drop")
    updates = array(*(pairs, width)[: x.ndim], seed=2)
    for fn, args in ((sums, (x, source, target)), (joins, (x, updates, target % 320 - 5))):
        for a, b in zip(run_host(fn, *args, threads=threads), oracles(fn, *args), strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


def test_indices_are_looked_at_once() -> None:
    """Each x[i] asks which indices are negative; the answer is the same. A column of indices is no copy."""
    fn = lambda x, y, i: jnp.sin(x[i]) + jnp.cos(y[i]) + jnp.sin(x[i])
    args = (array(30), array(30, seed=1), index(30, 40))
    _, graph = stages_of(fn, *args)
    prims = [op.prim for op in graph.program.ops]
    assert prims.count("lt") == 1 and prims.count("broadcast_in_dim") == 0 and prims.count("reshape") == 1
    assert prims.count("sin") == 2, "floating-point numbers are computed as the caller says (jax.checkpoint)"
    for a, b in zip(run_host(fn, *args), oracles(fn, *args), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


def test_numbers_that_print_alike_are_others() -> None:
    fn = lambda x: jnp.where(x > 0.1234, 1.0, 0.0) + jnp.where(x > 0.1229, 2.0, 0.0) + jnp.where(x > -0.0, 4.0, 0.0)
    x = jnp.asarray([-1.0, -0.0, 0.0, 0.1229, 0.123, 0.12341, 1.0])
    with np.printoptions(precision=2, suppress=True):
        for a, b in zip(run_host(fn, x), oracles(fn, x), strict=True):
            np.testing.assert_array_equal(a, np.asarray(b))


def test_rows_that_spread_are_spread_by_each_reader() -> None:
    """A mask [n] that several layers spread over rows stays small."""
    mask = lambda m: jnp.broadcast_to(m[:, None], (40, 30))
    fn = lambda x, m: jnp.sin(jnp.where(mask(m), x, 0)).sum(-1) + jnp.cos(jnp.where(mask(m), x, 1)).sum(-1)
    args = (array(40, 30), array(40, seed=1) > 0)
    _, graph = stages_of(fn, *args)
    spread = [op.out for op in graph.program.ops if op.prim == "broadcast_in_dim" and op.out.dtype == "bool"]
    assert [v.shape for v in spread].count((40, 30)) == 2
    for a, b in zip(run_host(fn, *args), oracles(fn, *args), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_an_array_that_are_put_into_itself(threads: int) -> None:
    """What is read is not written meanwhile."""
    args = array(700, 20), jnp.asarray(np.random.default_rng(0).permutation(700), jnp.int32)
    for fn in (
        lambda x, i: (lambda h: jnp.sin(h.at[i].set(h)))(jnp.tanh(x)),
        lambda x, i: (lambda h: jnp.sin(h.at[i].add(h)))(jnp.tanh(x)),
        lambda x, i: ((x > 0).at[i].set(x > 0)) & (x > 0.5),
    ):
        for a, b in zip(run_host(fn, *args, threads=threads), oracles(fn, *args), strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


def test_indices_in_a_table_are_all_summed() -> None:
    """Pairs of indices that are no list are not one kernel's; none of them is left out."""
    fn = lambda x, y, s, t: y.at[t].add(2 * x[s], mode="drop")
    args = (X, array(11, 7, seed=3), index(13, 5, 9), index(11, 5, 9, seed=1))
    for a, b in zip(run_host(fn, *args), oracles(fn, *args), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


BESIDE = jnp.asarray(array(29, 5))
IMAGE = jnp.asarray(np.random.default_rng(1).integers(0, 13, (1, 6, 7)), jnp.int32)
INTO: dict[str, Callable[..., Any]] = {
    "gather": lambda a, x: jnp.concatenate([a, x[SOME]], 1),
    "two gathers": lambda a, x: jnp.concatenate([jnp.concatenate([a, x[SOME]], 1), x[SOME[::-1]]], 1),
    "scatter": lambda a, x: jnp.concatenate([a, jnp.zeros((29, 7)).at[SOME[:13]].add(x)], 1),
    "sum of rows": lambda a, x: jnp.concatenate([a, jax.ops.segment_sum(x[SOME] * 1.5, SOME[::-1], 29)], 1),
    "places": lambda a, x: jnp.concatenate([SOME[:13, None], jnp.argmax(x, 1, keepdims=True).astype(jnp.int32)], 1),
    "a border": lambda a, x: jax.lax.conv_general_dilated(
        x[IMAGE], jnp.ones((3, 3, 7, 5)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    ),
}


@pytest.mark.parametrize("name", INTO)
def test_kernels_that_write_side_by_side_make_parts_of_concatenations(name: str) -> None:
    """Inside a concatenation, and inside a convolution's border, a result lies with gaps between its rows."""
    fast = xcoexec.jit(INTO[name], strategy="host", strict=True)
    got, want = np.asarray(fast(BESIDE, X)), np.asarray(INTO[name](BESIDE, X))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    report = fast.report(BESIDE, X)
    assert report.ran == "xco" and {x.placement.split()[0] for x in report.layers} == {"host"}, report.why


def test_rows_that_others_read_are_stored() -> None:
    """Neither what a second reader needs nor a result of the program is left out."""
    fn = lambda x, s, t: (lambda y: (jax.ops.segment_sum(y * 2, t, 11), y.sum()))(x[s])
    for a, b in zip(run_host(fn, X, *EDGES), oracles(fn, X, *EDGES), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


LEFT = {
    "two rows each": (
        lambda x, i: jax.vmap(lambda a: jax.lax.dynamic_slice(x, (a, 0), (2, 7)))(i),
        (X, index(7, 4)),
        "whole rows",
    ),
    "a function of what is there": (lambda x, i: x.at[i].apply(jnp.exp), (X, jnp.asarray([3, 5])), "whole rows"),
    "another fill": (lambda x, i: x.at[i].get(mode="fill", fill_value=3.0), (X, SOME), "whole rows"),
    "integers that are filled": (lambda x, i: x.at[i].get(mode="fill"), (index(9, 13, 3), SOME), "whole rows"),
    "greatest of integers": (lambda x, i: jax.ops.segment_max(x, i, 13), (index(9, 29, 3), SOME), "scatter-max into"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_stays_with_xla(name: str) -> None:
    fn, args, reason = LEFT[name]
    errors = [
        x.host_error for x in stages_of(fn, *args)[1].layers if x.group.anchor.prim.startswith(("gather", "scatter"))
    ]
    assert len(errors) == 1 and reason in errors[0]
    np.testing.assert_array_equal(xcoexec.jit(fn, strategy="host")(*args), jax.jit(fn)(*args))
