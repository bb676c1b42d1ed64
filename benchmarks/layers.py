"""Single layers on a GPU: every share of both dimensions (the oracle), the planner's choice, and XLA's own host
compute.

    python -m benchmarks.layers FOLDER [CASE...] [--precision highest] [--steps 8]

`compute_on`: the same layer divided by hand at the best share by channels, its host part run by
`jax.experimental.compute_on`. `bound`: t_host * t_device / (t_host + t_device), which no split of one layer can beat.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from rich.console import Console

import xcoexec
from xcoexec import Plan
from xcoexec.cost.edgenn import bound
from xcoexec.ir.text import table
from xcoexec.measure.timing import alternate
from xcoexec.session import rebalance
from xcoexec.tools.oracle import error

from .gpu import gpu_parser, on_gpu, where

ROUNDS, BLOCK_SECONDS = 5, 0.03
NOT_MEASURED = "not measured"


def conv(
    size: int, channels: int, out: int, kernel: int, groups: int = 1
) -> tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]:
    """(layer, shape of the weights, shape of the input); output channels are the weights' last dimension."""

    def fn(w: Any, x: Any) -> Any:
        y = lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
        )
        return jax.nn.relu(y)

    return fn, (kernel, kernel, channels // groups, out), (1, size, size, channels)


def dense(rows: int, inner: int, out: int) -> tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]:
    return lambda w, x: jax.nn.relu(x @ w), (inner, out), (rows, inner)


CASES = {
    "conv 56x56x256 3x3": conv(56, 256, 256, 3),
    "conv 28x28x512 1x1": conv(28, 512, 512, 1),
    "conv 14x14x512 3x3": conv(14, 512, 512, 3),
    "depthwise 112x112x64 3x3": conv(112, 64, 64, 3, 64),
    "dense 25088x4096": dense(1, 25088, 4096),
    "dense 64 rows 4096x4096": dense(64, 4096, 4096),
}


def by_hand(fn: Callable[..., Any], w: Any, x: Any, at: int) -> Callable[[], Any]:
    """The first `at` output channels by XLA on the host inside the device's program, the others on the device."""
    from jax.experimental.compute_on import compute_on

    here, there = jax.memory.Space.Device, jax.memory.Space.Host
    on_host = compute_on(fn, compute_type="device_host", out_memory_spaces=there)
    kept = jax.device_put(w[..., :at], there)
    rest = w[..., at:]

    @jax.jit
    def both(kept: Any, rest: Any, x: Any) -> Any:
        mine = on_host(kept, jax.device_put(x, there))
        return jnp.concatenate([jax.device_put(mine, here), fn(rest, x)], -1)

    return lambda: jax.block_until_ready(both(kept, rest, x))


def run(name: str, precision: str, steps: int) -> dict[str, Any]:
    fn, shape, given = CASES[name]
    rng = np.random.default_rng(0)
    w, x = (jnp.asarray(rng.standard_normal(s, np.float32) * 0.05) for s in (shape, given))
    with jax.default_matmul_precision(precision):
        plain = jax.jit(fn)
        planned = xcoexec.jit(fn, strategy="codl", strict=True).bind(w)
        calls = {
            "jit": lambda: jax.block_until_ready(plain(w, x)),
            "planner": lambda: jax.block_until_ready(planned(x)),
        }
        dims = [d for d in ("channel", "rows") if d in planned.graph(x).layers[0].dims]
        grid = [(d, i / steps) for d in dims for i in range(1, steps)]
        forced = {
            (d, p): xcoexec.jit(fn, plan=Plan.uniform(p, d), strict=True).bind(w) for d, p in [*grid, ("channel", 1.0)]
        }
        calls |= {f"{d} {p:g}": (lambda f=f: jax.block_until_ready(f(x))) for (d, p), f in forced.items()}
        want = np.asarray(calls["jit"]())
        wrong = max(error(np.asarray(c()), want) for c in calls.values())
        seconds = alternate(calls, ROUNDS, BLOCK_SECONDS)
        best = min((k for k in seconds if k not in ("jit", "planner", "channel 1")), key=lambda k: seconds[k])
        share = min((p for d, p in grid if d == "channel"), key=lambda p: seconds[f"channel {p:g}"], default=0.5)
        hand: dict[str, Any] = {}
        try:
            call = by_hand(fn, w, x, max(1, round(share * shape[-1])))
            wrong_by_hand = error(np.asarray(call()), want)
            hand = {"seconds": alternate({"hand": call}, 3, BLOCK_SECONDS)["hand"], "error": wrong_by_hand}
        except Exception as e:  # what this JAX cannot divide by hand
            hand = {"seconds": NOT_MEASURED, "why": str(e)[:200]}
        exe = planned.session().current
        place = exe.plan.placements[0]
        span = rebalance.span(exe.lowered) if exe.lowered is not None and exe.lowered.sites else None
    oracle = min(seconds[k] for k in seconds if k != "planner")
    return {
        "case": name,
        "precision": precision,
        "machine": where(),
        "seconds": seconds,
        "best": best,
        "planned": [place.half, place.dim, place.p_cpu],
        "planner_over_oracle": seconds["planner"] / oracle,
        "bound": bound(seconds["jit"], seconds["channel 1"]),
        "span_on_the_devices_clock": span,
        "compute_on": hand,
        "error": wrong,
        "xcoexec": xcoexec.__version__,
    }


HEAD = (
    "layer",
    "jit ms",
    "host ms",
    "planner ms",
    "its choice",
    "best share",
    "its ms",
    "planner/oracle",
    "bound ms",
    "of the bound",
    "compute_on ms",
)


def row(r: dict[str, Any]) -> list[str]:
    s, hand = r["seconds"], r["compute_on"]["seconds"]
    half, dim, p = r["planned"]
    choice = f"{dim} {p:.2f}" if half == "split" else half
    times = [f"{s[k] * 1e3:.3f}" for k in ("jit", "channel 1", "planner")]
    by_hand_text = hand if isinstance(hand, str) else f"{hand * 1e3:.3f}"
    tail = [
        f"{s[r['best']] * 1e3:.3f}",
        f"{r['planner_over_oracle']:.2f}",
        f"{r['bound'] * 1e3:.3f}",
        f"{r['bound'] / s['planner']:.0%}",
        by_hand_text,
    ]
    return [r["case"], *times, choice, r["best"], *tail]


def main() -> None:
    parser = gpu_parser("layers", __doc__)
    parser.add_argument("cases", nargs="*", default=[], choices=[*CASES, []])
    parser.add_argument("--precision", default="highest")
    parser.add_argument("--steps", type=int, default=8)
    args = on_gpu(parser)
    records = []
    with (args.folder / "layers.jsonl").open("a") as out:
        for name in args.cases or CASES:
            records.append(run(name, args.precision, args.steps))
            out.write(json.dumps(records[-1]) + "\n")
            out.flush()
    Console(width=200).print(table(where(), HEAD, [row(r) for r in records], right=(1, 2, 3, 6, 7, 8, 9, 10)))


if __name__ == "__main__":
    main()
