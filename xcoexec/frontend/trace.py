"""A Python function and example arguments -> one flat list of operations.

Calls (jit, custom_jvp, custom_vjp, remat, closed_call) are inlined; scan, while and cond stay whole.
Layer names come from JAX's name stack, or, where that is empty (nnx), from the path of the weight read.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeGuard

import jax
import numpy as np
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ..codegen.program import Body, Condition, Literal, Op, Value
from ..codegen.rules.loops import parts
from ..codegen.rules.primitives import primitive
from ..compat import ClosedJaxpr, JaxLiteral, Jaxpr, JaxprEqn, Var, bind, body, loop_body, loop_condition, loop_parts
from .algorithms import by_algorithm
from .along import by_rows
from .decompose import EXPAND
from .hoist import hoisted
from .ragged import grouped
from .stored import stored
from .unrolled import unrolled

COUNTED_BYTES = 1 << 20  # of numbers that count, beyond which a loop's body makes them itself


@dataclasses.dataclass(frozen=True, eq=False)
class Traced:
    """`inputs` in the order of the flattened arguments, `paths` their key paths; `consts` closed-over arrays."""

    inputs: tuple[Value, ...]
    paths: tuple[str, ...]
    consts: tuple[tuple[Value, ArrayLike], ...]
    ops: tuple[Op, ...]
    outputs: tuple[Value | Literal, ...]
    out_tree: PyTreeDef
    effects: bool
    weak: tuple[bool, ...] = ()  # the results that are of a weak type


def trace(
    fn: Callable[..., object],
    leaves: Sequence[ArrayLike | jax.ShapeDtypeStruct],
    in_tree: PyTreeDef,
    paths: Sequence[str],
) -> Traced:
    """Traces `fn` on the arguments (args, kwargs) that `in_tree` makes of `leaves`, of which shapes and types are
    enough. Raises what `fn` raises.
    """
    out_tree: list[PyTreeDef] = []

    def flat(*xs: jax.Array) -> list[jax.Array]:
        args, kwargs = jax.tree_util.tree_unflatten(in_tree, xs)
        out = fn(*args, **kwargs)
        flat_out, tree = jax.tree_util.tree_flatten(out)
        out_tree.append(tree)
        return flat_out

    closed: ClosedJaxpr = jax.make_jaxpr(flat)(*leaves)
    return flattened(closed, out_tree[-1], paths)


def flattened(closed: ClosedJaxpr, out_tree: PyTreeDef, paths: Sequence[str]) -> Traced:
    """A jaxpr as one flat list of operations; NumPy arrays that it closes over are copied, as they may be written to
    later. `paths`: one for each input; raises `ValueError` for more or fewer.
    """
    state = _State()
    inputs = tuple(state.define(v) for v in closed.jaxpr.invars)
    for var, val in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        state.consts.append((state.define(var), val.copy() if type(val) is np.ndarray else val))
    state.walk(closed.jaxpr.eqns)
    outputs = tuple(state.read(v) for v in closed.jaxpr.outvars)
    ops = tuple(_named(state.ops, dict(zip(inputs, paths, strict=True))))
    weak = tuple(bool(getattr(v.aval, "weak_type", False)) for v in closed.jaxpr.outvars)
    return Traced(inputs, tuple(paths), tuple(state.consts), ops, outputs, out_tree, bool(closed.jaxpr.effects), weak)


def operations(eqn: JaxprEqn) -> list[Op]:
    """What one equation computes, as `flattened` has it."""
    state = _State()
    for atom in eqn.invars:
        if not isinstance(atom, JaxLiteral) and atom not in state.env:
            state.define(atom)
    state.walk([eqn])
    return state.ops


def paths(tree: PyTreeDef) -> list[str]:
    """The key path of every leaf of a tree, as `trace` takes them: its number where a structure takes nothing but what
    it was made for, or has other leaves for what it takes.
    """
    numbers = [f"[{i}]" for i in range(tree.num_leaves)]
    try:
        numbered = jax.tree_util.tree_unflatten(tree, range(tree.num_leaves))
        found = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_flatten_with_path(numbered)[0]]
    except Exception:
        return numbers
    return found if len(found) == len(numbers) else numbers


def traced_ops(
    fn: Callable[[Sequence[jax.Array]], object], values: Sequence[Value], name: str, outs: Sequence[Value] = ()
) -> tuple[list[Value], list[Op]]:
    """(results, operations) of a function of values that closes over no arrays; `outs`: the values that its results are
    to be.
    """
    shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in values]
    tree = jax.tree_util.tree_structure(((shapes,), {}))
    flat = trace(fn, shapes, tree, paths(tree))
    new = dict(zip(flat.inputs, values, strict=True))
    new.update(zip((v for v in flat.outputs if isinstance(v, Value)), outs, strict=False))
    read = lambda vs: tuple(new.get(v, v) if isinstance(v, Value) else v for v in vs)
    ops = [dataclasses.replace(op, ins=read(op.ins), outs=read(op.outs), name=name) for op in flat.ops]
    return [v for v in read(flat.outputs) if isinstance(v, Value)], ops


def _is_array(aval: object) -> TypeGuard[jax.core.ShapedArray]:
    return hasattr(aval, "shape")


def _plain(param: Any) -> Any:
    """A parameter whose whole numbers are Python's: sizes may be NumPy's, as a caller gives them or as JAX transposes,
    which no kernel's name is made of.
    """
    if isinstance(param, np.integer):
        return int(param)
    return type(param)(map(_plain, param)) if type(param) in (tuple, list) else param


class _State:
    """The walk over nested jaxprs: variables to values, operations in order."""

    def __init__(self, inside: bool = False) -> None:
        self.inside = inside  # of a loop, where a constant is better than an operation that makes it every turn
        self.env: dict[Var, Value | Literal] = {}
        self.ops: list[Op] = []
        self.consts: list[tuple[Value, ArrayLike]] = []

    def define(self, var: Var) -> Value:
        """A new value of a variable's shape and type; what has no shape is a token."""
        aval = var.aval
        v = Value(tuple(aval.shape), str(aval.dtype)) if _is_array(aval) else Value((), "token")
        self.env[var] = v
        return v

    def read(self, atom: Var | JaxLiteral) -> Value | Literal:
        """What stands for a variable, or for a literal: one that is an array becomes a constant."""
        if not isinstance(atom, JaxLiteral):
            return self.env[atom]
        if np.ndim(atom.val):
            v = Value(np.shape(atom.val), str(np.asarray(atom.val).dtype))
            self.consts.append((v, atom.val))
            return v
        return Literal(atom.val, str(getattr(atom.aval, "dtype", "token")))

    def walk(self, eqns: Sequence[JaxprEqn], prefix: str = "") -> None:
        """Appends the operations of equations, those of their calls too; `prefix`: the names of the calls around."""
        for eqn in eqns:
            inner = body(eqn) or _smaller(eqn)
            if inner is None:
                self._op(eqn, prefix)
                continue
            sub, consts = inner
            for var, val in zip(sub.constvars, consts, strict=True):
                self.consts.append((self.define(var), val))
            for var, atom in zip(sub.invars, eqn.invars, strict=True):
                self.env[var] = self.read(atom)
            self.walk(sub.eqns, _join(prefix, eqn))
            for var, out in zip(eqn.outvars, sub.outvars, strict=True):
                self.env[var] = self.read(out)

    def _op(self, eqn: JaxprEqn, prefix: str) -> None:
        ins = tuple(self.read(a) for a in eqn.invars)
        outs = tuple(self.define(v) for v in eqn.outvars)
        kept = stored(eqn.primitive.name, ins, outs)
        if kept is not None:
            outs = (kept,)
            self.env[eqn.outvars[0]] = kept
        if self.inside and eqn.primitive.name == "iota" and outs[0].nbytes <= COUNTED_BYTES:
            self.consts.append((outs[0], bind(eqn.primitive, [], dict(eqn.params))[0]))
            return
        name, expand = _join(prefix, eqn), EXPAND.get(eqn.primitive.name)
        params = {key: _plain(value) for key, value in eqn.params.items()}
        products = by_algorithm(eqn.primitive.name, ins, outs, params, name)
        if products is not None:
            self.ops += products
        elif expand is not None:
            self.ops += expand(ins, outs, params, name)
        else:
            turn = self._turn(eqn, name)
            self.ops.append(Op(eqn.primitive.name, ins, outs, params, name, eqn.primitive, turn))

    def _turn(self, eqn: JaxprEqn, name: str) -> Body | None:
        """One turn of a loop; None for any other operation, for a loop with effects, and for one of which each item
        has a condition of its own.
        """
        closed, condition = loop_body(eqn), loop_condition(eqn)
        if closed is None:
            return None
        inner = _State(inside=True)
        asked = None
        inputs = tuple(inner.define(v) for v in closed.jaxpr.invars)
        if condition is not None:
            constant = tuple(inner.define(v) for v in condition.jaxpr.invars[: eqn.params["cond_nconsts"]])
            carried = inputs[eqn.params["body_nconsts"] :]
            inner.env.update(zip(condition.jaxpr.invars, (*constant, *carried), strict=True))
            inner.inline(condition, name)
            value, inputs = inner.read(condition.jaxpr.outvars[0]), (*constant, *inputs)
            if not isinstance(value, Value) or value.shape:
                return None
            asked = Condition(value, tuple(inner.ops))
            inner.ops = []
        inner.inline(closed, name)
        outputs = tuple(inner.read(v) for v in closed.jaxpr.outvars)
        self.consts += inner.consts
        consts = tuple(v for v, _ in inner.consts)
        return Body(inputs, *loop_parts(eqn), consts, tuple(inner.ops), outputs, condition=asked)

    def inline(self, closed: ClosedJaxpr, prefix: str) -> None:
        """As `walk`, of a jaxpr with constants of its own."""
        for var, val in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            self.consts.append((self.define(var), val))
        self.walk(closed.jaxpr.eqns, prefix)


