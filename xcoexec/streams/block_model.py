"""A network with resident weights as blocks that are compiled for both halves and timed there: what the scheduler
runs.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import jax
import numpy as np
from numpy.typing import ArrayLike

from ..api.functions import jit
from ..api.resident import ResidentFunction
from ..codegen.program import Unsupported
from ..ir.words import HALVES
from ..planning.spans import Span
from ..session.session import Session
from .arguments import Rule, checked, optional, shown
from .blocks import blocks, replaceable
from .compiled_spans import Array, CompiledSpan, Env, Shapes, begin, compile_span, divisible, finish
from .jobs import ACCURACY, BOTH, Accuracy, Block, Way

MEASURED_SECONDS = 0.02  # of calls of a block in one way
FEWEST_RUNS = 5
MOST_BLOCKS = 12
WHERE = "xcoexec.streams.model"

Call = Callable[[Env], Env]
#: what a block is run by: (half, whether by its twin) -> call
Calls = Mapping[tuple[str, bool], Call]


class Network(Protocol):
    """What a task runs: `begin` with an input, `run` each block in turn in one of its ways, `result` at the end."""

    @property
    def blocks(self) -> tuple[Block, ...]: ...

    @property
    def accuracy(self) -> Accuracy: ...

    def begin(self, x: Any) -> object:
        """A job's state in front of its first block."""

    def run(self, block: int, way: Way, state: Any) -> object:
        """The state behind a block, from that in front of it."""

    def result(self, state: Any) -> object:
        """A job's result, of the state behind the last block."""


@dataclasses.dataclass(frozen=True)
class Twin:
    """A small network that stands for a block on its other half: (params, x) -> y, of the shapes that the block takes
    and makes.
    """

    block: int
    half: str
    apply: Callable[[Any, jax.Array], jax.Array]
    params: object


RESIDENT = Rule("what xcoexec.jit(...).bind(weights) returns", lambda x: isinstance(x, ResidentFunction))
TWINS = Rule(
    'a sequence of Twins for "device" or "host"',
    lambda x: isinstance(x, Sequence) and all(map(_is_twin, x)),
    lambda x: all(t.half in HALVES for t in x),
)


def _is_twin(x: object) -> bool:
    return isinstance(x, Twin) and isinstance(x.block, int) and callable(x.apply)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A function with resident weights for one shape of input, in blocks; weights are loaded once for each half that
    runs them. `shape`: (sizes, dtype) of each of the input's arrays; `tree`: where they are in it.
    """

    session: Session
    spans: tuple[Span, ...]
    blocks: tuple[Block, ...]
    accuracy: Accuracy
    calls: Mapping[tuple[int, Way], Call]
    shape: Shapes
    tree: jax.tree_util.PyTreeDef

    def __repr__(self) -> str:
        return f"<xcoexec network of {len(self.blocks)} blocks for {form(self.shape, self.tree)}>"

    def begin(self, x: object) -> Env:
        """The values in front of the first block. Raises `ValueError` for an input of another shape: blocks are
        compiled and timed for one.
        """
        return begin(self.session, self.check(x))

    def check(self, x: object) -> list[Array]:
        """An input's arrays. Raises `ValueError` for one of another shape."""
        leaves, tree = jax.tree_util.tree_flatten(x)
        if tree != self.tree or shape_of(leaves) != self.shape:
            got = form(shape_of(leaves), tree)
            valid = form(self.shape, self.tree)
            raise ValueError(
                f"xcoexec.Scheduler: got an input of shapes {got}; valid are {valid}, for which the task was made."
            )
        return leaves

    def run(self, block: int, way: Way, state: Env) -> Env:
        """The arrays behind a block, from those in front of it."""
        return self.calls[block, way](state)

    def result(self, state: Env) -> object:
        """What the function returns."""
        return finish(self.session, state)

    @functools.cached_property
    def in_layers(self) -> Model:
        """The same function, each layer a block of its own, without twins, compiled and timed when it is first asked
        for: what policies place that know no blocks (Layer_Sched of BlastNet's section 6.4).
        """
        x = [np.zeros(sizes, dtype) for sizes, dtype in self.shape]
        spans = tuple(Span(i, i + 1) for i in range(len(self.session.graph.layers)))
        made, calls = _timed(self.session, spans, (), begin(self.session, x))
        own = Accuracy({frozenset(): self.accuracy.of(frozenset())})
        return dataclasses.replace(self, spans=spans, blocks=made, calls=calls, accuracy=own)


