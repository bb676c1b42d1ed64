"""A bound network as blocks that are compiled for both halves and timed there: what the scheduler runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from ..api.resident import ResidentFunction
from ..codegen.program import Unsupported
from ..session.session import Session
from .blocks import blocks, replaceable
from .jobs import ACCURACY, BOTH, HALVES, Accuracy, Block, Way
from .spans import Env, Part, Span, divisible, finish, part, start
from .valid import Rule, checked, optional, shown

MEASURED_SECONDS = 0.02  # of calls of a block in one way
FEWEST_RUNS = 5
MOST_BLOCKS = 12


Call = Callable[[Env], dict[Any, Any]]


class Network(Protocol):
    """What a task runs: `begin` with an input, `run` each block in turn in one of its ways, `result` at the end."""

    @property
    def blocks(self) -> tuple[Block, ...]: ...

    @property
    def accuracy(self) -> Accuracy: ...

    def begin(self, x: Any) -> Any: ...

    def run(self, block: int, way: Way, state: Any) -> Any: ...

    def result(self, state: Any) -> Any: ...


@dataclasses.dataclass(frozen=True)
class Twin:
    """A small network that stands for a block on its other half: (params, x) -> y, of the shapes that the block takes
    and makes.
    """

    block: int
    half: str
    apply: Callable[[Any, Any], Any]
    params: Any


WHERE = "xcoexec.streams.model"
BOUND = Rule("what xcoexec.jit(...).bind(weights) returns", lambda x: isinstance(x, ResidentFunction))
TWINS = Rule(
    'a sequence of Twins for "device" or "host"',
    lambda x: (
        isinstance(x, Sequence)
        and all(isinstance(t, Twin) and isinstance(t.block, int) and callable(t.apply) for t in x)
    ),
    lambda x: all(t.half in HALVES for t in x),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A bound function for one shape of input, in blocks; weights are loaded once for each half that runs them."""

    stages: Session
    spans: tuple[Span, ...]
    blocks: tuple[Block, ...]
    accuracy: Accuracy
    calls: Mapping[tuple[int, Way], Call]
    shape: tuple[Any, ...]
    tree: Any

    def begin(self, x: Any) -> Env:
        """Raises `ValueError` for an input of another shape: blocks are compiled and timed for one."""
        return start(self.stages, self.check(x))

    def check(self, x: Any) -> list[Any]:
        """An input's arrays. Raises `ValueError` for one of another shape."""
        leaves, tree = jax.tree_util.tree_flatten(x)
        if tree != self.tree or shape_of(leaves) != self.shape:
            got, valid = form(shape_of(leaves), tree), form(self.shape, self.tree)
            raise ValueError(
                f"xcoexec.Scheduler: got an input of shapes {got}; valid are {valid}, for which the task was made."
            )
        return leaves

    def run(self, block: int, way: Way, state: Env) -> Env:
        return self.calls[block, way](state)

    def result(self, state: Env) -> Any:
        return finish(self.stages, state)


def shape_of(leaves: Sequence[Any]) -> tuple[Any, ...]:
    return tuple((tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__))) for x in leaves)


def form(shape: Sequence[tuple[tuple[int, ...], str]], tree: Any) -> str:
    """An input's arrays in words, and where they are in it."""
    texts = [f"{dtype}[{','.join(map(str, sizes))}]" for sizes, dtype in shape]
    return texts[0] if jax.tree_util.treedef_is_leaf(tree) and texts else f"({', '.join(texts)}) in {shown(tree)}"


def input_of(where: str, bound: ResidentFunction, x: Any, of: str = "") -> None:
    """Calls a bound function. Raises `ValueError` for an input that it cannot take."""
    try:
        jax.block_until_ready(bound(x))
    except (TypeError, ValueError) as e:
        why = (str(e).splitlines() or [""])[0]
        text = f"got an input of shapes {form(shape_of(jax.tree_util.tree_leaves(x)), jax.tree_util.tree_structure(x))}{of}"
        raise ValueError(
            f"{where}: {text}, for which the function raises {type(e).__name__} ({why}); valid is one that it takes."
        ) from e


