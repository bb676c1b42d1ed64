"""Training twins in a frozen network, and finding their operations: DARTS (Liu et al., ICLR 2019), and by similarity as
the baseline.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..codegen.program import Value
from ..frontend.fold import Folded
from ..frontend.graph import graph_of
from ..ir.layers import LayerGraph
from ..lowering.emit import run_ops
from .compiled_spans import cut_out
from .spans import Span
from .twins import OPERATIONS, Params, Shape, initial, twin_of

if TYPE_CHECKING:
    import optax

P = TypeVar("P")

Batch = tuple[np.ndarray, np.ndarray]  # images [n, height, width, channels] f32, labels [n] i32
Apply = Callable[[Any, jax.Array], jax.Array]  # (weights, images) -> logits; weights are a pytree of the user's
#: (params, choice, images, labels) -> loss
Loss = Callable[[Params, jax.Array | None, jax.Array, jax.Array], jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class Frozen:
    """A trained function at a batch size, as spans that JAX can differentiate; its weights do not change."""

    folded: Folded
    graph: LayerGraph
    constants: Mapping[Value, jax.Array]

    @classmethod
    def of(cls, fn: Apply, weights: object, x: np.ndarray) -> Frozen:
        """The function with its layers for inputs of the shape of `x`, weights as constants."""
        folded, graph = graph_of(lambda w, x: fn(w, x), (weights, x), 1)
        known = folded.constants(jax.tree_util.tree_leaves(weights))
        return cls(folded, graph, {v: jnp.asarray(known[v]) for v in graph.program.consts})

    def run(self, span: Span, env: Mapping[Value, jax.Array]) -> dict[Value, jax.Array]:
        """The arrays behind a span, from those in front of it."""
        values = {**self.constants, **env}
        run_ops([op for x in self.graph.layers[span.start : span.stop] for op in x.ops], values)
        return {v: a for v, a in values.items() if v not in self.constants}

    def ends(self, span: Span) -> tuple[Value, Value]:
        """What a block that makes one value from one reads and makes."""
        part, _ = cut_out(self.folded, self.graph, span)
        (given,), (made,) = part.inputs, part.outputs
        return given, made  # type: ignore[return-value]

    def before(self, x: jax.Array, spans: Sequence[Span], block: int) -> dict[Value, jax.Array]:
        """The arrays that are there in front of a block, for inputs `x` of the shape that the function was traced
        for.
        """
        env = {self.folded.inputs[0]: x}
        for span in spans[:block]:
            env = self.run(span, env)
        return env

    def logits(
        self, x: jax.Array, spans: Sequence[Span], twins: Mapping[int, Callable[[jax.Array], jax.Array]]
    ) -> jax.Array:
        """The function's one result, of shape [n, classes], with twins in the places of some blocks."""
        env = {self.folded.inputs[0]: x}
        for i, span in enumerate(spans):
            if i in twins:
                given, made = self.ends(span)
                env[made] = twins[i](env[given])
            else:
                env = self.run(span, env)
        (out,) = self.folded.outputs
        return env[out]  # type: ignore[index]


MOST_NORM = 1.0  # of a gradient


@dataclasses.dataclass(frozen=True)
class Search:
    """Steps of the search and of the training behind it, batch size, seed; `by`: "darts" or "similarity" (the baseline
    of BlastNet's section 6.3 and Figure 14). Raises `ValueError` for another `by`.
    """

    steps: int = 120
    finetune: int = 800
    batch: int = 64
    rate: float = 5e-3
    seed: int = 0
    by: str = "darts"
    candidates: int = 4  # of the similarity-based search

    def __post_init__(self) -> None:
        if self.by not in ("darts", "similarity"):
            raise ValueError(f"xcoexec.streams.duo: got by={self.by!r}; valid are 'darts', 'similarity'.")


def apart(got: jax.Array, want: jax.Array) -> jax.Array:
    """How far a twin's values are from the block's, arrays of one shape: mean square, as a share of the block's own."""
    return jnp.mean((got - want) ** 2) / (jnp.mean(want**2) + 1e-6)


