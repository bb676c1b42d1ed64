"""How units run inside a traced function: device units as JAX operations, host units as native calls, in either way."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..codegen.program import Literal, Op, Value, external, kind
from ..codegen.runtime import host
from ..codegen.runtime.sites import Fetch, Site
from ..codegen.segment.assembly import Segment
from ..codegen.segment.sharing import shareable
from ..compat import MADE, Pairs, as_weak, bind, ffi_call, ffi_header, host_call
from ..devices.record import Device
from ..ir.streaming import ahead
from ..partition.split import Slice
from .work_units import DeviceUnit, HostUnit, Join, Unit

#: unique to this process, so that an executable from JAX's disk cache never meets addresses of another one
TARGET = f"xcoexec_{secrets.token_hex(8)}"
_registered: set[str] = set()
_for_good: list[object] = []  # segments and sites that nobody else keeps as long as an executable may call them


def register(device: Device) -> None:
    """Makes the native handlers that a kind of device calls known to XLA (once): blocking ones on the CPU, asynchronous
    ones on a device of its own.
    """
    if device.name in _registered:
        return
    if not device.apart:
        stages = {"execute": host.handler_capsule()}
        if _executables_hold():
            jax.ffi.register_ffi_type(f"{TARGET}_hold", host.hold_type(), platform=device.handlers)
            stages["instantiate"] = host.handler_capsule("team", "adopt")
        jax.ffi.register_ffi_target(TARGET, stages, platform=device.handlers)
        jax.ffi.register_ffi_target(f"{TARGET}_stamp", host.handler_capsule("team", "stamp"), platform=device.handlers)
    else:
        holding: dict[str, object] = {}
        if _executables_hold():
            jax.ffi.register_ffi_type(
                f"{TARGET}_{device.name}", host.site_hold_type(device.name), platform=device.handlers
            )
            holding = {"instantiate": host.handler_capsule("calls", "hold")}
        for name in ("start", "join", "tick", "fetch", "fetched"):
            stages = {"execute": host.handler_capsule("calls", name)} | (holding if name in ("start", "fetch") else {})
            jax.ffi.register_ffi_target(f"{TARGET}_{name}", stages, platform=device.handlers)
    _registered.add(device.name)


def _executables_hold() -> bool:
    """Whether XLA's executables can hold the segments and sites that they call; where not, these live to the end."""
    return host.holds(ffi_header())


def turned_back(env: dict[Value, jax.Array], turned: Mapping[Value, tuple[int, ...]]) -> None:
    """Gives constants that are stored in another order of axes their own; XLA reads them as they lie."""
    env.update((v, lax.transpose(env[v], np.argsort(order).tolist())) for v, order in turned.items() if v in env)


class Halves:
    """Values of a call being traced, and how units run; what both ways have in common."""

    def __init__(self, env: dict[Value, jax.Array]):
        self.env = env
        self.fused: set[Value] = set()  # made by XLA, in types that it rounds to only where it has to

    def get(self, v: Value) -> jax.Array:
        """The array of a value, of its shape and type."""
        return self.env[v]

    def rounded(self, v: Value) -> jax.Array:
        """The array of a value that goes to the host half, or together with a part of its, rounded to its type for the
        device half too: XLA computes on with more bits (`xla_allow_excess_precision`), and halves that compare a
        maximum with its operands, as gradients do, have to have the same numbers.
        """
        x = self.get(v)
        if v in self.fused:
            x = self.env[v] = _rounded(x)
            self.fused.discard(v)
        return x

    def result(self, v: Value | Literal, weak: bool) -> jax.Array:
        """A result of the function; `weak`: of weak type."""
        x = self.get(v) if isinstance(v, Value) else operand_of(v, {})
        return as_weak(x) if weak else x

    def window(self, v: Value, windows: Mapping[Value, Slice]) -> jax.Array:
        """The array of a value; one of `windows` is a range, along one axis, of the array of another value."""
        s = windows.get(v)
        return self.get(v) if s is None else lax.slice_in_dim(self.get(s.source), s.start, s.stop, axis=s.axis)

    def run(self, units: Sequence[Unit]) -> None:
        """Runs units in their order."""
        for unit in units:
            if isinstance(unit, HostUnit):
                self.host(unit)
            else:
                self.device(unit)

    def host(self, unit: HostUnit) -> None:
        """Runs a host unit: its results, or its part of them, are there or under way from now on."""
        raise NotImplementedError

    def device(self, unit: DeviceUnit) -> None:
        """Runs a device unit as JAX operations, behind the host units whose results it reads."""
        made = {v for op in unit.ops for v in op.outs}
        env = {v: self.window(v, unit.windows) for v in external(unit.ops)}
        run_ops(unit.ops, env)
        self.env.update((v, env[v]) for v in made)
        self.fused.update(v for v in made if v.dtype in ("bfloat16", "float16"))


