"""Many inferences at once, over the same plans and halves: streams, and tasks with deadlines.

Imports: api, codegen.program, codegen.rules, compat, config, cost, devices, errors, frontend, ir, lowering, measure,
planning, session, jax, scipy.
"""

from .model import Model, Twin, model
from .neuropipe import Cut
from .pipeline import Pipeline, Stats, Stream, pipeline
from .power import Power, PowerError
from .scheduler import Scheduler, Served, admits, task

__all__ = [
    "Cut",
    "Model",
    "Pipeline",
    "Power",
    "PowerError",
    "Scheduler",
    "Served",
    "Stats",
    "Stream",
    "Twin",
    "admits",
    "model",
    "pipeline",
    "task",
]
