"""One plan on several devices: each runs the program of its own shard of a call's arrays, and nothing is copied.

x, sharded by item     x[0:8]  on device 0 --> its program --> y[0:8]  -.
                       x[8:16] on device 1 --> its program --> y[8:16] -+-> y, sharded as jax.jit's result is

Where the host half has no part in a plan, all devices run the same program, and XLA launches it on all of them at once.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import cast

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding
from jax.typing import ArrayLike

from ..codegen.program import Literal, Value
from ..codegen.rules.splits import Request
from ..compat import Array, SingleDevice, configuration, default_device, local_arrays, plain_jit, put_together
from ..errors import SplitError
from ..frontend.fold import Folded
from ..frontend.shards import Ranges, shard
from ..ir.plan import Plan
from .executable import Executable, checked
from .lower import Lowered
from .programs import Flat

Join = Callable[[list[jax.Array]], jax.Array]  # a result's arrays, one of each device of this process
Specs = tuple[PartitionSpec, ...]


def held(sharding: Sharding, shape: tuple[int, ...]) -> dict[jax.Device, Request | None]:
    """Device -> the range of an array of that shape that it has (None: all), in the sharding's order. Raises
    `SplitError` for one that is divided along several axes.
    """
    found: dict[jax.Device, Request | None] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        ranges = [(axis, *s.indices(n)[:2]) for axis, (s, n) in enumerate(zip(index, shape, strict=True))]
        cut = [r for r in ranges if r[1:] != (0, shape[r[0]])]
        if len(cut) > 1:
            raise SplitError(f"an array is divided along {len(cut)} axes; valid is one, that of its items.")
        found[device] = cut[0] if cut else None
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Placed:
    """Where the leaves of a call lie, each in one piece or divided along one axis over the same devices.

    `devices`: all of them, of other processes too. `ranges`: of each leaf what each device has. `here`: of each leaf
    whether this process's devices have an array of it each; others are sent to them at every call, if they are no
    weights.
    """

    devices: tuple[jax.Device, ...]
    ranges: tuple[Ranges, ...]
    here: tuple[bool, ...]

    @classmethod
    def of(cls, leaves: Sequence[ArrayLike]) -> Placed:
        """The places of leaves of which one at least is committed to other devices than the first one alone. Raises
        `SplitError` for leaves that do not lie on the same devices, or that say more than that, and `RuntimeError` for
        one that has been deleted.
        """
        for x in leaves:
            if type(x) is Array:
                local_arrays(x)
        shardings = [x.sharding if type(x) is Array and x.committed else None for x in leaves]
        maps = [None if s is None else held(s, np.shape(x)) for s, x in zip(shardings, leaves, strict=True)]
        devices = tuple(next(filter(None, maps), ()))
        if not devices:
            raise SplitError("an array lies on another device, and is not committed to it.")
        for s in filter(None, shardings):
            _check(s)
        if len({d.device_kind for d in devices}) > 1:
            raise SplitError("the devices are of several kinds.")
        if any(m is not None and tuple(m) != devices for m in maps):
            raise SplitError("the arguments do not lie on the same devices in the same order.")
        ranges = tuple((None,) * len(devices) if m is None else tuple(m.values()) for m in maps)
        if len(devices) > 1 and not any(r is not None for each in ranges for r in each):
            raise SplitError("every device has all of the arguments.")
        placed = cls(devices, ranges, tuple(m is not None for m in maps))
        if not placed.local:
            raise SplitError("no device of this process has a part of the arguments.")
        return placed

    @property
    def divided_leaves(self) -> tuple[int, ...]:
        """The positions of the leaves of which no device has all."""
        return tuple(i for i, each in enumerate(self.ranges) if any(r is not None for r in each))

    @property
    def local(self) -> tuple[jax.Device, ...]:
        """The devices of this process."""
        return tuple(d for d in self.devices if d.process_index == jax.process_index())

    def weights(self, leaves: Sequence[ArrayLike], index: Sequence[int]) -> list[list[ArrayLike]]:
        """Of each device of this process the weights there: the leaves at the positions `index`."""
        there = lambda i, k: _local(leaves[i])[k] if self.here[i] else leaves[i]
        return [[there(i, k) for i in index] for k in range(len(self.local))]

    def divided(self, folded: Folded, leaves: Sequence[ArrayLike], results: Sequence[Sharding]) -> Folded:
        """The program of one shard of these leaves, where results have these shardings. Raises `SplitError` where a
        shard has none of its own.
        """
        if set(folded.weight_index) & set(self.divided_leaves):
            raise SplitError("a weight is divided over several devices.")
        outs = [held(s, v.shape) for s, v in zip(results, folded.outputs, strict=True)]
        if any(tuple(m) != self.devices for m in outs):
            raise SplitError("a result lies on other devices than the arguments.")
        shards = [
            (tuple(self.ranges[i][k] for i in folded.input_index), tuple(m[d] for m in outs))
            for k, d in enumerate(self.devices)
        ]
        weights = self.weights(leaves, folded.weight_index)[0]
        return shard(folded, shards, folded.constants(weights))


def _check(s: Sharding) -> None:
    if s.memory_kind not in (None, jax.local_devices()[0].default_memory().kind):
        raise SplitError(f"an argument lies in {s.memory_kind}.")


@dataclasses.dataclass(frozen=True, eq=False)
class Shards:
    """A call's shards on the devices of this process. `weights`: of each device those that lie there; `here`: of each
    input whether each device has an array of it; `joins`: what makes a result of its arrays. `configuration`,
    `default`: JAX's and its default device, under which calls are made. `specs`: of inputs and of results the axis
    along which they lie in one piece a device, in order (None: some lie otherwise, or on devices of other processes).
    """

    devices: tuple[jax.Device, ...]
    weights: Sequence[Sequence[ArrayLike]]
    here: tuple[bool, ...]
    joins: tuple[Join, ...]
    configuration: Hashable
    default: jax.Device | str | None
    specs: tuple[Specs, Specs] | None = None

    @classmethod
    def of(cls, placed: Placed, whole: Folded, leaves: Sequence[ArrayLike], results: Sequence[Sharding]) -> Shards:
        """Those of a call with these leaves; `whole`: the program of all of it, `results` as in `Placed.divided`."""
        weak = whole.weak or (False,) * len(results)
        joins = tuple(_join(v, w, s) for v, w, s in zip(whole.outputs, weak, results, strict=True))
        here = tuple(placed.here[i] for i in whole.input_index)
        about = (configuration(), default_device(), _specs(placed, whole, results))
        return cls(placed.local, placed.weights(leaves, whole.weight_index), here, joins, *about)

    def together(self, plan: Plan, lowered: Lowered, options: Mapping[str, object]) -> Executable | None:
        """One program over all devices, of a plan in which the host half has no part; None for other plans."""
        if self.specs is None or len(self.devices) < 2 or lowered.segments:
            return None
        mesh, (inputs, results) = Mesh(np.array(self.devices), ("devices",)), self.specs
        began = time.thread_time()
        each = [lowered.arguments(w, d) for w, d in zip(self.weights, self.devices, strict=True)]
        at = NamedSharding(mesh, PartitionSpec())
        args = [put_together(x[0].shape, x[0].dtype, False, at)(list(x)) for x in zip(*each, strict=True)]
        seconds, n = time.thread_time() - began, len(args)
        run = lambda *flat: lowered(flat[:n], flat[n:])
        reads = (PartitionSpec(),) * n + inputs
        whole = jax.shard_map(run, mesh=mesh, in_specs=reads, out_specs=list(results), check_vma=False)
        jitted = plain_jit(checked(whole, self.configuration), compiler_options=dict(options))
        given = [NamedSharding(mesh, spec) for spec in inputs]

        def call(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
            mine = [_lying(x, s) if at else x for x, s, at in zip(leaves, given, self.here, strict=True)]
            return [join(list(_local(y))) for join, y in zip(self.joins, jitted(*args, *mine), strict=True)]

        return Executable(plan, self._called(call), lowered, seconds=seconds)

    def executable(self, plan: Plan, made: Sequence[Executable]) -> Executable:
        """One executable of those of the devices: each call is given arrays on all of them."""
        calls, here, joins, count = [e.call for e in made], self.here, self.joins, len(made)

        def call(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
            columns = [_local(x) if at else (x,) * count for x, at in zip(leaves, here, strict=True)]
            rows = list(zip(*columns, strict=True)) or [()] * count
            parts = [run(row) for run, row in zip(calls, rows, strict=True)]
            return [join(list(arrays)) for join, arrays in zip(joins, zip(*parts, strict=True), strict=True)]

        first, seconds = made[0], sum(e.seconds for e in made)
        others = dict.fromkeys(x for e in made[1:] for x in e.all_lowered if x is not first.lowered)
        return Executable(plan, self._called(call), first.lowered, seconds=seconds, beside=tuple(others))

    def _called(self, call: Flat) -> Flat:
        """A call as it is made: while a plan is made another device is the default one, for which `jax.jit` would
        compile anew.
        """
        if self.devices[0] == jax.local_devices()[0]:
            return call

        def elsewhere(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
            with jax.default_device(self.default):
                return call(leaves)

        return elsewhere


def _specs(placed: Placed, whole: Folded, results: Sequence[Sharding]) -> tuple[Specs, Specs] | None:
    """`Shards.specs`."""
    if placed.local != placed.devices:
        return None
    inputs = [_spec(v.shape, placed.ranges[i]) for v, i in zip(whole.inputs, whole.input_index, strict=True)]
    pairs = zip(whole.outputs, results, strict=True)
    outs = [_spec(v.shape, tuple(held(s, v.shape).values())) for v, s in pairs]
    found = [x for x in (*inputs, *outs) if x is not None]
    return (tuple(found[: len(inputs)]), tuple(found[len(inputs) :])) if len(found) == len(inputs + outs) else None


def _spec(shape: Sequence[int], ranges: Ranges) -> PartitionSpec | None:
    """How an array lies of which the devices have these ranges, in order: whole on each, or in equal pieces along an
    axis; None otherwise.
    """
    if not any(ranges):
        return PartitionSpec()
    axis = next(r[0] for r in ranges if r is not None)
    size = shape[axis] // len(ranges)
    equal = ranges == tuple((axis, k * size, (k + 1) * size) for k in range(len(ranges)))
    return PartitionSpec(*[None] * axis, "devices") if equal else None


def _lying(x: ArrayLike, sharding: Sharding) -> jax.Array:
    """An array as one of this sharding, by which each device has what it has."""
    array = cast("jax.Array", x)
    return put_together(array.shape, array.dtype, array.weak_type, sharding)(list(_local(array)))


def _local(x: ArrayLike) -> Sequence[jax.Array]:
    return local_arrays(cast("jax.Array", x))


def _join(v: Value | Literal, weak: bool, sharding: Sharding) -> Join:
    if isinstance(sharding, SingleDevice):
        return lambda arrays: arrays[0]
    return put_together(v.shape, jax.numpy.dtype(v.dtype), weak, sharding)


__all__ = ["Placed", "Shards"]
