"""Optimizers whose state lies in host memory: optax's own results, in every way of calling, and what bad input gets."""

from __future__ import annotations

import ctypes
import functools
import json
import pathlib
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import xcoexec
from benchmarks.offload import main
from xcoexec.codegen.program import Group, Program, Unsupported, Value
from xcoexec.codegen.runtime import host
from xcoexec.devices.queues import CudaQueues
from xcoexec.errors import CoexecWarning
from xcoexec.frontend.fold import fold
from xcoexec.frontend.trace import trace
from xcoexec.optim import OffloadState, home, movement, offload
from xcoexec.optim.balance import MOST_STEPS, Timing, device_rate, staying

pytestmark = pytest.mark.usefixtures("quick_xla")
SHAPES = {"first": (150, 130), "last": {"weights": (3, 70, 90), "bias": (90,)}}
TYPES = ("float32", "bfloat16", "float16")
Tree = Any


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves cross in several chunks, the last of which is shorter."""
    monkeypatch.setattr(movement, "CHUNK", 7000)
    monkeypatch.setattr(home, "CHUNK", 7000)


def tree(dtype: str, seed: int = 0) -> Tree:
    rng = np.random.default_rng(seed)
    one = lambda shape: jnp.asarray(rng.standard_normal(shape), dtype)
    return jax.tree.map(one, SHAPES, is_leaf=lambda x: isinstance(x, tuple))


def gradients(params: Tree, i: float) -> Tree:
    """Some that follow from the parameters and differ from step to step."""
    one = lambda x: (0.3 * x + 0.1 * jnp.sin(i + 9 * x.astype(jnp.float32))).astype(x.dtype)
    return jax.tree.map(one, params)


def wide(params: Tree) -> Tree:
    return jax.tree.map(lambda x: x.astype(jnp.float32), params)


def stepper(tx: Any, jit: Callable[..., Any] = jax.jit) -> Callable[..., Any]:
    def step(params: Tree, state: Any, i: float) -> tuple[Tree, Any]:
        updates, state = tx.update(gradients(params, i), state, params)
        return optax.apply_updates(params, updates), state

    return jit(step)


@functools.partial(jax.jit, static_argnums=0)
def reference(tx: Any, masters: Tree, state: Any, grads: Tree) -> tuple[Tree, Any]:
    """A step of optax in f32, as it is by itself."""
    updates, state = tx.update(wide(grads), state, masters)
    return optax.apply_updates(masters, updates), state


def close(a: Tree, b: Tree, tolerance: float = 2e-6) -> None:
    """Asserts that two trees are the same, relative to the largest element of each leaf."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert np.shape(x) == np.shape(y) and x.dtype == y.dtype
        x, y = (np.asarray(v, np.float64) for v in (x, y))
        assert np.abs(x - y).max(initial=0.0) <= tolerance * max(np.abs(y).max(initial=0.0), 1e-6)


def _matrices(params: Tree) -> Tree:
    return jax.tree.map(lambda x: x.ndim > 1, params)


OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "adam": lambda: optax.adam(1e-2),
    "adamw": lambda: optax.adamw(optax.cosine_decay_schedule(1e-2, 20), weight_decay=0.1, mask=_matrices),
    "bf16 moments": lambda: optax.adamw(1e-2, mu_dtype=jnp.bfloat16),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "trace": lambda: optax.trace(0.9),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2)),
    "lion": lambda: optax.lion(1e-3),
    "rmsprop": lambda: optax.rmsprop(1e-3, momentum=0.9),
    "amsgrad": lambda: optax.amsgrad(1e-2),
    "averaged": lambda: optax.chain(optax.adam(1e-2), optax.ema(0.9)),
    "finite": lambda: optax.apply_if_finite(optax.adam(1e-2), 3),
    "noise": lambda: optax.chain(optax.add_noise(0.01, 0.5, 0), optax.adamw(1e-2)),
    "two kinds": lambda: optax.multi_transform(
        {"a": optax.adam(1e-2), "b": optax.sgd(0.1, momentum=0.9)}, {"first": "a", "last": "b"}
    ),
}
#: those of which the whole state is not elementwise, or of which there is none in f32
ON_THE_DEVICE: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": lambda: optax.sgd(0.1),
    "lamb": lambda: optax.lamb(1e-2),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=64),
}


