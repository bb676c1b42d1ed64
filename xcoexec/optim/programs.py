"""The host's part of an update as one segment: a pass over flat arrays as they are stored, results over operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..codegen.program import Group, Literal, Op, Program, Unsupported, Value
from ..codegen.rules.primitives import is_broadcast
from ..codegen.runtime import host
from ..codegen.segment.assembly import Segment
from ..compat import bind
from ..frontend.fold import fold
from ..frontend.trace import trace
from .division import HostLeaf, Update

Arrays = Mapping[Value, jax.Array]


class Programs:
    """Segments by what they compute and for how many elements: leaves with the same update share theirs."""

    def __init__(self, threads: int):
        self.threads = threads
        self._segments: dict[tuple[object, ...], Segment] = {}

    def segment(self, update: Update, leaf: HostLeaf, n: int, wire: str, kept: str, narrow: str) -> Segment:
        """That of `n` elements of a leaf. Operands: the array that crosses, of type `wire`; the states;
        the parameter as the host keeps it (its type `kept`; "": it keeps none); the words. Results: what crosses
        back, those states that change, the parameter. With `kept` the parameter of type `narrow` crosses back, else the
        update. Raises `Unsupported` for what kernels cannot express.
        """
        key = (_text(update, leaf), n, wire, kept, narrow)
        if key not in self._segments:
            self._segments[key] = _build(update, leaf, n, wire, kept, narrow, self.threads)
        return self._segments[key]


def changing(update: Update, leaf: HostLeaf) -> tuple[int, ...]:
    """The positions of a leaf's states that an update changes."""
    return tuple(j for j in leaf.states if update.new_states[j] is not update.states[j])


def _build(update: Update, leaf: HostLeaf, n: int, wire: str, kept: str, narrow: str, threads: int) -> Segment:
    states = [update.states[j] for j in leaf.states]
    parameter = [update.parameters[leaf.index]] if kept else []
    arrays = [(leaf.wire, wire), *((v, v.dtype) for v in states), *((v, kept) for v in parameter)]
    words = [(v, "int32" if v.dtype == "bool" else v.dtype) for v in leaf.words]

    def fn(*given: jax.Array) -> list[jax.Array]:
        env = {v: x.astype(v.dtype) for (v, _), x in zip([*arrays, *words], given, strict=True)}
        _run_flat(leaf.ops, env, n)
        of = lambda v: jnp.full(n, v.val, v.dtype) if isinstance(v, Literal) else env[v]
        new = [of(update.new_states[j]) for j in changing(update, leaf)]
        change = of(update.updates[leaf.index])
        if not parameter:
            return _apart([change.astype(wire), *new], given)
        after = (env[parameter[0]] + change).astype(kept)
        return _apart([after.astype(narrow).astype(wire), *new, after], given)

    shapes = [jax.ShapeDtypeStruct((n,), dtype) for _, dtype in arrays]
    shapes += [jax.ShapeDtypeStruct((), dtype) for _, dtype in words]
    folded = fold(trace(fn, shapes, jax.tree_util.tree_structure((tuple(shapes), {})), [""] * len(shapes)), ())
    outs = [v for v in folded.outputs if isinstance(v, Value)]
    if len({*outs}) < len(folded.outputs) or folded.prologue or not folded.ops:
        raise Unsupported("an update that gives back what it was given")
    last = folded.ops[-1]
    group = Group(folded.ops, last, tuple(v for v in outs if v not in last.outs))
    return host.build_stored(Program(folded.inputs, (), (group,), tuple(outs)), threads)


def _apart(results: Sequence[jax.Array], given: Sequence[jax.Array]) -> list[jax.Array]:
    """Results of which no two are one array, nor one an operand."""
    seen = list(given)
    out = []
    for x in results:
        fresh = lax.copy_p.bind(x) if any(x is y for y in seen) else x  # type: ignore[attr-defined]
        seen.append(fresh)
        out.append(fresh)
    return out


def _run_flat(ops: Sequence[Op], env: dict[Value, jax.Array], n: int) -> None:
    """Evaluates elementwise operations over flat arrays of n elements."""
    for op in ops:
        args = [jnp.asarray(v.val, v.dtype) if isinstance(v, Literal) else env[v] for v in op.ins]
        if is_broadcast(op):
            env[op.out] = jnp.broadcast_to(args[0], (n,))
        else:
            env[op.out] = bind(op.primitive, args, dict(op.params))[0]


def _text(update: Update, leaf: HostLeaf) -> str:
    """All that a leaf's update computes, whatever its shape."""
    names: dict[Value, str] = {leaf.wire: "wire", update.parameters[leaf.index]: "parameter"}
    names |= {update.states[j]: f"state {k}" for k, j in enumerate(leaf.states)}
    names |= {v: f"word {k} {v.dtype}" for k, v in enumerate(leaf.words)}

    def name(v: Value | Literal) -> str:
        if isinstance(v, Literal):
            return f"{np.asarray(v.val)!r} {v.dtype}"
        return f"{names.setdefault(v, f'value {len(names)}')} {v.dtype}"

    lines = []
    for op in leaf.ops:
        params = {} if is_broadcast(op) else {k: str(x) for k, x in op.params.items() if "shard" not in k}
        lines.append(f"{name(op.out)} = {op.prim} {[name(v) for v in op.ins]} {sorted(params.items())}")
    results = [update.updates[leaf.index], *(update.new_states[j] for j in leaf.states)]
    return "\n".join([*lines, *(f"{k} {name(v)}" for k, v in enumerate(results))])


__all__ = ["Programs", "changing"]
