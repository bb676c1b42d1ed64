"""Many inferences at once, over the same plans and halves: streams, and tasks with deadlines.

Imports: api, codegen.environment, codegen.program, codegen.rules, compat, config, cost, devices, errors, frontend, ir,
lowering, measure, planning, session, jax, scipy.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import demand as demand
    from . import duo as duo
    from . import edf as edf
    from . import jobs as jobs
    from . import neuropipe as neuropipe
    from . import policies as policies
    from . import power as power
    from . import replicas as replicas
    from . import virtual as virtual
    from .block_model import Model as Model
    from .block_model import Twin as Twin
    from .block_model import model as model
    from .item_pipeline import Pipeline as Pipeline
    from .item_pipeline import pipeline as pipeline
    from .neuropipe import Cut as Cut
    from .power import Power as Power
    from .power import PowerError as PowerError
    from .scheduler import Scheduler as Scheduler
    from .scheduler import Served as Served
    from .scheduler import admits as admits
    from .scheduler import task as task
    from .stream import Stats as Stats
    from .stream import Stream as Stream

#: public name -> the module that has it; loaded when it is first asked for, so that policies alone load no native code
_WHERE = {
    **dict.fromkeys(("Model", "Twin", "model"), "block_model"),
    **dict.fromkeys(("Pipeline", "pipeline"), "item_pipeline"),
    **dict.fromkeys(("Stats", "Stream"), "stream"),
    "Cut": "neuropipe",
    **dict.fromkeys(("Power", "PowerError"), "power"),
    **dict.fromkeys(("Scheduler", "Served", "admits", "task"), "scheduler"),
}
_MODULES = (
    "datasets",
    "demand",
    "duo",
    "edf",
    "jobs",
    "neuropipe",
    "policies",
    "power",
    "replicas",
    "virtual",
)

__all__ = sorted([*_WHERE, *_MODULES])


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return list(__all__)