def _same_as_optax(tx: Any, dtype: str, steps: int = 4) -> OffloadState:
    there = offload(tx)
    params = tree(dtype)
    state, masters, step = there.init(params), wide(params), stepper(there)
    expected = tx.init(masters)
    for i in range(steps):
        grads = jax.jit(gradients)(params, float(i))
        params, state = step(params, state, float(i))
        masters, expected = reference(tx, masters, expected, grads)
    close(params, jax.tree.map(lambda m: m.astype(dtype), masters), 2e-6 if dtype == "float32" else 1e-2)
    states, kept = there.fetch(state)
    close(*(jax.tree.map(_plain, x) for x in (states, expected)), 1e-2 if dtype == "float16" else 2e-6)
    for got, want in zip(jax.tree.leaves(kept), _masters(kept, masters), strict=True):
        close(got, want)
    return state


def _plain(x: Any) -> Any:
    return jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else x


def _masters(kept: Tree, masters: Tree) -> list[Any]:
    """The masters at the places of those that are kept."""
    leaves = jax.tree.leaves(kept, is_leaf=lambda x: x is None)
    return [m for k, m in zip(leaves, jax.tree.leaves(masters), strict=True) if k is not None]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_are_those_of_optax(name: str, dtype: str) -> None:
    state = _same_as_optax(OPTIMIZERS[name](), dtype)
    assert [leaf.index for leaf in state.home.division.leaves] == [0, 2]
    large = sum(x.size for x in jax.tree.leaves(tree(dtype)) if x.size >= home.LEAST)
    assert state.home.store.nbytes >= 4 * large * (1 if dtype == "float32" and name != "bf16 moments" else 1.5)
    assert all(x.size < home.LEAST for x in jax.tree.leaves((state.resident, state.masters)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ON_THE_DEVICE)
def test_what_is_not_elementwise_stays_on_the_device(name: str, dtype: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CoexecWarning)
        state = _same_as_optax(ON_THE_DEVICE[name](), dtype)
    stays = not state.home.division.leaves
    assert stays == (name in ("lamb", "adafactor") or (name == "sgd" and dtype == "float32"))
    assert bool([w for w in caught if "stay on the device" in str(w.message)]) == (name in ("lamb", "adafactor"))


def test_against_float64() -> None:
    """AdamW with decay, written down once more in NumPy."""
    rate, decay, b1, b2, eps = 1e-2, 0.1, 0.9, 0.999, 1e-8
    there = offload(optax.adamw(rate, b1, b2, eps, weight_decay=decay))
    params = tree("float32")
    state, step = there.init(params), stepper(there)
    p = [np.asarray(x, np.float64) for x in jax.tree.leaves(params)]
    m, v = ([np.zeros_like(x) for x in p] for _ in range(2))
    for t in range(1, 6):
        for k, g in enumerate(0.3 * x + 0.1 * np.sin(t + 9 * x) for x in p):
            m[k], v[k] = b1 * m[k] + (1 - b1) * g, b2 * v[k] + (1 - b2) * g * g
            p[k] = p[k] - rate * ((m[k] / (1 - b1**t)) / (np.sqrt(v[k] / (1 - b2**t)) + eps) + decay * p[k])
        params, state = step(params, state, float(t))
    for got, want in zip(jax.tree.leaves(params), p, strict=True):
        assert np.abs(np.asarray(got, np.float64) - want).max() < 2e-5


def test_numbers_that_need_all_gradients_are_late() -> None:
    init = lambda tx: offload(tx).init(tree("float32")).home.division
    assert not init(optax.adamw(1e-3)).late
    assert init(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))).late


def test_not_a_number_leaves_everything_as_it_was() -> None:
    there = offload(optax.apply_if_finite(optax.adam(1e-2), 3))
    params = tree("bfloat16")
    state = there.init(params)
    step = jax.jit(lambda p, s, g: there.update(g, s, p))
    updates, state = step(params, state, gradients(params, 0.0))
    params = optax.apply_updates(params, updates)
    before, _ = there.fetch(state)
    grads = jax.tree.map(lambda g: g.at[0].set(np.nan), gradients(params, 1.0))
    updates, state = step(params, state, grads)
    close(optax.apply_updates(params, updates), params, 0.0)
    after, _ = there.fetch(state)
    assert (int(before.notfinite_count), int(after.notfinite_count)) == (0, 1)
    close(after.inner_state, before.inner_state, 0.0)


