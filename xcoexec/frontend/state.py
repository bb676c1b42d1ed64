"""Which arguments are a state: a training step gets them and gives them back, so that they change at every call."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from jax.tree_util import PyTreeDef

LEAST = 2  # leaves of a tree that is known again: a single array may have a result's type by chance


def returned(
    tree: PyTreeDef, types: Sequence[Hashable], out_tree: PyTreeDef, out_types: Sequence[Hashable]
) -> frozenset[int]:
    """Positions of the leaves that come back: in a part of the arguments which is found among the results too, as the
    same tree of leaves of the same types. That is a state and its next one, or parameters and their gradients.
    """
    results = {(node, tuple(out_types[a:b])) for node, a, b in _nodes(out_tree, 0)}
    found: set[int] = set()
    for node, a, b in _nodes(tree, 0):
        if (node, tuple(types[a:b])) in results:
            found.update(range(a, b))
    return frozenset(found)


def _nodes(tree: PyTreeDef, at: int) -> Iterator[tuple[PyTreeDef, int, int]]:
    """(node, first leaf, the one behind the last) of the parts of a tree with `LEAST` leaves or more; the first leaf
    of all is number `at`.
    """
    if tree.num_leaves < LEAST:
        return
    yield tree, at, at + tree.num_leaves
    for child in tree.children():
        yield from _nodes(child, at)
        at += child.num_leaves


def whole(tree: PyTreeDef, chosen: Collection[int]) -> tuple[int, ...]:
    """Positions of all leaves of the arguments (of `tree`, of args and kwargs) that have one of the `chosen` leaves."""
    at, found = 0, list[int]()
    for group in tree.children():
        for argument in group.children():
            leaves = range(at, at + argument.num_leaves)
            if any(i in chosen for i in leaves):
                found += leaves
            at += argument.num_leaves
    return tuple(found)


__all__ = ["returned", "whole"]