def shape_of(leaves: Sequence[ArrayLike]) -> Shapes:
    """(shape, dtype) of each array; of another leaf its type's name instead of a dtype."""
    return tuple((tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__))) for x in leaves)


def form(shape: Shapes, tree: jax.tree_util.PyTreeDef) -> str:
    """The shapes of an input's arrays in words, and where they are in it."""
    texts = [f"{dtype}[{','.join(map(str, sizes))}]" for sizes, dtype in shape]
    return texts[0] if jax.tree_util.treedef_is_leaf(tree) and texts else f"({', '.join(texts)}) in {shown(tree)}"


def input_of(where: str, resident: ResidentFunction, x: object, of: str = "") -> None:
    """Calls a function. Raises `ValueError` for an input that it cannot take."""
    try:
        jax.block_until_ready(resident(x))
    except (TypeError, ValueError) as e:
        why = (str(e).splitlines() or [""])[0]
        leaves, tree = jax.tree_util.tree_flatten(x)
        raise ValueError(
            f"{where}: got an input of shapes {form(shape_of(leaves), tree)}{of}, for which the function raises"
            f" {type(e).__name__} ({why}); valid is one that it takes."
        ) from e


def model(
    resident: ResidentFunction,
    x: object,
    *,
    spans: Sequence[Span] | None = None,
    twins: Sequence[Twin] = (),
    accuracy: Accuracy | None = None,
) -> Model:
    """Compiles and times the blocks of a function with resident weights for inputs like `x`.

    Args:
      resident: what `xcoexec.jit(...).bind(weights)` returns; it is called with `x`.
      x: an input of the shapes and types that all jobs have.
      spans: the function's blocks in order (default: merged by what moving between the halves costs, at most 12).
      twins: small networks that stand for blocks on their other halves.
      accuracy: what each path through blocks and twins was measured to reach (shares from 0 to 1; default: all 1).

    Raises `TypeError` or `ValueError` that says what is valid, the latter for a function that cannot be run in parts
    too.
    """
    checked(WHERE, "resident", resident, RESIDENT)
    checked(WHERE, "twins", twins, TWINS)
    checked(WHERE, "accuracy", accuracy, optional(ACCURACY))
    input_of(WHERE, resident, x)
    s = cast("Session", resident.session())  # a plain one raises when it is asked for layers
    if spans is not None:
        checked(WHERE, "spans", spans, _covering(len(s.graph.layers)))
    if not divisible(s):
        raise ValueError(
            "xcoexec.Scheduler: got a function of one layer, or with results that no layer makes; valid is a network of"
            " several layers."
        )
    chosen = tuple(spans) if spans is not None else blocks(s.graph, s.costs(), MOST_BLOCKS)
    _check_places(s, chosen, twins)
    leaves, tree = jax.tree_util.tree_flatten(x)
    made, calls = _timed(s, chosen, twins, begin(s, leaves))
    return Model(s, chosen, made, accuracy or Accuracy(), calls, shape_of(leaves), tree)


def _check_places(s: Session, spans: Sequence[Span], twins: Sequence[Twin]) -> None:
    """Raises `ValueError` for a twin that cannot stand for its block."""
    for t in twins:
        if not 0 <= t.block < len(spans) or not replaceable(s.graph, spans[t.block]):
            raise ValueError(
                f"xcoexec.Scheduler: got a twin for block {t.block}; valid are blocks that make one value from one."
            )