class Synchronous(Halves):
    """On the CPU a host unit is one blocking call. `handed`: input that the call gives away -> result that may take its
    memory.
    """

    def __init__(
        self,
        env: dict[Value, jax.Array],
        blobs: Mapping[HostUnit, jax.Array],
        handed: Mapping[Value, Value | Literal],
    ):
        super().__init__(env)
        self.blobs, self.handed = blobs, handed
        self.joins: dict[Value, Join] = {}  # by the device half's part

    def host(self, unit: HostUnit) -> None:
        """Calls the segment, and waits for its results."""
        segment = unit.segment
        program = segment.program
        if not _executables_hold():
            _for_good.append(segment)
        results = [jax.ShapeDtypeStruct(v.shape, _edge(segment, v)) for v in program.outputs]
        for v in map(unit.source, program.inputs):
            self.rounded(v)
        args = [self.window(v, unit.windows).astype(_edge(segment, v)) for v in program.inputs]
        operands = [*args, *(self.env[v] for v in segment.raw), self.blobs[unit]]
        outs = ffi_call(TARGET, results, segment, operands, self._in_place(unit))
        self.env.update((v, out.astype(v.dtype)) for v, out in zip(program.outputs, outs, strict=True))
        self.joins.update((j.parts[1], j) for j in unit.joins)

    def _in_place(self, unit: HostUnit) -> Pairs:
        """(operand, result) of a unit that are one buffer; XLA copies an operand that somebody reads later."""
        ins, outs = unit.segment.program.inputs, unit.segment.program.outputs
        wanted = lambda v, out: (
            self.handed.get(v) is out and v not in unit.windows and _edge(unit.segment, v) == v.dtype
        )
        pairs = shareable(unit.segment) if any(v in self.handed for v in ins) else ()
        return tuple((i, o) for i, o in pairs if wanted(ins[i], outs[o]))

    def device(self, unit: DeviceUnit) -> None:
        """Runs a device unit; a result of both halves is put together."""
        super().device(unit)
        for v in unit.outs:
            if v in self.joins:
                join = self.joins[v]
                self.env[join.out] = lax.concatenate([self.env[p] for p in join.parts], join.axis)


def _rounded(x: jax.Array) -> jax.Array:
    """An array of a narrow type whose rounding XLA does not leave out. `reduce_precision` does that for numbers that
    are normal in the type; those below them have units of the smallest one.
    """
    about, wide = jnp.finfo(x.dtype), x.astype(np.float32)
    near = lax.reduce_precision(wide, about.nexp, about.nmant)
    if about.nexp < 8:  # bf16 has all exponents of f32
        unit = np.float32(about.smallest_subnormal)
        small = lax.round(wide / unit, lax.RoundingMethod.TO_NEAREST_EVEN) * unit
        near = jnp.where(jnp.abs(wide) < np.float32(about.tiny), small, near)
    return near.astype(x.dtype)


