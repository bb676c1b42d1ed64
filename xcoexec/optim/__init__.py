"""Optimizers whose state lies in host memory: what of an update is whose, the host's arrays, the calls that move them.

Imports: codegen.native, codegen.program, codegen.rules, codegen.runtime, codegen.segment, compat, config, devices,
errors, frontend, lowering, planning, jax.
"""

from .offloading import Offloaded as Offloaded
from .offloading import OffloadState as OffloadState
from .offloading import offload as offload

__all__ = ["OffloadState", "Offloaded", "offload"]
