"""What a session is about, frozen: a function at one set of shapes, and the machine that it is planned for."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jax.sharding import NamedSharding, Sharding
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ..codegen.program import Program, Unsupported, Value
from ..codegen.runtime import host
from ..codegen.runtime.relay import Relay
from ..codegen.segment.assembly import Segment
from ..codegen.segment.context import Pick
from ..devices.link import Link
from ..devices.record import Device
from ..devices.registry import device_of, link_of
from ..frontend.experts import Bank, apportioned, regions, with_caches
from ..frontend.fold import Folded, fold
from ..frontend.graph import build_graph
from ..frontend.trace import Traced
from ..ir.layers import LayerGraph
from ..ir.placement import Placement
from ..ir.plan import Plan
from ..ir.validate import check_graph
from ..ir.words import DEVICE, HOST
from ..lowering.executable import Executable, Flat
from ..lowering.lower import Lowered, identities
from ..lowering.shards import Shards
from ..partition.split import split
from ..planning.memory import usage
from .experts import Caches, Uses
from .feed import Feed
from .usage import Habit

#: why a function is not tried whose loops may never end on made-up arrays
ENDLESS = (
    "how often a loop turns is up to its operands, and of arrays that calls give away or hand on nothing but shapes is"
    " kept to try it with"
)


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A function at one set of shapes with its weights.

    `weights`, `example`: leaves of the weights, and of inputs like those that it is planned for (of a `step` shapes and
    types alone: it has a state, which is another one at every call); `donated`: positions among the inputs of those
    that a call gives away and in whose memory results come. `plain`: plain `jax.jit` as a function of the inputs'
    leaves. `sibling`: the same function is planned already for other shapes. `compiler_options`: those of `jax.jit`.
    `called`: a call of plain `jax.jit` as the caller makes it; `looked_up`: what a call does before its executable is
    known (None: nothing worth mentioning). `results`: as in `executable`. `meshed`: a mesh is set around calls, or part
    of their arrays' types. `banks`: experts of which the device holds some, and how often they are used. `shards`: the
    graph is that of one shard of a call, `weights` are those of the first one, `example` and `plain` are of whole
    calls.
    """

    folded: Folded
    graph: LayerGraph
    out_tree: PyTreeDef
    weights: Sequence[ArrayLike]
    example: Sequence[ArrayLike]
    donated: tuple[int, ...]
    plain: Flat
    sibling: bool = False
    compiler_options: Mapping[str, object] | None = None
    called: Callable[[], object] | None = None
    looked_up: Callable[[], object] | None = None
    step: bool = False
    results: tuple[Sharding, ...] | None = None
    meshed: bool = False
    banks: tuple[Bank, ...] = ()
    uses: Uses | None = None
    shards: Shards | None = None

    @classmethod
    def of(
        cls,
        traced: Traced,
        index: Sequence[int],
        weights: Sequence[ArrayLike],
        example: Sequence[ArrayLike],
        *,
        donated: tuple[int, ...],
        plain: Flat,
        sibling: bool = False,
        compiler_options: Mapping[str, object] | None = None,
        called: Callable[[], object] | None = None,
        looked_up: Callable[[], object] | None = None,
        step: bool = False,
        results: Sequence[Sharding] | None = None,
        meshed: bool = False,
        divide: Callable[[Folded], tuple[Folded, Shards]] | None = None,
    ) -> Problem:
        """Folds a trace, whose leaves `index` are weights, and builds its graph; both are checked. `divide`: makes of
        the program that of a shard, which the graph is then built of. Raises `Unsupported` for a function that has no
        such graph, or may never end on made-up arrays and has no others, and what `divide` raises.
        """
        folded, shards = fold(traced, index), None
        if divide is not None:
            folded, shards = divide(folded)
            weights = shards.weights[0]
        graph = build_graph(folded)
        check_graph(graph)
        if any(isinstance(x, jax.ShapeDtypeStruct) for x in example) and any(op.unbounded for op in graph.program.ops):
            raise Unsupported(ENDLESS)
        donated = tuple(folded.handed(donated))  # JAX would warn of the others at every compilation
        about = (folded, graph, traced.out_tree, weights, example, donated, plain)
        return cls(
            *(*about, sibling, compiler_options, called, looked_up, step),
            results=None if results is None else tuple(results),
            meshed=meshed,
            shards=shards,
        )

    def with_experts(self, limit: int) -> Problem:
        """The same with caches of experts on the device, where it may hold `limit` bytes: all other weights, and as
        many experts of every layer. The problem itself where that is none, or where all weights fit.
        """
        found = regions(self.folded)
        apart = {v for r in found for v in r.tables}
        tables = [x for x in self.graph.layers if apart & set(x.ins)]
        if not found or any(x.host_error for x in tables) or self.step:
            return self
        places = [Placement(x.name, HOST if x in tables else DEVICE, 0.0) for x in self.graph.layers]
        each = sum(r.nbytes for r in found)
        moving = max(r.nbytes for r in found)  # what comes in the place of others
        slots = (limit - usage(self.graph, places).total - moving) // each
        if slots < 1 or slots >= min(r.matrices for r in found):
            return self
        uses = Uses([r.matrices for r in found])
        folded, banks = with_caches(self.folded, found, slots, lambda i: uses.order(i, slots))
        graph = apportioned(build_graph(folded), banks)
        check_graph(graph)
        return dataclasses.replace(self, folded=folded, graph=graph, banks=tuple(banks), uses=uses)

    def caller(self, lowered: Lowered, arguments: Sequence[jax.Array]) -> Caches:
        """Who calls an executable of a problem with experts."""
        assert self.uses is not None
        return Caches(self.banks, self.uses, lowered, arguments, self.folded.constants(self.weights))

    @functools.cached_property
    def hostless(self) -> bool:
        """Whether kernels can run none of the layers."""
        return all(x.host_error for x in self.graph.layers)

    @functools.cached_property
    def all_kernels(self) -> bool:
        """Whether kernels can run all of the layers."""
        return not any(x.host_error for x in self.graph.layers)

    @property
    def on_host(self) -> bool:
        """Whether the inputs arrive in host memory (NumPy arrays), so that a device would have to be given them, the
        results may lie there, and XLA:CPU is there.
        """
        if any(isinstance(s, NamedSharding) for s in self.results or ()):
            return False
        try:
            jax.local_devices(backend="cpu")
        except RuntimeError:  # JAX_PLATFORMS names the device alone
            return False
        return all(not isinstance(x, (jax.Array, jax.ShapeDtypeStruct)) for x in self.example)

    @functools.cached_property
    def feed(self) -> Feed:
        """The inputs of calls that are measured."""
        return Feed(self.example, self.donated, self.folded)

    @functools.cached_property
    def _habit(self) -> Habit:
        """What calls in use note of their caller, who does not exist here."""
        return Habit()

    def begin(self, exe: Executable) -> Sequence[jax.Array]:
        """Calls an executable with the example."""
        return self.feed.begin(exe.call)

    def begin_as_called(self, exe: Executable) -> object:
        """Begins a call with the example as the caller's calls do: with all that is done around the executable."""
        if self.called is not None and exe.call is self.plain:
            return self.called()
        if self.looked_up is not None:
            self.looked_up()
        self._habit.begins(exe.through)
        out = self.begin(exe)
        self._habit.gave(out)
        return self.out_tree.unflatten(out)

    def run(self, exe: Executable) -> Sequence[jax.Array]:
        """Calls an executable with the example, and waits for its results."""
        return jax.block_until_ready(self.begin(exe))

    def warm(self, exe: Executable) -> None:
        """Has an executable ready for its first call: compiled, where that can be had without a state, or where only a
        caller's own thread may call it.
        """
        if (self.step or exe.may is not None) and exe.compiled is not None:
            exe.compiled(self.example)
        else:
            self.run(exe)

    def constant(self, v: Value) -> jax.Array | np.ndarray:
        """A constant of the program, of the value's shape and type, where it lies; weights as they are, without a copy.
        Raises `KeyError` for what is no constant.
        """
        resident = identities(self.folded, self.weights)
        return resident[v] if v in resident else self.folded.constants(self.weights)[v]