def model(
    bound: ResidentFunction,
    x: Any,
    *,
    spans: Sequence[Span] | None = None,
    twins: Sequence[Twin] = (),
    accuracy: Accuracy | None = None,
) -> Model:
    """Compiles and times the blocks of a bound function for inputs like `x`.

    `spans`: its blocks (default: merged by what moving between the halves costs, at most 12). Raises `TypeError` or
    `ValueError`, the latter for a function that cannot be run in parts too.
    """
    checked(WHERE, "bound", bound, BOUND)
    checked(WHERE, "twins", twins, TWINS)
    checked(WHERE, "accuracy", accuracy, optional(ACCURACY))
    input_of(WHERE, bound, x)
    s = bound.session()
    if spans is not None:
        checked(WHERE, "spans", spans, _covering(len(s.graph.layers)))
    if not divisible(s):
        raise ValueError(
            "xcoexec.Scheduler: got a function of one layer, or with results that no layer makes; valid is a network of several layers."
        )
    spans = tuple(spans) if spans is not None else blocks(s.graph, s.costs(), MOST_BLOCKS)
    if wrong := [t.block for t in twins if not 0 <= t.block < len(spans) or not replaceable(s.graph, spans[t.block])]:
        raise ValueError(
            f"xcoexec.Scheduler: got a twin for block {wrong[0]}; valid are blocks that make one value from one."
        )
    env: Env = start(s, jax.tree_util.tree_leaves(x))
    ways: list[dict[tuple[str, bool], Call]] = []
    moved, here = [], env
    for i, span in enumerate(spans):
        parts = {half: p for half in (*HALVES, BOTH) if (p := _compiled(s, span, half)) is not None}
        anyone = next(iter(parts.values()))
        ways.append(
            {(half, False): p for half, p in parts.items()}
            | {(t.half, True): twin_call(t, anyone, here, s.machine.threads) for t in twins if t.block == i}
        )
        moved.append(_moved(anyone, here, s))
        here = anyone(here)
    calls: dict[tuple[int, Way], Call] = {}
    made = []
    for i, (span, block, seconds) in enumerate(zip(spans, ways, _seconds(ways, env), strict=True)):
        timed = {Way(half, t, twin): call for ((half, twin), call), t in zip(block.items(), seconds, strict=True)}
        calls.update({(i, w): c for w, c in timed.items()})
        made.append(
            Block(f"{s.graph.layers[span.start].name} ({span.stop - span.start} layers)", tuple(timed), moved[i])
        )
    leaves, tree = jax.tree_util.tree_flatten(x)
    return Model(s, spans, tuple(made), accuracy or Accuracy(), calls, shape_of(leaves), tree)


def _covering(layers: int) -> Rule:
    """Spans as blocks of a network."""
    kind = lambda x: isinstance(x, Sequence) and all(isinstance(s, Span) for s in x)
    ends = lambda x: [0, *(s.stop for s in x)]
    holds = lambda x: (
        [s.start for s in x] == ends(x)[:-1] and all(s.start < s.stop for s in x) and ends(x)[-1] == layers
    )
    return Rule(f"a sequence of spans that cover layers 0 to {layers} in order", kind, holds)


def _compiled(s: Session, span: Span, half: str) -> Part | None:
    """A block on a half; None where it cannot run there (kernels that are missing, or nothing of it can be divided)."""
    if half == BOTH and not s.machine.apart:
        return None
    try:
        return part(s, span, half)
    except Unsupported:
        return None


def _seconds(ways: Sequence[Mapping[tuple[str, bool], Call]], env: Env) -> list[list[float]]:
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
                begin = time.perf_counter()
                out = call(given)
                seconds.append(time.perf_counter() - begin)
                here = out if k == 0 else here
    return [[float(np.median(seconds)) for seconds in samples] for samples in took]


def _moved(p: Part, env: Env, s: Session) -> float:
    """Seconds to bring a block's inputs to the other half."""
    if not s.machine.apart:
        return 0.0
    return s.costs().exchange(sum(env[v].nbytes for v in p.inputs))


def twin_call(t: Twin, block: Part, env: Env, threads: int) -> Call:
    """A twin in its block's place, compiled for its half like any network."""
    from ..api.functions import jit

    (given,), (made,) = block.inputs, block.outputs
    bound = jit(t.apply, strategy=t.half, threads=threads).bind(t.params)
    x = np.asarray(env[given])
    bound(x)
    s = bound.session()
    whole = part(s, Span(0, len(s.graph.layers)), t.half)
    (out,) = whole.outputs

    def call(env: Env) -> dict[Any, Any]:
        return {**env, made: whole(dict(zip(s.problem.folded.inputs, (env[given],), strict=True)))[out]}

    return call


__all__ = ["Model", "Network", "Twin", "model", "shape_of"]
