"""Duo-blocks: which blocks get a twin for the other half, the search for them, and the accuracy of every path
(BlastNet, sections 5.1.2 and 6.3).
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..api.functions import jit
from ..api.resident import ResidentFunction
from ..codegen.rules.convolution import convolution
from ..measure.timing import median_seconds
from ..planning.spans import Span
from .block_model import MOST_BLOCKS, Model, Twin, model
from .blocks import EPSILON, TWIN_SECONDS, Worth, blocks, deserving, merged
from .datasets import Data
from .jobs import Accuracy
from .neuropipe import OTHER
from .twin_search import Apply, Batch, Frozen, Place, Search, best_block, best_operations, descend
from .twins import DEPTHS, OPERATIONS, WIDTHS, Params, Shape, initial, replaced, twin_of

LATENCY = 1.2  # times what its block takes on its own half that a twin may take
GAIN = 0.5  # or such a share of what the block takes on the other one
PATHS = 64  # execution paths that are measured; the rest is bounded from them


@dataclasses.dataclass(frozen=True, eq=False)
class Duo:
    """A function's blocks, the twins of some, and the accuracy of every execution path (those measured)."""

    spans: tuple[Span, ...]
    shapes: Mapping[int, tuple[Shape, bool]]
    params: Mapping[int, Params]
    accuracy: Accuracy

    @property
    def twins(self) -> tuple[Twin, ...]:
        return tuple(
            Twin(k, shape.half, functools.partial(twin_of, shape, nonlinear), self.params[k])
            for k, (shape, nonlinear) in self.shapes.items()
        )

    def model(self, resident: ResidentFunction, x: object) -> Model:
        """Blocks and twins, compiled and timed for inputs of the shapes of `x`: what a task of the scheduler runs.
        Raises `ValueError` for an input that the function cannot take.
        """
        return model(resident, x, spans=self.spans, twins=self.twins, accuracy=self.accuracy)

    def save(self, folder: str | pathlib.Path) -> None:
        """Writes the twins' weights as an Orbax checkpoint and everything else as JSON beside it."""
        import orbax.checkpoint as ocp

        where = pathlib.Path(folder).absolute()
        where.mkdir(parents=True, exist_ok=True)
        with ocp.PyTreeCheckpointer() as checkpointer:
            if self.params:
                checkpointer.save(where / "twins", {str(k): _flat(p) for k, p in self.params.items()}, force=True)
        text = {
            "spans": [[x.start, x.stop] for x in self.spans],
            "shapes": {k: [dataclasses.asdict(s), nonlinear] for k, (s, nonlinear) in self.shapes.items()},
            "accuracy": [[sorted(p), a] for p, a in self.accuracy.of_paths.items()],
        }
        (where / "duo.json").write_text(json.dumps(text, indent=1))

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> Duo:
        """What `save` wrote. Raises `FileNotFoundError` for any other folder."""
        import orbax.checkpoint as ocp

        where = pathlib.Path(folder).absolute()
        if not (where / "duo.json").is_file():
            raise FileNotFoundError(
                f"xcoexec.streams.duo: got the folder {str(folder)!r} without duo.json; valid is one that save() wrote."
            )
        text = json.loads((where / "duo.json").read_text())
        shapes = {int(k): (_shape(s), bool(nonlinear)) for k, (s, nonlinear) in text["shapes"].items()}
        with ocp.PyTreeCheckpointer() as checkpointer:
            flat = checkpointer.restore(where / "twins") if shapes else {}
        params = {k: _nested(initial(shape), flat[str(k)]) for k, (shape, _) in shapes.items()}
        accuracy = Accuracy({frozenset(p): float(a) for p, a in text["accuracy"]})
        return cls(tuple(Span(*x) for x in text["spans"]), shapes, params, accuracy)


def _shape(d: Mapping[str, Any]) -> Shape:
    return Shape(d["half"], tuple(d["given"]), tuple(d["made"]), d["width"], tuple(d["layers"]), d["convolved"])


def _flat(params: Params) -> dict[str, np.ndarray]:
    return {str(i): np.asarray(x) for i, x in enumerate(jax.tree_util.tree_leaves(params))}


def _nested(like: Params, flat: Mapping[str, np.ndarray]) -> Params:
    leaves, tree = jax.tree_util.tree_flatten(like)
    params: Params = jax.tree_util.tree_unflatten(tree, [np.asarray(flat[str(i)]) for i in range(len(leaves))])
    return params


