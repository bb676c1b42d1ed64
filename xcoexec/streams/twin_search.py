"""Training twins in a frozen network, and finding them by DARTS (Liu et al., ICLR 2019; BlastNet, section 5.1.2).

| of a `Search` | BlastNet | ours |
|---|---|---|
| `space` | "blocks": one of a pool of candidates of all depths and widths | "operations": of each layer, after both |
| `near` | 0: the loss of Equation 2 is the network's alone | 1: and how far the values are from the block's |
| `by` | "darts"; "similarity" is its baseline of section 6.3 | "darts" |

"similarity" searches and trains alike, with the Euclidean distance between the block's output and the candidate's as
the only loss. `BLASTNET` is the paper's search. Ours alone are layers that add to their input (`twins`).
"""

from __future__ import annotations

import dataclasses
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
from ..planning.spans import Span
from .compiled_spans import cut_out
from .twins import OPERATIONS, Params, Shape, initial, twin_of

if TYPE_CHECKING:
    import optax

P = TypeVar("P")

Batch = tuple[np.ndarray, np.ndarray]  # images [n, height, width, channels] f32, labels [n] i32
Apply = Callable[[Any, jax.Array], jax.Array]  # (weights, images) -> logits; weights are a pytree of the user's
#: (params, choice, images, labels) -> loss
Loss = Callable[[P, jax.Array | None, jax.Array, jax.Array], jax.Array]
Candidate = Callable[[P, jax.Array | None, jax.Array], jax.Array]  # (params, choice, the block's input) -> its output


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
    """Steps of the search and of the training behind it, batch size, rate and seed; `by`, `space` and `near` are in the
    table above. Of the space "blocks": `depths`, layers of a candidate, and `widths`, its channels (Figure 8: up to 10,
    and 32 to 512, each twice the one before). Raises `ValueError` for another `by` or `space`.
    """

    steps: int = 120
    finetune: int = 800
    batch: int = 64
    rate: float = 5e-3
    seed: int = 0
    by: str = "darts"
    space: str = "operations"
    near: float = 1.0
    depths: tuple[int, ...] = tuple(range(1, 11))
    widths: tuple[int, ...] = (32, 64, 128, 256, 512)

    def __post_init__(self) -> None:
        for what, valid in (("by", ("darts", "similarity")), ("space", ("operations", "blocks"))):
            if getattr(self, what) not in valid:
                words = ", ".join(map(repr, valid))
                raise ValueError(f"xcoexec.streams.duo: got {what}={getattr(self, what)!r}; valid are {words}.")


BLASTNET = Search(space="blocks", near=0.0)


def apart(got: jax.Array, want: jax.Array) -> jax.Array:
    """How far a twin's values are from the block's, arrays of one shape: mean square, as a share of the block's own."""
    return jnp.mean((got - want) ** 2) / (jnp.mean(want**2) + 1e-6)


def euclidean(got: jax.Array, want: jax.Array) -> jax.Array:
    """The mean over images of the Euclidean distance between two arrays of shape [n, ...] (BlastNet, section 6.3)."""
    squares = jnp.square(got - want).reshape(got.shape[0], -1).sum(1)
    return jnp.sqrt(squares + 1e-12).mean()  # whose gradient is finite at 0


def loss_of(net: Frozen, spans: Sequence[Span], block: int, candidate: Candidate[P], search: Search) -> Loss[P]:
    """(params, choice, x, y) -> cross-entropy of the path through a block's candidate and, times `near`, how far its
    values are from the block's; by similarity the latter's Euclidean distance alone. `x`, `y`: images of shape [n,
    height, width, channels] and labels [n].
    """
    given, made = net.ends(spans[block])

    def loss(params: P, choice: jax.Array | None, x: jax.Array, y: jax.Array) -> jax.Array:
        env = net.before(x, spans, block)
        got = candidate(params, choice, env[given])
        want = net.run(spans[block], env)[made] if search.near or search.by == "similarity" else got
        if search.by == "similarity":
            return euclidean(got, want)
        env = {**env, made: got}
        for span in spans[block + 1 :]:
            env = net.run(span, env)
        (out,) = net.folded.outputs
        picked = jnp.take_along_axis(jax.nn.log_softmax(env[out]), y[:, None], 1)  # type: ignore[index]
        return -picked.mean() + search.near * apart(got, want)

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
    """Where a search is: weights, and how much of each choice, each with its optimizer's state."""

    params: Any
    state: optax.OptState
    choice: jax.Array
    choice_state: optax.OptState


def relaxed(loss: Loss[P], params: P, choice: jax.Array, search: Search, batches: Iterator[Batch]) -> np.ndarray:
    """First-order DARTS: weights on one batch, how much of each choice there is on the next. Returns the latter, of the
    shape of `choice`.
    """
    import optax

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
    return np.asarray(now.choice)


class Place(NamedTuple):
    """A block of a frozen network for which a twin is searched; `nonlinear`: it ends with ReLU."""

    net: Frozen
    spans: Sequence[Span]
    block: int
    nonlinear: bool

    def loss(self, shape: Shape, search: Search) -> Loss[Params]:
        """Of a twin of this shape in the block's place."""
        one = lambda params, choice, x: twin_of(shape, self.nonlinear, params, x, choice, learning=True)
        return loss_of(self.net, self.spans, self.block, one, search)


def best_operations(place: Place, shape: Shape, search: Search, batches: Iterator[Batch]) -> Shape:
    """Ours: depth and width are given, of each layer the strongest operation stays."""
    names = tuple(OPERATIONS[shape.half])
    choice = jnp.zeros((len(shape.layers), len(names)))
    found = relaxed(place.loss(shape, search), initial(shape, search.seed), choice, search, batches)
    kept = [names[int(k)] for k in np.argmax(found, axis=1)]
    return dataclasses.replace(shape, layers=tuple(n for n in kept if n != "none"))


def best_block(place: Place, pool: Sequence[Shape], search: Search, batches: Iterator[Batch]) -> Shape:
    """BlastNet's: all candidates at once in the block's place, each by its share; the strongest one stays."""

    def mixed(params: list[Params], choice: jax.Array | None, x: jax.Array) -> jax.Array:
        assert choice is not None, "candidates are mixed by their shares"
        shares = jax.nn.softmax(choice)
        each = [twin_of(shape, place.nonlinear, p, x, learning=True) for shape, p in zip(pool, params, strict=True)]
        return sum(share * y for share, y in zip(shares, each, strict=True))  # type: ignore[return-value]

    if len(pool) == 1:
        return pool[0]
    loss = loss_of(place.net, place.spans, place.block, mixed, search)
    params = [initial(shape, search.seed) for shape in pool]
    found = relaxed(loss, params, jnp.zeros(len(pool)), search, batches)
    return pool[int(np.argmax(found))]


__all__ = [
    "BLASTNET",
    "Batch",
    "Frozen",
    "Place",
    "Search",
    "best_block",
    "best_operations",
    "descend",
    "euclidean",
    "loss_of",
    "relaxed",
]
