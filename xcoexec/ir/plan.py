"""A placement for every layer: what planners return and what is lowered."""

from __future__ import annotations

import dataclasses
import numbers
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..errors import PlanError
from . import plan_json
from .placement import Placement
from .text import duration, html_table, html_text, plan_text, where
from .words import AXES, PLAN_VERSION, SPLIT


@dataclasses.dataclass(frozen=True)
class Plan:
    """A placement for every layer, in graph order; frozen, printable, JSON.

    `predicted` seconds of one call; `measured` name -> seconds for what was timed when the plan was chosen
    ("jit" is plain `jax.jit`); `chosen` says why this plan. `engine`: "xco", "jit" (plain jax.jit is
    kept) or "local" (on a machine with a device: the whole call on the CPU, for inputs in host memory). `graphs`: the
    device half launches its kernels as graphs, many at once, convolutions among them. `programs`: of how many XLA
    programs a call on a device is made, one behind the other (at most; 1 or more). `libraries`: kernels of libraries
    alone compute the device half's matrix products, so that XLA compiles in a small part of the time. `singly`: the
    device half launches each kernel by itself, none as part of a graph.
    """

    strategy: str
    placements: tuple[Placement, ...]
    graph: str = ""
    predicted: float | None = None
    measured: Mapping[str, float] = dataclasses.field(default_factory=dict)
    chosen: str = ""
    engine: str = "xco"
    graphs: bool = False
    programs: int = 1
    libraries: bool = False
    singly: bool = False

    @classmethod
    def uniform(cls, p_cpu: float, dim: str = "channel") -> UniformPlan:
        """A forced plan: every layer that can be split along `dim` gives the host half `p_cpu` (0..1) of it. Raises
        `PlanError` for another share or dimension.
        """
        if isinstance(p_cpu, bool) or not isinstance(p_cpu, numbers.Real) or not 0.0 <= p_cpu <= 1.0:
            raise PlanError(f"Plan.uniform: got p_cpu={p_cpu!r}; valid is 0 to 1.")
        if dim not in AXES:
            raise PlanError(f"Plan.uniform: got dim={dim!r}; valid is {' or '.join(map(repr, AXES))}.")
        return UniformPlan(float(p_cpu), dim)

    def __str__(self) -> str:
        """The plan as a table, one line a layer."""
        return self.text()

    def text(self, width: int = 0) -> str:
        """The plan as a table, one line a layer; `width`: the most characters of a line (0: any number)."""
        return plan_text(self.placements, self.strategy, self.predicted, self.chosen, self.measured, width)

    def summary(self) -> str:
        """The strategy, how many layers are where, and the predicted time, in one line."""
        if self.engine == "jit":
            return f"plain jax.jit ({self.chosen})"
        count = Counter(p.half for p in self.placements)
        halves = ", ".join(f"{n} on {half}" if half != SPLIT else f"{n} split" for half, n in count.items())
        return f"plan {self.strategy}: {halves or 'no layers'}; predicted {duration(self.predicted)}"

    def __repr__(self) -> str:
        return f"<xcoexec {self.summary()}>"

    def _repr_html_(self) -> str:
        rows = [["layer", "placement", "predicted", "note"]]
        rows += [[p.layer, where(p), duration(p.predicted), p.note] for p in self.placements]
        times = ", ".join(f"{name} {duration(s)}" for name, s in sorted(self.measured.items()))
        told = [f"strategy {self.strategy}, predicted {duration(self.predicted)}", self.chosen, times]
        return html_table(rows, (2,)) + html_text("\n".join(t for t in told if t))

    def to_json(self) -> str:
        """The plan as JSON text, for `from_json`. Raises `PlanError` where a field is not of its kind."""
        return plan_json.write(fields(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """The plan of a JSON text (bytes: in UTF-8). Raises `PlanError` that names the first entry that is wrong."""
        return made(plan_json.read(text))


@dataclasses.dataclass(frozen=True)
class UniformPlan:
    """The request of `Plan.uniform`, made a `Plan` when the graph is known. `p_cpu`: the host half's share, 0..1."""

    p_cpu: float
    dim: str


def fields(plan: Plan) -> dict[str, object]:
    """A plan as JSON has it. What is no placement stays as it is, for `plan_json.check` to name."""
    places: object = plan.placements
    if isinstance(places, (list, tuple)):
        places = [dict(vars(p)) if isinstance(p, Placement) else p for p in places]
    measured: object = plan.measured
    if isinstance(measured, Mapping):
        measured = dict(measured)
    return {"version": PLAN_VERSION, **vars(plan), "placements": places, "measured": measured}


def made(data: Mapping[str, Any]) -> Plan:
    """The plan of fields that `plan_json.check` has passed."""
    places = tuple(Placement(**p) for p in data["placements"])
    own = {k: v for k, v in data.items() if k != "version"}
    return Plan(**{**own, "placements": places})
