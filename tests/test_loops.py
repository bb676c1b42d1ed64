"""Loops of known length (`scan`, `fori_loop`) on kernels: every kind of operand, both ways of sharing turns."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import xcoexec
from xcoexec import CoexecWarning
from xcoexec.codegen.kernels import loops
from xcoexec.codegen.kernels.loops import NAMES
from xcoexec.codegen.program import Op
from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.codegen.target import target
from xcoexec.frontend.trace import paths, trace, weight_leaves
from xcoexec.ir.plan import Plan
from xcoexec.measure import device_layers

from .oracle import oracles, worst
from .standin import StandIn
from .support import array, build_on, carried, error, run_host, stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

Case = tuple[Callable[..., Any], tuple[Any, ...]]
W, U, H = array(32, 32, seed=1) * 0.3, array(16, 32, seed=2) * 0.3, array(5, 32, seed=3)


def rnn(w: Any, u: Any, x: Any, h: Any, **options: Any) -> Any:
    def turn(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ w + x @ u)
        return h, h

    return lax.scan(turn, h, x, **options)


def swapping(w: Any, a: Any, b: Any) -> Any:
    return lax.scan(lambda c, _: ((c[1], jnp.tanh(c[0] @ w)), None), (a, b), None, length=5)


def counting(x: Any) -> Any:
    def turn(c: Any, x: Any) -> Any:
        i, s, odd = c
        return (i + 1, s + x * i, ~odd), (i, odd, s)

    return lax.scan(turn, (jnp.int32(0), jnp.zeros(7, x.dtype), jnp.zeros(3, bool)), x)


def nested(w: Any, x: Any, h: Any) -> Any:
    def turn(h: Any, x: Any) -> Any:
        h, _ = lax.scan(lambda h, _: (jnp.tanh(h @ w) + x, None), h, None, length=3)
        return h, h.sum(-1)

    return lax.scan(turn, h, x)


def convolving(k: Any, x: Any) -> Any:
    conv = lambda c: lax.conv_general_dilated(c, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.scan(lambda c, _: (jax.nn.relu(conv(c)) * 0.5, c.mean(2)), x, None, length=5)


def sliding(x: Any) -> Any:
    def turn(i: Any, c: Any) -> Any:
        return lax.dynamic_update_slice(c, lax.dynamic_slice(c, (i, 0), (1, 7)) * 2 + 1, (i + 1, 0))

    return lax.fori_loop(0, 5, turn, x)


def gradient(w: Any, u: Any, x: Any, h: Any) -> Any:
    loss = lambda w: sum(jnp.sum(v**2) for v in jax.tree_util.tree_leaves(rnn(w, u, x, h)))
    return jax.grad(loss)(w)


def around(w: Any, x: Any, h: Any) -> Any:
    """Layers before and behind a loop, whose results lie inside a concatenation."""
    last, ys = lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h * 2), h, jnp.exp(x))
    return jnp.concatenate([last, ys[-1], ys[0]], 1) * 2, ys.transpose(1, 0, 2)


def halving(w: Any, x: Any) -> Any:
    """Until the norm is small: how many turns depends on the numbers."""
    big = lambda c: jnp.linalg.norm(c[1]) > 0.05
    return lax.while_loop(big, lambda c: (c[0] + 1, jnp.tanh(c[1] @ w) * 0.5), (0, x))


def doubling(n: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 1000, lambda c: (c[0] * 2 + 1, c[1] + c[0]), (n, jnp.int32(0)))


def decoding(w: Any, e: Any, token: Any) -> Any:
    """A decoder that feeds its own tokens back until it has written enough of them."""

    def turn(c: Any) -> Any:
        i, h, token, written = c
        h = jnp.tanh(h @ w + e[token])
        token = jnp.arange(8, dtype=jnp.int32)[jnp.argmax(h[:8])]
        return i + 1, h, token, written.at[i].set(token)

    return lax.while_loop(lambda c: c[0] < 6, turn, (0, jnp.zeros(32), token, jnp.zeros(9, jnp.int32)))


def layers(ws: Any, b: Any, x: Any) -> Any:
    """Layers of one shape, whose weights lie in one array."""
    return lax.scan(lambda h, p: (jax.nn.relu(h @ p[0] + p[1]), h.mean(-1)), x, (ws, b))


def stacked(ws: Any, h: Any, **options: Any) -> Any:
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), h, ws, **options)


def counted(n: Any, w: Any, h: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, h: jnp.tanh(h @ w) + i, h)


def halving_often(w: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (halving(w, c + x)[1], c.sum()), xs[0], xs)


def settling(w: Any, x: Any, n: Any) -> Any:
    """Each item until it has had its own number of turns, or is small."""

    def one(x: Any, n: Any) -> Any:
        on = lambda c: (c[1] < n) & (jnp.abs(c[0]).max() > 0.01)
        return lax.while_loop(on, lambda c: (jnp.tanh(c[0] @ (w.T + w)) * 0.4, c[1] + 1), (x, 0))

    for _ in range(n.ndim):
        one = jax.vmap(one)
    return one(x, n)


CASES: dict[str, Case] = {
    **{f"{n} turns": (rnn, (W, U, array(n, 5, 16), H)) for n in (1, 2, 3, 8)},
    "backwards": (lambda *a: rnn(*a, reverse=True), (W, U, array(7, 5, 16), H)),
    "swapping": (swapping, (W, H, array(5, 32))),
    "counting": (counting, (array(9, 7),)),
    "nested": (nested, (W, array(6, 5, 32), H)),
    "convolving": (convolving, (array(3, 3, 8, 8) * 0.3, array(2, 9, 7, 8))),
    "sliding": (sliding, (array(9, 7),)),
    "gradient": (gradient, (W, U, array(7, 5, 16), H)),
    "around": (around, (W, array(4, 5, 32), H)),
    "counter in the body": (lambda w, h: lax.fori_loop(0, 9, lambda i, h: jnp.tanh(h @ w) + i, h), (W, H)),
    "a literal": (lambda x: lax.scan(lambda c, v: (c + 1.0, v * c), 0.0, x), (array(9, 7),)),
    "only copies": (lambda x: lax.scan(lambda c, _: (c, c), x, None, length=3), (array(9, 7),)),
    "one value in two places": (
        lambda x: lax.scan(lambda c, v: ((v * 2,) * 2, (c[0],) * 2), (x[0],) * 2, x),
        (array(4, 3),),
    ),
    "weights by turn": (stacked, (array(6, 32, 32) * 0.3, H)),
    "until": (halving, (W, H)),
    "until, in integers": (doubling, (jnp.int32(3),)),
    "until, without a turn": (doubling, (jnp.int32(3000),)),
    "a length that is computed": (counted, (jnp.int32(7), W, H)),
    "until, for each item": (settling, (W, array(5, 32), np.array([3, 0, 9, 1, 2], np.int32))),
    "until, for each item of each row": (settling, (W, array(2, 3, 32), np.array([[3, 0, 9], [1, 2, 30]], np.int32))),
    "until, inside of a loop": (halving_often, (W, array(4, 5, 32))),
    "a decoder": (decoding, (W, array(8, 32), jnp.int32(2))),
    "layers": (layers, (array(6, 32, 32) * 0.3, array(6, 32), H)),
    "layers backwards": (lambda *a: stacked(*a, reverse=True), (array(5, 32, 32) * 0.3, H)),
    "beside a large state": (
        lambda ws, b, *state: (layers(ws, b, state[-1]), [v + 1.0 for v in state]),
        (array(3, 32, 32) * 0.3, array(3, 32), *(array(3, seed=i) for i in range(200)), H),
    ),
    "wide layers": (stacked, (array(2, 300, 300) * 0.05, array(3, 300))),
    "softmax": (lambda x: lax.scan(lambda c, v: (jax.nn.softmax(c + v), jnp.max(c, -1)), x[0], x), (array(8, 5, 32),)),
    "an array of the body": (
        lambda x: lax.scan(lambda c, v: (c + np.arange(7.0, dtype=np.float32), v), x[0], x),
        (array(3, 7),),
    ),
}


def run(fn: Callable[..., Any], args: Any, weights: int, threads: int, how: str) -> list[np.ndarray]:
    """The leaves by kernels alone; fails if any layer cannot run there, or no loop is there."""
    folded, graph = stages_of(fn, *args, weights=weights)
    assert not [x.host_error for x in graph.layers if x.host_error]
    assert any(op.prim in ("scan", "while") for op in graph.program.ops)
    leaves = jax.tree_util.tree_leaves(args)
    consts = folded.constants(leaves[:weights])
    segment = host.build(graph.program, threads, pick=lambda groups, names, n: how if how in names else names[0])
    loops = [s for s in segment.steps if s.kernel == "loop"]
    assert loops and all(s.shared == (threads > 1 and how != "alone") for s in loops)
    call = host.Call(segment, [carried(x) for x in leaves[weights:]], [consts[v] for v in graph.program.consts])
    call()
    made = dict(zip(folded.inputs, leaves[weights:], strict=True))  # some results are operands
    made.update(zip(graph.program.outputs, call(), strict=True))  # the second call finds what the first one has left
    return [np.array(made[v]) for v in folded.outputs]


@pytest.mark.parametrize(("threads", "how", "weights"), [(1, "alone", 0), (2, "together", 1), (5, "two", 2)])
@pytest.mark.parametrize("name", CASES)
def test_turns_on_kernels(name: str, threads: int, how: str, weights: int) -> None:
    fn, args = CASES[name]
    known = max(min(weights, len(args) - 1), name == "convolving")
    assert worst(run(fn, args, known, threads, how), oracles(fn, *args)) < 1e-5


@pytest.mark.parametrize("name", CASES)
def test_turns_inside_a_program(name: str) -> None:
    fn, args = CASES[name]
    fast = xcoexec.jit(fn, strategy="host", strict=True)
    got, plain = fast(*args), jax.jit(fn)(*args)
    assert worst(got, oracles(fn, *args)) < 1e-5
    for a, b in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(plain), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
    report = fast.report(*args)
    assert report.ran == "xco" and any("loop" in x.algorithm for x in report.layers)


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell, nn.OptimizedLSTMCell, nn.SimpleCell])
def test_recurrent_layers(cell: Any) -> None:
    """Products of the input are made for all turns at once, products of the state turn by turn."""
    module = nn.RNN(cell(24))
    x = array(3, 9, 13)
    params = module.init(jax.random.key(0), x)
    fast = xcoexec.jit(module.apply, strategy="host")
    want = jax.jit(module.apply)(params, x)
    np.testing.assert_allclose(fast(params, x), want, rtol=2e-5, atol=2e-6)
    algorithms = [x.algorithm for x in fast.report(params, x).layers]
    assert algorithms.count("loop") == 1 and any(a.startswith("gem") for a in algorithms)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 37), st.integers(1, 21), st.booleans(), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_recurrences_of_any_size(turns: int, batch: int, n: int, k: int, back: bool, threads: int) -> None:
    args = (array(n, n) * 0.2, array(k, n, seed=1) * 0.2, array(turns, batch, k), array(batch, n))
    fn = lambda *a: rnn(*a, reverse=back)
    assert worst(run(fn, args, 2, threads, "together"), oracles(fn, *args)) < 1e-5


def test_a_device_of_its_own_hands_loops_to_the_host() -> None:
    """The relay has the host half run all turns, for both results of the loop."""
    relay = Relay(StandIn(delay=1e-4))
    x = array(6, 5, 32)
    fn = lambda w, x: [x + 1 for x in nested(w, x, H)]
    exe = build_on(relay, fn, W, x, Plan.uniform(1.0))
    for _ in range(3):
        assert worst(exe.call([x]), oracles(fn, W, x)) < 1e-5
    assert exe.lowered is not None
    assert [s.calls for s in exe.lowered.sites.values()] == [3]


def test_calls_of_several_threads() -> None:
    """The team is one caller's; the others run their turns alone."""
    args = (W, U, array(8, 5, 16), H)
    fast = xcoexec.jit(rnn, strategy="host", strict=True, threads=2)
    want = [np.asarray(x) for x in fast(*args)]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(100):
            got = fast(*args)
            if not all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# -- what is computed for all turns at once ----------------------------------------------------------


