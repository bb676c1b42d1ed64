"""One plan as one XLA executable, or several in a row, with its weights resident."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

import jax
import numpy as np
from jax.sharding import Sharding
from jax.typing import ArrayLike

from ..compat import Jitted, SingleDevice, alone, as_array, configuration, no_mesh, plain_jit
from ..ir.plan import Plan
from .lower import Lowered
from .programs import Flat, Section, divided, in_turn, sections

#: of a program's constants that are part of it: each one that a call hands over takes the launching thread 1 to 2 us,
#: before the device begins. They lie on the device once more, as XLA keeps them with the program.
INSIDE_BYTES = 32 << 20


class Caller(Protocol):
    """Calls an executable whose constants change."""

    def call(self, jitted: Jitted, leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
        """The function's results, flat, of the constants as they are now."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Executable:
    """`call(leaves)`: the inputs' leaves in, flat results out. `lowered` is None for plain `jax.jit`. `in_flight`: what
    takes calls that begin before the results of those before them are there (None: the same). `compiled`: has it
    compiled for leaves, of which shapes and types are enough (None: its first call does so). `seconds`: what it took to
    have its weights resident. `caller`: who calls it, where its constants change. `beside`: what the plan was lowered
    to for further devices, each of which computes a shard of the call. `blobs`: packed weights. `program`: `call` with
    the leaves one by one, where it is one program that gives nothing away. `may`: whether a call takes the plan now, or
    plain `jax.jit` in its place (None: always).
    """

    plan: Plan
    call: Flat
    lowered: Lowered | None
    in_flight: Executable | None = None
    compiled: Callable[[Sequence[ArrayLike]], object] | None = None
    seconds: float = 0.0
    caller: Caller | None = None
    beside: tuple[Lowered, ...] = ()
    blobs: tuple[jax.Array, ...] = ()
    program: Callable[..., Sequence[jax.Array]] | None = None
    may: Callable[[], bool] | None = None

    @property
    def all_lowered(self) -> tuple[Lowered, ...]:
        """What the plan was lowered to, for each of its devices; nothing for plain `jax.jit`."""
        return (self.lowered, *self.beside) if self.lowered is not None else ()

    @property
    def through(self) -> bool:
        """Whether a call returns when its results are there: XLA:CPU runs programs of host segments in the caller."""
        return self.lowered is not None and not self.lowered.device.apart


