"""`python -m benchmarks.learning_curves [folder]`: small networks learn as well with `xcoexec.jit` as with `jax.jit`.

LeNet-5 and a small ViT learn scikit-learn's digits, a small GPT the texts of Python's own help, byte by byte, each from
several seeds with both. Printed: the loss on held-out data after so many steps, mean and standard deviation over seeds,
and the largest difference that one seed shows. The curves are drawn to learning_curves.png.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
import pydoc_data.topics
import time
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from rich.console import Console
from rich.progress import track

import xcoexec
from xcoexec import models
from xcoexec.ir.text import columns
from xcoexec.models.transformer import ViT
from xcoexec.papers.source import commit
from xcoexec.tools.machine import environment

from .networks import GPT

STEPS, SEEDS, BATCH, SMOOTH = 500, 5, 32, 20
HELD_OUT = 360  # digits
LENGTH = 64  # bytes that the GPT reads
Pair = tuple[np.ndarray, np.ndarray]
COLOURS = ("#888888", "-"), ("#1f6fb4", "--")
#: ours runs all on kernels that they can express, faster or not
JITS: dict[str, Callable[..., Any]] = {
    "jax.jit": jax.jit,
    "xcoexec.jit": functools.partial(xcoexec.jit, plan=xcoexec.Plan.uniform(1.0)),
}


@functools.cache
def digits() -> tuple[Pair, Pair]:
    """(digits to learn from, held-out ones): images [n, 28, 28, 1] from 0 to 1, and labels [n]."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = np.kron(data.images, np.ones((1, 3, 3)))[..., None].astype(np.float32) / 16
    images = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)))
    order = np.random.default_rng(0).permutation(len(images))
    parts = order[HELD_OUT:], order[:HELD_OUT]
    found = [(images[p], data.target[p].astype(np.int32)) for p in parts]
    return found[0], found[1]


