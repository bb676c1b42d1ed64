"""One network over several devices of a host: each computes a part of every large layer, for a call that is waited for.

input --> on each device: a part of a layer's channels, or of its rows --> what others need of it --> ... --> result

The weights lie divided over a mesh of the devices. XLA runs all of it, as one program over them.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import jax
import numpy as np
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ..compat import Jitted, JitTrace, as_weak, plain_jit
from ..errors import BindError, brief
from ..frontend.trace import flattened, paths
from ..guard import boundary, outside
from ..ir.plan import Plan
from ..ir.text import WIDTH, columns, duration, milliseconds
from ..lowering.divided_run import DividedLayer, DividedProgram, Exchange
from ..measure.timing import alternate
from ..planning.waiting_calls import by_rates
from ..session.report import Report
from .function import Function
from .kept import ready
from .plain import Args, Call
from .resident import ResidentFunction
from .signature import Signature, home
from .spread import RATES, SeveralDevices, of_state, there
from .traced_call import coming_back

log = logging.getLogger("xcoexec")

R = TypeVar("R")
DIMS = ("channel", "rows")
ONE, FASTEST = "one device", "which was the fastest"
#: whether the device half is a device of its own -> nominal seconds and bytes a second of an exchange within a program
EXCHANGES = {True: Exchange(2e-5, 1e11), False: Exchange(5e-5, 5e9)}


@dataclasses.dataclass(frozen=True, eq=False)
class DividedCalls:
    """A divided function for calls of one signature. `known`: its weights, where they lie; `weak`, `stays`: of each
    result whether its type is weak, and whether it is part of a state, which stays on all devices.
    """

    program: DividedProgram
    run: Jitted
    known: Sequence[jax.Array]
    places: Sequence[jax.sharding.Sharding]
    weak: tuple[bool, ...]
    stays: tuple[bool, ...]
    tree: PyTreeDef

    def __call__(self, leaves: Sequence[ArrayLike]) -> object:
        """What the function returns, on the first device but for its state. It is on its way, as with `jax.jit`."""
        out = self.run(self.known, jax.device_put(list(leaves), self.places))
        found = []
        for x, weak, stays in zip(out, self.weak, self.stays, strict=True):
            x = x if stays else x.addressable_data(0)
            found.append(as_weak(x) if weak and not x.weak_type else x)
        return jax.tree_util.tree_unflatten(self.tree, found)


@dataclasses.dataclass(frozen=True, eq=False)
class Chosen:
    """What runs calls of one signature. `name`: "channel", "rows" or "one device"; `calls`: None on one device;
    `found`: by dim what would be divided; `measured`: seconds of a call, where they were compared.
    """

    name: str
    calls: DividedCalls | None
    found: Mapping[str, DividedCalls]
    measured: Mapping[str, float]


class DividedFunction(SeveralDevices[R]):
    """What `jit(fn).spread(weights, dim="channel")` returns: `fast(x)`. New shapes are divided when they come.

    Weights are first arguments of the function, trees of arrays. NumPy arrays among them are copied. Raises `BindError`
    for traced ones, and `ValueError` for another `dim` and for a bound of memory.
    """

    def __init__(self, function: Function, weights: Args, devices: int | Sequence[jax.Device] | None, dim: str):
        if dim not in (*DIMS, "auto"):
            raise ValueError(f"spread: got dim={brief(dim)}; valid are 'layers', 'channel', 'rows' and 'auto'.")
        if function.options.device_memory is not None:
            raise ValueError(
                f"spread: got device_memory with dim={dim!r}; valid is dim='layers', which keeps such bounds."
            )
        super().__init__(function, weights, devices)
        self.dim = dim
        self._chosen: dict[Signature, Chosen] = {}
        self._sent: dict[tuple[int, object], jax.Array] = {}
        self._last: Chosen | None = None

    def __call__(self, *args: object, **kwargs: object) -> R:
        try:
            if self._function.stays_plain():
                return cast(R, self._plain.run(*self.weights, *args, **kwargs))
            signature, call = self._signed(args, kwargs)
            chosen = self._chosen.get(signature)
            if chosen is None:
                with self._lock:
                    chosen = self._chosen.get(signature) or self._made(args, kwargs, call)
                    self._chosen[signature] = chosen
            self._last = chosen
            return cast(R, self._alone(args, kwargs) if chosen.calls is None else chosen.calls(call.leaves))
        except Exception as e:  # the user's function may raise anything; it passes with a shorter traceback
            e.__traceback__ = outside(e.__traceback__)
            raise

    def _made(self, args: Args, kwargs: dict[str, object], call: Call) -> Chosen:
        """What runs calls like this one. Raises `BindError` for a function that has no parts, and when strict, where no
        layer is divided along the `dim` that was asked for.
        """
        made, whole = self._traced(args, kwargs)
        dims = DIMS if self.dim == "auto" else (self.dim,)
        networks = {dim: self._divided(made, whole, dim) for dim in dims}
        found = {dim: calls for dim, calls in networks.items() if calls.program.layers}
        if self.dim != "auto":
            if not found and self._function.options.strict:
                raise BindError(f"xcoexec.jit(strict=True): {self._function.name}: {self._nothing()}.")
            return Chosen(self.dim if found else ONE, found.get(self.dim), found, {})
        if not found:
            return Chosen(ONE, None, {}, {})
        self._alone(args, kwargs)
        self._one.ready()
        ways: dict[str, Callable[[], object]] = {ONE: lambda: self._alone(args, kwargs)}
        ways |= {dim: functools.partial(calls, call.leaves) for dim, calls in found.items()}
        runs = {name: functools.partial(_waited, way) for name, way in ways.items() if name == ONE or _runs(name, way)}
        measured = alternate(runs, progress=self._function.options.progress)
        name = min(measured, key=lambda k: measured[k])
        return Chosen(name, found.get(name), found, measured)

    def _divided(self, made: JitTrace, call: Call, dim: str) -> DividedCalls:
        """The function divided along `dim`; nothing is sent or compiled yet where no layer is."""
        options, count = self._function.options, len(self._leaves)
        traced = flattened(made.closed, made.out_tree, paths(call.tree))
        rates = RATES[options.apart]
        mesh = jax.sharding.Mesh(np.array(self.devices), ("devices",))
        stays, back = of_state(made, call), sorted(coming_back(made, call))
        state = list(zip([i for i in back if i >= count], [o for o, s in enumerate(stays) if s], strict=False))
        seconds = by_rates(rates.flops, rates.nbytes)
        program = DividedProgram.of(traced, count, mesh, dim, seconds, EXCHANGES[options.apart], state)
        weights, inputs, results = program.places()
        known = [*self._leaves, *(x for _, x in traced.consts)] if program.layers else []
        sent = [self._weight(i, x, at) for i, (x, at) in enumerate(zip(known, weights, strict=False))]
        run = functools.partial(program)
        run.__name__ = f"{self._function.name}_{dim}"  # type: ignore[attr-defined]
        return DividedCalls(
            program, plain_jit(run, out_shardings=results), sent, inputs, traced.weak, stays, made.out_tree
        )

    def _weight(self, i: int, x: ArrayLike, place: jax.sharding.NamedSharding) -> jax.Array:
        """A known array where it lies, sent once; what the function closes over is sent for each signature."""
        if i >= len(self._leaves):
            return jax.device_put(x, place)
        if (i, place) not in self._sent:
            self._sent[i, place] = jax.device_put(x, place)
        return self._sent[i, place]

    @functools.cached_property
    def _one(self) -> ResidentFunction[R]:
        """The function on the first device."""
        first = self.devices[0]
        kept = self.weights if first == home() else jax.tree_util.tree_map(lambda x: there(x, first), self.weights)
        return ResidentFunction(self._function, kept)

    def _alone(self, args: Args, kwargs: dict[str, object]) -> R:
        first = self.devices[0]
        if first != home():
            args, kwargs = jax.tree_util.tree_map(lambda x: there(x, first), (args, kwargs))
        return self._one(*args, **kwargs)

    def _nothing(self) -> str:
        """That no layer is divided."""
        along = "channel or rows" if self.dim == "auto" else self.dim
        return f"no layer is divided by {along} over {len(self.devices)} devices, as that would not pay (calculated)"

    def _used(self, what: str) -> Chosen:
        if self._last is None:
            raise BindError(
                f"{what}: the function has not been called yet; call it once, so that its shapes are known."
            )
        return self._last

    @property
    def parts(self) -> tuple[tuple[jax.Device, ResidentFunction[R]], ...]:
        """(device, function) where the last call ran on one device. Raises `BindError` before the first call, and where
        layers are divided.
        """
        chosen = self._used("parts")
        if chosen.calls is not None:
            raise BindError(f"parts: got layers divided by {chosen.name}; valid is dim='layers', which makes parts.")
        return ((self.devices[0], self._one),)

    def ready(self, timeout: float | None = None) -> bool:
        """Waits until what was called is planned, for at most `timeout` seconds; whether all of it is. Raises
        `ValueError` for a timeout that is no number of seconds.
        """
        return ready(self._one._entries.values() if "_one" in vars(self) else (), timeout)

    @boundary
    def plan(self) -> tuple[Plan, ...]:
        """The plan of the last call, where one device ran it; there is none where XLA runs divided layers. Raises
        `BindError` before the first call.
        """
        return (self._one.plan(),) if self._used("plan").calls is None else ()

    @boundary
    def report(self) -> DividedReport:
        """Which layers are divided along which axis, and what ran the last call. Raises `BindError` before the first
        call.
        """
        chosen = self._used("report")
        calls = chosen.calls
        layers, exchanges = (calls.program.layers, calls.program.exchanges) if calls is not None else ((), 0.0)
        whole = self._one.report() if calls is None else None
        why = FASTEST if chosen.found else self._nothing()
        places = tuple(map(str, self.devices))
        return DividedReport(chosen.name, places, layers, exchanges, dict(chosen.measured), whole, why)

    def __repr__(self) -> str:
        """The function, its devices, and what is divided."""
        where, chosen = f"<xcoexec {self._function.name} over {len(self.devices)} devices", self._last
        if chosen is None:
            return f"{where}: not called yet>"
        if chosen.calls is None:
            return f"{where}: one of them runs it, {FASTEST if chosen.found else self._nothing()}>"
        return f"{where}: layers divided by {chosen.name}: {len(chosen.calls.program.layers)}>"


def _waited(call: Callable[[], object]) -> object:
    return jax.block_until_ready(call())


def _runs(name: str, call: Callable[[], object]) -> bool:
    """Whether XLA runs a divided network: devices may have no way to one another, or no room."""
    try:
        _waited(call)
    except jax.errors.JaxRuntimeError as e:
        log.info("divided by %s: %s", name, str(e))
        return False
    return True


@dataclasses.dataclass(frozen=True)
class DividedReport:
    """`way`: "channel", "rows" or "one device"; `layers`: what is divided; `exchanges`: seconds of a call in which
    devices give one another what they need, as calculated; `measured`: seconds of a call of what was compared; `whole`:
    the report of the one device that ran, and `why` it did.
    """

    way: str
    devices: tuple[str, ...]
    layers: tuple[DividedLayer, ...]
    exchanges: float
    measured: Mapping[str, float]
    whole: Report | None
    why: str

    @property
    def ran(self) -> str:
        """What ran: "channel" or "rows", or on one device what did there ("xco", "local", "jit")."""
        return self.way if self.whole is None else self.whole.ran

    def __str__(self) -> str:
        """What ran, what was measured, then the divided layers, in 80 columns."""
        said = f"Divided by {self.way} over {', '.join(self.devices)}; XLA runs it."
        if self.whole is not None:
            said = f"On {self.devices[0]} alone: {self.why}."
        times = ", ".join(f"{name} {duration(s)}" for name, s in self.measured.items())
        parts = [textwrap.fill(said, WIDTH), textwrap.fill(f"Measured: {times}.", WIDTH) if times else ""]
        if self.layers:
            rows = [["layer", "divided along", "calculated ms", "on each"]]
            rows += [[x.layer, x.along, milliseconds(x.seconds), milliseconds(x.share)] for x in self.layers]
            end = f"Devices give one another what they need in {milliseconds(self.exchanges)} ms (calculated)."
            parts.append(f"{columns(rows, (2, 3), WIDTH)}\n{end}")
        return "\n\n".join([p for p in parts if p] + ([str(self.whole)] if self.whole is not None else []))


__all__ = ["DividedFunction", "DividedReport"]
