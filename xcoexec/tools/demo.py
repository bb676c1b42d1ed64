"""The demo: LeNet trained on real digits, then three networks on photographs, against `jax.jit` in the same run."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from .. import models
from ..api.functions import jit
from ..api.resident import ResidentFunction
from ..ir.text import WIDTH, columns, duration, milliseconds, number
from ..measure.timing import Progress, alternate
from ..session import timeline
from ..session.session import Session
from .progress import shown

if TYPE_CHECKING:
    import flax.linen as nn
    import optax
    from flax.typing import VariableDict

PHOTO_MODELS = ("mobilenet_v2", "squeezenet", "resnet18")
TRAIN_STEPS = 150
SLOWEST = 5  # layers of each network that are printed
TRAINED = 1437  # digits of 1797; the others are held out
console = Console(width=None if sys.stdout.isatty() else WIDTH)


def main(out: str = "out", threads: int | None = None) -> None:
    """Runs everything and writes `timeline.json` and `plan.png` into the folder `out`. Raises `ValueError` where one of
    the demo's packages is missing.
    """
    try:
        import matplotlib  # noqa: F401
        import optax  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError as e:
        raise ValueError(
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
    differences = []
    for pid, name in enumerate(PHOTO_MODELS):
        fast, seconds, difference = photograph_model(name, photos, threads)
        differences.append(difference)
        session = fast.session()
        part = timeline.events(session.graph, session.current.lowered) if isinstance(session, Session) else []
        events += [{**e, "pid": pid} for e in part]
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        shown_plans.append((name, fast, seconds))
    console.print(f"Results differ by at most {max(differences):.0e} of their scale.")
    _tell(shown_plans)
    timeline.write(folder / "timeline.json", events)
    draw(shown_plans, folder / "plan.png")
    console.print(f"\nwritten: {folder / 'plan.png'}")
    console.print(f"written: {folder / 'timeline.json'} (open it in ui.perfetto.dev)")


# -- digits ------------------------------------------------------------------------------------------


def digits(threads: int | None) -> None:
    """Trains LeNet-5 with optax on scikit-learn's digits and checks every prediction on the held-out ones."""
    from sklearn.datasets import load_digits

    data = load_digits()
    large = jax.image.resize(data.images[..., None] / 16.0, (len(data.images), 28, 28, 1), "linear")
    images, labels = np.asarray(large, np.float32), np.asarray(data.target)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = np.split(order, [TRAINED])
    module = models.get("lenet").module
    with shown("lenet") as progress:
        weights, steps = fit(module, images[train], labels[train], progress)
        fast = jit(module.apply, threads=threads, progress=progress, wait=True).bind(weights)
        plain = jax.jit(module.apply)
        held_out = [jnp.asarray(x[None]) for x in images[test]]
        mine = np.array([np.asarray(fast(x)).argmax() for x in held_out])
        theirs = np.array([np.asarray(plain(weights, x)).argmax() for x in held_out])
        x = held_out[0]
        seconds = alternate(
            {"jit": lambda: plain(weights, x).block_until_ready(), "xco": lambda: jax.block_until_ready(fast(x))},
            8,
            0.05,
        )
    same = int((mine == theirs).sum())
    right = float((mine == labels[test]).mean())
    console.print(f"[bold]LeNet-5 on {len(test)} held-out digits[/] (trained on {len(train)} in {steps} steps)")
    console.print(
        f"  predictions equal to jax.jit's: {same} of {len(test)}; accuracy {right:.1%}; ran: {fast.report().ran}"
    )
    us = {k: t * 1e6 for k, t in seconds.items()}
    console.print(f"  jax.jit {us['jit']:.0f} us, xcoexec {us['xco']:.0f} us: {seconds['jit'] / seconds['xco']:.2f}x\n")