# -- ways of calling
def _by_steps(run: Callable[..., Any], jit: Callable[..., Any] = jax.jit) -> None:
    """Asserts that `run(step, params, state)` makes three steps."""
    tx = optax.adamw(1e-2)
    there, params = offload(tx), tree("bfloat16")
    got, state = run(stepper(there, jit), params, there.init(params))
    want, plain = tree("bfloat16"), offload(tx)
    expected, step = plain.init(want), stepper(plain)
    for i in range(3):
        want, expected = step(want, expected, float(i))
    close(got, want, 1e-2)  # other programs round a gradient otherwise
    close(there.fetch(state), plain.fetch(expected), 1e-2)


def _three(step: Callable[..., Any], params: Tree, state: Any) -> Any:
    for i in range(3):
        params, state = step(params, state, float(i))
    return params, state


def test_without_jit() -> None:
    _by_steps(_three, lambda f: f)


def test_with_arrays_given_away() -> None:
    _by_steps(_three, functools.partial(jax.jit, donate_argnums=(0, 1)))


@pytest.mark.parametrize("strategy", ["auto", "host"])
def test_under_xcoexec_jit(strategy: str) -> None:
    _by_steps(_three, functools.partial(xcoexec.jit, strategy=strategy))


def test_in_a_scan() -> None:
    def run(step: Callable[..., Any], params: Tree, state: Any) -> Any:
        turn = lambda carry, i: (step(*carry, i), None)
        return jax.jit(lambda p, s: jax.lax.scan(turn, (p, s), jnp.arange(3.0))[0])(params, state)

    _by_steps(run)


def test_several_steps_in_one_program() -> None:
    _by_steps(lambda step, p, s: jax.jit(functools.partial(_three, step))(p, s))


def test_gradients_that_are_used_afterwards() -> None:
    there, params = offload(optax.adam(1e-2)), tree("float32")

    @jax.jit
    def step(params: Tree, state: Any) -> Any:
        grads = gradients(params, 0.0)
        updates, state = there.update(grads, state, params)
        return optax.apply_updates(params, updates), grads, state

    _, grads, state = step(params, there.init(params))
    close(grads, jax.jit(gradients)(params, 0.0), 0.0)
    there.fetch(state)


def test_gradients_of_another_type() -> None:
    """Gradients of f32 of parameters of bf16 keep their precision."""
    tx = optax.trace(0.0)
    there, params = offload(tx), tree("bfloat16")
    grads = jax.tree.map(lambda x: x + 1e-3, wide(params))
    _, state = jax.jit(there.update)(grads, there.init(params), params)
    states, _ = there.fetch(state)
    close(states.trace, grads, 1e-7)


