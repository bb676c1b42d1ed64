"""Whether a call has the weights of the one before: a look into the containers that held them, without taking all
arguments apart.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import jax
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from .plain import Args, Call, Kwargs
from .signature import Keys, Signature, configuration, is_away

CONTAINERS = (dict, list, tuple)  # types whose children a look may ask for; others are left to JAX


def kinds(args: Args, kwargs: Kwargs) -> list[type]:
    """The type of the first leaf of each argument, those by name behind those by position: whether arrays come from
    JAX, in so far as one of a tree tells it.
    """
    found = [_kind(x) for x in args]
    return found + [_kind(kwargs[k]) for k in sorted(kwargs)] if kwargs else found


def _kind(x: Any) -> type:
    while type(x) in CONTAINERS and x:
        x = next(iter(x.values())) if type(x) is dict else x[0]
    return type(x)


@dataclasses.dataclass(frozen=True, slots=True)
class Inside:
    """What a container held: its type, the keys of its children, and these."""

    kind: type
    keys: tuple[Any, ...]
    values: tuple[object, ...]

    @classmethod
    def of(cls, x: Any) -> Inside:
        """What a container holds now."""
        keys = tuple(x) if type(x) is dict else tuple(range(len(x)))
        return cls(type(x), keys, tuple(x[k] for k in keys))

    def same(self, x: Any) -> bool:
        """Whether a container of this kind holds these very children. Raises `KeyError` for one without a key of
        theirs.
        """
        if len(x) != len(self.keys):
            return False
        return all(map(operator.is_, map(x.__getitem__, self.keys), self.values))


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """Arguments (those by name behind those by position) of which some are static or all weights, and the others all
    inputs.

    `roots`: of each of the former its place, itself, and what it held (None for an array and a static value).
    `containers`: those inside of these, with their `sizes`; `parents`, `places` and `children`: what lies where in
    them. `rest`: the places of the others, `tree` and `keys` their structure and their leaves' types.
    """

    names: tuple[str, ...]
    count: int
    roots: tuple[tuple[int, object, Inside | None], ...]
    containers: tuple[Any, ...]
    sizes: list[int]
    parents: tuple[Any, ...]
    places: tuple[Any, ...]
    children: tuple[object, ...]
    rest: tuple[int, ...]
    tree: PyTreeDef
    keys: Keys
    configuration: Hashable

    @classmethod
    def of(cls, call: Call, signature: Signature, weights: Collection[int]) -> Look | None:
        """A look for calls like this one, whose leaves `weights` are weights; None where an argument has both, or is of
        another kind than arrays in `CONTAINERS`.
        """
        names = tuple(sorted(call.kwargs))
        values = (*call.args, *(call.kwargs[k] for k in names))
        known, at = set(weights), 0
        static = call.fixed
        fixed = {place for place, key in enumerate((*range(len(call.args)), *names)) if key in static}
        roots: list[tuple[int, Any]] = []
        rest: list[int] = []
        found: list[int] = []
        for place, value in enumerate(values):
            size = 0 if place in fixed else len(jax.tree_util.tree_leaves(value))
            inside = known.intersection(range(at, at + size))
            if place in fixed or (size and len(inside) == size):
                roots.append((place, value))
            elif inside:
                return None
            else:
                rest.append(place)
                found += range(at, at + size)
            at += size
        tops = [Inside.of(v) if type(v) in CONTAINERS and p not in fixed else None for p, v in roots]
        containers = _containers([v for x in tops if x is not None for v in x.values])
        if containers is None or _containers([v for p, v in roots if p not in fixed]) is None:
            return None
        held = [(c, Inside.of(c)) for c in containers]
        committed = None if signature.committed is None else [signature.committed[i] for i in found]
        return cls(
            names,
            len(call.args),
            tuple((p, v, top) for (p, v), top in zip(roots, tops, strict=True)),
            tuple(containers),
            [len(c) for c in containers],
            tuple(c for c, x in held for _ in x.keys),
            tuple(k for _, x in held for k in x.keys),
            tuple(v for _, x in held for v in x.values),
            tuple(rest),
            jax.tree_util.tree_structure([values[p] for p in rest]),
            Keys([signature.leaves[i] for i in found], committed),
            signature.configuration,
        )

    def inputs(self, args: Args, kwargs: Kwargs) -> Sequence[ArrayLike] | None:
        """The leaves of a call that are no weights, where it has the same weights and inputs of the same types; None
        where it has not, or where only a closer look can tell.
        """
        if len(args) != self.count or len(kwargs) != len(self.names):
            return None
        try:
            values = (*args, *map(kwargs.__getitem__, self.names)) if kwargs else args
            if not self._same(values):
                return None
        except LookupError:
            return None
        leaves, tree = jax.tree_util.tree_flatten([values[p] for p in self.rest])
        if tree != self.tree or configuration() != self.configuration:
            return None
        return leaves if self.keys.fit(leaves) else None

    @property
    def plain(self) -> bool:
        """Whether inputs are given by position, and each is one array."""
        return not self.names and self.tree == jax.tree_util.tree_structure([0] * len(self.rest))

    def arrays(self, args: Sequence[Any]) -> Sequence[Any] | None:
        """As `inputs`, for a look that is `plain` and arguments by position, without a look at the inputs' types and at
        JAX's configuration.
        """
        try:
            return [args[p] for p in self.rest] if len(args) == self.count and self._same(args) else None
        except LookupError:
            return None

    def _same(self, values: Sequence[Any]) -> bool:
        """Whether the weights are where they were. Raises `LookupError` where a container has lost one."""
        for place, root, inside in self.roots:
            value = values[place]
            if not (value is root if inside is None else type(value) is inside.kind and inside.same(value)):
                return False
        if list(map(len, self.containers)) != self.sizes:
            return False
        return all(map(operator.is_, map(operator.getitem, self.parents, self.places), self.children))


@dataclasses.dataclass(frozen=True, slots=True)
class Elsewhere:
    """Calls that plain `jax.jit` answers because one leaf lies on other devices: the argument `place` (a position or a
    name) holds it behind these `keys`.
    """

    place: int | str
    keys: tuple[Any, ...]

    @classmethod
    def of(cls, call: Call) -> Elsewhere | None:
        """A look for calls with such a leaf where this one has it; None where it has none, or in a container that only
        JAX knows.
        """
        named: list[tuple[int | str, object]] = [*enumerate(call.args), *call.kwargs.items()]
        return next((cls(place, keys) for place, x in named if (keys := _away(x)) is not None), None)

    def inputs(self, args: Args, kwargs: Kwargs) -> Sequence[ArrayLike] | None:
        """Nothing for a call with such a leaf there; None for others."""
        return () if self.has(args, kwargs) else None

    def has(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether a call has such a leaf there."""
        try:
            x: Any = args[self.place] if type(self.place) is int else kwargs[self.place]  # type: ignore[index]
            for key in self.keys:
                x = x[key]
        except (LookupError, TypeError):
            return False
        return is_away(x)


def _away(x: Any) -> tuple[Any, ...] | None:
    """The keys behind which a tree holds a leaf on other devices; None where it has none in `CONTAINERS`."""
    if type(x) not in CONTAINERS:
        return () if is_away(x) else None
    inside = Inside.of(x)
    pairs = zip(inside.keys, inside.values, strict=True)
    return next(((k, *rest) for k, value in pairs if (rest := _away(value)) is not None), None)


def _containers(values: Sequence[Any]) -> list[Any] | None:
    """All containers in these values, outer ones first; None where one is of another kind than `CONTAINERS`."""
    found: list[Any] = []
    todo = list(values)
    while todo:
        value = todo.pop()
        if type(value) in CONTAINERS:
            found.append(value)
            todo += value.values() if type(value) is dict else value
        elif value is not None and not jax.tree_util.all_leaves([value]):
            return None
    return found


__all__ = ["Elsewhere", "Look", "kinds"]