def _smaller(eqn: JaxprEqn) -> tuple[Jaxpr, list[ArrayLike]] | None:
    """What computes the same with less: a loop that is written out, or of which a part is computed for all turns at
    once, a product that reads chosen matrices; as `body` gives calls.
    """
    closed = unrolled(eqn) or hoisted(eqn) or grouped(eqn) or by_rows(eqn)
    return None if closed is None else (closed.jaxpr, list(closed.consts))


_WRAPPED = re.compile(r"\bvmap\(([^()]*)\)")  # what `hoisted` does to a name


def _join(prefix: str, eqn: JaxprEqn) -> str:
    stack = _WRAPPED.sub(r"\1", str(eqn.source_info.name_stack))
    return f"{prefix}/{stack}" if prefix and stack else prefix or stack


def _named(ops: list[Op], paths: dict[Value, str]) -> list[Op]:
    """Gives operations without a name that of the module whose weight they read."""
    out = []
    for op in ops:
        name = op.name
        if not name and op.body is None:
            name = next((_module(paths[v]) for v in op.value_ins if v in paths and _module(paths[v])), "")
        out.append(dataclasses.replace(op, name=name))
    return out


def _module(path: str) -> str:
    """'[0][0].conv1.kernel.value' -> 'conv1': the weight's own name and the argument's position are left out."""
    words = re.findall(r"[A-Za-z_]\w*|(?<=\[)\d+(?=\])", re.sub(r"^\[\d\](\[[^\]]*\])", "", path))
    words = [w for w in words if w != "value"]
    return "/".join(words[:-1])


