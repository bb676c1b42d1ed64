"""The ways to keep an optimizer's state that `benchmarks.offload` compares, and one of them at work."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import xcoexec

from .offload_decoder import loss_of

RATE, DECAY = 1e-4, 0.1
BALANCING, BALANCED_STEPS = 2, 4  # turns of `balance`, and steps before each
State = tuple[Any, Any]


def with_masters(tx: optax.GradientTransformation) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(init, update) that keep master weights of f32 beside the states: what `offload` computes, in plain optax."""
    wide = lambda tree: jax.tree_util.tree_map(lambda x: x.astype(jnp.float32), tree)

    def init(params: Any) -> State:
        masters = wide(params)
        return masters, tx.init(masters)

    def update(grads: Any, state: State) -> tuple[Any, State]:
        masters, states = state
        updates, states = tx.update(wide(grads), states, masters)
        masters = optax.apply_updates(masters, updates)
        return jax.tree_util.tree_map(lambda m: m.astype(jnp.bfloat16), masters), (masters, states)

    return init, update


def _optimizer(clip: bool) -> optax.GradientTransformation:
    adamw = optax.adamw(optax.cosine_decay_schedule(RATE, 10000), weight_decay=DECAY)
    return optax.chain(optax.clip_by_global_norm(1.0), adamw) if clip else adamw


def _kind(tree: Any, kind: str) -> Any:
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind=kind)
    return jax.tree_util.tree_map(lambda x: place if x.ndim else None, tree)


def _moved(tree: Any, kind: str) -> Any:
    """Arrays in another kind of memory; numbers stay."""
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind=kind)
    return jax.tree_util.tree_map(lambda x: jax.device_put(x, place) if x.ndim else x, tree)


def resident(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """All on the GPU."""
    init, update = with_masters(_optimizer(clip))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: State, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        params, state = update(grads, state)
        return params, state, loss

    return jax.jit(init)(params), step


def pinned_host(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """States in `pinned_host`: to the GPU and back in every step."""
    init, update = with_masters(_optimizer(clip))
    state = _moved(jax.jit(init)(params), "pinned_host")

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=(None, _kind(state, "pinned_host"), None))
    def step(params: Any, state: State, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        params, state = update(grads, _moved(state, "device"))
        return params, state, loss

    return state, step


def compute_on(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """States in `pinned_host`, and the update by JAX's host compute."""
    from jax.experimental import compute_on as on

    init, update = with_masters(_optimizer(False))
    state = _moved(jax.jit(init)(params), "pinned_host")
    host_place = jax.memory.Space.Host
    count = lambda tree: jax.tree_util.tree_map(lambda x: jax.device_put(x, host_place), tree)

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=(None, _kind(state, "pinned_host"), None))
    def step(params: Any, state: State, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        if clip:
            grads = optax.clip_by_global_norm(1.0).update(grads, optax.EmptyState())[0]
        call = getattr(on, "compute_on2", on.compute_on)  # as jax 0.11 calls the former
        on_host = call(update, compute_type="device_host", out_memory_spaces=host_place)
        params, state = on_host(_moved(grads, "pinned_host"), count(state))
        back = jax.tree_util.tree_map(lambda x: x if x.ndim else jax.device_put(x, jax.memory.Space.Device), state)
        return _moved(params, "device"), back, loss

    return state, step


def offloaded(tx: Any) -> Callable[..., Any]:
    """A step with such a transformation."""

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: Any, tokens: jax.Array) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return step


def offload(params: Any, clip: bool) -> tuple[Any, Callable[..., Any]]:
    """`xcoexec.optim.offload`, everything in host memory."""
    tx = xcoexec.optim.offload(_optimizer(clip))
    return tx.init(params), offloaded(tx)


def balanced(params: Any, clip: bool, device_memory: float = 0.5) -> tuple[Any, Callable[..., Any], Any]:
    """As `offload`, with a share of its bytes that may stay on the GPU; and what chooses how much of it does."""
    tx = xcoexec.optim.offload(_optimizer(clip), device_memory=device_memory)
    return tx.init(params), offloaded(tx), tx.balance


Way = Callable[..., tuple[Any, ...]]
#: those that matter most first
WAYS: dict[str, Way] = {"resident": resident, "offload": offload, "pinned_host": pinned_host, "balanced": balanced}
WAYS["compute_on"] = compute_on


class Run:
    """One way at work: it keeps its parameters and its state, and a call is one step."""

    def __init__(self, way: Way, params: Any, tokens: jax.Array, clip: bool):
        self.params = jax.tree_util.tree_map(jnp.copy, params)
        self._before = _in_use()
        self.state, step, *balance = way(self.params, clip)
        self.tokens, self.steps = tokens, 0
        self.losses: list[float] = []  # of the first steps, up to one whose loss nobody reads
        self._compile(step)
        for _ in range(BALANCING * len(balance)):
            for _ in range(BALANCED_STEPS):
                self()
            before, self.state = self.state, balance[0](self.params, self.state)
            if self.state is before:
                break
            self._compile(step)

    def _compile(self, step: Any) -> None:
        jax.block_until_ready(self.state)
        self.state_bytes = _in_use() - self._before
        home = getattr(self.state, "home", None)
        self.host_bytes = home.store.nbytes if home is not None else 0
        start = time.perf_counter()
        self.step = step.lower(self.params, self.state, self.tokens).compile()
        self.compile_seconds = time.perf_counter() - start
        memory = self.step.memory_analysis()
        self.bytes = (
            memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
        ) - memory.alias_size_in_bytes

    def __call__(self) -> None:
        self.params, self.state, loss = self.step(self.params, self.state, self.tokens)
        if self.steps == len(self.losses):
            self.losses.append(float(loss))
        self.steps += 1
        jax.block_until_ready(self.params)

    def burst(self, n: int) -> float:
        """Seconds a step of n steps that nobody waits for in between."""
        jax.block_until_ready(self.params)
        start = time.perf_counter()
        for _ in range(n):
            self.params, self.state, _ = self.step(self.params, self.state, self.tokens)
        self.steps += n
        jax.block_until_ready((self.params, self.state))
        return (time.perf_counter() - start) / n


def _in_use() -> int:
    stats = jax.devices()[0].memory_stats()
    return int(stats["bytes_in_use"]) if stats else 0
