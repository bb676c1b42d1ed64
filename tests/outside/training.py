"""Three training steps of random networks: `xcoexec.jit` of the step against `jax.jit` of it, and against float64.

A network is data (`Net`), made from a seed: linen or nnx, dense or convolutional, with norms (in training mode, with
statistics that change), pools, dropout, attention, residuals; an optimizer of optax with schedule and clipping. The
step is `value_and_grad` and the update inside one jitted function, with a linen TrainState or an nnx state, donated or
not. After three steps all leaves of both states agree to TOLERANCE of each leaf's scale, or are nearer to float64.

    python -m tests.outside.training --examples 1000 --seconds 1200 --out out/training.jsonl

What the file holds already (of this commit, these versions and this strategy) is not run again. The exit status is 1 if
a step with `xcoexec.jit` fails.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xcoexec

from .jsonlines import lines
from .training_nets import NETS, Net, batch, linen, nnx_net, random_net

STEPS = 3
TOLERANCE = {"float32": 2e-4, "bfloat16": 6e-2}  # of a leaf's scale, after STEPS steps
FACTOR = 4.0
# leaves that are smaller than this share of the largest in float64 are zero but for rounding (a bias in front of a
# norm):
ZERO = 1e-9
NOISE = 0.02  # they are measured by this share of the largest


def train(net: Net, jit: Callable[..., Any], wide: bool = False) -> tuple[Any, list[Any], Any]:
    """(last state, losses, the jitted step) after STEPS steps; `wide`: states and data in float64 (under x64)."""
    step, state = (linen if net.api == "linen" else nnx_net)(net)
    jitted = jit(step, donate_argnums=0) if net.donate else jit(step)
    state = jax.tree.map(_widened if wide else lambda x: x, state)
    losses = []
    for i in range(STEPS):
        data = jax.tree.map(_widened if wide else lambda x: x, batch(net, i))
        state, loss = jitted(state, data)
        losses.append(loss)
    return jax.block_until_ready(state), losses, jitted


def _widened(x: Any) -> Any:
    inexact = hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
    return jnp.asarray(np.asarray(x).astype(np.float64)) if inexact else x


def check(net: Net, strategy: str = "kernels") -> dict[str, Any]:
    """Three steps of a network both ways: {"status", "detail", "error" (of the worst leaf's scale), "segments",
    "why"}.
    """
    from .sweep_compare import STRATEGIES, properties

    want, their_losses, _ = train(net, jax.jit)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            got, losses, step = train(net, lambda f, **kw: xcoexec.jit(f, **kw, **STRATEGIES[strategy]()))
        except Exception as e:
            return {
                "status": "raises",
                "detail": f"{type(e).__name__}: {str(e)[:200]}",
                "error": None,
                "segments": 0,
                "why": "",
            }
    said = [str(w.message) for w in seen if issubclass(w.category, xcoexec.CoexecWarning)]
    segments = _segments(step, net, got)
    out = {"segments": segments, "why": said[0] if said else ""}
    if different := properties(jax.tree.leaves((want, their_losses)), jax.tree.leaves((got, losses))):
        return {"status": "type", "detail": different, "error": None, **out}
    leaves = [_flat(s) for s in ((want, their_losses), (got, losses))]
    allowed = TOLERANCE[net.dtype]
    errors = _errors(leaves[1], leaves[0])
    worst = max(errors, default=0.0)
    if worst <= allowed:
        return {"status": "same", "detail": "", "error": worst, **out}
    return {**_by_oracle(net, *leaves, errors, allowed), "error": worst, **out}


def _segments(step: Any, net: Net, state: Any) -> int:
    """Host segments of the step in use; 0 where plain jax.jit runs."""
    try:
        copied = jax.tree.map(lambda x: jnp.array(x, copy=True) if isinstance(x, jax.Array) else x, state)
        return int(step.report(copied, batch(net, 0)).segments)
    except Exception:
        return 0


def _flat(tree: Any) -> list[np.ndarray]:
    key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return [
        np.asarray(jax.random.key_data(x) if isinstance(x, jax.Array) and key(x) else x) for x in jax.tree.leaves(tree)
    ]


def _errors(
    got: Sequence[np.ndarray], want: Sequence[np.ndarray], truth: Sequence[np.ndarray] | None = None
) -> list[float]:
    """Of each leaf the largest difference, of its scale; infinite where NaN or integers differ. See ZERO for the use of
    `truth`.
    """
    scales = [_scale(t) for t in (truth or want)]
    largest = max([*scales, 1e-30])
    least = [NOISE * largest if truth and s < ZERO * largest else 1e-30 for s in scales]
    return [_error(g, w, max(s, m)) for g, w, s, m in zip(got, want, scales, least, strict=True)]


def _scale(x: np.ndarray) -> float:
    return float(np.abs(x[np.isfinite(x)].astype(np.float64)).max(initial=0)) if x.dtype.kind not in "iub" else 0.0


def _error(got: np.ndarray, want: np.ndarray, scale: float) -> float:
    if want.dtype.kind in "iub":
        return 0.0 if np.array_equal(got, want) else float("inf")
    g, w = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(g), np.isfinite(w)):
        return float("inf")
    return float(np.abs(np.where(np.isfinite(w), g - w, 0)).max(initial=0) / scale)


def _by_oracle(
    net: Net, want: Sequence[np.ndarray], got: Sequence[np.ndarray], errors: Sequence[float], allowed: float
) -> dict[str, Any]:
    i = int(np.argmax(errors))
    text = f"leaf {i} {want[i].dtype}{list(want[i].shape)}: error {errors[i]:.3g}"
    try:
        with jax.enable_x64(True):
            state, losses, _ = train(dataclasses.replace(net, dtype="float64", donate=False), jax.jit, wide=True)
            truth = _flat((state, losses))
    except Exception as e:
        return {"status": "wrong", "detail": f"{text}; no float64 oracle ({type(e).__name__}: {str(e)[:80]})"}
    ours, theirs = _errors(got, truth, truth), _errors(want, truth, truth)
    fine = all(a <= max(FACTOR * b, allowed) for a, b in zip(ours, theirs, strict=True))
    return {
        "status": "nearer" if fine else "wrong",
        "detail": f"{text}; from float64 ours {max(ours):.3g}, jax.jit's {max(theirs):.3g}",
    }


def main(argv: list[str] | None = None) -> int:
    from .sweep import environment

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--examples", type=int, default=60)
    p.add_argument("--first", type=int, default=0, help="the first seed")
    p.add_argument("--seconds", type=float, default=float("inf"))
    p.add_argument("--strategy", default="kernels")
    p.add_argument("--out", default="out/training.jsonl")
    args = p.parse_args(argv)
    out, end, where = pathlib.Path(args.out), time.monotonic() + args.seconds, {**environment(), "nets": NETS}
    out.parent.mkdir(parents=True, exist_ok=True)
    same = {**where, "strategy": args.strategy}
    kept = {r["seed"]: r for r in lines(out) if same.items() <= r.items()}
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(args.first, args.first + args.examples):
        record = kept.get(seed)
        if record is None and time.monotonic() > end:
            break
        if record is None:
            record = {"seed": seed, **_checked(random_net(seed), args.strategy), **same}
            with out.open("a") as f:
                f.write(json.dumps(record) + "\n")
            jax.clear_caches()
        counts.update([record["status"], *(["with kernels"] if record["segments"] else [])])
        if record["status"] != "same":
            print(seed, {k: record[k] for k in ("status", "detail", "error", "segments", "why", "net")}, flush=True)
    print(dict(counts))
    return int(any(counts[k] for k in ("wrong", "type", "raises")))


def _checked(net: Net, strategy: str) -> dict[str, Any]:
    """What `check` says of a network, or "plain" where plain `jax.jit` cannot train it; and the network's text."""
    began = time.perf_counter()
    try:
        record = check(net, strategy)
    except Exception as e:
        detail = f"{type(e).__name__}: {str(e)[:200]}"
        record = {"status": "plain", "detail": detail, "error": None, "segments": 0, "why": ""}
    return {**record, "net": repr(net), "seconds": round(time.perf_counter() - began, 2)}


if __name__ == "__main__":
    sys.exit(main())
