"""A folded trace -> layers (anchors with their elementwise tails), edges, chains and fork-join regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax

from ..codegen.program import Group, Program, Unsupported, Value, external
from ..codegen.rules.primitives import primitive
from ..cost.features import flops, nbytes, uncounted
from ..ir.layers import Layer, LayerGraph, Region
from ..partition.split import granules
from .clusters import clustered
from .fold import Folded, fold
from .groups import group_ops
from .order import behind_readers, in_few_runs
from .sweeps import swept
from .trace import paths, trace
from .turns import with_turns


def graph_of(fn: Callable[..., object], args: Sequence[object], known: int) -> tuple[Folded, LayerGraph]:
    """Folded trace and graph of `fn(*args)`, whose first `known` arguments are weights; shapes (`jax.eval_shape`) are
    enough. Raises what `fn` raises, and `Unsupported` as `build_graph`.
    """
    values, tree = jax.tree_util.tree_flatten((tuple(args), {}))
    weights = len(jax.tree_util.tree_leaves(tuple(args[:known])))
    folded = fold(trace(fn, values, tree, paths(tree)), range(weights))
    return folded, build_graph(folded)


def build_graph(folded: Folded) -> LayerGraph:
    """The layer graph of one call. Raises `Unsupported` for an operation that has an effect and no result."""
    from ..codegen.runtime.host import unsupported  # with the kernels, which whoever imports this room need not load

    unread = next((op.prim for op in folded.ops if not op.outs), None)
    if unread is not None:
        raise Unsupported(f"{unread}, which has an effect and no result")
    made = {v for op in folded.ops for v in op.outs}
    data = {*folded.inputs, *made}
    outputs = tuple(dict.fromkeys(v for v in folded.outputs if isinstance(v, Value) and v in made))
    ops, passes = swept([with_turns(op, data) for op in folded.ops], data, outputs)
    data |= {v for op in ops for v in op.outs}  # what is computed again
    cut = clustered(group_ops(ops, data, outputs, passes), data, outputs)
    read = behind_readers(cut, set(folded.inputs), set(outputs))
    consts = tuple(v for v in external(ops) if v not in data)
    known = frozenset(consts)
    errors = [unsupported(group, consts) for group in read]
    order = in_few_runs(read, list(map(bool, errors)))
    groups, errors = tuple(read[i] for i in order), [errors[i] for i in order]
    program = Program(folded.inputs, consts, groups, outputs)
    names = _unique([_name(g) for g in groups])
    layers = []
    for i, (group, name, error) in enumerate(zip(groups, names, errors, strict=True)):
        dims = granules(group) if len(group.outs) == 1 else {}
        work = sum(map(flops, group.ops))
        moved = nbytes(group.ops, known) + sum(v.nbytes for v in group.also)
        layers.append(Layer(i, name, group, work, moved, error, dims, uncounted(group.ops)))
    owner = {v: x.index for x in layers for v in x.outs}
    edges = tuple(tuple(sorted({owner[v] for v in x.ins if v in owner})) for x in layers)
    return LayerGraph(program, tuple(layers), edges, _chains(edges), _regions(edges))


def _name(group: Group) -> str:
    """The module's path; where no module owns the operation alone, the primitive is added."""
    lead = group.leader
    path = lead.name or next((op.name for op in (group.anchor, *group.tail) if op.name), "")
    if primitive(lead).contraction:
        return path or lead.prim
    return f"{path}/{lead.prim}" if path else lead.prim


def _unique(names: Sequence[str]) -> list[str]:
    """Names with a number where one occurs again."""
    seen: dict[str, int] = {}
    out = []
    for n in names:
        seen[n] = seen.get(n, 0) + 1
        out.append(n if seen[n] == 1 else f"{n}#{seen[n]}")
    return out


# -- structure ---------------------------------------------------------------------------------------


def _chains(edges: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Longest runs in which each layer is the only reader of the one before and reads nothing else."""
    readers: dict[int, list[int]] = {i: [] for i in range(len(edges))}
    for i, reads in enumerate(edges):
        for r in reads:
            readers[r].append(i)
    chains, used = [], set()
    for i in range(len(edges)):
        if i in used:
            continue
        chain = [i]
        while len(readers[chain[-1]]) == 1 and len(edges[readers[chain[-1]][0]]) == 1:
            chain.append(readers[chain[-1]][0])
        used.update(chain)
        chains.append(tuple(chain))
    return tuple(chains)


def _regions(edges: Sequence[Sequence[int]]) -> tuple[Region, ...]:
    """Innermost fork-join parts: from a layer with several readers to the layer where all its paths meet."""
    n = len(edges)
    readers: dict[int, list[int]] = {i: [] for i in range(-1, n)}
    for i, reads in enumerate(edges):
        for r in reads or (-1,):
            readers[r].append(i)
    join = _post_dominators(readers, n)
    regions = []
    for fork in range(-1, n):
        if len(readers[fork]) < 2 or join.get(fork) is None or join[fork] >= n:
            continue
        branches = tuple(_reach(start, join[fork], readers) for start in readers[fork] if start != join[fork])
        flat = [i for b in branches for i in b]
        if len(flat) == len(set(flat)) and branches:
            regions.append(Region(fork, join[fork], branches))
    return tuple(regions)


def _post_dominators(readers: Mapping[int, Sequence[int]], n: int) -> dict[int, int]:
    """Layer -> the first later layer that every path to the end passes (n: the end)."""
    ipdom: dict[int, int] = {n: n}
    for i in range(n - 1, -2, -1):
        meet = None
        for r in readers[i] or [n]:
            meet = r if meet is None else _meet(meet, r, ipdom)
        assert meet is not None
        ipdom[i] = meet
    return ipdom


def _meet(a: int, b: int, ipdom: Mapping[int, int]) -> int:
    while a != b:
        if a < b:
            a = ipdom[a]
        else:
            b = ipdom[b]
    return a


def _reach(start: int, stop: int, readers: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    seen, todo = set(), [start]
    while todo:
        i = todo.pop()
        if i != stop and i not in seen:
            seen.add(i)
            todo += readers[i]
    return tuple(sorted(seen))