def fit(module: nn.Module, x: np.ndarray, y: np.ndarray, progress: Progress) -> tuple[VariableDict, int]:
    """`TRAIN_STEPS` steps of Adam on images `x`, [n, 28, 28, 1], and labels `y`, [n]; (weights, steps)."""
    import optax

    weights = jax.jit(module.init)(jax.random.key(0), x[:1])  # one program instead of one for each operation
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
    for done in range(TRAIN_STEPS):
        pick = rng.integers(0, len(y), 64)
        weights, state = step(weights, state, x[pick], y[pick])
        progress("training", done + 1, TRAIN_STEPS)
    return jax.block_until_ready(weights), TRAIN_STEPS


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
) -> tuple[ResidentFunction, dict[str, float], float]:
    """Plans one network (random weights), compares it with jax.jit on every photograph and prints a line; returns the
    function, the median seconds of both, and the largest difference relative to the output's scale.
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
    ms = {k: duration(t) for k, t in seconds.items()}
    gain = number(seconds["jit"] / seconds["xco"], 3)
    console.print(f"[bold]{name}[/]: jax.jit {ms['jit']}, xcoexec {ms['xco']}: [bold]{gain} times as fast[/]")
    return fast, seconds, worst


def _tell(plans: Sequence[tuple[str, ResidentFunction, dict[str, float]]]) -> None:
    """The slowest layers of each network, behind the lines that matter."""
    for name, fast, _ in plans:
        layers = sorted(fast.report().layers, key=lambda x: x.measured or x.predicted or 0.0, reverse=True)
        rows = [["layer", "runs on", "predicted ms", "measured ms"]]
        rows += [[x.layer, x.placement, milliseconds(x.predicted), milliseconds(x.measured)] for x in layers[:SLOWEST]]
        console.print(f"\n[bold]{name}[/]: the {SLOWEST} slowest of {len(layers)} layers")
        print(columns(rows, (2, 3), WIDTH))


# -- picture -----------------------------------------------------------------------------------------

COLOURS = {"host": "#e8883a", "split": "#5aa469", "device": "#3a78b8", "rest": "#d9d9d9"}
NAMES = {
    "host": "layers on CPU kernels",
    "split": "layers split between both",
    "device": "layers on XLA",
    "rest": "around the layers",
}


def seconds_by_place(fast: ResidentFunction, seconds: float) -> dict[str, float]:
    """Seconds of a call by where its layers ran; "rest" is what no layer took."""
    out = dict.fromkeys(NAMES, 0.0)
    for x in fast.report().layers:
        out[x.placement.split()[0]] += x.measured or x.predicted or 0.0
    whole = sum(out.values())
    if whole > seconds:  # the layers were measured in another moment than the call
        out = {k: s * seconds / whole for k, s in out.items()}
    return {**out, "rest": max(seconds - whole, 0.0)}


def draw(plans: Sequence[tuple[str, ResidentFunction, dict[str, float]]], path: pathlib.Path) -> None:
    """Two bars a network: XLA alone, and xcoexec's call by where its layers ran; times are relative to XLA's. `plans`:
    (name, function, median seconds of "jit" and "xco").
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(8.0, 0.95 * len(plans) + 1.2))
    for i, (_, fast, seconds) in enumerate(plans):
        ax.barh(2.6 * i, 1.0, color="#8c8c8c", height=0.9, label=None if i else "jax.jit")
        ax.text(1.01, 2.6 * i, f"jax.jit {duration(seconds['jit'])}", va="center", fontsize=9)
        left = 0.0
        for where, s in seconds_by_place(fast, seconds["xco"]).items():
            width = s / seconds["jit"]
            ax.barh(2.6 * i + 1, width, left=left, color=COLOURS[where], height=0.9, label=None if i else NAMES[where])
            left += width
        gain = number(seconds["jit"] / seconds["xco"], 3)
        ax.text(left + 0.01, 2.6 * i + 1, f"xcoexec {duration(seconds['xco'])} ({gain}x)", va="center", fontsize=9)
    ax.set_yticks([2.6 * i + 0.5 for i in range(len(plans))], [name for name, _, _ in plans])
    ax.set_xlim(0, 1.3)
    ax.set_xticks([])
    ax.invert_yaxis()
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.legend(ncols=5, fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.45, 0.02))
    ax.set_title("One call, batch 1, 224x224: shorter is faster", loc="left", fontsize=11)
    fig.tight_layout()
    fig.savefig(path, dpi=120)
