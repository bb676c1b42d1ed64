"""Loops with less in them: what is the same in every turn is computed once, and where their length is known (`scan`),
what depends on no other turn for all turns at once.

A recurrent layer multiplies each item of its input by weights: turn by turn that is a product of a vector, which takes
as long as reading the weights; for all turns it is one product of matrices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
from jax import lax
from jax.extend.core import jaxpr_as_fun

from ..compat import (
    ClosedJaxpr,
    JaxLiteral,
    Jaxpr,
    JaxprEqn,
    Var,
    loop_body,
    loop_condition,
    loop_parts,
    shape_of,
)
from .equations import Env, contracts, nbytes, read, reads, run

#: of what is computed ahead for all turns, beyond which a loop stays as it is
AHEAD_BYTES = 1 << 28
KEPT_BYTES = 1 << 17  # of an array that stays in the caches beside others while a loop runs


@dataclasses.dataclass(frozen=True)
class _Sorted:
    """The equations of a loop's body: those that are the `same` in every turn, those of a turn's `part` of the arrays
    alone, and the `rest`.
    """

    same: list[JaxprEqn]
    part: list[JaxprEqn]
    rest: list[JaxprEqn]


def hoisted(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What an equation computes, with a smaller loop in it, which has one condition for all items; None for one that is
    no such loop, or is small already.
    """
    closed, condition = loop_body(eqn), loop_condition(eqn)
    if closed is None or not eqn.params.get("length", 1):
        return None
    if condition is not None:
        once, _ = _once(closed.jaxpr, eqn.params["body_nconsts"])
        groups = _in_order(closed.jaxpr.eqns, once, [])
        fn = _unending(eqn, condition, closed, groups)
    else:
        groups = _sorted(eqn, closed)
        fn = _function(eqn, closed, groups)
    if not groups.same and not groups.part and not (condition is not None and _items(condition)):
        return None
    shapes = [shape_of(v) for v in eqn.invars]
    try:
        made: ClosedJaxpr = jax.make_jaxpr(fn)(*shapes)
    except NotImplementedError:  # an operation that JAX cannot do for several turns at once
        return None
    same = [_plain(v) for v in made.jaxpr.outvars] == [_plain(v) for v in eqn.outvars]
    return made if same else None


def _plain(v: Var | JaxLiteral) -> tuple[tuple[int, ...], str]:
    """Shape and type of a variable, weak or not."""
    found = shape_of(v)
    return found.shape, str(found.dtype)


def _sorted(eqn: JaxprEqn, closed: ClosedJaxpr) -> _Sorted:
    """The equations of a loop of known length."""
    jaxpr = closed.jaxpr
    consts, carried = loop_parts(eqn)
    once, same = _once(jaxpr, consts)
    part: set[Var] = set(jaxpr.invars[consts + carried :])
    found = []
    for e in jaxpr.eqns:
        mine = reads(e)
        if any(v in part for v in mine) and all(v in part or v in same for v in mine):
            found.append(e)
            part.update(e.outvars)
    ahead = sum(nbytes(v) for e in found for v in e.outvars) * eqn.params["length"]
    taken = any(map(contracts, found)) and ahead <= AHEAD_BYTES
    return _in_order(jaxpr.eqns, once, found if taken else [])


def _once(jaxpr: Jaxpr, consts: int) -> tuple[list[JaxprEqn], set[Var]]:
    """The equations that are the same in every turn, given that the first `consts` inputs are, and all such values."""
    same: set[Var] = {*jaxpr.constvars, *jaxpr.invars[:consts]}
    found = []
    for e in jaxpr.eqns:
        if reads(e) and all(v in same for v in reads(e)) and not _grows(e):
            found.append(e)
            same.update(e.outvars)
    return found, same


def _in_order(eqns: Sequence[JaxprEqn], same: list[JaxprEqn], part: list[JaxprEqn]) -> _Sorted:
    """A body's equations, of which those of `same` and `part` leave the loop."""
    moved = {id(e) for e in (*same, *part)}
    return _Sorted(same, part, [e for e in eqns if id(e) not in moved])


def _grows(eqn: JaxprEqn) -> bool:
    """Whether an equation's results are larger than what it reads: better made where they are read. Wider numbers that
    caches keep are not: each turn would make them again.
    """
    made = sum(map(nbytes, eqn.outvars))
    widens = eqn.primitive.name == "convert_element_type" and made <= KEPT_BYTES
    return made > sum(map(nbytes, reads(eqn))) and not widens


