"""`xcoexec.optim.offload`: an optax transformation whose state lies in host memory, where the host computes updates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import tree_unflatten

from .. import config
from ..codegen.program import Literal, Value
from ..compat import as_array, host_call, is_tracer
from ..errors import brief
from ..lowering.emit import run_ops
from ..planning.memory import amount
from .balance import LEAST_STEPS, device_rate, staying
from .handlers import JOIN, START, register
from .home import NARROW, Home, wide_type

PLATFORMS = ("cpu", "gpu")


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
    `balance(params, state)`: the same state with as much of it on the device, within `device_memory`, as makes the next
    steps the fastest by what the steps so far took; a jitted step compiles anew for it where it differs.
    """

    init: Callable[[Any], OffloadState]
    update: Callable[..., tuple[Any, OffloadState]]
    fetch: Callable[[OffloadState], tuple[Any, Any]]
    load: Callable[[Any, tuple[Any, Any]], OffloadState]
    nbytes: Callable[[OffloadState], int]
    balance: Callable[[Any, OffloadState], OffloadState]


def offload(optax_tx: Any, device_memory: str | int | float | None = None) -> Any:
    """An optax transformation whose states and master weights lie in host memory, where the host half computes the
    update: one pass over memory, while backward goes on. Gradients cross as they are there.

    Under `jax.jit` or `xcoexec.jit`, without further changes: `updates, state = tx.update(gradients, state, params)`
    and `optax.apply_updates`. Parameters of bf16 or f16 get master weights of f32: their update is what optax computes
    for f32 parameters and gradients, and they are the masters, rounded. What is not elementwise in a parameter and its
    state stays on the device (norms of gradients, schedules), and so do parameters whose whole update is not, with a
    warning.

    `device_memory`: bytes of states and masters that may stay on the device (also "2GiB", or a share of all of them up
    to 1.0). None: no more than must. At first as many parameters as there is room for, in the order of the tree; what
    the steps then take tells `balance` which and how many of them make a step the fastest.

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
    return Offloaded(made.init, made.update, made.fetch, made.load, made.nbytes, made.balance)


class _Offload:
    """The functions of `Offloaded`."""

    def __init__(self, tx: Any, device_memory: int | float | None):
        self.tx, self.device_memory = tx, device_memory
        self._eager = jax.jit(self._update)

    # -- states
    def init(self, params: Any) -> OffloadState:
        """The state of parameters, as the optimizer begins it."""
        home = self._home("init", params)
        given = jax.tree_util.tree_leaves(params)
        wide = _on_host(lambda: [jnp.asarray(np.asarray(p), wide_type(p.dtype)) for p in given])
        states = _on_host(lambda: jax.tree_util.tree_leaves(self.tx.init(tree_unflatten(home.tree, wide))))
        return self._filled(home, states, wide, params)

    def load(self, params: Any, fetched: tuple[Any, Any]) -> OffloadState:
        """The state that `fetch` gave, for parameters like those that it belongs to."""
        home = self._home("load", params)
        states, wide = jax.tree_util.tree_leaves(fetched[0]), _wide(params, fetched[1])
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

    def balance(self, params: Any, state: OffloadState) -> OffloadState:
        """What `Offloaded` says. Raises `ValueError` before `LEAST_STEPS` steps of one program are over."""
        home = self._checked("balance", state)
        fetched = self.fetch(state)  # waits for the updates
        timing = home.timing()
        if timing is None:
            if not home.division.leaves:
                return state
            raise ValueError(
                f"xcoexec.optim.offload: balance: got a state behind fewer than {LEAST_STEPS} steps of one program; "
                "valid is one behind more, as they are what is measured."
            )
        chosen = staying(timing, home.sizes, home.resident, home.room, device_rate())
        if chosen == frozenset(home.resident):
            return state
        new = self._home("balance", params, chosen)
        return self._filled(new, jax.tree_util.tree_leaves(fetched[0]), _wide(params, fetched[1]), params)

    def nbytes(self, state: OffloadState) -> int:
        """Bytes of states and masters in host memory."""
        return self._checked("nbytes", state).store.nbytes

    def _home(self, what: str, params: Any, resident: Collection[int] | None = None) -> Home:
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
        return Home(self, tree, [jax.ShapeDtypeStruct(p.shape, p.dtype) for p in leaves], resident)

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


def _wide(params: Any, fetched: Any) -> list[Any]:
    """Parameters as the optimizer sees them: what `fetch` gave, or those themselves where no wider ones are kept. Fewer
    where something is missing.
    """
    given = jax.tree_util.tree_leaves(params)
    kept = jax.tree_util.tree_leaves(fetched, is_leaf=lambda x: x is None)
    alone = [None if p.dtype.name in NARROW else np.array(p) for p in given]
    pairs = zip(kept, alone, strict=False)  # the numbers differ for other parameters
    return [x for x in (p if k is None else k for k, p in pairs) if x is not None]


def _fetched(x: jax.Array) -> Any:
    """An array as one of NumPy; keys of random numbers are known to JAX alone."""
    return x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else np.array(x)


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
