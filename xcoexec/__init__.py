"""xcoexec: Flax and JAX models on the CPU and the accelerator at the same time, as one XLA executable."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import fleet as fleet
    from . import models as models
    from . import optim as optim
    from . import strategies as strategies
    from . import streams as streams
    from .api.functions import compile as compile
    from .api.functions import jit as jit
    from .errors import BindError as BindError
    from .errors import CoexecWarning as CoexecWarning
    from .errors import PlanError as PlanError
    from .errors import SkippedError as SkippedError
    from .errors import SplitError as SplitError
    from .errors import XcoexecError as XcoexecError
    from .ir.plan import Plan as Plan
    from .streams import Scheduler as Scheduler
    from .streams import pipeline as pipeline
    from .streams import task as task

__version__ = "0.5.0"

#: public name -> the module that has it; loaded when it is first asked for, so that planning alone loads no native code
_WHERE = {
    **dict.fromkeys(("compile", "jit"), "api.functions"),
    **dict.fromkeys(
        ("BindError", "CoexecWarning", "PlanError", "SkippedError", "SplitError", "XcoexecError"),
        "errors",
    ),
    "Plan": "ir.plan",
    **dict.fromkeys(("Scheduler", "pipeline", "task"), "streams"),
}
_MODULES = ("fleet", "models", "optim", "strategies", "streams")

__all__ = sorted(["__version__", *_WHERE, *_MODULES])


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return list(__all__)
