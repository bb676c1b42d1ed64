"""One network over several devices: its parts give what the whole gives, and each keeps its own weights."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.frontend.parts import Parted
from xcoexec.measure.device_speeds import alike, product_rates
from xcoexec.planning.device_cuts import Kind, across

from .test_sharded import AS_USED, FOUR, begin, ended

pytestmark = pytest.mark.usefixtures("quick_xla")

EXACT = 2e-6
RANDOM = np.random.default_rng(0)


@functools.cache
def seen() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended(begin("-m", "tests.spread_cases", XLA_FLAGS=FOUR))[0])
    return found


def test_as_many_parts_as_pay_each_on_its_device() -> None:
    found = seen()["spread_stack"]
    assert max(found["errors"].values()) < EXACT
    assert found["parts"] == {"1": [0], "2": [0, 1], "3": [0, 1, 2], "4": [0, 1, 2]}  # six layers: two each
    assert all(set(engines) == {"xco"} for engines in found["engines"].values())
    assert found["home"] == [0] and found["text"] and max(found["inside"], found["in turn"]) < EXACT
    error, order = found["backwards"]
    assert error < EXACT and order == [3, 2, 1]


def test_results_are_those_of_jit() -> None:
    found = seen()["spread_results"]
    assert found["apart"] < EXACT and found["types"] and found["structure"]


def test_a_state_stays_with_its_part() -> None:
    found = seen()["spread_state"]
    assert found["apart"] < EXACT and found["places"] == [0, 0, 1, 1, 2, 2] and found["count"] == [4] * 6
    assert found["cuts"] == 1  # wherever the state lies


def test_weights_are_copied() -> None:
    assert max(seen()["spread_copies"].values()) < EXACT


def test_a_stage_of_a_pipeline_for_each_device() -> None:
    found = seen()["spread_stream"]
    assert found["apart"] < EXACT and found["stages"] == ["preprocess", "network 1", "network 2", "network 3"]


def test_parts_are_planned_behind_calls() -> None:
    found = seen()["spread_behind_calls"]
    assert found["apart"] < EXACT and found["ready"]


COUNT = "valid is a count from 1 to 4, or different ones of jax.local_devices()."


@pytest.mark.parametrize(
    "name, start, end",
    [
        ("none", "ValueError: spread: got devices=0;", COUNT),
        ("more", "ValueError: spread: got devices=5;", COUNT),
        ("negative", "ValueError: spread: got devices=-1;", COUNT),
        ("bool", "TypeError: spread: got devices=True;", COUNT),
        ("text", "TypeError: spread: got devices='all';", COUNT),
        ("twice", "ValueError: spread: got devices=[", COUNT),
        ("empty", "ValueError: spread: got devices=[];", COUNT),
        ("plan", "ValueError: spread: got a plan of one device;", "valid is a strategy, or Plan.uniform."),
        ("effects", "BindError: spread: got loud: it has side effects", "valid is a function without that."),
        ("given away", "BindError: spread: got stack: it gives its inputs away;", "valid is a function without that."),
        ("nothing", "BindError: spread: got <lambda>: it computes nothing of its inputs;", "a function without that."),
        ("too soon", "BindError: parts: the function has not been called yet;", "its shapes are known."),
        ("traced", "BindError: bind: got traced arrays;", "bind outside of jax.jit)."),
        ("shape", "TypeError: dot_general", "got (3,) and (400,)."),
        ("cut", "TypeError: xcoexec.pipeline: got cut='auto' with SpreadFunction;", "returns."),
    ],
)
def test_bad_input(name: str, start: str, end: str) -> None:
    said = seen()["refused"][name]
    assert said.startswith(start) and said.endswith(end)


def test_devices_with_relays_keep_their_bounds() -> None:
    found = json.loads(ended(begin("-m", "tests.spread_relays", **AS_USED))[0])
    for strategy in ("device", "codl", "capacity"):
        assert found[strategy]["error"] < EXACT and found[strategy]["parts"] == [0, 1]
        assert found[strategy]["engines"] == ["xco", "xco"]
    assert max(found["capacity"]["bytes"]) <= found["bound"] < max(found["device"]["bytes"])
    assert found["served"] == {"0": True, "1": True} and found["default"] == "None"
    for uneven, slow in zip(found["uneven"], ("1", "0"), strict=True):  # the slower one has a third of the layers
        fast = str(1 - int(slow))
        assert uneven["layers"][fast] == 2 * uneven["layers"][slow] and uneven["error"] < EXACT
        assert uneven["home"] == [0] and "device, 2.0 times slower," in uneven["said"]


def test_devices_that_take_about_as_long_are_alike() -> None:
    assert alike([1.0, 1.1, 1.25, 3.0, 2.9, 3.7]) == (1.0, 1.0, 1.25, 2.9, 2.9, 3.7)
    assert alike([5.0, 2.0]) == (5.0, 2.0) and alike([0.3]) == (0.3,)


def test_how_fast_devices_are_is_measured_once() -> None:
    here = (jax.devices()[0], jax.devices()[0])
    assert product_rates(here) is product_rates(here) and min(product_rates(here)) > 0


# -- parts of a jaxpr


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


CONST = normal(8, 8)
W = {"a": normal(8, 8), "b": normal(8, 8), "c": normal(8)}
X = normal(5, 8)


def tied(w: Any, x: Any) -> Any:
    """One matrix at both ends."""
    return jnp.tanh(x @ w["a"] + w["c"]) @ w["b"] @ w["a"].T


def looped(w: Any, x: Any) -> Any:
    turn = lambda c, _: (jnp.tanh(c @ w["b"]), c.sum())
    last, sums = jax.lax.scan(turn, x @ w["a"], None, length=4)
    return {"last": last @ w["a"], "sums": sums}


def closed_over(w: Any, x: Any) -> Any:
    return [jax.nn.relu(x @ w["a"]) @ CONST, w["c"] * 3, x]


def nested(w: Any, x: Any) -> Any:
    inner = jax.jit(lambda y: jax.nn.gelu(y @ w["b"]))
    return jnp.where(x > 0, inner(inner(x @ w["a"])), x) @ w["b"]


def as_one_call(w: Any, x: Any) -> Any:
    return jax.jit(tied)(w, x)


FUNCTIONS: list[Callable[..., Any]] = [tied, looped, closed_over, nested, as_one_call]


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_parts_one_after_the_other_are_the_whole(fn: Callable[..., Any]) -> None:
    """For every way of cutting it."""
    closed = jax.make_jaxpr(fn)(W, X)
    known = [*jax.tree_util.tree_leaves(W), *closed.consts]
    program = Parted.of(closed, 3)
    want = [np.asarray(y) for y in jax.tree_util.tree_leaves(fn(W, X))]
    n = len(program.groups)
    assert n >= 2
    for count in range(1, n + 1):
        for cuts in itertools.combinations(range(1, n), count - 1):
            edges = (0, *cuts, n)
            env: dict[Any, Any] = dict(zip(program.inputs, [jnp.asarray(X)], strict=True))
            for part in program.parts(list(itertools.pairwise(edges))):
                out = jax.jit(part)([known[i] for i in part.known], *(env[v] for v in part.reads))
                env.update(zip(part.makes, out, strict=True))
            for v, y in zip(program.outputs, want, strict=True):
                np.testing.assert_allclose(np.asarray(env[v]), y, rtol=1e-5, atol=1e-5)  # type: ignore[index]


def test_what_is_made_of_weights_crosses_nowhere() -> None:
    program = Parted.of(jax.make_jaxpr(tied)(W, X), 3)
    first, *others = program.parts([(i, i + 1) for i in range(len(program.groups))])
    assert [len(p.reads) for p in (first, *others)] == [1] * 3
    assert first.known == (0, 2) and others[-1].known == (0,)  # leaves a, b, c; the turned one is made where it is read
    assert [g.weights for g in program.groups] == [8 * 8 * 4 + 8 * 4, 8 * 8 * 4, 0]
    assert [g.crossing for g in program.groups] == [5 * 8 * 4] * 3


@pytest.mark.parametrize("memory, cuts", [(1e9, [(0, 2), (2, 4)]), (25.0, [(0, 1), (1, 4)]), (0.0, [(0, 1), (1, 4)])])
def test_what_does_not_fit_takes_its_time(memory: float, cuts: list[tuple[int, int]]) -> None:
    kind = Kind(2, (1.0, 1.0, 1.0, 1.0), (30, 10, 10, 5), memory, byte_seconds=1.0)
    cut = across({"gpu": kind}, [0.0] * 4)
    assert [(a, b) for _, a, b in cut.stages] == cuts
    spans = [(sum(kind.weights[a:b]), b - a) for a, b in cuts]
    assert cut.period == max(n + max(w - memory, 0.0) for w, n in spans)


def test_seconds_of_other_layers() -> None:
    with pytest.raises(ValueError, match="valid are seconds of the same layers"):
        across({"gpu": Kind(1, (1.0, 1.0), (1,))}, [0.0, 0.0])