def loss_of(net: Frozen, spans: Sequence[Span], block: int, shape: Shape, nonlinear: bool) -> Loss:
    """(params, choice, x, y) -> cross-entropy of the path through the twin, and how far its values are from the
    block's; `x`, `y`: images of shape [n, height, width, channels] and labels [n].
    """
    given, made = net.ends(spans[block])

    def loss(params: Params, choice: jax.Array | None, x: jax.Array, y: jax.Array) -> jax.Array:
        env = net.before(x, spans, block)
        want = net.run(spans[block], env)[made]
        got = twin_of(shape, nonlinear, params, env[given], choice)
        env = {**env, made: got}
        for span in spans[block + 1 :]:
            env = net.run(span, env)
        (out,) = net.folded.outputs
        picked = jnp.take_along_axis(jax.nn.log_softmax(env[out]), y[:, None], 1)  # type: ignore[index]
        return -picked.mean() + apart(got, want)

    return loss


def descend(
    loss: Callable[[P, jax.Array, jax.Array], jax.Array], params: P, steps: int, rate: float, batches: Iterator[Batch]
) -> P:
    """Adam with a warm-up of a tenth of the steps, then a cosine down to 0; long gradients are clipped: deep stacks
    diverge without.
    """
    import optax

    warm = max(1, steps // 10)
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, warm, max(steps, warm + 1))
    optimizer = optax.chain(optax.clip_by_global_norm(MOST_NORM), optax.adam(schedule))
    state = optimizer.init(params)

    @jax.jit
    def step(params: P, state: optax.OptState, x: jax.Array, y: jax.Array) -> tuple[P, optax.OptState]:
        updates, state = optimizer.update(jax.grad(loss)(params, x, y), state)
        return optax.apply_updates(params, updates), state

    for _, (x, y) in zip(range(steps), batches, strict=False):
        params, state = step(params, state, x, y)
    return params


class Searched(NamedTuple):
    """Where a search is: weights, and how much of each operation of each layer ([layers, operations]), each with its
    optimizer's state.
    """

    params: Params
    state: optax.OptState
    choice: jax.Array
    choice_state: optax.OptState


def darts(loss: Loss, shape: Shape, search: Search, batches: Iterator[Batch]) -> Shape:
    """First-order DARTS: weights on one batch, the choice of operations on the next; the strongest operation of each
    layer stays.
    """
    import optax

    params = initial(shape, search.seed)
    choice = jnp.zeros((len(shape.layers), len(OPERATIONS[shape.half])))
    of_weights = optax.adam(search.rate)
    of_choice = optax.adam(10 * search.rate)

    @jax.jit
    def step(of: Searched, train: Batch, held: Batch) -> Searched:
        params, state, choice, choice_state = of
        updates, choice_state = of_choice.update(jax.grad(loss, 1)(params, choice, *held), choice_state)
        choice = optax.apply_updates(choice, updates)
        updates, state = of_weights.update(jax.grad(loss)(params, choice, *train), state)
        return Searched(optax.apply_updates(params, updates), state, choice, choice_state)

    now = Searched(params, of_weights.init(params), choice, of_choice.init(choice))
    for _ in range(search.steps):
        now = step(now, next(batches), next(batches))
    names = tuple(OPERATIONS[shape.half])
    kept = tuple(names[int(k)] for k in np.argmax(np.asarray(now.choice), axis=1))
    return dataclasses.replace(shape, layers=tuple(n for n in kept if n != "none"))


def similar(
    net: Frozen,
    spans: Sequence[Span],
    block: int,
    shape: Shape,
    nonlinear: bool,
    search: Search,
    batches: Iterator[Batch],
) -> Shape:
    """The baseline: of random shapes the one whose values come nearest to the block's, whatever the network then
    says.
    """
    rng = np.random.default_rng(search.seed)
    given, made = net.ends(spans[block])
    names = tuple(OPERATIONS[shape.half])

    def distance(candidate: Shape, params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
        env = net.before(x, spans, block)
        return apart(twin_of(candidate, nonlinear, params, env[given]), net.run(spans[block], env)[made])

    found = []
    for _ in range(search.candidates):
        layers = tuple(n for n in rng.choice(names, len(shape.layers)) if n != "none")
        candidate = dataclasses.replace(shape, layers=tuple(str(n) for n in layers))
        params = descend(
            functools.partial(distance, candidate),
            initial(candidate, search.seed),
            max(1, search.steps // search.candidates),
            search.rate,
            batches,
        )
        x, y = map(jnp.asarray, next(batches))
        found.append((float(distance(candidate, params, x, y)), candidate))
    return min(found, key=lambda f: f[0])[1]


__all__ = ["Batch", "Frozen", "Search", "darts", "descend", "loss_of", "similar"]
