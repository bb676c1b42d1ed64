"""A user's script, as `mypy --strict` reads it (`make lint`); it is never run."""

from __future__ import annotations

from typing import assert_type

import jax
import jax.numpy as jnp

import xcoexec
from xcoexec import models


@xcoexec.jit
def predict(weights: dict[str, jax.Array], x: jax.Array, scale: float = 1.0) -> jax.Array:
    return x @ weights["w"] * scale


def main() -> None:
    weights, x = {"w": jnp.ones((4, 3))}, jnp.ones((2, 4))
    assert_type(predict(weights, x, scale=2.0), jax.Array)
    fast = predict.bind(weights)
    assert_type(fast(x), jax.Array)
    if fast.ready(timeout=10.0):
        gain = fast.report(all=True).gain
        print(f"{gain:.1f}" if gain is not None else "-")
    plan = xcoexec.Plan.from_json(fast.plan().to_json())
    again = xcoexec.jit(predict.__wrapped__, plan=plan, strict=True)
    assert_type(again(weights, x), jax.Array)
    entry = models.get("lenet")
    print(entry.parameters, [p.half for p in plan.placements], fast.history())
    with xcoexec.pipeline(fast, depth=2)([x]) as stream:
        for y in stream:
            print(y)
    tasks = [xcoexec.task("a", fast, x, deadline=0.5)]
    with xcoexec.Scheduler(tasks) as scheduler:
        print(scheduler.release("a", x).result(), scheduler.served().missing_rate)


if __name__ == "__main__":
    main()
