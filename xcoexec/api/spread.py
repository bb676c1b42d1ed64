"""One network over several devices of a host: its layers in order, each device with the weights of its own part.

inputs --> part 1 on device 0 and the host half --> part 2 on device 1 and the host half --> results

Each part is a function of its own with resident weights, planned for its device: co-executed, and within
`device_memory` there. Calls in flight follow one another: while device 1 has the first, device 0 has the second. A
device that is slower than others gets fewer layers.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, cast

import jax
import numpy as np
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ..compat import JaxLiteral, JitTrace, Var, as_array, as_weak, is_tracer, shape_of, trace_of
from ..errors import BindError, brief
from ..frontend.parts import Atom, JaxprPart, Parted
from ..guard import boundary, outside
from ..ir.plan import Plan
from ..measure.device_speeds import product_rates
from ..planning.device_cuts import DeviceCut, Kind, across
from ..session.prepare import device_limit, device_relay
from ..session.report import Report
from .function import Function
from .kept import ready
from .plain import Args, Call, Plain
from .resident import ResidentFunction
from .signature import Signature
from .traced_call import coming_back, unfit
from .where import names_mesh

R = TypeVar("R")
LAYERS_SHARE = 0.5  # of the FLOP a second of a large product: what layers reach
NAMES_MESH = "it is one of a mesh, or a mesh is set around the call"
ROOM = 0.9  # of the bytes that may lie on a device: the rest is for buffers


@dataclasses.dataclass(frozen=True)
class Rates:
    """What a device of a kind does, to the order of magnitude: FLOP and bytes a second, seconds of a group of equations
    beside them, seconds of a hop to another device, bytes a second of it, and of weights that do not fit. They divide
    a network evenly; nothing else depends on them.
    """

    flops: float
    nbytes: float
    group: float
    hop: float
    hop_bytes: float
    outside: float

    def slower(self, flops: float, times: float) -> Rates:
        """Those of a device of so many FLOP a second, on which all else takes so many times longer."""
        return dataclasses.replace(self, flops=flops, nbytes=self.nbytes / times, group=self.group * times)


#: whether the device half is a device of its own -> nominal rates
RATES = {True: Rates(3e13, 2e12, 1e-5, 3e-5, 2e10, 5e10), False: Rates(1e11, 2e10, 2e-6, 2e-5, 1e10, 1e10)}


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """A part on its device."""

    part: JaxprPart
    device: jax.Device
    run: ResidentFunction[list[jax.Array]]

    def __call__(self, env: Mapping[Var, ArrayLike]) -> dict[Var, ArrayLike]:
        """What is there behind the part."""
        given = [there(env[v], self.device) for v in self.part.reads]
        return {**env, **dict(zip(self.part.makes, self.run(*given), strict=True))}


@dataclasses.dataclass(frozen=True, eq=False)
class Chain:
    """A function's parts for calls of one signature. `weak`, `stays`: of each result whether its type is weak, and
    whether it is part of a state (a cache), which stays on the device that made it; `home`: where all else comes.
    """

    steps: tuple[Step, ...]
    inputs: tuple[Var, ...]
    outputs: tuple[Atom, ...]
    weak: tuple[bool, ...]
    stays: tuple[bool, ...]
    tree: PyTreeDef
    cut: DeviceCut
    home: jax.Device

    def begin(self, leaves: Sequence[ArrayLike]) -> dict[Var, ArrayLike]:
        """What is there before the first part."""
        return dict(zip(self.inputs, leaves, strict=True))

    def finish(self, env: Mapping[Var, ArrayLike]) -> object:
        """What the function returns, on the first device but for its state."""
        leaves = list[ArrayLike]()
        for v, weak, stays in zip(self.outputs, self.weak, self.stays, strict=True):
            x: ArrayLike = as_array(v.val) if isinstance(v, JaxLiteral) else env[v]
            x = x if stays else there(x, self.home)
            leaves.append(as_weak(cast("jax.Array", x)) if weak else x)
        return jax.tree_util.tree_unflatten(self.tree, leaves)


class SeveralDevices(Generic[R]):
    """A function over several devices, with what runs the calls of each signature."""

    def __init__(self, function: Function, weights: Args, devices: int | Sequence[jax.Device] | None = None):
        plan = function.options.plan
        if isinstance(plan, Plan):
            raise ValueError("spread: got a plan of one device; valid is a strategy, or Plan.uniform.")
        if any(map(is_tracer, jax.tree_util.tree_leaves(weights))):
            raise BindError("bind: got traced arrays; valid are concrete weights (bind outside of jax.jit).")
        self._function, self.devices = function, _devices(devices)
        bound = function.options.device_memory is not None
        own = lambda x: np.array(x) if isinstance(x, np.ndarray) and not bound else x
        self.weights: Args = jax.tree_util.tree_map(own, weights)
        self._leaves: list[ArrayLike] = jax.tree_util.tree_leaves(self.weights)
        self._plain = function.keeping(len(weights)).plain
        self._lock = threading.RLock()

    def _signed(self, args: Args, kwargs: dict[str, object]) -> tuple[Signature, Call]:
        """A call of the inputs, and its signature: arrays come to their device wherever they lie."""
        call = self._plain.call(args, kwargs, len(self.weights))
        signature = Signature.of(call)
        return signature._replace(leaves=signature.types), call

    def _traced(self, args: Args, kwargs: dict[str, object]) -> tuple[JitTrace, Call]:
        """A call with its weights, traced. Raises `BindError` for a function that has no parts."""
        call = self._plain.call((*self.weights, *args), kwargs)
        made = trace_of(self._plain.ask("trace", call.args, call.kwargs))
        why = unfit(made, self._plain.given) or (NAMES_MESH if names_mesh(made, self._plain.given) else "")
        why = why or ("it gives its inputs away" if made.donated else "")
        if why:
            raise BindError(f"spread: got {self._function.name}: {why}; valid is a function without that.")
        return made, call


class SpreadFunction(SeveralDevices[R]):
    """What `jit(fn).spread(weights, devices=...)` returns: `fast(x)`. New shapes are cut and planned when they come.

    Weights are first arguments of the function, trees of arrays. NumPy arrays among them are copied; with
    `device_memory` they stay in host memory as they are. Raises `BindError` for traced ones.
    """

    def __init__(self, function: Function, weights: Args, devices: int | Sequence[jax.Device] | None = None):
        super().__init__(function, weights, devices)
        self._chains: dict[Signature, Chain] = {}
        self._sent: dict[tuple[int, jax.Device], ArrayLike] = {}
        self._last: Chain | None = None

    def __call__(self, *args: object, **kwargs: object) -> R:
        try:
            if self._function.stays_plain():
                return cast(R, self._plain.run(*self.weights, *args, **kwargs))
            chain, call = self._chain(args, kwargs)
            env = chain.begin(call.leaves)
            for step in chain.steps:
                env = step(env)
            return cast(R, chain.finish(env))
        except Exception as e:  # the user's function may raise anything; it passes with a shorter traceback
            e.__traceback__ = outside(e.__traceback__)
            raise

    def stages(self) -> list[Callable[[object], object]]:
        """One function for each device, that a pipeline calls in turn: the first takes an input, the last one returns
        the result; each waits for its part.
        """

        def stage(k: int, value: object) -> object:
            chain, env = cast("tuple[Chain, dict[Var, ArrayLike]]", value) if k else self._begun(value)
            if k < len(chain.steps):
                env = chain.steps[k](env)
                jax.block_until_ready([env[v] for v in chain.steps[k].part.makes])
            return jax.block_until_ready(chain.finish(env)) if k == len(self.devices) - 1 else (chain, env)

        return [functools.partial(stage, k) for k in range(len(self.devices))]

    def _begun(self, value: object) -> tuple[Chain, dict[Var, ArrayLike]]:
        chain, call = self._chain((value,), {})
        return chain, chain.begin(call.leaves)

    def _chain(self, args: Args, kwargs: dict[str, object]) -> tuple[Chain, Call]:
        signature, call = self._signed(args, kwargs)
        chain = self._chains.get(signature)
        if chain is None:
            with self._lock:
                chain = self._chains.get(signature) or self._made(*self._traced(args, kwargs))
                self._chains[signature] = chain
        self._last = chain
        return chain, call

    def _made(self, made: JitTrace, call: Call) -> Chain:
        """The parts for calls like this one. Raises `BindError` for a function that computes nothing of its inputs."""
        program = Parted.of(made.closed, len(self._leaves))
        if not program.groups:
            raise BindError(
                f"spread: got {self._function.name}: it computes nothing of its inputs; "
                "valid is a function without that."
            )
        known = [*self._leaves, *made.closed.consts]
        cut, devices = self._cut(program)
        parts = program.parts([(start, stop) for _, start, stop in cut.stages])
        placed = enumerate(zip(parts, devices, strict=True))
        steps = tuple(self._step(k, part, device, known) for k, (part, device) in placed)
        weak = tuple(bool(getattr(v.aval, "weak_type", False)) for v in made.closed.jaxpr.outvars)
        stays = of_state(made, call)
        return Chain(steps, program.inputs, program.outputs, weak, stays, made.out_tree, cut, self.devices[0])

    def _cut(self, program: Parted) -> tuple[DeviceCut, list[jax.Device]]:
        """The parts whose slowest takes the least, by each device's rates and by what does not fit into its memory; and
        the device of each part.
        """
        options, groups = self._function.options, program.groups
        memory = math.inf
        if options.device_memory is not None and options.apart:
            memory = ROOM * (device_limit(options.device_memory, device_relay(options.cpus)) or math.inf)
        weights, free, kinds = tuple(g.weights for g in groups), dict[str, list[jax.Device]](), dict[str, Kind]()
        all_rates = self._rates()
        fastest = max(r.flops for r in all_rates)
        for device, rates in zip(self.devices, all_rates, strict=True):
            times = fastest / rates.flops
            name = "device" if times == 1 else f"device, {times:.1f} times slower,"
            free.setdefault(name, []).append(device)
            seconds = tuple(max(g.flops / rates.flops, g.moved / rates.nbytes) + rates.group for g in groups)
            kinds[name] = Kind(len(free[name]), seconds, weights, memory, 1 / rates.outside)
        hop = RATES[options.apart]
        cut = across(kinds, [hop.hop + g.crossing / hop.hop_bytes for g in groups])
        return cut, [free[name].pop(0) for name, _, _ in cut.stages]

    def _rates(self) -> list[Rates]:
        """The rates of each device: nominal ones, and where several are devices of their own by what a product takes on
        each. Devices of the host share its cores.
        """
        apart, count = self._function.options.apart, len(self.devices)
        nominal = RATES[apart]
        if not apart or count < 2:
            return [nominal] * count
        measured = [LAYERS_SHARE * r for r in product_rates(self.devices)]
        return [nominal.slower(flops, max(measured) / flops) for flops in measured]

    def _step(self, k: int, part: JaxprPart, device: jax.Device, known: Sequence[ArrayLike]) -> Step:
        plain = functools.partial(part)
        plain.__name__ = f"{self._function.name}_{k + 1}"  # type: ignore[attr-defined]
        options = self._function.options
        weights = [self._weight(i, known[i], device) for i in part.known]
        return Step(part, device, ResidentFunction(Function(Plain(plain, {}), options), (weights,)))

    def _weight(self, i: int, x: ArrayLike, device: jax.Device) -> ArrayLike:
        """A known array on its device, sent once; where a bound keeps some in host memory, as it is."""
        if self._function.options.device_memory is not None:
            return np.asarray(x)
        if (i, device) not in self._sent:
            self._sent[i, device] = jax.device_put(x, device)
        return self._sent[i, device]

    @property
    def parts(self) -> tuple[tuple[jax.Device, ResidentFunction[list[jax.Array]]], ...]:
        """(device, function of its part) of the last call, in order. Raises `BindError` before the first call."""
        if self._last is None:
            raise BindError("parts: the function has not been called yet; call it once, so that its shapes are known.")
        return tuple((s.device, s.run) for s in self._last.steps)

    def ready(self, timeout: float | None = None) -> bool:
        """Waits until what was called is planned, for at most `timeout` seconds; whether all of it is. Raises
        `ValueError` for a timeout that is no number of seconds.
        """
        entries = [e for chain in self._chains.values() for s in chain.steps for e in s.run._entries.values()]
        return ready(entries, timeout)

    @boundary
    def plan(self) -> tuple[Plan, ...]:
        """The plan of each part of the last call. Raises `BindError` before the first call."""
        return tuple(run.plan() for _, run in self.parts)

    @boundary
    def report(self) -> SpreadReport:
        """Where each layer of each part ran. Raises `BindError` before the first call."""
        assert self.parts and self._last is not None
        return SpreadReport(self._last.cut, tuple((str(d), run.report()) for d, run in self.parts))

    def __repr__(self) -> str:
        """The function, its devices, and its parts."""
        last = "not called yet" if self._last is None else str(self._last.cut)
        return f"<xcoexec {self._function.name} over {len(self.devices)} devices: {last}>"


@dataclasses.dataclass(frozen=True)
class SpreadReport:
    """`cut`: the parts, with the calculated seconds of each; `parts`: (device, its report) in order."""

    cut: DeviceCut
    parts: tuple[tuple[str, Report], ...]

    @property
    def ran(self) -> str:
        """What ran all parts ("xco", "local", "jit"), or "mixed"."""
        found = {report.ran for _, report in self.parts}
        return found.pop() if len(found) == 1 else "mixed"

    def __str__(self) -> str:
        return "\n\n".join(f"part {k} on {device}\n{report}" for k, (device, report) in enumerate(self.parts, 1))


def _devices(given: int | Sequence[jax.Device] | None) -> tuple[jax.Device, ...]:
    """The devices that a caller means. Raises `TypeError` or `ValueError` for others than this process has."""
    there = jax.local_devices()
    chosen = there[: given if given > 0 else 0] if type(given) is int else there if given is None else given
    valid = f"a count from 1 to {len(there)}, or different ones of jax.local_devices()"
    if not isinstance(chosen, (list, tuple)) or not all(isinstance(d, jax.Device) for d in chosen):
        raise TypeError(f"spread: got devices={brief(given)}; valid is {valid}.")
    few = type(given) is int and len(chosen) != given
    if not chosen or few or len(set(chosen)) < len(chosen) or not set(chosen) <= set(there):
        raise ValueError(f"spread: got devices={brief(given)}; valid is {valid}.")
    return tuple(chosen)


def of_state(made: JitTrace, call: Call) -> tuple[bool, ...]:
    """Of each result, whether it is part of a state (a cache) that comes back."""
    jaxpr = made.closed.jaxpr
    state = {_type(jaxpr.invars[i]) for i in coming_back(made, call)}
    return tuple(_type(v) in state for v in jaxpr.outvars)


def _type(v: Atom) -> tuple[tuple[int, ...], str]:
    made = shape_of(v)
    return made.shape, str(made.dtype)


def there(x: ArrayLike, device: jax.Device) -> jax.Array:
    """An array on a device, committed to it, so that what is called with it runs there."""
    if isinstance(x, jax.Array) and x.committed and x.devices() == {device}:
        return x
    return jax.device_put(x, device)


__all__ = ["RATES", "SeveralDevices", "SpreadFunction", "SpreadReport", "of_state", "there"]
