"""Every branch on a JAX version, and the few names that come from outside JAX's promised API.

Imports: jax.
"""

from __future__ import annotations

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from jax.extend.core import Literal as JaxLiteral
from jax.sharding import SingleDeviceSharding as SingleDevice

from .arrays import Array, alone, as_array, as_weak, is_tracer, local_arrays, put_together, uncommitted
from .configuring import (
    configuration,
    default_device,
    jit_is_disabled,
    looks_for_nans,
    mesh_here,
    meshes,
    no_mesh,
    programs_are_kept,
    settings,
    versions,
    worker,
)
from .jaxprs import (
    EMPTY_MESH,
    MADE,
    UNSPECIFIED,
    AlongAxis,
    bind,
    bodies,
    body,
    loop_body,
    loop_condition,
    loop_parts,
    numberless,
    primitives,
    shape_of,
)
from .native_calls import Pairs, ffi_call, ffi_header, host_call
from .traces import (
    NOTHING,
    TRACED,
    Jitted,
    JitTrace,
    at_once,
    gradient_is_asked,
    plain_jit,
    primal_of,
    trace_of,
    xla_knows,
)

__all__ = ["EMPTY_MESH", "MADE", "NOTHING", "TRACED", "UNSPECIFIED", "AlongAxis", "Array", "ClosedJaxpr"]
__all__ += ["JaxLiteral", "Jaxpr", "JaxprEqn", "JitTrace", "Jitted", "Pairs", "SingleDevice", "Var", "alone"]
__all__ += ["as_array", "as_weak", "at_once", "bind", "bodies", "body", "configuration", "default_device"]
__all__ += ["ffi_call", "ffi_header", "gradient_is_asked", "host_call", "is_tracer", "jit_is_disabled"]
__all__ += ["local_arrays", "looks_for_nans", "loop_body", "loop_condition", "loop_parts", "mesh_here"]
__all__ += ["meshes", "no_mesh", "numberless", "plain_jit", "primal_of", "primitives", "programs_are_kept"]
__all__ += ["put_together", "settings", "shape_of", "trace_of", "uncommitted", "versions", "worker"]
__all__ += ["xla_knows"]