def traced(fn: Callable[..., Any], *args: Any) -> tuple[Op, ...]:
    values, tree = jax.tree_util.tree_flatten((args, {}))
    return trace(fn, values, tree, paths(tree)).ops


def test_products_of_the_input_leave_the_loop() -> None:
    ops = traced(rnn, W, U, array(6, 5, 16), H)
    (loop,) = (op for op in ops if op.prim == "scan")
    outside = [op for op in ops if op.prim == "dot_general"]
    assert [op.out.shape for op in outside] == [(6, 5, 32)]
    assert loop.body is not None
    assert [op.out.shape for op in loop.body.ops if op.prim == "dot_general"] == [(5, 32)]


def handing_on(w: Any, x: Any, h: Any) -> Any:
    """The product of an item goes to the next turn, or out, and nothing inside of the loop reads it."""

    def turn(c: Any, v: Any) -> Any:
        y = v @ w
        return (y, jnp.tanh(c[0]) + c[1], v), (y, v)

    return lax.scan(turn, (h, h, x[0]), x)


def test_what_leaves_the_loop_may_be_handed_to_the_next_turn() -> None:
    args = array(16, 32, seed=2), array(6, 5, 16), H
    (loop,) = (op for op in traced(handing_on, *args) if op.prim == "scan")
    assert loop.body is not None and "dot_general" not in [op.prim for op in loop.body.ops]
    got = xcoexec.jit(handing_on, strategy="host", strict=True)(*args)
    assert worst(got, oracles(handing_on, *args)) < 1e-5