def generate(
    fn: Apply,
    weights: object,
    data: Data,
    *,
    threads: int | None = None,
    epsilon: float = EPSILON,
    most: int = MOST_BLOCKS,
    search: Search | None = None,
) -> Duo:
    """Twins for the blocks of a trained function that deserve one, and the accuracy of the paths (BlastNet, sections
    5.1.1, 5.1.2 and 6.3).

    Blocks are chosen by this machine's measured seconds; short neighbours that do not deserve a twin become one. By
    measurement, twins take on their half no more than 1.2 times what the block takes on its own, or half of what it
    takes there; in the space "blocks" less than it takes there, as the paper has it.

    Args:
      fn: (weights, images f32 [n, height, width, channels]) -> logits [n, classes].
      weights: a pytree of arrays.
      data: what twins are trained with and paths are judged by.
      threads: of the host half (default: the cores that this process may use).
      epsilon: CD (seconds on the slower half over those on the faster one) above which a block gets a twin, 1 or 10 in
        the paper; its share of the work (WP) is above 1 / blocks.
      most: blocks at most.
      search: steps, seeds and kind of the search (default: ours; `twin_search.BLASTNET` is the paper's).

    Raises `ValueError` for a function with more than one input or result, or whose layers depend on the batch size.
    """
    search = search or Search()
    resident = jit(fn, threads=threads, strategy="host").bind(weights)
    one = data.test[0][:1]
    jax.block_until_ready(resident(one))
    s = resident.session()
    if len(s.problem.folded.inputs) != 1 or len(s.problem.folded.outputs) != 1:
        raise ValueError(
            "xcoexec.streams.duo: got a function of several inputs or results; valid is (weights, images) -> logits."
        )
    costs = s.costs()
    spans = blocks(s.graph, costs, most, TWIN_SECONDS)
    net = Frozen.of(fn, weights, np.zeros((search.batch, *one.shape[1:]), np.float32))
    if [x.name for x in net.graph.layers] != [x.name for x in s.graph.layers]:
        raise ValueError(
            f"xcoexec.streams.duo: got a function whose layers differ between batches of 1 and {search.batch}; valid is"
            " one with the same."
        )
    worthy = deserving(spans, s.graph, costs, epsilon)
    found = {w.span: twin(net, spans, spans.index(w.span), w, data, search) for w in worthy}
    spans = merged(spans, found.keys(), costs)
    twins = {spans.index(span): t for span, t in found.items() if t is not None}
    shapes = {k: shape for k, (shape, _) in twins.items()}
    params = {k: params for k, (_, params) in twins.items()}
    duo = Duo(spans, shapes, params, Accuracy())
    return dataclasses.replace(duo, accuracy=measured_paths(net, duo, data, search))


Takes = Callable[[Shape, bool], float]  # (shape, nonlinear) -> seconds on its half


def twin(
    net: Frozen,
    spans: Sequence[Span],
    block: int,
    worth: Worth,
    data: Data,
    search: Search,
    takes: Takes | None = None,
) -> tuple[tuple[Shape, bool], Params] | None:
    """The twin of one block (its shape, whether it ends with ReLU, its weights); None where none of the shapes takes
    few enough seconds on its half. `takes`: what tells them (default: measurement).
    """
    takes = takes or latency
    kind = _kind(net, spans[block], worth.half)
    nonlinear = net.graph.layers[spans[block].stop - 1].group.result.prim in ("max", "reduce_window_max")
    place = Place(net, spans, block, nonlinear)
    batches = data.batches(search.batch, search.seed)
    shape: Shape | None
    if search.space == "blocks":
        pool = candidates(kind, nonlinear, worth.secondary, search, takes)
        shape = best_block(place, pool, search, batches) if pool else None
    else:
        shape = fitting(kind, nonlinear, max(LATENCY * worth.primary, GAIN * worth.secondary), takes)
        if shape is not None and shape.image:
            shape = best_operations(place, shape, search, batches)
    if shape is None:
        return None
    loss = place.loss(shape, search)
    own = lambda p, x, y: loss(p, None, x, y)
    trained = descend(own, initial(shape, search.seed), search.finetune, search.rate, batches)
    return (shape, nonlinear), jax.tree_util.tree_map(np.asarray, trained)


