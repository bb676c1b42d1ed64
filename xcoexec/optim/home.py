"""Where an optimizer's state lies: what of it is the host's, its arrays there, and the calls that reach them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_unflatten

from .. import config
from ..codegen.program import Unsupported
from ..codegen.segment.assembly import Segment
from ..devices.queues import queues
from ..errors import CoexecWarning
from ..frontend.trace import flattened
from .balance import Timing
from .branches import without_branches
from .division import Division, HostLeaf, Update, divide
from .movement import CHUNK, Movement, Wire
from .programs import Programs
from .store import Store

LEAST = 1 << 14  # elements of a parameter that is worth a way over the bus
NARROW = ("bfloat16", "float16")  # parameters of these types have master weights of f32
SPARE = 1  # cores left to the caller and the driver


class Owner(Protocol):
    """A transformation `tx`, with the bytes of its states (or the share of them) that may stay on the device."""

    tx: Any
    device_memory: int | float | None


class Home:
    """Where a state lies: of which transformation it is, for which parameters (`shapes`: as they were given; `wide`: as
    the optimizer sees them), and the host's arrays. `staying`: the parameters whose states are to lie on the device
    (None: as many as there is room for). `sizes`: bytes of the states and masters of all that the host can do;
    `resident`: of which of them they lie on the device.
    """

    def __init__(
        self,
        owner: Owner,
        tree: PyTreeDef,
        shapes: Sequence[jax.ShapeDtypeStruct],
        staying: Collection[int] | None = None,
    ):
        self.owner, self.tree, self.shapes = owner, tree, shapes
        self.wide = [jax.ShapeDtypeStruct(s.shape, wide_type(s.dtype)) for s in shapes]
        params = tree_unflatten(tree, self.wide)
        self.states, self.state_tree = jax.tree_util.tree_flatten(jax.eval_shape(owner.tx.init, params))
        self.store = Store({}, {})
        self.sizes: dict[int, int] = {}
        self.resident: Collection[int] = () if staying is None else staying
        self.programs = Programs(config.threads(spare=SPARE if jax.default_backend() != "cpu" else 0))
        self.division = self._divided(staying is None)
        self._movements: dict[tuple[str, ...], Movement] = {}

    def _divided(self, fill: bool) -> Division:
        tree, n, k = self.tree, len(self.shapes), len(self.states)

        def update(*xs: jax.Array) -> list[jax.Array]:
            grads, params = tree_unflatten(tree, xs[:n]), tree_unflatten(tree, xs[n + k :])
            updates, state = self.owner.tx.update(grads, tree_unflatten(self.state_tree, xs[n : n + k]), params)
            return [*jax.tree_util.tree_leaves(updates), *jax.tree_util.tree_leaves(state)]

        closed = without_branches(jax.make_jaxpr(update)(*self.wide, *self.states, *self.wide))
        traced = flattened(closed, jax.tree_util.tree_structure(()), [""] * (2 * n + k))
        if len(traced.outputs) != n + k or traced.effects:
            raise TypeError(
                "xcoexec.optim.offload: got a transformation whose update changes the structure of its state."
            )
        self.consts = traced.consts
        at = traced.inputs
        whole = Update(traced.ops, at[:n], at[n : n + k], at[n + k :], traced.outputs[:n], traced.outputs[n:])
        narrow = [i for i, s in enumerate(self.shapes) if s.dtype.name in NARROW]
        large = [i for i, s in enumerate(self.shapes) if size(s) >= LEAST]
        division = divide(whole, large, narrow)
        if unable := self._unable(division):
            division = divide(whole, [i for i in large if i not in unable], narrow)
        self._warn(division, large)
        self.sizes = {leaf.index: self._bytes_of(leaf) for leaf in division.leaves}
        self.resident = self._staying() if fill else self.resident
        rest = [i for i in self.sizes if i not in self.resident]
        return divide(whole, rest, narrow) if self.resident else division

    def _unable(self, division: Division) -> set[int]:
        """The parameters for whose update there are no kernels."""
        found = set()
        for leaf in division.leaves:
            shape = self.shapes[leaf.index]
            try:
                self.program(division, leaf, min(CHUNK, size(shape)), shape.dtype.name)
            except Unsupported:
                found.add(leaf.index)
        return found

    def _warn(self, division: Division, large: Sequence[int]) -> None:
        """Says how many parameters with states the host cannot do."""
        mine = {leaf.index for leaf in division.leaves}
        bytes_there = sum(4 * size(self.shapes[i]) for i in large if i not in mine)
        if self.states and 2 * bytes_there > sum(4 * size(self.shapes[i]) for i in large):
            warnings.warn(
                f"xcoexec.optim.offload: the update of {len(large) - len(mine)} of {len(large)} large parameters is "
                "not elementwise in the parameter, its gradient and its state; their states stay on the device.",
                CoexecWarning,
                stacklevel=4,
            )

    @property
    def room(self) -> float:
        """Bytes of states and masters that may stay on the device."""
        bound = self.owner.device_memory
        return 0 if bound is None else bound * sum(self.sizes.values()) if isinstance(bound, float) else bound

    def _staying(self) -> set[int]:
        """The parameters whose states stay on the device because there is room for them."""
        left, found = self.room, set()
        for i, nbytes in self.sizes.items():
            if nbytes <= left:
                left -= nbytes
                found.add(i)
        return found

    def timing(self) -> Timing | None:
        """What the steps took of the update that was traced last; None before enough of them were measured."""
        found = [m.timing for m in self._movements.values() if m.timing.enough]
        return found[-1] if found else None

    def _bytes_of(self, leaf: HostLeaf) -> int:
        each = sum(self.states[j].dtype.itemsize for j in leaf.states) + 4 * self.keeps(leaf)
        return size(self.shapes[leaf.index]) * each

    def keeps(self, leaf: HostLeaf) -> bool:
        """Whether the host keeps a copy of a parameter of its own: a wider one, or one that its update reads."""
        return self.shapes[leaf.index].dtype.name in NARROW or leaf.reads_parameter

    def wire_type(self, leaf: HostLeaf, gradient: jax.Array) -> str:
        """The type in which a leaf crosses: one that holds what goes down and what comes up."""
        down = gradient.dtype if leaf.wire is self.division.update.gradients[leaf.index] else leaf.wire.dtype
        return jnp.promote_types(down, self.shapes[leaf.index].dtype).name

    def program(self, division: Division, leaf: HostLeaf, n: int, wire: str) -> Segment:
        """The pass over `n` elements of a leaf that crosses in a type (see `Programs.segment`)."""
        kept = self.wide[leaf.index].dtype.name if self.keeps(leaf) else ""
        return self.programs.segment(division.update, leaf, n, wire, kept, self.shapes[leaf.index].dtype.name)

    def movement(self, gradients: Sequence[jax.Array]) -> Movement:
        """What an update does with gradients of these types."""
        leaves = self.division.leaves
        names = tuple(self.wire_type(x, gradients[x.index]) for x in leaves)
        if names not in self._movements:
            shapes = [self.shapes[x.index] for x in leaves]
            wires = [Wire(size(s), name) for s, name in zip(shapes, names, strict=True)]
            where = queues(jax.default_backend())
            program = functools.partial(self.program, self.division)
            self._movements[names] = Movement(self.store, self.division, wires, where, program)
        return self._movements[names]


def wide_type(dtype: Any) -> Any:
    """The type of a parameter as the optimizer sees it."""
    return np.dtype(np.float32) if np.dtype(dtype).name in NARROW else np.dtype(dtype)


def size(shape: jax.ShapeDtypeStruct) -> int:
    """Elements."""
    return int(np.prod(shape.shape))


__all__ = ["NARROW", "Home", "wide_type"]
