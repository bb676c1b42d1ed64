"""Both halves of every split concatenate to the whole, for every primitive, dim and range; negative cases explain
themselves.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from xcoexec.codegen.rules import reference
from xcoexec.errors import SplitError
from xcoexec.ir.geometry import axis_of, cut
from xcoexec.partition.split import split

from .oracle import oracle
from .support import array, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")


def halves_make_the_whole(fn: Any, args: tuple[Any, ...], axis: int, at: int, weights: int = 0) -> None:
    """Splits the (only) layer of `fn` at `at` along `axis` and compares with the unsplit layer, all in float64."""
    folded, graph = stages_of(fn, *args, weights=weights)
    (layer,) = graph.layers
    leaves = jax.tree_util.tree_leaves(args)
    n = len(jax.tree_util.tree_leaves(args[:weights]))
    env = dict(zip(graph.program.inputs, leaves[n:], strict=True)) | {
        v: folded.constants(leaves[:n])[v] for v in graph.program.consts
    }
    wide = {v: np.asarray(x, np.float64) for v, x in env.items()}
    whole = oracle(fn, *args)
    parts = []
    for start, stop in ((0, at), (at, layer.out.shape[axis])):
        part = split(layer.ops, axis, start, stop)
        inputs = dict(wide)
        for s in part.slices:
            inputs[s.value] = wide[s.source][(slice(None),) * s.axis + (slice(s.start, s.stop),)]
        out = _run(part.ops, inputs, part.out)
        assert out.shape == part.out.shape
        parts.append(out)
    np.testing.assert_allclose(np.concatenate(parts, axis), whole, rtol=1e-12, atol=1e-12)


def _run(ops: Any, env: dict[Any, Any], out: Any) -> np.ndarray:
    env = dict(env)
    reference.run_ops(ops, env, lambda a: np.asarray(a, np.float64))
    return env[out]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_convolution(data: st.DataObject) -> None:
    draw = data.draw
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    per_in, per_out = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    size, window = draw(st.integers(5, 12)), draw(st.integers(1, 4))
    stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    padding = [(draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in range(2)]
    x, w = array(2, size, size, per_in * groups), array(window, window, per_in, per_out * groups, seed=1)
    b = array(per_out * groups, seed=2)

    def fn(p: Any, x: Any) -> Any:
        y = lax.conv_general_dilated(
            x,
            p[0],
            (stride, stride),
            padding,
            rhs_dilation=(dilation, dilation),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        return jax.nn.relu(y + p[1])

    shape = jax.eval_shape(fn, (w, b), x).shape
    if 0 in shape:
        return
    axis = draw(st.sampled_from([a for a in range(4) if shape[a] > (per_out if a == 3 and groups > 1 else 1)] or [0]))
    unit = per_out if axis == 3 and groups > 1 else 1
    if shape[axis] <= unit:
        return
    at = unit * draw(st.integers(1, shape[axis] // unit - 1))
    reach = (padding[axis - 1][0], (window - 1) * dilation + 1, stride) if axis in (1, 2) else (0, 1, 1)
    _parts_or_padding(fn, ((w, b), x), axis, at, *reach)


def _parts_or_padding(fn: Any, args: Any, axis: int, at: int, low: int, reach: int, stride: int) -> None:
    """Two parts make the whole; where one of them reads padding alone there are none. `reach`: of a window, in rows."""
    size, end = args[-1].shape[axis], jax.eval_shape(fn, *args).shape[axis]
    rows = stride > 1 or reach > 1 or low > 0
    reads = lambda a, b: not rows or max(0, a * stride - low) < min(size, (b - 1) * stride - low + reach)
    if reads(0, at) and reads(at, end):
        halves_make_the_whole(fn, args, axis, at, weights=len(args) - 1)
    else:
        with pytest.raises(SplitError, match="padding"):
            halves_make_the_whole(fn, args, axis, at, weights=len(args) - 1)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_pooling(data: st.DataObject) -> None:
    draw = data.draw
    size, window, stride = draw(st.integers(4, 10)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pad = draw(st.integers(0, window - 1))
    kind = draw(st.sampled_from([(lax.max, -np.inf), (lax.add, 0.0), (lax.min, np.inf)]))
    x = array(2, size, size, 3)
    fn = lambda x: lax.reduce_window(
        x,
        np.float32(kind[1]),
        kind[0],
        (1, window, window, 1),
        (1, stride, stride, 1),
        ((0, 0), (pad, pad), (pad, pad), (0, 0)),
    )
    shape = jax.eval_shape(fn, x).shape
    axis = draw(st.integers(0, 3))
    if shape[axis] < 2:
        return
    at = draw(st.integers(1, shape[axis] - 1))
    _parts_or_padding(fn, (x,), axis, at, *((0, 1, 1) if axis in (0, 3) else (pad, window, stride)))


LAYERS = {
    "dot": (lambda a, b: jax.nn.relu(a @ b), [(6, 5), (5, 8)], (0, 1)),
    "batched dot": (lambda a, b: jnp.einsum("bmk,bkn->bmn", a, b), [(4, 6, 5), (4, 5, 8)], (0, 1, 2)),
    "elementwise": (lambda a, b: jnp.tanh(a) * b + 1, [(6, 5, 4), (1, 5, 1)], (0, 1, 2)),
    "sum": (lambda a: a.sum(1), [(6, 5, 4)], (0, 1)),
    "transpose": (lambda a: a.transpose(2, 0, 1), [(6, 5, 4)], (0, 1, 2)),
    "reshape": (lambda a: a.reshape(6, 4, 5), [(6, 20)], (0,)),
    "concatenate": (lambda a, b: jnp.concatenate([a, b], 1), [(6, 5), (6, 7)], (0, 1)),
    "pad": (lambda a: lax.pad(a, np.float32(0), ((1, 1, 0), (0, 0, 0))), [(4, 6)], (1,)),
    "slice": (lambda a: a[1:, ::2], [(6, 8)], (0, 1)),
    "reverse": (lambda a: a[::-1], [(6, 4)], (0, 1)),
    "broadcast": (lambda a: lax.broadcast_in_dim(a, (6, 5, 4), (1,)), [(5,)], (0, 1, 2)),
    "swish": (lambda a, b: jax.nn.swish(a @ b), [(6, 5), (5, 8)], (0, 1)),
    "gradient by the weights of a depthwise convolution": (
        lambda x, g: lax.conv_general_dilated(
            *(x, g, (1, 1), ((1, 1), (0, 1)), (1, 1), (2, 1)),
            dimension_numbers=lax.ConvDimensionNumbers((3, 0, 1, 2), (3, 0, 1, 2), (2, 3, 0, 1)),
            batch_group_count=5,
        ),
        [(2, 6, 7, 5), (2, 3, 6, 5)],
        (3,),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_every_cut_of_every_layer(name: str) -> None:
    fn, shapes, axes = LAYERS[name]
    args = tuple(array(*s, seed=i) for i, s in enumerate(shapes))
    size = jax.eval_shape(fn, *args).shape
    for axis in axes:
        for at in range(1, size[axis]):
            halves_make_the_whole(fn, args, axis, at)


def _only(fn: Any, *args: Any) -> Any:
    return stages_of(fn, *args)[1].layers[0].group


def test_negative_cases_explain_themselves() -> None:
    grouped = _only(
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
        ),
        array(1, 4, 4, 4),
        array(3, 3, 2, 6),
    )
    with pytest.raises(SplitError, match="cut a group; groups are of 3"):
        split(grouped.ops, 3, 0, 2)
    with pytest.raises(SplitError, match="regroups dimension"):
        split(_only(lambda a: a.reshape(12), array(3, 4)).ops, 0, 0, 6)
    with pytest.raises(SplitError, match="no split rule"):
        split(_only(lambda a: jnp.cumsum(a, 0), array(3, 4)).ops, 0, 0, 1)
    with pytest.raises(SplitError, match="non-empty range"):
        split(grouped.ops, 3, 4, 4)
    with pytest.raises(SplitError, match="padded dimension"):
        split(_only(lambda a: lax.pad(a, np.float32(0), ((1, 0, 0),)), array(5)).ops, 0, 0, 2)
    with pytest.raises(SplitError, match="lhs_dilation"):
        up = _only(
            lambda x, w: lax.conv_general_dilated(
                x, w, (1, 1), ((1, 1), (1, 1)), lhs_dilation=(2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            array(1, 4, 4, 4),
            array(3, 3, 4, 6),
        )
        split(up.ops, 1, 0, 2)
    turns = lambda x: lax.scan(lambda c, a: (jnp.tanh(c + a), c), x[0], x)[1] @ x
    with pytest.raises(SplitError, match="2 results"):  # of which the first one is not read
        split([op for y in stages_of(turns, array(4, 4))[1].layers for op in y.ops], 1, 0, 2)
    with pytest.raises(SplitError, match=r"whole and in part|two different parts"):
        split(
            [op for x in stages_of(lambda a: jnp.tanh(a) @ jnp.tanh(a), array(4, 4))[1].layers for op in x.ops], 1, 0, 2
        )


def test_axes_and_cuts() -> None:
    conv = _only(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"), array(1, 4, 6, 5), array(7, 4, 3, 3))
    assert axis_of(conv, "channel") == 1 and axis_of(conv, "rows") == 2
    flat = _only(lambda x, w: lax.conv_general_dilated(x, w, (), "VALID"), array(2, 3), array(4, 3))
    assert axis_of(flat, "channel") == 1 and axis_of(flat, "rows") is None
    assert [cut(10, 4, p) for p in (0.0, 0.3, 0.5, 0.9, 1.0)] == [0, 4, 4, 8, 10]
