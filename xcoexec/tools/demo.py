"""The demo: LeNet trained on real digits, then three networks on photographs, against `jax.jit` in the same run."""

from __future__ import annotations

import pathlib
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from .. import models
from ..api.functions import jit
from ..api.resident import ResidentFunction
from ..ir.text import milliseconds, table
from ..measure.timing import Progress, alternate
from ..session import timeline
from ..session.session import Session
from .progress import shown

if TYPE_CHECKING:
    import flax.linen as nn
    import optax
    from flax.typing import VariableDict
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

PHOTO_MODELS = ("mobilenet_v2", "squeezenet", "resnet18")
TRAIN_SECONDS = 5.0
TRAINED = 1437  # digits of 1797; the others are held out
console = Console(width=None if sys.stdout.isatty() else 120)


def main(out: str = "out", threads: int | None = None) -> None:
    """Runs everything and writes `timeline.json` and `plan.png` into the folder `out`. Raises `SystemExit` where one of
    the demo's packages is missing.
    """
    try:
        import matplotlib  # noqa: F401
        import optax  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError as e:
        raise SystemExit(
            f"xcoexec demo: got no module {e.name!r}; install the demo's packages with: pip install 'xcoexec[demo]'"
        ) from None
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    digits(threads)
    photos = photographs()
    console.print(
        "Next, three networks on two photographs. Their weights are random: what counts is speed and that the results"
        " agree.\n"
    )
    events: list[dict[str, object]] = []
    shown_plans = []
    for pid, name in enumerate(PHOTO_MODELS):
        fast, seconds = photograph_model(name, photos, threads)
        session = fast.session()
        part = timeline.events(session.graph, session.current.lowered) if isinstance(session, Session) else []
        events += [{**e, "pid": pid} for e in part]
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        shown_plans.append((name, fast, seconds))
    timeline.write(folder / "timeline.json", events)
    draw(shown_plans, folder / "plan.png")
    console.print(f"written: {folder / 'timeline.json'} (open it in ui.perfetto.dev), {folder / 'plan.png'}")


# -- digits ------------------------------------------------------------------------------------------


def digits(threads: int | None) -> None:
    """Trains LeNet-5 with optax on scikit-learn's digits and checks every prediction on the held-out ones."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = jax.image.resize(
        jnp.asarray(data.images, jnp.float32)[..., None] / 16.0, (len(data.images), 28, 28, 1), "linear"
    )
    labels = jnp.asarray(data.target)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = np.split(order, [TRAINED])
    module = models.get("lenet").module
    with shown("lenet") as progress:
        weights, steps = fit(module, images[train], labels[train], progress)
        fast = jit(module.apply, threads=threads, progress=progress, wait=True).bind(weights)
        plain = jax.jit(module.apply)
        mine = np.array([int(np.argmax(np.asarray(fast(x[None])))) for x in images[test]])
        theirs = np.array([int(plain(weights, x[None]).argmax()) for x in images[test]])
        x = images[test][:1]
        seconds = alternate(
            {"jit": lambda: plain(weights, x).block_until_ready(), "xco": lambda: jax.block_until_ready(fast(x))},
            8,
            0.05,
        )
    same = int((mine == theirs).sum())
    right = float((mine == np.asarray(labels[test])).mean())
    console.print(f"[bold]LeNet-5 on {len(test)} held-out digits[/] (trained on {len(train)} in {steps} steps)")
    console.print(
        f"  predictions equal to jax.jit's: {same} of {len(test)}; accuracy {right:.1%}; ran: {fast.report().ran}"
    )
    us = {k: t * 1e6 for k, t in seconds.items()}
    console.print(f"  jax.jit {us['jit']:.0f} us, xcoexec {us['xco']:.0f} us: {seconds['jit'] / seconds['xco']:.2f}x\n")


def fit(module: nn.Module, x: jax.Array, y: jax.Array, progress: Progress) -> tuple[VariableDict, int]:
    """Some seconds of Adam on images `x` of shape [n, 28, 28, 1] and labels `y` of shape [n]; (weights, steps)."""
    import optax

    weights = module.init(jax.random.key(0), x[:1])
    optimiser = optax.adam(2e-3)
    state = optimiser.init(weights)

    @jax.jit
    def step(
        weights: VariableDict, state: optax.OptState, x: jax.Array, y: jax.Array
    ) -> tuple[VariableDict, optax.OptState]:
        def loss(w: VariableDict) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(module.apply(w, x), y).mean()

        updates, state = optimiser.update(jax.grad(loss)(weights), state)
        return optax.apply_updates(weights, updates), state

    rng = np.random.default_rng(1)
    done = 0
    end = time.perf_counter() + TRAIN_SECONDS
    while time.perf_counter() < end and done < 400:
        pick = rng.integers(0, len(y), 64)
        weights, state = step(weights, state, x[pick], y[pick])
        done += 1
        progress("training", done, 400)
    return jax.block_until_ready(weights), done


# -- photographs -------------------------------------------------------------------------------------


def photographs() -> list[jax.Array]:
    """scikit-learn's two sample photographs, f32 arrays of shape [1, 224, 224, 3], normalised."""
    from sklearn.datasets import load_sample_images

    out = []
    for image in load_sample_images().images:
        side = min(image.shape[:2])
        top = (image.shape[0] - side) // 2
        left = (image.shape[1] - side) // 2
        square = jnp.asarray(image[top : top + side, left : left + side], jnp.float32) / 255.0
        out.append((jax.image.resize(square, (224, 224, 3), "linear")[None] - 0.45) / 0.225)
    return out