def started(
    site: Site, args: Sequence[jax.Array], arrays: Sequence[jax.Array], words: Sequence[jax.Array] = ()
) -> tuple[list[jax.Array], jax.Array]:
    """Starts a host call with the operands `args`: `arrays` for who is to read them behind the start, and a word that
    stands for it. `words`: those of the starts that it has to come behind.

    The start returns no operand in its own buffer: XLA would copy an argument of the caller's for that.
    """
    result = [jax.ShapeDtypeStruct((1,), np.float32)]
    word = host_call(f"{TARGET}_start", result, site.address, [*args, *words], False, site)[0]
    *behind, word = lax.optimization_barrier((*arrays, word))
    return behind, word


@dataclasses.dataclass(eq=False)
class _Pending:
    """A host unit that runs: its operands (alive until the join), the word of its start, and the last device result
    since. `led`: a result of its leader's join, with which it really begins.
    """

    unit: HostUnit
    operands: list[jax.Array]
    word: jax.Array
    after: jax.Array | None = None
    led: jax.Array | None = None


class _Stream:
    """Weights on their way, as many ahead of their use as `ahead` bytes allow, so that copies run while the device
    computes.

    The order is in the data: a fetch takes a result of the unit whose weights it may write over and gives it back, so
    that whoever reads it comes after the fetch has begun.
    """

    def __init__(self, fetches: Mapping[tuple[DeviceUnit, Value], Fetch]):
        self.fetches = fetches
        self.waiting = list(fetches)
        self.there: dict[tuple[DeviceUnit, Value], jax.Array] = {}
        self.room = ahead([f.nbytes for f in fetches.values()])
        self.last: list[jax.Array] = []  # what was computed with the weights before

    def more(self, after: jax.Array) -> jax.Array:
        """Begins what there is room for, in bytes, once `after` is there; returns `after`."""
        while self.waiting and self.fetches[self.waiting[0]].nbytes <= self.room:
            key = self.waiting.pop(0)
            self.room -= self.fetches[key].nbytes
            results = [jax.ShapeDtypeStruct(key[1].shape, key[1].dtype), jax.ShapeDtypeStruct(after.shape, after.dtype)]
            self.there[key], after = host_call(
                f"{TARGET}_fetch", results, self.fetches[key].address, [after], ((0, 1),), self.fetches[key]
            )
        self.last = [after]
        return after

    def take(self, key: tuple[DeviceUnit, Value], late: Sequence[jax.Array]) -> jax.Array:
        """The weights, complete. The device's stream waits for them, but not before the values `late` are there."""
        weights = self.there.pop(key)
        self.room += self.fetches[key].nbytes
        result = [jax.ShapeDtypeStruct(weights.shape, weights.dtype)]
        fetch = self.fetches[key]
        return host_call(f"{TARGET}_fetched", result, fetch.address, [weights, *late, *self.last], True, fetch)[0]