def test_cheap_work_stays_in_the_loop() -> None:
    ops = traced(lambda x: lax.scan(lambda c, v: (c + jnp.exp(v), None), x[0], x), array(6, 5))
    assert "exp" not in [op.prim for op in ops]


def test_what_no_turn_changes_is_computed_once() -> None:
    ops = traced(lambda w, x: lax.scan(lambda c, v: (c @ (w.T + w) + v, None), x[0], x), W, array(6, 5, 32))
    (loop,) = (op for op in ops if op.prim == "scan")
    assert loop.body is not None and [op.prim for op in loop.body.ops] == ["dot_general", "add"]


@pytest.mark.parametrize(("size", "inside"), [(32, 0), (256, 1)])
def test_casts_of_small_weights_leave_the_loop(size: int, inside: int) -> None:
    """Each turn would widen them again; large ones are read as they are stored."""
    w, h = jnp.zeros((size, size), jnp.bfloat16), jnp.zeros((1, size), jnp.float32)
    fn = lambda w, h: lax.scan(lambda c, _: (jnp.tanh(c @ w.astype(c.dtype)), None), h, None, length=5)[0]
    (loop,) = (op for op in traced(fn, w, h) if op.prim == "scan")
    assert loop.body is not None
    assert [op.prim for op in loop.body.ops].count("convert_element_type") == inside


