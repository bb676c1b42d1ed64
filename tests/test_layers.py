"""Single layers x every split dim x every ratio, through the whole way: trace, plan, XLA executable."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xcoexec
from xcoexec.ir.plan import Plan

from .support import QUICK, TOLERANCE, array, assert_on_host, co, error, oracle


def _conv(stride: int = 1, groups: int = 1, dilation: int = 1, padding: Any = "SAME") -> Any:
    def fn(w: Any, x: Any) -> Any:
        y = lax.conv_general_dilated(
            x,
            w,
            (stride, stride),
            padding,
            rhs_dilation=(dilation, dilation),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        return jax.nn.relu(y + 0.1)

    return fn


LAYERS: dict[str, tuple[Any, Any, Any]] = {
    "conv": (_conv(), (3, 3, 8, 24), (1, 17, 13, 8)),
    "conv strided": (_conv(2), (5, 5, 3, 40), (1, 17, 16, 3)),
    "conv dilated": (_conv(1, 1, 2), (3, 3, 8, 16), (1, 16, 16, 8)),
    "conv valid": (_conv(padding="VALID"), (3, 3, 8, 16), (2, 12, 12, 8)),
    "grouped": (_conv(1, 4), (3, 3, 4, 32), (1, 11, 11, 16)),
    "depthwise": (_conv(2, 24), (3, 3, 1, 24), (1, 15, 15, 24)),
    "1x1": (_conv(), (1, 1, 19, 33), (1, 9, 9, 19)),
    "dense": (lambda w, x: jax.nn.gelu(x @ w), (37, 80), (5, 37)),
    "dense row": (lambda w, x: x @ w, (300, 256), (1, 300)),
    "pool": (lambda w, x: nn.max_pool(x * w, (3, 3), (2, 2), "SAME"), (1, 1, 1, 16), (1, 17, 17, 16)),
    "average": (lambda w, x: nn.avg_pool(x + w, (2, 2), (2, 2)), (1, 1, 1, 16), (1, 16, 16, 16)),
    "elementwise": (lambda w, x: jnp.tanh(x) * w, (8, 16), (4, 8, 16)),
    "softmax": (lambda w, x: jax.nn.softmax(x * w), (16,), (8, 16)),
    "mean": (lambda w, x: (x * w).mean((1, 2)), (24,), (2, 6, 6, 24)),
}


def _all(weights: dict[str, Any], images: dict[str, Any]) -> dict[str, Any]:
    """Every layer on its own operands: a plan of all of them is one compilation."""
    return {name: fn(weights[name], images[name]) for name, (fn, _, _) in LAYERS.items()}


@pytest.mark.parametrize("dim", ["channel", "rows"])
@pytest.mark.parametrize("eighths", range(9))
def test_every_ratio(eighths: int, dim: str) -> None:
    weights = {name: array(*ws, seed=1) for name, (_, ws, _) in LAYERS.items()}
    images = {name: array(*xs) for name, (_, _, xs) in LAYERS.items()}
    quick = {"compiler_options": QUICK} if eighths not in (4, 8) else {}
    fast = co(_all, weights, plan=Plan.uniform(eighths / 8, dim), threads=2, **quick)
    got = fast(images)
    for name, (fn, _, _) in LAYERS.items():
        assert error(got[name], oracle(fn, weights[name], images[name])) < TOLERANCE, name
    halves = {p.half for p in fast.plan().placements}
    assert halves == {0: {"device"}, 8: {"host"}}.get(eighths, halves | {"split"})
    if eighths == 8:
        assert_on_host(fast)


@pytest.mark.parametrize("strategy", ["device", "host", "edgenn", "auto"])
def test_strategies(strategy: str) -> None:
    fn, ws, xs = LAYERS["conv"]
    w, x = array(*ws, seed=1), array(*xs)
    fast = co(fn, w, strategy=strategy)
    assert error(fast(x), oracle(fn, w, x)) < TOLERANCE
    plan = fast.plan()
    if strategy == "auto":
        fastest = min(plan.measured, key=plan.measured.__getitem__)
        assert "jit" in plan.measured and (fastest == plan.strategy or "jit" in (fastest, plan.engine))
        return
    assert plan.strategy == strategy and fast.report().ran == "xco"
    assert [p.half for p in plan.placements] == ["host" if fast.report().segments else "device"]
    if strategy != "edgenn":
        assert plan.placements[0].half == strategy


def test_mixed_plan_per_layer() -> None:
    """A plan edited by hand: one layer on each half, one split; the segments follow it."""
    w = {"a": array(3, 3, 3, 16, seed=1), "b": array(3, 3, 16, 16, seed=2), "c": array(3, 3, 16, 8, seed=3)}
    conv = _conv()

    def fn(w: Any, x: Any) -> Any:
        return conv(w["c"], conv(w["b"], conv(w["a"], x)))

    x = array(1, 12, 12, 3)
    base = co(fn, w, strategy="host")
    base(x)
    import dataclasses

    places = [
        dataclasses.replace(p, half=h, p_cpu=q)
        for p, (h, q) in zip(base.plan().placements, [("host", 1.0), ("split", 0.5), ("device", 0.0)], strict=True)
    ]
    plan = dataclasses.replace(base.plan(), placements=tuple(places))
    fast = co(fn, w, plan=Plan.from_json(plan.to_json()))
    assert error(fast(x), oracle(fn, w, x)) < TOLERANCE
    assert fast.report().segments == 2
    assert [p.half for p in fast.plan().placements] == ["host", "split", "device"]


def test_compile_takes_a_plan() -> None:
    fn, ws, xs = LAYERS["conv"]
    w, x = array(*ws, seed=1), array(*xs)
    fixed = xcoexec.compile(fn, w, x, plan=Plan.uniform(1.0), threads=1, strict=True, device="cpu")
    assert error(fixed(w, x), oracle(fn, w, x)) < TOLERANCE
    assert fixed.report().segments == 1 and fixed.plan().strategy == "forced"
