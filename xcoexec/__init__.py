"""xcoexec: Flax and JAX models on the CPU and the accelerator at the same time, as one XLA executable."""

from .api.functions import compile as compile
from .api.functions import jit as jit
from .errors import BindError as BindError
from .errors import CoexecWarning as CoexecWarning
from .errors import PlanError as PlanError
from .errors import SkippedError as SkippedError
from .errors import SplitError as SplitError
from .errors import XcoexecError as XcoexecError
from .ir.records import Plan as Plan
from .streams import Scheduler as Scheduler
from .streams import pipeline as pipeline
from .streams import task as task

__version__ = "0.3.0.dev0"