class Asynchronous(Halves):
    """On a device a host unit is started as soon as its operands are there, and joined where a result is first read.

    Who reads its operands afterwards is ordered behind the start. `join` takes them once more, so that XLA keeps them,
    and a device result, so that it is not joined before that.
    """

    def __init__(
        self,
        env: dict[Value, jax.Array],
        sites: Mapping[HostUnit, Site],
        fetches: Mapping[tuple[DeviceUnit, Value], Fetch],
        first: Value | None,
    ):
        super().__init__(env)
        if not _executables_hold():
            _for_good.extend((*sites.values(), *fetches.values()))
        self.early = set(env) - {first}  # there from the beginning of the call
        self.sites = sites
        self.stream = _Stream(fetches)
        if first is not None:  # the first ones begin with the call
            env[first] = self.stream.more(env[first])
        self.pending: dict[Value, _Pending] = {}
        self.words: dict[HostUnit, jax.Array] = {}
        self.led: set[HostUnit] = set()  # units that are joined once another one has begun

    def run(self, units: Sequence[Unit]) -> None:
        """Runs units in their order."""
        self.led = {u.leader for u in units if isinstance(u, HostUnit) and u.leader is not None}
        super().run(units)

    def get(self, v: Value) -> jax.Array:
        """The array of a value; the host unit that makes it is joined now if it still runs."""
        if v not in self.env:
            self._join(self.pending[v])
        return self.env[v]

    def host(self, unit: HostUnit) -> None:
        """Starts the unit, once its operands are there; nobody waits for it yet."""
        program = unit.segment.program
        sources = [*map(unit.source, program.inputs)]
        arrays = [*map(self.rounded, sources)]
        args = [x.astype(_carried(s)) for s, x in zip(sources, arrays, strict=True)]
        makers = dict.fromkeys(k.unit for k in unit.kept.values())
        behind, word = started(self.sites[unit], args, arrays, [self.words[m] for m in makers])
        self.words[unit] = word
        self.env.update(zip(sources, behind, strict=True))
        rest = _Pending(unit, args, word)
        self.pending.update((v, rest) for v in ([j.parts[1] for j in unit.joins] or program.outputs))
        if unit.leader is not None:
            first = unit.leader.joins[0]
            self._join(self.pending[first.parts[1]])
            rest.led = self.env[first.out]

    def device(self, unit: DeviceUnit) -> None:
        """Runs a device unit, with its streamed weights; a host unit that makes the rest of its result is joined."""
        if unit.streamed:
            sources = map(unit.source, external(unit.ops))
            late = [self.get(v) for v in sources if v not in unit.streamed and v not in self.early]
            self.env.update((v, self.stream.take((unit, v), late)) for v in unit.streamed)
        super().device(unit)
        out = unit.outs[-1]
        for v in unit.streamed:
            del self.env[v]
        if unit.streamed:
            self.env[out] = self.stream.more(self.env[out])
        if out in self.pending and self.pending[out].unit not in self.led:
            self._join(self.pending[out])
        for p in self.pending.values():
            p.after = self.env[out]

    def _join(self, rest: _Pending) -> None:
        """Joins a host unit: behind the device half's parts of its results, where it has such, which are there."""
        unit = rest.unit
        outputs = tuple(j.out for j in unit.joins) or unit.segment.program.outputs
        results = [jax.ShapeDtypeStruct(v.shape, _carried(v)) for v in outputs]
        behind = [self.rounded(j.parts[1]).astype(_carried(j.out)) for j in unit.joins]
        if not behind and rest.after is not None:
            behind = [rest.after]
        if rest.led is not None:
            behind.append(rest.led)
        site = self.sites[unit]
        operands = [*rest.operands, *behind, rest.word]
        outs = host_call(f"{TARGET}_join", results, site.address, operands, False, site)
        self.env.update((v, out.astype(v.dtype)) for v, out in zip(outputs, outs, strict=True))
        self.pending = {v: p for v, p in self.pending.items() if p is not rest}


def _carried(v: Value) -> type[np.int32] | type[np.float32]:
    """The type in which kernels hold a value; where it is another one, XLA converts at the segment's edge."""
    return np.int32 if kind(v.dtype) == "i" else np.float32


def _edge(segment: Segment, v: Value) -> str:
    """The type in which a value comes into a segment or goes out of it."""
    return v.dtype if v in segment.as_stored else np.dtype(_carried(v)).name


def operand_of(v: Value | Literal, env: Mapping[Value, jax.Array]) -> jax.Array:
    """The array of a value, or of a literal."""
    return jnp.asarray(v.val, v.dtype) if isinstance(v, Literal) else env[v]


def run_ops(ops: Sequence[Op], env: dict[Value, jax.Array]) -> None:
    """Evaluates operations in program order by their JAX primitives; `env` has what they read, and gets their results.
    Raises `KeyError` for a value that nobody has made.
    """
    for op in ops:
        args = [operand_of(v, env) for v in op.ins]
        with jax.named_scope(op.name or op.prim):
            results = bind(op.primitive or MADE[op.prim], args, dict(op.params))
        env.update(zip(op.outs, results, strict=True))
