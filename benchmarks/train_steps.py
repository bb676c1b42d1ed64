"""Training steps as users of Flax and optax write them, and what runs them in a process of its own.

A step is `value_and_grad` of the mean cross entropy and SGD with momentum, in f32, with batch norm in training mode.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state

import xcoexec
from xcoexec.ir.words import HOST
from xcoexec.models.zoo import Entry
from xcoexec.session.race import GOES_ON
from xcoexec.tools.machine import environment

from .block_processes import Block, own_output, peak_bytes, serve
from .networks import get
from .train_cases import BATCHES, MOMENTUM, RATE

CHECKED = 5  # steps whose losses are compared
MEASURED_STEPS = 3  # behind the first one, before a process' memory is read
ZERO = 1e-6  # of the largest leaf's scale
SETTLED_SECONDS = 2.0  # of ours, in which the plan is compared in use
Data = tuple[jax.Array, jax.Array]


class NormState(train_state.TrainState):
    """A `TrainState` with the running statistics of batch norm."""

    batch_stats: Any


def in_training(call: Callable[..., Any], args: Any, kwargs: Any, context: nn.module.InterceptorContext) -> Any:
    """For `nn.intercept_methods`: batch norm takes its batch's statistics, though the network was written for
    inference.
    """
    if isinstance(context.module, nn.BatchNorm):
        object.__setattr__(context.module, "use_running_average", False)
    return call(*args, **kwargs)


def loss_of(params: Any, state: NormState, data: Data) -> tuple[jax.Array, Any]:
    """(mean cross entropy, changed variables)."""
    x, y = data
    logits, changed = state.apply_fn({"params": params, "batch_stats": state.batch_stats}, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), changed


@dataclasses.dataclass(frozen=True)
class Training:
    """A network in training: `batch` random images with a class each, or random tokens whose next one is asked."""

    name: str
    batch: int

    @property
    def entry(self) -> Entry:
        return get(self.name)

    def apply(self, variables: Any, x: jax.Array) -> tuple[jax.Array, Any]:
        """(logits, changed variables) in training mode."""
        with nn.intercept_methods(in_training):
            return cast(tuple[jax.Array, Any], self.entry.module.apply(variables, x, mutable=["batch_stats"]))

    def state(self) -> NormState:
        """The state before the first step, the same ones at every call."""
        return self._state_of(self.entry.variables())

    def shapes(self) -> NormState:
        """Shapes and types of `state`, of which nothing is drawn."""
        return cast(NormState, jax.eval_shape(self._state_of, self.entry.shapes()))

    def _state_of(self, variables: Any) -> NormState:
        return NormState.create(
            apply_fn=self.apply,
            params=variables["params"],
            tx=optax.sgd(RATE, momentum=MOMENTUM),
            batch_stats=variables.get("batch_stats", {}),
        )

    def data(self, seed: int) -> Data:
        """(inputs [batch, ...], labels [batch] or, of tokens, [batch, length])."""
        x = cast(jax.Array, self.entry.example(self.batch, seed + 1))
        if self.entry.vocabulary:
            return x, jnp.roll(x, -1, axis=1)
        shape = jax.eval_shape(self.entry.module.apply, self.entry.shapes(), x)
        labels = np.random.default_rng(seed).integers(0, shape.shape[-1], self.batch)
        return x, jnp.asarray(labels.astype(np.int32))

    @staticmethod
    def step(state: NormState, data: Data) -> tuple[NormState, jax.Array]:
        """(next state, loss)."""
        (value, changed), grads = jax.value_and_grad(loss_of, has_aux=True)(state.params, state, data)
        return state.apply_gradients(grads=grads, batch_stats=changed.get("batch_stats", {})), value

    @staticmethod
    def forward(state: NormState, data: Data) -> tuple[Any, jax.Array]:
        """(changed statistics, loss) without gradients: what a step does before its backward pass."""
        loss, changed = loss_of(state.params, state, data)
        return changed, loss

    @staticmethod
    def gradient(state: NormState, data: Data) -> Any:
        """Gradients of the loss by the parameters."""
        return jax.grad(loss_of, has_aux=True)(state.params, state, data)[0]


def block_of(call: Callable[..., Any], state: Callable[[], Any], data: list[Data], feed: bool = True) -> Block:
    """Seconds of each step for so many seconds, from a first state on; every loss is awaited, and the first step is not
    counted unless it is the only one. `feed`: a step gets the state that the one before gave.
    """

    def block(seconds: float) -> list[float]:
        times: list[float] = []
        now, began = state(), time.perf_counter()
        while not times or time.perf_counter() - began < seconds:
            start = time.perf_counter()
            out, loss = call(now, data[len(times) % len(data)])
            loss.block_until_ready()
            times.append(time.perf_counter() - start)
            now = out if feed else now
        return times[1:] or times

    return block


def losses_of(call: Callable[..., Any], state: NormState, data: list[Data]) -> list[float]:
    """Losses of the first `CHECKED` steps."""
    found = []
    for i in range(CHECKED):
        state, loss = call(state, data[i % len(data)])
        found.append(float(loss))
    return found


def copied(state: NormState) -> NormState:
    """The same numbers in arrays that may be given away."""
    return cast(NormState, jax.tree.map(jnp.copy, state))


def _widened(x: Any) -> Any:
    return jnp.asarray(np.asarray(x), jnp.float64) if jnp.result_type(x) == jnp.float32 else x


def gradients(training: Training) -> dict[str, dict[str, float]]:
    """How far the first step's gradients are from those in float64, on kernels ("ours") and by `jax.jit`: "leaf" is the
    largest difference of a leaf, of the leaf's scale, "norm" that of all leaves by their norms. Leaves that are zero
    but for rounding are left out.
    """
    state, data = training.state(), training.data(0)
    kernels = xcoexec.Plan.uniform(1.0)
    calls = {"ours": xcoexec.jit(training.gradient, plan=kernels), "jit": jax.jit(training.gradient)}
    found = {k: [np.asarray(g, np.float64) for g in jax.tree.leaves(f(state, data))] for k, f in calls.items()}
    with jax.enable_x64(True):
        wide = jax.tree.map(_widened, (state, data))
        truth = [np.asarray(g) for g in jax.tree.leaves(jax.jit(training.gradient)(*wide))]
    scales = [np.abs(t).max() for t in truth]
    kept = [i for i, s in enumerate(scales) if s > ZERO * max(scales)]
    norm = lambda leaves: float(np.sqrt(sum(np.sum(x**2) for x in leaves)))
    return {
        k: {
            "leaf": max(float(np.abs(g[i] - truth[i]).max() / scales[i]) for i in kept),
            "norm": norm([g[i] - truth[i] for i in kept]) / norm([truth[i] for i in kept]),
        }
        for k, g in found.items()
    }


# -- processes ---------------------------------------------------------------------------------------


def timed(training: Training, donate: bool, forward: bool, out: TextIO) -> None:
    """A process whose blocks are those of "jit", "ours" and, with `forward`, of our own forward pass."""
    given: Any = {"donate_argnums": 0} if donate else {}
    ours, plain = xcoexec.jit(training.step, wait=True, **given), jax.jit(training.step, **given)
    state, data = training.state(), [training.data(i) for i in range(BATCHES)]
    losses = {k: losses_of(f, copied(state), data) for k, f in (("jit", plain), ("ours", ours))}
    fresh = lambda: copied(state)
    blocks = {"jit": block_of(plain, fresh, data), "ours": block_of(ours, fresh, data)}
    if forward:
        ahead = xcoexec.jit(training.forward, wait=True)
        blocks["forward"] = block_of(ahead, fresh, data, feed=False)
        blocks["forward"](0.0)
    for name in ("ours", "forward")[: 1 + forward]:  # until the plan has been compared in use
        blocks[name](SETTLED_SECONDS)
    while GOES_ON in ours.report(copied(state), data[0]).why:
        blocks["ours"](SETTLED_SECONDS)
    hello = {"losses": losses, "loss_error": _apart(losses), **environment(), "parameters": training.entry.parameters}
    serve(hello | ran(ours, copied(state), data[0]), blocks, out)


def _apart(losses: Mapping[str, list[float]]) -> float:
    """The largest difference of the losses, of their size."""
    mine, theirs = (np.array(losses[k]) for k in ("ours", "jit"))
    return float(np.max(np.abs(mine - theirs) / np.maximum(np.abs(theirs), 1e-6)))


def ran(ours: Any, state: NormState, data: Data) -> dict[str, Any]:
    """What the report says of a step: by whom it ran, and how many layers on which half; why kernels cannot run those
    that they cannot.
    """
    report = ours.report(state, data)
    on_kernels = sum(x.placement.startswith(HOST) for x in report.layers)
    return {"ran": report.ran, "why": report.why, "layers": len(report.layers), "on_kernels": on_kernels}


def first(training: Training, kind: str, donate: bool) -> dict[str, Any]:
    """What a process sees that begins to train: seconds of its first step, seconds until its plan is made, and its peak
    of memory with `MEASURED_STEPS` steps more. `kind`: "jit" or "ours".
    """
    given: Any = {"donate_argnums": 0} if donate else {}
    call: Any = jax.jit(training.step, **given) if kind == "jit" else xcoexec.jit(training.step, **given)
    state, data = training.state(), training.data(0)
    shapes = training.shapes() if kind == "jit" else None
    jax.block_until_ready((state, data))
    began = time.perf_counter()
    state, loss = call(state, data)
    loss.block_until_ready()
    found: dict[str, Any] = {"first_seconds": time.perf_counter() - began}
    if kind != "jit":
        call.ready()
        found["planned_seconds"] = time.perf_counter() - began
    for _ in range(MEASURED_STEPS):
        state, loss = call(state, data)
        loss.block_until_ready()
    found["peak_bytes"] = peak_bytes()
    if kind == "jit":
        used = call.lower(shapes, data).compile().memory_analysis()
        names = ("argument", "output", "alias", "temp")
        found["xla_bytes"] = {k: getattr(used, f"{k}_size_in_bytes") for k in names}
    return found


def main(argv: list[str]) -> None:
    out = own_output()
    parser = argparse.ArgumentParser(prog="benchmarks.train_steps", description=__doc__)
    parser.add_argument("what", choices=("timed", "gradients", "jit", "ours"))
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("--donate", action="store_true")
    parser.add_argument("--forward", action="store_true")
    given = parser.parse_args(argv)
    training = Training(given.model, given.batch)
    if given.what == "timed":
        timed(training, given.donate, given.forward, out)
        return
    serve(gradients(training) if given.what == "gradients" else first(training, given.what, given.donate), {}, out)


if __name__ == "__main__":
    main(sys.argv[1:])
