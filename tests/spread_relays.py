"""A network over two devices of their own, with a relay each (stand-ins without hardware): plans are made by
measurement on either one, and keep a bound of memory there. Run as a program, it writes what ran and how far results
are from NumPy's in double precision.
"""

import dataclasses
import json
import sys
from typing import Any

import jax

import xcoexec
from xcoexec.api import spread
from xcoexec.devices.registry import _kinds
from xcoexec.planning.memory import usage
from xcoexec.session import options, prepare

from .mesh_relays import RELAYS, connect_at
from .spread_cases import W, X, apart, by_numpy, stack
from .standin import StandIn

BOUND = 1_400_000  # bytes: two matrices of the six have 1.28 MB


def uneven(times: tuple[float, ...]) -> dict[str, Any]:
    """What each device computes where one takes longer, and where results lie."""
    spread.product_rates = lambda devices: [6e13 / t for t in times]
    fast = xcoexec.jit(stack, strategy="device", strict=True).spread(W, devices=2)
    y, cut = fast(X), fast.report().cut
    layers = {d.id: stop - start for (d, _), (_, start, stop) in zip(fast.parts, cut.stages, strict=True)}
    return {"error": apart(y, by_numpy(W, X)), "layers": layers, "home": [d.id for d in y.devices()], "said": str(cut)}


def main() -> None:
    """All of it as one text."""
    connect = lambda cpus: connect_at(cpus, 0)
    kind = dataclasses.replace(_kinds[StandIn.platform], connect=connect, connect_at=connect_at)
    prepare.device_half = options.device_half = lambda: kind  # type: ignore[assignment]
    spread.product_rates = lambda devices: (6e13, 6e13)  # both are these cores
    found: dict[str, Any] = {}
    for strategy, memory in (("device", None), ("codl", None), ("capacity", BOUND)):
        fast = xcoexec.jit(stack, strategy=strategy, device_memory=memory, strict=True).spread(W, devices=2)
        errors = [apart(fast(X), by_numpy(W, X)) for _ in range(3)]
        pairs = [(run.graph(), run.plan()) for _, run in fast.parts]
        found[strategy] = {
            "error": max(errors),
            "parts": [d.id for d, _ in fast.parts],
            "engines": [plan.engine for _, plan in pairs],
            "bytes": [usage(graph, plan.placements).total for graph, plan in pairs],
        }
    found |= {"bound": BOUND, "uneven": [uneven(times) for times in ((1.0, 2.0), (2.0, 1.0))]}
    found["served"] = {n: r.served for n, _, r in RELAYS}
    found["default"] = str(jax.config.jax_default_device)  # type: ignore[attr-defined]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
