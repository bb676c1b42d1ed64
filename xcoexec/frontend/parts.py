"""A function's jaxpr in parts, each of which may run on another device: what a part reads, and what others read of it.

What is made of weights alone (a cast, a transposition) is made where it is read, so that it crosses nowhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence

import jax

from ..codegen.program import Value
from ..compat import ClosedJaxpr, JaxLiteral, Jaxpr, JaxprEqn, Var, body
from ..cost.features import flops
from ..cost.features import nbytes as op_bytes
from .equations import Env, contracts, nbytes, read, reads, run
from .trace import operations

Atom = Var | JaxLiteral


@dataclasses.dataclass(frozen=True, eq=False)
class EquationGroup:
    """Equations that stay together: a product with what is around it. `flops`, `moved`: FLOP, and bytes that they read
    and write; `weights`: bytes of the known arrays that they read first; `crossing`: bytes of what they and those
    behind them read that is made before, inputs too.
    """

    eqns: tuple[JaxprEqn, ...]
    flops: int
    moved: int
    weights: int
    crossing: int


@dataclasses.dataclass(frozen=True, eq=False)
class JaxprPart:
    """Calling it with the known arrays at the positions `known`, and the arrays of the variables `reads`, gives those
    of `makes`.
    """

    eqns: tuple[JaxprEqn, ...]
    variables: tuple[Var, ...]  # those of `known`
    known: tuple[int, ...]
    reads: tuple[Var, ...]
    makes: tuple[Var, ...]

    def __call__(self, known: Sequence[jax.Array], *values: jax.Array) -> list[jax.Array]:
        env: Env = dict(zip((*self.variables, *self.reads), (*known, *values), strict=True))
        run(self.eqns, env)
        return [read(v, env) for v in self.makes]


@dataclasses.dataclass(frozen=True, eq=False)
class Parted:
    """A function of known arrays (its first inputs, then what it closes over) and of `inputs`, as groups in order."""

    known: tuple[Var, ...]
    inputs: tuple[Var, ...]
    outputs: tuple[Atom, ...]
    groups: tuple[EquationGroup, ...]
    aside: tuple[JaxprEqn, ...]  # that no input reaches

    @classmethod
    def of(cls, closed: ClosedJaxpr, known: int) -> Parted:
        """The program whose first `known` inputs are known; a function that is one call is what it calls."""
        jaxpr, inputs, consts, outputs = _opened(closed.jaxpr)
        weights = (*inputs[:known], *consts)
        there, aside, eqns = set(weights), list[JaxprEqn](), list[JaxprEqn]()
        for e in jaxpr.eqns:
            if there.issuperset(reads(e)) and not e.effects:
                there.update(e.outvars)
                aside.append(e)
            else:
                eqns.append(e)
        groups = tuple(_sized(list(_together(eqns)), set(weights), aside, outputs))
        return cls(tuple(weights), tuple(inputs[known:]), outputs, groups, tuple(aside))

    def parts(self, stages: Sequence[tuple[int, int]]) -> list[JaxprPart]:
        """One part for each stage (first group, last group + 1); the last one makes all results that inputs reach no
        part of too.
        """
        mine = [tuple(e for g in self.groups[a:b] for e in g.eqns) for a, b in stages]
        later = set(_variables(self.outputs))
        found: list[JaxprPart] = []
        for k in reversed(range(len(mine))):
            made = {v for e in mine[k] for v in e.outvars}
            makes = tuple(v for v in dict.fromkeys(_made(mine[k])) if v in later)
            if k == len(mine) - 1:
                made_aside = {v for e in self.aside for v in e.outvars}
                makes += tuple(v for v in dict.fromkeys(_variables(self.outputs)) if v in made_aside)
            part = self._part(mine[k], makes, made)
            later |= set(part.reads)
            found.insert(0, part)
        return found

    def _part(self, eqns: tuple[JaxprEqn, ...], makes: tuple[Var, ...], made: Collection[Var]) -> JaxprPart:
        wanted = {*makes, *(v for e in eqns for v in reads(e))}
        before = list[JaxprEqn]()
        for e in reversed(self.aside):
            if wanted & set(e.outvars):
                before.insert(0, e)
                wanted |= set(reads(e))
        there = {v for e in before for v in e.outvars} | set(made)
        known = tuple(i for i, v in enumerate(self.known) if v in wanted)
        rest = {*self.known} | there
        outside = tuple(v for v in dict.fromkeys(v for e in eqns for v in reads(e)) if v not in rest)
        return JaxprPart((*before, *eqns), tuple(self.known[i] for i in known), known, outside, makes)


def _opened(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Var, ...], tuple[Var, ...], tuple[Atom, ...]]:
    """(jaxpr, inputs, constants, results), for a jaxpr that is one call those of what it calls."""
    inputs, consts, outputs = tuple(jaxpr.invars), tuple(jaxpr.constvars), tuple(jaxpr.outvars)
    while len(jaxpr.eqns) == 1 and not consts:
        (eqn,), inner = jaxpr.eqns, body(jaxpr.eqns[0])
        straight = tuple(eqn.invars) == inputs and tuple(eqn.outvars) == outputs
        if inner is None or inner[1] or not straight:
            break
        jaxpr = inner[0]
        inputs, outputs = tuple(jaxpr.invars), tuple(jaxpr.outvars)
    return jaxpr, inputs, consts, outputs


def _together(eqns: Sequence[JaxprEqn]) -> Iterator[list[JaxprEqn]]:
    """Equations in groups that begin with a product each, but for the first group."""
    group: list[JaxprEqn] = []
    product = False
    for e in eqns:
        if contracts(e):
            if product:
                yield group
                group = []
            product = True
        group.append(e)
    if group:
        yield group


def _sized(
    groups: Sequence[list[JaxprEqn]], known: set[Var], aside: Sequence[JaxprEqn], outputs: Sequence[Atom]
) -> Iterator[EquationGroup]:
    of = {v: frozenset({v}) for v in known}  # the known arrays that something is made of
    for e in aside:
        each = frozenset().union(*(of[v] for v in reads(e)))
        of.update((v, each) for v in e.outvars)
    there, seen, later, crossing = set(of), set[Var](), set(_variables(outputs)), list[int]()
    for group in reversed(groups):
        made = {v for e in group for v in e.outvars}
        later = (later | {v for e in group for v in reads(e)}) - made - there
        crossing.insert(0, sum(map(nbytes, later)))
    for group, bytes_over in zip(groups, crossing, strict=True):
        ops = [op for e in group for op in operations(e)]
        first = {w for e in group for v in reads(e) for w in of.get(v, ())} - seen
        seen |= first
        moved = sum(op_bytes([op]) for op in ops if any(isinstance(v, Value) for v in op.outs))
        yield EquationGroup(tuple(group), sum(map(flops, ops)), moved, sum(map(nbytes, first)), bytes_over)


def _made(eqns: Sequence[JaxprEqn]) -> Iterator[Var]:
    return (v for e in eqns for v in e.outvars)


def _variables(atoms: Sequence[Atom]) -> Iterator[Var]:
    return (v for v in atoms if not isinstance(v, JaxLiteral))


__all__ = ["EquationGroup", "JaxprPart", "Parted"]