def _items(condition: ClosedJaxpr) -> tuple[int, ...]:
    """The axes along which each item has a condition of its own."""
    return tuple(range(len(shape_of(condition.jaxpr.outvars[0]).shape)))


def _unending(
    eqn: JaxprEqn, condition: ClosedJaxpr, closed: ClosedJaxpr, groups: _Sorted
) -> Callable[..., list[jax.Array]]:
    """A loop that a condition ends as a function of its operands. A loop of several items at once (`vmap`) has one
    condition for each, along the first axes of what it carries: an item whose condition is false stays as it is.
    """
    a, b = eqn.params["cond_nconsts"], eqn.params["cond_nconsts"] + eqn.params["body_nconsts"]
    jaxpr, items = closed.jaxpr, _items(condition)

    def fn(*args: jax.Array) -> list[jax.Array]:
        same: Env = dict(zip((*jaxpr.constvars, *jaxpr.invars[: b - a]), (*closed.consts, *args[a:b]), strict=True))
        run(groups.same, same)

        def asked(carry: list[jax.Array]) -> jax.Array:
            found: jax.Array = jaxpr_as_fun(condition)(*args[:a], *carry)[0]
            return found

        def turn(carry: list[jax.Array]) -> list[jax.Array]:
            env = {**same, **dict(zip(jaxpr.invars[b - a :], carry, strict=True))}
            run(groups.rest, env)
            made = [read(v, env) for v in jaxpr.outvars]
            if not items:
                return made
            on = asked(carry)
            of = lambda x: lax.broadcast_in_dim(on, x.shape, items)
            return [lax.select(of(x), x, old) for x, old in zip(made, carry, strict=True)]

        goes_on = (lambda carry: asked(carry).any()) if items else asked
        last: list[jax.Array] = lax.while_loop(goes_on, turn, list(args[b:]))
        return last

    return fn


def _variables(*atoms: Sequence[Var | JaxLiteral]) -> set[Var]:
    """Those of all atoms that are no literals."""
    return {v for some in atoms for v in some if not isinstance(v, JaxLiteral)}


def _function(eqn: JaxprEqn, closed: ClosedJaxpr, groups: _Sorted) -> Callable[..., list[jax.Array]]:
    """The loop as a function of its operands."""
    jaxpr, params = closed.jaxpr, eqn.params
    a, carried = loop_parts(eqn)
    b = a + carried
    handed, stacked = jaxpr.outvars[:carried], jaxpr.outvars[carried:]  # to the next turn, and those of all turns
    inner = _variables(*(e.invars for e in groups.rest), handed)  # inside of the loop
    wanted = inner | _variables(stacked)
    ahead = [v for e in groups.part for v in e.outvars if v in wanted]

    def fn(*args: jax.Array) -> list[jax.Array]:
        same: Env = dict(zip((*jaxpr.constvars, *jaxpr.invars[:a]), (*closed.consts, *args[:a]), strict=True))
        run(groups.same, same)

        def parts(*xs: jax.Array) -> list[jax.Array]:
            env = {**same, **dict(zip(jaxpr.invars[b:], xs, strict=True))}
            run(groups.part, env)
            return [env[v] for v in ahead]

        arrays = dict(zip(jaxpr.invars[b:], args[b:], strict=True))
        if ahead:
            arrays.update(zip(ahead, jax.vmap(parts)(*args[b:]), strict=True))
        inside = {v: x for v, x in arrays.items() if v in inner}
        late = [i for i, v in enumerate(stacked) if not (_known(v, arrays) and v not in inside)]

        def turn(carry: list[jax.Array], xs: list[jax.Array]) -> tuple[list[jax.Array], list[jax.Array]]:
            env = {**same, **dict(zip(jaxpr.invars[a:b], carry, strict=True)), **dict(zip(inside, xs, strict=True))}
            run(groups.rest, env)
            return [read(v, env) for v in handed], [read(stacked[i], env) for i in late]

        last, ys = lax.scan(
            turn,
            list(args[a:b]),
            list(inside.values()),
            length=params["length"],
            reverse=params["reverse"],
            unroll=params["unroll"],
        )
        rest = iter(ys)
        outs = [next(rest) if i in late else arrays[v] for i, v in enumerate(stacked)]
        return [*last, *outs]

    return fn


def _known(v: Var | JaxLiteral, arrays: Mapping[Var, jax.Array]) -> bool:
    return not isinstance(v, JaxLiteral) and v in arrays


__all__ = ["AHEAD_BYTES", "hoisted"]
