"""Random networks by random plans, on a device without hardware, on the CPU alone or on a GPU, against float64 NumPy.

A seed is a network (see `networks`) and a plan of it: each layer on a half, divided along one of its dimensions at any
index, or in a chain with its neighbours; what crosses does so by kernels or copies, weights are resident or streamed, a
call is one program or several. One in four plans is a strategy's, for random costs; one in five networks is a step of
training that gives its weights away. What raises, and what is wrong, is said with its seed.

    python -m tests.outside.plans --plans 500 --seconds 3600 --seed 0
"""

from __future__ import annotations

import dataclasses
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xcoexec.codegen.runtime import host
from xcoexec.codegen.runtime.relay import Relay
from xcoexec.devices import null
from xcoexec.devices.cuda import cuda
from xcoexec.ir.costs import Costs
from xcoexec.ir.geometry import axis_of
from xcoexec.ir.layers import Layer, LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan
from xcoexec.ir.validate import check_plan
from xcoexec.ir.words import DEVICE, DIMS, HOST, SPLIT, SUMS
from xcoexec.lowering.executable import executable
from xcoexec.lowering.lower import lower
from xcoexec.partition.split import split
from xcoexec.planning.chain_shares import Chains
from xcoexec.planning.strategies import BOUNDED, STRATEGIES

from ..oracle import oracles
from ..standin import StandIn
from ..support import stages_of
from .networks import Network, allowed_for, checked, network, parser, worst

LONGEST = 6  # layers of a chain
DEVICES: dict[str, Callable[[], Relay | None]] = {
    "stand-in": lambda: Relay(StandIn(delay=2e-5)),
    "cpu": lambda: None,
    "gpu": lambda: Relay(cuda()),
}


def random_costs(graph: LayerGraph, seed: int) -> Costs:
    """Seconds about as the work is, but for luck: by layer a few times more or less, and more on one half."""
    rng = random.Random(seed)
    luck, ratio = rng.choice((1.5, 3.0, 10.0)), 10 ** rng.uniform(-0.5, 0.5)
    seconds = lambda factor: lambda x: factor * (1e-6 + 1e-10 * x.flops) * luck ** rng.uniform(-1, 1)
    ways = {"sync": 10 ** rng.uniform(-8, -5), "copy_rate": 10 ** rng.uniform(9, 12)}
    return null.costs(graph, seconds(ratio), seconds(1.0), **ways)


class _Draw:
    """Random placements for the layers of a graph, from the first to the last."""

    def __init__(self, graph: LayerGraph, rng: random.Random):
        self.graph, self.rng, self.chains, self.count = graph, rng, Chains(graph), 0

    def plan(self) -> Plan:
        places: list[Placement] = []
        while len(places) < len(self.graph.layers):
            first = len(places)
            chain = self._chain(first) if self.rng.random() < 1 / 3 else []
            places += chain or [self._alone(self.graph.layers[first])]
        return Plan("random", tuple(places), programs=self.rng.choice((1, 1, 2, 3)))

    def _share(self) -> float:
        return self.rng.choice((0.0, 1.0, 0.5, 0.03, 0.97, self.rng.random(), self.rng.random()))

    def _ways(self) -> dict[str, Any]:
        return {"reads": self.rng.choice(("mapped", "copy")), "writes": self.rng.choice(("mapped", "copy"))}

    def _alone(self, x: Layer) -> Placement:
        half = self.rng.choice((DEVICE, HOST, SPLIT, SPLIT)) if not x.host_error else DEVICE
        dims = [d for d in x.dims if axis_of(x.group, d) is not None] + [SUMS] * (x.sums is not None)
        if half == DEVICE or (half == SPLIT and not dims):
            return Placement(x.name, DEVICE, 0.0)
        if half == HOST:
            return Placement(x.name, HOST, 1.0, **self._ways())
        dim, share = self.rng.choice(dims), self._share()
        if dim == SUMS or self.rng.random() < 0.8:
            return Placement(x.name, SPLIT, share, dim, **self._ways())
        streamed, pieces = self.rng.random() * (1 - share), self.rng.randint(1, 3)
        return Placement(x.name, SPLIT, share, dim, streamed=streamed, pieces=pieces, **self._ways())

    def _chain(self, first: int) -> list[Placement]:
        """A chain that begins with a layer, as long as one can be; none where there is none."""
        for last in range(min(first + self.rng.randint(2, LONGEST), len(self.graph.layers)), first + 1, -1):
            layers = self.graph.layers[first:last]
            cuts = [] if any(x.host_error for x in layers) else [*self._cuts(first, last)]
            if cuts:
                dim, share = self.rng.choice(cuts)
                self.count += 1
                ways = self._ways()
                return [Placement(x.name, SPLIT, share, dim, chain=self.count, **ways) for x in layers]
        return []

    def _cuts(self, first: int, last: int) -> Iterator[tuple[str, float]]:
        """(dimension, share) by which layers `first:last` can be divided: one share of each dimension."""
        layer = self.graph.layers[last - 1]
        for dim in (*DIMS, SUMS):
            divides = dim == SUMS or (dim in layer.dims and axis_of(layer.group, dim) is not None)
            if not divides or self.chains.results(first, last, dim) is None:
                continue
            grain, size = self.chains.grain(first, last, dim), layer.extent(dim)
            if grain is None or grain >= size:
                continue
            at = self.rng.choice(range(grain, size, grain))
            if self.chains.needed(first, last, dim, at) is not None:
                yield dim, at / size