def _timed(
    s: Session, spans: Sequence[Span], twins: Sequence[Twin], env: Env
) -> tuple[tuple[Block, ...], dict[tuple[int, Way], Call]]:
    """The blocks of a function, compiled and timed in every way in which they can be run, and what runs them."""
    ways: list[Calls] = []
    moved: list[float] = []
    here = env
    for i, span in enumerate(spans):
        parts = {half: p for half in (*HALVES, BOTH) if (p := _compiled(s, span, half)) is not None}
        anyone = next(iter(parts.values()))
        own: dict[tuple[str, bool], Call] = {(half, False): p for half, p in parts.items()}
        others = {(t.half, True): twin_call(t, anyone, here, s.machine.threads) for t in twins if t.block == i}
        ways.append(own | others)
        moved.append(_moved(anyone, here, s))
        here = anyone(here)
    calls: dict[tuple[int, Way], Call] = {}
    made = []
    for i, (span, block, seconds) in enumerate(zip(spans, ways, _seconds(ways, env), strict=True)):
        timed = {Way(half, t, twin): call for ((half, twin), call), t in zip(block.items(), seconds, strict=True)}
        calls.update({(i, w): c for w, c in timed.items()})
        name = f"{s.graph.layers[span.start].name} ({span.stop - span.start} layers)"
        made.append(Block(name, tuple(timed), moved[i]))
    return tuple(made), calls


def _covering(layers: int) -> Rule:
    """Spans as blocks of a network."""
    kind = lambda x: isinstance(x, Sequence) and all(isinstance(s, Span) for s in x)

    def holds(spans: Sequence[Span]) -> bool:
        ends = [0, *(s.stop for s in spans)]
        in_order = [s.start for s in spans] == ends[:-1] and all(s.start < s.stop for s in spans)
        return in_order and ends[-1] == layers

    return Rule(f"a sequence of spans that cover layers 0 to {layers} in order", kind, holds)


def _compiled(s: Session, span: Span, half: str) -> CompiledSpan | None:
    """A block on a half; None where it cannot run there (kernels that are missing, or nothing of it can be divided)."""
    if half == BOTH and not s.machine.apart:
        return None
    try:
        return compile_span(s, span, half)
    except Unsupported:
        return None


def _seconds(ways: Sequence[Calls], env: Env) -> list[list[float]]:
    """Median seconds of every block in each way, in whole runs of the network: what the other blocks leave in the
    caches is as in operation.
    """
    took: list[list[list[float]]] = [[[] for _ in block] for block in ways]
    end = time.perf_counter() + MEASURED_SECONDS * sum(map(len, ways))
    while len(took[0][0]) < FEWEST_RUNS or time.perf_counter() < end:
        here = env
        for block, samples in zip(ways, took, strict=True):
            given = here
            for x in given.values():  # what has to be moved is counted apart; jax keeps the copy
                np.asarray(x)
            for k, (call, seconds) in enumerate(zip(block.values(), samples, strict=True)):
                began = time.perf_counter()
                out = call(given)
                seconds.append(time.perf_counter() - began)
                here = out if k == 0 else here
    return [[float(np.median(seconds)) for seconds in samples] for samples in took]


def _moved(p: CompiledSpan, env: Env, s: Session) -> float:
    """Seconds to bring a block's inputs to the other half."""
    return s.costs().exchange(sum(env[v].nbytes for v in p.inputs)) if s.machine.apart else 0.0


def twin_call(t: Twin, block: CompiledSpan, env: Env, threads: int) -> Call:
    """A twin in its block's place, compiled for its half like any network; `env`: the arrays in front of the block,
    whose shapes it is compiled for.
    """
    (given,) = block.inputs
    (made,) = block.outputs
    resident = jit(t.apply, strategy=t.half, threads=threads).bind(t.params)
    resident(np.asarray(env[given]))
    s = cast("Session", resident.session())  # a plain one raises when it is asked for layers
    whole = compile_span(s, Span(0, len(s.graph.layers)), t.half)
    (out,) = whole.outputs

    def call(env: Env) -> Env:
        return {**env, made: whole(begin(s, [env[given]]))[out]}

    return call


__all__ = ["Model", "Network", "Twin", "model", "shape_of"]
