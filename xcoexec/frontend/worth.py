"""Whether a program is large enough for a plan to win anything."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..codegen.rules.primitives import PRIMITIVES
from ..compat import ClosedJaxpr, Jaxpr, JaxprEqn, bodies

#: elements and FLOP that XLA is through with in a few microseconds: less than what a planned call costs beside
#: jax.jit's own
LEAST_WORK = 1e5


def small(closed: ClosedJaxpr) -> bool:
    """Whether a closed jaxpr is over within microseconds. Loops whose length is not known are not."""
    work = 0.0
    for eqn, times in _equations(closed.jaxpr, 1.0):
        work += times * _work(eqn)
        if work > LEAST_WORK:
            return False
    return True


def _equations(jaxpr: Jaxpr, times: float) -> Iterator[tuple[JaxprEqn, float]]:
    """All equations, those of inner programs too, with how often each is run (at most)."""
    for eqn in jaxpr.eqns:
        yield eqn, times
        often = eqn.params.get("length", math.inf if eqn.primitive.name == "while" else 1)
        for body in bodies(eqn):
            yield from _equations(body, times * often)


def _work(eqn: JaxprEqn) -> float:
    """Elements that an equation reads or writes; of a contraction its FLOP at most."""
    sizes = [float(math.prod(getattr(v.aval, "shape", ()))) for v in (*eqn.invars, *eqn.outvars)]
    most = max(sizes, default=0.0)
    known = PRIMITIVES.get(eqn.primitive.name)
    if known is None or not known.contraction:
        return most
    return 2.0 * sizes[-1] * min(sizes[: len(eqn.invars)])


__all__ = ["small"]