def test_gradients_that_come_at_the_same_time() -> None:
    """XLA:CPU calls from several threads: no pass begins before the numbers of its step are there."""
    there, params = offload(optax.adam(1e-2)), tree("float32")
    state = there.init(params)
    step = stepper(there)
    want, _ = step(params, there.init(params), 0.0)
    params_now, state = jax.block_until_ready(step(params, state, 0.0))  # its own calls are over
    moves = next(iter(state.home._movements.values()))
    order: list[str] = []
    down = moves._queues.down

    def slow(target: int, source: int, nbytes: int) -> int:
        if target == moves._words.ctypes.data:
            time.sleep(0.05)
            order.append("words")
        else:
            order.append("gradient")
        return down(target, source, nbytes)

    words = np.array(moves._words)
    words[0] = 1
    grads = [np.ones(150 * 130, np.float32), np.ones(3 * 70 * 90, np.float32)]
    operands = [[g.ctypes.data, words.ctypes.data] for g in grads]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves._queues, "down", slow)
        threads = [threading.Thread(target=moves.start, args=(k, 0, operands[k])) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        moves.join(0, [operands[0][0], operands[1][0], 0, words.ctypes.data])
    assert order[0] == "words" and order.count("words") == 1
    assert state.home.store.steps == 2 and not state.home.store.error
    close(params_now, want)
    assert all((g != 1).all() for g in grads)


def test_two_states_at_a_time() -> None:
    there, params = offload(optax.adam(1e-2)), tree("float32")
    step = stepper(there)
    a, b = (params, there.init(params)), (params, there.init(params))
    for i in range(3):
        a, b = step(*a, float(i)), step(*b, float(i))
    close(a[0], b[0], 0.0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("tx", [optax.adam, optax.adamw])
def test_saved_and_loaded(tx: Any, dtype: str) -> None:
    there, params = offload(tx(1e-2)), tree(dtype)
    state, step = there.init(params), stepper(there)
    params, state = step(params, state, 0.0)
    again = there.load(params, there.fetch(state))
    one, two = step(params, state, 1.0), step(params, again, 1.0)
    close(one[0], two[0], 0.0)
    close(there.fetch(one[1]), there.fetch(two[1]), 0.0)


@pytest.mark.parametrize("memory", [None, 0.5, 1.0, 200_000, "1 MB"])
def test_what_stays_on_the_device(memory: Any) -> None:
    tx = optax.adam(1e-2)
    there, params = offload(tx, device_memory=memory), tree("float32")
    state = there.init(params)
    sizes = {0: 8 * 150 * 130, 2: 8 * 3 * 70 * 90}
    mine = {leaf.index for leaf in state.home.division.leaves}
    most = {None: 0, 0.5: sum(sizes.values()) // 2, 1.0: sum(sizes.values()), "1 MB": 1_000_000}.get(memory, memory)
    assert sum(n for i, n in sizes.items() if i not in mine) <= most
    assert there.nbytes(state) == sum(sizes[i] for i in mine)
    assert (mine == {0, 2}) == (memory is None) and (not mine) == (memory in (1.0, "1 MB"))
    got, _ = stepper(there)(params, state, 0.0)
    want, _ = reference(tx, params, tx.init(params), jax.jit(gradients)(params, 0.0))
    close(got, want)


def _timing(exposed: float, seconds: dict[int, float]) -> Timing:
    """Steps that took as long as they say, behind one that is not counted."""
    found = Timing()
    for factor in (50.0, 1.0, 1.0, 1.2):
        found.note(exposed * factor, {i: s * factor for i, s in seconds.items()})
    return found


SIZES = {0: 100, 1: 400, 2: 200, 3: 300}  # bytes; the host takes a second for a hundred


@pytest.mark.parametrize(
    "exposed, resident, room, device, want",
    [
        (0.5, (), 1000, 1e-3, {0}),  # gradients come in the order 3, 2, 1, 0: the last ones are what is waited for
        (1.0, (), 1000, 1e-3, {0}),
        (1.1, (), 1000, 1e-3, {0, 1}),
        (9.9, (), 1000, 1e-3, {0, 1, 2, 3}),
        (9.9, (), 350, 1e-3, {0, 2}),  # as far as there is room
        (9.9, (), 0, 1e-3, set()),
        (9.9, (), 1000, 0.1, set()),  # the device takes longer over these bytes
        (3.5, (0,), 600, 1e-3, {0, 1}),
        (0.0, (0, 1), 1000, 1e-3, {0, 1}),
        (-1.2, (0, 1), 1000, 1e-3, {1}),  # the host has time for the one
        (-9.0, (0, 1, 3), 1000, 1e-3, set()),
        (-0.5, (), 1000, 1e-3, set()),
    ],
)
def test_how_much_stays_follows_from_what_steps_took(
    exposed: float, resident: tuple[int, ...], room: float, device: float, want: set[int]
) -> None:
    took = {i: SIZES[i] / 100 for i in (3, 2, 1, 0) if i not in resident}
    assert staying(_timing(exposed, took), SIZES, resident, room, device) == want


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("tx", [optax.adam, optax.adamw])
def test_a_balanced_state_goes_on_as_before(tx: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it moves to the device: the next steps are the same ones."""
    there, other, params = offload(tx(1e-2), device_memory=1.0), offload(tx(1e-2)), tree(dtype)
    with monkeypatch.context() as patch:
        patch.setattr(home.Home, "room", 0)
        state, step = there.init(params), stepper(there)
    want, plain, reference_step = other.init(params), params, stepper(other)
    for i in range(8):
        params, state = step(params, state, float(i))
        plain, want = reference_step(plain, want, float(i))
        if i == 3:
            jax.block_until_ready(state.steps)
            timing, sizes = state.home.timing(), state.home.sizes
            assert timing is not None and set(timing.seconds) == set(sizes) and len(timing.exposed) == 4
            assert all(s > 0 for seconds in timing.seconds.values() for s in seconds)
            timing.exposed[:] = [1e3] * 4
            monkeypatch.setattr("xcoexec.optim.offloading.device_rate", lambda: 0.0)
            state = there.balance(params, state)
            assert there.nbytes(state) == 0 and set(state.home.resident) == set(sizes)
    assert there.balance(params, state) is state  # of the host nothing is measured now
    close(params, plain, 2e-6 if dtype == "float32" else 1e-2)
    close(there.fetch(state)[0], other.fetch(want)[0], 1e-2 if dtype == "float16" else 2e-6)


def test_a_part_comes_back_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    tx, params = optax.adamw(1e-2), tree("bfloat16")
    there, other = offload(tx, device_memory=8 * 150 * 130 + 4 * 150 * 130), offload(tx)
    state, step = there.init(params), stepper(there)
    want, plain, reference_step = other.init(params), params, stepper(other)
    assert set(state.home.resident) == {0}
    for i in range(8):
        params, state = step(params, state, float(i))
        plain, want = reference_step(plain, want, float(i))
        if i == 3:
            jax.block_until_ready(state.steps)
            timing = state.home.timing()
            assert timing is not None
            timing.exposed[:] = [-1e3] * 4
            state = there.balance(params, state)
            assert not state.home.resident and there.nbytes(state) == other.nbytes(want)
    close(params, plain, 1e-2)
    close(there.fetch(state), other.fetch(want), 2e-6)


def test_nothing_is_balanced_before_it_is_measured() -> None:
    there, params = offload(optax.adam(1e-2), device_memory=0.5), tree("float32")
    state, step = there.init(params), stepper(there)
    for i in range(2):
        with pytest.raises(ValueError, match="fewer than 3 steps"):
            there.balance(params, state)
        params, state = step(params, state, float(i))
    with pytest.raises(TypeError, match="got as a state 3"):
        there.balance(params, 3)


def test_few_steps_are_measured() -> None:
    there, params = offload(optax.adam(1e-2)), tree("float32")
    state, step = there.init(params), stepper(there)
    for i in range(MOST_STEPS + 8):
        params, state = step(params, state, float(i))
    jax.block_until_ready(state.steps)
    timing = state.home.timing()
    assert timing is not None and MOST_STEPS <= len(timing.exposed) < MOST_STEPS + 8
    assert 0 < device_rate() < 1e-6


# -- what goes wrong
def test_a_state_that_is_used_twice() -> None:
    there, params = offload(optax.adam(1e-2)), tree("float32")
    state, step = there.init(params), stepper(there)
    first = step(params, state, 0.0)
    jax.block_until_ready(first)
    with pytest.raises(Exception, match="got an optimizer state of step 0"):
        for _ in range(2):
            jax.block_until_ready(step(params, state, 0.0))
    with pytest.raises(RuntimeError, match="valid is the state that the last update returned"):
        there.fetch(first[1])


def test_a_pass_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    there, params = offload(optax.adam(1e-2)), tree("float32")
    state, step = there.init(params), stepper(there)
    params, state = jax.block_until_ready(step(params, state, 0.0))

    def refuse(self: Any, event: int) -> None:
        raise OSError("made up")

    monkeypatch.setattr(type(next(iter(state.home._movements.values()))._queues), "wait", refuse)
    with pytest.raises(Exception, match="made up"):
        for i in (1.0, 2.0):  # the next call says so, if this one is over by then
            params, state = jax.block_until_ready(step(params, state, i))


def test_bad_input() -> None:
    adam = optax.adam(1e-2)
    there, params = offload(adam), tree("float32")
    state = there.init(params)
    with pytest.raises(TypeError, match=r"got 3; valid is an optax.GradientTransformation"):
        offload(3)
    for memory in (-1, 0, 1.5, "much", True):
        with pytest.raises(ValueError, match="valid is a number of bytes"):
            offload(adam, device_memory=memory)
    with pytest.raises(TypeError, match=r"init: got an array float32\[3\] as a parameter; valid are jax.Arrays"):
        there.init({"a": np.ones(3, np.float32)})
    with pytest.raises(TypeError, match="init: got traced parameters"):
        jax.jit(there.init)(params)
    for other in (offload(adam).init(params), adam.init(params), None):
        with pytest.raises(TypeError, match="valid is what this transformation's init returned"):
            there.update(params, other, params)
    with pytest.raises(ValueError, match="update: got parameters of another structure"):
        there.update(params, state)
    with pytest.raises(ValueError, match="update: got gradients of another structure"):
        there.update({"a": jnp.ones(3)}, state, params)
    with pytest.raises(ValueError, match="load: got parameters of other shapes"):
        there.load(tree("bfloat16"), there.fetch(state))


def test_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_DISABLE", "1")
    tx = optax.adam(1e-2)
    assert offload(tx) is tx


# -- kernels
def _segment(fn: Callable[..., Any], shapes: list[Any], threads: int = 1) -> tuple[Any, tuple[str, ...]]:
    leaves = jax.tree_util.tree_structure((tuple(shapes), {}))
    folded = fold(trace(fn, shapes, leaves, [""] * len(shapes)), ())
    outs = tuple(v for v in folded.outputs if isinstance(v, Value))
    last = folded.ops[-1]
    group = Group(folded.ops, last, tuple(v for v in outs if v is not last.out))
    segment = host.build_stored(Program(folded.inputs, (), (group,), outs), threads)
    return segment, segment.algorithms


@pytest.fixture(params=[1, 15, 4096, 20011])
def length(request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_as_they_are_stored(dtype: str, length: int) -> None:
    """Results of every type lie over the operands; scalars are f32 and s32."""

    def fn(x: Any, y: Any, n: Any, scale: Any, k: Any) -> Any:
        z = x.astype(jnp.float32) * scale + y
        return z.astype(x.dtype), jnp.sqrt(y * y + 1), n + k

    of = jax.ShapeDtypeStruct
    shapes = [of((length,), dtype), of((length,), jnp.float32), of((length,), jnp.int32)]
    segment, names = _segment(fn, [*shapes, of((), jnp.float32), of((), jnp.int32)], 2)
    assert names == ("stored",)
    rng = np.random.default_rng(length)
    x = np.array(jnp.asarray(rng.standard_normal(length), dtype))
    y, n = rng.standard_normal(length).astype(np.float32), rng.integers(-9, 9, length).astype(np.int32)
    scale, k = np.full((), 1.5, np.float32), np.full((), 7, np.int32)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    exact = (wide_x * 1.5 + wide_y, np.sqrt(wide_y * wide_y + 1), n + 7)
    host.Call.on(segment, [x, y, n, scale, k, segment.pack({})], [x, y, n])()
    ulp = {"float32": 2.0**-22, "bfloat16": 2.0**-8, "float16": 2.0**-10}[dtype]
    assert np.abs(x.astype(np.float64) - exact[0]).max() <= ulp * max(1.0, np.abs(exact[0]).max())
    assert np.abs(y - exact[1]).max() <= 2.0**-22 * exact[1].max()
    assert (n == exact[2]).all()


def test_what_stored_arrays_cannot_be() -> None:
    of = jax.ShapeDtypeStruct
    with pytest.raises(Unsupported, match="not read in their order"):
        _segment(lambda x: x[::-1] + 1, [of((64,), jnp.float32)])
    with pytest.raises(Unsupported, match="other types than"):
        _segment(lambda x: ~x, [of((64,), jnp.bool_)])


# -- the copies of a device
class _Driver:
    """A CUDA driver that does at once what it is asked for, and notes it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refused = ""
        self.memories: dict[int, np.ndarray] = {}
        self.streams = 10

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def new_stream(self) -> int:
        self.streams += 1
        return self.streams

    def mapped(self, nbytes: int) -> tuple[int, int]:
        memory = np.zeros(nbytes, np.uint8)
        self.memories[memory.ctypes.data] = memory
        return memory.ctypes.data, memory.ctypes.data

    def free_mapped(self, address: int) -> None:
        self.asked.append("free")
        del self.memories[address]

    def synchronize(self) -> None:
        self.asked.append("synchronize")

    def call(self, name: str, *args: Any) -> None:
        self.asked.append(name)
        if name == self.refused:
            raise RuntimeError(f"{name} failed: made up")
        if name == "cuEventCreate":
            ctypes.c_uint64.from_address(ctypes.addressof(args[0]._obj)).value = len(self.asked)
        elif name.startswith("cuMemcpy"):
            ctypes.memmove(args[0].value, args[1].value, args[2].value)
        elif name == "cuStreamWriteValue32_v2":
            ctypes.c_uint32.from_address(args[1].value).value = args[2].value


def test_copies_by_a_driver() -> None:
    driver = _Driver()
    q = CudaQueues(driver)  # type: ignore[arg-type]
    flag = next(iter(driver.memories))
    here, there = q.memory(1000), np.arange(250, dtype=np.uint32)
    driver.asked.clear()
    q.after(7)
    event = q.down(here, there.ctypes.data, 1000)
    assert q.done(event)
    q.wait(event)
    assert driver.asked == [
        *("cuEventRecord", "cuStreamWaitEvent", "cuEventCreate", "cuMemcpyDtoHAsync_v2"),
        *("cuEventRecord", "cuEventQuery", "cuEventSynchronize"),
    ]
    driver.refused = "cuEventQuery"
    assert not q.done(event)  # as the driver says while a copy goes on
    assert (driver.memories[here].view(np.uint32) == there).all()
    driver.memories[here].view(np.uint32)[:] = 9
    q.up(there.ctypes.data, here, 1000)
    assert (there == 9).all()
    assert q.down(here, there.ctypes.data, 4) == event  # nobody waits for it any more
    q.raise_flag(3)
    q.wait_flag(7, 3)
    assert driver.asked[-2:] == ["cuStreamWriteValue32_v2", "cuStreamWaitValue32_v2"]
    assert driver.memories[flag].view(np.uint32)[0] == 3


def test_a_flag_that_the_driver_refuses_is_raised_all_the_same() -> None:
    driver = _Driver()
    q = CudaQueues(driver)  # type: ignore[arg-type]
    driver.refused = "cuStreamWriteValue32_v2"
    with pytest.raises(RuntimeError, match="made up"):
        q.raise_flag(5)
    assert driver.memories[next(iter(driver.memories))].view(np.uint32)[0] == 5


def test_memory_is_freed_when_some_is_asked_for() -> None:
    """Not when it is given back, maybe in a thread that the device waits for."""
    driver = _Driver()
    q = CudaQueues(driver)  # type: ignore[arg-type]
    first = q.memory(100)
    driver.asked.clear()
    q.free(first)
    assert not driver.asked and first in driver.memories
    q.memory(100)
    assert driver.asked == ["synchronize", "free"]


# -- the benchmark
SMALL = ("--params", "1e6", "--tokens", "128", "--rounds", "2", "--seconds", "0.05")


def test_a_record_of_the_benchmark(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # whole chunks
    main([str(tmp_path), *SMALL, "--ways", "resident", "offload", "balanced", "--clip", "both"])
    lines = [json.loads(line) for line in (tmp_path / "offload.jsonl").read_text().splitlines()]
    assert set(lines[0]["seconds"]) == {"resident"} and lines[0]["rounds"] == 1, "nothing is kept of a run that is cut"
    records = {r["clip"]: r for r in lines}
    assert set(records) == {False, True}
    for r in records.values():
        assert set(r["seconds"]) == {"resident", "offload", "balanced"} and not r["failed"]
        assert r["step_bytes"]["resident"] - r["step_bytes"]["offload"] > 9 * r["params"]
        assert r["bound"] >= r["forward_backward"] > 0 and set(r["bounds"]) <= {"offload", "balanced"}
        assert r["bounds"]["offload"] == r["bound"] and 0 <= r["host_bytes"]["balanced"] <= r["host_bytes"]["offload"]
        for k in ("offload", "balanced"):
            both = min(len(r["losses"][k]), len(r["losses"]["resident"]))  # steps that both ways have taken one by one
            assert both >= 2
            np.testing.assert_allclose(r["losses"][k][:both], r["losses"]["resident"][:both], rtol=1e-3)


def test_a_small_budget_leaves_ways_out(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    main([str(tmp_path), *SMALL, "--ways", "resident", "offload", "--budget", "0.5"])
    last = json.loads((tmp_path / "offload.jsonl").read_text().splitlines()[-1])
    assert set(last["seconds"]) == {"resident"} and "of the budget were over" in last["failed"]["offload"]
    assert "bound" not in last and not last["bounds"]


# -- the end of a process
def test_a_process_may_end_without_waiting() -> None:
    code = """
import jax, jax.numpy as jnp, optax
from xcoexec.optim import offload
tx, params = offload(optax.adam(1e-2)), {"a": jnp.ones((600, 700))}
state = tx.init(params)
step = jax.jit(lambda p, s: tx.update(p, s, p))
for _ in range(5):
    _, state = step(params, state)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