def test_what_no_turn_of_an_unending_loop_changes_is_computed_once() -> None:
    fn = lambda w, x: lax.while_loop(lambda c: c.sum() < 3, lambda c: c @ (w.T + w) * 2, x)
    ops = traced(fn, W, array(5, 32))
    (loop,) = (op for op in ops if op.prim == "while")
    assert loop.body is not None and [op.prim for op in loop.body.ops] == ["dot_general", "mul"]
    assert "transpose" in [op.prim for op in ops]


def test_neighbouring_steps_of_one_item_are_one() -> None:
    """Whoever takes the first does all of them: a turn of scalars has no step that others wait for in between."""
    fn, args = CASES["until, in integers"]
    _, graph = stages_of(fn, *args)
    segment = host.build(graph.program, 2, pick=lambda groups, names, n: names[0])
    (loop,) = (s for s in segment.steps if s.shared)
    assert len(loop.inner) == 2 and all(s.items == 1 for s in loop.inner)  # the condition, and the rest


def test_weights_of_a_loop_are_found() -> None:
    def fn(p: Any, x: Any, h: Any) -> Any:
        both = jnp.concatenate([p["a"], p["b"]], 1)  # as optimised LSTM cells do
        return lax.scan(lambda h, x: (jnp.tanh(h @ both)[:, :32] + x, None), h, x)[0]

    args = ({"a": W, "b": W}, array(6, 5, 32), H)
    values, tree = jax.tree_util.tree_flatten((args, {}))
    assert weight_leaves(trace(fn, values, tree, paths(tree))) == (0, 1)