def plan_of(graph: LayerGraph, seed: int) -> Plan:
    """The plan of a seed."""
    rng = random.Random(f"plan {seed}")
    if rng.random() < 0.75:
        return _Draw(graph, rng).plan()
    return STRATEGIES[rng.choice(sorted(STRATEGIES.keys() - BOUNDED))](graph, random_costs(graph, seed))


def stepped(net: Network) -> Network:
    """A step of training of a network: its weights are a state, which the call gives away for the next one."""
    loss = lambda ws, x: sum(jnp.mean(jnp.tanh(y)) for y in net.fn(ws, x))
    step = lambda ws, x: tuple(w - g for w, g in zip(ws, jax.grad(loss)(ws, x), strict=True))
    return dataclasses.replace(net, fn=step, text=f"{net.text}, a step of training", given=True)


def plan_network(seed: int) -> Network:
    """The network of a seed; every fifth is a step of training."""
    net = network(seed)
    return stepped(net) if seed % 5 == 4 and net.weights and "gradients" not in net.text else net


def computed(net: Network, seed: int, relay: Relay | None) -> tuple[Sequence[np.ndarray], ...] | str:
    """The results of two calls between which there was another one; or why the network is none of ours."""
    folded, graph = stages_of(net.fn, net.weights, net.x, weights=0 if net.given else 1)
    if len(graph.program.outputs) != len(jax.eval_shape(net.fn, net.weights, net.x)):
        return "results that are arguments, or known beforehand"
    plan = plan_of(graph, seed)
    check_plan(plan, graph)
    build = lambda p: host.build(p, 1 + seed % 2, cut=split, as_stored=relay is None)
    lowered = lower(graph, folded, plan.placements, build, relay)
    known = [] if net.given else jax.tree_util.tree_leaves(net.weights)
    given_away = range(len(net.weights)) if "training" in net.text else ()
    exe = executable(plan, lowered, known, given_away)

    def call(scale: int) -> list[np.ndarray]:
        inputs = [*net.weights, net.x] if net.given else [net.x]
        inputs = [jnp.asarray((x * scale).astype(x.dtype)) for x in inputs]
        return [*map(np.array, exe.call(inputs))]

    first, _ = call(1), call(0)
    return first, call(1)


def check(seed: int, relay: Relay | None) -> str:
    """ "": the plan of a seed computes its network; "-...": there is nothing to plan; else what is wrong with it."""
    net = plan_network(seed)
    try:
        got = computed(net, seed, relay)
        if isinstance(got, str):
            return f"- {got}"
        want = oracles(net.fn, net.weights, net.x)
        most = max(worst(y, want) for y in got)
        right = most <= allowed_for(net, want, most)
    except Exception:
        return f"{net.text}\n{traceback.format_exc(limit=-6)}"
    return "" if right else f"{net.text}: {most} of the largest result"


def main(argv: list[str] | None = None) -> int:
    p = parser(__doc__, "plans")
    p.add_argument("--device", choices=DEVICES, default="stand-in", help="the device half; cpu: both are XLA:CPU's")
    args = p.parse_args(argv)
    relay = DEVICES[args.device]()
    jax.config.update("jax_default_matmul_precision", "highest")
    return checked(args, lambda seed: check(seed, relay), "nothing to plan")


if __name__ == "__main__":
    sys.exit(main())