Origins = dict[Value, frozenset[int]]  # values that are inputs, moved, cast, scaled or side by side, and which


def _contractions(ops: Sequence[Op], origin: Origins) -> Iterator[tuple[Op, Origins]]:
    """All contractions, those of loops too, with the values known there; `origin` gets those that operations move,
    cast, scale or put side by side.
    """
    for op in ops:
        moved = primitive(op).carries or (len(op.outs) == 1 and op.out.scale is not None)
        if moved and op.value_ins and all(v in origin for v in op.value_ins):
            origin[op.out] = frozenset().union(*(origin[v] for v in op.value_ins))
        elif op.body is not None:
            p = parts(op)  # a turn's part of an array of weights is one too
            known = [(i, v) for i, v in enumerate(op.ins) if isinstance(v, Value) and v in origin]
            kept = [(i, v) for i, v in known if not p.same <= i < p.same + p.carried]
            yield from _contractions(op.body.all_ops, {op.body.inputs[i]: origin[v] for i, v in kept})
        elif primitive(op).contraction:
            yield op, origin


def _weights(op: Op, origin: Origins) -> frozenset[int]:
    """The positions of the inputs that are the weight operand of a contraction."""
    known = [(i, v) for i, v in enumerate(op.ins) if isinstance(v, Value) and v in origin]
    either = len(known) < len(op.value_ins) and primitive(op).either  # computed data on one side, weights on the other
    return frozenset().union(*(origin[v] for i, v in known if i == 1 or either))


def argument(path: str) -> str:
    """The part of a key path that names a positional or a keyword argument, as `paths` has them; the path itself of
    other leaves.
    """
    return "]".join(path.split("]")[:2]) if path.startswith(("[0][", "[1][")) else path


def weight_leaves(traced: Traced, moving: Collection[int] = ()) -> tuple[int, ...]:
    """Positions of the inputs that are weights: all leaves of an argument that reaches, through movement and
    casts alone, the weight operand of a convolution or product; none where that would be all inputs. `moving`:
    positions of leaves that are others at the next call; an argument with one is no weight. Where there are any, one
    that is a left operand too is none either: gradients by weights are products with the batch on either side.
    """
    found, left = set[int](), set[int]()
    for op, origin in _contractions(traced.ops, {v: frozenset({i}) for i, v in enumerate(traced.inputs)}):
        found |= _weights(op, origin)
        left |= origin.get(op.ins[0], frozenset()) if isinstance(op.ins[0], Value) else frozenset()
    arguments = [argument(p) for p in traced.paths]
    chosen = {arguments[i] for i in found} - {arguments[i] for i in {*moving, *(left if moving else ())}}
    everything = tuple(i for i, a in enumerate(arguments) if a in chosen)
    return everything if len(everything) < len(traced.inputs) else ()