@dataclasses.dataclass(frozen=True, eq=False)
class Machine:
    """What a problem is planned for: `threads` of the host half (on the cores `cpus`, where some are given), the
    `relay` to a device half of its own (None: the device half is XLA:CPU), how arrays cross to it (`memory`), and the
    bytes that may lie there (`limit`; None: as many as there are). `beside`: what computes the shards of a call on
    further devices, each with cores of its own; none where devices share their cores, and take turns. `where`: the
    device (None: the default one).
    """

    threads: int
    cpus: tuple[int, ...] = ()
    relay: Relay | None = None
    memory: str = "auto"
    limit: int | None = None
    beside: tuple[Machine, ...] = ()
    where: jax.Device | None = None

    @property
    def device(self) -> Device:
        """The kind of the device half."""
        return device_of(self.relay)

    @property
    def apart(self) -> bool:
        """Whether the device half is a device of its own, with its own memory and clock."""
        return self.device.apart

    @property
    def link(self) -> Link:
        """What there is to ask of the way to the device half."""
        return link_of(self.relay, *(m.relay for m in self.beside))

    def build(self, program: Program, pick: Pick | None = None) -> Segment:
        """A segment of a program for this machine's team. Raises `Unsupported` for what kernels cannot express."""
        return host.build(program, self.threads, cpus=self.cpus, cut=split, pick=pick, as_stored=not self.apart)

    def there(self) -> contextlib.AbstractContextManager[object]:
        """What is measured within it is measured on this device."""
        first = self.where is None or self.where == jax.local_devices()[0]
        return contextlib.nullcontext() if first or not self.apart else jax.default_device(self.where)

    def holds(self, graph: LayerGraph, plan: Plan, reserved: int = 0) -> bool:
        """Whether a plan keeps within the bytes that may lie on the device, of which `reserved` are not the plan's."""
        if self.limit is None or not self.apart or plan.engine == "local":
            return True
        return usage(graph, plan.placements).total <= self.limit - reserved


__all__ = ["Machine", "Problem"]