def test_weights_that_a_loop_walks_are_found() -> None:
    args = (array(6, 32, 32), array(6, 32), H)
    values, tree = jax.tree_util.tree_flatten((args, {}))
    assert weight_leaves(trace(layers, values, tree, paths(tree))) == (0,)


@pytest.mark.parametrize("how", NAMES)
def test_ways_are_compared_over_all_turns(how: str) -> None:
    """What is measured has the loop's own literals, on which it depends how many turns there are."""
    fn = lambda x: lax.while_loop(lambda c: c[0] < 23, lambda c: (c[0] + 1, jnp.tanh(c[1]) * 0.75), (0, x))
    _, graph = stages_of(fn, array(5, 41))
    (group,) = (g for g in graph.program.groups if g.anchor.prim == "while")
    call, _ = host._alone((), None, ((group, frozenset()),), how, 2, target())
    assert [int(x) for x in call() if x.shape == ()] == [23]


# -- what kernels leave to XLA -----------------------------------------------------------------------


LEFT: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "no turns": (lambda x: lax.scan(lambda c, v: (c + 1.0, v * 3), 0.0, x), (array(0, 7),), "without elements"),
    "a sort": (lambda x: lax.scan(lambda c, v: (jnp.sort(c) + v, None), x[0], x), (array(8, 32),), "sort"),
    "u8 inside": (lambda x: lax.scan(lambda c, v: (c + v.astype(jnp.uint8), None), x[0], x), (array(8, 3),), "uint8"),
    "no operands": (lambda x: lax.fori_loop(0, 0, lambda i, c: c * 2, x), (array(8, 3),), "without turns"),
}