def without_mesh(exe: Executable) -> Executable:
    """The same for callers around whose calls a mesh of one device is set, or whose arrays have it in their types: it
    is no part of a program of ours.
    """

    def call(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
        with no_mesh():
            return exe.call(list(map(alone, leaves)))

    def compiled(leaves: Sequence[ArrayLike]) -> object:
        assert exe.compiled is not None
        with no_mesh():
            return exe.compiled(list(map(alone, leaves)))

    return dataclasses.replace(exe, call=call, compiled=exe.compiled and compiled, program=None)


class Stale(Exception):
    """JAX's configuration is another one than that for which the executable was made."""


def executable(
    plan: Plan,
    lowered: Lowered,
    weights: Sequence[ArrayLike],
    donated: Sequence[int],
    compiler_options: Mapping[str, object] | None = None,
    made_for: Hashable = None,
    results: Sequence[Sharding] | None = None,
    caller: Callable[[Lowered, Sequence[jax.Array]], Caller] | None = None,
    where: jax.Device | None = None,
    blobs: Sequence[jax.Array] | None = None,
    inside: int = 0,
) -> Executable:
    """Packs the weights and wraps the lowered function in `jax.jit`; `weights` are leaves of the shapes that were
    traced, `donated`: positions among the inputs.

    `made_for`: the configuration under which it may be called (None: under any). `jax.jit` traces again when it
    changes: then the call raises `Stale`. `results`: where each lies, whatever lies where of the inputs (None: there).
    `caller`: who calls, of the constants that calls begin with (None: they never change). `where`, `blobs`: as in
    `Lowered.arguments`. `inside`: bytes of constants that may be part of a device's program (see `INSIDE_BYTES`).
    """
    began = time.thread_time()
    if caller is None:
        lowered = lowered.with_inside(weights, inside)
    lowered = divided(lowered, plan.programs if not donated and caller is None else 1)
    args = tuple(lowered.arguments(weights, where, blobs))
    seconds, n = time.thread_time() - began, len(args)

    fn = checked(lambda *flat: lowered(flat[:n], flat[n:], donated), made_for)
    xla = {**(lowered.device.calling() if lowered.segments or lowered.fetches else {}), **(compiler_options or {})}
    options: dict[str, object] = {"compiler_options": xla} if xla else {}
    calls = caller(lowered, args) if caller is not None else None
    parts = sections(lowered)
    if parts:
        return _several(plan, lowered, parts, args, made_for, options, results, seconds)
    if results is not None:
        hidden = [SingleDevice(jax.local_devices()[0])] * lowered.folded.hidden
        options["out_shardings"] = [*results, *hidden]
    jitted = plain_jit(fn, donate_argnums=tuple(n + i for i in donated), **options)
    compiled = lambda leaves: jitted.lower(*args, *leaves).compile()  # `jax.jit` keeps it for calls
    call = (lambda leaves: jitted(*args, *leaves)) if calls is None else functools.partial(calls.call, jitted)
    program = functools.partial(jitted, *args) if calls is None and not donated else None
    blobs = args[len(lowered.consts) :]
    return Executable(plan, call, lowered, None, compiled, seconds, calls, blobs=blobs, program=program)


def checked(fn: Callable[..., list[jax.Array]], made_for: Hashable) -> Callable[..., list[jax.Array]]:
    """A function that JAX traces; it raises `Stale` under another configuration than `made_for`."""

    def traced(*flat: jax.Array) -> list[jax.Array]:
        if made_for is not None and configuration() != made_for:
            raise Stale
        return fn(*flat)

    return traced


def _several(
    plan: Plan,
    lowered: Lowered,
    parts: Sequence[Section],
    args: Sequence[jax.Array],
    made_for: Hashable,
    options: Mapping[str, object],
    results: Sequence[Sharding] | None,
    seconds: float,
) -> Executable:
    """A plan whose call is several programs, one for each of its parts."""
    value = dict(zip(lowered.consts, args, strict=False))

    def program(part: Section) -> tuple[Jitted, list[jax.Array]]:
        fn, about = checked(lambda *flat: part(lowered, flat), made_for), dict(options)
        if results is not None:
            between = [SingleDevice(jax.local_devices()[0])] * len(part.gives)
            about["out_shardings"] = [*between, *(results[at] for at, _, _ in part.results)]
        return plain_jit(fn, **about), [value[v] for v in part.consts]

    def compile_one(jitted: Jitted, consts: Sequence[jax.Array], *reads: ArrayLike) -> Sequence[jax.Array]:
        jitted.lower(*consts, *reads).compile()
        out: Sequence[jax.Array] = jitted.eval_shape(*consts, *reads)
        return out

    programs = [program(part) for part in parts]
    call = in_turn(parts, lowered, [functools.partial(jitted, *consts) for jitted, consts in programs])
    compiled = in_turn(parts, lowered, [functools.partial(compile_one, jitted, consts) for jitted, consts in programs])
    return Executable(plan, call, lowered, None, compiled, seconds)


def local(plan: Plan, lowered: Lowered, weights: Sequence[ArrayLike]) -> Executable:
    """A plan on XLA:CPU on a machine whose default backend is a device: for inputs in host memory.

    Nothing in it is committed to a device, so results mix with the device's arrays as NumPy arrays would. Raises
    `RuntimeError` where JAX has no CPU backend.
    """
    cpu = jax.local_devices(backend="cpu")[0]
    with jax.default_device(cpu):
        args = tuple(
            a if a.devices() == {cpu} else as_array(np.asarray(a))
            for a in lowered.arguments([np.asarray(w) for w in weights])
        )
        n = len(args)
        jitted = plain_jit(lambda *flat: lowered(flat[:n], flat[n:]))

    def call(leaves: Sequence[ArrayLike]) -> Sequence[jax.Array]:
        near = [np.asarray(x) if isinstance(x, jax.Array) and x.devices() != {cpu} else x for x in leaves]
        with jax.default_device(cpu):
            out: Sequence[jax.Array] = jitted(*args, *near)
            return out[: len(out) - lowered.folded.hidden]

    return Executable(plan, call, lowered)
