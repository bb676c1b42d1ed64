"""What depends on weights alone is computed once, at bind: constant folding, and batch norm into the anchor.

`fold` divides a trace into a *prologue* (definitions of constants from weights) and the program of one
call. Constant arrays are not blown up for their elementwise readers: a broadcast of a constant stays in
the program, where kernels and XLA read it with stride 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import jax
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from ..codegen.program import Literal, Op, Value, consumers
from ..codegen.rules import reference
from ..codegen.rules.primitives import is_broadcast, is_elementwise, is_movement, primitive
from ..compat import bind, uncommitted
from .one_hot import by_choice
from .only_read import only_read
from .requantise import by_reciprocals, scales_of_sums
from .simplify import bit_by_bit, in_f64, simplified, typed, wide
from .trace import Traced

Array = np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Def:
    """One constant of the program, as a function of earlier ones."""

    value: Value
    args: tuple[Value, ...]
    fn: Callable[..., ArrayLike]


@dataclasses.dataclass(frozen=True, eq=False)
class Folded:
    """`weights` are inputs of the trace that are known at bind (`weight_index`: their positions). `hidden`: how many
    of the last outputs are not the function's.
    """

    inputs: tuple[Value, ...]
    input_index: tuple[int, ...]
    weights: tuple[Value, ...]
    weight_index: tuple[int, ...]
    closed: tuple[tuple[Value, ArrayLike], ...]
    prologue: tuple[Def, ...]
    ops: tuple[Op, ...]
    outputs: tuple[Value | Literal, ...]
    weak: tuple[bool, ...] = ()  # the outputs that are of a weak type; none where nothing is said
    hidden: int = 0

    def constants(self, weights: Sequence[ArrayLike]) -> Constants:
        """The program's constants for given weights, which are of the shapes of `self.weights`. Raises `ValueError`
        for more or fewer of them.
        """
        return Constants(self, weights)

    def handed(self, given: Sequence[int]) -> dict[int, int]:
        """Position of an input -> that of the result that comes in its place, for those of the positions `given`, which
        a call gives away, that have one: of the same shape and type, each once and in order, as `jax.jit` pairs those
        that the function reads.
        """
        free = {o: (x.shape, x.dtype) for o, x in enumerate(self.outputs)}
        read = {v for op in self.ops for v in op.value_ins} | {x for x in self.outputs if isinstance(x, Value)}
        found: dict[int, int] = {}
        for i, v in ((i, self.inputs[i]) for i in given if self.inputs[i] in read):
            at = next((o for o, about in free.items() if about == (v.shape, v.dtype)), None)
            if at is not None:
                found[i] = at
                del free[at]
        return found


class Constants(Mapping[Value, Array]):
    """Constants, computed when they are asked for (folding is done in f64, results are of each value's type).

    What is asked for is not kept, so that binding a large model does not hold its folded weights twice;
    only the small steps on the way are.
    """

    def __init__(self, folded: Folded, weights: Sequence[ArrayLike]):
        self._env: dict[Value, ArrayLike] = dict(zip(folded.weights, weights, strict=True)) | dict(folded.closed)
        self._defs = {d.value: d for d in folded.prologue}
        self._steps: dict[Value, Array] = {}

    def __getitem__(self, v: Value) -> Array:
        return _narrow(self._compute(v), v.dtype)

    def __iter__(self) -> Iterator[Value]:
        yield from (*self._env, *self._defs)

    def __len__(self) -> int:
        return len(self._env) + len(self._defs)

    def _compute(self, v: Value) -> Array:
        if v in self._env:
            return _array(self._env[v])
        return _array(self._defs[v].fn(*map(self._step, self._defs[v].args)))

    def _step(self, v: Value) -> Array:
        if v not in self._steps:
            self._steps[v] = _overflown(self._compute(v), v.dtype)
        return self._steps[v]


def _array(x: ArrayLike) -> Array:
    """A NumPy array; keys of random numbers are known to JAX alone."""
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
        return x  # type: ignore[return-value]
    return np.asarray(x)


def _narrow(x: Array, dtype: str) -> Array:
    return x if str(x.dtype) == dtype else x.astype(dtype)


def _overflown(x: Array, dtype: str) -> Array:
    """What is computed in f64 is infinite where a value of its own type is."""
    if dtype != "float32" or x.dtype != np.float64:
        return x
    with np.errstate(over="ignore"):
        narrow = x.astype(np.float32)
    return np.where(np.isinf(narrow), narrow, x) if np.isinf(narrow).any() else x


def _typed(x: Array, v: Value) -> Array:
    return _narrow(x, v.dtype)


def _function(op: Op, index: int) -> Callable[..., ArrayLike]:
    """The operation's result of that index as a function of the values that it reads."""
    in_wide = in_f64(op)

    def by_reference(*xs: Array) -> Array:
        it = iter(xs)
        read = lambda v: wide(next(it)) if in_wide else _typed(next(it), v)
        out = reference.apply(op, *(wide(typed(i)) if isinstance(i, Literal) else read(i) for i in op.ins))
        return out[index] if isinstance(out, list) else out

    def by_jax(*xs: Array) -> jax.Array:
        it = iter(xs)
        full = [typed(i) if isinstance(i, Literal) else _typed(next(it), i) for i in op.ins]
        return bind(op.primitive, full, dict(op.params))[index]

    return by_reference if in_wide or bit_by_bit(op) else by_jax  # which compiles a program for each shape


class _Bound:
    """What is known at bind: `known` constants by their definitions `prologue`, and `lazy` broadcasts of constants,
    which are put off until somebody needs all of their elements.
    """

    def __init__(self, known: Iterable[Value]):
        self.known = set(known)
        self.prologue: list[Def] = []
        self.lazy: dict[Value, Op] = {}

    def define(self, value: Value, args: tuple[Value, ...], fn: Callable[..., ArrayLike]) -> None:
        """Makes a value known."""
        self.prologue.append(Def(value, args, fn))
        self.known.add(value)

    def settle(self, v: Value) -> None:
        """Makes a constant of a broadcast that was put off (and of what it is made from)."""
        op = self.lazy.pop(v, None)
        if op is not None:
            for a in op.value_ins:
                self.settle(a)
            self.define(v, op.value_ins, _function(op, 0))

    def takes(self, op: Op) -> bool:
        """Whether an operation is computed at bind; its results are known, or put off, from now on."""
        sources = op.value_ins
        constant = all(v in self.known or v in self.lazy for v in sources) and not primitive(op).effect
        reads_lazily = is_elementwise(op) or is_movement(op)
        grows = is_broadcast(op) and op.out.size > max((v.size for v in sources), default=0)
        if not reads_lazily or (constant and not grows):
            for v in sources:
                self.settle(v)
        if constant and grows:
            self.lazy[op.out] = op
        elif constant:
            for i, v in enumerate(op.outs):
                self.define(v, sources, _function(op, i))
        return constant


def fold(traced: Traced, weight_index: Sequence[int]) -> Folded:
    """Divides a trace whose inputs at the positions `weight_index` are known at bind."""
    chosen = set(weight_index)
    order = tuple(i for i in range(len(traced.inputs)) if i not in chosen)
    weights = tuple(v for i, v in enumerate(traced.inputs) if i in chosen)
    inputs = tuple(traced.inputs[i] for i in order)
    bound = _Bound([*weights, *(v for v, _ in traced.consts)])
    traced_ops, outputs = simplified(traced.ops, traced.outputs, bound.known)
    ops = [op for op in traced_ops if not bound.takes(op)]
    for out in outputs:
        if isinstance(out, Value):
            bound.settle(out)
    ops = _with_broadcasts(ops, bound.lazy)
    ops = _fold_affine(ops, bound, outputs)
    ops = by_reciprocals(_merge_affine(ops, bound, outputs), bound.known, bound.define)
    ops = by_choice(ops, bound.known, bound.define)
    ops = only_read(ops, outputs, bound.known)
    index, prologue = tuple(sorted(chosen)), tuple(bound.prologue)
    closed = tuple((v, uncommitted(x)) for v, x in traced.consts)
    return Folded(inputs, order, weights, index, closed, prologue, tuple(ops), outputs, traced.weak)


def _with_broadcasts(ops: list[Op], lazy: Mapping[Value, Op]) -> list[Op]:
    """Puts a broadcast of a constant right in front of its first reader."""
    out: list[Op] = []
    placed: set[Value] = set()

    def need(v: Value) -> None:
        if v in lazy and v not in placed:
            placed.add(v)
            for a in lazy[v].value_ins:
                need(a)
            out.append(lazy[v])

    for op in ops:
        for v in op.value_ins:
            need(v)
        out.append(op)
    return out


# -- batch norm into the anchor ---------------------------------------------------------------------


def channel_axes(op: Op) -> tuple[int, int] | None:
    """(output-channel axis of the weights, of the result) of a convolution or a plain x @ W; None of anything else."""
    rule = primitive(op).channels
    return rule(op) if rule is not None else None


Affine = Callable[[Array, Array, Array], tuple[Array, Array]]
#: prim -> (does the running result stand on the left, new scale, new shift) given (scale, shift, constant).
_AFFINE: dict[tuple[str, bool], Affine] = {
    ("add", True): lambda s, t, c: (s, t + c),
    ("add", False): lambda s, t, c: (s, t + c),
    ("sub", True): lambda s, t, c: (s, t - c),
    ("sub", False): lambda s, t, c: (-s, c - t),
    ("mul", True): lambda s, t, c: (s * c, t * c),
    ("mul", False): lambda s, t, c: (s * c, t * c),
    ("div", True): lambda s, t, c: (s / c, t / c),
}


def _fold_affine(ops: list[Op], bound: _Bound, outputs: Sequence[Value | Literal]) -> list[Op]:
    """Rewrites anchor, affine, affine, ... as anchor with scaled weights plus one shift."""
    readers = consumers(ops)
    out_set = set(outputs)
    gone: set[Op] = set()
    out: list[Op] = []
    for op in ops:
        if op in gone:
            continue
        axes = channel_axes(op)
        foldable = (
            axes is not None
            and op.ins[1] in bound.known
            and op.out.dtype == op.ins[1].dtype == "float32"
            and not _narrow_product(op)
        )
        run = _affine_run(op, axes[1], readers, bound.known, out_set) if axes is not None and foldable else []
        if axes is None or len(run) < 2:
            out.append(op)
            continue
        gone.update(run)
        out += _scaled(op, run, axes, bound)
    return out


def _narrow_product(op: Op) -> bool:
    """Whether kernels read the weights of a product in fewer bits, which scaled ones would not fit."""
    w = op.ins[1]
    return op.prim == "dot_general" and isinstance(w, Value) and w.source is not None


def _affine_run(
    op: Op, axis: int, readers: Mapping[Value, list[Op]], known: set[Value], outputs: set[Value | Literal]
) -> list[Op]:
    """The additions and scalings by channel (along `axis`) that follow an operation, as long as nobody else reads what
    is between them.
    """
    run: list[Op] = []
    v = op.out
    while v not in outputs and len(readers.get(v, [])) == 1:
        nxt = readers[v][0]
        left = nxt.ins[0] is v
        if (nxt.prim, left) not in _AFFINE or nxt.ins.count(v) != 1 or nxt.out.shape != op.out.shape:
            break
        if not _per_channel(nxt.ins[1 if left else 0], len(op.out.shape), axis, known):
            break
        run.append(nxt)
        v = nxt.out
    return run


def _per_channel(c: Value | Literal, rank: int, axis: int, known: set[Value]) -> bool:
    if isinstance(c, Literal):
        return True
    return (
        c in known
        and c.dtype == "float32"
        and (not c.shape or (len(c.shape) == rank and all(n == 1 for d, n in enumerate(c.shape) if d != axis)))
    )


def _scaled(op: Op, run: list[Op], axes: tuple[int, int], bound: _Bound) -> list[Op]:
    """The operation with scaled weights and one shift, in the place of itself and the run that follows it."""
    wv = op.ins[1]
    assert isinstance(wv, Value)
    waxis, oaxis = axes
    channels, rank = op.out.shape[oaxis], len(op.out.shape)
    args, affine = _affine(op.out, run, channels)

    def weights(w: Array, *xs: Array) -> Array:
        shape = [1] * len(wv.shape)
        shape[waxis] = channels
        out = np.empty(w.shape, np.float32)  # products of f64, rounded as they are made: no array of them lies beside
        return np.multiply(w, affine(*xs)[0].reshape(shape), out=out, dtype=np.float64, casting="same_kind")

    bshape = tuple(channels if d == oaxis else 1 for d in range(rank))
    w2, shift, mid = Value(wv.shape, "float32"), Value(bshape, "float32"), Value(op.out.shape, "float32")
    bound.define(w2, (wv, *args), weights)
    bound.define(shift, args, lambda *xs: affine(*xs)[1].reshape(bshape))
    add = next(a for a in run if a.prim in ("add", "sub", "mul", "div"))
    return [
        dataclasses.replace(op, ins=(op.ins[0], w2), outs=(mid,)),
        Op("add", (mid, shift), (run[-1].out,), {}, add.name, lax.add_p),
    ]


def _affine(v: Value, run: Sequence[Op], channels: int) -> tuple[tuple[Value, ...], Callable[..., tuple[Array, Array]]]:
    """What a run of scalings and additions on `v` does to each channel: the constants that it reads, and the function
    from these to (scale, shift).
    """
    steps: list[tuple[Affine, Value | Literal]] = []
    for a in run:
        left = a.ins[0] is v
        steps.append((_AFFINE[a.prim, left], a.ins[1 if left else 0]))
        v = a.out
    args = tuple(dict.fromkeys(c for _, c in steps if isinstance(c, Value)))

    def affine(*xs: Array) -> tuple[Array, Array]:
        vals = dict(zip(args, xs, strict=True))
        s: Array = np.ones(channels)
        t: Array = np.zeros(channels)
        for rule, c in steps:
            x = np.broadcast_to(np.ravel(wide(c.val if isinstance(c, Literal) else vals[c])), (channels,))
            s, t = rule(s, t, x)
        return s, t

    return args, affine


def _merge_affine(ops: list[Op], bound: _Bound, outputs: Sequence[Value | Literal]) -> list[Op]:
    """Rewrites what scales and shifts the sums of a product of int8 as one scale plus one shift."""
    readers, out_set = consumers(ops), set(outputs)
    instead: dict[Op, list[Op]] = {}
    for anchor, start in scales_of_sums(ops, bound.known):
        axes = channel_axes(anchor)
        run = _affine_run(start, axes[1], readers, bound.known, out_set) if axes is not None else []
        if axes is not None and len(run) > 2:
            instead.update((op, []) for op in run)
            instead[run[-1]] = _one_scale(start.out, run, axes[1], bound)
    return [new for op in ops for new in instead.get(op, [op])]


def _one_scale(v: Value, run: Sequence[Op], axis: int, bound: _Bound) -> list[Op]:
    """A run on `v` as a product and a sum."""
    channels, rank = v.shape[axis], len(v.shape)
    args, affine = _affine(v, run, channels)
    shape = tuple(channels if d == axis else 1 for d in range(rank))
    scale, shift, mid = Value(shape, "float32"), Value(shape, "float32"), Value(v.shape, "float32")
    bound.define(scale, args, lambda *xs: affine(*xs)[0].reshape(shape))
    bound.define(shift, args, lambda *xs: affine(*xs)[1].reshape(shape))
    name = run[-1].name
    return [
        Op("mul", (v, scale), (mid,), {}, name, lax.mul_p),
        Op("add", (mid, shift), run[-1].outs, {}, name, lax.add_p),
    ]