def candidates(
    shape: Shape, nonlinear: bool, seconds: float, search: Search, takes: Takes | None = None
) -> tuple[Shape, ...]:
    """BlastNet's pool (section 5.1.2, Figure 8): stacks of every depth and width whose time on their half is below the
    old block's there (`seconds`; the constraint of Equation 2). CPU: depthwise-separable layers; GPU: dense
    convolutions; of vectors: dense layers. That depths of dense stacks and windows (3x3) are these is ours.
    """
    if not replaced(shape):
        return ()
    takes = takes or latency
    operation = next(iter(OPERATIONS[shape.half])) if shape.image else "dense"
    every = (_stack(shape, operation, depth, width) for depth in search.depths for width in search.widths)
    return tuple(s for s in every if takes(s, nonlinear) < seconds)


def _kind(net: Frozen, span: Span, primary: str) -> Shape:
    """What the twin of a block for the half that is not its primary one reads and makes, without layers yet."""
    given, made = net.ends(span)
    one = lambda v: (1, *v.shape[1:])
    inside = net.graph.layers[span.start : span.stop]
    convolved = any(convolution(op) is not None for x in inside for op in x.ops)
    return Shape(OTHER[primary], one(given), one(made), 0, (), convolved)


def fitting(shape: Shape, nonlinear: bool, seconds: float, takes: Takes | None = None) -> Shape | None:
    """Ours: the deepest stack, and of these the widest, that takes at most so many `seconds` on its half with its
    slowest operations, by measurement; None where not even the smallest one does, or a twin cannot make the block's
    values.
    """
    if not replaced(shape):
        return None
    takes = takes or latency
    slowest = next(iter(OPERATIONS[shape.half])) if shape.image else "dense"
    for depth in DEPTHS[shape.half] if shape.image else (1,):
        stack = functools.partial(_stack, shape, slowest, depth)
        k = bisect.bisect_left(WIDTHS, True, key=lambda width: takes(stack(width), nonlinear) <= seconds)
        if k < len(WIDTHS):
            return dataclasses.replace(stack(WIDTHS[k]), layers=("any" if shape.image else slowest,) * depth)
    return None


def _stack(shape: Shape, operation: str, depth: int, width: int) -> Shape:
    return dataclasses.replace(shape, width=width, layers=(operation,) * depth)


@functools.lru_cache(maxsize=512)
def latency(shape: Shape, nonlinear: bool) -> float:
    """Seconds of a twin on its half."""
    resident = jit(functools.partial(twin_of, shape, nonlinear), strategy=shape.half).bind(initial(shape))
    x = np.full(shape.given, 0.5, np.float32)
    return median_seconds(lambda: jax.block_until_ready(resident(x)))


def measured_paths(net: Frozen, duo: Duo, data: Data, search: Search) -> Accuracy:
    """Accuracy (shares of the test images, 0..1) of all paths, or, where there are too many, of those with one, two and
    all twins and random ones.
    """
    keys = sorted(duo.shapes)
    everything = [frozenset(c) for n in range(len(keys) + 1) for c in itertools.combinations(keys, n)]
    if len(everything) > PATHS:
        rng = np.random.default_rng(search.seed)
        chosen = [*everything[: 1 + len(keys)], everything[-1]]
        rest = everything[1 + len(keys) : -1]
        everything = chosen + [rest[int(i)] for i in rng.choice(len(rest), PATHS - len(chosen), replace=False)]
    return Accuracy({path: path_accuracy(net, duo, path, data.test, search.batch) for path in everything})


def path_accuracy(net: Frozen, duo: Duo, path: frozenset[int], test: Batch, batch: int) -> float:
    """The share of test images that the path with twins in the places of these blocks classifies rightly."""
    twins = {t.block: functools.partial(t.apply, t.params) for t in duo.twins if t.block in path}
    run = jax.jit(lambda x: net.logits(x, duo.spans, twins))
    x, y = test
    right = 0
    for i in range(0, len(x), batch):
        part = x[i : i + batch]
        padded = np.concatenate([part, np.zeros((batch - len(part), *part.shape[1:]), np.float32)])
        right += int((np.argmax(np.asarray(run(padded))[: len(part)], 1) == y[i : i + batch]).sum())
    return right / len(x)


__all__ = ["Duo", "Frozen", "Search", "Shape", "candidates", "generate", "measured_paths", "twin"]