@functools.cache
def texts() -> tuple[Pair, Pair]:
    """(bytes to learn from, held-out ones): rows [n, LENGTH] and the byte behind each."""
    whole = np.frombuffer("\n".join(pydoc_data.topics.topics.values()).encode(), np.uint8).astype(np.int32)
    rows = whole[: len(whole) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    return (rows[256:, :-1], rows[256:, 1:]), (rows[:256, :-1], rows[:256, 1:])


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A network, what it learns, and by which optimizer."""

    name: str
    make: Callable[[], nn.Module]
    data: Callable[[], tuple[Pair, Pair]]
    optimizer: Callable[[], optax.GradientTransformation]


LESSONS = (
    Lesson("LeNet-5, digits", lambda: models.get("lenet").module, digits, lambda: optax.sgd(0.02, momentum=0.9)),
    Lesson("ViT, digits", lambda: ViT(7, 64, 2, 4, 10), digits, lambda: optax.adamw(1e-3)),
    Lesson("GPT, text", lambda: GPT(256, LENGTH, 96, 2, 4), texts, lambda: optax.adamw(1e-3)),
)


def loss_of(apply: Any, params: Any, x: Any, y: Any) -> jax.Array:
    """Mean cross entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(apply({"params": params}, x), y).mean()


def step(state: TrainState, x: jax.Array, y: jax.Array) -> tuple[TrainState, jax.Array]:
    """(next state, loss)."""
    loss, grads = jax.value_and_grad(lambda p: loss_of(state.apply_fn, p, x, y))(state.params)
    return state.apply_gradients(grads=grads), loss


def first_state(lesson: Lesson, module: nn.Module, seed: int) -> TrainState:
    """Random weights, and what the optimizer keeps of them."""
    x = lesson.data()[0][0][:1]
    params = jax.jit(module.init)(jax.random.key(seed), x)["params"]
    return TrainState.create(apply_fn=module.apply, params=params, tx=_optimizer(lesson))


def learn(lesson: Lesson, jitted: Any, seed: int, module: nn.Module, steps: int) -> tuple[list[float], float]:
    """(losses of the steps, loss on held-out data)."""
    (x, y), held_out = lesson.data()
    rng = np.random.default_rng(seed)
    state, losses = first_state(lesson, module, seed), []
    for _ in range(steps):
        pick = rng.integers(0, len(x), BATCH)
        state, loss = jitted(state, jnp.asarray(x[pick]), jnp.asarray(y[pick]))
        losses.append(loss)
    last = jax.jit(loss_of, static_argnums=0)(module.apply, state.params, *map(jnp.asarray, held_out))
    return [float(v) for v in losses], float(last)


@functools.cache
def _optimizer(lesson: Lesson) -> optax.GradientTransformation:
    return lesson.optimizer()


def record(lesson: Lesson, seeds: int, steps: int) -> dict[str, Any]:
    """A line: curves and last losses of both, seed by seed."""
    module = lesson.make()
    out: dict[str, Any] = {"lesson": lesson.name, "steps": steps, "commit": commit(), **environment()}
    out["began"] = time.strftime("%Y-%m-%dT%H:%M:%S")
    for name, jit in JITS.items():
        jitted = jit(step)
        runs = [learn(lesson, jitted, seed, module, steps) for seed in range(seeds)]
        out[name] = {"curves": [[round(v, 5) for v in c] for c, _ in runs], "last": [v for _, v in runs]}
    return out | {"ran": _ran(jitted, lesson, module)}


def _ran(jitted: Any, lesson: Lesson, module: nn.Module) -> str:
    (x, y), _ = lesson.data()
    report = jitted.report(first_state(lesson, module, 0), jnp.asarray(x[:BATCH]), jnp.asarray(y[:BATCH]))
    return f"{report.ran}, {sum(x.algorithm != 'XLA' for x in report.layers)} of {len(report.layers)} layers on kernels"


def text(records: Sequence[dict[str, Any]]) -> str:
    """Losses on held-out data, a line a lesson."""
    rows = [["lesson", "steps", "seeds", *JITS, "largest difference of a seed", "means differ by", "ran"]]
    for r in records:
        last = {k: np.array(r[k]["last"]) for k in JITS}
        plain, ours = last.values()
        said = [f"{v.mean():.4f} +- {v.std(ddof=1):.4f}" for v in (plain, ours)]
        apart = f"{abs(ours.mean() - plain.mean()) / max(plain.std(ddof=1), 1e-9):.2f} of a deviation"
        rows.append([r["lesson"], str(r["steps"]), str(len(plain)), *said, f"{np.abs(ours - plain).max():.1e}"])
        rows[-1] += [apart, r["ran"]]
    return columns(rows, (1, 2))


def picture(records: Sequence[dict[str, Any]], path: pathlib.Path) -> None:
    """Curves of both: the mean over seeds, smoothed, and the range of the seeds behind it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, len(records), figsize=(4 * len(records), 3.4), squeeze=False)
    for ax, r in zip(axes[0], records, strict=True):
        for name, (colour, dashes) in zip(JITS, COLOURS, strict=True):
            curves = np.array(r[name]["curves"])
            smooth = np.apply_along_axis(lambda c: np.convolve(c, np.ones(SMOOTH) / SMOOTH, "valid"), 1, curves)
            at = np.arange(smooth.shape[1]) + SMOOTH
            ax.plot(at, smooth.mean(0), dashes, color=colour, label=name)
            ax.fill_between(at, smooth.min(0), smooth.max(0), color=colour, alpha=0.15, linewidth=0)
        ax.set_title(f"{r['lesson']}, {len(curves)} seeds", fontsize=10)
        ax.set_xlabel("step")
        ax.set_yscale("log")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[0][0].set_ylabel("training loss")
    axes[0][0].legend(frameon=False, fontsize=8)
    fig.tight_layout()
    fig.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the lessons, appends JSONL, prints the table and draws the curves."""
    parser = argparse.ArgumentParser(prog="benchmarks.learning_curves", description=__doc__)
    parser.add_argument("folder", nargs="?", default="out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="lessons with this in their name")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    records = []
    lessons = [lesson for lesson in LESSONS if given.only.lower() in lesson.name.lower()]
    if not lessons:
        parser.error(f"--only: got {given.only!r}; valid is a part of {', '.join(x.name for x in LESSONS)}")
    for lesson in track(lessons, "learning", console=Console(stderr=True)):
        records.append(record(lesson, given.seeds, given.steps))
        with open(given.folder / "learning_curves.jsonl", "a") as f:
            f.write(json.dumps(records[-1]) + "\n")
    print(text(records))
    picture(records, given.folder / "learning_curves.png")


if __name__ == "__main__":
    main()
