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
import contextlib
import dataclasses
import json
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import xcoexec

from .jsonlines import lines
from .training_nets import NETS, Net, batch, linen, nnx_net, random_net

STEPS = 3
TOLERANCE = {"float32": 2e-4, "bfloat16": 6e-2}  # of a leaf's scale, after STEPS steps
ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-9}  # of a number
FACTOR = 4.0
NUDGES = 4  # times that jax.jit's own sensitivity to roundings is looked at
QUICKLY = {"xla_backend_optimization_level": 0}  # XLA's compilations are most of what a network takes
CLEAR_EVERY = 16  # networks, after which compiled programs are forgotten
State = Any
Step = Callable[..., Any]


def trained(net: Net, step: Step, state: State, change: Callable[[Any], Any] = lambda x: x) -> tuple[State, list[Any]]:
    """(last state, losses) after STEPS calls of a jitted step; `change`: what happens to each leaf of the first state
    and of the data.
    """
    losses, state = [], jax.tree.map(change, state)
    for i in range(STEPS):
        state, loss = step(state, jax.tree.map(change, batch(net, i)))
        losses.append(loss)
    return jax.block_until_ready(state), losses


def _made(net: Net) -> tuple[Step, Callable[[], State]]:
    return (linen if net.api == "linen" else nnx_net)(net)


def _widened(x: Any) -> Any:
    return jnp.asarray(np.asarray(x).astype(np.float64)) if _floating(x) else x


def _floating(x: Any) -> bool:
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)


def check(net: Net, strategy: str = "kernels") -> dict[str, Any]:
    """Three steps of a network both ways: {"status", "detail", "error" (of the worst leaf's scale), "segments",
    "why"}.
    """
    from .sweep_compare import STRATEGIES, properties

    step, make = _made(net)
    given: Any = {"compiler_options": QUICKLY, **({"donate_argnums": 0} if net.donate else {})}
    plain = jax.jit(step, **given)
    want = trained(net, plain, make())
    fast = xcoexec.jit(step, **given, **STRATEGIES[strategy]())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            got = trained(net, fast, make())
        except Exception as e:
            detail = f"{type(e).__name__}: {str(e)[:200]}"
            return {"status": "raises", "detail": detail, "error": None, "segments": 0, "why": ""}
    said = [str(w.message) for w in seen if issubclass(w.category, xcoexec.CoexecWarning)]
    out = {"segments": _segments(fast, net, got[0]), "why": said[0] if said else ""}
    if different := properties(jax.tree.leaves(want), jax.tree.leaves(got)):
        return {"status": "type", "detail": different, "error": None, **out}
    ours, theirs = _flat(got), _flat(want)
    worst = max(_errors(ours, theirs), default=0.0)
    if "error of xcoexec" in out["why"]:
        return {"status": "internal", "detail": out["why"], "error": worst, **out}
    if worst <= TOLERANCE[net.dtype]:
        return {"status": "same", "detail": "", "error": worst, **out}
    return {**_by_oracle(net, ours, theirs, plain, make), "error": worst, **out}


def _segments(step: Any, net: Net, state: State) -> int:
    """Host segments of the step in use; 0 where plain jax.jit runs."""
    try:
        return int(step.report(state, batch(net, 0)).segments)
    except Exception:
        return 0


def _flat(tree: Any) -> list[np.ndarray]:
    key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return [
        np.asarray(jax.random.key_data(x) if isinstance(x, jax.Array) and key(x) else x) for x in jax.tree.leaves(tree)
    ]


def _errors(
    got: Sequence[np.ndarray], want: Sequence[np.ndarray], scales: Sequence[np.ndarray] | None = None
) -> list[float]:
    """Of each leaf the largest difference, as a share of the largest number in `scales` (`want`); infinite where NaN or
    integers differ.
    """
    return [_error(g, w, max(_scale(s), 1e-30)) for g, w, s in zip(got, want, scales or want, strict=True)]


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
    net: Net, got: Sequence[np.ndarray], want: Sequence[np.ndarray], plain: Step, make: Callable[[], State]
) -> dict[str, Any]:
    """ "nearer" where each leaf lies as near to float64 as `TOLERANCE`, or as jax.jit's: those that it gives, and those
    that roundings of the first state and the data make of it, which is what a leaf is worth whose terms cancel.
    """
    errors = _errors(got, want)
    i = int(np.argmax(errors))
    text = f"leaf {i} {want[i].dtype}{list(want[i].shape)}: error {errors[i]:.3g}"
    try:
        with jax.enable_x64(True), _masks_as_in_float32():
            wide = dataclasses.replace(net, dtype="float64", donate=False)
            step, make_wide = _made(wide)
            truth = _flat(trained(wide, jax.jit(step, compiler_options=QUICKLY), make_wide(), _widened))
    except Exception as e:
        return {"status": "wrong", "detail": f"{text}; no float64 oracle ({type(e).__name__}: {str(e)[:80]})"}
    ours, theirs = _errors(got, truth), _errors(want, truth)
    moved = [_errors(nudged, want, truth) for nudged in _nudged(net, plain, make)]
    noise = [max(each) for each in zip(theirs, *moved, strict=True)]
    fine = all(a <= max(_times(b) * b, TOLERANCE[net.dtype]) for a, b in zip(ours, noise, strict=True))
    said = (
        f"from float64 ours {max(ours):.3g}, jax.jit's {max(theirs):.3g}, moved by roundings {max(map(max, moved)):.3g}"
    )
    worst = max(range(len(ours)), key=lambda i: ours[i] / max(noise[i], 1e-30))
    said += f"; leaf {worst} {ours[worst]:.3g} of {noise[worst]:.3g}"
    return {"status": "nearer" if fine else "wrong", "detail": f"{text}; {said}"}


def _times(noise: float) -> float:
    """How many times jax.jit's error is allowed. Where that is as large as the numbers, they are rounding alone: of
    second moments it is the square.
    """
    return FACTOR if noise < 1 else FACTOR**2


@contextlib.contextmanager
def _masks_as_in_float32() -> Iterator[None]:
    """Dropout draws its numbers in the type of its rate: the same key gives another mask in float64."""
    usual = jax.random.bernoulli
    narrow = lambda key, p=0.5, shape=None, **more: usual(key, np.float32(p), shape, **more)
    with mock.patch("jax.random.bernoulli", narrow):
        yield


def _nudged(net: Net, plain: Step, make: Callable[[], State]) -> list[list[np.ndarray]]:
    """What jax.jit gives when each number of the first state and the data is moved by as much as its type rounds."""
    found = []
    for seed in range(NUDGES):
        rng = np.random.default_rng(seed)

        def moved(x: Any, rng: np.random.Generator = rng) -> Any:
            if not _floating(x):
                return x
            share = ROUNDING[net.dtype] * rng.uniform(-1, 1, x.shape)
            return jnp.asarray((np.asarray(x).astype(np.float64) * (1 + share)).astype(x.dtype))

        found.append(_flat(trained(net, plain, make(), moved)))
    return found


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
            if seed % CLEAR_EVERY == 0:
                jax.clear_caches()
        counts.update([record["status"], *(["with kernels"] if record["segments"] else [])])
        if record["status"] != "same":
            print(seed, {k: record[k] for k in ("status", "detail", "error", "segments", "why", "net")}, flush=True)
    print(dict(counts))
    return int(any(counts[k] for k in ("wrong", "type", "raises", "internal")))


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
