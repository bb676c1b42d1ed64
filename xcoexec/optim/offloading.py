"""`xcoexec.optim.offload`: an optax transformation whose state lies in host memory, where the host computes updates."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import PyTreeDef, tree_unflatten

from .. import config
from ..codegen.program import Literal, Unsupported, Value
from ..codegen.segment.assembly import Segment
from ..compat import as_array, host_call, is_tracer
from ..devices.queues import queues
from ..errors import CoexecWarning, brief
from ..frontend.trace import flattened
from ..lowering.emit import run_ops
from ..planning.memory import amount
from .branches import without_branches
from .division import Division, HostLeaf, Update, divide
from .handlers import JOIN, START, register
from .movement import CHUNK, Movement, Wire
from .programs import Programs
from .store import Store

LEAST = 1 << 14  # elements of a parameter that is worth a way over the bus
NARROW = ("bfloat16", "float16")  # parameters of these types have master weights of f32
PLATFORMS = ("cpu", "gpu")
SPARE = 1  # cores left to the caller and the driver


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class OffloadState:
    """The state of an optimizer in host memory. The arrays there are the `home`'s, a part of the tree's structure; an
    update writes over them, so that only the state which it returns is valid from then on.

    `steps`: a number that the device counts; `resident`: the optimizer's other states; `masters`: weights of f32 of
    parameters that are not the host's.
    """

    steps: jax.Array
    resident: dict[int, jax.Array]
    masters: dict[int, jax.Array]
    home: Home = dataclasses.field(metadata={"static": True})


class Offloaded(NamedTuple):
    """As an `optax.GradientTransformation`, which it stands for; further functions are of the arrays in host memory.

    `init(params)`, `update(gradients, state, params)` as optax has them; updates are to be added to the parameters
    (`optax.apply_updates`). `fetch(state)`: (the optimizer's own state, parameters) as NumPy arrays, f32 where master
    weights are kept, to be saved. `load(params, fetched)`: the state that continues from what `fetch` gave.
    `nbytes(state)`: bytes of it in host memory.
    """

    init: Callable[[Any], OffloadState]
    update: Callable[..., tuple[Any, OffloadState]]
    fetch: Callable[[OffloadState], tuple[Any, Any]]
    load: Callable[[Any, tuple[Any, Any]], OffloadState]
    nbytes: Callable[[OffloadState], int]


def offload(optax_tx: Any, device_memory: str | int | float | None = None) -> Any:
    """An optax transformation whose states and master weights lie in host memory, where the host half computes the
    update: one pass over memory, while backward goes on. Gradients cross as they are there.

    Under `jax.jit` or `xcoexec.jit`, without further changes: `updates, state = tx.update(gradients, state, params)`
    and `optax.apply_updates`. Parameters of bf16 or f16 get master weights of f32: their update is what optax computes
    for f32 parameters and gradients, and they are the masters, rounded. What is not elementwise in a parameter and its
    state stays on the device (norms of gradients, schedules), and so do parameters whose whole update is not, with a
    warning.

    `device_memory`: bytes of states and masters that may stay on the device (also "2GiB", or a share of all of them up
    to 1.0); parameters are taken in the order of the tree. None: no more than must.

    With XCOEXEC_DISABLE=1 the transformation itself. Raises `TypeError` for what is no transformation, `ValueError` for
    another `device_memory`.
    """
    if not all(callable(getattr(optax_tx, name, None)) for name in ("init", "update")):
        raise TypeError(
            f"xcoexec.optim.offload: got {brief(optax_tx)}; "
            "valid is an optax.GradientTransformation, such as optax.adamw(1e-3)."
        )
    try:
        bound = amount(device_memory)
    except ValueError:
        raise ValueError(
            f"xcoexec.optim.offload: got device_memory={device_memory!r}; "
            'valid is a number of bytes, text such as "2GiB", or a share of the optimizer\'s bytes up to 1.0.'
        ) from None
    if config.disabled():
        return optax_tx
    made = _Offload(optax_tx, bound)
    return Offloaded(made.init, made.update, made.fetch, made.load, made.nbytes)


class Home:
    """Where a state lies: of which transformation it is, for which parameters (`shapes`: as they were given; `wide`: as
    the optimizer sees them), and the host's arrays.
    """

    def __init__(self, owner: _Offload, tree: PyTreeDef, shapes: Sequence[jax.ShapeDtypeStruct]):
        self.owner, self.tree, self.shapes = owner, tree, shapes
        self.wide = [jax.ShapeDtypeStruct(s.shape, _wide(s.dtype)) for s in shapes]
        params = tree_unflatten(tree, self.wide)
        self.states, self.state_tree = jax.tree_util.tree_flatten(jax.eval_shape(owner.tx.init, params))
        self.store = Store({}, {})
        self.programs = Programs(config.threads(spare=SPARE if jax.default_backend() != "cpu" else 0))
        self.division = self._divided()
        self._movements: dict[tuple[str, ...], Movement] = {}

    def _divided(self) -> Division:
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
        large = [i for i, s in enumerate(self.shapes) if _size(s) >= LEAST]
        division = divide(whole, large, narrow)
        if unable := self._unable(division):
            division = divide(whole, [i for i in large if i not in unable], narrow)
        self._warn(division, large)
        staying = self._staying(division)
        rest = [leaf.index for leaf in division.leaves if leaf.index not in staying]
        return divide(whole, rest, narrow) if staying else division

    def _unable(self, division: Division) -> set[int]:
        """The parameters for whose update there are no kernels."""
        found = set()
        for leaf in division.leaves:
            shape = self.shapes[leaf.index]
            try:
                self.program(division, leaf, min(CHUNK, _size(shape)), shape.dtype.name)
            except Unsupported:
                found.add(leaf.index)
        return found

    def _warn(self, division: Division, large: Sequence[int]) -> None:
        """Says how many parameters with states the host cannot do."""
        mine = {leaf.index for leaf in division.leaves}
        bytes_there = sum(4 * _size(self.shapes[i]) for i in large if i not in mine)
        if self.states and 2 * bytes_there > sum(4 * _size(self.shapes[i]) for i in large):
            warnings.warn(
                f"xcoexec.optim.offload: the update of {len(large) - len(mine)} of {len(large)} large parameters is "
                "not elementwise in the parameter, its gradient and its state; their states stay on the device.",
                CoexecWarning,
                stacklevel=4,
            )

    def _staying(self, division: Division) -> set[int]:
        """The parameters whose states stay on the device because there is room for them."""
        bound = self.owner.device_memory
        sizes = {leaf.index: self._bytes_of(leaf) for leaf in division.leaves}
        left = 0 if bound is None else bound * sum(sizes.values()) if isinstance(bound, float) else bound
        found = set()
        for i, nbytes in sizes.items():
            if nbytes <= left:
                left -= nbytes
                found.add(i)
        return found

    def _bytes_of(self, leaf: HostLeaf) -> int:
        each = sum(self.states[j].dtype.itemsize for j in leaf.states) + 4 * self.keeps(leaf)
        return _size(self.shapes[leaf.index]) * each

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
            wires = [Wire(_size(s), name) for s, name in zip(shapes, names, strict=True)]
            where = queues(jax.default_backend())
            program = functools.partial(self.program, self.division)
            self._movements[names] = Movement(self.store, self.division, wires, where, program)
        return self._movements[names]


class _Offload:
    """The functions of `Offloaded`."""

    def __init__(self, tx: Any, device_memory: int | float | None):
        self.tx, self.device_memory = tx, device_memory
        self._eager = jax.jit(self._update)

    # -- states
    def init(self, params: Any) -> OffloadState:
        """The state of parameters, as the optimizer begins it."""
        home = self._home("init", params)
        wide = _on_host(lambda: [jnp.asarray(np.asarray(p), _wide(p.dtype)) for p in jax.tree_util.tree_leaves(params)])
        states = _on_host(lambda: jax.tree_util.tree_leaves(self.tx.init(tree_unflatten(home.tree, wide))))
        return self._filled(home, states, wide, params)

    def load(self, params: Any, fetched: tuple[Any, Any]) -> OffloadState:
        """The state that `fetch` gave, for parameters like those that it belongs to."""
        home = self._home("load", params)
        states, wide = (jax.tree_util.tree_leaves(x) for x in fetched)
        for what, got, want in (("states", states, home.states), ("parameters", wide, home.wide)):
            if [(np.shape(x), x.dtype) for x in got] != [(x.shape, x.dtype) for x in want]:
                raise ValueError(
                    f"xcoexec.optim.offload: load: got {what} of other shapes or types than the parameters have; "
                    "valid is what fetch gave for the same optimizer and parameters."
                )
        return self._filled(home, states, wide, params)

    def fetch(self, state: OffloadState) -> tuple[Any, Any]:
        """Waits for all updates so far, and copies what the host has."""
        home = self._checked("fetch", state)
        jax.block_until_ready(state.steps)
        home.store.check()
        if home.division.leaves:
            home.store.expect(int(state.steps))
        shape = lambda x, s: np.array(x).reshape(s.shape)
        mine = home.store.states
        states = [shape(mine[j], s) if j in mine else _fetched(state.resident[j]) for j, s in enumerate(home.states)]
        masters = {**state.masters, **home.store.masters}
        params = [shape(masters[i], s) if i in masters else None for i, s in enumerate(home.wide)]
        return tree_unflatten(home.state_tree, states), tree_unflatten(home.tree, params)

    def nbytes(self, state: OffloadState) -> int:
        """Bytes of states and masters in host memory."""
        return self._checked("nbytes", state).store.nbytes

    def _home(self, what: str, params: Any) -> Home:
        leaves, tree = jax.tree_util.tree_flatten(params)
        if any(map(is_tracer, leaves)):
            raise TypeError(
                f"xcoexec.optim.offload: {what}: got traced parameters; "
                f"valid are concrete ones ({what} makes arrays in host memory: call it outside of jax.jit)."
            )
        for p in leaves:
            if not isinstance(p, jax.Array):
                raise TypeError(f"xcoexec.optim.offload: {what}: got {brief(p)} as a parameter; valid are jax.Arrays.")
            if p.devices() != {jax.devices()[0]}:
                raise ValueError(
                    f"xcoexec.optim.offload: {what}: got a parameter on {sorted(map(str, p.devices()))}; "
                    f"valid is {jax.devices()[0]}."
                )
        if jax.default_backend() not in PLATFORMS:
            raise NotImplementedError(
                f"xcoexec.optim.offload: got the backend {jax.default_backend()!r}; valid are {PLATFORMS}."
            )
        return Home(self, tree, [jax.ShapeDtypeStruct(p.shape, p.dtype) for p in leaves])

    def _filled(self, home: Home, states: Sequence[Any], wide: Sequence[Any], params: Any) -> OffloadState:
        """The state with these arrays, the host's in its memory."""
        flat = lambda x: np.array(x).reshape(-1)
        leaves = home.division.leaves
        home.store.states.update((j, flat(states[j])) for leaf in leaves for j in leaf.states)
        home.store.masters.update((leaf.index, flat(wide[leaf.index])) for leaf in leaves if home.keeps(leaf))
        mine = {leaf.index for leaf in leaves}
        place = next(iter(jax.tree_util.tree_leaves(params)[0].devices())) if wide else jax.devices()[0]
        there = lambda x: jax.device_put(x, place)
        resident = {j: there(x) for j, x in enumerate(states) if j not in home.store.states}
        narrow = [i for i, s in enumerate(home.shapes) if s.dtype.name in NARROW and i not in mine]
        masters = {i: there(wide[i]) for i in narrow}
        return OffloadState(there(np.uint32(0)), resident, masters, home)

    def _checked(self, what: str, state: object) -> Home:
        if not isinstance(state, OffloadState) or state.home.owner is not self:
            got = "one of another transformation" if isinstance(state, OffloadState) else brief(state)
            raise TypeError(
                f"xcoexec.optim.offload: {what}: got as a state {got}; "
                "valid is what this transformation's init returned."
            )
        return state.home

    # -- updates
    def update(self, updates: Any, state: OffloadState, params: Any = None) -> tuple[Any, OffloadState]:
        """optax's own signature: gradients, the state, the parameters; (updates, the next state)."""
        home = self._checked("update", state)
        for what, tree in (("gradients", updates), ("parameters", params)):
            leaves, got = jax.tree_util.tree_flatten(tree)
            if got != home.tree or [np.shape(x) for x in leaves] != [s.shape for s in home.shapes]:
                raise ValueError(
                    f"xcoexec.optim.offload: update: got {what} of another structure or other shapes than init got; "
                    "valid are gradients and parameters like those, as in tx.update(gradients, state, params)."
                )
        traced = any(map(is_tracer, jax.tree_util.tree_leaves((updates, state, params))))
        return (self._update if traced else self._eager)(updates, state, params)

    def _update(self, updates: Any, state: OffloadState, params: Any) -> tuple[Any, OffloadState]:
        home, tree = state.home, state.home.tree
        grads, given = jax.tree_util.tree_leaves(updates), jax.tree_util.tree_leaves(params)
        division, update = home.division, home.division.update
        env: dict[Value, jax.Array] = {v: as_array(x) for v, x in home.consts}
        env |= {v: g.astype(v.dtype) for v, g in zip(update.gradients, grads, strict=True)}
        for i, (v, p) in enumerate(zip(update.parameters, given, strict=True)):
            env[v] = state.masters[i] if i in state.masters else p.astype(v.dtype)
        env |= {update.states[j]: x for j, x in state.resident.items()}
        run_ops(division.device_ops(), env)
        of = lambda v: jnp.asarray(v.val, v.dtype) if isinstance(v, Literal) else env[v]
        mine, steps = self._exchanged(home, state.steps, grads, env)
        out, masters = [], {}
        for i, p in enumerate(given):
            if i in mine:
                keeps = i in home.store.masters
                out.append(mine[i].astype(jnp.float32) - p.astype(jnp.float32) if keeps else mine[i].astype(p.dtype))
            elif i in state.masters:
                masters[i] = (state.masters[i] + of(update.updates[i])).astype(jnp.float32)
                out.append(masters[i].astype(p.dtype).astype(jnp.float32) - p.astype(jnp.float32))
            else:
                out.append(of(update.updates[i]))
        resident = {j: of(update.new_states[j]) for j in state.resident}
        return tree_unflatten(tree, out), OffloadState(steps, resident, masters, home)

    def _exchanged(
        self, home: Home, steps: jax.Array, grads: Sequence[jax.Array], env: dict[Value, jax.Array]
    ) -> tuple[dict[int, jax.Array], jax.Array]:
        """What comes back from the host by parameters, and the number of the next step."""
        leaves = home.division.leaves
        if not leaves:
            return {}, steps + np.uint32(1)
        register(jax.default_backend())
        movement = home.movement(grads)
        words = jnp.stack([steps, *(_as_word(env[w]) for w in home.division.words)])
        early = () if home.division.late else (words,)
        crossing = []
        for k, leaf in enumerate(leaves):
            raw = leaf.wire is home.division.update.gradients[leaf.index]
            wire = (grads[leaf.index] if raw else env[leaf.wire]).astype(home.wire_type(leaf, grads[leaf.index]))
            crossing += host_call(START, [_shape(wire)], movement.number << 32 | k, [wire, *early], ((0, 0),), movement)
        every = [*crossing, steps]
        pairs = tuple((i, i) for i in range(len(every)))
        *back, steps = host_call(
            JOIN, [_shape(x) for x in every], movement.number << 32, [*every, words], pairs, movement
        )
        return {leaf.index: x for leaf, x in zip(leaves, back, strict=True)}, steps + np.uint32(1)


def _wide(dtype: Any) -> Any:
    return np.dtype(np.float32) if np.dtype(dtype).name in NARROW else np.dtype(dtype)


def _fetched(x: jax.Array) -> Any:
    """An array as one of NumPy; keys of random numbers are known to JAX alone."""
    return x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else np.array(x)


def _size(shape: jax.ShapeDtypeStruct) -> int:
    return int(np.prod(shape.shape))


def _shape(x: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _as_word(x: jax.Array) -> jax.Array:
    """A number of 4 bytes, or a truth value, as the bits of a word."""
    return lax.bitcast_convert_type(x.astype(jnp.int32) if x.dtype == bool else x, jnp.uint32)


def _on_host(make: Callable[[], Any]) -> Any:
    """What JAX makes on the CPU, where it has one: optimizers' states may have no room on the device."""
    try:
        cpu = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS names the device alone
        return make()
    with jax.default_device(cpu):
        return make()


__all__ = ["OffloadState", "Offloaded", "offload"]