@pytest.mark.parametrize("name", LEFT)
def test_loops_that_stay_with_xla(name: str) -> None:
    fn, args, reason = LEFT[name]
    _, graph = stages_of(fn, *args)
    errors = [x.host_error for x in graph.layers if x.group.anchor.prim == "scan"]
    assert len(errors) == 1 and reason in errors[0]
    fast = xcoexec.jit(fn, strategy="host")
    for a, b in zip(jax.tree_util.tree_leaves(fast(*args)), jax.tree_util.tree_leaves(jax.jit(fn)(*args)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_loops_with_effects_keep_them() -> None:
    seen: list[float] = []

    def turn(c: Any, v: Any) -> Any:
        jax.debug.callback(lambda x: seen.append(float(x)), v, ordered=True)
        return c + v, None

    fast = xcoexec.jit(lambda x: lax.scan(turn, 0.0, x)[0], strategy="host")
    with pytest.warns(CoexecWarning, match="side effects"):
        assert float(fast(jnp.arange(4.0))) == 6.0
    jax.effects_barrier()
    assert seen == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_turn_writes_nothing_that_nobody_reads(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Products of bf16 read a narrow form of what the one before has made, and nobody its f32."""
    seen: list[str] = []
    add = loops._Loop._add

    def noted(self: Any, *where: Any) -> None:
        seen.append(repr(self.turn.steps))
        add(self, *where)

    monkeypatch.setattr(loops._Loop, "_add", noted)
    w = [array(64, 96), array(96, 64, seed=1), array(64, 32, seed=2)]
    narrow = [v.astype(dtype) for v in w]

    def turns(w: Any, xs: Any) -> Any:
        def turn(h: Any, x: Any) -> Any:
            y = jax.nn.relu(jax.nn.relu((h + x) @ w[0]) @ w[1])
            return h + 1, y @ w[2]

        return lax.scan(turn, jnp.zeros((48, 64), dtype), xs)[1]

    xs = array(5, 48, 64, seed=3).astype(dtype)
    got = run_host(turns, narrow, xs, weights=1, threads=2)[0]
    a, b, c, x = (np.asarray(v, np.float64) for v in (*narrow, xs))
    x = x + np.arange(5)[:, None, None]
    want = np.maximum(np.maximum(x @ a, 0) @ b, 0) @ c
    assert error(np.asarray(got, np.float64), want) < (1e-5 if dtype == "float32" else 2e-2)
    beside = re.findall(r"'rounded bfloat16', \d+, (True|False)", seen[0])  # whether the f32 are written as well
    unit = target().unit("bfloat16")
    vectors = dtype == "bfloat16" and unit is not None and unit.kernel == "gemm"
    assert beside.count("False") == len(beside) and (beside or not vectors)


# -- loops that end as their operands say -------------------------------------------------------------

SQUARE, STEP = array(32, 32, seed=7) / 8, jnp.int32(1)


def in_steps(w: Any, x: Any, step: Any) -> Any:
    """Ten turns for a step of 1; with a step of 0, as made-up arrays have it, it never ends."""
    _, y = lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + step, jnp.tanh(c[1] @ w)), (0, x @ w))
    return y @ w


def inside(w: Any, x: Any, step: Any) -> Any:
    """The same inside of a loop of known length, of a branch and of a function."""
    branch = jax.jit(lambda c: lax.cond(step > 5, lambda c: c, lambda c: in_steps(w, c, step), c))
    return lax.scan(lambda c, _: (branch(c), None), x, None, length=2)[0]


ENDLESS = {"loop": in_steps, "nested": inside}


@pytest.mark.parametrize("strategy", ["host", "auto", "device", "layer_switch"])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_loop_is_not_tried_on_made_up_arrays(name: str, strategy: str, own_cache: Any) -> None:
    """In a process of its own: where it is, this never ends."""
    text = f"""
import jax, numpy as np, xcoexec
from tests.test_loops import ENDLESS, H, SQUARE, STEP
fast = xcoexec.jit(ENDLESS[{name!r}], strategy={strategy!r}, wait=True)
x = jax.numpy.tile(H, (40, 1))
got = fast(SQUARE, x, STEP)
np.testing.assert_allclose(got, jax.jit(ENDLESS[{name!r}])(SQUARE, x, STEP), rtol=1e-4, atol=1e-5)
assert "fallback" not in fast.report(SQUARE, x, STEP).why, fast.report(SQUARE, x, STEP).why
print("ended")
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False)
    assert "ended" in ran.stdout, ran.stderr[-2000:]


def test_no_made_up_arrays_for_what_is_given_away() -> None:
    """Of a donated array a shape is kept, so that the function cannot be tried: plain jax.jit, which says so."""
    fast = xcoexec.jit(in_steps, donate_argnums=1, strategy="host", wait=True)
    with pytest.warns(CoexecWarning, match="with plain jax.jit: how often a loop turns is up to its operands"):
        got = fast(SQUARE, H + 0, STEP)
    np.testing.assert_allclose(got, jax.jit(in_steps)(SQUARE, H, STEP), rtol=1e-5, atol=1e-5)


def test_which_layers_may_never_end() -> None:
    bounded = lambda w, x, step: lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=3)[0] + step
    for fn, unbounded in ((in_steps, True), (inside, True), (bounded, False)):
        graph = stages_of(lambda w, x, fn=fn: fn(w, x, STEP + x[0, 0].astype(int) * 0), SQUARE, H, weights=1)[1]
        pieces = [device_layers.whole(x) for x in graph.layers]
        assert any(not device_layers.measurable(p) for p in pieces) == unbounded
        if unbounded:
            with pytest.raises(ValueError, match="may never end"):
                device_layers.seconds(pieces, set(graph.program.consts), lambda v: H, lambda v: H, None)