def photograph_model(
    name: str, photos: list[jax.Array], threads: int | None
) -> tuple[ResidentFunction, dict[str, float]]:
    """Plans one network (random weights), compares it with jax.jit on every photograph, prints its table; returns the
    function and the median seconds of both.
    """
    entry = models.get(name)
    weights = entry.variables()
    plain = jax.jit(entry.module.apply)
    with shown(name) as progress:
        fast = jit(entry.module.apply, threads=threads, progress=progress, wait=True).bind(weights)
        worst = 0.0
        for x in photos:
            want = np.asarray(plain(weights, x))
            got = np.asarray(fast(x))
            worst = max(worst, float(np.abs(want - got).max() / np.abs(want).max()))
        x = photos[0]
        seconds = alternate(
            {"jit": lambda: plain(weights, x).block_until_ready(), "xco": lambda: jax.block_until_ready(fast(x))},
            5,
            0.2,
        )
    report = fast.report()
    rows = [[r.layer, r.placement, milliseconds(r.predicted), milliseconds(r.measured)] for r in report.layers]
    console.print(
        table(f"{name} at 224x224: the plan", ("layer", "placement", "predicted ms", "measured ms"), rows, (2, 3))
    )
    ms = {k: t * 1e3 for k, t in seconds.items()}
    console.print(
        f"[bold]{name}[/]: jax.jit {ms['jit']:.2f} ms, xcoexec {ms['xco']:.2f} ms:"
        f" [bold]{seconds['jit'] / seconds['xco']:.2f}x[/]; largest difference {worst:.1e} of the output's scale;"
        f" ran: {report.ran} ({report.why})\n"
    )
    return fast, seconds


# -- picture -----------------------------------------------------------------------------------------

COLOURS = {"host": "#e8883a", "device": "#3a78b8", "split": "#5aa469"}


NAMES = {
    "host": "ran on the host half (generated kernels)",
    "device": "ran on the device half (XLA)",
    "split": "split between both",
}


def draw(plans: Sequence[tuple[str, ResidentFunction, dict[str, float]]], path: pathlib.Path) -> None:
    """One column a network, one bar a layer: where it ran and how long, and what XLA alone takes for it. `plans`:
    (name, function, median seconds of "jit" and "xco").
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    rows = max(len(fast.plan().placements) for _, fast, _ in plans)
    fig, axes = plt.subplots(1, len(plans), figsize=(5.6 * len(plans), 0.17 * rows + 1.6), squeeze=False)
    for ax, (name, fast, seconds) in zip(axes[0], plans, strict=True):
        _draw_layers(ax, fast)
        title = f"{name}: {1e3 * seconds['xco']:.2f} ms, jax.jit {1e3 * seconds['jit']:.2f} ms"
        ax.set_title(title, fontsize=10, loc="left")
    handles: list[Artist] = [Patch(color=COLOURS[k], label=v) for k, v in NAMES.items()]
    handles.append(Line2D([], [], color="#444444", marker="|", linestyle="", label="the layer in XLA alone"))
    fig.legend(handles=handles, loc="lower center", ncols=4, fontsize=9, frameon=False)
    fig.suptitle("Which layer ran where, and how long (batch 1, 224x224)", fontsize=12)
    fig.tight_layout(rect=(0, 0.03, 1, 0.99))
    fig.savefig(path, dpi=110)


def _draw_layers(ax: Axes, fast: ResidentFunction) -> None:
    """One network's column."""
    layers = [x for x in fast.report().layers if x.measured or x.flops]
    where_is = {x.name: i for i, x in enumerate(fast.graph().layers)}
    alone = fast.session().costs().device
    for y, x in enumerate(layers):
        ms = 1e3 * (x.measured or x.predicted or 0.0)
        ax.barh(y, ms, color=COLOURS[x.placement.split()[0]], height=0.75)
        ax.plot(1e3 * alone[where_is[x.layer]], y, "|", color="#444444", markersize=6)
    ax.set_yticks(range(len(layers)), ["/".join(x.layer.split("/")[1:]) or x.layer for x in layers], fontsize=5.5)
    ax.set_ylim(len(layers), -1)
    ax.set_xscale("log")
    ax.set_xlabel("milliseconds (log scale)", fontsize=8)
    ax.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
